//! The steps of a histogram, from the values of a column in rising order.
//!
//! ```text
//! value, rows ─► a step of its own ─► twice as many steps as there may be? merge neighbours, those first whose merging
//!                                      loses least: few rows between the ends, and a high key about as frequent as they
//! ```
//! Invariants: 1. rows are neither lost nor made: the sum of all steps is that of what was pushed. 2. The step of NULL and
//! the first and the last value stay as they are, so that a histogram spans the column.

use thawdb_catalog::HistogramStep;
use thawdb_types::Scalar;

/// Steps of a finished histogram, that of NULL among them: SQL Server's own limit is 201 with it.
const STEPS_MAX: usize = 200;

/// A histogram under way.
#[derive(Default)]
pub(super) struct HistogramBuilder {
    steps: Vec<HistogramStep>,
}

impl HistogramBuilder {
    /// The next value, above all before it, and how many rows have it.
    pub(super) fn push(&mut self, high: Scalar, equal_rows: f64) {
        if self.steps.len() >= 2 * STEPS_MAX {
            self.merge_down();
        }
        self.steps.push(HistogramStep { high, equal_rows, range_rows: 0.0, distinct_range_rows: 0.0 });
    }

    pub(super) fn finish(mut self) -> Vec<HistogramStep> {
        self.merge_down();
        self.steps
    }

    /// Steps that have nothing below to be merged into: NULL's and the first value's.
    fn fixed(&self) -> usize {
        1 + usize::from(self.steps.first().is_some_and(|step| step.high.is_null()))
    }

    /// What merging step `at` into the next loses.
    fn loss(&self, at: usize) -> f64 {
        let (step, next) = (&self.steps[at], &self.steps[at + 1]);
        let rows = step.range_rows + step.equal_rows + next.range_rows;
        let average = rows / (step.distinct_range_rows + 1.0 + next.distinct_range_rows);
        // A frequent value among rare ones is worth its step many times over.
        rows + 8.0 * (step.equal_rows - average).abs()
    }

    fn merge_down(&mut self) {
        while self.steps.len() > STEPS_MAX {
            let first = self.fixed();
            let mut candidates: Vec<(f64, usize)> = (first..self.steps.len() - 1).map(|at| (self.loss(at), at)).collect();
            candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let mut merged = vec![false; self.steps.len() + 1];
            // A quarter at a time: behind those whose neighbours are taken stand ones that lose much.
            let mut excess = (self.steps.len() - STEPS_MAX).min(candidates.len() / 4 + 1);
            // Of neighbours one only: the other's loss has changed.
            for (_, at) in candidates {
                if excess > 0 && !merged[at - 1] && !merged[at + 1] {
                    merged[at] = true;
                    excess -= 1;
                }
            }
            self.merge(&merged);
        }
    }

    /// Merges every step that is marked into the next one.
    fn merge(&mut self, marked: &[bool]) {
        let mut kept: Vec<HistogramStep> = Vec::with_capacity(self.steps.len());
        let mut below: Option<HistogramStep> = None;
        for (mut step, marked) in std::mem::take(&mut self.steps).into_iter().zip(marked) {
            if let Some(lower) = below.take() {
                step.range_rows += lower.range_rows + lower.equal_rows;
                step.distinct_range_rows += lower.distinct_range_rows + 1.0;
            }
            if *marked { below = Some(step) } else { kept.push(step) }
        }
        assert!(below.is_none(), "the last step is never merged away");
        self.steps = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(values: impl Iterator<Item = (Scalar, f64)>) -> Vec<HistogramStep> {
        let mut builder = HistogramBuilder::default();
        values.for_each(|(value, rows)| builder.push(value, rows));
        builder.finish()
    }

    #[test]
    fn few_values_have_a_step_each() {
        let steps = built([(Scalar::Null, 5.0), (Scalar::Int(1), 2.0), (Scalar::Int(9), 1.0)].into_iter());
        assert_eq!(steps.len(), 3);
        assert!(steps.iter().all(|step| step.range_rows == 0.0));
    }

    #[test]
    fn many_values_keep_rows_ends_and_frequent_ones() {
        let rows = |n: i32| if n % 1000 == 500 { 10_000.0 } else { f64::from(n % 3 + 1) };
        let null = std::iter::once((Scalar::Null, 7.0));
        let steps = built(null.chain((0..50_000).map(|n| (Scalar::Int(n), rows(n)))));
        assert_eq!(steps.len(), STEPS_MAX);
        let sum: f64 = steps.iter().map(|s| s.equal_rows + s.range_rows).sum();
        assert_eq!(sum, 7.0 + (0..50_000).map(rows).sum::<f64>());
        let values: f64 = steps.iter().map(|s| s.distinct_range_rows + 1.0).sum();
        assert_eq!(values, 50_001.0);
        assert_eq!((&steps[0].high, &steps[1].high, &steps[199].high), (&Scalar::Null, &Scalar::Int(0), &Scalar::Int(49_999)));
        let frequent = steps.iter().filter(|s| s.equal_rows == 10_000.0).count();
        assert_eq!(frequent, 50, "every frequent value has a step of its own");
    }
}
