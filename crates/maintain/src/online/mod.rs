//! Building an index beside the table's use, in chunks that outlive any failure: CREATE INDEX WITH (ONLINE, RESUMABLE).
//!
//! ```text
//! scan    <= 100,000 rows of the table, by key ─► entries, sorted ─► run n at the end of the runs tree ┐ one
//! merge   runs, from behind the last entry ─► <= 100,000 entries ─► whole leaves at the target's end   ├ transaction
//! catch   the side tree's words on entries ─► applied to the target, deletions first                   ┘ a chunk
//! publish by the caller, with the table to itself: the last words, the definition, the job's end
//! ```
//! Runs lie in one tree of the user's database ([`runs`]). Its leaves are forced to the device and not logged, so sorting
//! costs no log; leaves of the target are logged whole. As far as memory goes runs are kept there too, and their tree is
//! read only by who takes the operation up again. Every chunk's transaction also writes the job's
//! record, so that what is there and what the record says never differ; between chunks nothing is open, and nothing pins
//! the log.
//!
//! While one chunk is on its way to the device the next is read and put in order, and its commit is made durable by the
//! flush of the chunk after it: nobody waits for a disk that has something to do meanwhile.
//!
//! ```text
//! step n     read chunk n │ land chunk n-1: hung, recorded, committed │ write chunk n to its tree, send it on its way
//! ```
//!
//! Why no snapshot is needed: writers that knew of the build leave the last word on every entry they touch in the side
//! tree, and the target gets those words last. An entry that nobody touched since the build was announced reads the same
//! at any moment. So each chunk scans what is committed as it goes.
//!
//! Invariants: 1. at most [`OnlineOptions::redone_rows`] rows are done twice after a failure: a chunk that is being read, one
//! on its way and one whose commit is not durable, each a third of it (`begin` cuts off what unfinished chunks left). 2. Resuming costs one descent a run and the chunks' remains, whatever was done before.
//! 3. Memory is [`OnlineOptions::memory_bytes_max`], two chunks' rows of [`CHUNK_BYTES`] each at most, and a leaf a run. 4. After [`OnlineBuild::catch_up_all`] under the caller's lock the
//! target has exactly the table's entries.
//!
//! A chunk of the merge is no longer than half of the free log takes; one that the log has no room for all the same is tried
//! at half its size, down to [`CHUNK_ROWS_MIN`], before `LogFull` goes up.
//!
//! Failure: storage's errors, and 1505 for a key that two rows share; the chunk is rolled back, and a new
//! [`OnlineBuild`] goes on. Locks: of a chunk's transaction, the trees of the build alone, and side entries as they are
//! applied. Not here: partial merges; more than [`RUNS_MAX`] runs are refused (8632).
//!
//! Further reading: Mohan, Narang, "Algorithms for Creating Indexes for Very Large Tables Without Quiescing Updates",
//! SIGMOD 1992; Graefe, "Sorting and Indexing with Partitioned B-Trees", CIDR 2003, for runs as parts of one tree.

mod catch_up;
mod merge;
mod runs;
mod scan;

#[cfg(test)]
mod tests;

use crate::entries::EntryMaker;
use crate::index_build::{BuildError, own_part};
use crate::rows::RowBatch;
use runs::{Reader, RunCache};
use std::sync::Arc;
use std::time::Duration;
use thawdb_catalog::store::put_job;
use thawdb_catalog::{CatalogError, IndexJob, JobProgress, TableDef, key_text};
use thawdb_observe::cancel::CancelToken;
use thawdb_storage::locks::Party;
use thawdb_storage::sort::{RunBlock, RunMerge};
use thawdb_storage::{BulkAppend, Database, Scan, StorageError, TreeId, Txn};
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// Rows that a failure may cost at most.
pub const REDONE_ROWS: usize = 100_000;
/// Chunks that are under way at once.
const CHUNKS_AT_ONCE: usize = 3;
/// A chunk of wide rows ends when it has so many bytes.
const CHUNK_BYTES: usize = 16 << 20;
/// A chunk is not cut smaller: an extent's worth of rows.
const CHUNK_ROWS_MIN: usize = 2_000;
/// Runs merged at once, a leaf in memory for each.
const RUNS_MAX: u32 = 32_768;
/// Words of the side tree applied in one transaction.
const WORDS: usize = 10_000;

/// Memory for runs if nothing else is said.
const MEMORY_BYTES: usize = 64 << 20;

/// How a build goes about it.
#[derive(Debug, Clone)]
pub struct OnlineOptions {
    /// Rows that a failure may cost, at most [`REDONE_ROWS`].
    pub redone_rows: usize,
    /// Whose waits the chunks' locks belong to.
    pub party: Option<Party>,
    /// Longest wait for a lock; `None` is for ever.
    pub lock_timeout: Option<Duration>,
    /// What ends such a wait.
    pub cancel: Option<CancelToken>,
    /// Memory for sorted runs, which then need not be read back from their tree.
    pub memory_bytes_max: usize,
}

impl Default for OnlineOptions {
    fn default() -> Self {
        Self { redone_rows: REDONE_ROWS, party: None, lock_timeout: None, cancel: None, memory_bytes_max: MEMORY_BYTES }
    }
}

/// What a step left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More chunks.
    More,
    /// Few words are left in the side tree: it can be published.
    Ready,
}

/// A build at work.
pub struct OnlineBuild {
    database: Arc<Database>,
    /// The table with the index to be as its last.
    table: Arc<TableDef>,
    rows_tree: thawdb_storage::TreeId,
    /// As it is recorded.
    job: IndexJob,
    options: OnlineOptions,
    /// Rows of a chunk, and how many they may be.
    chunk_rows: usize,
    chunk_rows_max: usize,
    entries: EntryMaker,
    /// How far has been read.
    ahead: JobProgress,
    /// To the tree of the phase, from chunk to chunk. It goes before the transactions.
    append: Option<BulkAppend>,
    flight: Option<Flight>,
    batch: RowBatch,
    /// The scan of the table between chunks.
    open_scan: Option<Scan>,
    cache: RunCache,
    merge: Option<RunMerge<Reader>>,
    /// Bytes and rows of the last chunk merged.
    merged_bytes: (usize, usize),
    rows_read: u64,
}

/// What was read, in order, and where the operation is once it is written.
struct Chunk {
    entries: Entries,
    progress: JobProgress,
}

enum Entries {
    /// The end was met at once.
    Nothing,
    /// A run of this number.
    Run(u32, Vec<RunBlock>),
    /// The target's next entries, gathered in the merge.
    Merged,
}

/// A chunk on its way to the device.
struct Flight {
    txn: Txn,
    progress: JobProgress,
}

impl From<CatalogError> for BuildError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Storage(error) => Self::Storage(error),
            CatalogError::Damage(detail) => Self::Storage(StorageError::Bug(detail)),
        }
    }
}

impl OnlineBuild {
    /// Takes up `job` where it is: what an unfinished chunk left behind is cut off.
    ///
    /// # Errors
    /// Storage's.
    pub fn begin(database: &Arc<Database>, table: &TableDef, job: &IndexJob, options: OnlineOptions) -> Result<Self, BuildError> {
        let mut shadow = table.clone();
        shadow.building = None;
        shadow.indexes.push(job.index.clone());
        let index = shadow.indexes.len() - 1;
        let progress = &job.progress;
        let mut txn = begin_txn(database, &options);
        // Runs from this number on, and entries above this key, are of chunks that did not commit.
        txn.cut_off_above(job.runs, Some(&progress.run_count.to_be_bytes()))?;
        if !progress.merged {
            txn.cut_off_above(job.index.tree, progress.last_entry.as_deref())?;
        }
        txn.commit()?;
        let chunk_rows = (options.redone_rows.min(REDONE_ROWS) / CHUNKS_AT_ONCE).max(1);
        Ok(Self {
            database: database.clone(),
            entries: EntryMaker::new(table, &shadow, index),
            rows_tree: table.rows().tree,
            table: Arc::new(shadow),
            job: job.clone(),
            chunk_rows,
            chunk_rows_max: chunk_rows,
            cache: RunCache::new(options.memory_bytes_max),
            options,
            ahead: job.progress.clone(),
            append: None,
            flight: None,
            batch: RowBatch::default(),
            open_scan: None,
            merge: None,
            merged_bytes: (0, 0),
            rows_read: 0,
        })
    }

    /// How far it is: what is committed.
    pub fn progress(&self) -> &JobProgress {
        &self.job.progress
    }

    /// The job as it is now.
    pub fn job(&self) -> &IndexJob {
        &self.job
    }

    /// Share of the work that is done, 0 to 100.
    pub fn percent(&self) -> f64 {
        self.job.percent(&self.job.progress)
    }

    /// Rows and entries read so far, whatever became of them.
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// Reads and sends one chunk, and commits the one before. `worked_ms` is what the operation's clock shows, to be
    /// written down with it.
    ///
    /// # Errors
    /// See the head of the module. What did not commit is undone then; the build can be begun again from [`Self::job`].
    pub fn step(&mut self, worked_ms: u64) -> Result<Step, BuildError> {
        self.ahead.worked_ms = worked_ms;
        loop {
            let Err(error) = self.next_chunk() else { break };
            // What has been written on its own counts, if it can.
            let _ = self.land();
            self.go_back();
            let is_full = matches!(error, BuildError::Storage(StorageError::LogFull { .. }));
            if !is_full || self.chunk_rows <= CHUNK_ROWS_MIN {
                return Err(error);
            }
            self.chunk_rows = (self.chunk_rows / 2).max(CHUNK_ROWS_MIN);
        }
        if !(self.ahead.merged && self.flight.is_none()) {
            return Ok(Step::More);
        }
        Ok(if self.catch_up_some()? { Step::More } else { Step::Ready })
    }

    /// Waits for what is on its way and makes everything so far durable.
    ///
    /// # Errors
    /// Storage's; what did not commit is undone.
    pub fn settle(&mut self) -> Result<(), BuildError> {
        let landed = self.land();
        if landed.is_err() {
            self.go_back();
        }
        let store = self.database.store();
        if let Some(log) = store.log() {
            store.flush_log(log.end())?;
        }
        landed
    }

    fn next_chunk(&mut self) -> Result<(), BuildError> {
        let chunk = match (self.ahead.merging, self.ahead.merged) {
            (false, _) => Some(self.read_rows()?),
            (true, false) => {
                if self.merge.is_none() {
                    // It looks for the runs in their tree; the append goes to another one.
                    self.land()?;
                    self.append = None;
                }
                Some(self.read_runs()?)
            }
            (true, true) => None,
        };
        self.land()?;
        match chunk {
            Some(chunk) => self.send(chunk),
            None => {
                self.append = None;
                Ok(())
            }
        }
    }

    /// Begins again behind what is committed.
    fn go_back(&mut self) {
        self.append = None;
        self.flight = None;
        self.open_scan = None;
        self.cache.forget_from(self.job.progress.run_count);
        // What was read from the runs is not in the target.
        self.merge = None;
        self.ahead = JobProgress { worked_ms: self.ahead.worked_ms, ..self.job.progress.clone() };
    }

    /// Writes a chunk to its tree and sends it on its way.
    fn send(&mut self, chunk: Chunk) -> Result<(), BuildError> {
        let mut txn = self.begin_chunk();
        // The flush of the next chunk makes the commit durable; `settle` does for the last.
        txn.set_delayed_durability(true);
        let mut progress = chunk.progress;
        match chunk.entries {
            Entries::Nothing => {}
            Entries::Run(run, blocks) => {
                let mut append = self.append_in(&mut txn, self.job.runs)?;
                append.force_pages();
                scan::append_run(&mut append, &mut txn, run, &blocks)?;
                self.append = Some(append);
                self.cache.keep(run, blocks);
            }
            Entries::Merged => {
                let mut append = self.append_in(&mut txn, self.job.index.tree)?;
                append.set_fill_percent(self.job.fill_factor);
                self.append_entries(&mut append, &mut txn)?;
                self.append = Some(append);
                progress = self.ahead.clone();
            }
        }
        self.flight = Some(Flight { txn, progress });
        Ok(())
    }

    /// The append to the phase's tree, which goes on within `txn`.
    fn append_in(&mut self, txn: &mut Txn, tree: TreeId) -> Result<BulkAppend, StorageError> {
        match self.append.take() {
            Some(mut append) => append.go_on_in(txn).map(|()| append),
            None => txn.begin_private_append(tree),
        }
    }

    /// Waits for the chunk that is on its way, and commits it with the job's record.
    fn land(&mut self) -> Result<(), BuildError> {
        let Some(Flight { mut txn, progress }) = self.flight.take() else { return Ok(()) };
        if let Some(append) = &mut self.append {
            append.land_all(&mut txn)?;
        }
        self.commit(txn, progress)
    }

    fn begin_chunk(&self) -> Txn {
        begin_txn(&self.database, &self.options)
    }

    /// Commits a transaction with the job's record.
    fn commit(&mut self, mut txn: Txn, progress: JobProgress) -> Result<(), BuildError> {
        let before = std::mem::replace(&mut self.job.progress, progress);
        let committed = put_job(&mut txn, &self.job).map_err(BuildError::from).and_then(|()| Ok(txn.commit()?));
        if committed.is_err() {
            self.job.progress = before;
        } else {
            // After a chunk that was cut short, the next may be longer again.
            self.chunk_rows = (self.chunk_rows * 2).min(self.chunk_rows_max);
        }
        committed
    }

    fn index(&self) -> usize {
        self.table.indexes.len() - 1
    }

    fn own_part<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], BuildError> {
        Ok(own_part(&self.entries.layout, self.index(), key)?)
    }

    /// 1505 for an entry whose own key another has.
    fn duplicate(&self, key: &[u8]) -> Result<BuildError, BuildError> {
        let row_key = self.entries.layout.row_key(key)?;
        let row = self.database.read_view(None).get(self.rows_tree, row_key)?;
        let values = key_text(&self.table, self.index(), row_key, row.as_ref().map_or(&[], |block| block.value(0)));
        let object = format!("{}.{}", self.table.schema_name, self.table.name);
        let name = self.job.index.name.clone().unwrap_or_default();
        Ok(message(1505, &[&object, &name, &values]).into())
    }
}

fn begin_txn(database: &Arc<Database>, options: &OnlineOptions) -> Txn {
    let mut txn = options.party.map_or_else(|| database.begin(), |party| database.begin_for(party));
    txn.set_lock_timeout(options.lock_timeout);
    txn.set_cancel(options.cancel.clone());
    txn
}

/// 8632 stands for what is beyond a bound of this engine.
fn too_many_runs() -> SqlError {
    message(8632, &[])
}
