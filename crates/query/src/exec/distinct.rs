//! The first of each set of equal rows, in the order they come. NULLs are equal to each other here.
//!
//! It streams: a row is put out as soon as it is seen to be new. Keys are held in memory within the grant (701).

use crate::exec::batch::Rows;
use crate::exec::key_table::KeyTable;
use crate::exec::keys::KeyColumns;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::phys::Node;
use arrow_buffer::BooleanBuffer;
use thawdb_types::{SqlError, SqlType};

pub(super) struct Distinct<'p> {
    input: BoxOperator<'p>,
    types: Vec<SqlType>,
    seen: KeyTable,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: &'p Node) -> Self {
        let types = input.columns.iter().map(|c| c.sql_type).collect();
        Self { input: build(input), types, seen: KeyTable::new() }
    }
}

/// Enters the keys of a batch and tells which rows were new.
pub(super) fn new_rows(seen: &mut KeyTable, batch: &Batch, types: &[SqlType]) -> BooleanBuffer {
    let keys = KeyColumns { arrays: &batch.columns, types };
    let mut key = Vec::new();
    BooleanBuffer::collect_bool(batch.rows, |row| {
        keys.encode(row, &mut key);
        seen.insert(&key).1
    })
}

impl<'p> Operator<'p> for Distinct<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.seen = KeyTable::new();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(batch) = self.input.next(cx)? {
            let kept = batch.filter(&new_rows(&mut self.seen, &batch, &self.types));
            cx.check_memory(self.seen.memory_bytes())?;
            if kept.rows > 0 {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }
}
