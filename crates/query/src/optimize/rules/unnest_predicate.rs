//! EXISTS, IN, ANY and ALL among the terms of a WHERE become semi and anti joins.
//!
//! ```text
//! Filter(EXISTS q)(r)      ►  r APPLY-SEMI q
//! Filter(x IN q)(r)        ►  r APPLY-SEMI q  on x = q.c
//! Filter(x NOT IN q)(r)    ►  r APPLY-ANTI q  on x = q.c, or x IS NULL, or q.c IS NULL
//! ```
//!
//! Sound because a term of a conjunction keeps a row only when it is true: false and unknown are the same here. `x op ALL
//! q` is true exactly when no row of q makes `x op c` false or unknown, which the NULL terms say; they are left out where
//! neither side can be NULL. Counter-example: inside OR or in a select list unknown differs from false, so those stay.
//! [`super::decorrelate`] turns Apply into joins. NOT IN over a nullable, uncorrelated column is made of three hashable
//! parts instead of one that is not: no match, no NULL in q, and x not NULL unless q is empty.

use super::bottom_up;
use super::fold::opposite;
use crate::algebra::refresh::refresh;
use crate::algebra::{BoundExpr, BoundExprKind as K, BoundSubquery, ColumnRef, Rel, Top};
use crate::expr::CompareOp;
use crate::optimize::RuleCx;
use crate::phys::JoinKind;
use thawdb_types::{Scalar, SqlType};

/// Applies the rule everywhere.
pub(crate) fn unnest(rel: Rel, cx: &mut RuleCx<'_>) -> Rel {
    bottom_up(rel, &mut |rel| match rel {
        Rel::Filter { input, predicates } => unnest_filter(*input, predicates, cx),
        other => other,
    })
}

fn unnest_filter(input: Rel, predicates: Vec<BoundExpr>, cx: &mut RuleCx<'_>) -> Rel {
    let (subqueries, plain): (Vec<_>, Vec<_>) = predicates
        .into_iter()
        .partition(|p| matches!(&p.kind, K::Subquery { kind: BoundSubquery::Exists { .. } | BoundSubquery::Quantified { .. }, .. }));
    // A scalar subquery is asked of the rows that the others leave.
    let (last, first): (Vec<_>, Vec<_>) = plain.into_iter().partition(BoundExpr::has_subquery);
    let mut rel = input.filter(first);
    for predicate in subqueries {
        let K::Subquery { plan, column, kind } = predicate.kind else { continue };
        // What is inside is unnested in its turn.
        let plan = unnest(*plan, cx);
        rel = match kind {
            BoundSubquery::Exists { negated } => {
                let kind = if negated { JoinKind::LeftAnti } else { JoinKind::LeftSemi };
                apply(rel, any_row(plan), kind, Vec::new())
            }
            BoundSubquery::Quantified { operand, op, all: false } => {
                let value = cx.column_expr(column);
                apply(rel, plan, JoinKind::LeftSemi, vec![BoundExpr::compare(op, *operand, value)])
            }
            BoundSubquery::Quantified { operand, op, all: true } => anti(rel, plan, column, *operand, op, cx),
            BoundSubquery::Scalar => rel,
        };
    }
    rel.filter(last)
}

fn apply(left: Rel, right: Rel, kind: JoinKind, predicates: Vec<BoundExpr>) -> Rel {
    Rel::Apply { left: Box::new(left), right: Box::new(right), kind, predicates }
}

fn is_null(expr: BoundExpr, negated: bool) -> BoundExpr {
    BoundExpr { kind: K::IsNull { operand: Box::new(expr), negated }, sql_type: SqlType::Bit, nullable: false }
}

/// `x op ALL (plan)`.
fn anti(rel: Rel, plan: Rel, column: ColumnRef, operand: BoundExpr, op: CompareOp, cx: &mut RuleCx<'_>) -> Rel {
    let value = cx.column_expr(column);
    let fails = BoundExpr::compare(opposite(op), operand.clone(), value.clone());
    let mut nulls = Vec::new();
    if operand.nullable {
        nulls.push(is_null(operand.clone(), false));
    }
    if value.nullable {
        nulls.push(is_null(value, false));
    }
    if nulls.is_empty() {
        return apply(rel, plan, JoinKind::LeftAnti, vec![fails]);
    }
    let hashable = op == CompareOp::NotEqual && plan.free_columns().is_empty() && !operand.has_subquery();
    if !hashable {
        nulls.insert(0, fails);
        return apply(rel, plan, JoinKind::LeftAnti, vec![BoundExpr { kind: K::Or(nulls), sql_type: SqlType::Bit, nullable: true }]);
    }
    let mut rel = rel;
    if cx.columns.info(column).nullable {
        let (copy, map) = refresh(&plan, &mut cx.columns);
        let value = cx.column_expr(map[&column]);
        rel = apply(rel, first_row(copy.filter(vec![is_null(value, false)])), JoinKind::LeftAnti, Vec::new());
    }
    if operand.nullable {
        let (copy, _) = refresh(&plan, &mut cx.columns);
        rel = apply(rel, first_row(copy), JoinKind::LeftAnti, vec![is_null(operand, false)]);
    }
    apply(rel, plan, JoinKind::LeftAnti, vec![fails])
}

fn first_row(rel: Rel) -> Rel {
    let limit = Some(BoundExpr::literal(Scalar::BigInt(1), SqlType::BigInt));
    Rel::Limit { input: Box::new(rel), top: Box::new(Top { offset: None, limit, percent: false, ties: Vec::new() }) }
}

/// Drops what does not change whether there is a row: columns, order, DISTINCT, TOP of at least one.
fn any_row(rel: Rel) -> Rel {
    match rel {
        Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Distinct { input } => any_row(*input),
        Rel::Limit { input, top }
            if top.offset.is_none()
                && !top.percent
                && top.limit.as_ref().and_then(crate::functions::signature::constant_int).is_some_and(|n| n >= 1) =>
        {
            any_row(*input)
        }
        // Grouping with keys has a group exactly when there is a row; without keys there is always one.
        Rel::Aggregate { input, keys, .. } if !keys.is_empty() => any_row(*input),
        other => other,
    }
}
