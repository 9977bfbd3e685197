//! `+ - * / %` and the bit operators: what type each gives, and its value.
//!
//! [`result_type`] is the binder's half, [`arithmetic`] the executor's: the operands are first converted to
//! [`operand_type`]s (identical to the result except for decimal, whose operands keep their own scales).
//!
//! Decimal results have the documented precision and scale:
//!
//! ```text
//! + -   scale max(s1,s2)      precision max(s1,s2) + max(p1-s1, p2-s2) + 1
//! *     scale s1 + s2         precision p1 + p2 + 1
//! /     scale max(6, s1+p2+1) precision p1 - s1 + s2 + scale
//! %     scale max(s1,s2)      precision min(p1-s1, p2-s2) + max(s1,s2)
//! ```
//!
//! and above 38 digits give up scale, never below 6 for `*` and `/` ([`decimal_type`]). `*` and sums that lose scale
//! round half away from zero, `/` cuts off, as SQL Server does. Products and dividends are taken in 256 bits, so no
//! result that fits is refused.
//!
//! Messages: 8115 overflow, 8134 division by zero, 402 and 8117 types that have no such operator, 206.

mod wide;

use crate::convert::{ConvertOptions, convert};
use crate::{MaxLength, Scalar, SqlError, SqlType, message};

/// An operator on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the operator of its name
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
}

impl Operator {
    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::Modulo => "modulo",
            Self::BitAnd => "'&'",
            Self::BitOr => "'|'",
            Self::BitXor => "'^'",
        }
    }

    fn is_bitwise(self) -> bool {
        matches!(self, Self::BitAnd | Self::BitOr | Self::BitXor)
    }
}

/// 10 to the power of `exponent` (at most 38).
pub const fn power_of_ten(exponent: u32) -> i128 {
    10i128.pow(exponent)
}

/// Precision and scale of a type as a decimal operand: int is decimal(10,0), money decimal(19,4).
pub fn as_decimal(sql_type: &SqlType) -> Option<(u8, u8)> {
    sql_type.is_exact_numeric().then(|| (sql_type.precision(), sql_type.scale()))
}

/// The decimal that an operator gives on decimals of those precisions and scales.
pub fn decimal_type(operator: Operator, left: (u8, u8), right: (u8, u8)) -> SqlType {
    let (p1, s1, p2, s2) = (i32::from(left.0), i32::from(left.1), i32::from(right.0), i32::from(right.1));
    let whole = (p1 - s1).max(p2 - s2);
    let (precision, scale) = match operator {
        Operator::Multiply => (p1 + p2 + 1, s1 + s2),
        Operator::Divide => {
            let scale = 6.max(s1 + p2 + 1);
            (p1 - s1 + s2 + scale, scale)
        }
        Operator::Modulo => ((p1 - s1).min(p2 - s2) + s1.max(s2), s1.max(s2)),
        _ => (s1.max(s2) + whole + 1, s1.max(s2)),
    };
    let scale = match operator {
        _ if precision <= 38 => scale,
        Operator::Multiply | Operator::Divide => scale.min(6).max(38 - (precision - scale)).min(scale),
        _ => scale.min(38 - whole).max(0),
    };
    SqlType::numeric(precision.clamp(1, 38) as u8, scale as u8)
}

/// The type of `left operator right`.
///
/// # Errors
/// 402, 8117 and 206 when there is none.
pub fn result_type(operator: Operator, left: &SqlType, right: &SqlType) -> Result<SqlType, SqlError> {
    use SqlType as T;
    let incompatible = || message(402, &[&left.message_name(), &right.message_name(), &operator.name()]);
    if operator == Operator::Add
        && let Some(concatenated) = concatenation_type(left, right)
    {
        return Ok(concatenated);
    }
    let (high, low) = if left.precedence() <= right.precedence() { (left, right) } else { (right, left) };
    // A text or binary operand takes the other's type.
    let low = if low.is_text() || low.is_binary() { high } else { low };
    if operator.is_bitwise() {
        return match (high, low) {
            (h, l) if (h.is_integer() || *h == T::Bit) && (l.is_integer() || *l == T::Bit) => Ok(*h),
            _ => Err(incompatible()),
        };
    }
    if high.is_date_time() {
        let plus_minus = matches!(operator, Operator::Add | Operator::Subtract);
        let legacy = |t: &T| matches!(t, T::DateTime | T::SmallDateTime);
        return match plus_minus && legacy(high) && (legacy(low) || low.is_numeric()) {
            true => Ok(*high),
            false if legacy(high) && low.is_numeric() => Err(message(8117, &[&high.message_name(), &operator.name()])),
            false if low.is_numeric() => Err(message(206, &[&left.message_name(), &right.message_name()])),
            false if left == right => Err(message(8117, &[&left.message_name(), &operator.name()])),
            false => Err(incompatible()),
        };
    }
    match (high, low) {
        (T::Float | T::Real, _) if operator == Operator::Modulo => Err(incompatible()),
        (T::Float, l) if l.is_numeric() => Ok(T::Float),
        // A real and a decimal or bigint need more digits than real has.
        (T::Real, T::Decimal { .. } | T::BigInt | T::Money | T::SmallMoney) => Ok(T::Float),
        (T::Real, l) if l.is_numeric() => Ok(T::Real),
        (T::Decimal { .. }, l) if l.is_exact_numeric() => {
            let (Some(a), Some(b)) = (operand_decimal(left, low), operand_decimal(right, low)) else { return Err(incompatible()) };
            Ok(decimal_type(operator, a, b))
        }
        (T::Money, l) | (T::SmallMoney, l) if l.is_exact_numeric() => Ok(*high),
        (T::Bit, T::Bit) => Err(message(8117, &[&"bit", &operator.name()])),
        (h, l) if h.is_integer() && (l.is_integer() || *l == T::Bit) => Ok(*h),
        _ if left.base_name() == right.base_name() => Err(message(8117, &[&left.message_name(), &operator.name()])),
        _ => Err(incompatible()),
    }
}

fn operand_decimal(sql_type: &SqlType, other: &SqlType) -> Option<(u8, u8)> {
    as_decimal(sql_type).or_else(|| as_decimal(other))
}

/// The type of two texts or two binaries joined by `+`; `None` for other types.
pub fn concatenation_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    let binary = |t: &SqlType| matches!(t, SqlType::Binary { .. } | SqlType::VarBinary { .. });
    let both_text = left.is_text() && right.is_text();
    if !(both_text || binary(left) && binary(right)) {
        return None;
    }
    let unicode = left.is_unicode() || right.is_unicode();
    let most = if unicode { 4000 } else { 8000 };
    let length = match (left.length(), right.length()) {
        (Some(a), Some(b)) => MaxLength::Limited((u32::from(a) + u32::from(b)).min(most).max(1) as u16),
        _ => MaxLength::Max,
    };
    let Some(collation) = left.collation() else { return Some(SqlType::VarBinary { length }) };
    Some(if unicode { SqlType::NVarChar { length, collation } } else { SqlType::VarChar { length, collation } })
}

/// What an operand of type `own` is converted to before an operator that gives `result`.
pub fn operand_type(own: &SqlType, result: &SqlType) -> SqlType {
    match (own, result) {
        (SqlType::Decimal { .. }, SqlType::Decimal { .. }) => *own,
        (own, SqlType::Decimal { .. }) => match as_decimal(own) {
            Some((precision, scale)) => SqlType::numeric(precision, scale),
            None => *result,
        },
        // Text keeps its own length, or it would be cut before it is joined.
        (own, result) if own.is_text() && result.is_text() => *own,
        (own, result) if own.is_binary() && result.is_binary() => *own,
        _ => *result,
    }
}

/// `left operator right`, giving `result` (from [`result_type`]). NULL if either is.
///
/// # Errors
/// 8115, 8134, and what converting the operands raises.
pub fn arithmetic(operator: Operator, left: (&Scalar, &SqlType), right: (&Scalar, &SqlType), result: &SqlType) -> Result<Scalar, SqlError> {
    if left.0.is_null() || right.0.is_null() {
        return Ok(Scalar::Null);
    }
    let options = ConvertOptions::default();
    let (left_type, right_type) = (operand_type(left.1, result), operand_type(right.1, result));
    let a = convert(left.0, left.1, &left_type, &options)?;
    let b = convert(right.0, right.1, &right_type, &options)?;
    let overflow = || overflow(result);
    match (a, b) {
        (Scalar::Bit(a), Scalar::Bit(b)) => Ok(Scalar::Bit(integer(operator, i64::from(a), i64::from(b))?.unwrap_or(0) != 0)),
        (Scalar::TinyInt(a), Scalar::TinyInt(b)) => narrow(integer(operator, a.into(), b.into())?, result).map(Scalar::TinyInt),
        (Scalar::SmallInt(a), Scalar::SmallInt(b)) => narrow(integer(operator, a.into(), b.into())?, result).map(Scalar::SmallInt),
        (Scalar::Int(a), Scalar::Int(b)) => narrow(integer(operator, a.into(), b.into())?, result).map(Scalar::Int),
        (Scalar::BigInt(a), Scalar::BigInt(b)) => integer(operator, a, b)?.ok_or_else(overflow).map(Scalar::BigInt),
        (Scalar::Money(a), Scalar::Money(b)) => money(operator, a, b, result).map(Scalar::Money),
        (Scalar::Decimal(a), Scalar::Decimal(b)) => {
            decimal(operator, (a, left_type.scale()), (b, right_type.scale()), result).map(Scalar::Decimal)
        }
        (Scalar::Real(a), Scalar::Real(b)) => {
            let value = float(operator, f64::from(a), f64::from(b))? as f32;
            if value.is_finite() { Ok(Scalar::Real(value)) } else { Err(overflow()) }
        }
        (Scalar::Float(a), Scalar::Float(b)) => {
            let value = float(operator, a, b)?;
            if value.is_finite() { Ok(Scalar::Float(value)) } else { Err(overflow()) }
        }
        (Scalar::Text(a), Scalar::Text(b)) => {
            convert(&Scalar::Text(a + &b), &SqlType::NVARCHAR_MAX.with_collation(result.collation().unwrap_or_default()), result, &options)
        }
        (Scalar::Binary(a), Scalar::Binary(b)) => convert(&Scalar::Binary([a, b].concat()), &SqlType::VARBINARY_MAX, result, &options),
        (Scalar::DateTime(a), Scalar::DateTime(b)) => {
            let sum = if operator == Operator::Add { a.checked_add(b) } else { a.checked_sub(b) };
            let value = Scalar::DateTime(sum.ok_or_else(overflow)?);
            crate::calendar::Moment::of(&value).and_then(|m| m.to_scalar(result).ok()).ok_or_else(overflow)?;
            Ok(value)
        }
        (Scalar::SmallDateTime(a), Scalar::SmallDateTime(b)) => {
            let value = Scalar::SmallDateTime(if operator == Operator::Add { a + b } else { a - b });
            crate::calendar::Moment::of(&value).and_then(|m| m.to_scalar(result).ok()).ok_or_else(overflow)?;
            Ok(value)
        }
        (a, b) => panic!("{a:?} {} {b:?} passed the binder", operator.name()),
    }
}

/// 8115 for an expression of that type.
pub fn overflow(result: &SqlType) -> SqlError {
    message(8115, &[&"expression", &result.message_name()])
}

fn divide_by_zero() -> SqlError {
    message(8134, &[])
}

/// The operator on 64-bit integers; `None` if the result does not fit them.
fn integer(operator: Operator, a: i64, b: i64) -> Result<Option<i64>, SqlError> {
    Ok(match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Modulo if b == 0 => return Err(divide_by_zero()),
        Operator::Divide => a.checked_div(b),
        Operator::Modulo => Some(a.checked_rem(b).unwrap_or(0)),
        Operator::BitAnd => Some(a & b),
        Operator::BitOr => Some(a | b),
        Operator::BitXor => Some(a ^ b),
    })
}

fn narrow<T: TryFrom<i64>>(value: Option<i64>, result: &SqlType) -> Result<T, SqlError> {
    value.and_then(|value| T::try_from(value).ok()).ok_or_else(|| overflow(result))
}

fn money(operator: Operator, a: i64, b: i64, result: &SqlType) -> Result<i64, SqlError> {
    let wide = (i128::from(a), i128::from(b));
    let value = match operator {
        Operator::Add => wide.0 + wide.1,
        Operator::Subtract => wide.0 - wide.1,
        Operator::Multiply => round_divide(wide.0 * wide.1, 10_000),
        Operator::Divide | Operator::Modulo if b == 0 => return Err(divide_by_zero()),
        Operator::Divide => wide.0 * 10_000 / wide.1,
        _ => wide.0 % wide.1,
    };
    let limit =
        if *result == SqlType::SmallMoney { i128::from(i32::MIN)..=i128::from(i32::MAX) } else { i64::MIN.into()..=i64::MAX.into() };
    if limit.contains(&value) { Ok(value as i64) } else { Err(overflow(result)) }
}

fn float(operator: Operator, a: f64, b: f64) -> Result<f64, SqlError> {
    Ok(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        _ if b == 0.0 => return Err(divide_by_zero()),
        _ => a / b,
    })
}

/// `value / divisor`, half away from zero.
pub fn round_divide(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value / divisor, value % divisor);
    let up = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    if up && rest != 0 { quotient + if (value < 0) == (divisor < 0) { 1 } else { -1 } } else { quotient }
}

/// An unscaled decimal brought from one scale to another, rounding half away from zero; `None` if it has no room.
pub fn rescale(value: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        value.checked_mul(power_of_ten(u32::from(to - from)))
    } else {
        Some(round_divide(value, power_of_ten(u32::from(from - to))))
    }
}

/// The operator on unscaled decimals with their scales; the result is of `result`'s scale and checked for its precision.
///
/// # Errors
/// 8115, 8134.
pub fn decimal(operator: Operator, left: (i128, u8), right: (i128, u8), result: &SqlType) -> Result<i128, SqlError> {
    let (scale, limit) = (result.scale(), power_of_ten(u32::from(result.precision())));
    let ((a, s1), (b, s2)) = (left, right);
    if b == 0 && matches!(operator, Operator::Divide | Operator::Modulo) {
        return Err(divide_by_zero());
    }
    let value = match operator {
        Operator::Add | Operator::Subtract => {
            let b = if operator == Operator::Add { b } else { -b };
            let common = s1.max(s2);
            match (rescale(a, s1, common), rescale(b, s2, common)) {
                (Some(a), Some(b)) => a.checked_add(b).and_then(|sum| rescale(sum, common, scale)),
                // No room at the finer scale: each is rounded to the result's first.
                _ => rescale(a, s1, scale).zip(rescale(b, s2, scale)).and_then(|(a, b)| a.checked_add(b)),
            }
        }
        Operator::Multiply => wide::multiply_divide_round(a, b, u32::from(s1 + s2 - scale)),
        Operator::Divide => wide::scale_divide(a, i32::from(scale) + i32::from(s2) - i32::from(s1), b),
        _ => {
            let common = s1.max(s2);
            match (rescale(a, s1, common), rescale(b, s2, common)) {
                (Some(a), Some(b)) => Some(a % b),
                // One of them has no room at the common scale: the one that has fewer digits after the point is the larger.
                (Some(a), None) => Some(a),
                (None, Some(b)) => wide::scale_modulo(a, u32::from(common - s1), b),
                (None, None) => None,
            }
        }
    };
    value.filter(|v| v.unsigned_abs() < limit.unsigned_abs()).ok_or_else(|| overflow(result))
}

/// The opposite of a number; `-` before an expression.
///
/// # Errors
/// 8115.
pub fn negate(value: &Scalar, sql_type: &SqlType) -> Result<Scalar, SqlError> {
    let overflow = || overflow(sql_type);
    Ok(match value {
        Scalar::Null => Scalar::Null,
        Scalar::TinyInt(0) => Scalar::TinyInt(0),
        Scalar::TinyInt(_) => return Err(overflow()),
        Scalar::SmallInt(v) => Scalar::SmallInt(v.checked_neg().ok_or_else(overflow)?),
        Scalar::Int(v) => Scalar::Int(v.checked_neg().ok_or_else(overflow)?),
        Scalar::BigInt(v) => Scalar::BigInt(v.checked_neg().ok_or_else(overflow)?),
        Scalar::Decimal(v) => Scalar::Decimal(-v),
        Scalar::Money(v) => Scalar::Money(v.checked_neg().ok_or_else(overflow)?),
        Scalar::Real(v) => Scalar::Real(-v),
        Scalar::Float(v) => Scalar::Float(-v),
        _ => return Err(message(8117, &[&sql_type.message_name(), &"minus"])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(operator: Operator, a: (Scalar, SqlType), b: (Scalar, SqlType)) -> Result<(Scalar, SqlType), i32> {
        let result = result_type(operator, &a.1, &b.1).map_err(|e| e.number)?;
        let value = arithmetic(operator, (&a.0, &a.1), (&b.0, &b.1), &result).map_err(|e| e.number)?;
        Ok((value, result))
    }

    #[test]
    fn integers() {
        let int = |v| (Scalar::Int(v), SqlType::Int);
        assert_eq!(run(Operator::Add, int(2), int(3)), Ok(int(5)));
        assert_eq!(run(Operator::Divide, int(-7), int(2)), Ok(int(-3)));
        assert_eq!(run(Operator::Modulo, int(-7), int(2)), Ok(int(-1)));
        assert_eq!(run(Operator::Add, int(i32::MAX), int(1)), Err(8115));
        assert_eq!(run(Operator::Divide, int(1), int(0)), Err(8134));
        assert_eq!(run(Operator::Divide, int(i32::MIN), int(-1)), Err(8115));
        assert_eq!(run(Operator::Add, int(1), (Scalar::BigInt(1), SqlType::BigInt)), Ok((Scalar::BigInt(2), SqlType::BigInt)));
        assert_eq!(run(Operator::Add, (Scalar::text("5"), SqlType::varchar(1)), int(1)), Ok(int(6)));
        assert_eq!(run(Operator::Add, (Scalar::Null, SqlType::Int), int(1)), Ok((Scalar::Null, SqlType::Int)));
    }

    #[test]
    fn decimals_have_the_documented_types() {
        for (operator, left, right, expected) in [
            (Operator::Add, (10, 2), (10, 2), (11, 2)),
            (Operator::Multiply, (10, 2), (10, 2), (21, 4)),
            (Operator::Divide, (10, 2), (10, 2), (23, 13)),
            (Operator::Divide, (2, 1), (2, 1), (8, 6)),
            (Operator::Modulo, (10, 2), (5, 1), (6, 2)),
            (Operator::Multiply, (38, 10), (38, 10), (38, 6)),
            (Operator::Divide, (38, 20), (38, 20), (38, 6)),
            (Operator::Add, (38, 0), (38, 10), (38, 0)),
        ] {
            assert_eq!(decimal_type(operator, left, right), SqlType::numeric(expected.0, expected.1), "{operator:?} {left:?} {right:?}");
        }
    }

    #[test]
    fn decimal_values() {
        let decimal = |v, p, s| (Scalar::Decimal(v), SqlType::numeric(p, s));
        assert_eq!(run(Operator::Divide, decimal(20, 2, 1), decimal(30, 2, 1)), Ok(decimal(666_666, 8, 6)));
        assert_eq!(run(Operator::Multiply, decimal(15, 2, 1), decimal(-15, 2, 1)), Ok(decimal(-225, 5, 2)));
        assert_eq!(run(Operator::Add, (Scalar::Int(1), SqlType::Int), decimal(15, 2, 1)), Ok(decimal(25, 12, 1)));
        let most = 10i128.pow(38) - 1;
        assert_eq!(run(Operator::Add, decimal(most, 38, 0), decimal(1, 38, 0)), Err(8115));
        assert_eq!(run(Operator::Multiply, decimal(most, 38, 0), decimal(10, 38, 0)), Err(8115));
        assert_eq!(
            run(Operator::Multiply, decimal(most, 38, 19), decimal(10i128.pow(19), 38, 19)),
            Ok(decimal(round_divide(most, 10i128.pow(13)), 38, 6))
        );
    }

    #[test]
    fn other_types() {
        let money = |v| (Scalar::Money(v), SqlType::Money);
        assert_eq!(run(Operator::Multiply, money(15_000), (Scalar::Int(2), SqlType::Int)), Ok(money(30_000)));
        assert_eq!(
            run(Operator::Add, (Scalar::text("ab"), SqlType::varchar(2)), (Scalar::text("c"), SqlType::nvarchar(1))),
            Ok((Scalar::text("abc"), SqlType::nvarchar(3)))
        );
        assert_eq!(
            run(Operator::Add, (Scalar::DateTime(0), SqlType::DateTime), (Scalar::Int(1), SqlType::Int)),
            Ok((Scalar::DateTime(25_920_000), SqlType::DateTime))
        );
        assert_eq!(run(Operator::Add, (Scalar::Date(0), SqlType::Date), (Scalar::Int(1), SqlType::Int)), Err(206));
        assert_eq!(run(Operator::Modulo, (Scalar::Float(1.0), SqlType::Float), (Scalar::Int(1), SqlType::Int)), Err(402));
        assert_eq!(run(Operator::Multiply, (Scalar::Float(1e300), SqlType::Float), (Scalar::Float(1e300), SqlType::Float)), Err(8115));
        assert_eq!(run(Operator::Subtract, (Scalar::text("a"), SqlType::varchar(1)), (Scalar::text("b"), SqlType::varchar(1))), Err(8117));
    }

    proptest! {
        #[test]
        fn decimal_products_and_quotients_are_exact(a in -1_000_000_000i128..1_000_000_000, b in -1_000_000i128..1_000_000, s1 in 0..5u8, s2 in 0..5u8) {
            let (left, right) = ((10, s1), (7, s2));
            let product = decimal(Operator::Multiply, (a, s1), (b, s2), &decimal_type(Operator::Multiply, left, right)).unwrap();
            prop_assert_eq!(product, a * b);
            if b != 0 {
                let result = decimal_type(Operator::Divide, left, right);
                let quotient = decimal(Operator::Divide, (a, s1), (b, s2), &result).unwrap();
                prop_assert_eq!(quotient, a * 10i128.pow(u32::from(result.scale() + s2 - s1)) / b);
            }
        }
    }
}
