//! A chunk of the scan: rows behind the last one read become a sorted run.

use super::{CHUNK_ROWS, OnlineBuild, RUNS_MAX, too_many_runs};
use crate::index_build::BuildError;
use std::ops::Bound;
use std::path::PathBuf;
use thawdb_catalog::sort_row::unpack;
use thawdb_storage::sort::{ExternalSort, SortOptions};
use thawdb_storage::{KeyRange, Row, RowBlock, ScanDirection};
use thawdb_types::error::message;
use thawdb_types::row::INLINE_BYTES_MAX;

/// Rows that a leaf can have: a chunk ends before a leaf that might take it beyond its bound.
const LEAF_ROWS_MAX: usize = 1_024;

impl OnlineBuild {
    pub(super) fn scan_chunk(&mut self) -> Result<(), BuildError> {
        let view = self.database.read_view(None);
        let start = self.job.progress.scan_after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut scan = view.scan(self.rows_tree, KeyRange { start, end: Bound::Unbounded }, ScanDirection::Forward)?;
        let (mut blocks, mut rows) = (Vec::new(), 0);
        let mut at_end = false;
        let rows_max = self.chunk_rows.clamp(1, CHUNK_ROWS);
        while rows == 0 || rows + LEAF_ROWS_MAX <= rows_max {
            let Some(block) = scan.next_block()? else {
                at_end = true;
                break;
            };
            rows += block.len();
            blocks.push(std::mem::take(block));
        }
        let mut txn = self.begin_chunk();
        if rows > 0 {
            self.write_run(&mut txn, &blocks, &view)?;
            let last: &RowBlock = blocks.last().expect("rows lie in blocks");
            self.job.progress.scan_after = Some(last.key(last.len() - 1).to_vec());
            self.job.progress.rows_scanned += rows as u64;
        }
        self.job.progress.merging = at_end;
        self.commit(txn)
    }

    /// Sorts the entries of `blocks` and appends them as the next run.
    fn write_run(&mut self, txn: &mut thawdb_storage::Txn, blocks: &[RowBlock], view: &thawdb_storage::ReadView) -> Result<(), BuildError> {
        let run = self.job.progress.run_count;
        if run >= RUNS_MAX {
            return Err(too_many_runs().into());
        }
        // A chunk is bounded by its rows: the sort never spills.
        let options = SortOptions { memory_bytes_max: usize::MAX, temp_folder: PathBuf::new(), stable: false };
        let mut sort = ExternalSort::new(self.database.store().env().clone(), options);
        let table = self.table.clone();
        self.entries.each(&table, blocks, view, 0, &mut |key, payload| Ok(sort.push(key, payload)?))?;
        let mut sorted = sort.finish()?;
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
        append.finish(txn)?;
        self.job.progress.run_count += 1;
        Ok(())
    }
}
