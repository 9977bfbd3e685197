//! A chunk of the merge: the runs' entries behind the last one read, in order, become the target's next leaves.
//!
//! A chunk is a part of a round of [`RunMerge`], the smaller the shorter the log is: gathered and ordered while the chunk
//! before is on its way, then appended. Where the merge stands is the last entry in the target, so taking it up again is a seek in
//! each run.
//!
//! In a unique index two entries with one own key are a duplicate only if both live: a row that a writer has deleted or
//! changed since its chunk was scanned has its entry's end in the side tree.

use super::runs::{Reader, of_runs};
use super::{CHUNK_ROWS_MIN, CHUNKS_AT_ONCE, Chunk, Entries, OnlineBuild, chunks_at_once, read_back, round_rows};
use crate::index_build::BuildError;
use thawdb_device::BackgroundWork;
use thawdb_storage::page_reads::{count_for_me, page_reads};
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

    /// A turn of two threads: one gathers the next round, the other lands the chunk before and appends this one.
    pub(super) fn merge_by_two(&mut self) -> Result<(), BuildError> {
        self.end_scan()?;
        let chunk = self.read_runs()?;
        let Entries::Merged(rows) = chunk.entries else {
            self.land()?;
            return self.send(chunk);
        };
        // A round is gathered ahead only once this one is used up: no more rows are under way than may be lost.
        let mut merge = if rows == self.rounds.ready() { self.merge.take() } else { None };
        let reads_back = self.reads_back();
        let (own, gathered) = std::thread::scope(|scope| {
            let helper = merge.as_mut().map(|merge| scope.spawn(move || (next_round(merge, reads_back), page_reads())));
            let own = self.land().and_then(|()| self.send(chunk));
            let gathered = helper.map(|helper| {
                let (round, reads) = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                count_for_me(&reads);
                round
            });
            (own, gathered.transpose())
        });
        // After an error in gathering there is no merge: the next one begins behind what is in the target.
        if let Some(round) = gathered.map_err(of_runs)? {
            self.add_round(round);
            self.merge = merge;
        }
        own
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

    /// Gathers a round; none at the runs' end.
    fn gather(&mut self) -> Result<(), BuildError> {
        let mut merge = match self.merge.take() {
            Some(merge) => merge,
            None => {
                let after = self.ahead.last_entry.as_deref();
                let readers = self.cache.readers(&self.database, self.job.runs, self.ahead.run_count, after)?;
                RunMerge::new(readers, after, round_rows(&self.options), self.ordered_bytes).map_err(of_runs)?
            }
        };
        // An error leaves no merge: the next one begins behind what is in the target.
        let round = next_round(&mut merge, self.reads_back()).map_err(of_runs)?;
        self.add_round(round);
        self.merge = Some(merge);
        Ok(())
    }

    /// Rows of the next chunk: as many as the bounds of chunks allow, and as many as the log has room for, going by what it
    /// took for the chunks before, so that a log that runs full costs a small chunk and not the rollback of a long one.
    fn merge_rows_max(&self) -> usize {
        // Of a small log, parts are left over at the ends of its VLFs.
        let free_bytes = self.free_log_bytes().saturating_sub(CHUNK_LOG_BYTES);
        let usable = if free_bytes < SMALL_LOG_BYTES { free_bytes / 2 } else { free_bytes / 4 * 3 };
        let rows = usable / self.row_log_bytes();
        // Beside a round, two chunks are under way, or with two threads three: a quarter or a sixth of what may be lost.
        let share = if chunks_at_once(&self.database, &self.options) > CHUNKS_AT_ONCE { (2, 3) } else { (3, 4) };
        let most = (self.chunk_rows * share.0 / share.1).max(1);
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

/// Gathers a round; `reads_back` tells how runs are read on, where there are any that are not in memory.
fn next_round(merge: &mut RunMerge<Reader>, reads_back: Option<BackgroundWork>) -> Result<Option<SortedRound>, StorageError> {
    if let Some(background) = reads_back {
        read_back::refill(merge, background)?;
    }
    merge.next_round()
}
