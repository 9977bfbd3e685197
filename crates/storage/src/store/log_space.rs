//! What keeps the log usable: checkpoints when room is short, log backups, the recovery model, the size of the file.
//!
//! ```text
//! change about to begin ── room short? ── a checkpoint would help? ──► write back, checkpoint     (Store::relieve_log)
//! log backup: end of log, flushed ─► blocks to the sink, durable there ─► backed up to ─► checkpoint if it held log ─► free
//! ```
//!
//! 1. Log leaves only by [`crate::log::Log`]'s own rule: before the checkpoint, in a log backup where there is a chain,
//!    and before every hold.
//! 2. A log backup appends nothing, so it is possible on a log without any room ([`Store::back_up_log`]).
//! 3. One log backup of a database at a time, and one relief: others wait or find nothing left to do.
//!
//! Locks: `LOG_BACKUPS` (1), `LOG_RELIEF` (1), then what a checkpoint takes. Nobody calls with a latch held.
//! Failure: a sink that fails leaves the chain where it was; the same backup can be taken again.

use super::Store;
use super::data_backup::BackupSink;
use crate::error::StorageError;
use crate::ids::Lsn;
use crate::log::{Log, LogHoldup, LogPoint, RecoveryModel};
use observe::sync::{LockClass, Mutex};
use std::sync::Arc;
use thawdb_observe as observe;

/// Once for VLFs that are free, and once for those that a checkpoint frees after the writing has moved.
const SHRINK_ROUNDS: u32 = 2;

static LOG_BACKUPS: LockClass = LockClass::new("LOG_BACKUPS", 1);
static LOG_RELIEF: LockClass = LockClass::new("LOG_RELIEF", 1);

/// Locks of this file.
pub(crate) struct LogSpaceLocks {
    backups: Mutex<()>,
    relief: Mutex<()>,
}

impl LogSpaceLocks {
    pub(crate) fn new() -> Self {
        Self { backups: Mutex::new(&LOG_BACKUPS, ()), relief: Mutex::new(&LOG_RELIEF, ()) }
    }
}

/// A log backup that was taken.
#[derive(Debug, Clone, Copy)]
pub struct LogBackup {
    /// Where it begins.
    pub first: Lsn,
    /// Where it ends.
    pub last: Lsn,
    /// The same for people.
    pub first_point: Option<LogPoint>,
    /// The same for people.
    pub last_point: Option<LogPoint>,
    /// Bytes of log it has.
    pub bytes: u64,
    /// Pages it has beside the log: those of bulk work that the log only names.
    pub pages: u64,
}

impl Store {
    fn logged(&self) -> Result<&Arc<Log>, StorageError> {
        self.log().ok_or_else(|| StorageError::NotFound(format!("a log of database {}", self.name())))
    }

    /// Makes room in the log if it is short and a checkpoint makes some: called before a change begins, with no latch
    /// held. What a checkpoint cannot help is left to the change, which then fails with `LogFull`.
    pub fn relieve_log(&self) -> Result<(), StorageError> {
        let Some(log) = self.log().filter(|log| log.is_pressed()) else { return Ok(()) };
        if !log.checkpoint_helps() {
            return Ok(());
        }
        let _one = self.log_space.relief.lock();
        if log.is_pressed() && log.checkpoint_helps() { self.free_log() } else { Ok(()) }
    }

    /// Brings the start of recovery as far forward as it goes; what redo still owes is done first, because it holds log.
    fn free_log(&self) -> Result<(), StorageError> {
        self.finish_redo()?;
        self.write_all()?;
        match self.checkpoint() {
            Ok(()) | Err(StorageError::LogFull { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Changes the recovery model, durably. Leaving for SIMPLE ends the chain of backups.
    pub fn set_recovery_model(&self, model: RecoveryModel) -> Result<(), StorageError> {
        match self.log() {
            Some(log) if log.policy().model != model => log.change_policy(|policy| policy.set_model(model)),
            _ => Ok(()),
        }
    }

    /// Gives all log since the last log backup to `sink`, then, unless `copy_only`, counts it as backed up and frees what
    /// nothing else keeps. `time` is remembered as the moment of the backup. `NotFound` without a chain.
    pub fn back_up_log(&self, time: i64, copy_only: bool, sink: &mut dyn BackupSink) -> Result<LogBackup, StorageError> {
        let log = self.logged()?;
        let _one = self.log_space.backups.lock();
        let absent = || StorageError::NotFound("a chain of log backups".into());
        let first = log.policy().chain.ok_or_else(absent)?.backed_up_to;
        let hold = log.hold(first, LogHoldup::ActiveBackup);
        let any_forced = self.bulk_pages.take();
        let copied = (|| {
            log.flush(log.end())?;
            let last = log.durable();
            let bytes = log.copy_blocks(first, last, &mut |at, block| sink.log(at, block))?;
            let pages = if any_forced { self.copy_forced_pages(log, (first, last), copy_only, sink)? } else { 0 };
            sink.finish(first, last)?;
            Ok::<_, StorageError>((last, bytes, pages))
        })();
        if copied.is_err() || copy_only {
            self.bulk_pages.note();
        }
        let (last, bytes, pages) = copied?;
        let (first_point, last_point) = (log.point(first), log.point(last));
        if !copy_only {
            log.change_policy(|policy| policy.backed_up(last, time))?;
        }
        drop(hold);
        if !copy_only && log.checkpoint_helps() {
            // The checkpoint is older than what was backed up: one now, so that one log backup frees the log.
            self.free_log()?;
        }
        Ok(LogBackup { first, last, first_point, last_point, bytes, pages })
    }

    /// Cuts the log file down to `target_bytes`, or to where log in use ends. Returns the length now, and whether log in
    /// use stopped it.
    pub fn shrink_log(&self, target_bytes: u64) -> Result<(u64, bool), StorageError> {
        let log = self.logged()?;
        for _ in 0..SHRINK_ROUNDS {
            log.recut_before(target_bytes)?;
            let cut = log.cut_tail(target_bytes)?;
            if cut.0 <= target_bytes {
                return Ok(cut);
            }
            log.move_before(target_bytes)?;
            if log.checkpoint_helps() {
                self.free_log()?;
            }
        }
        log.cut_tail(target_bytes)
    }
}
