//! Constants: their types and values.
//!
//! A whole number is int if it fits and numeric(p,0) otherwise, also where bigint would do; a string is varchar(n) or
//! nvarchar(n) of its own length, at least 1, and max beyond the limit.

use crate::algebra::BoundExpr;
use crate::bind::coerce::cast;
use crate::bind::error::error;
use thawdb_tsql::ast::{Literal, OdbcLiteral, Span};
use thawdb_types::{Collation, MaxLength, Scalar, SqlError, SqlType};

/// Binds a constant.
pub(super) fn bind_literal(literal: &Literal, span: Span) -> Result<BoundExpr, SqlError> {
    Ok(match literal {
        Literal::Null => BoundExpr::null(),
        Literal::Integer(value) => BoundExpr::literal(Scalar::Int(*value), SqlType::Int),
        Literal::Decimal { text, precision, scale } => {
            if *precision > 38 {
                return Err(error(1007, &[&text], span));
            }
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            let value: i128 = digits.parse().map_err(|_| error(1007, &[&text], span))?;
            BoundExpr::literal(Scalar::Decimal(value), SqlType::numeric(*precision, *scale))
        }
        Literal::Float(text) => {
            let value: f64 = text.parse().map_err(|_| error(168, &[&text], span))?;
            if !value.is_finite() {
                return Err(error(168, &[&text], span));
            }
            BoundExpr::literal(Scalar::Float(value), SqlType::Float)
        }
        Literal::Money(text) => BoundExpr::literal(Scalar::Money(money(text).ok_or_else(|| error(235, &[], span))?), SqlType::Money),
        Literal::String { value, national } => text(value, *national),
        Literal::Binary(bytes) => {
            let length = if bytes.len() > 8000 { MaxLength::Max } else { MaxLength::Limited(bytes.len().max(1) as u16) };
            BoundExpr::literal(Scalar::Binary(bytes.clone()), SqlType::VarBinary { length })
        }
        Literal::Odbc { kind, value } => {
            let target = match kind {
                OdbcLiteral::Guid => SqlType::UniqueIdentifier,
                OdbcLiteral::Date | OdbcLiteral::Time | OdbcLiteral::Timestamp => SqlType::DateTime,
            };
            cast(text(value, false), target)
        }
    })
}

fn text(value: &str, national: bool) -> BoundExpr {
    let units = value.encode_utf16().count().max(1);
    let limited = |most: usize| if units > most { MaxLength::Max } else { MaxLength::Limited(units as u16) };
    let sql_type = if national {
        SqlType::NVarChar { length: limited(4000), collation: Collation::DEFAULT }
    } else {
        SqlType::VarChar { length: limited(8000), collation: Collation::DEFAULT }
    };
    BoundExpr::literal(Scalar::Text(value.to_string()), sql_type)
}

/// Ten-thousandths, rounded half away from zero; `None` beyond money's range.
fn money(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut digits: Vec<i64> = fraction.bytes().take(5).map(|b| i64::from(b - b'0')).collect();
    digits.resize(5, 0);
    let mut part = digits[..4].iter().fold(0, |sum, d| sum * 10 + d);
    part += i64::from(digits[4] >= 5);
    whole.checked_mul(10_000)?.checked_add(part).map(|v| sign * v)
}

/// Precision and scale of an integer constant: what it takes, and no more.
pub fn integer_digits(expr: &BoundExpr) -> Option<(u8, u8)> {
    let value = match &expr.kind {
        crate::algebra::BoundExprKind::Literal(Scalar::Int(v)) => i64::from(*v),
        crate::algebra::BoundExprKind::Literal(Scalar::BigInt(v)) => *v,
        _ => return None,
    };
    Some((value.unsigned_abs().max(1).ilog10() as u8 + 1, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_rounds_half_away() {
        for (text, value) in [("12.50", 125_000), ("-3", -30_000), (".00005", 1), ("1.23454", 12_345), ("1.23455", 12_346)] {
            assert_eq!(money(text), Some(value), "{text}");
        }
        assert_eq!(money("99999999999999999999"), None);
    }
}
