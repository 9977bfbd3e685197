//! Rows of any lengths, one after another in an arena, ordered through (prefix, position) entries.
//!
//! ```text
//!   arena: | key_bytes u32 | payload_bytes u32 | key | payload | ...
//!   entry: [ eight key bytes behind the prefix all keys share, as a number ; position in the arena ]
//! ```
//! Invariants: 1. entries order first by prefix, then by the rest of the key, then by position: the order is total and
//! stable (`sort`). 2. The shared prefix is exact for all rows present (`push` shortens it). Positions are below 2^40.

use super::fixed::sort_words;
use std::cmp::Ordering;

/// Bytes of an arena piece; a longer row gets a piece of its own.
const PIECE_BYTES: usize = 1 << 20;
const HEAD_BYTES: usize = 8;

#[derive(Default)]
pub(super) struct ArenaRows {
    pieces: Vec<Vec<u8>>,
    used_bytes: usize,
    /// Before `sort` the prefix is 0.
    entries: Vec<[u64; 2]>,
    scratch: Vec<[u64; 2]>,
    shared_prefix: Option<Vec<u8>>,
}

#[inline]
fn position(piece: usize, at: usize) -> u64 {
    ((piece as u64) << 32) | at as u64
}

impl ArenaRows {
    pub(super) fn push(&mut self, key: &[u8], payload: &[u8]) {
        let row_bytes = HEAD_BYTES + key.len() + payload.len();
        if self.pieces.last().is_none_or(|piece| piece.len() + row_bytes > piece.capacity()) {
            self.pieces.push(Vec::with_capacity(row_bytes.max(PIECE_BYTES.min(4096 << self.pieces.len().min(8)))));
        }
        match &mut self.shared_prefix {
            None => self.shared_prefix = Some(key.to_vec()),
            Some(prefix) => {
                if !key.starts_with(prefix) {
                    let shared = prefix.iter().zip(key).take_while(|(a, b)| a == b).count();
                    prefix.truncate(shared);
                }
            }
        }
        let piece_index = self.pieces.len() - 1;
        let piece = &mut self.pieces[piece_index];
        self.entries.push([0, position(piece_index, piece.len())]);
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("lengths were checked at intake").to_le_bytes();
        piece.extend_from_slice(&length(key));
        piece.extend_from_slice(&length(payload));
        piece.extend_from_slice(key);
        piece.extend_from_slice(payload);
        self.used_bytes += row_bytes + size_of::<[u64; 2]>();
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn row(&self, index: usize) -> (&[u8], &[u8]) {
        row_at(&self.pieces, self.entries[index][1])
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.entries.clear();
        self.shared_prefix = None;
        self.used_bytes = 0;
    }

    pub(super) fn sort(&mut self, comparison_count: &mut u64) {
        let skip = self.shared_prefix.as_ref().map_or(0, Vec::len);
        let pieces = &self.pieces;
        for entry in &mut self.entries {
            entry[0] = prefix_of(&row_at(pieces, entry[1]).0[skip..]);
        }
        if !self.entries.is_sorted_by(|a, b| a[0] < b[0]) {
            sort_words(&mut self.entries, 8, &mut self.scratch, comparison_count);
            for group in self.entries.chunk_by_mut(|a, b| a[0] == b[0]) {
                if group.len() > 1 {
                    group.sort_unstable_by(|a, b| {
                        *comparison_count += 1;
                        compare_rest(pieces, skip, a[1], b[1])
                    });
                }
            }
        }
    }
}

/// Order of two rows whose keys agree in the shared prefix; the prefix number of a short key is padded with zeros,
/// so the comparison begins right behind the shared prefix.
fn compare_rest(pieces: &[Vec<u8>], skip: usize, a: u64, b: u64) -> Ordering {
    row_at(pieces, a).0[skip..].cmp(&row_at(pieces, b).0[skip..]).then(a.cmp(&b))
}

/// The first eight bytes as a number, zeros behind a shorter key.
#[inline]
pub(super) fn prefix_of(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(first)
        }
    }
}

#[inline]
fn row_at(pieces: &[Vec<u8>], position: u64) -> (&[u8], &[u8]) {
    let piece = &pieces[(position >> 32) as usize];
    let row = &piece[(position & 0xFFFF_FFFF) as usize..];
    let length = |at: usize| u32::from_le_bytes(row[at..at + 4].try_into().expect("four bytes")) as usize;
    let (key_bytes, payload_bytes) = (length(0), length(4));
    row[HEAD_BYTES..HEAD_BYTES + key_bytes + payload_bytes].split_at(key_bytes)
}
