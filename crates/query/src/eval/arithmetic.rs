//! Arithmetic: integers and floats here, in loops and one at a time; decimal, money and dates by `types::arithmetic`.
//!
//! ARITHABORT and ANSI_WARNINGS are ON as drivers set them: overflow is 8115, a division by zero 8134; NULL on either
//! side gives NULL and raises nothing.

use crate::eval::vector::Datum;
use crate::expr::ArithmeticOp;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::NullBuffer;
use std::sync::Arc;
use thawdb_types::arithmetic::{Operator, arithmetic};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType, array_from_scalar};

/// What can go wrong with two numbers.
enum Trouble {
    Overflow,
    ZeroDivisor,
}

impl Trouble {
    #[cold]
    fn to_sql(&self, sql_type: &SqlType) -> SqlError {
        match self {
            Self::Overflow => message(8115, &[&"expression", &sql_type.message_name()]),
            Self::ZeroDivisor => message(8134, &[]),
        }
    }
}

/// A number type with every operator.
trait Number: Copy {
    fn apply(self, op: ArithmeticOp, right: Self) -> Result<Self, Trouble>;
}

macro_rules! integer {
    ($($name:ty),*) => {$(
        impl Number for $name {
            #[inline(always)]
            fn apply(self, op: ArithmeticOp, right: Self) -> Result<Self, Trouble> {
                match op {
                    ArithmeticOp::Add => self.checked_add(right).ok_or(Trouble::Overflow),
                    ArithmeticOp::Subtract => self.checked_sub(right).ok_or(Trouble::Overflow),
                    ArithmeticOp::Multiply => self.checked_mul(right).ok_or(Trouble::Overflow),
                    ArithmeticOp::Divide | ArithmeticOp::Modulo if right == 0 => Err(Trouble::ZeroDivisor),
                    ArithmeticOp::Divide => self.checked_div(right).ok_or(Trouble::Overflow),
                    // The least integer modulo -1 is 0, not an overflow.
                    ArithmeticOp::Modulo => Ok(self.wrapping_rem(right)),
                    ArithmeticOp::BitAnd => Ok(self & right),
                    ArithmeticOp::BitOr => Ok(self | right),
                    ArithmeticOp::BitXor => Ok(self ^ right),
                }
            }
        }
    )*};
}

integer!(u8, i16, i32, i64);

impl Number for f64 {
    #[inline(always)]
    fn apply(self, op: ArithmeticOp, right: Self) -> Result<Self, Trouble> {
        let value = match op {
            ArithmeticOp::Add => self + right,
            ArithmeticOp::Subtract => self - right,
            ArithmeticOp::Multiply => self * right,
            ArithmeticOp::Divide | ArithmeticOp::Modulo if right == 0.0 => return Err(Trouble::ZeroDivisor),
            ArithmeticOp::Divide => self / right,
            ArithmeticOp::Modulo => self % right,
            ArithmeticOp::BitAnd | ArithmeticOp::BitOr | ArithmeticOp::BitXor => return Err(Trouble::Overflow),
        };
        if value.is_finite() { Ok(value) } else { Err(Trouble::Overflow) }
    }
}

/// `left op right`.
pub(super) fn scalar(
    op: ArithmeticOp,
    left: &Scalar,
    left_type: &SqlType,
    right: &Scalar,
    right_type: &SqlType,
    result: &SqlType,
) -> Result<Scalar, SqlError> {
    use Scalar as S;
    let found = match (left, right) {
        (S::Null, _) | (_, S::Null) => return Ok(S::Null),
        (S::Int(a), S::Int(b)) if *result == SqlType::Int => a.apply(op, *b).map(S::Int),
        (S::BigInt(a), S::BigInt(b)) if *result == SqlType::BigInt => a.apply(op, *b).map(S::BigInt),
        (S::SmallInt(a), S::SmallInt(b)) if *result == SqlType::SmallInt => a.apply(op, *b).map(S::SmallInt),
        (S::TinyInt(a), S::TinyInt(b)) if *result == SqlType::TinyInt => a.apply(op, *b).map(S::TinyInt),
        (S::Float(a), S::Float(b)) => a.apply(op, *b).map(S::Float),
        _ => return by_types(op, (left, left_type), (right, right_type), result),
    };
    found.map_err(|trouble| trouble.to_sql(result))
}

/// Whether [`vector`] can do it.
pub(super) fn has_kernel(left: &SqlType, right: &SqlType, result: &SqlType) -> bool {
    left == result
        && right == result
        && matches!(result, SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Float)
}

/// `left op right` for all rows; all three have one integer type or float.
pub(super) fn vector(op: ArithmeticOp, left: Datum, right: Datum, sql_type: &SqlType, rows: usize) -> Result<ArrayRef, SqlError> {
    if matches!(left, Datum::Value(Scalar::Null)) || matches!(right, Datum::Value(Scalar::Null)) {
        return Ok(array_from_scalar(sql_type, &Scalar::Null, rows));
    }
    let (left, right) = (left.into_array(sql_type, rows), right.into_array(sql_type, rows));
    match sql_type {
        SqlType::TinyInt => columns::<UInt8Type>(op, &left, &right),
        SqlType::SmallInt => columns::<Int16Type>(op, &left, &right),
        SqlType::Int => columns::<Int32Type>(op, &left, &right),
        SqlType::BigInt => columns::<Int64Type>(op, &left, &right),
        _ => columns::<Float64Type>(op, &left, &right),
    }
    .map_err(|trouble| trouble.to_sql(sql_type))
}

fn columns<T: ArrowPrimitiveType>(op: ArithmeticOp, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef, Trouble>
where
    T::Native: Number,
{
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    let pairs = left.values().iter().zip(right.values());
    let values: Vec<T::Native> = match &nulls {
        None => pairs.map(|(a, b)| a.apply(op, *b)).collect::<Result<_, _>>()?,
        Some(nulls) => {
            let one = |((a, b), valid): ((&T::Native, &T::Native), bool)| if valid { a.apply(op, *b) } else { Ok(T::default_value()) };
            pairs.zip(nulls).map(one).collect::<Result<_, _>>()?
        }
    };
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}

/// `~value` of an integer type.
pub(super) fn bit_not(value: &Scalar) -> Scalar {
    match value {
        Scalar::Bit(v) => Scalar::Bit(!v),
        Scalar::TinyInt(v) => Scalar::TinyInt(!v),
        Scalar::SmallInt(v) => Scalar::SmallInt(!v),
        Scalar::Int(v) => Scalar::Int(!v),
        Scalar::BigInt(v) => Scalar::BigInt(!v),
        _ => Scalar::Null,
    }
}

fn by_types(op: ArithmeticOp, left: (&Scalar, &SqlType), right: (&Scalar, &SqlType), result: &SqlType) -> Result<Scalar, SqlError> {
    arithmetic(operator(op), left, right, result)
}

/// What `types` calls an operator.
pub(super) fn operator(op: ArithmeticOp) -> Operator {
    match op {
        ArithmeticOp::Add => Operator::Add,
        ArithmeticOp::Subtract => Operator::Subtract,
        ArithmeticOp::Multiply => Operator::Multiply,
        ArithmeticOp::Divide => Operator::Divide,
        ArithmeticOp::Modulo => Operator::Modulo,
        ArithmeticOp::BitAnd => Operator::BitAnd,
        ArithmeticOp::BitOr => Operator::BitOr,
        ArithmeticOp::BitXor => Operator::BitXor,
    }
}
