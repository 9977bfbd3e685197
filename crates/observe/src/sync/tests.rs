//! Locks are counted, ranked and listed.

use super::*;
use std::time::Duration;

#[test]
fn free_locks_are_counted_and_listed_by_kind() {
    static LATCH: LockClass = LockClass::new("TEST_FREE_LATCH", 5);
    static SPIN: LockClass = LockClass::new("TEST_FREE_SPIN", 5);
    let latch = Mutex::new(&LATCH, 1);
    let spin = SpinLock::new(&SPIN, 1);
    assert_eq!(LATCH.kind(), None);
    for _ in 0..10 {
        *latch.lock() += 1;
        *spin.lock() += 1;
    }
    assert!(latch.try_lock().is_some());
    assert_eq!((*latch.lock(), *spin.lock()), (11, 11));
    assert_eq!(LATCH.stats(), LockStats { acquisitions: 12, ..LockStats::default() });
    assert_eq!(SPIN.stats(), LockStats { acquisitions: 11, ..LockStats::default() });
    assert_eq!((LATCH.kind(), SPIN.kind()), (Some(LockKind::Mutex), Some(LockKind::SpinLock)));
    let names: Vec<_> = classes().iter().map(|class| class.name).collect();
    assert!(names.contains(&"TEST_FREE_LATCH") && names.contains(&"TEST_FREE_SPIN"));
    assert!(names.is_sorted());
}

#[test]
fn a_taken_lock_counts_one_contended_wait() {
    static CLASS: LockClass = LockClass::new("TEST_TAKEN", 5);
    let lock = Mutex::new(&CLASS, ());
    std::thread::scope(|scope| {
        let held = lock.lock();
        scope.spawn(|| drop(lock.lock()));
        while CLASS.stats().contentions == 0 {
            std::thread::yield_now();
        }
        drop(held);
    });
    let stats = CLASS.stats();
    assert_eq!((stats.acquisitions, stats.contentions), (2, 1));
    assert_eq!(stats.wait_ns, stats.wait_ns_max);
}

#[test]
fn readers_share_and_writers_do_not() {
    static CLASS: LockClass = LockClass::new("TEST_READERS", 5);
    let lock = RwLock::new(&CLASS, 0);
    {
        let _one = lock.read();
        assert!(lock.try_read().is_some());
        assert!(lock.try_write().is_none());
    }
    *lock.write() += 1;
    assert_eq!(*lock.read(), 1);
    assert_eq!(CLASS.kind(), Some(LockKind::RwLock));
}

#[test]
fn a_condition_gives_the_lock_up_and_takes_it_back() {
    static CLASS: LockClass = LockClass::new("TEST_CONDITION", 5);
    let (lock, changed) = (Mutex::new(&CLASS, false), Condvar::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            *lock.lock() = true;
            changed.notify_all();
        });
        let mut ready = lock.lock();
        while !*ready {
            changed.wait(&mut ready);
        }
    });
    let mut ready = lock.lock();
    assert!(changed.wait_for(&mut ready, Duration::from_millis(1)));
    assert_eq!(highest_rank_held(), if cfg!(debug_assertions) { Some(5) } else { None });
    drop(ready);
    assert_eq!(highest_rank_held(), None);
}

#[test]
#[cfg(debug_assertions)]
fn a_lower_rank_under_a_higher_one_panics() {
    static LOW: LockClass = LockClass::new("TEST_LOW", 1);
    static HIGH: LockClass = LockClass::new("TEST_HIGH", 4);
    let (low, high) = (Mutex::new(&LOW, ()), Mutex::new(&HIGH, ()));
    {
        let _low = low.lock();
        drop(high.lock());
    }
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _high = high.lock();
        assert!(low.try_lock().is_some(), "a try cannot deadlock and is allowed");
        drop(low.lock());
    }));
    let message = caught.expect_err("the order is wrong");
    let message = message.downcast_ref::<String>().expect("a formatted message");
    assert_eq!(message, "lock order: TEST_LOW (rank 1) asked for while TEST_HIGH (rank 4) is held");
    // The guard was dropped in unwinding, so the stack is empty and the lock free again.
    assert_eq!(highest_rank_held(), None);
    drop(low.lock());
}

#[test]
fn spinners_lose_no_update_and_count_their_collisions() {
    static CLASS: LockClass = LockClass::new("TEST_SPIN_CONTENDED", 5);
    let lock = SpinLock::new(&CLASS, 0_u64);
    std::thread::scope(|scope| {
        let held = lock.lock();
        for _ in 0..3 {
            scope.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
        }
        while CLASS.stats().contentions < 3 {
            std::thread::yield_now();
        }
        drop(held);
    });
    assert_eq!(*lock.lock(), 3000);
    let stats = CLASS.stats();
    assert_eq!(stats.acquisitions, 3002);
    assert!(stats.contentions >= 3 && stats.spins >= 3, "{stats:?}");
}
