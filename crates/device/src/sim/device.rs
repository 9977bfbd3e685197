//! The device trait over the simulated world.

use super::Shared;
use super::fault::{Fault, Operation};
use super::world::{Begun, InodeId, World, crashed, failed};
use crate::file::{
    BlockFile, Device, DeviceError, DeviceErrorKind, FileStats, ForeignFile, OpenMode, ReadRequest, WriteRequest, check_alignment,
};
use crate::stats::{Direction, FileCounters};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thawdb_observe::sync::MutexGuard;

pub(super) struct SimDevice {
    shared: Arc<Shared>,
}

struct SimFile {
    shared: Arc<Shared>,
    path: PathBuf,
    inode: InodeId,
    mode: OpenMode,
    /// The start of the world it belongs to.
    start: u64,
    counters: FileCounters,
}

impl SimDevice {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Shared {
    /// Lets the time of a call pass.
    fn pass(&self, world: &World, fault: Option<Fault>) {
        let delay_ns = if let Some(Fault::Delay(ns)) = fault { ns } else { 0 };
        self.advance(world.latency_ns() + delay_ns);
    }
}

/// Does an operation with what was ordered for it: an error, a crash before or after its effect, or nothing.
fn perform<T>(
    world: &mut World,
    operation: Operation,
    path: &Path,
    begun: &Begun,
    effect: impl FnOnce(&mut World) -> Result<T, DeviceError>,
) -> Result<T, DeviceError> {
    let ordered = match begun.fault {
        Some(Fault::IoError) => Some(DeviceErrorKind::Io),
        Some(Fault::Full) => Some(DeviceErrorKind::Full),
        _ => None,
    };
    if let Some(kind) = ordered {
        return Err(failed(path, operation.name(), kind, None));
    }
    match begun.crash {
        None => effect(world),
        Some(with_effect) => {
            if with_effect {
                let _ = effect(world);
            }
            world.crash();
            Err(crashed(path))
        }
    }
}

impl SimDevice {
    fn call<T>(
        &self,
        operation: Operation,
        path: &Path,
        effect: impl FnOnce(&mut World) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let mut world = self.shared.world.lock();
        let begun = world.begin(operation, path)?;
        self.shared.pass(&world, begun.fault);
        perform(&mut world, operation, path, &begun, effect)
    }

    fn look<T>(&self, path: &Path, look: impl FnOnce(&mut World) -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        let mut world = self.shared.world.lock();
        world.alive(path)?;
        look(&mut world)
    }
}

impl Device for SimDevice {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn BlockFile>, DeviceError> {
        let operation = if mode == OpenMode::CreateNew { Operation::Create } else { Operation::Open };
        let (inode, start) = self.call(operation, path, |world| Ok((world.open(path, mode)?, world.start)))?;
        let shared = Arc::clone(&self.shared);
        Ok(Arc::new(SimFile { shared, path: path.to_owned(), inode, mode, start, counters: FileCounters::default() }))
    }

    fn remove(&self, path: &Path) -> Result<(), DeviceError> {
        self.call(Operation::Remove, path, |world| world.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DeviceError> {
        self.call(Operation::Rename, from, |world| world.rename(from, to))
    }

    fn create_folder(&self, path: &Path) -> Result<(), DeviceError> {
        self.look(path, |world| {
            world.folders.extend(path.ancestors().map(Path::to_owned));
            Ok(())
        })
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, DeviceError> {
        self.look(path, |world| {
            if !world.folders.contains(path) {
                return Err(failed(path, "list", DeviceErrorKind::NotFound, None));
            }
            let entries = world.names.keys().chain(&world.folders).filter(|entry| entry.parent() == Some(path));
            let mut names: Vec<String> =
                entries.filter_map(|entry| entry.file_name()).map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort();
            Ok(names)
        })
    }

    fn exists(&self, path: &Path) -> bool {
        self.look(path, |world| Ok(world.names.contains_key(path) || world.folders.contains(path))).unwrap_or(false)
    }

    fn read_foreign(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize, DeviceError> {
        self.call(Operation::Read, path, |world| {
            let id = *world.names.get(path).ok_or_else(|| failed(path, "open", DeviceErrorKind::NotFound, None))?;
            let inode = world.inode(id);
            let left = usize::try_from(inode.len.saturating_sub(offset)).unwrap_or(usize::MAX);
            let count = left.min(buffer.len());
            if count > 0 {
                inode.read(offset, &mut buffer[..count]);
            }
            Ok(count)
        })
    }

    fn open_foreign(&self, path: &Path) -> Result<Box<dyn ForeignFile>, DeviceError> {
        let missing = || failed(path, "open", DeviceErrorKind::NotFound, None);
        self.call(Operation::Open, path, |world| world.names.get(path).map(|_| ()).ok_or_else(missing))?;
        Ok(Box::new(SimForeign { device: Self::new(Arc::clone(&self.shared)), path: path.to_owned(), position: 0 }))
    }
}

struct SimForeign {
    device: SimDevice,
    path: PathBuf,
    position: u64,
}

impl ForeignFile for SimForeign {
    fn len_bytes(&self) -> Result<u64, DeviceError> {
        self.device.look(&self.path, |world| {
            let missing = || failed(&self.path, "stat", DeviceErrorKind::NotFound, None);
            let id = *world.names.get(&self.path).ok_or_else(missing)?;
            Ok(world.inode(id).len)
        })
    }

    fn read_next(&mut self, buffer: &mut [u8]) -> Result<usize, DeviceError> {
        let count = self.device.read_foreign(&self.path, self.position, buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl SimFile {
    /// The world, if this handle is of its present start.
    fn world(&self) -> Result<MutexGuard<'_, World>, DeviceError> {
        let world = self.shared.world.lock();
        if world.start != self.start {
            return Err(crashed(&self.path));
        }
        world.alive(&self.path)?;
        Ok(world)
    }

    fn writable(&self, world: &World, operation: Operation) -> Result<(), DeviceError> {
        if self.mode == OpenMode::ReadOnly {
            return Err(failed(&self.path, operation.name(), DeviceErrorKind::Denied, None));
        }
        if world.is_broken(self.inode) {
            return Err(failed(&self.path, operation.name(), DeviceErrorKind::Io, None));
        }
        Ok(())
    }

    fn read_one(&self, world: &mut World, request: &mut ReadRequest<'_>) -> Result<(), DeviceError> {
        let begun = world.begin(Operation::Read, &self.path)?;
        self.shared.pass(world, begun.fault);
        let id = self.inode;
        let len = request.buffer.len();
        perform(world, Operation::Read, &self.path, &begun, |world| {
            if request.offset.checked_add(len as u64).is_none_or(|end| end > world.inode(id).len) {
                return Err(failed(&self.path, "read", DeviceErrorKind::EndOfFile, Some(request.offset)));
            }
            let offset = match begun.fault {
                Some(Fault::Misdirect) => world.elsewhere(id, request.offset, len).unwrap_or(request.offset),
                _ => request.offset,
            };
            world.inode(id).read(offset, request.buffer);
            if begun.fault == Some(Fault::FlipBit) && len > 0 {
                let (place, bit) = (world.random.below(len as u64), world.random.below(8));
                request.buffer[usize::try_from(place).expect("below a length")] ^= 1 << bit;
            }
            Ok(())
        })
    }

    fn write_one(&self, world: &mut World, request: &WriteRequest<'_>) -> Result<(), DeviceError> {
        let begun = world.begin(Operation::Write, &self.path)?;
        self.shared.pass(world, begun.fault);
        if begun.fault == Some(Fault::IoError) {
            // What a failed write leaves is unknown: each sector arrives or not.
            self.store(world, request.offset, request.buffer, |random| random.chance(1, 2))?;
        }
        perform(world, Operation::Write, &self.path, &begun, |world| match begun.fault {
            Some(Fault::Lose) => Ok(()),
            Some(Fault::Misdirect) => match world.elsewhere(self.inode, request.offset, request.buffer.len()) {
                Some(offset) => self.store(world, offset, request.buffer, |_| true),
                None => Ok(()),
            },
            Some(Fault::FlipBit) if !request.buffer.is_empty() => {
                let mut rotten = request.buffer.to_vec();
                let (place, bit) = (world.random.below(rotten.len() as u64), world.random.below(8));
                rotten[usize::try_from(place).expect("below a length")] ^= 1 << bit;
                self.store(world, request.offset, &rotten, |_| true)
            }
            _ => self.store(world, request.offset, request.buffer, |_| true),
        })
    }

    fn store(
        &self,
        world: &mut World,
        offset: u64,
        bytes: &[u8],
        takes: impl Fn(&mut thawdb_observe::seeded::SeededRandom) -> bool,
    ) -> Result<(), DeviceError> {
        let full = || failed(&self.path, "write", DeviceErrorKind::Full, Some(offset));
        let end = offset.checked_add(bytes.len() as u64).ok_or_else(full)?;
        let len = world.inode(self.inode).len;
        if !world.has_room(len, end) {
            return Err(full());
        }
        let write = world.next_write();
        let mut random = world.random.split();
        world.inode(self.inode).write(write, offset, bytes, || takes(&mut random));
        Ok(())
    }

    /// Counts a request and keeps the first error of a batch.
    fn account(
        &self,
        direction: Direction,
        bytes: usize,
        start_ns: u64,
        result: Result<(), DeviceError>,
        first: &mut Result<(), DeviceError>,
    ) {
        self.counters.done(direction, bytes as u64, self.shared.now_ns().saturating_sub(start_ns));
        if first.is_ok() {
            *first = result;
        }
    }
}

impl BlockFile for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len_bytes(&self) -> Result<u64, DeviceError> {
        Ok(self.world()?.inode(self.inode).len)
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DeviceError> {
        let mut world = self.world()?;
        self.writable(&world, Operation::SetLen)?;
        let begun = world.begin(Operation::SetLen, &self.path)?;
        self.shared.pass(&world, begun.fault);
        perform(&mut world, Operation::SetLen, &self.path, &begun, |world| {
            let len = world.inode(self.inode).len;
            if !world.has_room(len, len_bytes) {
                return Err(failed(&self.path, "resize", DeviceErrorKind::Full, Some(len_bytes)));
            }
            let write = world.next_write();
            world.inode(self.inode).set_len(write, len_bytes);
            Ok(())
        })
    }

    fn read(&self, requests: &mut [ReadRequest<'_>]) -> Result<(), DeviceError> {
        requests.iter().for_each(|request| check_alignment(&self.path, request.offset, request.buffer));
        let mut world = self.world()?;
        self.counters.begin(requests.len());
        let start_ns = self.shared.now_ns();
        let mut first = Ok(());
        for request in requests.iter_mut() {
            let result = self.read_one(&mut world, request);
            self.account(Direction::Read, request.buffer.len(), start_ns, result, &mut first);
        }
        self.counters.end(requests.len());
        first
    }

    fn write(&self, requests: &[WriteRequest<'_>]) -> Result<(), DeviceError> {
        requests.iter().for_each(|request| check_alignment(&self.path, request.offset, request.buffer));
        let mut world = self.world()?;
        self.writable(&world, Operation::Write)?;
        self.counters.begin(requests.len());
        let start_ns = self.shared.now_ns();
        let mut first = Ok(());
        for request in requests {
            let result = self.write_one(&mut world, request);
            self.account(Direction::Write, request.buffer.len(), start_ns, result, &mut first);
        }
        self.counters.end(requests.len());
        first
    }

    fn sync(&self) -> Result<(), DeviceError> {
        let mut world = self.world()?;
        self.writable(&world, Operation::Sync)?;
        let begun = world.begin(Operation::Sync, &self.path)?;
        let start_ns = self.shared.now_ns();
        self.shared.pass(&world, begun.fault);
        self.counters.synced(self.shared.now_ns().saturating_sub(start_ns));
        if begun.fault == Some(Fault::IoError) {
            world.break_file(self.inode);
        }
        perform(&mut world, Operation::Sync, &self.path, &begun, |world| {
            if begun.fault != Some(Fault::Lose) {
                world.inode(self.inode).sync();
            }
            Ok(())
        })
    }

    fn stats(&self) -> FileStats {
        self.counters.read_out()
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut world = self.shared.world.lock();
        if world.start == self.start {
            world.close(self.inode, self.mode != OpenMode::ReadOnly);
        }
    }
}
