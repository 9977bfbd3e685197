//! The external sort: orders byte strings (key, payload) by key within a memory bound, spilling sorted runs to a file.
//!
//! ```text
//!   push ──> RowBuffer (memory_bytes_max) ──sort──> run 0 ┐
//!                    "                    ──sort──> run 1 ├─> loser tree ──> SortedRows::next
//!                    "                    ──sort──> (stays in memory)     ┘
//! ```
//! Rows of one fixed small width are kept as big-endian words and ordered by radix; all others lie in an arena and
//! are ordered by an eight-byte key prefix taken behind the prefix that all keys share, ties by the rest of the key.
//!
//! Invariants:
//! 1. Rows come out in memcmp order of their keys (`RowBuffer::sort`, `Merge::advance`).
//! 2. With `stable`, equal keys come out in the order they were pushed: rows stay in the arena, where a
//!    later row lies higher and position decides ties; between runs the older run wins (`arena`, `merge`).
//! 3. The buffer never holds more than `memory_bytes_max` bytes beyond one row, nor, with an account, more than that grants
//!    beyond the first [`STEP_BYTES`] (`ExternalSort::push`, `make_room`).
//! 4. Every spilled block carries its length, ordinal and CRC-32C; a mismatch is `Damage`, never data (`spill`).
//!
//! Locks: none. Blocks on file I/O when it spills and while it merges. Failure: a full disk is `Io` with the device's
//! kind `Full`; the run file is removed when the sort is dropped, and temp folders are emptied when an instance starts.
//! It does not know types, collations or directions: keys are encoded so that memcmp is the order wanted.
//!
//! Further reading: Knuth, The Art of Computer Programming 3, section 5.4.1 (loser trees); McIlroy, Bostic, McIlroy,
//! "Engineering Radix Sort" (1993) for the in-place permutation.

mod arena;
mod fixed;
mod merge;
mod rows;
mod spill;

#[cfg(test)]
mod tests;

use crate::error::StorageError;
use crate::memory::{Clerk, Grant, MemoryAccount};
use merge::Merge;
use rows::RowBuffer;
use spill::RunFile;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_device::Env;

pub use spill::RunDescriptor;

/// Memory is asked for in such steps, or in eighths of what is allowed; the first is not asked for.
const STEP_BYTES: usize = 1 << 20;

/// How a sort behaves.
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// Most bytes of rows held in memory.
    pub memory_bytes_max: usize,
    /// Folder for the run file, made when first needed.
    pub temp_folder: PathBuf,
    /// Equal keys keep the order in which they were pushed; slower for short rows.
    pub stable: bool,
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

/// A sort that is taking rows in.
pub struct ExternalSort {
    env: Env,
    options: SortOptions,
    buffer: RowBuffer,
    /// What the buffer may hold before more is asked for or it is spilled.
    room: usize,
    grant: Option<Grant>,
    file: Option<RunFile>,
    runs: Vec<RunDescriptor>,
    statistics: SortStatistics,
}

impl ExternalSort {
    /// An empty sort.
    pub fn new(env: Env, options: SortOptions) -> Self {
        let buffer = if options.stable { RowBuffer::arena() } else { RowBuffer::Empty };
        let room = options.memory_bytes_max;
        Self { env, options, buffer, room, grant: None, file: None, runs: Vec::new(), statistics: SortStatistics::default() }
    }

    /// Has the sort take its memory from `account`, and spill where that has none, though it be allowed more.
    pub fn accounted(mut self, account: Option<Arc<MemoryAccount>>) -> Self {
        self.grant = account.map(|account| Grant::new(account, Clerk::Query));
        if self.grant.is_some() {
            self.room = self.options.memory_bytes_max.min(STEP_BYTES);
        }
        self
    }

    /// Takes a row in.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), StorageError> {
        let bytes_max = u32::MAX as usize / 2;
        if key.len() > bytes_max || payload.len() > bytes_max {
            return Err(StorageError::TooLong { bytes: key.len().max(payload.len()), bytes_max });
        }
        self.buffer.push(key, payload);
        self.statistics.row_count += 1;
        if self.buffer.used_bytes() >= self.room {
            return self.make_room();
        }
        Ok(())
    }

    /// The buffer is as full as it may be: gets it more memory, or empties it.
    #[cold]
    fn make_room(&mut self) -> Result<(), StorageError> {
        let bytes_max = self.options.memory_bytes_max;
        if let Some(grant) = self.grant.as_mut().filter(|_| self.room < bytes_max && self.file.is_none()) {
            let more = (self.room + STEP_BYTES.max(bytes_max / 8)).min(bytes_max);
            if grant.try_resize(more as u64) {
                self.room = more;
                return Ok(());
            }
        }
        // Runs of the first one's size: blocks and the number of runs merged at once follow from it.
        self.options.memory_bytes_max = self.room;
        self.spill()
    }

    /// Rows taken in so far.
    pub fn row_count(&self) -> u64 {
        self.statistics.row_count
    }

    fn spill(&mut self) -> Result<(), StorageError> {
        self.buffer.sort(&mut self.statistics.comparison_count);
        if self.file.is_none() {
            self.file = Some(RunFile::create(&self.env, &self.options)?);
        }
        let file = self.file.as_mut().expect("made above");
        let mut writer = file.begin_run(self.buffer.row_shape());
        self.buffer.for_each(&mut |key, payload| writer.push(file, key, payload))?;
        let run = writer.finish(file)?;
        self.statistics.spilled_run_count += 1;
        self.statistics.spilled_bytes += run.bytes;
        self.runs.push(run);
        self.buffer.clear();
        Ok(())
    }

    /// Ends the intake and orders what is left.
    pub fn finish(mut self) -> Result<SortedRows, StorageError> {
        self.buffer.sort(&mut self.statistics.comparison_count);
        let Some(mut file) = self.file else {
            let source = Source::Memory { rows: self.buffer, at: 0 };
            return Ok(SortedRows { source, statistics: self.statistics, row: Vec::new(), _grant: self.grant });
        };
        let way_count_max = file.way_count_max();
        while self.runs.len() + 1 > way_count_max {
            let taken: Vec<RunDescriptor> = self.runs.drain(..way_count_max).collect();
            let mut merge = Merge::new(&file, &taken, RowBuffer::Empty)?;
            let mut writer = file.begin_run(None);
            while merge.advance(&file)? {
                let (key, payload) = merge.row();
                writer.push(&mut file, key, payload)?;
            }
            let run = writer.finish(&mut file)?;
            self.statistics.comparison_count += merge.comparison_count;
            self.statistics.spilled_run_count += 1;
            self.statistics.spilled_bytes += run.bytes;
            // In front: it holds the oldest rows, and equal keys leave in run order.
            self.runs.insert(0, run);
        }
        if let Some(grant) = &mut self.grant {
            grant.resize((self.buffer.used_bytes() + file.merge_bytes(self.runs.len())) as u64);
        }
        let merge = Merge::new(&file, &self.runs, self.buffer)?;
        let source = Source::Merge { file, merge: Box::new(merge) };
        Ok(SortedRows { source, statistics: self.statistics, row: Vec::new(), _grant: self.grant })
    }
}

/// The rows in key order.
pub struct SortedRows {
    source: Source,
    statistics: SortStatistics,
    row: Vec<u8>,
    /// Kept as long as the rows.
    _grant: Option<Grant>,
}

enum Source {
    Memory { rows: RowBuffer, at: usize },
    Merge { file: RunFile, merge: Box<Merge> },
}

impl SortedRows {
    /// The next row's key and payload; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "a lending iterator cannot implement Iterator")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        match &mut self.source {
            Source::Memory { rows, at } => {
                if *at >= rows.len() {
                    return Ok(None);
                }
                *at += 1;
                Ok(Some(rows.row(*at - 1, &mut self.row)))
            }
            Source::Merge { file, merge } => {
                if !merge.advance(file)? {
                    return Ok(None);
                }
                Ok(Some(merge.row()))
            }
        }
    }

    /// What was done so far.
    pub fn statistics(&self) -> SortStatistics {
        let mut statistics = self.statistics;
        if let Source::Merge { merge, .. } = &self.source {
            statistics.comparison_count += merge.comparison_count;
        }
        statistics
    }
}
