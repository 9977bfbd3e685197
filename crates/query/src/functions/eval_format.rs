//! FORMAT and STR: numbers and dates as text by a pattern.
//!
//! FORMAT knows the standard numeric formats (C D E F G N P X), custom ones (`0 # . , %` and literals), the standard date
//! formats and the custom date words, all as the culture en-US writes them. Another culture is refused (9818).

use crate::eval::convert_scalar;
use crate::functions::call::Call;
use crate::functions::eval_text::or_null;
use thawdb_types::calendar::Moment;
use thawdb_types::convert::format_decimal;
use thawdb_types::datepart::month_name;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

pub(super) fn str(call: &Call<'_>) -> Result {
    let value = or_null!(call.float(0));
    let length = if call.values.len() > 1 { or_null!(call.integer(1)) } else { 10 };
    let decimals = if call.values.len() > 2 { or_null!(call.integer(2)) } else { 0 };
    let length = or_null!(usize::try_from(length).ok().filter(|n| (1..=8000).contains(n)));
    let decimals = or_null!(usize::try_from(decimals).ok()).min(16);
    let whole = round_half_away(value, 0);
    let width_of_whole = format!("{whole:.0}").len();
    if width_of_whole > length {
        return Ok(Scalar::Text("*".repeat(length)));
    }
    // Decimals that do not fit are rounded away.
    let most = length.saturating_sub(width_of_whole + 1);
    let decimals = decimals.min(most);
    let text = format!("{:.*}", decimals, round_half_away(value, decimals as i32));
    Ok(Scalar::Text(format!("{text:>length$}")))
}

fn round_half_away(value: f64, decimals: i32) -> f64 {
    let factor = 10f64.powi(decimals);
    let scaled = value * factor;
    // Beyond 2^53 every float is whole.
    if scaled.abs() < 9e15 { scaled.round() / factor } else { value }
}

pub(super) fn format(call: &Call<'_>) -> Result {
    let pattern = or_null!(call.text(1));
    if let Some(culture) = call.text(2)
        && !culture.eq_ignore_ascii_case("en-us")
        && !culture.eq_ignore_ascii_case("en")
        && !culture.is_empty()
    {
        return Err(message(9818, &[&culture]));
    }
    let value = call.value(0);
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    if let Some(at) = Moment::of(value) {
        return Ok(Scalar::Text(format_date(&at, pattern, matches!(call.type_of(0), SqlType::DateTimeOffset { .. }))));
    }
    if !call.type_of(0).is_numeric() {
        return Err(message(8116, &[&call.type_of(0).message_name(), &1, &"format"]));
    }
    let (unscaled, scale) = match value {
        Scalar::Decimal(v) => (*v, call.type_of(0).scale()),
        Scalar::Money(v) => (i128::from(*v), 4),
        Scalar::Float(_) | Scalar::Real(_) => match convert_scalar(value.clone(), call.type_of(0), &SqlType::numeric(38, 15), 0, false) {
            Ok(Scalar::Decimal(v)) => (v, 15),
            _ => return Ok(Scalar::Null),
        },
        other => (i128::from(other.as_i64().unwrap_or(0)), 0),
    };
    Ok(format_number(unscaled, scale, pattern).map_or(Scalar::Null, Scalar::Text))
}

/// Rounded half away from zero to `digits` decimals: sign, whole digits, fraction digits.
fn rounded(unscaled: i128, scale: u8, digits: usize) -> (bool, String, String) {
    let mut value = unscaled.unsigned_abs();
    let scale = usize::from(scale);
    let mut fraction_digits = scale;
    if digits < scale {
        let unit = 10u128.pow((scale - digits) as u32);
        value = (value + unit / 2) / unit;
        fraction_digits = digits;
    }
    let text = format!("{value:0>width$}", width = fraction_digits + 1);
    let (whole, fraction) = text.split_at(text.len() - fraction_digits);
    (unscaled < 0 && value != 0, whole.to_owned(), format!("{fraction:0<digits$}"))
}

fn grouped(whole: &str) -> String {
    let mut out = String::with_capacity(whole.len() + whole.len() / 3);
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn format_number(unscaled: i128, scale: u8, pattern: &str) -> Option<String> {
    let mut letters = pattern.chars();
    let kind = letters.next()?;
    let digits: Option<usize> = if letters.as_str().is_empty() { Some(usize::MAX) } else { letters.as_str().parse().ok() };
    let standard = kind.is_ascii_alphabetic() && digits.is_some_and(|d| d == usize::MAX || d <= 99);
    if !standard {
        return Some(custom_number(unscaled, scale, pattern));
    }
    let digits = digits.filter(|d| *d != usize::MAX);
    let joined = |digits: usize, unscaled: i128, group: bool| {
        let (negative, whole, fraction) = rounded(unscaled, scale, digits);
        let whole = if group { grouped(&whole) } else { whole };
        (negative, if digits == 0 { whole } else { format!("{whole}.{fraction}") })
    };
    let signed = |(negative, text): (bool, String)| if negative { format!("-{text}") } else { text };
    Some(match kind.to_ascii_uppercase() {
        'N' => signed(joined(digits.unwrap_or(2), unscaled, true)),
        'F' => signed(joined(digits.unwrap_or(2), unscaled, false)),
        'C' => {
            let (negative, text) = joined(digits.unwrap_or(2), unscaled, true);
            if negative { format!("(${text})") } else { format!("${text}") }
        }
        'P' => signed(joined(digits.unwrap_or(2), unscaled.checked_mul(100)?, true)) + "%",
        'D' if scale == 0 => {
            let (negative, whole, _) = rounded(unscaled, 0, 0);
            format!("{}{whole:0>width$}", if negative { "-" } else { "" }, width = digits.unwrap_or(0))
        }
        'X' if scale == 0 => {
            let value = unscaled as i64;
            let hex = if let Ok(narrow) = i32::try_from(value) { format!("{narrow:X}") } else { format!("{value:X}") };
            let hex = if kind == 'x' { hex.to_ascii_lowercase() } else { hex };
            format!("{hex:0>width$}", width = digits.unwrap_or(0))
        }
        'G' => trim_fraction(&format_decimal(unscaled, scale)),
        'E' => exponent(unscaled, scale, digits.unwrap_or(6), kind),
        _ => return None,
    })
}

fn trim_fraction(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
}

fn exponent(unscaled: i128, scale: u8, digits: usize, letter: char) -> String {
    let text = format!("{:.*e}", digits, unscaled as f64 / 10f64.powi(i32::from(scale)));
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    format!("{mantissa}{letter}{}{:03}", if power < 0 { '-' } else { '+' }, power.abs())
}

/// A custom pattern: `0` and `#` take digits, `,` between them groups, `%` multiplies, `;` parts signs.
fn custom_number(unscaled: i128, scale: u8, pattern: &str) -> String {
    let sections: Vec<&str> = pattern.split(';').collect();
    let (pattern, unscaled, own_sign) = match (sections.as_slice(), unscaled) {
        ([_, negative, ..], v) if v < 0 && !negative.is_empty() => (*negative, -v, true),
        ([_, _, zero, ..], 0) => (*zero, 0, true),
        (list, v) => (list[0], v, false),
    };
    let value = if pattern.contains('%') { unscaled.saturating_mul(100) } else { unscaled };
    let (before, after) = pattern.split_once('.').unwrap_or((pattern, ""));
    let is_digit = |c: &char| matches!(c, '0' | '#');
    let decimals = after.chars().filter(is_digit).count();
    let decimals_least = after.chars().filter(is_digit).collect::<String>().trim_end_matches('#').len();
    let (negative, whole, fraction) = rounded(value, scale, decimals);
    let whole_least = before.chars().skip_while(|c| *c != '0').filter(is_digit).count();
    let whole = if whole == "0" && whole_least == 0 { String::new() } else { format!("{whole:0>whole_least$}") };
    let digits_at: Vec<usize> = before.char_indices().filter(|(_, c)| is_digit(c)).map(|(at, _)| at).collect();
    let groups = match (digits_at.first(), digits_at.last()) {
        (Some(first), Some(last)) => before[*first..*last].contains(','),
        _ => false,
    };
    let whole = if groups { grouped(&whole) } else { whole };
    let kept = fraction.trim_end_matches('0').len().max(decimals_least);
    let fraction = &fraction[..kept.min(fraction.len())];
    let literal = |part: &str| part.chars().filter(|c| !matches!(c, '0' | '#' | ',' | '\'' | '"' | '\\')).collect::<String>();
    let prefix = literal(&before[..digits_at.first().copied().unwrap_or(before.len())]);
    let suffix = literal(&before[digits_at.last().map_or(before.len(), |at| at + 1)..]) + &literal(after);
    let sign = if negative && !own_sign { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{prefix}{whole}{point}{fraction}{suffix}")
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn format_date(at: &Moment, pattern: &str, has_offset: bool) -> String {
    let standard = match pattern {
        "d" => "M/d/yyyy",
        "D" => "dddd, MMMM d, yyyy",
        "t" => "h:mm tt",
        "T" => "h:mm:ss tt",
        "f" => "dddd, MMMM d, yyyy h:mm tt",
        "F" => "dddd, MMMM d, yyyy h:mm:ss tt",
        "g" => "M/d/yyyy h:mm tt",
        "G" => "M/d/yyyy h:mm:ss tt",
        "m" | "M" => "MMMM d",
        "y" | "Y" => "MMMM yyyy",
        "s" => "yyyy-MM-ddTHH:mm:ss",
        "u" => "yyyy-MM-dd HH:mm:ssZ",
        "o" | "O" if has_offset => "yyyy-MM-ddTHH:mm:ss.fffffffzzz",
        "o" | "O" => "yyyy-MM-ddTHH:mm:ss.fffffff",
        "r" | "R" => "ddd, dd MMM yyyy HH:mm:ss G'M'T",
        other => other,
    };
    let mut out = String::new();
    let letters: Vec<char> = standard.chars().collect();
    let mut i = 0;
    while i < letters.len() {
        let c = letters[i];
        let run = letters[i..].iter().take_while(|x| **x == c).count();
        match c {
            '\'' | '"' => {
                let end = letters[i + 1..].iter().position(|x| *x == c).map_or(letters.len(), |n| i + 1 + n);
                out.extend(&letters[i + 1..end]);
                i = end + 1;
                continue;
            }
            '\\' if i + 1 < letters.len() => {
                out.push(letters[i + 1]);
                i += 2;
                continue;
            }
            _ => push_date_part(&mut out, at, c, run),
        }
        i += run;
    }
    out
}

/// One run of a pattern letter.
fn push_date_part(out: &mut String, at: &Moment, letter: char, run: usize) {
    let (year, month, day) = at.civil();
    let (hour, minute, second, fraction) = at.clock();
    let two = |out: &mut String, value: u32| out.push_str(&if run == 1 { value.to_string() } else { format!("{value:02}") });
    match (letter, run) {
        ('y', 1 | 2) => two(out, (year % 100) as u32),
        ('y', _) => out.push_str(&format!("{year:0run$}")),
        ('M', 1 | 2) => two(out, month),
        ('M', 3) => out.push_str(&month_name(month)[..3]),
        ('M', _) => out.push_str(month_name(month)),
        ('d', 1 | 2) => two(out, day),
        ('d', 3) => out.push_str(&WEEKDAYS[at.days.rem_euclid(7) as usize][..3]),
        ('d', _) => out.push_str(WEEKDAYS[at.days.rem_euclid(7) as usize]),
        ('H', _) => two(out, hour),
        ('h', _) => two(out, (hour + 11) % 12 + 1),
        ('m', _) => two(out, minute),
        ('s', _) => two(out, second),
        ('f', n) => out.push_str(&format!("{fraction:07}")[..n.min(7)]),
        ('F', n) => out.push_str(format!("{fraction:07}")[..n.min(7)].trim_end_matches('0')),
        ('t', 1) => out.push(if hour < 12 { 'A' } else { 'P' }),
        ('t', _) => out.push_str(if hour < 12 { "AM" } else { "PM" }),
        ('z', n) => {
            let (sign, minutes) = (if at.offset < 0 { '-' } else { '+' }, at.offset.unsigned_abs());
            out.push_str(&match n {
                1 => format!("{sign}{}", minutes / 60),
                2 => format!("{sign}{:02}", minutes / 60),
                _ => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
            });
        }
        (other, n) => out.extend(std::iter::repeat_n(other, n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (unscaled, scale, pattern, expected) in [
            (1_234_567, 2, "N", "12,345.67"),
            (1_234_567, 2, "N0", "12,346"),
            (-150, 2, "C", "($1.50)"),
            (125, 3, "P1", "12.5%"),
            (42, 0, "D5", "00042"),
            (255, 0, "X", "FF"),
            (-1, 0, "x", "ffffffff"),
            (1_234_567, 0, "#,##0", "1,234,567"),
            (5, 1, "0.00", "0.50"),
            (5, 1, "#.##", ".5"),
            (-5, 0, "0;(0)", "(5)"),
            (12345, 2, "E2", "1.23E+002"),
        ] {
            assert_eq!(format_number(unscaled, scale, pattern).as_deref(), Some(expected), "{unscaled} {pattern}");
        }
    }

    #[test]
    fn dates() {
        let at = Moment { days: thawdb_types::calendar::days_from_civil(2024, 3, 5), ticks: 486_070_012_300, offset: -330 };
        for (pattern, expected) in [
            ("yyyy-MM-dd HH:mm:ss.fff", "2024-03-05 13:30:07.001"),
            ("d", "3/5/2024"),
            ("D", "Tuesday, March 5, 2024"),
            ("h:mm tt", "1:30 PM"),
            ("ddd dd MMM yy zzz", "Tue 05 Mar 24 -05:30"),
            ("'at' HH\\h", "at 13h"),
        ] {
            assert_eq!(format_date(&at, pattern, true), expected, "{pattern}");
        }
    }
}
