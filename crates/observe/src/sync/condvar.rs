//! Waiting for a state of what a mutex guards.
//!
//! The wait itself is not a lock's contention and is not counted for the mutex's class: the caller knows what it
//! waits for and says so with `observe::wait`.

use super::MutexGuard;
use std::sync;
use std::time::Duration;

/// Waiting for a state of what a [`super::Mutex`] guards.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition nobody waits for.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Releases the lock, waits for a notification or `timeout`, and takes the lock again. True if it timed out.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> bool {
        if let Some(timed_out) = self.wait_in_exploration(guard, true) {
            return timed_out;
        }
        let held = guard.suspend();
        let (held, result) = self.0.wait_timeout(held, timeout).unwrap_or_else(sync::PoisonError::into_inner);
        guard.resume(held);
        result.timed_out()
    }

    /// Releases the lock, waits for a notification, and takes the lock again. Wake-ups may be spurious.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if self.wait_in_exploration(guard, false).is_some() {
            return;
        }
        let held = guard.suspend();
        let held = self.0.wait(held).unwrap_or_else(sync::PoisonError::into_inner);
        guard.resume(held);
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.notify_in_exploration(false);
        self.0.notify_one();
    }

    /// Wakes every waiter.
    pub fn notify_all(&self) {
        self.notify_in_exploration(true);
        self.0.notify_all();
    }

    #[cfg(any(test, feature = "explore"))]
    fn wait_in_exploration<T>(&self, guard: &mut MutexGuard<'_, T>, timed: bool) -> Option<bool> {
        let scheduler = super::hook::current()?;
        scheduler.enqueue(super::hook::address_of(&self.0), timed);
        let address = guard.address();
        drop(guard.suspend());
        scheduler.released(address);
        let timed_out = scheduler.wait();
        guard.retake();
        Some(timed_out)
    }

    #[cfg(not(any(test, feature = "explore")))]
    #[inline(always)]
    fn wait_in_exploration<T>(&self, _guard: &mut MutexGuard<'_, T>, _timed: bool) -> Option<bool> {
        None
    }

    #[cfg(any(test, feature = "explore"))]
    fn notify_in_exploration(&self, all: bool) {
        if let Some(scheduler) = super::hook::current() {
            scheduler.notify(super::hook::address_of(&self.0), all);
        }
    }

    #[cfg(not(any(test, feature = "explore")))]
    #[inline(always)]
    fn notify_in_exploration(&self, _all: bool) {}
}
