//! The VLFs: which parts of the file hold which stretch of the log, and which are free.
//!
//! ```text
//!  free ──activate──► active (start LSN given) ──truncate, oldest first──► free
//! ```
//!
//! LSN space is cut as the file is: a VLF activated at LSN s covers s .. s + its size, header included, and the next
//! one starts where it ends. Invariants: R1 active VLFs are contiguous in LSN ([`Ring::activate_next`] gives each the
//! end of the last). R2 the last active VLF is the one being appended to and is never freed ([`Ring::free_before`]).
//! R3 `free_body_bytes` is the sum over free VLFs ([`Ring::check`], in tests).
//!
//! Pure bookkeeping: no I/O, no locks; the caller holds the append lock.

use crate::ids::Lsn;
use crate::log::format::{Activation, Shape, VLF_HEADER_BYTES};
use std::collections::{BTreeMap, VecDeque};
use thawdb_device::file::SECTOR_BYTES;

/// VLFs are cut to multiples of this.
const CUT_BYTES: u64 = 64 * 1024;
/// Smallest VLF: holds a group of one split of three pages twice over.
const VLF_BYTES_MIN: u64 = 192 * 1024;
/// Largest VLF: truncation works in whole VLFs, so a coarse cut would hold space back (transaction-log rules).
const VLF_BYTES_MAX: u64 = 64 << 20;
/// VLFs that a shorter stretch is cut into, where each has the smallest size: with fewer, half of it could not be reused.
const VLF_COUNT_SMALL: u64 = 4;
/// VLFs that a stretch of at least 16 MB is cut into, where none is above the largest size.
const VLF_COUNT: u64 = 16;
/// VLFs that shrinking leaves: one being written, one held by the last checkpoint, one to go on in.
const VLF_COUNT_LEAST: usize = 3;
/// Largest group on any log.
const GROUP_BYTES_MAX: u64 = 4 << 20;

/// A VLF in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// Where it is.
    pub shape: Shape,
    /// LSN of its first byte.
    pub start: Lsn,
}

impl Active {
    /// LSN after its last byte.
    pub fn end(&self) -> Lsn {
        Lsn(self.start.0 + self.shape.size_bytes)
    }

    /// LSN of the first block.
    pub fn body(&self) -> Lsn {
        Lsn(self.start.0 + VLF_HEADER_BYTES)
    }

    /// Where a byte of it is in the file.
    pub fn file_offset(&self, at: Lsn) -> u64 {
        assert!(at >= self.start && at < self.end(), "{at:?} is in the VLF that was looked up for it");
        self.shape.offset + (at.0 - self.start.0)
    }
}

/// All VLFs of a log.
#[derive(Debug, Default)]
pub struct Ring {
    active: VecDeque<Active>,
    /// In file order after the last active one, so that reuse goes round.
    free: VecDeque<Shape>,
    free_body_bytes: u64,
    group_bytes_max: u64,
    /// The last use of each VLF that was ever used, by its place.
    past: BTreeMap<u64, Activation>,
}

/// Parity of a VLF's first use; it changes with each.
const PARITY_FIRST: u8 = 64;

/// Cuts `length_bytes` of file from `offset` into VLFs. What is left over at the end goes to the last.
pub fn cut(offset: u64, length_bytes: u64) -> Vec<Shape> {
    let count = match length_bytes {
        0..VLF_BYTES_MIN => 0,
        length if length < 16 << 20 => (length / (1 << 20)).max(VLF_COUNT_SMALL).min(length / VLF_BYTES_MIN),
        length => VLF_COUNT.max(length.div_ceil(VLF_BYTES_MAX)),
    };
    let Some(size_bytes) = length_bytes.checked_div(count).map(|size| size / CUT_BYTES * CUT_BYTES) else { return Vec::new() };
    let place = |n: u64| Shape { offset: offset + n * size_bytes, size_bytes, created_at: Lsn(0) };
    let mut shapes: Vec<Shape> = (0..count).map(place).collect();
    let last = shapes.last_mut().expect("count is above 0");
    last.size_bytes = (offset + length_bytes - last.offset) / SECTOR_BYTES as u64 * SECTOR_BYTES as u64;
    shapes
}

impl Ring {
    /// A ring of these VLFs: `active` contiguous in LSN, the last being appended to.
    pub fn new(active: Vec<Active>, free: Vec<Shape>) -> Self {
        let mut ring = Self { active: active.into(), group_bytes_max: GROUP_BYTES_MAX, ..Self::default() };
        let sizes = ring.active.iter().map(|a| a.shape).chain(free.iter().copied()).map(|s| s.size_bytes);
        ring.note_sizes(sizes.collect::<Vec<_>>());
        free.into_iter().for_each(|shape| ring.push_free(shape));
        ring.check();
        ring
    }

    fn note_sizes(&mut self, sizes: Vec<u64>) {
        for size in sizes {
            self.group_bytes_max = self.group_bytes_max.min((size - VLF_HEADER_BYTES) / 2);
        }
    }

    /// Says how each VLF was last used, as the file has it.
    pub fn set_past(&mut self, past: impl Iterator<Item = (Shape, Activation)>) {
        self.past = past.map(|(shape, activation)| (shape.offset, activation)).collect();
    }

    /// The last use of the VLF at this place of the file.
    pub fn last_use(&self, shape: &Shape) -> Option<&Activation> {
        self.past.get(&shape.offset)
    }

    /// Number of the VLF in use that begins at this LSN.
    pub fn number(&self, active: &Active) -> u32 {
        self.past.get(&active.shape.offset).map_or(0, |activation| activation.number)
    }

    /// Asserts R1 and R3.
    pub fn check(&self) {
        for (left, right) in self.active.iter().zip(self.active.iter().skip(1)) {
            assert_eq!(left.end(), right.start, "R1: active VLFs are contiguous");
        }
        let free: u64 = self.free.iter().map(|s| s.size_bytes - VLF_HEADER_BYTES).sum();
        assert_eq!(self.free_body_bytes, free, "R3: free bytes are counted");
    }

    /// Largest group that can be appended: half the smallest VLF's body, so that the tail of a VLF which a group does
    /// not fit in is never more than half of it.
    pub fn group_bytes_max(&self) -> u64 {
        self.group_bytes_max
    }

    /// The VLF being appended to.
    pub fn last(&self) -> Option<&Active> {
        self.active.back()
    }

    /// First byte of the oldest VLF held.
    pub fn oldest(&self) -> Lsn {
        self.active.front().map_or(Lsn(0), |a| a.start)
    }

    /// Bytes for blocks in free VLFs.
    pub fn free_body_bytes(&self) -> u64 {
        self.free_body_bytes
    }

    /// The VLFs in use, oldest first.
    pub fn active(&self) -> impl Iterator<Item = &Active> {
        self.active.iter()
    }

    /// Number of free VLFs.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// The active VLF with this byte of the log.
    pub fn locate(&self, at: Lsn) -> Option<Active> {
        let index = self.active.partition_point(|a| a.end() <= at);
        self.active.get(index).filter(|a| a.start <= at).copied()
    }

    /// Adds a free VLF.
    pub fn push_free(&mut self, shape: Shape) {
        self.free_body_bytes += shape.size_bytes - VLF_HEADER_BYTES;
        self.free.push_back(shape);
        self.note_sizes(vec![shape.size_bytes]);
    }

    /// Puts the next free VLF to use; `None` if there is none. Its activation says that blocks end at `continues_at`.
    pub fn activate_next(&mut self, continues_at: Lsn, incarnation: u32) -> Option<(Active, Activation)> {
        let shape = self.free.pop_front()?;
        self.free_body_bytes -= shape.size_bytes - VLF_HEADER_BYTES;
        let start = self.last().map_or(Lsn(0), Active::end);
        let number = self.last().map_or(0, |last| self.number(last)) + 1;
        let parity = self.past.get(&shape.offset).map_or(PARITY_FIRST, |last| last.parity ^ (64 | 128));
        let active = Active { shape, start };
        let activation = Activation { start, continues_at, incarnation, number, parity };
        self.active.push_back(active);
        self.past.insert(shape.offset, activation);
        Some((active, activation))
    }

    /// Where the log from `from` on really begins: the start of the next VLF, if no block of its own lies behind it.
    pub fn settled(&self, from: Lsn) -> Lsn {
        let next = self.active.partition_point(|active| active.start <= from);
        let Some(next) = self.active.get(next) else { return from };
        let ended = self.past.get(&next.shape.offset).is_some_and(|activation| activation.continues_at <= from);
        if ended { next.start } else { from }
    }

    /// The VLF being appended to ends earlier, behind what is in it.
    pub fn shorten_last(&mut self, shape: Shape) {
        let last = self.active.back_mut().expect("one is being appended to");
        assert!(last.shape.offset == shape.offset && shape.size_bytes <= last.shape.size_bytes, "a part of itself");
        last.shape = shape;
        self.note_sizes(vec![shape.size_bytes]);
    }

    /// Takes a free VLF out, its last use forgotten.
    pub fn remove(&mut self, shape: &Shape) {
        let place = self.free.iter().position(|free| free == shape).expect("it is free");
        self.free.remove(place);
        self.free_body_bytes -= shape.size_bytes - VLF_HEADER_BYTES;
        self.past.remove(&shape.offset);
    }

    /// The free VLFs, in the order of their use.
    pub fn free(&self) -> impl Iterator<Item = &Shape> {
        self.free.iter()
    }

    /// Lets the free VLFs nearest the start of the file be used next: what lies behind them can then be cut off.
    pub fn prefer_low(&mut self) {
        self.free.make_contiguous().sort_by_key(|shape| shape.offset);
    }

    /// Takes the free VLF that ends at `file_bytes` out for good, if there is one, it begins at `least_bytes` or beyond,
    /// and [`VLF_COUNT_LEAST`] others remain.
    pub fn remove_tail(&mut self, file_bytes: u64, least_bytes: u64) -> Option<Shape> {
        if self.free.len() + self.active.len() <= VLF_COUNT_LEAST {
            return None;
        }
        let is_tail = |shape: &Shape| shape.offset + shape.size_bytes == file_bytes && shape.offset >= least_bytes;
        let shape = *self.free.iter().find(|shape| is_tail(shape))?;
        self.remove(&shape);
        Some(shape)
    }

    /// Frees active VLFs that begin after `end`: activated by a flush that a crash cut short.
    pub fn retreat(mut self, end: Lsn) -> Self {
        while self.active.len() > 1 && self.active.back().is_some_and(|last| last.start >= end) {
            let last = self.active.pop_back().expect("more than one");
            self.free_body_bytes += last.shape.size_bytes - VLF_HEADER_BYTES;
            self.free.push_front(last.shape);
        }
        self
    }

    /// Frees the VLFs that lie wholly before `keep`, but never the last. Returns how many.
    pub fn free_before(&mut self, keep: Lsn) -> usize {
        let mut freed = 0;
        while self.active.len() > 1 && self.active[0].end() <= keep {
            let oldest = self.active.pop_front().expect("more than one");
            self.push_free(oldest.shape);
            freed += 1;
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_follow_the_rule() {
        for (length, count) in [(448 << 10, 2), (8 << 20, 8), (16 << 20, 16), (512 << 20, 16), (8 << 30, 128), (100, 0)] {
            let shapes = cut(RING, length);
            assert_eq!(shapes.len(), count, "{length}");
            assert!(shapes.windows(2).all(|w| w[0].offset + w[0].size_bytes == w[1].offset));
            assert!(shapes.iter().all(|s| s.size_bytes >= VLF_BYTES_MIN && s.size_bytes < VLF_BYTES_MAX + VLF_BYTES_MAX));
            if let Some(last) = shapes.last() {
                assert!(RING + length - (last.offset + last.size_bytes) < SECTOR_BYTES as u64);
            }
        }
    }

    const RING: u64 = 65_536;

    #[test]
    fn goes_round() {
        let mut ring = Ring::new(Vec::new(), cut(RING, 4 << 20));
        let mut activations = Vec::new();
        for _ in 0..4 {
            activations.push(ring.activate_next(Lsn(1), 1).unwrap().0);
        }
        assert!(ring.activate_next(Lsn(1), 1).is_none());
        assert_eq!(ring.free_before(activations[2].start), 2);
        ring.check();
        let again = ring.activate_next(Lsn(1), 1).unwrap().0;
        assert_eq!((again.shape, again.start), (activations[0].shape, activations[3].end()));
        assert_eq!(ring.locate(again.start).unwrap(), again);
        assert_eq!(ring.locate(activations[0].start), None);
        assert_eq!(ring.free_before(Lsn(u64::MAX)), 2);
        ring.check();
    }
}
