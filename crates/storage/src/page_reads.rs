//! How many pages the calling thread has read: what SET STATISTICS IO tells of a statement, which runs on one thread.
//!
//! Counts only rise; who wants to know what a piece of work read takes [`page_reads`] before and after it. A page read from
//! the pool, or from a read-ahead's own buffer, is a logical read; one fetched from the device because nobody had it, a physical
//! read; one fetched before it was asked for, a read-ahead read. Pages of large values are counted apart.
//! Reads of other threads (the cleaner, the checkpointer) are not here. No lock, no failure.

use std::cell::Cell;

/// Pages read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageReads {
    /// Pages looked at.
    pub logical: u64,
    /// Of them, pages that had to be fetched.
    pub physical: u64,
    /// Pages fetched ahead.
    pub ahead: u64,
    /// Pages of large values looked at.
    pub large: u64,
}

impl PageReads {
    /// What was read since `before`, of the same thread.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            logical: self.logical - before.logical,
            physical: self.physical - before.physical,
            ahead: self.ahead - before.ahead,
            large: self.large - before.large,
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            logical: self.logical + other.logical,
            physical: self.physical + other.physical,
            ahead: self.ahead + other.ahead,
            large: self.large + other.large,
        }
    }
}

thread_local! {
    static LOGICAL: Cell<u64> = const { Cell::new(0) };
    static PHYSICAL: Cell<u64> = const { Cell::new(0) };
    static AHEAD: Cell<u64> = const { Cell::new(0) };
    static LARGE: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread's counts.
pub fn page_reads() -> PageReads {
    PageReads { logical: LOGICAL.get(), physical: PHYSICAL.get(), ahead: AHEAD.get(), large: LARGE.get() }
}

/// Counts for the calling thread what another read on its behalf.
pub fn count_for_me(reads: &PageReads) {
    LOGICAL.set(LOGICAL.get() + reads.logical);
    PHYSICAL.set(PHYSICAL.get() + reads.physical);
    AHEAD.set(AHEAD.get() + reads.ahead);
    LARGE.set(LARGE.get() + reads.large);
}

#[inline]
pub(crate) fn looked_at() {
    LOGICAL.set(LOGICAL.get() + 1);
}

pub(crate) fn fetched() {
    PHYSICAL.set(PHYSICAL.get() + 1);
}

pub(crate) fn fetched_ahead(pages: usize) {
    AHEAD.set(AHEAD.get() + pages as u64);
}

/// The page looked at last is one of a large value.
pub(crate) fn was_large() {
    LOGICAL.set(LOGICAL.get() - 1);
    LARGE.set(LARGE.get() + 1);
}
