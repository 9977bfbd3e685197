//! Block files: what the engine asks of a file system, and nothing more.
//!
//! Requests come in batches so that an implementation can keep many in flight. Blocking calls borrow their buffers;
//! [`BlockFile::start_read`] and [`BlockFile::start_write`] own them and give a [`Ticket`], for read-ahead and
//! write-behind.
//!
//! 1. Offsets, lengths and buffer addresses are multiples of [`SECTOR_BYTES`], so that direct I/O is always
//!    possible; `check_alignment` panics otherwise, in every implementation.
//! 2. A blocking call returns only when the device is done with every buffer, also when it fails.
//! 3. Room is reserved by [`BlockFile::set_len`]: a write within the length does not fail with `Full`.
//! 4. Creation, renaming and removal are durable on return; writes and lengths after [`BlockFile::sync`].
//! 5. After a failed sync the file refuses writes and syncs: what reached the disk is unknown, and a second sync
//!    that succeeds would be a lie. The instance must reopen and recover.

pub use crate::buffer::AlignedBuf;
use crate::ticket::{OwnedRequest, Ticket};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Alignment of every offset, length and buffer: the largest logical block size of disks in use.
pub const SECTOR_BYTES: usize = 4096;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file must exist and is only read.
    ReadOnly,
    /// The file must not exist; it is made, empty, and its directory entry is durable on return.
    CreateNew,
}

/// What went wrong, by what the caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceErrorKind {
    /// No such file or folder.
    NotFound,
    /// The file exists already.
    AlreadyExists,
    /// The system refuses access.
    Denied,
    /// Another process or instance holds the file.
    Busy,
    /// No room is left.
    Full,
    /// The file ended before the request did.
    EndOfFile,
    /// The request failed; the state of the bytes is unknown.
    Io,
}

/// A failed device operation.
#[derive(Debug, Clone)]
pub struct DeviceError {
    /// Its kind.
    pub kind: DeviceErrorKind,
    /// The operating system's number, 0 if none.
    pub os_error: i32,
    /// The file or folder.
    pub path: PathBuf,
    /// What was being done: "read", "write", "sync", "open" ...
    pub operation: &'static str,
    /// Byte offset in the file, if the operation had one.
    pub offset: Option<u64>,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} failed: {:?} (operating system error {})", self.operation, self.path.display(), self.kind, self.os_error)?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset:#x}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DeviceError {}

/// One read of a batch.
pub struct ReadRequest<'a> {
    /// Byte offset in the file.
    pub offset: u64,
    /// Where the bytes go; filled whole or the batch fails.
    pub buffer: &'a mut [u8],
}

/// One write of a batch.
pub struct WriteRequest<'a> {
    /// Byte offset in the file.
    pub offset: u64,
    /// The bytes.
    pub buffer: &'a [u8],
}

/// An open file. Calls may come from many threads at once.
pub trait BlockFile: Send + Sync {
    /// The path it was opened with.
    fn path(&self) -> &Path;
    /// Present length in bytes.
    fn len_bytes(&self) -> Result<u64, DeviceError>;
    /// Makes the file longer (new bytes read as zero, room is reserved, nothing is written) or shorter. Fails with
    /// `Full` when there is no room, and then leaves the length as it was.
    fn set_len(&self, len_bytes: u64) -> Result<(), DeviceError>;
    /// Performs all reads, many in flight; returns when all are done, with the first error if any.
    fn read(&self, requests: &mut [ReadRequest<'_>]) -> Result<(), DeviceError>;
    /// Performs all writes, many in flight, in no order; returns when all are done. Durable only after [`Self::sync`].
    fn write(&self, requests: &[WriteRequest<'_>]) -> Result<(), DeviceError>;
    /// Makes completed writes and the length durable.
    fn sync(&self) -> Result<(), DeviceError>;
    /// Begins to perform all reads into buffers that the device owns meanwhile; [`Ticket::wait`] gives them back.
    /// Dropping the ticket forgets the result, not the reads. This default reads before it returns.
    fn start_read(&self, mut requests: Vec<OwnedRequest>) -> Ticket {
        let result = self.read(&mut borrow_for_read(&mut requests));
        Ticket::done(requests, result)
    }
    /// Begins to perform all writes, in no order; durable only after a [`Self::sync`] that follows [`Ticket::wait`].
    /// This default writes before it returns.
    fn start_write(&self, requests: Vec<OwnedRequest>) -> Ticket {
        let result = self.write(&borrow_for_write(&requests));
        Ticket::done(requests, result)
    }
    /// Has a task of blocking transfers done by the device's own threads, in no order with others. This default does it
    /// before it returns, so that a simulation stays one sequence.
    fn start_task(&self, task: Box<dyn FnOnce() + Send>) {
        task();
    }
    /// What the file went through since it was opened (`sys.dm_io_virtual_file_stats`). This default counts nothing.
    fn stats(&self) -> FileStats {
        FileStats::default()
    }
}

/// What an open file went through. A stall is the time from submission to completion, summed over requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Read requests done.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time they took.
    pub read_stall_ns: u64,
    /// Write requests done.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time they took.
    pub write_stall_ns: u64,
    /// Syncs done.
    pub syncs: u64,
    /// Time they took.
    pub sync_stall_ns: u64,
    /// Most requests in flight at once.
    pub queue_depth_max: u64,
}

/// An ordinary file that the engine did not write, read from its beginning.
pub trait ForeignFile: Send {
    /// Length in bytes when asked.
    fn len_bytes(&self) -> Result<u64, DeviceError>;
    /// Reads the next bytes, up to `buffer.len()`, of any alignment. Returns the count, 0 only at the end.
    fn read_next(&mut self, buffer: &mut [u8]) -> Result<usize, DeviceError>;
}

/// A place with files.
pub trait Device: Send + Sync {
    /// Opens a file, exclusively within this and other processes (else `Busy`, on a real device after three seconds, which what
    /// a killed process had in flight may take) unless `ReadOnly`, which neither takes nor asks for the lock.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn BlockFile>, DeviceError>;
    /// Removes a file, durably.
    fn remove(&self, path: &Path) -> Result<(), DeviceError>;
    /// Renames a file over another, durably.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DeviceError>;
    /// Makes a folder and its parents, durably.
    fn create_folder(&self, path: &Path) -> Result<(), DeviceError>;
    /// Names in a folder, sorted.
    fn list(&self, path: &Path) -> Result<Vec<String>, DeviceError>;
    /// Whether a file or folder is there.
    fn exists(&self, path: &Path) -> bool;
    /// Reads a whole ordinary file that the engine did not write (CSV to load, for one), from `offset`, up to
    /// `buffer.len()` bytes; no alignment asked. Returns the count read, 0 at the end.
    fn read_foreign(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize, DeviceError>;
    /// Opens a whole ordinary file for one pass; the handle is kept, so that this is the way for large ones.
    fn open_foreign(&self, path: &Path) -> Result<Box<dyn ForeignFile>, DeviceError>;
}

/// Panics on a request that direct I/O could not take: our mistake, not the disk's.
pub(crate) fn check_alignment(path: &Path, offset: u64, buffer: &[u8]) {
    let sector = SECTOR_BYTES as u64;
    assert!(offset.is_multiple_of(sector), "request at {offset:#x} of {} does not begin at a sector", path.display());
    assert!(buffer.len().is_multiple_of(SECTOR_BYTES), "request of {} bytes of {} is not whole sectors", buffer.len(), path.display());
    assert!(buffer.as_ptr().addr().is_multiple_of(SECTOR_BYTES), "buffer of a request of {} is not aligned", path.display());
}

pub(crate) fn borrow_for_read(requests: &mut [OwnedRequest]) -> Vec<ReadRequest<'_>> {
    requests.iter_mut().map(OwnedRequest::borrow_for_read).collect()
}

pub(crate) fn borrow_for_write(requests: &[OwnedRequest]) -> Vec<WriteRequest<'_>> {
    requests.iter().map(|request| WriteRequest { offset: request.offset, buffer: request.buffer.bytes() }).collect()
}
