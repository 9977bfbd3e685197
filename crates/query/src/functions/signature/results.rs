//! Result types that depend on the arguments: lengths of strings, decimals of rounding.

use super::{constant_int, text_like};
use crate::algebra::BoundExpr;
use thawdb_types::{MaxLength, SqlType};

fn length_of(expr: &BoundExpr) -> Option<u32> {
    if expr.sql_type.is_text() || expr.sql_type.is_binary() {
        expr.sql_type.length().map(u32::from)
    } else {
        Some(display_length(&expr.sql_type))
    }
}

/// Characters the text of a value takes at most.
pub(crate) fn display_length(sql_type: &SqlType) -> u32 {
    match sql_type {
        SqlType::Bit => 1,
        SqlType::TinyInt => 4,
        SqlType::SmallInt => 6,
        SqlType::Int => 12,
        SqlType::BigInt => 24,
        SqlType::Decimal { precision, .. } => u32::from(*precision) + 3,
        SqlType::Money | SqlType::SmallMoney => 21,
        SqlType::Real => 14,
        SqlType::Float => 23,
        SqlType::UniqueIdentifier => 36,
        SqlType::Date => 10,
        SqlType::Time { .. } => 16,
        SqlType::DateTime | SqlType::SmallDateTime => 26,
        SqlType::DateTime2 { .. } => 27,
        SqlType::DateTimeOffset { .. } => 34,
        other => other.length().map_or(8000, u32::from),
    }
}

/// A string of the first argument's family and length.
pub(super) fn text_same(arguments: &[BoundExpr]) -> SqlType {
    text_like(&arguments[..1], length_of(&arguments[0]))
}

/// A part of a string or binary whose length the argument at `count` bounds.
fn part(arguments: &[BoundExpr], count: usize) -> SqlType {
    let whole = length_of(&arguments[0]);
    let asked = arguments.get(count).and_then(constant_int).and_then(|n| u32::try_from(n).ok());
    let length = match (whole, asked) {
        (Some(w), Some(a)) => Some(w.min(a)),
        (None, Some(a)) if a <= 4000 => Some(a),
        (w, _) => w,
    };
    if arguments[0].sql_type.is_binary() {
        let length = length.map_or(MaxLength::Max, |n| MaxLength::Limited(n.clamp(1, 8000) as u16));
        return SqlType::VarBinary { length };
    }
    text_like(&arguments[..1], length)
}

pub(super) fn part_by_second(arguments: &[BoundExpr]) -> SqlType {
    part(arguments, 1)
}

pub(super) fn part_by_third(arguments: &[BoundExpr]) -> SqlType {
    part(arguments, 2)
}

/// The family's longest limited string; max if any argument is max.
pub(super) fn text_longest(arguments: &[BoundExpr]) -> SqlType {
    let text: Vec<BoundExpr> = arguments.iter().filter(|a| a.sql_type.is_text()).cloned().collect();
    let max = text.iter().any(|a| a.sql_type.is_large());
    text_like(&text, if max { None } else { Some(8000) })
}

/// REPLICATE: exact for a constant count.
pub(super) fn replicate(arguments: &[BoundExpr]) -> SqlType {
    let length = length_of(&arguments[0]);
    let count = arguments.get(1).and_then(constant_int).and_then(|n| u32::try_from(n).ok());
    text_like(&arguments[..1], length.map(|l| count.map_or(8000, |c| l.saturating_mul(c))))
}

/// CONCAT and CONCAT_WS: the sum of lengths.
pub(super) fn concat(arguments: &[BoundExpr]) -> SqlType {
    let own = |a: &BoundExpr| if a.is_null() { Some(0) } else { length_of(a) };
    let sum = arguments.iter().try_fold(0u32, |sum, a| own(a).map(|l| sum + l));
    text_like(arguments, sum)
}

/// LEN, CHARINDEX, DATALENGTH: bigint over what is max.
pub(super) fn position(arguments: &[BoundExpr]) -> SqlType {
    if arguments.iter().any(|a| a.sql_type.is_large()) { SqlType::BigInt } else { SqlType::Int }
}

/// ABS, SIGN, ROUND: the argument's type, small integers as int.
pub(super) fn number_same(arguments: &[BoundExpr]) -> SqlType {
    match arguments[0].sql_type {
        SqlType::TinyInt | SqlType::SmallInt => SqlType::Int,
        SqlType::SmallMoney => SqlType::Money,
        SqlType::Real => SqlType::Float,
        other => other,
    }
}

/// CEILING, FLOOR: no decimals are left.
pub(super) fn number_whole(arguments: &[BoundExpr]) -> SqlType {
    match number_same(arguments) {
        SqlType::Decimal { precision, numeric, .. } => SqlType::Decimal { precision, scale: 0, numeric },
        other => other,
    }
}

/// POWER: decimals widen to 38 digits.
pub(super) fn number_power(arguments: &[BoundExpr]) -> SqlType {
    match number_same(arguments) {
        SqlType::Decimal { scale, numeric, .. } => SqlType::Decimal { precision: 38, scale, numeric },
        other => other,
    }
}

/// DEGREES, RADIANS: decimals get 18 digits behind the point at least.
pub(super) fn angle(arguments: &[BoundExpr]) -> SqlType {
    match number_same(arguments) {
        SqlType::Decimal { scale, numeric, .. } => SqlType::Decimal { precision: 38, scale: scale.max(18), numeric },
        other => other,
    }
}

/// DATEADD: the date's own type.
pub(super) fn date_third(arguments: &[BoundExpr]) -> SqlType {
    arguments[2].sql_type
}

/// SWITCHOFFSET, TODATETIMEOFFSET, AT TIME ZONE: datetimeoffset of the argument's scale.
pub(super) fn offset_like(arguments: &[BoundExpr]) -> SqlType {
    let scale = if arguments[0].sql_type.is_date_time() { arguments[0].sql_type.scale() } else { 7 };
    SqlType::DateTimeOffset { scale }
}

fn scale_at(arguments: &[BoundExpr], at: usize) -> u8 {
    arguments.get(at).and_then(constant_int).map_or(7, |n| n.clamp(0, 7) as u8)
}

pub(super) fn datetime2_from_parts(arguments: &[BoundExpr]) -> SqlType {
    SqlType::DateTime2 { scale: scale_at(arguments, 7) }
}

pub(super) fn time_from_parts(arguments: &[BoundExpr]) -> SqlType {
    SqlType::Time { scale: scale_at(arguments, 4) }
}

pub(super) fn offset_from_parts(arguments: &[BoundExpr]) -> SqlType {
    SqlType::DateTimeOffset { scale: scale_at(arguments, 9) }
}

/// STR: as long as asked, 10 unless said.
pub(super) fn str_length(arguments: &[BoundExpr]) -> SqlType {
    let length = arguments.get(1).and_then(constant_int).unwrap_or(10).clamp(1, 8000);
    SqlType::varchar(length as u16)
}
