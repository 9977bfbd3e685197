//! FORMAT and STR: numbers and dates as text by a pattern.
//!
//! ```text
//! value ─┬─ number: format_number ─► standard (C D E F G N P X) or custom_number (0 # . , % and literals)
//!        ├─ time:   format_span ─► the words of a TimeSpan, other signs escaped
//!        └─ date:   format_date ─► standard pattern ─► push_date_part for each run of a letter
//! ```
//! Cultures are those of PARSE; names of months and days are English, so where another language would show one it is refused
//! (9818). No locks, nothing blocks.

use crate::eval::convert_scalar;
use crate::functions::call::Call;
use crate::functions::eval_text::or_null;
use crate::functions::parse::{Culture, culture_of};
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
    let culture = culture_of(match call.text(2) {
        Some(name) if name.eq_ignore_ascii_case("en") => "",
        Some(name) => name,
        None => "",
    })?;
    let value = call.value(0);
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    let of = call.type_of(0);
    if let Some(at) = Moment::of(value) {
        if matches!(of, SqlType::Time { .. }) {
            return Ok(format_span(&at, pattern).map_or(Scalar::Null, Scalar::Text));
        }
        let at = if matches!(of, SqlType::DateTime) { to_milliseconds(at) } else { at };
        return format_date(&at, pattern, matches!(of, SqlType::DateTimeOffset { .. }), culture).map(Scalar::Text);
    }
    if !of.is_numeric() {
        return Err(message(8116, &[&of.message_name(), &1, &"format"]));
    }
    let (unscaled, scale) = match value {
        Scalar::Decimal(v) => (*v, of.scale()),
        Scalar::Money(v) => (i128::from(*v), 4),
        Scalar::Float(_) | Scalar::Real(_) => match convert_scalar(value.clone(), of, &SqlType::numeric(38, 15), 0, false) {
            Ok(Scalar::Decimal(v)) => (v, 15),
            _ => return Ok(Scalar::Null),
        },
        other => (i128::from(other.as_i64().unwrap_or(0)), 0),
    };
    Ok(format_number(unscaled, scale, pattern, culture).map_or(Scalar::Null, Scalar::Text))
}

/// A `datetime` is handed over in whole milliseconds.
fn to_milliseconds(mut at: Moment) -> Moment {
    at.ticks = (at.ticks + 5_000) / 10_000 * 10_000;
    at
}

/// Rounded half away from zero to `digits` decimals: sign, whole digits, fraction digits.
fn rounded(unscaled: i128, scale: u8, digits: usize) -> (bool, String, String) {
    let mut value = unscaled.unsigned_abs();
    let scale = usize::from(scale);
    let mut fraction_digits = scale;
    if digits < scale {
        let unit = 10u128.checked_pow((scale - digits) as u32).unwrap_or(u128::MAX);
        value = value.saturating_add(unit / 2) / unit;
        fraction_digits = digits;
    }
    let text = format!("{value:0>width$}", width = fraction_digits + 1);
    let (whole, fraction) = text.split_at(text.len() - fraction_digits);
    (unscaled < 0 && value != 0, whole.to_owned(), format!("{fraction:0<digits$}"))
}

fn grouped(whole: &str, mark: char) -> String {
    let mut out = String::with_capacity(whole.len() + whole.len() / 3);
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(mark);
        }
        out.push(c);
    }
    out
}

impl Culture {
    fn group_mark(&self) -> char {
        self.grouping.chars().next().unwrap_or(',')
    }

    /// An amount with the sign of the currency, which the languages of the continent write behind it.
    fn amount(&self, negative: bool, text: &str) -> String {
        let (sign, mark) = (if negative { "-" } else { "" }, self.currency);
        match self.name {
            "en-US" if negative => format!("({mark}{text})"),
            "de-DE" | "fr-FR" | "it-IT" | "es-ES" => format!("{sign}{text} {mark}"),
            "nl-NL" => format!("{mark} {sign}{text}"),
            "pt-BR" => format!("{sign}{mark} {text}"),
            _ => format!("{sign}{mark}{text}"),
        }
    }

    fn is_english(&self) -> bool {
        self.name.starts_with("en-")
    }
}

fn format_number(unscaled: i128, scale: u8, pattern: &str, culture: &Culture) -> Option<String> {
    let mut letters = pattern.chars();
    let kind = letters.next()?;
    let digits: Option<usize> = if letters.as_str().is_empty() { Some(usize::MAX) } else { letters.as_str().parse().ok() };
    let standard = kind.is_ascii_alphabetic() && digits.is_some_and(|d| d == usize::MAX || d <= 99);
    if !standard {
        return Some(custom_number(unscaled, scale, pattern, culture));
    }
    let digits = digits.filter(|d| *d != usize::MAX);
    let joined = |digits: usize, unscaled: i128, group: bool| {
        let (negative, whole, fraction) = rounded(unscaled, scale, digits);
        let whole = if group { grouped(&whole, culture.group_mark()) } else { whole };
        (negative, if digits == 0 { whole } else { format!("{whole}{}{fraction}", culture.decimal) })
    };
    let signed = |(negative, text): (bool, String)| if negative { format!("-{text}") } else { text };
    let marked = |text: String| text.replace('.', culture.decimal.encode_utf8(&mut [0; 4]));
    Some(match kind.to_ascii_uppercase() {
        'N' => signed(joined(digits.unwrap_or(2), unscaled, true)),
        'F' => signed(joined(digits.unwrap_or(2), unscaled, false)),
        'C' => {
            let (negative, text) = joined(digits.unwrap_or(2), unscaled, true);
            culture.amount(negative, &text)
        }
        'P' => signed(joined(digits.unwrap_or(2), unscaled.checked_mul(100)?, true)) + if culture.is_english() { "%" } else { " %" },
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
        'G' => marked(trim_fraction(&format_decimal(unscaled, scale))),
        'E' => marked(exponent(unscaled, scale, digits.unwrap_or(6), kind)),
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

/// A piece of a custom pattern.
#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Zero,
    Hash,
    Comma,
    Point,
    Percent,
    Literal(char),
}

/// The sections of a custom pattern, parted by `;`.
fn sections(pattern: &str) -> Vec<Vec<Piece>> {
    let mut list = vec![Vec::new()];
    let mut letters = pattern.chars();
    while let Some(c) = letters.next() {
        let section = list.last_mut().expect("begun with one");
        match c {
            ';' => list.push(Vec::new()),
            '0' => section.push(Piece::Zero),
            '#' => section.push(Piece::Hash),
            ',' => section.push(Piece::Comma),
            '.' => section.push(Piece::Point),
            '%' => section.push(Piece::Percent),
            '\\' => section.extend(letters.next().map(Piece::Literal)),
            '\'' | '"' => section.extend(letters.by_ref().take_while(|x| *x != c).map(Piece::Literal)),
            other => section.push(Piece::Literal(other)),
        }
    }
    list
}

/// A custom pattern: `0` and `#` take digits, `,` between them groups and behind them divides, `%` multiplies, `;` parts signs.
fn custom_number(unscaled: i128, scale: u8, pattern: &str, culture: &Culture) -> String {
    let sections = sections(pattern);
    let (pieces, unscaled, own_sign) = match (sections.as_slice(), unscaled) {
        ([_, negative, ..], v) if v < 0 && !negative.is_empty() => (negative, -v, true),
        ([_, _, zero, ..], 0) => (zero, 0, true),
        (list, v) => (&list[0], v, false),
    };
    let is_digit = |piece: &Piece| matches!(piece, Piece::Zero | Piece::Hash);
    let value = if pieces.contains(&Piece::Percent) { unscaled.saturating_mul(100) } else { unscaled };
    let point = pieces.iter().position(|p| *p == Piece::Point).unwrap_or(pieces.len());
    let (before, after) = pieces.split_at(point);
    let first = before.iter().position(is_digit);
    let last = before.iter().rposition(is_digit);
    let thousands = last.map_or(0, |last| before[last + 1..].iter().take_while(|p| **p == Piece::Comma).count());
    let groups = matches!((first, last), (Some(first), Some(last)) if before[first..last].contains(&Piece::Comma));
    let fraction_slots: Vec<Piece> = after.iter().copied().filter(is_digit).collect();
    let fraction_least = fraction_slots.iter().rposition(|p| *p == Piece::Zero).map_or(0, |at| at + 1);
    let (negative, whole, fraction) = rounded(value, scale.saturating_add(3 * thousands as u8), fraction_slots.len());
    let whole_slots = before.iter().filter(|p| is_digit(p)).count();
    let whole_least = before.iter().skip_while(|p| **p != Piece::Zero).filter(|p| is_digit(p)).count();
    let whole = if whole == "0" && whole_least == 0 { String::new() } else { format!("{whole:0>whole_least$}") };
    let kept = fraction.trim_end_matches('0').len().max(fraction_least).min(fraction.len());
    let mut out = String::from(if negative && !own_sign { "-" } else { "" });
    let mut digits = whole.chars().enumerate();
    let mut slots_left = whole_slots;
    for piece in before {
        match piece {
            Piece::Zero | Piece::Hash => {
                slots_left -= 1;
                while let Some((at, digit)) = digits.clone().next()
                    && whole.len() - at > slots_left
                {
                    digits.next();
                    out.push(digit);
                    let behind = whole.len() - at - 1;
                    if groups && behind > 0 && behind % 3 == 0 {
                        out.push(culture.group_mark());
                    }
                }
            }
            Piece::Literal(c) => out.push(*c),
            Piece::Percent => out.push('%'),
            Piece::Comma | Piece::Point => {}
        }
    }
    if whole_slots == 0 && !fraction_slots.is_empty() {
        out.push_str(&whole);
    }
    if kept > 0 {
        out.push(culture.decimal);
    }
    let mut digits = fraction[..kept].chars();
    for piece in after {
        match piece {
            Piece::Zero | Piece::Hash => out.extend(digits.next()),
            Piece::Literal(c) => out.push(*c),
            Piece::Percent => out.push('%'),
            Piece::Comma | Piece::Point => {}
        }
    }
    out
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A date by a standard pattern or one of its own.
///
/// # Errors
/// 9818 where a culture of another language would show a name.
fn format_date(at: &Moment, pattern: &str, has_offset: bool, culture: &Culture) -> Result<String> {
    let standard = match pattern {
        "d" => culture.date,
        "D" => "dddd, MMMM d, yyyy",
        "t" if culture.name == "en-US" => "h:mm tt",
        "T" if culture.name == "en-US" => "h:mm:ss tt",
        "t" => "HH:mm",
        "T" => "HH:mm:ss",
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
    let invariant = matches!(pattern, "s" | "u" | "o" | "O" | "r" | "R");
    let american = matches!(pattern, "D" | "f" | "F" | "g" | "G" | "m" | "M" | "y" | "Y");
    if american && culture.name != "en-US" {
        return Err(message(9818, &[&culture.name]));
    }
    let separator = culture.date.chars().find(|c| !c.is_ascii_alphabetic()).unwrap_or('/');
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
            '/' => out.extend(std::iter::repeat_n(separator, run)),
            'd' | 'M' if run > 2 && !invariant && !culture.is_english() => return Err(message(9818, &[&culture.name])),
            _ => push_date_part(&mut out, at, c, run),
        }
        i += run;
    }
    Ok(out)
}

/// A `time` is a span to the formatter: hours to 24, the letters h, m, s and f, every other sign escaped. `None` for a pattern
/// that does not do.
fn format_span(at: &Moment, pattern: &str) -> Option<String> {
    let (hour, minute, second, fraction) = at.clock();
    if matches!(pattern, "c" | "t" | "T") {
        let whole = format!("{hour:02}:{minute:02}:{second:02}");
        return Some(if fraction == 0 { whole } else { format!("{whole}.{fraction:07}") });
    }
    if matches!(pattern, "g" | "G") {
        let (text, digits) = (format!("{hour}:{minute:02}:{second:02}"), format!("{fraction:07}"));
        return Some(match (pattern, digits.trim_end_matches('0')) {
            ("G", _) => format!("0:{hour:02}:{minute:02}:{second:02}.{digits}"),
            (_, "") => text,
            (_, short) => format!("{text}.{short}"),
        });
    }
    let letters: Vec<char> = pattern.strip_prefix('%').unwrap_or(pattern).chars().collect();
    if letters.len() < 2 && !pattern.starts_with('%') {
        return None;
    }
    let mut out = String::new();
    let mut i = 0;
    while i < letters.len() {
        let c = letters[i];
        let run = letters[i..].iter().take_while(|x| **x == c).count();
        let two = |value: u32| if run == 1 { value.to_string() } else { format!("{value:02}") };
        match c {
            'h' if run <= 2 => out.push_str(&two(hour)),
            'm' if run <= 2 => out.push_str(&two(minute)),
            's' if run <= 2 => out.push_str(&two(second)),
            'f' if run <= 7 => out.push_str(&format!("{fraction:07}")[..run]),
            'F' if run <= 7 => out.push_str(format!("{fraction:07}")[..run].trim_end_matches('0')),
            'd' if run <= 8 => out.push_str(&"0".repeat(run)),
            '\\' => {
                out.push(*letters.get(i + 1)?);
                i += 2;
                continue;
            }
            '\'' | '"' => {
                let end = i + 1 + letters[i + 1..].iter().position(|x| *x == c)?;
                out.extend(&letters[i + 1..end]);
                i = end + 1;
                continue;
            }
            _ => return None,
        }
        i += run;
    }
    Some(out)
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
            (123_456_789, 0, "###-##-####", "123-45-6789"),
            (1_234_567, 0, "0,", "1235"),
            (-125, 2, "$#,0.0;($#,0.0)", "($1.3)"),
            (5, 0, "'no;' 0", "no; 5"),
        ] {
            assert_eq!(
                format_number(unscaled, scale, pattern, culture_of("").expect("the default")).as_deref(),
                Some(expected),
                "{unscaled} {pattern}"
            );
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
            let culture = culture_of("").expect("the default");
            assert_eq!(format_date(&at, pattern, true, culture).ok().as_deref(), Some(expected), "{pattern}");
        }
    }
}
