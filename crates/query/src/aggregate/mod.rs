//! Aggregate functions: states for many groups at once, fed a batch at a time.
//!
//! ```text
//! GroupIds { ids: [0, 0, 1, 0, 2, ...] }   one per row; none when there is a single group
//! Accumulator::update(ids, argument)       argument: the values, one per row; none for COUNT(*)
//! Accumulator::finish(group_count)         one value per group, in group order
//! ```
//! Invariants: 1. NULLs never reach a state; `update` tells whether it met one, for warning 8153. 2. A group without
//! values gives NULL, except for the counts. 3. Sums run in a wider type and are checked when they are handed out
//! (8115), so an intermediate overflow that later values take back does not fail.
//! DISTINCT is a filter before any other state (`distinct`).
//!
//! States of several threads over parts of the rows become one ([`partial_types`]):
//! ```text
//! COUNT      count                 SUM, AVG   sum in the type it runs in | count     MIN, MAX, any   the value
//! Accumulator::hand_over ─► columns, a row per group ─► Accumulator::join of another thread
//! ```
//! The other functions, and DISTINCT, have states that are not handed over.

mod count;
mod distinct;
mod min_max;
mod statistics;
mod string_agg;
mod sum;

use crate::expr::{Aggregate, AggregateFunction};
use arrow_array::ArrayRef;
use thawdb_types::{SqlError, SqlType};

/// Which group each row of a batch belongs to.
pub struct GroupIds<'a> {
    /// Group of each row; `None`: all rows are of group 0.
    pub ids: Option<&'a [u32]>,
    /// Rows in the batch.
    pub rows: usize,
    /// Groups there are so far.
    pub group_count: usize,
}

impl GroupIds<'_> {
    /// Group of a row.
    #[inline]
    pub fn of(&self, row: usize) -> usize {
        self.ids.map_or(0, |ids| ids[row] as usize)
    }
}

/// States of one aggregate for all groups.
pub trait Accumulator {
    /// Takes rows in; true if a NULL was passed over.
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError>;
    /// The results of `group_count` groups; the states are empty again.
    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError>;
    /// The result of group 0 as it stands; the state goes on. Only COUNT, SUM, AVG, MIN and MAX can be asked.
    fn peek(&self) -> Result<ArrayRef, SqlError> {
        Err(thawdb_types::message(8630, &[&0]))
    }
    /// The states of `group_count` groups as columns of [`partial_types`]; the states are empty again.
    fn hand_over(&mut self, group_count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let _ = group_count;
        Err(thawdb_types::message(8630, &[&0]))
    }
    /// Takes in states that another handed over, one a row.
    fn join(&mut self, groups: &GroupIds<'_>, partial: &[ArrayRef]) -> Result<(), SqlError> {
        let (_, _) = (groups, partial);
        Err(thawdb_types::message(8630, &[&0]))
    }
    /// Bytes the states take, about.
    fn memory_bytes(&self) -> usize;
}

/// Types of the columns in which an aggregate's state is handed over; `None` if it cannot be.
pub fn partial_types(aggregate: &Aggregate) -> Option<Vec<SqlType>> {
    use AggregateFunction as F;
    let argument = aggregate.argument.as_ref().map(|a| a.sql_type);
    match (aggregate.function, argument) {
        (F::Min | F::Max | F::Any, Some(argument)) => Some(vec![argument]),
        _ if aggregate.distinct => None,
        (F::Count | F::CountBig, _) => Some(vec![SqlType::BigInt]),
        (F::Sum | F::Avg, Some(argument)) => Some(vec![sum::running_type(&argument), SqlType::BigInt]),
        _ => None,
    }
}

/// Fresh states for `aggregate`.
pub fn accumulator(aggregate: &Aggregate) -> Box<dyn Accumulator> {
    let argument = aggregate.argument.as_ref().map_or(SqlType::Int, |a| a.sql_type);
    let inner = plain(aggregate, &argument);
    // MIN, MAX and "any" are the same with and without DISTINCT.
    let matters = !matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::Any);
    if aggregate.distinct && matters && aggregate.argument.is_some() { Box::new(distinct::Distinct::new(inner, argument)) } else { inner }
}

fn plain(aggregate: &Aggregate, argument: &SqlType) -> Box<dyn Accumulator> {
    use AggregateFunction as F;
    match aggregate.function {
        F::Count | F::CountBig => Box::new(count::Count::new(aggregate.sql_type)),
        F::Sum | F::Avg => sum::accumulator(*argument, aggregate.sql_type, aggregate.function == F::Avg),
        F::Min => Box::new(min_max::MinMax::new(*argument, min_max::Keep::Least)),
        F::Max => Box::new(min_max::MinMax::new(*argument, min_max::Keep::Greatest)),
        F::Any => Box::new(min_max::MinMax::new(*argument, min_max::Keep::First)),
        F::StDev => Box::new(statistics::Moments::new(*argument, statistics::Statistic::StDev)),
        F::StDevP => Box::new(statistics::Moments::new(*argument, statistics::Statistic::StDevP)),
        F::Var => Box::new(statistics::Moments::new(*argument, statistics::Statistic::Var)),
        F::VarP => Box::new(statistics::Moments::new(*argument, statistics::Statistic::VarP)),
        F::ChecksumAgg => Box::new(statistics::ChecksumAgg::new(*argument)),
        F::StringAgg => Box::new(string_agg::StringAgg::new(aggregate.separator.clone().unwrap_or_default())),
    }
}
