//! Evaluation over whole batches. What has no kernel here goes row by row and is the same by construction.

use crate::eval::mask::mask;
use crate::eval::rows::{RowRef, eval_row};
use crate::eval::{arithmetic, case, convert, decimal};
use crate::exec::cx::Cx;
use crate::exec::is_row_independent;
use crate::expr::{Expr, ExprKind};
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_types::{Batch, ColumnBuilder, Scalar, SqlError, SqlType, array_from_scalar};

/// The values of an expression for a batch.
pub(super) enum Datum {
    /// One for each row.
    Array(ArrayRef),
    /// One for all rows.
    Value(Scalar),
}

impl Datum {
    pub(super) fn into_array(self, sql_type: &SqlType, rows: usize) -> ArrayRef {
        match self {
            Self::Array(array) => array,
            Self::Value(value) => array_from_scalar(sql_type, &value, rows),
        }
    }
}

/// Values of `expr` as a column.
pub(crate) fn eval_array<'p>(expr: &'p Expr, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<ArrayRef, SqlError> {
    Ok(eval(expr, batch, cx)?.into_array(&expr.sql_type, batch.rows))
}

/// Values of `expr`.
pub(super) fn eval<'p>(expr: &'p Expr, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Datum, SqlError> {
    match &expr.kind {
        ExprKind::Literal(value) => return Ok(Datum::Value(value.clone())),
        ExprKind::Column(at) => return Ok(Datum::Array(batch.columns[*at].clone())),
        _ => {}
    }
    if batch.rows == 0 {
        return Ok(Datum::Array(thawdb_types::column::empty_array(&expr.sql_type)));
    }
    if batch.rows == 1 || is_row_independent(expr) {
        return Ok(Datum::Value(eval_row(expr, RowRef::at(&batch.columns, 0), cx)?));
    }
    match &expr.kind {
        ExprKind::Compare { .. }
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Not(_)
        | ExprKind::IsNull { .. }
        | ExprKind::InList { .. } => Ok(Datum::Array(Arc::new(mask(expr, batch, cx)?.into_array()))),
        ExprKind::Like { pattern, escape, .. } if is_row_independent(pattern) && escape.as_deref().is_none_or(is_row_independent) => {
            Ok(Datum::Array(Arc::new(mask(expr, batch, cx)?.into_array())))
        }
        ExprKind::Arithmetic { op, left, right } if arithmetic::has_kernel(&left.sql_type, &right.sql_type, &expr.sql_type) => {
            let (a, b) = (eval(left, batch, cx)?, eval(right, batch, cx)?);
            arithmetic::vector(*op, a, b, &expr.sql_type, batch.rows).map(Datum::Array)
        }
        ExprKind::Arithmetic { op, left, right } if decimal::has_kernel(*op, &left.sql_type, &right.sql_type, &expr.sql_type) => {
            let (a, b) = (eval(left, batch, cx)?, eval(right, batch, cx)?);
            decimal::vector(*op, (a, &left.sql_type), (b, &right.sql_type), &expr.sql_type, batch.rows).map(Datum::Array)
        }
        ExprKind::Convert { operand, .. } if convert::has_kernel(&operand.sql_type, &expr.sql_type) => {
            let value = eval(operand, batch, cx)?.into_array(&operand.sql_type, batch.rows);
            Ok(Datum::Array(convert::vector(&value, &operand.sql_type, &expr.sql_type)))
        }
        ExprKind::Case { branches, otherwise } => case::vector(expr, branches, otherwise.as_deref(), batch, cx).map(Datum::Array),
        _ => eval_rows(expr, batch, cx).map(Datum::Array),
    }
}

/// Values of `expr`, one row at a time.
pub(super) fn eval_rows<'p>(expr: &'p Expr, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<ArrayRef, SqlError> {
    let mut builder = ColumnBuilder::new(&expr.sql_type, batch.rows);
    for row in 0..batch.rows {
        builder.append(&eval_row(expr, RowRef::at(&batch.columns, row), cx)?);
    }
    Ok(builder.finish())
}
