//! The log: one stream of records in checksummed blocks, circular over VLFs in one file, an LSN for ever.
//!
//! A *record* is bytes of the caller's; a *group* is some records that a crash keeps or loses together; a *block* holds
//! whole groups and is what is written; blocks lie one after another in the VLFs. `format` has the bytes.
//!
//! ```text
//!  append ─► block being filled ─seal─► queue ─flush: write, sync─► durable
//!             (append lock, memcpy)      (one flusher at a time; committers wait for it, or become it)
//! ```
//!
//! Invariants. L1 a block holds whole groups, and counts only if all its bytes match its checksum: so a group is there
//! whole or not at all (`append`, `open`). L2 a VLF is activated on disk only after every block before it is durable
//! (`flush::write_items`), so an activation proves where the blocks before it end. L3 a block counts only if its
//! incarnation is not below that of the block before it: what a crash left behind the valid end never comes back
//! (`open::scan`). L4 an append by ordinary work leaves `reserved` bytes free, so that rollback, checkpoint and the end
//! of jobs always find room and running out is a clean `LogFull` (`append::make_room`). L5 after a failed write or sync
//! nothing is appended or acknowledged until the log is opened again (`Log::poison`): a sync retried after an error may
//! succeed without the bytes (Rebello et al., *Can Applications Recover from fsync Failures?*, USENIX ATC 2020).
//!
//! Locks: `LOGCACHE_ACCESS`, rank 4, guards [`State`]; no I/O under it. The flusher owns the file by the flag `flushing`.
//! Blocking: `append` when more than 16 MiB wait to be written, `flush` until its LSN is durable (WRITELOG).
//!
//! Failure: a crash at any moment loses only groups after the last completed `flush`; a damaged block below what was
//! durable is `Damage` and never an end of the log (`open::Verdict`). A full disk while growing is `LogFull`.
//!
//! What it does not do: know what a record means; decide what may be truncated.

mod append;
mod dump;
mod flush;
pub mod format;
mod open;
pub mod policy;
mod reader;
mod ring;
mod room;
mod size;

pub use crate::ids::LogPoint;
pub use format::{MasterRecord, OPAQUE_BYTES_MAX};
pub use open::Verdict;
pub use policy::{BackupChain, LogPolicy, RecoveryModel};
pub use reader::{LogReader, WindowCache};
pub use room::LogHoldup;
pub use size::{VlfInfo, VlfStatus};

use crate::error::StorageError;
use crate::ids::Lsn;
use append::BlockBuilder;
use flush::Committers;
use ring::Ring;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thawdb_device::{AlignedBuf, BlockFile};
use thawdb_observe::counter::{Counter, CounterKind};
use thawdb_observe::sync::{Condvar, LockClass, Mutex, MutexGuard};

static LOG_APPEND: LockClass = LockClass::new("LOGCACHE_ACCESS", 4);
static FLUSHES: Counter = Counter::new("Databases", "Log Flushes/sec", CounterKind::PerSecond);
static FLUSHED_BYTES: Counter = Counter::new("Databases", "Log Bytes Flushed/sec", CounterKind::PerSecond);

/// Size and growth of the log file.
#[derive(Debug, Clone, Copy)]
pub struct LogConfig {
    /// First size in bytes.
    pub size_bytes: u64,
    /// Greatest size in bytes; `None` is UNLIMITED.
    pub size_bytes_max: Option<u64>,
    /// Growth step; 0 is none ([`crate::spec::growth_step`]).
    pub growth_bytes: u64,
}

/// No log file grows beyond this: SQL Server's limit.
const FILE_BYTES_MAX: u64 = 2 << 40;

impl LogConfig {
    /// The size after one growth from `bytes`; the same if it may not grow.
    pub(crate) fn grown_bytes(&self, bytes: u64) -> u64 {
        let most = self.size_bytes_max.unwrap_or(FILE_BYTES_MAX).min(FILE_BYTES_MAX);
        bytes.saturating_add(crate::spec::growth_step(self.growth_bytes, bytes)).min(most).max(bytes)
    }
}

/// Who appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Ordinary work: leaves what is reserved.
    Normal,
    /// Work that must be able to end: rollback, commit. May use what is reserved.
    Finish,
    /// A checkpoint that [`Log::checkpoint_fits`] allowed: may use all there is.
    Checkpoint,
}

/// Where a block begins, and an incarnation below which none from there on is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScanStart {
    /// The start of a block, or of a VLF.
    pub at: Lsn,
    /// The incarnation.
    pub incarnation: u32,
}

/// How much of the log is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSpace {
    /// Size of the file.
    pub size_bytes: u64,
    /// Bytes from the oldest VLF held to the end of the log.
    pub used_bytes: u64,
    /// Bytes reserved for finishing.
    pub reserved_bytes: u64,
    /// VLFs in use.
    pub active_count: usize,
    /// VLFs free.
    pub free_count: usize,
}

/// A log.
pub struct Log {
    file: Arc<dyn BlockFile>,
    stamp: u64,
    /// Whether room is short ([`Log::is_pressed`]).
    pressed: AtomicBool,
    incarnation: u32,
    durable: AtomicU64,
    poisoned: AtomicBool,
    /// What of the file the flusher has written since the log was opened ends here (`flush::ahead`).
    written_end: AtomicU64,
    state: Mutex<State>,
    /// Signals the end of a flush or of a growth, to whoever waits for something else than being durable.
    progress: Condvar,
    /// Committers, by the number of the flush that makes them durable: even and odd ones. Only two can be waited for,
    /// the one under way and the next.
    committers: [Committers; 2],
}

/// What the append lock guards.
struct State {
    ring: Ring,
    building: BlockBuilder,
    queue: VecDeque<Item>,
    queued_bytes: u64,
    spare: Vec<AlignedBuf>,
    flushing: bool,
    /// The number of the flush under way, or of the last one.
    flush_number: usize,
    /// What will be durable when the flush under way has ended.
    flush_end: Lsn,
    growing: bool,
    file_bytes: u64,
    reserved_bytes: u64,
    config: LogConfig,
    /// Why redo begins where it does.
    redo_holdup: LogHoldup,
    holds: BTreeMap<u64, (Lsn, LogHoldup)>,
    hold_next: u64,
    master: MasterRecord,
}

/// What waits to be written, in order.
enum Item {
    /// `vlf_end` is where in the file its VLF ends.
    Block {
        at: Lsn,
        file_offset: u64,
        vlf_end: u64,
        block: AlignedBuf,
        used_bytes: usize,
        record_count: u32,
    },
    Activation {
        file_offset: u64,
        activation: format::Activation,
    },
}

/// Keeps the log from being truncated beyond a point while it lives.
pub struct LogHold {
    log: Arc<Log>,
    id: u64,
}

impl Drop for LogHold {
    fn drop(&mut self) {
        let mut state = self.log.state.lock();
        state.holds.remove(&self.id);
        self.log.truncate_in(&mut state);
    }
}

impl Log {
    /// Everything before this is on stable storage.
    pub fn durable(&self) -> Lsn {
        // Acquire pairs with the flusher's Release: who sees the LSN may read the bytes from the file.
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Where the next record would go at the earliest.
    pub fn end(&self) -> Lsn {
        self.state.lock().building.end()
    }

    /// Where the block begins that the next record goes into, or would, were there room: nothing appended from now on
    /// lies in a block before it.
    pub fn scan_start(&self) -> ScanStart {
        ScanStart { at: self.state.lock().building.start(), incarnation: self.incarnation }
    }

    /// The start of the VLF that holds `at`, as a place to look through the log from.
    pub fn scan_start_before(&self, at: Lsn) -> ScanStart {
        ScanStart { at: self.state.lock().ring.locate(at).map_or(Lsn(0), |vlf| vlf.start), incarnation: 0 }
    }

    /// First byte still held.
    pub fn start(&self) -> Lsn {
        self.state.lock().ring.oldest()
    }

    /// Whether a failed write has closed the log to appends.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Most bytes of a group, record headers included.
    pub fn group_bytes_max(&self) -> usize {
        let room = usize::try_from(self.state.lock().ring.group_bytes_max()).expect("4 MiB at most");
        room - format::BLOCK_HEADER_BYTES
    }

    /// How full it is.
    pub fn space(&self) -> LogSpace {
        let state = self.state.lock();
        LogSpace {
            size_bytes: state.file_bytes,
            used_bytes: state.building.end().0 - state.ring.oldest().0,
            reserved_bytes: state.reserved_bytes,
            active_count: state.ring.active().count(),
            free_count: state.ring.free_count(),
        }
    }

    /// Sets bytes aside for finishing what is about to begin; `LogFull` if they are not there and the file cannot grow.
    pub fn reserve(&self, bytes: u64) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        self.check_poison()?;
        state = self.ensure_available(state, bytes, Use::Normal)?;
        state.reserved_bytes += bytes;
        Ok(())
    }

    /// Gives reserved bytes back.
    pub fn unreserve(&self, bytes: u64) {
        let mut state = self.state.lock();
        assert!(state.reserved_bytes >= bytes, "what was reserved is given back once");
        state.reserved_bytes -= bytes;
    }

    /// Frees every VLF that lies wholly before `keep`, where recovery would begin, and before what log backups and holds
    /// need. `holdup` says why recovery begins there: `Checkpoint`, or `OldestPage` if a page could not be written.
    pub fn truncate_before(&self, keep: Lsn, holdup: LogHoldup) {
        let mut state = self.state.lock();
        state.redo_holdup = holdup;
        // The master's checkpoint is where the next open begins: never beyond it, whatever the caller thinks.
        debug_assert!(keep >= state.master.checkpoint || state.master.checkpoint == Lsn(0), "the master says where recovery begins");
        self.truncate_in(&mut state);
    }

    fn truncate_in(&self, state: &mut State) {
        if state.free_unkept() > 0 {
            self.note_pressure(state, state.available_bytes());
            self.progress.notify_all();
        }
    }

    /// Keeps everything from `from` on until the hold is dropped: a running backup, a log reader.
    pub fn hold(self: &Arc<Self>, from: Lsn, why: LogHoldup) -> LogHold {
        let mut state = self.state.lock();
        let id = state.hold_next;
        state.hold_next += 1;
        let from = from.max(state.ring.oldest());
        state.holds.insert(id, (from, why));
        LogHold { log: self.clone(), id }
    }

    /// Keeps everything from where recovery would begin now, and says where that is.
    pub fn hold_checkpoint(self: &Arc<Self>, why: LogHoldup) -> (Lsn, LogHold) {
        let mut state = self.state.lock();
        let from = state.master.checkpoint;
        let id = state.hold_next;
        state.hold_next += 1;
        state.holds.insert(id, (from, why));
        (from, LogHold { log: self.clone(), id })
    }

    /// Where recovery would begin.
    pub fn checkpoint_lsn(&self) -> Lsn {
        self.state.lock().master.checkpoint
    }

    /// What its file went through.
    pub fn file_stats(&self) -> thawdb_device::FileStats {
        self.file.stats()
    }

    /// The random number that tells this database's log from any other's.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// What log backups have to do with it.
    pub fn policy(&self) -> LogPolicy {
        self.state.lock().master.policy
    }

    /// Changes the recovery model or the chain of backups, durably, and frees what is no longer kept.
    pub fn change_policy(&self, change: impl FnOnce(&mut LogPolicy)) -> Result<(), StorageError> {
        self.update_master(|master| change(&mut master.policy))?;
        self.truncate_in(&mut self.state.lock());
        Ok(())
    }

    fn check_poison(&self) -> Result<(), StorageError> {
        if self.is_poisoned() { Err(StorageError::Poisoned) } else { Ok(()) }
    }

    fn poison(&self, mut state: MutexGuard<'_, State>) {
        self.poisoned.store(true, Ordering::Release);
        state.flushing = false;
        drop(state);
        self.progress.notify_all();
        self.committers.iter().for_each(Committers::wake_all);
    }
}

#[cfg(test)]
mod tests;
