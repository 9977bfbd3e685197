//! Text to dates and times.
//!
//! The text is cut into numbers, words and marks. What has colons (or AM, PM) is the time of day, what follows it with a
//! sign or `Z` is the offset, and the rest is the date: one number (`20240131`, `240131`, `2024`), a month's name with
//! numbers, or three numbers whose order is the year's place, then the style's or DATEFORMAT's.
//!
//! A date left out is 1900-01-01, a time left out is midnight. Under `ymd` texts (`2024-01-31`) the newer types always
//! read year, month, day; datetime and smalldatetime read year, day, month when DATEFORMAT begins with the day.
//!
//! Messages: 241 (not a date; for smalldatetime 295), 242 (no such day for datetime, or out of its range).

use super::ConvertOptions;
use crate::calendar::{DAY_1900, Moment, OutOfRange, TICKS_PER_DAY, TICKS_PER_MINUTE, TICKS_PER_SECOND, checked_days};
use crate::{Scalar, SqlError, SqlType, message};

/// SET DATEFORMAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // each variant is the order of its letters
pub enum DateOrder {
    #[default]
    Mdy,
    Dmy,
    Ymd,
    Ydm,
    Myd,
    Dym,
}

impl DateOrder {
    /// The order a name means, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "mdy" => Self::Mdy,
            "dmy" => Self::Dmy,
            "ymd" => Self::Ymd,
            "ydm" => Self::Ydm,
            "myd" => Self::Myd,
            "dym" => Self::Dym,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mdy => "mdy",
            Self::Dmy => "dmy",
            Self::Ymd => "ymd",
            Self::Ydm => "ydm",
            Self::Myd => "myd",
            Self::Dym => "dym",
        }
    }

    fn of_style(style: Option<i32>) -> Option<Self> {
        Some(match style? {
            1 | 7 | 10 | 22 | 101 | 107 | 110 => Self::Mdy,
            3..=6 | 13 | 103..=106 | 113 => Self::Dmy,
            2 | 11 | 12 | 102 | 111 | 112 | 20 | 21 | 23 | 25 | 120 | 121 | 126 | 127 => Self::Ymd,
            _ => return None,
        })
    }
}

/// Why a text is no date.
enum Refusal {
    /// It cannot be read.
    Syntax,
    /// It can be read and there is no such day or time.
    Range,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    /// Its text, all digits.
    Number(&'a str),
    /// Letters.
    Word(&'a str),
    Mark(char),
    Blank,
}

/// The value of a date or time type that `text` says.
pub(super) fn parse(text: &str, from: &SqlType, to: &SqlType, options: &ConvertOptions) -> Result<Scalar, SqlError> {
    let legacy = matches!(to, SqlType::DateTime | SqlType::SmallDateTime);
    let refuse = |refusal| match refusal {
        Refusal::Range if legacy => message(242, &[&from.message_name(), &to.message_name()]),
        _ if *to == SqlType::SmallDateTime => message(295, &[]),
        _ => message(241, &[]),
    };
    let reader = Reader { options, legacy };
    let (at, has_offset) = reader.read(text.trim()).map_err(refuse)?;
    // Without an offset of its own a text for datetimeoffset is at +00:00; for the others the offset only moves nothing.
    let at = if has_offset { at } else { Moment { offset: 0, ..at } };
    at.to_scalar(to).map_err(|OutOfRange| refuse(Refusal::Range))
}

struct Reader<'a> {
    options: &'a ConvertOptions,
    legacy: bool,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut list = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = |inside: fn(char) -> bool| rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (token, length) = if first.is_ascii_digit() {
            let length = taken(|c| c.is_ascii_digit());
            (Token::Number(&rest[..length]), length)
        } else if first.is_alphabetic() {
            let length = taken(char::is_alphabetic);
            (Token::Word(&rest[..length]), length)
        } else if first.is_whitespace() {
            (Token::Blank, taken(char::is_whitespace))
        } else {
            (Token::Mark(first), first.len_utf8())
        };
        list.push(token);
        rest = &rest[length..];
    }
    list
}

impl Reader<'_> {
    fn read(&self, text: &str) -> Result<(Moment, bool), Refusal> {
        let mut list = tokens(text);
        let mut is_iso = false;
        // T between a date and a time is a blank.
        for at in 1..list.len().saturating_sub(1) {
            let is_t = matches!(list[at], Token::Word(w) if w.eq_ignore_ascii_case("T"));
            if is_t && matches!((list[at - 1], list[at + 1]), (Token::Number(_), Token::Number(_))) {
                list[at] = Token::Blank;
                is_iso = true;
            }
        }
        let (offset, clock_end) = self.offset(&list)?;
        list.truncate(clock_end);
        let (ticks, date) = self.clock(&list)?;
        // yyyy-mm-ddThh:mi:ss is read so whatever SET DATEFORMAT says.
        let iso = Reader { options: &ConvertOptions { date_order: DateOrder::Ymd, ..*self.options }, legacy: self.legacy };
        let days = if is_iso { iso.date(&date)? } else { self.date(&date)? };
        // datetime takes the Z of ISO 8601, and no other offset.
        let ends_with_z = text.ends_with(['z', 'Z']);
        if self.legacy && offset.is_some() && !ends_with_z {
            return Err(Refusal::Syntax);
        }
        Ok((Moment { days, ticks, offset: offset.unwrap_or(0) }, offset.is_some()))
    }

    /// The offset at the end, and the number of tokens before it.
    fn offset(&self, list: &[Token<'_>]) -> Result<(Option<i16>, usize), Refusal> {
        let colon = list.iter().position(|t| *t == Token::Mark(':'));
        if let (Some(Token::Word(z)), Some(_)) = (list.last(), colon)
            && z.eq_ignore_ascii_case("z")
        {
            return Ok((Some(0), list.len() - 1));
        }
        if let [before @ .., Token::Mark(sign @ ('+' | '-')), Token::Number(hours), Token::Mark(':'), Token::Number(minutes)] = list
            && before.contains(&Token::Mark(':'))
        {
            let (hours, minutes) = (small(hours)?, small(minutes)?);
            let total = hours * 60 + minutes;
            if minutes > 59 || total > 14 * 60 {
                return Err(Refusal::Syntax);
            }
            return Ok((Some(if *sign == '-' { -(total as i16) } else { total as i16 }), before.len()));
        }
        Ok((None, list.len()))
    }

    /// The time of day, and the tokens that are not of it.
    fn clock<'t>(&self, list: &[Token<'t>]) -> Result<(i64, Vec<Token<'t>>), Refusal> {
        let is_half = |token: &Token<'_>| matches!(token, Token::Word(w) if w.eq_ignore_ascii_case("am") || w.eq_ignore_ascii_case("pm"));
        let half = list.iter().position(is_half);
        let colon = list.iter().position(|t| *t == Token::Mark(':'));
        let start = match (colon, half) {
            (Some(at), _) => at.checked_sub(1).ok_or(Refusal::Syntax)?,
            (None, Some(at)) => list[..at].iter().rposition(|t| matches!(t, Token::Number(_))).ok_or(Refusal::Syntax)?,
            (None, None) => return Ok((0, list.to_vec())),
        };
        let Token::Number(hour) = list[start] else { return Err(Refusal::Syntax) };
        let mut numbers = [small(hour)?, 0, 0];
        let (mut at, mut filled, mut fraction) = (start + 1, 1, 0);
        while let (Some(Token::Mark(mark)), Some(Token::Number(digits))) = (list.get(at), list.get(at + 1)) {
            match mark {
                ':' if filled < 3 => {
                    numbers[filled] = small(digits)?;
                    filled += 1;
                }
                '.' if filled == 3 => {
                    fraction = self.fraction(digits)?;
                    filled += 1;
                }
                ':' if filled == 3 => {
                    fraction = i64::from(small(digits)?) * 10_000;
                    filled += 1;
                }
                _ => break,
            }
            at += 2;
        }
        let [mut hour, minute, second] = numbers;
        let after = at + usize::from(list.get(at) == Some(&Token::Blank));
        if let Some(Token::Word(word)) = list.get(after).filter(|t| is_half(t)) {
            if hour > 12 || hour == 0 && word.eq_ignore_ascii_case("pm") {
                return Err(Refusal::Syntax);
            }
            hour = hour % 12 + if word.eq_ignore_ascii_case("pm") { 12 } else { 0 };
            at = after + 1;
        }
        if hour > 23 || minute > 59 || second > 59 {
            return Err(Refusal::Range);
        }
        let ticks = i64::from(hour) * 60 * TICKS_PER_MINUTE + i64::from(minute) * TICKS_PER_MINUTE;
        let ticks = ticks + i64::from(second) * TICKS_PER_SECOND + fraction;
        debug_assert!(ticks < TICKS_PER_DAY);
        Ok((ticks, list[..start].iter().chain(&list[at..]).copied().collect()))
    }

    /// 100 ns of the digits after the point.
    fn fraction(&self, digits: &str) -> Result<i64, Refusal> {
        let most = if self.legacy { 3 } else { 7 };
        if digits.len() > most {
            return Err(Refusal::Syntax);
        }
        let value: i64 = digits.parse().map_err(|_| Refusal::Syntax)?;
        Ok(value * 10i64.pow(7 - digits.len() as u32))
    }

    fn date(&self, list: &[Token<'_>]) -> Result<i32, Refusal> {
        let is_separator = |t: &&Token<'_>| !matches!(t, Token::Blank | Token::Mark(','));
        let list: Vec<Token<'_>> = list.iter().filter(is_separator).copied().collect();
        let words: Vec<&str> = list.iter().filter_map(|t| if let Token::Word(w) = t { Some(*w) } else { None }).collect();
        let numbers: Vec<&str> = list.iter().filter_map(|t| if let Token::Number(n) = t { Some(*n) } else { None }).collect();
        let day = match (words.as_slice(), numbers.as_slice()) {
            ([], []) if list.is_empty() => return Ok(DAY_1900),
            ([], [one]) if list.len() == 1 => self.one_number(one)?,
            ([], [a, b, c]) if three_numbers(&list) => self.three_numbers([a, b, c])?,
            ([word], numbers) => self.named(word, numbers)?,
            _ => return Err(Refusal::Syntax),
        };
        checked_days(day.0, day.1, day.2).ok_or(Refusal::Range)
    }

    fn one_number(&self, digits: &str) -> Result<(i32, u32, u32), Refusal> {
        let part = |from: usize, to: usize| small(&digits[from..to]);
        match digits.len() {
            8 => Ok((part(0, 4)? as i32, part(4, 6)?, part(6, 8)?)),
            6 => Ok((self.year(&digits[..2])?, part(2, 4)?, part(4, 6)?)),
            4 => Ok((part(0, 4)? as i32, 1, 1)),
            _ => Err(Refusal::Syntax),
        }
    }

    fn three_numbers(&self, [a, b, c]: [&str; 3]) -> Result<(i32, u32, u32), Refusal> {
        let configured = DateOrder::of_style(self.options.style).unwrap_or(self.options.date_order);
        let day_first = matches!(configured, DateOrder::Dmy | DateOrder::Dym | DateOrder::Ydm);
        let order = match (a.len(), b.len(), c.len()) {
            (4, ..) if self.legacy && day_first => DateOrder::Ydm,
            (4, ..) => DateOrder::Ymd,
            (_, 4, _) if day_first => DateOrder::Dym,
            (_, 4, _) => DateOrder::Myd,
            (_, _, 4) if day_first => DateOrder::Dmy,
            (_, _, 4) => DateOrder::Mdy,
            _ => configured,
        };
        let (year, month, day) = match order {
            DateOrder::Mdy => (c, a, b),
            DateOrder::Dmy => (c, b, a),
            DateOrder::Ymd => (a, b, c),
            DateOrder::Ydm => (a, c, b),
            DateOrder::Myd => (b, a, c),
            DateOrder::Dym => (b, c, a),
        };
        if month.len() > 2 || day.len() > 2 {
            return Err(Refusal::Syntax);
        }
        Ok((self.year(year)?, small(month)?, small(day)?))
    }

    /// A month's name with a day and a year, or a year alone.
    fn named(&self, word: &str, numbers: &[&str]) -> Result<(i32, u32, u32), Refusal> {
        let month = (1..=12).find(|m| {
            let name = crate::datepart::month_name(*m);
            word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3])
        });
        let month = month.ok_or(Refusal::Syntax)?;
        match *numbers {
            [year] if year.len() == 4 => Ok((self.year(year)?, month, 1)),
            [year, day] if year.len() == 4 => Ok((self.year(year)?, month, small(day)?)),
            [day, year] => Ok((self.year(year)?, month, small(day)?)),
            _ => Err(Refusal::Syntax),
        }
    }

    fn year(&self, digits: &str) -> Result<i32, Refusal> {
        let number = small(digits)? as i32;
        match digits.len() {
            4 => Ok(number),
            1 | 2 => {
                let cutoff = i32::from(self.options.two_digit_year_cutoff);
                let year = cutoff - cutoff % 100 + number;
                Ok(if year > cutoff { year - 100 } else { year })
            }
            _ => Err(Refusal::Syntax),
        }
    }
}

/// Three numbers with the same kind of mark between them (`2024-01-31`, `1/31/2024`, `31.1.2024`).
fn three_numbers(list: &[Token<'_>]) -> bool {
    matches!(list, [Token::Number(_), Token::Mark(a), Token::Number(_), Token::Mark(b), Token::Number(_)] if a == b && matches!(a, '-' | '/' | '.'))
}

fn small(digits: &str) -> Result<u32, Refusal> {
    if digits.len() > 4 { Err(Refusal::Syntax) } else { digits.parse().map_err(|_| Refusal::Syntax) }
}
