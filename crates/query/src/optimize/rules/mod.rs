//! Rewriting rules, one a file, and the order they run in.
//!
//! ```text
//! fold ► or_terms ► unnest_predicate ► unnest_scalar ► decorrelate ► semi_to_inner ► push_down ► outer_to_inner ► push_down
//!   ► min_max ► join_order ► push_down ► seek_by_subquery
//! ```
//!
//! After each the driver verifies that every column still has its producer.

pub mod decorrelate;
pub mod fold;
pub mod join_order;
pub mod min_max;
pub mod or_terms;
pub mod outer_to_inner;
pub mod prune;
pub mod push_down;
pub mod seek_by_subquery;
pub mod semi_to_inner;
pub mod unnest_predicate;
pub mod unnest_scalar;

use super::{RuleCx, check, optimize_subqueries};
use crate::algebra::{BoundExpr, Rel};
use thawdb_types::SqlError;

/// A rule: its name, as shown when it breaks something, and what it does.
type Rule = (&'static str, fn(Rel, &mut RuleCx<'_>) -> Rel);

const RULES: &[Rule] = &[
    ("fold", fold::fold),
    ("or_terms", or_terms::or_terms),
    ("unnest_predicate", unnest_predicate::unnest),
    ("unnest_scalar", unnest_scalar::unnest),
    ("decorrelate", decorrelate::decorrelate),
    ("semi_to_inner", semi_to_inner::semi_to_inner),
    ("push_down", push_down::push_down),
    ("outer_to_inner", outer_to_inner::outer_to_inner),
    ("push_down", push_down::push_down),
    ("min_max", min_max::min_max),
    ("join_order", join_order::join_order),
    ("push_down", push_down::push_down),
    ("seek_by_subquery", seek_by_subquery::seek_by_subquery),
];

/// Runs every rule, then rewrites the subqueries that are still expressions.
pub(crate) fn apply_all(mut rel: Rel, cx: &mut RuleCx<'_>) -> Result<Rel, SqlError> {
    if !is_trivial(&rel) {
        for (name, rule) in RULES {
            rel = rule(rel, cx);
            check(&rel, name)?;
        }
    } else {
        rel = fold::fold(rel, cx);
        rel = push_down::push_down(rel, cx);
        check(&rel, "push_down")?;
    }
    rest_of_subqueries(&mut rel, cx)?;
    Ok(rel)
}

fn rest_of_subqueries(rel: &mut Rel, cx: &mut RuleCx<'_>) -> Result<(), SqlError> {
    for input in rel.inputs_mut() {
        rest_of_subqueries(input, cx)?;
    }
    rel.exprs_mut().into_iter().filter(|e| e.has_subquery()).try_for_each(|e| optimize_subqueries(e, cx))
}

/// Statements over one table without subqueries or aggregates have nothing to gain: point selects and single-row DML.
fn is_trivial(rel: &Rel) -> bool {
    let plain = match rel {
        Rel::Get(_) | Rel::Values { .. } | Rel::OneRow => true,
        Rel::Filter { input, .. } | Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Limit { input, .. } => is_trivial(input),
        _ => false,
    };
    plain && !rel.exprs().into_iter().any(BoundExpr::has_subquery)
}

/// Applies `change` to every operator, inputs first.
pub(crate) fn bottom_up(rel: Rel, change: &mut dyn FnMut(Rel) -> Rel) -> Rel {
    let mut rel = rel;
    for input in rel.inputs_mut() {
        let inner = std::mem::replace(input, Rel::OneRow);
        *input = bottom_up(inner, change);
    }
    change(rel)
}
