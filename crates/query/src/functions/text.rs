//! Text as T-SQL counts it: in UTF-16 units, or in characters under a supplementary (`_SC`) collation.

use std::borrow::Cow;
use thawdb_types::Collation;
use thawdb_types::collation::{equal, utf16_length};

/// Length of `text` in the units its collation counts.
pub(super) fn length(text: &str, collation: Collation) -> usize {
    if text.is_ascii() {
        text.len()
    } else if collation.info().supplementary {
        text.chars().count()
    } else {
        utf16_length(text)
    }
}

/// `count` units of `text` from unit `start` (from 0). Half a surrogate pair becomes U+FFFD.
pub(super) fn slice(text: &str, start: usize, count: usize, collation: Collation) -> Cow<'_, str> {
    if text.is_ascii() {
        let start = start.min(text.len());
        return Cow::Borrowed(&text[start..start.saturating_add(count).min(text.len())]);
    }
    if collation.info().supplementary {
        return Cow::Owned(text.chars().skip(start).take(count).collect());
    }
    let units = text.encode_utf16().skip(start).take(count);
    Cow::Owned(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// Unit position of the byte position `at`.
pub(super) fn unit_of_byte(text: &str, at: usize, collation: Collation) -> usize {
    length(&text[..at], collation)
}

/// Byte position of unit `unit`, or the end.
pub(super) fn byte_of_unit(text: &str, unit: usize, collation: Collation) -> usize {
    if text.is_ascii() {
        return unit.min(text.len());
    }
    let mut seen = 0;
    for (at, c) in text.char_indices() {
        if seen >= unit {
            return at;
        }
        seen += if collation.info().supplementary { 1 } else { c.len_utf16() };
    }
    text.len()
}

/// Whether two characters are equal under the collation.
pub(super) fn same_character(a: char, b: char, collation: Collation) -> bool {
    if a == b {
        return true;
    }
    let info = collation.info();
    if info.binary || a == ' ' || b == ' ' {
        return false;
    }
    if a.is_ascii() && b.is_ascii() {
        return !info.case_sensitive && a.eq_ignore_ascii_case(&b);
    }
    equal(a.encode_utf8(&mut [0; 4]), b.encode_utf8(&mut [0; 4]), collation)
}

/// Where `wanted` first occurs in `text` at or after byte `from`: byte start and end. Compared character by character
/// under the collation; an empty text occurs nowhere.
pub(super) fn find(text: &str, wanted: &str, from: usize, collation: Collation) -> Option<(usize, usize)> {
    if wanted.is_empty() {
        return None;
    }
    let info = collation.info();
    if info.binary || (info.case_sensitive && text.is_ascii() && wanted.is_ascii()) {
        return text.get(from..)?.find(wanted).map(|at| (from + at, from + at + wanted.len()));
    }
    if text.is_ascii() && wanted.is_ascii() {
        let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
        let last = text.len().checked_sub(wanted.len())?;
        return (from..=last).find(|at| text[*at..*at + wanted.len()].eq_ignore_ascii_case(wanted)).map(|at| (at, at + wanted.len()));
    }
    let starts = text.get(from..)?.char_indices();
    starts.map(|(at, _)| from + at).find_map(|at| match_at(&text[at..], wanted, collation).map(|length| (at, at + length)))
}

/// Bytes of `text` that `wanted` takes up at its beginning.
fn match_at(text: &str, wanted: &str, collation: Collation) -> Option<usize> {
    let mut characters = text.char_indices();
    for wanted in wanted.chars() {
        let (_, found) = characters.next()?;
        if !same_character(found, wanted, collation) {
            return None;
        }
    }
    Some(characters.next().map_or(text.len(), |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CI: Collation = Collation::DEFAULT;

    #[test]
    fn units() {
        assert_eq!(length("a\u{1F600}b", CI), 4);
        assert_eq!(slice("a\u{1F600}b", 3, 1, CI), "b");
        assert_eq!(slice("a\u{1F600}b", 1, 1, CI), "\u{FFFD}");
        assert_eq!(slice("hello", 1, 99, CI), "ello");
        assert_eq!(byte_of_unit("a\u{1F600}b", 3, CI), 5);
    }

    #[test]
    fn finding_follows_the_collation() {
        assert_eq!(find("Hello World", "WORLD", 0, CI), Some((6, 11)));
        assert_eq!(find("Hello", "l", 3, CI), Some((3, 4)));
        assert_eq!(find("caf\u{e9} Caf\u{c9}", "F\u{c9}", 5, CI), Some((8, 11)));
        let binary = Collation::by_name("Latin1_General_BIN2").unwrap();
        assert_eq!(find("Hello", "h", 0, binary), None);
        assert_eq!(find("x", "", 0, CI), None);
    }
}
