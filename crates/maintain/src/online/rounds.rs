//! Entries gathered from the runs and not yet committed to the target.
//!
//! ```text
//!   |<- committed ->|<- on their way ->|<- gathered ->|
//!   0             done                next            end      of the rows that are kept
//! ```
//! A chunk that fails gives its entries back by moving `next` to `done`: the merge need not look for them again, whatever
//! the log had no room for. Memory: the rounds of the chunks under way, and one that is over, for the next.
//!
//! Invariants: 1. `done <= next`, both within the rows kept (`Rounds::take`, `Rounds::committed`). 2. What is committed is
//! let go round by round. No locks; no failure.

use std::collections::VecDeque;
use thawdb_storage::sort::SortedRound;

/// Rounds of a merge, the oldest first.
#[derive(Default)]
pub(super) struct Rounds {
    rounds: VecDeque<SortedRound>,
    /// Rows of the oldest round that are in the target for good.
    done: usize,
    /// Round and row that come next.
    next: (usize, usize),
    over: Option<SortedRound>,
}

impl Rounds {
    /// Adds what was gathered.
    pub(super) fn add(&mut self, round: SortedRound) {
        self.rounds.push_back(round);
    }

    /// Rows of the round whose row is next, from that row on.
    pub(super) fn ready(&self) -> usize {
        self.rounds.get(self.next.0).map_or(0, |round| round.len() - self.next.1)
    }

    /// The next row, which is there.
    #[inline]
    pub(super) fn take(&mut self) -> (&[u8], &[u8]) {
        let (round, row) = self.next;
        let rows = &mut self.rounds[round];
        self.next = if row + 1 == rows.len() { (round + 1, 0) } else { (round, row + 1) };
        rows.row(row)
    }

    /// The oldest `rows` that were taken are committed.
    pub(super) fn committed(&mut self, rows: usize) {
        self.done += rows;
        while let Some(front) = self.rounds.front().filter(|front| front.len() <= self.done) {
            self.done -= front.len();
            self.over = self.rounds.pop_front();
            self.next.0 = self.next.0.checked_sub(1).expect("only rows that were taken are committed");
        }
    }

    /// A round that is over, whose memory the next may have.
    pub(super) fn take_over(&mut self) -> Option<SortedRound> {
        self.over.take()
    }

    /// What was taken and did not commit comes again.
    pub(super) fn give_back(&mut self) {
        self.next = (0, self.done);
    }
}
