//! Order and equality of text: the collations by name, comparison, sort keys, LIKE, and code page 1252.
//!
//! ```text
//! "Résumé "  --NFD, fold-->  r e´ s u m e´  -->  [r][e][s][u][m][e] 01 [02][02][´] .. 01 [case]  = the sort key
//!                                                primaries             accents         case
//! ```
//!
//! Invariants:
//! 1. There is one order: [`compare`] of two texts equals the byte order of their [`sort_key`]s (property test below).
//! 2. A linguistic sort key has no byte 0, and a text that is a prefix of another has the smaller key, so a key can be
//!    ended by a 0 byte ([`crate::key`] does).
//! 3. Trailing blanks never count, under any collation.
//! 4. A stored key depends on the weight table here, on Unicode's decompositions and simple lower-casing only, which
//!    Unicode promises never to change for an assigned character. That is why the keys are ours and not those of a
//!    collation library, whose every new version of the data would silently corrupt every index on text.
//!
//! What it does not do: languages' tailorings (no Swedish, Turkish, ...), contractions, the ignorable hyphen of
//! Windows collations; a varchar and an nvarchar of one collation have the same order. COMPATIBILITY.md says so.

mod codepage;
mod like;
mod weights;

pub use codepage::{decode_1252, encode_1252, length_1252, to_1252_text};
pub use like::LikePattern;

use crate::sql_type::Collation;
use std::cmp::Ordering;

/// What a collation tells apart and how it orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollationInfo {
    /// Its name.
    pub name: &'static str,
    /// `A` and `a` differ.
    pub case_sensitive: bool,
    /// `e` and `é` differ.
    pub accent_sensitive: bool,
    /// Orders by code points (`_BIN`, `_BIN2`).
    pub binary: bool,
    /// A SQL collation (`SQL_...`): capitals before small letters where case counts, no letter equal to a pair.
    pub sql: bool,
    /// `_` of LIKE and LEN count a supplementary character as one (`_SC`).
    pub supplementary: bool,
    /// varchar holds UTF-8.
    pub utf8: bool,
    /// The Windows locale identifier, as TDS and COLLATIONPROPERTY have it.
    pub lcid: u32,
    /// The version nibble of TDS's collation (0 for 80 collations, 2 for `_100_`, 3 for `_140_`).
    pub version: u8,
    /// The sort order id of a SQL collation, 0 of a Windows collation.
    pub sort_id: u8,
}

const fn windows(name: &'static str, version: u8, case_sensitive: bool, accent_sensitive: bool) -> CollationInfo {
    CollationInfo {
        name,
        case_sensitive,
        accent_sensitive,
        binary: false,
        sql: false,
        supplementary: false,
        utf8: false,
        lcid: 0x409,
        version,
        sort_id: 0,
    }
}

const fn sc(info: CollationInfo, utf8: bool) -> CollationInfo {
    CollationInfo { supplementary: true, utf8, ..info }
}

const fn binary(name: &'static str, version: u8) -> CollationInfo {
    CollationInfo { binary: true, ..windows(name, version, true, true) }
}

const fn sql(name: &'static str, sort_id: u8, case_sensitive: bool, accent_sensitive: bool) -> CollationInfo {
    CollationInfo { sql: true, sort_id, ..windows(name, 0, case_sensitive, accent_sensitive) }
}

/// Every collation there is. A [`Collation`] is a position here and is stored: append only.
pub const COLLATIONS: &[CollationInfo] = &[
    sql("SQL_Latin1_General_CP1_CI_AS", 52, false, true),
    sql("SQL_Latin1_General_CP1_CS_AS", 51, true, true),
    sql("SQL_Latin1_General_CP1_CI_AI", 54, false, false),
    windows("Latin1_General_CI_AS", 0, false, true),
    windows("Latin1_General_CS_AS", 0, true, true),
    windows("Latin1_General_CI_AI", 0, false, false),
    windows("Latin1_General_CS_AI", 0, true, false),
    binary("Latin1_General_BIN", 0),
    binary("Latin1_General_BIN2", 0),
    windows("Latin1_General_100_CI_AS", 2, false, true),
    windows("Latin1_General_100_CS_AS", 2, true, true),
    windows("Latin1_General_100_CI_AI", 2, false, false),
    windows("Latin1_General_100_CS_AI", 2, true, false),
    binary("Latin1_General_100_BIN", 2),
    binary("Latin1_General_100_BIN2", 2),
    sc(windows("Latin1_General_100_CI_AS_SC", 2, false, true), false),
    sc(windows("Latin1_General_100_CS_AS_SC", 2, true, true), false),
    sc(windows("Latin1_General_100_CI_AI_SC", 2, false, false), false),
    sc(windows("Latin1_General_100_CI_AS_SC_UTF8", 2, false, true), true),
    sc(windows("Latin1_General_100_CS_AS_SC_UTF8", 2, true, true), true),
    sc(windows("Latin1_General_100_CI_AI_SC_UTF8", 2, false, false), true),
    sc(binary("Latin1_General_100_BIN2_UTF8", 2), true),
    windows("Latin1_General_CI_AS_KS_WS", 0, false, true),
    windows("Latin1_General_CS_AS_KS_WS", 0, true, true),
];

impl Collation {
    /// What it is.
    pub fn info(self) -> &'static CollationInfo {
        COLLATIONS.get(usize::from(self.0)).unwrap_or(&COLLATIONS[0])
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The collation of that name, in any case; `None` if there is none (448).
    pub fn by_name(name: &str) -> Option<Self> {
        COLLATIONS.iter().position(|c| c.name.eq_ignore_ascii_case(name)).map(|at| Self(at as u16))
    }

    /// The five bytes TDS sends: locale and flags, little-endian, then the sort id.
    pub fn tds_bytes(self) -> [u8; 5] {
        let info = self.info();
        let binary2 = info.binary && info.name.contains("BIN2");
        let width = !info.name.contains("_WS");
        let flags = u32::from(!info.case_sensitive && !info.binary)
            | u32::from(!info.accent_sensitive && !info.binary) << 1
            | u32::from(width && !info.binary) << 2
            | u32::from(width && !info.binary) << 3
            | u32::from(info.binary && !binary2) << 4
            | u32::from(binary2) << 5
            | u32::from(info.utf8) << 6;
        let word = info.lcid | flags << 20 | u32::from(info.version) << 28;
        let low = word.to_le_bytes();
        [low[0], low[1], low[2], low[3], info.sort_id]
    }

    /// The collation with those five TDS bytes, if we know it.
    pub fn by_tds_bytes(bytes: [u8; 5]) -> Option<Self> {
        (0..COLLATIONS.len() as u16).map(Self).find(|c| c.tds_bytes() == bytes)
    }
}

/// `text` without its trailing blanks.
pub fn trimmed(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Order of two texts under `collation`; trailing blanks do not count.
pub fn compare(left: &str, right: &str, collation: Collation) -> Ordering {
    let (left, right) = (trimmed(left), trimmed(right));
    if left == right {
        return Ordering::Equal;
    }
    let info = collation.info();
    if info.binary {
        return left.as_bytes().cmp(right.as_bytes());
    }
    if left.is_ascii() && right.is_ascii() {
        return weights::compare_ascii(left.as_bytes(), right.as_bytes(), info);
    }
    let (mut left_key, mut right_key) = (Vec::with_capacity(left.len() * 2), Vec::with_capacity(right.len() * 2));
    weights::sort_key(left, info, &mut left_key);
    weights::sort_key(right, info, &mut right_key);
    left_key.cmp(&right_key)
}

/// Whether two texts are equal under `collation`.
pub fn equal(left: &str, right: &str, collation: Collation) -> bool {
    let (left, right) = (trimmed(left), trimmed(right));
    if left == right {
        return true;
    }
    let info = collation.info();
    if info.binary {
        return false;
    }
    if left.is_ascii() && right.is_ascii() {
        return !info.case_sensitive && left.eq_ignore_ascii_case(right);
    }
    compare(left, right, collation) == Ordering::Equal
}

/// Appends bytes whose order is that of [`compare`]. Under a linguistic collation they hold no 0 byte; under a binary
/// one they are the text's own UTF-8.
pub fn sort_key(text: &str, collation: Collation, out: &mut Vec<u8>) {
    let text = trimmed(text);
    let info = collation.info();
    if info.binary {
        out.extend_from_slice(text.as_bytes());
    } else {
        weights::sort_key(text, info, out);
    }
}

/// Appends bytes that are the same exactly for texts that are equal: for hash joins, grouping and DISTINCT.
/// Cheaper than [`sort_key`] and without order, but never to be mixed with it.
pub fn hash_key(text: &str, collation: Collation, out: &mut Vec<u8>) {
    let text = trimmed(text);
    let info = collation.info();
    if info.binary || (info.case_sensitive && text.is_ascii()) {
        out.extend_from_slice(text.as_bytes());
    } else if text.is_ascii() {
        out.extend(text.bytes().map(|b| b.to_ascii_lowercase()));
    } else {
        // Text that is equal to an ASCII text must give the ASCII bytes, so a key that says "only plain letters" is
        // turned back into them; everything else is marked by a byte no UTF-8 text begins with.
        match weights::folded_ascii(text, info) {
            Some(folded) => out.extend_from_slice(folded.as_bytes()),
            None => {
                out.push(0xFF);
                weights::sort_key(text, info, out);
            }
        }
    }
}

/// Length in UTF-16 units: what nvarchar's length and LEN (without `_SC`) count.
pub fn utf16_length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(name: &str) -> Collation {
        Collation::by_name(name).unwrap()
    }

    #[test]
    fn names_and_wire_bytes() {
        assert_eq!(Collation::DEFAULT.name(), "SQL_Latin1_General_CP1_CI_AS");
        assert_eq!(Collation::DEFAULT.tds_bytes(), [0x09, 0x04, 0xD0, 0x00, 0x34]);
        assert_eq!(Collation::by_name("latin1_general_bin2"), Some(Collation(8)));
        assert_eq!(Collation::by_tds_bytes([0x09, 0x04, 0xD0, 0x00, 0x34]), Some(Collation::DEFAULT));
        assert_eq!(Collation::by_name("Klingon_CI_AS"), None);
    }

    #[test]
    fn equality() {
        for (collation, left, right, same) in [
            ("SQL_Latin1_General_CP1_CI_AS", "Abc", "aBC  ", true),
            ("SQL_Latin1_General_CP1_CI_AS", "cafe", "caf\u{e9}", false),
            ("SQL_Latin1_General_CP1_CI_AS", "CAF\u{c9}", "cafe\u{301}", true),
            ("SQL_Latin1_General_CP1_CI_AI", "cafe", "CAF\u{c9}", true),
            ("Latin1_General_CS_AS", "a", "A", false),
            ("Latin1_General_CI_AS", "stra\u{df}e", "STRASSE", true),
            ("SQL_Latin1_General_CP1_CI_AS", "stra\u{df}e", "STRASSE", false),
            ("Latin1_General_BIN2", "a", "a ", true),
            ("Latin1_General_BIN2", "a", "A", false),
            ("Latin1_General_CI_AS", "\u{3b1}", "\u{391}", true),
        ] {
            assert_eq!(equal(left, right, named(collation)), same, "{left} {right} {collation}");
            let key = |text| {
                let mut out = Vec::new();
                hash_key(text, named(collation), &mut out);
                out
            };
            assert_eq!(key(left) == key(right), same, "hash {left} {right} {collation}");
        }
    }

    #[test]
    fn order() {
        for (collation, rising) in [
            ("SQL_Latin1_General_CP1_CI_AS", &["", " a", "!", "_", "1", "10", "2", "a", "\u{e1}", "ab", "B", "z"][..]),
            ("Latin1_General_CS_AS", &["a", "A", "\u{e1}", "\u{c1}", "b"]),
            ("SQL_Latin1_General_CP1_CS_AS", &["A", "a", "b"]),
            ("Latin1_General_BIN2", &["A", "B", "a", "\u{e1}"]),
            ("Latin1_General_CI_AS", &["z", "\u{3b1}", "\u{3b2}", "\u{436}", "\u{65e5}"]),
        ] {
            for pair in rising.windows(2) {
                assert_eq!(compare(pair[0], pair[1], named(collation)), Ordering::Less, "{pair:?} {collation}");
            }
        }
    }

    proptest! {
        #[test]
        fn keys_order_as_compare(a in "[ -~a-c\u{e0}-\u{ea}\u{300}\u{df}\u{3b1}-\u{3c9}\u{65e5}\u{1F600}]{0,6}", b in "[ -~A-C\u{e0}-\u{ea}\u{301}]{0,6}", which in 0..COLLATIONS.len() as u16) {
            let collation = Collation(which);
            let key = |text: &str| { let mut out = Vec::new(); sort_key(text, collation, &mut out); out };
            let hash = |text: &str| { let mut out = Vec::new(); hash_key(text, collation, &mut out); out };
            prop_assert_eq!(compare(&a, &b, collation), key(&a).cmp(&key(&b)));
            prop_assert_eq!(equal(&a, &b, collation), key(&a) == key(&b));
            prop_assert_eq!(equal(&a, &b, collation), hash(&a) == hash(&b));
            if !collation.info().binary {
                prop_assert!(!key(&a).contains(&0));
            }
        }
    }
}
