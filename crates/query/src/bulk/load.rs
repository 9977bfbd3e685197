//! Batches into a table: BULK INSERT, the wire's INSERT BULK and the demo's generator all end here.
//!
//! ```text
//! batch ─► identity, defaults, NULL and length checks ─► keys of the rows
//!   table not locked by the caller ───────────────────► ordinary inserts, as INSERT makes them
//!   keys rise beyond every key there ─► pending ──────► whole leaves appended, 65,536 rows at a time
//!   they do not (from that row on) ───► external sort ► at the end: inserts below the greatest key there, appends above
//!   every other index: entries ───────► external sort ► at the end: the same
//! ```
//! Invariants: 1. After [`BulkLoad::finish`] every row has exactly one entry in every index, as if it had been inserted by
//! INSERT; a test compares the two. 2. Leaves are appended only while the caller keeps all other writers from the table
//! ([`LoadOptions::table_locked`]). 3. The order of the input is checked, never trusted.
//!
//! Memory: the statement's grant, divided among the sorts; pending rows take at most a quarter of it.
//! Failure: 515, 2628, 8115 as INSERT; 2627 and 2601 with the key's values. Whoever set the statement's savepoint rolls
//! the load back. Row locks are taken by storage, and none for appended rows.

use crate::bulk::tree_load::{Entries, LoadError, TreeLoad, key_text};
use crate::context::StatementHost;
use crate::eval::eval_array;
use crate::exec::assignment::fit;
use crate::exec::cx::{Cx, CxState};
use crate::exec::insert::{InsertSpec, write_rows};
use crate::exec::table_writer::{Keys, TableRows, TableWriter, WriteError, duplicate_error, with_row};
use crate::expr::Expr;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_select::zip::zip;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_catalog::sort_row::pack;
use thawdb_storage::sort::{ExternalSort, SortOptions};
use thawdb_types::{Batch, SqlError, SqlType};

/// Rows appended at a time: some hundred leaves, so that one begun leaf less does not matter.
const PENDING_ROWS_MAX: usize = 65_536;

/// How a load goes.
pub struct LoadOptions {
    /// Identity values come with the rows; otherwise given ones are passed over and new ones made.
    pub keep_identity: bool,
    /// NULL stays NULL even where the column has a default.
    pub keep_nulls: bool,
    /// The caller holds a lock on the table that keeps every other writer out.
    pub table_locked: bool,
    /// Default of each column that has one, by position in the table.
    pub defaults: Vec<(usize, Expr)>,
    /// Where sorts put what does not fit in memory: a folder of the instance.
    pub temp_folder: PathBuf,
    /// Told after each batch how many rows there were so far.
    pub progress: Option<Box<dyn Fn(u64)>>,
}

/// Loads every batch that `batches` gives into `table`; their columns are the table's columns `targets`, with its types.
///
/// Returns the number of rows.
///
/// # Errors
/// What `batches` fails with, and see the head of the module.
pub fn bulk_insert(
    table: &Arc<TableDef>,
    batches: &mut dyn FnMut(&mut dyn StatementHost) -> Result<Option<Batch>, SqlError>,
    targets: &[usize],
    options: LoadOptions,
    host: &mut dyn StatementHost,
) -> Result<u64, SqlError> {
    let mut load = BulkLoad::new(table, targets, options, host)?;
    while let Some(batch) = batches(host)? {
        load.push(&batch, host)?;
    }
    load.finish(host)
}

/// A load at work: for callers to whom rows come by themselves.
pub struct BulkLoad {
    table: Arc<TableDef>,
    /// Columns of the batches that are used, and the table's column of each.
    given: Vec<(usize, usize)>,
    options: LoadOptions,
    rows: RowsPart,
    pending: Vec<Pending>,
    pending_rows: usize,
    pending_bytes: usize,
    bytes_max: usize,
    /// Entries of each index but the first.
    entries: Vec<Entries>,
    row_count: u64,
}

/// What becomes of rows.
enum RowsPart {
    /// Each is inserted, with its entries.
    Insert,
    /// They rise: beyond this key, if any.
    Append { greatest: Option<Vec<u8>> },
    /// They do not; `greatest` as the tree has it now.
    Sort { sort: Box<ExternalSort>, greatest: Option<Vec<u8>> },
}

struct Pending {
    columns: Vec<ArrayRef>,
    rows: usize,
    keys: Keys,
}

impl BulkLoad {
    /// A load into `table` of batches whose columns are the table's columns `targets`.
    ///
    /// # Errors
    /// What looking at the table fails with.
    pub fn new(table: &Arc<TableDef>, targets: &[usize], options: LoadOptions, host: &mut dyn StatementHost) -> Result<Self, SqlError> {
        let is_used = |column: &usize| options.keep_identity || table.columns[*column].identity.is_none();
        let given = targets.iter().copied().enumerate().filter(|(_, column)| is_used(column)).collect();
        let mut this = Self {
            table: table.clone(),
            given,
            rows: RowsPart::Insert,
            pending: Vec::new(),
            pending_rows: 0,
            pending_bytes: 0,
            bytes_max: host.memory_grant_bytes() / 4,
            entries: Vec::new(),
            row_count: 0,
            options,
        };
        if this.options.table_locked {
            this.rows = RowsPart::Append { greatest: greatest_key(table, 0, host)? };
            let layouts = TableWriter::new(table).layouts;
            this.entries = layouts.into_iter().skip(1).map(|layout| Entries::new(layout, this.new_sort(host))).collect();
        }
        Ok(this)
    }

    fn new_sort(&self, host: &dyn StatementHost) -> ExternalSort {
        let memory_bytes_max = (host.memory_grant_bytes() - self.bytes_max) / self.table.indexes.len();
        let options = SortOptions { memory_bytes_max, temp_folder: self.options.temp_folder.clone(), stable: false };
        ExternalSort::new(host.env().clone(), options)
    }

    /// Rows taken so far.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Takes a batch.
    ///
    /// # Errors
    /// See the head of the module.
    pub fn push(&mut self, batch: &Batch, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        host.check_cancelled()?;
        if batch.rows == 0 {
            return Ok(());
        }
        let table = self.table.clone();
        let mut state = CxState::default();
        let columns = self.complete(batch, &mut Cx { host: &mut *host, state: &mut state })?;
        let rows = TableRows { columns: &columns, rows: batch.rows };
        let writer = TableWriter::new(&table);
        if matches!(self.rows, RowsPart::Insert) {
            let mut state = CxState::default();
            write_rows(&writer, rows, &mut Cx { host: &mut *host, state: &mut state })?;
        } else {
            self.take(&writer, rows, host)?;
        }
        self.row_count += batch.rows as u64;
        if let Some(progress) = &self.options.progress {
            progress(self.row_count);
        }
        Ok(())
    }

    /// Every column of the table for the rows of a batch.
    fn complete(&self, batch: &Batch, cx: &mut Cx<'_, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        let table = &*self.table;
        let targets: Vec<usize> = self.given.iter().map(|(_, column)| *column).collect();
        let types: Vec<SqlType> = targets.iter().map(|column| table.columns[*column].sql_type).collect();
        let mut columns: Vec<ArrayRef> = self.given.iter().map(|(at, _)| batch.columns[*at].clone()).collect();
        // Expressions of defaults are cloned so that they outlive `cx` and not this load.
        let mut state = CxState::default();
        let cx = &mut Cx { host: &mut *cx.host, state: &mut state };
        if !self.options.keep_nulls {
            for (column, expr) in &self.options.defaults {
                let Some(at) = targets.iter().position(|target| target == column) else { continue };
                let Some(nulls) = columns[at].nulls().filter(|nulls| nulls.null_count() > 0) else { continue };
                let given = BooleanArray::new(nulls.inner().clone(), None);
                let values = eval_array(expr, &Batch::new(Vec::new(), batch.rows), cx)?;
                let values = fit(table, &table.columns[*column], &values, &expr.sql_type, cx)?;
                columns[at] = zip(&given, &columns[at], &values).expect("a default has its column's type and the batch's rows");
            }
        }
        let spec = InsertSpec { table, targets: &targets, defaults: &self.options.defaults };
        spec.complete(&Batch::new(columns, batch.rows), &types, cx)
    }

    /// Takes completed rows in append or sort mode.
    fn take(&mut self, writer: &TableWriter<'_>, rows: TableRows<'_>, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        let (database, id) = (self.table.database, self.table.id);
        let numbers = if writer.has_row_numbers() { host.next_row_number(database, id, rows.rows as u64)? } else { 0 };
        let keys = writer.row_keys(rows, numbers);
        for (at, entries) in self.entries.iter_mut().enumerate() {
            let pushed = entries.push(writer, at + 1, rows, &keys);
            pushed.map_err(|error| write_error(writer, error, rows, host))?;
        }
        if let RowsPart::Append { greatest } = &self.rows {
            if self.rises(greatest.as_deref(), &keys, rows, writer, host)? {
                self.pending_bytes += rows.columns.iter().map(|c| c.get_buffer_memory_size()).sum::<usize>();
                self.pending_rows += rows.rows;
                self.pending.push(Pending { columns: rows.columns.to_vec(), rows: rows.rows, keys });
                let is_full = self.pending_rows >= PENDING_ROWS_MAX || self.pending_bytes >= self.bytes_max;
                return if is_full { self.append_pending(writer, host) } else { Ok(()) };
            }
            self.start_sorting(writer, host)?;
        }
        self.sort_rows(writer, rows, &keys).map_err(|error| write_error(writer, error, rows, host))
    }

    /// Whether the keys rise beyond all before them. Fails if two are equal.
    fn rises(
        &self,
        greatest: Option<&[u8]>,
        keys: &Keys,
        rows: TableRows<'_>,
        writer: &TableWriter<'_>,
        host: &mut dyn StatementHost,
    ) -> Result<bool, SqlError> {
        let mut before = self.pending.last().map(|pending| pending.keys.get(pending.rows - 1)).or(greatest);
        for row in 0..rows.rows {
            let key = keys.get(row);
            match before.map_or(std::cmp::Ordering::Less, |before| before.cmp(key)) {
                std::cmp::Ordering::Less => before = Some(key),
                std::cmp::Ordering::Equal => return Err(write_error(writer, WriteError::Duplicate { index: 0, row }, rows, host)),
                std::cmp::Ordering::Greater => return Ok(false),
            }
        }
        Ok(true)
    }

    fn append_pending(&mut self, writer: &TableWriter<'_>, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        let pending = std::mem::take(&mut self.pending);
        (self.pending_rows, self.pending_bytes) = (0, 0);
        let Some(last) = pending.last() else { return Ok(()) };
        if let RowsPart::Append { greatest } = &mut self.rows {
            *greatest = Some(last.keys.get(last.rows - 1).to_vec());
        }
        let appended = append(writer, &pending, host);
        appended.map_err(|error| write_error(writer, error, TableRows { columns: &last.columns, rows: last.rows }, host))
    }

    /// From here on rows are sorted: pending ones too if none was appended yet, so that all of them can be appended.
    fn start_sorting(&mut self, writer: &TableWriter<'_>, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        let RowsPart::Append { greatest } = &mut self.rows else { return Ok(()) };
        let greatest = greatest.take();
        self.rows = RowsPart::Sort { sort: Box::new(self.new_sort(host)), greatest };
        self.pending_bytes = 0;
        self.pending_rows = 0;
        for pending in std::mem::take(&mut self.pending) {
            let rows = TableRows { columns: &pending.columns, rows: pending.rows };
            self.sort_rows(writer, rows, &pending.keys).map_err(|error| write_error(writer, error, rows, host))?;
        }
        Ok(())
    }

    fn sort_rows(&mut self, writer: &TableWriter<'_>, rows: TableRows<'_>, keys: &Keys) -> Result<(), WriteError> {
        let RowsPart::Sort { sort, .. } = &mut self.rows else { unreachable!("rows are sorted only once sorting has begun") };
        let mut packed = Vec::new();
        writer.for_each_row(0, rows, |row, bytes| {
            pack(bytes, &mut packed);
            Ok(sort.push(keys.get(row), &packed)?)
        })
    }

    /// Writes what is still in memory and in sorts; the number of rows.
    ///
    /// # Errors
    /// See the head of the module.
    pub fn finish(mut self, host: &mut dyn StatementHost) -> Result<u64, SqlError> {
        let table = self.table.clone();
        let writer = TableWriter::new(&table);
        self.append_pending(&writer, host)?;
        if let RowsPart::Sort { sort, greatest } = self.rows {
            let load = TreeLoad::of_rows(table.indexes[0].tree, greatest);
            let loaded = sort.finish().map_err(LoadError::from).and_then(|sorted| load.run(sorted, table.database, host));
            loaded.map_err(|error| load_error(&table, 0, error, host))?;
        }
        for (at, entries) in self.entries.into_iter().enumerate() {
            let index = at + 1;
            let greatest = greatest_key(&table, index, host)?;
            let loaded = entries.load(&table.indexes[index], greatest, table.database, host);
            loaded.map_err(|error| load_error(&table, index, error, host))?;
        }
        Ok(self.row_count)
    }
}

/// Appends rows to the rows' tree.
fn append(writer: &TableWriter<'_>, pending: &[Pending], host: &mut dyn StatementHost) -> Result<(), WriteError> {
    let table = writer.table;
    let txn = host.txn(table.database)?;
    let mut appender = txn.bulk_append(table.indexes[0].tree)?;
    for batch in pending {
        writer.for_each_row(0, TableRows { columns: &batch.columns, rows: batch.rows }, |row, bytes| {
            Ok(with_row(bytes, |r| appender.push(batch.keys.get(row), r))?)
        })?;
    }
    Ok(appender.finish()?)
}

/// The greatest key that a tree has, this transaction's included.
fn greatest_key(table: &TableDef, index: usize, host: &mut dyn StatementHost) -> Result<Option<Vec<u8>>, SqlError> {
    let txn = host.txn(table.database)?;
    // Not the statement's view: the rows of batches committed before are wanted too.
    let view = txn.database().clone().read_view(Some(txn));
    crate::bulk::tree_load::greatest(&view, table.indexes[index].tree).map_err(|error| host.storage_error(table.database, error))
}

fn write_error(writer: &TableWriter<'_>, error: WriteError, rows: TableRows<'_>, host: &mut dyn StatementHost) -> SqlError {
    let mut state = CxState::default();
    writer.to_sql(error, rows, &Cx { host, state: &mut state })
}

fn load_error(table: &TableDef, index: usize, error: LoadError, host: &mut dyn StatementHost) -> SqlError {
    match error {
        LoadError::Storage(error) => host.storage_error(table.database, error),
        LoadError::Sql(error) => error,
        LoadError::Duplicate { key, row } => match key_text(table, index, &key, &row, host) {
            Ok(values) => duplicate_error(table, index, &values),
            Err(error) => error,
        },
    }
}
