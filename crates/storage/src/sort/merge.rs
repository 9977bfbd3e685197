//! Merging sorted runs by a tree of losers.
//!
//! ```text
//!   winner
//!     └ node 1 ── node 2, 3 ── ... each inner node keeps the source that lost there;
//!       the leaf of source i is node k + i and exists only by arithmetic
//! ```
//! Each source's present key is judged by its first eight bytes as a number, then whole, then by source order, so that
//! equal keys leave in the order of the runs.
//!
//! Invariants: 1. after `advance`, the winner's key is the least of all sources (`replay`). 2. An exhausted source
//! loses to all others. No locks; fails as the run reader does.

use super::arena::prefix_of;
use super::rows::RowBuffer;
use super::spill::{RunDescriptor, RunFile, RunReader};
use crate::error::StorageError;

pub(super) struct Merge {
    sources: Vec<MergeSource>,
    /// `losers[0]` is the winner; `losers[1..]` the inner nodes.
    losers: Vec<usize>,
    started: bool,
    pub(super) comparison_count: u64,
}

struct MergeSource {
    reader: Reader,
    prefix: u64,
    live: bool,
}

enum Reader {
    Run(RunReader),
    Memory { rows: RowBuffer, at: usize, row: Vec<u8>, key_bytes: usize },
}

impl MergeSource {
    fn key(&self) -> &[u8] {
        match &self.reader {
            Reader::Run(run) => run.key(),
            Reader::Memory { row, key_bytes, .. } => &row[..*key_bytes],
        }
    }

    fn payload(&self) -> &[u8] {
        match &self.reader {
            Reader::Run(run) => run.payload(),
            Reader::Memory { row, key_bytes, .. } => &row[*key_bytes..],
        }
    }

    fn advance(&mut self, file: &RunFile) -> Result<(), StorageError> {
        self.live = match &mut self.reader {
            Reader::Run(run) => run.advance(file)?,
            Reader::Memory { rows, at, row, key_bytes } => {
                let more = *at < rows.len();
                if more {
                    let mut scratch = Vec::new();
                    let (key, payload) = rows.row(*at, &mut scratch);
                    row.clear();
                    row.extend_from_slice(key);
                    row.extend_from_slice(payload);
                    *key_bytes = key.len();
                    *at += 1;
                }
                more
            }
        };
        if self.live {
            self.prefix = prefix_of(self.key());
        }
        Ok(())
    }
}

impl Merge {
    /// A merge of `runs`, oldest first, and of what is still in memory, which is the youngest.
    pub(super) fn new(file: &RunFile, runs: &[RunDescriptor], memory: RowBuffer) -> Result<Self, StorageError> {
        let mut readers: Vec<Reader> = runs.iter().cloned().map(|run| Reader::Run(RunReader::new(run))).collect();
        if memory.len() > 0 {
            readers.push(Reader::Memory { rows: memory, at: 0, row: Vec::new(), key_bytes: 0 });
        }
        let mut sources = Vec::with_capacity(readers.len());
        for reader in readers {
            let mut source = MergeSource { reader, prefix: 0, live: false };
            source.advance(file)?;
            sources.push(source);
        }
        let mut merge = Self { losers: vec![usize::MAX; sources.len().max(1)], sources, started: false, comparison_count: 0 };
        if !merge.sources.is_empty() {
            merge.losers[0] = merge.play(1);
        }
        Ok(merge)
    }

    /// Plays the subtree of inner node `node`, fills its losers, returns its winner.
    fn play(&mut self, node: usize) -> usize {
        let source_count = self.sources.len();
        if node >= source_count {
            return node - source_count;
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = if self.precedes(left, right) { (left, right) } else { (right, left) };
        self.losers[node] = loser;
        winner
    }

    fn precedes(&mut self, a: usize, b: usize) -> bool {
        self.comparison_count += 1;
        let (left, right) = (&self.sources[a], &self.sources[b]);
        match (left.live, right.live) {
            (true, true) => (left.prefix, left.key(), a) < (right.prefix, right.key(), b),
            (live, _) => live,
        }
    }

    /// Moves to the next row in order; false at the end.
    pub(super) fn advance(&mut self, file: &RunFile) -> Result<bool, StorageError> {
        if self.sources.is_empty() {
            return Ok(false);
        }
        if std::mem::replace(&mut self.started, true) {
            let mut winner = self.losers[0];
            self.sources[winner].advance(file)?;
            let mut node = (winner + self.sources.len()) / 2;
            while node >= 1 {
                let rival = self.losers[node];
                if self.precedes(rival, winner) {
                    self.losers[node] = winner;
                    winner = rival;
                }
                node /= 2;
            }
            self.losers[0] = winner;
        }
        Ok(self.sources[self.losers[0]].live)
    }

    /// The present row.
    pub(super) fn row(&self) -> (&[u8], &[u8]) {
        let winner = &self.sources[self.losers[0]];
        (winner.key(), winner.payload())
    }
}
