//! Conversions: fast ways between integers, everything else by `types::convert`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use std::sync::Arc;
use thawdb_types::convert::{ConvertOptions, DateOrder, convert, fit_text};
use thawdb_types::{Scalar, SqlError, SqlType};

/// How a conversion is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// CONVERT's third argument; 0 is CAST.
    pub(crate) style: i32,
    /// NULL instead of an error.
    pub(crate) attempt: bool,
    /// SET DATEFORMAT.
    pub(crate) date_order: DateOrder,
}

/// `value` of type `from` as `to`, texts of dates read as month, day, year; with `attempt` NULL instead of an error.
pub(crate) fn scalar(value: Scalar, from: &SqlType, to: &SqlType, style: i32, attempt: bool) -> Result<Scalar, SqlError> {
    scalar_by(value, from, to, How { style, attempt, date_order: DateOrder::Mdy })
}

/// `value` of type `from` as `to`.
pub(crate) fn scalar_by(value: Scalar, from: &SqlType, to: &SqlType, how: How) -> Result<Scalar, SqlError> {
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    let result = match integer(&value, to) {
        Some(result) => result,
        None => by_types(&value, from, to, how),
    };
    if how.attempt { Ok(result.unwrap_or(Scalar::Null)) } else { result }
}

/// Between integer types; `None` if it is not that.
fn integer(value: &Scalar, to: &SqlType) -> Option<Result<Scalar, SqlError>> {
    let from = value.as_i64()?;
    let narrow = match to {
        SqlType::Int => i32::try_from(from).ok().map(Scalar::Int),
        SqlType::BigInt => Some(Scalar::BigInt(from)),
        SqlType::SmallInt => i16::try_from(from).ok().map(Scalar::SmallInt),
        SqlType::TinyInt => u8::try_from(from).ok().map(Scalar::TinyInt),
        SqlType::Bit => Some(Scalar::Bit(from != 0)),
        SqlType::Float => Some(Scalar::Float(from as f64)),
        _ => return None,
    };
    // What does not fit is told by the conversion of the types.
    narrow.map(Ok)
}

/// Whether [`vector`] can do it: it cannot fail then.
pub(super) fn has_kernel(from: &SqlType, to: &SqlType) -> bool {
    let rank = |t: &SqlType| match t {
        SqlType::TinyInt => Some(1),
        SqlType::SmallInt => Some(2),
        SqlType::Int => Some(3),
        SqlType::BigInt => Some(4),
        _ => None,
    };
    match (rank(from), rank(to)) {
        (Some(from), Some(to)) => from <= to,
        (Some(_), None) => *to == SqlType::Float,
        _ => false,
    }
}

/// A wider integer, or float, for all rows.
pub(super) fn vector(array: &ArrayRef, from: &SqlType, to: &SqlType) -> ArrayRef {
    macro_rules! widen {
        ($from:ty, $to:ty, $cast:expr) => {{
            let widened: PrimitiveArray<$to> = array.as_primitive::<$from>().unary($cast);
            Arc::new(widened)
        }};
    }
    match (from, to) {
        (SqlType::TinyInt, SqlType::SmallInt) => widen!(UInt8Type, Int16Type, i16::from),
        (SqlType::TinyInt, SqlType::Int) => widen!(UInt8Type, Int32Type, i32::from),
        (SqlType::TinyInt, SqlType::BigInt) => widen!(UInt8Type, Int64Type, i64::from),
        (SqlType::TinyInt, SqlType::Float) => widen!(UInt8Type, Float64Type, f64::from),
        (SqlType::SmallInt, SqlType::Int) => widen!(Int16Type, Int32Type, i32::from),
        (SqlType::SmallInt, SqlType::BigInt) => widen!(Int16Type, Int64Type, i64::from),
        (SqlType::SmallInt, SqlType::Float) => widen!(Int16Type, Float64Type, f64::from),
        (SqlType::Int, SqlType::BigInt) => widen!(Int32Type, Int64Type, i64::from),
        (SqlType::Int, SqlType::Float) => widen!(Int32Type, Float64Type, f64::from),
        (SqlType::BigInt, SqlType::Float) => widen!(Int64Type, Float64Type, |v| v as f64),
        _ => array.clone(),
    }
}

/// `value` without what lies beyond the length of `sql_type`: how results of string operators are cut, silently.
pub(crate) fn cut(value: Scalar, sql_type: &SqlType) -> Scalar {
    match value {
        Scalar::Text(text) if sql_type.length().is_some_and(|n| text.len() > usize::from(n)) => Scalar::Text(fit_text(text, sql_type)),
        Scalar::Binary(mut bytes) => {
            bytes.truncate(sql_type.length().map_or(usize::MAX, usize::from));
            Scalar::Binary(bytes)
        }
        other => other,
    }
}

fn by_types(value: &Scalar, from: &SqlType, to: &SqlType, how: How) -> Result<Scalar, SqlError> {
    let options = if how.style == 0 { ConvertOptions::default() } else { ConvertOptions::with_style(how.style) };
    convert(value, from, to, &ConvertOptions { date_order: how.date_order, ..options })
}
