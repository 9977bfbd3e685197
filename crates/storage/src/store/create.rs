//! Making a new database: files, maps, boot page.
//!
//! Everything but the first bytes of the log goes through mini-transactions, so a new database is like any other; it is
//! there when [`Store::create`] returns. A failure on the way removes the files made so far.

use super::Store;
use super::boot::{self, BootFacts, FileFacts};
use super::file::{DataFile, extents_of};
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::log::{Log, LogConfig};
use crate::mini::Mini;
use crate::page::{Format, PAGE_BYTES, PageOp, PageType};
use crate::pool::Pool;
use crate::space::layout::{self, BOOT, EXTENT_PAGES, PFS_ALLOCATED, PRIMARY_EXTENTS};
use crate::spec::{DatabaseSpec, FileKind, FileSpec};
use std::sync::Arc;
use thawdb_device::{BlockFile, Env, OpenMode};

/// Fewest extents of a data file: the primary one's own, and as many again to begin with.
const EXTENTS_MIN: u32 = 2 * PRIMARY_EXTENTS;

/// Number of the log file.
pub(crate) const LOG_FILE: u16 = 2;

/// What a log gets if the specification names none.
const LOG_BYTES_DEFAULT: u64 = 8 << 20;

pub(crate) fn log_config(spec: &FileSpec) -> LogConfig {
    LogConfig { size_bytes: spec.size_bytes, size_bytes_max: spec.size_bytes_max, growth_bytes: spec.growth_bytes }
}

impl Store {
    /// Makes the files of a new database. `number` is the database's in waits and views.
    pub fn create(pool: &Arc<Pool>, env: &Env, number: u32, spec: &DatabaseSpec) -> Result<Arc<Self>, StorageError> {
        let mut made = Vec::new();
        let result = Self::create_files(pool, env, number, spec, &mut made);
        if result.is_err() {
            for file in made {
                let path = Arc::<dyn BlockFile>::clone(&file).path().to_owned();
                drop(file);
                // The first error is the one to tell; a file that cannot be removed either is found by its name.
                let _ = env.device.remove(&path);
            }
        }
        result
    }

    fn create_files(
        pool: &Arc<Pool>,
        env: &Env,
        number: u32,
        spec: &DatabaseSpec,
        made: &mut Vec<Arc<dyn BlockFile>>,
    ) -> Result<Arc<Self>, StorageError> {
        let mut stamp = [0; 8];
        env.random.fill(&mut stamp);
        let stamp = u64::from_le_bytes(stamp);
        let mut log = None;
        let mut table = Vec::new();
        if let Some(file) = spec.files.iter().find(|file| file.kind == FileKind::Log).filter(|_| !spec.temporary) {
            let device = env.device.open(&file.path, OpenMode::CreateNew)?;
            made.push(device.clone());
            log = Some(Log::create(device, log_config(&with_log_size(file)), stamp)?);
            table.push((LOG_FILE, with_log_size(file)));
        } else if !spec.temporary {
            return Err(StorageError::NotFound(format!("a log file of database {}", spec.name)));
        }
        let store = Self::assemble(&spec.name, number, env, pool, log);
        let rows = spec.files.iter().filter(|file| file.kind != FileKind::Log);
        for (at, file) in rows.enumerate() {
            // The primary file is 1, the log 2, as in SQL Server.
            let number = u16::try_from(if at == 0 { 1 } else { at + 2 });
            let number = number.map_err(|_| StorageError::TooLong { bytes: at, bytes_max: super::FILES_MAX })?;
            store.create_data_file(number, file, stamp, made)?;
            table.push((number, file.clone()));
        }
        store.create_boot(&BootFacts { stamp, files: table })?;
        store.write_all()?;
        store.checkpoint()?;
        Ok(store)
    }

    fn create_data_file(&self, number: u16, spec: &FileSpec, stamp: u64, made: &mut Vec<Arc<dyn BlockFile>>) -> Result<(), StorageError> {
        let FileKind::Rows { filegroup } = spec.kind else {
            return Err(StorageError::Bug("a log among the data files".into()));
        };
        if self.log().is_none() && self.env().device.exists(&spec.path) {
            // What a temporary database of an earlier start left.
            self.env().device.remove(&spec.path)?;
        }
        let device = self.env().device.open(&spec.path, OpenMode::CreateNew)?;
        made.push(device.clone());
        let pages = extents_of(spec.size_bytes).max(EXTENTS_MIN) * EXTENT_PAGES;
        device.set_len(u64::from(pages) * PAGE_BYTES as u64)?;
        self.add_file(DataFile::new(number, filegroup, spec.clone(), device, self.register(number), pages))?;
        let file = self.file(number)?;
        let mut mini = Mini::begin(self, TxnId(0));
        let header = mini.make_page(boot::file_header(number))?;
        mini.apply(header, PageOp::Format(own_page(PageType::FileHeader)))?;
        let facts = FileFacts { stamp, pages, file: number, filegroup };
        mini.apply(header, PageOp::RawPatch { offset: boot::FILE_FACTS, bytes: &facts.encode() })?;
        mini.commit()?;
        self.format_maps(file, 0, pages)
    }

    fn create_boot(&self, facts: &BootFacts) -> Result<(), StorageError> {
        let (facts, table) = facts.encode()?;
        let mut mini = Mini::begin(self, TxnId(0));
        let page = mini.make_page(BOOT)?;
        mini.apply(page, PageOp::Format(own_page(PageType::Boot)))?;
        mini.apply(page, PageOp::RawPatch { offset: boot::BOOT_FACTS, bytes: &facts })?;
        mini.apply(page, PageOp::RawPatch { offset: boot::BOOT_FILES, bytes: &table })?;
        let gam = mini.latch(PageId { file: 1, page: layout::gam(0) })?;
        mini.apply(gam, PageOp::MapBits { first: 0, count: PRIMARY_EXTENTS, value: 1, width: 1 })?;
        let pfs = mini.latch(PageId { file: 1, page: layout::pfs(0).0 })?;
        mini.apply(pfs, PageOp::MapBits { first: 0, count: layout::page_of(PRIMARY_EXTENTS), value: PFS_ALLOCATED, width: 8 })?;
        mini.commit().map(drop)
    }

    /// The part of the boot page that belongs to the trees' half.
    pub fn boot(&self) -> Result<[u8; boot::BOOT_TREES_BYTES], StorageError> {
        let page = self.read(BOOT)?;
        Ok(*page[usize::from(boot::BOOT_TREES)..].first_chunk().expect("the part lies in the page"))
    }
}

impl Mini<'_> {
    /// Overwrites bytes of the boot page's part that belongs to the trees' half. Latches the boot page: last of the
    /// caller's.
    pub fn patch_boot(&mut self, at: usize, bytes: &[u8]) -> Result<(), StorageError> {
        if at + bytes.len() > boot::BOOT_TREES_BYTES {
            return Err(StorageError::TooLong { bytes: at + bytes.len(), bytes_max: boot::BOOT_TREES_BYTES });
        }
        let page = self.latch(BOOT)?;
        let offset = boot::BOOT_TREES + u16::try_from(at).expect("checked above");
        self.apply(page, PageOp::RawPatch { offset, bytes })
    }
}

fn own_page(page_type: PageType) -> Format {
    Format { page_type, tree: TreeId(0), object_id: 0, index_id: 0, level: 0, creator: TxnId(0) }
}

fn with_log_size(spec: &FileSpec) -> FileSpec {
    let size_bytes = if spec.size_bytes == 0 { LOG_BYTES_DEFAULT } else { spec.size_bytes };
    FileSpec { size_bytes, ..spec.clone() }
}
