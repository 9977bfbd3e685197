//! Classes of locks, their statistics, and the list of all classes in use.

use crate::shard::Sharded;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

const ACQUISITIONS: usize = 0;
const CONTENTIONS: usize = 1;
const WAIT_NS: usize = 2;
const WAIT_NS_MAX: usize = 3;
const SPINS: usize = 4;
const BACKOFFS: usize = 5;

static CLASSES: Mutex<Vec<&'static LockClass>> = Mutex::new(Vec::new());

/// The name and rank shared by all locks that play one role, and what they went through.
#[derive(Debug)]
pub struct LockClass {
    /// Name shown in `sys.dm_os_latch_stats` and `sys.dm_os_spinlock_stats`, in SQL Server's upper-case style.
    pub name: &'static str,
    /// Rank of `docs/LOCKS.md`: 1 catalog and logical locks, 2 page latches, 3 pool partition, 4 log append, 5 leaf.
    pub rank: u8,
    kind: AtomicU8,
    stats: Sharded<6>,
}

/// Which primitive the locks of a class are; decides the view that lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// [`super::Mutex`]: listed with the latches.
    Mutex,
    /// [`super::RwLock`]: listed with the latches.
    RwLock,
    /// [`super::SpinLock`]: listed with the spinlocks.
    SpinLock,
}

/// What all locks of a class went through since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockStats {
    /// Times taken.
    pub acquisitions: u64,
    /// Times found taken by another: waits of a latch, collisions of a spinlock.
    pub contentions: u64,
    /// Time spent waiting.
    pub wait_ns: u64,
    /// Longest single wait.
    pub wait_ns_max: u64,
    /// Turns of the spinning loop; spinlocks only.
    pub spins: u64,
    /// Times a spinner gave its processor away; spinlocks only.
    pub backoffs: u64,
}

impl LockClass {
    /// A class of locks; meant for `static` items beside the code that owns them.
    pub const fn new(name: &'static str, rank: u8) -> Self {
        Self { name, rank, kind: AtomicU8::new(0), stats: Sharded::new() }
    }

    /// The present figures.
    pub fn stats(&self) -> LockStats {
        LockStats {
            acquisitions: self.stats.sum(ACQUISITIONS),
            contentions: self.stats.sum(CONTENTIONS),
            wait_ns: self.stats.sum(WAIT_NS),
            wait_ns_max: self.stats.largest(WAIT_NS_MAX),
            spins: self.stats.sum(SPINS),
            backoffs: self.stats.sum(BACKOFFS),
        }
    }

    /// Which primitive its locks are; `None` before the first is taken.
    pub fn kind(&self) -> Option<LockKind> {
        match self.kind.load(Ordering::Relaxed) {
            1 => Some(LockKind::Mutex),
            2 => Some(LockKind::RwLock),
            3 => Some(LockKind::SpinLock),
            _ => None,
        }
    }

    /// Counts an acquisition. The first one enters the class in the list that views read.
    #[inline]
    pub(super) fn acquired(&'static self, kind: LockKind) {
        self.stats.add(ACQUISITIONS, 1);
        // Relaxed: the list has its own lock; this only keeps later acquisitions from asking again.
        if self.kind.load(Ordering::Relaxed) == 0 {
            self.used_as(kind);
        }
    }

    /// Counts a meeting with a holder, when it begins, so that a view shows those that still wait.
    pub(super) fn contended(&self) {
        self.stats.add(CONTENTIONS, 1);
    }

    pub(super) fn waited(&self, wait_ns: u64) {
        self.stats.add(WAIT_NS, wait_ns);
        self.stats.raise(WAIT_NS_MAX, wait_ns);
    }

    pub(super) fn spun(&self, spins: u64, backoffs: u64) {
        self.stats.add(SPINS, spins);
        self.stats.add(BACKOFFS, backoffs);
    }

    #[cold]
    fn used_as(&'static self, kind: LockKind) {
        let number = match kind {
            LockKind::Mutex => 1,
            LockKind::RwLock => 2,
            LockKind::SpinLock => 3,
        };
        if self.kind.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            CLASSES.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        }
    }
}

/// Every class of which a lock was taken so far, by name.
pub fn classes() -> Vec<&'static LockClass> {
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    classes.sort_by_key(|class| class.name);
    classes
}
