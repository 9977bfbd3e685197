//! Whole columns from one type to another: the same results and messages as [`convert`] value by value.
//!
//! Columns of one layout that need no change are shared; integers, floats and dates that widen or narrow go through a
//! loop without scalars; everything else goes value by value. The fast paths hand any value that does not fit back to
//! [`convert`], which finds the message.

use super::{CastRule, ConvertOptions, convert, implicit_cast, never};
use crate::{ColumnBuilder, SqlError, SqlType, scalar_at};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use std::sync::Arc;

/// A column of type `from` as a column of type `to`.
///
/// # Errors
/// That of the first value that does not convert.
pub fn cast_array(array: &ArrayRef, from: &SqlType, to: &SqlType, options: impl Into<ConvertOptions>) -> Result<ArrayRef, SqlError> {
    let options = options.into();
    if from == to || same_values(from, to) {
        return Ok(array.clone());
    }
    if implicit_cast(from, to) == CastRule::Never {
        return Err(never(from, to));
    }
    if let Some(fast) = cast_numbers(array, from, to) {
        return Ok(fast);
    }
    let mut builder = ColumnBuilder::new(to, array.len());
    for index in 0..array.len() {
        builder.append(&convert(&scalar_at(array, index, from), from, to, &options)?);
    }
    Ok(builder.finish())
}

/// Every value of the one is, as it stands, a value of the other.
fn same_values(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    let longer = |a: Option<u16>, b: Option<u16>| b.is_none() || a.is_some_and(|a| b.is_some_and(|b| a <= b));
    match (from, to) {
        (T::Decimal { precision: a, scale: s, .. }, T::Decimal { precision: b, scale: t, .. }) => a == b && s == t,
        (T::NVarChar { .. } | T::VarChar { .. } | T::Char { .. } | T::NChar { .. }, T::NVarChar { .. }) => {
            longer(from.length(), to.length())
        }
        (T::VarChar { .. } | T::Char { .. }, T::VarChar { .. }) => {
            from.collation().map(|c| c.info().utf8) == to.collation().map(|c| c.info().utf8) && longer(from.length(), to.length())
        }
        (T::Char { length: a, .. }, T::Char { length: b, .. }) | (T::NChar { length: a, .. }, T::NChar { length: b, .. }) => a == b,
        (T::VarBinary { .. } | T::Binary { .. }, T::VarBinary { .. }) => longer(from.length(), to.length()),
        (T::SmallMoney, T::Money) => true,
        _ => false,
    }
}

/// Number to number without scalars; `None` when the pair has no fast path or a value does not fit.
fn cast_numbers(array: &ArrayRef, from: &SqlType, to: &SqlType) -> Option<ArrayRef> {
    use SqlType as T;
    match from {
        T::TinyInt => from_integers(array.as_primitive::<UInt8Type>(), to),
        T::SmallInt => from_integers(array.as_primitive::<Int16Type>(), to),
        T::Int => from_integers(array.as_primitive::<Int32Type>(), to),
        T::BigInt => from_integers(array.as_primitive::<Int64Type>(), to),
        T::Real if *to == T::Float => Some(map::<Float32Type, Float64Type>(array.as_primitive(), |v| Some(f64::from(v)))?),
        _ => None,
    }
}

fn from_integers<F>(array: &PrimitiveArray<F>, to: &SqlType) -> Option<ArrayRef>
where
    F: ArrowPrimitiveType,
    F::Native: Into<i64> + Copy,
{
    match *to {
        SqlType::TinyInt => map::<F, UInt8Type>(array, |v| u8::try_from(v.into()).ok()),
        SqlType::SmallInt => map::<F, Int16Type>(array, |v| i16::try_from(v.into()).ok()),
        SqlType::Int => map::<F, Int32Type>(array, |v| i32::try_from(v.into()).ok()),
        SqlType::BigInt => map::<F, Int64Type>(array, |v| Some(v.into())),
        SqlType::Float => map::<F, Float64Type>(array, |v| Some(v.into() as f64)),
        SqlType::Decimal { precision, scale, .. } => {
            let limit = 10i128.pow(u32::from(precision));
            let factor = 10i128.pow(u32::from(scale));
            let scaled = |v: F::Native| i128::from(v.into()).checked_mul(factor).filter(|v| v.abs() < limit);
            let array = map_values::<F, arrow_array::types::Decimal128Type>(array, scaled)?;
            Some(Arc::new(array.with_data_type(to.arrow_type())))
        }
        _ => None,
    }
}

fn map<F: ArrowPrimitiveType, T: ArrowPrimitiveType>(
    array: &PrimitiveArray<F>,
    convert: impl Fn(F::Native) -> Option<T::Native>,
) -> Option<ArrayRef> {
    Some(Arc::new(map_values::<F, T>(array, convert)?))
}

/// Values that are NULL may hold anything and are not looked at.
fn map_values<F: ArrowPrimitiveType, T: ArrowPrimitiveType>(
    array: &PrimitiveArray<F>,
    convert: impl Fn(F::Native) -> Option<T::Native>,
) -> Option<PrimitiveArray<T>> {
    let nulls = array.nulls();
    let values: Option<Vec<T::Native>> = array
        .values()
        .iter()
        .enumerate()
        .map(|(index, value)| match (convert(*value), nulls) {
            (None, Some(nulls)) if nulls.is_null(index) => Some(T::Native::default()),
            (converted, _) => converted,
        })
        .collect();
    Some(PrimitiveArray::new(ScalarBuffer::from(values?), nulls.cloned()))
}
