//! Dates and times to text by CONVERT's styles, to each other, and to and from numbers.
//!
//! A style is a form of the date and a form of the time of day; a type without one of them prints the other alone, and
//! a style that has only what the type lacks is refused with 281. Styles 130 and 131 (Hijri) are refused so too.

use super::{ConvertOptions, binary, fit_text, moment_to_scalar, number};
use crate::calendar::{DATETIME_UNITS_PER_DAY, DAY_1900, Moment, TICKS_PER_MINUTE, datetime_milliseconds};
use crate::datepart::{month_name, offset_text};
use crate::{Scalar, SqlError, SqlType, message};

/// A date or time value as any other type.
pub(super) fn to_other(value: &Scalar, from: &SqlType, to: &SqlType, options: &ConvertOptions) -> Result<Scalar, SqlError> {
    let at = Moment::of(value).expect("the caller saw a date or time value");
    if to.is_text() {
        let text = format_date_time(value, from, options.style)?;
        return Ok(Scalar::Text(fit_text(text, to)));
    }
    if to.is_date_time() {
        // From an offset to none keeps local time; from none to an offset is at +00:00.
        return moment_to_scalar(at, from, to);
    }
    if to.is_binary() {
        return Ok(Scalar::Binary(binary::fit_number(binary::date_bytes(value, from), to)));
    }
    // datetime and smalldatetime as days since 1900 (no other date type converts to a number).
    let days = i64::from(at.days - DAY_1900);
    let units = match value {
        Scalar::DateTime(units) => units.rem_euclid(DATETIME_UNITS_PER_DAY),
        _ => at.ticks / TICKS_PER_MINUTE * (DATETIME_UNITS_PER_DAY / 1440),
    };
    if to.is_integer() || *to == SqlType::Bit {
        let rounded = days + i64::from(units * 2 >= DATETIME_UNITS_PER_DAY);
        return number::to_number(&Scalar::BigInt(rounded), &SqlType::BigInt, to);
    }
    let exact = days as f64 + units as f64 / DATETIME_UNITS_PER_DAY as f64;
    number::to_number(&Scalar::Float(exact), &SqlType::Float, to)
}

/// A number of days since 1900-01-01 as datetime or smalldatetime.
pub(super) fn from_number(value: &Scalar, from: &SqlType, to: &SqlType) -> Result<Scalar, SqlError> {
    let overflow = || match from {
        SqlType::Float | SqlType::Real | SqlType::Decimal { .. } => message(8115, &[&from.message_name(), &to.message_name()]),
        _ => message(8115, &[&"expression", &to.message_name()]),
    };
    let Scalar::Float(days) = number::to_number(value, from, &SqlType::Float)? else { unreachable!("asked for a float") };
    if days.abs() > 4e6 {
        return Err(overflow());
    }
    let units = (days * DATETIME_UNITS_PER_DAY as f64).round() as i64;
    let at = Moment::of(&Scalar::DateTime(units)).expect("a datetime is a moment");
    at.to_scalar(to).map_err(|_| overflow())
}

/// How a style writes the date.
#[derive(Clone, Copy, PartialEq)]
enum DateForm {
    /// `Nov  1 2026`
    Named,
    /// `01 Nov 2026`
    DayNamed,
    /// `Nov 01, 2026`
    NamedComma,
    /// Numbers in an order with a separator.
    Numbers([Field; 3], &'static str),
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Year,
    Month,
    Day,
}

/// How a style writes the time of day.
#[derive(Clone, Copy, PartialEq)]
enum TimeForm {
    /// ` 9:39AM`
    Short,
    /// ` 9:39:11:000AM`
    LongAmPm,
    /// ` 9:39:11 AM`
    SecondsAmPm,
    /// `09:39:11`
    Seconds,
    /// `09:39:11:000`
    ColonFraction,
    /// `09:39:11.000`
    Fraction,
    /// As `Fraction`, which is left out when it is zero.
    IsoFraction,
}

struct Style {
    date: Option<DateForm>,
    time: Option<TimeForm>,
    century: bool,
    separator: &'static str,
    utc: bool,
}

fn style_of(number: i32) -> Option<Style> {
    use DateForm::{DayNamed, Named, NamedComma, Numbers};
    use Field::{Day, Month, Year};
    let century = number >= 100 || matches!(number, 0 | 9 | 13 | 20 | 21 | 23 | 25);
    let base = match number {
        120 | 121 => number - 100,
        24 => 8,
        25 => 21,
        100..=114 => number - 100,
        other => other,
    };
    let (date, time) = match base {
        0 => (Some(Named), Some(TimeForm::Short)),
        1 => (Some(Numbers([Month, Day, Year], "/")), None),
        2 => (Some(Numbers([Year, Month, Day], ".")), None),
        3 => (Some(Numbers([Day, Month, Year], "/")), None),
        4 => (Some(Numbers([Day, Month, Year], ".")), None),
        5 => (Some(Numbers([Day, Month, Year], "-")), None),
        6 => (Some(DayNamed), None),
        7 => (Some(NamedComma), None),
        8 => (None, Some(TimeForm::Seconds)),
        9 => (Some(Named), Some(TimeForm::LongAmPm)),
        10 => (Some(Numbers([Month, Day, Year], "-")), None),
        11 => (Some(Numbers([Year, Month, Day], "/")), None),
        12 => (Some(Numbers([Year, Month, Day], "")), None),
        13 => (Some(DayNamed), Some(TimeForm::ColonFraction)),
        14 => (None, Some(TimeForm::ColonFraction)),
        20 => (Some(Numbers([Year, Month, Day], "-")), Some(TimeForm::Seconds)),
        21 => (Some(Numbers([Year, Month, Day], "-")), Some(TimeForm::Fraction)),
        22 => (Some(Numbers([Month, Day, Year], "/")), Some(TimeForm::SecondsAmPm)),
        23 => (Some(Numbers([Year, Month, Day], "-")), None),
        126 | 127 => (Some(Numbers([Year, Month, Day], "-")), Some(TimeForm::IsoFraction)),
        _ => return None,
    };
    Some(Style { date, time, century, separator: if base >= 126 { "T" } else { " " }, utc: number == 127 })
}

/// A date or time value as CAST (no style) or CONVERT writes it.
///
/// # Errors
/// 281 for a style that is not one or says nothing of the type.
pub fn format_date_time(value: &Scalar, sql_type: &SqlType, style: Option<i32>) -> Result<String, SqlError> {
    let legacy = matches!(sql_type, SqlType::DateTime | SqlType::SmallDateTime);
    let number = style.unwrap_or(if legacy { 0 } else { 121 });
    let invalid = || message(281, &[&number, &sql_type.message_name()]);
    let style = style_of(number).ok_or_else(invalid)?;
    let mut at = Moment::of(value).ok_or_else(invalid)?;
    let has_offset = matches!(sql_type, SqlType::DateTimeOffset { .. });
    if let (true, Scalar::DateTimeOffset(utc, _)) = (style.utc && has_offset, value) {
        at = Moment::from_ticks(*utc);
    }
    let date = style.date.filter(|_| !matches!(sql_type, SqlType::Time { .. })).map(|form| write_date(form, &at, style.century));
    let time = style.time.filter(|_| *sql_type != SqlType::Date).map(|form| write_time(form, value, &at, sql_type));
    let mut text = match (date, time) {
        (Some(date), Some(time)) => format!("{date}{}{time}", style.separator),
        (Some(date), None) => date,
        (None, Some(time)) => time.trim_start().to_string(),
        (None, None) => return Err(invalid()),
    };
    if has_offset && style.time.is_some() {
        match (style.utc, style.separator) {
            (true, _) => text.push('Z'),
            (false, "T") => text.push_str(&offset_text(at.offset)),
            _ => text.push_str(&format!(" {}", offset_text(at.offset))),
        }
    }
    Ok(text)
}

fn write_date(form: DateForm, at: &Moment, century: bool) -> String {
    let (year, month, day) = at.civil();
    let year = if century { format!("{year:04}") } else { format!("{:02}", year % 100) };
    let name = &month_name(month)[..3];
    match form {
        DateForm::Named => format!("{name} {day:>2} {year}"),
        DateForm::DayNamed => format!("{day:02} {name} {year}"),
        DateForm::NamedComma => format!("{name} {day:02}, {year}"),
        DateForm::Numbers(order, separator) => order
            .map(|field| match field {
                Field::Year => year.clone(),
                Field::Month => format!("{month:02}"),
                Field::Day => format!("{day:02}"),
            })
            .join(separator),
    }
}

fn write_time(form: TimeForm, value: &Scalar, at: &Moment, sql_type: &SqlType) -> String {
    let (hour, minute, second, fraction) = at.clock();
    let (half, hour_12) = (if hour < 12 { "AM" } else { "PM" }, (hour + 11) % 12 + 1);
    // datetime has milliseconds after a colon where the others have their own digits after a point.
    let digits = match (value, sql_type) {
        (Scalar::DateTime(units), _) => format!("{:03}", datetime_milliseconds(*units)),
        (Scalar::SmallDateTime(_), _) => "000".to_string(),
        (_, sql_type) => format!("{fraction:07}")[..usize::from(sql_type.scale())].to_string(),
    };
    let legacy = matches!(value, Scalar::DateTime(_) | Scalar::SmallDateTime(_));
    let mark = |colon: bool| match (digits.is_empty(), colon && legacy) {
        (true, _) => "",
        (false, true) => ":",
        (false, false) => ".",
    };
    let exact = format!("{hour:02}:{minute:02}:{second:02}");
    match form {
        TimeForm::Short => format!("{hour_12:>2}:{minute:02}{half}"),
        TimeForm::LongAmPm => format!("{hour_12:>2}:{minute:02}:{second:02}{}{digits}{half}", mark(true)),
        TimeForm::SecondsAmPm => format!("{hour_12:>2}:{minute:02}:{second:02} {half}"),
        TimeForm::Seconds => exact,
        TimeForm::ColonFraction => format!("{exact}{}{digits}", mark(true)),
        TimeForm::IsoFraction if legacy && digits == "000" => exact,
        TimeForm::Fraction | TimeForm::IsoFraction => format!("{exact}{}{digits}", mark(false)),
    }
}
