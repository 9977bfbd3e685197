//! The real environment: the operating system's files, clock and randomness.

use crate::file::{BlockFile, Device, DeviceError, DeviceErrorKind, OpenMode, ReadRequest, WriteRequest};
use crate::{Clock, Env, Random};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The real environment.
pub fn env() -> Env {
    Env { device: Arc::new(OsDevice), clock: Arc::new(OsClock { start: Instant::now() }), random: Arc::new(OsRandom) }
}

struct OsDevice;

struct OsFile {
    path: PathBuf,
    file: File,
}

fn failed(path: &Path, operation: &'static str, offset: Option<u64>, error: &io::Error) -> DeviceError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => DeviceErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DeviceErrorKind::AlreadyExists,
        io::ErrorKind::PermissionDenied => DeviceErrorKind::Denied,
        io::ErrorKind::UnexpectedEof => DeviceErrorKind::EndOfFile,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DeviceErrorKind::Full,
        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy => DeviceErrorKind::Busy,
        _ => DeviceErrorKind::Io,
    };
    DeviceError { kind, os_error: error.raw_os_error().unwrap_or(0), path: path.to_owned(), operation, offset }
}

impl BlockFile for OsFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len_bytes(&self) -> Result<u64, DeviceError> {
        self.file.metadata().map(|m| m.len()).map_err(|e| failed(&self.path, "stat", None, &e))
    }

    fn set_len(&self, len_bytes: u64) -> Result<(), DeviceError> {
        self.file.set_len(len_bytes).map_err(|e| failed(&self.path, "resize", Some(len_bytes), &e))
    }

    fn read(&self, requests: &mut [ReadRequest<'_>]) -> Result<(), DeviceError> {
        for r in requests {
            self.file.read_exact_at(r.buffer, r.offset).map_err(|e| failed(&self.path, "read", Some(r.offset), &e))?;
        }
        Ok(())
    }

    fn write(&self, requests: &[WriteRequest<'_>]) -> Result<(), DeviceError> {
        for r in requests {
            self.file.write_all_at(r.buffer, r.offset).map_err(|e| failed(&self.path, "write", Some(r.offset), &e))?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.file.sync_data().map_err(|e| failed(&self.path, "sync", None, &e))
    }
}

fn sync_folder_of(path: &Path) -> Result<(), DeviceError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|f| f.sync_all()).map_err(|e| failed(folder, "sync", None, &e))
}

impl Device for OsDevice {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn BlockFile>, DeviceError> {
        let mut options = File::options();
        options.read(true).write(mode != OpenMode::ReadOnly).create_new(mode == OpenMode::CreateNew);
        let file = options.open(path).map_err(|e| failed(path, "open", None, &e))?;
        if mode == OpenMode::CreateNew {
            sync_folder_of(path)?;
        }
        Ok(Arc::new(OsFile { path: path.to_owned(), file }))
    }

    fn remove(&self, path: &Path) -> Result<(), DeviceError> {
        fs::remove_file(path).map_err(|e| failed(path, "remove", None, &e))?;
        sync_folder_of(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DeviceError> {
        fs::rename(from, to).map_err(|e| failed(from, "rename", None, &e))?;
        sync_folder_of(to)
    }

    fn create_folder(&self, path: &Path) -> Result<(), DeviceError> {
        fs::create_dir_all(path).map_err(|e| failed(path, "create", None, &e))
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
}

struct OsClock {
    start: Instant,
}

impl Clock for OsClock {
    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).expect("584 years have not passed")
    }

    fn utc_ns(&self) -> i128 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).expect("fits for 10^21 years"),
            Err(before) => -i128::try_from(before.duration().as_nanos()).expect("fits for 10^21 years"),
        }
    }

    fn local_offset_minutes(&self) -> i32 {
        0
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        use std::io::Read;
        File::open("/dev/urandom").and_then(|mut f| f.read_exact(bytes)).expect("the system has a source of randomness");
    }
}
