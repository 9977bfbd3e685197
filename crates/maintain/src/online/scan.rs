//! A chunk of the scan: rows behind the last one read become a sorted run.
//!
//! The scan stays open from chunk to chunk, so that what it has read ahead is used; what it sees is renewed with every
//! chunk, so that no version of a row is kept for it.

use super::helper::Pending;
use super::runs::{BLOCK_BYTES, block_key};
use super::{CHUNK_BYTES, Chunk, Entries, OnlineBuild, RUNS_MAX, too_many_runs};
use crate::entries::EntryMaker;
use crate::index_build::BuildError;
use crate::rows::{DECODE_ROWS, RowBatch};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_catalog::sort_row::unpack;
use thawdb_catalog::{JobProgress, TableDef};
use thawdb_device::Env;
use thawdb_storage::sort::{ExternalSort, RunBlock, SortOptions};
use thawdb_storage::{BulkAppend, KeyRange, ReadView, Row, RowBlock, Scan, ScanDirection, StorageError, Txn};
use thawdb_types::error::message;
use thawdb_types::row::INLINE_BYTES_MAX;

/// Rows that a leaf can have: a chunk ends before a leaf that might take it beyond its bound.
const LEAF_ROWS_MAX: usize = 1_024;
const LEAF_BYTES: usize = 8 << 10;

/// Leaves whose rows are decoded together where many were read: their columns stay in the second-level cache.
const DECODE_LEAVES: usize = 24;

/// Rows of a chunk whose entries are not made yet.
pub(super) struct Filled {
    batch: RowBatch,
    view: ReadView,
    rows: usize,
    progress: JobProgress,
}

/// Makes runs of rows, one after another.
pub(super) struct RunMaker {
    entries: EntryMaker,
    sort: ExternalSort,
}

impl RunMaker {
    pub(super) fn new(env: &Env, entries: EntryMaker) -> Self {
        // A chunk is bounded: its sort never spills.
        let options = SortOptions {
            memory_bytes_max: usize::MAX,
            temp_folder: PathBuf::new(),
            stable: false,
            ordered_bytes: entries.ordered_bytes(),
        };
        Self { entries, sort: ExternalSort::new(env.clone(), options) }
    }

    pub(super) fn ordered_bytes(&self) -> usize {
        self.entries.ordered_bytes()
    }

    /// Begins a run; an attempt that failed may have left rows.
    fn begin(&mut self) {
        self.sort.clear();
    }

    /// Takes the entries of rows; tells their bytes.
    fn add(&mut self, table: &Arc<TableDef>, leaves: &[RowBlock], view: &ReadView) -> Result<usize, BuildError> {
        let Self { entries, sort } = self;
        let mut bytes = 0;
        entries.each(table, leaves, view, 0, &mut |key, packed| {
            bytes += key.len() + packed.len();
            Ok(sort.push(key, packed_row(packed)?)?)
        })?;
        Ok(bytes)
    }

    /// The run.
    fn end(&mut self) -> Result<Vec<RunBlock>, StorageError> {
        self.sort.take_blocks(BLOCK_BYTES)
    }
}

impl OnlineBuild {
    /// Whether nothing is left to be read from the table.
    pub(super) fn is_scanned(&self) -> bool {
        self.ahead.merging && self.filled.is_none() && self.made.is_none()
    }

    /// Reads rows behind the last one read, and orders their entries.
    pub(super) fn read_rows(&mut self) -> Result<Chunk, BuildError> {
        let view = self.database.read_view(None);
        let mut scan = self.scan(&view)?;
        let mut maker = self.maker.take().expect("it is back when a step ends");
        maker.begin();
        let (mut rows, mut bytes) = (0, 0);
        let read = (|| {
            while rows == 0 || rows + LEAF_ROWS_MAX <= self.chunk_rows && bytes < CHUNK_BYTES {
                let wanted = DECODE_ROWS.min(self.chunk_rows.saturating_sub(rows + LEAF_ROWS_MAX)).max(1);
                let found = self.batch.fill(&mut scan, wanted)?;
                let Some(last) = self.batch.blocks().last() else {
                    self.ahead.merging = true;
                    break;
                };
                self.ahead.scan_after = Some(last.whole_key(last.len() - 1));
                bytes += maker.add(&self.table, self.batch.blocks(), &view)?;
                rows += found;
            }
            Ok::<_, BuildError>(maker.end()?)
        })();
        self.maker = Some(maker);
        let blocks = read?;
        self.open_scan = Some(scan);
        if rows == 0 {
            return Ok(Chunk { entries: Entries::Nothing, progress: self.ahead.clone() });
        }
        let run = self.note_rows(rows)?;
        Ok(Chunk { entries: Entries::Run(run, blocks), progress: self.ahead.clone() })
    }

    /// Counts rows that were read; the number of their run.
    fn note_rows(&mut self, rows: usize) -> Result<u32, BuildError> {
        if self.ahead.run_count >= RUNS_MAX {
            return Err(too_many_runs().into());
        }
        self.ahead.rows_scanned += rows as u64;
        self.ahead.run_count += 1;
        self.rows_read += rows as u64;
        Ok(self.ahead.run_count - 1)
    }

    /// A turn of two threads: the helper makes and orders the entries of what was read, the caller lands and sends what was made
    /// before, and reads on.
    pub(super) fn scan_by_two(&mut self) -> Result<(), BuildError> {
        let made_before = self.made.take();
        let making = self.filled.take().map(|filled| {
            let mut maker = self.maker.take().expect("it is back when a step ends");
            let table = self.table.clone();
            let helper = self.helper.as_ref().expect("two threads are a caller and a helper");
            helper.begin(move || (made_of(&mut maker, &table, filled), maker))
        });
        let own = self.send_and_fill(made_before);
        if let Some((made, maker)) = making.map(Pending::wait) {
            self.maker = Some(maker);
            own?;
            let (made, batch) = made?;
            (self.made, self.spare_batch) = (Some(made), Some(batch));
        } else {
            own?;
        }
        if self.is_scanned() {
            // That the scan is over is written down before the merge begins.
            self.send(Chunk { entries: Entries::Nothing, progress: self.ahead.clone() })?;
        }
        Ok(())
    }

    /// Sends what was read and not sent, and reads no more.
    pub(super) fn send_what_was_read(&mut self) -> Result<(), BuildError> {
        if let Some(made) = self.made.take() {
            self.send(made)?;
        }
        if let Some(filled) = self.filled.take() {
            let maker = self.maker.as_mut().expect("it is back when a step ends");
            let (made, _) = made_of(maker, &self.table, filled)?;
            self.send(made)?;
        }
        Ok(())
    }

    fn send_and_fill(&mut self, made: Option<Chunk>) -> Result<(), BuildError> {
        if let Some(made) = made {
            self.send(made)?;
        }
        if !self.ahead.merging {
            self.filled = self.fill()?;
        }
        Ok(())
    }

    /// Copies the next chunk's leaves; none at the table's end.
    fn fill(&mut self) -> Result<Option<Filled>, BuildError> {
        let view = self.database.read_view(None);
        let mut scan = self.scan(&view)?;
        let mut batch = self.spare_batch.take().unwrap_or_default();
        let wanted = self.chunk_rows.saturating_sub(LEAF_ROWS_MAX).max(1);
        let rows = batch.fill_bounded(&mut scan, wanted, CHUNK_BYTES / LEAF_BYTES)?;
        self.open_scan = Some(scan);
        let Some(last) = batch.blocks().last() else {
            self.ahead.merging = true;
            return Ok(None);
        };
        self.ahead.scan_after = Some(last.whole_key(last.len() - 1));
        self.note_rows(rows)?;
        Ok(Some(Filled { batch, view, rows, progress: self.ahead.clone() }))
    }

    /// The scan behind the last row read.
    fn scan(&mut self, view: &ReadView) -> Result<Scan, StorageError> {
        if let Some(mut scan) = self.open_scan.take() {
            scan.renew(view.clone());
            return Ok(scan);
        }
        let start = self.ahead.scan_after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        view.scan(self.rows_tree, KeyRange { start, end: Bound::Unbounded }, ScanDirection::Forward)
    }
}

/// Makes and orders the entries of rows that were read.
fn made_of(maker: &mut RunMaker, table: &Arc<TableDef>, filled: Filled) -> Result<(Chunk, RowBatch), BuildError> {
    let Filled { batch, view, rows, progress } = filled;
    assert!(rows > 0 && progress.run_count > 0, "what was filled has rows and a number");
    maker.begin();
    for leaves in batch.blocks().chunks(DECODE_LEAVES) {
        maker.add(table, leaves, &view)?;
    }
    Ok((Chunk { entries: Entries::Run(progress.run_count - 1, maker.end()?), progress }, batch))
}

/// Appends ordered entries as a run.
pub(super) fn append_run(append: &mut BulkAppend, txn: &mut Txn, run: u32, blocks: &[RunBlock]) -> Result<(), BuildError> {
    let mut stored = Vec::with_capacity(BLOCK_BYTES);
    for (number, block) in (0..).zip(blocks) {
        stored.clear();
        block.encode(&mut stored);
        if stored.len() > BLOCK_BYTES {
            // One row that is too wide for a leaf of the runs: what goes beside it is more than the index needs.
            return Err(message(10681, &[&stored.len(), &BLOCK_BYTES.min(INLINE_BYTES_MAX)]).into());
        }
        append.push(txn, &block_key(run, block, number), Row::inline(&stored))?;
    }
    Ok(append.send_all(txn)?)
}

/// A row's bytes in the index, from those that a sort takes.
fn packed_row(packed: &[u8]) -> Result<&[u8], BuildError> {
    if packed.is_empty() {
        return Ok(packed);
    }
    let (row, large) = unpack(packed)?;
    if large.is_empty() {
        return Ok(row);
    }
    let size = row.len() + large.iter().map(|part| part.len()).sum::<usize>();
    Err(message(10681, &[&size, &INLINE_BYTES_MAX]).into())
}
