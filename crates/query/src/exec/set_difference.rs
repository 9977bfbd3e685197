//! EXCEPT and INTERSECT: distinct left rows that are not, or are, among the right rows. NULLs are equal to each other.

use crate::exec::batch::Rows;
use crate::exec::distinct::new_rows;
use crate::exec::key_table::KeyTable;
use crate::exec::keys::KeyColumns;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::phys::Node;
use arrow_buffer::BooleanBuffer;
use thawdb_types::{SqlError, SqlType};

pub(super) struct SetDifference<'p> {
    left: BoxOperator<'p>,
    right: BoxOperator<'p>,
    types: Vec<SqlType>,
    keep: bool,
    right_keys: KeyTable,
    seen: KeyTable,
}

impl<'p> SetDifference<'p> {
    pub(super) fn new(left: &'p Node, right: &'p Node, keep: bool) -> Self {
        let types = left.columns.iter().map(|c| c.sql_type).collect();
        Self { left: build(left), right: build(right), types, keep, right_keys: KeyTable::new(), seen: KeyTable::new() }
    }
}

impl<'p> Operator<'p> for SetDifference<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        (self.right_keys, self.seen) = (KeyTable::new(), KeyTable::new());
        self.right.open(cx)?;
        while let Some(batch) = self.right.next(cx)? {
            new_rows(&mut self.right_keys, &batch, &self.types);
            cx.check_memory(self.right_keys.memory_bytes())?;
        }
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(batch) = self.left.next(cx)? {
            let keys = KeyColumns { arrays: &batch.columns, types: &self.types };
            let mut key = Vec::new();
            let kept = batch.filter(&BooleanBuffer::collect_bool(batch.rows, |row| {
                keys.encode(row, &mut key);
                self.right_keys.find(&key).is_some() == self.keep && self.seen.insert(&key).1
            }));
            cx.check_memory(self.right_keys.memory_bytes() + self.seen.memory_bytes())?;
            if kept.rows > 0 {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }
}
