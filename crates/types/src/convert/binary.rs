//! Bytes to and from everything else, and uniqueidentifier.
//!
//! Numbers are big-endian and aligned to the right, as SQL Server shows them (`CAST(1 AS binary(4))` is 0x00000001);
//! text and uniqueidentifier are aligned to the left. Styles 1 and 2 write and read hexadecimal, with and without `0x`.

use super::{ConvertOptions, fit_text, text_bytes, text_from_bytes, text_length};
use crate::calendar::{DATETIME_UNITS_PER_DAY, TICKS_PER_DAY};
use crate::{Scalar, SqlError, SqlType, message};

/// Bytes cut or padded at the right to the length of `to`.
pub(super) fn fit_bytes(mut bytes: Vec<u8>, to: &SqlType) -> Vec<u8> {
    if let Some(length) = width(to) {
        bytes.truncate(length);
        if to.is_padded() || matches!(to, SqlType::RowVersion) {
            bytes.resize(length, 0);
        }
    }
    bytes
}

/// Bytes of a number cut or padded at the left to the length of `to`.
pub(super) fn fit_number(bytes: Vec<u8>, to: &SqlType) -> Vec<u8> {
    let Some(length) = width(to) else { return bytes };
    if bytes.len() >= length {
        return bytes[bytes.len() - length..].to_vec();
    }
    if to.is_padded() || matches!(to, SqlType::RowVersion) {
        let mut padded = vec![0; length - bytes.len()];
        padded.extend(bytes);
        return padded;
    }
    bytes
}

fn width(to: &SqlType) -> Option<usize> {
    if matches!(to, SqlType::RowVersion) { Some(8) } else { to.length().map(usize::from) }
}

/// The bytes of a number as SQL Server shows them.
pub(super) fn number_bytes(value: &Scalar, from: &SqlType) -> Vec<u8> {
    match value {
        Scalar::Bit(v) => vec![u8::from(*v)],
        Scalar::TinyInt(v) => vec![*v],
        Scalar::SmallInt(v) => v.to_be_bytes().to_vec(),
        Scalar::Int(v) => v.to_be_bytes().to_vec(),
        Scalar::BigInt(v) => v.to_be_bytes().to_vec(),
        Scalar::Money(v) if *from == SqlType::SmallMoney => (*v as i32).to_be_bytes().to_vec(),
        Scalar::Money(v) => v.to_be_bytes().to_vec(),
        Scalar::Real(v) => v.to_be_bytes().to_vec(),
        Scalar::Float(v) => v.to_be_bytes().to_vec(),
        Scalar::Decimal(v) => {
            // Precision, scale, 0, sign (1 is plus), then 4, 8, 12 or 16 bytes of magnitude.
            let words = (from.max_length() as usize - 1).max(4);
            let mut bytes = vec![from.precision(), from.scale(), 0, u8::from(*v >= 0)];
            bytes.extend_from_slice(&v.unsigned_abs().to_le_bytes()[..words]);
            bytes
        }
        other => panic!("{other:?} is not a number"),
    }
}

/// The bytes of a date or time as SQL Server shows them.
pub(super) fn date_bytes(value: &Scalar, from: &SqlType) -> Vec<u8> {
    let time = |ticks: i64| {
        let units = ticks / 10i64.pow(7 - u32::from(from.scale()));
        let width = match from.scale() {
            0..=2 => 3,
            3..=4 => 4,
            _ => 5,
        };
        let mut bytes = vec![from.scale()];
        bytes.extend_from_slice(&units.to_le_bytes()[..width]);
        bytes
    };
    let date = |days: i64| days.to_le_bytes()[..3].to_vec();
    match *value {
        Scalar::Date(days) => date(i64::from(days)),
        Scalar::Time(ticks) => time(ticks),
        Scalar::DateTime(units) => {
            let days = units.div_euclid(DATETIME_UNITS_PER_DAY) as i32;
            let rest = units.rem_euclid(DATETIME_UNITS_PER_DAY) as u32;
            [days.to_be_bytes(), rest.to_be_bytes()].concat()
        }
        Scalar::SmallDateTime(minutes) => [((minutes / 1440) as u16).to_be_bytes(), ((minutes % 1440) as u16).to_be_bytes()].concat(),
        Scalar::DateTime2(total) => [time(total.rem_euclid(TICKS_PER_DAY)), date(total.div_euclid(TICKS_PER_DAY))].concat(),
        Scalar::DateTimeOffset(utc, offset) => {
            let parts = [time(utc.rem_euclid(TICKS_PER_DAY)), date(utc.div_euclid(TICKS_PER_DAY))].concat();
            [parts, offset.to_le_bytes().to_vec()].concat()
        }
        ref other => panic!("{other:?} is not a date or time"),
    }
}

/// Bytes as any other type.
pub(super) fn to_other(bytes: &[u8], from: &SqlType, to: &SqlType, options: &ConvertOptions) -> Result<Scalar, SqlError> {
    let style = options.style_or(0);
    let failed = || message(8114, &[&from.message_name(), &to.message_name()]);
    let unsigned = |width: usize| {
        let tail = &bytes[bytes.len().saturating_sub(width)..];
        tail.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
    };
    Ok(match to {
        to if to.is_binary() => Scalar::Binary(fit_bytes(bytes.to_vec(), to)),
        to if to.is_text() => return to_text(bytes, to, style),
        SqlType::Bit => Scalar::Bit(bytes.iter().any(|b| *b != 0)),
        SqlType::TinyInt => Scalar::TinyInt(unsigned(1) as u8),
        SqlType::SmallInt => Scalar::SmallInt(unsigned(2) as i16),
        SqlType::Int => Scalar::Int(unsigned(4) as i32),
        SqlType::BigInt => Scalar::BigInt(unsigned(8) as i64),
        SqlType::Money => Scalar::Money(unsigned(8) as i64),
        SqlType::SmallMoney => Scalar::Money(i64::from(unsigned(4) as i32)),
        SqlType::Decimal { precision, scale, .. } => decimal_from_bytes(bytes, *precision, *scale).ok_or_else(failed)?,
        SqlType::DateTime => {
            let value = unsigned(8);
            let units = i64::from((value >> 32) as i32) * DATETIME_UNITS_PER_DAY + (value & 0xFFFF_FFFF) as i64;
            crate::calendar::Moment::of(&Scalar::DateTime(units)).and_then(|at| at.to_scalar(to).ok()).ok_or_else(|| message(210, &[]))?;
            Scalar::DateTime(units)
        }
        SqlType::SmallDateTime => {
            let value = unsigned(4) as i64;
            Scalar::SmallDateTime((value >> 16) * 1440 + (value & 0xFFFF).min(1439))
        }
        SqlType::UniqueIdentifier => {
            let mut guid = [0; 16];
            let kept = bytes.len().min(16);
            guid[..kept].copy_from_slice(&bytes[..kept]);
            Scalar::Guid(guid)
        }
        SqlType::Date if bytes.len() == 3 => {
            let days = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
            crate::calendar::Moment::of_day(days).to_scalar(to).map_err(|_| message(9803, &[&"date"]))?
        }
        other => return Err(message(9803, &[&other.message_name()])),
    })
}

fn decimal_from_bytes(bytes: &[u8], precision: u8, scale: u8) -> Option<Scalar> {
    let [_, own_scale, _, sign, magnitude @ ..] = bytes else { return None };
    let mut wide = [0; 16];
    wide.get_mut(..magnitude.len())?.copy_from_slice(magnitude);
    let value = i128::try_from(u128::from_le_bytes(wide)).ok()?;
    if *own_scale > 38 {
        return None;
    }
    let value = crate::arithmetic::rescale(if *sign == 0 { -value } else { value }, *own_scale, scale)?;
    (value.unsigned_abs() < 10u128.pow(u32::from(precision))).then_some(Scalar::Decimal(value))
}

fn to_text(bytes: &[u8], to: &SqlType, style: i32) -> Result<Scalar, SqlError> {
    let text = match style {
        1 | 2 => {
            let mut text = String::from(if style == 1 { "0x" } else { "" });
            bytes.iter().for_each(|byte| text.push_str(&format!("{byte:02X}")));
            text
        }
        _ => text_from_bytes(bytes, to),
    };
    if style != 0 && to.length().is_some_and(|length| text_length(&text, to) > usize::from(length)) {
        return Err(message(8152, &[]));
    }
    Ok(Scalar::Text(fit_text(text, to)))
}

/// Text as bytes.
pub(super) fn from_text(text: &str, from: &SqlType, to: &SqlType, options: &ConvertOptions) -> Result<Scalar, SqlError> {
    let style = options.style_or(0);
    let failed = || message(8114, &[&from.message_name(), &to.message_name()]);
    let bytes = match style {
        1 | 2 => {
            let digits = if style == 1 { text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).ok_or_else(failed)? } else { text };
            hexadecimal(digits).ok_or_else(failed)?
        }
        _ => text_bytes(text, from),
    };
    Ok(Scalar::Binary(fit_bytes(bytes, to)))
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).map(|v| v as u8);
    digits.chunks(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

/// Where each byte of the wire form stands in the text form: the first three groups are little-endian.
const GUID_TEXT: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

/// A uniqueidentifier as its 36 characters.
pub(super) fn guid_to_text(guid: &[u8; 16], to: &SqlType) -> Result<Scalar, SqlError> {
    let mut text = String::with_capacity(36);
    for (position, at) in GUID_TEXT.iter().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{:02X}", guid[*at]));
    }
    if to.length().is_some_and(|length| length < 36) {
        return Err(message(8170, &[]));
    }
    Ok(Scalar::Text(fit_text(text, to)))
}

/// A uniqueidentifier from its 36 characters, perhaps in braces; what follows them does not count.
pub(super) fn guid_from_text(text: &str) -> Result<Scalar, SqlError> {
    let failed = || message(8169, &[]);
    let text = text.trim_start_matches(' ');
    let (text, braced) = text.strip_prefix('{').map_or((text, false), |rest| (rest, true));
    let body = text.get(..36).ok_or_else(failed)?;
    if braced && !text[36..].starts_with('}') {
        return Err(failed());
    }
    let dashed = [8, 13, 18, 23].iter().all(|at| body.as_bytes()[*at] == b'-');
    let bytes = hexadecimal(&body.replace('-', "")).filter(|bytes| dashed && bytes.len() == 16).ok_or_else(failed)?;
    let mut guid = [0; 16];
    for (byte, at) in bytes.into_iter().zip(GUID_TEXT) {
        guid[at] = byte;
    }
    Ok(Scalar::Guid(guid))
}
