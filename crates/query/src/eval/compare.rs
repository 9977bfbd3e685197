//! Comparison kernels: a column with a value or with another column, as bits.

use crate::eval::mask::Mask;
use crate::eval::rows::compare_with;
use crate::eval::vector::Datum;
use crate::expr::CompareOp;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use thawdb_types::{Collation, Scalar, SqlType, collation, scalar_at};

/// Values of `left op right`, both of `sql_type`.
pub(super) fn compare_masks(op: CompareOp, left: &Datum, right: &Datum, sql_type: &SqlType, rows: usize) -> Mask {
    if matches!(op, CompareOp::Same | CompareOp::NotSame) {
        return row_by_row(op, left, right, sql_type, rows);
    }
    match (left, right) {
        (Datum::Value(a), Datum::Value(b)) => Mask::constant(&crate::eval::rows::truth(compare_with(op, a, b, sql_type)), rows),
        (Datum::Value(value), Datum::Array(array)) => with_value(mirrored(op), array, value, sql_type),
        (Datum::Array(array), Datum::Value(value)) => with_value(op, array, value, sql_type),
        (Datum::Array(a), Datum::Array(b)) => with_column(op, a, b, sql_type),
    }
}

/// The operator with its sides exchanged.
fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessOrEqual => CompareOp::GreaterOrEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterOrEqual => CompareOp::LessOrEqual,
        other => other,
    }
}

fn row_by_row(op: CompareOp, left: &Datum, right: &Datum, sql_type: &SqlType, rows: usize) -> Mask {
    let value = |side: &Datum, row: usize| match side {
        Datum::Value(value) => value.clone(),
        Datum::Array(array) => scalar_at(array.as_ref(), row, sql_type),
    };
    let results: Vec<Option<bool>> = (0..rows).map(|row| compare_with(op, &value(left, row), &value(right, row), sql_type)).collect();
    Mask {
        truth: BooleanBuffer::collect_bool(rows, |row| results[row] == Some(true)),
        falsity: Some(BooleanBuffer::collect_bool(rows, |row| results[row] == Some(false))),
    }
}

/// Bits of `test` over a slice, for an operator chosen once.
macro_rules! by_operator {
    ($op:expr, $rows:expr, $left:expr, $right:expr) => {
        match $op {
            CompareOp::Equal | CompareOp::Same => BooleanBuffer::collect_bool($rows, |i| $left(i) == $right(i)),
            CompareOp::NotEqual | CompareOp::NotSame => BooleanBuffer::collect_bool($rows, |i| $left(i) != $right(i)),
            CompareOp::Less => BooleanBuffer::collect_bool($rows, |i| $left(i) < $right(i)),
            CompareOp::LessOrEqual => BooleanBuffer::collect_bool($rows, |i| $left(i) <= $right(i)),
            CompareOp::Greater => BooleanBuffer::collect_bool($rows, |i| $left(i) > $right(i)),
            CompareOp::GreaterOrEqual => BooleanBuffer::collect_bool($rows, |i| $left(i) >= $right(i)),
        }
    };
}

fn primitive_value<T: ArrowPrimitiveType>(op: CompareOp, array: &ArrayRef, value: T::Native) -> Mask
where
    T::Native: PartialOrd,
{
    let array = array.as_primitive::<T>();
    let values: &[T::Native] = array.values();
    Mask::of(by_operator!(op, values.len(), |i: usize| values[i], |_: usize| value), array.nulls())
}

fn primitive_column<T: ArrowPrimitiveType>(op: CompareOp, left: &ArrayRef, right: &ArrayRef) -> Mask
where
    T::Native: PartialOrd,
{
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    let (a, b): (&[T::Native], &[T::Native]) = (left.values(), right.values());
    assert_eq!(a.len(), b.len(), "columns of a batch have one length");
    let bits = by_operator!(op, a.len(), |i: usize| a[i], |i: usize| b[i]);
    Mask::of(bits, NullBuffer::union(left.nulls(), right.nulls()).as_ref())
}

fn with_value(op: CompareOp, array: &ArrayRef, value: &Scalar, sql_type: &SqlType) -> Mask {
    match value {
        Scalar::Null => Mask::constant(&Scalar::Null, array.len()),
        Scalar::TinyInt(v) => primitive_value::<UInt8Type>(op, array, *v),
        Scalar::SmallInt(v) => primitive_value::<Int16Type>(op, array, *v),
        Scalar::Int(v) | Scalar::Date(v) => primitive_value::<Int32Type>(op, array, *v),
        Scalar::BigInt(v) | Scalar::Money(v) | Scalar::Time(v) | Scalar::DateTime(v) | Scalar::SmallDateTime(v) | Scalar::DateTime2(v) => {
            primitive_value::<Int64Type>(op, array, *v)
        }
        Scalar::Decimal(v) => primitive_value::<Decimal128Type>(op, array, *v),
        Scalar::Real(v) => primitive_value::<Float32Type>(op, array, *v),
        Scalar::Float(v) => primitive_value::<Float64Type>(op, array, *v),
        Scalar::Text(v) => {
            let array = array.as_string::<i32>();
            text(op, array.len(), |row| (array.value(row), v.as_str()), array.nulls(), sql_type)
        }
        _ => row_by_row(op, &Datum::Array(array.clone()), &Datum::Value(value.clone()), sql_type, array.len()),
    }
}

fn with_column(op: CompareOp, left: &ArrayRef, right: &ArrayRef, sql_type: &SqlType) -> Mask {
    match sql_type {
        SqlType::TinyInt => primitive_column::<UInt8Type>(op, left, right),
        SqlType::SmallInt => primitive_column::<Int16Type>(op, left, right),
        SqlType::Int | SqlType::Date => primitive_column::<Int32Type>(op, left, right),
        SqlType::BigInt
        | SqlType::Money
        | SqlType::SmallMoney
        | SqlType::Time { .. }
        | SqlType::DateTime
        | SqlType::SmallDateTime
        | SqlType::DateTime2 { .. } => primitive_column::<Int64Type>(op, left, right),
        SqlType::Decimal { .. } => primitive_column::<Decimal128Type>(op, left, right),
        SqlType::Real => primitive_column::<Float32Type>(op, left, right),
        SqlType::Float => primitive_column::<Float64Type>(op, left, right),
        _ if sql_type.collation().is_some() => {
            let (a, b): (&StringArray, &StringArray) = (left.as_string(), right.as_string());
            let nulls = NullBuffer::union(a.nulls(), b.nulls());
            text(op, a.len(), |row| (a.value(row), b.value(row)), nulls.as_ref(), sql_type)
        }
        _ => row_by_row(op, &Datum::Array(left.clone()), &Datum::Array(right.clone()), sql_type, left.len()),
    }
}

fn text<'a>(
    op: CompareOp,
    rows: usize,
    pair: impl Fn(usize) -> (&'a str, &'a str),
    nulls: Option<&NullBuffer>,
    sql_type: &SqlType,
) -> Mask {
    let collation = sql_type.collation().unwrap_or(Collation::DEFAULT);
    let valid = |row: usize| nulls.is_none_or(|n| n.is_valid(row));
    let bits = match op {
        CompareOp::Equal => BooleanBuffer::collect_bool(rows, |row| valid(row) && equal(pair(row), collation)),
        CompareOp::NotEqual => BooleanBuffer::collect_bool(rows, |row| valid(row) && !equal(pair(row), collation)),
        _ => BooleanBuffer::collect_bool(rows, |row| {
            let (a, b) = pair(row);
            valid(row) && crate::eval::rows::holds(op, collation::compare(a, b, collation))
        }),
    };
    Mask::of(bits, nulls)
}

fn equal((a, b): (&str, &str), collation: Collation) -> bool {
    collation::equal(a, b, collation)
}

/// `value IN (items)` for an integer column and constant integers; `None` if it is not that.
pub(super) fn in_integers(value: &Datum, items: &[Datum], sql_type: &SqlType) -> Option<Mask> {
    let Datum::Array(array) = value else { return None };
    let mut list = Vec::with_capacity(items.len());
    let mut unknown = false;
    for item in items {
        match item {
            Datum::Value(Scalar::Null) => unknown = true,
            Datum::Value(value) => list.push(value.as_i64()?),
            Datum::Array(_) => return None,
        }
    }
    list.sort_unstable();
    let has = |value: i64| list.binary_search(&value).is_ok();
    let bits = match sql_type {
        SqlType::TinyInt => {
            let values = array.as_primitive::<UInt8Type>().values();
            BooleanBuffer::collect_bool(values.len(), |row| has(i64::from(values[row])))
        }
        SqlType::Int => {
            let values = array.as_primitive::<Int32Type>().values();
            BooleanBuffer::collect_bool(values.len(), |row| has(i64::from(values[row])))
        }
        SqlType::BigInt => {
            let values = array.as_primitive::<Int64Type>().values();
            BooleanBuffer::collect_bool(values.len(), |row| has(values[row]))
        }
        _ => return None,
    };
    let mut mask = Mask::of(bits, array.nulls());
    if unknown {
        // Not found among values one of which is unknown: unknown.
        mask.falsity = Some(BooleanBuffer::new_unset(array.len()));
    }
    Some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn operators_mirror() {
        let array: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![Some(1), None, Some(3)]));
        for op in
            [CompareOp::Equal, CompareOp::NotEqual, CompareOp::Less, CompareOp::LessOrEqual, CompareOp::Greater, CompareOp::GreaterOrEqual]
        {
            for value in 0..5 {
                let value = Datum::Value(Scalar::Int(value));
                let column = Datum::Array(array.clone());
                let kernel = compare_masks(op, &value, &column, &SqlType::Int, 3);
                let plain = row_by_row(op, &value, &column, &SqlType::Int, 3);
                assert_eq!(kernel.truth, plain.truth, "{op:?}");
                assert_eq!(kernel.falsity, plain.falsity, "{op:?}");
            }
        }
        assert!(!crate::eval::rows::holds(CompareOp::Less, std::cmp::Ordering::Equal));
    }
}
