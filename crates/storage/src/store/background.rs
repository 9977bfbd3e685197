//! What a database does while nobody asks: redo the rest, keep the pool writable and the next recovery short.
//!
//! ```text
//! every turn: note the process's memory -> redo a step -> many dirty pages? write some back -> redo would take longer than the target? write the oldest
//!             -> much log since the checkpoint, or much log held? checkpoint
//! ```
//! Checkpoints are indirect: they write no page themselves. What keeps redo short is this estimate, made of counts that are
//! at hand: bytes of log since the oldest dirty page at the speed at which records are applied, and dirty pages at the speed
//! at which a disk reads single ones ([`Store::redo_estimate`]).
//!
//! 1. A turn does a bounded amount of work, so that stopping waits for one turn at most ([`Store::background_turn`]).
//! 2. An error ends nothing but the turn: whoever needs the page or the log meets it and tells it; the thread tries
//!    again after its pause.
//! 3. After redo steps the thread pauses so long that redo has no more than its share of a processor ([`Store::redo_pause`]).
//!
//! Simulations call [`Store::background_turn`] themselves; only a real instance starts the thread.

use super::Store;
use super::write::BATCH_PAGES;
use crate::error::StorageError;
use crate::pool::WriteBack;
use observe::sync::{Condvar, LockClass, Mutex};
use observe::wait::{self, WaitKind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use thawdb_observe as observe;

static BACKGROUND: LockClass = LockClass::new("STORE_BACKGROUND", 1);

/// Pause after a turn without work. Short enough that the pool never fills with dirty pages between two turns at the
/// speed of a disk, long enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(100);
/// Log after which a checkpoint is due: what the next open looks through, twice, in about 50 ms.
const CHECKPOINT_LOG_BYTES: u64 = 32 << 20;
/// Share of the log file that may be held for redo, and share after which a checkpoint is due, so that a small log does
/// not run full.
const CHECKPOINT_LOG_SHARE: u64 = 3;
/// Share of the log file that is written before another try to free what is held.
const HELD_LOG_SHARE: u64 = 16;
/// Bytes of log that redo applies in a second on one core, seen with small rows: a low figure, so that a target is kept.
const REDO_LOG_BYTES_PER_S: u64 = 64 << 20;
/// Single pages that a disk of the slow kind reads in a second, with the queue depth redo has.
const REDO_PAGES_PER_S: u64 = 20_000;
/// SQL Server's TARGET_RECOVERY_TIME of a new database.
const TARGET_RECOVERY_S: u32 = 60;
/// Share of one processor that redo in the background takes at first, in percent.
const REDO_SHARE_PERCENT: u32 = 50;
/// Batches written in a turn for the target's sake.
const TARGET_BATCHES: usize = 8;
/// Share of the pool's frames that may be dirty before the background writes.
const DIRTY_SHARE: usize = 8;

/// What a DBA may set of it.
pub struct Settings {
    target_recovery_s: AtomicU32,
    redo_share_percent: AtomicU32,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self { target_recovery_s: AtomicU32::new(TARGET_RECOVERY_S), redo_share_percent: AtomicU32::new(REDO_SHARE_PERCENT) }
    }
}

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
        let was_redoing = !store.pending.is_empty();
        let start_ns = store.env().clock.monotonic_ns();
        let busy = store.background_turn().unwrap_or(false);
        let took = Duration::from_nanos(store.env().clock.monotonic_ns() - start_ns);
        let pause = match (was_redoing, busy) {
            (true, _) => store.redo_pause(took),
            (false, true) => Duration::ZERO,
            (false, false) => PAUSE,
        };
        drop(store);
        let mut stopped = stop.stopped.lock();
        if !*stopped && !pause.is_zero() {
            let _waiting = wait::enter(WaitKind::DirtyPagePoll);
            stop.changed.wait_for(&mut stopped, pause);
        }
        if *stopped {
            return;
        }
    }
}

impl Store {
    /// A bounded piece of background work; true if there is more.
    pub fn background_turn(&self) -> Result<bool, StorageError> {
        self.pool().account().note_process(self.env().clock.process_memory_bytes());
        let mut busy = self.redo_step()? > 0;
        // Commits with delayed durability wait no longer than a turn.
        self.flush_log(self.log_end())?;
        if self.dirty.len() > self.pool().frame_count() / DIRTY_SHARE {
            busy |= self.write_back(BATCH_PAGES)? > 0;
        }
        busy |= self.keep_target()?;
        if self.is_log_held() {
            if self.waits_for_redo() {
                self.finish_redo()?;
            }
            self.write_all()?;
            self.checkpoint()?;
        } else if self.is_checkpoint_due() {
            self.checkpoint()?;
        }
        Ok(busy)
    }

    /// What a long writer does between two of its steps: nothing while the background keeps up, and a turn of it where that
    /// is behind or does not run. Unlike a turn it does not wait for the log's flush, which device threads do for bulk work.
    pub(crate) fn keep_up(&self) -> Result<(), StorageError> {
        let Some(log) = self.log() else { return Ok(()) };
        let log_bytes_max = (2 * CHECKPOINT_LOG_BYTES).min(log.space().size_bytes / CHECKPOINT_LOG_SHARE);
        let is_behind = self.log_bytes_since_checkpoint() > log_bytes_max
            || self.dirty.len() > self.pool().frame_count() / DIRTY_SHARE * 2
            || log.is_pressed() && log.checkpoint_helps()
            || self.is_log_held();
        if is_behind { self.background_turn().map(drop) } else { Ok(()) }
    }

    /// Sets how long redo after a crash may take (TARGET_RECOVERY_TIME); 0 leaves it to the log's size alone.
    pub fn set_target_recovery_s(&self, seconds: u32) {
        // Relaxed, as below: a setting, read at the next turn.
        self.settings.target_recovery_s.store(seconds, Ordering::Relaxed);
    }

    /// How long redo after a crash may take.
    pub fn target_recovery_s(&self) -> u32 {
        self.settings.target_recovery_s.load(Ordering::Relaxed)
    }

    /// Sets the share of one processor that redo in the background takes, 1 to 100 percent.
    pub fn set_redo_share_percent(&self, percent: u32) {
        self.settings.redo_share_percent.store(percent.clamp(1, 100), Ordering::Relaxed);
    }

    /// How long redo would take if the machine crashed now.
    pub fn redo_estimate(&self) -> Duration {
        let bytes = self.dirty.about_oldest().map_or(0, |oldest| self.log_end().0.saturating_sub(oldest.0));
        let pages = (self.dirty.len() + self.pending.len()) as u64;
        Duration::from_millis(bytes * 1000 / REDO_LOG_BYTES_PER_S + pages * 1000 / REDO_PAGES_PER_S)
    }

    /// Writes the oldest dirty pages if redo would take longer than it may; true if more are to be written.
    fn keep_target(&self) -> Result<bool, StorageError> {
        let target = Duration::from_secs(u64::from(self.target_recovery_s()));
        if target.is_zero() || self.log().is_none() {
            return Ok(false);
        }
        for _ in 0..TARGET_BATCHES {
            if self.redo_estimate() <= target {
                return Ok(false);
            }
            if self.write_back(BATCH_PAGES)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How long the thread pauses after a turn of redo that took `turn`.
    fn redo_pause(&self, turn: Duration) -> Duration {
        let share = self.settings.redo_share_percent.load(Ordering::Relaxed);
        turn * (100 - share) / share
    }

    /// Whether so much log is held that what holds it must be written, lest the log run full; not asked anew before the
    /// log has gone on a piece, since something else may hold it.
    fn is_log_held(&self) -> bool {
        let Some(log) = self.log() else {
            return false;
        };
        let size_bytes = log.space().size_bytes;
        let held = self.log_end().0.saturating_sub(self.checkpoints.keep().0);
        held > size_bytes / CHECKPOINT_LOG_SHARE && self.log_bytes_since_checkpoint() > size_bytes / HELD_LOG_SHARE
    }

    /// Whether the log is about to run full, and what redo has left to do keeps it: of a log that waits for its backup nothing
    /// would be freed.
    fn waits_for_redo(&self) -> bool {
        self.log().is_some_and(|log| log.space().used_bytes > log.space().size_bytes / 4 * 3 && log.checkpoint_helps())
    }

    fn is_checkpoint_due(&self) -> bool {
        let Some(log) = self.log() else {
            return false;
        };
        if log.is_pressed() && log.checkpoint_helps() {
            return true;
        }
        self.log_bytes_since_checkpoint() > CHECKPOINT_LOG_BYTES.min(log.space().size_bytes / CHECKPOINT_LOG_SHARE)
    }
}
