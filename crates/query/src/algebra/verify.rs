//! The plan verifier, run after every rule in debug builds: column identity survived.
//!
//! Checks invariant 1 of [`super`]: every column an operator refers to is produced by its inputs, or is among those
//! that enclosing queries offer. A violation is a bug of the rule that ran last, named in the panic of tests and in the
//! error 8624 a client would see (the number SQL Server has for internal plan errors).

use super::columns::ColumnRef;
use super::expr::{BoundExpr, BoundExprKind};
use super::rel::Rel;
use crate::phys::JoinKind;

/// What is wrong with a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unproduced {
    /// The column nobody produces.
    pub column: ColumnRef,
    /// The operator that refers to it.
    pub operator: String,
}

/// Checks `rel`, which may refer to `outer` besides what it produces.
pub fn verify(rel: &Rel, outer: &[ColumnRef]) -> Result<(), Unproduced> {
    match rel {
        Rel::Apply { left, right, predicates, .. } => {
            verify(left, outer)?;
            let seen = joined(outer, &[&left.columns()]);
            verify(right, &seen)?;
            check(predicates.iter(), &joined(&seen, &[&right.columns()]), rel)
        }
        Rel::Join { left, right, predicates, .. } => {
            verify(left, outer)?;
            verify(right, outer)?;
            check(predicates.iter(), &joined(outer, &[&left.columns(), &right.columns()]), rel)
        }
        Rel::UnionAll { inputs, .. } => inputs.iter().try_for_each(|(r, c)| {
            verify(r, outer)?;
            contains(c, &r.columns(), rel)
        }),
        Rel::SetDifference { left, right, left_columns, right_columns, .. } => {
            verify(left, outer)?;
            verify(right, outer)?;
            contains(left_columns, &left.columns(), rel)?;
            contains(right_columns, &right.columns(), rel)
        }
        Rel::Recursive { anchor, recursive, .. } => {
            verify(&anchor.0, outer)?;
            verify(&recursive.0, outer)?;
            contains(&anchor.1, &anchor.0.columns(), rel)?;
            contains(&recursive.1, &recursive.0.columns(), rel)
        }
        _ => {
            let mut seen = outer.to_vec();
            for input in rel.inputs() {
                verify(input, outer)?;
                seen.extend(input.columns());
            }
            check(rel.exprs().into_iter(), &seen, rel)
        }
    }
}

fn joined(first: &[ColumnRef], more: &[&[ColumnRef]]) -> Vec<ColumnRef> {
    let mut all = first.to_vec();
    more.iter().for_each(|m| all.extend_from_slice(m));
    all
}

fn contains(wanted: &[ColumnRef], have: &[ColumnRef], rel: &Rel) -> Result<(), Unproduced> {
    match wanted.iter().find(|c| !have.contains(c)) {
        Some(column) => Err(unproduced(*column, rel)),
        None => Ok(()),
    }
}

fn check<'e>(exprs: impl Iterator<Item = &'e BoundExpr>, seen: &[ColumnRef], rel: &Rel) -> Result<(), Unproduced> {
    for expr in exprs {
        check_expr(expr, seen, rel)?;
    }
    Ok(())
}

fn check_expr(expr: &BoundExpr, seen: &[ColumnRef], rel: &Rel) -> Result<(), Unproduced> {
    match &expr.kind {
        BoundExprKind::Column(c) if !seen.contains(c) => return Err(unproduced(*c, rel)),
        BoundExprKind::Subquery { plan, .. } => verify(plan, seen)?,
        _ => {}
    }
    expr.children().into_iter().try_for_each(|child| check_expr(child, seen, rel))
}

fn unproduced(column: ColumnRef, rel: &Rel) -> Unproduced {
    let operator = match rel {
        Rel::Join { kind: JoinKind::LeftSemi | JoinKind::LeftAnti, .. } => "semi join".to_string(),
        other => format!("{other:?}").split([' ', '(', '{']).next().unwrap_or_default().to_string(),
    };
    Unproduced { column, operator }
}
