//! A copy of a tree under new column ids: where a rewrite needs an input twice (NOT IN over NULLs, GROUPING SETS).

use super::columns::{ColumnRef, Columns};
use super::expr::{BoundExpr, BoundExprKind};
use super::rel::Rel;
use std::collections::BTreeMap;

/// Copies `rel`, giving every column it produces a new id. The map leads from old ids to new ones.
pub fn refresh(rel: &Rel, columns: &mut Columns) -> (Rel, BTreeMap<ColumnRef, ColumnRef>) {
    let mut copy = rel.clone();
    let map: BTreeMap<ColumnRef, ColumnRef> = rel.produced().into_iter().map(|old| (old, columns.copy(old))).collect();
    rename(&mut copy, &map);
    (copy, map)
}

/// Renames columns wherever they are produced or referred to.
pub fn rename(rel: &mut Rel, map: &BTreeMap<ColumnRef, ColumnRef>) {
    rename_produced(rel, map);
    rel.rewrite_exprs(&mut |e: &mut BoundExpr| match &mut e.kind {
        BoundExprKind::Column(c) => replace(c, map),
        BoundExprKind::Subquery { plan, column, .. } => {
            // A subquery inside keeps its own ids: two copies of it never meet in one scope.
            if let Some(new) = map.get(column) {
                *column = *new;
            }
            rename_produced(plan, map);
        }
        _ => {}
    });
}

fn replace(column: &mut ColumnRef, map: &BTreeMap<ColumnRef, ColumnRef>) {
    if let Some(new) = map.get(column) {
        *column = *new;
    }
}

fn rename_produced(rel: &mut Rel, map: &BTreeMap<ColumnRef, ColumnRef>) {
    for input in rel.inputs_mut() {
        rename_produced(input, map);
    }
    let list = |columns: &mut Vec<ColumnRef>| columns.iter_mut().for_each(|c| replace(c, map));
    match rel {
        Rel::Values { columns, .. } | Rel::WorkTable { columns, .. } => list(columns),
        Rel::Get(get) => get.columns.iter_mut().for_each(|(_, c)| replace(c, map)),
        Rel::Source { columns, .. } => columns.iter_mut().for_each(|(_, c)| replace(c, map)),
        Rel::Project { exprs, .. } => exprs.iter_mut().for_each(|(c, _)| replace(c, map)),
        Rel::Aggregate { keys, aggregates, .. } => {
            keys.iter_mut().for_each(|(c, _)| replace(c, map));
            aggregates.iter_mut().for_each(|(c, _)| replace(c, map));
        }
        Rel::Window { functions, .. } => functions.iter_mut().for_each(|(c, _)| replace(c, map)),
        Rel::UnionAll { inputs, columns } => {
            list(columns);
            inputs.iter_mut().for_each(|(_, c)| list(c));
        }
        Rel::SetDifference { left_columns, right_columns, .. } => {
            list(left_columns);
            list(right_columns);
        }
        Rel::Recursive { anchor, recursive, columns, .. } => {
            list(columns);
            list(&mut anchor.1);
            list(&mut recursive.1);
        }
        Rel::OneRow
        | Rel::Filter { .. }
        | Rel::Join { .. }
        | Rel::Apply { .. }
        | Rel::Distinct { .. }
        | Rel::Sort { .. }
        | Rel::Limit { .. }
        | Rel::SingleRow { .. } => {}
    }
}
