//! The event engine: typed events, made only when somebody listens.
//!
//! ```text
//! emit(family, || Event) -- no sink wants the family --> one relaxed load
//!          |
//!          +-- stamped with time and session --> each sink that wants the family
//! ```
//!
//! The list of events is closed: no free-form names, bounded size. [`RingSink`] keeps the last events of each
//! thread's line and counts those it overwrote; views and sessions read it.
//!
//! 1. A sink sees only families it asked for ([`EventSink::families`]).
//! 2. A ring never grows: a full line forgets its oldest event and counts it ([`RingSink::lost`]).
//! 3. A sink must not emit: an event inside a sink is dropped, so that no sink can recurse ([`deliver`]).
//!
//! Predicates and call stacks are not built yet; they belong between `emit` and the sinks.

use crate::clock;
use crate::shard::{self, SHARDS};
use crate::wait::{self, WaitKind};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A group of events that is switched on and off together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Family {
    /// Waits that ended.
    Wait = 1,
    /// Reads and writes of files.
    Io = 1 << 1,
    /// Log flushes and checkpoints.
    Log = 1 << 2,
    /// Statements begun and done.
    Statement = 1 << 3,
    /// Errors reported to a client or the error log.
    Error = 1 << 4,
    /// Steps of long jobs.
    Job = 1 << 5,
}

/// What happened. Numbers only, or names known at compile time, so that an event costs no allocation; text of
/// statements and errors is looked up by the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A wait ended.
    WaitDone {
        /// Its kind.
        kind: WaitKind,
        /// How long it was.
        wait_ns: u64,
    },
    /// A file was read.
    FileRead {
        /// Bytes.
        bytes: u64,
        /// From submission to completion.
        elapsed_ns: u64,
    },
    /// A file was written.
    FileWritten {
        /// Bytes.
        bytes: u64,
        /// From submission to completion.
        elapsed_ns: u64,
    },
    /// Log reached the device.
    LogFlushed {
        /// Database number.
        database: u32,
        /// Bytes.
        bytes: u64,
        /// From submission to durable.
        elapsed_ns: u64,
    },
    /// A checkpoint ended.
    CheckpointDone {
        /// Database number.
        database: u32,
        /// Pages written.
        pages: u64,
        /// From begin to end.
        elapsed_ns: u64,
    },
    /// A statement begins.
    StatementStarting {
        /// Hash of its text.
        query_hash: u64,
    },
    /// A statement is done.
    StatementDone {
        /// Hash of its text.
        query_hash: u64,
        /// Duration.
        elapsed_ns: u64,
        /// Rows returned or changed.
        rows: u64,
    },
    /// An error was raised.
    ErrorReported {
        /// Message number.
        number: i32,
        /// Severity.
        severity: u8,
    },
    /// A job made a step.
    JobStep {
        /// Job number.
        job: u64,
        /// Units done.
        done: u64,
        /// Units in all, 0 if unknown.
        total: u64,
    },
}

/// An event with its circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Place among all events of the process.
    pub sequence: u64,
    /// When, by [`clock::now_ns`].
    pub at_ns: u64,
    /// The session it happened in, if any.
    pub session_id: Option<i32>,
    /// What.
    pub event: Event,
}

/// Who listens. Called on the thread where the event happens: it must be quick, must not block and must not emit.
pub trait EventSink: Send + Sync {
    /// The families it wants, as a sum of [`Family`] bits; asked once, when it is added.
    fn families(&self) -> u32;
    /// Takes an event.
    fn emit(&self, record: &Record);
}

static WANTED: AtomicU32 = AtomicU32::new(0);
static SEQUENCE: AtomicU64 = AtomicU64::new(0);
static SINKS: RwLock<Vec<(u32, Arc<dyn EventSink>)>> = RwLock::new(Vec::new());

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Reports an event, which is made only if a sink wants its family.
#[inline]
pub fn emit(family: Family, make: impl FnOnce() -> Event) {
    // Relaxed: a sink just added may miss events of this instant.
    if WANTED.load(Ordering::Relaxed) & family as u32 != 0 {
        deliver(family, make());
    }
}

#[cold]
fn deliver(family: Family, event: Event) {
    if DELIVERING.replace(true) {
        return;
    }
    let _delivering = Delivering;
    let record = Record {
        sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed),
        at_ns: clock::now_ns(),
        session_id: wait::session().map(|slot| slot.session_id()),
        event,
    };
    for (wanted, sink) in SINKS.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if wanted & family as u32 != 0 {
            sink.emit(&record);
        }
    }
}

/// Ends the delivery even if a sink panics.
struct Delivering;

impl Drop for Delivering {
    fn drop(&mut self) {
        DELIVERING.set(false);
    }
}

/// Adds a sink.
pub fn add_sink(sink: &Arc<dyn EventSink>) {
    let mut sinks = SINKS.write().unwrap_or_else(PoisonError::into_inner);
    sinks.push((sink.families(), Arc::clone(sink)));
    WANTED.store(sinks.iter().fold(0, |all, (wanted, _)| all | wanted), Ordering::Relaxed);
}

/// Removes a sink.
pub fn remove_sink(sink: &Arc<dyn EventSink>) {
    let mut sinks = SINKS.write().unwrap_or_else(PoisonError::into_inner);
    sinks.retain(|(_, other)| !Arc::ptr_eq(other, sink));
    WANTED.store(sinks.iter().fold(0, |all, (wanted, _)| all | wanted), Ordering::Relaxed);
}

/// Keeps the last events.
pub struct RingSink {
    families: u32,
    per_line_max: usize,
    lines: Vec<Mutex<VecDeque<Record>>>,
    lost: AtomicU64,
}

impl RingSink {
    /// A ring for `families` that keeps up to `per_line_max` events of each of the lines threads are spread over.
    pub fn new(families: &[Family], per_line_max: usize) -> Arc<Self> {
        let families = families.iter().fold(0, |all, family| all | *family as u32);
        let lines = (0..SHARDS).map(|_| Mutex::new(VecDeque::new())).collect();
        Arc::new(Self { families, per_line_max, lines, lost: AtomicU64::new(0) })
    }

    /// The events kept, in the order they happened.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for line in &self.lines {
            records.extend(line.lock().unwrap_or_else(PoisonError::into_inner).iter().copied());
        }
        records.sort_by_key(|record| record.sequence);
        records
    }

    /// Events overwritten so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl EventSink for RingSink {
    fn families(&self) -> u32 {
        self.families
    }

    fn emit(&self, record: &Record) {
        // Only readers and threads beyond the owned lines ever contend here.
        let mut line = self.lines[shard::index()].lock().unwrap_or_else(PoisonError::into_inner);
        if line.len() == self.per_line_max {
            line.pop_front();
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        line.push_back(*record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(done: u64) -> Event {
        Event::JobStep { job: 9, done, total: 0 }
    }

    /// One test, since sinks are the process's and tests of one process run at once.
    #[test]
    fn events_reach_only_sinks_that_want_them_and_a_ring_keeps_the_last() {
        let mut made = 0;
        emit(Family::Job, || {
            made += 1;
            job(0)
        });
        assert_eq!(made, 0, "nobody listens, so nothing is made");

        let jobs = RingSink::new(&[Family::Job], 3);
        let errors = RingSink::new(&[Family::Error], 3);
        let (job_sink, error_sink): (Arc<dyn EventSink>, Arc<dyn EventSink>) = (jobs.clone(), errors.clone());
        add_sink(&job_sink);
        add_sink(&error_sink);
        let slot = wait::SessionWaits::new(60);
        let binding = wait::bind(&slot);
        for done in 1..=5 {
            emit(Family::Job, || job(done));
        }
        drop(binding);
        let kept: Vec<_> = jobs.records().iter().map(|record| (record.session_id, record.event)).collect();
        assert_eq!(kept, [(Some(60), job(3)), (Some(60), job(4)), (Some(60), job(5))]);
        assert_eq!((jobs.lost(), errors.records().len()), (2, 0));

        remove_sink(&job_sink);
        remove_sink(&error_sink);
        emit(Family::Job, || unreachable!("removed sinks want nothing"));
        assert_eq!(jobs.records().len(), 3);
    }
}
