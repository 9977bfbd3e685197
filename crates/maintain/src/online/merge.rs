//! A chunk of the merge: the runs' entries behind the last one read, in order, become the target's next leaves.
//!
//! The runs are read by a tree of losers over one scan each. Where the merge stands is the last entry in the target, so
//! taking it up again is a seek in each run. Entries are gathered in memory before the target is touched: it has the chunk
//! before on its way meanwhile.
//!
//! In a unique index two entries with one own key are a duplicate only if both live: a row that a writer has deleted or
//! changed since its chunk was scanned has its entry's end in the side tree.

use super::{CHUNK_BYTES, Chunk, Entries, OnlineBuild};
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
    /// First bytes of the present key, as a number.
    head: u64,
    live: bool,
}

impl Source {
    fn key(&self) -> &[u8] {
        &self.block.key(self.at)[RUN_BYTES..]
    }

    fn settle(&mut self) -> Result<(), StorageError> {
        while self.at >= self.block.len() {
            match self.scan.next_block()? {
                Some(block) => std::mem::swap(&mut self.block, block),
                None => {
                    self.live = false;
                    return Ok(());
                }
            }
            self.at = 0;
        }
        let key = &self.block.key(self.at)[RUN_BYTES..];
        self.head = match key.first_chunk::<8>() {
            Some(first) => u64::from_be_bytes(*first),
            None => key.iter().enumerate().fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - 8 * at)),
        };
        Ok(())
    }
}

/// A merge under way.
pub(super) struct Merge {
    sources: Vec<Source>,
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
        let mut sources = Vec::new();
        for run in 0..run_count {
            let start = match after {
                Some(after) => Bound::Excluded([&run.to_be_bytes()[..], after].concat()),
                None => Bound::Included(run.to_be_bytes().to_vec()),
            };
            let range = KeyRange { start, end: Bound::Excluded((run + 1).to_be_bytes().to_vec()) };
            let scan = view.scan(tree, range, ScanDirection::Forward)?;
            let mut source = Source { scan, block: RowBlock::default(), at: 0, head: 0, live: true };
            source.settle()?;
            if source.live {
                sources.push(source);
            }
        }
        let mut merge = Self { losers: vec![0; sources.len().max(1)], sources, started: false };
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
        let (left, right) = (&self.sources[a], &self.sources[b]);
        match (left.live, right.live) {
            (true, true) => match left.head.cmp(&right.head) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => left.key() < right.key(),
            },
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
            self.sources[winner].settle()?;
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
        while list.ends.len() < self.chunk_rows && list.bytes.len() < CHUNK_BYTES {
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
