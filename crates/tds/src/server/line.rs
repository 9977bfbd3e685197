//! One connection as its task and its worker share it: who may read, and whether somebody must look for an attention.
//!
//! ```text
//!              task hands a request over                      a tick later, still running
//!   TASK ───────────────────────────────► RUNNING ─────────────────────────────► WATCHED (the task reads again)
//!     ▲                                    │    ▲                                    │ request ends
//!     │ idle too long, a packet that is    ▼    │ next request                       ▼
//!     └──────── no request, stop ──────── IDLE (the worker reads) ◄──             TASK
//! ```
//! A worker that has answered stays with the connection for a while and waits for the next request itself: the kernel
//! wakes it directly, where a hand-over from the reactor's thread costs a second wake-up. Only while a request runs long
//! does the task read beside it, for the attention that would end it.
//!
//! One look at all of them a tick finds the requests that run long ([`Roll::look`]): a task of each connection that looked for
//! itself would be woken a hundred times a second while its worker answers short ones.
//!
//! Invariants: L1 the framer is read into by the worker in IDLE alone, by the task in TASK and WATCHED alone. L2 only
//! the task makes WATCHED of RUNNING, and then takes the connection back when the request ends ([`Line::finish`]).

use crate::packet::Framer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use thawdb_observe::sync::{LockClass, Mutex};
use tokio::sync::Notify;

static FRAMER: LockClass = LockClass::new("TDS_FRAMER", 1);
static ROLL: LockClass = LockClass::new("TDS_ROLL", 5);

const TASK: u8 = 0;
const RUNNING: u8 = 1;
const IDLE: u8 = 2;
const WATCHED: u8 = 3;

/// What both sides of a connection know.
pub(crate) struct Line {
    phase: AtomicU8,
    /// Requests begun: tells a long one from many short ones.
    requests: AtomicU64,
    /// Its request has run from one tick to the next.
    pub(crate) overdue: Notify,
    pub(crate) framer: Mutex<Framer>,
}

impl Line {
    /// A line in the task's hands.
    pub(crate) fn new(framer: Framer) -> Self {
        Self { phase: AtomicU8::new(TASK), requests: AtomicU64::new(0), overdue: Notify::new(), framer: Mutex::new(&FRAMER, framer) }
    }

    /// A request begins: the task's before it hands over, or the worker's own next one.
    pub(crate) fn begin(&self) {
        // Release, here and below: who sees the phase sees what its owner did to the session and the framer before.
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.phase.store(RUNNING, Ordering::Release);
    }

    /// A request has ended; whether the worker may stay.
    pub(crate) fn finish(&self) -> bool {
        self.phase.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The connection is the task's again.
    pub(crate) fn give_back(&self) {
        self.phase.store(TASK, Ordering::Release);
    }

    /// The request that runs, by its number; `None` if none does.
    pub(crate) fn running(&self) -> Option<u64> {
        (self.phase.load(Ordering::Acquire) == RUNNING).then(|| self.requests.load(Ordering::Relaxed))
    }

    /// The task reads from now on; false if the request has just ended.
    pub(crate) fn watch(&self) -> bool {
        self.phase.compare_exchange(RUNNING, WATCHED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The lines that are with workers.
pub(crate) struct Roll(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    next: u64,
    /// With the request that ran at the last look.
    lines: BTreeMap<u64, (Arc<Line>, Option<u64>)>,
}

impl Roll {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(&ROLL, Entries::default()))
    }

    /// A line goes to a worker; returns its number.
    pub(crate) fn add(&self, line: Arc<Line>) -> u64 {
        let mut entries = self.0.lock();
        let number = entries.next;
        entries.next += 1;
        entries.lines.insert(number, (line, None));
        number
    }

    /// A line comes back.
    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().lines.remove(&number);
    }

    /// Tells those whose request has run since the last look; whether any line is left to be looked at.
    pub(crate) fn look(&self) -> bool {
        let mut entries = self.0.lock();
        for (line, before) in entries.lines.values_mut() {
            let now = line.running();
            if now.is_some() && now == *before {
                line.overdue.notify_one();
            }
            *before = now;
        }
        !entries.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn is_overdue(line: &Line) -> bool {
        matches!(pin!(line.overdue.notified()).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
    }

    #[test]
    fn only_a_request_that_runs_from_one_look_to_the_next_is_overdue() {
        let (roll, line) = (Roll::new(), Arc::new(Line::new(Framer::default())));
        assert!(!roll.look());
        let number = roll.add(line.clone());
        line.begin();
        assert!(roll.look() && !is_overdue(&line), "it has just begun");
        assert!(line.finish());
        line.begin();
        assert!(roll.look() && !is_overdue(&line), "another one");
        assert!(roll.look() && is_overdue(&line));
        assert!(line.finish());
        assert!(roll.look() && !is_overdue(&line), "none runs");
        roll.remove(number);
        assert!(!roll.look());
    }

    #[test]
    fn a_watched_request_goes_back_to_the_task() {
        let line = Line::new(Framer::default());
        assert_eq!(line.running(), None);
        line.begin();
        let first = line.running().unwrap();
        assert!(line.finish(), "nobody watched");
        assert!(!line.watch(), "nothing runs");
        line.begin();
        assert!(line.running().unwrap() > first);
        assert!(line.watch());
        assert_eq!(line.running(), None, "watched already");
        assert!(!line.finish(), "the task reads");
        line.give_back();
        line.begin();
        assert!(line.finish());
    }
}
