//! Time zones by the names that Windows, and so SQL Server, has for them; their rules are those of the IANA database.
//!
//! ```text
//! 'Central European Standard Time' ─ ZONES ─► Europe/Warsaw ─ jiff, the database in the binary ─► offsets and changes
//! ```
//!
//! 1. [`ZONES`] is sorted without regard to case, so that [`TimeZone::named`] halves its way (test), and every name of it has
//!    rules (test). The pairs are CLDR's `windowsZones`, of the territory 001.
//! 2. A local time that a change of the clock leaves out takes the offset before the change, and so lies behind the gap as far as
//!    it was in it; one that comes twice takes the offset before the change: as AT TIME ZONE documents both.
//!
//! Locks: none; rules are read once a zone and process. Failure: none; an instant beyond what calendars hold takes the nearest
//! offset there is.
//!
//! It does not know the registry's years: where Windows takes its oldest rule for all years before, this has the history.

use crate::calendar::{Moment, TICKS_PER_MINUTE, TICKS_PER_SECOND};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZoneDatabase;
use std::sync::OnceLock;

/// Windows' name and IANA's.
const ZONES: &[(&str, &str)] = &[
    ("Afghanistan Standard Time", "Asia/Kabul"),
    ("Alaskan Standard Time", "America/Anchorage"),
    ("Alberta Standard Time", "America/Edmonton"),
    ("Aleutian Standard Time", "America/Adak"),
    ("Altai Standard Time", "Asia/Barnaul"),
    ("Arab Standard Time", "Asia/Riyadh"),
    ("Arabian Standard Time", "Asia/Dubai"),
    ("Arabic Standard Time", "Asia/Baghdad"),
    ("Argentina Standard Time", "America/Buenos_Aires"),
    ("Astrakhan Standard Time", "Europe/Astrakhan"),
    ("Atlantic Standard Time", "America/Halifax"),
    ("AUS Central Standard Time", "Australia/Darwin"),
    ("Aus Central W. Standard Time", "Australia/Eucla"),
    ("AUS Eastern Standard Time", "Australia/Sydney"),
    ("Azerbaijan Standard Time", "Asia/Baku"),
    ("Azores Standard Time", "Atlantic/Azores"),
    ("Bahia Standard Time", "America/Bahia"),
    ("Bangladesh Standard Time", "Asia/Dhaka"),
    ("Belarus Standard Time", "Europe/Minsk"),
    ("Bougainville Standard Time", "Pacific/Bougainville"),
    ("British Columbia Standard Time", "America/Vancouver"),
    ("Canada Central Standard Time", "America/Regina"),
    ("Cape Verde Standard Time", "Atlantic/Cape_Verde"),
    ("Caucasus Standard Time", "Asia/Yerevan"),
    ("Cen. Australia Standard Time", "Australia/Adelaide"),
    ("Central America Standard Time", "America/Guatemala"),
    ("Central Asia Standard Time", "Asia/Bishkek"),
    ("Central Brazilian Standard Time", "America/Cuiaba"),
    ("Central Europe Standard Time", "Europe/Budapest"),
    ("Central European Standard Time", "Europe/Warsaw"),
    ("Central Pacific Standard Time", "Pacific/Guadalcanal"),
    ("Central Standard Time", "America/Chicago"),
    ("Central Standard Time (Mexico)", "America/Mexico_City"),
    ("Chatham Islands Standard Time", "Pacific/Chatham"),
    ("China Standard Time", "Asia/Shanghai"),
    ("Cuba Standard Time", "America/Havana"),
    ("Dateline Standard Time", "Etc/GMT+12"),
    ("E. Africa Standard Time", "Africa/Nairobi"),
    ("E. Australia Standard Time", "Australia/Brisbane"),
    ("E. Europe Standard Time", "Europe/Chisinau"),
    ("E. South America Standard Time", "America/Sao_Paulo"),
    ("Easter Island Standard Time", "Pacific/Easter"),
    ("Eastern Standard Time", "America/New_York"),
    ("Eastern Standard Time (Mexico)", "America/Cancun"),
    ("Egypt Standard Time", "Africa/Cairo"),
    ("Ekaterinburg Standard Time", "Asia/Yekaterinburg"),
    ("Fiji Standard Time", "Pacific/Fiji"),
    ("FLE Standard Time", "Europe/Kiev"),
    ("Georgian Standard Time", "Asia/Tbilisi"),
    ("GMT Standard Time", "Europe/London"),
    ("Greenland Standard Time", "America/Godthab"),
    ("Greenwich Standard Time", "Atlantic/Reykjavik"),
    ("GTB Standard Time", "Europe/Bucharest"),
    ("Haiti Standard Time", "America/Port-au-Prince"),
    ("Hawaiian Standard Time", "Pacific/Honolulu"),
    ("India Standard Time", "Asia/Calcutta"),
    ("Iran Standard Time", "Asia/Tehran"),
    ("Israel Standard Time", "Asia/Jerusalem"),
    ("Jordan Standard Time", "Asia/Amman"),
    ("Kaliningrad Standard Time", "Europe/Kaliningrad"),
    ("Korea Standard Time", "Asia/Seoul"),
    ("Libya Standard Time", "Africa/Tripoli"),
    ("Line Islands Standard Time", "Pacific/Kiritimati"),
    ("Lord Howe Standard Time", "Australia/Lord_Howe"),
    ("Magadan Standard Time", "Asia/Magadan"),
    ("Magallanes Standard Time", "America/Punta_Arenas"),
    ("Manitoba Standard Time", "America/Winnipeg"),
    ("Marquesas Standard Time", "Pacific/Marquesas"),
    ("Mauritius Standard Time", "Indian/Mauritius"),
    ("Middle East Standard Time", "Asia/Beirut"),
    ("Montevideo Standard Time", "America/Montevideo"),
    ("Morocco Standard Time", "Africa/Casablanca"),
    ("Mountain Standard Time", "America/Denver"),
    ("Mountain Standard Time (Mexico)", "America/Mazatlan"),
    ("Myanmar Standard Time", "Asia/Rangoon"),
    ("N. Central Asia Standard Time", "Asia/Novosibirsk"),
    ("Namibia Standard Time", "Africa/Windhoek"),
    ("Nepal Standard Time", "Asia/Katmandu"),
    ("New Zealand Standard Time", "Pacific/Auckland"),
    ("Newfoundland Standard Time", "America/St_Johns"),
    ("Norfolk Standard Time", "Pacific/Norfolk"),
    ("North Asia East Standard Time", "Asia/Irkutsk"),
    ("North Asia Standard Time", "Asia/Krasnoyarsk"),
    ("North Korea Standard Time", "Asia/Pyongyang"),
    ("Omsk Standard Time", "Asia/Omsk"),
    ("Pacific SA Standard Time", "America/Santiago"),
    ("Pacific Standard Time", "America/Los_Angeles"),
    ("Pacific Standard Time (Mexico)", "America/Tijuana"),
    ("Pakistan Standard Time", "Asia/Karachi"),
    ("Paraguay Standard Time", "America/Asuncion"),
    ("Qyzylorda Standard Time", "Asia/Qyzylorda"),
    ("Romance Standard Time", "Europe/Paris"),
    ("Russia Time Zone 10", "Asia/Srednekolymsk"),
    ("Russia Time Zone 11", "Asia/Kamchatka"),
    ("Russia Time Zone 3", "Europe/Samara"),
    ("Russian Standard Time", "Europe/Moscow"),
    ("SA Eastern Standard Time", "America/Cayenne"),
    ("SA Pacific Standard Time", "America/Bogota"),
    ("SA Western Standard Time", "America/La_Paz"),
    ("Saint Pierre Standard Time", "America/Miquelon"),
    ("Sakhalin Standard Time", "Asia/Sakhalin"),
    ("Samoa Standard Time", "Pacific/Apia"),
    ("Sao Tome Standard Time", "Africa/Sao_Tome"),
    ("Saratov Standard Time", "Europe/Saratov"),
    ("SE Asia Standard Time", "Asia/Bangkok"),
    ("Singapore Standard Time", "Asia/Singapore"),
    ("South Africa Standard Time", "Africa/Johannesburg"),
    ("South Sudan Standard Time", "Africa/Juba"),
    ("Sri Lanka Standard Time", "Asia/Colombo"),
    ("Sudan Standard Time", "Africa/Khartoum"),
    ("Syria Standard Time", "Asia/Damascus"),
    ("Taipei Standard Time", "Asia/Taipei"),
    ("Tasmania Standard Time", "Australia/Hobart"),
    ("Tocantins Standard Time", "America/Araguaina"),
    ("Tokyo Standard Time", "Asia/Tokyo"),
    ("Tomsk Standard Time", "Asia/Tomsk"),
    ("Tonga Standard Time", "Pacific/Tongatapu"),
    ("Transbaikal Standard Time", "Asia/Chita"),
    ("Turkey Standard Time", "Europe/Istanbul"),
    ("Turks And Caicos Standard Time", "America/Grand_Turk"),
    ("Ulaanbaatar Standard Time", "Asia/Ulaanbaatar"),
    ("US Eastern Standard Time", "America/Indianapolis"),
    ("US Mountain Standard Time", "America/Phoenix"),
    ("UTC", "Etc/UTC"),
    ("UTC+12", "Etc/GMT-12"),
    ("UTC+13", "Etc/GMT-13"),
    ("UTC-02", "Etc/GMT+2"),
    ("UTC-08", "Etc/GMT+8"),
    ("UTC-09", "Etc/GMT+9"),
    ("UTC-11", "Etc/GMT+11"),
    ("Venezuela Standard Time", "America/Caracas"),
    ("Vladivostok Standard Time", "Asia/Vladivostok"),
    ("Volgograd Standard Time", "Europe/Volgograd"),
    ("W. Australia Standard Time", "Australia/Perth"),
    ("W. Central Africa Standard Time", "Africa/Lagos"),
    ("W. Europe Standard Time", "Europe/Berlin"),
    ("W. Mongolia Standard Time", "Asia/Hovd"),
    ("West Asia Standard Time", "Asia/Tashkent"),
    ("West Bank Standard Time", "Asia/Hebron"),
    ("West Pacific Standard Time", "Pacific/Port_Moresby"),
    ("Yakutsk Standard Time", "Asia/Yakutsk"),
    ("Yukon Standard Time", "America/Whitehorse"),
];

/// What has been read of each.
static RULES: [OnceLock<jiff::tz::TimeZone>; ZONES.len()] = [const { OnceLock::new() }; ZONES.len()];

/// Ticks of 1970-01-01.
const UNIX_EPOCH: i64 = 719_162 * 86_400 * TICKS_PER_SECOND;

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeZone(usize);

impl TimeZone {
    /// The zone of a name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        let upper = name.to_ascii_uppercase();
        ZONES.binary_search_by(|(known, _)| known.to_ascii_uppercase().cmp(&upper)).ok().map(Self)
    }

    /// Every zone, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ZONES.len()).map(Self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        ZONES[self.0].0
    }

    fn rules(self) -> &'static jiff::tz::TimeZone {
        let read = || TimeZoneDatabase::bundled().get(ZONES[self.0].1).unwrap_or(jiff::tz::TimeZone::UTC);
        RULES[self.0].get_or_init(read)
    }

    /// Minutes its clocks are ahead of UTC at a moment of UTC, 100 ns since 0001-01-01.
    pub fn offset_at(self, utc_ticks: i64) -> i16 {
        minutes(self.rules().to_offset(instant(utc_ticks)))
    }

    /// Whether daylight saving is in force at a moment of UTC.
    pub fn is_dst_at(self, utc_ticks: i64) -> bool {
        self.rules().to_offset_info(instant(utc_ticks)).dst().is_dst()
    }

    /// Of a time that its clocks show: that moment in UTC, and minutes ahead of it.
    pub fn of_local(self, local_ticks: i64) -> (i64, i16) {
        let rules = self.rules();
        // Whole seconds are what rules are made of; the rest is added again.
        let seconds = local_ticks.div_euclid(TICKS_PER_SECOND);
        let ambiguous = civil(local_ticks).map(|local| rules.to_ambiguous_timestamp(local).compatible());
        let utc = match ambiguous {
            Some(Ok(found)) => found.as_second(),
            _ => (seconds * TICKS_PER_SECOND - UNIX_EPOCH) / TICKS_PER_SECOND,
        };
        let at = utc * TICKS_PER_SECOND + UNIX_EPOCH + local_ticks.rem_euclid(TICKS_PER_SECOND);
        let offset = self.offset_at(at);
        // Offsets of before standard time had seconds, which datetimeoffset has not: the clock stays as it was shown.
        let exact = rules.to_offset(instant(at)).seconds();
        (at + (i64::from(exact) - i64::from(offset) * 60) * TICKS_PER_SECOND, offset)
    }
}

fn instant(utc_ticks: i64) -> Timestamp {
    let seconds = (utc_ticks - UNIX_EPOCH).div_euclid(TICKS_PER_SECOND);
    Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

fn civil(local_ticks: i64) -> Option<DateTime> {
    let at = Moment::from_ticks(local_ticks);
    let (year, month, day) = at.civil();
    let minutes = at.ticks / TICKS_PER_MINUTE;
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let part = |value: i64| i8::try_from(value).ok();
    let second = at.ticks % TICKS_PER_MINUTE / TICKS_PER_SECOND;
    let time = Time::new(part(minutes / 60)?, part(minutes % 60)?, part(second)?, 0).ok()?;
    Some(DateTime::from_parts(date, time))
}

fn minutes(offset: jiff::tz::Offset) -> i16 {
    i16::try_from((offset.seconds() + 30).div_euclid(60)).expect("an offset is below a day")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::checked_days;

    fn ticks(year: i32, month: u32, day: u32, hour: i64, minute: i64) -> i64 {
        let days = checked_days(year, month, day).expect("a date");
        Moment { days, ticks: (hour * 60 + minute) * TICKS_PER_MINUTE, offset: 0 }.total_ticks()
    }

    #[test]
    fn names_are_sorted_and_have_rules() {
        for pair in ZONES.windows(2) {
            assert!(pair[0].0.to_ascii_uppercase() < pair[1].0.to_ascii_uppercase(), "{} before {}", pair[0].0, pair[1].0);
        }
        for (windows, iana) in ZONES {
            assert!(TimeZoneDatabase::bundled().get(iana).is_ok(), "{windows}: {iana}");
            assert_eq!(TimeZone::named(&windows.to_lowercase()).map(TimeZone::name), Some(*windows));
        }
        assert_eq!(TimeZone::named("Europe/Berlin"), None);
    }

    #[test]
    fn gaps_and_overlaps_are_as_documented() {
        let zone = TimeZone::named("Central European Standard Time").expect("known");
        let local = |utc_and_offset: (i64, i16)| utc_and_offset.0 + i64::from(utc_and_offset.1) * TICKS_PER_MINUTE;
        for (asked, shown, offset) in [
            (ticks(2022, 3, 27, 1, 1), ticks(2022, 3, 27, 1, 1), 60),
            (ticks(2022, 3, 27, 2, 1), ticks(2022, 3, 27, 3, 1), 120),
            (ticks(2022, 3, 27, 3, 1), ticks(2022, 3, 27, 3, 1), 120),
            (ticks(2022, 10, 30, 1, 1), ticks(2022, 10, 30, 1, 1), 120),
            (ticks(2022, 10, 30, 2, 0), ticks(2022, 10, 30, 2, 0), 120),
            (ticks(2022, 10, 30, 3, 1), ticks(2022, 10, 30, 3, 1), 60),
        ] {
            let found = zone.of_local(asked);
            assert_eq!((local(found), found.1), (shown, offset));
        }
    }

    #[test]
    fn the_ends_of_the_calendar_have_an_offset() {
        for zone in TimeZone::all() {
            for at in [0, ticks(9999, 12, 31, 23, 59), ticks(1850, 1, 1, 0, 0)] {
                let (utc, offset) = zone.of_local(at);
                assert!(offset.abs() <= 14 * 60 + 30, "{}", zone.name());
                assert!((utc - at).abs() <= 16 * 60 * TICKS_PER_MINUTE, "{}", zone.name());
                let _ = (zone.offset_at(at), zone.is_dst_at(at));
            }
        }
    }
}
