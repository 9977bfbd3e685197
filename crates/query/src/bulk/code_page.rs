//! Bytes of character files to text and back, by code page.
//!
//! ASCII is the same in all of them and is asked for first. Bytes that are no UTF-8 become U+FFFD, as in SQL Server.

use crate::bulk::options::CodePage;
use std::borrow::Cow;
use thawdb_types::SqlType;
use thawdb_types::collation::{decode_1252, encode_1252};

/// Bytes 80..FF of code page 437.
const HIGH_437: &str = "\
ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}";

/// The text of a field's bytes for a column of `sql_type`.
pub(super) fn decode<'a>(bytes: &'a [u8], page: CodePage, sql_type: &SqlType) -> Cow<'a, str> {
    let is_utf8_column = || !sql_type.is_unicode() && sql_type.collation().is_some_and(|c| c.info().utf8);
    match page {
        CodePage::Utf8 => String::from_utf8_lossy(bytes),
        CodePage::Raw if is_utf8_column() => String::from_utf8_lossy(bytes),
        CodePage::Raw | CodePage::Windows1252 => match std::str::from_utf8(bytes) {
            Ok(text) if bytes.is_ascii() => Cow::Borrowed(text),
            _ => Cow::Owned(decode_1252(bytes)),
        },
        CodePage::Oem437 => Cow::Owned(bytes.iter().map(|byte| of_437(*byte)).collect()),
    }
}

fn of_437(byte: u8) -> char {
    match byte.checked_sub(0x80) {
        None => char::from(byte),
        Some(at) => HIGH_437.chars().nth(usize::from(at)).expect("the page has 128 high characters"),
    }
}

/// Bytes of a terminator in a code page; what the page lacks becomes `?`.
pub(super) fn encode(text: &str, page: CodePage) -> Vec<u8> {
    match page {
        CodePage::Utf8 => text.as_bytes().to_vec(),
        CodePage::Raw | CodePage::Windows1252 => {
            let mut bytes = Vec::with_capacity(text.len());
            encode_1252(text, &mut bytes);
            bytes
        }
        CodePage::Oem437 => text.chars().map(to_437).collect(),
    }
}

fn to_437(c: char) -> u8 {
    if c.is_ascii() {
        return c as u8;
    }
    HIGH_437.chars().position(|h| h == c).map_or(b'?', |at| 0x80 + at as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        assert_eq!(HIGH_437.chars().count(), 128);
        let decoded = |bytes: &[u8], page| decode(bytes, page, &SqlType::varchar(10)).into_owned();
        assert_eq!(decoded(b"a\x82\xE1\xFF", CodePage::Oem437), "a\u{E9}\u{DF}\u{A0}");
        assert_eq!(decoded(b"a\xE9\x80", CodePage::Windows1252), "a\u{E9}\u{20AC}");
        assert_eq!(decoded(b"a\xE9", CodePage::Raw), "a\u{E9}");
        assert_eq!(decoded(b"a\xC3\xA9\xFF", CodePage::Utf8), "a\u{E9}\u{FFFD}");
        for byte in 0..=255u8 {
            assert_eq!(encode(&decoded(&[byte], CodePage::Oem437), CodePage::Oem437), [byte]);
        }
    }
}
