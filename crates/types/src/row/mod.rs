//! The row codec: a table row's values to the bytes storage keeps, and columns of many rows back.
//!
//! ```text
//! 0          2                 fixed_end
//! | fixed_end | fixed values... | column_count | null bitmap | variable_count | ends... | variable values... | end of row
//!     u16       widths of           u16          1 bit each        u16          u16 each   text as UTF-8, binary as is
//!               `fixed_bytes`                    (1 = NULL)                     from 0
//! ```
//!
//! An end with the top bit set is that of a *large* value: instead of the value stand its ordinal among the row's large
//! parts (u16) and its length (u32), and the bytes go to storage apart. A value of a max type over
//! [`LARGE_BYTES`] is large; when the row would be longer than the layout allows, so are its longest other values.
//! Numbers are little-endian.
//!
//! Invariants:
//! 1. Columns are only ever added at the end of a layout. A row written before has fewer columns (`column_count`) and
//!    perhaps a lower `fixed_end`: what it lacks reads as the column's default. Old rows are never rewritten for it.
//! 2. A NULL of fixed width keeps its place, zeroed. NULLs and empty values at the end of the variable columns are left
//!    out of `ends`.
//! 3. Whatever bytes are given, decoding ends in values or [`Damage`] (property test): every length is checked against
//!    the row before it is used.
//!
//! That is the plain form; trees with data compression have the compact one (`compact`, [`RowLayout::with_form`]).
//!
//! Decoding goes column by column over many rows ([`RowLayout::decode_column`]): the type is looked at once a column. Rows
//! in one piece of memory that were all written by one layout take shorter loops ([`RowLayout::decode_packed`]).
//! Failure: a row that cannot be made to fit raises 511. The format is stored: it changes only with the file version.

mod compact;
mod decode;
mod encode;
mod packed;

pub use decode::RowSource;
pub use encode::{RowBuffer, RowEncoder};
pub use packed::{PackedRows, Uniform};

pub use crate::key::Damage;
use crate::{Scalar, SqlType};

/// A value of a max type longer than this is stored apart: two such values and their row still fit a page's half.
pub const LARGE_BYTES: usize = 3_900;
/// What stands in the row for a large value: ordinal and length.
const MARKER_BYTES: usize = 6;
/// Most bytes a row may have in line when nothing else is said: storage's limit of key and row together.
pub const INLINE_BYTES_MAX: usize = 8_000;
/// Top bit of an end.
const LARGE_FLAG: u16 = 0x8000;

/// A stored column.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredColumn {
    /// Its type.
    pub sql_type: SqlType,
    /// It may be NULL.
    pub nullable: bool,
    /// What rows read that were written before the column was added.
    pub missing: Scalar,
}

impl StoredColumn {
    /// A column that was there from the start, or whose older rows read NULL.
    pub fn new(sql_type: SqlType, nullable: bool) -> Self {
        Self { sql_type, nullable, missing: Scalar::Null }
    }
}

/// Which of the two forms the rows of a tree have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowForm {
    /// Fixed values at fixed places.
    #[default]
    Plain,
    /// Every value at its least length: see the module `compact`.
    Compact,
}

/// Where a column's value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Fixed { offset: usize, width: usize },
    Variable { index: usize },
}

/// How the rows of one table or index are laid out.
#[derive(Debug, Clone)]
pub struct RowLayout {
    columns: Vec<StoredColumn>,
    places: Vec<Place>,
    fixed_end: usize,
    variable_columns: Vec<usize>,
    inline_bytes_max: usize,
    form: RowForm,
}

impl RowLayout {
    /// The layout of `columns` in the order in which they were added to the table.
    pub fn new(columns: Vec<StoredColumn>) -> Self {
        let (mut fixed_end, mut variable_columns, mut places) = (2, Vec::new(), Vec::with_capacity(columns.len()));
        for (position, column) in columns.iter().enumerate() {
            places.push(match column.sql_type.fixed_bytes() {
                Some(width) => {
                    fixed_end += width;
                    Place::Fixed { offset: fixed_end - width, width }
                }
                None => {
                    variable_columns.push(position);
                    Place::Variable { index: variable_columns.len() - 1 }
                }
            });
        }
        Self { columns, places, fixed_end, variable_columns, inline_bytes_max: INLINE_BYTES_MAX, form: RowForm::Plain }
    }

    /// The same with another bound on the bytes in line: what is left of storage's limit beside the longest key.
    pub fn with_inline_bytes_max(mut self, bytes: usize) -> Self {
        self.inline_bytes_max = bytes.min(INLINE_BYTES_MAX);
        self
    }

    /// The same columns in rows of this form.
    pub fn with_form(mut self, form: RowForm) -> Self {
        self.form = form;
        self
    }

    /// Its columns.
    pub fn columns(&self) -> &[StoredColumn] {
        &self.columns
    }

    /// Bytes of a row whose variable values are all empty: what 1701 checks.
    pub fn bytes_min(&self) -> usize {
        self.fixed_end + 2 + self.columns.len().div_ceil(8) + 2
    }
}

#[cfg(test)]
mod tests;
