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
//! read only by who takes the operation up again; of an operation that nobody can take up, runs that memory keeps are written
//! nowhere. Every chunk's transaction also writes the job's
//! record, so that what is there and what the record says never differ; between chunks nothing is open, and nothing pins
//! the log.
//!
//! While one chunk is on its way to the device the next is read and put in order, and its commit is made durable by the
//! flush of the chunk after it: nobody waits for a disk that has something to do meanwhile.
//!
//! ```text
//! step n     read chunk n │ land chunk n-2: hung, recorded, committed │ write chunk n to its tree, send it on its way
//! ```
//! With two threads ([`OnlineOptions::threads`]) the second makes and orders the entries of chunk n while the first lands chunk
//! n-3, writes chunk n-1 and reads the rows of chunk n+1; or it gathers the next round while the first appends this one.
//! Chunks come to their tree in the order in which they were read, so that the record is the same.
//!
//! Why no snapshot is needed: writers that knew of the build leave the last word on every entry they touch in the side
//! tree, and the target gets those words last. An entry that nobody touched since the build was announced reads the same
//! at any moment. So each chunk scans what is committed as it goes.
//!
//! Invariants: 1. at most [`OnlineOptions::redone_rows`] rows are done twice after a crash ([`pace`]; `begin` cuts off what
//! unfinished chunks left). 2. Resuming
//! costs one descent a run and the chunks' remains, whatever was done before; within one process, where the build was kept
//! ([`OnlineBuild::rest`], [`OnlineBuild::go_on`]), not even that: entries that were gathered for a chunk that failed are
//! appended from memory ([`rounds`]).
//! 3. Memory is [`OnlineOptions::memory_bytes_max`], two chunks' rows of [`CHUNK_BYTES`] each at most, and a leaf a run. 4. After [`OnlineBuild::catch_up_all`] under the caller's lock the
//! target has exactly the table's entries.
//!
//! A chunk of the merge is no longer than the free log takes, going by the chunks before; one that the log has no room for all
//! the same is tried at half its size, as long as a small one may fit, before `LogFull` goes up. So it is with the side tree's words.
//!
//! Failure: storage's errors, and 1505 for a key that two rows share; the chunk is rolled back, and a new
//! [`OnlineBuild`] goes on. Locks: of a chunk's transaction, the trees of the build alone, and side entries as they are
//! applied. Not here: partial merges; more than [`RUNS_MAX`] runs are refused (8632).
//!
//! Further reading: Mohan, Narang, "Algorithms for Creating Indexes for Very Large Tables Without Quiescing Updates",
//! SIGMOD 1992; Graefe, "Sorting and Indexing with Partitioned B-Trees", CIDR 2003, for runs as parts of one tree.

mod catch_up;
mod helper;
mod merge;
mod pace;
mod read_back;
mod rounds;
mod runs;
mod scan;

#[cfg(test)]
mod tests;

use crate::entries::EntryMaker;
use crate::index_build::{BuildError, own_part};
use crate::rows::RowBatch;
use helper::{Helper, Pending};
use merge::Gathered;
use pace::{FLIGHTS_MAX, Pace};
use rounds::Rounds;
use runs::{Reader, RunCache};
use scan::{Filled, RunMaker};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use thawdb_catalog::store::put_job;
use thawdb_catalog::{CatalogError, IndexJob, JobProgress, TableDef, TreeLayout, key_text};
use thawdb_device::BackgroundWork;
use thawdb_observe::cancel::CancelToken;
use thawdb_storage::locks::Party;
use thawdb_storage::sort::{RunBlock, RunMerge};
use thawdb_storage::{BulkAppend, Database, Scan, StorageError, TreeId, Txn};
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// Rows that a failure may cost if nothing else is said.
pub const REDONE_ROWS: usize = 100_000;
/// One thread reads the table and writes, the other makes and orders entries, or merges.
pub const THREADS_MAX: usize = 2;
/// A chunk of wide rows ends when it has so many bytes.
const CHUNK_BYTES: usize = 16 << 20;
/// A chunk is not cut smaller unless its rows are long ([`OnlineBuild::chunk_rows_min`]).
const CHUNK_ROWS_MIN: usize = 2_000;
/// Runs merged at once, a leaf in memory for each.
const RUNS_MAX: u32 = 32_768;
/// Words of the side tree applied in one transaction, and those that a log without room for them is asked for at least.
const WORDS_MAX: usize = 10_000;
const WORDS_MIN: usize = 100;

/// Memory for runs if nothing else is said.
const MEMORY_BYTES: usize = 64 << 20;

/// How a build goes about it.
#[derive(Debug, Clone)]
pub struct OnlineOptions {
    /// Rows that a failure may cost.
    pub redone_rows: usize,
    /// Whose waits the chunks' locks belong to.
    pub party: Option<Party>,
    /// Longest wait for a lock; `None` is for ever.
    pub lock_timeout: Option<Duration>,
    /// What ends such a wait.
    pub cancel: Option<CancelToken>,
    /// Memory for sorted runs, which then need not be read back from their tree.
    pub memory_bytes_max: usize,
    /// Threads that work on it, the caller's among them: of more than [`THREADS_MAX`] the others have nothing to do.
    pub threads: usize,
}

impl Default for OnlineOptions {
    fn default() -> Self {
        Self { redone_rows: REDONE_ROWS, party: None, lock_timeout: None, cancel: None, memory_bytes_max: MEMORY_BYTES, threads: 1 }
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
    pace: Pace,
    /// Rows of a chunk: those of the pace, or fewer where the log is short.
    chunk_rows: usize,
    /// The second thread, if there is one.
    helper: Option<Helper>,
    /// The helper has it while it makes entries.
    maker: Option<Box<RunMaker>>,
    layout: TreeLayout,
    ordered_bytes: usize,
    /// How far has been read.
    ahead: JobProgress,
    /// Rows of the next chunk, read and not made yet: with two threads only.
    filled: Option<Filled>,
    /// A chunk that was made and is to be sent.
    made: Option<Chunk>,
    /// To the tree of the phase, from chunk to chunk. It goes before the transactions.
    append: Option<BulkAppend>,
    /// The oldest first.
    flights: VecDeque<Flight>,
    batch: RowBatch,
    /// Memory of rows that were made into entries.
    spare_batch: Option<RowBatch>,
    /// The scan of the table between chunks.
    open_scan: Option<Scan>,
    merge: Option<RunMerge<Reader>>,
    /// The helper has the merge while it gathers.
    gathering: Option<Pending<Gathered>>,
    /// Behind those that read it: what nobody reads can be used again.
    cache: RunCache,
    /// What it gathered.
    rounds: Rounds,
    /// Bytes of log and rows of the chunks appended so far.
    logged: (u64, u64),
    /// Words of the side tree that one transaction may apply.
    words_max: usize,
    /// A chunk was committed since it was taken up.
    has_landed: bool,
    /// Rows of the last chunk that was cut.
    tried_rows: usize,
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
    /// So many of the target's next entries, gathered in the merge.
    Merged(usize),
}

/// A chunk on its way to the device.
struct Flight {
    txn: Txn,
    progress: JobProgress,
    /// Rows it took from the rounds.
    rows: usize,
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
        cut_off_unfinished(database, job, &options)?;
        let (pace, helper) = ways(database, &options);
        let maker = Box::new(RunMaker::new(database.store().env(), EntryMaker::new(table, &shadow, index)));
        Ok(Self {
            database: database.clone(),
            layout: TreeLayout::new(&shadow, index),
            ordered_bytes: maker.ordered_bytes(),
            maker: Some(maker),
            filled: None,
            made: None,
            rows_tree: table.rows().tree,
            table: Arc::new(shadow),
            job: job.clone(),
            pace,
            chunk_rows: pace.chunk_rows,
            helper,
            cache: RunCache::new(options.memory_bytes_max, database.memory()),
            options,
            ahead: job.progress.clone(),
            append: None,
            flights: VecDeque::new(),
            batch: RowBatch::default(),
            spare_batch: None,
            open_scan: None,
            merge: None,
            gathering: None,
            rounds: Rounds::default(),
            logged: (0, 0),
            words_max: WORDS_MAX,
            has_landed: false,
            tried_rows: pace.chunk_rows,
            rows_read: 0,
        })
    }

    /// Goes on after [`Self::rest`], for the caller that `options` speak of: with what is in memory of the runs, nothing is
    /// opened or read again.
    ///
    /// # Errors
    /// Storage's.
    pub fn go_on(&mut self, options: OnlineOptions) -> Result<(), BuildError> {
        assert!(self.is_settled(), "a build rests with nothing on its way");
        cut_off_unfinished(&self.database, &self.job, &options)?;
        (self.pace, self.helper) = ways(&self.database, &options);
        self.chunk_rows = self.pace.chunk_rows;
        self.has_landed = false;
        self.options = options;
        Ok(())
    }

    /// Lets go of all that others would have to wait for or keep versions for, after [`Self::settle`]: what stays is memory.
    pub fn rest(&mut self) {
        assert!(self.is_settled(), "a build is settled before it rests");
        self.end_gathering();
        self.helper = None;
        self.append = None;
        self.open_scan = None;
        (self.batch, self.spare_batch) = (RowBatch::default(), None);
        self.go_back();
    }

    /// Whether nothing is on its way: it may rest.
    pub fn is_settled(&self) -> bool {
        self.flights.is_empty()
    }

    /// Whether it can go on in the place of a build begun for `job` of `table`.
    pub fn is_of(&self, database: &Arc<Database>, table: &TableDef, job: &IndexJob) -> bool {
        let before = &self.table.indexes[..self.index()];
        Arc::ptr_eq(&self.database, database)
            && self.job == *job
            && (&self.table.columns, before) == (&table.columns, &table.indexes[..])
            && (&self.table.name, &self.table.schema_name) == (&table.name, &table.schema_name)
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
            let _ = self.land_all();
            self.go_back();
            let is_full = matches!(error, BuildError::Storage(StorageError::LogFull { .. }));
            let least = self.chunk_rows_min();
            // Whoever has made room sees that it was of use: the first chunk is tried however small.
            if !is_full || self.chunk_rows <= least || self.has_landed && !self.may_fit() {
                return Err(error);
            }
            self.chunk_rows = (self.chunk_rows.min(self.tried_rows) / 2).max(least);
        }
        if !(self.ahead.merged && self.is_settled()) {
            return Ok(Step::More);
        }
        loop {
            match self.catch_up_some() {
                Err(BuildError::Storage(StorageError::LogFull { .. })) if self.words_max > WORDS_MIN => self.fewer_words(),
                outcome => return Ok(if outcome? { Step::More } else { Step::Ready }),
            }
        }
    }

    /// Waits for what is on its way and makes everything so far durable.
    ///
    /// # Errors
    /// Storage's; what did not commit is undone.
    pub fn settle(&mut self) -> Result<(), BuildError> {
        let landed = self.send_what_was_read().and_then(|()| self.land_all());
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
        if self.helper.is_some() && !self.is_scanned() {
            return self.scan_by_two();
        }
        let chunk = match (self.ahead.merging, self.ahead.merged) {
            (false, _) => Some(self.read_rows()?),
            (true, false) => {
                self.end_scan()?;
                Some(self.read_runs()?)
            }
            (true, true) => None,
        };
        match chunk {
            Some(chunk) => self.send(chunk),
            None => {
                self.land_all()?;
                self.append = None;
                Ok(())
            }
        }
    }

    /// Before the merge, which looks for the runs in their tree; the append goes to another one.
    fn end_scan(&mut self) -> Result<(), BuildError> {
        if self.merge.is_none() && self.gathering.is_none() {
            self.land_all()?;
            self.append = None;
        }
        Ok(())
    }

    /// Begins again behind what is committed.
    fn go_back(&mut self) {
        self.let_flights_go();
        (self.filled, self.made) = (None, None);
        self.open_scan = None;
        self.cache.forget_from(self.job.progress.run_count);
        if self.job.progress.merging {
            self.rounds.give_back();
        } else {
            // There may be more runs before it begins again.
            (self.merge, self.gathering, self.rounds) = (None, None, Rounds::default());
        }
        self.ahead = JobProgress { worked_ms: self.ahead.worked_ms, ..self.job.progress.clone() };
    }

    /// Writes a chunk to its tree and sends it on its way, once there is room for it.
    fn send(&mut self, chunk: Chunk) -> Result<(), BuildError> {
        let Some(chunk) = self.keep_run(chunk) else { return Ok(()) };
        // A chunk that has to land needs log: where that is short, nothing is sent before it has.
        self.land_until(if self.is_log_short() { 0 } else { FLIGHTS_MAX - 1 })?;
        let mut txn = self.begin_chunk();
        // The flush of the next chunk makes the commit durable; `settle` does for the last.
        txn.set_delayed_durability(true);
        match self.write(&mut txn, chunk) {
            Ok((progress, rows)) => {
                self.flights.push_back(Flight { txn, progress, rows });
                Ok(())
            }
            Err(error) => {
                // Those before it are on their way in the same append, and come to their end.
                let _ = self.land_all();
                self.append = None;
                Err(error)
            }
        }
    }

    /// Writes a chunk within `txn`; where the operation is then, and the rows taken from the rounds.
    fn write(&mut self, txn: &mut Txn, chunk: Chunk) -> Result<(JobProgress, usize), BuildError> {
        match chunk.entries {
            Entries::Nothing => Ok((chunk.progress, 0)),
            Entries::Run(run, blocks) => {
                let append = self.append_in(txn, self.job.runs)?;
                append.force_pages();
                scan::append_run(append, txn, run, &blocks)?;
                // Without room it is read from the tree.
                let _ = self.cache.keep(run, blocks);
                Ok((chunk.progress, 0))
            }
            Entries::Merged(count) => {
                let fill_factor = self.job.fill_factor;
                self.append_in(txn, self.job.index.tree)?.set_fill_percent(fill_factor);
                let mut append = self.append.take().expect("it was made or found");
                let appended = self.append_entries(&mut append, txn, count);
                self.append = Some(append);
                appended?;
                Ok((self.ahead.clone(), count))
            }
        }
    }

    /// A run of a build that no failure outlives need be nowhere but in memory: it is done then. Gives back what is to be written.
    fn keep_run(&mut self, chunk: Chunk) -> Option<Chunk> {
        let Chunk { entries: Entries::Run(run, blocks), progress } = chunk else { return Some(chunk) };
        if self.job.resumable {
            return Some(Chunk { entries: Entries::Run(run, blocks), progress });
        }
        match self.cache.keep(run, blocks) {
            Ok(()) => {
                self.job.progress = progress;
                None
            }
            Err(blocks) => Some(Chunk { entries: Entries::Run(run, blocks), progress }),
        }
    }

    /// The append to the phase's tree, which goes on within `txn`.
    fn append_in(&mut self, txn: &mut Txn, tree: TreeId) -> Result<&mut BulkAppend, StorageError> {
        if self.append.as_ref().is_some_and(|append| append.tree() == tree) {
            let append = self.append.as_mut().expect("it is of this tree");
            append.go_on_in(txn)?;
            return Ok(append);
        }
        assert!(self.flights.is_empty(), "an append ends with all it sent");
        Ok(self.append.insert(txn.begin_private_append(tree)?))
    }

    /// Waits for the oldest chunks, until no more than so many are on their way, and commits each with the job's record.
    fn land_until(&mut self, left: usize) -> Result<(), BuildError> {
        while self.flights.len() > left {
            let landed = self.land_oldest();
            if landed.is_err() {
                // What comes behind it has no place without it.
                self.let_flights_go();
                return landed;
            }
        }
        Ok(())
    }

    fn land_all(&mut self) -> Result<(), BuildError> {
        self.land_until(0)
    }

    fn land_oldest(&mut self) -> Result<(), BuildError> {
        let Some(Flight { mut txn, progress, rows }) = self.flights.pop_front() else { return Ok(()) };
        match &mut self.append {
            Some(append) => append.land_all(&mut txn)?,
            None => assert!(rows == 0, "entries land through the append that sent them"),
        }
        self.commit(txn, progress)?;
        self.rounds.committed(rows);
        Ok(())
    }

    /// Undoes the chunks on their way, the newest first.
    fn let_flights_go(&mut self) {
        self.append = None;
        while self.flights.pop_back().is_some() {}
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
            self.has_landed = true;
            // After a chunk that was cut short, the next may be longer again.
            self.chunk_rows = (self.chunk_rows * 2).min(self.pace.chunk_rows);
        }
        committed
    }

    fn index(&self) -> usize {
        self.table.indexes.len() - 1
    }

    fn own_part<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], BuildError> {
        Ok(own_part(&self.layout, self.index(), key)?)
    }

    /// 1505 for an entry whose own key another has.
    fn duplicate(&self, key: &[u8]) -> Result<BuildError, BuildError> {
        let row_key = self.layout.row_key(key)?;
        let row = self.database.read_view(None).get(self.rows_tree, row_key)?;
        let values = key_text(&self.table, self.index(), row_key, row.as_ref().map_or(&[], |block| block.value(0)));
        let object = format!("{}.{}", self.table.schema_name, self.table.name);
        let name = self.job.index.name.clone().unwrap_or_default();
        Ok(message(1505, &[&object, &name, &values]).into())
    }
}

/// How many rows are under way, and who helps.
fn ways(database: &Database, options: &OnlineOptions) -> (Pace, Option<Helper>) {
    let has_threads = database.store().env().background == BackgroundWork::Threads;
    let helper = (has_threads && options.threads.min(THREADS_MAX) > 1).then(Helper::start);
    (Pace::new(options.redone_rows, helper.is_some()), helper)
}

/// Cuts off what chunks that did not commit have left at the ends of the trees.
fn cut_off_unfinished(database: &Arc<Database>, job: &IndexJob, options: &OnlineOptions) -> Result<(), BuildError> {
    let progress = &job.progress;
    let mut txn = begin_txn(database, options);
    // Done again if it is lost: nobody waits for it.
    txn.set_delayed_durability(true);
    // Runs from this number on, and entries above this key, are of chunks that did not commit.
    txn.cut_off_above(job.runs, Some(&progress.run_count.to_be_bytes()))?;
    if !progress.merged {
        txn.cut_off_above(job.index.tree, progress.last_entry.as_deref())?;
    }
    Ok(txn.commit()?)
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
