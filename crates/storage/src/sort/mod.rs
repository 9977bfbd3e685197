//! The external sort: orders byte strings (key, payload) by key within a memory bound, spilling sorted runs to a file.
//!
//! ```text
//!   push ──> RowBuffer, as much as caches hold ──sort──> run in memory ┐ full: merged into one run of the file ┐
//!                    "                         ──sort──> run in memory ┴───────────────────────────────────────┴ rounds ──> SortedRows::next
//! ```
//! Rows of one fixed small width are ordered as big-endian words by radix; all others lie in an arena and are ordered by
//! an eight-byte key prefix taken behind the prefix that all keys share, ties by the rest of the key. Ordering in pieces of
//! the caches' size and merging by rounds (`merge`) touches memory twice in order, where passes over everything would touch it
//! out of order once a pass. A sort that stays below one piece never sees any of it.
//!
//! Invariants:
//! 1. Rows come out in memcmp order of their keys (`RowBuffer::sort`, `RunMerge::gather`).
//! 2. With `stable`, equal keys come out in the order they were pushed: rows stay in the arena, where a
//!    later row lies higher and position decides ties; between runs the older run wins (`arena`, `merge`).
//! 3. Buffers and runs in memory hold at most `memory_bytes_max` bytes beyond one row and one piece, and with an account no
//!    more than that grants, beyond [`UNASKED_BYTES`] (`ExternalSort::cut_run`).
//! 4. Every spilled block carries its length, ordinal and CRC-32C; a mismatch is `Damage`, never data (`spill`).
//!
//! Locks: none. Blocks on file I/O when it spills and while it merges. Failure: a full disk is `Io` with the device's
//! kind `Full`; the run file is removed when the sort is dropped, and temp folders are emptied when an instance starts.
//! It does not know types, collations or directions: keys are encoded so that memcmp is the order wanted.
//!
//! Further reading: Knuth, The Art of Computer Programming 3, section 5.4; Nyberg et al., "AlphaSort: A Cache-Sensitive
//! Parallel External Sort" (1995) for runs of the caches' size.

mod arena;
mod block;
mod fixed;
mod merge;
mod rows;
mod spill;

#[cfg(test)]
mod tests;

use crate::error::StorageError;
use crate::memory::{Clerk, Grant, MemoryAccount};
use rows::RowBuffer;
use spill::{FileReader, RunFile};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_device::Env;

pub use block::{PackedRun, RunBlock};
pub use merge::{RunMerge, RunReader, SortedRound};
pub use spill::RunDescriptor;

/// Bytes of words ordered at once: with the passes' other buffer they lie in a core's second-level cache.
const RUN_BYTES: usize = 512 << 10;
/// The same for rows of any lengths, of which the passes see sixteen bytes each.
const ARENA_RUN_BYTES: usize = 4 << 20;
/// Rows of a round of the merge, likewise.
const ROUND_BYTES: usize = 512 << 10;
/// Blocks of runs in memory: given back one by one as the merge goes on.
const MEMORY_BLOCK_BYTES: usize = 64 << 10;

/// Memory is taken from the account in such steps; the first is not worth asking for.
const STEP_BYTES: usize = 1 << 20;
/// What a sort has though the account be empty: less, and its runs would be many and short.
const UNASKED_BYTES: usize = 4 << 20;

/// How a sort behaves.
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// Most bytes of rows held in memory.
    pub memory_bytes_max: usize,
    /// Folder for the run file, made when first needed.
    pub temp_folder: PathBuf,
    /// Equal keys keep the order in which they were pushed; slower for short rows.
    pub stable: bool,
    /// So many last bytes of the keys come in order as the rows are pushed, where all rows have the same lengths: those
    /// bytes need no sorting. 0 where nothing is known.
    pub ordered_bytes: usize,
}

/// What a sort did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SortStatistics {
    /// Rows pushed.
    pub row_count: u64,
    /// Runs written to the file, intermediate merges included.
    pub spilled_run_count: u64,
    /// Bytes written to the file.
    pub spilled_bytes: u64,
    /// Key comparisons; radix passes make none.
    pub comparison_count: u64,
}

impl SortStatistics {
    fn add(&mut self, other: &Self) {
        self.row_count += other.row_count;
        self.spilled_run_count += other.spilled_run_count;
        self.spilled_bytes += other.spilled_bytes;
        self.comparison_count += other.comparison_count;
    }
}

/// A sort that is taking rows in.
pub struct ExternalSort {
    env: Env,
    options: SortOptions,
    buffer: RowBuffer,
    memory: Vec<VecDeque<RunBlock>>,
    memory_bytes: usize,
    grant: Option<Grant>,
    /// Bytes and rows of all runs that were cut.
    cut: (usize, usize),
    file: Option<RunFile>,
    runs: Vec<RunDescriptor>,
    statistics: SortStatistics,
}

impl ExternalSort {
    /// An empty sort.
    pub fn new(env: Env, options: SortOptions) -> Self {
        let buffer = RowBuffer::unshaped(options.stable, options.ordered_bytes);
        let statistics = SortStatistics::default();
        let (memory, runs) = (Vec::new(), Vec::new());
        Self { env, options, buffer, memory, memory_bytes: 0, grant: None, cut: (0, 0), file: None, runs, statistics }
    }

    /// Has the sort take its memory from `account`, and spill where that has none, though it be allowed more.
    pub fn accounted(mut self, account: Option<Arc<MemoryAccount>>) -> Self {
        self.grant = account.map(|account| Grant::new(account, Clerk::Query));
        self
    }

    /// Takes a row in.
    #[inline]
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), StorageError> {
        let bytes_max = u32::MAX as usize / 2;
        if key.len() > bytes_max || payload.len() > bytes_max {
            return Err(StorageError::TooLong { bytes: key.len().max(payload.len()), bytes_max });
        }
        self.buffer.push(key, payload);
        self.statistics.row_count += 1;
        if self.buffer.used_bytes() >= self.run_bytes() {
            self.cut_run()?;
        }
        Ok(())
    }

    /// Forgets the rows taken in, and keeps the memory of the buffer.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.memory.clear();
        self.memory_bytes = 0;
        (self.cut, self.statistics) = ((0, 0), SortStatistics::default());
        (self.file, self.runs) = (None, Vec::new());
    }

    /// Gives out the rows taken in, in order, in blocks as [`SortedRows::into_blocks`] does, and can be filled again: what many
    /// short sorts one after another would ask the system for again and again stays.
    ///
    /// # Errors
    /// Those of spilling and of reading back, if there was more than fits memory.
    pub fn take_blocks(&mut self, block_bytes: usize) -> Result<Vec<RunBlock>, StorageError> {
        if !(self.memory.is_empty() && self.file.is_none()) {
            let another = Self::new(self.env.clone(), self.options.clone());
            return std::mem::replace(self, another).finish()?.into_blocks(block_bytes);
        }
        let mut blocks = Vec::new();
        self.buffer.sort(&mut self.statistics.comparison_count);
        self.buffer.each_block(block_bytes, &mut |block| {
            blocks.push(block);
            Ok(())
        })?;
        self.clear();
        Ok(blocks)
    }

    /// Rows taken in so far.
    pub fn row_count(&self) -> u64 {
        self.statistics.row_count
    }

    /// Bytes of the buffer after which it becomes a run.
    #[inline]
    fn run_bytes(&self) -> usize {
        let most = if self.buffer.is_arena() { ARENA_RUN_BYTES } else { RUN_BYTES };
        most.min(self.options.memory_bytes_max / 8)
    }

    /// Makes a run of what is in the buffer; where memory is used up, one run of the file of all runs in memory.
    fn cut_run(&mut self) -> Result<(), StorageError> {
        self.buffer.sort(&mut self.statistics.comparison_count);
        let (mut run, mut bytes) = (VecDeque::new(), 0);
        self.buffer.each_block(MEMORY_BLOCK_BYTES, &mut |block| {
            bytes += block.memory_bytes();
            run.push_back(block);
            Ok(())
        })?;
        self.cut = (self.cut.0 + self.buffer.used_bytes(), self.cut.1 + self.buffer.len());
        self.memory.push(run);
        self.memory_bytes += bytes;
        self.buffer.clear();
        // The buffer fills up again, and the passes and rounds have a second one.
        let bytes = self.memory_bytes + 2 * self.run_bytes();
        if bytes > self.options.memory_bytes_max || !self.take_memory(bytes) {
            self.spill()?;
        }
        Ok(())
    }

    /// Has the account know of `bytes`; false if it cannot give them. What it gave is kept until the rows are gone.
    fn take_memory(&mut self, bytes: usize) -> bool {
        let Some(grant) = &mut self.grant else { return true };
        let wanted = if bytes <= STEP_BYTES { 0 } else { bytes.next_multiple_of(STEP_BYTES) as u64 };
        if wanted <= grant.bytes() || grant.try_resize(wanted) {
            return true;
        }
        if bytes <= UNASKED_BYTES {
            grant.resize(wanted);
        }
        bytes <= UNASKED_BYTES
    }

    fn spill(&mut self) -> Result<(), StorageError> {
        if self.file.is_none() {
            self.file = Some(RunFile::create(&self.env, &self.options)?);
        }
        let readers = std::mem::take(&mut self.memory).into_iter().map(Reader::Memory).collect();
        self.memory_bytes = 0;
        let run = self.write_run(readers)?;
        self.runs.push(run);
        Ok(())
    }

    /// Merges runs into one of the file.
    fn write_run(&mut self, readers: Vec<Reader>) -> Result<RunDescriptor, StorageError> {
        let mut merge = self.merge(readers)?;
        let file = self.file.as_mut().expect("whoever spills has made it");
        let (mut run, block_bytes) = (file.begin_run(), file.rows_bytes());
        while merge.next_blocks(block_bytes, &mut |block| file.write(&mut run, &block))? {}
        self.statistics.comparison_count += merge.comparison_count;
        self.statistics.spilled_run_count += 1;
        self.statistics.spilled_bytes += run.bytes;
        Ok(run)
    }

    fn merge(&self, readers: Vec<Reader>) -> Result<RunMerge<Reader>, StorageError> {
        let round_bytes = ROUND_BYTES.min(self.options.memory_bytes_max / 4);
        let row_bytes = (self.cut.0 / self.cut.1.max(1)).max(1);
        RunMerge::with_buffer(readers, None, round_bytes / row_bytes, self.buffer.another())
    }

    /// Ends the intake and orders what is left.
    pub fn finish(self) -> Result<SortedRows, StorageError> {
        Self::finish_together(vec![self])
    }

    /// Ends several sorts as if all rows had been pushed to one, those of the first first.
    pub fn finish_together(mut sorts: Vec<Self>) -> Result<SortedRows, StorageError> {
        if let [sort] = sorts.as_mut_slice()
            && sort.memory.is_empty()
            && sort.file.is_none()
        {
            sort.buffer.sort(&mut sort.statistics.comparison_count);
            let rows = std::mem::replace(&mut sort.buffer, RowBuffer::arena());
            let (source, _grants) = (Source::Memory { rows, at: 0 }, Vec::from_iter(sort.grant.take()));
            return Ok(SortedRows { source, statistics: sort.statistics, row: Vec::new(), _grants });
        }
        let (mut readers, mut statistics, mut cut) = (Vec::new(), SortStatistics::default(), (0, 0));
        for sort in &mut sorts {
            readers.extend(sort.finish_runs()?);
            statistics.add(&sort.statistics);
            cut = (cut.0 + sort.cut.0, cut.1 + sort.cut.1);
        }
        let first = sorts.first_mut().expect("somebody sorts");
        first.cut = cut;
        let merge = first.merge(readers)?;
        let _grants = sorts.iter_mut().filter_map(|sort| sort.grant.take()).collect();
        Ok(SortedRows { source: Source::Merge(Box::new(merge)), statistics, row: Vec::new(), _grants })
    }

    /// All runs, no more of them in the file than can be read at once.
    fn finish_runs(&mut self) -> Result<Vec<Reader>, StorageError> {
        if self.buffer.len() > 0 {
            self.cut_run()?;
        }
        let way_count_max = self.file.as_ref().map_or(usize::MAX, RunFile::way_count_max);
        while self.runs.len() > way_count_max {
            // Neighbours together and in order: equal keys leave in run order.
            let runs = std::mem::take(&mut self.runs);
            for group in runs.chunks(way_count_max) {
                let readers = self.file_readers(group.to_vec());
                let run = self.write_run(readers)?;
                self.runs.push(run);
            }
        }
        let runs = std::mem::take(&mut self.runs);
        let mut readers = self.file_readers(runs);
        readers.extend(std::mem::take(&mut self.memory).into_iter().map(Reader::Memory));
        Ok(readers)
    }

    fn file_readers(&self, runs: Vec<RunDescriptor>) -> Vec<Reader> {
        let Some(file) = &self.file else { return Vec::new() };
        runs.into_iter().map(|run| Reader::File(file.reader(run))).collect()
    }
}

/// Where a run's blocks come from.
enum Reader {
    Memory(VecDeque<RunBlock>),
    File(FileReader),
}

impl RunReader for Reader {
    fn next_block(&mut self) -> Result<Option<RunBlock>, StorageError> {
        match self {
            Self::Memory(blocks) => Ok(blocks.pop_front()),
            Self::File(reader) => reader.next_block(),
        }
    }
}

/// The rows in key order.
pub struct SortedRows {
    source: Source,
    statistics: SortStatistics,
    row: Vec<u8>,
    /// Kept as long as the rows.
    _grants: Vec<Grant>,
}

enum Source {
    Memory { rows: RowBuffer, at: usize },
    Merge(Box<RunMerge<Reader>>),
}

impl SortedRows {
    /// The next row's key and payload; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "a lending iterator cannot implement Iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        match &mut self.source {
            Source::Memory { rows, at } => {
                if *at >= rows.len() {
                    return Ok(None);
                }
                *at += 1;
                Ok(Some(rows.row(*at - 1, &mut self.row)))
            }
            Source::Merge(merge) => merge.next(),
        }
    }

    /// The next rows, about `rows` or all that are left, apart from the rest: who has them can go on while others take the
    /// next ones. None of them are there at the end. Not after [`Self::next`].
    pub fn take_batch(&mut self, rows: usize) -> Result<SortedBatch, StorageError> {
        let mut batch = SortedBatch::default();
        match &mut self.source {
            Source::Memory { rows, .. } => batch.rounds.push_back(std::mem::replace(rows, RowBuffer::arena())),
            Source::Merge(merge) => {
                let mut taken = 0;
                while taken < rows
                    && let Some(round) = merge.take_round()?
                {
                    taken += round.len();
                    batch.rounds.push_back(round);
                }
            }
        }
        Ok(batch)
    }

    /// The rows in blocks of at most `block_bytes` as they are stored, or of one row; none of which were taken by [`Self::next`] before.
    pub fn into_blocks(self, block_bytes: usize) -> Result<Vec<RunBlock>, StorageError> {
        let mut blocks = Vec::new();
        let mut keep = |block| {
            blocks.push(block);
            Ok(())
        };
        match self.source {
            Source::Memory { rows, .. } => rows.each_block(block_bytes, &mut keep)?,
            Source::Merge(mut merge) => while merge.next_blocks(block_bytes, &mut keep)? {},
        }
        Ok(blocks)
    }

    /// What was done so far.
    pub fn statistics(&self) -> SortStatistics {
        let mut statistics = self.statistics;
        if let Source::Merge(merge) = &self.source {
            statistics.comparison_count += merge.comparison_count;
        }
        statistics
    }
}

/// Some rows in key order.
#[derive(Default)]
pub struct SortedBatch {
    rounds: VecDeque<RowBuffer>,
    at: usize,
    row: Vec<u8>,
}

impl SortedBatch {
    /// Rows not taken yet.
    pub fn len(&self) -> usize {
        self.rounds.iter().map(RowBuffer::len).sum::<usize>() - self.at
    }

    /// Whether none are left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next row's key and payload; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "a lending iterator cannot implement Iterator")]
    #[inline]
    pub fn next(&mut self) -> Option<(&[u8], &[u8])> {
        while self.rounds.front().is_some_and(|round| self.at == round.len()) {
            self.rounds.pop_front();
            self.at = 0;
        }
        let round = self.rounds.front()?;
        self.at += 1;
        Some(round.row(self.at - 1, &mut self.row))
    }
}
