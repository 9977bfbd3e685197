//! Type rules of operators: which operands go together, what they are converted to, what comes out.
//!
//! Everything is a table or a formula of the documentation ("Data type precedence", "Precision, scale, and length", the
//! page of each operator), so that each line has a test below. It converts nothing itself.

use super::error::error;
use crate::expr::ArithmeticOp;
use thawdb_tsql::ast::{BinaryOp, CompareOp, Span};
use thawdb_types::{MaxLength, SqlError, SqlType};

/// What an arithmetic or concatenating operator does with its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Both operands are converted to `left` and `right`, the result has `result`.
    Arithmetic {
        /// Type the left operand is converted to.
        left: SqlType,
        /// Type the right operand is converted to.
        right: SqlType,
        /// Type of the result.
        result: SqlType,
    },
    /// Both operands are converted to text or binary of the result's family and put together.
    Concat(SqlType),
}

/// The operator's name in messages 402 and 8117.
pub fn operator_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Subtract => "subtract",
        BinaryOp::Multiply => "multiply",
        BinaryOp::Divide => "divide",
        BinaryOp::Modulo => "modulo",
        BinaryOp::BitAnd => "'&'",
        BinaryOp::BitOr => "'|'",
        BinaryOp::BitXor => "'^'",
        BinaryOp::ShiftLeft => "'<<'",
        BinaryOp::ShiftRight => "'>>'",
        BinaryOp::Concat => "'||'",
    }
}

/// A comparison's name in messages 402 and 468.
pub fn comparison_name(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "equal to",
        CompareOp::NotEqual => "not equal to",
        CompareOp::Less => "less than",
        CompareOp::LessOrEqual => "less than or equal to",
        CompareOp::Greater => "greater than",
        CompareOp::GreaterOrEqual => "greater than or equal to",
    }
}

/// The bound operator behind the written one; `None` for shifts and concatenation.
pub fn arithmetic_op(op: BinaryOp) -> Option<ArithmeticOp> {
    Some(match op {
        BinaryOp::Add => ArithmeticOp::Add,
        BinaryOp::Subtract => ArithmeticOp::Subtract,
        BinaryOp::Multiply => ArithmeticOp::Multiply,
        BinaryOp::Divide => ArithmeticOp::Divide,
        BinaryOp::Modulo => ArithmeticOp::Modulo,
        BinaryOp::BitAnd => ArithmeticOp::BitAnd,
        BinaryOp::BitOr => ArithmeticOp::BitOr,
        BinaryOp::BitXor => ArithmeticOp::BitXor,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::Concat => return None,
    })
}

fn incompatible(op: BinaryOp, left: &SqlType, right: &SqlType, span: Span) -> SqlError {
    if left.base_name() == right.base_name() && !matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor) {
        return error(8117, &[&left.message_name(), &operator_name(op)], span);
    }
    error(402, &[&left.message_name(), &right.message_name(), &operator_name(op)], span)
}

/// What `left op right` does. `left_digits` and `right_digits` are the exact precision and scale of integer constants.
pub fn operation(
    op: BinaryOp,
    left: (&SqlType, Option<(u8, u8)>),
    right: (&SqlType, Option<(u8, u8)>),
    span: Span,
) -> Result<Operation, SqlError> {
    let (l, r) = (left.0, right.0);
    let fail = || incompatible(op, l, r, span);
    match op {
        BinaryOp::Concat => concat_type(l, r).map(Operation::Concat).ok_or_else(fail),
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => bitwise(l, r).ok_or_else(fail),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => Err(fail()),
        BinaryOp::Add if (l.is_text() || l.is_binary()) && (r.is_text() || r.is_binary()) => {
            concat_type(l, r).map(Operation::Concat).ok_or_else(fail)
        }
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo => {
            numeric(op, left, right, span).unwrap_or_else(|| Err(fail()))
        }
    }
}

fn bitwise(left: &SqlType, right: &SqlType) -> Option<Operation> {
    let whole = |t: &SqlType| t.is_integer() || *t == SqlType::Bit;
    let result = match (left, right) {
        (l, r) if whole(l) && whole(r) => higher(l, r),
        (l, r) if whole(l) && r.is_binary() && !r.is_large() => *l,
        (l, r) if whole(r) && l.is_binary() && !l.is_large() => *r,
        _ => return None,
    };
    Some(Operation::Arithmetic { left: result, right: result, result })
}

fn higher(left: &SqlType, right: &SqlType) -> SqlType {
    if left.precedence() <= right.precedence() { *left } else { *right }
}

/// Type of two strings or binaries put together; `None` if they may not be.
pub fn concat_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    if left.is_incomparable() || right.is_incomparable() || matches!(left, SqlType::RowVersion) || matches!(right, SqlType::RowVersion) {
        return None;
    }
    let length = |t: &SqlType, limit: u16| match (t.length(), t) {
        (Some(n), _) => Some(n.min(limit)),
        (None, _) => None,
    };
    let sum = |limit: u16| match (length(left, limit), length(right, limit)) {
        (Some(a), Some(b)) => MaxLength::Limited((a as u32 + b as u32).clamp(1, limit as u32) as u16),
        _ => MaxLength::Max,
    };
    let collation = left.collation().or(right.collation());
    match collation {
        None => Some(SqlType::VarBinary { length: sum(8000) }),
        Some(collation) if left.is_unicode() || right.is_unicode() => Some(SqlType::NVarChar { length: sum(4000), collation }),
        Some(collation) => Some(SqlType::VarChar { length: sum(8000), collation }),
    }
}

/// Precision and scale with which an exact number enters decimal arithmetic.
fn digits(t: &SqlType, exact: Option<(u8, u8)>) -> Option<(u8, u8)> {
    match t {
        SqlType::Decimal { precision, scale, .. } => Some((*precision, *scale)),
        SqlType::Bit => Some((1, 0)),
        SqlType::TinyInt => exact.or(Some((3, 0))),
        SqlType::SmallInt => exact.or(Some((5, 0))),
        SqlType::Int => exact.or(Some((10, 0))),
        SqlType::BigInt => exact.or(Some((19, 0))),
        SqlType::Money => Some((19, 4)),
        SqlType::SmallMoney => Some((10, 4)),
        _ => None,
    }
}

fn numeric(
    op: BinaryOp,
    left: (&SqlType, Option<(u8, u8)>),
    right: (&SqlType, Option<(u8, u8)>),
    span: Span,
) -> Option<Result<Operation, SqlError>> {
    let (l, r) = (left.0, right.0);
    if l.is_incomparable() || r.is_incomparable() {
        return None;
    }
    let same = |t: SqlType| Some(Ok(Operation::Arithmetic { left: t, right: t, result: t }));
    if l.is_date_time() || r.is_date_time() {
        return date_arithmetic(op, l, r, span);
    }
    // A string or binary takes the type of the number beside it.
    let (l, r) = match (l.is_numeric(), r.is_numeric()) {
        (true, true) => (*l, *r),
        (true, false) if r.is_text() || (r.is_binary() && !matches!(l, SqlType::Float | SqlType::Real)) => (*l, *l),
        (false, true) if l.is_text() || (l.is_binary() && !matches!(r, SqlType::Float | SqlType::Real)) => (*r, *r),
        _ => return None,
    };
    if l == SqlType::Bit && r == SqlType::Bit {
        return None;
    }
    let top = higher(&l, &r);
    match top {
        SqlType::Float | SqlType::Real if op == BinaryOp::Modulo => None,
        SqlType::Float | SqlType::Real => same(top),
        SqlType::Decimal { .. } => {
            let (lp, ls) = digits(&l, left.1)?;
            let (rp, rs) = digits(&r, right.1)?;
            let result = decimal_result(op, (lp, ls), (rp, rs));
            let enter = |p, s| SqlType::Decimal { precision: p, scale: s, numeric: true };
            let keep = |t: SqlType, p, s| if matches!(t, SqlType::Decimal { .. }) { t } else { enter(p, s) };
            Some(Ok(Operation::Arithmetic { left: keep(l, lp, ls), right: keep(r, rp, rs), result: enter(result.0, result.1) }))
        }
        _ => same(top),
    }
}

fn date_arithmetic(op: BinaryOp, left: &SqlType, right: &SqlType, span: Span) -> Option<Result<Operation, SqlError>> {
    let old = |t: &SqlType| matches!(t, SqlType::DateTime | SqlType::SmallDateTime);
    let new = |t: &SqlType| t.is_date_time() && !old(t);
    if !matches!(op, BinaryOp::Add | BinaryOp::Subtract) {
        return None;
    }
    if new(left) && new(right) {
        return None;
    }
    if new(left) || new(right) {
        return if left.is_date_time() && right.is_date_time() || left.is_text() || right.is_text() {
            None
        } else {
            Some(Err(error(206, &[&left.message_name(), &right.message_name()], span)))
        };
    }
    // smalldatetime with smalldatetime or a number stays what it is; anything with datetime is datetime.
    let result = higher(left, right);
    let allowed = |t: &SqlType| old(t) || t.is_numeric() || t.is_text() || t.is_binary();
    (allowed(left) && allowed(right)).then_some(Ok(Operation::Arithmetic { left: result, right: result, result }))
}

/// Precision and scale of the result, cut to 38 digits as documented.
pub fn decimal_result(op: BinaryOp, left: (u8, u8), right: (u8, u8)) -> (u8, u8) {
    let (p1, s1, p2, s2) = (i32::from(left.0), i32::from(left.1), i32::from(right.0), i32::from(right.1));
    let (precision, scale) = match op {
        BinaryOp::Multiply => (p1 + p2 + 1, s1 + s2),
        BinaryOp::Divide => {
            let scale = 6.max(s1 + p2 + 1);
            (p1 - s1 + s2 + scale, scale)
        }
        BinaryOp::Modulo => ((p1 - s1).min(p2 - s2) + s1.max(s2), s1.max(s2)),
        _ => (s1.max(s2) + (p1 - s1).max(p2 - s2) + 1, s1.max(s2)),
    };
    if precision <= 38 {
        return (precision.max(1) as u8, scale as u8);
    }
    let whole = precision - scale;
    let scale = match op {
        BinaryOp::Multiply | BinaryOp::Divide => {
            if whole < 32 {
                scale.min(38 - whole)
            } else {
                scale.min(6)
            }
        }
        _ => {
            let whole = (p1 - s1).max(p2 - s2);
            scale.min(38 - whole)
        }
    };
    (38, scale.max(0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use BinaryOp::*;

    #[track_caller]
    fn check(op: BinaryOp, left: SqlType, right: SqlType, expected: Result<SqlType, i32>) {
        let got = operation(op, (&left, None), (&right, None), Span::default());
        let got = got.map_err(|e| e.number).map(|o| match o {
            Operation::Arithmetic { result, .. } | Operation::Concat(result) => result,
        });
        assert_eq!(got, expected, "{left:?} {op:?} {right:?}");
    }

    #[test]
    fn result_types() {
        use SqlType as T;
        let n = T::numeric;
        check(Add, T::Int, T::Int, Ok(T::Int));
        check(Add, T::TinyInt, T::SmallInt, Ok(T::SmallInt));
        check(Add, T::Int, T::BigInt, Ok(T::BigInt));
        check(Divide, T::Int, T::Int, Ok(T::Int));
        check(Add, T::Bit, T::Int, Ok(T::Int));
        check(Add, T::Bit, T::Bit, Err(8117));
        check(Add, n(5, 2), n(5, 2), Ok(n(6, 2)));
        check(Add, n(10, 2), T::Int, Ok(n(13, 2)));
        check(Multiply, n(5, 2), n(5, 2), Ok(n(11, 4)));
        check(Divide, n(5, 2), n(5, 2), Ok(n(13, 8)));
        check(Modulo, n(5, 2), n(7, 3), Ok(n(6, 3)));
        check(Multiply, n(38, 10), n(38, 10), Ok(n(38, 6)));
        check(Divide, n(38, 10), n(38, 10), Ok(n(38, 6)));
        check(Add, n(38, 10), n(38, 5), Ok(n(38, 5)));
        check(Add, T::Money, T::Int, Ok(T::Money));
        check(Multiply, T::Money, n(5, 2), Ok(n(25, 6)));
        check(Add, T::Real, T::Int, Ok(T::Real));
        check(Add, T::Real, T::Float, Ok(T::Float));
        check(Modulo, T::Float, T::Int, Err(402));
        check(Add, T::varchar(10), T::varchar(5), Ok(T::varchar(15)));
        check(Add, T::varchar(10), T::nvarchar(5), Ok(T::nvarchar(15)));
        check(Add, T::varchar(8000), T::varchar(8000), Ok(T::varchar(8000)));
        check(Add, T::VARCHAR_MAX, T::varchar(1), Ok(T::VARCHAR_MAX));
        check(Add, T::varbinary(4), T::varbinary(4), Ok(T::varbinary(8)));
        check(Add, T::varchar(10), T::Int, Ok(T::Int));
        check(Subtract, T::varchar(10), T::varchar(10), Err(8117));
        check(Add, T::DateTime, T::Int, Ok(T::DateTime));
        check(Subtract, T::DateTime, T::DateTime, Ok(T::DateTime));
        check(Multiply, T::DateTime, T::Int, Err(402));
        check(Add, T::Date, T::Int, Err(206));
        check(Add, T::Date, T::Date, Err(8117));
        check(BitAnd, T::Int, T::TinyInt, Ok(T::Int));
        check(BitAnd, T::Int, T::varchar(3), Err(402));
        check(BitOr, T::Int, T::varbinary(3), Ok(T::Int));
        check(Add, T::UniqueIdentifier, T::Int, Err(402));
    }
}
