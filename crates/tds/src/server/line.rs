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
//! Invariants: L1 the framer is read into by the worker in IDLE alone, by the task in TASK and WATCHED alone. L2 only
//! the task makes WATCHED of RUNNING, and then takes the connection back when the request ends ([`Line::finish`]).

use crate::packet::Framer;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use thawdb_observe::sync::{LockClass, Mutex};

static FRAMER: LockClass = LockClass::new("TDS_FRAMER", 1);

const TASK: u8 = 0;
const RUNNING: u8 = 1;
const IDLE: u8 = 2;
const WATCHED: u8 = 3;

/// What both sides of a connection know.
pub(crate) struct Line {
    phase: AtomicU8,
    /// Requests begun: tells a long one from many short ones.
    requests: AtomicU64,
    pub(crate) framer: Mutex<Framer>,
}

impl Line {
    /// A line in the task's hands.
    pub(crate) fn new(framer: Framer) -> Self {
        Self { phase: AtomicU8::new(TASK), requests: AtomicU64::new(0), framer: Mutex::new(&FRAMER, framer) }
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

#[cfg(test)]
mod tests {
    use super::*;

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
