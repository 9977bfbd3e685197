//! Numbers to numbers, numbers to text, text to numbers.

use super::{ConvertOptions, fit_text, text_length};
use crate::arithmetic::{power_of_ten, rescale, round_divide};
use crate::{Scalar, SqlError, SqlType, message};

/// A number before it takes its new type.
#[derive(Clone, Copy)]
enum Number {
    Exact { unscaled: i128, scale: u8 },
    Float(f64),
}

fn number_of(value: &Scalar, from: &SqlType) -> Number {
    match value {
        Scalar::Decimal(v) => Number::Exact { unscaled: *v, scale: from.scale() },
        Scalar::Money(v) => Number::Exact { unscaled: i128::from(*v), scale: 4 },
        Scalar::Real(v) => Number::Float(f64::from(*v)),
        Scalar::Float(v) => Number::Float(*v),
        other => match other.as_i64() {
            Some(v) => Number::Exact { unscaled: i128::from(v), scale: 0 },
            None => panic!("{other:?} is not a number"),
        },
    }
}

/// A number of another number type.
pub(super) fn to_number(value: &Scalar, from: &SqlType, to: &SqlType) -> Result<Scalar, SqlError> {
    let number = number_of(value, from);
    let overflow = || overflow(number, from, to);
    let in_type = |value: Option<i128>, low: i128, high: i128| value.filter(|v| (low..=high).contains(v)).ok_or_else(overflow);
    match to {
        SqlType::Bit => Ok(Scalar::Bit(match number {
            Number::Exact { unscaled, .. } => unscaled != 0,
            Number::Float(v) => v != 0.0,
        })),
        SqlType::TinyInt => in_type(whole(number, from), 0, 255).map(|v| Scalar::TinyInt(v as u8)),
        SqlType::SmallInt => in_type(whole(number, from), i16::MIN.into(), i16::MAX.into()).map(|v| Scalar::SmallInt(v as i16)),
        SqlType::Int => in_type(whole(number, from), i32::MIN.into(), i32::MAX.into()).map(|v| Scalar::Int(v as i32)),
        SqlType::BigInt => in_type(whole(number, from), i64::MIN.into(), i64::MAX.into()).map(|v| Scalar::BigInt(v as i64)),
        SqlType::Decimal { precision, scale, .. } => {
            let limit = power_of_ten(u32::from(*precision)) - 1;
            in_type(scaled(number, *scale), -limit, limit).map(Scalar::Decimal)
        }
        SqlType::Money => in_type(scaled(number, 4), i64::MIN.into(), i64::MAX.into()).map(|v| Scalar::Money(v as i64)),
        SqlType::SmallMoney => in_type(scaled(number, 4), i32::MIN.into(), i32::MAX.into()).map(|v| Scalar::Money(v as i64)),
        SqlType::Real => {
            let value = approximate(number) as f32;
            if value.is_finite() { Ok(Scalar::Real(value)) } else { Err(overflow()) }
        }
        SqlType::Float => Ok(Scalar::Float(approximate(number))),
        other => Err(super::never(from, other)),
    }
}

/// The integer part: money rounds, everything else cuts off.
fn whole(number: Number, from: &SqlType) -> Option<i128> {
    match number {
        Number::Exact { unscaled, scale: 0 } => Some(unscaled),
        Number::Exact { unscaled, scale } if matches!(from, SqlType::Money | SqlType::SmallMoney) => rescale(unscaled, scale, 0),
        Number::Exact { unscaled, scale } => Some(unscaled / power_of_ten(u32::from(scale))),
        Number::Float(v) => (v.abs() < 1e30).then(|| v.trunc() as i128),
    }
}

fn scaled(number: Number, to: u8) -> Option<i128> {
    match number {
        Number::Exact { unscaled, scale } => rescale(unscaled, scale, to),
        Number::Float(v) => float_to_decimal(v, to),
    }
}

/// A float at a decimal scale by its 17 digits, half away from zero.
fn float_to_decimal(value: f64, scale: u8) -> Option<i128> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{value:.16e}");
    let (digits, exponent) = text.split_once('e')?;
    let unscaled: i128 = digits.replace('.', "").parse().ok()?;
    let shift = exponent.parse::<i32>().ok()? - 16 + i32::from(scale);
    match shift {
        0..=37 => unscaled.checked_mul(power_of_ten(shift as u32)),
        -38..0 => Some(round_divide(unscaled, power_of_ten(shift.unsigned_abs()))),
        _ if shift < 0 || unscaled == 0 => Some(0),
        _ => None,
    }
}

fn approximate(number: Number) -> f64 {
    match number {
        Number::Float(v) => v,
        Number::Exact { unscaled, scale } if unscaled.unsigned_abs() < 1 << 53 && scale <= 22 => {
            unscaled as f64 / 10f64.powi(i32::from(scale))
        }
        Number::Exact { unscaled, scale } => format!("{unscaled}e-{scale}").parse().expect("digits and an exponent are a float"),
    }
}

fn overflow(number: Number, from: &SqlType, to: &SqlType) -> SqlError {
    let to_name = to.message_name();
    match (number, from) {
        (Number::Float(v), _) if to.is_integer() && *to != SqlType::BigInt => {
            let state = match to {
                SqlType::TinyInt => 1,
                SqlType::SmallInt => 2,
                _ => 3,
            };
            message(232, &[&to_name, &v]).with_state(state)
        }
        (Number::Exact { unscaled, scale: 0 }, SqlType::Int | SqlType::SmallInt | SqlType::TinyInt)
            if matches!(to, SqlType::TinyInt | SqlType::SmallInt) =>
        {
            message(220, &[&to_name, &unscaled]).with_state(if *to == SqlType::TinyInt { 2 } else { 1 })
        }
        (Number::Exact { .. }, _) if to.is_integer() => message(8115, &[&"expression", &to_name]),
        (Number::Exact { .. }, from) if matches!(to, SqlType::Decimal { .. }) => {
            message(8115, &[&from.message_name(), &to_name]).with_state(8)
        }
        (_, from) if from.is_integer() => message(8115, &[&"expression", &to_name]),
        (_, from) => message(8115, &[&from.message_name(), &to_name]).with_state(if matches!(to, SqlType::Decimal { .. }) { 6 } else { 2 }),
    }
}

/// A number as text; CONVERT's styles for float and money.
pub(super) fn to_text(value: &Scalar, from: &SqlType, to: &SqlType, options: &ConvertOptions) -> Result<Scalar, SqlError> {
    let style = options.style_or(0);
    let text = match value {
        Scalar::Bit(v) => u8::from(*v).to_string(),
        Scalar::Decimal(v) => format_decimal(*v, from.scale()),
        Scalar::Money(v) => format_money(*v, style),
        Scalar::Real(v) => format_float(f64::from(*v), style, true),
        Scalar::Float(v) => format_float(*v, style, false),
        other => other.as_i64().unwrap_or_else(|| panic!("{other:?} is not a number")).to_string(),
    };
    if to.length().is_none_or(|length| text_length(&text, to) <= usize::from(length)) {
        return Ok(Scalar::Text(fit_text(text, to)));
    }
    match (from, value) {
        (SqlType::TinyInt | SqlType::SmallInt | SqlType::Int, _) if !to.is_unicode() => Ok(Scalar::Text(fit_text("*".into(), to))),
        (SqlType::Money, _) => Err(message(234, &[&to.message_name()])),
        (SqlType::SmallMoney, _) => Err(message(292, &[&to.message_name()])),
        (_, Scalar::Real(v)) => Err(message(232, &[&to.message_name(), v]).with_state(2)),
        (_, Scalar::Float(v)) => Err(message(232, &[&to.message_name(), v]).with_state(2)),
        (SqlType::Decimal { .. }, _) => Err(message(8115, &[&"numeric", &to.message_name()]).with_state(5)),
        _ => Err(message(8115, &[&"expression", &to.message_name()])),
    }
}

/// An unscaled decimal as text, with all digits of its scale.
pub fn format_decimal(unscaled: i128, scale: u8) -> String {
    if scale == 0 {
        return unscaled.to_string();
    }
    let scale = usize::from(scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// Money as text: style 0 two decimals, 1 with thousands separators, 2 and 126 four decimals.
pub fn format_money(value: i64, style: i32) -> String {
    if matches!(style, 2 | 126) {
        return format_decimal(i128::from(value), 4);
    }
    let text = format_decimal(round_divide(i128::from(value), 100), 2);
    if style != 1 {
        return text;
    }
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let whole = digits.len() - 3;
    let mut out = String::from(sign);
    for (at, digit) in digits.char_indices() {
        if at > 0 && at < whole && (whole - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A float as text: style 0 six digits at most, 1 eight, 2 sixteen, 3 and 126 seventeen (real: nine) that give it back.
pub fn format_float(value: f64, style: i32, is_real: bool) -> String {
    match style {
        1 => scientific(value, 7),
        2 => scientific(value, 15),
        3 | 126 | 128 | 129 => scientific(value, if is_real { 8 } else { 16 }),
        _ => general(value, 6),
    }
}

/// Digits with one before the point, and an exponent of three digits.
fn scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (digits, exponent) = text.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    format!("{digits}e{}{:03}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// C's `%g`: so many significant digits, trailing zeros dropped, an exponent only where the number is very large or small.
fn general(value: f64, significant: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let rounded = format!("{value:.*e}", significant - 1);
    let (digits, exponent) = rounded.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let trim =
        |text: &str| if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() };
    if (-5..significant as i32).contains(&exponent) && exponent != -5 {
        let decimals = (significant as i32 - 1 - exponent) as usize;
        trim(&format!("{value:.decimals$}"))
    } else {
        format!("{}e{}{:03}", trim(digits), if exponent < 0 { '-' } else { '+' }, exponent.abs())
    }
}

/// Text as a number type.
pub(super) fn from_text(text: &str, from: &SqlType, to: &SqlType) -> Result<Scalar, SqlError> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\u{0B}', '\u{0C}', '\u{A0}']);
    let failed = || message(245, &[&from.message_name(), &text, &to.message_name()]);
    match to {
        SqlType::Bit => match trimmed {
            t if t.eq_ignore_ascii_case("true") => Ok(Scalar::Bit(true)),
            t if t.eq_ignore_ascii_case("false") => Ok(Scalar::Bit(false)),
            t => match parse_integer(t) {
                Integer::Value(v) => Ok(Scalar::Bit(v != 0)),
                Integer::TooLarge => Ok(Scalar::Bit(true)),
                Integer::NotOne => Err(failed()),
            },
        },
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt => integer_from_text(trimmed, text, from, to),
        SqlType::Decimal { precision, scale, .. } => match parse_decimal(trimmed, *scale) {
            Some(Some(v)) if v.unsigned_abs() < power_of_ten(u32::from(*precision)).unsigned_abs() => Ok(Scalar::Decimal(v)),
            Some(_) => Err(message(8115, &[&from.message_name(), &"numeric"]).with_state(6)),
            None => Err(message(8114, &[&from.message_name(), &"numeric"])),
        },
        SqlType::Real | SqlType::Float => {
            let value = parse_float(trimmed).ok_or_else(|| message(8114, &[&from.message_name(), &to.message_name()]))?;
            let overflow = || message(8115, &[&from.message_name(), &to.message_name()]);
            match to {
                _ if !value.is_finite() => Err(overflow()),
                SqlType::Real if !(value as f32).is_finite() => Err(overflow()),
                SqlType::Real => Ok(Scalar::Real(value as f32)),
                _ => Ok(Scalar::Float(value)),
            }
        }
        _ => money_from_text(trimmed, to),
    }
}

fn integer_from_text(trimmed: &str, text: &str, from: &SqlType, to: &SqlType) -> Result<Scalar, SqlError> {
    let name = from.message_name();
    let parsed = parse_integer(trimmed);
    if *to == SqlType::BigInt {
        return match parsed {
            Integer::NotOne => Err(message(8114, &[&name, &"bigint"])),
            Integer::TooLarge => Err(message(8115, &[&"expression", &"bigint"])),
            Integer::Value(v) => Ok(Scalar::BigInt(v)),
        };
    }
    let value = match parsed {
        Integer::NotOne => return Err(message(245, &[&name, &text, &to.message_name()])),
        Integer::TooLarge => None,
        Integer::Value(v) => Some(v),
    };
    let fits = match to {
        SqlType::TinyInt => value.and_then(|v| u8::try_from(v).ok()).map(Scalar::TinyInt),
        SqlType::SmallInt => value.and_then(|v| i16::try_from(v).ok()).map(Scalar::SmallInt),
        _ => value.and_then(|v| i32::try_from(v).ok()).map(Scalar::Int),
    };
    fits.ok_or_else(|| match to {
        SqlType::TinyInt => message(244, &[&name, &text, &"INT1"]),
        SqlType::SmallInt => message(244, &[&name, &text, &"INT2"]),
        _ => message(248, &[&name, &text]),
    })
}

enum Integer {
    Value(i64),
    TooLarge,
    NotOne,
}

/// A sign and digits; nothing at all, or a sign alone, is 0.
fn parse_integer(text: &str) -> Integer {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest.trim_start_matches(' ')),
        None => (false, text),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Integer::NotOne;
    }
    let value = digits.bytes().try_fold(0i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        value.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
    });
    value.map_or(Integer::TooLarge, Integer::Value)
}

/// An exact number at `scale`, further digits rounded; the outer `None` is not a number, the inner one too large.
pub fn parse_decimal(text: &str, scale: u8) -> Option<Option<i128>> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest.trim_start_matches(' ')),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let kept = fraction.len().min(usize::from(scale));
    let value = whole
        .bytes()
        .chain(fraction[..kept].bytes())
        .try_fold(0i128, |value, digit| value.checked_mul(10)?.checked_add(i128::from(digit - b'0')));
    let value = value.and_then(|v| v.checked_mul(power_of_ten(u32::from(scale) - kept as u32)));
    let round_up = fraction.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5');
    Some(value.and_then(|v| v.checked_add(i128::from(round_up))).map(|v| if negative { -v } else { v }))
}

/// A float: sign, digits, point, exponent (`e` or `d`); nothing at all is 0. Infinite if it is too large.
pub fn parse_float(text: &str) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let allowed = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E' | b'd' | b'D');
    if !text.bytes().all(allowed) {
        return None;
    }
    let mut text = text.replace(['d', 'D'], "e");
    if text.ends_with(['e', 'E']) || text.ends_with("e+") || text.ends_with("e-") {
        text.push('0');
    }
    text.parse().ok()
}

/// Money: blanks, a sign, a currency symbol, digits with commas anywhere, four decimals kept.
fn money_from_text(trimmed: &str, to: &SqlType) -> Result<Scalar, SqlError> {
    let small = *to == SqlType::SmallMoney;
    let syntax = || message(if small { 293 } else { 235 }, &[]);
    let mut negative = false;
    let mut rest = trimmed;
    while let Some(first) = rest.chars().next() {
        match first {
            '-' if !negative => negative = true,
            '+' | ' ' | '$' | '\u{A2}'..='\u{A5}' | '\u{20A0}'..='\u{20BF}' => {}
            _ => break,
        }
        rest = &rest[first.len_utf8()..];
    }
    if rest.contains(['-', '+']) {
        return Err(syntax());
    }
    let digits: String = rest.chars().filter(|c| *c != ',').collect();
    if digits.is_empty() || digits == "." {
        return if trimmed == rest && !trimmed.is_empty() { Err(syntax()) } else { Ok(Scalar::Money(0)) };
    }
    let value = parse_decimal(&digits, 4).ok_or_else(syntax)?.map(|v| if negative { -v } else { v });
    let limit = if small { i128::from(i32::MAX) } else { i128::from(i64::MAX) };
    match value.filter(|v| (-limit - 1..=limit).contains(v)) {
        Some(v) => Ok(Scalar::Money(v as i64)),
        None if small => Err(message(294, &[])),
        None => Err(message(236, &[])),
    }
}
