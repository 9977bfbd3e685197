//! Outer joins whose added rows would be thrown away become inner ones.
//!
//! Before: `Filter(r.x = 5)(l LEFT JOIN r)`. After: `Filter(r.x = 5)(l JOIN r)`.
//!
//! Sound when a predicate above is not true for a row in which all of the optional side's columns are NULL.
//! Counter-examples: `r.x IS NULL` and `ISNULL(r.x, 5) = 5` hold for such rows. A full join loses one side at a time.
//! Costs one walk.

use crate::algebra::{BoundExpr, BoundExprKind as K, ColumnRef, Rel};
use crate::expr::CompareOp;
use crate::optimize::RuleCx;
use crate::phys::JoinKind;

/// Applies the rule everywhere.
pub(crate) fn outer_to_inner(rel: Rel, _: &mut RuleCx<'_>) -> Rel {
    descend(rel, &[])
}

/// `above` are predicates every row that matters satisfies.
fn descend(mut rel: Rel, above: &[BoundExpr]) -> Rel {
    match &mut rel {
        Rel::Filter { input, predicates } => {
            let all: Vec<BoundExpr> = above.iter().chain(predicates.iter()).cloned().collect();
            replace(input, &all);
        }
        Rel::Join { left, right, kind, predicates, .. } => {
            let rejects = |side: &Rel| above.iter().any(|p| rejects_null(p, &side.columns()));
            *kind = match *kind {
                JoinKind::LeftOuter if rejects(right) => JoinKind::Inner,
                JoinKind::RightOuter if rejects(left) => JoinKind::Inner,
                JoinKind::FullOuter => match (rejects(left), rejects(right)) {
                    (true, true) => JoinKind::Inner,
                    (true, false) => JoinKind::LeftOuter,
                    (false, true) => JoinKind::RightOuter,
                    (false, false) => JoinKind::FullOuter,
                },
                other => other,
            };
            let inside: Vec<BoundExpr> = match kind {
                JoinKind::Inner | JoinKind::LeftSemi => above.iter().chain(predicates.iter()).cloned().collect(),
                JoinKind::LeftOuter | JoinKind::LeftAnti => above.to_vec(),
                JoinKind::RightOuter | JoinKind::FullOuter => Vec::new(),
            };
            replace(left, &inside);
            let right_side: &[BoundExpr] = if matches!(kind, JoinKind::Inner) { &inside } else { predicates };
            replace(right, right_side);
        }
        Rel::Apply { left, right, kind, predicates } => {
            if *kind == JoinKind::LeftOuter && above.iter().any(|p| rejects_null(p, &right.columns())) {
                *kind = JoinKind::Inner;
            }
            replace(left, above);
            replace(right, predicates);
        }
        Rel::Sort { input, .. } => replace(input, above),
        Rel::Project { input, exprs } if exprs.iter().all(|(c, e)| e.as_column().is_none_or(|x| x == *c)) => replace(input, above),
        other => {
            for input in other.inputs_mut() {
                replace(input, &[]);
            }
        }
    }
    rel
}

fn replace(rel: &mut Rel, above: &[BoundExpr]) {
    let inner = std::mem::replace(rel, Rel::OneRow);
    *rel = descend(inner, above);
}

/// Whether `predicate` cannot be true when every one of `columns` is NULL.
pub(crate) fn rejects_null(predicate: &BoundExpr, columns: &[ColumnRef]) -> bool {
    match &predicate.kind {
        K::Compare { op, left, right } if !matches!(op, CompareOp::Same | CompareOp::NotSame) => {
            is_strict(left, columns) || is_strict(right, columns)
        }
        K::IsNull { operand, negated: true } => is_strict(operand, columns),
        K::InList { operand, .. } => is_strict(operand, columns),
        K::Like { operand, pattern, .. } => is_strict(operand, columns) || is_strict(pattern, columns),
        K::And(terms) => terms.iter().any(|t| rejects_null(t, columns)),
        K::Or(terms) => terms.iter().all(|t| rejects_null(t, columns)),
        _ => false,
    }
}

/// Whether `expr` is NULL when every one of `columns` is.
fn is_strict(expr: &BoundExpr, columns: &[ColumnRef]) -> bool {
    match &expr.kind {
        K::Column(c) => columns.contains(c),
        K::Arithmetic { left, right, .. } | K::Concat(left, right) => is_strict(left, columns) || is_strict(right, columns),
        K::Negate(e) | K::BitNot(e) | K::Collate(e) | K::Convert { operand: e, .. } => is_strict(e, columns),
        _ => false,
    }
}
