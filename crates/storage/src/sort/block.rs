//! Blocks of sorted rows: what runs consist of, in memory, in a sort's file and in the trees of long operations.
//!
//! ```text
//!   version u8 | flags u8 | key_bytes u8 | payload_bytes u8 | row_count u32 | rows ...
//!   row:  key, payload                                            with FLAG_FIXED
//!         key length, payload length (LEB128 each), key, payload  else
//! ```
//! In memory the eight bytes before the rows are fields, and rows of any lengths have a list of where they begin. A run of rows
//! of one shape that is kept in memory may lie in a slab ([`PackedRun`]), whole, beside others: reading it copies nothing.
//!
//! Invariants: 1. rows are in the order of their keys; whoever pushes sees to it. 2. every start in `starts` is that of a
//! row that lies whole in `bytes` (`push`, `decode`). No locks. Failure: [`RunBlock::decode`] refuses bytes that are not a
//! block; that they are the right ones is for the checksum of the place they come from to say.

use super::rows::RowShape;
use std::ops::{Deref, Range};
use std::sync::Arc;
use thawdb_device::AlignedBuf;

const VERSION: u8 = 1;
const FLAG_FIXED: u8 = 1;
/// Bytes before the rows where a block is stored.
pub const BLOCK_HEADER_BYTES: usize = 8;

/// Sorted rows in one piece of memory.
#[derive(Debug, Clone, Default)]
pub struct RunBlock {
    /// Lengths that all rows have.
    shape: Option<RowShape>,
    count: usize,
    bytes: Bytes,
    /// Where each row's lengths begin, unless all rows have the same.
    starts: Vec<u32>,
}

/// Where the rows of a block lie.
#[derive(Debug, Clone)]
enum Bytes {
    Own(Vec<u8>),
    Slab(Arc<AlignedBuf>, Range<usize>),
}

impl Default for Bytes {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Slab(slab, range) => &slab[range.clone()],
        }
    }
}

impl Bytes {
    /// To be added to: a block's own.
    fn own(&mut self) -> &mut Vec<u8> {
        if let Self::Slab(..) = self {
            *self = Self::Own(self.to_vec());
        }
        match self {
            Self::Own(bytes) => bytes,
            Self::Slab(..) => unreachable!("it was copied"),
        }
    }
}

/// A run whose rows have one shape, copied to a slab.
#[derive(Debug, Clone)]
pub struct PackedRun {
    shape: RowShape,
    count: usize,
    range: Range<usize>,
}

impl PackedRun {
    /// Bytes that the blocks of a run take in a slab; `None` if their rows have no shape, or several.
    pub fn bytes_of(blocks: &[RunBlock]) -> Option<usize> {
        let shape = blocks.first()?.shape?;
        blocks.iter().all(|block| block.shape == Some(shape)).then(|| blocks.iter().map(|block| block.bytes.len()).sum())
    }

    /// Copies the blocks of a run, which have a shape, to a slab from its byte `at` on; there is room for them.
    pub fn pack(blocks: &[RunBlock], slab: &mut AlignedBuf, at: usize) -> Self {
        let shape = blocks.first().and_then(|block| block.shape).expect("asked of blocks that `bytes_of` counts");
        let mut end = at;
        for block in blocks {
            slab[end..end + block.bytes.len()].copy_from_slice(&block.bytes);
            end += block.bytes.len();
        }
        Self { shape, count: blocks.iter().map(|block| block.count).sum(), range: at..end }
    }

    /// Its place in the slab.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The whole run as one block, of the slab it was packed in.
    pub fn block(&self, slab: &Arc<AlignedBuf>) -> RunBlock {
        let bytes = Bytes::Slab(slab.clone(), self.range.clone());
        RunBlock { shape: Some(self.shape), count: self.count, bytes, starts: Vec::new() }
    }
}

/// Reads a length; `None` behind the end or beyond 32 bits.
#[inline]
fn read_length(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_u64;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return u32::try_from(value).ok().map(|value| value as usize);
        }
    }
    None
}

fn write_length(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn length_bytes(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// The first sixteen bytes of a key as a number, zeros behind a shorter key.
#[inline]
pub(super) fn head_of(key: &[u8]) -> u128 {
    match key.first_chunk::<16>() {
        Some(first) => u128::from_be_bytes(*first),
        None => match key.first_chunk::<8>() {
            Some(first) => u128::from(u64::from_be_bytes(*first)) << 64 | u128::from(tail_of(&key[8..])),
            None => u128::from(tail_of(key)) << 64,
        },
    }
}

#[inline]
fn tail_of(short: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..short.len()].copy_from_slice(short);
    u64::from_be_bytes(bytes)
}

impl RunBlock {
    /// A block for rows of any lengths.
    pub fn new() -> Self {
        Self::default()
    }

    /// A block of `count` rows that lie one behind the other.
    pub(super) fn of_shape(shape: RowShape, count: usize, bytes: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), (shape.0 + shape.1) as usize * count, "rows of one shape");
        Self { shape: Some(shape), count, bytes: Bytes::Own(bytes), starts: Vec::new() }
    }

    /// Adds a row of any lengths to a block that has no shape.
    pub(super) fn push(&mut self, key: &[u8], payload: &[u8]) {
        assert!(self.shape.is_none(), "rows of one shape come all at once");
        self.starts.push(u32::try_from(self.bytes.len()).expect("a block is small, and a row below half of 4 GiB"));
        let bytes = self.bytes.own();
        write_length(bytes, key.len());
        write_length(bytes, payload.len());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(payload);
        self.count += 1;
    }

    /// Leaves out the first `gone` rows and adds those of `next`, which follow in order.
    pub(super) fn go_on(&mut self, gone: usize, next: Self) {
        if gone == self.count {
            *self = next;
        } else if self.shape.is_some() && self.shape == next.shape {
            let start = self.bytes.len() - self.packed(gone..self.count).len();
            let bytes = self.bytes.own();
            bytes.drain(..start);
            bytes.extend_from_slice(&next.bytes);
            self.count = self.count - gone + next.count;
        } else {
            let mut both = Self::new();
            (gone..self.count).for_each(|index| both.push(self.row(index).0, self.row(index).1));
            (0..next.count).for_each(|index| both.push(next.row(index).0, next.row(index).1));
            *self = both;
        }
    }

    /// Rows in it.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn shape(&self) -> Option<RowShape> {
        self.shape
    }

    /// The rows of `range`, which have a shape, one behind the other.
    pub(super) fn packed(&self, range: Range<usize>) -> &[u8] {
        let (key_bytes, payload_bytes) = self.shape.expect("asked of blocks with a shape");
        let width = (key_bytes + payload_bytes) as usize;
        &self.bytes[range.start * width..range.end * width]
    }

    /// Bytes of memory that its rows take.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.starts.len() * size_of::<u32>()
    }

    /// Bytes of [`Self::encode`].
    pub fn stored_bytes(&self) -> usize {
        BLOCK_HEADER_BYTES + self.bytes.len()
    }

    /// Key and payload of a row.
    #[inline]
    pub fn row(&self, index: usize) -> (&[u8], &[u8]) {
        if let Some((key_bytes, payload_bytes)) = self.shape {
            let (key_bytes, width) = (key_bytes as usize, (key_bytes + payload_bytes) as usize);
            return self.bytes[index * width..(index + 1) * width].split_at(key_bytes);
        }
        let mut at = self.starts[index] as usize;
        let mut length = || read_length(&self.bytes, &mut at).expect("lengths were written by `push` or looked at by `decode`");
        let (key_bytes, payload_bytes) = (length(), length());
        self.bytes[at..at + key_bytes + payload_bytes].split_at(key_bytes)
    }

    /// A row's key.
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        self.row(index).0
    }

    /// The first sixteen bytes of a row's key as a number.
    #[inline]
    pub fn head(&self, index: usize) -> u128 {
        head_of(self.key(index))
    }

    /// Bytes of `encode` for rows of these lengths, where they have a shape, or for one row.
    pub(super) fn row_bytes(shape: Option<RowShape>, key: usize, payload: usize) -> usize {
        key + payload + if shape.is_some() { 0 } else { length_bytes(key) + length_bytes(payload) }
    }

    /// Appends its bytes as they are stored.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (key_bytes, payload_bytes) = self.shape.unwrap_or((0, 0));
        let short = |bytes: u32| u8::try_from(bytes).expect("a shape is of at most 32 bytes");
        out.extend_from_slice(&[VERSION, if self.shape.is_some() { FLAG_FIXED } else { 0 }, short(key_bytes), short(payload_bytes)]);
        out.extend_from_slice(&u32::try_from(self.count).expect("a block is small").to_le_bytes());
        out.extend_from_slice(&self.bytes);
    }

    /// A block from its stored bytes; what is wrong with them, if they are none.
    ///
    /// # Errors
    /// What was found instead of a block.
    pub fn decode(stored: &[u8]) -> Result<Self, String> {
        let (header, rows) = stored.split_first_chunk::<BLOCK_HEADER_BYTES>().ok_or("a block of sorted rows without a header")?;
        let [version, flags, key_bytes, payload_bytes, count @ ..] = *header;
        if version != VERSION || flags & !FLAG_FIXED != 0 {
            return Err(format!("a block of sorted rows of version {version}, flags {flags:#x}"));
        }
        let count = u32::from_le_bytes(count) as usize;
        let mut block = Self { shape: None, count, bytes: Bytes::Own(rows.to_vec()), starts: Vec::new() };
        if flags & FLAG_FIXED != 0 {
            if rows.len() != count * (usize::from(key_bytes) + usize::from(payload_bytes)) {
                return Err(format!("{} bytes for {count} rows of {key_bytes} and {payload_bytes}", rows.len()));
            }
            block.shape = Some((key_bytes.into(), payload_bytes.into()));
            return Ok(block);
        }
        block.find_starts().ok_or("a sorted row beyond its block")?;
        Ok(block)
    }

    fn find_starts(&mut self) -> Option<()> {
        let mut at = 0;
        // Each row takes two bytes at least: a false count is found before memory is asked for.
        self.starts.reserve(self.count.min(self.bytes.len() / 2));
        for _ in 0..self.count {
            self.starts.push(u32::try_from(at).ok()?);
            let (key_bytes, payload_bytes) = (read_length(&self.bytes, &mut at)?, read_length(&self.bytes, &mut at)?);
            at = at.checked_add(key_bytes)?.checked_add(payload_bytes)?;
            if at > self.bytes.len() {
                return None;
            }
        }
        (at == self.bytes.len()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_nothing_else_does() {
        let mut block = RunBlock::new();
        let rows = [(b"a".to_vec(), vec![]), (b"ab".to_vec(), vec![7; 200]), (vec![b'c'; 20_000], vec![1])];
        rows.iter().for_each(|(key, payload)| block.push(key, payload));
        let fixed = RunBlock::of_shape((2, 1), 3, b"aa1bb2cc3".to_vec());
        for (block, rows) in
            [(&block, rows.to_vec()), (&fixed, [b"aa1", b"bb2", b"cc3"].map(|r| (r[..2].to_vec(), r[2..].to_vec())).to_vec())]
        {
            let mut stored = Vec::new();
            block.encode(&mut stored);
            let back = RunBlock::decode(&stored).unwrap();
            let got: Vec<_> = (0..back.len()).map(|at| (back.key(at).to_vec(), back.row(at).1.to_vec())).collect();
            assert_eq!(got, rows);
            for cut in 0..stored.len() {
                assert!(RunBlock::decode(&stored[..cut]).is_err(), "cut at {cut}");
            }
            stored.push(0);
            assert!(RunBlock::decode(&stored).is_err(), "a byte too many");
            stored[0] = 9;
            assert!(RunBlock::decode(&stored).is_err(), "another version");
        }
    }

    #[test]
    fn a_packed_run_is_its_blocks() {
        let fixed = |rows: &str| RunBlock::of_shape((1, 1), rows.len() / 2, rows.as_bytes().to_vec());
        let mut slab = AlignedBuf::zeroed(4096);
        let blocks = [fixed("a1b2"), fixed("c3")];
        assert_eq!(PackedRun::bytes_of(&blocks), Some(6));
        assert_eq!(PackedRun::bytes_of(&[fixed("a1"), RunBlock::new()]), None);
        let (first, second) = (PackedRun::pack(&blocks, &mut slab, 0), PackedRun::pack(&[fixed("d4")], &mut slab, 6));
        assert_eq!((first.range(), second.range()), (0..6, 6..8));
        let slab = Arc::new(slab);
        let mut block = first.block(&slab);
        assert_eq!((0..block.len()).map(|at| block.row(at)).collect::<Vec<_>>(), [(&b"a"[..], &b"1"[..]), (b"b", b"2"), (b"c", b"3")]);
        // What goes on is a block of its own: the slab stays as it is.
        block.go_on(2, second.block(&slab));
        assert_eq!((0..block.len()).map(|at| block.key(at)).collect::<Vec<_>>(), [b"c", b"d"]);
        assert_eq!(slab[..8], *b"a1b2c3d4");
    }

    #[test]
    fn blocks_go_on_whatever_their_shapes() {
        let fixed = |rows: &str| RunBlock::of_shape((1, 1), rows.len() / 2, rows.as_bytes().to_vec());
        let mut loose = RunBlock::new();
        [("c", "3"), ("dd", "")].iter().for_each(|(key, payload)| loose.push(key.as_bytes(), payload.as_bytes()));
        let mut block = fixed("a1b2");
        for (gone, next, expected) in [(1, fixed("c3d4"), "b2c3d4"), (2, loose, "d4c3dd"), (3, fixed("e5"), "e5")] {
            block.go_on(gone, next);
            let all: Vec<u8> = (0..block.len()).flat_map(|at| [block.row(at).0, block.row(at).1].concat()).collect();
            assert_eq!(String::from_utf8(all).unwrap(), expected);
        }
    }

    #[test]
    fn heads_order_as_keys_do() {
        let keys: Vec<Vec<u8>> = (0..40).map(|n| vec![n as u8 % 3; n % 20]).collect();
        for a in &keys {
            for b in &keys {
                if head_of(a) < head_of(b) {
                    assert!(a < b);
                }
            }
        }
        assert_eq!(head_of(b"\x01"), 1 << 120);
        assert_eq!(head_of(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), 1 << 56);
    }
}
