//! Arithmetic on columns of decimals, and of integers beside them: `types::arithmetic` without a value's way through a scalar.
//!
//! ```text
//! + -   both at the larger scale, which the result has unless its precision was cut
//! *     the product of the digits, whose scale is the sum of both unless it was cut
//! ```
//! Where the type of the result has room for whatever its operands may be, nothing is checked: a decimal holds no more digits
//! than its precision says. Elsewhere each row is checked, and what needs 256 bits, a division or a rounding goes to
//! [`thawdb_types::arithmetic::decimal`], row by row.

use crate::eval::arithmetic::operator;
use crate::eval::vector::Datum;
use crate::expr::ArithmeticOp;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_buffer::NullBuffer;
use std::sync::Arc;
use thawdb_types::arithmetic::{as_decimal, decimal, power_of_ten};
use thawdb_types::{Scalar, SqlError, SqlType, array_from_scalar};

/// Digits that every decimal has room for.
const DIGITS_MAX: u8 = 38;

/// Whether [`vector`] can do it.
pub(super) fn has_kernel(op: ArithmeticOp, left: &SqlType, right: &SqlType, result: &SqlType) -> bool {
    use ArithmeticOp as Op;
    let is_operand =
        |t: &SqlType| matches!(t, SqlType::Decimal { .. } | SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt);
    let is_operator = matches!(op, Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Modulo);
    is_operator && matches!(result, SqlType::Decimal { .. }) && is_operand(left) && is_operand(right)
}

/// One operand: the digits of each row, or of all.
enum Digits {
    Rows(Vec<i128>),
    Column(Decimal128Array),
    One(i128),
}

impl Digits {
    fn of(datum: &Datum) -> Self {
        match datum {
            Datum::Value(value) => Self::One(match value {
                Scalar::Decimal(digits) => *digits,
                other => other.as_i64().map_or(0, i128::from),
            }),
            Datum::Array(array) => {
                if let Some(column) = array.as_primitive_opt::<Decimal128Type>() {
                    Self::Column(column.clone())
                } else if let Some(column) = array.as_primitive_opt::<Int32Type>() {
                    Self::Rows(column.values().iter().map(|v| i128::from(*v)).collect())
                } else if let Some(column) = array.as_primitive_opt::<Int64Type>() {
                    Self::Rows(column.values().iter().map(|v| i128::from(*v)).collect())
                } else if let Some(column) = array.as_primitive_opt::<Int16Type>() {
                    Self::Rows(column.values().iter().map(|v| i128::from(*v)).collect())
                } else {
                    Self::Rows(array.as_primitive::<UInt8Type>().values().iter().map(|v| i128::from(*v)).collect())
                }
            }
        }
    }

    fn rows(&self) -> Result<&[i128], i128> {
        match self {
            Self::Rows(rows) => Ok(rows),
            Self::Column(column) => Ok(column.values()),
            Self::One(digits) => Err(*digits),
        }
    }
}

/// `left op right` for all rows, of which there is one at least.
pub(super) fn vector(
    op: ArithmeticOp,
    (left, left_type): (Datum, &SqlType),
    (right, right_type): (Datum, &SqlType),
    result: &SqlType,
    rows: usize,
) -> Result<ArrayRef, SqlError> {
    if matches!(left, Datum::Value(Scalar::Null)) || matches!(right, Datum::Value(Scalar::Null)) {
        return Ok(array_from_scalar(result, &Scalar::Null, rows));
    }
    let nulls_of = |datum: &Datum| match datum {
        Datum::Array(array) => array.nulls().cloned(),
        Datum::Value(_) => None,
    };
    let nulls = NullBuffer::union(nulls_of(&left).as_ref(), nulls_of(&right).as_ref());
    let (a, b) = (Digits::of(&left), Digits::of(&right));
    let shape = Shape::new(op, left_type, right_type, result);
    let digits = match shape.unchecked() {
        Some((scale_a, scale_b)) => match op {
            ArithmeticOp::Add => each(&a, &b, rows, |a, b| a.wrapping_mul(scale_a).wrapping_add(b.wrapping_mul(scale_b))),
            ArithmeticOp::Subtract => each(&a, &b, rows, |a, b| a.wrapping_mul(scale_a).wrapping_sub(b.wrapping_mul(scale_b))),
            _ => each(&a, &b, rows, i128::wrapping_mul),
        },
        None => checked(&shape, &a, &b, nulls.as_ref(), rows)?,
    };
    Ok(Arc::new(Decimal128Array::new(digits.into(), nulls).with_data_type(result.arrow_type())))
}

/// What is asked for.
struct Shape<'t> {
    op: ArithmeticOp,
    left: (u8, u8),
    right: (u8, u8),
    result: &'t SqlType,
}

impl<'t> Shape<'t> {
    fn new(op: ArithmeticOp, left: &SqlType, right: &SqlType, result: &'t SqlType) -> Self {
        let decimal = |t: &SqlType| as_decimal(t).expect("operands with a kernel are exact numbers");
        Self { op, left: decimal(left), right: decimal(right), result }
    }

    /// Factors that bring both operands to one scale (of a sum), if no result can have more digits than its type.
    fn unchecked(&self) -> Option<(i128, i128)> {
        let ((p1, s1), (p2, s2)) = (self.left, self.right);
        let (precision, scale) = (self.result.precision(), self.result.scale());
        match self.op {
            ArithmeticOp::Add | ArithmeticOp::Subtract => {
                let common = s1.max(s2);
                let needed = (p1 - s1).max(p2 - s2) + common + 1;
                let factor = |s: u8| power_of_ten(u32::from(common - s));
                (common == scale && needed <= precision).then(|| (factor(s1), factor(s2)))
            }
            ArithmeticOp::Multiply => (s1 + s2 == scale && p1 + p2 <= precision.min(DIGITS_MAX)).then_some((1, 1)),
            _ => None,
        }
    }

    /// One row's digits.
    fn one(&self, a: i128, b: i128) -> Result<i128, SqlError> {
        if self.op == ArithmeticOp::Multiply && self.left.1 + self.right.1 == self.result.scale() {
            let limit = power_of_ten(u32::from(self.result.precision())).unsigned_abs();
            if let Some(product) = a.checked_mul(b).filter(|product| product.unsigned_abs() < limit) {
                return Ok(product);
            }
        }
        decimal(operator(self.op), (a, self.left.1), (b, self.right.1), self.result)
    }
}

/// `compute` of each pair; of what is NULL it does not matter what comes out.
fn each(a: &Digits, b: &Digits, rows: usize, compute: impl Fn(i128, i128) -> i128) -> Vec<i128> {
    match (a.rows(), b.rows()) {
        (Ok(a), Ok(b)) => a.iter().zip(b).map(|(a, b)| compute(*a, *b)).collect(),
        (Ok(a), Err(b)) => a.iter().map(|a| compute(*a, b)).collect(),
        (Err(a), Ok(b)) => b.iter().map(|b| compute(a, *b)).collect(),
        (Err(a), Err(b)) => vec![compute(a, b); rows],
    }
}

/// The rows that are not NULL, each checked.
fn checked(shape: &Shape<'_>, a: &Digits, b: &Digits, nulls: Option<&NullBuffer>, rows: usize) -> Result<Vec<i128>, SqlError> {
    let at = |side: &Digits, row: usize| side.rows().map_or_else(|one| one, |rows| rows[row]);
    let one = |row: usize| match nulls.is_some_and(|nulls| nulls.is_null(row)) {
        true => Ok(0),
        false => shape.one(at(a, row), at(b, row)),
    };
    (0..rows).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::arithmetic::scalar;
    use thawdb_types::arithmetic::{Operator, result_type};
    use thawdb_types::{ColumnBuilder, scalar_at};

    const OPERATORS: [(ArithmeticOp, Operator); 5] = [
        (ArithmeticOp::Add, Operator::Add),
        (ArithmeticOp::Subtract, Operator::Subtract),
        (ArithmeticOp::Multiply, Operator::Multiply),
        (ArithmeticOp::Divide, Operator::Divide),
        (ArithmeticOp::Modulo, Operator::Modulo),
    ];

    fn column(sql_type: &SqlType, values: &[Scalar]) -> ArrayRef {
        let mut builder = ColumnBuilder::new(sql_type, values.len());
        values.iter().for_each(|value| builder.append(value));
        builder.finish()
    }

    /// Values of a type: its least and greatest, small ones, NULL.
    fn values(sql_type: &SqlType) -> Vec<Scalar> {
        let most = power_of_ten(u32::from(sql_type.precision())) - 1;
        let decimal = [0, 1, -1, 7, -10, 12_345, most, -most].map(|v: i128| v.clamp(-most, most));
        match sql_type {
            SqlType::Int => [0, 1, -3, 1_000_003, i32::MAX, i32::MIN].map(Scalar::Int).into_iter().chain([Scalar::Null]).collect(),
            _ => decimal.into_iter().map(Scalar::Decimal).chain([Scalar::Null]).collect(),
        }
    }

    /// Every pair of values by the kernel, as columns and beside a constant, gives what it gives one at a time.
    #[test]
    fn rows_together_give_what_they_give_alone() {
        let decimal = SqlType::decimal;
        let types = [SqlType::Int, decimal(15, 2), decimal(5, 0), decimal(19, 4), decimal(38, 0), decimal(38, 10), decimal(32, 4)];
        for (left_type, right_type) in types.iter().flat_map(|left| types.iter().map(move |right| (left, right))) {
            for (op, operator) in OPERATORS {
                let result = result_type(operator, left_type, right_type).unwrap();
                if !has_kernel(op, left_type, right_type, &result) {
                    continue;
                }
                for (a, b) in values(left_type).iter().flat_map(|a| values(right_type).into_iter().map(move |b| (a.clone(), b))) {
                    let alone = scalar(op, &a, left_type, &b, right_type, &result).map_err(|error| error.number);
                    let columns = || {
                        let column = |value: &Scalar, sql_type: &SqlType| column(sql_type, &[value.clone(), Scalar::Null, value.clone()]);
                        (Datum::Array(column(&a, left_type)), Datum::Array(column(&b, right_type)))
                    };
                    let ways = [columns(), (columns().0, Datum::Value(b.clone())), (Datum::Value(a.clone()), columns().1)];
                    for (left, right) in ways {
                        let together = vector(op, (left, left_type), (right, right_type), &result, 3);
                        let together = together.map(|array| scalar_at(array.as_ref(), 2, &result)).map_err(|error| error.number);
                        assert_eq!(together, alone, "{a:?} {left_type:?} {op:?} {b:?} {right_type:?}");
                    }
                }
            }
        }
    }
}
