//! ORDER BY: all rows by their keys, NULL lowest, equal keys in the order they came.
//!
//! Rows are held in memory within the grant (701 beyond).

use crate::exec::batch::BATCH_ROWS;
use crate::exec::sort_buffer::SortBuffer;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::phys::{Node, SortKey};
use thawdb_types::SqlError;

pub(super) struct Sort<'p> {
    input: BoxOperator<'p>,
    buffer: SortBuffer<'p>,
    at: usize,
}

impl<'p> Sort<'p> {
    pub(super) fn new(input: &'p Node, keys: &'p [SortKey]) -> Self {
        Self { input: build(input), buffer: SortBuffer::new(keys), at: 0 }
    }
}

impl<'p> Operator<'p> for Sort<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.buffer.clear();
        self.at = 0;
        self.input.open(cx)?;
        while let Some(batch) = self.input.next(cx)? {
            self.buffer.push(batch, cx)?;
            cx.check_memory(self.buffer.memory_bytes())?;
        }
        cx.host.check_cancelled()?;
        self.buffer.sort();
        Ok(())
    }

    fn next(&mut self, _cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let to = self.buffer.len().min(self.at + BATCH_ROWS);
        if to == self.at {
            return Ok(None);
        }
        let from = std::mem::replace(&mut self.at, to);
        Ok(Some(self.buffer.rows(from, to)))
    }
}
