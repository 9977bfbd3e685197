//! DATEPART, DATENAME, DATEADD, DATEDIFF and DATETRUNC's arithmetic.
//!
//! DATEDIFF counts the boundaries crossed, not the time passed: from 23:59 to 00:01 is one day. Its weeks begin on
//! Sunday whatever DATEFIRST says. DATEADD of months keeps the day or takes the month's last.
//! Messages: 517 (DATEADD overflows), 535 (DATEDIFF does not fit), 9810 (part not of this type).

use crate::calendar::{
    DAY_MAX, Moment, OutOfRange, TICKS_PER_DAY, TICKS_PER_MINUTE, TICKS_PER_SECOND, checked_days, datetime_milliseconds, days_from_civil,
    days_in_month,
};
use crate::{Scalar, SqlError, SqlType, message};

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the part of its name
pub enum DatePart {
    Year,
    Quarter,
    Month,
    DayOfYear,
    Day,
    Week,
    IsoWeek,
    WeekDay,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    TzOffset,
}

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// English name of a month from 1.
pub fn month_name(month: u32) -> &'static str {
    MONTHS[month as usize - 1]
}

impl DatePart {
    /// The part a name or abbreviation means, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" | "yy" | "yyyy" => Self::Year,
            "quarter" | "qq" | "q" => Self::Quarter,
            "month" | "mm" | "m" => Self::Month,
            "dayofyear" | "dy" | "y" => Self::DayOfYear,
            "day" | "dd" | "d" => Self::Day,
            "week" | "wk" | "ww" => Self::Week,
            "iso_week" | "isowk" | "isoww" => Self::IsoWeek,
            "weekday" | "dw" | "w" => Self::WeekDay,
            "hour" | "hh" => Self::Hour,
            "minute" | "mi" | "n" => Self::Minute,
            "second" | "ss" | "s" => Self::Second,
            "millisecond" | "ms" => Self::Millisecond,
            "microsecond" | "mcs" => Self::Microsecond,
            "nanosecond" | "ns" => Self::Nanosecond,
            "tzoffset" | "tz" => Self::TzOffset,
            _ => return None,
        })
    }

    /// Its full name, as messages have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Quarter => "quarter",
            Self::Month => "month",
            Self::DayOfYear => "dayofyear",
            Self::Day => "day",
            Self::Week => "week",
            Self::IsoWeek => "iso_week",
            Self::WeekDay => "weekday",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::Millisecond => "millisecond",
            Self::Microsecond => "microsecond",
            Self::Nanosecond => "nanosecond",
            Self::TzOffset => "tzoffset",
        }
    }

    fn is_of_time(self) -> bool {
        matches!(self, Self::Hour | Self::Minute | Self::Second | Self::Millisecond | Self::Microsecond | Self::Nanosecond)
    }

    /// 9810 when values of `sql_type` have no such part.
    ///
    /// # Errors
    /// 9810.
    pub fn check(self, function: &str, sql_type: &SqlType) -> Result<(), SqlError> {
        let wrong = match sql_type {
            SqlType::Date => self.is_of_time() || self == Self::TzOffset,
            SqlType::Time { .. } => !self.is_of_time(),
            SqlType::DateTimeOffset { .. } | SqlType::DateTime2 { .. } => false,
            _ => self == Self::TzOffset,
        };
        if wrong { Err(message(9810, &[&self.name(), &function, &sql_type.base_name()])) } else { Ok(()) }
    }
}

fn moment(value: &Scalar) -> Moment {
    Moment::of(value).expect("the binder gives date functions values of date types")
}

/// DATEPART of a value of `sql_type`, `date_first` being @@DATEFIRST (1 = Monday .. 7 = Sunday).
///
/// # Errors
/// 9810.
pub fn datepart(part: DatePart, value: &Scalar, sql_type: &SqlType, date_first: u8) -> Result<i32, SqlError> {
    part.check("datepart", sql_type)?;
    let at = moment(value);
    let (year, month, day) = at.civil();
    let (hour, minute, second, fraction) = at.clock();
    let day_of_year = at.days - days_from_civil(year, 1, 1) + 1;
    Ok(match part {
        DatePart::Year => year,
        DatePart::Quarter => (month as i32 + 2) / 3,
        DatePart::Month => month as i32,
        DatePart::DayOfYear => day_of_year,
        DatePart::Day => day as i32,
        DatePart::WeekDay => weekday(at.days, date_first),
        DatePart::Week => {
            let first = weekday(days_from_civil(year, 1, 1), date_first);
            (day_of_year + first - 2) / 7 + 1
        }
        DatePart::IsoWeek => iso_week(at.days),
        DatePart::Hour => hour as i32,
        DatePart::Minute => minute as i32,
        DatePart::Second => second as i32,
        DatePart::Millisecond => match value {
            Scalar::DateTime(units) => datetime_milliseconds(*units) as i32,
            _ => fraction as i32 / 10_000,
        },
        DatePart::Microsecond => match value {
            Scalar::DateTime(units) => datetime_milliseconds(*units) as i32 * 1000,
            _ => fraction as i32 / 10,
        },
        DatePart::Nanosecond => match value {
            Scalar::DateTime(units) => datetime_milliseconds(*units) as i32 * 1_000_000,
            _ => fraction as i32 * 100,
        },
        DatePart::TzOffset => i32::from(at.offset),
    })
}

/// Day of the week from 1, the week beginning on `date_first`.
fn weekday(days: i32, date_first: u8) -> i32 {
    // 0001-01-01 was a Monday.
    (days - i32::from(date_first) + 1).rem_euclid(7) + 1
}

fn iso_week(days: i32) -> i32 {
    let thursday = days - days.rem_euclid(7) + 3;
    let (year, _, _) = crate::calendar::civil_from_days(thursday);
    (thursday - days_from_civil(year, 1, 1)) / 7 + 1
}

/// DATENAME of a value of `sql_type`.
///
/// # Errors
/// 9810.
pub fn datename(part: DatePart, value: &Scalar, sql_type: &SqlType, date_first: u8) -> Result<String, SqlError> {
    let number = datepart(part, value, sql_type, date_first)?;
    Ok(match part {
        DatePart::Month => MONTHS[number as usize - 1].to_string(),
        DatePart::WeekDay => WEEKDAYS[moment(value).days.rem_euclid(7) as usize].to_string(),
        DatePart::TzOffset => offset_text(number as i16),
        _ => number.to_string(),
    })
}

/// `+hh:mm` of an offset in minutes.
pub fn offset_text(minutes: i16) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

/// DATEADD: `value` of `sql_type` moved by `number` parts.
///
/// # Errors
/// 517 when the result leaves the type's range, 9810.
pub fn dateadd(part: DatePart, number: i64, value: &Scalar, sql_type: &SqlType) -> Result<Scalar, SqlError> {
    let coarse = matches!(sql_type, SqlType::DateTime | SqlType::SmallDateTime);
    if coarse && matches!(part, DatePart::Microsecond | DatePart::Nanosecond) {
        return Err(message(9810, &[&part.name(), &"dateadd", &sql_type.base_name()]));
    }
    if !matches!(part, DatePart::TzOffset | DatePart::IsoWeek) {
        part.check("dateadd", sql_type)?;
    }
    if matches!(part, DatePart::TzOffset | DatePart::IsoWeek) {
        return Err(message(9806, &[&part.name(), &"dateadd"]));
    }
    let overflow = || message(517, &[&sql_type.base_name()]);
    let at = moment(value);
    let moved = match part {
        DatePart::Year => add_months(at, number.checked_mul(12).ok_or_else(overflow)?),
        DatePart::Quarter => add_months(at, number.checked_mul(3).ok_or_else(overflow)?),
        DatePart::Month => add_months(at, number),
        DatePart::Week => add_days(at, number.checked_mul(7).ok_or_else(overflow)?),
        DatePart::DayOfYear | DatePart::Day | DatePart::WeekDay => add_days(at, number),
        _ => return add_time(part, number, value, at, sql_type).ok_or_else(overflow),
    };
    let within = |at: Moment| at.to_scalar(sql_type).map_err(|OutOfRange| overflow());
    // datetime keeps its own third of a tick: the day moves, the time of day does not.
    match (value, moved) {
        (_, None) => Err(overflow()),
        (Scalar::DateTime(units), Some(to)) => {
            let unmoved = Moment { days: to.days, ..moment(&Scalar::DateTime(*units)) };
            within(unmoved)
        }
        (_, Some(to)) => within(to),
    }
}

fn add_months(at: Moment, months: i64) -> Option<Moment> {
    let (year, month, day) = at.civil();
    let total = i64::from(year) * 12 + i64::from(month) - 1;
    let total = total.checked_add(months)?;
    let (year, month) = (i32::try_from(total.div_euclid(12)).ok()?, total.rem_euclid(12) as u32 + 1);
    if !(1..=9999).contains(&year) {
        return None;
    }
    let day = day.min(days_in_month(year, month));
    checked_days(year, month, day).map(|days| Moment { days, ..at })
}

fn add_days(at: Moment, number: i64) -> Option<Moment> {
    let days = i64::from(at.days).checked_add(number).filter(|days| (0..=i64::from(DAY_MAX)).contains(days))?;
    Some(Moment { days: days as i32, ..at })
}

fn add_time(part: DatePart, number: i64, value: &Scalar, at: Moment, sql_type: &SqlType) -> Option<Scalar> {
    let ticks = match part {
        DatePart::Hour => number.checked_mul(TICKS_PER_MINUTE * 60)?,
        DatePart::Minute => number.checked_mul(TICKS_PER_MINUTE)?,
        DatePart::Second => number.checked_mul(TICKS_PER_SECOND)?,
        DatePart::Millisecond => number.checked_mul(10_000)?,
        DatePart::Microsecond => number.checked_mul(10)?,
        _ => (number + if number < 0 { -50 } else { 50 }) / 100,
    };
    if let Scalar::Time(now) = value {
        return Some(Scalar::Time((now + ticks % TICKS_PER_DAY).rem_euclid(TICKS_PER_DAY)));
    }
    if let Scalar::DateTime(units) = value {
        // In datetime's own units, to the nearest: adding a millisecond adds nothing, adding two adds one unit.
        let added = i128::from(ticks) * 3;
        let added = i64::try_from((added + if added < 0 { -50_000 } else { 50_000 }) / 100_000).ok()?;
        let moved = units.checked_add(added)?;
        Moment::of(&Scalar::DateTime(moved)).and_then(|m| m.to_scalar(sql_type).ok())?;
        return Some(Scalar::DateTime(moved));
    }
    let moved = Moment { offset: at.offset, ..Moment::from_ticks(at.total_ticks().checked_add(ticks)?) };
    moved.to_scalar(sql_type).ok()
}

/// DATEDIFF_BIG: boundaries of `part` between two values of date types (both UTC for datetimeoffset).
///
/// # Errors
/// 535, and 9810 for parts that cannot be counted.
pub fn datediff_big(part: DatePart, from: &Scalar, to: &Scalar) -> Result<i64, SqlError> {
    let utc = |value: &Scalar| match value {
        Scalar::DateTimeOffset(utc, _) => Moment::from_ticks(*utc),
        other => moment(other),
    };
    let (a, b) = (utc(from), utc(to));
    let months = |at: Moment| {
        let (year, month, _) = at.civil();
        i64::from(year) * 12 + i64::from(month) - 1
    };
    let count = |unit: i64| b.total_ticks().div_euclid(unit) - a.total_ticks().div_euclid(unit);
    Ok(match part {
        DatePart::Year => months(b).div_euclid(12) - months(a).div_euclid(12),
        DatePart::Quarter => months(b).div_euclid(3) - months(a).div_euclid(3),
        DatePart::Month => months(b) - months(a),
        DatePart::Week => i64::from((b.days + 1).div_euclid(7) - (a.days + 1).div_euclid(7)),
        DatePart::Day | DatePart::DayOfYear | DatePart::WeekDay => i64::from(b.days - a.days),
        DatePart::Hour => count(TICKS_PER_MINUTE * 60),
        DatePart::Minute => count(TICKS_PER_MINUTE),
        DatePart::Second => count(TICKS_PER_SECOND),
        DatePart::Millisecond => count(10_000),
        DatePart::Microsecond => count(10),
        DatePart::Nanosecond => count(1).checked_mul(100).ok_or_else(|| message(535, &[&"datediff_big", &"datediff_big"]))?,
        DatePart::IsoWeek | DatePart::TzOffset => return Err(message(9806, &[&part.name(), &"datediff"])),
    })
}

/// DATEDIFF: as [`datediff_big`], as an int.
///
/// # Errors
/// 535 when there are more boundaries than an int counts, 9806.
pub fn datediff(part: DatePart, from: &Scalar, to: &Scalar) -> Result<i32, SqlError> {
    let overflow = || message(535, &[&"datediff", &"datediff"]);
    let count = datediff_big(part, from, to).map_err(|e| if e.number == 535 { overflow() } else { e })?;
    i32::try_from(count).map_err(|_| overflow())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Scalar {
        let to = SqlType::DateTime2 { scale: 7 };
        crate::convert::convert(&Scalar::text(text), &SqlType::varchar(40), &to, 0).unwrap()
    }

    #[test]
    fn parts() {
        let (value, sql_type) = (at("2024-12-30 13:14:15.1234567"), SqlType::DateTime2 { scale: 7 });
        for (name, number) in [
            ("yy", 2024),
            ("qq", 4),
            ("mm", 12),
            ("dy", 365),
            ("dd", 30),
            ("wk", 53),
            ("isowk", 1),
            ("dw", 2),
            ("hh", 13),
            ("mi", 14),
            ("ss", 15),
            ("ms", 123),
            ("mcs", 123_456),
            ("ns", 123_456_700),
        ] {
            assert_eq!(datepart(DatePart::by_name(name).unwrap(), &value, &sql_type, 7), Ok(number), "{name}");
        }
        assert_eq!(datename(DatePart::WeekDay, &value, &sql_type, 7).unwrap(), "Monday");
        assert_eq!(datename(DatePart::Month, &value, &sql_type, 7).unwrap(), "December");
        assert_eq!(datepart(DatePart::Hour, &Scalar::Date(1), &SqlType::Date, 7).unwrap_err().number, 9810);
    }

    #[test]
    fn adding() {
        let sql_type = SqlType::DateTime2 { scale: 7 };
        let add = |part: &str, n, text| dateadd(DatePart::by_name(part).unwrap(), n, &at(text), &sql_type);
        assert_eq!(add("month", 1, "2024-01-31"), Ok(at("2024-02-29")));
        assert_eq!(add("year", -1, "2024-02-29"), Ok(at("2023-02-28")));
        assert_eq!(add("hour", 25, "2024-01-01"), Ok(at("2024-01-02 01:00")));
        assert_eq!(add("year", 9000, "2024-01-01").unwrap_err().number, 517);
        let ms = |n| dateadd(DatePart::Millisecond, n, &Scalar::DateTime(0), &SqlType::DateTime).unwrap();
        assert_eq!((ms(1), ms(2), ms(10)), (Scalar::DateTime(0), Scalar::DateTime(1), Scalar::DateTime(3)));
        let first = at("1753-01-01").clone();
        let first = Moment::of(&first).unwrap().to_scalar(&SqlType::DateTime).unwrap();
        assert_eq!(dateadd(DatePart::Day, -1, &first, &SqlType::DateTime).unwrap_err().number, 517);
    }

    #[test]
    fn boundaries() {
        let diff = |part: &str, a, b| datediff(DatePart::by_name(part).unwrap(), &at(a), &at(b));
        assert_eq!(diff("year", "2023-12-31 23:59:59", "2024-01-01"), Ok(1));
        assert_eq!(diff("day", "2024-01-01 23:59", "2024-01-02 00:01"), Ok(1));
        assert_eq!(diff("week", "2024-01-06", "2024-01-07"), Ok(1));
        assert_eq!(diff("month", "2024-03-01", "2024-01-31"), Ok(-2));
        assert_eq!(diff("second", "1900-01-01", "2024-01-01").unwrap_err().number, 535);
    }
}
