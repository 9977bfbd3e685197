//! A lock for a few instructions: a waiter spins, then yields, then sleeps.
//!
//! Underneath is the standard mutex, taken by `try_lock` in a loop: the free path is the same one
//! compare-exchange a hand-written spinlock has, no `unsafe` is needed, and after [`BACKOFFS_MAX`] backoffs the waiter
//! can sleep in the kernel, so that a holder that lost its processor is not starved by its spinners.

use super::{LockClass, LockKind, hook, rank};
use crate::clock;
use std::ops::{Deref, DerefMut};
use std::sync;

/// Turns of the first round; each backoff doubles the next round. About 1 µs on present processors.
const SPINS_FIRST: u64 = 32;
/// Rounds before the waiter sleeps: 32 * 2^6 turns is some 50 µs, the cost of being scheduled out and in.
const BACKOFFS_MAX: u64 = 6;

/// Mutual exclusion around `T` for sections of a few instructions: no I/O, no allocation, no other lock inside.
#[derive(Debug)]
pub struct SpinLock<T> {
    class: &'static LockClass,
    inner: sync::Mutex<T>,
}

/// Proof that the spinlock is held.
pub struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
    inner: Option<sync::MutexGuard<'a, T>>,
}

impl<T> SpinLock<T> {
    /// A spinlock of `class` around `value`.
    pub const fn new(class: &'static LockClass, value: T) -> Self {
        Self { class, inner: sync::Mutex::new(value) }
    }

    /// Takes the lock, spinning while another has it.
    pub fn lock(&self) -> SpinGuard<'_, T> {
        rank::check(self.class);
        let inner = hook::take(hook::address_of(&self.inner), || self.try_take());
        let inner = inner.or_else(|| self.try_take()).unwrap_or_else(|| self.spin());
        self.taken(inner)
    }

    /// Takes the lock if nobody holds it.
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        hook::point();
        self.try_take().map(|inner| self.taken(inner))
    }

    fn try_take(&self) -> Option<sync::MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn spin(&self) -> sync::MutexGuard<'_, T> {
        self.class.contended();
        let start_ns = clock::now_ns();
        let mut spins = 0;
        let mut backoffs = 0;
        let inner = 'taken: {
            while backoffs < BACKOFFS_MAX {
                for _ in 0..SPINS_FIRST << backoffs {
                    spins += 1;
                    std::hint::spin_loop();
                    if let Some(inner) = self.try_take() {
                        break 'taken inner;
                    }
                }
                backoffs += 1;
                std::thread::yield_now();
            }
            self.inner.lock().unwrap_or_else(sync::PoisonError::into_inner)
        };
        self.class.waited(clock::now_ns().saturating_sub(start_ns));
        self.class.spun(spins, backoffs);
        inner
    }

    fn taken<'a>(&'a self, inner: sync::MutexGuard<'a, T>) -> SpinGuard<'a, T> {
        self.class.acquired(LockKind::SpinLock);
        rank::push(self.class);
        SpinGuard { lock: self, inner: Some(inner) }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        rank::pop(self.lock.class);
        hook::released(hook::address_of(&self.lock.inner));
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds its lock until it is dropped")
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard holds its lock until it is dropped")
    }
}
