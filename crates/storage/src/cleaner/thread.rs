//! The thread that tidies while a database is open.
//!
//! It takes turns as long as there is work and pauses otherwise. An error ends the turn only: who needs the page meets it
//! and tells it. Locks: VERSION_CLEANER_THREAD (1) for the pause. It holds the database weakly, and stops with it.

use crate::database::Database;
use observe::sync::{Condvar, LockClass, Mutex};
use observe::wait::{self, WaitKind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use thawdb_observe as observe;

static CLEANER_THREAD: LockClass = LockClass::new("VERSION_CLEANER_THREAD", 1);

/// Pause after a turn without work: versions may be that much older than need be.
const PAUSE: Duration = Duration::from_millis(200);

struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

/// The running thread; stops when dropped.
pub(crate) struct CleanerThread {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl CleanerThread {
    pub(crate) fn start(database: &Arc<Database>) -> Self {
        let stop = Arc::new(Stop { stopped: Mutex::new(&CLEANER_THREAD, false), changed: Condvar::new() });
        let (theirs, weak) = (stop.clone(), Arc::downgrade(database));
        let name = format!("cleaner {}", database.spec().name);
        let thread = std::thread::Builder::new().name(name).spawn(move || run(&weak, &theirs)).expect("the system starts a thread");
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for CleanerThread {
    fn drop(&mut self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}

fn run(database: &Weak<Database>, stop: &Stop) {
    loop {
        let Some(database) = database.upgrade() else { return };
        let busy = database.clean_turn().unwrap_or(false);
        drop(database);
        let mut stopped = stop.stopped.lock();
        if !*stopped && !busy {
            let _waiting = wait::enter(WaitKind::VersionCleaner);
            stop.changed.wait_for(&mut stopped, PAUSE);
        }
        if *stopped {
            return;
        }
    }
}
