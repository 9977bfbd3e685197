//! DISTINCT before an aggregate: of equal values of a group only the first reaches the state behind.

use crate::aggregate::{Accumulator, GroupIds};
use crate::exec::{KeyTable, encode_value};
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::take::take;
use thawdb_types::{SqlError, SqlType};

pub(super) struct Distinct {
    inner: Box<dyn Accumulator>,
    sql_type: SqlType,
    seen: KeyTable,
}

impl Distinct {
    pub(super) fn new(inner: Box<dyn Accumulator>, sql_type: SqlType) -> Self {
        Self { inner, sql_type, seen: KeyTable::new() }
    }
}

impl Accumulator for Distinct {
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError> {
        let values = argument.expect("DISTINCT has an argument");
        let (mut rows, mut ids, mut key) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..groups.rows {
            if values.is_null(row) {
                continue;
            }
            key.clear();
            key.extend((groups.of(row) as u32).to_le_bytes());
            encode_value(values.as_ref(), row, &self.sql_type, &mut key);
            if self.seen.insert(&key).1 {
                rows.push(row as u32);
                ids.push(groups.of(row) as u32);
            }
        }
        let chosen = take(values, &UInt32Array::from(rows), None).expect("rows lie within the batch");
        let inner = GroupIds { ids: groups.ids.map(|_| ids.as_slice()), rows: chosen.len(), group_count: groups.group_count };
        self.inner.update(&inner, Some(&chosen))?;
        Ok(values.null_count() > 0)
    }

    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError> {
        self.seen = KeyTable::new();
        self.inner.finish(group_count)
    }

    fn memory_bytes(&self) -> usize {
        self.seen.memory_bytes() + self.inner.memory_bytes()
    }
}
