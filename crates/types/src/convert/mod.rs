//! One type to another: CAST, CONVERT and what assignment does by itself.
//!
//! ```text
//! rules    may it be converted at all, and by itself?     (the binder asks; [`convert`] trusts it)
//! number   number <-> number, number <-> text             date_text   text -> date and time
//! date     date and time -> text (styles), <-> number     binary      bytes <-> everything, uniqueidentifier
//! array    whole columns, the same results as [`convert`] value by value
//! ```
//!
//! Rounding: float and decimal to integers cut off, money and datetime to integers round, everything to decimal and
//! money rounds half away from zero. Text that is too long for its new type is cut without a word, as CAST does;
//! an INSERT asks [`would_truncate`] first and raises 2628 with the column's name.
//!
//! Messages: 245, 8114, 244, 248, 220, 232, 235, 236, 293, 294, 8115, 241, 242, 295, 281, 8169, 8170, 234, 529.

mod array;
mod binary;
mod date;
mod date_text;
mod number;
mod rules;

pub use array::cast_array;
pub use date::format_date_time;
pub use date_text::DateOrder;
pub use number::{format_decimal, format_float, format_money, parse_decimal, parse_float};
pub use rules::{CastRule, explicit_cast, implicit_cast};

use crate::calendar::{Moment, OutOfRange};
use crate::collation::{decode_1252, encode_1252, to_1252_text, utf16_length};
use crate::{Scalar, SqlError, SqlType, message};

/// What a conversion depends on beside the types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvertOptions {
    /// CONVERT's third argument; `None` is CAST.
    pub style: Option<i32>,
    /// SET DATEFORMAT.
    pub date_order: DateOrder,
    /// The last year two digits may mean (`two digit year cutoff`).
    pub two_digit_year_cutoff: u16,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self { style: None, date_order: DateOrder::Mdy, two_digit_year_cutoff: 2049 }
    }
}

impl From<&ConvertOptions> for ConvertOptions {
    fn from(options: &ConvertOptions) -> Self {
        *options
    }
}

/// A style alone; 0 is none given, as CONVERT's documentation has it. (A style 0 that *was* given differs for date,
/// time, datetime2 and datetimeoffset only: there say [`ConvertOptions::with_style`].)
impl From<i32> for ConvertOptions {
    fn from(style: i32) -> Self {
        if style == 0 { Self::default() } else { Self::with_style(style) }
    }
}

impl ConvertOptions {
    /// The defaults with a style.
    pub fn with_style(style: i32) -> Self {
        Self { style: Some(style), ..Self::default() }
    }

    fn style_or(&self, default: i32) -> i32 {
        self.style.unwrap_or(default)
    }
}

/// `value` of type `from` as a value of type `to`.
///
/// # Errors
/// 529 for types that never convert, and the messages at the head of the module for values that do not.
pub fn convert(value: &Scalar, from: &SqlType, to: &SqlType, options: impl Into<ConvertOptions>) -> Result<Scalar, SqlError> {
    convert_with(value, from, to, &options.into())
}

fn convert_with(value: &Scalar, from: &SqlType, to: &SqlType, options: &ConvertOptions) -> Result<Scalar, SqlError> {
    if value.is_null() {
        return if implicit_cast(from, to) == CastRule::Never { Err(never(from, to)) } else { Ok(Scalar::Null) };
    }
    if from == to {
        return Ok(value.clone());
    }
    match (value, to) {
        _ if implicit_cast(from, to) == CastRule::Never => Err(never(from, to)),
        (Scalar::Text(text), SqlType::Xml) => crate::xml::normalise(text).map(Scalar::Text),
        (Scalar::Binary(bytes), SqlType::Xml) => crate::xml::normalise(&xml_text(bytes)).map(Scalar::Text),
        (Scalar::Text(text), SqlType::HierarchyId) => {
            crate::hierarchy::parse(text).map(|path| Scalar::Binary(crate::hierarchy::encode(&path)))
        }
        (Scalar::Binary(bytes), SqlType::HierarchyId) => crate::hierarchy::decode(bytes).map(|_| Scalar::Binary(bytes.clone())),
        (Scalar::Binary(bytes), to) if *from == SqlType::HierarchyId && to.is_text() => {
            crate::hierarchy::decode(bytes).map(|path| Scalar::Text(fit_text(path.to_string(), to)))
        }
        (value, SqlType::SqlVariant) => Ok(Scalar::Binary(crate::variant::encode(value, from))),
        (Scalar::Binary(bytes), to) if *from == SqlType::SqlVariant => from_variant(bytes, to, options),
        (_, SqlType::Xml) => Err(message(529, &[&from.message_name(), &to.message_name()])),
        (Scalar::Text(text), to) if to.is_text() => Ok(Scalar::Text(fit_text(text.clone(), to))),
        (Scalar::Text(text), to) if to.is_numeric() => number::from_text(text, from, to),
        (Scalar::Text(text), to) if to.is_date_time() => date_text::parse(text, from, to, options),
        (Scalar::Text(text), SqlType::UniqueIdentifier) => binary::guid_from_text(text),
        (Scalar::Text(text), to) => binary::from_text(text, from, to, options),
        (Scalar::Binary(bytes), to) => binary::to_other(bytes, from, to, options),
        (Scalar::Guid(guid), to) if to.is_text() => binary::guid_to_text(guid, to),
        (Scalar::Guid(guid), to) => Ok(Scalar::Binary(binary::fit_bytes(guid.to_vec(), to))),
        (value, to) if Moment::of(value).is_some() => date::to_other(value, from, to, options),
        (value, to) if to.is_text() => number::to_text(value, from, to, options),
        (value, to) if to.is_date_time() => date::from_number(value, from, to),
        (value, to) if to.is_binary() => Ok(Scalar::Binary(binary::fit_number(binary::number_bytes(value, from), to))),
        (value, to) => number::to_number(value, from, to),
    }
}

/// A sql_variant's value as `to`, by the rules of its own type (529 where that has no conversion).
fn from_variant(bytes: &[u8], to: &SqlType, options: &ConvertOptions) -> Result<Scalar, SqlError> {
    let (base, value) = crate::variant::decode(bytes).ok_or_else(|| never(&SqlType::SqlVariant, to))?;
    convert_with(&value, &base, to, options)
}

/// Bytes as XML text: UTF-16 by its byte order mark or its first character, else UTF-8.
fn xml_text(bytes: &[u8]) -> String {
    let units = |bytes: &[u8]| bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect::<Vec<u16>>();
    match bytes {
        [0xff, 0xfe, rest @ ..] => String::from_utf16_lossy(&units(rest)),
        [b'<', 0, ..] => String::from_utf16_lossy(&units(bytes)),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn never(from: &SqlType, to: &SqlType) -> SqlError {
    message(529, &[&from.message_name(), &to.message_name()])
}

/// Length of `text` in the unit of `to`: UTF-16 units for nchar and nvarchar, bytes for the others.
pub fn text_length(text: &str, to: &SqlType) -> usize {
    let utf8 = !to.is_unicode() && to.collation().is_some_and(|c| c.info().utf8);
    if utf8 { text.len() } else { utf16_length(text) }
}

/// `text` as `to` holds it: what the code page lacks replaced, cut to the length, padded if `to` is.
pub fn fit_text(text: String, to: &SqlType) -> String {
    let utf8 = to.collation().is_some_and(|c| c.info().utf8);
    let text = match to {
        SqlType::Char { .. } | SqlType::VarChar { .. } | SqlType::Text { .. } if !utf8 => to_1252_text(&text).unwrap_or(text),
        _ => text,
    };
    let Some(length) = to.length() else { return text };
    let mut text = cut_text(text, usize::from(length), to);
    if to.is_padded() {
        let missing = usize::from(length).saturating_sub(text_length(&text, to));
        text.extend(std::iter::repeat_n(' ', missing));
    }
    text
}

/// As much of `text` as `length` units of `to` hold; never half a character.
fn cut_text(mut text: String, length: usize, to: &SqlType) -> String {
    if text.len() <= length {
        return text;
    }
    let utf8 = !to.is_unicode() && to.collation().is_some_and(|c| c.info().utf8);
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += if utf8 { c.len_utf8() } else { c.len_utf16() };
        used > length
    });
    if let Some((end, _)) = end {
        text.truncate(end);
    }
    text
}

/// Whether storing `value` in a column of type `to` would lose more than blanks (or, for binary, anything): the caller
/// raises 2628 with the table, the column and [`cut_value`]'s text. `value` is text or binary, of any length.
pub fn would_truncate(value: &Scalar, to: &SqlType) -> bool {
    let Some(length) = to.length().map(usize::from) else { return false };
    match value {
        Scalar::Text(text) if to.is_text() => text.len() > length && text_length(text.trim_end_matches(' '), to) > length,
        Scalar::Binary(bytes) if to.is_binary() => bytes.len() > length,
        _ => false,
    }
}

/// The part of a value that would fit: what 2628 quotes.
pub fn cut_value(value: &Scalar, to: &SqlType) -> String {
    match value {
        Scalar::Text(text) => cut_text(text.clone(), usize::from(to.length().unwrap_or(u16::MAX)), to),
        Scalar::Binary(_) => String::new(),
        _ => String::new(),
    }
}

/// The bytes a character value has as its type is stored by SQL Server: UTF-16 for nvarchar, the code page for varchar.
pub fn text_bytes(text: &str, sql_type: &SqlType) -> Vec<u8> {
    if sql_type.is_unicode() || matches!(sql_type, SqlType::Xml) {
        return text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    }
    if sql_type.collation().is_some_and(|c| c.info().utf8) {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::with_capacity(text.len());
    encode_1252(text, &mut bytes);
    bytes
}

/// The text that bytes in the form of [`text_bytes`] hold; half characters become U+FFFD.
pub fn text_from_bytes(bytes: &[u8], sql_type: &SqlType) -> String {
    if sql_type.is_unicode() || matches!(sql_type, SqlType::Xml) {
        let units = bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        return char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    }
    if sql_type.collation().is_some_and(|c| c.info().utf8) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    decode_1252(bytes)
}

fn moment_to_scalar(at: Moment, from: &SqlType, to: &SqlType) -> Result<Scalar, SqlError> {
    at.to_scalar(to).map_err(|OutOfRange| message(242, &[&from.message_name(), &to.message_name()]))
}

#[cfg(test)]
mod tests;
