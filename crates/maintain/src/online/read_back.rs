//! Runs read back from their tree, by who takes an operation up that another process began, or that memory could not keep.
//!
//! ```text
//! open      the block that has what lies behind a key, and those after it     ┐ of all runs together:
//! refill    the next blocks of every run that has few, once one has none      ┘ a deep queue for any disk
//! ```
//! What is needed of many runs is brought into the pool level by level of their tree ([`Database::prefetch_below`]); then each
//! run finds it there.
//!
//! A merge drains its runs at one pace where rows come in no order, and one after another where they came in order. So what is
//! read of a run stays in proportion to what was used of it: a life that ends soon has read little in vain, a long one asks the
//! disk for much at a time. And a refill waits for all runs that will need it soon rather than for each when its turn comes:
//! there are thousands, and a disk answers hundreds in the time of one.
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

/// Leaves in memory at first, that with the place among them, and leaves read at a time at least.
pub(super) const LEAVES_AT_FIRST: usize = 2;
/// Leaves in memory at most: requests of 128 KB.
const LEAVES_MAX: usize = 16;
const LEAF_BYTES: usize = 8 << 10;
/// Leaves brought into the pool at a time for the runs of one thread, and the share of the pool that they may take.
const BATCH_LEAVES: usize = 512;
const BATCH_SHARE: usize = 32;
/// Runs that are worth a thread, and threads: one decodes blocks while the other waits for the disk.
const RUNS_A_THREAD: usize = 64;
const THREADS_MAX: usize = 4;

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
    /// How many were read, and may be in memory.
    leaves_read: usize,
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
            leaves_read: 0,
            leaves_max,
            has_ended: false,
        }
    }

    /// The block that has what lies behind `after` begins below it.
    fn place(&self, after: Option<&[u8]>) -> Vec<u8> {
        let Some(after) = after else { return self.next_place() };
        // Blocks that begin alike in sixteen bytes may all be before it.
        let mut head = [0; 16];
        let bytes = after.len().min(16);
        head[..bytes].copy_from_slice(&after[..bytes]);
        key_of(self.run, u128::from_be_bytes(head), 0).to_vec()
    }

    /// The leaf with the greatest key below is the last that was read, or the one before the run.
    fn next_place(&self) -> Vec<u8> {
        match &self.start {
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => [key, &[0][..]].concat(),
            Bound::Unbounded => unreachable!("a run begins at its number"),
        }
    }

    /// Finds the first block that has something behind `after`, by one descent, and reads on from there.
    fn open(&mut self, after: Option<&[u8]>) -> Result<(), StorageError> {
        if after.is_some() {
            let range = KeyRange { start: self.start.clone(), end: Bound::Excluded(self.place(after)) };
            let mut scan = self.database.read_view(None).scan(self.tree, range, ScanDirection::Backward)?;
            if let Some(block) = scan.next_block()? {
                self.start = Bound::Excluded(block.key(0).to_vec());
                self.blocks.push_back(decoded(block.value(0))?);
                self.leaves_read = 1;
            }
        }
        self.refill()
    }

    /// Leaves that the next refill reads.
    fn leaves_next(&self) -> usize {
        let wanted = match self.leaves_read {
            read @ 0..LEAVES_AT_FIRST => LEAVES_AT_FIRST - read,
            read => (read / 2).max(LEAVES_AT_FIRST),
        };
        wanted.min(self.leaves_max.saturating_sub(self.blocks.len())).max(1)
    }

    /// Reads the next blocks.
    fn refill(&mut self) -> Result<(), StorageError> {
        let leaves = self.leaves_next();
        let range = KeyRange { start: self.start.clone(), end: Bound::Excluded((self.run + 1).to_be_bytes().to_vec()) };
        let mut scan = self.database.read_view(None).scan(self.tree, range, ScanDirection::Forward)?;
        scan.read_ahead_at_most(leaves);
        let mut leaf = RowBlock::default();
        for _ in 0..leaves {
            if !scan.next_into(&mut leaf)? {
                self.has_ended = true;
                break;
            }
            for at in 0..leaf.len() {
                self.blocks.push_back(decoded(leaf.value(at))?);
            }
            self.start = Bound::Excluded(leaf.whole_key(leaf.len() - 1));
        }
        self.leaves_read += leaves;
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
        self.blocks.len() <= 1 && !self.has_ended
    }
}

/// Has every run that is read from the tree find its place.
pub(super) fn open_all(readers: &mut [Reader], after: Option<&[u8]>, background: BackgroundWork) -> Result<(), BuildError> {
    let mut trees: Vec<&mut TreeReader> = readers.iter_mut().filter_map(Reader::tree).collect();
    let place = |reader: &TreeReader| (reader.place(after), LEAVES_AT_FIRST);
    let open = |reader: &mut TreeReader| reader.open(after);
    all_of(&mut trees, background, &place, &open).map_err(of_runs)
}

/// Before a round of the merge: reads on where it would have to wait.
pub(super) fn refill(merge: &mut RunMerge<Reader>, background: BackgroundWork) -> Result<(), StorageError> {
    if !merge.readers().filter_map(Reader::tree).any(|reader| reader.is_empty()) {
        return Ok(());
    }
    let mut low: Vec<&mut TreeReader> = merge.readers().filter_map(Reader::tree).filter(|reader| reader.is_low()).collect();
    // That with the last block read comes first.
    let place = |reader: &TreeReader| (reader.next_place(), reader.leaves_next() + 1);
    all_of(&mut low, background, &place, &TreeReader::refill)
}

/// Has each reader `read` what lies at its `place`, so many leaves: of many, all that they need is asked for at once.
fn all_of(
    readers: &mut [&mut TreeReader],
    background: BackgroundWork,
    place: &(impl Fn(&TreeReader) -> (Vec<u8>, usize) + Sync),
    read: &(impl Fn(&mut TreeReader) -> Result<(), StorageError> + Sync),
) -> Result<(), StorageError> {
    let threads = if background == BackgroundWork::Threads { readers.len().div_ceil(RUNS_A_THREAD).clamp(1, THREADS_MAX) } else { 1 };
    if threads == 1 {
        return share_of(readers, place, read);
    }
    let share = readers.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let helpers: Vec<_> = readers.chunks_mut(share).map(|some| scope.spawn(|| (share_of(some, place, read), page_reads()))).collect();
        let outcomes = helpers.into_iter().map(|helper| {
            let (outcome, reads) = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            count_for_me(&reads);
            outcome
        });
        outcomes.collect::<Vec<_>>().into_iter().collect()
    })
}

/// What a thread does for its readers, batch by batch.
fn share_of(
    readers: &mut [&mut TreeReader],
    place: &impl Fn(&TreeReader) -> (Vec<u8>, usize),
    read: &impl Fn(&mut TreeReader) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let Some((database, tree)) = readers.first().map(|first| (first.database.clone(), first.tree)) else { return Ok(()) };
    let leaves = readers.iter().map(|reader| place(reader).1).max().unwrap_or(LEAVES_AT_FIRST);
    let batch_leaves = (database.store().pool().frame_count() / BATCH_SHARE).min(BATCH_LEAVES);
    for batch in readers.chunks_mut((batch_leaves / leaves).max(1)) {
        // Runs come in the order of their keys in the tree.
        let places: Vec<Vec<u8>> = batch.iter().map(|reader| place(reader).0).collect();
        database.prefetch_below(tree, &places, leaves)?;
        batch.iter_mut().try_for_each(|reader| read(reader))?;
    }
    Ok(())
}

fn decoded(stored: &[u8]) -> Result<RunBlock, StorageError> {
    match RunBlock::decode(stored) {
        Ok(block) if !block.is_empty() => Ok(block),
        Ok(_) => Err(StorageError::Bug("a block of a sorted run has no rows".into())),
        Err(detail) => Err(StorageError::Bug(detail)),
    }
}
