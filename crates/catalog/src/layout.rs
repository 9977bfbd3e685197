//! How a table's definition becomes bytes: which columns each tree has in its keys, which in its rows.
//!
//! ```text
//! rows (heap or clustered)   key: key columns [| row number u64 big-endian]      row: all columns the key cannot give back
//! other index                key: key columns | whole key of the row             row: INCLUDE columns
//! ```
//! A row number is appended where the key columns alone need not be unique: heaps and clustered indexes that are not
//! UNIQUE. A column is left out of the row when the key holds its very value (`types::key::is_lossless`), and when it is
//! virtual: computed when it is read.
//!
//! Invariants: 1. `TreeLayout::row_key` gives the row's whole key back from any index entry. 2. Everything that reads or
//! writes the trees of a table (operators, index builds, checks) asks this module, so they cannot disagree.
//! It reads and writes nothing itself.

use crate::defs::{IndexDef, TableDef};
use thawdb_types::key::{Damage, KeyColumn, fixed_key_bytes, is_lossless, skip_value};
use thawdb_types::row::{INLINE_BYTES_MAX, RowLayout, StoredColumn};

/// Bytes of a row number.
pub const ROW_NUMBER_BYTES: usize = 8;
/// Bytes kept free beside the row where the length of its key is not known beforehand: storage's longest key.
const KEY_BYTES_MAX: usize = 1700;

/// Where a tree keeps a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnPlace {
    /// In the key, which gives it back: position among [`TreeLayout::key`].
    Key(usize),
    /// In the row: position in [`TreeLayout::row`].
    Row(usize),
    /// Not in this tree.
    Elsewhere,
}

/// The layout of one tree.
#[derive(Debug, Clone)]
pub struct TreeLayout {
    /// The columns of the key in order: those of the index, then (of an index other than the first) those of the row's
    /// key. A row number may follow.
    pub key: Vec<KeyColumn>,
    /// The table column behind each column of `key`.
    pub key_columns: Vec<usize>,
    /// How many of `key` are the index's own.
    pub own_key_count: usize,
    /// Whether a row number ends the key.
    pub row_number: bool,
    /// The row's bytes.
    pub row: RowLayout,
    /// The table column behind each column of `row`.
    pub row_columns: Vec<usize>,
}

impl TreeLayout {
    /// The layout of index `index` of `table`.
    pub fn new(table: &TableDef, index: usize) -> Self {
        let rows = table.rows();
        let own = &table.indexes[index];
        let (mut key, mut key_columns) = key_of(table, own);
        let own_key_count = key.len();
        let row_columns: Vec<usize> = if index == 0 {
            let in_key = |c: &usize| key_columns.contains(c) && is_lossless(&table.columns[*c].sql_type);
            (0..table.columns.len()).filter(|c| !in_key(c) && !table.columns[*c].is_virtual()).collect()
        } else {
            let (row_key, row_key_columns) = key_of(table, rows);
            key.extend(row_key);
            key_columns.extend(row_key_columns);
            own.included.clone()
        };
        let stored = row_columns.iter().map(|c| StoredColumn::new(table.columns[*c].sql_type, table.columns[*c].nullable)).collect();
        let row_number = rows.keys.is_empty() || !rows.unique;
        let key_bytes = key_bytes_max(&key) + if row_number { ROW_NUMBER_BYTES } else { 0 };
        let inline_bytes_max = INLINE_BYTES_MAX - key_bytes.min(KEY_BYTES_MAX);
        let row = RowLayout::new(stored).with_inline_bytes_max(inline_bytes_max).with_form(own.options.compression.row_form());
        Self { key, key_columns, own_key_count, row_number, row, row_columns }
    }

    /// Where the tree keeps a column of the table.
    pub fn place(&self, column: usize) -> ColumnPlace {
        let readable = |(at, c): (usize, &usize)| (*c == column && is_lossless(&self.key[at].sql_type)).then_some(at);
        if let Some(at) = self.key_columns.iter().enumerate().find_map(readable) {
            return ColumnPlace::Key(at);
        }
        self.row_columns.iter().position(|c| *c == column).map_or(ColumnPlace::Elsewhere, ColumnPlace::Row)
    }

    /// The index's own key columns.
    pub fn own_key(&self) -> &[KeyColumn] {
        &self.key[..self.own_key_count]
    }

    /// Byte position of key column `at` where it is the same in every key: all columns before it are of fixed width
    /// and never NULL.
    pub fn fixed_key_offset(&self, at: usize) -> Option<usize> {
        self.key[..at].iter().try_fold(0, |offset, column| match (column.nullable, fixed_key_bytes(&column.sql_type)) {
            (false, Some(width)) => Some(offset + width),
            _ => None,
        })
    }

    /// The whole key of the row in an entry of an index other than the first.
    pub fn row_key<'k>(&self, entry_key: &'k [u8]) -> Result<&'k [u8], Damage> {
        let mut rest = entry_key;
        for column in self.own_key() {
            skip_value(&mut rest, column)?;
        }
        Ok(rest)
    }
}

fn key_of(table: &TableDef, index: &IndexDef) -> (Vec<KeyColumn>, Vec<usize>) {
    let column = |key: &crate::defs::IndexKey| {
        let column = &table.columns[key.column_index];
        KeyColumn { sql_type: column.sql_type, nullable: column.nullable, descending: key.descending }
    };
    (index.keys.iter().map(column).collect(), index.keys.iter().map(|k| k.column_index).collect())
}

fn key_bytes_max(key: &[KeyColumn]) -> usize {
    key.iter().map(|c| usize::from(c.nullable) + fixed_key_bytes(&c.sql_type).unwrap_or(KEY_BYTES_MAX)).sum()
}
