//! Code page 1252, what varchar of every Latin collation but the `_UTF8` ones holds on the wire and in lengths.
//!
//! Bytes 81, 8D, 8F, 90 and 9D are not assigned; they go to the control characters of the same number and back, as
//! Windows does. A character outside the page becomes the letter it is a variant of where there is one, else `?`.

/// Bytes 80..9F as characters.
const HIGH: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2C6}', '\u{2030}', '\u{160}',
    '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}',
    '\u{2014}', '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

fn byte_of(c: char) -> Option<u8> {
    let code = c as u32;
    match code {
        0..=0x7F | 0xA0..=0xFF => Some(code as u8),
        _ => HIGH.iter().position(|h| *h == c).map(|at| 0x80 + at as u8),
    }
}

/// The byte of `c`, or of the plain letter it decomposes to, or `?`.
fn best_fit(c: char) -> u8 {
    byte_of(c).unwrap_or_else(|| match c {
        '\u{FF01}'..='\u{FF5E}' => (c as u32 - 0xFEE0) as u8,
        _ => {
            let mut parts = icu_normalizer::DecomposingNormalizerBorrowed::new_nfd().normalize_iter(std::iter::once(c));
            parts.next().filter(|base| *base != c).and_then(byte_of).unwrap_or(b'?')
        }
    })
}

/// Appends the code page bytes of `text`; a supplementary character becomes two `?`, as its two UTF-16 units do.
pub fn encode_1252(text: &str, out: &mut Vec<u8>) {
    if text.is_ascii() {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for c in text.chars() {
        out.push(best_fit(c));
        if c.len_utf16() == 2 {
            out.push(b'?');
        }
    }
}

/// The text of code page bytes; every byte is a character.
pub fn decode_1252(bytes: &[u8]) -> String {
    if bytes.is_ascii() {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    bytes.iter().map(|b| if (0x80..0xA0).contains(b) { HIGH[usize::from(b - 0x80)] } else { char::from(*b) }).collect()
}

/// Bytes `text` takes in the code page: varchar's length.
pub fn length_1252(text: &str) -> usize {
    super::utf16_length(text)
}

/// What is left of `text` after a stay in varchar; `None` if all of it is.
pub fn to_1252_text(text: &str) -> Option<String> {
    if text.is_ascii() || text.chars().all(|c| byte_of(c).is_some()) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    encode_1252(text, &mut bytes);
    Some(decode_1252(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_round_trips() {
        let all: Vec<u8> = (0..=255).collect();
        let text = decode_1252(&all);
        let mut back = Vec::new();
        encode_1252(&text, &mut back);
        assert_eq!(back, all);
        assert_eq!(to_1252_text(&text), None);
    }

    #[test]
    fn what_does_not_fit() {
        assert_eq!(to_1252_text("\u{65e5}a\u{20AC}\u{1F600}"), Some("?a\u{20AC}??".to_string()));
        assert_eq!(to_1252_text("\u{101}\u{159}"), Some("ar".to_string()));
        assert_eq!(length_1252("a\u{1F600}"), 3);
    }
}
