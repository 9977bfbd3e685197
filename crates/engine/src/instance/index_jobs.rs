//! Index operations of one database as they live: who works on which, how far it is, and who wants it to stop.
//!
//! ```text
//! begin ─► Runner ── note, stop asked? ── note ... ─► dropped: paused, those who wait are told
//! ```
//! What must outlive the instance is the catalog's record ([`thawdb_catalog::IndexJob`]); an operation that nobody runs is
//! paused, whatever paused it.
//!
//! Locks: `INDEX_JOBS` (5). Blocking: [`JobTable::wait_stopped`] until the operation's session has stopped between two
//! chunks, which takes a fraction of a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_catalog::{JobProgress, ObjectId};
use thawdb_observe::cancel::{CancelReason, CancelToken};
use thawdb_observe::sync::{Condvar, LockClass, Mutex};

static INDEX_JOBS: LockClass = LockClass::new("INDEX_JOBS", 5);

#[derive(Default)]
struct Live {
    progress: Option<JobProgress>,
    running: bool,
    stop: bool,
    /// Ends a wait of whoever works on it.
    cancel: Option<CancelToken>,
    /// When it was last paused, 1/300 s since 1900-01-01.
    paused: Option<i64>,
    /// Hours of the pause that the error log tells of.
    hours_told: i64,
}

/// The operations of a database.
pub(crate) struct JobTable(Arc<Shared>);

struct Shared {
    jobs: Mutex<BTreeMap<i32, Live>>,
    stopped: Condvar,
}

/// What a view shows of an operation.
pub(crate) struct JobState {
    pub(crate) running: bool,
    pub(crate) progress: Option<JobProgress>,
    pub(crate) paused: Option<i64>,
}

/// The right to work on an operation; dropped, it is paused.
pub(crate) struct Runner {
    shared: Arc<Shared>,
    table: i32,
    now: Box<dyn Fn() -> i64 + Send>,
}

impl JobTable {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared { jobs: Mutex::new(&INDEX_JOBS, BTreeMap::new()), stopped: Condvar::new() }))
    }

    /// Takes an operation up; `None` if somebody works on it. `cancel` ends the waits of the call that does, `now` tells the
    /// time of the pause.
    pub(crate) fn begin(&self, table: ObjectId, cancel: CancelToken, now: Box<dyn Fn() -> i64 + Send>) -> Option<Runner> {
        let mut jobs = self.0.jobs.lock();
        let live = jobs.entry(table.0).or_default();
        if live.running {
            return None;
        }
        live.running = true;
        live.stop = false;
        live.hours_told = 0;
        live.cancel = Some(cancel);
        Some(Runner { shared: self.0.clone(), table: table.0, now })
    }

    pub(crate) fn state(&self, table: ObjectId) -> JobState {
        let jobs = self.0.jobs.lock();
        let live = jobs.get(&table.0);
        JobState {
            running: live.is_some_and(|live| live.running),
            progress: live.and_then(|live| live.progress.clone()),
            paused: live.and_then(|live| live.paused),
        }
    }

    /// Asks whoever works on it to stop; false if nobody does.
    pub(crate) fn ask_stop(&self, table: ObjectId) -> bool {
        let mut jobs = self.0.jobs.lock();
        match jobs.get_mut(&table.0) {
            Some(live) if live.running => {
                live.stop = true;
                let cancel = live.cancel.clone();
                drop(jobs);
                // It may be waiting for the table, to publish.
                cancel.into_iter().for_each(|cancel| cancel.cancel(CancelReason::Kill));
                true
            }
            _ => false,
        }
    }

    /// Waits until nobody works on it.
    pub(crate) fn wait_stopped(&self, table: ObjectId) {
        let mut jobs = self.0.jobs.lock();
        while jobs.get(&table.0).is_some_and(|live| live.running) {
            self.0.stopped.wait(&mut jobs);
        }
    }

    /// Notes that a pause has lasted so many hours; true if that is news.
    pub(crate) fn note_hours(&self, table: ObjectId, hours: i64) -> bool {
        let mut jobs = self.0.jobs.lock();
        let live = jobs.entry(table.0).or_default();
        let is_news = !live.running && hours > live.hours_told;
        if is_news {
            live.hours_told = hours;
        }
        is_news
    }

    /// Forgets an operation that has ended.
    pub(crate) fn forget(&self, table: ObjectId) {
        self.0.jobs.lock().remove(&table.0);
    }
}

impl Runner {
    /// Whether another session wants it to stop.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.shared.jobs.lock().get(&self.table).is_some_and(|live| live.stop)
    }

    /// Notes how far it is; true if it is to stop.
    pub(crate) fn note(&self, progress: &JobProgress) -> bool {
        let mut jobs = self.shared.jobs.lock();
        let live = jobs.entry(self.table).or_default();
        live.progress = Some(progress.clone());
        live.stop
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let now = (self.now)();
        let mut jobs = self.shared.jobs.lock();
        if let Some(live) = jobs.get_mut(&self.table) {
            live.running = false;
            live.cancel = None;
            live.paused = Some(now);
        }
        self.shared.stopped.notify_all();
    }
}
