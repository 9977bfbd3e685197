//! The check of the lock order: a stack of held classes per thread, in debug builds only.

use super::LockClass;

#[cfg(debug_assertions)]
thread_local! {
    static HELD: std::cell::RefCell<Vec<&'static LockClass>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Panics if waiting for a lock of `class` could close a circle: a lock of a higher rank is held.
#[inline]
pub(super) fn check(class: &'static LockClass) {
    #[cfg(debug_assertions)]
    if !std::thread::panicking() {
        let higher = HELD.try_with(|held| held.borrow().iter().copied().find(|other| other.rank > class.rank)).ok().flatten();
        if let Some(higher) = higher {
            panic!("lock order: {} (rank {}) asked for while {} (rank {}) is held", class.name, class.rank, higher.name, higher.rank);
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = class;
}

/// Notes that a lock of `class` is held.
#[inline]
pub(super) fn push(class: &'static LockClass) {
    #[cfg(debug_assertions)]
    let _ = HELD.try_with(|held| held.borrow_mut().push(class));
    #[cfg(not(debug_assertions))]
    let _ = class;
}

/// Notes that a lock of `class` was released; locks need not be released in the order they were taken.
#[inline]
pub(super) fn pop(class: &'static LockClass) {
    #[cfg(debug_assertions)]
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        if let Some(place) = held.iter().rposition(|other| std::ptr::eq(*other, class)) {
            held.remove(place);
        }
    });
    #[cfg(not(debug_assertions))]
    let _ = class;
}

/// Highest rank the calling thread holds, for assertions such as "no I/O under ranks 3 to 5". Always `None` without
/// `debug_assertions`.
pub fn highest_rank_held() -> Option<u8> {
    #[cfg(debug_assertions)]
    return HELD.try_with(|held| held.borrow().iter().map(|class| class.rank).max()).ok().flatten();
    #[cfg(not(debug_assertions))]
    None
}
