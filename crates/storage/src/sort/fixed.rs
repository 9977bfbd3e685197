//! Rows of one short width as big-endian words, ordered by radix.
//!
//! ```text
//!   key (k bytes) || payload (p bytes) || zeros   =  N words, compared as numbers = memcmp
//!   few rows: comparison
//!   more:     counting passes between two buffers, from the least significant digit of the key to the first;
//!             a digit is up to eleven bits, and bits in which all rows agree are in no digit
//! ```
//! Whoever fills the buffer keeps it to what a core's caches hold (`super::RUN_BYTES`): passes over more would wait for
//! memory. Where rows come in the order of the last bytes of their keys, as entries of an index come in the order of the
//! table, those bytes need no pass: the others keep the order of equals.
//!
//! Invariants: 1. only key bytes decide in counting passes, and each pass keeps the order of rows it finds equal;
//! comparisons see the payload too, which orders equal keys in some way, as promised. No locks, no failure but memory.

use super::block::RunBlock;
use std::ops::Range;

/// Up to this many rows, counters of the passes cost more than comparing does.
const COMPARE_ROWS_MAX: usize = 64;
/// From so many rows on, a pass with counters for eleven bits is better than two with fewer.
const WIDE_DIGIT_ROWS_MIN: usize = 8_192;

pub(super) struct FixedRows<const N: usize> {
    rows: Vec<[u64; N]>,
    scratch: Vec<[u64; N]>,
    key_bytes: usize,
    payload_bytes: usize,
    /// Key bytes that need passes: the rows come in the order of those behind.
    loose_bytes: usize,
}

impl<const N: usize> FixedRows<N> {
    pub(super) fn new((key_bytes, payload_bytes): (usize, usize), ordered_bytes: usize) -> Self {
        assert!(key_bytes + payload_bytes <= N * 8, "a row of the shape fits the words");
        let loose_bytes = key_bytes.saturating_sub(ordered_bytes);
        Self { rows: Vec::new(), scratch: Vec::new(), key_bytes, payload_bytes, loose_bytes }
    }

    /// Adds a row; false if its lengths differ from the others'.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], payload: &[u8]) -> bool {
        if key.len() != self.key_bytes || payload.len() != self.payload_bytes {
            return false;
        }
        let mut bytes = [[0u8; 8]; N];
        let flat = bytes.as_flattened_mut();
        flat[..key.len()].copy_from_slice(key);
        flat[key.len()..key.len() + payload.len()].copy_from_slice(payload);
        self.rows.push(words_of(&bytes));
        true
    }

    /// Adds rows of this shape that lie one behind the other.
    pub(super) fn extend(&mut self, rows: &[u8]) {
        let width = self.key_bytes + self.payload_bytes;
        if width == N * 8 {
            let (whole, _) = rows.as_chunks::<8>();
            self.rows.extend(whole.as_chunks::<N>().0.iter().map(words_of));
            return;
        }
        self.rows.extend(rows.chunks_exact(width.max(1)).map(|row| {
            let mut bytes = [[0u8; 8]; N];
            bytes.as_flattened_mut()[..width].copy_from_slice(row);
            words_of(&bytes)
        }));
    }

    /// A block of the rows of `range`.
    pub(super) fn block(&self, range: Range<usize>) -> RunBlock {
        let width = self.key_bytes + self.payload_bytes;
        let mut bytes = Vec::with_capacity(range.len() * width);
        let rows = &self.rows[range.clone()];
        if width == N * 8 {
            rows.iter().for_each(|row| bytes.extend_from_slice(bytes_of(row).as_flattened()));
        } else {
            rows.iter().for_each(|row| bytes.extend_from_slice(&bytes_of(row).as_flattened()[..width]));
        }
        RunBlock::of_shape(self.shape(), range.len(), bytes)
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.rows.len() * N * 8
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn ordered_bytes(&self) -> usize {
        self.key_bytes - self.loose_bytes
    }

    pub(super) fn shape(&self) -> (u32, u32) {
        let narrow = |n: usize| u32::try_from(n).expect("at most 32");
        (narrow(self.key_bytes), narrow(self.payload_bytes))
    }

    #[inline]
    pub(super) fn row<'a>(&self, index: usize, scratch: &'a mut Vec<u8>) -> (&'a [u8], &'a [u8]) {
        scratch.resize(N * 8, 0);
        scratch.copy_from_slice(bytes_of(&self.rows[index]).as_flattened());
        scratch[..self.key_bytes + self.payload_bytes].split_at(self.key_bytes)
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    pub(super) fn sort(&mut self, comparison_count: &mut u64) {
        if !self.rows.is_sorted() {
            sort_words(&mut self.rows, self.loose_bytes, &mut self.scratch, comparison_count);
        }
    }
}

// Loops rather than `map`, whose calls are not always seen through.
#[inline]
fn words_of<const N: usize>(bytes: &[[u8; 8]; N]) -> [u64; N] {
    let mut words = [0; N];
    for at in 0..N {
        words[at] = u64::from_be_bytes(bytes[at]);
    }
    words
}

#[inline]
fn bytes_of<const N: usize>(words: &[u64; N]) -> [[u8; 8]; N] {
    let mut bytes = [[0; 8]; N];
    for at in 0..N {
        bytes[at] = words[at].to_be_bytes();
    }
    bytes
}

/// Orders arrays of words by their first `key_bytes` bytes, keeping the order of equals unless they are few.
pub(super) fn sort_words<const N: usize>(
    rows: &mut Vec<[u64; N]>,
    key_bytes: usize,
    scratch: &mut Vec<[u64; N]>,
    comparison_count: &mut u64,
) {
    if rows.len() <= COMPARE_ROWS_MAX {
        return sort_by_comparison(rows, comparison_count);
    }
    let width = if rows.len() >= WIDE_DIGIT_ROWS_MIN { 11 } else { 8 };
    let digits = digits(&varying_bits(rows, key_bytes), width);
    // A counting pass costs about as much as one and a half levels of comparison.
    if digits.len() > rows.len().ilog2() as usize {
        return sort_by_comparison(rows, comparison_count);
    }
    scratch.resize(rows.len(), [0; N]);
    for digit in digits {
        counting_pass(rows, scratch, &digit);
        std::mem::swap(rows, scratch);
    }
}

fn sort_by_comparison<const N: usize>(rows: &mut [[u64; N]], comparison_count: &mut u64) {
    // A stable sort: with digits for the first bytes alone, equals keep their order here too.
    rows.sort_by(|a, b| {
        *comparison_count += 1;
        a.cmp(b)
    });
}

/// Bits of the first `key_bytes` bytes in which the rows do not all agree.
fn varying_bits<const N: usize>(rows: &[[u64; N]], key_bytes: usize) -> [u64; N] {
    let mut all_or = [0u64; N];
    let mut all_and = [u64::MAX; N];
    for row in rows {
        for at in 0..N {
            all_or[at] |= row[at];
            all_and[at] &= row[at];
        }
    }
    let mut differ = all_or;
    for (at, (or, and)) in differ.iter_mut().zip(all_and).enumerate() {
        let bits = (key_bytes.saturating_sub(at * 8).min(8) * 8) as u32;
        *or = (*or ^ and) & u64::MAX.checked_shl(64 - bits).unwrap_or(0);
    }
    differ
}

/// Some bits of a word.
struct Digit {
    word: usize,
    shift: u32,
    mask: u64,
}

/// Digits of up to `width` bits that cover `bits`, the least significant first.
fn digits<const N: usize>(bits: &[u64; N], width: u32) -> Vec<Digit> {
    let mut digits = Vec::new();
    for (word, bits) in bits.iter().enumerate().rev() {
        let mut left = *bits;
        while left != 0 {
            let shift = left.trailing_zeros();
            let mask = (1 << width.min(64 - shift)) - 1;
            digits.push(Digit { word, shift, mask });
            left &= !(mask << shift);
        }
    }
    digits
}

/// Puts `rows` into `into`, ordered by one digit and otherwise as they were.
fn counting_pass<const N: usize>(rows: &[[u64; N]], into: &mut [[u64; N]], digit: &Digit) {
    let of = |row: &[u64; N]| (row[digit.word] >> digit.shift & digit.mask) as usize;
    let mut next = [0u32; 2048];
    for row in rows {
        next[of(row) & 2047] += 1;
    }
    let mut sum = 0;
    for slot in &mut next {
        sum += std::mem::replace(slot, sum);
    }
    for row in rows {
        let place = &mut next[of(row) & 2047];
        into[*place as usize] = *row;
        *place += 1;
    }
}
