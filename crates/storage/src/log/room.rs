//! Room in the log: who may use how much of it, what keeps the rest, and what a full log says.
//!
//! ```text
//!  free bytes of the ring
//!  ├──────────── ordinary work (Use::Normal) ────────────┼─ reserved ─┼─ floor: end of work ─┼─ floor: checkpoint ─┤
//!                                                        rollback and commit (Use::Finish)   Use::Checkpoint
//! ```
//!
//! 1. Ordinary work leaves what open transactions reserved for their rollback and both floors; work that must end leaves
//!    the checkpoint's floor; so a checkpoint that frees something always finds room ([`State::needed_bytes`]).
//! 2. A checkpoint that would free nothing is not written once the floors are reached: otherwise a hundred of them would
//!    eat what the one that frees needs ([`Log::checkpoint_fits`]).
//! 3. What can be lost at the end of a VLF or to a flush's padding is never counted as free ([`State::available_bytes`]).
//!
//! Failure: work that ends and still finds no room is told `LogFull`; its transaction is then read through and cleaned
//! later, which needs no log now.

use super::{Log, State, Use};
use crate::error::StorageError;
use crate::ids::{LogPoint, Lsn};
use std::sync::atomic::Ordering;
use thawdb_device::file::SECTOR_BYTES;

/// Least floor: a checkpoint record with a thousand open transactions.
const FLOOR_BYTES_MIN: u64 = 32 << 10;
/// Greatest floor: many times that, for logs where it is nothing.
const FLOOR_BYTES_MAX: u64 = 4 << 20;
/// Part of the log that a floor is between them.
const FLOOR_SHARE: u64 = 64;
/// What the largest group of a rollback's step may leave unused at the end of a VLF.
pub(super) const TAIL_BYTES: u64 = 32 << 10;
/// Padding to sectors of the block that ends with a group and of the one that its flush begins.
const PADDING_BYTES: u64 = 2 * SECTOR_BYTES as u64;
/// Part of the log below which free room is pressing.
const PRESSURE_SHARE: u64 = 8;
/// Small logs are pressed earlier: one statement takes a larger part of them.
const PRESSURE_BYTES: u64 = 512 << 10;

/// Why log cannot be used again: sys.databases.log_reuse_wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogHoldup {
    /// Nothing: all but the VLF in use is free, or will be when it is full.
    Nothing,
    /// No checkpoint has passed it.
    Checkpoint,
    /// It is in no log backup yet.
    LogBackup,
    /// A backup reads it.
    ActiveBackup,
    /// Open transactions have reserved what is free, for their rollback.
    ActiveTransaction,
    /// Somebody reads it.
    LogScan,
    /// A page changed there has not been written, so that the checkpoint could not pass it.
    OldestPage,
}

impl LogHoldup {
    /// log_reuse_wait.
    pub fn number(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Checkpoint => 1,
            Self::LogBackup => 2,
            Self::ActiveBackup => 3,
            Self::ActiveTransaction => 4,
            Self::LogScan => 8,
            Self::OldestPage => 13,
        }
    }

    /// log_reuse_wait_desc.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "NOTHING",
            Self::Checkpoint => "CHECKPOINT",
            Self::LogBackup => "LOG_BACKUP",
            Self::ActiveBackup => "ACTIVE_BACKUP_OR_RESTORE",
            Self::ActiveTransaction => "ACTIVE_TRANSACTION",
            Self::LogScan => "LOG_SCAN",
            Self::OldestPage => "OLDEST_PAGE",
        }
    }
}

impl State {
    fn floor_bytes(&self) -> u64 {
        (self.file_bytes / FLOOR_SHARE).clamp(FLOOR_BYTES_MIN, FLOOR_BYTES_MAX)
    }

    /// Bytes that groups certainly find.
    pub(super) fn available_bytes(&self) -> u64 {
        let in_last = self.ring.last().map_or(0, |a| a.end().0.saturating_sub(self.building.end().0));
        // The tail of a VLF may be too short for the next group: not counted beyond what is certain to be used.
        let in_last = in_last.saturating_sub(self.ring.group_bytes_max());
        let tails = self.ring.free_count() as u64 * TAIL_BYTES;
        self.ring.free_body_bytes().saturating_sub(tails) + in_last
    }

    /// Bytes that must be available before an append of `bytes`.
    pub(super) fn needed_bytes(&self, bytes: u64, usage: Use) -> u64 {
        match usage {
            Use::Normal => bytes + PADDING_BYTES + self.reserved_bytes + 2 * self.floor_bytes(),
            Use::Finish => bytes + self.floor_bytes(),
            Use::Checkpoint => 0,
        }
    }

    /// Whether there is room for whoever comes next.
    fn roomy(&self) -> bool {
        self.spares(0)
    }

    /// Whether there would still be, were there `bytes` less.
    pub(super) fn spares(&self, bytes: u64) -> bool {
        self.available_bytes() >= self.needed_bytes(bytes, Use::Normal)
    }

    /// Where log is kept from by all but the checkpoint, and by what.
    fn kept_by_others(&self) -> Option<(Lsn, LogHoldup)> {
        let backup = self.master.policy.keeps_from().map(|from| (from, LogHoldup::LogBackup));
        let held = self.holds.values().copied();
        let settled = |(from, why)| (self.ring.settled(from), why);
        backup.into_iter().chain(held).map(settled).min_by_key(|(from, _)| *from)
    }

    /// Where log is kept from, and by what. Of several in the same VLF a backup is told before a checkpoint.
    pub(super) fn kept_from(&self) -> (Lsn, LogHoldup) {
        let redo = (self.master.checkpoint, self.redo_holdup);
        match self.kept_by_others() {
            Some((from, why)) => {
                let vlf_end = self.ring.locate(from).map_or(from, |vlf| vlf.end());
                if redo.0 < from.min(vlf_end) && self.ring.locate(redo.0).is_none_or(|vlf| vlf.end() <= from) { redo } else { (from, why) }
            }
            None => redo,
        }
    }

    /// Frees what nothing keeps.
    pub(super) fn free_unkept(&mut self) -> usize {
        let others = self.kept_by_others().map_or(Lsn(u64::MAX), |(from, _)| from);
        self.ring.free_before(others.min(self.master.checkpoint))
    }

    /// Why no more can be used again now.
    pub(super) fn holdup(&self) -> LogHoldup {
        let (from, why) = self.kept_from();
        let in_last = self.ring.last().is_none_or(|last| from >= last.start);
        if !in_last {
            return why;
        }
        if !self.roomy() && self.reserved_bytes > 0 { LogHoldup::ActiveTransaction } else { LogHoldup::Nothing }
    }

    /// The error of a log without room.
    pub(super) fn full(&self) -> StorageError {
        let (from, _) = self.kept_from();
        let holdup = match self.holdup() {
            // Nothing keeps log, and yet there is none: what is free belongs to rollbacks.
            LogHoldup::Nothing if self.reserved_bytes > 0 => LogHoldup::ActiveTransaction,
            other => other,
        };
        StorageError::LogFull { reuse_wait: holdup.name(), holdup: self.point(from).unwrap_or_default() }
    }

    /// An LSN as people read it; `None` if its VLF is in use for something later.
    pub(super) fn point(&self, at: Lsn) -> Option<LogPoint> {
        let place = |start: Lsn, number: u32| {
            let offset = at.0 - start.0;
            let (block, slot) = (u32::try_from(offset / 512).ok()?, u16::try_from(offset % 512).ok()?);
            Some(LogPoint { number, block, slot })
        };
        if let Some(active) = self.ring.locate(at) {
            return place(active.start, self.ring.number(&active));
        }
        let past = |shape| Some((shape, *self.ring.last_use(shape)?));
        let (_, last) =
            self.ring.free().filter_map(past).find(|(shape, last)| last.start <= at && at.0 < last.start.0 + shape.size_bytes)?;
        place(last.start, last.number)
    }
}

impl Log {
    /// Whether room is so short that whoever begins a change had better see to it first ([`Log::checkpoint_helps`]).
    pub fn is_pressed(&self) -> bool {
        // Relaxed: a hint.
        self.pressed.load(Ordering::Relaxed)
    }

    pub(super) fn note_pressure(&self, state: &State, available: u64) {
        let share = (state.file_bytes / PRESSURE_SHARE).max(PRESSURE_BYTES.min(state.file_bytes / 3));
        let pressed = available < state.reserved_bytes + share;
        if pressed != self.pressed.load(Ordering::Relaxed) {
            self.pressed.store(pressed, Ordering::Relaxed);
        }
    }

    /// Whether a checkpoint now could let log be used again.
    pub fn checkpoint_helps(&self) -> bool {
        let state = self.state.lock();
        let others = state.kept_by_others().map_or(Lsn(u64::MAX), |(from, _)| from);
        state.ring.active().count() > 1 && state.ring.active().next().is_some_and(|oldest| oldest.end() <= others)
    }

    /// Whether a checkpoint that lets redo begin at `keep` may be written: there is room beside what is kept for the one
    /// that frees log, or it is that one.
    pub fn checkpoint_fits(&self, keep: Lsn) -> Result<(), StorageError> {
        let state = self.state.lock();
        let others = state.kept_by_others().map_or(Lsn(u64::MAX), |(from, _)| from);
        let frees = state.ring.active().count() > 1 && state.ring.active().next().is_some_and(|vlf| vlf.end() <= others.min(keep));
        let grows = state.config.grown_bytes(state.file_bytes) > state.file_bytes;
        if frees || grows || state.roomy() { Ok(()) } else { Err(state.full()) }
    }

    /// Why no more log can be used again now.
    pub fn holdup(&self) -> LogHoldup {
        self.state.lock().holdup()
    }

    /// An LSN as people read it, if the log still knows the VLF it lay in.
    pub fn point(&self, at: Lsn) -> Option<LogPoint> {
        self.state.lock().point(at)
    }
}
