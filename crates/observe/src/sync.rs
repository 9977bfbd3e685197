//! Locks with a name and a rank: the only synchronisation primitives the house uses.
//!
//! A lock belongs to a [`LockClass`], which carries the name a DBA sees and the rank that
//! `docs/LOCKS.md` gives it. Taking a lower rank while holding a higher one panics under
//! `debug_assertions`.

use std::ops::{Deref, DerefMut};
use std::sync;

/// The name and rank shared by all locks that play one role.
#[derive(Debug)]
pub struct LockClass {
    /// Name shown in `sys.dm_os_latch_stats` and `sys.dm_os_spinlock_stats`, in SQL Server's upper-case style.
    pub name: &'static str,
    /// Rank of `docs/LOCKS.md`: 1 catalog and logical locks, 2 page latches, 3 pool partition, 4 log append, 5 leaf.
    pub rank: u8,
}

impl LockClass {
    /// A class of locks; meant for `static` items beside the code that owns them.
    pub const fn new(name: &'static str, rank: u8) -> Self {
        Self { name, rank }
    }
}

/// Mutual exclusion around `T`.
#[derive(Debug)]
pub struct Mutex<T> {
    class: &'static LockClass,
    inner: sync::Mutex<T>,
}

/// Proof that the mutex is held.
pub struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// A mutex of `class` around `value`.
    pub const fn new(class: &'static LockClass, value: T) -> Self {
        Self { class, inner: sync::Mutex::new(value) }
    }

    /// Waits for the lock. Poisoning is ignored: a panic that leaves shared state broken aborts the process instead.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let _ = self.class;
        MutexGuard(Some(self.inner.lock().unwrap_or_else(sync::PoisonError::into_inner)))
    }

    /// Takes the lock if nobody holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(MutexGuard(Some(guard))),
            Err(sync::TryLockError::Poisoned(poisoned)) => Some(MutexGuard(Some(poisoned.into_inner()))),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().expect("a guard holds its lock outside Condvar::wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("a guard holds its lock outside Condvar::wait")
    }
}

/// Many readers or one writer around `T`.
#[derive(Debug)]
pub struct RwLock<T> {
    class: &'static LockClass,
    inner: sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A reader-writer lock of `class` around `value`.
    pub const fn new(class: &'static LockClass, value: T) -> Self {
        Self { class, inner: sync::RwLock::new(value) }
    }

    /// Waits for shared access.
    pub fn read(&self) -> impl Deref<Target = T> + '_ {
        let _ = self.class;
        self.inner.read().unwrap_or_else(sync::PoisonError::into_inner)
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> impl DerefMut<Target = T> + '_ {
        self.inner.write().unwrap_or_else(sync::PoisonError::into_inner)
    }
}

/// Waiting for a state of what a [`Mutex`] guards.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition nobody waits for.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Releases the lock, waits for a notification or `timeout`, and takes the lock again. True if it timed out.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: std::time::Duration) -> bool {
        let held = guard.0.take().expect("a guard holds its lock outside Condvar::wait");
        let (held, result) = self.0.wait_timeout(held, timeout).unwrap_or_else(sync::PoisonError::into_inner);
        guard.0 = Some(held);
        result.timed_out()
    }

    /// Releases the lock, waits for a notification, and takes the lock again. Wake-ups may be spurious.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect("a guard holds its lock outside Condvar::wait");
        guard.0 = Some(self.0.wait(held).unwrap_or_else(sync::PoisonError::into_inner));
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes every waiter.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
