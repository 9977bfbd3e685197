//! The weights behind the linguistic collations and the sort keys made of them.
//!
//! ```text
//! 00        ends a key (the key codec's)          50..59  digits
//! 01        parts the levels                      60..C7  letters: 60 + 4 * (letter - 'a'), and up to 3 after each
//! 02..22    control characters                    E0      symbols beyond ASCII, then 3 bytes of code point
//! 24..44    blank, then ASCII punctuation         E8      letters beyond Latin, then 3 bytes of code point
//! ```
//!
//! A level is left out when nothing after it differs from the plainest form, so plain ASCII under a case-insensitive
//! collation is one byte a character and nothing else.

use super::CollationInfo;
use icu_normalizer::DecomposingNormalizerBorrowed;
use std::borrow::Cow;
use std::cmp::Ordering;

const LEVEL: u8 = 0x01;
const PLAIN: u8 = 0x02;
const SYMBOL_LEAD: u8 = 0xE0;
const LETTER_LEAD: u8 = 0xE8;
const CONTROL_FIRST: u8 = 0x02;
const PUNCTUATION_FIRST: u8 = 0x24;
const DIGIT_FIRST: u8 = 0x50;
const LETTER_FIRST: u8 = 0x60;

/// Primary weight of every ASCII character; letters of both cases share theirs.
const PRIMARY: [u8; 128] = primary_table();

const fn primary_table() -> [u8; 128] {
    let mut table = [0; 128];
    let (mut control, mut punctuation, mut at) = (CONTROL_FIRST, PUNCTUATION_FIRST, 0u8);
    while at < 128 {
        table[at as usize] = match at {
            b'0'..=b'9' => DIGIT_FIRST + (at - b'0'),
            b'a'..=b'z' => letter(at),
            b'A'..=b'Z' => letter(at + 32),
            0..=31 | 127 => {
                control += 1;
                control - 1
            }
            _ => {
                punctuation += 1;
                punctuation - 1
            }
        };
        at += 1;
    }
    // 33 controls and 33 punctuation characters must end below what follows them.
    assert!(control <= PUNCTUATION_FIRST && punctuation <= DIGIT_FIRST);
    table
}

const fn letter(lower: u8) -> u8 {
    LETTER_FIRST + (lower - b'a') * 4
}

/// Order of two ASCII texts: the same as of their sort keys, without making them.
pub(super) fn compare_ascii(left: &[u8], right: &[u8], info: &CollationInfo) -> Ordering {
    let shared = left.len().min(right.len());
    for (a, b) in left[..shared].iter().zip(&right[..shared]) {
        let (a, b) = (PRIMARY[usize::from(*a & 0x7F)], PRIMARY[usize::from(*b & 0x7F)]);
        if a != b {
            return a.cmp(&b);
        }
    }
    match left.len().cmp(&right.len()) {
        Ordering::Equal if info.case_sensitive => {
            let cases = |text: &[u8]| text.iter().map(|b| case_weight(b.is_ascii_uppercase(), info)).collect::<Vec<_>>();
            trim_plain(&cases(left)).cmp(trim_plain(&cases(right)))
        }
        other => other,
    }
}

fn case_weight(upper: bool, info: &CollationInfo) -> u8 {
    if upper == info.sql { PLAIN } else { PLAIN + 1 }
}

fn trim_plain(level: &[u8]) -> &[u8] {
    let end = level.iter().rposition(|w| *w != PLAIN).map_or(0, |at| at + 1);
    &level[..end]
}

/// Appends the sort key of `text`, whose trailing blanks are gone.
pub(super) fn sort_key(text: &str, info: &CollationInfo, out: &mut Vec<u8>) {
    if text.is_ascii() {
        out.extend(text.bytes().map(|b| PRIMARY[usize::from(b & 0x7F)]));
        if info.case_sensitive {
            let cases: Vec<u8> = text.bytes().map(|b| case_weight(b.is_ascii_uppercase(), info)).collect();
            append_levels(&[], &cases, out);
        }
        return;
    }
    let (mut accents, mut cases) = (Vec::new(), Vec::new());
    for c in decomposed(text) {
        for element in elements(c, info) {
            match element {
                Element::Letter(upper) => {
                    accents.push(PLAIN);
                    cases.push(case_weight(upper, info));
                }
                Element::Byte(b) => out.push(b),
                Element::Accent(mark) => accents.extend(accent_bytes(mark)),
            }
        }
    }
    let accents: &[u8] = if info.accent_sensitive { &accents } else { &[] };
    append_levels(accents, if info.case_sensitive { &cases } else { &[] }, out);
}

fn append_levels(accents: &[u8], cases: &[u8], out: &mut Vec<u8>) {
    let (accents, cases) = (trim_plain(accents), trim_plain(cases));
    if !accents.is_empty() || !cases.is_empty() {
        out.push(LEVEL);
        out.extend_from_slice(accents);
    }
    if !cases.is_empty() {
        out.push(LEVEL);
        out.extend_from_slice(cases);
    }
}

fn decomposed(text: &str) -> impl Iterator<Item = char> + '_ {
    DecomposingNormalizerBorrowed::new_nfd().normalize_iter(text.chars())
}

/// What one decomposed character adds to a key.
#[derive(Clone, Copy)]
enum Element {
    /// A byte of the primary level.
    Byte(u8),
    /// A place in the lower levels: one per letter, and whether it is a capital.
    Letter(bool),
    /// A combining mark on the letter before.
    Accent(u32),
}

/// Combining marks: three bytes, each above [`PLAIN`], in code point order.
fn accent_bytes(mark: u32) -> [u8; 3] {
    let [_, a, b, c] = (mark << 1).to_be_bytes();
    [0x80 | a, 0x80 | b, 0x80 | (c >> 1)].map(|byte| byte.max(PLAIN + 1))
}

/// The elements of a character after canonical decomposition.
fn elements(c: char, info: &CollationInfo) -> impl Iterator<Item = Element> {
    let mut list: [Option<Element>; 8] = [None; 8];
    let mut length = 0;
    let mut add = |element| {
        list[length] = Some(element);
        length += 1;
    };
    let folded = fold_width(c);
    let upper = folded.is_uppercase();
    let lower = if upper { folded.to_lowercase().next().unwrap_or(folded) } else { folded };
    let code = lower as u32;
    if is_mark(code) {
        add(Element::Accent(code));
    } else if lower.is_ascii() {
        add(Element::Byte(PRIMARY[code as usize & 0x7F]));
        add(Element::Letter(upper));
    } else if let Some(special) = latin_special(lower, info) {
        for byte in std::iter::once(special.first).chain(special.second) {
            add(Element::Byte(byte));
            add(Element::Letter(upper));
        }
        if let Some(mark) = special.accent {
            add(Element::Accent(mark));
        }
    } else {
        add(Element::Byte(if lower.is_alphanumeric() { LETTER_LEAD } else { SYMBOL_LEAD }));
        for shift in [14, 7, 0] {
            add(Element::Byte(0x80 | ((code >> shift) & 0x7F) as u8));
        }
        add(Element::Letter(upper));
    }
    list.into_iter().flatten()
}

fn is_mark(code: u32) -> bool {
    matches!(code, 0x300..=0x36F | 0x483..=0x487 | 0x591..=0x5BD | 0x610..=0x61A | 0x64B..=0x65F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF | 0x3099..=0x309A | 0xFE20..=0xFE2F)
}

/// Full-width forms to ASCII, katakana to hiragana, final sigma to sigma, no-break space to blank.
fn fold_width(c: char) -> char {
    match c {
        '\u{A0}' | '\u{3000}' => ' ',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '\u{30A1}'..='\u{30F6}' => char::from_u32(c as u32 - 0x60).unwrap_or(c),
        '\u{3C2}' => '\u{3C3}',
        other => other,
    }
}

/// A Latin letter that does not decompose: its weight, the second letter it stands for, and its accent.
struct LatinLetter {
    first: u8,
    second: Option<u8>,
    accent: Option<u32>,
}

/// Latin letters that do not decompose: after their plain letter, as an accent of it, or (Windows) as a pair.
fn latin_special(lower: char, info: &CollationInfo) -> Option<LatinLetter> {
    let after = |c: u8, steps: u8| Some(LatinLetter { first: letter(c) + steps, second: None, accent: None });
    let pair = |a: u8, b: u8| Some(LatinLetter { first: letter(a), second: Some(letter(b)), accent: None });
    let accented = |c: u8, mark: u32| Some(LatinLetter { first: letter(c), second: None, accent: Some(mark) });
    match (lower, info.sql) {
        ('\u{F8}', _) => accented(b'o', 0x338),
        ('\u{142}', _) => accented(b'l', 0x335),
        ('\u{E6}', true) => after(b'a', 1),
        ('\u{E6}', false) => pair(b'a', b'e'),
        ('\u{153}', true) => after(b'o', 2),
        ('\u{153}', false) => pair(b'o', b'e'),
        ('\u{DF}' | '\u{1E9E}', true) => after(b's', 1),
        ('\u{DF}' | '\u{1E9E}', false) => pair(b's', b's'),
        ('\u{FE}', true) => after(b't', 1),
        ('\u{FE}', false) => pair(b't', b'h'),
        ('\u{111}', _) => after(b'd', 1),
        ('\u{F0}', _) => after(b'd', 2),
        ('\u{127}', _) => after(b'h', 1),
        ('\u{131}', _) => after(b'i', 1),
        ('\u{14B}', _) => after(b'n', 1),
        ('\u{167}', _) => after(b't', 2),
        _ => None,
    }
}

/// The lower-case (or, where case counts, exact) ASCII text that `text` equals under the collation, if there is one.
pub(super) fn folded_ascii<'a>(text: &'a str, info: &CollationInfo) -> Option<Cow<'a, str>> {
    let mut out = String::with_capacity(text.len());
    for c in decomposed(text) {
        let folded = fold_width(c);
        if folded.is_ascii() {
            out.push(if info.case_sensitive { folded } else { folded.to_ascii_lowercase() });
        } else if is_mark(folded as u32) {
            if info.accent_sensitive {
                return None;
            }
        } else {
            let upper = folded.is_uppercase();
            let lower = folded.to_lowercase().next().unwrap_or(folded);
            let pair = match (lower, info.sql) {
                ('\u{E6}', false) => "ae",
                ('\u{153}', false) => "oe",
                ('\u{DF}' | '\u{1E9E}', false) => "ss",
                ('\u{FE}', false) => "th",
                ('\u{F8}', _) if !info.accent_sensitive => "o",
                ('\u{142}', _) if !info.accent_sensitive => "l",
                ('\u{212A}', _) => "k",
                _ => return None,
            };
            out.extend(pair.chars().map(|c| if upper && info.case_sensitive { c.to_ascii_uppercase() } else { c }));
        }
    }
    // A blank can come to the end here (a no-break space folded): it counts in the sort key, so keep it.
    Some(Cow::Owned(out))
}
