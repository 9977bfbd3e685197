//! Some rows as columns: what operators hand to each other.
//!
//! Unlike Arrow's `RecordBatch` it carries no schema (the plan knows the types) and may have rows without columns
//! (`SELECT COUNT(*)` over a scan that reads none). Invariant: every column has exactly `rows` values ([`Batch::new`]).

use arrow_array::{Array, ArrayRef};

/// Rows as columns of equal length.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// One array per column.
    pub columns: Vec<ArrayRef>,
    /// Number of rows.
    pub rows: usize,
}

impl Batch {
    /// Rows a full batch has; an operator may hand on fewer, never more than twice as many.
    pub const ROWS_AIM: usize = 2048;

    /// A batch of `columns`, each of `rows` values.
    pub fn new(columns: Vec<ArrayRef>, rows: usize) -> Self {
        assert!(columns.iter().all(|c| c.len() == rows), "every column of a batch has the batch's rows");
        Self { columns, rows }
    }

    /// Rows `offset..offset + rows`, sharing the memory.
    pub fn slice(&self, offset: usize, rows: usize) -> Self {
        assert!(offset + rows <= self.rows, "a slice lies within its batch");
        Self { columns: self.columns.iter().map(|c| c.slice(offset, rows)).collect(), rows }
    }

    /// The columns at `positions`, in that order.
    pub fn project(&self, positions: &[usize]) -> Self {
        Self { columns: positions.iter().map(|at| self.columns[*at].clone()).collect(), rows: self.rows }
    }
}
