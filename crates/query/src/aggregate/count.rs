//! COUNT and COUNT_BIG. COUNT is an int and fails beyond it (8115).

use crate::aggregate::{Accumulator, GroupIds};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array};
use std::sync::Arc;
use thawdb_types::error::message;
use thawdb_types::{SqlError, SqlType};

pub(super) struct Count {
    result: SqlType,
    counts: Vec<i64>,
}

impl Count {
    pub(super) fn new(result: SqlType) -> Self {
        Self { result, counts: Vec::new() }
    }
}

impl Accumulator for Count {
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError> {
        self.counts.resize(groups.group_count, 0);
        let nulls = argument.and_then(|a| a.nulls()).filter(|n| n.null_count() > 0);
        match (groups.ids, nulls) {
            (None, nulls) => self.counts[0] += (groups.rows - nulls.map_or(0, |n| n.null_count())) as i64,
            (Some(ids), None) => ids.iter().for_each(|id| self.counts[*id as usize] += 1),
            (Some(ids), Some(nulls)) => nulls.valid_indices().for_each(|row| self.counts[ids[row] as usize] += 1),
        }
        Ok(nulls.is_some())
    }

    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError> {
        let mut counts = std::mem::take(&mut self.counts);
        counts.resize(group_count, 0);
        if self.result == SqlType::BigInt {
            return Ok(Arc::new(Int64Array::from(counts)));
        }
        let narrow: Result<Vec<i32>, _> = counts.into_iter().map(i32::try_from).collect();
        narrow.map(|c| Arc::new(Int32Array::from(c)) as ArrayRef).map_err(|_| message(8115, &[&"expression", &"int"]))
    }

    fn peek(&self) -> Result<ArrayRef, SqlError> {
        Self { result: self.result, counts: self.counts.clone() }.finish(1)
    }

    fn hand_over(&mut self, group_count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let mut counts = std::mem::take(&mut self.counts);
        counts.resize(group_count, 0);
        Ok(vec![Arc::new(Int64Array::from(counts))])
    }

    fn join(&mut self, groups: &GroupIds<'_>, partial: &[ArrayRef]) -> Result<(), SqlError> {
        self.counts.resize(groups.group_count, 0);
        let counts = partial[0].as_primitive::<Int64Type>().values();
        counts.iter().enumerate().for_each(|(row, count)| self.counts[groups.of(row)] += count);
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
