//! MIN and MAX of an indexed column read one row at an end of the index.
//!
//! Before: `Aggregate(MIN(a))(Get)`. After: `Aggregate(MIN(a))(TOP 1 by a (Filter(a IS NOT NULL)(Get)))`.
//!
//! Sound because the aggregate of the one row that sorts first among the non-NULL ones is the minimum, and no row gives
//! NULL as before. Applied only to a single aggregate over a bare table with an index that leads with the column: under
//! any other filter the row sought may lie anywhere, and a scan in that order could read everything twice as slowly.

use super::bottom_up;
use crate::algebra::{BoundExpr, BoundExprKind as K, BoundSortKey, Rel, Top};
use crate::expr::AggregateFunction;
use crate::optimize::RuleCx;
use thawdb_types::{Scalar, SqlType};

/// Applies the rule everywhere.
pub(crate) fn min_max(rel: Rel, _: &mut RuleCx<'_>) -> Rel {
    bottom_up(rel, &mut |rel| match rel {
        Rel::Aggregate { input, keys, aggregates } if keys.is_empty() && aggregates.len() == 1 => {
            let input = match end_of_index(&input, &aggregates[0].1) {
                Some((column, descending)) => Box::new(first(*input, column, descending)),
                None => input,
            };
            Rel::Aggregate { input, keys, aggregates }
        }
        other => other,
    })
}

fn end_of_index(input: &Rel, aggregate: &crate::algebra::BoundAggregate) -> Option<(BoundExpr, bool)> {
    let descending = match aggregate.function {
        AggregateFunction::Min => false,
        AggregateFunction::Max => true,
        _ => return None,
    };
    let argument = aggregate.argument.as_ref()?;
    let column = argument.as_column()?;
    let Rel::Get(get) = input else { return None };
    let (index, _) = get.columns.iter().find(|(_, c)| *c == column)?;
    let leads = |i: &thawdb_catalog::IndexDef| i.filter.is_none() && i.keys.first().is_some_and(|k| k.column_index == *index);
    get.table.indexes.iter().any(leads).then(|| (argument.clone(), descending))
}

fn first(input: Rel, column: BoundExpr, descending: bool) -> Rel {
    let not_null = K::IsNull { operand: Box::new(column.clone()), negated: true };
    let input =
        if column.nullable { input.filter(vec![BoundExpr { kind: not_null, sql_type: SqlType::Bit, nullable: false }]) } else { input };
    let sorted = Rel::Sort { input: Box::new(input), keys: vec![BoundSortKey { expr: column, descending }] };
    let limit = Some(BoundExpr::literal(Scalar::BigInt(1), SqlType::BigInt));
    Rel::Limit { input: Box::new(sorted), top: Box::new(Top { offset: None, limit, percent: false, ties: Vec::new() }) }
}
