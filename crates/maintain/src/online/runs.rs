//! The sorted runs of an operation: kept in a tree so that they outlive it, and in memory so that they need not be read.
//!
//! ```text
//! key of a block   run u32 | first sixteen bytes of its first entry | number in the run u32
//! its row          rows as thawdb_storage::sort::RunBlock encodes them, a leaf each
//! ```
//! In memory, runs whose rows have one shape lie whole in slabs, which huge pages back: the allocator's would each cost a
//! fault of the system, and the merge reads them where they are.
//!
//! Invariants: 1. what is in memory of a run is what the tree has of it, if it is there too (`RunCache::keep` takes the blocks
//! that were appended, and of an operation that ends with its process those that need not be); runs whose chunk did not commit are
//! forgotten with it (`forget_from`). 2. Memory for blocks stays within [`RunCache::new`]'s bound and is the account's: further
//! runs are read from the tree ([`read_back`](super::read_back)), whatever little there is.
//!
//! Locks: none. Failure: storage's; a row of the tree that is no block ends the operation's use (10673): it was written by
//! another version, or is damage that its page's checksum did not find.

use super::read_back::{LEAVES_AT_FIRST, TreeReader, ahead_bytes, leaves_ahead, open_all};
use crate::index_build::BuildError;
use std::sync::Arc;
use thawdb_device::AlignedBuf;
use thawdb_device::buffer::HUGE_BYTES;
use thawdb_storage::memory::{Clerk, Grant, MemoryAccount, PIECE_BYTES};
use thawdb_storage::sort::{PackedRun, RunBlock, RunReader};
use thawdb_storage::{Database, StorageError, TreeId};
use thawdb_types::error::message;

/// Bytes of a block as it is stored: a leaf holds one, with its key.
pub(super) const BLOCK_BYTES: usize = Database::INLINE_BYTES_MAX - KEY_BYTES;
const KEY_BYTES: usize = 4 + 16 + 4;
/// Memory is taken from the account in such steps.
const GRANT_STEP_BYTES: usize = 4 << 20;
/// With less memory than so many slabs, runs are kept as they come.
const SLABS_MIN: usize = 4;

/// The key of a run's block.
pub(super) fn block_key(run: u32, block: &RunBlock, number: u32) -> [u8; KEY_BYTES] {
    key_of(run, block.head(0), number)
}

pub(super) fn key_of(run: u32, head: u128, number: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&run.to_be_bytes());
    key[4..20].copy_from_slice(&head.to_be_bytes());
    key[20..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Blocks of the runs of this process, as far as memory goes.
pub(super) struct RunCache {
    /// By number, from the first one that this process made.
    runs: Vec<(u32, Kept)>,
    slabs: Vec<Arc<AlignedBuf>>,
    bytes: usize,
    bytes_max: usize,
    account: Arc<MemoryAccount>,
    grant: Grant,
}

/// A run in memory.
enum Kept {
    Blocks(Arc<[RunBlock]>),
    /// In the slab of this number.
    Packed(usize, PackedRun),
}

impl RunCache {
    pub(super) fn new(bytes_max: usize, account: &Arc<MemoryAccount>) -> Self {
        Self {
            runs: Vec::new(),
            slabs: Vec::new(),
            bytes: 0,
            bytes_max,
            account: account.clone(),
            grant: Grant::new(account.clone(), Clerk::Query),
        }
    }

    /// Bytes of the blocks kept.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it has all of so many runs.
    pub(super) fn has_all(&self, run_count: u32) -> bool {
        self.runs.len() == run_count as usize
    }

    /// Keeps a run's blocks, or gives them back if there is no room.
    pub(super) fn keep(&mut self, run: u32, blocks: Vec<RunBlock>) -> Result<(), Vec<RunBlock>> {
        let kept = match PackedRun::bytes_of(&blocks).filter(|_| self.bytes_max >= SLABS_MIN * PIECE_BYTES) {
            Some(bytes) => self.pack(&blocks, bytes),
            None => {
                let bytes = bytes_of(&blocks);
                if !self.grow(bytes) {
                    return Err(blocks);
                }
                self.runs.push((run, Kept::Blocks(blocks.into())));
                return Ok(());
            }
        };
        let Some(kept) = kept else { return Err(blocks) };
        self.runs.push((run, kept));
        Ok(())
    }

    /// Copies a run to the last slab, or to a new one.
    fn pack(&mut self, blocks: &[RunBlock], bytes: usize) -> Option<Kept> {
        let end_of = |kept: &Kept| match kept {
            Kept::Packed(_, packed) => Some(packed.range().end),
            Kept::Blocks(_) => None,
        };
        let used = self.runs.iter().rev().find_map(|(_, kept)| end_of(kept)).unwrap_or(0);
        // One that is being read stays as it is.
        let has_room = self.slabs.last_mut().and_then(Arc::get_mut).is_some_and(|slab| used + bytes <= slab.len());
        let at = if has_room { used } else { 0 };
        if !has_room {
            let slab_bytes = bytes.next_multiple_of(HUGE_BYTES).max(PIECE_BYTES);
            if !self.grow(slab_bytes) {
                return None;
            }
            let is_piece = slab_bytes == PIECE_BYTES;
            self.slabs.push(Arc::new(if is_piece { self.account.take_piece() } else { AlignedBuf::zeroed(slab_bytes) }));
        }
        let slab = self.slabs.last_mut().and_then(Arc::get_mut).expect("nobody else has it");
        let packed = PackedRun::pack(blocks, slab, at);
        Some(Kept::Packed(self.slabs.len() - 1, packed))
    }

    /// Counts memory, if there is so much.
    fn grow(&mut self, bytes: usize) -> bool {
        let grows = self.bytes + bytes <= self.bytes_max && self.take_memory(self.bytes + bytes);
        self.bytes += if grows { bytes } else { 0 };
        grows
    }

    /// Has the account know of `bytes`; false if it cannot give them.
    fn take_memory(&mut self, bytes: usize) -> bool {
        let wanted = bytes.next_multiple_of(GRANT_STEP_BYTES) as u64;
        wanted <= self.grant.bytes() || self.grant.try_resize(wanted)
    }

    /// Forgets runs from this number on.
    pub(super) fn forget_from(&mut self, run: u32) {
        while let Some((_, kept)) = self.runs.pop_if(|(number, _)| *number >= run) {
            match kept {
                Kept::Blocks(blocks) => self.bytes -= bytes_of(&blocks),
                Kept::Packed(slab, packed) if packed.range().start == 0 => self.give_back(slab),
                Kept::Packed(..) => {}
            }
        }
    }

    /// Gives slabs back from this one on; those that are being read go when they are no more.
    fn give_back(&mut self, first: usize) {
        for slab in self.slabs.drain(first..) {
            self.bytes -= slab.len();
            if slab.len() == PIECE_BYTES
                && let Ok(piece) = Arc::try_unwrap(slab)
            {
                self.account.keep_piece(piece);
            }
        }
    }

    /// Readers of runs `0..run_count` from the block on that has what lies behind `after`. What is kept stays: a merge that
    /// begins again, because the log had no room for a chunk, finds it.
    pub(super) fn readers(
        &mut self,
        database: &Arc<Database>,
        tree: TreeId,
        run_count: u32,
        after: Option<&[u8]>,
    ) -> Result<Vec<Reader>, BuildError> {
        let in_tree = (run_count as usize).saturating_sub(self.runs.len());
        let mut leaves = leaves_ahead(in_tree, self.bytes_max - self.bytes);
        while leaves > LEAVES_AT_FIRST && !self.take_memory(self.bytes + ahead_bytes(in_tree, leaves)) {
            leaves = (leaves / 2).max(LEAVES_AT_FIRST);
        }
        let mut kept = self.runs.iter().peekable();
        let mut readers = Vec::with_capacity(run_count as usize);
        for run in 0..run_count {
            readers.push(match kept.next_if(|(number, _)| *number == run) {
                Some((_, Kept::Blocks(blocks))) => Reader::in_memory(blocks.clone(), after),
                Some((_, Kept::Packed(slab, packed))) => Reader::Memory([packed.block(&self.slabs[*slab])].into(), 0),
                None => Reader::Tree(Box::new(TreeReader::new(database, tree, run, leaves))),
            });
        }
        open_all(&mut readers, after, database.store().env().background)?;
        Ok(readers)
    }
}

impl Drop for RunCache {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

fn bytes_of(blocks: &[RunBlock]) -> usize {
    blocks.iter().map(RunBlock::memory_bytes).sum()
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

    pub(super) fn tree(&mut self) -> Option<&mut TreeReader> {
        match self {
            Self::Memory(..) => None,
            Self::Tree(reader) => Some(reader),
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

/// What the client is told of an error of reading runs: of one that is none, that the state is not what this version writes.
pub(super) fn of_runs(error: StorageError) -> BuildError {
    match error {
        StorageError::Bug(_) => message(10673, &[]).into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use thawdb_storage::sort::{ExternalSort, SortOptions};

    /// The blocks of a run of `rows` keys that begin with `first`; of one shape, or not.
    fn blocks(first: u8, rows: u32, is_fixed: bool) -> Vec<RunBlock> {
        let options = SortOptions { memory_bytes_max: usize::MAX, temp_folder: PathBuf::new(), stable: false, ordered_bytes: 0 };
        let mut sort = ExternalSort::new(thawdb_device::sim::Simulation::with_seed(1).env(), options);
        for row in 0..rows {
            let key = [&[first][..], &row.to_be_bytes()].concat();
            sort.push(&key, if is_fixed || row % 2 == 0 { &[] } else { &[7] }).unwrap();
        }
        sort.finish().unwrap().into_blocks(BLOCK_BYTES).unwrap()
    }

    fn keys(cache: &RunCache, at: usize) -> Vec<Vec<u8>> {
        let blocks = match &cache.runs[at].1 {
            Kept::Blocks(blocks) => blocks.clone(),
            Kept::Packed(slab, packed) => [packed.block(&cache.slabs[*slab])].into(),
        };
        blocks.iter().flat_map(|block| (0..block.len()).map(|row| block.key(row).to_vec())).collect()
    }

    #[test]
    fn runs_are_packed_one_behind_the_other_and_forgotten_from_the_end() {
        let account = MemoryAccount::new(1 << 30);
        let mut cache = RunCache::new(56 << 20, &account);
        let rows = 300_000;
        // Five runs of 1.5 MB fill a slab; every third has rows of several lengths.
        for run in 0..16 {
            assert!(cache.keep(run, blocks(run as u8, rows, run % 3 != 2)).is_ok());
        }
        let expected = |run: u8| (0..rows).map(|row| [&[run][..], &row.to_be_bytes()].concat()).collect::<Vec<_>>();
        assert_eq!(cache.slabs.len(), 3);
        let bytes = cache.bytes();
        cache.forget_from(7);
        assert_eq!((cache.runs.len(), cache.slabs.len()), (7, 1));
        for run in 7..16 {
            assert!(cache.keep(run, blocks(run as u8, rows, run % 3 != 2)).is_ok());
        }
        assert_eq!(cache.bytes(), bytes, "the room is used again");
        assert!((0..16).all(|run| keys(&cache, run) == expected(run as u8)));
        // A slab that is being read is not written to.
        let reader = cache.slabs[2].clone();
        assert!(cache.keep(16, blocks(99, 10, true)).is_ok());
        assert_eq!(cache.slabs.len(), 4);
        drop(reader);
        let is_refused = cache.keep(17, blocks(1, 2_000_000, true)).is_err();
        assert!(is_refused, "no more than it may have");
        cache.forget_from(0);
        assert_eq!((cache.bytes(), cache.slabs.len()), (0, 0));
        assert_eq!(account.pieces_kept(), 4, "the next build may have them");
    }
}
