//! Mutual exclusion, counted.

use super::{LockClass, LockKind, hook, rank};
use crate::wait::{self, WaitKind, WaitResource};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync;

/// Mutual exclusion around `T`.
#[derive(Debug)]
pub struct Mutex<T> {
    class: &'static LockClass,
    inner: sync::Mutex<T>,
}

/// Proof that the mutex is held.
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    inner: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// A mutex of `class` around `value`.
    pub const fn new(class: &'static LockClass, value: T) -> Self {
        Self { class, inner: sync::Mutex::new(value) }
    }

    /// Waits for the lock. Poisoning is ignored: a panic that leaves shared state broken aborts the process instead.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        rank::check(self.class);
        let inner = hook::take(hook::address_of(&self.inner), || self.try_take());
        let inner = inner.or_else(|| self.try_take()).unwrap_or_else(|| self.wait_for_holder());
        self.taken(inner)
    }

    /// Takes the lock if nobody holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        hook::point();
        self.try_take().map(|inner| self.taken(inner))
    }

    /// The value, without locking: `&mut self` proves that nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(sync::PoisonError::into_inner)
    }

    /// The value, of a lock that is no more.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(sync::PoisonError::into_inner)
    }

    fn try_take(&self) -> Option<sync::MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn wait_for_holder(&self) -> sync::MutexGuard<'_, T> {
        self.class.contended();
        let waiting = wait::enter_on(WaitKind::LatchExclusive, WaitResource::Latch(self.class.name));
        let inner = self.inner.lock().unwrap_or_else(sync::PoisonError::into_inner);
        self.class.waited(waiting.finish());
        inner
    }

    fn taken<'a>(&'a self, inner: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.class.acquired(LockKind::Mutex);
        rank::push(self.class);
        MutexGuard { lock: self, inner: Some(inner) }
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// Gives the lock up for the time of a condition's wait.
    pub(super) fn suspend(&mut self) -> sync::MutexGuard<'a, T> {
        rank::pop(self.lock.class);
        self.inner.take().expect("a guard holds its lock outside Condvar::wait")
    }

    /// Takes the lock back that [`Self::suspend`] gave up.
    pub(super) fn resume(&mut self, inner: sync::MutexGuard<'a, T>) {
        rank::push(self.lock.class);
        self.inner = Some(inner);
    }

    /// Waits for the lock again, after a scheduler's wait.
    #[cfg(any(test, feature = "explore"))]
    pub(super) fn retake(&mut self) {
        let lock = self.lock;
        let inner = hook::take(hook::address_of(&lock.inner), || lock.try_take());
        self.resume(inner.unwrap_or_else(|| lock.wait_for_holder()));
    }

    #[cfg(any(test, feature = "explore"))]
    pub(super) fn address(&self) -> usize {
        hook::address_of(&self.lock.inner)
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.take().is_some() {
            rank::pop(self.lock.class);
            hook::released(hook::address_of(&self.lock.inner));
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds its lock outside Condvar::wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard holds its lock outside Condvar::wait")
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
