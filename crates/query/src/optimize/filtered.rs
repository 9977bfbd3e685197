//! Whether the predicates of a query let it read a filtered index: every row they keep must be in it.
//!
//! ```text
//! filter   Closed IS NULL AND Score >= 10
//! query    Closed IS NULL AND Score = 12 AND ...     each conjunct of the filter follows from one of the query's
//! ```
//! A comparison with a constant is put into the filter's own form, key bytes of the column's type, and
//! `FilterTest::is_implied_by` decides. Any other comparison of the column is never TRUE for NULL, and so says IS NOT NULL.
//! Variables and parameters say nothing more: a plan serves every value of them.
//!
//! Soundness: a doubtful case answers no. The predicates used stay in the plan, so nothing rests on the index but speed.

use super::access::keeps_values_apart;
use crate::algebra::{BoundExpr, BoundExprKind as K, ColumnRef, Get};
use crate::expr::CompareOp;
use thawdb_catalog::filter::constant;
use thawdb_catalog::{FilterConjunct, FilterOp, FilterTest, IndexFilter};
use thawdb_types::convert::convert;
use thawdb_types::{Scalar, SqlType};

/// The predicates, by position, that together imply `filter`; `None` if they do not.
pub(super) fn implying(filter: &IndexFilter, get: &Get, predicates: &[BoundExpr]) -> Option<Vec<usize>> {
    let mut used = Vec::new();
    for conjunct in &filter.conjuncts {
        let column = &get.table.columns[conjunct.column_index];
        if conjunct.test == FilterTest::IsNotNull && !column.nullable {
            continue;
        }
        let id = get.columns.iter().find(|(at, _)| *at == conjunct.column_index).map(|(_, id)| *id)?;
        let position = predicates.iter().position(|predicate| implies(predicate, conjunct, id, &column.sql_type))?;
        if !used.contains(&position) {
            used.push(position);
        }
    }
    Some(used)
}

/// Whether every row that `predicate` keeps passes the conjunct.
fn implies(predicate: &BoundExpr, conjunct: &FilterConjunct, id: ColumnRef, sql_type: &SqlType) -> bool {
    match &predicate.kind {
        K::And(terms) => terms.iter().any(|term| implies(term, conjunct, id, sql_type)),
        K::Or(terms) => !terms.is_empty() && terms.iter().all(|term| implies(term, conjunct, id, sql_type)),
        _ => says(predicate, id, sql_type).iter().any(|known| conjunct.test.is_implied_by(known)),
    }
}

/// What a predicate says of the column for the rows it keeps.
fn says(predicate: &BoundExpr, id: ColumnRef, sql_type: &SqlType) -> Vec<FilterTest> {
    match &predicate.kind {
        K::IsNull { operand, negated } if operand.as_column() == Some(id) => {
            vec![if *negated { FilterTest::IsNotNull } else { FilterTest::IsNull }]
        }
        K::Compare { op, left, right } => {
            let side = |column: &BoundExpr, value: &BoundExpr, op: CompareOp| compared(column, value, op, id, sql_type);
            [side(left, right, *op), side(right, left, super::access::flipped(*op))].into_iter().flatten().collect()
        }
        K::InList { operand, list, negated: false } if stands_for(operand, id) => {
            let values: Option<Vec<Vec<u8>>> = list.iter().map(|value| value_of(operand, value, sql_type)).collect();
            vec![values.map_or(FilterTest::IsNotNull, FilterTest::In)]
        }
        // Neither is TRUE where the column is NULL.
        K::InList { operand, .. } | K::Like { operand, .. } if stands_for(operand, id) => vec![FilterTest::IsNotNull],
        _ => Vec::new(),
    }
}

/// What `column op value` says of the column.
fn compared(column: &BoundExpr, value: &BoundExpr, op: CompareOp, id: ColumnRef, sql_type: &SqlType) -> Option<FilterTest> {
    let op = match op {
        CompareOp::Equal => FilterOp::Equal,
        CompareOp::NotEqual => FilterOp::NotEqual,
        CompareOp::Less => FilterOp::Less,
        CompareOp::LessOrEqual => FilterOp::LessOrEqual,
        CompareOp::Greater => FilterOp::Greater,
        CompareOp::GreaterOrEqual => FilterOp::GreaterOrEqual,
        // True of two NULLs.
        CompareOp::Same | CompareOp::NotSame => return None,
    };
    if !stands_for(column, id) {
        return None;
    }
    Some(value_of(column, value, sql_type).map_or(FilterTest::IsNotNull, |value| FilterTest::Compare(op, value)))
}

/// Whether an expression is the column, perhaps under conversions that keep values apart and in order.
fn stands_for(expr: &BoundExpr, id: ColumnRef) -> bool {
    match &expr.kind {
        K::Convert { operand, attempt: false, .. } => keeps_values_apart(&operand.sql_type, &expr.sql_type) && stands_for(operand, id),
        _ => expr.as_column() == Some(id),
    }
}

/// A constant that is compared with the column as it stands in `column`, in the form filters keep it. `None` unless the
/// column's type has this very value.
fn value_of(column: &BoundExpr, value: &BoundExpr, sql_type: &SqlType) -> Option<Vec<u8>> {
    let K::Literal(scalar) = &value.kind else { return None };
    if *scalar == Scalar::Null {
        return None;
    }
    if value.sql_type == *sql_type {
        return Some(constant(scalar, *sql_type));
    }
    if value.sql_type.is_text() && sql_type.is_text() {
        // Compared under one collation, which is the column's unless it says otherwise.
        let is_same = column.as_column().is_some() && value.sql_type.collation() == sql_type.collation();
        return is_same.then(|| constant(scalar, *sql_type));
    }
    let narrowed = convert(scalar, &value.sql_type, sql_type, 0).ok()?;
    let back = convert(&narrowed, sql_type, &value.sql_type, 0).ok()?;
    (back == *scalar && keeps_values_apart(sql_type, &value.sql_type)).then(|| constant(&narrowed, *sql_type))
}
