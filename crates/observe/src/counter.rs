//! Sums of work, one line per thread, listed for `sys.dm_os_performance_counters`.
//!
//! A counter is a `static` beside the code that counts. It enters the list at its first use; an owner that wants
//! it shown at 0 before that calls [`register`]. Reading sums the lines: exact, not a snapshot.

use crate::shard::Sharded;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static COUNTERS: Mutex<Vec<&'static Counter>> = Mutex::new(Vec::new());

/// How a reader is to understand the number (`cntr_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterKind {
    /// A present quantity: `PERF_COUNTER_LARGE_RAWCOUNT`.
    Value,
    /// A running total of which readers take the rate; its name ends in `/sec`: `PERF_COUNTER_BULK_COUNT`.
    PerSecond,
    /// Numerator of a ratio: `PERF_LARGE_RAW_FRACTION`.
    Fraction,
    /// Denominator of a ratio: `PERF_LARGE_RAW_BASE`.
    Base,
}

impl CounterKind {
    /// The number of `cntr_type`.
    pub const fn cntr_type(self) -> i32 {
        match self {
            Self::Value => 65_792,
            Self::PerSecond => 272_696_576,
            Self::Fraction => 537_003_264,
            Self::Base => 1_073_939_712,
        }
    }
}

/// A named sum.
#[derive(Debug)]
pub struct Counter {
    /// The object it belongs to, without the instance's prefix: "Buffer Manager".
    pub object: &'static str,
    /// Its name: "Page lookups/sec".
    pub name: &'static str,
    /// How to read it.
    pub kind: CounterKind,
    listed: AtomicBool,
    sum: Sharded<1>,
}

impl Counter {
    /// A counter at 0; meant for `static` items.
    pub const fn new(object: &'static str, name: &'static str, kind: CounterKind) -> Self {
        Self { object, name, kind, listed: AtomicBool::new(false), sum: Sharded::new() }
    }

    /// Adds one.
    #[inline]
    pub fn increment(&'static self) {
        self.add(1);
    }

    /// Adds.
    #[inline]
    pub fn add(&'static self, amount: u64) {
        self.sum.add(0, amount);
        // Relaxed: the list has its own lock; this only keeps later additions from asking again.
        if !self.listed.load(Ordering::Relaxed) {
            self.list();
        }
    }

    /// Subtracts, for quantities that go down.
    #[inline]
    pub fn subtract(&'static self, amount: u64) {
        self.add(amount.wrapping_neg());
    }

    /// The sum. Negative only if more was subtracted than added.
    pub fn value(&self) -> i64 {
        self.sum.sum(0).cast_signed()
    }

    #[cold]
    fn list(&'static self) {
        if !self.listed.swap(true, Ordering::Relaxed) {
            COUNTERS.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        }
    }
}

/// Lists counters before their first use.
pub fn register(counters: &[&'static Counter]) {
    counters.iter().for_each(|counter| counter.list());
}

/// Every listed counter, by object and name.
pub fn counters() -> Vec<&'static Counter> {
    let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    counters.sort_by_key(|counter| (counter.object, counter.name));
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_sum_over_threads_and_are_listed() {
        static LOOKUPS: Counter = Counter::new("Buffer Manager", "Test page lookups/sec", CounterKind::PerSecond);
        static OPEN: Counter = Counter::new("Buffer Manager", "Test open", CounterKind::Value);
        register(&[&OPEN]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| LOOKUPS.increment()));
            }
        });
        OPEN.add(3);
        std::thread::spawn(|| OPEN.subtract(2)).join().expect("subtracts");
        assert_eq!((LOOKUPS.value(), OPEN.value()), (400, 1));
        let listed: Vec<_> = counters().iter().filter(|c| c.name.starts_with("Test ")).map(|c| c.name).collect();
        assert_eq!(listed, ["Test open", "Test page lookups/sec"]);
    }
}
