//! A chunk of the scan: rows behind the last one read become a sorted run.

use super::{CHUNK_BYTES, Chunk, Entries, OnlineBuild, RUNS_MAX, too_many_runs};
use crate::index_build::BuildError;
use std::ops::Bound;
use std::path::PathBuf;
use thawdb_catalog::sort_row::unpack;
use thawdb_storage::page::PAGE_BYTES;
use thawdb_storage::sort::{ExternalSort, SortOptions, SortedRows};
use thawdb_storage::{BulkAppend, KeyRange, ReadView, Row, RowBlock, ScanDirection, Txn};
use thawdb_types::error::message;
use thawdb_types::row::INLINE_BYTES_MAX;

/// Rows that a leaf can have: a chunk ends before a leaf that might take it beyond its bound.
const LEAF_ROWS_MAX: usize = 1_024;

impl OnlineBuild {
    /// Reads rows behind the last one read, and orders their entries.
    pub(super) fn read_rows(&mut self) -> Result<Chunk, BuildError> {
        let view = self.database.read_view(None);
        let start = self.ahead.scan_after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut scan = view.scan(self.rows_tree, KeyRange { start, end: Bound::Unbounded }, ScanDirection::Forward)?;
        let (mut blocks, mut rows) = (Vec::new(), 0);
        let mut at_end = false;
        while rows == 0 || rows + LEAF_ROWS_MAX <= self.chunk_rows && blocks.len() < CHUNK_BYTES / PAGE_BYTES {
            let Some(block) = scan.next_block()? else {
                at_end = true;
                break;
            };
            rows += block.len();
            blocks.push(std::mem::take(block));
        }
        let mut entries = Entries::Nothing;
        if rows > 0 {
            entries = Entries::Run(self.ahead.run_count, self.ordered(&blocks, &view)?);
            let last: &RowBlock = blocks.last().expect("rows lie in blocks");
            self.ahead.scan_after = Some(last.key(last.len() - 1).to_vec());
            self.ahead.rows_scanned += rows as u64;
            self.ahead.run_count += 1;
            self.rows_read += rows as u64;
        }
        self.ahead.merging = at_end;
        Ok(Chunk { entries, progress: self.ahead.clone() })
    }

    fn ordered(&mut self, blocks: &[RowBlock], view: &ReadView) -> Result<SortedRows, BuildError> {
        if self.ahead.run_count >= RUNS_MAX {
            return Err(too_many_runs().into());
        }
        // A chunk is bounded: the sort never spills.
        let options = SortOptions { memory_bytes_max: usize::MAX, temp_folder: PathBuf::new(), stable: false, ordered_bytes: 0 };
        let mut sort = ExternalSort::new(self.database.store().env().clone(), options);
        let table = self.table.clone();
        self.entries.each(&table, blocks, view, 0, &mut |key, payload| Ok(sort.push(key, payload)?))?;
        Ok(sort.finish()?)
    }

    /// Appends ordered entries as a run.
    pub(super) fn append_run(&self, txn: &mut Txn, run: u32, mut sorted: SortedRows) -> Result<BulkAppend, BuildError> {
        let mut append = txn.begin_private_append(self.job.runs)?;
        append.force_pages();
        let mut key = run.to_be_bytes().to_vec();
        while let Some((entry, payload)) = sorted.next()? {
            key.truncate(4);
            key.extend_from_slice(entry);
            let mut inline: &[u8] = &[];
            if !payload.is_empty() {
                let (row, large) = unpack(payload)?;
                if !large.is_empty() {
                    let size = row.len() + large.iter().map(|part| part.len()).sum::<usize>();
                    return Err(message(10681, &[&size, &INLINE_BYTES_MAX]).into());
                }
                inline = row;
            }
            append.push(txn, &key, Row::inline(inline))?;
        }
        append.send_all(txn)?;
        Ok(append)
    }
}
