//! A chunk of the merge: the runs' entries behind the last one read, in order, become the target's next leaves.
//!
//! A chunk is a round of [`RunMerge`]: gathered and ordered while the chunk before is on its way, then appended. Where the
//! merge stands is the last entry in the target, so taking it up again is a seek in each run.
//!
//! In a unique index two entries with one own key are a duplicate only if both live: a row that a writer has deleted or
//! changed since its chunk was scanned has its entry's end in the side tree.

use super::runs::unusable;
use super::{CHUNK_BYTES, CHUNK_ROWS_MIN, Chunk, Entries, OnlineBuild};
use crate::index_build::BuildError;
use thawdb_storage::sort::RunMerge;
use thawdb_storage::{BulkAppend, Row, StorageError, Txn};

/// Bytes of an entry in a leaf beside its key and row, its slot included.
const ENTRY_BYTES: usize = 16;
/// Of an entry of which nothing is known yet: the first chunk after a start is none too long for any.
const ENTRY_BYTES_AT_FIRST: usize = 256;

impl OnlineBuild {
    /// Gathers the target's next entries from the runs.
    pub(super) fn read_runs(&mut self) -> Result<Chunk, BuildError> {
        let rows_max = self.merge_rows_max();
        let mut merge = match self.merge.take() {
            Some(merge) => merge,
            None => {
                let after = self.ahead.last_entry.as_deref();
                let readers = self.cache.readers(&self.database, self.job.runs, self.ahead.run_count, after)?;
                RunMerge::new(readers, after, rows_max, self.entries.ordered_bytes()).map_err(of_runs)?
            }
        };
        merge.set_round_rows_max(rows_max);
        let rows = merge.prepare_round().map_err(of_runs)?;
        self.merge = Some(merge);
        self.ahead.merged = rows == 0;
        self.rows_read += rows as u64;
        let entries = if rows == 0 { Entries::Nothing } else { Entries::Merged };
        Ok(Chunk { entries, progress: self.ahead.clone() })
    }

    /// Rows of the next chunk: as many as the bounds of chunks allow, and half of what the log has room for, so that a log
    /// that runs full costs one small chunk and not the rollback of a long one.
    fn merge_rows_max(&self) -> usize {
        let free_bytes = |log: &std::sync::Arc<thawdb_storage::log::Log>| {
            let space = log.space();
            space.size_bytes.saturating_sub(space.used_bytes + space.reserved_bytes)
        };
        let free_bytes = self.database.store().log().map_or(u64::MAX, free_bytes);
        let bytes_max = usize::try_from(free_bytes / 2).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let (bytes, rows) = self.merged_bytes;
        let entry_bytes = if rows == 0 { ENTRY_BYTES_AT_FIRST } else { bytes / rows + ENTRY_BYTES };
        (bytes_max / entry_bytes).max(CHUNK_ROWS_MIN).min(self.chunk_rows)
    }

    /// Appends the gathered entries to the target, and notes how far it is then.
    pub(super) fn append_entries(&mut self, append: &mut BulkAppend, txn: &mut Txn) -> Result<(), BuildError> {
        let mut merge = self.merge.take().expect("entries were gathered by it");
        let mut last = self.ahead.last_entry.take();
        let (mut rows, mut bytes) = (0, 0);
        while merge.rows_ready() > 0
            && let Some((key, row)) = merge.next()?
        {
            if self.job.index.unique {
                if self.is_passed_over(last.as_deref(), key)? {
                    continue;
                }
                let kept = last.get_or_insert_default();
                kept.clear();
                kept.extend_from_slice(key);
            }
            append.push(txn, key, Row::inline(row))?;
            rows += 1;
            bytes += key.len() + row.len();
        }
        self.merge = Some(merge);
        self.merged_bytes = (bytes, rows);
        self.ahead.last_entry = append.last_key().map(<[u8]>::to_vec).or(last);
        self.ahead.rows_appended += rows as u64;
        Ok(append.send_all(txn)?)
    }

    /// Whether an entry of a unique index is left out: its own key is that of the entry before, and it ended meanwhile.
    fn is_passed_over(&self, last: Option<&[u8]>, key: &[u8]) -> Result<bool, BuildError> {
        let Some(last) = last else { return Ok(false) };
        if self.own_part(last)? != self.own_part(key)? {
            return Ok(false);
        }
        let view = self.database.read_view(None);
        let is_gone = |entry: &[u8]| Ok::<_, StorageError>(view.get(self.job.side, entry)?.is_some_and(|word| word.value(0) == [0]));
        match (is_gone(key)?, is_gone(last)?) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err(self.duplicate(key)?),
        }
    }
}

/// A run that is no run is a state that cannot be taken up (10673).
fn of_runs(error: StorageError) -> BuildError {
    match error {
        StorageError::Bug(_) => unusable(),
        error => error.into(),
    }
}
