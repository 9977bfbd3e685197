//! Building an index of a table whose writers are kept out: CREATE INDEX, a new key constraint, a rebuild.
//!
//! ```text
//! Scan    rows of the source, leaf by leaf ─► own key | row key, INCLUDE columns ─► external sort (runs spill)
//! Sort    what is in memory is ordered, the merge of runs begun
//! Append  sorted entries ─► whole leaves of the new tree; in a unique index neighbours must differ
//! Done
//! ```
//! One [`IndexBuild::step`] is a bounded piece of one phase: so many rows that its overhead vanishes and so few that a
//! caller that asks for cancellation between steps answers within a tenth of a second.
//!
//! Invariants: 1. Every row of the view that passes the index's filter has exactly one entry in the new tree, and entries are byte for byte those that
//! DML writes: both ask `catalog::TreeLayout` and the codecs of `types`. 2. Memory for entries is bounded by
//! [`IndexBuildOptions::memory_bytes_max`]. 3. Nothing is written before the whole table has been read.
//!
//! A clustered index (position 0 of the target) takes whole rows instead of entries; where it is not unique they are
//! numbered from 1 in the order of the source's key, and the caller goes on numbering behind [`BuildProgress::rows_scanned`].
//! The other indexes then have to be built anew: their entries end in the row's key.
//!
//! With several threads ([`IndexBuild::use_threads`]) each reads a part of the table and makes runs of its own, and while
//! one batch of entries becomes leaves the next is merged. A step is what all of them do until the last of them has done its
//! piece, so nothing goes on between steps.
//!
//! Failure: 1505 for a key that two rows share; storage's errors. The transaction that made the tree rolls everything
//! back, and the sort removes its file. Locks: none taken here; the caller holds the table's.
//!
//! A build beside the table's use, in chunks that outlive a failure, is [`crate::online`]'s.
//! Further reading: Mohan, Narang, "Algorithms for Creating Indexes for Very Large Tables Without Quiescing Updates",
//! SIGMOD 1992.

use crate::entries::EntryMaker;
use crate::rows::{DECODE_ROWS, RowBatch};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_catalog::sort_row::unpack;
use thawdb_catalog::{TableDef, TreeLayout, key_text};
use thawdb_device::{BackgroundWork, Env};
use thawdb_storage::page_reads::{count_for_me, page_reads};
use thawdb_storage::sort::{ExternalSort, SortOptions, SortStatistics, SortedBatch, SortedRows};
use thawdb_storage::{BulkAppend, KeyRange, PageId, ReadView, Row, Scan, ScanDirection, StorageError, TreeId, Txn};
use thawdb_types::SqlError;
use thawdb_types::error::message;
use thawdb_types::key::Damage;
use thawdb_types::row::RowBuffer;

/// Rows read in one step.
const SCAN_ROWS: u64 = 100_000;
/// Rows appended in one step: a fraction of a second.
const APPEND_ROWS: usize = 262_144;

/// Why a build ended.
#[derive(Debug)]
pub enum BuildError {
    /// Storage failed.
    Storage(StorageError),
    /// What the client is told.
    Sql(SqlError),
}

impl From<StorageError> for BuildError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<SqlError> for BuildError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<Damage> for BuildError {
    fn from(damage: Damage) -> Self {
        Self::Storage(StorageError::Damage { page: PageId::NONE, offset: 0, detail: damage.detail })
    }
}

/// What a build may use.
#[derive(Debug, Clone)]
pub struct IndexBuildOptions {
    /// Most bytes of entries in memory.
    pub memory_bytes_max: usize,
    /// Where runs go.
    pub temp_folder: PathBuf,
    /// Rows of the table as far as is known, for [`BuildProgress::percent`].
    pub rows_expected: Option<u64>,
}

/// Where a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildPhase {
    /// The table is read.
    Scan,
    /// What was read is ordered.
    Sort,
    /// Leaves are written.
    Append,
    /// The tree is complete.
    Done,
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BuildProgress {
    /// The phase of the next step.
    pub phase: BuildPhase,
    /// Rows read.
    pub rows_scanned: u64,
    /// Entries written.
    pub rows_appended: u64,
    /// Of the whole, reading and writing being half each; 0 while nothing is known of the rows.
    pub percent: f64,
}

enum State {
    Scan(Vec<Part>),
    Sort(Vec<Part>),
    Append { sorted: SortedRows, ready: SortedBatch, appender: Option<BulkAppend> },
    Done,
}

/// A part of the table that one thread reads.
struct Part {
    scan: Scan,
    sort: ExternalSort,
    entries: EntryMaker,
    batch: RowBatch,
    rows: u64,
    done: bool,
}

/// A build at work.
pub struct IndexBuild {
    source: Source,
    table: Arc<TableDef>,
    index: usize,
    layout: TreeLayout,
    tree: TreeId,
    rows_expected: Option<u64>,
    rows_scanned: u64,
    rows_appended: u64,
    state: State,
    statistics: SortStatistics,
    /// Of the entry before, what must be unique.
    last: Vec<u8>,
    threads: usize,
    env: Env,
    options: IndexBuildOptions,
    source_table: TableDef,
}

/// Where rows come from.
struct Source {
    tree: TreeId,
    view: ReadView,
}

impl IndexBuild {
    /// A build of index `index` of `table`, whose tree is made and empty, from the rows of `source_table` (the same table with
    /// the same columns, its rows where they are now) that `view` sees.
    ///
    /// # Errors
    /// What storage fails with.
    pub fn new(
        env: &Env,
        source_table: &TableDef,
        table: &Arc<TableDef>,
        index: usize,
        view: ReadView,
        options: IndexBuildOptions,
    ) -> Result<Self, BuildError> {
        assert_eq!(source_table.columns.len(), table.columns.len(), "an index build changes no columns");
        let source = Source { tree: source_table.rows().tree, view };
        let mut build = Self {
            source,
            table: table.clone(),
            index,
            layout: TreeLayout::new(table, index),
            tree: table.indexes[index].tree,
            rows_expected: options.rows_expected,
            rows_scanned: 0,
            rows_appended: 0,
            state: State::Done,
            statistics: SortStatistics::default(),
            last: Vec::new(),
            threads: 1,
            env: env.clone(),
            options,
            source_table: source_table.clone(),
        };
        build.state = State::Scan(build.parts(1)?);
        Ok(build)
    }

    /// Has so many threads do the work, the caller's among them; before the first step. Fewer do where the table is too small
    /// to be divided, or the environment has no threads.
    ///
    /// # Errors
    /// Storage's.
    pub fn use_threads(&mut self, threads: usize) -> Result<(), BuildError> {
        assert!(self.rows_scanned == 0, "threads are counted before the work begins");
        // Rows that are numbered anew are numbered in one sequence.
        if threads < 2 || self.index == 0 || self.env.background != BackgroundWork::Threads {
            return Ok(());
        }
        self.threads = threads;
        self.state = State::Scan(self.parts(threads)?);
        Ok(())
    }

    /// Divides the table.
    fn parts(&self, count: usize) -> Result<Vec<Part>, BuildError> {
        let keys = if count > 1 { self.source.view.dividing_keys(self.source.tree, count)? } else { Vec::new() };
        let mut starts = vec![Bound::Unbounded];
        starts.extend(keys.iter().cloned().map(Bound::Included));
        let mut ends: Vec<Bound<Vec<u8>>> = keys.into_iter().map(Bound::Excluded).collect();
        ends.push(Bound::Unbounded);
        let memory_bytes_max = self.options.memory_bytes_max / starts.len();
        let part = |(start, end)| {
            let scan = self.source.view.scan(self.source.tree, KeyRange { start, end }, ScanDirection::Forward)?;
            let entries = EntryMaker::new(&self.source_table, &self.table, self.index);
            let (temp_folder, ordered_bytes) = (self.options.temp_folder.clone(), entries.ordered_bytes());
            let options = SortOptions { memory_bytes_max, temp_folder, stable: false, ordered_bytes };
            let account = self.source.view.database().memory().clone();
            let sort = ExternalSort::new(self.env.clone(), options).accounted(Some(account));
            Ok(Part { scan, sort, entries, batch: RowBatch::default(), rows: 0, done: false })
        };
        starts.into_iter().zip(ends).map(part).collect()
    }

    /// How far it is.
    pub fn progress(&self) -> BuildProgress {
        let phase = match self.state {
            State::Scan(_) => BuildPhase::Scan,
            State::Sort(_) => BuildPhase::Sort,
            State::Append { .. } => BuildPhase::Append,
            State::Done => BuildPhase::Done,
        };
        let whole = match phase {
            BuildPhase::Scan => self.rows_expected.unwrap_or(0).max(self.rows_scanned),
            _ => self.rows_scanned,
        };
        let percent = match (phase, self.rows_expected) {
            (BuildPhase::Done, _) => 100.0,
            (BuildPhase::Scan, None) => 0.0,
            _ => (self.rows_scanned + self.rows_appended) as f64 * 50.0 / whole.max(1) as f64,
        };
        BuildProgress { phase, rows_scanned: self.rows_scanned, rows_appended: self.rows_appended, percent }
    }

    /// What the sort did.
    pub fn sort_statistics(&self) -> SortStatistics {
        self.statistics
    }

    /// Does the next piece of work within `txn`, which made the tree; false when all is done.
    ///
    /// # Errors
    /// See the head of the module. After an error the build cannot go on.
    pub fn step(&mut self, txn: &mut Txn) -> Result<bool, BuildError> {
        self.state = match std::mem::replace(&mut self.state, State::Done) {
            State::Scan(mut parts) => {
                if self.scan(&mut parts)? {
                    State::Scan(parts)
                } else {
                    State::Sort(parts)
                }
            }
            State::Sort(parts) => {
                let sorted = ExternalSort::finish_together(parts.into_iter().map(|part| part.sort).collect())?;
                State::Append { sorted, ready: SortedBatch::default(), appender: None }
            }
            State::Append { mut sorted, mut ready, appender } => {
                let mut appender = match appender {
                    Some(appender) => appender,
                    None => {
                        let mut appender = txn.begin_bulk_append(self.tree)?;
                        appender.set_fill_percent(self.table.indexes[self.index].options.fill_factor);
                        appender
                    }
                };
                if ready.is_empty() {
                    ready = sorted.take_batch(APPEND_ROWS)?;
                }
                let next = self.append(txn, &mut ready, &mut sorted, &mut appender)?;
                self.statistics = sorted.statistics();
                if !next.is_empty() {
                    State::Append { sorted, ready: next, appender: Some(appender) }
                } else {
                    appender.finish(txn)?;
                    State::Done
                }
            }
            State::Done => State::Done,
        };
        Ok(!matches!(self.state, State::Done))
    }

    /// Does all of it; `between` is called after every step and may end the build.
    ///
    /// # Errors
    /// As [`Self::step`], and what `between` fails with.
    pub fn run(&mut self, txn: &mut Txn, between: &mut dyn FnMut(&BuildProgress) -> Result<(), SqlError>) -> Result<(), BuildError> {
        while self.step(txn)? {
            between(&self.progress())?;
        }
        between(&self.progress())?;
        Ok(())
    }

    /// Reads rows; false at the end.
    fn scan(&mut self, parts: &mut [Part]) -> Result<bool, BuildError> {
        // Threads have to start and to wait for each other: it is to be little beside their work.
        let rows = if parts.len() > 1 { SCAN_ROWS * 4 } else { SCAN_ROWS };
        let (table, view) = (&self.table, &self.source.view);
        let outcome = std::thread::scope(|scope| {
            let (first, others) = parts.split_first_mut().expect("a table has a part at least");
            let help = |part: &mut Part| (part.read(table, view, rows), page_reads());
            let helpers: Vec<_> = others.iter_mut().map(|part| scope.spawn(move || help(part))).collect();
            let own = first.read(table, view, rows);
            let theirs = helpers.into_iter().map(|helper| {
                let (outcome, reads) = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                count_for_me(&reads);
                outcome
            });
            std::iter::once(own).chain(theirs).collect::<Vec<_>>().into_iter().collect::<Result<(), _>>()
        });
        self.rows_scanned = parts.iter().map(|part| part.rows).sum();
        outcome.map(|()| parts.iter().any(|part| !part.done))
    }

    /// Writes the entries that are ready, and merges the next, beside each other if there are threads for both; these are
    /// none at the end.
    fn append(
        &mut self,
        txn: &mut Txn,
        ready: &mut SortedBatch,
        sorted: &mut SortedRows,
        appender: &mut BulkAppend,
    ) -> Result<SortedBatch, BuildError> {
        if self.threads == 1 {
            self.write(txn, ready, appender)?;
            return Ok(sorted.take_batch(APPEND_ROWS)?);
        }
        std::thread::scope(|scope| {
            let ahead = scope.spawn(|| sorted.take_batch(APPEND_ROWS));
            let written = self.write(txn, ready, appender);
            let next = ahead.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            written.and(Ok(next?))
        })
    }

    fn write(&mut self, txn: &mut Txn, ready: &mut SortedBatch, appender: &mut BulkAppend) -> Result<(), BuildError> {
        let unique = self.table.indexes[self.index].unique;
        let mut empty = RowBuffer::default();
        if self.layout.row_columns.is_empty() {
            self.layout.row.encode(&[], &mut empty)?;
        }
        while let Some((key, payload)) = ready.next() {
            if unique {
                let part = own_part(&self.layout, self.index, key)?;
                if self.rows_appended > 0 && part == self.last.as_slice() {
                    return Err(duplicate(&self.source, &self.table, self.index, key, payload)?);
                }
                self.last.clear();
                self.last.extend_from_slice(part);
            }
            if payload.is_empty() {
                appender.push(txn, key, Row::inline(empty.inline()))?;
            } else {
                let (inline, large) = unpack(payload)?;
                appender.push(txn, key, Row { inline, large: &large })?;
            }
            self.rows_appended += 1;
        }
        Ok(())
    }
}

impl Part {
    /// Takes the entries of about `rows` more rows.
    fn read(&mut self, table: &Arc<TableDef>, view: &ReadView, rows: u64) -> Result<(), BuildError> {
        let until = self.rows + rows;
        while !self.done && self.rows < until {
            let found = self.batch.fill(&mut self.scan, DECODE_ROWS)?;
            self.done = found == 0;
            let (blocks, sort) = (self.batch.blocks(), &mut self.sort);
            self.entries.each(table, blocks, view, self.rows, &mut |key, payload| Ok(sort.push(key, payload)?))?;
            self.rows += found as u64;
        }
        Ok(())
    }
}

/// The index's own key in a whole one.
pub(crate) fn own_part<'k>(layout: &TreeLayout, index: usize, key: &'k [u8]) -> Result<&'k [u8], Damage> {
    if index == 0 { Ok(key) } else { Ok(&key[..key.len() - layout.row_key(key)?.len()]) }
}

/// 1505 for an entry whose key the entry before has.
fn duplicate(source: &Source, table: &TableDef, index: usize, key: &[u8], payload: &[u8]) -> Result<BuildError, BuildError> {
    let values = if index == 0 {
        let inline = if payload.is_empty() { &[] } else { unpack(payload)?.0 };
        key_text(table, index, key, inline)
    } else {
        let layout = TreeLayout::new(table, index);
        let row_key = layout.row_key(key)?;
        let row = source.view.get(source.tree, row_key)?;
        key_text(table, index, row_key, row.as_ref().map_or(&[], |block| block.value(0)))
    };
    let object = format!("{}.{}", table.schema_name, table.name);
    let name = table.indexes[index].name.clone().unwrap_or_default();
    Ok(message(1505, &[&object, &name, &values]).into())
}

#[cfg(test)]
pub(crate) mod tests;
