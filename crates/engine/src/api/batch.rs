//! Rows on their way to a client: some Arrow arrays of one length.

use arrow_array::ArrayRef;

/// Some rows, by column. The columns' SQL types travel beside it; `thawdb_types::sql_type` says how each lies in Arrow.
#[derive(Debug, Clone)]
pub struct Batch {
    /// One array a column, all of `row_count` values.
    pub columns: Vec<ArrayRef>,
    /// Rows in it; there may be rows without columns.
    pub row_count: usize,
}
