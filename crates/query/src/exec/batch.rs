//! What the executor does to whole batches: keep some rows, put them in another order, join them, lay them side by side.
//!
//! A batch may have rows without columns (COUNT(*) over a scan needs none) and may have one row only. Operators aim at
//! [`BATCH_ROWS`] rows: enough that the cost of a call vanishes, few enough that a batch of ordinary columns stays in
//! the second-level cache (2,048 rows of 40 bytes are 80 KiB).

use arrow_array::{Array, BooleanArray, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_select::concat::concat;
use arrow_select::filter::FilterBuilder;
use arrow_select::take::take;
use thawdb_types::column::empty_array;
use thawdb_types::{Batch, SqlType};

/// Rows an operator puts in a batch, about.
pub const BATCH_ROWS: usize = Batch::ROWS_AIM;

/// Operations on whole batches.
pub trait Rows: Sized {
    /// No rows of these types.
    fn empty<'t>(types: impl IntoIterator<Item = &'t SqlType>) -> Self;
    /// The rows whose bit is set.
    fn filter(&self, keep: &BooleanBuffer) -> Self;
    /// The rows at `indices`, NULLs where an index is NULL.
    fn take(&self, indices: &UInt32Array) -> Self;
    /// All rows of `batches`, which have the same columns; there is at least one.
    fn concat(batches: &[Self]) -> Self;
    /// These columns, then `right`'s.
    fn beside(self, right: &Self) -> Self;
    /// Bytes of memory it holds, about: arrays shared with other batches are counted here too.
    fn memory_bytes(&self) -> usize;
}

impl Rows for Batch {
    fn empty<'t>(types: impl IntoIterator<Item = &'t SqlType>) -> Self {
        Self { columns: types.into_iter().map(empty_array).collect(), rows: 0 }
    }

    fn filter(&self, keep: &BooleanBuffer) -> Self {
        let rows = keep.count_set_bits();
        if rows == self.rows {
            return self.clone();
        }
        if rows == 0 {
            return self.slice(0, 0);
        }
        let mut builder = FilterBuilder::new(&BooleanArray::new(keep.clone(), None));
        if self.columns.len() > 1 {
            builder = builder.optimize();
        }
        let predicate = builder.build();
        let columns = self.columns.iter().map(|c| predicate.filter(c).expect("mask and column have one length")).collect();
        Self { columns, rows }
    }

    fn take(&self, indices: &UInt32Array) -> Self {
        let columns = self.columns.iter().map(|c| take(c, indices, None).expect("indices lie within the batch")).collect();
        Self { columns, rows: indices.len() }
    }

    fn concat(batches: &[Self]) -> Self {
        if let [only] = batches {
            return only.clone();
        }
        let rows = batches.iter().map(|b| b.rows).sum();
        let columns = (0..batches[0].columns.len())
            .map(|i| {
                let parts: Vec<_> = batches.iter().map(|b| b.columns[i].as_ref()).collect();
                concat(&parts).expect("batches of one operator have the same column types")
            })
            .collect();
        Self { columns, rows }
    }

    fn beside(mut self, right: &Self) -> Self {
        debug_assert_eq!(self.rows, right.rows, "batches side by side have one length");
        self.columns.extend(right.columns.iter().cloned());
        self
    }

    fn memory_bytes(&self) -> usize {
        self.columns.iter().map(|c| c.get_array_memory_size()).sum()
    }
}
