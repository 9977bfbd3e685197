//! Block files: what the engine asks of a file system, and nothing more.
//!
//! Requests come in batches so that an implementation can keep many in flight. Offsets, lengths and buffer
//! addresses are multiples of [`SECTOR_BYTES`], so that direct I/O is always possible.

use std::fmt;
use std::ops::{Deref, DerefMut};
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
    /// Makes the file longer (new bytes read as zero) or shorter. Fails with `Full` when there is no room.
    fn set_len(&self, len_bytes: u64) -> Result<(), DeviceError>;
    /// Performs all reads, many in flight; returns when all are done, with the first error if any.
    fn read(&self, requests: &mut [ReadRequest<'_>]) -> Result<(), DeviceError>;
    /// Performs all writes, many in flight, in no order; returns when all are done. Durable only after [`Self::sync`].
    fn write(&self, requests: &[WriteRequest<'_>]) -> Result<(), DeviceError>;
    /// Makes completed writes and the length durable.
    fn sync(&self) -> Result<(), DeviceError>;
}

/// A place with files.
pub trait Device: Send + Sync {
    /// Opens a file, exclusively within this and other processes unless `ReadOnly`.
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
}

/// A buffer whose address and length are multiples of [`SECTOR_BYTES`].
pub struct AlignedBuf {
    blocks: Vec<Sector>,
}

#[derive(Clone)]
#[repr(align(4096))]
struct Sector([u8; SECTOR_BYTES]);

impl AlignedBuf {
    /// Zeroed bytes; `len_bytes` must be a multiple of [`SECTOR_BYTES`].
    pub fn zeroed(len_bytes: usize) -> Self {
        assert!(len_bytes.is_multiple_of(SECTOR_BYTES), "buffer of {len_bytes} bytes is not whole sectors");
        Self { blocks: vec![Sector([0; SECTOR_BYTES]); len_bytes / SECTOR_BYTES] }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: `blocks` is one allocation of plain bytes without padding (size equals alignment), all initialised.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.blocks.len() * SECTOR_BYTES) }
    }
}

impl DerefMut for AlignedBuf {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.blocks.len() * SECTOR_BYTES) }
    }
}
