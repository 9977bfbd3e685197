//! Flushing: group commit without a thread of its own.
//!
//! Who needs something durable and finds nobody flushing becomes the flusher: it seals the block being filled, takes
//! the whole queue, writes and syncs it with the lock let go, and wakes everybody. Who finds a flush under way waits
//! for it; its own group then usually rides with the next. A lone committer never pays for a thread switch, and many
//! share one sync (the piggybacked group commit of DeWitt et al., SIGMOD 1984).
//!
//! ```text
//!   flusher:   append lock ─ seal ─ let go ─ write, sync ─ append lock, durable ─ let go ─► wakes the next flusher, then all of its own
//!   committer: append lock ─ gate of its flush ─ append lock let go ─ sleeps at the gate ─► durable? done, the append lock not asked for
//! ```
//! Invariant: a committer takes its gate while it holds the append lock under which it saw what it waits for, and a waker
//! takes the gate after it has changed that: so no wake-up is lost ([`Committers`]).

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::log::format::{Activation, BlockHeader, Shape};
use crate::log::{FLUSHED_BYTES, FLUSHES, Item, Log, MasterRecord, OPAQUE_BYTES_MAX, ScanStart, State};
use std::sync::atomic::Ordering;
use thawdb_device::file::SECTOR_BYTES;
use thawdb_device::{AlignedBuf, WriteRequest};
use thawdb_observe::sync::{Condvar, LockClass, Mutex, MutexGuard};
use thawdb_observe::wait::{self, WaitKind};

/// Bytes written at once to a part of the file that was never written: some hundred small commits, a write of 0.1 ms.
const AHEAD_BYTES: u64 = 256 * 1024;

static COMMITTERS: LockClass = LockClass::new("LOG_COMMITTERS", 5);

/// Those who wait for one flush. Apart from the append lock, because many wake at once: with a condition under that lock they
/// queued for it one behind the other, and appenders and the next flusher behind them.
pub(super) struct Committers {
    gate: Mutex<()>,
    woken: Condvar,
}

impl Committers {
    pub(super) fn new() -> Self {
        Self { gate: Mutex::new(&COMMITTERS, ()), woken: Condvar::new() }
    }

    /// Sleeps until woken, or somebody else's wake-up; the append lock is let go meanwhile, and not taken again.
    fn wait(&self, state: MutexGuard<'_, State>) {
        let mut gate = self.gate.lock();
        drop(state);
        self.woken.wait(&mut gate);
    }

    pub(super) fn wake_all(&self) {
        drop(self.gate.lock());
        self.woken.notify_all();
    }

    fn wake_one(&self) {
        drop(self.gate.lock());
        self.woken.notify_one();
    }
}

impl Log {
    /// Returns when everything before `upto` is on stable storage; at once if it is.
    pub fn flush(&self, upto: Lsn) -> Result<(), StorageError> {
        if self.durable() >= upto {
            return Ok(());
        }
        let _waiting = wait::enter(WaitKind::WriteLog);
        while self.durable() < upto {
            self.check_poison()?;
            let state = self.state.lock();
            assert!(upto <= state.building.end(), "{upto:?} has been appended");
            // Asked again under the lock: neither changes while somebody who has not flushed holds it.
            if self.durable() >= upto || self.is_poisoned() {
                continue;
            }
            if state.flushing {
                // Woken by the end of the flush that has the record, and by no other: with one condition for all, every
                // flush woke every committer, half of them in vain.
                let later = usize::from(state.flush_end < upto);
                self.committers[(state.flush_number + later) % 2].wait(state);
            } else {
                drop(self.flush_step(state)?);
            }
        }
        Ok(())
    }

    /// The file is the caller's until [`Self::end_flush`].
    pub(super) fn begin_flush(state: &mut State, flush_end: Lsn) {
        state.flushing = true;
        state.flush_number += 1;
        state.flush_end = flush_end;
    }

    /// Wakes one who flushes next, and then those whom the flush has made durable: the disk is idle until the first of
    /// them runs. The append lock is let go meanwhile.
    pub(super) fn end_flush<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.flushing = false;
        let number = state.flush_number;
        drop(state);
        self.committers[(number + 1) % 2].wake_one();
        self.committers[number % 2].wake_all();
        self.progress.notify_all();
        self.state.lock()
    }

    /// Flushes what there is now, or waits for the flush under way.
    pub(super) fn flush_step<'s>(&'s self, mut state: MutexGuard<'s, State>) -> Result<MutexGuard<'s, State>, StorageError> {
        if state.flushing {
            self.progress.wait(&mut state);
            return Ok(state);
        }
        self.seal(&mut state);
        let mut items: Vec<Item> = state.queue.drain(..).collect();
        let taken_bytes = std::mem::take(&mut state.queued_bytes);
        let upto = state.building.end();
        Self::begin_flush(&mut state, upto);
        drop(state);
        let written = self.write_items(&mut items);
        let mut state = self.state.lock();
        if let Err(error) = written {
            self.poison(state);
            return Err(error);
        }
        for item in items {
            if let Item::Block { block, .. } = item {
                Self::keep_spare(&mut state, block);
            }
        }
        // Release: see `Log::durable`.
        self.durable.store(upto.0, Ordering::Release);
        FLUSHES.increment();
        FLUSHED_BYTES.add(taken_bytes);
        Ok(self.end_flush(state))
    }

    /// Writes in order and syncs. An activation waits for all before it (L2).
    fn write_items(&self, items: &mut [Item]) -> Result<(), StorageError> {
        let durable = self.durable();
        let mut from = 0;
        while from < items.len() {
            if let Item::Activation { file_offset, activation } = &items[from] {
                self.file.sync()?;
                self.write_activation(*file_offset, activation)?;
                from += 1;
                continue;
            }
            let count = items[from..].iter().take_while(|item| matches!(item, Item::Block { .. })).count();
            self.write_blocks(&mut items[from..from + count], durable)?;
            from += count;
        }
        Ok(self.file.sync()?)
    }

    fn write_blocks(&self, items: &mut [Item], durable: Lsn) -> Result<(), StorageError> {
        for item in items.iter_mut() {
            if let Item::Block { at, block, used_bytes, record_count, .. } = item {
                let used_bytes = u32::try_from(*used_bytes).expect("blocks are bounded");
                let header = BlockHeader { lsn: *at, durable, used_bytes, record_count: *record_count, incarnation: self.incarnation };
                header.encode(self.stamp, block);
            }
        }
        let zeros = AlignedBuf::zeroed(self.ahead(items));
        let mut requests: Vec<WriteRequest<'_>> = items
            .iter()
            .filter_map(|item| match item {
                Item::Block { file_offset, block, used_bytes, .. } => {
                    Some(WriteRequest { offset: *file_offset, buffer: &block[..used_bytes.next_multiple_of(SECTOR_BYTES)] })
                }
                Item::Activation { .. } => None,
            })
            .collect();
        if let Some(last) = requests.last().filter(|_| !zeros.is_empty()) {
            let offset = last.offset + last.buffer.len() as u64;
            requests.push(WriteRequest { offset, buffer: &zeros });
        }
        Ok(self.file.write(&requests)?)
    }

    /// How many zeros to write behind these blocks. A part of the file that was never written costs the file system a
    /// change of its own, so that a sync of a small block there took twice as long as one of a part written before (ext4:
    /// 224 and 106 us, seen in turns), and longer while other files grow. So the first small write to a stretch writes
    /// all of it; after the first turn through the file nothing is added. The zeros lie in the same VLF behind the end of
    /// the log, where only what a crash left behind can be, and are synced with the blocks.
    fn ahead(&self, items: &[Item]) -> usize {
        let Some(Item::Block { file_offset, vlf_end, used_bytes, .. }) = items.last() else { return 0 };
        let end = file_offset + used_bytes.next_multiple_of(SECTOR_BYTES) as u64;
        // Relaxed: only the flusher looks at it, and the flag `flushing` makes one of them follow another.
        if end <= self.written_end.load(Ordering::Relaxed) {
            return 0;
        }
        let bytes: usize = items.iter().map(|item| if let Item::Block { used_bytes, .. } = item { *used_bytes } else { 0 }).sum();
        let small = bytes < AHEAD_BYTES as usize / 4;
        let stretch_end = if small { (end.next_multiple_of(AHEAD_BYTES)).min(*vlf_end) } else { end };
        self.written_end.store(stretch_end, Ordering::Relaxed);
        usize::try_from(stretch_end - end).expect("a stretch is small")
    }

    fn write_activation(&self, file_offset: u64, activation: &Activation) -> Result<(), StorageError> {
        let mut sector = AlignedBuf::zeroed(SECTOR_BYTES);
        activation.encode(self.stamp, &mut sector);
        Ok(self.file.write(&[WriteRequest { offset: file_offset, buffer: &sector }])?)
    }

    /// Writes the shapes of new VLFs, durably, each with an empty activation.
    pub(super) fn write_shapes(&self, shapes: &[Shape]) -> Result<(), StorageError> {
        for shape in shapes {
            let mut sectors = AlignedBuf::zeroed(2 * SECTOR_BYTES);
            shape.encode(self.stamp, &mut sectors[..SECTOR_BYTES]);
            self.file.write(&[WriteRequest { offset: shape.offset, buffer: &sectors }])?;
        }
        Ok(self.file.sync()?)
    }

    /// Writes the shape of a VLF that is in use, durably; its activation stays.
    pub(super) fn write_shape(&self, shape: &Shape) -> Result<(), StorageError> {
        let mut sector = AlignedBuf::zeroed(SECTOR_BYTES);
        shape.encode(self.stamp, &mut sector);
        self.file.write(&[WriteRequest { offset: shape.offset, buffer: &sector }])?;
        Ok(self.file.sync()?)
    }

    /// Records where recovery begins, and some bytes of the caller's (at most [`OPAQUE_BYTES_MAX`]); durable on
    /// return. `checkpoint` must be durable log still held,
    /// `scan` not above it in VLFs and before everything that the caller wants to hear at the next open.
    pub fn set_master(&self, checkpoint: Lsn, scan: ScanStart, opaque: &[u8]) -> Result<(), StorageError> {
        if opaque.len() > OPAQUE_BYTES_MAX {
            return Err(StorageError::TooLong { bytes: opaque.len(), bytes_max: OPAQUE_BYTES_MAX });
        }
        assert!(checkpoint < self.durable(), "a checkpoint is recorded after it is durable");
        self.update_master(|master| {
            master.checkpoint = checkpoint;
            master.scan_from = scan.at;
            master.scan_incarnation = scan.incarnation;
            master.opaque = opaque.to_vec();
        })
    }

    /// Writes a changed master record, durably.
    pub(super) fn update_master(&self, change: impl FnOnce(&mut MasterRecord)) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        while state.flushing {
            self.check_poison()?;
            self.progress.wait(&mut state);
        }
        self.check_poison()?;
        let mut master = state.master.clone();
        change(&mut master);
        let unmarked = master.checkpoint == Lsn(0);
        assert!(unmarked || state.ring.locate(master.checkpoint).is_some(), "a checkpoint lies in log that is held");
        let scan_from = master.scan_from;
        assert!(scan_from == Lsn(0) || state.ring.locate(scan_from).is_some(), "the scan begins in log that is held");
        master.sequence += 1;
        master.oldest = state.ring.oldest();
        master.incarnation = self.incarnation;
        // Makes nothing durable: committers that come now wait for the flush after it.
        let durable = self.durable();
        Self::begin_flush(&mut state, durable);
        drop(state);
        let written = self.write_master(&master);
        let mut state = self.state.lock();
        if let Err(error) = written {
            self.poison(state);
            return Err(error);
        }
        state.master = master;
        drop(self.end_flush(state));
        Ok(())
    }

    /// Writes the copy whose turn it is; the other stays valid whatever happens.
    pub(super) fn write_master(&self, master: &MasterRecord) -> Result<(), StorageError> {
        let mut sector = AlignedBuf::zeroed(SECTOR_BYTES);
        master.encode(self.stamp, &mut sector);
        let offset = (master.sequence % 2) * SECTOR_BYTES as u64;
        self.file.write(&[WriteRequest { offset, buffer: &sector }])?;
        Ok(self.file.sync()?)
    }
}
