//! Scalar subqueries over an aggregate become outer joins with a grouped aggregate.
//!
//! ```text
//! Project(... (SELECT SUM(s.x) FROM s WHERE s.k = r.k) ...)(r)
//!   ►  Project(... g.sum ...)(r LEFT JOIN Aggregate(by s.k: sum)(s) g ON g.k = r.k)
//! ```
//!
//! Sound because an aggregate without GROUP BY gives exactly one row, and one row per key is what the grouped one gives
//! for keys that occur; for others the outer join gives NULL, which is what every aggregate but COUNT gives for no rows,
//! and COUNT's NULL is turned into 0. Only equalities between an inner expression and the outer row are taken out;
//! counter-example: with `s.k < r.k` the groups of different outer rows overlap. The join keeps one row per outer row.
//! It may cost an aggregate over all of `s` where few outer rows would have sought: lowering still can, since the
//! equality is pushed through the aggregate's keys.

use super::bottom_up;
use super::decorrelate::pull;
use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind as K, BoundSubquery, ColumnRef, Rel};
use crate::expr::{AggregateFunction, CompareOp};
use crate::optimize::RuleCx;
use crate::phys::JoinKind;
use thawdb_types::{Scalar, SqlType};

/// Applies the rule everywhere.
pub(crate) fn unnest(rel: Rel, cx: &mut RuleCx<'_>) -> Rel {
    bottom_up(rel, &mut |rel| match rel {
        Rel::Project { input, mut exprs } => {
            let mut input = *input;
            for (_, expr) in &mut exprs {
                input = unnest_expr(input, expr, cx);
            }
            Rel::Project { input: Box::new(input), exprs }
        }
        Rel::Filter { input, mut predicates } => {
            let own = input.columns();
            let mut input = *input;
            for expr in &mut predicates {
                input = unnest_expr(input, expr, cx);
            }
            let grown = input.columns().len() > own.len();
            let rel = input.filter(predicates);
            if !grown {
                return rel;
            }
            let exprs = own.into_iter().map(|c| (c, cx.column_expr(c))).collect();
            Rel::Project { input: Box::new(rel), exprs }
        }
        other => other,
    })
}

fn unnest_expr(mut input: Rel, expr: &mut BoundExpr, cx: &mut RuleCx<'_>) -> Rel {
    if let K::Subquery { kind: BoundSubquery::Quantified { .. } | BoundSubquery::Exists { .. }, .. } = &expr.kind {
        return input;
    }
    for child in expr.children_mut() {
        input = unnest_expr(input, child, cx);
    }
    let K::Subquery { plan, column, kind: BoundSubquery::Scalar } = &expr.kind else { return input };
    let outer = input.columns();
    let Some(parts) = grouped(plan, *column, &outer, cx) else { return input };
    let joined =
        Rel::Join { left: Box::new(input), right: Box::new(parts.aggregate), kind: JoinKind::LeftOuter, predicates: parts.on, hint: None };
    *expr = parts.value;
    joined
}

struct Parts {
    aggregate: Rel,
    on: Vec<BoundExpr>,
    value: BoundExpr,
}

fn grouped(plan: &Rel, column: ColumnRef, outer: &[ColumnRef], cx: &mut RuleCx<'_>) -> Option<Parts> {
    if !plan.free_columns().iter().any(|c| outer.contains(c)) {
        return None;
    }
    let (aggregate, mut value) = match plan {
        Rel::Project { input, exprs } => (&**input, exprs.iter().find(|(c, _)| *c == column).map(|(_, e)| e.clone())?),
        other => (other, cx.column_expr(column)),
    };
    let Rel::Aggregate { input, keys, aggregates } = aggregate else { return None };
    if !keys.is_empty() || value.has_subquery() {
        return None;
    }
    let mut pulled = Vec::new();
    let input = pull((**input).clone(), outer, &mut pulled, cx);
    if input.free_columns().iter().any(|c| outer.contains(c)) || aggregates.iter().any(|(_, a)| a.exprs().any(|e| mentions(e, outer))) {
        return None;
    }
    let inner = input.columns();
    let mut new_keys: Vec<(ColumnRef, BoundExpr)> = Vec::new();
    let mut on = Vec::new();
    for predicate in pulled {
        let K::Compare { op: CompareOp::Equal, left, right } = predicate.kind else { return None };
        let is_inner =
            |e: &BoundExpr| !e.has_subquery() && !e.free_columns().is_empty() && e.free_columns().iter().all(|c| inner.contains(c));
        let is_outer = |e: &BoundExpr| !e.has_subquery() && !e.free_columns().iter().any(|c| inner.contains(c));
        let (own, theirs) = match (is_inner(&left) && is_outer(&right), is_inner(&right) && is_outer(&left)) {
            (true, _) => (*left, *right),
            (_, true) => (*right, *left),
            _ => return None,
        };
        let key = own.as_column().unwrap_or_else(|| cx.columns.add("", own.sql_type, own.nullable));
        if !new_keys.iter().any(|(c, _)| *c == key) {
            new_keys.push((key, own));
        }
        on.push(BoundExpr::compare(CompareOp::Equal, cx.column_expr(key), theirs));
    }
    if new_keys.is_empty() {
        return None;
    }
    let counts = counts(aggregates);
    for (id, _) in aggregates {
        cx.columns.info_mut(*id).nullable = true;
    }
    value.replace_columns(&|c| counts.iter().find(|(id, _)| *id == c).map(|(id, t)| zero_if_null(*id, *t)));
    let aggregate = Rel::Aggregate { input: Box::new(input), keys: new_keys, aggregates: aggregates.clone() };
    Some(Parts { aggregate, on, value })
}

fn mentions(expr: &BoundExpr, outer: &[ColumnRef]) -> bool {
    expr.free_columns().iter().any(|c| outer.contains(c))
}

fn counts(aggregates: &[(ColumnRef, BoundAggregate)]) -> Vec<(ColumnRef, SqlType)> {
    let counting = |a: &BoundAggregate| matches!(a.function, AggregateFunction::Count | AggregateFunction::CountBig);
    aggregates.iter().filter(|(_, a)| counting(a)).map(|(c, a)| (*c, a.sql_type)).collect()
}

fn zero_if_null(column: ColumnRef, sql_type: SqlType) -> BoundExpr {
    let value = BoundExpr { kind: K::Column(column), sql_type, nullable: true };
    let zero = if sql_type == SqlType::BigInt { Scalar::BigInt(0) } else { Scalar::Int(0) };
    let arguments = vec![value, BoundExpr::literal(zero, sql_type)];
    BoundExpr { kind: K::Function { name: "ISNULL", arguments }, sql_type, nullable: false }
}
