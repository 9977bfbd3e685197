//! What every branch of an OR says is said once, and what it says of one table alone is said there too.
//!
//! ```text
//! (a = b and p) or (a = b and q)          ►  a = b and (p or q)
//! Filter((x.c = 1 and y.d = 2) or (x.c = 3 and y.d = 4))(x JOIN y)
//!   ►  Filter(the same, x.c = 1 or x.c = 3, y.d = 2 or y.d = 4)(x JOIN y)
//! ```
//!
//! The first is the distributive law, which three-valued logic has as well. The second only adds what follows: where the
//! whole is true some branch is, and with it that branch's terms on the table. Counter-example to more: a branch without a
//! term on the table lets every row of it through, so nothing is added then. Volatile terms and subqueries are left alone:
//! each place they stand in would ask them again. Runs once, since what it adds would be added again. Costs one walk.

use super::bottom_up;
use crate::algebra::{BoundExpr, BoundExprKind as K, ColumnRef, Rel};
use crate::optimize::RuleCx;
use crate::phys::JoinKind;
use thawdb_types::SqlType;

/// Branches of an OR that are looked at; more are a list of something else than join conditions.
const BRANCHES_MAX: usize = 64;

/// Applies the rule everywhere.
pub(crate) fn or_terms(rel: Rel, _: &mut RuleCx<'_>) -> Rel {
    bottom_up(rel, &mut |mut rel| {
        if let Rel::Filter { predicates, .. } | Rel::Join { predicates, .. } | Rel::Apply { predicates, .. } = &mut rel {
            let whole = std::mem::take(predicates);
            *predicates = whole.into_iter().flat_map(common_terms).collect();
        }
        derive(&mut rel);
        rel
    })
}

/// The branches of an OR, each as its terms; `None` for anything else.
fn branches(predicate: &BoundExpr) -> Option<Vec<Vec<BoundExpr>>> {
    match &predicate.kind {
        K::Or(terms) if terms.len() <= BRANCHES_MAX && !predicate.is_volatile() && !predicate.has_subquery() => {
            Some(terms.iter().map(|term| term.clone().conjuncts()).collect())
        }
        _ => None,
    }
}

fn any_of(mut terms: Vec<BoundExpr>) -> BoundExpr {
    if terms.len() == 1 {
        return terms.remove(0);
    }
    let nullable = terms.iter().any(|term| term.nullable);
    BoundExpr { kind: K::Or(terms), sql_type: SqlType::Bit, nullable }
}

/// `predicate` as a conjunction of what all its branches have in common and an OR of the rest.
fn common_terms(predicate: BoundExpr) -> Vec<BoundExpr> {
    let Some(mut branches) = branches(&predicate) else { return vec![predicate] };
    let (first, others) = branches.split_first().expect("an OR has branches");
    let is_common = |term: &&BoundExpr| others.iter().all(|branch| branch.iter().any(|other| other.same(term)));
    let mut common: Vec<BoundExpr> = Vec::new();
    for term in first.iter().filter(is_common) {
        if !common.iter().any(|known| known.same(term)) {
            common.push(term.clone());
        }
    }
    if common.is_empty() {
        return vec![predicate];
    }
    for branch in &mut branches {
        branch.retain(|term| !common.iter().any(|known| known.same(term)));
    }
    // A branch that says nothing else is true wherever the common terms are.
    if !branches.iter().any(Vec::is_empty) {
        common.push(any_of(branches.into_iter().map(BoundExpr::and).collect()));
    }
    common
}

/// Adds to a filter or an inner join what its ORs say of each table below alone.
fn derive(rel: &mut Rel) {
    let mut leaves = Vec::new();
    let predicates = match rel {
        Rel::Filter { input, predicates } => {
            collect_leaves(input, &mut leaves);
            predicates
        }
        Rel::Join { left, right, kind: JoinKind::Inner, predicates, .. } => {
            collect_leaves(left, &mut leaves);
            collect_leaves(right, &mut leaves);
            predicates
        }
        _ => return,
    };
    if leaves.len() < 2 {
        return;
    }
    let derived: Vec<BoundExpr> = predicates.iter().filter_map(branches).flat_map(|ors| of_leaves(&ors, &leaves)).collect();
    predicates.extend(derived);
}

/// The columns of each input of a tree of inner joins.
fn collect_leaves(rel: &Rel, leaves: &mut Vec<Vec<ColumnRef>>) {
    match rel {
        Rel::Join { left, right, kind: JoinKind::Inner, .. } => {
            collect_leaves(left, leaves);
            collect_leaves(right, leaves);
        }
        Rel::Filter { input, .. } => collect_leaves(input, leaves),
        other => leaves.push(other.columns()),
    }
}

/// For each leaf of which every branch says something, the OR of that.
fn of_leaves(branches: &[Vec<BoundExpr>], leaves: &[Vec<ColumnRef>]) -> Vec<BoundExpr> {
    let spoken_of = |leaf: &&Vec<ColumnRef>| {
        let uses = |term: &BoundExpr| term.free_columns().iter().any(|column| leaf.contains(column));
        // What speaks of one leaf alone is pushed there whole.
        branches.iter().flatten().any(|term| !uses(term))
    };
    let within = |term: &BoundExpr, leaf: &[ColumnRef]| {
        let free = term.free_columns();
        !free.is_empty() && free.iter().all(|column| leaf.contains(column))
    };
    let of_leaf = |leaf: &Vec<ColumnRef>| {
        let own = |branch: &Vec<BoundExpr>| branch.iter().filter(|term| within(term, leaf)).cloned().collect::<Vec<_>>();
        let own: Vec<Vec<BoundExpr>> = branches.iter().map(own).collect();
        (!own.iter().any(Vec::is_empty)).then(|| any_of(own.into_iter().map(BoundExpr::and).collect()))
    };
    leaves.iter().filter(spoken_of).filter_map(of_leaf).collect()
}
