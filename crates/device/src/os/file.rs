//! An open file of the operating system.
//!
//! Opened for direct I/O where the file system takes it, and buffered otherwise; locked with flock unless read-only ([`lock`]).
//!
//! 1. Growth reserves room by fallocate, so that `Full` comes from [`BlockFile::set_len`]. Where the file system cannot,
//!    the length alone is set, and a later write may find the disk full.
//! 2. A failed sync is remembered ([`Core::refuse_if_broken`]).
//!
//! Locks: `DEVICE_FILE_LENGTH` (5) around a change of length; it is held across that system call and takes no other.

use super::engine::Engine;
use super::transfer::{Failure, Transfer};
use super::workers::Workers;
use super::{failed, sync_folder_of};
use crate::file::{
    BlockFile, DeviceError, DeviceErrorKind, FileStats, OpenMode, ReadRequest, WriteRequest, borrow_for_read, borrow_for_write,
    check_alignment,
};
use crate::stats::{Direction, FileCounters};
use crate::ticket::{OwnedRequest, Ticket};
use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use thawdb_observe::clock;
use thawdb_observe::event::{self, Event, Family};
use thawdb_observe::sync::{LockClass, Mutex};

/// How long a file may still belong to a process that was killed, and between two looks whether it does.
const LOCK_WAIT: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(2);

static LENGTH: LockClass = LockClass::new("DEVICE_FILE_LENGTH", 5);

/// A file; tickets share its core.
pub(super) struct OsFile {
    core: Arc<Core>,
    tickets: Arc<Workers>,
}

struct Core {
    path: PathBuf,
    file: File,
    direct: bool,
    engine: Arc<Engine>,
    counters: FileCounters,
    /// One change of length at a time: growing looks at the length before.
    length: Mutex<()>,
    broken: AtomicBool,
}

impl OsFile {
    pub(super) fn open(
        path: &Path,
        mode: OpenMode,
        direct: bool,
        engine: &Arc<Engine>,
        tickets: &Arc<Workers>,
    ) -> Result<Self, DeviceError> {
        let mut options = File::options();
        options.read(true).write(mode != OpenMode::ReadOnly).create_new(mode == OpenMode::CreateNew);
        let file = options.open(path).map_err(|e| failed(path, "open", None, &e))?;
        if mode != OpenMode::ReadOnly {
            lock(&file).map_err(|e| failed(path, "lock", None, &e.into()))?;
        }
        if mode == OpenMode::CreateNew {
            sync_folder_of(path)?;
        }
        // Asked for after opening: with O_DIRECT in the open call, a file system that refuses it has made the file by then.
        let direct = direct && ask_for_direct(&file).is_ok();
        let core = Core {
            path: path.to_owned(),
            file,
            direct,
            engine: Arc::clone(engine),
            counters: FileCounters::default(),
            length: Mutex::new(&LENGTH, ()),
            broken: AtomicBool::new(false),
        };
        Ok(Self { core: Arc::new(core), tickets: Arc::clone(tickets) })
    }
}

/// Locks the file for this process alone. What a killed process had in flight is carried on by the kernel, which lets its
/// files go only after that: so a lock that is held is waited for, for a while.
fn lock(file: &File) -> rustix::io::Result<()> {
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN) if Instant::now() < until => thread::sleep(LOCK_PAUSE),
            locked => return locked,
        }
    }
}

fn ask_for_direct(file: &File) -> rustix::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT)
}

impl Core {
    fn failed(&self, operation: &'static str, offset: Option<u64>, error: &io::Error) -> DeviceError {
        failed(&self.path, operation, offset, error)
    }

    /// After a failed sync nothing is written: what the disk holds is unknown.
    fn refuse_if_broken(&self, operation: &'static str) -> Result<(), DeviceError> {
        // Relaxed: a write that races with the failing sync is no better and no worse than one before it.
        if self.broken.load(Ordering::Relaxed) {
            return Err(DeviceError { kind: DeviceErrorKind::Io, os_error: 0, path: self.path.clone(), operation, offset: None });
        }
        Ok(())
    }

    fn len_bytes(&self) -> Result<u64, DeviceError> {
        self.file.metadata().map(|m| m.len()).map_err(|e| self.failed("stat", None, &e))
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DeviceError> {
        let _length = self.length.lock();
        let before = self.len_bytes()?;
        if len_bytes > before {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), before, len_bytes - before) {
                Ok(()) => return Ok(()),
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(error) => {
                    // What was reserved before room ran out is given back; the error that counts is the first.
                    let _ = self.file.set_len(before);
                    return Err(self.failed("resize", Some(len_bytes), &error.into()));
                }
            }
        }
        self.file.set_len(len_bytes).map_err(|e| self.failed("resize", Some(len_bytes), &e))
    }

    fn read(&self, requests: &mut [ReadRequest<'_>]) -> Result<(), DeviceError> {
        requests.iter().for_each(|request| check_alignment(&self.path, request.offset, request.buffer));
        let start_ns = clock::now_ns();
        self.counters.begin(requests.len());
        let transfers = self.engine.read(self.file.as_fd(), self.direct, requests);
        self.counters.end(requests.len());
        let sizes = requests.iter().map(|request| (request.offset, request.buffer.len() as u64));
        self.account(Direction::Read, start_ns, sizes, &transfers)
    }

    fn write(&self, requests: &[WriteRequest<'_>]) -> Result<(), DeviceError> {
        self.refuse_if_broken("write")?;
        requests.iter().for_each(|request| check_alignment(&self.path, request.offset, request.buffer));
        let start_ns = clock::now_ns();
        self.counters.begin(requests.len());
        let transfers = self.engine.write(self.file.as_fd(), self.direct, requests);
        self.counters.end(requests.len());
        let sizes = requests.iter().map(|request| (request.offset, request.buffer.len() as u64));
        self.account(Direction::Write, start_ns, sizes, &transfers)
    }

    /// Counts the requests of a finished batch and finds its first error. Transfers are in the order of requests.
    fn account(
        &self,
        direction: Direction,
        start_ns: u64,
        sizes: impl Iterator<Item = (u64, u64)>,
        transfers: &[Transfer],
    ) -> Result<(), DeviceError> {
        let operation = if direction == Direction::Read { "read" } else { "write" };
        let mut rest = transfers;
        let mut first_error = None;
        for (index, (offset, bytes)) in sizes.enumerate() {
            let mine = rest.iter().take_while(|transfer| transfer.request == index).count();
            let (pieces, others) = rest.split_at(mine);
            rest = others;
            let elapsed_ns = pieces.iter().map(|piece| piece.finished_ns).max().unwrap_or(start_ns).saturating_sub(start_ns);
            self.counters.done(direction, bytes, elapsed_ns);
            event::emit(Family::Io, || match direction {
                Direction::Read => Event::FileRead { bytes, elapsed_ns },
                Direction::Write => Event::FileWritten { bytes, elapsed_ns },
            });
            let error = pieces.iter().find_map(|piece| piece.result().err());
            first_error = first_error.or_else(|| {
                error.map(|error| match error {
                    Failure::EndOfFile => self.failed(operation, Some(offset), &io::ErrorKind::UnexpectedEof.into()),
                    Failure::Os(error) => self.failed(operation, Some(offset), &error.into()),
                })
            });
        }
        first_error.map_or(Ok(()), Err)
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.refuse_if_broken("sync")?;
        let start_ns = clock::now_ns();
        let result = self.file.sync_data();
        self.counters.synced(clock::now_ns().saturating_sub(start_ns));
        result.map_err(|error| {
            self.broken.store(true, Ordering::Relaxed);
            self.failed("sync", None, &error)
        })
    }
}

impl BlockFile for OsFile {
    fn path(&self) -> &Path {
        &self.core.path
    }

    fn len_bytes(&self) -> Result<u64, DeviceError> {
        self.core.len_bytes()
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DeviceError> {
        self.core.set_len(len_bytes)
    }

    fn read(&self, requests: &mut [ReadRequest<'_>]) -> Result<(), DeviceError> {
        self.core.read(requests)
    }

    fn write(&self, requests: &[WriteRequest<'_>]) -> Result<(), DeviceError> {
        self.core.write(requests)
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.core.sync()
    }

    fn start_read(&self, mut requests: Vec<OwnedRequest>) -> Ticket {
        let (ticket, completer) = Ticket::pending();
        let core = Arc::clone(&self.core);
        self.tickets.submit(Box::new(move || {
            let result = core.read(&mut borrow_for_read(&mut requests));
            completer.complete(requests, result);
        }));
        ticket
    }

    fn start_write(&self, requests: Vec<OwnedRequest>) -> Ticket {
        let (ticket, completer) = Ticket::pending();
        let core = Arc::clone(&self.core);
        self.tickets.submit(Box::new(move || {
            let result = core.write(&borrow_for_write(&requests));
            completer.complete(requests, result);
        }));
        ticket
    }

    fn start_task(&self, task: Box<dyn FnOnce() + Send>) {
        self.tickets.submit(task);
    }

    fn stats(&self) -> FileStats {
        self.core.counters.read_out()
    }
}
