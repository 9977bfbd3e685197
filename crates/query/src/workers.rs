//! Leave to use threads for one statement: an instance has so many to give, however many statements ask.
//!
//! ```text
//! statement ── take(wanted) ──► Workers(2 to wanted) ── dropped ──► given back
//!                 └ fewer than two are free ──► none: the statement's own thread does the work
//! ```
//! Invariant: what is out never exceeds [`WorkerBudget::most`]. Nobody waits: parallel work is never needed, only welcome.
//! No lock; threads are not kept, only counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The workers of an instance.
#[derive(Debug)]
pub struct WorkerBudget {
    most: usize,
    out: AtomicUsize,
}

impl WorkerBudget {
    /// So many in all; fewer than two means that nothing runs in parallel.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, out: AtomicUsize::new(0) })
    }

    /// How many there are in all.
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many are at work.
    pub fn out(&self) -> usize {
        self.out.load(Ordering::Relaxed)
    }

    /// Two to `wanted` workers, as many as are free; `None` if that is fewer than two.
    pub fn take(self: &Arc<Self>, wanted: usize) -> Option<Workers> {
        let given = |out: usize| wanted.min(self.most.saturating_sub(out));
        let next = |out: usize| (given(out) >= 2).then(|| out + given(out));
        // Relaxed: a count, which guards nothing.
        let before = self.out.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(Workers { budget: self.clone(), count: given(before) })
    }
}

/// Workers that a statement may use until it drops this.
#[derive(Debug)]
pub struct Workers {
    budget: Arc<WorkerBudget>,
    count: usize,
}

impl Workers {
    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let before = self.budget.out.fetch_sub(self.count, Ordering::Relaxed);
        assert!(before >= self.count, "workers are given back once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_are_out_than_there_are() {
        let budget = WorkerBudget::new(5);
        let first = budget.take(3).expect("all are free");
        let second = budget.take(8).expect("two are free");
        assert_eq!((first.count(), second.count(), budget.out()), (3, 2, 5));
        assert!(budget.take(2).is_none());
        drop(second);
        assert_eq!(budget.take(2).map(|workers| workers.count()), Some(2));
        drop(first);
        assert_eq!((budget.out(), budget.take(4).map(|workers| workers.count())), (0, Some(4)));
        assert!(WorkerBudget::new(1).take(2).is_none() && budget.take(1).is_none());
    }
}
