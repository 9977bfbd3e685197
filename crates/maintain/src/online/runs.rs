//! The sorted runs of an operation: kept in a tree so that they outlive it, and in memory so that they need not be read.
//!
//! ```text
//! key of a block   run u32 | first sixteen bytes of its first entry | number in the run u32
//! its row          rows as thawdb_storage::sort::RunBlock encodes them, a leaf each
//! ```
//! Invariants: 1. what is in memory of a run is what the tree has of it (`RunCache::keep` takes the blocks that were
//! appended); runs whose chunk did not commit are forgotten with it (`forget_from`). 2. Memory for blocks stays within
//! [`RunCache::new`]'s bound: further runs are read from the tree. 3. A reader gives out what lies behind a key without
//! reading what lies before the block it is in (`TreeReader::new`).
//!
//! Locks: none. Failure: storage's; a row of the tree that is no block ends the operation's use (10673): it was written by
//! another version, or is damage that its page's checksum did not find.

use crate::index_build::BuildError;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_storage::sort::{RunBlock, RunReader};
use thawdb_storage::{Database, KeyRange, RowBlock, Scan, ScanDirection, StorageError, TreeId};
use thawdb_types::error::message;

/// Bytes of a block as it is stored: a leaf holds one, with its key.
pub(super) const BLOCK_BYTES: usize = Database::INLINE_BYTES_MAX - KEY_BYTES;
const KEY_BYTES: usize = 4 + 16 + 4;
/// Leaves of a run read at a time: runs may be thousands, and after a stop each has given a few leaves before the next.
const LEAVES_AHEAD: usize = 4;

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
}

impl RunCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { runs: Vec::new(), bytes: 0, bytes_max }
    }

    /// Bytes of the blocks kept.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a run's blocks if there is room.
    pub(super) fn keep(&mut self, run: u32, blocks: Vec<RunBlock>) {
        let bytes: usize = blocks.iter().map(RunBlock::memory_bytes).sum();
        if self.bytes + bytes <= self.bytes_max {
            self.bytes += bytes;
            self.runs.push((run, blocks.into()));
        }
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
        let reader = |run| match kept.next_if(|(number, _)| *number == run) {
            Some((_, blocks)) => Ok(Reader::in_memory(blocks.clone(), after)),
            None => Ok(Reader::Tree(Box::new(TreeReader::new(database, tree, run, after)?))),
        };
        (0..run_count).map(reader).collect()
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
    scan: Scan,
    leaf: RowBlock,
    at: usize,
}

impl TreeReader {
    fn new(database: &Arc<Database>, tree: TreeId, run: u32, after: Option<&[u8]>) -> Result<Self, BuildError> {
        let view = database.read_view(None);
        let mut start = run.to_be_bytes().to_vec();
        if let Some(after) = after {
            // The last block that begins at or before it; blocks that begin alike in sixteen bytes may all be before it.
            let mut head = [0; 16];
            let bytes = after.len().min(16);
            head[..bytes].copy_from_slice(&after[..bytes]);
            let end = Bound::Excluded(key_of(run, u128::from_be_bytes(head), 0).to_vec());
            let range = KeyRange { start: Bound::Included(start.clone()), end };
            if let Some(block) = view.scan(tree, range, ScanDirection::Backward)?.next_block()? {
                start = block.key(0).to_vec();
            }
        }
        let range = KeyRange { start: Bound::Included(start), end: Bound::Excluded((run + 1).to_be_bytes().to_vec()) };
        let mut scan = view.scan(tree, range, ScanDirection::Forward)?;
        scan.read_ahead_at_most(LEAVES_AHEAD);
        Ok(Self { scan, leaf: RowBlock::default(), at: 0 })
    }

    fn next_block(&mut self) -> Result<Option<RunBlock>, StorageError> {
        if self.at == self.leaf.len() {
            if !self.scan.next_into(&mut self.leaf)? {
                return Ok(None);
            }
            self.at = 0;
        }
        self.at += 1;
        match RunBlock::decode(self.leaf.value(self.at - 1)) {
            Ok(block) if !block.is_empty() => Ok(Some(block)),
            Ok(_) => Err(StorageError::Bug("a block of a sorted run has no rows".into())),
            Err(detail) => Err(StorageError::Bug(detail)),
        }
    }
}

/// What the client is told of an operation whose runs cannot be read: the state is not what this version writes.
pub(super) fn unusable() -> BuildError {
    message(10673, &[]).into()
}
