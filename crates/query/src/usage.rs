//! How often a plan has run and what that took: counted without threads meeting.
//!
//! ```text
//! note(run) ─► the thread's own line: sums, extremes, the last run        summary() ─► over all lines
//! ```
//! The counters are made with the first run: most plans of ad hoc texts have one, and a plan that never runs has none.
//! Sums are exact; the last run is that of the line written last. No lock, no failure.

use std::sync::OnceLock;
use thawdb_observe::shard::Sharded;

const RUNS: usize = 0;
const ELAPSED: usize = 1;
const ELAPSED_MAX: usize = 2;
/// The complement, so that the least is a greatest.
const ELAPSED_MIN: usize = 3;
const ROWS: usize = 4;
const ROWS_MAX: usize = 5;
const ROWS_MIN: usize = 6;
const LAST_AT: usize = 7;
const LAST_ELAPSED: usize = 8;
const LAST_ROWS: usize = 9;
const FIELDS: usize = 10;

/// One run of a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanRun {
    /// When, 1/300 s since 1900-01-01.
    pub at: i64,
    /// How long, in nanoseconds.
    pub elapsed_ns: u64,
    /// Rows returned or changed.
    pub rows: u64,
}

/// What the runs of a plan come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)] // sum, last, least and greatest of what [`PlanRun`] has
pub struct PlanSummary {
    pub runs: u64,
    pub last_at: i64,
    pub elapsed_ns: [u64; 4],
    pub rows: [u64; 4],
}

/// The runs of one plan.
#[derive(Debug, Default)]
pub struct PlanUsage(OnceLock<Box<Sharded<FIELDS>>>);

impl Clone for PlanUsage {
    /// A copy of a plan has not run yet.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PlanUsage {
    /// Counts a run.
    pub fn note(&self, run: PlanRun) {
        let counts = self.0.get_or_init(|| Box::new(Sharded::new()));
        counts.add(RUNS, 1);
        counts.add(ELAPSED, run.elapsed_ns);
        counts.raise(ELAPSED_MAX, run.elapsed_ns);
        counts.raise(ELAPSED_MIN, !run.elapsed_ns);
        counts.add(ROWS, run.rows);
        counts.raise(ROWS_MAX, run.rows);
        counts.raise(ROWS_MIN, !run.rows);
        counts.set(LAST_AT, run.at.cast_unsigned());
        counts.set(LAST_ELAPSED, run.elapsed_ns);
        counts.set(LAST_ROWS, run.rows);
    }

    /// What they come to; `None` if there was none.
    pub fn summary(&self) -> Option<PlanSummary> {
        let counts = self.0.get()?;
        let last = counts.line_of_largest(LAST_AT);
        let runs = counts.sum(RUNS);
        (runs > 0).then(|| PlanSummary {
            runs,
            last_at: last[LAST_AT].cast_signed(),
            elapsed_ns: [counts.sum(ELAPSED), last[LAST_ELAPSED], !counts.largest(ELAPSED_MIN), counts.largest(ELAPSED_MAX)],
            rows: [counts.sum(ROWS), last[LAST_ROWS], !counts.largest(ROWS_MIN), counts.largest(ROWS_MAX)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up() {
        let usage = PlanUsage::default();
        assert_eq!(usage.summary(), None);
        for (at, elapsed_ns, rows) in [(1, 30, 2), (2, 10, 7), (3, 20, 0)] {
            usage.note(PlanRun { at, elapsed_ns, rows });
        }
        let expected = PlanSummary { runs: 3, last_at: 3, elapsed_ns: [60, 20, 10, 30], rows: [9, 0, 0, 7] };
        assert_eq!(usage.summary(), Some(expected));
        assert_eq!(usage.clone().summary(), None);
    }
}
