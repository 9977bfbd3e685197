//! Finding terminators in bytes, eight at a time.
//!
//! A byte of `word ^ pattern` is zero where the needle is; `(x - 01..) & !x & 80..` has its lowest set bit in the first
//! zero byte (Mycroft's test: bytes above the first may be false, the first never is).

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// First position from `from` on whose byte is `a` or `b`.
#[inline]
pub(super) fn find_either(bytes: &[u8], from: usize, a: u8, b: u8) -> Option<usize> {
    let (pattern_a, pattern_b) = (LOW * u64::from(a), LOW * u64::from(b));
    let mut at = from;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes were taken"));
        let hits = zero_bytes(word ^ pattern_a) | zero_bytes(word ^ pattern_b);
        if hits != 0 {
            return Some(at + hits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes.get(at..)?.iter().position(|byte| *byte == a || *byte == b).map(|offset| at + offset)
}

/// First position of `needle` from `from` on.
#[inline]
pub(super) fn find(bytes: &[u8], from: usize, needle: u8) -> Option<usize> {
    let pattern = LOW * u64::from(needle);
    let mut at = from;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes were taken"));
        let hits = zero_bytes(word ^ pattern);
        if hits != 0 {
            return Some(at + hits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes.get(at..)?.iter().position(|byte| *byte == needle).map(|offset| at + offset)
}

/// First position of all of `needle`, which is not empty.
#[inline]
pub(super) fn find_all(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    let mut at = from;
    loop {
        at = find(bytes, at, needle[0])?;
        if bytes[at..].starts_with(needle) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position() {
        for length in 0..40 {
            for at in 0..length {
                let mut bytes = vec![b'x'; length];
                bytes[at] = b',';
                for from in 0..=length {
                    let expected = (from <= at).then_some(at);
                    assert_eq!(find(&bytes, from, b','), expected);
                    assert_eq!(find_either(&bytes, from, b'\n', b','), expected);
                    assert_eq!(find_all(&bytes, from, b","), expected);
                }
            }
            assert_eq!(find(&vec![b'-'; length], 0, b','), None);
        }
        assert_eq!(find_all(b"a\rb\r\r\n", 0, b"\r\n"), Some(4));
        assert_eq!(find_all(b"a|~b|~|", 0, b"|~|"), Some(4));
        assert_eq!(find(&[0x80, 0x01, 0x00], 0, 0), Some(2));
    }
}
