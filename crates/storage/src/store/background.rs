//! What a database does while nobody asks: redo the rest, keep the pool writable, move the checkpoint forward.
//!
//! ```text
//! every turn: redo a step -> many dirty pages? write some back -> much log since the checkpoint? checkpoint
//! ```
//!
//! 1. A turn does a bounded amount of work, so that stopping waits for one turn at most ([`Store::background_turn`]).
//! 2. An error ends nothing but the turn: whoever needs the page or the log meets it and tells it; the thread tries
//!    again after its pause.
//!
//! Simulations call [`Store::background_turn`] themselves; only a real instance starts the thread.

use super::Store;
use super::write::BATCH_PAGES;
use crate::error::StorageError;
use crate::pool::WriteBack;
use observe::sync::{Condvar, LockClass, Mutex};
use observe::wait::{self, WaitKind};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use thawdb_observe as observe;

static BACKGROUND: LockClass = LockClass::new("STORE_BACKGROUND", 1);

/// Pause after a turn without work. Short enough that the pool never fills with dirty pages between two turns at the
/// speed of a disk, long enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(100);
/// Log after which a checkpoint is due: what redo reads in about a second at an open.
const CHECKPOINT_LOG_BYTES: u64 = 256 << 20;
/// Share of the log file after which one is due, so that a small log does not run full.
const CHECKPOINT_LOG_SHARE: u64 = 3;
/// Share of the pool's frames that may be dirty before the background writes.
const DIRTY_SHARE: usize = 8;

/// The running background work of one store; stops when dropped.
pub struct Background {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Background {
    /// Starts it.
    pub fn start(store: &Arc<Store>) -> Self {
        let stop = Arc::new(Stop { stopped: Mutex::new(&BACKGROUND, false), changed: Condvar::new() });
        let (theirs, weak) = (stop.clone(), Arc::downgrade(store));
        let name = format!("background {}", store.name());
        let thread = std::thread::Builder::new().name(name).spawn(move || run(&weak, &theirs)).expect("the system starts a thread");
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Background {
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

fn run(store: &Weak<Store>, stop: &Stop) {
    loop {
        let Some(store) = store.upgrade() else {
            return;
        };
        let busy = store.background_turn().unwrap_or(false);
        drop(store);
        let mut stopped = stop.stopped.lock();
        if !*stopped && !busy {
            let _waiting = wait::enter(WaitKind::DirtyPagePoll);
            stop.changed.wait_for(&mut stopped, PAUSE);
        }
        if *stopped {
            return;
        }
    }
}

impl Store {
    /// A bounded piece of background work; true if there is more.
    pub fn background_turn(&self) -> Result<bool, StorageError> {
        let mut busy = self.redo_step()? > 0;
        // Commits with delayed durability wait no longer than a turn.
        self.flush_log(self.log_end())?;
        if self.dirty.len() > self.pool().frame_count() / DIRTY_SHARE {
            busy |= self.write_back(BATCH_PAGES)? > 0;
        }
        if self.is_checkpoint_due() {
            self.write_all()?;
            self.checkpoint()?;
        }
        Ok(busy)
    }

    fn is_checkpoint_due(&self) -> bool {
        let Some(log) = self.log() else {
            return false;
        };
        if log.is_pressed() && log.checkpoint_helps() {
            return true;
        }
        let since = self.log_bytes_since_checkpoint();
        since > CHECKPOINT_LOG_BYTES.min(log.space().size_bytes / CHECKPOINT_LOG_SHARE)
    }
}
