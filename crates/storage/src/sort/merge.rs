//! Merging sorted runs by rounds: what all runs hold up to a horizon is put together and ordered like any rows.
//!
//! ```text
//!   run 0   |--------·|====           the next `share` rows of each run end at its limit;
//!   run 1   |----·=====|====          the least limit of all is the horizon (·)
//!   run 2   |------·======|==         rows up to it: gathered run by run, ordered, given out; then the next round
//! ```
//! A tree of losers pays a chain of comparisons a row, each hard to foresee; here a row costs a copy and its share of the
//! radix passes, which see only the few bits in which a round's keys differ. Finding the horizon costs a look at two numbers
//! a run and round. The share is fitted from round to round, so that a round has about as many rows as asked for, whether
//! all runs take part in it or, where the rows came in order, one.
//!
//! Invariants: 1. what a round leaves behind is above all it gave out: each row is judged as (key, run) against the
//! horizon, and no run has more before it than the rows looked at (`horizon`, `gather`). 2. Each round gives out a row at
//! least: those of the run whose limit is the horizon. 3. Rows with equal keys come in the order of their runs, and as they
//! lie in them, where the buffer is a stable one: the horizon parts equal keys between runs, never the other way round.
//! 4. Memory: a block and a share of a round a run, and the round's rows twice. No locks; fails as the readers do.

use super::block::RunBlock;
use super::rows::RowBuffer;
use crate::error::StorageError;
use std::ops::Range;

/// Gives out the blocks of a sorted run.
pub trait RunReader {
    /// The next block; `None` at the end. Blocks are not empty.
    ///
    /// # Errors
    /// What reading fails with.
    fn next_block(&mut self) -> Result<Option<RunBlock>, StorageError>;
}

struct Source<R> {
    reader: R,
    block: RunBlock,
    /// The first row not given out.
    at: usize,
    /// Behind the rows that the next round looks at.
    limit: usize,
    /// The reader may have more.
    goes_on: bool,
    /// There are rows.
    live: bool,
}

/// A merge under way.
pub struct RunMerge<R> {
    /// Oldest first.
    sources: Vec<Source<R>>,
    /// Heads of each source's first row, and of the last one before its limit, close together.
    firsts: Vec<u128>,
    lasts: Vec<u128>,
    live_count: usize,
    /// Rows a source puts to the next round at most.
    share: usize,
    round_rows_max: usize,
    rows: RowBuffer,
    /// Memory of rounds that are over.
    spare: Option<RowBuffer>,
    at: usize,
    scratch: Vec<u8>,
    taking_part: Vec<(usize, usize)>,
    pub(super) comparison_count: u64,
}

impl<R: RunReader> RunMerge<R> {
    /// A merge of runs, oldest first, from behind the key `after`, in rounds of at most `round_rows_max` rows or, if there
    /// are more runs than that, as many as runs. Of rows with a fixed shape, `ordered_bytes` last bytes of the keys are in
    /// order within equals and from run to run.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn new(readers: Vec<R>, after: Option<&[u8]>, round_rows_max: usize, ordered_bytes: usize) -> Result<Self, StorageError> {
        Self::with_buffer(readers, after, round_rows_max, RowBuffer::unshaped(false, ordered_bytes))
    }

    pub(super) fn with_buffer(readers: Vec<R>, after: Option<&[u8]>, round_rows_max: usize, rows: RowBuffer) -> Result<Self, StorageError> {
        let round_rows_max = round_rows_max.max(1);
        let mut merge = Self {
            firsts: vec![0; readers.len()],
            lasts: vec![0; readers.len()],
            live_count: readers.len(),
            share: (round_rows_max / readers.len().max(1)).max(1),
            sources: Vec::with_capacity(readers.len()),
            round_rows_max,
            rows,
            spare: None,
            at: 0,
            scratch: Vec::new(),
            taking_part: Vec::new(),
            comparison_count: 0,
        };
        for (place, reader) in readers.into_iter().enumerate() {
            merge.sources.push(Source { reader, block: RunBlock::new(), at: 0, limit: 0, goes_on: true, live: true });
            merge.settle(place)?;
            if let Some(after) = after {
                merge.skip(place, after)?;
            }
        }
        Ok(merge)
    }

    /// Leaves out the rows up to `after`.
    fn skip(&mut self, place: usize, after: &[u8]) -> Result<(), StorageError> {
        while self.sources[place].live {
            let source = &mut self.sources[place];
            source.at = first_not(source.at..source.block.len(), |row| source.block.key(row) <= after);
            if source.at < source.block.len() {
                return self.settle(place);
            }
            self.settle(place)?;
        }
        Ok(())
    }

    /// Makes a source ready for the next round: enough rows for its share, its limit, its heads. A source that had only the
    /// rest of a block would hold up all others.
    fn settle(&mut self, place: usize) -> Result<(), StorageError> {
        let source = &mut self.sources[place];
        while source.goes_on && source.block.len() - source.at < self.share {
            match source.reader.next_block()? {
                Some(block) => {
                    source.block.go_on(source.at, block);
                    source.at = 0;
                }
                None => source.goes_on = false,
            }
        }
        if source.live && source.at == source.block.len() {
            source.block = RunBlock::new();
            source.live = false;
            self.live_count -= 1;
        }
        self.limit(place);
        Ok(())
    }

    fn limit(&mut self, place: usize) {
        let source = &mut self.sources[place];
        if source.live {
            source.limit = (source.at + self.share).min(source.block.len());
            self.firsts[place] = source.block.head(source.at);
            self.lasts[place] = source.block.head(source.limit - 1);
        } else {
            (self.firsts[place], self.lasts[place]) = (u128::MAX, u128::MAX);
        }
    }

    /// The source whose limit is the horizon.
    fn horizon(&self) -> Option<usize> {
        let least = *self.lasts.iter().min()?;
        let mut found: Option<usize> = None;
        for (place, last) in self.lasts.iter().enumerate() {
            if *last == least && self.sources[place].live && found.is_none_or(|known| self.last_key(place) < self.last_key(known)) {
                found = Some(place);
            }
        }
        found
    }

    fn last_key(&self, place: usize) -> &[u8] {
        let source = &self.sources[place];
        source.block.key(source.limit - 1)
    }

    /// Rows of a source up to the horizon.
    fn rows_below(&self, place: usize, horizon: usize) -> usize {
        let source = &self.sources[place];
        if place == horizon {
            return source.limit - source.at;
        }
        let (key, head) = (self.last_key(horizon), self.lasts[horizon]);
        let is_below = |row: usize| {
            let own = source.block.head(row);
            own < head || own == head && (source.block.key(row), place) <= (key, horizon)
        };
        first_not(source.at..source.limit, is_below) - source.at
    }

    /// Puts the next round's rows in order; false at the end.
    fn gather(&mut self) -> Result<bool, StorageError> {
        self.rows.clear();
        self.at = 0;
        let mut total;
        loop {
            let Some(horizon) = self.horizon() else { return Ok(false) };
            let head = self.lasts[horizon];
            let mut taking_part = std::mem::take(&mut self.taking_part);
            taking_part.clear();
            total = 0;
            for place in 0..self.sources.len() {
                if self.firsts[place] <= head && self.sources[place].live {
                    let count = self.rows_below(place, horizon);
                    total += count;
                    if count > 0 {
                        taking_part.push((place, count));
                    }
                }
            }
            self.taking_part = taking_part;
            if total <= self.round_rows_max || self.share == 1 {
                break;
            }
            self.share = (self.share * self.round_rows_max * 7 / 8 / total).clamp(1, self.share - 1);
            for at in 0..self.taking_part.len() {
                self.limit(self.taking_part[at].0);
            }
        }
        if total < self.round_rows_max * 3 / 4 {
            let wanted = self.share * self.round_rows_max * 7 / 8 / total.max(1);
            self.share = wanted.clamp(self.share, self.share * 2).min(self.round_rows_max);
        }
        for at in 0..self.taking_part.len() {
            let (place, count) = self.taking_part[at];
            let source = &mut self.sources[place];
            self.rows.extend(&source.block, source.at..source.at + count);
            source.at += count;
            self.settle(place)?;
        }
        self.forget_ended();
        self.rows.sort(&mut self.comparison_count);
        Ok(true)
    }

    /// Forgets sources at their ends once they are most.
    fn forget_ended(&mut self) {
        if self.live_count * 2 < self.sources.len() {
            self.sources.retain(|source| source.live);
            self.firsts.truncate(self.sources.len());
            self.lasts.truncate(self.sources.len());
            (0..self.sources.len()).for_each(|place| self.limit(place));
        }
    }

    /// The next row's key and payload; `None` at the end.
    ///
    /// # Errors
    /// What reading fails with.
    #[allow(clippy::should_implement_trait, reason = "a lending iterator cannot implement Iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        if self.at == self.rows.len() && !self.gather()? {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(self.rows.row(self.at - 1, &mut self.scratch)))
    }

    /// The next round's rows in blocks of at most `block_bytes` as they are stored, or of one row, after which it counts as given out; false at the end.
    pub(super) fn next_blocks(
        &mut self,
        block_bytes: usize,
        hand_on: &mut dyn FnMut(RunBlock) -> Result<(), StorageError>,
    ) -> Result<bool, StorageError> {
        if !self.gather()? {
            return Ok(false);
        }
        self.at = self.rows.len();
        self.rows.each_block(block_bytes, hand_on)?;
        Ok(true)
    }

    /// The next round's rows; `None` at the end.
    pub(super) fn take_round(&mut self) -> Result<Option<RowBuffer>, StorageError> {
        if !self.gather()? {
            return Ok(None);
        }
        let another = self.spare.take().unwrap_or_else(|| self.rows.another());
        Ok(Some(std::mem::replace(&mut self.rows, another)))
    }

    /// The next round's rows, apart from the merge; `None` at the end.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn next_round(&mut self) -> Result<Option<SortedRound>, StorageError> {
        Ok(self.take_round()?.map(|rows| SortedRound { rows, scratch: Vec::new() }))
    }

    /// Takes the memory of a round that is over, of this merge or of one like it.
    pub fn take_back(&mut self, mut round: SortedRound) {
        round.rows.clear();
        self.spare = Some(round.rows);
    }

    /// The readers that may have more.
    pub fn readers(&mut self) -> impl Iterator<Item = &mut R> {
        self.sources.iter_mut().filter(|source| source.goes_on).map(|source| &mut source.reader)
    }
}

/// Rows of one round in key order, to be looked at more than once.
pub struct SortedRound {
    rows: RowBuffer,
    scratch: Vec<u8>,
}

impl SortedRound {
    /// Rows in it.
    #[allow(clippy::len_without_is_empty, reason = "a round has a row at least")]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Key and payload of a row.
    #[inline]
    pub fn row(&mut self, index: usize) -> (&[u8], &[u8]) {
        self.rows.row(index, &mut self.scratch)
    }
}

/// The first row of `range` for which `is_below` no longer holds.
fn first_not(range: Range<usize>, is_below: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (range.start, range.end);
    while from < to {
        let middle = usize::midpoint(from, to);
        if is_below(middle) { from = middle + 1 } else { to = middle }
    }
    from
}
