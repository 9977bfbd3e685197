//! Reading and writing the primitive fields of TDS (MS-TDS 2.2.5): little-endian integers, counted strings.
//!
//! Invariants: B1 a [`Reader`] never looks past its bytes: every getter goes through [`Reader::bytes`], which checks.
//! B2 no length read from the wire sizes an allocation before the bytes behind it are known to be there.

use std::fmt;

/// In what way input is not what the protocol says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The bytes end too early: more of the message may mend it.
    Incomplete,
    /// They make no sense, and so nothing behind them does.
    Malformed,
    /// A whole value was read and its type has no such value: what follows it can be read.
    Value,
}

/// Input that is not what the protocol says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// What was being read.
    pub what: &'static str,
    /// How many bytes before the end of the message it went wrong.
    pub remaining: usize,
    /// What can be done about it.
    pub flaw: Flaw,
}

impl DecodeError {
    /// Whether more of the message may mend it.
    pub fn is_incomplete(&self) -> bool {
        self.flaw == Flaw::Incomplete
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {} ({} bytes before the end)", self.what, self.remaining)
    }
}

impl std::error::Error for DecodeError {}

/// A cursor over received bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether all is read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The error of finding something wrong here.
    pub fn malformed(&self, what: &'static str) -> DecodeError {
        DecodeError { what, remaining: self.rest.len(), flaw: Flaw::Malformed }
    }

    /// The error of a value, read before here, that its type does not have.
    pub fn no_value(&self, what: &'static str) -> DecodeError {
        DecodeError { what, remaining: self.rest.len(), flaw: Flaw::Value }
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            return Err(DecodeError { what, remaining: self.rest.len(), flaw: Flaw::Incomplete });
        };
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        Ok(self.bytes(N, what)?.try_into().expect("bytes() returned N bytes"))
    }

    /// The next byte, without taking it.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// A byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(what)?[0])
    }

    /// USHORT.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// USHORT in network order, as PRELOGIN has it.
    pub fn u16_be(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_be_bytes)
    }

    /// ULONG or DWORD.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// LONG.
    pub fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.array(what).map(i32::from_le_bytes)
    }

    /// ULONGLONG.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// `units` UTF-16 units as text.
    pub fn utf16(&mut self, units: usize, what: &'static str) -> Result<String, DecodeError> {
        Ok(utf16_text(self.bytes(units * 2, what)?))
    }

    /// B_VARCHAR: text counted by a byte.
    pub fn b_varchar(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let units = usize::from(self.u8(what)?);
        self.utf16(units, what)
    }

    /// US_VARCHAR: text counted by a USHORT.
    pub fn us_varchar(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let units = usize::from(self.u16(what)?);
        self.utf16(units, what)
    }
}

/// UTF-16LE bytes as text; what is not UTF-16 becomes U+FFFD, as in every text that enters the engine.
pub fn utf16_text(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    if bytes.chunks_exact(2).all(|pair| pair[1] == 0 && pair[0] < 0x80) {
        return bytes.chunks_exact(2).map(|pair| char::from(pair[0])).collect();
    }
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Appending primitive fields.
pub trait Writer {
    /// A byte.
    fn put_u8(&mut self, value: u8);
    /// USHORT.
    fn put_u16(&mut self, value: u16);
    /// USHORT in network order.
    fn put_u16_be(&mut self, value: u16);
    /// ULONG or DWORD.
    fn put_u32(&mut self, value: u32);
    /// LONG.
    fn put_i32(&mut self, value: i32);
    /// ULONGLONG.
    fn put_u64(&mut self, value: u64);
    /// UTF-16LE without a count; returns the units written.
    fn put_utf16(&mut self, text: &str) -> usize;
    /// B_VARCHAR; text beyond 255 units is cut.
    fn put_b_varchar(&mut self, text: &str);
    /// US_VARCHAR; text beyond 65,535 units is cut.
    fn put_us_varchar(&mut self, text: &str);
    /// Writes with `body`, preceded by the USHORT count of the bytes it wrote.
    fn put_counted_u16(&mut self, body: impl FnOnce(&mut Self));
}

impl Writer for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u16_be(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_i32(&mut self, value: i32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_utf16(&mut self, text: &str) -> usize {
        let before = self.len();
        if text.is_ascii() {
            self.extend(text.bytes().flat_map(|byte| [byte, 0]));
        } else {
            self.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        }
        (self.len() - before) / 2
    }

    fn put_b_varchar(&mut self, text: &str) {
        let at = self.len();
        self.push(0);
        let units = self.put_utf16(text).min(usize::from(u8::MAX));
        self[at] = u8::try_from(units).expect("limited to 255");
        self.truncate(at + 1 + units * 2);
    }

    fn put_us_varchar(&mut self, text: &str) {
        let at = self.len();
        self.put_u16(0);
        let units = self.put_utf16(text).min(usize::from(u16::MAX));
        self[at..at + 2].copy_from_slice(&u16::try_from(units).expect("limited to 65,535").to_le_bytes());
        self.truncate(at + 2 + units * 2);
    }

    fn put_counted_u16(&mut self, body: impl FnOnce(&mut Self)) {
        let at = self.len();
        self.put_u16(0);
        body(self);
        let count = u16::try_from(self.len() - at - 2).expect("tokens with a USHORT length are built from bounded parts");
        self[at..at + 2].copy_from_slice(&count.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_and_are_cut() {
        for text in ["", "a", "Grüße", "日本語", "𝄞"] {
            let mut bytes = Vec::new();
            bytes.put_b_varchar(text);
            bytes.put_us_varchar(text);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.b_varchar("a").unwrap(), text);
            assert_eq!(reader.us_varchar("b").unwrap(), text);
            assert!(reader.is_empty());
        }
        let mut bytes = Vec::new();
        bytes.put_b_varchar(&"x".repeat(300));
        assert_eq!(bytes.len(), 511);
    }

    #[test]
    fn short_input_is_an_error() {
        let mut reader = Reader::new(&[5, 65, 0]);
        assert!(reader.b_varchar("name").unwrap_err().is_incomplete());
        assert_eq!(Reader::new(&[1, 2, 3]).u32("n").unwrap_err().remaining, 3);
    }
}
