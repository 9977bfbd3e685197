//! Constant folding.
//!
//! Before: `a = CONVERT(int, '5') AND 1 = 1`. After: `a = 5`.
//!
//! Sound because only what cannot fail is computed: a conversion whose constant does not convert stays as it is, for the
//! row that reaches it to raise. Counter-example: folding `CASE WHEN b <> 0 THEN 1/0 END` early would fail a query that
//! never divides. Strings are not folded to dates: DATEFORMAT belongs to the session that runs, not the one that compiles.
//! Costs one walk.

use crate::algebra::{BoundExpr, BoundExprKind as K, Rel};
use crate::expr::CompareOp;
use crate::optimize::RuleCx;
use std::cmp::Ordering;
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::{Scalar, SqlType};

/// Folds every expression of `rel`, not those of subqueries (their own turn comes).
pub(crate) fn fold(mut rel: Rel, _: &mut RuleCx<'_>) -> Rel {
    fold_rel(&mut rel);
    rel
}

fn fold_rel(rel: &mut Rel) {
    rel.inputs_mut().into_iter().for_each(fold_rel);
    rel.exprs_mut().into_iter().for_each(fold_expr);
    if let Rel::Filter { predicates, .. } | Rel::Join { predicates, .. } | Rel::Apply { predicates, .. } = rel {
        let whole = std::mem::take(predicates);
        *predicates = whole.into_iter().flat_map(BoundExpr::conjuncts).collect();
        if let Some(never) = predicates.iter().position(|p| p.is_truth(false) || p.is_null()) {
            *predicates = vec![predicates.swap_remove(never)];
        }
    }
    if let Rel::Filter { input, predicates } = rel {
        if predicates.is_empty() {
            *rel = std::mem::replace(&mut **input, Rel::OneRow);
        } else if predicates.iter().any(|p| p.is_truth(false) || p.is_null()) {
            *rel = Rel::Values { rows: Vec::new(), columns: input.columns() };
        }
    }
}

/// Folds one expression.
pub(crate) fn fold_expr(expr: &mut BoundExpr) {
    expr.children_mut().into_iter().for_each(fold_expr);
    if let K::InList { operand, list, .. } = &mut expr.kind {
        narrow(operand, list);
    }
    let folded = match &mut expr.kind {
        K::Convert { operand, style, attempt: false } => fold_conversion(operand, *style, &expr.sql_type),
        K::Compare { op, left, right } => {
            narrow(left, std::slice::from_mut(right));
            narrow(right, std::slice::from_mut(left));
            fold_comparison(*op, left, right)
        }
        K::And(terms) => {
            let terms = std::mem::take(terms);
            Some(fold_and(terms))
        }
        K::Or(terms) => {
            let terms = std::mem::take(terms);
            Some(fold_or(terms))
        }
        K::Not(inner) => fold_not(inner),
        K::IsNull { operand, negated } => match &operand.kind {
            K::Literal(value) => Some(BoundExpr::truth((*value == Scalar::Null) != *negated)),
            _ => None,
        },
        _ => None,
    };
    if let Some(folded) = folded {
        *expr = folded;
    }
}

fn fold_conversion(operand: &BoundExpr, style: i32, target: &SqlType) -> Option<BoundExpr> {
    let K::Literal(value) = &operand.kind else { return None };
    if *value == Scalar::Null {
        return Some(BoundExpr::literal(Scalar::Null, *target));
    }
    let dated = target.is_date_time() || operand.sql_type.is_date_time();
    if dated || matches!(target, SqlType::Xml | SqlType::SqlVariant) || style != 0 {
        return None;
    }
    let converted = convert(value, &operand.sql_type, target, &ConvertOptions::default()).ok()?;
    Some(BoundExpr::literal(converted, *target))
}

/// A column widened only to meet constants is compared as it is, if every constant has an equal in the column's type:
/// `CONVERT(int, smallint_column) = 5` is `smallint_column = 5`. The widening keeps values apart and in order, so every
/// comparison stays what it was; a constant without an equal (12.5, 70000) leaves all as it is.
fn narrow(operand: &mut BoundExpr, constants: &mut [impl BorrowExpr]) {
    let K::Convert { operand: inner, style: 0, attempt: false } = &operand.kind else { return };
    let (wide, own) = (operand.sql_type, inner.sql_type);
    if inner.as_column().is_none() || !crate::optimize::access::keeps_values_apart(&own, &wide) {
        return;
    }
    let options = ConvertOptions::default();
    let fitting = |constant: &BoundExpr| {
        let K::Literal(value) = &constant.kind else { return None };
        if constant.sql_type != wide || *value == Scalar::Null {
            return None;
        }
        let narrowed = convert(value, &wide, &own, &options).ok()?;
        let back = convert(&narrowed, &own, &wide, &options).ok()?;
        (back == *value).then(|| BoundExpr::literal(narrowed, own))
    };
    let Some(narrowed) = constants.iter().map(|c| fitting(c.borrow_expr())).collect::<Option<Vec<_>>>() else { return };
    for (constant, narrow) in constants.iter_mut().zip(narrowed) {
        constant.set_expr(narrow);
    }
    *operand = (**inner).clone();
}

/// What [`narrow`] takes: expressions in a list, or the boxed side of a comparison.
trait BorrowExpr {
    fn borrow_expr(&self) -> &BoundExpr;
    fn set_expr(&mut self, expr: BoundExpr);
}

impl BorrowExpr for BoundExpr {
    fn borrow_expr(&self) -> &BoundExpr {
        self
    }
    fn set_expr(&mut self, expr: BoundExpr) {
        *self = expr;
    }
}

impl BorrowExpr for Box<BoundExpr> {
    fn borrow_expr(&self) -> &BoundExpr {
        self
    }
    fn set_expr(&mut self, expr: BoundExpr) {
        **self = expr;
    }
}

fn fold_comparison(op: CompareOp, left: &BoundExpr, right: &BoundExpr) -> Option<BoundExpr> {
    let (K::Literal(l), K::Literal(r)) = (&left.kind, &right.kind) else { return None };
    let unknown = *l == Scalar::Null || *r == Scalar::Null;
    if unknown && !matches!(op, CompareOp::Same | CompareOp::NotSame) {
        return Some(BoundExpr::literal(Scalar::Null, SqlType::Bit));
    }
    if left.sql_type != right.sql_type && !(left.sql_type.is_text() && right.sql_type.is_text()) {
        return None;
    }
    let order = thawdb_types::compare::compare(l, r, &left.sql_type);
    Some(BoundExpr::truth(match op {
        CompareOp::Equal | CompareOp::Same => order == Ordering::Equal,
        CompareOp::NotEqual | CompareOp::NotSame => order != Ordering::Equal,
        CompareOp::Less => order == Ordering::Less,
        CompareOp::LessOrEqual => order != Ordering::Greater,
        CompareOp::Greater => order == Ordering::Greater,
        CompareOp::GreaterOrEqual => order != Ordering::Less,
    }))
}

fn fold_and(terms: Vec<BoundExpr>) -> BoundExpr {
    let terms: Vec<BoundExpr> = terms.into_iter().flat_map(BoundExpr::conjuncts).collect();
    if terms.iter().any(|t| t.is_truth(false)) {
        return BoundExpr::truth(false);
    }
    BoundExpr::and(terms)
}

fn fold_or(terms: Vec<BoundExpr>) -> BoundExpr {
    let mut flat = Vec::with_capacity(terms.len());
    for term in terms {
        match term.kind {
            K::Or(inner) => flat.extend(inner),
            _ => flat.push(term),
        }
    }
    if flat.iter().any(|t| t.is_truth(true)) {
        return BoundExpr::truth(true);
    }
    flat.retain(|t| !t.is_truth(false));
    match flat.len() {
        0 => BoundExpr::truth(false),
        1 => flat.remove(0),
        _ => {
            let nullable = flat.iter().any(|t| t.nullable);
            BoundExpr { kind: K::Or(flat), sql_type: SqlType::Bit, nullable }
        }
    }
}

/// NOT moves inward where three-valued logic lets it.
fn fold_not(inner: &mut BoundExpr) -> Option<BoundExpr> {
    let nullable = inner.nullable;
    let kind = match &mut inner.kind {
        K::Literal(Scalar::Bit(value)) => return Some(BoundExpr::truth(!*value)),
        K::Literal(Scalar::Null) => return Some(inner.clone()),
        K::Not(twice) => return Some((**twice).clone()),
        K::IsNull { operand, negated } => K::IsNull { operand: operand.clone(), negated: !*negated },
        K::InList { operand, list, negated } => K::InList { operand: operand.clone(), list: list.clone(), negated: !*negated },
        K::Like { operand, pattern, escape, negated } => {
            K::Like { operand: operand.clone(), pattern: pattern.clone(), escape: escape.clone(), negated: !*negated }
        }
        K::Compare { op, left, right } => K::Compare { op: opposite(*op), left: left.clone(), right: right.clone() },
        K::Subquery { plan, column, kind: crate::algebra::BoundSubquery::Exists { negated } } => {
            let kind = crate::algebra::BoundSubquery::Exists { negated: !*negated };
            K::Subquery { plan: plan.clone(), column: *column, kind }
        }
        K::Subquery { plan, column, kind: crate::algebra::BoundSubquery::Quantified { operand, op, all } } => {
            let kind = crate::algebra::BoundSubquery::Quantified { operand: operand.clone(), op: opposite(*op), all: !*all };
            K::Subquery { plan: plan.clone(), column: *column, kind }
        }
        K::And(terms) => K::Or(terms.drain(..).map(negated).collect()),
        K::Or(terms) => K::And(terms.drain(..).map(negated).collect()),
        _ => return None,
    };
    Some(BoundExpr { kind, sql_type: SqlType::Bit, nullable })
}

fn negated(mut term: BoundExpr) -> BoundExpr {
    fold_not(&mut term).unwrap_or_else(|| {
        let nullable = term.nullable;
        BoundExpr { kind: K::Not(Box::new(term)), sql_type: SqlType::Bit, nullable }
    })
}

/// The comparison that holds exactly when `op` does not, unknown staying unknown.
pub(crate) fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal => CompareOp::NotEqual,
        CompareOp::NotEqual => CompareOp::Equal,
        CompareOp::Less => CompareOp::GreaterOrEqual,
        CompareOp::LessOrEqual => CompareOp::Greater,
        CompareOp::Greater => CompareOp::LessOrEqual,
        CompareOp::GreaterOrEqual => CompareOp::Less,
        CompareOp::Same => CompareOp::NotSame,
        CompareOp::NotSame => CompareOp::Same,
    }
}
