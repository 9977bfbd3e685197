//! Predicates move to where their columns come from.
//!
//! ```text
//! Filter(p)(Join(l, r))  ►  Join(Filter(p of l)(l), Filter(p of r)(r)) on the rest
//! ```
//!
//! Sound where dropping a row early drops the same results: below inner joins on either side; below the preserved side
//! of an outer join from above, and below the other side from its ON; below DISTINCT, ORDER BY, UNION ALL; below GROUP BY
//! if it speaks of keys. Counter-examples: `TOP 1 ... WHERE` above a Limit must not choose among fewer rows; a predicate
//! on the optional side of an outer join would turn non-matches into matches. A volatile predicate never moves. What may
//! fail (a division) can be evaluated on rows a join would have dropped, as in SQL Server.
//!
//! Right outer joins are turned into left ones on the way. Costs one walk.

use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Rel};
use crate::optimize::RuleCx;
use crate::phys::JoinKind;

/// Moves every predicate of `rel` as far down as it may go.
pub(crate) fn push_down(rel: Rel, _: &mut RuleCx<'_>) -> Rel {
    push(rel, Vec::new())
}

/// Whether `expr` uses no column of `columns`: those of enclosing queries count as constants.
fn none_of(expr: &BoundExpr, columns: &[ColumnRef]) -> bool {
    !expr.free_columns().iter().any(|c| columns.contains(c))
}

fn boxed(rel: Rel, predicates: Vec<BoundExpr>) -> Box<Rel> {
    Box::new(push(rel, predicates))
}

/// `rel` under `predicates`.
pub(crate) fn push(rel: Rel, predicates: Vec<BoundExpr>) -> Rel {
    let (stay, mut go): (Vec<_>, Vec<_>) = predicates.into_iter().partition(BoundExpr::is_volatile);
    let rel = match rel {
        Rel::Filter { input, predicates } => {
            let (volatile, own): (Vec<_>, Vec<_>) = predicates.into_iter().partition(BoundExpr::is_volatile);
            go.extend(own);
            push(*input, go).filter(volatile)
        }
        Rel::Project { input, exprs } => push_project(*input, exprs, go),
        Rel::Join { left, right, kind, predicates, hint } => match kind {
            JoinKind::RightOuter => push(Rel::Join { left: right, right: left, kind: JoinKind::LeftOuter, predicates, hint }, go),
            _ => {
                let rebuild = move |left, right, predicates| Rel::Join { left, right, kind, predicates, hint };
                push_join(*left, *right, kind, predicates, go, false, &rebuild)
            }
        },
        Rel::Apply { left, right, kind, predicates } => {
            let rebuild = move |left, right, predicates| Rel::Apply { left, right, kind, predicates };
            push_join(*left, *right, kind, predicates, go, true, &rebuild)
        }
        Rel::Aggregate { input, keys, aggregates } => push_aggregate(*input, keys, aggregates, go),
        Rel::Distinct { input } => Rel::Distinct { input: boxed(*input, go) },
        Rel::Sort { input, keys } => Rel::Sort { input: boxed(*input, go), keys },
        Rel::UnionAll { inputs, columns } => push_union(inputs, columns, go),
        Rel::Window { input, partition, order, functions } => {
            let by: Vec<ColumnRef> = partition.iter().filter_map(BoundExpr::as_column).collect();
            let own: Vec<ColumnRef> = input.columns().into_iter().chain(functions.iter().map(|(c, _)| *c)).collect();
            let of_partition = |p: &BoundExpr| p.free_columns().iter().all(|c| by.contains(c) || !own.contains(c));
            let (below, above): (Vec<_>, Vec<_>) = go.into_iter().partition(of_partition);
            Rel::Window { input: boxed(*input, below), partition, order, functions }.filter(above)
        }
        mut other => {
            // A barrier: predicates inside still move within.
            for input in other.inputs_mut() {
                let inner = std::mem::replace(input, Rel::OneRow);
                *input = push(inner, Vec::new());
            }
            other.filter(go)
        }
    };
    rel.filter(stay)
}

fn push_project(input: Rel, exprs: Vec<(ColumnRef, BoundExpr)>, go: Vec<BoundExpr>) -> Rel {
    let movable = |p: &BoundExpr| {
        let free = p.free_columns();
        let used = exprs.iter().filter(|(c, _)| free.contains(c));
        used.clone().all(|(_, e)| !e.is_volatile() && !e.has_subquery())
            && (!p.has_subquery() || used.clone().all(|(c, e)| e.as_column() == Some(*c)))
    };
    let (mut below, above): (Vec<_>, Vec<_>) = go.into_iter().partition(movable);
    for predicate in &mut below {
        predicate.replace_columns(&|c| exprs.iter().find(|(id, e)| *id == c && e.as_column() != Some(c)).map(|(_, e)| e.clone()));
    }
    Rel::Project { input: boxed(input, below), exprs }.filter(above)
}

/// Joins and Applies. Of an Apply the right side may use the left's columns, so anything that mentions the right may go there.
fn push_join(
    left: Rel,
    right: Rel,
    kind: JoinKind,
    own: Vec<BoundExpr>,
    above: Vec<BoundExpr>,
    apply: bool,
    rebuild: &dyn Fn(Box<Rel>, Box<Rel>, Vec<BoundExpr>) -> Rel,
) -> Rel {
    let (l, r) = (left.columns(), right.columns());
    let of_left = |p: &BoundExpr| none_of(p, &r);
    let of_right = |p: &BoundExpr| if apply { !none_of(p, &r) || none_of(p, &l) } else { none_of(p, &l) };
    let (mut to_left, mut to_right, mut stay, mut over) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    match kind {
        JoinKind::Inner => {
            for p in own.into_iter().chain(above) {
                if p.is_volatile() {
                    stay.push(p);
                } else if of_left(&p) && of_right(&p) && !apply && !p.has_subquery() && p.free_columns().is_empty() {
                    // A constant condition stops both sides.
                    to_left.push(p.clone());
                    to_right.push(p);
                } else if of_left(&p) {
                    to_left.push(p);
                } else if of_right(&p) && !(apply && p.has_subquery()) {
                    to_right.push(p);
                } else {
                    stay.push(p);
                }
            }
        }
        JoinKind::LeftOuter | JoinKind::LeftSemi | JoinKind::LeftAnti => {
            for p in own {
                if !p.is_volatile() && of_right(&p) && !(apply && p.has_subquery()) {
                    to_right.push(p);
                } else if kind == JoinKind::LeftSemi && !p.is_volatile() && of_left(&p) {
                    to_left.push(p);
                } else {
                    stay.push(p);
                }
            }
            for p in above {
                if of_left(&p) || kind != JoinKind::LeftOuter { to_left.push(p) } else { over.push(p) }
            }
        }
        JoinKind::RightOuter | JoinKind::FullOuter => {
            stay = own;
            over = above;
        }
    }
    rebuild(boxed(left, to_left), boxed(right, to_right), stay).filter(over)
}

fn push_aggregate(
    input: Rel,
    keys: Vec<(ColumnRef, BoundExpr)>,
    aggregates: Vec<(ColumnRef, crate::algebra::BoundAggregate)>,
    go: Vec<BoundExpr>,
) -> Rel {
    let ids: Vec<ColumnRef> = keys.iter().map(|(c, _)| *c).collect();
    let computed: Vec<ColumnRef> = aggregates.iter().map(|(c, _)| *c).collect();
    let of_keys = |p: &BoundExpr| !ids.is_empty() && none_of(p, &computed) && !p.free_columns().is_empty() && !p.has_subquery();
    let (mut below, above): (Vec<_>, Vec<_>) = go.into_iter().partition(of_keys);
    for predicate in &mut below {
        predicate.replace_columns(&|c| keys.iter().find(|(id, e)| *id == c && e.as_column() != Some(c)).map(|(_, e)| e.clone()));
    }
    Rel::Aggregate { input: boxed(input, below), keys, aggregates }.filter(above)
}

fn push_union(inputs: Vec<(Rel, Vec<ColumnRef>)>, columns: Vec<ColumnRef>, go: Vec<BoundExpr>) -> Rel {
    let (above, below): (Vec<_>, Vec<_>) = go.into_iter().partition(BoundExpr::has_subquery);
    let renamed = |p: &BoundExpr, own: &[ColumnRef]| {
        let mut p = p.clone();
        p.rewrite(&mut |e| {
            if let BoundExprKind::Column(c) = &mut e.kind {
                if let Some(at) = columns.iter().position(|x| x == c) {
                    *c = own[at];
                }
            }
        });
        p
    };
    let inputs = inputs
        .into_iter()
        .map(|(rel, own)| {
            let mine = below.iter().map(|p| renamed(p, &own)).collect();
            (push(rel, mine), own)
        })
        .collect();
    Rel::UnionAll { inputs, columns: columns.clone() }.filter(above)
}
