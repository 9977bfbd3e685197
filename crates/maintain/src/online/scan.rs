//! A chunk of the scan: rows behind the last one read become a sorted run.
//!
//! The scan stays open from chunk to chunk, so that what it has read ahead is used; what it sees is renewed with every
//! chunk, so that no version of a row is kept for it.

use super::runs::{BLOCK_BYTES, block_key};
use super::{CHUNK_BYTES, Chunk, Entries, OnlineBuild, RUNS_MAX, too_many_runs};
use crate::index_build::BuildError;
use crate::rows::DECODE_ROWS;
use std::ops::Bound;
use std::path::PathBuf;
use thawdb_catalog::sort_row::unpack;
use thawdb_storage::sort::{ExternalSort, RunBlock, SortOptions};
use thawdb_storage::{BulkAppend, KeyRange, ReadView, Row, Scan, ScanDirection, StorageError, Txn};
use thawdb_types::error::message;
use thawdb_types::row::INLINE_BYTES_MAX;

/// Rows that a leaf can have: a chunk ends before a leaf that might take it beyond its bound.
const LEAF_ROWS_MAX: usize = 1_024;

impl OnlineBuild {
    /// Reads rows behind the last one read, and orders their entries.
    pub(super) fn read_rows(&mut self) -> Result<Chunk, BuildError> {
        let view = self.database.read_view(None);
        let mut scan = self.scan(&view)?;
        // A chunk is bounded: the sort never spills.
        let options = SortOptions {
            memory_bytes_max: usize::MAX,
            temp_folder: PathBuf::new(),
            stable: false,
            ordered_bytes: self.entries.ordered_bytes(),
        };
        let mut sort = ExternalSort::new(self.database.store().env().clone(), options);
        let (mut rows, mut bytes) = (0, 0);
        while rows == 0 || rows + LEAF_ROWS_MAX <= self.chunk_rows && bytes < CHUNK_BYTES {
            let wanted = DECODE_ROWS.min(self.chunk_rows.saturating_sub(rows + LEAF_ROWS_MAX)).max(1);
            let found = self.batch.fill(&mut scan, wanted)?;
            let Some(last) = self.batch.blocks().last() else {
                self.ahead.merging = true;
                break;
            };
            self.ahead.scan_after = Some(last.whole_key(last.len() - 1));
            let mut push = |key: &[u8], packed: &[u8]| {
                bytes += key.len() + packed.len();
                Ok(sort.push(key, packed_row(packed)?)?)
            };
            self.entries.each(&self.table, self.batch.blocks(), &view, 0, &mut push)?;
            rows += found;
        }
        self.open_scan = Some(scan);
        let mut entries = Entries::Nothing;
        if rows > 0 {
            if self.ahead.run_count >= RUNS_MAX {
                return Err(too_many_runs().into());
            }
            entries = Entries::Run(self.ahead.run_count, sort.finish()?.into_blocks(BLOCK_BYTES)?);
            self.ahead.rows_scanned += rows as u64;
            self.ahead.run_count += 1;
            self.rows_read += rows as u64;
        }
        Ok(Chunk { entries, progress: self.ahead.clone() })
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
