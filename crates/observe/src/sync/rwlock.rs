//! Many readers or one writer, counted.

use super::{LockClass, LockKind, hook, rank};
use crate::wait::{self, WaitKind, WaitResource};
use std::ops::{Deref, DerefMut};
use std::sync;

/// Many readers or one writer around `T`.
#[derive(Debug)]
pub struct RwLock<T> {
    class: &'static LockClass,
    inner: sync::RwLock<T>,
}

/// Proof of shared access.
pub struct RwLockReadGuard<'a, T> {
    lock: &'a RwLock<T>,
    inner: Option<sync::RwLockReadGuard<'a, T>>,
}

/// Proof of exclusive access.
pub struct RwLockWriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    inner: Option<sync::RwLockWriteGuard<'a, T>>,
}

impl<T> RwLock<T> {
    /// A reader-writer lock of `class` around `value`.
    pub const fn new(class: &'static LockClass, value: T) -> Self {
        Self { class, inner: sync::RwLock::new(value) }
    }

    /// Waits for shared access. A thread that reads already must not ask again: a writer between would stop both.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        rank::check(self.class);
        let inner = hook::take(hook::address_of(&self.inner), || self.try_take_read());
        let inner = inner.or_else(|| self.try_take_read()).unwrap_or_else(|| self.wait_to_read());
        self.taken_read(inner)
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        rank::check(self.class);
        let inner = hook::take(hook::address_of(&self.inner), || self.try_take_write());
        let inner = inner.or_else(|| self.try_take_write()).unwrap_or_else(|| self.wait_to_write());
        self.taken_write(inner)
    }

    /// Shared access if no writer has or awaits it.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        hook::point();
        self.try_take_read().map(|inner| self.taken_read(inner))
    }

    /// Exclusive access if nobody has any.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        hook::point();
        self.try_take_write().map(|inner| self.taken_write(inner))
    }

    /// The value, without locking: `&mut self` proves that nobody else has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(sync::PoisonError::into_inner)
    }

    /// The value, of a lock that is no more.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(sync::PoisonError::into_inner)
    }

    fn try_take_read(&self) -> Option<sync::RwLockReadGuard<'_, T>> {
        match self.inner.try_read() {
            Ok(guard) => Some(guard),
            Err(sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }

    fn try_take_write(&self) -> Option<sync::RwLockWriteGuard<'_, T>> {
        match self.inner.try_write() {
            Ok(guard) => Some(guard),
            Err(sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn wait_to_read(&self) -> sync::RwLockReadGuard<'_, T> {
        self.class.contended();
        let waiting = wait::enter_on(WaitKind::LatchShared, WaitResource::Latch(self.class.name));
        let inner = self.inner.read().unwrap_or_else(sync::PoisonError::into_inner);
        self.class.waited(waiting.finish());
        inner
    }

    #[cold]
    fn wait_to_write(&self) -> sync::RwLockWriteGuard<'_, T> {
        self.class.contended();
        let waiting = wait::enter_on(WaitKind::LatchExclusive, WaitResource::Latch(self.class.name));
        let inner = self.inner.write().unwrap_or_else(sync::PoisonError::into_inner);
        self.class.waited(waiting.finish());
        inner
    }

    fn taken_read<'a>(&'a self, inner: sync::RwLockReadGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        self.class.acquired(LockKind::RwLock);
        rank::push(self.class);
        RwLockReadGuard { lock: self, inner: Some(inner) }
    }

    fn taken_write<'a>(&'a self, inner: sync::RwLockWriteGuard<'a, T>) -> RwLockWriteGuard<'a, T> {
        self.class.acquired(LockKind::RwLock);
        rank::push(self.class);
        RwLockWriteGuard { lock: self, inner: Some(inner) }
    }
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        rank::pop(self.lock.class);
        hook::released(hook::address_of(&self.lock.inner));
    }
}

impl<T> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        rank::pop(self.lock.class);
        hook::released(hook::address_of(&self.lock.inner));
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds its lock until it is dropped")
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds its lock until it is dropped")
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard holds its lock until it is dropped")
    }
}
