//! The facade behind which a test puts its own scheduler.
//!
//! Each primitive asks [`current`] on taking, releasing and waiting. In production the answer is `None` at compile
//! time. In an exploration (`observe::explore`) it is the scheduler of the calling thread, which lets one
//! thread run at a time; the primitives then never block in the operating system but in the scheduler.
//! While a thread unwinds, the answer is `None` too, so that destructors find ordinary locks.

#[cfg(not(any(test, feature = "explore")))]
pub use absent::*;
#[cfg(any(test, feature = "explore"))]
pub use active::*;

#[cfg(any(test, feature = "explore"))]
mod active {
    use std::cell::RefCell;
    use std::sync::Arc;

    /// Who decides which thread goes on.
    pub trait Scheduler: Send + Sync {
        /// A place at which another thread may be let go on.
        fn point(&self);
        /// The lock at `address` is taken by another; returns when trying again makes sense.
        fn blocked(&self, address: usize);
        /// The lock at `address` was released; does not switch.
        fn released(&self, address: usize);
        /// The caller begins to wait for the condition at `address`; called while it still holds the mutex.
        fn enqueue(&self, address: usize, timed: bool);
        /// Blocks the caller, already enqueued, until it is notified (false) or its time is over (true).
        fn wait(&self) -> bool;
        /// Wakes one or all waiters of the condition at `address`.
        fn notify(&self, address: usize, all: bool);
    }

    thread_local! {
        static CURRENT: RefCell<Option<Arc<dyn Scheduler>>> = const { RefCell::new(None) };
    }

    /// The scheduler the calling thread is under.
    pub fn current() -> Option<Arc<dyn Scheduler>> {
        if std::thread::panicking() {
            return None;
        }
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Puts the calling thread under a scheduler, or with `None` under the operating system's.
    pub fn enter(scheduler: Option<Arc<dyn Scheduler>>) {
        CURRENT.with(|current| *current.borrow_mut() = scheduler);
    }

    /// Takes a lock under the scheduler; `None` if the thread is under none, or begins to unwind.
    pub(crate) fn take<G>(address: usize, mut try_take: impl FnMut() -> Option<G>) -> Option<G> {
        let scheduler = current()?;
        scheduler.point();
        loop {
            if let Some(guard) = try_take() {
                return Some(guard);
            }
            scheduler.blocked(address);
        }
    }

    /// Tells the scheduler of a release, after which another thread may go on.
    pub(crate) fn released(address: usize) {
        if let Some(scheduler) = current() {
            scheduler.released(address);
            scheduler.point();
        }
    }

    /// A place at which a schedule explorer may switch threads: put one beside atomics whose order matters.
    pub fn point() {
        if let Some(scheduler) = current() {
            scheduler.point();
        }
    }
}

#[cfg(not(any(test, feature = "explore")))]
mod absent {
    #[inline(always)]
    pub(crate) fn take<G>(_address: usize, _try_take: impl FnMut() -> Option<G>) -> Option<G> {
        None
    }

    #[inline(always)]
    pub(crate) fn released(_address: usize) {}

    /// A place at which a schedule explorer may switch threads: put one beside atomics whose order matters.
    #[inline(always)]
    pub fn point() {}
}

/// What stands for a lock in the scheduler's books.
#[inline]
pub(crate) fn address_of<T>(lock: &T) -> usize {
    std::ptr::from_ref(lock).addr()
}
