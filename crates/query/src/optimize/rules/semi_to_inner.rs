//! A semi join whose right side has at most one row for each left row is an inner join.
//!
//! ```text
//! l SEMI JOIN Filter(p)(Get t) ON t.key = l.a   ►   Project(columns of l)(l JOIN Filter(p)(Get t) ON t.key = l.a)
//! ```
//!
//! Sound because equality with every column of a unique key matches one row or none, so that no left row comes twice. An
//! inner join may be ordered among others and begin with its right side; a semi join stays where it was written.
//! Counter-example: with part of a key alone a left row may match several rows and would be told as often.

use super::bottom_up;
use crate::algebra::{BoundExpr, BoundExprKind as K, ColumnRef, Rel};
use crate::expr::CompareOp;
use crate::optimize::RuleCx;
use crate::phys::JoinKind;

/// Applies the rule everywhere.
pub(crate) fn semi_to_inner(rel: Rel, cx: &mut RuleCx<'_>) -> Rel {
    bottom_up(rel, &mut |rel| match rel {
        Rel::Join { left, right, kind: JoinKind::LeftSemi, predicates, hint } if matches_once(&right, &predicates) => {
            let exprs = left.columns().into_iter().map(|column| (column, cx.column_expr(column))).collect();
            let input = Box::new(Rel::Join { left, right, kind: JoinKind::Inner, predicates, hint });
            Rel::Project { input, exprs }
        }
        other => other,
    })
}

/// Whether `predicates` fix a unique key of `right` by values of the other side.
fn matches_once(right: &Rel, predicates: &[BoundExpr]) -> bool {
    let own = right.columns();
    let foreign = |expr: &BoundExpr| !expr.has_subquery() && !expr.free_columns().iter().any(|column| own.contains(column));
    let fixed = |predicate: &BoundExpr| {
        let K::Compare { op: CompareOp::Equal, left, right } = &predicate.kind else { return None };
        let own_column = |side: &BoundExpr| side.as_column().filter(|column| own.contains(column));
        own_column(left).filter(|_| foreign(right)).or_else(|| own_column(right).filter(|_| foreign(left)))
    };
    let fixed: Vec<ColumnRef> = predicates.iter().filter_map(fixed).collect();
    is_unique(right, &fixed)
}

/// Whether no two rows of `rel` agree in all of `columns`.
fn is_unique(rel: &Rel, columns: &[ColumnRef]) -> bool {
    match rel {
        Rel::Filter { input, .. } => is_unique(input, columns),
        Rel::Project { input, exprs } => {
            let below = |column: &ColumnRef| exprs.iter().find(|(id, _)| id == column).and_then(|(_, expr)| expr.as_column());
            is_unique(input, &columns.iter().filter_map(below).collect::<Vec<_>>())
        }
        Rel::Get(get) => {
            let is_fixed = |position: usize| get.columns.iter().any(|(at, column)| *at == position && columns.contains(column));
            let mut unique = get.table.indexes.iter().filter(|i| i.unique && i.filter.is_none() && !i.keys.is_empty());
            unique.any(|index| index.keys.iter().all(|key| is_fixed(key.column_index)))
        }
        _ => false,
    }
}
