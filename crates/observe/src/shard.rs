//! Numbers that many threads add to without sharing a cache line.
//!
//! ```text
//! Sharded<N>:  line 0 (shared) | line 1 | line 2 | ... | line 31      64-byte aligned lines of N words
//! ```
//!
//! A thread claims a line index on its first use and gives it back when it ends. While it owns the index it is the
//! only writer of that line in every `Sharded`, so an addition is a plain load and store: no locked instruction.
//! Threads beyond the 31st share line 0 and add to it atomically. Sums are exact; they are not a snapshot.
//!
//! 1. One owner per index above 0: [`assign`] takes it by compare-exchange, [`Owner::drop`] returns it.
//! 2. A new owner sees the former owner's stores: `Release` on return, `Acquire` on claim.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Lines per sharded number: enough for the workers of a machine to own one each, 2 KiB per group of up to 8 words.
pub const SHARDS: usize = 32;
const SHARED: usize = 0;
const UNASSIGNED: usize = usize::MAX;

/// A bit per index, set while it is free; index 0 is never given out.
static FREE: AtomicU32 = AtomicU32::new(!1);

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(UNASSIGNED) };
    static OWNER: Owner = const { Owner(Cell::new(SHARED)) };
}

struct Owner(Cell<usize>);

impl Drop for Owner {
    fn drop(&mut self) {
        INDEX.set(SHARED);
        if self.0.get() != SHARED {
            FREE.fetch_or(1 << self.0.get(), Ordering::Release);
        }
    }
}

/// The line index of the calling thread.
#[inline]
pub fn index() -> usize {
    let index = INDEX.get();
    if index == UNASSIGNED { assign() } else { index }
}

#[cold]
fn assign() -> usize {
    let index = claim();
    let owned = OWNER.try_with(|owner| owner.0.set(index)).is_ok();
    if !owned && index != SHARED {
        FREE.fetch_or(1 << index, Ordering::Release);
    }
    let index = if owned { index } else { SHARED };
    INDEX.set(index);
    index
}

fn claim() -> usize {
    let taken = FREE.fetch_update(Ordering::Acquire, Ordering::Relaxed, |free| if free == 0 { None } else { Some(free & (free - 1)) });
    taken.map_or(SHARED, |free| free.trailing_zeros() as usize)
}

#[derive(Debug)]
#[repr(align(64))]
struct Line<const N: usize>([AtomicU64; N]);

/// `N` numbers, each the sum (or maximum) over the lines.
#[derive(Debug)]
pub struct Sharded<const N: usize> {
    lines: [Line<N>; SHARDS],
}

impl<const N: usize> Sharded<N> {
    /// All zero.
    pub const fn new() -> Self {
        Self { lines: [const { Line([const { AtomicU64::new(0) }; N]) }; SHARDS] }
    }

    /// Adds, wrapping, so that a negative amount may be given in two's complement.
    #[inline]
    pub fn add(&self, field: usize, amount: u64) {
        let index = index();
        let cell = &self.lines[index].0[field];
        // Relaxed throughout: the numbers order nothing else.
        if index == SHARED {
            cell.fetch_add(amount, Ordering::Relaxed);
        } else {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
        }
    }

    /// Raises a maximum.
    pub fn raise(&self, field: usize, value: u64) {
        let index = index();
        let cell = &self.lines[index].0[field];
        if index == SHARED {
            cell.fetch_max(value, Ordering::Relaxed);
        } else if value > cell.load(Ordering::Relaxed) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// Sets the thread's own number, where not the sum but the last value matters: see [`Self::line_of_largest`].
    #[inline]
    pub fn set(&self, field: usize, value: u64) {
        self.lines[index()].0[field].store(value, Ordering::Relaxed);
    }

    /// All numbers of the line whose `field` is largest. Of a line that is being written, some may be of the write before.
    pub fn line_of_largest(&self, field: usize) -> [u64; N] {
        let numbers = |line: &Line<N>| std::array::from_fn(|at| line.0[at].load(Ordering::Relaxed));
        self.lines.iter().map(numbers).max_by_key(|line: &[u64; N]| line[field]).expect("there are lines")
    }

    /// The sum over all lines.
    pub fn sum(&self, field: usize) -> u64 {
        self.lines.iter().fold(0, |sum, line| sum.wrapping_add(line.0[field].load(Ordering::Relaxed)))
    }

    /// The maximum over all lines.
    pub fn largest(&self, field: usize) -> u64 {
        self.lines.iter().map(|line| line.0[field].load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Sets a maximum back to 0. An addition that runs meanwhile may survive.
    pub fn forget(&self, field: usize) {
        self.lines.iter().for_each(|line| line.0[field].store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::{SHARDS, Sharded};

    #[test]
    fn no_addition_is_lost_among_more_threads_than_lines() {
        static SUM: Sharded<1> = Sharded::new();
        std::thread::scope(|scope| {
            for _ in 0..SHARDS * 2 {
                scope.spawn(|| (0..1000).for_each(|_| SUM.add(0, 1)));
            }
        });
        assert_eq!(SUM.sum(0), SHARDS as u64 * 2 * 1000);
    }

    #[test]
    fn the_last_of_several_threads_is_found() {
        static LAST: Sharded<2> = Sharded::new();
        std::thread::scope(|scope| {
            for at in [3, 1, 2] {
                scope.spawn(move || {
                    LAST.set(0, at);
                    LAST.set(1, at * 10);
                });
            }
        });
        LAST.set(0, 5);
        LAST.set(1, 50);
        assert_eq!(LAST.line_of_largest(0), [5, 50]);
    }

    #[test]
    fn a_line_passes_from_thread_to_thread_with_its_number() {
        static SUM: Sharded<1> = Sharded::new();
        for _ in 0..SHARDS * 3 {
            std::thread::spawn(|| SUM.add(0, 2)).join().expect("adds");
        }
        assert_eq!(SUM.sum(0), SHARDS as u64 * 6);
    }
}
