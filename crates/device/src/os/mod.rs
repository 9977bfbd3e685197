//! The real environment: the operating system's files, clock and randomness.
//!
//! ```text
//! OsFile -- read/write ----> engine -- many --> ring (io_uring, 64 in flight) or threads (16)
//!    |                          +----- one ---> pread / pwrite
//!    +-- start_read/_write -> ticket workers (8) -> the same
//! ```
//!
//! `unsafe` is allowed in `engine`, `ring`, `threads` and `transfer`, and nowhere else here.
//!
//! Failure: errors keep the system's number and say what was being done to what. Directory entries are made durable
//! by syncing the folder on creation, renaming and removal.

mod engine;
mod file;
mod ring;
mod threads;
mod time;
mod transfer;
mod workers;

pub use engine::Batching;

use crate::Env;
use crate::file::{BlockFile, Device, DeviceError, DeviceErrorKind, ForeignFile, OpenMode};
use engine::Engine;
use file::OsFile;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use workers::Workers;

/// Batches under way by ticket at once, each of up to 64 transfers: reads ahead of a few scans and writes behind.
const TICKET_THREADS_MAX: usize = 8;

/// How the real device works; the default is right, the rest is for tests and diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OsOptions {
    /// How batches reach the kernel.
    pub batching: Batching,
    /// Uses the page cache even where the file system takes direct I/O.
    pub buffered: bool,
}

/// The real environment.
pub fn env() -> Env {
    env_with(OsOptions::default()).expect("detection falls back to threads, which need nothing")
}

/// The real environment, with options. Fails only if io_uring is demanded and refused.
pub fn env_with(options: OsOptions) -> Result<Env, DeviceError> {
    let device = Arc::new(OsDevice::new(options)?);
    Ok(Env { device, clock: Arc::new(time::OsClock::new()), random: Arc::new(time::OsRandom), background: crate::BackgroundWork::Threads })
}

/// The operating system's files.
pub struct OsDevice {
    engine: Arc<Engine>,
    tickets: Arc<Workers>,
    direct: bool,
}

impl OsDevice {
    /// A device. Fails only if io_uring is demanded and refused.
    pub fn new(options: OsOptions) -> Result<Self, DeviceError> {
        let engine = Engine::new(options.batching).map_err(|e| failed(Path::new(""), "io_uring", None, &e))?;
        let tickets = Arc::new(Workers::new("thaw-ticket", TICKET_THREADS_MAX));
        Ok(Self { engine: Arc::new(engine), tickets, direct: !options.buffered })
    }

    /// Whether batches go through io_uring.
    pub fn uses_ring(&self) -> bool {
        matches!(*self.engine, Engine::Ring(_))
    }
}

fn failed(path: &Path, operation: &'static str, offset: Option<u64>, error: &io::Error) -> DeviceError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => DeviceErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DeviceErrorKind::AlreadyExists,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => DeviceErrorKind::Denied,
        io::ErrorKind::UnexpectedEof => DeviceErrorKind::EndOfFile,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => DeviceErrorKind::Full,
        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy => DeviceErrorKind::Busy,
        _ => DeviceErrorKind::Io,
    };
    DeviceError { kind, os_error: error.raw_os_error().unwrap_or(0), path: path.to_owned(), operation, offset }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_folder(folder: &Path) -> Result<(), DeviceError> {
    File::open(folder).and_then(|f| f.sync_all()).map_err(|e| failed(folder, "sync", None, &e))
}

fn sync_folder_of(path: &Path) -> Result<(), DeviceError> {
    sync_folder(folder_of(path))
}

impl Device for OsDevice {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn BlockFile>, DeviceError> {
        Ok(Arc::new(OsFile::open(path, mode, self.direct, &self.engine, &self.tickets)?))
    }

    fn remove(&self, path: &Path) -> Result<(), DeviceError> {
        fs::remove_file(path).map_err(|e| failed(path, "remove", None, &e))?;
        sync_folder_of(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DeviceError> {
        fs::rename(from, to).map_err(|e| failed(from, "rename", None, &e))?;
        sync_folder_of(to)?;
        if folder_of(from) == folder_of(to) { Ok(()) } else { sync_folder_of(from) }
    }

    fn create_folder(&self, path: &Path) -> Result<(), DeviceError> {
        let missing: Vec<&Path> = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists()).collect();
        fs::create_dir_all(path).map_err(|e| failed(path, "create", None, &e))?;
        missing.into_iter().try_for_each(sync_folder_of)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, DeviceError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(|e| failed(path, "list", None, &e))? {
            let entry = entry.map_err(|e| failed(path, "list", None, &e))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn read_foreign(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize, DeviceError> {
        let file = File::open(path).map_err(|e| failed(path, "open", None, &e))?;
        file.read_at(buffer, offset).map_err(|e| failed(path, "read", Some(offset), &e))
    }

    fn open_foreign(&self, path: &Path) -> Result<Box<dyn ForeignFile>, DeviceError> {
        let file = File::open(path).map_err(|e| failed(path, "open", None, &e))?;
        // Advice only: where it is refused, reading is no less right.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        Ok(Box::new(OsForeign { path: path.to_owned(), file, position: 0 }))
    }
}

struct OsForeign {
    path: PathBuf,
    file: File,
    position: u64,
}

impl ForeignFile for OsForeign {
    fn len_bytes(&self) -> Result<u64, DeviceError> {
        self.file.metadata().map(|m| m.len()).map_err(|e| failed(&self.path, "stat", None, &e))
    }

    fn read_next(&mut self, buffer: &mut [u8]) -> Result<usize, DeviceError> {
        loop {
            match self.file.read(buffer) {
                Ok(count) => {
                    self.position += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.path, "read", Some(self.position), &error)),
            }
        }
    }
}
