//! ORDER BY: all rows by their keys, NULL lowest, equal keys in the order they came.
//!
//! ```text
//! within the grant   SortBuffer, sorted in memory
//! beyond it          its rows, and each batch after, go to storage's external sort: stable, merged from a file
//! ```

use crate::exec::batch::BATCH_ROWS;
use crate::exec::sort_buffer::SortBuffer;
use crate::exec::spill::{Spilled, external_sort, failed};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::phys::{Node, SortKey};
use thawdb_types::{SqlError, SqlType};

pub(super) struct Sort<'p> {
    input: BoxOperator<'p>,
    types: Vec<SqlType>,
    buffer: SortBuffer<'p>,
    spilled: Option<Spilled>,
    at: usize,
    held: usize,
}

impl<'p> Sort<'p> {
    pub(super) fn new(input: &'p Node, keys: &'p [SortKey]) -> Self {
        let types = input.columns.iter().map(|c| c.sql_type).collect();
        Self { input: build(input), types, buffer: SortBuffer::new(keys), spilled: None, at: 0, held: 0 }
    }
}

impl<'p> Operator<'p> for Sort<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.buffer.clear();
        (self.spilled, self.at) = (None, 0);
        cx.hold(&mut self.held, 0);
        self.input.open(cx)?;
        let mut external = None;
        let Self { input, types, buffer, held, .. } = self;
        input.for_each(cx, &mut |batch, cx| {
            buffer.push(batch, cx)?;
            let bytes = buffer.memory_bytes();
            if external.is_some() || !cx.hold(held, bytes) || bytes > cx.host.memory_grant_bytes() / 2 {
                cx.hold(held, 0);
                let sort = external.get_or_insert_with(|| external_sort(true, cx));
                buffer.spill(sort, types).map_err(|e| failed(e, cx))?;
            }
            Ok(())
        })?;
        cx.host.check_cancelled()?;
        match external {
            None => self.buffer.sort(),
            Some(sort) => {
                let spilled = Spilled::new(sort, self.types.clone()).map_err(|e| failed(e, cx))?;
                cx.state.spilled_bytes += spilled.spilled_bytes();
                self.spilled = Some(spilled);
            }
        }
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        if let Some(spilled) = &mut self.spilled {
            return spilled.next(BATCH_ROWS).map_err(|e| failed(e, cx));
        }
        let to = self.buffer.len().min(self.at + BATCH_ROWS);
        if to == self.at {
            self.buffer.clear();
            self.at = 0;
            cx.hold(&mut self.held, 0);
            return Ok(None);
        }
        let from = std::mem::replace(&mut self.at, to);
        Ok(Some(self.buffer.rows(from, to)))
    }
}
