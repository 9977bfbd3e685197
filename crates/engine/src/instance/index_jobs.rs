//! Index operations of one database as they live: who works on which, how far it is, and who wants it to stop.
//!
//! ```text
//! begin ─► Runner ── note, stop asked? ── note ... ─► dropped: paused, those who wait are told
//! ```
//! What must outlive the instance is the catalog's record ([`thawdb_catalog::IndexJob`]); an operation that nobody runs is
//! paused, whatever paused it.
//!
//! A paused operation's build is kept in memory (`JobTable::keep`), so that taking it up again costs nothing: until it is
//! taken up or aborted, or has been paused for [`KEPT_TICKS_MAX`], or memory is short.
//!
//! Locks: `INDEX_JOBS` (5), never while a build is let go, whose memory goes back to its account. Blocking: [`JobTable::wait_stopped`] until the operation's session has stopped between two
//! chunks, which takes a fraction of a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_catalog::{JobProgress, ObjectId};
use thawdb_maintain::OnlineBuild;
use thawdb_observe::cancel::{CancelReason, CancelToken};
use thawdb_observe::sync::{Condvar, LockClass, Mutex};

static INDEX_JOBS: LockClass = LockClass::new("INDEX_JOBS", 5);

/// A build is kept for ten minutes at most, in 1/300 s: who pauses for longer does not mind a moment more.
const KEPT_TICKS_MAX: i64 = 300 * 60 * 10;

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
    /// Rows read and gathered by builds that are gone, and by the present one.
    rows_processed: (u64, u64),
    /// The build, at rest while nobody works on it.
    kept: Option<Box<OnlineBuild>>,
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
    /// Rows read and gathered in this life of the instance.
    pub(crate) rows_processed: u64,
    /// Its build is in memory.
    pub(crate) kept: bool,
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
            rows_processed: live.map_or(0, |live| live.rows_processed.0 + live.rows_processed.1),
            kept: live.is_some_and(|live| live.kept.is_some()),
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
        let gone = self.0.jobs.lock().remove(&table.0);
        drop(gone);
    }

    /// Keeps a build that rests.
    pub(crate) fn keep(&self, table: ObjectId, build: Box<OnlineBuild>) {
        let before = self.0.jobs.lock().entry(table.0).or_default().kept.replace(build);
        drop(before);
    }

    /// The build that was kept.
    pub(crate) fn take_kept(&self, table: ObjectId) -> Option<Box<OnlineBuild>> {
        self.0.jobs.lock().get_mut(&table.0)?.kept.take()
    }

    /// Lets builds go that have been paused for long, or all of them where memory is short: they can be begun anew.
    pub(crate) fn let_go(&self, now: i64, memory_is_short: bool) {
        let mut gone = Vec::new();
        let mut jobs = self.0.jobs.lock();
        for live in jobs.values_mut().filter(|live| !live.running) {
            let is_old = live.paused.is_none_or(|paused| now - paused > KEPT_TICKS_MAX);
            if is_old || memory_is_short {
                gone.extend(live.kept.take());
            }
        }
        drop(jobs);
        drop(gone);
    }
}

impl Runner {
    /// Whether another session wants it to stop.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.shared.jobs.lock().get(&self.table).is_some_and(|live| live.stop)
    }

    /// Notes how far it is, and the rows that its build has read and gathered; true if it is to stop.
    pub(crate) fn note(&self, progress: &JobProgress, rows_read: u64) -> bool {
        let mut jobs = self.shared.jobs.lock();
        let live = jobs.entry(self.table).or_default();
        if rows_read < live.rows_processed.1 {
            // A build begun anew.
            live.rows_processed.0 += live.rows_processed.1;
        }
        live.rows_processed.1 = rows_read;
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
