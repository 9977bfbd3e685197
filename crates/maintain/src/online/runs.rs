//! The sorted runs of an operation: kept in a tree so that they outlive it, and in memory so that they need not be read.
//!
//! ```text
//! key of a block   run u32 | first sixteen bytes of its first entry | number in the run u32
//! its row          rows as thawdb_storage::sort::RunBlock encodes them, a leaf each
//! ```
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
use thawdb_storage::memory::{Clerk, Grant, MemoryAccount};
use thawdb_storage::sort::{RunBlock, RunReader};
use thawdb_storage::{Database, StorageError, TreeId};
use thawdb_types::error::message;

/// Bytes of a block as it is stored: a leaf holds one, with its key.
pub(super) const BLOCK_BYTES: usize = Database::INLINE_BYTES_MAX - KEY_BYTES;
const KEY_BYTES: usize = 4 + 16 + 4;
/// Memory is taken from the account in such steps.
const GRANT_STEP_BYTES: usize = 4 << 20;

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

    /// Whether it has all of so many runs.
    pub(super) fn has_all(&self, run_count: u32) -> bool {
        self.runs.len() == run_count as usize
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
                Some((_, blocks)) => Reader::in_memory(blocks.clone(), after),
                None => Reader::Tree(Box::new(TreeReader::new(database, tree, run, leaves))),
            });
        }
        open_all(&mut readers, after, database.store().env().background)?;
        Ok(readers)
    }
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
