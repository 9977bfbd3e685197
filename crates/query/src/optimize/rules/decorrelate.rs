//! Apply becomes a join where the right side can be freed of the left's columns.
//!
//! ```text
//! l APPLY Filter(r.a = l.a and p)(r)   ►   l JOIN Filter(p)(r) ON r.a = l.a
//! ```
//!
//! Sound because filtering the right side per left row and matching afterwards keep the same pairs, as long as between
//! the filter and the Apply stands nothing that looks at more than one row (TOP, aggregates, DISTINCT with other columns).
//! Counter-example: `CROSS APPLY (SELECT TOP 1 ... WHERE r.a = l.a)`: the first row of each group is not the first of all.
//! Such an Apply stays, and is correct. After Neumann and Kemper, *Unnesting Arbitrary Queries* (BTW 2015), the simple half.

use super::bottom_up;
use crate::algebra::{BoundExpr, ColumnRef, Rel};
use crate::optimize::RuleCx;
use crate::phys::JoinKind;

/// Applies the rule everywhere.
pub(crate) fn decorrelate(rel: Rel, cx: &mut RuleCx<'_>) -> Rel {
    bottom_up(rel, &mut |rel| match rel {
        Rel::Apply { left, right, kind, predicates } => free(left, right, kind, predicates, cx),
        other => other,
    })
}

fn free(left: Box<Rel>, right: Box<Rel>, kind: JoinKind, predicates: Vec<BoundExpr>, cx: &mut RuleCx<'_>) -> Rel {
    let outer = left.columns();
    let correlated = |r: &Rel| r.free_columns().iter().any(|c| outer.contains(c));
    if !correlated(&right) {
        return Rel::Join { left, right, kind, predicates, hint: None };
    }
    let mut pulled = predicates.clone();
    let freed = pull((*right).clone(), &outer, &mut pulled, cx);
    if correlated(&freed) || pulled.iter().any(|p| p.has_subquery() && !predicates.iter().any(|own| own.same(p))) {
        return Rel::Apply { left, right, kind, predicates };
    }
    Rel::Join { left, right: Box::new(freed), kind, predicates: pulled, hint: None }
}

fn mentions(expr: &BoundExpr, outer: &[ColumnRef]) -> bool {
    expr.free_columns().iter().any(|c| outer.contains(c))
}

/// Takes predicates that mention `outer` out of `rel`, passing on the columns they need.
pub(super) fn pull(rel: Rel, outer: &[ColumnRef], pulled: &mut Vec<BoundExpr>, cx: &RuleCx<'_>) -> Rel {
    match rel {
        Rel::Filter { input, predicates } => {
            let (correlated, own): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|p| mentions(p, outer) && !p.is_volatile());
            pulled.extend(correlated);
            pull(*input, outer, pulled, cx).filter(own)
        }
        Rel::Project { input, mut exprs } => {
            let mut inner = Vec::new();
            let input = pull(*input, outer, &mut inner, cx);
            let have = input.columns();
            for column in inner.iter().flat_map(|p| p.free_columns()) {
                if have.contains(&column) && !exprs.iter().any(|(c, _)| *c == column) {
                    exprs.push((column, cx.column_expr(column)));
                }
            }
            pulled.extend(inner);
            Rel::Project { input: Box::new(input), exprs }
        }
        Rel::Join { left, right, kind: JoinKind::Inner, predicates, hint } => {
            let (correlated, own): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|p| mentions(p, outer));
            pulled.extend(correlated);
            let left = Box::new(pull(*left, outer, pulled, cx));
            let right = Box::new(pull(*right, outer, pulled, cx));
            Rel::Join { left, right, kind: JoinKind::Inner, predicates: own, hint }
        }
        Rel::Join { left, right, kind, predicates, hint }
            if matches!(kind, JoinKind::LeftOuter | JoinKind::LeftSemi | JoinKind::LeftAnti) =>
        {
            let left = Box::new(pull(*left, outer, pulled, cx));
            Rel::Join { left, right, kind, predicates, hint }
        }
        other => other,
    }
}
