//! The data files of an open database: added, removed, set, cut at the end. The boot page's table says which there are.
//!
//! ```text
//! add      make it, write header and maps there, sync ─► table ─► usable
//! remove   nothing is taken from it ─► empty? ─► checkpoint beyond all its records ─► table ─► forgotten, deleted
//! cut      nothing is taken from beyond ─► checkpoint beyond all records of it ─► length in its header ─► device
//! ```
//!
//! 1. A file is in the table only when its header and maps are durable, and its pages are in the log only when it is in
//!    the table ([`Store::add_data_file`]): recovery reads the boot page with what the log adds to it before it opens
//!    other files.
//! 2. What is removed or cut has no record that recovery would still read ([`Store::pass_checkpoint`]).
//! 3. The file's own extents, and whatever is reserved in memory, count as in use ([`crate::space::Space::cut_file`]).
//!
//! Locks: `FILE_CHANGES` (1) throughout, `SPACE_GROWTH` (2) where lengths change. Readers are never stopped.
//! Failure: a crash leaves the table with or without the file; a file made and not listed is left lying.

use super::Store;
use super::boot::{self, BootFacts, FileFacts, IamFacts};
use super::create::{LOG_FILE, log_config};
use super::file::{DataFile, extents_of};
use crate::error::StorageError;
use crate::ids::{Lsn, PageId, TreeId, TxnId};
use crate::mini::Mini;
use crate::page::op::apply;
use crate::page::{Format, PAGE_BYTES, PageBytes, PageOp, PageType, checksum};
use crate::space::layout::{self, BOOT, EXTENT_PAGES, INTERVAL_PAGES, PFS_ALLOCATED, PFS_PAGES};
use crate::space::{SYSTEM_UNIT, Unit};
use crate::spec::{FileKind, FileSpec};
use std::sync::atomic::{AtomicU64, Ordering};
use thawdb_device::{AlignedBuf, BlockFile, OpenMode, WriteRequest};

/// Fewest extents of a file that is not the primary one: its maps, and as many again.
const EXTENTS_MIN: u32 = 8;
/// Tries to bring the start of recovery past a point while writers keep pages latched.
const CHECKPOINT_TRIES: u32 = 8;

/// A file that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrunk {
    /// Its length now.
    pub bytes: u64,
    /// Bytes of its extents in use.
    pub used_bytes: u64,
}

/// How a removal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The file is gone.
    Removed,
    /// It is not empty and stays.
    NotEmpty,
}

/// The read-only filegroups, a bit for each; those from 63 on share one.
#[derive(Default)]
pub(crate) struct ReadOnly(AtomicU64);

impl Store {
    /// Says which filegroups are read-only: trees in them cannot be opened for writing.
    pub fn set_read_only(&self, filegroups: &[u16]) {
        let bits = filegroups.iter().fold(0, |bits, number| bits | 1_u64 << (*number).min(63));
        // Release: whoever sets it has seen every writer end.
        self.read_only.0.store(bits, Ordering::Release);
    }

    /// `ReadOnly` if the filegroup of a tree about to be written is.
    pub(crate) fn check_writable(&self, filegroup: u16, tree: TreeId) -> Result<(), StorageError> {
        if self.read_only.0.load(Ordering::Acquire) & 1 << filegroup.min(63) == 0 {
            Ok(())
        } else {
            Err(StorageError::ReadOnly { filegroup, tree })
        }
    }

    /// The table of files: number and settings.
    pub fn file_table(&self) -> Result<Vec<(u16, FileSpec)>, StorageError> {
        Ok(self.boot_facts()?.files)
    }

    /// What the boot page says, with the files where they are.
    fn boot_facts(&self) -> Result<BootFacts, StorageError> {
        let mut facts = BootFacts::decode(&*self.read(BOOT)?)?;
        self.relocated.apply(&mut facts);
        Ok(facts)
    }

    /// Changes the table of files; durable on return.
    fn change_table(&self, change: impl FnOnce(&mut BootFacts)) -> Result<(), StorageError> {
        let end = self.log_table(change)?;
        self.flush_log(end)
    }

    /// Changes the table of files; durable with the log up to what is returned.
    fn log_table(&self, change: impl FnOnce(&mut BootFacts)) -> Result<Lsn, StorageError> {
        let mut facts = self.boot_facts()?;
        change(&mut facts);
        let (head, mut table) = facts.encode()?;
        table.resize(PAGE_BYTES - usize::from(boot::BOOT_FILES), 0);
        let mut mini = Mini::begin(self, TxnId(0));
        let page = mini.latch(BOOT)?;
        mini.apply(page, PageOp::RawPatch { offset: boot::BOOT_FACTS, bytes: &head })?;
        mini.apply(page, PageOp::RawPatch { offset: boot::BOOT_FILES, bytes: &table })?;
        mini.commit()
    }

    /// Adds a data file. Returns its number. `Io(AlreadyExists)` if there is a file of the path.
    pub fn add_data_file(&self, spec: &FileSpec) -> Result<u16, StorageError> {
        let FileKind::Rows { filegroup } = spec.kind else {
            return Err(StorageError::Bug("a log among the data files".into()));
        };
        let _one = self.file_changes.lock();
        let number = (LOG_FILE + 1..).find(|number| !self.is_number_taken(*number)).expect("numbers do not run out");
        if usize::from(number) > super::FILES_MAX {
            return Err(StorageError::TooLong { bytes: usize::from(number), bytes_max: super::FILES_MAX });
        }
        let stamp = self.boot_facts()?.stamp;
        let device = self.env().device.open(&spec.path, OpenMode::CreateNew)?;
        let pages = extents_of(spec.size_bytes).max(EXTENTS_MIN) * EXTENT_PAGES;
        let facts = FileFacts { stamp, pages, file: number, filegroup };
        let listed = make_file(&*device, &facts).and_then(|()| self.log_table(|table| table.files.push((number, spec.clone()))));
        let listed = listed.inspect_err(|_| {
            // The first error is the one to tell; a file that cannot be removed either is found by its name.
            let _ = self.env().device.remove(&spec.path);
        })?;
        // A log write that failed may have arrived all the same, and then the table has the file after a restart: it stays.
        self.flush_log(listed)?;
        self.add_file(DataFile::new(number, filegroup, spec.clone(), device, self.register(number), pages))?;
        // IAM pages may lie in it now.
        self.space.forget_unit(SYSTEM_UNIT);
        Ok(number)
    }

    /// Changes a file's settings; `number` may be the log's. What they mean for its size is done by whoever asks.
    pub fn change_file(&self, number: u16, change: impl FnOnce(&mut FileSpec)) -> Result<(), StorageError> {
        let _one = self.file_changes.lock();
        let table = self.file_table()?;
        let is_it = |known: u16, spec: &FileSpec| if number == LOG_FILE { spec.kind == FileKind::Log } else { known == number };
        let found = table.into_iter().find(|(known, spec)| is_it(*known, spec));
        let (_, mut spec) = found.ok_or_else(|| StorageError::NotFound(format!("file {number} of database {}", self.name())))?;
        change(&mut spec);
        self.change_table(|table| {
            table.files.iter_mut().filter(|(known, old)| is_it(*known, old)).for_each(|(_, old)| *old = spec.clone());
        })?;
        match self.log().filter(|_| spec.kind == FileKind::Log) {
            Some(log) => log.set_config(log_config(&spec)),
            None if spec.kind == FileKind::Log => {}
            None => self.file(number)?.set_spec(spec),
        }
        Ok(())
    }

    /// Makes a data file at least this long.
    pub fn grow_data_file(&self, number: u16, bytes: u64) -> Result<(), StorageError> {
        let _one = self.file_changes.lock();
        let _growing = self.growth.lock();
        let file = self.file(number)?;
        let pages = extents_of(bytes) * EXTENT_PAGES;
        if pages > file.pages() { self.grow_file(file, pages) } else { Ok(()) }
    }

    /// Extents in use of a file, and the first behind the last in use.
    pub fn used_extents(&self, number: u16) -> Result<(u32, u32), StorageError> {
        loop {
            match self.space.used_extents(number) {
                Ok(found) => return Ok(found),
                Err(need) => self.satisfy(Unit(PageId::NONE), need)?,
            }
        }
    }

    /// Brings the start of recovery past what is logged now; false if pages in use kept it back.
    fn pass_checkpoint(&self) -> Result<bool, StorageError> {
        let Some(log) = self.log() else { return Ok(true) };
        self.finish_redo()?;
        let now = log.end();
        for _ in 0..CHECKPOINT_TRIES {
            self.write_all()?;
            self.checkpoint()?;
            if log.checkpoint_lsn() >= now {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the free extents at the end of a file back, down to `target_bytes`.
    pub fn shrink_file(&self, number: u16, target_bytes: u64) -> Result<Shrunk, StorageError> {
        let _one = self.file_changes.lock();
        let file = self.file(number)?;
        let before = file.pages();
        let least = if number == 1 { 2 * layout::PRIMARY_EXTENTS } else { EXTENTS_MIN };
        let target = extents_of(target_bytes).max(least);
        let shrunk = |pages: u32| -> Result<Shrunk, StorageError> {
            let bytes = |pages: u32| u64::from(pages) * PAGE_BYTES as u64;
            Ok(Shrunk { bytes: bytes(pages), used_bytes: bytes(self.used_extents(number)?.0 * EXTENT_PAGES) })
        };
        let growing = self.growth.lock();
        let extents = loop {
            match self.space.cut_file(number, target) {
                Ok(extents) => break extents,
                Err(need) => self.satisfy(Unit(PageId::NONE), need)?,
            }
        };
        drop(growing);
        let pages = extents * EXTENT_PAGES;
        if pages >= before {
            return shrunk(before);
        }
        let cut = self.pass_checkpoint().and_then(|passed| if passed { self.cut_to(file, pages).map(|()| true) } else { Ok(false) });
        if !matches!(cut, Ok(true)) {
            self.space.set_file(number, file.filegroup, file.pages());
        }
        cut?;
        shrunk(file.pages())
    }

    fn cut_to(&self, file: &DataFile, pages: u32) -> Result<(), StorageError> {
        let _growing = self.growth.lock();
        let before = file.pages();
        let mut mini = Mini::begin(self, TxnId(0));
        let header = mini.latch(boot::file_header(file.number))?;
        let facts = FileFacts { pages, ..FileFacts::decode(mini.page(header)) };
        mini.apply(header, PageOp::RawPatch { offset: boot::FILE_FACTS, bytes: &facts.encode() })?;
        let end = mini.commit()?;
        file.set_pages(pages);
        for page in pages..before {
            if file.pool_file.is_present(page) {
                self.pool().discard(&file.pool_file, page);
            }
            // What lies there after the file has grown again is not what was written last.
            self.written.forget(PageId { file: file.number, page });
        }
        self.flush_log(end)?;
        file.device.set_len(u64::from(pages) * PAGE_BYTES as u64)?;
        Ok(file.device.sync()?)
    }

    /// Removes a data file, if nothing is in it.
    pub fn remove_data_file(&self, number: u16) -> Result<Removal, StorageError> {
        let _one = self.file_changes.lock();
        let file = self.file(number)?;
        self.space.close_file(number, true);
        let empty = self.used_extents(number).and_then(|(_, end)| if end == 0 { self.pass_checkpoint() } else { Ok(false) });
        if !matches!(empty, Ok(true)) {
            self.space.close_file(number, false);
            return empty.map(|_| Removal::NotEmpty);
        }
        let listed = self.change_table(|table| table.files.retain(|(known, _)| *known != number));
        if let Err(error) = listed {
            self.space.close_file(number, false);
            return Err(error);
        }
        file.set_removed();
        self.space.forget_file(number);
        self.space.forget_unit(SYSTEM_UNIT);
        self.pool().forget(&file.pool_file);
        // It is out of the table; what cannot be deleted is only left lying.
        let _ = self.env().device.remove(&file.spec().path);
        Ok(Removal::Removed)
    }
}

/// Writes header and maps of a new file, durably.
fn make_file(device: &dyn BlockFile, facts: &FileFacts) -> Result<(), StorageError> {
    device.set_len(u64::from(facts.pages) * PAGE_BYTES as u64)?;
    write_page(
        device,
        facts.file,
        layout::FILE_HEADER_PAGE,
        PageType::FileHeader,
        &[PageOp::RawPatch { offset: boot::FILE_FACTS, bytes: &facts.encode() }],
    )?;
    let mut base = 0;
    while base < facts.pages {
        let own = PageOp::MapBits { first: 0, count: EXTENT_PAGES, value: PFS_ALLOCATED, width: 8 };
        write_page(device, facts.file, base + 1, PageType::Pfs, &[own])?;
        if base.is_multiple_of(INTERVAL_PAGES) {
            let interval = base / INTERVAL_PAGES;
            let taken = |number: u32| PageOp::MapBits { first: number * (PFS_PAGES / EXTENT_PAGES), count: 1, value: 1, width: 1 };
            let taken: Vec<_> = (0..INTERVAL_PAGES / PFS_PAGES).map(taken).collect();
            write_page(device, facts.file, layout::gam(interval), PageType::Gam, &taken)?;
            let iam = IamFacts { file: facts.file, filegroup: facts.filegroup, interval }.encode();
            write_page(
                device,
                facts.file,
                layout::system_iam(interval),
                PageType::Iam,
                &[PageOp::RawPatch { offset: boot::IAM_FACTS, bytes: &iam }],
            )?;
            write_page(device, facts.file, layout::dcm(interval), PageType::Dcm, &[])?;
            write_page(device, facts.file, layout::ml(interval), PageType::Ml, &[])?;
        }
        base += PFS_PAGES;
    }
    Ok(device.sync()?)
}

fn write_page(device: &dyn BlockFile, file: u16, page: u32, page_type: PageType, ops: &[PageOp<'_>]) -> Result<(), StorageError> {
    let id = PageId { file, page };
    let format = Format { page_type, tree: TreeId(0), object_id: 0, index_id: 0, level: 0, creator: TxnId(0) };
    let mut buffer = AlignedBuf::zeroed(PAGE_BYTES);
    let bytes: &mut PageBytes = buffer.first_chunk_mut().expect("one page");
    for op in std::iter::once(&PageOp::Format(format)).chain(ops) {
        apply(bytes, id, op).map_err(|error| StorageError::Bug(format!("map {id:?} of a new file: {error:?}")))?;
    }
    debug_assert_eq!(crate::page::header::lsn(bytes), Lsn(0), "no record made it");
    checksum::seal(bytes);
    Ok(device.write(&[WriteRequest { offset: u64::from(page) * PAGE_BYTES as u64, buffer: &buffer }])?)
}
