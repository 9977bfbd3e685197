//! Temporary seat of code page 1252 until `types` has it.

/// Appends `text` in code page 1252, '?' for what it lacks.
pub fn encode_1252(text: &str, out: &mut Vec<u8>) {
    out.extend(text.chars().map(|c| match u32::from(c) {
        n @ (0..=0x7F | 0xA0..=0xFF) => n as u8,
        _ => HIGH.iter().position(|h| *h == c).map_or(b'?', |n| 0x80 + n as u8),
    }));
}

/// Text of code page 1252.
pub fn decode_1252(bytes: &[u8]) -> String {
    bytes.iter().map(|b| if (0x80..0xA0).contains(b) { HIGH[usize::from(*b) - 0x80] } else { char::from(*b) }).collect()
}

const HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–',
    '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];
