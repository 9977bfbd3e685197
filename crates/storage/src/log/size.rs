//! The size of the log file: settings changed, grown at once, shrunk to where the log in use ends; and its VLFs as views
//! show them.
//!
//! ```text
//! |    free    | free | free | WRITING     |    shrink: cut VLFs anew, as a file of the target's size has them
//! | | | | | | || free | free | WRITING |free|    move the writing to the free one nearest the start
//! |W| | | | | || free | free | until the next checkpoint in use |   checkpoint, then cut VLFs off the end
//! |W| | | | | |
//! ```
//!
//! 1. A file is cut at the border of a VLF that nobody uses, and three VLFs always stay ([`super::ring::Ring::remove_tail`]).
//! 2. VLFs leave the ring before the file gets shorter or they are cut anew, and growth is kept out meanwhile
//!    (`State::growing`).
//! 3. A VLF is cut anew when the file itself says that it is free, or behind what is written of the last; its own header,
//!    which the way to all others leads over, is written when theirs are durable ([`Log::recut_before`]).
//! 4. What open transactions have reserved for their rollback stays.
//!
//! Failure: a crash in between leaves the file long, with VLFs that are free; a full disk while growing is `LogFull`.

use super::format::{RING_START, Shape, VLF_HEADER_BYTES};
use super::ring::{Active, cut};
use super::{Item, Log, LogConfig, LogPoint, State};
use crate::error::StorageError;
use crate::ids::Lsn;
use thawdb_device::DeviceErrorKind;
use thawdb_device::file::SECTOR_BYTES;
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

/// What another VLF costs: its header, and what the largest step of a rollback may leave unused at its end.
const VLF_COST_BYTES: u64 = VLF_HEADER_BYTES + super::room::TAIL_BYTES;

/// The VLFs that one beginning before `target_bytes` becomes: of the size that a file of that size has, and the rest beyond
/// it. One alone if it is small enough.
fn recut(shape: &Shape, target_bytes: u64) -> Vec<Shape> {
    let Some(size_bytes) = cut(RING_START, target_bytes.saturating_sub(RING_START)).first().map(|first| first.size_bytes) else {
        return vec![*shape];
    };
    let end = shape.offset + shape.size_bytes;
    let border = target_bytes.min(end) / SECTOR_BYTES as u64 * SECTOR_BYTES as u64;
    let mut pieces = Vec::new();
    let mut offset = shape.offset;
    while offset + 2 * size_bytes <= border {
        pieces.push(Shape { offset, size_bytes, ..*shape });
        offset += size_bytes;
    }
    // What is left before the border and what lies beyond it, each if it is enough for a VLF.
    if border - offset.min(border) >= size_bytes && end - border >= size_bytes {
        pieces.push(Shape { offset, size_bytes: border - offset, ..*shape });
        offset = border;
    }
    pieces.push(Shape { offset, size_bytes: end - offset, ..*shape });
    pieces
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
        let Some(last) = state.ring.last().map(|last| last.shape) else { return Ok(()) };
        let lower = state.ring.free().any(|shape| shape.offset < last.offset);
        if last.offset + last.size_bytes > target_bytes && lower {
            self.seal(&mut state);
            state.ring.prefer_low();
            self.go_on_in_next(&mut state);
        }
        Ok(())
    }

    /// Cuts the VLFs that begin before `target_bytes` into such as a file of that size has, and at its border: what the one
    /// being written has not reached, and the free ones. So a file that was once large can become small, and truncation has
    /// finer parts to free. Nothing happens where the headers' room is not to be spared.
    pub fn recut_before(&self, target_bytes: u64) -> Result<(), StorageError> {
        self.recut_last(target_bytes)?;
        let mut state = self.until_no_growth(self.state.lock());
        self.check_poison()?;
        let wanted: Vec<Shape> = state.ring.free().filter(|shape| recut(shape, target_bytes).len() > 1).copied().collect();
        let created_at = state.building.end();
        for shape in wanted {
            let mut pieces = recut(&shape, target_bytes);
            if !state.spares(pieces.len() as u64 * VLF_COST_BYTES) {
                break;
            }
            state.ring.remove(&shape);
            state.growing = true;
            drop(state);
            pieces.iter_mut().for_each(|piece| piece.created_at = created_at);
            let written = self.write_pieces(&pieces);
            state = self.state.lock();
            state.growing = false;
            match &written {
                Ok(()) => pieces.into_iter().for_each(|piece| state.ring.push_free(piece)),
                Err(_) => state.ring.push_free(shape),
            }
            self.progress.notify_all();
            written?;
        }
        Ok(())
    }

    /// Cuts off what the VLF being written has not reached. Its own header, with its shorter size, is written last; and no
    /// flush may be under way, which could write zeros ahead of the log over the new headers.
    fn recut_last(&self, target_bytes: u64) -> Result<(), StorageError> {
        let mut state = self.until_no_growth(self.state.lock());
        while state.flushing {
            self.progress.wait(&mut state);
        }
        self.check_poison()?;
        self.seal(&mut state);
        let Some(last) = state.ring.last().copied() else { return Ok(()) };
        let reached = last.shape.offset + (state.building.end().0 - last.start.0);
        let (mut kept, mut others) = (last.shape, recut(&last.shape, target_bytes));
        others.retain(|piece| piece.offset > reached.max(last.shape.offset));
        let Some(end) = others.first().map(|piece| piece.offset) else { return Ok(()) };
        if !state.spares(others.len() as u64 * VLF_COST_BYTES) {
            return Ok(());
        }
        kept.size_bytes = end - kept.offset;
        state.ring.shorten_last(kept);
        for item in &mut state.queue {
            if let Item::Block { vlf_end, .. } = item {
                if *vlf_end == last.shape.offset + last.shape.size_bytes {
                    *vlf_end = end;
                }
            }
        }
        let created_at = state.building.end();
        others.iter_mut().for_each(|piece| piece.created_at = created_at);
        state.growing = true;
        Self::begin_flush(&mut state, self.durable());
        drop(state);
        let written = self.write_shapes(&others).and_then(|()| self.write_shape(&kept));
        let mut state = self.state.lock();
        state.growing = false;
        if let Err(error) = written {
            self.poison(state);
            return Err(error);
        }
        others.into_iter().for_each(|piece| state.ring.push_free(piece));
        drop(self.end_flush(state));
        Ok(())
    }

    /// Writes the headers of the VLFs that one becomes. After a failure in the last step nobody knows where the file's VLFs
    /// are, and the log is closed.
    fn write_pieces(&self, pieces: &[Shape]) -> Result<(), StorageError> {
        // The master says from where on VLFs are in use: one whose last use it does not yet know to be over must not change.
        self.update_master(|_| {})?;
        let (first, others) = pieces.split_at(1);
        self.write_shapes(others)?;
        self.write_shapes(first).inspect_err(|_| self.poison(self.state.lock()))
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
            if state.reserved_bytes > 0 && !state.spares(0) {
                state.ring.push_free(shape);
                break;
            }
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
