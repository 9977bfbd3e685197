//! A chunk of the merge: the runs' entries behind the last one read, in order, become the target's next leaves.
//!
//! The runs are read by a tree of losers over one scan each. Where the merge stands is the last entry in the target, so
//! taking it up again is a seek in each run. Entries are gathered in memory before the target is touched: it has the chunk
//! before on its way meanwhile.
//!
//! In a unique index two entries with one own key are a duplicate only if both live: a row that a writer has deleted or
//! changed since its chunk was scanned has its entry's end in the side tree.

use super::{CHUNK_BYTES, CHUNK_ROWS_MIN, Chunk, Entries, OnlineBuild};
use crate::index_build::BuildError;
use std::cmp::Ordering;
use std::ops::Bound;
use thawdb_storage::{BulkAppend, Database, KeyRange, Row, RowBlock, Scan, ScanDirection, StorageError, TreeId, Txn};

/// Bytes of a run's number before its entries.
const RUN_BYTES: usize = 4;

struct Source {
    scan: Scan,
    block: RowBlock,
    at: usize,
    live: bool,
}

impl Source {
    fn key(&self) -> &[u8] {
        &self.block.key(self.at)[RUN_BYTES..]
    }

    /// Goes to the next leaf behind the end of one. The first bytes of the present key, as a number; of a source at its end,
    /// the largest.
    fn settle(&mut self) -> Result<u128, StorageError> {
        while self.at >= self.block.len() {
            match self.scan.next_block()? {
                Some(block) => std::mem::swap(&mut self.block, block),
                None => {
                    self.live = false;
                    return Ok(u128::MAX);
                }
            }
            self.at = 0;
        }
        let key = &self.block.key(self.at)[RUN_BYTES..];
        let mut head = [0; 16];
        let bytes = key.len().min(16);
        head[..bytes].copy_from_slice(&key[..bytes]);
        Ok(u128::from_be_bytes(head))
    }
}

/// Bytes of an entry in a leaf beside its key and row, its slot included.
const ENTRY_BYTES: usize = 16;

/// A merge under way.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// First bytes of each source's present key, close together: most matches are decided by them alone.
    heads: Vec<u128>,
    /// `losers[0]` is the winner; `losers[1..]` the inner nodes, each keeping the source that lost there.
    losers: Vec<usize>,
    started: bool,
}

impl Merge {
    /// Of runs `0..run_count`, from behind `after`.
    pub(super) fn new(
        database: &std::sync::Arc<Database>,
        tree: TreeId,
        run_count: u32,
        after: Option<&[u8]>,
    ) -> Result<Self, StorageError> {
        let view = database.read_view(None);
        let (mut sources, mut heads) = (Vec::new(), Vec::new());
        for run in 0..run_count {
            let start = match after {
                Some(after) => Bound::Excluded([&run.to_be_bytes()[..], after].concat()),
                None => Bound::Included(run.to_be_bytes().to_vec()),
            };
            let range = KeyRange { start, end: Bound::Excluded((run + 1).to_be_bytes().to_vec()) };
            let scan = view.scan(tree, range, ScanDirection::Forward)?;
            let mut source = Source { scan, block: RowBlock::default(), at: 0, live: true };
            let head = source.settle()?;
            if source.live {
                heads.push(head);
                sources.push(source);
            }
        }
        let mut merge = Self { losers: vec![0; sources.len().max(1)], sources, heads, started: false };
        if !merge.sources.is_empty() {
            merge.losers[0] = merge.play(1);
        }
        Ok(merge)
    }

    fn play(&mut self, node: usize) -> usize {
        let count = self.sources.len();
        if node >= count {
            return node - count;
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = if self.precedes(left, right) { (left, right) } else { (right, left) };
        self.losers[node] = loser;
        winner
    }

    #[inline]
    fn precedes(&self, a: usize, b: usize) -> bool {
        match self.heads[a].cmp(&self.heads[b]) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.precedes_by_key(a, b),
        }
    }

    fn precedes_by_key(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.sources[a], &self.sources[b]);
        match (left.live, right.live) {
            (true, true) => left.key() < right.key(),
            (live, _) => live,
        }
    }

    /// The next entry: its key and row.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        if self.sources.is_empty() {
            return Ok(None);
        }
        if std::mem::replace(&mut self.started, true) {
            let mut winner = self.losers[0];
            self.sources[winner].at += 1;
            self.heads[winner] = self.sources[winner].settle()?;
            let mut node = usize::midpoint(winner, self.sources.len());
            if self.sources.len() > 1 {
                while node >= 1 {
                    let rival = self.losers[node];
                    if self.precedes(rival, winner) {
                        self.losers[node] = winner;
                        winner = rival;
                    }
                    node /= 2;
                }
            }
            self.losers[0] = winner;
        }
        let winner = &self.sources[self.losers[0]];
        Ok(winner.live.then(|| (winner.key(), winner.block.value(winner.at))))
    }
}

/// Entries in order, in one piece of memory.
#[derive(Default)]
pub(super) struct EntryList {
    bytes: Vec<u8>,
    /// Where each key and each row ends.
    ends: Vec<(u32, u32)>,
}

impl EntryList {
    fn push(&mut self, key: &[u8], row: &[u8]) {
        let narrow = |at: usize| u32::try_from(at).expect("a chunk is bounded");
        self.bytes.extend_from_slice(key);
        let key_end = narrow(self.bytes.len());
        self.bytes.extend_from_slice(row);
        self.ends.push((key_end, narrow(self.bytes.len())));
    }

    /// Log that its leaves take at most: they are packed.
    fn log_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * ENTRY_BYTES
    }

    fn each(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(key_end, row_end)| {
            let from = std::mem::replace(&mut start, *row_end as usize);
            let (key_end, row_end) = (*key_end as usize, *row_end as usize);
            (&self.bytes[from..key_end], &self.bytes[key_end..row_end])
        })
    }
}

impl OnlineBuild {
    /// Reads the target's next entries from the runs.
    pub(super) fn read_runs(&mut self) -> Result<Chunk, BuildError> {
        let progress = &self.ahead;
        let mut merge = match self.merge.take() {
            Some(merge) => merge,
            None => Merge::new(&self.database, self.job.runs, progress.run_count, progress.last_entry.as_deref())?,
        };
        let mut last = progress.last_entry.clone();
        let mut list = EntryList::default();
        let mut merged = false;
        let bytes_max = CHUNK_BYTES.min(self.log_budget_bytes());
        let is_small = |list: &EntryList| list.log_bytes() < bytes_max || list.ends.len() < CHUNK_ROWS_MIN;
        while list.ends.len() < self.chunk_rows && is_small(&list) {
            let Some((key, row)) = merge.next()? else {
                merged = true;
                break;
            };
            if self.job.index.unique {
                if self.is_passed_over(last.as_deref(), key)? {
                    continue;
                }
                let kept = last.get_or_insert_default();
                kept.clear();
                kept.extend_from_slice(key);
            }
            list.push(key, row);
        }
        self.merge = Some(merge);
        let rows = list.ends.len() as u64;
        if let Some((key, _)) = list.each().last() {
            self.ahead.last_entry = Some(key.to_vec());
        }
        self.ahead.rows_appended += rows;
        self.ahead.merged = merged;
        self.rows_read += rows;
        let entries = if rows == 0 { Entries::Nothing } else { Entries::Merged(list) };
        Ok(Chunk { entries, progress: self.ahead.clone() })
    }

    /// Log that the next chunk may take: half of what is free, so that a log that runs full costs one small chunk and not
    /// the rollback of a long one.
    fn log_budget_bytes(&self) -> usize {
        let free_bytes = |log: &std::sync::Arc<thawdb_storage::log::Log>| {
            let space = log.space();
            space.size_bytes.saturating_sub(space.used_bytes + space.reserved_bytes)
        };
        let free_bytes = self.database.store().log().map_or(u64::MAX, free_bytes);
        usize::try_from(free_bytes / 2).unwrap_or(usize::MAX)
    }

    /// Appends them to the target.
    pub(super) fn append_entries(&self, txn: &mut Txn, entries: &EntryList) -> Result<BulkAppend, BuildError> {
        let mut append = txn.begin_private_append(self.job.index.tree)?;
        append.set_fill_percent(self.job.fill_factor);
        for (key, row) in entries.each() {
            append.push(txn, key, Row::inline(row))?;
        }
        append.send_all(txn)?;
        Ok(append)
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
