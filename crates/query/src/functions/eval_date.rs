//! Date and time functions. `types::datepart` and `types::calendar` do the arithmetic.

use crate::eval::{How, convert_scalar_by};
use crate::functions::call::Call;
use crate::functions::eval_text::or_null;
use thawdb_types::calendar::{Moment, TICKS_PER_DAY, TICKS_PER_MINUTE, TICKS_PER_SECOND, checked_days, days_in_month, round_ticks};
use thawdb_types::datepart::{self, DatePart};
use thawdb_types::error::message;
use thawdb_types::time_zone::TimeZone;
use thawdb_types::{Scalar, SqlError, SqlType};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

/// The part that the first argument names.
fn part(call: &Call<'_>) -> Result<DatePart> {
    let name = call.text(0).unwrap_or_default();
    DatePart::by_name(name).ok_or_else(|| message(155, &[&name, &call.name.to_ascii_lowercase()]))
}

/// This statement's moment, local or UTC, as the call's result type.
fn now(call: &Call<'_>, local: bool) -> Result {
    let minutes = call.session.local_offset_minutes();
    let utc = call.session.now_utc_ticks();
    let local = if local { utc + i64::from(minutes) * TICKS_PER_MINUTE } else { utc };
    let at = Moment { offset: minutes as i16, ..Moment::from_ticks(local) };
    at.to_scalar(call.result).map_err(|_| message(8115, &[&"expression", &call.result.message_name()]))
}

pub(super) fn local_now(call: &Call<'_>) -> Result {
    now(call, true)
}

pub(super) fn utc_now(call: &Call<'_>) -> Result {
    now(call, false)
}

pub(super) fn dateadd(call: &Call<'_>) -> Result {
    let number = or_null!(call.integer(1));
    if call.value(2).is_null() {
        return Ok(Scalar::Null);
    }
    datepart::dateadd(part(call)?, number, call.value(2), call.type_of(2))
}

/// A date as it is, text converted to datetimeoffset-like precision.
fn as_date(call: &Call<'_>, at: usize) -> Result<(Scalar, SqlType)> {
    let sql_type = *call.type_of(at);
    let value = call.value(at).clone();
    if value.is_null() || sql_type.is_date_time() {
        return Ok((value, sql_type));
    }
    let to = SqlType::DateTimeOffset { scale: 7 };
    let how = How { style: 0, attempt: false, date_order: call.session.date_order() };
    Ok((convert_scalar_by(value, &sql_type, &to, how)?, to))
}

pub(super) fn datediff(call: &Call<'_>) -> Result {
    let ((from, _), (to, _)) = (as_date(call, 1)?, as_date(call, 2)?);
    if from.is_null() || to.is_null() {
        return Ok(Scalar::Null);
    }
    datepart::datediff(part(call)?, &from, &to).map(Scalar::Int)
}

pub(super) fn datediff_big(call: &Call<'_>) -> Result {
    let ((from, _), (to, _)) = (as_date(call, 1)?, as_date(call, 2)?);
    if from.is_null() || to.is_null() {
        return Ok(Scalar::Null);
    }
    datepart::datediff_big(part(call)?, &from, &to).map(Scalar::BigInt)
}

pub(super) fn datepart(call: &Call<'_>) -> Result {
    let (value, sql_type) = as_date(call, 1)?;
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    datepart::datepart(part(call)?, &value, &sql_type, call.session.date_first()).map(Scalar::Int)
}

pub(super) fn datename(call: &Call<'_>) -> Result {
    let (value, sql_type) = as_date(call, 1)?;
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    datepart::datename(part(call)?, &value, &sql_type, call.session.date_first()).map(Scalar::Text)
}

fn single_part(call: &Call<'_>, part: DatePart) -> Result {
    let (value, sql_type) = as_date(call, 0)?;
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    datepart::datepart(part, &value, &sql_type, call.session.date_first()).map(Scalar::Int)
}

pub(super) fn year(call: &Call<'_>) -> Result {
    single_part(call, DatePart::Year)
}

pub(super) fn month(call: &Call<'_>) -> Result {
    single_part(call, DatePart::Month)
}

pub(super) fn day(call: &Call<'_>) -> Result {
    single_part(call, DatePart::Day)
}

pub(super) fn eomonth(call: &Call<'_>) -> Result {
    if call.value(0).is_null() {
        return Ok(Scalar::Null);
    }
    let months = if call.values.len() > 1 { or_null!(call.integer(1)) } else { 0 };
    let at = or_null!(Moment::of(call.value(0)));
    let moved = datepart::dateadd(DatePart::Month, months, &Scalar::Date(at.days), &SqlType::Date)?;
    let (year, month, _) = or_null!(Moment::of(&moved)).civil();
    Ok(checked_days(year, month, days_in_month(year, month)).map_or(Scalar::Null, Scalar::Date))
}

fn invalid(call: &Call<'_>) -> SqlError {
    message(289, &[&call.result.base_name()])
}

/// Integer arguments `from..to`; `None` if one is NULL.
fn integers<const N: usize>(call: &Call<'_>, from: usize) -> Option<[i64; N]> {
    let mut out = [0; N];
    for (at, value) in out.iter_mut().enumerate() {
        *value = call.integer(from + at)?;
    }
    Some(out)
}

fn days_of(call: &Call<'_>, [year, month, day]: [i64; 3]) -> Result<i32> {
    let narrow = |v: i64| u32::try_from(v).map_err(|_| invalid(call));
    let year = i32::try_from(year).map_err(|_| invalid(call))?;
    checked_days(year, narrow(month)?, narrow(day)?).ok_or_else(|| invalid(call))
}

/// Ticks of a time of day.
fn ticks_of(call: &Call<'_>, [hour, minute, second]: [i64; 3], fraction: i64, precision: i64) -> Result<i64> {
    let digits = u32::try_from(precision).ok().filter(|d| *d <= 7).ok_or_else(|| invalid(call))?;
    let sound = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    if !sound || !(0..10i64.pow(digits)).contains(&fraction) {
        return Err(invalid(call));
    }
    Ok((hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction * 10i64.pow(7 - digits))
}

fn from_moment(call: &Call<'_>, at: Moment) -> Result {
    at.to_scalar(call.result).map_err(|_| invalid(call))
}

pub(super) fn datefromparts(call: &Call<'_>) -> Result {
    Ok(Scalar::Date(days_of(call, or_null!(integers(call, 0)))?))
}

pub(super) fn datetimefromparts(call: &Call<'_>) -> Result {
    let (date, time) = (or_null!(integers(call, 0)), or_null!(integers(call, 3)));
    let milliseconds = or_null!(call.integer(6));
    from_moment(call, Moment { days: days_of(call, date)?, ticks: ticks_of(call, time, milliseconds, 3)?, offset: 0 })
}

pub(super) fn smalldatetimefromparts(call: &Call<'_>) -> Result {
    let (date, [hour, minute]) = (or_null!(integers(call, 0)), or_null!(integers(call, 3)));
    from_moment(call, Moment { days: days_of(call, date)?, ticks: ticks_of(call, [hour, minute, 0], 0, 0)?, offset: 0 })
}

pub(super) fn datetime2fromparts(call: &Call<'_>) -> Result {
    let (date, time) = (or_null!(integers(call, 0)), or_null!(integers(call, 3)));
    let [fraction, precision] = or_null!(integers(call, 6));
    from_moment(call, Moment { days: days_of(call, date)?, ticks: ticks_of(call, time, fraction, precision)?, offset: 0 })
}

pub(super) fn timefromparts(call: &Call<'_>) -> Result {
    let time = or_null!(integers(call, 0));
    let [fraction, precision] = or_null!(integers(call, 3));
    ticks_of(call, time, fraction, precision).map(Scalar::Time)
}

pub(super) fn datetimeoffsetfromparts(call: &Call<'_>) -> Result {
    let (date, time) = (or_null!(integers(call, 0)), or_null!(integers(call, 3)));
    let [fraction, hours, minutes, precision] = or_null!(integers(call, 6));
    if hours.abs() > 14 || minutes.abs() > 59 || hours * minutes < 0 {
        return Err(invalid(call));
    }
    let offset = (hours * 60 + minutes) as i16;
    from_moment(call, Moment { days: days_of(call, date)?, ticks: ticks_of(call, time, fraction, precision)?, offset })
}

pub(super) fn isdate(call: &Call<'_>) -> Result {
    let valid = match call.value(0) {
        Scalar::Null => false,
        // An empty text converts to datetime all the same.
        Scalar::Text(text) if text.trim().is_empty() => false,
        Scalar::Text(_) => {
            let how = How { style: 0, attempt: false, date_order: call.session.date_order() };
            convert_scalar_by(call.value(0).clone(), call.type_of(0), &SqlType::DateTime, how).is_ok()
        }
        _ => matches!(call.type_of(0), SqlType::DateTime | SqlType::SmallDateTime),
    };
    Ok(Scalar::Int(i32::from(valid)))
}

pub(super) fn datetrunc(call: &Call<'_>) -> Result {
    let at = or_null!(Moment::of(call.value(1)));
    let (year, month, _) = at.civil();
    let day_of = |year: i32, month: u32| checked_days(year, month, 1).unwrap_or(at.days);
    let weekday = |first: i32| (at.days - (first - 1)).rem_euclid(7);
    let cut = |unit: i64| Moment { ticks: at.ticks / unit * unit, ..at };
    let whole = |days: i32| Moment { days, ticks: 0, ..at };
    let part = part(call)?;
    part.check("datetrunc", call.type_of(1))?;
    let truncated = match part {
        DatePart::Year => whole(day_of(year, 1)),
        DatePart::Quarter => whole(day_of(year, (month - 1) / 3 * 3 + 1)),
        DatePart::Month => whole(day_of(year, month)),
        DatePart::Day | DatePart::DayOfYear => whole(at.days),
        DatePart::Week => whole(at.days - weekday(i32::from(call.session.date_first()))),
        DatePart::IsoWeek => whole(at.days - weekday(1)),
        DatePart::Hour => cut(3600 * TICKS_PER_SECOND),
        DatePart::Minute => cut(TICKS_PER_MINUTE),
        DatePart::Second => cut(TICKS_PER_SECOND),
        DatePart::Millisecond => cut(10_000),
        DatePart::Microsecond => cut(10),
        _ => return Err(message(9810, &[&part.name(), &"datetrunc", &call.type_of(1).base_name()])),
    };
    from_moment(call, truncated)
}

pub(super) fn date_bucket(call: &Call<'_>) -> Result {
    let (width, at) = (or_null!(call.integer(1)), or_null!(Moment::of(call.value(2))));
    let origin = if call.values.len() > 3 { or_null!(Moment::of(call.value(3))) } else { Moment::of_day(693_595) };
    if width <= 0 {
        return Err(message(9834, &[]));
    }
    let part = part(call)?;
    let months = |m: Moment| {
        let (year, month, _) = m.civil();
        i64::from(year) * 12 + i64::from(month) - 1
    };
    let unit = match part {
        DatePart::Week => 7 * TICKS_PER_DAY,
        DatePart::Day => TICKS_PER_DAY,
        DatePart::Hour => 3600 * TICKS_PER_SECOND,
        DatePart::Minute => TICKS_PER_MINUTE,
        DatePart::Second => TICKS_PER_SECOND,
        DatePart::Millisecond => 10_000,
        DatePart::Year | DatePart::Quarter | DatePart::Month => {
            let step = width
                * match part {
                    DatePart::Year => 12,
                    DatePart::Quarter => 3,
                    _ => 1,
                };
            let mut buckets = (months(at) - months(origin)).div_euclid(step);
            let moved = |n: i64| -> Result<Moment> {
                let value = datepart::dateadd(
                    DatePart::Month,
                    n * step,
                    &Scalar::DateTime2(origin.total_ticks()),
                    &SqlType::DateTime2 { scale: 7 },
                )?;
                Ok(Moment::of(&value).unwrap_or(origin))
            };
            if moved(buckets)?.total_ticks() > at.total_ticks() {
                buckets -= 1;
            }
            return from_moment(call, Moment { offset: at.offset, ..moved(buckets)? });
        }
        _ => return Err(message(9810, &[&part.name(), &"date_bucket", &call.type_of(2).base_name()])),
    };
    let step = unit.checked_mul(width).ok_or_else(|| message(517, &[&call.result.base_name()]))?;
    let buckets = (at.total_ticks() - origin.total_ticks()).div_euclid(step);
    from_moment(call, Moment { offset: at.offset, ..Moment::from_ticks(origin.total_ticks() + buckets * step) })
}

/// Minutes that a time zone argument says: a number, or `+hh:mm`.
fn zone_minutes(call: &Call<'_>, at: usize) -> Result<Option<i16>> {
    let invalid = || message(9812, &[&call.name.to_ascii_lowercase()]);
    let minutes = match call.value(at) {
        Scalar::Null => return Ok(None),
        Scalar::Text(text) => {
            let (sign, rest) = match text.as_bytes().first() {
                Some(b'+') => (1, &text[1..]),
                Some(b'-') => (-1, &text[1..]),
                _ => return Err(invalid()),
            };
            let (hours, minutes) = rest.split_once(':').ok_or_else(invalid)?;
            let number = |t: &str| t.parse::<i64>().ok().filter(|n| (0..60).contains(n)).ok_or_else(invalid);
            sign * (number(hours)? * 60 + number(minutes)?)
        }
        other => other.as_i64().ok_or_else(invalid)?,
    };
    i16::try_from(minutes).ok().filter(|m| m.abs() <= 840).map(Some).ok_or_else(invalid)
}

pub(super) fn switchoffset(call: &Call<'_>) -> Result {
    let (value, _) = as_date(call, 0)?;
    let minutes = or_null!(zone_minutes(call, 1)?);
    Ok(match value {
        Scalar::DateTimeOffset(utc, _) => Scalar::DateTimeOffset(utc, minutes),
        other => {
            let at = or_null!(Moment::of(&other));
            Scalar::DateTimeOffset(at.total_ticks(), minutes)
        }
    })
}

pub(super) fn todatetimeoffset(call: &Call<'_>) -> Result {
    let (value, _) = as_date(call, 0)?;
    let (at, minutes) = (or_null!(Moment::of(&value)), or_null!(zone_minutes(call, 1)?));
    let ticks = round_ticks(at.total_ticks(), call.result.scale());
    from_moment(call, Moment { offset: minutes, ..Moment::from_ticks(ticks) })
}

/// AT TIME ZONE: what has an offset is shown as clocks of the zone show it, what has none is what they showed.
pub(super) fn at_time_zone(call: &Call<'_>) -> Result {
    let name = or_null!(call.text(1));
    let at = or_null!(Moment::of(call.value(0)));
    let zone = TimeZone::named(name).ok_or_else(|| message(9820, &[&name]))?;
    let (utc, offset) = match *call.value(0) {
        Scalar::DateTimeOffset(utc, _) => (utc, zone.offset_at(utc)),
        _ => zone.of_local(round_ticks(at.total_ticks(), call.result.scale())),
    };
    let local = utc + i64::from(offset) * TICKS_PER_MINUTE;
    let shown = Moment { offset, ..Moment::from_ticks(local) };
    shown.to_scalar(call.result).map_err(|_| message(8115, &[&"expression", &call.result.message_name()]))
}
