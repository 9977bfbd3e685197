//! What an instance looks after while nobody asks: index operations that have been paused for long.
//!
//! ```text
//! every turn: each paused operation ─► another hour over? 10657 in the error log
//!                                   └► longer than its database allows? 10676 in the error log, and it is aborted
//! ```
//! 1. A turn waits for no lock longer than a second: what is in use is tried again by the next.
//! 2. The thread ends with the engine ([`Caretaker`] is dropped, or the engine is).
//!
//! Environments without threads take turns themselves ([`Engine::care`]). Locks: `CARETAKER` (1), never while working.

use crate::api::batch::Batch;
use crate::api::sink::{DoneInfo, EnvChange, ResultSink, SinkClosed};
use crate::ddl::rewrite::quoted;
use crate::ddl::scoped::paused_minutes_max;
use crate::instance::Engine;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use thawdb_catalog::IndexJob;
use thawdb_observe::sync::{Condvar, LockClass, Mutex};
use thawdb_observe::wait::{self, WaitKind};
use thawdb_query::phys::OutputColumn;
use thawdb_types::{Scalar, SqlError, SqlType};

static CARETAKER: LockClass = LockClass::new("CARETAKER", 1);

/// Pause between turns: limits are in minutes.
const PAUSE: Duration = Duration::from_secs(10);
/// Ticks of a moment in a minute.
const TICKS_A_MINUTE: i64 = 300 * 60;

/// The thread that takes turns.
pub(crate) struct Caretaker {
    stop: Arc<Stop>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Caretaker {
    /// One that has not begun.
    pub(crate) fn new() -> Self {
        let stop = Arc::new(Stop { stopped: Mutex::new(&CARETAKER, false), changed: Condvar::new() });
        Self { stop, thread: Mutex::new(&CARETAKER, None) }
    }

    /// Begins to take turns.
    pub(crate) fn start(&self, engine: &Arc<Engine>) {
        let (stop, weak) = (self.stop.clone(), Arc::downgrade(engine));
        let builder = std::thread::Builder::new().name("caretaker".to_owned());
        let thread = builder.spawn(move || run(&weak, &stop)).expect("the system starts a thread");
        *self.thread.lock() = Some(thread);
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(engine: &Weak<Engine>, stop: &Stop) {
    loop {
        {
            let mut stopped = stop.stopped.lock();
            if !*stopped {
                let _waiting = wait::enter(WaitKind::SleepTask);
                stop.changed.wait_for(&mut stopped, PAUSE);
            }
            if *stopped {
                return;
            }
        }
        match engine.upgrade() {
            Some(engine) => engine.care(),
            None => return,
        }
    }
}

impl Engine {
    /// One turn of looking after what is paused.
    pub fn care(self: &Arc<Self>) {
        let account = self.storage.memory();
        // Beyond a half of the whole grants are taken from the pool.
        let memory_is_short = account.granted_bytes() * 2 > account.bytes_max();
        for open in self.all_databases() {
            open.jobs.let_go(self.now_datetime(), memory_is_short);
            let jobs: Vec<_> = open.catalog().jobs.values().filter(|job| job.resumable).cloned().collect();
            jobs.iter().for_each(|job| self.care_for(&open, job));
        }
    }

    fn care_for(self: &Arc<Self>, open: &OpenDatabase, job: &IndexJob) {
        let state = open.jobs.state(job.table);
        let Some(table) = open.catalog().tables.tables.get(&job.table.0).cloned().filter(|_| !state.running) else { return };
        let now = self.now_datetime();
        let since = state.paused.or(job.progress.paused).unwrap_or(self.started);
        let minutes = (now - since) / TICKS_A_MINUTE;
        let name = job.index.name.clone().unwrap_or_default();
        if let Some(most) = paused_minutes_max(open).filter(|most| minutes >= i64::from(*most)) {
            self.error_log.write(now, None, message(10676, &[&name, &table.name, &most]).text);
            let names = [&open.name(), &table.schema_name, &table.name].map(|name| quoted(name)).join(".");
            let mut session = self.internal_session();
            session.execute(&format!("SET LOCK_TIMEOUT 1000; ALTER INDEX ALL ON {names} ABORT"), &[], &mut Nobody);
        } else if open.jobs.note_hours(job.table, minutes / 60) {
            let hours = format!("{:.2}", minutes as f64 / 60.0);
            let text = format!("The resumable index '{name}' on object '{}' has been paused for '{hours}' hours.", table.name);
            self.error_log.write(now, None, text);
        }
    }
}

/// Who hears nothing.
struct Nobody;

impl ResultSink for Nobody {
    fn columns(&mut self, _: &[OutputColumn]) -> Result<(), SinkClosed> {
        Ok(())
    }
    fn rows(&mut self, _: &Batch) -> Result<(), SinkClosed> {
        Ok(())
    }
    fn done(&mut self, _: DoneInfo) {}
    fn message(&mut self, _: &SqlError) {}
    fn return_status(&mut self, _: i32) {}
    fn return_value(&mut self, _: u16, _: &str, _: &SqlType, _: &Scalar) {}
    fn env_change(&mut self, _: &EnvChange) {}
}
