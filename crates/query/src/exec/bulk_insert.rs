//! Many rows into one table, by the cheapest way that is right: BULK INSERT, bulk load over the wire, SELECT INTO.
//!
//! ```text
//! push ─► gather ─► flush: complete columns, check, encode keys
//!            rows' tree empty at the start, keys rising beyond the last   bulk append, whole leaves
//!            otherwise                                                    sorted by key, then inserted one by one
//!          other indexes of a table that was empty: entries into an external sort
//! finish ─► last flush ─► each sort in order, bulk append; equal own keys of a unique index are 2601 or 2627
//! ```
//! Invariants: 1. after `finish` every index has an entry for every row. Before it a table that was empty has none in
//! its other indexes, so the caller must finish or roll back. 2. Gathered rows stay within [`GATHER_BYTES`].
//! Failure: the caller's savepoint takes everything back; the table is as before.

use crate::context::StatementHost;
use crate::eval::eval_array;
use crate::exec::batch::Rows;
use crate::exec::cx::{Cx, CxState};
use crate::exec::insert::InsertSpec;
use crate::exec::table_writer::{Keys, TableRows, TableWriter, WriteError, duplicate_error, with_row};
use crate::expr::Expr;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::zip::zip;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_storage::sort::{ExternalSort, SortOptions};
use thawdb_storage::{BulkAppend, KeyRange, Row, ScanDirection, StorageError};
use thawdb_types::error::message;
use thawdb_types::row::RowBuffer;
use thawdb_types::{Batch, SqlError, SqlType};

/// Rows gathered before they are written: enough for a run of leaves, few enough to stay near the caches.
const GATHER_ROWS: usize = 32 * 1024;
/// Bytes gathered at most.
const GATHER_BYTES: usize = 32 << 20;

/// Where rows go and what they lack.
#[derive(Debug, Clone)]
pub struct BulkTarget {
    /// The table.
    pub table: Arc<TableDef>,
    /// Table column of each column that is pushed.
    pub targets: Vec<usize>,
    /// Type of each column that is pushed.
    pub types: Vec<SqlType>,
    /// Defaults of table columns: for columns not pushed, and for NULLs unless `keep_nulls`.
    pub defaults: Vec<(usize, Expr)>,
    /// Stored computed columns, over the row.
    pub computed: Vec<(usize, Expr)>,
    /// Identity values come with the rows; otherwise a pushed identity column is ignored and numbers are handed out.
    pub keep_identity: bool,
    /// NULLs stay NULL where the column has a default.
    pub keep_nulls: bool,
}

/// A load at work.
pub struct BulkInsert {
    target: BulkTarget,
    writer: TableWriter,
    gathered: Vec<Batch>,
    gathered_rows: usize,
    gathered_bytes: usize,
    /// The table had no rows when the load began: its trees are filled by appending.
    was_empty: bool,
    last_key: Vec<u8>,
    /// Fills the rows' tree while keys rise.
    append: Option<BulkAppend>,
    /// One sort for each index but the first, if the table was empty.
    sorts: Vec<ExternalSort>,
    rows: u64,
    /// Of them, those that an index with IGNORE_DUP_KEY had.
    rows_ignored: u64,
}

impl BulkInsert {
    /// Begins a load in the session's transaction.
    pub fn begin(target: BulkTarget, host: &mut dyn StatementHost) -> Result<Self, SqlError> {
        let writer = TableWriter::new(&target.table);
        let view = host.read_view(target.table.database)?;
        let mut scan = view
            .scan(target.table.rows().tree, KeyRange::ALL, ScanDirection::Forward)
            .map_err(|e| host.storage_error(target.table.database, e))?;
        let is_empty = scan.next_block().map_err(|e| host.storage_error(target.table.database, e))?.is_none();
        // An index being built beside the table's use hears of rows one by one; what an index ignores must not reach others.
        let was_empty = is_empty && target.table.building.is_none() && !writer.ignores_duplicates();
        let others = target.table.indexes.len() - 1;
        let memory_bytes_max = host.memory_grant_bytes() / others.max(1);
        let options = SortOptions { memory_bytes_max, temp_folder: host.temp_folder(), stable: false, ordered_bytes: 0 };
        let sort = |_| ExternalSort::new(host.env().clone(), options.clone()).accounted(host.memory_account());
        let sorts = if was_empty { (0..others).map(sort).collect() } else { Vec::new() };
        Ok(Self {
            target,
            writer,
            gathered: Vec::new(),
            gathered_rows: 0,
            gathered_bytes: 0,
            was_empty,
            last_key: Vec::new(),
            append: None,
            sorts,
            rows: 0,
            rows_ignored: 0,
        })
    }

    /// Takes rows in.
    pub fn push(&mut self, batch: Batch, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        self.gathered_rows += batch.rows;
        self.gathered_bytes += batch.memory_bytes();
        if batch.rows > 0 {
            self.gathered.push(batch);
        }
        if self.gathered_rows >= GATHER_ROWS || self.gathered_bytes >= GATHER_BYTES { self.flush(host) } else { Ok(()) }
    }

    /// Writes what is left and the other indexes; the number of rows.
    pub fn finish(mut self, host: &mut dyn StatementHost) -> Result<u64, SqlError> {
        self.flush(host)?;
        let database = self.target.table.database;
        if let Some(append) = self.append.take() {
            let finished = append.finish(host.txn(database)?);
            finished.map_err(|error| host.storage_error(database, error))?;
        }
        for (at, sort) in std::mem::take(&mut self.sorts).into_iter().enumerate() {
            host.check_cancelled()?;
            self.append_index(at + 1, sort, host)?;
        }
        if self.rows_ignored > 0 {
            host.info(message(3604, &[]));
        }
        let rows = self.rows - self.rows_ignored;
        host.rows_loaded(&self.target.table, rows);
        Ok(rows)
    }

    fn flush(&mut self, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        host.check_cancelled()?;
        let batch = Batch::concat(&std::mem::take(&mut self.gathered));
        (self.gathered_rows, self.gathered_bytes) = (0, 0);
        let table = self.target.table.clone();
        let columns = complete(&self.target, &batch, host)?;
        let rows = TableRows { columns: &columns, rows: batch.rows };
        let first_number =
            if self.writer.has_row_numbers() { host.next_row_number(table.database, table.id, rows.rows as u64)? } else { 0 };
        let keys = self.writer.row_keys(rows, first_number);
        match rising_order(&keys, rows.rows) {
            None => self.write(rows, &keys, host)?,
            Some(order) => {
                let sorted = Batch::new(columns.clone(), rows.rows).take(&order);
                let keys = Keys::from_parts(rows.rows, |row| [keys.get(order.value(row) as usize), &[]]);
                self.write(TableRows { columns: &sorted.columns, rows: sorted.rows }, &keys, host)?;
            }
        }
        self.rows += batch.rows as u64;
        Ok(())
    }

    /// Writes rows whose keys rise.
    fn write(&mut self, rows: TableRows<'_>, keys: &Keys, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        let database = self.target.table.database;
        if self.writer.ignores_duplicates() {
            return self.write_each(rows, keys, host);
        }
        let beyond = self.was_empty && (self.last_key.is_empty() || keys.get(0) > self.last_key.as_slice());
        let txn = host.txn(database)?;
        let result = match (beyond, self.was_empty) {
            (true, _) => append_rows(&self.writer, txn, &mut self.append, rows, keys),
            // What was appended must be there before rows go between.
            (false, true) => match self.append.take().map_or(Ok(()), |append| append.finish(txn)) {
                Ok(()) => insert_rows(&self.writer, txn, rows, keys),
                Err(error) => Err(error.into()),
            },
            (false, false) => self.writer.insert(txn, rows, keys),
        };
        let result = result.and_then(|()| self.sort_entries(rows, keys));
        if let Err(error) = result {
            let mut state = CxState::default();
            return Err(self.writer.to_sql(error, rows, &Cx { host, state: &mut state }));
        }
        if keys.get(rows.rows - 1) > self.last_key.as_slice() {
            self.last_key = keys.get(rows.rows - 1).to_vec();
        }
        Ok(())
    }

    /// Writes rows one by one, passing over those whose key an index with IGNORE_DUP_KEY has.
    fn write_each(&mut self, rows: TableRows<'_>, keys: &Keys, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        let database = self.target.table.database;
        for row in 0..rows.rows {
            let columns: Vec<ArrayRef> = rows.columns.iter().map(|column| column.slice(row, 1)).collect();
            let one = TableRows { columns: &columns, rows: 1 };
            let key = Keys::from_parts(1, |_| [keys.get(row), &[]]);
            match self.writer.insert_or_ignore(host.txn(database)?, one, &key) {
                Ok(written) => self.rows_ignored += u64::from(!written),
                Err(error) => {
                    let mut state = CxState::default();
                    return Err(self.writer.to_sql(error, one, &Cx { host, state: &mut state }));
                }
            }
        }
        Ok(())
    }

    /// Hands the entries of the other indexes to their sorts.
    fn sort_entries(&mut self, rows: TableRows<'_>, keys: &Keys) -> Result<(), WriteError> {
        let writer = &self.writer;
        for (at, sort) in self.sorts.iter_mut().enumerate() {
            let own = writer.own_keys(at + 1, rows);
            let (mut entry, mut payload) = (Vec::new(), Vec::new());
            writer.for_each_row(at + 1, rows, |row, bytes| {
                entry.clear();
                entry.extend_from_slice(own.key(row));
                entry.extend_from_slice(keys.get(row));
                pack(bytes, &mut payload);
                Ok(sort.push(&entry, &payload)?)
            })?;
        }
        Ok(())
    }

    /// Fills an empty index from its sorted entries.
    fn append_index(&self, index: usize, sort: ExternalSort, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        let table = &self.target.table;
        let layout = &self.writer.layouts[index];
        let definition = &table.indexes[index];
        let duplicate = {
            let txn = host.txn(table.database)?;
            let appended = (|| {
                let mut sorted = sort.finish()?;
                let mut last_own: Vec<u8> = Vec::new();
                let mut fill = |push: &mut dyn FnMut(&[u8], Row<'_>) -> Result<(), StorageError>| {
                    while let Some((entry, payload)) = sorted.next()? {
                        let own_bytes = entry.len() - row_key_bytes(layout, entry)?;
                        if definition.unique && last_own == entry[..own_bytes] {
                            return Ok(Some(std::mem::take(&mut last_own)));
                        }
                        unpack(payload, |row| push(entry, row))?;
                        last_own.clear();
                        last_own.extend_from_slice(&entry[..own_bytes]);
                    }
                    Ok::<_, StorageError>(None)
                };
                let mut appender = txn.bulk_append(definition.tree)?;
                if appender.last_key().is_none() {
                    let duplicate = fill(&mut |entry, row| appender.push(entry, row))?;
                    appender.finish()?;
                    return Ok(duplicate);
                }
                // Entries of deleted rows are still there as ghosts, and nothing can be appended below them.
                appender.finish()?;
                fill(&mut |entry, row| txn.insert(definition.tree, entry, row))
            })();
            appended.map_err(|error| host.storage_error(table.database, error))?
        };
        match duplicate {
            Some(own) => Err(duplicate_error(table, index, &self.writer.shown_key(index, &own))),
            None => Ok(()),
        }
    }
}

fn row_key_bytes(layout: &thawdb_catalog::TreeLayout, entry: &[u8]) -> Result<usize, StorageError> {
    layout.row_key(entry).map(<[u8]>::len).map_err(|damage| StorageError::Bug(damage.detail))
}

/// All columns of the table for pushed rows.
fn complete(target: &BulkTarget, batch: &Batch, host: &mut dyn StatementHost) -> Result<Vec<ArrayRef>, SqlError> {
    let is_used = |at: &usize| target.keep_identity || target.table.columns[target.targets[*at]].identity.is_none();
    let used: Vec<usize> = (0..target.targets.len()).filter(is_used).collect();
    let targets: Vec<usize> = used.iter().map(|at| target.targets[*at]).collect();
    let types: Vec<SqlType> = used.iter().map(|at| target.types[*at]).collect();
    let mut batch = batch.project(&used);
    let mut state = CxState::default();
    let mut cx = Cx { host, state: &mut state };
    if !target.keep_nulls {
        for (column, expr) in &target.defaults {
            let Some(at) = targets.iter().position(|t| t == column) else { continue };
            let values = &batch.columns[at];
            if let Some(nulls) = values.nulls().filter(|n| n.null_count() > 0)
                && types[at] == expr.sql_type
            {
                let given = arrow_array::BooleanArray::new(nulls.inner().clone(), None);
                let defaults = eval_array(expr, &batch, &mut cx)?;
                batch.columns[at] = zip(&given, values, &defaults).expect("both sides have the column's type");
            }
        }
    }
    InsertSpec {
        table: &target.table,
        targets: std::borrow::Cow::Borrowed(&targets),
        defaults: &target.defaults,
        computed: &target.computed,
    }
    .complete(&batch, &types, &mut cx)
}

/// The order that makes keys rise; `None` if they do already.
fn rising_order(keys: &Keys, rows: usize) -> Option<UInt32Array> {
    if (1..rows).all(|row| keys.get(row - 1) <= keys.get(row)) {
        return None;
    }
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by(|a, b| keys.get(*a as usize).cmp(keys.get(*b as usize)));
    Some(order.into())
}

/// Appends rows to the rows' tree.
fn append_rows(
    writer: &TableWriter,
    txn: &mut thawdb_storage::Txn,
    append: &mut Option<BulkAppend>,
    rows: TableRows<'_>,
    keys: &Keys,
) -> Result<(), WriteError> {
    if append.is_none() {
        let begun = txn.begin_bulk_append(writer.table.indexes[0].tree)?;
        if rows.rows > 0 && begun.last_key().is_some_and(|last| last >= keys.get(0)) {
            // Deleted rows are still there as ghosts, and nothing can be appended below them.
            begun.finish(txn)?;
            return insert_rows(writer, txn, rows, keys);
        }
        *append = Some(begun);
    }
    let append = append.as_mut().expect("begun above");
    writer.for_each_row(0, rows, |row, bytes| match with_row(bytes, |r| append.push(txn, keys.get(row), r)) {
        Err(StorageError::Duplicate { .. }) => Err(WriteError::Duplicate { index: 0, row }),
        other => Ok(other?),
    })
}

/// Inserts rows into the rows' tree only.
fn insert_rows(writer: &TableWriter, txn: &mut thawdb_storage::Txn, rows: TableRows<'_>, keys: &Keys) -> Result<(), WriteError> {
    let tree = writer.table.indexes[0].tree;
    writer.for_each_row(0, rows, |row, bytes| match with_row(bytes, |r| txn.insert(tree, keys.get(row), r)) {
        Err(StorageError::Duplicate { .. }) => Err(WriteError::Duplicate { index: 0, row }),
        other => Ok(other?),
    })
}

/// A row and its large parts as one payload: count of parts, length of each, parts, row.
fn pack(bytes: &RowBuffer, out: &mut Vec<u8>) {
    out.clear();
    out.extend((bytes.large().len() as u16).to_le_bytes());
    bytes.large().iter().for_each(|part| out.extend((part.len() as u32).to_le_bytes()));
    bytes.large().iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(bytes.inline());
}

fn unpack<R>(payload: &[u8], write: impl FnOnce(Row<'_>) -> R) -> R {
    let count = usize::from(u16::from_le_bytes([payload[0], payload[1]]));
    let mut at = 2 + 4 * count;
    let mut large = Vec::with_capacity(count);
    for part in 0..count {
        let length = payload[2 + 4 * part..6 + 4 * part].try_into().expect("`pack` wrote four bytes");
        let length = u32::from_le_bytes(length) as usize;
        large.push(&payload[at..at + length]);
        at += length;
    }
    write(Row { inline: &payload[at..], large: &large })
}
