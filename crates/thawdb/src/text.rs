//! Values as text, the way sqlcmd shows them: ODBC's spelling, not that of CAST.
//!
//! ```text
//! decimal, money   .5  -12.3400              no zero in front of the point
//! float, real      0.1  1e+300               as few digits as tell the value apart from its neighbours
//! datetime         2008-07-31 00:00:00.003   date, time, datetime2 and datetimeoffset likewise, by their scale
//! binary           0x00FF                    uniqueidentifier: upper case
//! ```
//!
//! Values are decoded first, so nothing here fails; NULL is the word `NULL`.

use std::fmt::Write;
use thawdb_types::calendar::{DATETIME_UNITS_PER_DAY, DAY_1900, Moment, TICKS_PER_MINUTE, civil_from_days, datetime_milliseconds};
use thawdb_types::{Scalar, SqlType, variant};

/// `value` of `sql_type` as text.
pub fn display(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Bit(v) => u8::from(*v).to_string(),
        Scalar::TinyInt(v) => v.to_string(),
        Scalar::SmallInt(v) => v.to_string(),
        Scalar::Int(v) => v.to_string(),
        Scalar::BigInt(v) => v.to_string(),
        Scalar::Decimal(v) => fixed_point(*v, sql_type.scale()),
        Scalar::Money(v) => fixed_point(i128::from(*v), 4),
        Scalar::Real(v) => float(&v.to_string(), &format!("{v:e}"), f64::from(*v)),
        Scalar::Float(v) => float(&v.to_string(), &format!("{v:e}"), *v),
        Scalar::Date(days) => date(*days),
        Scalar::Time(ticks) => clock(&Moment::from_ticks(*ticks), sql_type.scale()),
        Scalar::DateTime(units) => datetime(*units),
        Scalar::SmallDateTime(minutes) => small_datetime(*minutes),
        Scalar::DateTime2(ticks) => moment(*ticks, sql_type.scale()),
        Scalar::DateTimeOffset(utc, offset) => datetime_offset(*utc, *offset, sql_type.scale()),
        Scalar::Text(text) => text.clone(),
        Scalar::Binary(bytes) => match (sql_type, variant::decode(bytes)) {
            (SqlType::SqlVariant, Some((base, value))) => display(&value, &base),
            _ => hexadecimal(bytes),
        },
        Scalar::Guid(bytes) => guid(bytes),
    }
}

fn fixed_point(unscaled: i128, scale: u8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let scale = usize::from(scale);
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>scale$}");
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// Plain digits where they are short, an exponent elsewhere.
fn float(plain: &str, exponential: &str, value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e15).contains(&size) || !size.is_finite() {
        return plain.to_owned();
    }
    match exponential.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => exponential.to_owned(),
    }
}

fn date(days: i32) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

fn clock(moment: &Moment, scale: u8) -> String {
    let (hour, minute, second, ticks) = moment.clock();
    let mut text = format!("{hour:02}:{minute:02}:{second:02}");
    if scale > 0 {
        let fraction = format!("{ticks:07}");
        let _infallible = write!(text, ".{}", &fraction[..usize::from(scale.min(7))]);
    }
    text
}

fn moment(ticks: i64, scale: u8) -> String {
    let moment = Moment::from_ticks(ticks);
    format!("{} {}", date(moment.days), clock(&moment, scale))
}

fn datetime(units: i64) -> String {
    let days = i32::try_from(units.div_euclid(DATETIME_UNITS_PER_DAY)).unwrap_or(0);
    let of_day = units.rem_euclid(DATETIME_UNITS_PER_DAY);
    let seconds = of_day / 300;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{} {hour:02}:{minute:02}:{second:02}.{:03}", date(days + DAY_1900), datetime_milliseconds(of_day))
}

fn small_datetime(minutes: i64) -> String {
    let days = i32::try_from(minutes.div_euclid(1440)).unwrap_or(0);
    let of_day = minutes.rem_euclid(1440);
    format!("{} {:02}:{:02}:00", date(days + DAY_1900), of_day / 60, of_day % 60)
}

fn datetime_offset(utc: i64, offset: i16, scale: u8) -> String {
    let local = moment(utc + i64::from(offset) * TICKS_PER_MINUTE, scale);
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.unsigned_abs();
    format!("{local} {sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02X}");
        text
    })
}

/// The first three groups are little-endian numbers, the others bytes.
fn guid(bytes: &[u8; 16]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::with_capacity(36);
    for (position, at) in ORDER.into_iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _infallible = write!(text, "{:02X}", bytes[at]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spelled_as_sqlcmd_spells_them() {
        let utc = 633_530_592_000_000_000;
        for (value, sql_type, text) in [
            (Scalar::Null, SqlType::Int, "NULL"),
            (Scalar::Bit(true), SqlType::Bit, "1"),
            (Scalar::BigInt(i64::MIN), SqlType::BigInt, "-9223372036854775808"),
            (Scalar::Decimal(5), SqlType::decimal(5, 1), ".5"),
            (Scalar::Decimal(-5), SqlType::decimal(5, 3), "-.005"),
            (Scalar::Decimal(12_345), SqlType::decimal(9, 2), "123.45"),
            (Scalar::Decimal(7), SqlType::decimal(9, 0), "7"),
            (Scalar::Money(-12_345), SqlType::Money, "-1.2345"),
            (Scalar::Float(0.1), SqlType::Float, "0.1"),
            (Scalar::Float(1e300), SqlType::Float, "1e+300"),
            (Scalar::Float(-2.5e-9), SqlType::Float, "-2.5e-9"),
            (Scalar::Float(3.0), SqlType::Float, "3"),
            (Scalar::Real(0.1), SqlType::Real, "0.1"),
            (Scalar::Date(0), SqlType::Date, "0001-01-01"),
            (Scalar::Time(863_999_999_999), SqlType::Time { scale: 7 }, "23:59:59.9999999"),
            (Scalar::Time(600_000_000), SqlType::Time { scale: 0 }, "00:01:00"),
            (Scalar::DateTime(39_658 * 25_920_000 + 1), SqlType::DateTime, "2008-07-31 00:00:00.003"),
            (Scalar::DateTime(-1), SqlType::DateTime, "1899-12-31 23:59:59.997"),
            (Scalar::SmallDateTime(61), SqlType::SmallDateTime, "1900-01-01 01:01:00"),
            (Scalar::DateTime2(utc), SqlType::DateTime2 { scale: 3 }, "2008-07-31 00:00:00.000"),
            (Scalar::DateTimeOffset(utc, -330), SqlType::DateTimeOffset { scale: 0 }, "2008-07-30 18:30:00 -05:30"),
            (Scalar::Binary(vec![0, 255]), SqlType::varbinary(2), "0x00FF"),
            (
                Scalar::Guid([0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF]),
                SqlType::UniqueIdentifier,
                "00112233-4455-6677-8899-AABBCCDDEEFF",
            ),
        ] {
            assert_eq!(display(&value, &sql_type), text);
        }
    }
}
