//! The sorted runs of an operation: kept in a tree so that they outlive it, and in memory so that they need not be read.
//!
//! ```text
//! key of a block   run u32 | first sixteen bytes of its first entry | number in the run u32
//! its row          rows as thawdb_storage::sort::RunBlock encodes them, a leaf each
//! ```
//! Invariants: 1. what is in memory of a run is what the tree has of it, if it is there too (`RunCache::keep` takes the blocks
//! that were appended, and of an operation that ends with its process those that need not be); runs whose chunk did not commit are forgotten with it (`forget_from`). 2. Memory for blocks stays within
//! [`RunCache::new`]'s bound and is the account's: further runs are read from the tree. 3. A reader gives out what lies behind a key without
//! reading what lies before the block it is in (`TreeReader::open`). 4. A reader at rest holds no view (`Reader::rest`).
//!
//! Locks: none. Failure: storage's; a row of the tree that is no block ends the operation's use (10673): it was written by
//! another version, or is damage that its page's checksum did not find.

use crate::index_build::BuildError;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_device::BackgroundWork;
use thawdb_storage::memory::{Clerk, Grant, MemoryAccount};
use thawdb_storage::page_reads::{count_for_me, page_reads};
use thawdb_storage::sort::{RunBlock, RunReader};
use thawdb_storage::{Database, KeyRange, RowBlock, Scan, ScanDirection, StorageError, TreeId};
use thawdb_types::error::message;

/// Bytes of a block as it is stored: a leaf holds one, with its key.
pub(super) const BLOCK_BYTES: usize = Database::INLINE_BYTES_MAX - KEY_BYTES;
const KEY_BYTES: usize = 4 + 16 + 4;
/// Leaves of a run read at a time: runs may be thousands, and after a stop each has given a few leaves before the next.
const LEAVES_AHEAD: usize = 4;
/// Runs opened one after another by a thread, and threads that do it: a deep queue for any disk.
const RUNS_A_THREAD: usize = 8;
const THREADS_MAX: usize = 32;
/// Memory is taken from the account in such steps.
const GRANT_STEP_BYTES: usize = 4 << 20;

/// The key of a run's block.
pub(super) fn block_key(run: u32, block: &RunBlock, number: u32) -> [u8; KEY_BYTES] {
    key_of(run, block.head(0), number)
}

fn key_of(run: u32, head: u128, number: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&run.to_be_bytes());
    key[4..20].copy_from_slice(&head.to_be_bytes());
    key[20..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Blocks of the runs of this process, as far as memory goes.
pub(super) struct RunCache {
    /// By number, from the first one that this process made.
    runs: Vec<(u32, Arc<[RunBlock]>)>,
    bytes: usize,
    bytes_max: usize,
    grant: Grant,
}

impl RunCache {
    pub(super) fn new(bytes_max: usize, account: &Arc<MemoryAccount>) -> Self {
        Self { runs: Vec::new(), bytes: 0, bytes_max, grant: Grant::new(account.clone(), Clerk::Query) }
    }

    /// Bytes of the blocks kept.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a run's blocks, or gives them back if there is no room.
    pub(super) fn keep(&mut self, run: u32, blocks: Vec<RunBlock>) -> Result<(), Vec<RunBlock>> {
        let bytes: usize = blocks.iter().map(RunBlock::memory_bytes).sum();
        if self.bytes + bytes > self.bytes_max || !self.take_memory(self.bytes + bytes) {
            return Err(blocks);
        }
        self.bytes += bytes;
        self.runs.push((run, blocks.into()));
        Ok(())
    }

    /// Has the account know of `bytes`; false if it cannot give them.
    fn take_memory(&mut self, bytes: usize) -> bool {
        let wanted = bytes.next_multiple_of(GRANT_STEP_BYTES) as u64;
        wanted <= self.grant.bytes() || self.grant.try_resize(wanted)
    }

    /// Forgets runs from this number on.
    pub(super) fn forget_from(&mut self, run: u32) {
        while let Some((_, blocks)) = self.runs.pop_if(|(number, _)| *number >= run) {
            self.bytes -= blocks.iter().map(RunBlock::memory_bytes).sum::<usize>();
        }
    }

    /// Readers of runs `0..run_count` from the block on that has what lies behind `after`. What is kept stays: a merge that
    /// begins again, because the log had no room for a chunk, finds it.
    pub(super) fn readers(
        &self,
        database: &Arc<Database>,
        tree: TreeId,
        run_count: u32,
        after: Option<&[u8]>,
    ) -> Result<Vec<Reader>, BuildError> {
        let mut kept = self.runs.iter().peekable();
        let mut readers = Vec::with_capacity(run_count as usize);
        for run in 0..run_count {
            readers.push(match kept.next_if(|(number, _)| *number == run) {
                Some((_, blocks)) => Reader::in_memory(blocks.clone(), after),
                None => Reader::Tree(Box::new(TreeReader::new(database, tree, run))),
            });
        }
        open_all(&mut readers, after, database.store().env().background)?;
        Ok(readers)
    }
}

/// Has every run that is read from the tree find its place. Each waits for a page or two: many wait at once.
fn open_all(readers: &mut [Reader], after: Option<&[u8]>, background: BackgroundWork) -> Result<(), BuildError> {
    let mut trees: Vec<&mut TreeReader> = readers.iter_mut().filter_map(Reader::tree).collect();
    let open = |some: &mut [&mut TreeReader]| some.iter_mut().try_for_each(|reader| reader.open(after));
    let threads = if background == BackgroundWork::Threads { trees.len().div_ceil(RUNS_A_THREAD).clamp(1, THREADS_MAX) } else { 1 };
    if threads == 1 {
        return open(&mut trees);
    }
    let share = trees.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let helpers: Vec<_> = trees.chunks_mut(share).map(|some| scope.spawn(|| (open(some), page_reads()))).collect();
        let outcomes = helpers.into_iter().map(|helper| {
            let (outcome, reads) = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            count_for_me(&reads);
            outcome
        });
        outcomes.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Reads a run.
pub(super) enum Reader {
    /// The blocks, and which is next.
    Memory(Arc<[RunBlock]>, usize),
    Tree(Box<TreeReader>),
}

impl Reader {
    fn in_memory(blocks: Arc<[RunBlock]>, after: Option<&[u8]>) -> Self {
        // The last block that begins at or before it.
        let behind = after.map_or(0, |after| blocks.partition_point(|block| block.key(0) <= after));
        Self::Memory(blocks, behind.saturating_sub(1))
    }

    fn tree(&mut self) -> Option<&mut TreeReader> {
        match self {
            Self::Memory(..) => None,
            Self::Tree(reader) => Some(reader),
        }
    }

    /// Keeps where it is, and nothing that is open.
    pub(super) fn rest(&mut self) {
        if let Self::Tree(reader) = self {
            reader.rest();
        }
    }
}

impl RunReader for Reader {
    fn next_block(&mut self) -> Result<Option<RunBlock>, StorageError> {
        match self {
            Self::Memory(blocks, at) => {
                let block = blocks.get(*at).cloned();
                *at += 1;
                Ok(block)
            }
            Self::Tree(reader) => reader.next_block(),
        }
    }
}

/// Reads a run from its tree.
pub(super) struct TreeReader {
    database: Arc<Database>,
    tree: TreeId,
    run: u32,
    /// Where the next block is: behind this key, or at it.
    start: Bound<Vec<u8>>,
    end: Vec<u8>,
    /// The first block, if it was met on the way to it.
    found: Option<RunBlock>,
    /// Open while blocks are being asked for.
    scan: Option<Scan>,
    leaf: RowBlock,
    at: usize,
}

impl TreeReader {
    fn new(database: &Arc<Database>, tree: TreeId, run: u32) -> Self {
        let (start, end) = (Bound::Included(run.to_be_bytes().to_vec()), (run + 1).to_be_bytes().to_vec());
        Self { database: database.clone(), tree, run, start, end, found: None, scan: None, leaf: RowBlock::default(), at: 0 }
    }

    /// Finds the first block that has something behind `after`, by one descent.
    fn open(&mut self, after: Option<&[u8]>) -> Result<(), BuildError> {
        let view = self.database.read_view(None);
        let mut scan = match after {
            Some(after) => {
                // The last block that begins at or before it; blocks that begin alike in sixteen bytes may all be before it.
                let mut head = [0; 16];
                let bytes = after.len().min(16);
                head[..bytes].copy_from_slice(&after[..bytes]);
                let end = Bound::Excluded(key_of(self.run, u128::from_be_bytes(head), 0).to_vec());
                view.scan(self.tree, KeyRange { start: self.start.clone(), end }, ScanDirection::Backward)?
            }
            None => {
                let end = Bound::Excluded(self.end.clone());
                view.scan(self.tree, KeyRange { start: self.start.clone(), end }, ScanDirection::Forward)?
            }
        };
        if let Some(block) = scan.next_block()? {
            self.start = Bound::Excluded(block.key(0).to_vec());
            self.found = Some(decoded(block.value(0)).map_err(of_runs)?);
        }
        Ok(())
    }

    /// Gives up the scan, and the view that it reads with.
    fn rest(&mut self) {
        if self.scan.take().is_none() {
            return;
        }
        // What is left of the leaf is read again.
        if self.at > 0 {
            self.start = Bound::Excluded(self.leaf.whole_key(self.at - 1));
        }
        (self.leaf, self.at) = (RowBlock::default(), 0);
    }

    fn next_block(&mut self) -> Result<Option<RunBlock>, StorageError> {
        if let Some(found) = self.found.take() {
            return Ok(Some(found));
        }
        if self.at == self.leaf.len() && !self.next_leaf()? {
            return Ok(None);
        }
        self.at += 1;
        decoded(self.leaf.value(self.at - 1)).map(Some)
    }

    fn next_leaf(&mut self) -> Result<bool, StorageError> {
        let scan = match &mut self.scan {
            Some(scan) => scan,
            None => {
                let range = KeyRange { start: self.start.clone(), end: Bound::Excluded(self.end.clone()) };
                let mut scan = self.database.read_view(None).scan(self.tree, range, ScanDirection::Forward)?;
                scan.read_ahead_at_most(LEAVES_AHEAD);
                self.scan.insert(scan)
            }
        };
        self.at = 0;
        scan.next_into(&mut self.leaf)
    }
}

fn decoded(stored: &[u8]) -> Result<RunBlock, StorageError> {
    match RunBlock::decode(stored) {
        Ok(block) if !block.is_empty() => Ok(block),
        Ok(_) => Err(StorageError::Bug("a block of a sorted run has no rows".into())),
        Err(detail) => Err(StorageError::Bug(detail)),
    }
}

/// What the client is told of an error of reading runs: of one that is none, that the state is not what this version writes.
pub(super) fn of_runs(error: StorageError) -> BuildError {
    match error {
        StorageError::Bug(_) => message(10673, &[]).into(),
        error => error.into(),
    }
}
