//! The size of the log file: settings changed, grown at once, shrunk to where the log in use ends; and its VLFs as views
//! show them.
//!
//! ```text
//! | in use | free | free | WRITING |    shrink: move the writing to the free one nearest the start
//! | in use | WRITING | free | until the next checkpoint in use |   checkpoint, then cut VLFs off the end
//! | in use | WRITING | free |
//! ```
//!
//! 1. A file is cut at the border of a VLF that nobody uses, and three VLFs always stay ([`super::ring::Ring::remove_tail`]).
//! 2. VLFs leave the ring before the file gets shorter, and growth is kept out meanwhile (`State::growing`).
//!
//! Failure: a crash in between leaves the file long, with VLFs that are free; a full disk while growing is `LogFull`.

use super::format::{RING_START, VLF_HEADER_BYTES};
use super::ring::{Active, cut};
use super::{Log, LogConfig, LogPoint, State};
use crate::error::StorageError;
use crate::ids::Lsn;
use thawdb_device::DeviceErrorKind;
use thawdb_observe::sync::MutexGuard;

/// What a VLF is to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VlfStatus {
    /// Never used.
    Unused,
    /// Used before, free now.
    Free,
    /// In use.
    Active,
}

/// A VLF as views show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlfInfo {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub size_bytes: u64,
    /// Number of its last use, 0 if there was none.
    pub number: u32,
    /// What it is.
    pub status: VlfStatus,
    /// 64 or 128, 0 if it was never used.
    pub parity: u8,
    /// Where the log in it begins, if it is in use or was.
    pub first: Option<LogPoint>,
    /// End of the log when it was cut, as far as that is still known.
    pub created_at: Option<LogPoint>,
    /// The same as an LSN; 0 for those the log was made with.
    pub created_lsn: Lsn,
}

impl Log {
    /// All VLFs, in the order of the file.
    pub fn vlfs(&self) -> Vec<VlfInfo> {
        let state = self.state.lock();
        let active: Vec<Active> = state.ring.active().copied().collect();
        let mut shapes: Vec<_> = active.iter().map(|vlf| vlf.shape).chain(state.ring.free().copied()).collect();
        shapes.sort_by_key(|shape| shape.offset);
        let info = |shape: super::format::Shape| {
            let last = state.ring.last_use(&shape);
            let status = match last {
                _ if active.iter().any(|vlf| vlf.shape.offset == shape.offset) => VlfStatus::Active,
                None => VlfStatus::Unused,
                Some(_) => VlfStatus::Free,
            };
            VlfInfo {
                offset: shape.offset,
                size_bytes: shape.size_bytes,
                number: last.map_or(0, |last| last.number),
                status,
                parity: last.map_or(0, |last| last.parity),
                first: last.and_then(|last| state.point(Lsn(last.start.0 + VLF_HEADER_BYTES))),
                created_at: if shape.created_at == Lsn(0) { Some(LogPoint::default()) } else { state.point(shape.created_at) },
                created_lsn: shape.created_at,
            }
        };
        shapes.into_iter().map(info).collect()
    }

    /// Bytes of the file that hold log: all but its first 64 KiB and the VLFs' headers.
    pub fn usable_bytes(&self) -> u64 {
        let state = self.state.lock();
        let count = state.ring.active().count() + state.ring.free_count();
        state.file_bytes - RING_START - count as u64 * VLF_HEADER_BYTES
    }

    /// Bytes that were logged since `from`.
    pub fn bytes_since(&self, from: Lsn) -> u64 {
        let state = self.state.lock();
        state.building.end().0.saturating_sub(from.0.max(state.ring.oldest().0))
    }

    /// What the file may become.
    pub fn config(&self) -> LogConfig {
        self.state.lock().config
    }

    /// Changes what the file may become, from now on.
    pub fn set_config(&self, config: LogConfig) {
        self.state.lock().config = config;
    }

    fn until_no_growth<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        while state.growing {
            self.progress.wait(&mut state);
        }
        state
    }

    /// Makes the file `to` bytes long, if it is shorter. `LogFull` if the disk has no room.
    pub fn grow_to(&self, to: u64) -> Result<(), StorageError> {
        let mut state = self.until_no_growth(self.state.lock());
        self.check_poison()?;
        let from = state.file_bytes;
        let mut shapes = cut(from, to.saturating_sub(from));
        let created_at = state.building.end();
        shapes.iter_mut().for_each(|shape| shape.created_at = created_at);
        let Some(last) = shapes.last().copied() else { return Ok(()) };
        state.growing = true;
        let full = state.full();
        drop(state);
        let grown = self.file.set_len(to).map_err(StorageError::from).and_then(|()| self.write_shapes(&shapes));
        let mut state = self.state.lock();
        state.growing = false;
        if grown.is_ok() {
            state.file_bytes = last.offset + last.size_bytes;
            shapes.into_iter().for_each(|shape| state.ring.push_free(shape));
            self.note_pressure(&state, state.available_bytes());
        }
        self.progress.notify_all();
        match grown {
            Err(StorageError::Io(error)) if error.kind == DeviceErrorKind::Full => Err(full),
            other => other,
        }
    }

    /// Lets the log go on nearer the start of the file, if it is being written beyond `target_bytes` and a VLF before
    /// that is free: what is behind it can be cut off once it is no longer in use.
    pub fn move_before(&self, target_bytes: u64) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        self.check_poison()?;
        let beyond = state.ring.last().is_some_and(|last| last.shape.offset + last.shape.size_bytes > target_bytes);
        let lowest = state.ring.free().map(|shape| shape.offset + shape.size_bytes).min();
        let lower = lowest.zip(state.ring.last()).is_some_and(|(end, last)| end <= last.shape.offset);
        if beyond && lower {
            self.seal(&mut state);
            state.ring.prefer_low();
            self.go_on_in_next(&mut state);
        }
        Ok(())
    }

    /// Cuts free VLFs off the end as long as `target_bytes` remain, and none in use is at its end. Returns
    /// the length now, and whether a VLF in use stopped it.
    pub fn cut_tail(&self, target_bytes: u64) -> Result<(u64, bool), StorageError> {
        let mut state = self.until_no_growth(self.state.lock());
        self.check_poison()?;
        let before = state.file_bytes;
        let mut removed = Vec::new();
        loop {
            let end = state.file_bytes;
            let Some(shape) = state.ring.remove_tail(end, target_bytes) else { break };
            state.file_bytes = shape.offset;
            removed.push(shape);
        }
        let after = state.file_bytes;
        let at_end = |vlf: &&Active| vlf.shape.offset + vlf.shape.size_bytes == after;
        let stopped = state.ring.active().find(at_end).is_some_and(|vlf| vlf.shape.offset >= target_bytes);
        if removed.is_empty() {
            return Ok((after, stopped));
        }
        state.growing = true;
        drop(state);
        let cut = self.file.set_len(after).and_then(|()| self.file.sync());
        let mut state = self.state.lock();
        state.growing = false;
        if cut.is_err() {
            state.file_bytes = before;
            removed.into_iter().rev().for_each(|shape| state.ring.push_free(shape));
        }
        self.note_pressure(&state, state.available_bytes());
        self.progress.notify_all();
        cut?;
        Ok((after, stopped))
    }
}
