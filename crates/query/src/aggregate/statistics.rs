//! STDEV, STDEVP, VAR, VARP (Welford's running moments) and CHECKSUM_AGG (exclusive or).

use crate::aggregate::{Accumulator, GroupIds};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array};
use std::sync::Arc;
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// Which statistic.
#[derive(Clone, Copy)]
pub(super) enum Statistic {
    StDev,
    StDevP,
    Var,
    VarP,
}

#[derive(Clone, Copy, Default)]
struct Moment {
    count: f64,
    mean: f64,
    squares: f64,
}

pub(super) struct Moments {
    argument: SqlType,
    statistic: Statistic,
    groups: Vec<Moment>,
}

impl Moments {
    pub(super) fn new(argument: SqlType, statistic: Statistic) -> Self {
        Self { argument, statistic, groups: Vec::new() }
    }
}

/// A number of any type as a float.
fn number(value: &Scalar, sql_type: &SqlType) -> Option<f64> {
    Some(match value {
        Scalar::Real(v) => f64::from(*v),
        Scalar::Float(v) => *v,
        Scalar::Decimal(v) => *v as f64 / 10f64.powi(i32::from(sql_type.scale())),
        Scalar::Money(v) => *v as f64 / 10_000.0,
        other => other.as_i64()? as f64,
    })
}

impl Accumulator for Moments {
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError> {
        self.groups.resize(groups.group_count, Moment::default());
        let array = argument.expect("a statistic has an argument");
        for row in 0..groups.rows {
            if let Some(value) = number(&scalar_at(array.as_ref(), row, &self.argument), &self.argument) {
                let moment = &mut self.groups[groups.of(row)];
                moment.count += 1.0;
                let from_mean = value - moment.mean;
                moment.mean += from_mean / moment.count;
                moment.squares += from_mean * (value - moment.mean);
            }
        }
        Ok(array.null_count() > 0)
    }

    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError> {
        let groups = std::mem::take(&mut self.groups);
        let statistic = self.statistic;
        let result = |moment: &Moment| {
            let sample = matches!(statistic, Statistic::StDev | Statistic::Var);
            let divisor = if sample { moment.count - 1.0 } else { moment.count };
            let variance = (divisor > 0.0).then(|| moment.squares / divisor)?;
            Some(if matches!(statistic, Statistic::StDev | Statistic::StDevP) { variance.sqrt() } else { variance })
        };
        Ok(Arc::new((0..group_count).map(|g| groups.get(g).and_then(result)).collect::<Float64Array>()))
    }

    fn memory_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Moment>()
    }
}

pub(super) struct ChecksumAgg {
    argument: SqlType,
    groups: Vec<Option<i32>>,
}

impl ChecksumAgg {
    pub(super) fn new(argument: SqlType) -> Self {
        Self { argument, groups: Vec::new() }
    }
}

impl Accumulator for ChecksumAgg {
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError> {
        self.groups.resize(groups.group_count, None);
        let array = argument.expect("CHECKSUM_AGG has an argument");
        for row in 0..groups.rows {
            if let Some(value) = scalar_at(array.as_ref(), row, &self.argument).as_i64() {
                let sum = &mut self.groups[groups.of(row)];
                *sum = Some(sum.unwrap_or(0) ^ value as i32);
            }
        }
        Ok(array.null_count() > 0)
    }

    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError> {
        let mut groups = std::mem::take(&mut self.groups);
        groups.resize(group_count, None);
        Ok(Arc::new(Int32Array::from(groups)))
    }

    fn memory_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Option<i32>>()
    }
}
