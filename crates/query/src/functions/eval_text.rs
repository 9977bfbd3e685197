//! String functions.

use crate::eval::cut;
use crate::functions::call::Call;
use crate::functions::text::{byte_of_unit, find, length, same_character, slice, unit_of_byte};
use thawdb_types::collation::{LikePattern, decode_1252, encode_1252};
use thawdb_types::convert::text_bytes;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

/// Unwraps an argument or gives NULL.
macro_rules! or_null {
    ($value:expr) => {
        match $value {
            Some(value) => value,
            None => return Ok(Scalar::Null),
        }
    };
}
pub(crate) use or_null;

/// A count in the integer type of the call's result.
fn count(call: &Call<'_>, value: usize) -> Scalar {
    if *call.result == SqlType::BigInt { Scalar::BigInt(value as i64) } else { Scalar::Int(value as i32) }
}

fn text_result(call: &Call<'_>, text: impl Into<String>) -> Result {
    Ok(cut(Scalar::Text(text.into()), call.result))
}

pub(super) fn len(call: &Call<'_>) -> Result {
    let text = or_null!(call.text(0));
    Ok(count(call, length(text.trim_end_matches(' '), call.collation())))
}

pub(super) fn datalength(call: &Call<'_>) -> Result {
    if call.value(0).is_null() {
        return Ok(Scalar::Null);
    }
    Ok(count(call, byte_length(call.value(0), call.type_of(0))))
}

fn byte_length(value: &Scalar, sql_type: &SqlType) -> usize {
    match value {
        Scalar::Text(text) if text.is_ascii() => text.len() * if sql_type.is_unicode() { 2 } else { 1 },
        Scalar::Text(text) => text_bytes(text, sql_type).len(),
        Scalar::Binary(bytes) if *sql_type == SqlType::SqlVariant => {
            thawdb_types::variant::decode(bytes).map_or(0, |(base, value)| byte_length(&value, &base))
        }
        Scalar::Binary(bytes) => bytes.len(),
        _ => sql_type.max_length().max(0) as usize,
    }
}

pub(super) fn substring(call: &Call<'_>) -> Result {
    let (start, wanted) = (or_null!(call.integer(1)), or_null!(call.integer(2)));
    if call.value(0).is_null() {
        return Ok(Scalar::Null);
    }
    if wanted < 0 {
        return Err(message(537, &[]));
    }
    // A start before the first character uses up part of the length.
    let end = start.saturating_add(wanted).max(1);
    let start = start.max(1);
    let (from, taken) = ((start - 1) as usize, (end - start).max(0) as usize);
    match call.value(0) {
        Scalar::Binary(bytes) => {
            let from = from.min(bytes.len());
            Ok(Scalar::Binary(bytes[from..from.saturating_add(taken).min(bytes.len())].to_vec()))
        }
        Scalar::Text(text) => Ok(Scalar::Text(slice(text, from, taken, call.collation()).into_owned())),
        _ => Ok(Scalar::Null),
    }
}

/// `WRITE(old, value, offset, length)` of UPDATE: `length` units from `offset` on are `value`; a NULL offset appends, a NULL value
/// cuts off. 5302 for a NULL old value, 7116 and 7135 for an offset and a length that are not in it.
pub(super) fn write(call: &Call<'_>) -> Result {
    for (at, number) in [(2, 7116), (3, 7135)] {
        if let Some(negative) = call.integer(at).filter(|n| *n < 0) {
            return Err(message(number, &[&negative]));
        }
    }
    let number = |at: usize| call.integer(at).and_then(|n| usize::try_from(n).ok());
    let span = |all: usize| -> Result<(usize, usize)> {
        let Some(offset) = number(2) else { return Ok((all, 0)) };
        if offset > all {
            return Err(message(7116, &[&offset]));
        }
        let rest = all - offset;
        Ok((offset, if call.value(1).is_null() { rest } else { number(3).map_or(rest, |n| n.min(rest)) }))
    };
    match (call.value(0), call.value(1)) {
        (Scalar::Null, _) => Err(message(5302, &[&"WRITE", &"column"])),
        (Scalar::Binary(old), value) => {
            let (offset, taken) = span(old.len())?;
            let new = if let Scalar::Binary(bytes) = value { bytes.as_slice() } else { &[] };
            Ok(Scalar::Binary([&old[..offset], new, &old[offset + taken..]].concat()))
        }
        (Scalar::Text(old), value) => {
            let collation = call.collation();
            let all = length(old, collation);
            let (offset, taken) = span(all)?;
            let behind = slice(old, offset + taken, all, collation);
            Ok(Scalar::Text(format!("{}{}{behind}", slice(old, 0, offset, collation), value.as_text().unwrap_or_default())))
        }
        (other, _) => Ok(other.clone()),
    }
}

pub(super) fn left(call: &Call<'_>) -> Result {
    let (text, wanted) = (or_null!(call.text(0)), or_null!(call.integer(1)));
    let wanted = usize::try_from(wanted).map_err(|_| message(537, &[]).with_state(2))?;
    Ok(Scalar::Text(slice(text, 0, wanted, call.collation()).into_owned()))
}

pub(super) fn right(call: &Call<'_>) -> Result {
    let (text, wanted) = (or_null!(call.text(0)), or_null!(call.integer(1)));
    let wanted = usize::try_from(wanted).map_err(|_| message(536, &[&"right"]))?;
    let all = length(text, call.collation());
    Ok(Scalar::Text(slice(text, all.saturating_sub(wanted), wanted, call.collation()).into_owned()))
}

/// The characters TRIM and its kin take off: blanks unless told otherwise.
fn trimmed(call: &Call<'_>, from_start: bool, from_end: bool) -> Result {
    let text = or_null!(call.text(0));
    let characters = if call.values.len() > 1 { or_null!(call.text(1)) } else { " " };
    let collation = call.collation();
    let taken = |c: char| characters.chars().any(|t| t == c || (t != ' ' && same_character(t, c, collation)));
    let mut left = text;
    if from_start {
        left = left.trim_start_matches(taken);
    }
    if from_end {
        left = left.trim_end_matches(taken);
    }
    text_result(call, left)
}

pub(super) fn ltrim(call: &Call<'_>) -> Result {
    trimmed(call, true, false)
}

pub(super) fn rtrim(call: &Call<'_>) -> Result {
    trimmed(call, false, true)
}

pub(super) fn trim(call: &Call<'_>) -> Result {
    trimmed(call, true, true)
}

/// The one character a character becomes; those that would become several stay.
fn mapped(text: &str, each: impl Fn(char) -> Option<char>) -> String {
    text.chars().map(|c| each(c).unwrap_or(c)).collect()
}

fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    if characters.next().is_none() { first } else { None }
}

pub(super) fn upper(call: &Call<'_>) -> Result {
    let text = or_null!(call.text(0));
    Ok(Scalar::Text(if text.is_ascii() { text.to_ascii_uppercase() } else { mapped(text, |c| single(c.to_uppercase())) }))
}

pub(super) fn lower(call: &Call<'_>) -> Result {
    let text = or_null!(call.text(0));
    Ok(Scalar::Text(if text.is_ascii() { text.to_ascii_lowercase() } else { mapped(text, |c| single(c.to_lowercase())) }))
}

pub(super) fn replace(call: &Call<'_>) -> Result {
    let (text, wanted, new) = (or_null!(call.text(0)), or_null!(call.text(1)), or_null!(call.text(2)));
    let collation = call.collation();
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    while let Some((start, end)) = find(text, wanted, from, collation) {
        out.push_str(&text[from..start]);
        out.push_str(new);
        from = end;
    }
    out.push_str(&text[from..]);
    text_result(call, out)
}

pub(super) fn charindex(call: &Call<'_>) -> Result {
    let (wanted, text) = (or_null!(call.text(0)), or_null!(call.text(1)));
    let start = if call.values.len() > 2 { or_null!(call.integer(2)) } else { 1 };
    let collation = call.collation();
    let from = byte_of_unit(text, usize::try_from(start - 1).unwrap_or(0), collation);
    Ok(count(call, find(text, wanted, from, collation).map_or(0, |(at, _)| unit_of_byte(text, at, collation) + 1)))
}

pub(super) fn patindex(call: &Call<'_>) -> Result {
    let (pattern, text) = (or_null!(call.text(0)), or_null!(call.text(1)));
    let collation = call.collation();
    let Some(rest) = pattern.strip_prefix('%') else {
        return Ok(count(call, usize::from(LikePattern::new(pattern, None, collation)?.matches(text))));
    };
    let compiled = LikePattern::new(rest, None, collation)?;
    let starts = text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len()));
    let found = starts.into_iter().find(|at| compiled.matches(&text[*at..]));
    // A pattern that matches the empty end matches nothing in SQL Server's eyes, except in an empty text.
    let found = found.filter(|at| *at < text.len() || text.is_empty());
    Ok(count(call, found.map_or(0, |at| unit_of_byte(text, at, collation) + 1)))
}

pub(super) fn translate(call: &Call<'_>) -> Result {
    let (text, from, to) = (or_null!(call.text(0)), or_null!(call.text(1)), or_null!(call.text(2)));
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if from.len() != to.len() {
        return Err(message(9828, &[&"TRANSLATE"]));
    }
    let collation = call.collation();
    Ok(Scalar::Text(mapped(text, |c| from.iter().position(|f| same_character(*f, c, collation)).map(|at| to[at]))))
}

pub(super) fn stuff(call: &Call<'_>) -> Result {
    let (start, taken) = (or_null!(call.integer(1)), or_null!(call.integer(2)));
    let all = match call.value(0) {
        Scalar::Text(text) => length(text, call.collation()),
        Scalar::Binary(bytes) => bytes.len(),
        _ => return Ok(Scalar::Null),
    };
    if start <= 0 || taken < 0 || start as usize > all {
        return Ok(Scalar::Null);
    }
    let (start, end) = (start as usize - 1, (start as usize - 1).saturating_add(taken as usize).min(all));
    match (call.value(0), call.value(3)) {
        (Scalar::Text(text), new @ (Scalar::Text(_) | Scalar::Null)) => {
            let (from, to) = (byte_of_unit(text, start, call.collation()), byte_of_unit(text, end, call.collation()));
            text_result(call, format!("{}{}{}", &text[..from], new.as_text().unwrap_or_default(), &text[to..]))
        }
        (Scalar::Binary(bytes), Scalar::Binary(new)) => Ok(Scalar::Binary([&bytes[..start], new, &bytes[end..]].concat())),
        (Scalar::Binary(bytes), _) => Ok(Scalar::Binary([&bytes[..start], &bytes[end..]].concat())),
        _ => Ok(Scalar::Null),
    }
}

/// Most bytes REPLICATE and SPACE make for a max type: what one value may hold here.
const BYTES_MAX: usize = 1 << 30;
/// Most bytes of UTF-8 that a unit of a type's length takes: 3 of UTF-16, fewer of a code page.
const UTF8_BYTES_PER_UNIT_MAX: usize = 3;

pub(super) fn replicate(call: &Call<'_>) -> Result {
    let (text, times) = (or_null!(call.text(0)), or_null!(call.integer(1)));
    let times = or_null!(usize::try_from(times).ok());
    // No more repetitions than the result can hold, whatever was asked.
    let most = call.result.length().map_or(BYTES_MAX, |n| usize::from(n) * UTF8_BYTES_PER_UNIT_MAX + text.len());
    let times = if text.is_empty() { 0 } else { times.min(most / text.len() + 1) };
    text_result(call, text.repeat(times))
}

pub(super) fn space(call: &Call<'_>) -> Result {
    let times = or_null!(usize::try_from(or_null!(call.integer(0))).ok());
    Ok(Scalar::Text(" ".repeat(times.min(8000))))
}

pub(super) fn reverse(call: &Call<'_>) -> Result {
    Ok(Scalar::Text(or_null!(call.text(0)).chars().rev().collect()))
}

pub(super) fn concat(call: &Call<'_>) -> Result {
    text_result(call, call.values.iter().filter_map(Scalar::as_text).collect::<String>())
}

pub(super) fn concat_ws(call: &Call<'_>) -> Result {
    let separator = call.text(0).unwrap_or_default();
    let parts: Vec<&str> = call.values[1..].iter().filter_map(Scalar::as_text).collect();
    text_result(call, parts.join(separator))
}

pub(super) fn quotename(call: &Call<'_>) -> Result {
    let text = or_null!(call.text(0));
    let quote = if call.values.len() > 1 { or_null!(call.text(1)).chars().next() } else { Some('[') };
    let (open, close) = match quote {
        Some('[' | ']') => ('[', ']'),
        Some('(' | ')') => ('(', ')'),
        Some('<' | '>') => ('<', '>'),
        Some('{' | '}') => ('{', '}'),
        Some(c @ ('"' | '\'' | '`')) => (c, c),
        _ => return Ok(Scalar::Null),
    };
    if length(text, call.collation()) > 128 {
        return Ok(Scalar::Null);
    }
    Ok(Scalar::Text(format!("{open}{}{close}", text.replace(close, &format!("{close}{close}")))))
}

pub(super) fn ascii(call: &Call<'_>) -> Result {
    let first = or_null!(or_null!(call.text(0)).chars().next());
    let mut bytes = Vec::new();
    encode_1252(first.encode_utf8(&mut [0; 4]), &mut bytes);
    Ok(Scalar::Int(i32::from(bytes[0])))
}

pub(super) fn char(call: &Call<'_>) -> Result {
    let byte = or_null!(u8::try_from(or_null!(call.integer(0))).ok());
    Ok(Scalar::Text(decode_1252(&[byte])))
}

pub(super) fn unicode(call: &Call<'_>) -> Result {
    let first = or_null!(or_null!(call.text(0)).chars().next());
    let supplementary = call.collation().info().supplementary;
    let code = if supplementary { first as u32 } else { u32::from(first.encode_utf16(&mut [0; 2])[0]) };
    Ok(Scalar::Int(code as i32))
}

pub(super) fn nchar(call: &Call<'_>) -> Result {
    let code = or_null!(u32::try_from(or_null!(call.integer(0))).ok());
    if code > 0xFFFF && !call.collation().info().supplementary {
        return Ok(Scalar::Null);
    }
    if code > 0x10_FFFF {
        return Ok(Scalar::Null);
    }
    Ok(Scalar::Text(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER).to_string()))
}

/// The code of a name's sound: a letter and three digits.
fn soundex_of(text: &str) -> String {
    fn code(c: char) -> u8 {
        match c.to_ascii_uppercase() {
            'B' | 'F' | 'P' | 'V' => b'1',
            'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => b'2',
            'D' | 'T' => b'3',
            'L' => b'4',
            'M' | 'N' => b'5',
            'R' => b'6',
            'H' | 'W' => b'-',
            _ => b'0',
        }
    }
    let Some(first) = text.chars().next().filter(char::is_ascii_alphabetic) else { return "0000".into() };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for c in text.chars().skip(1).take_while(char::is_ascii_alphabetic) {
        match code(c) {
            // H and W do not part equal neighbours, vowels do.
            b'-' => {}
            b'0' => last = b'0',
            digit if digit != last => {
                out.push(char::from(digit));
                last = digit;
            }
            _ => {}
        }
    }
    out.push_str("000");
    out.truncate(4);
    out
}

pub(super) fn soundex(call: &Call<'_>) -> Result {
    Ok(Scalar::Text(soundex_of(or_null!(call.text(0)))))
}

pub(super) fn difference(call: &Call<'_>) -> Result {
    let (a, b) = (soundex_of(or_null!(call.text(0))), soundex_of(or_null!(call.text(1))));
    Ok(Scalar::Int(a.bytes().zip(b.bytes()).filter(|(a, b)| a == b).count() as i32))
}

pub(super) fn parsename(call: &Call<'_>) -> Result {
    let (text, wanted) = (or_null!(call.text(0)), or_null!(call.integer(1)));
    let parts = or_null!(name_parts(text));
    let wanted = or_null!(usize::try_from(wanted).ok().filter(|n| (1..=4).contains(n)));
    Ok(parts.iter().rev().nth(wanted - 1).filter(|part| !part.is_empty()).map_or(Scalar::Null, |part| Scalar::text(part.as_str())))
}

/// The parts of a dotted name, brackets and quotes taken off; `None` if it is not one of at most four.
fn name_parts(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let close = match c {
            '.' => {
                parts.push(String::new());
                continue;
            }
            '[' => ']',
            '"' => '"',
            other => {
                parts.last_mut()?.push(other);
                continue;
            }
        };
        loop {
            match characters.next()? {
                c if c == close && characters.peek() == Some(&close) => {
                    characters.next();
                    parts.last_mut()?.push(close);
                }
                c if c == close => break,
                other => parts.last_mut()?.push(other),
            }
        }
    }
    (parts.len() <= 4).then_some(parts)
}

pub(super) fn string_escape(call: &Call<'_>) -> Result {
    let (text, kind) = (or_null!(call.text(0)), or_null!(call.text(1)));
    if !kind.eq_ignore_ascii_case("json") {
        return Err(message(8116, &[&"varchar", &2, &"STRING_ESCAPE"]));
    }
    let mut out = String::with_capacity(text.len());
    crate::json::escape_into(&mut out, text);
    Ok(Scalar::Text(out))
}
