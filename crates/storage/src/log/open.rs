//! Making a log, and opening one after shutdown or a crash: where does it end, and is anything missing?
//!
//! Blocks are walked from where the master record says that the last checkpoint began. At the first place P that is no valid block
//! the evidence decides, by this table (the first row that matches):
//!
//! ```text
//! | next VLF activated            | later block that knew P durable | verdict                              |
//! | continues at P                | -                               | go on in the next VLF                |
//! | continues beyond P            | -                               | damage: blocks before it were durable |
//! | no                            | yes                             | damage: the block at P was durable   |
//! | no                            | no                              | the end; what follows was never acknowledged |
//! ```
//!
//! The new incarnation is durable before the first append, so that valid blocks left behind the end stay dead (L3).

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::log::append::BlockBuilder;
use crate::log::flush::Committers;
use crate::log::format::{Activation, MasterRecord, RING_START, Shape, VLF_HEADER_BYTES};
use crate::log::reader::{BlockWalk, damage};
use crate::log::ring::{Active, Ring, cut};
use crate::log::{LOG_APPEND, Log, LogConfig, LogHoldup, State};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use thawdb_device::file::SECTOR_BYTES;
use thawdb_device::{AlignedBuf, BlockFile, ReadRequest};
use thawdb_observe::sync::{Condvar, Mutex};

/// Blocks behind an invalid place that can have been in flight with it: the queue and the largest group.
const IN_FLIGHT_BYTES: u64 = 24 << 20;

/// What the place of the first invalid block means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The log goes on in the next VLF.
    Continues,
    /// The log ends here.
    End,
    /// A block that was durable is gone.
    Damage,
}

/// The table of the header.
pub fn verdict(place: Lsn, next_continues_at: Option<Lsn>, later_durable: Option<Lsn>) -> Verdict {
    match (next_continues_at, later_durable) {
        (Some(at), _) if at == place => Verdict::Continues,
        (Some(at), _) if at > place => Verdict::Damage,
        (_, Some(durable)) if durable > place => Verdict::Damage,
        _ => Verdict::End,
    }
}

impl Log {
    /// Makes a log in an empty file; durable on return. `stamp` tells this database's blocks from any other's.
    pub fn create(file: Arc<dyn BlockFile>, config: LogConfig, stamp: u64) -> Result<Arc<Self>, StorageError> {
        let size_bytes = config.size_bytes.max(512 * 1024);
        file.set_len(size_bytes)?;
        let shapes = cut(RING_START, size_bytes - RING_START);
        let ring = Ring::new(Vec::new(), shapes.clone());
        let log =
            Self::assemble(file, config, stamp, end_of(&shapes), ring, MasterRecord { incarnation: 1, ..MasterRecord::default() }, Lsn(0));
        log.write_shapes(&shapes)?;
        log.write_master(&log.state.lock().master.clone())?;
        Ok(log)
    }

    pub(super) fn assemble(
        file: Arc<dyn BlockFile>,
        config: LogConfig,
        stamp: u64,
        file_bytes: u64,
        ring: Ring,
        master: MasterRecord,
        end: Lsn,
    ) -> Arc<Self> {
        let state = State {
            ring,
            building: BlockBuilder::at(end),
            queue: VecDeque::new(),
            queued_bytes: 0,
            spare: Vec::new(),
            flushing: false,
            flush_number: 0,
            flush_end: end,
            growing: false,
            file_bytes,
            reserved_bytes: 0,
            config,
            redo_holdup: LogHoldup::Checkpoint,
            holds: BTreeMap::new(),
            hold_next: 0,
            master: master.clone(),
        };
        Arc::new(Self {
            file,
            stamp,
            pressed: AtomicBool::new(false),
            incarnation: master.incarnation,
            durable: AtomicU64::new(end.0),
            poisoned: AtomicBool::new(false),
            written_end: AtomicU64::new(0),
            state: Mutex::new(&LOG_APPEND, state),
            progress: Condvar::new(),
            committers: [Committers::new(), Committers::new()],
        })
    }

    /// Opens a log and finds its end. Returns the master record as it was last set.
    pub fn open(file: Arc<dyn BlockFile>, config: LogConfig, stamp: u64) -> Result<(Arc<Self>, MasterRecord), StorageError> {
        let master = read_master(&*file, stamp)?;
        let vlfs = read_vlfs(&*file, stamp, file.len_bytes()?)?;
        // The file may be longer, after a growth that a crash cut short: the next one begins where the VLFs end, since a gap
        // would hide every VLF behind it from the next open.
        let file_bytes = vlfs.last().map_or(RING_START, |(shape, _)| shape.offset + shape.size_bytes);
        let (active, free) = chain(&vlfs, &master)?;
        let next = MasterRecord { sequence: master.sequence + 1, incarnation: master.incarnation + 1, ..master.clone() };
        let log = Self::assemble(file, config, stamp, file_bytes, ring_of(&vlfs, active.clone(), free), next.clone(), Lsn(0));
        let end = if active.is_empty() { Lsn(0) } else { log.find_end(&vlfs, &master)? };
        let log = Arc::try_unwrap(log).ok().expect("the walk has ended");
        let ring = std::mem::take(&mut log.state.lock().ring);
        let ring = ring.retreat(end);
        let log = Self::assemble(log.file, config, stamp, file_bytes, ring, next.clone(), end);
        log.write_master(&next)?;
        {
            let state = log.state.lock();
            log.note_pressure(&state, state.available_bytes());
        }
        Ok((log, master))
    }

    fn find_end(self: &Arc<Self>, vlfs: &[(Shape, Option<Activation>)], master: &MasterRecord) -> Result<Lsn, StorageError> {
        let vlf_at = |at: Lsn| self.state.lock().ring.locate(at);
        let from = if master.scan_from == Lsn(0) { master.checkpoint } else { master.scan_from };
        let first = vlf_at(from).ok_or_else(|| damage(from, 0, "the checkpoint's part of the log is missing"))?;
        let mut walk = BlockWalk::new(self.clone(), first);
        walk.begin_at(master.scan_start());
        loop {
            while walk.advance()? {}
            let place = walk.position();
            let next = vlf_at(walk.vlf.end());
            let continues_at = next.and_then(|vlf| vlfs.iter().find(|(shape, _)| *shape == vlf.shape)?.1).map(|a| a.continues_at);
            match verdict(place, continues_at, later_durable(&mut walk, place)?) {
                Verdict::Continues => walk.enter(next.expect("it has an activation")),
                Verdict::End => return Ok(place),
                Verdict::Damage => {
                    return Err(damage(place, walk.vlf.file_offset(place), "a block that was durable does not match its checksum"));
                }
            }
        }
    }
}

/// The highest durable LSN that a valid block behind `place`, of the same or a later incarnation, knew of.
fn later_durable(walk: &mut BlockWalk, place: Lsn) -> Result<Option<Lsn>, StorageError> {
    let mut probe = BlockWalk::new(walk.log.clone(), walk.vlf);
    let last = (place.0 + IN_FLIGHT_BYTES).min(walk.vlf.end().0);
    let mut at = place.0 + SECTOR_BYTES as u64;
    let mut highest = None;
    while at + SECTOR_BYTES as u64 <= last {
        if let Some(header) = probe.header_at(Lsn(at))?.filter(|h| h.incarnation >= walk.incarnation) {
            if probe.verified(Lsn(at), header.used_bytes as usize)? {
                highest = highest.max(Some(header.durable));
            }
        }
        at += SECTOR_BYTES as u64;
    }
    Ok(highest)
}

impl BlockWalk {
    fn verified(&mut self, at: Lsn, used_bytes: usize) -> Result<bool, StorageError> {
        let mut copy = BlockWalk::new(self.log.clone(), self.vlf);
        copy.seek(at);
        Ok(copy.advance()? && copy.block().len() == used_bytes)
    }
}

fn end_of(shapes: &[Shape]) -> u64 {
    shapes.last().map_or(RING_START, |shape| shape.offset + shape.size_bytes)
}

pub(super) fn ring_of(vlfs: &[(Shape, Option<Activation>)], active: Vec<Active>, free: Vec<Shape>) -> Ring {
    let mut ring = Ring::new(active, free);
    ring.set_past(vlfs.iter().filter_map(|(shape, activation)| Some((*shape, (*activation)?))));
    ring
}

fn read_master(file: &dyn BlockFile, stamp: u64) -> Result<MasterRecord, StorageError> {
    let mut sectors = AlignedBuf::zeroed(2 * SECTOR_BYTES);
    file.read(&mut [ReadRequest { offset: 0, buffer: &mut sectors }])?;
    let copies = sectors.chunks_exact(SECTOR_BYTES).filter_map(|sector| MasterRecord::decode(stamp, sector));
    copies.max_by_key(|m| m.sequence).ok_or_else(|| damage(Lsn(0), 0, "both copies of the master record are damaged"))
}

pub(super) fn read_vlfs(file: &dyn BlockFile, stamp: u64, file_bytes: u64) -> Result<Vec<(Shape, Option<Activation>)>, StorageError> {
    let mut vlfs = Vec::new();
    let mut offset = RING_START;
    let mut sectors = AlignedBuf::zeroed(2 * SECTOR_BYTES);
    while offset + VLF_HEADER_BYTES < file_bytes {
        file.read(&mut [ReadRequest { offset, buffer: &mut sectors }])?;
        // A growth that a crash interrupted leaves file without shapes: not yet part of the ring.
        let Some(shape) = Shape::decode(stamp, offset, &sectors[..SECTOR_BYTES]) else { break };
        if shape.offset + shape.size_bytes > file_bytes {
            return Err(damage(Lsn(0), offset, "a VLF reaches beyond the file"));
        }
        vlfs.push((shape, Activation::decode(stamp, &sectors[SECTOR_BYTES..])));
        offset += shape.size_bytes;
    }
    if vlfs.is_empty() {
        return Err(damage(Lsn(0), RING_START, "the log has no VLF"));
    }
    Ok(vlfs)
}

/// The VLFs in use, contiguous in LSN around the checkpoint, and the free ones in file order after the last.
pub(super) fn chain(vlfs: &[(Shape, Option<Activation>)], master: &MasterRecord) -> Result<(Vec<Active>, Vec<Shape>), StorageError> {
    let mut used: Vec<Active> = vlfs
        .iter()
        .filter_map(|(shape, activation)| activation.map(|a| Active { shape: *shape, start: a.start }))
        .filter(|active| active.start >= master.oldest)
        .collect();
    // Of two that claim the same start, one was put to use by a flush that a crash cut short, and another one since.
    let incarnation =
        |active: &Active| vlfs.iter().find(|(shape, _)| *shape == active.shape).and_then(|(_, a)| Some(a.as_ref()?.incarnation));
    used.sort_by_key(|active| (active.start, std::cmp::Reverse(incarnation(active))));
    used.dedup_by_key(|active| active.start);
    let holds_checkpoint = |a: &Active| a.start <= master.checkpoint && master.checkpoint < a.end();
    let Some(middle) = used.iter().position(holds_checkpoint) else {
        let all_free = vlfs.iter().map(|(shape, _)| *shape).collect();
        return if master.checkpoint == Lsn(0) {
            Ok((Vec::new(), all_free))
        } else {
            Err(damage(master.checkpoint, 0, "the checkpoint's part of the log is missing"))
        };
    };
    let mut first = middle;
    while first > 0 && used[first - 1].end() == used[first].start {
        first -= 1;
    }
    let mut last = middle;
    while last + 1 < used.len() && used[last].end() == used[last + 1].start {
        last += 1;
    }
    let active = used[first..=last].to_vec();
    let after = active.last().expect("the checkpoint's at least").shape.offset;
    let is_free = |shape: &Shape| active.iter().all(|a| a.shape != *shape);
    let mut free: Vec<Shape> = vlfs.iter().map(|(shape, _)| *shape).filter(is_free).collect();
    free.sort_by_key(|shape| (shape.offset < after, shape.offset));
    Ok((active, free))
}
