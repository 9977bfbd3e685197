//! Collation precedence: which collation an operation on text uses, and when two cannot be reconciled.
//!
//! ```text
//! explicit (COLLATE)  >  implicit (a column)  >  coercible default (literal, variable, function of such)
//! ```
//!
//! Two different explicit collations are 468 everywhere. Two different implicit ones are 468 where a comparison needs one.

use super::error::error;
use crate::algebra::{BoundExpr, BoundExprKind};
use thawdb_tsql::ast::Span;
use thawdb_types::{Collation, SqlError};

/// How firmly an expression has its collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// Any other beats it.
    CoercibleDefault,
    /// A column's.
    Implicit,
    /// COLLATE.
    Explicit,
}

/// The label of `expr`'s collation.
pub fn label(expr: &BoundExpr) -> Label {
    match &expr.kind {
        BoundExprKind::Collate(_) => Label::Explicit,
        BoundExprKind::Column(_) => Label::Implicit,
        BoundExprKind::Literal(_) | BoundExprKind::Variable(_) | BoundExprKind::Global(_) => Label::CoercibleDefault,
        BoundExprKind::Subquery { .. } => Label::Implicit,
        BoundExprKind::Case { branches, otherwise } => {
            let results = branches.iter().map(|(_, r)| r).chain(otherwise.as_deref());
            results.filter(|r| r.sql_type.is_text()).map(label).max().unwrap_or(Label::CoercibleDefault)
        }
        _ => {
            let children = expr.children();
            children.into_iter().filter(|c| c.sql_type.is_text()).map(label).max().unwrap_or(Label::CoercibleDefault)
        }
    }
}

/// The collation two text operands of `operation` share.
///
/// # Errors
/// 468 if there is none.
pub fn shared(left: &BoundExpr, right: &BoundExpr, operation: &str, span: Span) -> Result<Option<Collation>, SqlError> {
    let (Some(l), Some(r)) = (left.sql_type.collation(), right.sql_type.collation()) else {
        return Ok(left.sql_type.collation().or(right.sql_type.collation()));
    };
    if l == r || left.is_null() || right.is_null() {
        return Ok(Some(if left.is_null() { r } else { l }));
    }
    let (left_label, right_label) = (label(left), label(right));
    match left_label.cmp(&right_label) {
        std::cmp::Ordering::Greater => Ok(Some(l)),
        std::cmp::Ordering::Less => Ok(Some(r)),
        std::cmp::Ordering::Equal if left_label == Label::CoercibleDefault => Ok(Some(l)),
        std::cmp::Ordering::Equal => Err(error(468, &[&r.name(), &l.name(), &operation], span)),
    }
}
