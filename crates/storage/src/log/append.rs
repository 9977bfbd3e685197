//! Appending: a group is copied into the block being filled, under the append lock, and gets its LSNs.
//!
//! A block is sealed when the next group would take it beyond [`BLOCK_BYTES`], when the VLF has no room for it, or when
//! somebody flushes. Only then does its padding, and so the place of the next block, become known.

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::log::format::{BLOCK_HEADER_BYTES, RECORD_HEADER_BYTES, VLF_HEADER_BYTES, padded, record_header};
use crate::log::ring::cut;
use crate::log::{Item, Log, State, Use};
use thawdb_device::file::SECTOR_BYTES;
use thawdb_device::{AlignedBuf, DeviceErrorKind};
use thawdb_observe::sync::MutexGuard;
use thawdb_observe::wait::{self, WaitKind};

/// A block is sealed when it would grow beyond this: large enough for sequential speed, small enough that reading one
/// record's block back is cheap.
pub(super) const BLOCK_BYTES: usize = 256 * 1024;
/// Appenders wait when more than this waits to be written.
const QUEUE_BYTES_MAX: u64 = 16 << 20;
/// Buffers kept for reuse: fresh memory costs more than the copy into it.
const SPARE_COUNT_MAX: usize = 8;
/// The block being filled.
pub(super) struct BlockBuilder {
    start: Lsn,
    block: Option<AlignedBuf>,
    used_bytes: usize,
    record_count: u32,
}

impl BlockBuilder {
    /// No block yet; the next would begin at `start`.
    pub(super) fn at(start: Lsn) -> Self {
        Self { start, block: None, used_bytes: BLOCK_HEADER_BYTES, record_count: 0 }
    }

    /// Where the next record would go, were there room.
    pub(super) fn end(&self) -> Lsn {
        if self.record_count == 0 { self.start } else { Lsn(self.start.0 + self.used_bytes as u64) }
    }

    /// Where the block begins.
    pub(super) fn start(&self) -> Lsn {
        self.start
    }

    fn next_record(&self) -> Lsn {
        Lsn(self.start.0 + self.used_bytes as u64)
    }

    fn push(&mut self, record: &[u8], content_crc: u32) -> Lsn {
        let lsn = self.next_record();
        let block = self.block.as_mut().expect("make_room opened a block");
        let header = record_header(record.len(), content_crc, lsn);
        block[self.used_bytes..][..RECORD_HEADER_BYTES].copy_from_slice(&header);
        block[self.used_bytes + RECORD_HEADER_BYTES..][..record.len()].copy_from_slice(record);
        self.used_bytes += RECORD_HEADER_BYTES + record.len();
        self.record_count += 1;
        lsn
    }
}

impl Log {
    /// Appends a group of records that a crash keeps or loses together. Pushes the LSN of each record to `lsns` and
    /// returns the LSN after the last: `flush` up to it makes the group durable.
    ///
    /// Fails with `TooLong` beyond [`Log::group_bytes_max`], `LogFull` if no VLF is free and the file cannot grow,
    /// `Poisoned` after a failed write; then nothing is appended.
    pub fn append(&self, records: &[&[u8]], usage: Use, lsns: &mut Vec<Lsn>) -> Result<Lsn, StorageError> {
        let group_bytes: usize = records.iter().map(|r| RECORD_HEADER_BYTES + r.len()).sum();
        // Checksums are taken before the lock: they are most of an append's work.
        let checksums: Vec<u32> = records.iter().map(|r| crc32c::crc32c(r)).collect();
        let mut state = self.make_room(self.state.lock(), group_bytes, usage)?;
        for (record, checksum) in records.iter().zip(checksums) {
            lsns.push(state.building.push(record, checksum));
        }
        Ok(state.building.end())
    }

    /// Waits for and opens a block with room for the group.
    fn make_room<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        group_bytes: usize,
        usage: Use,
    ) -> Result<MutexGuard<'s, State>, StorageError> {
        let group_bytes_max = state.ring.group_bytes_max() as usize - BLOCK_HEADER_BYTES;
        if group_bytes > group_bytes_max {
            return Err(StorageError::TooLong { bytes: group_bytes, bytes_max: group_bytes_max });
        }
        loop {
            self.check_poison()?;
            if state.queued_bytes > QUEUE_BYTES_MAX {
                let waiting = wait::enter(WaitKind::LogBuffer);
                state = self.flush_step(state)?;
                drop(waiting);
                continue;
            }
            state = self.ensure_available(state, group_bytes as u64, usage)?;
            let used_bytes = state.building.used_bytes;
            let fits_block = state.building.record_count == 0 || used_bytes + group_bytes <= BLOCK_BYTES;
            let vlf_end = state.ring.last().map_or(Lsn(0), |a| a.end());
            let fits_vlf = state.building.start.0 + padded(used_bytes + group_bytes) <= vlf_end.0;
            if fits_block && fits_vlf {
                self.open_block(&mut state, group_bytes);
                return Ok(state);
            }
            self.seal(&mut state);
            let fits_vlf = state.building.start.0 + padded(BLOCK_HEADER_BYTES + group_bytes) <= vlf_end.0;
            if !fits_vlf && !self.activate_next(&mut state) {
                state = self.grow(state)?;
            }
        }
    }

    /// Waits until the rules of [`super::room`] allow the append; a file that may grow does so before an error.
    pub(super) fn ensure_available<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        bytes: u64,
        usage: Use,
    ) -> Result<MutexGuard<'s, State>, StorageError> {
        loop {
            let available = state.available_bytes();
            self.note_pressure(&state, available);
            if available >= state.needed_bytes(bytes, usage) {
                return Ok(state);
            }
            state = self.grow(state)?;
        }
    }

    fn open_block(&self, state: &mut State, group_bytes: usize) {
        if state.building.record_count > 0 {
            return;
        }
        let needed = (BLOCK_HEADER_BYTES + group_bytes).next_multiple_of(SECTOR_BYTES).max(BLOCK_BYTES);
        let reusable = state.building.block.take().filter(|b| b.len() >= needed);
        let spare = || state.spare.iter().position(|b| b.len() >= needed).map(|index| state.spare.swap_remove(index));
        state.building.block = Some(reusable.or_else(spare).unwrap_or_else(|| AlignedBuf::zeroed(needed)));
    }

    /// Ends the block being filled, if it has records, and queues it.
    pub(super) fn seal(&self, state: &mut State) {
        if state.building.record_count == 0 {
            return;
        }
        let at = state.building.start;
        let used_bytes = state.building.used_bytes;
        let next = Lsn(at.0 + padded(used_bytes));
        let active = state.ring.locate(at).expect("the block was placed in the last VLF");
        let (file_offset, vlf_end) = (active.file_offset(at), active.shape.offset + active.shape.size_bytes);
        let built = std::mem::replace(&mut state.building, BlockBuilder::at(next));
        let mut block = built.block.expect("a block with records has a buffer");
        let padded_bytes = usize::try_from(padded(used_bytes)).expect("blocks are bounded");
        block[used_bytes..padded_bytes].fill(0);
        state.queued_bytes += padded_bytes as u64;
        state.queue.push_back(Item::Block { at, file_offset, vlf_end, block, used_bytes, record_count: built.record_count });
    }

    /// Puts the next free VLF to use, what is being filled sealed; false if there is none.
    pub(super) fn go_on_in_next(&self, state: &mut State) -> bool {
        assert!(state.building.record_count == 0, "sealed by the caller");
        self.activate_next(state)
    }

    fn activate_next(&self, state: &mut State) -> bool {
        let continues_at = state.building.start;
        let Some((active, activation)) = state.ring.activate_next(continues_at, self.incarnation) else { return false };
        state.queue.push_back(Item::Activation { file_offset: active.shape.offset + SECTOR_BYTES as u64, activation });
        state.building = BlockBuilder::at(active.body());
        // A VLF is a large part of a small log: whoever comes next must see that it is gone.
        self.note_pressure(state, state.available_bytes());
        true
    }

    pub(super) fn keep_spare(state: &mut State, block: AlignedBuf) {
        if state.spare.len() < SPARE_COUNT_MAX && block.len() == BLOCK_BYTES {
            state.spare.push(block);
        }
    }

    /// Adds VLFs by the growth step. The lock is let go meanwhile; one thread grows, others wait for it.
    fn grow<'s>(&'s self, mut state: MutexGuard<'s, State>) -> Result<MutexGuard<'s, State>, StorageError> {
        if state.growing {
            self.progress.wait(&mut state);
            return Ok(state);
        }
        let full = state.full();
        let from = state.file_bytes;
        let to = state.config.grown_bytes(from);
        let mut shapes = cut(from, to - from.min(to));
        let created_at = state.building.end();
        shapes.iter_mut().for_each(|shape| shape.created_at = created_at);
        if shapes.is_empty() {
            return Err(full);
        }
        state.growing = true;
        drop(state);
        let grown = self.file.set_len(to).map_err(StorageError::from).and_then(|()| self.write_shapes(&shapes));
        let mut state = self.state.lock();
        state.growing = false;
        self.progress.notify_all();
        match grown {
            Ok(()) => {
                state.file_bytes = shapes.last().map_or(to, |shape| shape.offset + shape.size_bytes);
                shapes.into_iter().for_each(|shape| state.ring.push_free(shape));
                Ok(state)
            }
            Err(StorageError::Io(error)) if error.kind == DeviceErrorKind::Full => Err(full),
            Err(error) => Err(error),
        }
    }
}

const _: () = assert!(VLF_HEADER_BYTES == 2 * SECTOR_BYTES as u64, "the activation is the second sector of its VLF");
