//! What scans that read parts of one tree share while they read ahead: buffers, and the account of pages let into the pool.
//!
//! ```text
//! spare ──► Run of a fetch ──► Arc, once it is read ──► AheadPage of a row block
//!   ▲                              │ chunk is done                │ block is used again
//!   └───── nobody else has it ◄────┴──────── lent ◄───────────────┘
//! ```
//! A part is so short that its own buffers would be new memory for most of what it reads, and a quarter of the pool for each
//! part would be all of the pool for the scan.
//!
//! Pages are let into the pool where that evicts nobody: into free frames, or for the first quarter of the pool. Scans of far
//! more than the pool holds let in a sixteenth of it: the system zeroes a frame's memory when it is first used, which costs as
//! much as all else that is done to a page on its way, and is of use to a later scan only; each that comes again adds a
//! sixteenth. Of a tree that the pool holds half of, a later scan is spared so much reading that it is worth it.
//!
//! Invariants: 1. a buffer is written only while nobody else has it ([`ScanGroup::buffer`] gives owned ones). 2. At most
//! [`KEPT_MAX`] buffers of each kind are kept for use, of at most a [`KEPT_SHARE`]th of the pool's size. Lock: `READ_AHEAD_BUFFERS` (5), nothing is called under it. Failure: none.

use super::RUN_PAGES_MAX;
use crate::page::PAGE_BYTES;
use crate::pool::Pool;
use observe::sync::{LockClass, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use thawdb_device::AlignedBuf;
use thawdb_observe as observe;

static BUFFERS: LockClass = LockClass::new("READ_AHEAD_BUFFERS", 5);

/// Buffers kept at most: those of a deep queue, and as many that row blocks still look at.
const KEPT_MAX: usize = 16;
/// One part of so many of the pool's pages is the room of the buffers kept of each kind, in a small pool.
const KEPT_SHARE: usize = 16;
/// A tree of so many times the pool's frames is large.
const LARGE_FACTOR: usize = 2;

/// One part of so many of the pool is let in by scans that the pool holds, and by larger ones.
const ADMITTED_SHARE: usize = 4;
const ADMITTED_SHARE_OF_LARGE: usize = 16;

/// What scans of parts of one tree share.
pub struct ScanGroup {
    /// Pages let into the pool.
    admitted: AtomicUsize,
    /// Whether the scans read far more than the pool holds, once that is known.
    large: OnceLock<bool>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    spare: Vec<AlignedBuf>,
    /// Those that row blocks may still look at.
    lent: Vec<Arc<AlignedBuf>>,
}

impl Default for ScanGroup {
    fn default() -> Self {
        Self { admitted: AtomicUsize::new(0), large: OnceLock::new(), kept: Mutex::new(&BUFFERS, Kept::default()) }
    }
}

impl ScanGroup {
    /// The group of scans that read about so many leaves.
    pub(crate) fn reading(leaves: usize, pool: &Pool) -> Self {
        let group = Self::default();
        group.expect(|| leaves, pool);
        group
    }

    /// Notes how many leaves are going to be read, unless that is known.
    pub(super) fn expect(&self, leaves: impl FnOnce() -> usize, pool: &Pool) {
        self.large.get_or_init(|| leaves() > LARGE_FACTOR * pool.frame_count());
    }

    /// Whether `pages` more may go into the pool.
    pub(super) fn has_room_for(&self, pages: usize, pool: &Pool) -> bool {
        let frames = pool.frame_count();
        // Relaxed, as below: an aim, not a bound.
        let admitted = self.admitted.load(Ordering::Relaxed) + pages;
        if self.large.get() == Some(&true) {
            return admitted <= frames / ADMITTED_SHARE_OF_LARGE;
        }
        admitted <= frames / ADMITTED_SHARE || pool.free_count() > pages + frames / 64
    }

    /// Notes that `pages` went into the pool.
    pub(super) fn admitted(&self, pages: usize) {
        self.admitted.fetch_add(pages, Ordering::Relaxed);
    }

    /// A buffer for so many pages.
    pub(super) fn buffer(&self, pages: usize) -> AlignedBuf {
        let room = (pages * PAGE_BYTES).next_power_of_two();
        let mut kept = self.kept.lock();
        if let Some(at) = kept.spare.iter().position(|spare| spare.len() == room) {
            return kept.spare.swap_remove(at);
        }
        let free = kept.lent.iter().position(|lent| lent.len() == room && Arc::strong_count(lent) == 1);
        let lent = free.map(|at| kept.lent.swap_remove(at));
        drop(kept);
        lent.and_then(|lent| Arc::try_unwrap(lent).ok()).unwrap_or_else(|| AlignedBuf::zeroed(room))
    }

    /// Takes a buffer that nobody looks at.
    pub(super) fn put_back(&self, buffer: AlignedBuf, pool: &Pool) {
        let mut kept = self.kept.lock();
        kept.spare.push(buffer);
        let old = excess(&mut kept.spare, |spare| spare.len(), pool);
        drop(kept);
        drop(old);
    }

    /// Takes a buffer that row blocks may still look at.
    pub(super) fn lend(&self, buffer: Arc<AlignedBuf>, pool: &Pool) {
        match Arc::try_unwrap(buffer) {
            Ok(buffer) => self.put_back(buffer, pool),
            Err(buffer) => {
                let mut kept = self.kept.lock();
                kept.lent.push(buffer);
                let old = excess(&mut kept.lent, |lent| lent.len(), pool);
                drop(kept);
                drop(old);
            }
        }
    }
}

/// Takes out of `kept` what is more than may be kept, the oldest first: sizes that are not asked for any more are among them.
fn excess<B>(kept: &mut Vec<B>, bytes: impl Fn(&B) -> usize, pool: &Pool) -> Vec<B> {
    let room = (pool.frame_count() / KEPT_SHARE * PAGE_BYTES).min(KEPT_MAX * RUN_PAGES_MAX * PAGE_BYTES);
    let mut all: usize = kept.iter().map(&bytes).sum();
    let is_excess = |at: usize, all: usize| kept.len() - at > KEPT_MAX || all > room;
    let mut count = 0;
    while count < kept.len() && is_excess(count, all) {
        all -= bytes(&kept[count]);
        count += 1;
    }
    kept.drain(..count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ahead_page::AheadPage;

    #[test]
    fn a_buffer_that_is_looked_at_is_given_to_nobody_else() {
        let (group, pool) = (ScanGroup::default(), Pool::new(4 << 20));
        let buffer = Arc::new(group.buffer(3));
        assert_eq!(buffer.len(), 4 * PAGE_BYTES);
        let page = AheadPage::new(buffer.clone(), PAGE_BYTES);
        let address = buffer.as_ptr();
        group.lend(buffer, &pool);
        let other = group.buffer(4);
        assert_ne!(other.as_ptr(), address);
        drop(page);
        assert_eq!(group.buffer(4).as_ptr(), address);
        group.put_back(other, &pool);
        assert_eq!(group.kept.lock().spare.len(), 1);
    }

    #[test]
    fn scans_of_far_more_than_the_pool_holds_let_in_less() {
        let pool = Pool::new(4 << 20);
        let frames = pool.frame_count();
        let held = ScanGroup::reading(LARGE_FACTOR * frames, &pool);
        assert!(held.has_room_for(frames / 2, &pool), "free frames are there to be used");
        assert!(!held.has_room_for(frames, &pool));
        let large = ScanGroup::reading(LARGE_FACTOR * frames + 1, &pool);
        assert!(large.has_room_for(frames / ADMITTED_SHARE_OF_LARGE, &pool));
        large.admitted(frames / ADMITTED_SHARE_OF_LARGE);
        assert!(!large.has_room_for(1, &pool));
    }

    #[test]
    fn no_more_is_kept_than_is_of_use() {
        let (group, pool) = (ScanGroup::default(), Pool::new(4 << 20));
        let pages: Vec<AheadPage> = (0..3 * KEPT_MAX)
            .map(|_| {
                let buffer = Arc::new(AlignedBuf::zeroed(PAGE_BYTES));
                group.lend(buffer.clone(), &pool);
                AheadPage::new(buffer, 0)
            })
            .collect();
        (0..3 * KEPT_MAX).for_each(|_| group.put_back(AlignedBuf::zeroed(PAGE_BYTES), &pool));
        let kept = group.kept.lock();
        assert_eq!((kept.spare.len(), kept.lent.len()), (KEPT_MAX, KEPT_MAX));
        assert!(pages.iter().all(|page| page.iter().all(|byte| *byte == 0)));
        drop(kept);
        // However few they are, no more than a small pool can bear beside it.
        let large = pool.frame_count() / KEPT_SHARE / 2;
        (0..5).for_each(|_| group.put_back(AlignedBuf::zeroed(large * PAGE_BYTES), &pool));
        let kept: Vec<usize> = group.kept.lock().spare.iter().map(|buffer| buffer.len()).collect();
        assert_eq!(kept, [large * PAGE_BYTES; 2]);
    }
}
