//! A scalar subquery compared with an indexed column runs first, and its value is sought.
//!
//! ```text
//! Filter(t.id = (SELECT MAX(x) FROM s))(Get t)   ►   SingleRow(SELECT MAX(x) FROM s) APPLY Filter(t.id = value)(Get t)
//! ```
//!
//! Sound for a subquery that refers to nothing outside: it gives the same value for every row, exactly one (NULL for no
//! row, 512 for several), so joining with it neither adds nor drops rows. Counter-example: where the table may be empty the
//! subquery now runs although no row asks for it, so a 512 can come that was not there before; SQL Server does the same.
//! Applied only when the column leads an index, since otherwise nothing is won.

use super::bottom_up;
use crate::algebra::{BoundExpr, BoundExprKind as K, BoundSubquery, ColumnRef, Get, Rel};
use crate::expr::CompareOp;
use crate::optimize::RuleCx;
use crate::phys::JoinKind;

/// Applies the rule everywhere.
pub(crate) fn seek_by_subquery(rel: Rel, cx: &mut RuleCx<'_>) -> Rel {
    bottom_up(rel, &mut |rel| match rel {
        Rel::Filter { input, predicates } => match *input {
            Rel::Get(get) => first(get, predicates, cx),
            other => Rel::Filter { input: Box::new(other), predicates },
        },
        other => other,
    })
}

fn first(get: Box<Get>, mut predicates: Vec<BoundExpr>, cx: &mut RuleCx<'_>) -> Rel {
    let found = predicates.iter_mut().find_map(|p| sought(p, &get).map(|side| take_value(side, cx)));
    let columns: Vec<ColumnRef> = get.columns.iter().map(|(_, c)| *c).collect();
    let table = Rel::Get(get).filter(predicates);
    let Some(Some(value)) = found else { return table };
    let apply = Rel::Apply { left: Box::new(value), right: Box::new(table), kind: JoinKind::Inner, predicates: Vec::new() };
    let exprs = columns.into_iter().map(|c| (c, cx.column_expr(c))).collect();
    Rel::Project { input: Box::new(apply), exprs }
}

/// The subquery side of `column op (subquery)`.
fn sought<'p>(predicate: &'p mut BoundExpr, get: &Get) -> Option<&'p mut BoundExpr> {
    let K::Compare { op, left, right } = &mut predicate.kind else { return None };
    if matches!(op, CompareOp::NotEqual | CompareOp::Same | CompareOp::NotSame) {
        return None;
    }
    let leads = |e: &BoundExpr| {
        let position = e.as_column().and_then(|c| get.columns.iter().find(|(_, id)| *id == c)).map(|(p, _)| *p);
        get.table.indexes.iter().any(|i| i.filter.is_none() && i.keys.first().is_some_and(|k| Some(k.column_index) == position))
    };
    match (leads(left) && is_free(right), leads(right) && is_free(left)) {
        (true, _) => Some(right),
        (_, true) => Some(left),
        _ => None,
    }
}

/// A scalar subquery, perhaps converted, that refers to nothing outside.
fn is_free(expr: &BoundExpr) -> bool {
    match &expr.kind {
        K::Convert { operand, .. } => is_free(operand),
        K::Subquery { plan, kind: BoundSubquery::Scalar, .. } => plan.free_columns().is_empty(),
        _ => false,
    }
}

/// Puts the subquery's column in its place; the subquery as rows.
fn take_value(side: &mut BoundExpr, cx: &mut RuleCx<'_>) -> Option<Rel> {
    let mut inner = side;
    while !matches!(inner.kind, K::Subquery { .. }) {
        let K::Convert { operand, .. } = &mut inner.kind else { return None };
        inner = operand;
    }
    let K::Subquery { plan, column, .. } = &mut inner.kind else { return None };
    let (plan, column) = (std::mem::replace(&mut **plan, Rel::OneRow), *column);
    // It has not been rewritten yet: as an expression its turn would have come last.
    let plan = super::apply_all(plan, cx).expect("rules fail only in the verifier, which panics where it runs");
    cx.columns.info_mut(column).nullable = true;
    *inner = cx.column_expr(column);
    Some(Rel::SingleRow { input: Box::new(plan) })
}
