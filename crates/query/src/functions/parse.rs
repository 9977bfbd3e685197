//! PARSE and TRY_PARSE: text to numbers and dates as people of a culture write them.
//!
//! ```text
//! culture ─► marks of numbers and order of dates;  text ─ without grouping, currency, weekday ─► the conversion of the type
//! ```
//! Known are the cultures of [`CULTURES`] with English names of months and days; others are 9818. A text that does not do is
//! 9819, for TRY_PARSE NULL. No locks, nothing blocks.

use super::call::Call;
use thawdb_types::convert::{ConvertOptions, DateOrder, convert};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

/// How a culture writes numbers and dates.
pub(super) struct Culture {
    pub(super) name: &'static str,
    pub(super) decimal: char,
    /// What may stand between groups of digits; the first is what is written.
    pub(super) grouping: &'static str,
    pub(super) currency: &'static str,
    order: DateOrder,
    /// The pattern of a short date.
    pub(super) date: &'static str,
}

const fn culture(
    name: &'static str,
    decimal: char,
    grouping: &'static str,
    currency: &'static str,
    order: DateOrder,
    date: &'static str,
) -> Culture {
    Culture { name, decimal, grouping, currency, order, date }
}

/// The culture of a name, an empty one the default.
///
/// # Errors
/// 9818 for an unknown one.
pub(super) fn culture_of(name: &str) -> Result<&'static Culture, SqlError> {
    let known = if name.is_empty() { Some(&CULTURES[0]) } else { CULTURES.iter().find(|c| c.name.eq_ignore_ascii_case(name)) };
    known.ok_or_else(|| message(9818, &[&name]))
}

/// What is known, the default first.
const CULTURES: &[Culture] = &[
    culture("en-US", '.', ",", "$", DateOrder::Mdy, "M/d/yyyy"),
    culture("en-GB", '.', ",", "\u{a3}", DateOrder::Dmy, "dd/MM/yyyy"),
    culture("en-AU", '.', ",", "$", DateOrder::Dmy, "d/MM/yyyy"),
    culture("en-CA", '.', ",", "$", DateOrder::Ymd, "yyyy-MM-dd"),
    culture("de-DE", ',', ".", "\u{20ac}", DateOrder::Dmy, "dd.MM.yyyy"),
    culture("fr-FR", ',', "\u{a0} \u{202f}", "\u{20ac}", DateOrder::Dmy, "dd/MM/yyyy"),
    culture("it-IT", ',', ".", "\u{20ac}", DateOrder::Dmy, "dd/MM/yyyy"),
    culture("es-ES", ',', ".", "\u{20ac}", DateOrder::Dmy, "dd/MM/yyyy"),
    culture("nl-NL", ',', ".", "\u{20ac}", DateOrder::Dmy, "d-M-yyyy"),
    culture("pt-BR", ',', ".", "R$", DateOrder::Dmy, "dd/MM/yyyy"),
    culture("ja-JP", '.', ",", "\u{a5}", DateOrder::Ymd, "yyyy/MM/dd"),
    culture("zh-CN", '.', ",", "\u{a5}", DateOrder::Ymd, "yyyy/M/d"),
    culture("ko-KR", '.', ",", "\u{20a9}", DateOrder::Ymd, "yyyy-MM-dd"),
];

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// PARSE(text, culture, whether failing is NULL) as the call's type.
pub(super) fn evaluate(call: &Call<'_>) -> Result<Scalar, SqlError> {
    let (Some(text), Some(name)) = (call.text(0), call.text(1)) else { return Ok(Scalar::Null) };
    let culture = culture_of(name)?;
    let attempt = *call.value(2) == Scalar::Bit(true);
    match parsed(text, culture, call.result) {
        Some(value) => Ok(value),
        None if attempt => Ok(Scalar::Null),
        None => Err(message(9819, &[&text, &call.result.message_name(), &name])),
    }
}

fn parsed(text: &str, culture: &Culture, to: &SqlType) -> Option<Scalar> {
    let from = SqlType::nvarchar(4000);
    let options = ConvertOptions { date_order: culture.order, ..ConvertOptions::default() };
    if to.is_date_time() {
        return convert(&Scalar::Text(without_weekday(text.trim()).to_owned()), &from, to, &options).ok();
    }
    let plain = plain_number(text.trim(), culture)?;
    convert(&Scalar::Text(plain), &from, to, &options).ok()
}

/// A date without the name of its day in front.
fn without_weekday(text: &str) -> &str {
    let named = |day: &&&str| text.get(..day.len()).is_some_and(|start| start.eq_ignore_ascii_case(day));
    match WEEKDAYS.iter().find(named) {
        Some(day) => text[day.len()..].trim_start_matches([',', ' ']),
        None => text,
    }
}

/// A number without grouping and currency, its decimal mark a point; `None` for an empty one.
fn plain_number(text: &str, culture: &Culture) -> Option<String> {
    let bare = text.replacen(culture.currency, "", 1);
    let bare = bare.trim();
    let (negative, digits) = match bare.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => (true, inner),
        None => (false, bare),
    };
    let plain: String =
        digits.chars().filter(|c| !culture.grouping.contains(*c)).map(|c| if c == culture.decimal { '.' } else { c }).collect();
    if plain.is_empty() {
        return None;
    }
    Some(if negative { format!("-{plain}") } else { plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cultures_write_numbers_and_dates() {
        let check = |text: &str, name: &str, to: SqlType, expected: Option<Scalar>| {
            let culture = CULTURES.iter().find(|c| c.name == name).expect("a known culture");
            assert_eq!(parsed(text, culture, &to), expected, "{text} in {name}");
        };
        check("1,234.5", "en-US", SqlType::Float, Some(Scalar::Float(1234.5)));
        check("1.234,5", "de-DE", SqlType::Float, Some(Scalar::Float(1234.5)));
        check("(5)", "en-US", SqlType::Int, Some(Scalar::Int(-5)));
        check("", "en-US", SqlType::Int, None);
        let day = convert(&Scalar::Text("20101213".into()), &SqlType::varchar(8), &SqlType::Date, &ConvertOptions::default());
        check("Monday, 13 December 2010", "en-US", SqlType::Date, day.clone().ok());
        check("13/12/2010", "en-GB", SqlType::Date, day.ok());
    }
}
