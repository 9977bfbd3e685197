//! One field's bytes into the builder of its column.
//!
//! Integers and ISO dates are read straight from the bytes; every other form and type goes through text and
//! `types::convert`, so a file may hold whatever CAST takes.

use super::options::{BulkFileOptions, CodePage};
use super::split::Field;
use crate::exec::convert_scalar;
use std::borrow::Cow;
use thawdb_types::calendar::{DATETIME_UNITS_PER_DAY, DAY_1900, TICKS_PER_DAY, checked_days};
use thawdb_types::collation::decode_1252;
use thawdb_types::convert::{fit_text, would_truncate};
use thawdb_types::{ColumnBuilder, Scalar, SqlType};

/// Why a field is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// 4864.
    Mismatch,
    /// 4863.
    TooLong,
    /// 4867.
    Overflow,
}

/// Appends a field's value to `builder`; NULL for an empty field that was not quoted.
pub(super) fn append(
    buffer: &[u8],
    field: &Field,
    sql_type: &SqlType,
    options: &BulkFileOptions,
    builder: &mut ColumnBuilder,
) -> Result<bool, Refusal> {
    let bytes = &buffer[field.bytes.clone()];
    if bytes.is_empty() && !(field.quoted && sql_type.is_text()) {
        builder.append_null();
        return Ok(false);
    }
    if append_quick(bytes, sql_type, builder) {
        return Ok(true);
    }
    let text = characters(bytes, field.quoted, options)?;
    append_slow(text, sql_type, builder)?;
    Ok(true)
}

/// The ways without text; false if the bytes are not of that form.
#[inline]
fn append_quick(bytes: &[u8], sql_type: &SqlType, builder: &mut ColumnBuilder) -> bool {
    match (sql_type, builder) {
        (SqlType::Int, ColumnBuilder::Int32(b)) => integer(bytes).and_then(|v| i32::try_from(v).ok()).map(|v| b.append_value(v)).is_some(),
        (SqlType::BigInt, ColumnBuilder::Int64(b)) => integer(bytes).map(|v| b.append_value(v)).is_some(),
        (SqlType::SmallInt, ColumnBuilder::Int16(b)) => {
            integer(bytes).and_then(|v| i16::try_from(v).ok()).map(|v| b.append_value(v)).is_some()
        }
        (SqlType::TinyInt, ColumnBuilder::UInt8(b)) => {
            integer(bytes).and_then(|v| u8::try_from(v).ok()).map(|v| b.append_value(v)).is_some()
        }
        (SqlType::Date, ColumnBuilder::Int32(b)) => match moment(bytes) {
            Some((days, 0)) => {
                b.append_value(days);
                true
            }
            _ => false,
        },
        (SqlType::DateTime, ColumnBuilder::Int64(b)) => match moment(bytes).filter(|(days, _)| *days >= DAYS_OF_1753) {
            Some((days, ticks)) => {
                let units = (ticks * 3 + 50_000) / 100_000;
                b.append_value(i64::from(days - DAY_1900) * DATETIME_UNITS_PER_DAY + units);
                true
            }
            None => false,
        },
        (SqlType::DateTime2 { scale: 7 }, ColumnBuilder::Int64(b)) => match moment(bytes) {
            Some((days, ticks)) => {
                b.append_value(i64::from(days) * TICKS_PER_DAY + ticks);
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// 1753-01-01, datetime's first day.
const DAYS_OF_1753: i32 = 639_905;

/// Up to 18 digits with a sign; `None` for anything else.
#[inline]
fn integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// `2008-07-31`, or that and `T` or a blank and `12:34:56` with up to 7 decimals: days and ticks.
#[inline]
fn moment(bytes: &[u8]) -> Option<(i32, i64)> {
    let number = |from: usize, to: usize| bytes.get(from..to).and_then(integer).filter(|v| *v >= 0);
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    if bytes.len() < 10 || !is(4, b'-') || !is(7, b'-') {
        return None;
    }
    let days = checked_days(number(0, 4)? as i32, number(5, 7)? as u32, number(8, 10)? as u32)?;
    if bytes.len() == 10 {
        return Some((days, 0));
    }
    if bytes.len() < 19 || !(is(10, b'T') || is(10, b' ')) || !is(13, b':') || !is(16, b':') {
        return None;
    }
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut ticks = (hour * 3600 + minute * 60 + second) * 10_000_000;
    if bytes.len() > 19 {
        let digits = bytes.len() - 20;
        if !is(19, b'.') || digits == 0 || digits > 7 {
            return None;
        }
        ticks += number(20, bytes.len())? * 10i64.pow(7 - digits as u32);
    }
    Some((days, ticks))
}

/// The field's characters, doubled quotes undone.
fn characters<'b>(bytes: &'b [u8], quoted: bool, options: &BulkFileOptions) -> Result<Cow<'b, str>, Refusal> {
    let text = match (options.code_page, std::str::from_utf8(bytes)) {
        (CodePage::Windows1252, Ok(text)) if bytes.is_ascii() => Cow::Borrowed(text),
        (CodePage::Windows1252, _) | (CodePage::Guess, Err(_)) => Cow::Owned(decode_1252(bytes)),
        (_, Ok(text)) => Cow::Borrowed(text),
        (_, Err(_)) => return Err(Refusal::Mismatch),
    };
    let quote = char::from(options.quote);
    if !quoted || !text.contains(quote) {
        return Ok(text);
    }
    // Within a quoted field every quote is doubled.
    Ok(Cow::Owned(text.replace([quote, quote].iter().collect::<String>().as_str(), quote.encode_utf8(&mut [0; 4]))))
}

fn append_slow(text: Cow<'_, str>, sql_type: &SqlType, builder: &mut ColumnBuilder) -> Result<(), Refusal> {
    if let (ColumnBuilder::Text(b), true) = (&mut *builder, sql_type.is_text()) {
        // A text whose bytes are few enough needs no counting; char columns must be filled up.
        let short = sql_type.length().is_none_or(|n| text.len() <= usize::from(n));
        if short && !sql_type.is_padded() && (sql_type.is_unicode() || text.is_ascii()) {
            b.append_value(&text);
            return Ok(());
        }
        let value = Scalar::Text(text.into_owned());
        if would_truncate(&value, sql_type) {
            return Err(Refusal::TooLong);
        }
        let Scalar::Text(text) = value else { unreachable!("made above") };
        b.append_value(fit_text(text, sql_type));
        return Ok(());
    }
    let style = if sql_type.is_binary() { 2 } else { 0 };
    match convert_scalar(Scalar::text(text.trim()), &SqlType::NVARCHAR_MAX, sql_type, style, false) {
        Ok(value) if would_truncate(&value, sql_type) => Err(Refusal::TooLong),
        Ok(value) => {
            builder.append(&value);
            Ok(())
        }
        Err(error) if matches!(error.number, 248 | 244 | 8115 | 220 | 232 | 235) => Err(Refusal::Overflow),
        Err(_) => Err(Refusal::Mismatch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], sql_type: SqlType) -> Result<Scalar, Refusal> {
        let mut builder = ColumnBuilder::new(&sql_type, 1);
        append(text, &Field { bytes: 0..text.len(), quoted: false }, &sql_type, &BulkFileOptions::default(), &mut builder)?;
        Ok(thawdb_types::scalar_at(builder.finish().as_ref(), 0, &sql_type))
    }

    #[test]
    fn fields() {
        let datetime = |text: &str| {
            thawdb_types::convert::convert(&Scalar::text(text), &SqlType::varchar(30), &SqlType::DateTime, &Default::default()).unwrap()
        };
        for (text, sql_type, expected) in [
            (&b"-12"[..], SqlType::Int, Ok(Scalar::Int(-12))),
            (b" 12 ", SqlType::Int, Ok(Scalar::Int(12))),
            (b"", SqlType::Int, Ok(Scalar::Null)),
            (b"3000000000", SqlType::Int, Err(Refusal::Overflow)),
            (b"12x", SqlType::Int, Err(Refusal::Mismatch)),
            (b"256", SqlType::TinyInt, Err(Refusal::Overflow)),
            (b"2008-07-31T00:00:00", SqlType::DateTime, Ok(datetime("2008-07-31"))),
            (b"2011-10-11 19:42:20.713", SqlType::DateTime, Ok(datetime("2011-10-11 19:42:20.713"))),
            (b"20111011", SqlType::DateTime, Ok(datetime("2011-10-11"))),
            (b"2011-02-30", SqlType::Date, Err(Refusal::Mismatch)),
            (b"1.50", SqlType::numeric(5, 1), Ok(Scalar::Decimal(15))),
            (b"abcd", SqlType::varchar(3), Err(Refusal::TooLong)),
            (b"caf\xe9", SqlType::varchar(4), Ok(Scalar::text("caf\u{e9}"))),
            (b"ab", SqlType::Char { length: 3, collation: thawdb_types::Collation::DEFAULT }, Ok(Scalar::text("ab "))),
            (b"0AFF", SqlType::varbinary(4), Ok(Scalar::Binary(vec![10, 255]))),
        ] {
            assert_eq!(read(text, sql_type), expected, "{} as {}", String::from_utf8_lossy(text), sql_type.name());
        }
    }
}
