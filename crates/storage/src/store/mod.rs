//! One database's files, log and pages tied together: what trees stand on.
//!
//! ```text
//! trees, txn --> Mini (change) / Store::read --> pool --> data files
//!                  |                               ^
//!                  +--> log --> flush              +-- redo on first touch (recovery)
//! ```
//!
//! 1. A page is read from the device only through [`Store::admit`]: checksum, name, structure and redo, or an error.
//! 2. A page is written only by `store::write`, after the log is durable up to its last change.
//! 3. A temporary database has no log: nothing is synced, and its files are made anew at each start.
//!
//! Locks: none of its own on the way of a read. Growth of IAM chains is serialised by `SPACE_CHAINS`
//! (2), of files by `SPACE_GROWTH` (2), in this order and after the page latches of the caller's mini-transaction; under
//! both only map pages are latched.
//!
//! Failure: a device error is 823, wrong content 824; after a failed log write everything that would log fails with
//! `Poisoned` until the database is opened again.

pub mod background;
pub mod boot;
pub(crate) mod bulk_pages;
pub(crate) mod create;
pub mod data_backup;
pub mod dirty;
pub mod file;
pub mod files;
pub mod log_space;
pub(crate) mod loose;
mod read;
pub(crate) mod stream;
pub mod suspect;
pub mod write;

use crate::checkpoint::Checkpoints;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::log::Log;
use crate::pool::{Pool, PoolFile};
use crate::recovery::{Pending, Relocated};
use crate::space::Space;
use dirty::DirtyLists;
use file::DataFile;
use observe::sync::{LockClass, Mutex};
use std::sync::{Arc, OnceLock, Weak};
use thawdb_device::Env;
use thawdb_observe as observe;

static CHAINS: LockClass = LockClass::new("SPACE_CHAINS", 2);
static FILE_CHANGES: LockClass = LockClass::new("FILE_CHANGES", 1);
static GROWTH: LockClass = LockClass::new("SPACE_GROWTH", 2);

/// Most files of a database: their table is an array, so that finding one costs nothing; far above what is in use.
pub const FILES_MAX: usize = 1024;

/// The lower half of one open database.
pub struct Store {
    me: Weak<Store>,
    name: String,
    number: u32,
    env: Env,
    pool: Arc<Pool>,
    log: Option<Arc<Log>>,
    files: Box<[OnceLock<DataFile>]>,
    pub(crate) dirty: DirtyLists,
    pub(crate) space: Space,
    pub(crate) chains: Mutex<()>,
    pub(crate) growth: Mutex<()>,
    pub(crate) writer: write::Writer,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) log_space: log_space::LogSpaceLocks,
    pub(crate) file_changes: Mutex<()>,
    pub(crate) read_only: files::ReadOnly,
    pub(crate) pending: Pending,
    pub(crate) relocated: Relocated,
    pub(crate) loose: loose::Loose,
    settings: background::Settings,
    pub(crate) bulk_pages: bulk_pages::BulkPages,
    pub(crate) suspect: suspect::SuspectPages,
    pub(crate) written: Arc<suspect::Written>,
}

impl Store {
    pub(crate) fn assemble(name: &str, number: u32, env: &Env, pool: &Arc<Pool>, log: Option<Arc<Log>>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            name: name.to_owned(),
            number,
            env: env.clone(),
            pool: pool.clone(),
            log,
            files: std::iter::repeat_with(OnceLock::new).take(FILES_MAX + 1).collect(),
            dirty: DirtyLists::new(),
            space: Space::new(),
            chains: Mutex::new(&CHAINS, ()),
            growth: Mutex::new(&GROWTH, ()),
            writer: write::Writer::new(),
            checkpoints: Checkpoints::new(),
            log_space: log_space::LogSpaceLocks::new(),
            file_changes: Mutex::new(&FILE_CHANGES, ()),
            read_only: files::ReadOnly::default(),
            pending: Pending::new(),
            relocated: Relocated::default(),
            loose: loose::Loose::new(),
            settings: background::Settings::new(),
            bulk_pages: bulk_pages::BulkPages::new(),
            suspect: suspect::SuspectPages::new(),
            written: Arc::new(suspect::Written::new()),
        })
    }

    /// The database's name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The environment.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The pool, for work beside the caller.
    pub(crate) fn pool_handle(&self) -> Arc<Pool> {
        self.pool.clone()
    }

    /// The log; a temporary database has none.
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.log.as_ref()
    }

    /// Makes everything that was logged before `upto` durable.
    pub fn flush_log(&self, upto: Lsn) -> Result<(), StorageError> {
        self.log.as_ref().map_or(Ok(()), |log| log.flush(upto))
    }

    /// Pages that were found wrong since the database was opened, and what became of them.
    pub fn suspect_pages(&self) -> Vec<suspect::SuspectPage> {
        self.suspect.rows()
    }

    /// Whether there are suspect pages that [`Self::take_suspect_pages`] has not given yet.
    pub fn has_new_suspect_pages(&self) -> bool {
        self.suspect.has_new()
    }

    /// Suspect pages with something new, counted since they were taken last; `error_count` is what is new.
    pub fn take_suspect_pages(&self) -> Vec<suspect::SuspectPage> {
        self.suspect.take_new()
    }

    /// Makes pages new again that were taken and could not be kept.
    pub fn give_suspect_pages_back(&self, rows: &[suspect::SuspectPage]) {
        self.suspect.give_back(rows);
    }

    pub(crate) fn log_end(&self) -> Lsn {
        self.log.as_ref().map_or(Lsn(0), |log| log.end())
    }

    pub(crate) fn add_file(&self, file: DataFile) -> Result<(), StorageError> {
        let number = file.number;
        let place = self.files.get(usize::from(number)).ok_or_else(|| StorageError::Bug(format!("file number {number}")))?;
        self.space.set_file(number, file.filegroup, file.pages());
        place.set(file).map_err(|_| StorageError::Bug(format!("file number {number} is in use")))
    }

    pub(crate) fn register(&self, file: u16) -> Arc<PoolFile> {
        let owner: Weak<dyn crate::pool::WriteBack> = self.me.clone();
        self.pool.register(self.number, file, owner)
    }

    /// The data files, by number.
    pub fn files(&self) -> impl Iterator<Item = &DataFile> {
        self.files.iter().filter_map(OnceLock::get).filter(|file| !file.is_removed())
    }

    /// The file with this number.
    pub fn file(&self, number: u16) -> Result<&DataFile, StorageError> {
        let file = self.files.get(usize::from(number)).and_then(OnceLock::get).filter(|file| !file.is_removed());
        file.ok_or_else(|| StorageError::NotFound(format!("file {number} of database {}", self.name)))
    }

    /// Whether a file has or had this number since the database was opened.
    pub(crate) fn is_number_taken(&self, number: u16) -> bool {
        self.files.get(usize::from(number)).is_none_or(|place| place.get().is_some())
    }

    /// The file of `page`, which must lie in it.
    pub(crate) fn file_of(&self, page: PageId) -> Result<&DataFile, StorageError> {
        // Whoever asks has the number from a page: what names a file that is not there is damage.
        let file = self.file(page.file).map_err(|_| crate::page::checksum::damage(page, "a page of no file".into()))?;
        if page.page >= file.pages() {
            return Err(crate::page::checksum::damage(page, format!("the file has {} pages", file.pages())));
        }
        Ok(file)
    }
}
