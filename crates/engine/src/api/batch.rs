//! Rows on their way to or from a client: some Arrow arrays of one length.

use arrow_array::ArrayRef;

/// Some rows, by column. The columns' SQL types travel beside it; `thawdb_types::sql_type` says how each lies in Arrow.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// One array a column, all of `row_count` values.
    pub columns: Vec<ArrayRef>,
    /// Rows in it; there may be rows without columns.
    pub row_count: usize,
}

impl From<thawdb_types::Batch> for Batch {
    fn from(batch: thawdb_types::Batch) -> Self {
        Self { columns: batch.columns, row_count: batch.rows }
    }
}

impl From<Batch> for thawdb_types::Batch {
    fn from(batch: Batch) -> Self {
        Self::new(batch.columns, batch.row_count)
    }
}
