//! Locks with a name and a rank: the only synchronisation primitives the house uses.
//!
//! A lock belongs to a [`LockClass`], which carries the name a DBA sees, the rank that `docs/LOCKS.md` gives it and
//! the statistics of all its locks. Underneath are the standard library's locks (futexes).
//!
//! ```text
//! lock() -> rank check (debug) -> try_lock -- free --> one store to this thread's line
//!                                     |
//!                                   taken --> wait LATCH_SH / LATCH_EX, timed, counted for the class
//! ```
//!
//! 1. A lower rank is never waited for while a higher one is held: [`rank::check`] panics under `debug_assertions`.
//!    A `try_` call is exempt, since it cannot deadlock; what it takes counts as held.
//! 2. A class is used for one kind of lock; [`LockClass::used_as`] keeps the first.
//! 3. Poisoning is ignored: a panic that leaves shared state broken aborts the process instead.
//!
//! Under `cfg(test)` or the feature `explore`, every primitive asks [`hook::current`] for a scheduler that decides
//! who goes on; without, that question is compiled away.

mod class;
mod condvar;
pub mod hook;
mod mutex;
mod rank;
mod rwlock;
mod spin;

pub use class::{LockClass, LockKind, LockStats, classes};
pub use condvar::Condvar;
pub use hook::point;
pub use mutex::{Mutex, MutexGuard};
pub use rank::highest_rank_held;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use spin::{SpinGuard, SpinLock};

#[cfg(test)]
mod tests;
