//! The translation word of a page: where its frame is, who has it latched, and how often it was latched to change it.
//!
//! ```text
//! bit 0            28         40      41                    64
//!     | frame + 1   |  latch   |waiters|      version        |     latch: 0 free, 1..4094 readers, 4095 one writer
//! ```
//!
//! 1. `frame + 1` is 0 while the page is not in the pool; it changes only under the exclusive latch ([`PageWord::leave`]).
//! 2. The version rises each time an exclusive latch is left ([`PageWord::leave`]); two equal readings of a word
//!    without a writer between them mean that the page did not change (in 2^23 changes).
//! 3. Nobody sleeps unseen: the waiters bit is set under the parking mutex, and who frees the latch clears the bit in
//!    the same step and then passes through that mutex ([`wait`], [`PageWord::wake`]).
//!
//! Readers let a waiting writer go first for some turns ([`YIELDS`]), not for ever: a thread that reads a page twice
//! must not stop behind a writer that waits for it.

use observe::sync::{self, Condvar, LockClass, Mutex};
use observe::wait::{self, WaitKind, WaitResource};
use std::sync::atomic::{AtomicU64, Ordering};
use thawdb_observe as observe;

const FRAME_BITS: u32 = 28;
const LATCH_BITS: u32 = 12;
const FRAME_MASK: u64 = (1 << FRAME_BITS) - 1;
const LATCH_ONE: u64 = 1 << FRAME_BITS;
const LATCH_MASK: u64 = ((1 << LATCH_BITS) - 1) << FRAME_BITS;
const EXCLUSIVE: u64 = LATCH_MASK;
const SHARED_MAX: u64 = EXCLUSIVE - LATCH_ONE;
const WAITERS: u64 = 1 << (FRAME_BITS + LATCH_BITS);
const VERSION_ONE: u64 = WAITERS << 1;

/// Most frames a pool can have: 2 TiB of pages.
pub const FRAMES_MAX: usize = (1 << FRAME_BITS) - 1;

/// Turns that a reader gives way to a waiting writer.
const YIELDS: u32 = 32;
/// Turns of looking again before a thread sleeps: latches are held for less than a microsecond as a rule. Whose holder does
/// not run is not waited for by yielding: Linux (6.18) takes the rest of its slice, and milliseconds, from who yields.
const SPINS: u32 = 100;

static PARKING_CLASS: LockClass = LockClass::new("PAGE_LATCH_PARKING", 5);
const PLACES: usize = 64;
static PARKING: [Parking; PLACES] = [const { Parking { mutex: Mutex::new(&PARKING_CLASS, ()), changed: Condvar::new() } }; PLACES];

struct Parking {
    mutex: Mutex<()>,
    changed: Condvar,
}

/// A page's word.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct PageWord(AtomicU64);

/// What trying to latch brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// Latched; the page is in this frame.
    Latched(u32),
    /// The page is not in the pool; nothing is latched.
    Absent,
    /// Others hold the latch.
    Busy,
}

fn frame_of(word: u64) -> Option<u32> {
    u32::try_from(word & FRAME_MASK).expect("28 bits").checked_sub(1)
}

impl PageWord {
    /// Latches to read.
    #[inline]
    pub fn try_shared(&self) -> Tried {
        sync::point();
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let Some(frame) = frame_of(word) else {
                return if word & LATCH_MASK == 0 { Tried::Absent } else { Tried::Busy };
            };
            if word & LATCH_MASK >= SHARED_MAX {
                return Tried::Busy;
            }
            // Acquire: what the last writer did to the frame is seen.
            match self.0.compare_exchange_weak(word, word + LATCH_ONE, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Tried::Latched(frame),
                Err(now) => word = now,
            }
        }
    }

    /// Latches to change; with `absent` also a page that is not in the pool, so that the caller can load it.
    pub fn try_exclusive(&self, absent: bool) -> Tried {
        sync::point();
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & LATCH_MASK != 0 {
                return Tried::Busy;
            }
            let frame = frame_of(word);
            if frame.is_none() && !absent {
                return Tried::Absent;
            }
            match self.0.compare_exchange_weak(word, word | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return frame.map_or(Tried::Absent, Tried::Latched),
                Err(now) => word = now,
            }
        }
    }

    /// Leaves a shared latch.
    #[inline]
    pub fn leave_shared(&self) {
        sync::point();
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let latch = word & LATCH_MASK;
            assert!(latch != 0 && latch != EXCLUSIVE, "a shared latch is held");
            let last = latch == LATCH_ONE;
            let next = (word - LATCH_ONE) & if last { !WAITERS } else { !0 };
            // Release: a writer that follows sees that our reads are over.
            match self.0.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if last && word & WAITERS != 0 => return self.wake(),
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Leaves the exclusive latch with the page in `frame` (or in none), keeping a shared latch if `to_shared`.
    pub fn leave(&self, frame: Option<u32>, to_shared: bool) {
        sync::point();
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            assert!(word & LATCH_MASK == EXCLUSIVE, "the exclusive latch is held");
            let place = frame.map_or(0, |frame| u64::from(frame) + 1);
            let latch = if to_shared { LATCH_ONE } else { 0 };
            let next = (word & !(FRAME_MASK | LATCH_MASK | WAITERS)).wrapping_add(VERSION_ONE) | place | latch;
            match self.0.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if word & WAITERS != 0 => return self.wake(),
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// A mark of the page's absence; `None` while it is in the pool or being brought there. As long as the mark stays the
    /// same, nobody has had the page or has said that it changes on the device.
    pub fn absence(&self) -> Option<u64> {
        // Acquire: what is read from the device from here on is not older than what the last owner wrote.
        let word = self.0.load(Ordering::Acquire);
        (word & (FRAME_MASK | LATCH_MASK) == 0).then_some(word >> (FRAME_BITS + LATCH_BITS + 1))
    }

    /// The mark that [`Self::absence`] gave, as the holder of the exclusive latch of an absent page sees it.
    pub fn absence_latched(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> (FRAME_BITS + LATCH_BITS + 1)
    }

    /// Whether the page is in the pool, at this moment.
    pub fn is_present(&self) -> bool {
        frame_of(self.0.load(Ordering::Relaxed)).is_some()
    }

    fn parking(&self) -> &'static Parking {
        let address = std::ptr::from_ref(self).addr() as u64;
        &PARKING[((address.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 58) as usize % PLACES]
    }

    #[cold]
    fn wake(&self) {
        sync::point();
        let parking = self.parking();
        drop(parking.mutex.lock());
        parking.changed.notify_all();
    }

    /// Whether one who wants `exclusive` access would have to wait now.
    fn blocked(word: u64, exclusive: bool) -> bool {
        if exclusive { word & LATCH_MASK != 0 } else { word & LATCH_MASK >= SHARED_MAX }
    }
}

/// Waits until trying again for `exclusive` (or shared) access is worth it.
#[cold]
pub fn wait(word: &PageWord, exclusive: bool, loading: bool, resource: impl FnOnce() -> WaitResource) {
    for _ in 0..SPINS {
        if !PageWord::blocked(word.0.load(Ordering::Relaxed), exclusive) {
            return;
        }
        std::hint::spin_loop();
    }
    let kind = match (exclusive, loading) {
        (true, false) => WaitKind::PageLatchExclusive,
        (false, false) => WaitKind::PageLatchShared,
        (true, true) => WaitKind::PageIoLatchExclusive,
        (false, true) => WaitKind::PageIoLatchShared,
    };
    let waiting = wait::enter_on(kind, resource());
    let parking = word.parking();
    let mut parked = parking.mutex.lock();
    loop {
        let now = word.0.load(Ordering::Relaxed);
        if !PageWord::blocked(now, exclusive) {
            break;
        }
        let set = word.0.compare_exchange(now, now | WAITERS, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if set {
            sync::point();
            parking.changed.wait(&mut parked);
        }
    }
    drop(parked);
    drop(waiting);
}

/// Gives a waiting writer the first turn, for a while.
#[inline]
pub fn give_way(word: &PageWord) {
    if word.0.load(Ordering::Relaxed) & WAITERS != 0 {
        for _ in 0..YIELDS {
            if word.0.load(Ordering::Relaxed) & (WAITERS | LATCH_MASK) <= EXCLUSIVE {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let word = PageWord::default();
        assert_eq!(word.try_shared(), Tried::Absent);
        assert_eq!(word.try_exclusive(true), Tried::Absent);
        assert_eq!(word.try_shared(), Tried::Busy);
        word.leave(Some(7), true);
        assert_eq!(word.try_shared(), Tried::Latched(7));
        assert_eq!(word.try_exclusive(false), Tried::Busy);
        word.leave_shared();
        word.leave_shared();
        assert_eq!(word.try_exclusive(false), Tried::Latched(7));
        word.leave(None, false);
        assert_eq!(word.try_exclusive(false), Tried::Absent);
        assert!(!word.is_present());
    }

    #[test]
    fn no_increment_is_lost_under_contention() {
        struct Racy(PageWord, std::cell::UnsafeCell<u64>);
        #[allow(unsafe_code)]
        // SAFETY: the cell is touched only under the exclusive latch of the word beside it.
        unsafe impl Sync for Racy {}
        let racy = Racy(PageWord::default(), std::cell::UnsafeCell::new(0));
        assert_eq!(racy.0.try_exclusive(true), Tried::Absent);
        racy.0.leave(Some(0), false);
        let shared = &racy;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    for _ in 0..5_000 {
                        while !matches!(shared.0.try_exclusive(false), Tried::Latched(_)) {
                            wait(&shared.0, true, false, || WaitResource::None);
                        }
                        #[allow(unsafe_code)]
                        // SAFETY: the exclusive latch is held.
                        unsafe {
                            *shared.1.get() += 1;
                        }
                        shared.0.leave(Some(0), false);
                    }
                });
            }
        });
        assert_eq!(racy.1.into_inner(), 20_000);
    }

    /// A page of two halves that a writer changes one after the other, under the latch of its word.
    struct Halves {
        word: PageWord,
        halves: [AtomicU64; 2],
    }

    impl Halves {
        fn latch(&self, exclusive: bool) {
            let tried = || if exclusive { self.word.try_exclusive(false) } else { self.word.try_shared() };
            while tried() != Tried::Latched(0) {
                wait(&self.word, exclusive, false, || WaitResource::None);
            }
        }

        fn change(&self) {
            self.latch(true);
            for half in &self.halves {
                let seen = half.load(Ordering::Relaxed);
                sync::point();
                half.store(seen + 1, Ordering::Relaxed);
            }
            // Some go on as readers, as who has loaded a page does.
            let to_shared = self.halves[0].load(Ordering::Relaxed).is_multiple_of(2);
            self.word.leave(Some(0), to_shared);
            if to_shared {
                self.compare();
                self.word.leave_shared();
            }
        }

        fn compare(&self) {
            let first = self.halves[0].load(Ordering::Relaxed);
            sync::point();
            assert_eq!(first, self.halves[1].load(Ordering::Relaxed), "a reader beside a writer");
        }

        fn read(&self) {
            self.latch(false);
            self.compare();
            self.word.leave_shared();
        }
    }

    /// Seen to find: `leave_shared` that does not wake, `wake` that does not pass through the mutex (deadlocks both).
    #[test]
    fn whatever_the_schedule_readers_see_whole_changes_and_all_come_to_their_end() {
        for seed in 0..400 {
            let page = Halves { word: PageWord::default(), halves: Default::default() };
            assert_eq!(page.word.try_exclusive(true), Tried::Absent);
            page.word.leave(Some(0), false);
            let mut bodies: Vec<observe::explore::Body<'_>> = Vec::new();
            for _ in 0..2 {
                bodies.push(Box::new(|| (0..3).for_each(|_| page.change())));
                bodies.push(Box::new(|| (0..3).for_each(|_| page.read())));
            }
            assert_eq!(observe::explore::run(seed, bodies), Ok(()), "seed {seed}");
            assert_eq!(page.halves.each_ref().map(|half| half.load(Ordering::Relaxed)), [6, 6], "seed {seed}: a change was lost");
        }
    }
}
