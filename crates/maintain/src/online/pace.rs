//! How many rows are under way at once: what a failure may cost, shared out among those that have not reached the target.
//!
//! ```text
//!                read   made ready   on their way   not durable      gathered
//! scan            1         -        FLIGHTS_MAX         1                          chunks
//! scan by two     1         1        FLIGHTS_MAX         1                          chunks
//! merge           -         -        FLIGHTS_MAX         1         1 round of two   chunks of the merge
//! merge by two    -         -        FLIGHTS_MAX         1         2 rounds of two  chunks of the merge
//! ```
//! A round is longer than a chunk because it looks at every run, and there are thousands.
//!
//! Invariant: each line, in rows, is at most the bound given to [`Pace::new`].

/// Chunks on their way to the device at once.
pub(super) const FLIGHTS_MAX: usize = 2;
/// Chunks under way of which the last commit is not durable yet.
const SENT_MAX: usize = FLIGHTS_MAX + 1;
const ROUND_CHUNKS: usize = 2;

/// Rows of a chunk of the scan, of a round of the merge and of a chunk of the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) chunk_rows: usize,
    pub(super) round_rows: usize,
    pub(super) merge_rows: usize,
}

impl Pace {
    /// For a failure that may cost `redone_rows`, with another thread or without.
    pub(super) fn new(redone_rows: usize, by_two: bool) -> Self {
        let (read, rounds) = if by_two { (2, 2) } else { (1, 1) };
        let merge_rows = (redone_rows / (rounds * ROUND_CHUNKS + SENT_MAX)).max(1);
        Self { chunk_rows: (redone_rows / (read + SENT_MAX)).max(1), round_rows: merge_rows * ROUND_CHUNKS, merge_rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_within_the_bound() {
        for bound in [7, 900, 100_000] {
            for by_two in [false, true] {
                let pace = Pace::new(bound, by_two);
                let threads = 1 + usize::from(by_two);
                assert!(pace.chunk_rows * (threads + FLIGHTS_MAX + 1) <= bound, "{pace:?}");
                assert!(pace.round_rows * threads + pace.merge_rows * (FLIGHTS_MAX + 1) <= bound, "{pace:?}");
            }
        }
    }
}
