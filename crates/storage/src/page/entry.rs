//! The bytes of one entry: what a slot points to.
//!
//! ```text
//! | flags u8 | suffix length u16 | tag: txn u64, version u64 | count u16, count x 16 | key suffix | payload ... |
//!              of the key          only with TAGGED            only with LARGE
//! ```
//! A row of Votes (4-byte key, 25-byte row) takes 3 + 4 + 25 bytes and an 8-byte slot: 40.
//!
//! 1. Only the four flags exist; others are refused ([`Entry::parse`]).
//! 2. Lengths stay within the entry; the payload is what remains ([`Entry::parse`]).
//!
//! The payload of a leaf is the row, of an inner node the child; this module does not look into it.

use crate::ids::{LargeRef, TxnId};

/// The entry is a ghost: its row is deleted, its bytes wait for readers and the cleaner.
pub const GHOST: u8 = 1;
/// A version tag is present.
pub const TAGGED: u8 = 2;
/// References to large parts are present.
pub const LARGE: u8 = 4;
/// The payload is packed: the page's dictionary makes it whole.
pub const PACKED: u8 = 8;

/// Bytes before the optional parts.
pub const FIXED_BYTES: usize = 3;
/// Bytes of a version tag.
pub const TAG_BYTES: usize = 16;
/// Bytes of a reference to a large part.
pub const LARGE_REF_BYTES: usize = 16;

/// Who wrote the row last, and where its version before is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionTag {
    /// The writer.
    pub txn: TxnId,
    /// Pointer to the version before, as the version store gave it; 0 is none.
    pub version: u64,
}

/// A view of an entry's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Whether it is a ghost.
    pub ghost: bool,
    /// Whether the payload is packed, and nothing without its page's dictionary.
    pub packed: bool,
    /// Its version tag.
    pub tag: Option<VersionTag>,
    /// References to its large parts, one after the other.
    pub large_bytes: &'a [u8],
    /// The key after the page's common prefix.
    pub suffix: &'a [u8],
    /// The rest.
    pub payload: &'a [u8],
}

/// Why bytes are no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

fn split<'a>(bytes: &'a [u8], count: usize, what: &'static str) -> Result<(&'a [u8], &'a [u8]), Malformed> {
    bytes.split_at_checked(count).ok_or(Malformed(what))
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("the caller split off eight bytes"))
}

impl<'a> Entry<'a> {
    /// An entry of a key suffix and a payload, nothing more.
    pub const fn plain(suffix: &'a [u8], payload: &'a [u8]) -> Self {
        Self { ghost: false, packed: false, tag: None, large_bytes: &[], suffix, payload }
    }

    /// Reads the parts; the bytes may be hostile.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, mut rest) = split(bytes, FIXED_BYTES, "entry shorter than its fixed part")?;
        let flags = fixed[0];
        let suffix_bytes = usize::from(u16::from_le_bytes([fixed[1], fixed[2]]));
        if flags & !(GHOST | TAGGED | LARGE | PACKED) != 0 {
            return Err(Malformed("unknown entry flag"));
        }
        let mut tag = None;
        if flags & TAGGED != 0 {
            let (part, after) = split(rest, TAG_BYTES, "entry shorter than its version tag")?;
            tag = Some(VersionTag { txn: TxnId(word(part)), version: word(&part[8..]) });
            rest = after;
        }
        let mut large: &[u8] = &[];
        if flags & LARGE != 0 {
            let (count, after) = split(rest, 2, "entry shorter than its count of large parts")?;
            let count = usize::from(u16::from_le_bytes([count[0], count[1]]));
            (large, rest) = split(after, count * LARGE_REF_BYTES, "entry shorter than its large parts")?;
            if large.is_empty() {
                return Err(Malformed("large parts announced, none there"));
            }
        }
        let (suffix, payload) = split(rest, suffix_bytes, "entry shorter than its key")?;
        Ok(Self { ghost: flags & GHOST != 0, packed: flags & PACKED != 0, tag, large_bytes: large, suffix, payload })
    }

    /// Number of large parts.
    pub fn large_count(&self) -> usize {
        self.large_bytes.len() / LARGE_REF_BYTES
    }

    /// Large part `index`.
    pub fn large(&self, index: usize) -> Option<LargeRef> {
        self.large_bytes.get(index * LARGE_REF_BYTES..)?.first_chunk().map(|part| LargeRef(*part))
    }

    /// Bytes that [`Self::encode`] will append.
    pub fn encoded_bytes(&self) -> usize {
        let tag = if self.tag.is_some() { TAG_BYTES } else { 0 };
        let large = if self.large_bytes.is_empty() { 0 } else { 2 + self.large_bytes.len() };
        FIXED_BYTES + tag + large + self.suffix.len() + self.payload.len()
    }

    /// Appends the entry's bytes. The caller keeps keys and rows within a page, so lengths fit their fields.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let large = flag(!self.large_bytes.is_empty(), LARGE);
        out.push(flag(self.ghost, GHOST) | flag(self.packed, PACKED) | flag(self.tag.is_some(), TAGGED) | large);
        out.extend_from_slice(&u16::try_from(self.suffix.len()).expect("a key fits in a page").to_le_bytes());
        if let Some(tag) = self.tag {
            out.extend_from_slice(&tag.txn.0.to_le_bytes());
            out.extend_from_slice(&tag.version.to_le_bytes());
        }
        if !self.large_bytes.is_empty() {
            out.extend_from_slice(&u16::try_from(self.large_count()).expect("at most 1,024 large parts").to_le_bytes());
            out.extend_from_slice(self.large_bytes);
        }
        out.extend_from_slice(self.suffix);
        out.extend_from_slice(self.payload);
    }

    /// The same entry with these references, given as their bytes one after the other.
    pub fn with_large(self, refs: &'a [u8]) -> Self {
        assert!(refs.len().is_multiple_of(LARGE_REF_BYTES), "whole references");
        Self { large_bytes: refs, ..self }
    }
}

/// The slot's copy of the first bytes of a key suffix, so ordered that a comparison of heads never contradicts one of keys.
#[inline]
pub fn head(suffix: &[u8]) -> u32 {
    match suffix.first_chunk() {
        Some(first) => u32::from_be_bytes(*first),
        None => {
            let mut first = [0; 4];
            first[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_reads_back() {
        let refs: Vec<u8> = (0..32).collect();
        for case in 0..32_u8 {
            let entry = Entry {
                ghost: case & 1 != 0,
                packed: case & 16 != 0,
                tag: (case & 2 != 0).then_some(VersionTag { txn: TxnId(5), version: 9 }),
                large_bytes: if case & 4 != 0 { &refs } else { &[] },
                suffix: if case & 8 != 0 { b"key" } else { b"" },
                payload: b"row bytes",
            };
            let mut bytes = Vec::new();
            entry.encode(&mut bytes);
            assert_eq!(bytes.len(), entry.encoded_bytes());
            assert_eq!(Entry::parse(&bytes), Ok(entry));
        }
    }

    #[test]
    fn hostile_bytes_are_refused() {
        for (bytes, why) in [
            (&b"\0\0"[..], "entry shorter than its fixed part"),
            (&b"\x10\0\0"[..], "unknown entry flag"),
            (&b"\x02\0\0\0\0"[..], "entry shorter than its version tag"),
            (&b"\x04\0\0\xff\xff"[..], "entry shorter than its large parts"),
            (&b"\x04\0\0\0\0"[..], "large parts announced, none there"),
            (&b"\0\x04\0abc"[..], "entry shorter than its key"),
        ] {
            assert_eq!(Entry::parse(bytes), Err(Malformed(why)));
        }
    }

    #[test]
    fn heads_never_contradict_keys() {
        let keys: [&[u8]; 7] = [b"", b"\0", b"\0\0\0\0", b"\0\0\0\0\0", b"\x01", b"\x01\0\0\x01", b"\xff\xff\xff\xff\xff"];
        for a in keys {
            for b in keys.iter().filter(|b| a <= **b) {
                assert!(head(a) <= head(b));
            }
        }
    }
}
