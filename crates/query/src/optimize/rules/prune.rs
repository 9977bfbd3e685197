//! Column pruning.
//!
//! Before: `Project(a)(Get(a, b, c))`. After: `Project(a)(Get(a))`.
//!
//! Sound because a column is dropped only where no operator above, and no correlation beside, refers to it. DISTINCT and
//! set operations refer to all of theirs: `SELECT COUNT(*) FROM (SELECT DISTINCT a, b ...)` must not lose b. A work table
//! keeps its width, since it is filled by position. Costs one walk.

use crate::algebra::{ColumnRef, Rel};

fn with(needed: &[ColumnRef], rel: &Rel) -> Vec<ColumnRef> {
    let mut all = needed.to_vec();
    for expr in rel.exprs() {
        expr.collect_free(&mut all);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Drops what is not among `needed` or used on the way.
pub(crate) fn prune(rel: &mut Rel, needed: &[ColumnRef]) {
    match rel {
        Rel::OneRow | Rel::WorkTable { .. } => {}
        Rel::Get(get) => get.columns.retain(|(_, c)| needed.contains(c)),
        Rel::Source { columns, .. } => columns.retain(|(_, c)| needed.contains(c)),
        Rel::Values { rows, columns } => {
            let keep: Vec<bool> = columns.iter().map(|c| needed.contains(c)).collect();
            retain_by(columns, &keep);
            rows.iter_mut().for_each(|row| retain_by(row, &keep));
        }
        Rel::Project { exprs, .. } => {
            exprs.retain(|(c, _)| needed.contains(c));
            descend(rel, &[]);
        }
        Rel::Aggregate { aggregates, .. } => {
            aggregates.retain(|(c, _)| needed.contains(c));
            descend(rel, &[]);
        }
        Rel::Window { input, functions, .. } => {
            functions.retain(|(c, _)| needed.contains(c));
            if functions.is_empty() {
                *rel = std::mem::replace(&mut **input, Rel::OneRow);
                prune(rel, needed);
            } else {
                descend(rel, needed);
            }
        }
        Rel::Filter { .. } | Rel::Join { .. } | Rel::Sort { .. } | Rel::Limit { .. } | Rel::SingleRow { .. } => descend(rel, needed),
        Rel::Apply { .. } => {
            let mut all = with(needed, rel);
            let Rel::Apply { left, right, .. } = rel else { return };
            prune(right, &all);
            all.extend(right.free_columns());
            prune(left, &all);
        }
        Rel::Distinct { input } => {
            let all = input.columns();
            prune(input, &all);
        }
        Rel::UnionAll { inputs, columns } => {
            let keep: Vec<bool> = columns.iter().map(|c| needed.contains(c)).collect();
            retain_by(columns, &keep);
            for (input, list) in inputs {
                retain_by(list, &keep);
                prune(input, list);
            }
        }
        Rel::SetDifference { left, right, left_columns, right_columns, .. } => {
            prune(left, left_columns);
            prune(right, right_columns);
        }
        Rel::Recursive { anchor, recursive, .. } => {
            let (rel, list) = &mut **anchor;
            prune(rel, list);
            let (rel, list) = &mut **recursive;
            prune(rel, list);
        }
    }
}

fn descend(rel: &mut Rel, needed: &[ColumnRef]) {
    let all = with(needed, rel);
    rel.inputs_mut().into_iter().for_each(|input| prune(input, &all));
}

fn retain_by<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        keep[at - 1]
    });
}
