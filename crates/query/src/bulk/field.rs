//! One field of a character file to one value of its column.
//!
//! ```text
//! bytes ─► fast: digits, ISO dates, ASCII text ─► ColumnBuilder
//!      └─► everything else: text by code page ─► types::convert ─► ColumnBuilder
//! ```
//! Invariants: 1. The fast paths give what `types::convert` gives, or decline. 2. Nothing is allocated for a field that
//! a fast path takes. 3. A field that fails appends nothing; the caller appends NULL in its place and drops the row.
//!
//! Meaning: binary columns hold hexadecimal digits, as bcp writes them; a field of one NUL byte is an empty text; a
//! field of blanks in a column of numbers or dates is NULL.

use crate::bulk::code_page;
use crate::bulk::options::CodePage;
use arrow_array::ArrayRef;
use std::borrow::Cow;
use thawdb_types::calendar::{DATETIME_UNITS_PER_DAY, DAY_1753, DAY_1900, TICKS_PER_DAY, checked_days};
use thawdb_types::convert::{ConvertOptions, convert, fit_text, would_truncate};
use thawdb_types::{ColumnBuilder, Scalar, SqlType};

/// Why a field is no value of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldError {
    /// 4863
    Truncation,
    /// 4864
    Mismatch,
    /// 4867
    Overflow,
}

/// A column being filled from fields.
pub(super) struct FieldColumn {
    sql_type: SqlType,
    page: CodePage,
    /// Bytes of UTF-8 that surely fit and need no filling up; `None` if that cannot be said of any text.
    short_bytes: Option<usize>,
    builder: ColumnBuilder,
}

impl FieldColumn {
    pub(super) fn new(sql_type: SqlType, page: CodePage, capacity: usize) -> Self {
        let short_bytes = match sql_type.length() {
            _ if sql_type.is_padded() => None,
            Some(length) => Some(usize::from(length)),
            None => Some(usize::MAX),
        };
        Self { sql_type, page, short_bytes, builder: ColumnBuilder::new(&sql_type, capacity) }
    }

    pub(super) fn append_null(&mut self) {
        self.builder.append_null();
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        self.builder.finish()
    }

    /// Appends the value of a field that is not empty (or is quoted); false, and nothing appended, if it means NULL.
    #[inline]
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<bool, FieldError> {
        if self.append_fast(bytes) { Ok(true) } else { self.append_slowly(bytes) }
    }

    #[inline]
    fn append_fast(&mut self, bytes: &[u8]) -> bool {
        match (&mut self.builder, self.sql_type) {
            (ColumnBuilder::Int32(b), SqlType::Int) => push(integer(bytes).and_then(|v| v.try_into().ok()), |v| b.append_value(v)),
            (ColumnBuilder::Int64(b), SqlType::BigInt) => push(integer(bytes), |v| b.append_value(v)),
            (ColumnBuilder::Int64(b), SqlType::DateTime) => push(datetime(bytes), |v| b.append_value(v)),
            (ColumnBuilder::Text(b), _) => match (self.short_bytes, plain(bytes, self.page, &self.sql_type)) {
                (Some(most), Some(text)) if text.len() <= most => {
                    b.append_value(text);
                    true
                }
                _ => false,
            },
            (ColumnBuilder::Int16(b), _) => push(integer(bytes).and_then(|v| v.try_into().ok()), |v| b.append_value(v)),
            (ColumnBuilder::UInt8(b), _) => push(integer(bytes).and_then(|v| v.try_into().ok()), |v| b.append_value(v)),
            (ColumnBuilder::Decimal(b), SqlType::Decimal { precision, scale, .. }) => {
                push(decimal(bytes, precision, scale), |v| b.append_value(v))
            }
            (ColumnBuilder::Float64(b), _) => push(float(bytes), |v| b.append_value(v)),
            (ColumnBuilder::Int32(b), SqlType::Date) => push(date(bytes), |v| b.append_value(v)),
            (ColumnBuilder::Int64(b), SqlType::DateTime2 { scale }) => push(datetime2(bytes, scale), |v| b.append_value(v)),
            (ColumnBuilder::Boolean(b), _) => match bytes {
                [b'0'] => push(Some(false), |v| b.append_value(v)),
                [b'1'] => push(Some(true), |v| b.append_value(v)),
                _ => false,
            },
            _ => false,
        }
    }

    #[cold]
    fn append_slowly(&mut self, bytes: &[u8]) -> Result<bool, FieldError> {
        let text = code_page::decode(bytes, self.page, &self.sql_type);
        if self.sql_type.is_text() {
            return self.append_text(text).map(|()| true);
        }
        if matches!(self.sql_type, SqlType::Xml) {
            self.builder.append(&Scalar::Text(text.into_owned()));
            return Ok(true);
        }
        let trimmed = text.trim_matches([' ', '\0']);
        if trimmed.is_empty() {
            return Ok(false);
        }
        let mut options = ConvertOptions::default();
        if self.sql_type.is_binary() {
            options = ConvertOptions::with_style(if trimmed.starts_with("0x") || trimmed.starts_with("0X") { 1 } else { 2 });
            let most = self.sql_type.length().map_or(usize::MAX, usize::from);
            let digits = trimmed.len() - if options.style == Some(1) { 2 } else { 0 };
            if digits.div_ceil(2) > most {
                return Err(FieldError::Truncation);
            }
        }
        let from = SqlType::NVARCHAR_MAX;
        let value = convert(&Scalar::Text(trimmed.to_owned()), &from, &self.sql_type, options).map_err(|error| match error.number {
            220 | 232 | 236 | 242 | 244 | 248 | 8115 => FieldError::Overflow,
            _ => FieldError::Mismatch,
        })?;
        self.builder.append(&value);
        Ok(true)
    }

    fn append_text(&mut self, text: Cow<'_, str>) -> Result<(), FieldError> {
        let text = if text == "\0" { String::new() } else { text.into_owned() };
        let value = Scalar::Text(text);
        if would_truncate(&value, &self.sql_type) {
            return Err(FieldError::Truncation);
        }
        if let Scalar::Text(text) = value {
            self.builder.append(&Scalar::Text(fit_text(text, &self.sql_type)));
        }
        Ok(())
    }
}

#[inline]
fn push<T>(value: Option<T>, append: impl FnOnce(T)) -> bool {
    value.map(append).is_some()
}

/// The text itself, where the column stores these very bytes.
#[inline]
fn plain<'a>(bytes: &'a [u8], page: CodePage, sql_type: &SqlType) -> Option<&'a str> {
    let is_plain = bytes.is_ascii() || (page == CodePage::Utf8 && sql_type.is_unicode());
    if is_plain && bytes != [0] { std::str::from_utf8(bytes).ok() } else { None }
}

/// Up to 18 digits behind a sign.
#[inline]
fn integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(bytes);
    let value = number(digits)?;
    Some(if negative { -value } else { value })
}

#[inline]
fn signed(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    }
}

/// 1 to 18 digits and nothing else.
#[inline]
fn number(digits: &[u8]) -> Option<i64> {
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
    Some(value)
}

/// Digits with a point, no more behind it than the scale has, and no more altogether than an i64 holds.
fn decimal(bytes: &[u8], precision: u8, scale: u8) -> Option<i128> {
    let (negative, digits) = signed(bytes);
    let (whole, fraction) = match digits.iter().position(|b| *b == b'.') {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    let scale = usize::from(scale);
    if whole.is_empty() || fraction.len() > scale {
        return None;
    }
    let fraction_value = if fraction.is_empty() { 0 } else { number(fraction)? };
    let power = |digits: usize| 10i128.pow(digits as u32);
    let value = i128::from(number(whole)?) * power(scale) + i128::from(fraction_value) * power(scale - fraction.len());
    (value < power(usize::from(precision))).then_some(if negative { -value } else { value })
}

fn float(bytes: &[u8]) -> Option<f64> {
    let allowed = |b: &u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    if !bytes.iter().all(allowed) {
        return None;
    }
    std::str::from_utf8(bytes).ok()?.parse().ok().filter(|v: &f64| v.is_finite())
}

#[inline]
fn two(bytes: &[u8], at: usize) -> Option<u32> {
    let (high, low) = (bytes[at].wrapping_sub(b'0'), bytes[at + 1].wrapping_sub(b'0'));
    (high <= 9 && low <= 9).then(|| u32::from(high) * 10 + u32::from(low))
}

/// `yyyy-mm-dd` as a day number.
#[inline]
fn date(bytes: &[u8]) -> Option<i32> {
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = two(bytes, 0)? * 100 + two(bytes, 2)?;
    checked_days(year as i32, two(bytes, 5)?, two(bytes, 8)?)
}

/// Day, 100 ns since midnight and digits behind the second of `yyyy-mm-dd[T| ]hh:mm:ss[.fffffff]`.
#[inline]
fn date_and_time(bytes: &[u8]) -> Option<(i32, i64, usize)> {
    let days = date(bytes.get(..10)?)?;
    if bytes.len() == 10 {
        return Some((days, 0, 0));
    }
    if bytes.len() < 19 || !matches!(bytes[10], b'T' | b' ') || bytes[13] != b':' || bytes[16] != b':' {
        return None;
    }
    let (hour, minute, second) = (two(bytes, 11)?, two(bytes, 14)?, two(bytes, 17)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    let (fraction, digits) = match &bytes[19..] {
        [] => (0, 0),
        [b'.', digits @ ..] if digits.len() <= 7 => (number(digits)? * 10i64.pow(7 - digits.len() as u32), digits.len()),
        _ => return None,
    };
    Some((days, seconds * 10_000_000 + fraction, digits))
}

#[inline]
fn datetime(bytes: &[u8]) -> Option<i64> {
    let (days, ticks, digits) = date_and_time(bytes)?;
    // More than three digits are an error of datetime, which the slow path raises.
    if digits > 3 || days < DAY_1753 {
        return None;
    }
    let units = i64::from(days - DAY_1900) * DATETIME_UNITS_PER_DAY + (ticks * 3 + 50_000) / 100_000;
    Some(units).filter(|_| days < thawdb_types::calendar::DAY_MAX)
}

fn datetime2(bytes: &[u8], scale: u8) -> Option<i64> {
    let (days, ticks, digits) = date_and_time(bytes)?;
    (digits <= usize::from(scale)).then(|| i64::from(days) * TICKS_PER_DAY + ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_types::{MaxLength, scalar_at};

    fn one(sql_type: SqlType, text: &str) -> Result<Scalar, FieldError> {
        let mut column = FieldColumn::new(sql_type, CodePage::Utf8, 1);
        if !column.append(text.as_bytes())? {
            column.append_null();
        }
        Ok(scalar_at(column.finish().as_ref(), 0, &sql_type))
    }

    #[test]
    fn fast_paths_agree_with_convert() {
        let types = [
            SqlType::Bit,
            SqlType::TinyInt,
            SqlType::SmallInt,
            SqlType::Int,
            SqlType::BigInt,
            SqlType::decimal(9, 2),
            SqlType::decimal(38, 10),
            SqlType::Float,
            SqlType::Date,
            SqlType::DateTime,
            SqlType::DateTime2 { scale: 7 },
            SqlType::DateTime2 { scale: 2 },
        ];
        let texts = [
            "0",
            "1",
            "-1",
            "+7",
            "255",
            "256",
            "32768",
            "2147483647",
            "-2147483648",
            "2147483648",
            "9223372036854775807",
            "1.5",
            "1234567.89",
            "12345678.9",
            ".5",
            "1.",
            "-0.05",
            "1e3",
            "2008-07-31",
            "2008-02-30",
            "1752-12-31",
            "9999-12-31",
            "2008-07-31T00:00:00",
            "2008-07-31 23:59:59.997",
            "9999-12-31T23:59:59.999",
            "2008-07-31T23:59:59.9999999",
            "2008-07-31T24:00:00",
            "2008-07-31T00:00:00.12",
            "x",
            "--1",
        ];
        for sql_type in types {
            for text in texts {
                let converted = convert(&Scalar::text(text), &SqlType::NVARCHAR_MAX, &sql_type, ConvertOptions::default());
                let found = one(sql_type, text);
                assert_eq!(found.clone().ok(), converted.clone().ok(), "{text} as {}: {found:?} {converted:?}", sql_type.name());
            }
        }
    }

    #[test]
    fn texts_blanks_and_errors() {
        let collation = thawdb_types::Collation::DEFAULT;
        assert_eq!(one(SqlType::varchar(3), "abc"), Ok(Scalar::text("abc")));
        assert_eq!(one(SqlType::varchar(3), "abcd"), Err(FieldError::Truncation));
        assert_eq!(one(SqlType::varchar(3), "abc  "), Ok(Scalar::text("abc")));
        assert_eq!(one(SqlType::varchar(3), "\0"), Ok(Scalar::text("")));
        assert_eq!(one(SqlType::varchar(3), "\u{E9}\u{E9}\u{E9}"), Ok(Scalar::text("\u{E9}\u{E9}\u{E9}")));
        assert_eq!(one(SqlType::nvarchar(2), "\u{1F600}"), Ok(Scalar::text("\u{1F600}")));
        assert_eq!(one(SqlType::nvarchar(1), "\u{1F600}"), Err(FieldError::Truncation));
        assert_eq!(one(SqlType::Char { length: 3, collation }, "a"), Ok(Scalar::text("a  ")));
        assert_eq!(one(SqlType::VarChar { length: MaxLength::Max, collation }, &"x".repeat(9000)), Ok(Scalar::text(&"x".repeat(9000))));
        assert_eq!(one(SqlType::Int, "  "), Ok(Scalar::Null));
        assert_eq!(one(SqlType::Int, " 12 "), Ok(Scalar::Int(12)));
        assert_eq!(one(SqlType::Int, "3000000000"), Err(FieldError::Overflow));
        assert_eq!(one(SqlType::Int, "1.5"), Err(FieldError::Mismatch));
        assert_eq!(one(SqlType::varbinary(2), "0aFF"), Ok(Scalar::Binary(vec![10, 255])));
        assert_eq!(one(SqlType::varbinary(2), "0x0aFF"), Ok(Scalar::Binary(vec![10, 255])));
        assert_eq!(one(SqlType::varbinary(1), "0aFF"), Err(FieldError::Truncation));
        assert_eq!(one(SqlType::Bit, "true"), Ok(Scalar::Bit(true)));
        assert_eq!(one(SqlType::Money, "1,234.5"), Ok(Scalar::Money(12_345_000)));
    }
}
