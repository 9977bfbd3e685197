//! What a histogram says of a predicate, in parts of the rows.
//!
//! ```text
//! = v       the step's own rows if v is its high key; otherwise the average within the step
//! < v       the steps below, and of v's own step as much as v stands above its lower end: along a line where the type
//!           has one (numbers, dates), half of it elsewhere
//! beyond    as many as a value has on average: rows come in above the last step that nobody has counted yet
//! ```

use std::cmp::Ordering;
use thawdb_catalog::{HistogramStep, StatisticsData};
use thawdb_types::calendar::Moment;
use thawdb_types::{Scalar, SqlType, compare::compare};

/// Statistics with the type of their leading column.
#[derive(Debug, Clone, Copy)]
pub struct Column<'s> {
    data: &'s StatisticsData,
    sql_type: &'s SqlType,
}

impl<'s> Column<'s> {
    /// The leading column of `data`, which is of `sql_type`.
    pub fn new(data: &'s StatisticsData, sql_type: &'s SqlType) -> Self {
        Self { data, sql_type }
    }

    /// The steps of values.
    fn steps(&self) -> &'s [HistogramStep] {
        let nulls = usize::from(self.data.steps.first().is_some_and(|step| step.high.is_null()));
        &self.data.steps[nulls..]
    }

    fn part(&self, rows: f64) -> f64 {
        if self.data.rows > 0.0 { (rows / self.data.rows).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Different values, NULL among them.
    pub fn distinct(&self) -> f64 {
        self.data.distinct.first().copied().unwrap_or(1.0).max(1.0)
    }

    /// The part that is NULL.
    pub fn null(&self) -> f64 {
        self.data.steps.first().filter(|step| step.high.is_null()).map_or(0.0, |step| self.part(step.equal_rows))
    }

    /// The step `value` falls into.
    fn step_of(&self, value: &Scalar) -> Option<usize> {
        let at = self.steps().partition_point(|step| compare(&step.high, value, self.sql_type) == Ordering::Less);
        (at < self.steps().len()).then_some(at)
    }

    /// The part that equals a value of the column's type.
    pub fn equal(&self, value: &Scalar) -> f64 {
        let average = self.data.rows / self.distinct();
        let Some(at) = self.step_of(value) else { return self.part(average) };
        let step = &self.steps()[at];
        if compare(&step.high, value, self.sql_type) == Ordering::Equal {
            return self.part(step.equal_rows);
        }
        if step.distinct_range_rows >= 1.0 {
            return self.part(step.range_rows / step.distinct_range_rows);
        }
        // No row was seen there: few can be there now.
        self.part(average.min(1.0))
    }

    /// The part below a value of the column's type.
    pub fn below(&self, value: &Scalar, inclusive: bool) -> f64 {
        let steps = self.steps();
        let whole = |steps: &[HistogramStep]| steps.iter().map(|step| step.range_rows + step.equal_rows).sum::<f64>();
        let Some(at) = self.step_of(value) else { return self.part(whole(steps)) };
        let step = &steps[at];
        let before = whole(&steps[..at]);
        if compare(&step.high, value, self.sql_type) == Ordering::Equal {
            let own = if inclusive { step.equal_rows } else { 0.0 };
            return self.part(before + step.range_rows + own);
        }
        let low = at.checked_sub(1).map(|below| &steps[below].high);
        let share = low.map_or(0.0, |low| position(low, value, &step.high));
        self.part(before + step.range_rows * share)
    }

    /// The part between two values of the column's type.
    pub fn between(&self, low: Option<&(Scalar, bool)>, high: Option<&(Scalar, bool)>) -> f64 {
        let above = 1.0 - self.null();
        let to = high.map_or(above, |(value, inclusive)| self.below(value, *inclusive));
        let from = low.map_or(0.0, |(value, inclusive)| self.below(value, !inclusive));
        // Never nothing: rows may have come since.
        (to - from).max(self.part(1.0)).min(1.0)
    }
}

/// Where `value` stands between `low` (0) and `high` (1).
fn position(low: &Scalar, value: &Scalar, high: &Scalar) -> f64 {
    match (number(low), number(value), number(high)) {
        (Some(low), Some(value), Some(high)) if high > low => ((value - low) / (high - low)).clamp(0.0, 1.0),
        _ => 0.5,
    }
}

/// A value as a place on a line.
fn number(value: &Scalar) -> Option<f64> {
    match value {
        Scalar::Decimal(v) => Some(*v as f64),
        Scalar::Money(v) => Some(*v as f64),
        Scalar::Real(v) => Some(f64::from(*v)),
        Scalar::Float(v) => Some(*v),
        other => other.as_i64().map(|v| v as f64).or_else(|| Moment::of(other).map(|m| m.total_ticks() as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 NULLs, 10 rows of 0, then 0 < x < 100: 450 rows of 45 values, 40 of 100; then 200 rows of 200 alone.
    fn data() -> StatisticsData {
        let step = |high, equal_rows, range_rows, distinct_range_rows| HistogramStep { high, equal_rows, range_rows, distinct_range_rows };
        StatisticsData {
            updated: 0,
            rows: 800.0,
            rows_sampled: 800,
            leaves: 2,
            key_type: SqlType::Int,
            steps: vec![
                step(Scalar::Null, 100.0, 0.0, 0.0),
                step(Scalar::Int(0), 10.0, 0.0, 0.0),
                step(Scalar::Int(100), 40.0, 450.0, 45.0),
                step(Scalar::Int(200), 200.0, 0.0, 0.0),
            ],
            distinct: vec![49.0],
            average_bytes: vec![4.0],
        }
    }

    #[track_caller]
    fn near(found: f64, rows: f64) {
        assert!((found * 800.0 - rows).abs() < 0.01, "{} rows, not {rows}", found * 800.0);
    }

    #[test]
    fn equality() {
        let data = data();
        let column = Column::new(&data, &SqlType::Int);
        near(column.equal(&Scalar::Int(200)), 200.0);
        near(column.equal(&Scalar::Int(50)), 10.0);
        near(column.equal(&Scalar::Int(150)), 1.0);
        near(column.equal(&Scalar::Int(999)), 800.0 / 49.0);
        near(column.null(), 100.0);
    }

    #[test]
    fn ranges() {
        let data = data();
        let column = Column::new(&data, &SqlType::Int);
        let at = |v: i32, inclusive: bool| Some((Scalar::Int(v), inclusive));
        near(column.below(&Scalar::Int(0), false), 0.0);
        near(column.below(&Scalar::Int(0), true), 10.0);
        near(column.below(&Scalar::Int(50), false), 10.0 + 225.0);
        near(column.below(&Scalar::Int(100), true), 500.0);
        near(column.between(at(100, true).as_ref(), None), 240.0);
        near(column.between(at(100, false).as_ref(), at(200, false).as_ref()), 1.0);
        near(column.between(at(25, true).as_ref(), at(75, true).as_ref()), 225.0);
        near(column.between(None, None), 700.0);
        near(column.between(at(500, true).as_ref(), None), 1.0);
        assert!((position(&Scalar::text("a"), &Scalar::text("b"), &Scalar::text("z")) - 0.5).abs() < f64::EPSILON);
    }
}
