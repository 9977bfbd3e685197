//! Runs read back from their tree, by who takes an operation up that another process began, or that memory could not keep.
//!
//! ```text
//! open      the block that has what lies behind a key, and those after it     ┐ of all runs side by side:
//! refill    the next blocks of every run that has few, once one has none      ┘ a deep queue for any disk
//! ```
//! A merge drains its runs at one pace where rows come in no order, and one after another where they came in order. So each
//! run's share of memory doubles with every refill, and a refill waits for all runs that need it at once rather than for each when
//! its turn comes: there are thousands, and a disk answers hundreds in the time of one.
//!
//! Invariants: 1. a reader gives out what lies behind a key without reading what lies before the block it is in
//! (`TreeReader::open`). 2. Between calls nothing is open: no view holds back what others want to forget. 3. Blocks in memory are
//! [`leaves_ahead`]'s at most for each run.
//!
//! Locks: none. Failure: storage's; 10673 for a row that is no block.

use super::runs::{Reader, key_of, of_runs};
use crate::index_build::BuildError;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_device::BackgroundWork;
use thawdb_storage::page_reads::{count_for_me, page_reads};
use thawdb_storage::sort::{RunBlock, RunMerge};
use thawdb_storage::{Database, KeyRange, RowBlock, ScanDirection, StorageError, TreeId};

/// Leaves in memory at first, that with the place among them: a life that ends soon has read few in vain.
pub(super) const LEAVES_AT_FIRST: usize = 3;
/// Leaves read at a time at most: requests of 128 KB.
const LEAVES_MAX: usize = 16;
const LEAF_BYTES: usize = 8 << 10;
/// Runs read one after another by a thread, and threads that do it.
const RUNS_A_THREAD: usize = 8;
const THREADS_MAX: usize = 32;

/// Leaves of a run that may be in memory, if all `runs` together may have `bytes`; [`LEAVES_AT_FIRST`] at least.
pub(super) fn leaves_ahead(runs: usize, bytes: usize) -> usize {
    (bytes / LEAF_BYTES / runs.max(1)).clamp(LEAVES_AT_FIRST, LEAVES_MAX)
}

/// Bytes of so many leaves of so many runs.
pub(super) fn ahead_bytes(runs: usize, leaves: usize) -> usize {
    runs * leaves * LEAF_BYTES
}

/// Reads a run from its tree.
pub(super) struct TreeReader {
    database: Arc<Database>,
    tree: TreeId,
    run: u32,
    /// Where the next block is that is not in memory: behind this key, or at it.
    start: Bound<Vec<u8>>,
    blocks: VecDeque<RunBlock>,
    /// How many are in memory after the next refill, and after any at most.
    leaves: usize,
    leaves_max: usize,
    /// There is nothing behind what is in memory.
    has_ended: bool,
}

impl TreeReader {
    pub(super) fn new(database: &Arc<Database>, tree: TreeId, run: u32, leaves_max: usize) -> Self {
        Self {
            database: database.clone(),
            tree,
            run,
            start: Bound::Included(run.to_be_bytes().to_vec()),
            blocks: VecDeque::new(),
            leaves: LEAVES_AT_FIRST,
            leaves_max,
            has_ended: false,
        }
    }

    /// Finds the first block that has something behind `after`, by one descent, and reads on from there.
    fn open(&mut self, after: Option<&[u8]>) -> Result<(), StorageError> {
        if let Some(after) = after {
            // The last block that begins at or before it; blocks that begin alike in sixteen bytes may all be before it.
            let mut head = [0; 16];
            let bytes = after.len().min(16);
            head[..bytes].copy_from_slice(&after[..bytes]);
            let end = Bound::Excluded(key_of(self.run, u128::from_be_bytes(head), 0).to_vec());
            let range = KeyRange { start: self.start.clone(), end };
            let mut scan = self.database.read_view(None).scan(self.tree, range, ScanDirection::Backward)?;
            if let Some(block) = scan.next_block()? {
                self.start = Bound::Excluded(block.key(0).to_vec());
                self.blocks.push_back(decoded(block.value(0))?);
            }
        }
        self.refill()
    }

    /// Reads the next blocks, until so many are in memory as it may have now.
    fn refill(&mut self) -> Result<(), StorageError> {
        let range = KeyRange { start: self.start.clone(), end: Bound::Excluded((self.run + 1).to_be_bytes().to_vec()) };
        let mut scan = self.database.read_view(None).scan(self.tree, range, ScanDirection::Forward)?;
        scan.read_ahead_at_most(self.leaves.saturating_sub(self.blocks.len()));
        let mut leaf = RowBlock::default();
        while self.blocks.len() < self.leaves {
            if !scan.next_into(&mut leaf)? {
                self.has_ended = true;
                break;
            }
            for at in 0..leaf.len() {
                self.blocks.push_back(decoded(leaf.value(at))?);
            }
            self.start = Bound::Excluded(leaf.whole_key(leaf.len() - 1));
        }
        self.leaves = (self.leaves * 2).min(self.leaves_max);
        Ok(())
    }

    pub(super) fn next_block(&mut self) -> Result<Option<RunBlock>, StorageError> {
        if self.blocks.is_empty() && !self.has_ended {
            self.refill()?;
        }
        Ok(self.blocks.pop_front())
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && !self.has_ended
    }

    /// Whether it is read on when another has to be.
    fn is_low(&self) -> bool {
        self.blocks.len() <= self.leaves / 4 && !self.has_ended
    }
}

/// Has every run that is read from the tree find its place.
pub(super) fn open_all(readers: &mut [Reader], after: Option<&[u8]>, background: BackgroundWork) -> Result<(), BuildError> {
    let mut trees: Vec<&mut TreeReader> = readers.iter_mut().filter_map(Reader::tree).collect();
    side_by_side(&mut trees, background, |reader| reader.open(after)).map_err(of_runs)
}

/// Before a round of the merge: reads on where it would have to wait.
pub(super) fn refill(merge: &mut RunMerge<Reader>, background: BackgroundWork) -> Result<(), StorageError> {
    if !merge.readers().filter_map(Reader::tree).any(|reader| reader.is_empty()) {
        return Ok(());
    }
    let mut low: Vec<&mut TreeReader> = merge.readers().filter_map(Reader::tree).filter(|reader| reader.is_low()).collect();
    side_by_side(&mut low, background, TreeReader::refill)
}

/// Has each reader do what waits for a page or two: many wait at once.
fn side_by_side(
    readers: &mut [&mut TreeReader],
    background: BackgroundWork,
    read: impl Fn(&mut TreeReader) -> Result<(), StorageError> + Sync,
) -> Result<(), StorageError> {
    let one_by_one = |some: &mut [&mut TreeReader]| some.iter_mut().try_for_each(|reader| read(reader));
    let threads = if background == BackgroundWork::Threads { readers.len().div_ceil(RUNS_A_THREAD).clamp(1, THREADS_MAX) } else { 1 };
    if threads == 1 {
        return one_by_one(readers);
    }
    let share = readers.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let helpers: Vec<_> = readers.chunks_mut(share).map(|some| scope.spawn(|| (one_by_one(some), page_reads()))).collect();
        let outcomes = helpers.into_iter().map(|helper| {
            let (outcome, reads) = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            count_for_me(&reads);
            outcome
        });
        outcomes.collect::<Vec<_>>().into_iter().collect()
    })
}

fn decoded(stored: &[u8]) -> Result<RunBlock, StorageError> {
    match RunBlock::decode(stored) {
        Ok(block) if !block.is_empty() => Ok(block),
        Ok(_) => Err(StorageError::Bug("a block of a sorted run has no rows".into())),
        Err(detail) => Err(StorageError::Bug(detail)),
    }
}
