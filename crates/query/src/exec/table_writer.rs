//! Rows into a table's trees and out again: the rows' own tree and every other index, kept in step.
//!
//! ```text
//! columns of a batch ─► keys of every row ─► rows' tree: insert / update / delete
//!                                        └─► each index: entry = own key | row key, INCLUDE columns as its row
//! ```
//! Invariants: 1. every row of the rows' tree has exactly one entry in every index that has no filter or whose filter it
//! passes (a row enters, stays in and leaves filtered indexes as it changes), after each call that returns.
//! 2. In a unique index no two live entries share the index's own key: an entry is inserted, then the range of its key
//! is asked for others, so of two transactions that race one waits for the other and none slips through.
//! 3. Indexes are written one after another for the whole batch, which keeps each tree's upper pages warm.
//!
//! Failure: a duplicate is 2627 or 2601 with the key's values; the statement's changes so far are rolled back by whoever
//! set its savepoint. Row locks are taken by storage.

use crate::eval::convert_scalar;
use crate::exec::Cx;
use crate::exec::layouts::layouts_of;
use crate::exec::side_writer::SideWriter;
use arrow_array::{Array, ArrayRef, BinaryArray};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, IndexDef, TableDef, TreeLayout};
use thawdb_storage::{KeyRange, Row, StorageError, TreeId, Txn};
use thawdb_types::error::message;
use thawdb_types::key::{KeyBuffer, KeyColumn, decode_value, encode_arrays, is_lossless, range_end, skip_value};
use thawdb_types::row::{RowBuffer, RowEncoder};
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// Why a row was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    Storage(StorageError),
    Sql(SqlError),
    /// Row of the batch whose key index `index` has already.
    Duplicate {
        index: usize,
        row: usize,
    },
}

impl From<StorageError> for WriteError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<SqlError> for WriteError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

/// Keys of a batch's rows, one after another.
#[derive(Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    /// The keys in a column of locators.
    pub(crate) fn of(locators: &BinaryArray) -> Self {
        Self::from_parts(locators.len(), |row| [locators.value(row), &[]])
    }

    /// Keys of two parts each.
    pub(crate) fn from_parts<'k>(rows: usize, parts: impl Fn(usize) -> [&'k [u8]; 2]) -> Self {
        let mut keys = Self::default();
        (0..rows).for_each(|row| keys.push(parts(row)));
        keys
    }

    fn push(&mut self, parts: [&[u8]; 2]) {
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
    }
}

pub(crate) struct TableWriter {
    pub(crate) table: Arc<TableDef>,
    pub(crate) layouts: Arc<[TreeLayout]>,
    side: Option<SideWriter>,
}

/// A batch of a table's rows: every column, in the table's order.
#[derive(Clone, Copy)]
pub(crate) struct TableRows<'a> {
    pub(crate) columns: &'a [ArrayRef],
    pub(crate) rows: usize,
}

impl TableRows<'_> {
    pub(crate) fn of(&self, columns: &[usize]) -> Vec<ArrayRef> {
        columns.iter().map(|c| self.columns[*c].clone()).collect()
    }
}

impl TableWriter {
    pub(crate) fn new(table: &Arc<TableDef>) -> Self {
        Self { table: table.clone(), layouts: layouts_of(table), side: SideWriter::new(table) }
    }

    /// The index's own key of every row.
    pub(crate) fn own_keys(&self, index: usize, rows: TableRows<'_>) -> KeyBuffer {
        let layout = &self.layouts[index];
        let mut keys = KeyBuffer::default();
        let own = layout.own_key_count;
        encode_arrays(&rows.of(&layout.key_columns[..own]), layout.own_key(), &mut keys);
        keys
    }

    /// The whole key of every row, with `first_number` and its successors as row numbers where the table has them.
    pub(crate) fn row_keys(&self, rows: TableRows<'_>, first_number: u64) -> Keys {
        let own = self.own_keys(0, rows);
        let layout = &self.layouts[0];
        let mut keys = Keys::default();
        for row in 0..rows.rows {
            let number = (first_number + row as u64).to_be_bytes();
            keys.push([if own.is_empty() { &[] } else { own.key(row) }, if layout.row_number { &number } else { &[] }]);
        }
        keys
    }

    /// Whether rows carry a row number.
    pub(crate) fn has_row_numbers(&self) -> bool {
        self.layouts[0].row_number
    }

    /// Inserts rows with these whole keys.
    pub(crate) fn insert(&self, txn: &mut Txn, rows: TableRows<'_>, row_keys: &Keys) -> Result<(), WriteError> {
        let tree = self.table.indexes[0].tree;
        self.for_each_row(0, rows, |row, bytes| match with_row(bytes, |r| txn.insert(tree, row_keys.get(row), r)) {
            Err(StorageError::Duplicate { .. }) => Err(WriteError::Duplicate { index: 0, row }),
            other => Ok(other?),
        })?;
        (1..self.layouts.len()).try_for_each(|index| self.insert_entries(txn, index, rows, row_keys))?;
        self.side.as_ref().map_or(Ok(()), |side| side.inserted(txn, rows, row_keys))
    }

    /// Whether an index has IGNORE_DUP_KEY: rows go in by [`Self::insert_or_ignore`].
    pub(crate) fn ignores_duplicates(&self) -> bool {
        self.table.indexes.iter().any(|index| index.options.ignore_dup_key)
    }

    /// Inserts one row; false if an index with IGNORE_DUP_KEY has its key, and then nothing is left of it.
    pub(crate) fn insert_or_ignore(&self, txn: &mut Txn, row: TableRows<'_>, row_keys: &Keys) -> Result<bool, WriteError> {
        assert_eq!(row.rows, 1, "rows are ignored one by one");
        let before = txn.savepoint();
        match self.insert(txn, row, row_keys) {
            Ok(()) => Ok(true),
            Err(WriteError::Duplicate { index, .. }) if self.table.indexes[index].options.ignore_dup_key => {
                txn.rollback_to(before)?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Inserts the entries of one other index.
    fn insert_entries(&self, txn: &mut Txn, index: usize, rows: TableRows<'_>, row_keys: &Keys) -> Result<(), WriteError> {
        let own = self.own_keys(index, rows);
        let mut entry = Vec::new();
        self.for_each_row(index, rows, |row, bytes| {
            join(&mut entry, own.key(row), row_keys.get(row));
            self.insert_entry(txn, index, (own.key(row), &entry), bytes, row)
        })
    }

    fn insert_entry(
        &self,
        txn: &mut Txn,
        index: usize,
        (own, entry): (&[u8], &[u8]),
        bytes: &RowBuffer,
        row: usize,
    ) -> Result<(), WriteError> {
        let definition = &self.table.indexes[index];
        with_row(bytes, |r| txn.insert(definition.tree, entry, r))?;
        let range = KeyRange { start: Bound::Included(own.to_vec()), end: Bound::Excluded(range_end(own)) };
        if definition.unique && txn.any_live_in(definition.tree, &range, Some(entry))? {
            return Err(WriteError::Duplicate { index, row });
        }
        Ok(())
    }

    /// Deletes rows: their entries in every index too. Rows that are gone are passed over.
    pub(crate) fn delete(&self, txn: &mut Txn, rows: TableRows<'_>, row_keys: &Keys) -> Result<(), WriteError> {
        for row in 0..rows.rows {
            txn.delete(self.table.indexes[0].tree, row_keys.get(row))?;
        }
        let mut entry = Vec::new();
        for (index, definition) in self.table.indexes.iter().enumerate().skip(1) {
            let own = self.own_keys(index, rows);
            let kept = self.kept(index, rows);
            for row in (0..rows.rows).filter(|row| is_kept(&kept, *row)) {
                join(&mut entry, own.key(row), row_keys.get(row));
                self.delete_entry(txn, definition.tree, &entry)?;
            }
        }
        self.side.as_ref().map_or(Ok(()), |side| side.deleted(txn, rows, row_keys))
    }

    fn delete_entry(&self, txn: &mut Txn, tree: TreeId, entry: &[u8]) -> Result<(), WriteError> {
        if txn.delete(tree, entry)? { Ok(()) } else { Err(StorageError::NoEntry(tree).into()) }
    }

    /// Replaces rows whose keys stay what they are. `changed` are the table columns that may differ.
    pub(crate) fn update(
        &self,
        txn: &mut Txn,
        (old, new): (TableRows<'_>, TableRows<'_>),
        row_keys: &Keys,
        changed: &[usize],
    ) -> Result<(), WriteError> {
        let tree = self.table.indexes[0].tree;
        self.for_each_row(0, new, |row, bytes| {
            if with_row(bytes, |r| txn.update(tree, row_keys.get(row), r))? {
                Ok(())
            } else {
                Err(StorageError::Bug("a locked row is gone".into()).into())
            }
        })?;
        for index in 1..self.layouts.len() {
            let definition = &self.table.indexes[index];
            if changed.iter().any(|column| definition.depends_on(*column)) {
                self.update_entries(txn, index, (old, new), row_keys)?;
            }
        }
        match &self.side {
            Some(side) if changed.iter().any(|column| side.has(*column)) => {
                side.deleted(txn, old, row_keys)?;
                side.inserted(txn, new, row_keys)
            }
            _ => Ok(()),
        }
    }

    fn update_entries(
        &self,
        txn: &mut Txn,
        index: usize,
        (old, new): (TableRows<'_>, TableRows<'_>),
        row_keys: &Keys,
    ) -> Result<(), WriteError> {
        let tree = self.table.indexes[index].tree;
        let (old_own, new_own) = (self.own_keys(index, old), self.own_keys(index, new));
        let (was_in, is_in) = (self.kept(index, old), self.kept(index, new));
        let mut entry = Vec::new();
        for row in (0..old.rows).filter(|row| is_kept(&was_in, *row) && !is_kept(&is_in, *row)) {
            join(&mut entry, old_own.key(row), row_keys.get(row));
            self.delete_entry(txn, tree, &entry)?;
        }
        self.for_each_row(index, new, |row, bytes| {
            if !is_kept(&was_in, row) {
                join(&mut entry, new_own.key(row), row_keys.get(row));
                return self.insert_entry(txn, index, (new_own.key(row), &entry), bytes, row);
            }
            join(&mut entry, old_own.key(row), row_keys.get(row));
            if old_own.key(row) == new_own.key(row) {
                return match with_row(bytes, |r| txn.update(tree, &entry, r))? {
                    true => Ok(()),
                    false => Err(StorageError::NoEntry(tree).into()),
                };
            }
            self.delete_entry(txn, tree, &entry)?;
            join(&mut entry, new_own.key(row), row_keys.get(row));
            self.insert_entry(txn, index, (new_own.key(row), &entry), bytes, row)
        })
    }

    /// Which rows index `index` has entries of; `None` if it has one of each.
    pub(crate) fn kept(&self, index: usize, rows: TableRows<'_>) -> Option<Vec<bool>> {
        kept_by(&self.table.indexes[index], &self.table.columns, rows)
    }

    /// Encodes each row that index `index` has an entry of as it stores it.
    pub(crate) fn for_each_row(
        &self,
        index: usize,
        rows: TableRows<'_>,
        mut each: impl FnMut(usize, &RowBuffer) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let layout = &self.layouts[index];
        let arrays = rows.of(&layout.row_columns);
        let mut encoder = RowEncoder::new(&layout.row, &arrays);
        let mut bytes = RowBuffer::default();
        let kept = self.kept(index, rows);
        for row in (0..rows.rows).filter(|row| is_kept(&kept, *row)) {
            encoder.encode(row, &mut bytes)?;
            each(row, &bytes)?;
        }
        Ok(())
    }

    /// What the client is told of a failed write of `rows`.
    pub(crate) fn to_sql(&self, error: WriteError, rows: TableRows<'_>, cx: &Cx<'_, '_>) -> SqlError {
        match error {
            WriteError::Storage(error) => cx.host.storage_error(self.table.database, error),
            WriteError::Sql(error) => error,
            WriteError::Duplicate { index, row } => self.duplicate(index, rows, row),
        }
    }

    /// An index's own key bytes as messages show them; what the bytes cannot give back is left out.
    pub(crate) fn shown_key(&self, index: usize, own: &[u8]) -> String {
        shown_key(&self.layouts[index], own)
    }

    fn duplicate(&self, index: usize, rows: TableRows<'_>, row: usize) -> SqlError {
        let definition = &self.table.indexes[index];
        let value = |key: &thawdb_catalog::IndexKey| {
            let sql_type = &self.table.columns[key.column_index].sql_type;
            shown(scalar_at(rows.columns[key.column_index].as_ref(), row, sql_type), sql_type)
        };
        let values = format!("({})", definition.keys.iter().map(value).collect::<Vec<_>>().join(", "));
        duplicate_error(&self.table, index, &values)
    }
}

/// Which rows an index has entries of; `None` if it has one of each.
pub(crate) fn kept_by(index: &IndexDef, columns: &[ColumnDef], rows: TableRows<'_>) -> Option<Vec<bool>> {
    let filter = index.filter.as_ref()?;
    let Ok(kept) = filter.kept(columns, rows.rows, |at| Ok::<_, Infallible>(rows.columns[at].clone()));
    Some(kept)
}

pub(crate) fn is_kept(kept: &Option<Vec<bool>>, row: usize) -> bool {
    kept.as_ref().is_none_or(|kept| kept[row])
}

/// 2627 or 2601 for a key value that an index has already.
pub(crate) fn duplicate_error(table: &TableDef, index: usize, values: &str) -> SqlError {
    let definition = &table.indexes[index];
    let object = format!("{}.{}", table.schema_name, table.name);
    let name = definition.name.as_deref().unwrap_or_default();
    if definition.primary_key || definition.unique_constraint {
        let kind = if definition.primary_key { "PRIMARY KEY" } else { "UNIQUE KEY" };
        message(2627, &[&kind, &name, &object, &values])
    } else {
        message(2601, &[&object, &name, &values])
    }
}

/// An index's own key bytes as messages show them.
pub(crate) fn shown_key(layout: &TreeLayout, mut own: &[u8]) -> String {
    let value = |column: &KeyColumn| {
        if is_lossless(&column.sql_type) {
            return decode_value(&mut own, column).map_or_else(|_| "...".into(), |value| shown(value, &column.sql_type));
        }
        let skipped = skip_value(&mut own, column);
        skipped.map_or_else(|_| "...".into(), |()| "...".to_owned())
    };
    format!("({})", layout.own_key().iter().map(value).collect::<Vec<_>>().join(", "))
}

/// A key value as messages show it.
pub(crate) fn shown(value: Scalar, sql_type: &SqlType) -> String {
    if value.is_null() {
        return "<NULL>".into();
    }
    match convert_scalar(value, sql_type, &SqlType::NVARCHAR_MAX, 0, true) {
        Ok(Scalar::Text(text)) => text.trim_end_matches(' ').to_owned(),
        _ => "...".into(),
    }
}

pub(crate) fn join(out: &mut Vec<u8>, first: &[u8], second: &[u8]) {
    out.clear();
    out.extend_from_slice(first);
    out.extend_from_slice(second);
}

/// Calls `write` with the encoded row in the form storage takes.
pub(crate) fn with_row<R>(bytes: &RowBuffer, write: impl FnOnce(Row<'_>) -> R) -> R {
    if bytes.large().is_empty() {
        return write(Row::inline(bytes.inline()));
    }
    let large: Vec<&[u8]> = bytes.large().iter().map(Vec::as_slice).collect();
    write(Row { inline: bytes.inline(), large: &large })
}
