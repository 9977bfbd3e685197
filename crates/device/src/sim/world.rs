//! The state of a simulated disk: names, files, counts, orders.

use super::SimOptions;
use super::disk::{CrashFates, Inode};
use super::fault::{CrashPoint, Fault, FaultRule, Operation, OperationCounts};
use crate::file::{DeviceError, DeviceErrorKind, OpenMode, SECTOR_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thawdb_observe::seeded::SeededRandom;

pub(super) type InodeId = u64;

pub(super) struct World {
    options: SimOptions,
    pub random: SeededRandom,
    pub faults: Vec<FaultRule>,
    pub crash_at: Option<CrashPoint>,
    pub counts: OperationCounts,
    pub crashed: bool,
    /// Grows with every restart; handles of an earlier start are dead.
    pub start: u64,
    pub names: BTreeMap<PathBuf, InodeId>,
    pub folders: BTreeSet<PathBuf>,
    pub inodes: BTreeMap<InodeId, Inode>,
    /// Files open for writing.
    locked: BTreeSet<InodeId>,
    /// Files whose sync failed.
    broken: BTreeSet<InodeId>,
    /// Handles per file, so that an unlinked file lives while it is open.
    handles: BTreeMap<InodeId, u64>,
    next_inode: InodeId,
    next_write: u64,
}

/// What an operation that passed [`World::begin`] is to do.
pub(super) struct Begun {
    pub fault: Option<Fault>,
    /// The world crashes at this operation: do it (or not), then call [`World::crash`] and fail.
    pub crash: Option<bool>,
}

pub(super) fn failed(path: &Path, operation: &'static str, kind: DeviceErrorKind, offset: Option<u64>) -> DeviceError {
    DeviceError { kind, os_error: 0, path: path.to_owned(), operation, offset }
}

/// The error of every call from a crash to the restart.
pub(super) fn crashed(path: &Path) -> DeviceError {
    failed(path, "simulated crash", DeviceErrorKind::Io, None)
}

impl World {
    pub(super) fn new(options: SimOptions, random: SeededRandom) -> Self {
        Self {
            options,
            random,
            faults: Vec::new(),
            crash_at: None,
            counts: OperationCounts::default(),
            crashed: false,
            start: 0,
            names: BTreeMap::new(),
            folders: [PathBuf::from("/"), PathBuf::new()].into(),
            inodes: BTreeMap::new(),
            locked: BTreeSet::new(),
            broken: BTreeSet::new(),
            handles: BTreeMap::new(),
            next_inode: 1,
            next_write: 1,
        }
    }

    /// Takes over what another disk holds.
    pub(super) fn take_disk(&mut self, other: &Self) {
        assert!(self.inodes.is_empty(), "a disk is taken over before anything is on it");
        self.names.clone_from(&other.names);
        self.folders.clone_from(&other.folders);
        self.next_inode = other.next_inode;
        for (id, inode) in other.names.values().map(|id| (*id, &other.inodes[id])) {
            self.inodes.insert(id, inode.as_seen());
        }
    }

    pub(super) fn set_capacity(&mut self, capacity_bytes: u64) {
        self.options.capacity_bytes = capacity_bytes;
    }

    pub(super) fn latency_ns(&self) -> u64 {
        self.options.latency_ns
    }

    pub(super) fn alive(&self, path: &Path) -> Result<(), DeviceError> {
        if self.crashed { Err(crashed(path)) } else { Ok(()) }
    }

    /// Counts an operation and finds what was ordered for it.
    pub(super) fn begin(&mut self, operation: Operation, path: &Path) -> Result<Begun, DeviceError> {
        self.alive(path)?;
        self.counts.count(operation);
        let reached = match self.crash_at {
            Some(CrashPoint::Mutation(number)) => operation.is_mutation() && self.counts.mutations() == number,
            Some(CrashPoint::Operation(kind, number)) => operation == kind && self.counts.of(kind) == number,
            None => false,
        };
        let crash = reached.then(|| self.random.chance(1, 2));
        let text = path.to_string_lossy();
        let due = self.faults.iter_mut().find_map(|rule| rule.matches(operation, &text).then_some(rule.fault));
        Ok(Begun { fault: due, crash })
    }

    pub(super) fn next_write(&mut self) -> u64 {
        self.next_write += 1;
        self.next_write
    }

    pub(super) fn inode(&mut self, id: InodeId) -> &mut Inode {
        self.inodes.get_mut(&id).expect("a file lives while it has a name or a handle")
    }

    /// Crashes: nothing unsynced is certain, and every call fails until the restart.
    pub(super) fn crash(&mut self) {
        if self.crashed {
            return;
        }
        self.crashed = true;
        let fates = CrashFates { seed: self.random.next_u64(), kept_of_four: self.random.below(5), tear_bytes: self.options.tear_bytes };
        self.inodes.values_mut().for_each(|inode| inode.crash(&fates));
    }

    pub(super) fn restart(&mut self) {
        self.crash();
        self.crashed = false;
        self.start += 1;
        self.crash_at = None;
        self.counts = OperationCounts::default();
        self.locked.clear();
        self.broken.clear();
        self.handles.clear();
        let named: BTreeSet<InodeId> = self.names.values().copied().collect();
        self.inodes.retain(|id, _| named.contains(id));
    }

    /// Whether the disk has room for a file to change its length.
    pub(super) fn has_room(&self, from_bytes: u64, to_bytes: u64) -> bool {
        let used: u64 = self.inodes.values().map(|inode| inode.len).sum();
        to_bytes <= from_bytes || used.saturating_add(to_bytes - from_bytes) <= self.options.capacity_bytes
    }

    pub(super) fn open(&mut self, path: &Path, mode: OpenMode) -> Result<InodeId, DeviceError> {
        let fail = |kind| Err(failed(path, "open", kind, None));
        let id = match (self.names.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => return fail(DeviceErrorKind::AlreadyExists),
            (None, OpenMode::CreateNew) if !self.folders.contains(path.parent().unwrap_or(Path::new(""))) => {
                return fail(DeviceErrorKind::NotFound);
            }
            (None, OpenMode::CreateNew) => self.link(path, Inode::default()),
            (None, _) => return fail(DeviceErrorKind::NotFound),
            (Some(&id), OpenMode::ReadOnly) => id,
            (Some(id), OpenMode::Existing) if self.locked.contains(id) => return fail(DeviceErrorKind::Busy),
            (Some(&id), OpenMode::Existing) => id,
        };
        if mode != OpenMode::ReadOnly {
            self.locked.insert(id);
        }
        *self.handles.entry(id).or_insert(0) += 1;
        Ok(id)
    }

    /// A handle of this start is dropped.
    pub(super) fn close(&mut self, id: InodeId, locked: bool) {
        if locked {
            self.locked.remove(&id);
            self.broken.remove(&id);
        }
        if let Some(count) = self.handles.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.handles.remove(&id);
                self.forget_if_unused(id);
            }
        }
    }

    fn link(&mut self, path: &Path, inode: Inode) -> InodeId {
        let id = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(id, inode);
        if let Some(replaced) = self.names.insert(path.to_owned(), id) {
            self.forget_if_unused(replaced);
        }
        id
    }

    fn forget_if_unused(&mut self, id: InodeId) {
        if !self.handles.contains_key(&id) && !self.names.values().any(|&other| other == id) {
            self.inodes.remove(&id);
        }
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<(), DeviceError> {
        let id = self.names.remove(path).ok_or_else(|| failed(path, "remove", DeviceErrorKind::NotFound, None))?;
        self.forget_if_unused(id);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), DeviceError> {
        let missing = |path| Err(failed(path, "rename", DeviceErrorKind::NotFound, None));
        if !self.folders.contains(to.parent().unwrap_or(Path::new(""))) {
            return missing(to);
        }
        let Some(id) = self.names.remove(from) else { return missing(from) };
        if let Some(replaced) = self.names.insert(to.to_owned(), id) {
            self.forget_if_unused(replaced);
        }
        Ok(())
    }

    pub(super) fn is_broken(&self, id: InodeId) -> bool {
        self.broken.contains(&id)
    }

    pub(super) fn break_file(&mut self, id: InodeId) {
        self.broken.insert(id);
    }

    pub(super) fn put_foreign(&mut self, path: &Path, bytes: &[u8]) {
        self.folders.extend(path.ancestors().skip(1).map(Path::to_owned));
        self.link(path, Inode::of_bytes(bytes));
    }

    pub(super) fn flip_bit(&mut self, path: &Path, offset: u64, bit: u8) -> Result<(), DeviceError> {
        let id = *self.names.get(path).ok_or_else(|| failed(path, "flip", DeviceErrorKind::NotFound, None))?;
        let inode = self.inode(id);
        if offset >= inode.len {
            return Err(failed(path, "flip", DeviceErrorKind::EndOfFile, Some(offset)));
        }
        inode.flip_bit(offset, bit);
        Ok(())
    }

    /// A place in the file, other than `offset`, where `len` bytes fit.
    pub(super) fn elsewhere(&mut self, id: InodeId, offset: u64, len: usize) -> Option<u64> {
        let sector = SECTOR_BYTES as u64;
        let places = self.inode(id).len.checked_sub(len as u64)? / sector + 1;
        let place = self.random.below(places) * sector;
        (place != offset).then_some(place)
    }

    pub(super) fn fingerprint(&self) -> u64 {
        // FNV-1a: nobody here is an adversary.
        let mut hash = 0xCBF2_9CE4_8422_2325_u64;
        let mut mix = |bytes: &[u8]| bytes.iter().for_each(|&byte| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
        for (path, id) in &self.names {
            mix(path.as_os_str().as_encoded_bytes());
            self.inodes[id].fingerprint(&mut mix);
        }
        hash
    }
}
