//! A chunk of the merge: the runs' entries behind the last one read, in order, become the target's next leaves.
//!
//! A chunk is a part of a round of [`RunMerge`], the smaller the shorter the log is: gathered and ordered while the chunk
//! before is on its way, then appended. Where the merge stands is the last entry in the target, so taking it up again is a seek in
//! each run.
//!
//! In a unique index two entries with one own key are a duplicate only if both live: a row that a writer has deleted or
//! changed since its chunk was scanned has its entry's end in the side tree.

use super::runs::{Reader, of_runs};
use super::{CHUNK_ROWS_MIN, Chunk, Entries, OnlineBuild, read_back};
use crate::index_build::BuildError;
use thawdb_device::BackgroundWork;
use thawdb_storage::sort::{RunMerge, SortedRound};
use thawdb_storage::{BulkAppend, Row, StorageError, Txn};

/// Bytes of an entry in a leaf beside its key and row, its slot included.
const ENTRY_BYTES: u64 = 16;
/// Log of an entry of which nothing is known yet: the first chunk after a start is none too long for any.
const ENTRY_BYTES_AT_FIRST: u64 = 256;
/// Log that a chunk takes beside its leaves: their separators, the job's record, what could be needed to cut it off.
const CHUNK_LOG_BYTES: u64 = 64 << 10;
const SMALL_LOG_BYTES: u64 = 1 << 20;
/// What the least chunk takes of the log at most, unless its rows are long.
const EXTENT_BYTES: u64 = 64 << 10;
const CHUNK_ROWS_LEAST: usize = 32;

impl OnlineBuild {
    /// Gathers the target's next entries from the runs.
    pub(super) fn read_runs(&mut self) -> Result<Chunk, BuildError> {
        let rows_max = self.merge_rows_max();
        if self.rounds.ready() == 0 && !self.ahead.merged {
            self.gather()?;
        }
        let rows = self.rounds.ready();
        let rows = rows.min(rows_max);
        self.tried_rows = rows.max(1);
        self.ahead.merged = rows == 0;
        let entries = if rows == 0 { Entries::Nothing } else { Entries::Merged(rows) };
        Ok(Chunk { entries, progress: self.ahead.clone() })
    }

    fn add_round(&mut self, round: Option<SortedRound>) {
        if let Some(round) = round {
            self.rows_read += round.len() as u64;
            self.rounds.add(round);
        }
    }

    fn reads_back(&self) -> Option<BackgroundWork> {
        (!self.cache.has_all(self.ahead.run_count)).then(|| self.database.store().env().background)
    }

    /// Gathers a round; none at the runs' end. A helper then begins with the next.
    fn gather(&mut self) -> Result<(), BuildError> {
        let Gathered { merge, round } = match self.gathering.take() {
            Some(gathering) => gathering.wait(),
            None => {
                let merge = match self.merge.take() {
                    Some(merge) => merge,
                    None => self.begin_merge()?,
                };
                next_round(merge, self.reads_back())
            }
        };
        // An error leaves no merge: the next one begins behind what is in the target.
        let round = round.map_err(of_runs)?;
        let mut merge = merge;
        if let Some(over) = self.rounds.take_over() {
            merge.take_back(over);
        }
        let goes_on = round.is_some();
        self.add_round(round);
        match &self.helper {
            Some(helper) if goes_on => {
                let reads_back = self.reads_back();
                self.gathering = Some(helper.begin(move || next_round(merge, reads_back)));
            }
            _ => self.merge = Some(merge),
        }
        Ok(())
    }

    fn begin_merge(&mut self) -> Result<RunMerge<Reader>, BuildError> {
        let after = self.ahead.last_entry.as_deref();
        let readers = self.cache.readers(&self.database, self.job.runs, self.ahead.run_count, after)?;
        RunMerge::new(readers, after, self.pace.round_rows, self.ordered_bytes).map_err(of_runs)
    }

    /// Takes over what a helper is gathering.
    pub(super) fn end_gathering(&mut self) {
        let Some(gathering) = self.gathering.take() else { return };
        let Gathered { merge, round } = gathering.wait();
        // After an error, as in `gather`: it comes again, if it is there to stay.
        if let Ok(round) = round {
            self.add_round(round);
            self.merge = Some(merge);
        }
    }

    /// Rows of the next chunk: as many as the bounds of chunks allow, and as many as the log has room for, going by what it
    /// took for the chunks before, so that a log that runs full costs a small chunk and not the rollback of a long one.
    fn merge_rows_max(&self) -> usize {
        // Of a small log, parts are left over at the ends of its VLFs.
        let free_bytes = self.free_log_bytes().saturating_sub(CHUNK_LOG_BYTES);
        let usable = if free_bytes < SMALL_LOG_BYTES { free_bytes / 2 } else { free_bytes / 4 * 3 };
        let rows = usable / self.row_log_bytes();
        let most = (self.pace.merge_rows * self.chunk_rows / self.pace.chunk_rows).max(1);
        usize::try_from(rows).unwrap_or(usize::MAX).max(self.chunk_rows_min()).min(most)
    }

    /// Log that a row of the merge takes, as far as is known.
    fn row_log_bytes(&self) -> u64 {
        match self.logged {
            (_, 0) => ENTRY_BYTES_AT_FIRST,
            (bytes, rows) => (bytes / rows).max(1),
        }
    }

    /// A chunk is not cut smaller: an extent's worth of rows.
    pub(super) fn chunk_rows_min(&self) -> usize {
        let rows = usize::try_from(EXTENT_BYTES / self.row_log_bytes()).unwrap_or(usize::MAX);
        rows.clamp(CHUNK_ROWS_LEAST, CHUNK_ROWS_MIN)
    }

    /// Whether there may be room for a small chunk where there was none for a larger one.
    pub(super) fn may_fit(&self) -> bool {
        !self.ahead.merging || self.free_log_bytes() > CHUNK_LOG_BYTES + self.row_log_bytes() * self.chunk_rows_min() as u64
    }

    /// Whether the log has little room for a chunk and what comes after it.
    pub(super) fn is_log_short(&self) -> bool {
        self.free_log_bytes() < SMALL_LOG_BYTES + CHUNK_LOG_BYTES
    }

    /// Bytes that the log has room for now.
    pub(super) fn free_log_bytes(&self) -> u64 {
        let Some(log) = self.database.store().log() else { return u64::MAX };
        let space = log.space();
        space.size_bytes.saturating_sub(space.used_bytes + space.reserved_bytes)
    }

    /// Appends `count` of the gathered entries to the target, and notes how far it is then.
    pub(super) fn append_entries(&mut self, append: &mut BulkAppend, txn: &mut Txn, count: usize) -> Result<(), BuildError> {
        let mut last = self.ahead.last_entry.take();
        let logged_before = append.logged_bytes();
        let (mut pushed_rows, mut pushed_bytes) = (0, 0);
        let mut rounds = std::mem::take(&mut self.rounds);
        let outcome = (|| {
            for _ in 0..count {
                let (key, row) = rounds.take();
                if self.job.index.unique {
                    if self.is_passed_over(last.as_deref(), key)? {
                        continue;
                    }
                    let kept = last.get_or_insert_default();
                    kept.clear();
                    kept.extend_from_slice(key);
                }
                append.push(txn, key, Row::inline(row))?;
                self.ahead.rows_appended += 1;
                pushed_rows += 1;
                pushed_bytes += (key.len() + row.len()) as u64 + ENTRY_BYTES;
            }
            Ok(append.send_all(txn)?)
        })();
        // Where the log had no room, what it would have taken is known to be no more than the entries themselves.
        let logged = append.logged_bytes() - logged_before;
        self.logged.0 += if outcome.is_ok() { logged } else { logged.max(pushed_bytes) };
        self.logged.1 += pushed_rows;
        self.rounds = rounds;
        self.ahead.last_entry = append.last_key().map(<[u8]>::to_vec).or(last);
        outcome
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

/// A merge and the round it gathered.
pub(super) struct Gathered {
    merge: RunMerge<Reader>,
    /// None at the runs' end.
    round: Result<Option<SortedRound>, StorageError>,
}

/// Gathers a round; `reads_back` tells how runs are read on, where there are any that are not in memory.
fn next_round(mut merge: RunMerge<Reader>, reads_back: Option<BackgroundWork>) -> Gathered {
    let read_on = reads_back.map_or(Ok(()), |background| read_back::refill(&mut merge, background));
    let round = read_on.and_then(|()| merge.next_round());
    Gathered { merge, round }
}
