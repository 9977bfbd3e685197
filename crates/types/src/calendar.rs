//! Dates and times of day as numbers: civil dates, the ranges of the types, and each type's value as a [`Moment`].
//!
//! ```text
//! days     0001-01-01 = 0 ... 9999-12-31 = 3652058 (proleptic Gregorian, as SQL Server has it)
//! ticks    100 ns within the day, 0..864_000_000_000
//! ```
//!
//! Every date and time type goes to a `Moment` exactly and comes from one by its own rounding ([`Moment::to_scalar`]):
//! datetime to the nearest 1/300 s, smalldatetime to the nearest minute, the others half up at their scale.

use crate::{Scalar, SqlType};

/// Ticks of 100 ns in a day.
pub const TICKS_PER_DAY: i64 = 864_000_000_000;
/// Ticks of 100 ns in a second.
pub const TICKS_PER_SECOND: i64 = 10_000_000;
/// Ticks of 100 ns in a minute.
pub const TICKS_PER_MINUTE: i64 = 600_000_000;
/// 1/300 s in a day: datetime's unit.
pub const DATETIME_UNITS_PER_DAY: i64 = 25_920_000;
/// 1900-01-01: day 0 of datetime and smalldatetime, the date of a time alone.
pub const DAY_1900: i32 = 693_595;
/// 1753-01-01: first day of datetime.
pub const DAY_1753: i32 = 639_905;
/// 2079-06-06: last day of smalldatetime.
pub const DAY_2079: i32 = 759_130;
/// 9999-12-31: the last day.
pub const DAY_MAX: i32 = 3_652_058;

/// Days from 0001-01-01 to a civil date; the date must exist.
pub fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    let before = year - 1;
    let leap = i32::from(month > 2 && is_leap(year));
    let of_months = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
    before * 365 + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) + of_months + leap + day as i32 - 1
}

/// Year, month and day of a day number.
pub fn civil_from_days(days: i32) -> (i32, u32, u32) {
    // Howard Hinnant's algorithm: eras of 400 years that begin on 0000-03-01, which is day -306 here.
    let shifted = days + 306;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    (year_of_era + era * 400 + i32::from(month <= 2), month, day)
}

/// Whether a year has a 29 February.
pub fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month.
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day number of a date, if there is such a date from year 1 to 9999.
pub fn checked_days(year: i32, month: u32, day: u32) -> Option<i32> {
    let exists = (1..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    exists.then(|| days_from_civil(year, month, day))
}

/// A day and a time of day, in local time, with the offset from UTC where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Days since 0001-01-01.
    pub days: i32,
    /// 100 ns since midnight.
    pub ticks: i64,
    /// Minutes that local time is ahead of UTC.
    pub offset: i16,
}

/// Why a moment is not a value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfRange;

impl Moment {
    /// Midnight of a day.
    pub const fn of_day(days: i32) -> Self {
        Self { days, ticks: 0, offset: 0 }
    }

    /// From 100 ns since 0001-01-01 in local time.
    pub fn from_ticks(total: i64) -> Self {
        Self { days: total.div_euclid(TICKS_PER_DAY) as i32, ticks: total.rem_euclid(TICKS_PER_DAY), offset: 0 }
    }

    /// 100 ns since 0001-01-01 in local time.
    pub fn total_ticks(&self) -> i64 {
        i64::from(self.days) * TICKS_PER_DAY + self.ticks
    }

    /// What a date or time value says; `None` for other scalars. A time is on 1900-01-01.
    pub fn of(value: &Scalar) -> Option<Self> {
        Some(match *value {
            Scalar::Date(days) => Self::of_day(days),
            Scalar::Time(ticks) => Self { days: DAY_1900, ticks, offset: 0 },
            Scalar::DateTime(units) => {
                let days = DAY_1900 + units.div_euclid(DATETIME_UNITS_PER_DAY) as i32;
                // A third of 100,000 ticks a unit, to the nearest tick.
                Self { days, ticks: (units.rem_euclid(DATETIME_UNITS_PER_DAY) * 200_000 + 3) / 6, offset: 0 }
            }
            Scalar::SmallDateTime(minutes) => {
                let days = DAY_1900 + minutes.div_euclid(1440) as i32;
                Self { days, ticks: minutes.rem_euclid(1440) * TICKS_PER_MINUTE, offset: 0 }
            }
            Scalar::DateTime2(total) => Self::from_ticks(total),
            Scalar::DateTimeOffset(utc, offset) => Self { offset, ..Self::from_ticks(utc + i64::from(offset) * TICKS_PER_MINUTE) },
            _ => return None,
        })
    }

    /// The value of a date or time type nearest to it.
    ///
    /// # Errors
    /// [`OutOfRange`] when the type does not reach so far.
    pub fn to_scalar(self, to: &SqlType) -> Result<Scalar, OutOfRange> {
        let in_range = |from: i32, until: i32, days: i32| if (from..=until).contains(&days) { Ok(()) } else { Err(OutOfRange) };
        Ok(match *to {
            SqlType::Date => {
                in_range(0, DAY_MAX, self.days)?;
                Scalar::Date(self.days)
            }
            SqlType::Time { scale } => Scalar::Time(round_ticks(self.ticks, scale) % TICKS_PER_DAY),
            SqlType::DateTime => {
                let units = (self.ticks * 3 + 50_000) / 100_000;
                let value = i64::from(self.days - DAY_1900) * DATETIME_UNITS_PER_DAY + units;
                in_range(DAY_1753, DAY_MAX, DAY_1900 + value.div_euclid(DATETIME_UNITS_PER_DAY) as i32)?;
                Scalar::DateTime(value)
            }
            SqlType::SmallDateTime => {
                let value = i64::from(self.days - DAY_1900) * 1440 + (self.ticks + TICKS_PER_MINUTE / 2) / TICKS_PER_MINUTE;
                in_range(DAY_1900, DAY_2079, DAY_1900 + value.div_euclid(1440) as i32)?;
                Scalar::SmallDateTime(value)
            }
            SqlType::DateTime2 { scale } => {
                let total = i64::from(self.days) * TICKS_PER_DAY + round_ticks(self.ticks, scale);
                in_range(0, DAY_MAX, total.div_euclid(TICKS_PER_DAY) as i32)?;
                Scalar::DateTime2(total)
            }
            SqlType::DateTimeOffset { scale } => {
                let local = i64::from(self.days) * TICKS_PER_DAY + round_ticks(self.ticks, scale);
                let utc = local - i64::from(self.offset) * TICKS_PER_MINUTE;
                in_range(0, DAY_MAX, local.div_euclid(TICKS_PER_DAY) as i32)?;
                in_range(0, DAY_MAX, utc.div_euclid(TICKS_PER_DAY) as i32)?;
                Scalar::DateTimeOffset(utc, self.offset)
            }
            _ => return Err(OutOfRange),
        })
    }

    /// Year, month, day.
    pub fn civil(&self) -> (i32, u32, u32) {
        civil_from_days(self.days)
    }

    /// Hour, minute, second, and 100 ns within the second.
    pub fn clock(&self) -> (u32, u32, u32, u32) {
        let seconds = self.ticks / TICKS_PER_SECOND;
        ((seconds / 3600) as u32, (seconds / 60 % 60) as u32, (seconds % 60) as u32, (self.ticks % TICKS_PER_SECOND) as u32)
    }
}

/// Ticks rounded half up to `scale` digits of a second; may come to a whole day.
pub fn round_ticks(ticks: i64, scale: u8) -> i64 {
    let unit = 10i64.pow(7 - u32::from(scale.min(7)));
    (ticks + unit / 2) / unit * unit
}

/// Milliseconds within the second as datetime shows them (.000, .003, .007).
pub fn datetime_milliseconds(units: i64) -> i64 {
    (units.rem_euclid(300) * 20 + 3) / 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_are_days() {
        for (date, days) in
            [((1, 1, 1), 0), ((1753, 1, 1), DAY_1753), ((1900, 1, 1), DAY_1900), ((2079, 6, 6), DAY_2079), ((9999, 12, 31), DAY_MAX)]
        {
            assert_eq!(days_from_civil(date.0, date.1, date.2), days);
            assert_eq!(civil_from_days(days), date);
        }
        for days in (0..DAY_MAX).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(checked_days(year, month, day), Some(days));
        }
        assert_eq!(checked_days(2023, 2, 29), None);
    }

    #[test]
    fn types_round_in_their_own_way() {
        let at = |ticks| Moment { days: DAY_1900, ticks, offset: 0 };
        assert_eq!(at(20_000).to_scalar(&SqlType::DateTime), Ok(Scalar::DateTime(1)));
        assert_eq!(at(15_000).to_scalar(&SqlType::DateTime), Ok(Scalar::DateTime(0)));
        assert_eq!(datetime_milliseconds(1), 3);
        assert_eq!(datetime_milliseconds(2), 7);
        assert_eq!(at(TICKS_PER_SECOND * 30).to_scalar(&SqlType::SmallDateTime), Ok(Scalar::SmallDateTime(1)));
        assert_eq!(at(TICKS_PER_DAY - 1).to_scalar(&SqlType::Time { scale: 0 }), Ok(Scalar::Time(0)));
        assert_eq!(Moment::of_day(DAY_1753 - 1).to_scalar(&SqlType::DateTime), Err(OutOfRange));
        for units in [0, 1, 2, 299, 25_919_999, -1] {
            let there = Moment::of(&Scalar::DateTime(units)).unwrap();
            assert_eq!(there.to_scalar(&SqlType::DateTime), Ok(Scalar::DateTime(units)));
        }
    }
}
