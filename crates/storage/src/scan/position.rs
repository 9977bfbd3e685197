//! Where a scan is in its range, and what it may believe of the leaf beside the one it has read.
//!
//! ```text
//!   Position   range + direction + last key dealt with ──> where to descend (`seek`), which slots are still to come
//!   Sideways   steps to the leaf beside that failed, one after another without a new key in between
//! ```
//! Both kinds of scan ([`super::Scan`], `locked_scan::LockingScan`) hold no latch between leaves, so the leaf beside may
//! have been split, emptied or freed since it was named. Then they descend by the last key, which finds the way, unless
//! the pointer itself is wrong: then each descent leads to the same step again.
//!
//! Invariants: 1. slots at or before the last key dealt with are never given again (`slots_inside`). 2. A scan ends: a step
//! fails at most [`FAILED_STEPS_MAX`] times without a new key (`Sideways::failed`), and steps in a circle of leaves without
//! new keys fail after going round a few times (`Sideways::stepped`, after Brent, "An improved Monte Carlo factorization
//! algorithm", 1980). No locks. Failure: the error that the step met, or `Damage`.

use crate::btree::Seek;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId};
use crate::page::{PAGE_BYTES, PageBytes, PageType, Slotted, header};
use crate::spec::{KeyRange, ScanDirection};
use std::ops::{Bound, Range};

/// Steps to a leaf that may fail before it is taken for damaged. One may fail because the leaf is being freed or split;
/// every further one needs another change of the same place that brings no key, which does not happen eight times.
const FAILED_STEPS_MAX: u32 = 8;

/// A place in a range of keys.
pub(crate) struct Position {
    pub(crate) range: KeyRange,
    pub(crate) direction: ScanDirection,
    /// Everything up to and with it has been dealt with.
    pub(crate) after: Option<Vec<u8>>,
}

impl Position {
    /// The beginning of a range.
    pub(crate) fn new(range: KeyRange, direction: ScanDirection) -> Self {
        Self { range, direction, after: None }
    }

    pub(crate) fn is_forward(&self) -> bool {
        self.direction == ScanDirection::Forward
    }

    /// Which leaf to descend to.
    pub(crate) fn seek(&self) -> Seek<'_> {
        match (&self.after, self.direction) {
            (Some(key), ScanDirection::Forward) => Seek::Key(key),
            (Some(key), ScanDirection::Backward) => Seek::Before(key),
            (None, ScanDirection::Forward) => match &self.range.start {
                Bound::Included(key) | Bound::Excluded(key) => Seek::Key(key),
                Bound::Unbounded => Seek::First,
            },
            (None, ScanDirection::Backward) => match &self.range.end {
                Bound::Included(key) => Seek::Key(key),
                Bound::Excluded(key) => Seek::Before(key),
                Bound::Unbounded => Seek::Last,
            },
        }
    }

    /// Slots of a leaf within the range and beyond what was dealt with.
    pub(crate) fn slots_inside(&self, page: &PageBytes) -> Range<usize> {
        let leaf = Slotted(page);
        let from = |key: &[u8], excluded: bool| match leaf.search(key) {
            Ok(slot) => slot + usize::from(excluded),
            Err(slot) => slot,
        };
        let mut start = match &self.range.start {
            Bound::Included(key) => from(key, false),
            Bound::Excluded(key) => from(key, true),
            Bound::Unbounded => 0,
        };
        let mut end = match &self.range.end {
            Bound::Included(key) => from(key, true),
            Bound::Excluded(key) => from(key, false),
            Bound::Unbounded => leaf.len(),
        };
        match (&self.after, self.direction) {
            (Some(key), ScanDirection::Forward) => start = start.max(from(key, true)),
            (Some(key), ScanDirection::Backward) => end = end.min(from(key, false)),
            (None, _) => {}
        }
        start..end.max(start)
    }

    /// Whether the range ends within a leaf whose slots inside are `slots`.
    pub(crate) fn ends_in(&self, page: &PageBytes, slots: &Range<usize>) -> bool {
        if self.is_forward() { slots.end < Slotted(page).len() } else { slots.start > 0 }
    }

    /// The leaf beside, in the scan's direction.
    pub(crate) fn beside(&self, page: &PageBytes) -> PageId {
        if self.is_forward() { header::right(page) } else { header::left(page) }
    }

    /// Whether a page is a leaf of the tree that names `last` as the one before it.
    pub(crate) fn follows(&self, page: &PageBytes, tree: TreeId, last: PageId) -> bool {
        let back = if self.is_forward() { header::left(page) } else { header::right(page) };
        header::page_type(page) == Some(PageType::Leaf) && header::tree(page) == tree && back == last
    }
}

/// Steps sideways since the last new key.
pub(crate) struct Sideways {
    /// The leaf that could not be stepped to, and how often.
    failed: (PageId, u32),
    /// A leaf that was stepped to, how many steps ago, and when another is to be remembered in its place.
    met: (PageId, u32, u32),
}

impl Sideways {
    pub(crate) fn new() -> Self {
        Self { failed: (PageId::NONE, 0), met: (PageId::NONE, 0, 1) }
    }

    /// New keys were found: what was met before proves nothing any more.
    pub(crate) fn found_keys(&mut self) {
        *self = Self::new();
    }

    /// `leaf` can be stepped to; false if the steps have led there before: then the step counts as failed, for the leaf
    /// may have been freed and used again meanwhile.
    pub(crate) fn stepped(&mut self, leaf: PageId) -> bool {
        let (anchor, steps, limit) = &mut self.met;
        if *anchor == leaf {
            return false;
        }
        *steps += 1;
        if *steps == *limit {
            (*anchor, *steps, *limit) = (leaf, 0, limit.saturating_mul(2));
        }
        true
    }

    /// The step from `last` to `leaf` failed, with an error or because it is not the leaf beside; the caller descends, unless
    /// that has not helped. The way of steps begins anew then.
    pub(crate) fn failed(&mut self, last: PageId, leaf: PageId, error: Option<StorageError>) -> Result<(), StorageError> {
        let times = if self.failed.0 == leaf { self.failed.1 + 1 } else { 1 };
        *self = Self { failed: (leaf, times), ..Self::new() };
        if times < FAILED_STEPS_MAX {
            return Ok(());
        }
        let damage = || {
            let detail = format!("not the leaf beside ({}:{}) that it should be", last.file, last.page);
            StorageError::Damage { page: leaf, offset: u64::from(leaf.page) * PAGE_BYTES as u64, detail }
        };
        Err(error.unwrap_or_else(damage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32) -> PageId {
        PageId { file: 1, page: number }
    }

    #[test]
    fn a_step_that_fails_again_and_again_ends_with_its_error() {
        let mut sideways = Sideways::new();
        let fail = |sideways: &mut Sideways, to| sideways.failed(page(7), page(to), None);
        for _ in 1..FAILED_STEPS_MAX {
            fail(&mut sideways, 8).expect("it may be a leaf that is being freed");
            assert!(sideways.stepped(page(6)), "empty leaves lie on the way back");
        }
        let error = fail(&mut sideways, 8).expect_err("it was not");
        assert!(matches!(&error, StorageError::Damage { page, .. } if page.page == 8), "{error}");
        let cancelled = sideways.failed(page(7), page(8), Some(StorageError::Cancelled));
        assert!(matches!(cancelled, Err(StorageError::Cancelled)), "the step's own error is told");
    }

    #[test]
    fn new_keys_and_other_leaves_begin_the_count_anew() {
        let mut sideways = Sideways::new();
        for turn in 0..10 * FAILED_STEPS_MAX {
            sideways.failed(page(7), page(8 + turn % 2), None).expect("not the same leaf twice in a row");
        }
        for _ in 0..10 * FAILED_STEPS_MAX {
            sideways.failed(page(7), page(8), None).expect("keys came in between");
            sideways.found_keys();
        }
    }

    #[test]
    fn circles_of_any_length_are_found_and_long_ways_are_none() {
        for length in [1, 2, 3, 7, 64, 100] {
            let mut sideways = Sideways::new();
            let is_met = (0..4 * length).any(|step| !sideways.stepped(page(step % length)));
            assert!(is_met, "a circle of {length} leaves");
        }
        let mut sideways = Sideways::new();
        assert!((0..100_000).all(|step| sideways.stepped(page(step))), "every leaf is met once");
    }
}
