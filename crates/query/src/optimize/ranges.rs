//! What a predicate bounds a column's values to, where that is known when the statement is compiled: for estimates alone.

use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef};
use crate::expr::CompareOp;
use std::cmp::Ordering;
use thawdb_types::collation::LikePattern;
use thawdb_types::compare::compare;
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::{Scalar, SqlType};

/// A bound and whether it is inside.
type Bound = Option<(Scalar, bool)>;

/// The values a predicate lets through.
#[derive(Debug, Clone)]
pub(super) struct RangeOf {
    pub(super) column: ColumnRef,
    sql_type: SqlType,
    pub(super) low: Bound,
    pub(super) high: Bound,
}

impl RangeOf {
    /// Narrows it to what lies in `other` too; always true.
    pub(super) fn meet(&mut self, other: Self) -> bool {
        let tighter = |own: &mut Bound, new: Bound, wanted: Ordering, sql_type: &SqlType| {
            let replaces = match (&own, &new) {
                (_, None) => false,
                (None, _) => true,
                (Some((old, old_inside)), Some((new, inside))) => match compare(new, old, sql_type) {
                    Ordering::Equal => *old_inside && !inside,
                    order => order == wanted,
                },
            };
            if replaces {
                *own = new;
            }
        };
        tighter(&mut self.low, other.low, Ordering::Greater, &self.sql_type);
        tighter(&mut self.high, other.high, Ordering::Less, &self.sql_type);
        true
    }
}

/// A constant as a value of a column's type; `None` for what is no constant or no such value.
pub(super) fn column_value(value: &BoundExpr, column: &SqlType) -> Option<Scalar> {
    match &value.kind {
        BoundExprKind::Literal(literal) => convert(literal, &value.sql_type, column, ConvertOptions::default()).ok(),
        BoundExprKind::Convert { operand, style: 0, .. } => {
            let inner = column_value(operand, &value.sql_type)?;
            convert(&inner, &value.sql_type, column, ConvertOptions::default()).ok()
        }
        _ => None,
    }
}

/// The range of `predicate`, of a column whose type `type_of` knows.
pub(super) fn range_of(predicate: &BoundExpr, type_of: &dyn Fn(ColumnRef) -> Option<SqlType>) -> Option<RangeOf> {
    match &predicate.kind {
        BoundExprKind::Compare { op, left, right } => {
            let side = |column: &BoundExpr, value: &BoundExpr, op: CompareOp| {
                let id = column.as_column()?;
                let sql_type = type_of(id)?;
                let value = column_value(value, &sql_type).filter(|v| !v.is_null())?;
                let (low, high) = match op {
                    CompareOp::Less => (None, Some((value, false))),
                    CompareOp::LessOrEqual => (None, Some((value, true))),
                    CompareOp::Greater => (Some((value, false)), None),
                    CompareOp::GreaterOrEqual => (Some((value, true)), None),
                    _ => return None,
                };
                Some(RangeOf { column: id, sql_type, low, high })
            };
            side(left, right, *op).or_else(|| side(right, left, super::access::flipped(*op)))
        }
        BoundExprKind::Like { operand, pattern, escape: None, negated: false } => {
            let id = operand.as_column()?;
            let sql_type = type_of(id)?;
            let BoundExprKind::Literal(Scalar::Text(pattern)) = &pattern.kind else { return None };
            let compiled = LikePattern::new(pattern, None, operand.sql_type.collation()?).ok()?;
            let low = compiled.prefix().to_owned();
            // What begins with the prefix is below it with the greatest of characters behind.
            let high = format!("{low}\u{FFFD}");
            (!low.is_empty()).then(|| RangeOf {
                column: id,
                sql_type,
                low: Some((Scalar::text(low), true)),
                high: Some((Scalar::text(high), false)),
            })
        }
        _ => None,
    }
}
