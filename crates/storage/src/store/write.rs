//! Writing dirty pages back from the pool. New pages of bulk work go straight to the device: [`super::stream`].
//!
//! ```text
//! take from the dirty lists -> copy under shared latches -> flush the log -> doublewrite region, sync -> in place, sync
//!                                                                            (unless the log can make the page anew)
//! ```
//!
//! 1. Before a page is written, the log is durable beyond its last change ([`Store::write_copies`] asserts it).
//! 2. A page of which a crash may leave half of the old and half of the new bytes lies whole in the doublewrite region,
//!    or the log from the last checkpoint on can make it without its old bytes ([`super::dirty::DirtyLists::rely_on`]).
//! 3. The region is used again only after everything it protects is synced in place: one user at a time.
//!
//! Locks: `DOUBLEWRITE` (2) around the region's use, after any page latches of the caller; latches here are only tried.
//!
//! Failure: after a failed write the pages are dirty again and listed, and a later try may succeed. After a failed sync
//! nothing is known of any earlier write, so the store refuses changes and checkpoints ([`Store::sync_file`]) until it is
//! opened again: recovery then starts where the last good checkpoint says.

use super::Store;
use super::dirty::{DirtyPage, Taken};
use super::file::DataFile;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::page::{PAGE_BYTES, PageBytes, checksum, header};
use crate::pool::{BegunWrite, WriteBack};
use crate::space::layout::{DOUBLEWRITE_PAGE, DOUBLEWRITE_PAGES};
use observe::counter::{Counter, CounterKind};
use observe::sync::{LockClass, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_device::{AlignedBuf, WriteRequest};
use thawdb_observe as observe;

static DOUBLEWRITE: LockClass = LockClass::new("DOUBLEWRITE", 2);
static BULK: LockClass = LockClass::new("BULK_HOLDS", 5);
static WRITES: Counter = Counter::new("Buffer Manager", "Page writes/sec", CounterKind::PerSecond);

/// Pages written at once: those that need the doublewrite region must fit there.
pub const BATCH_PAGES: usize = DOUBLEWRITE_PAGES as usize;

/// State of the writer.
pub struct Writer {
    doublewrite: Mutex<()>,
    /// Holds of bulk writes that no sync has covered yet.
    bulk: Mutex<Vec<u64>>,
    /// Whether a sync of a data file failed.
    failed: AtomicBool,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self { doublewrite: Mutex::new(&DOUBLEWRITE, ()), bulk: Mutex::new(&BULK, Vec::new()), failed: AtomicBool::new(false) }
    }
}

struct Copied {
    page: PageId,
    frame: u32,
    recovery: Lsn,
    /// Place in the buffer.
    at: usize,
    /// Whether the log alone can make it.
    afresh: bool,
}

impl WriteBack for Store {
    fn write_back(&self, pages_max: usize) -> Result<usize, StorageError> {
        self.check_usable()?;
        let taken = self.dirty.take(pages_max.min(BATCH_PAGES));
        if taken.pages.is_empty() {
            self.dirty.done(&taken, &[]);
            return Ok(0);
        }
        let mut back = Vec::new();
        let written = self.write_taken(&taken, &mut back);
        self.dirty.done(&taken, &back);
        written
    }
}

impl Store {
    /// `Poisoned` if a sync has failed since the database was opened.
    pub(crate) fn check_usable(&self) -> Result<(), StorageError> {
        if self.writer.failed.load(Ordering::Acquire) { Err(StorageError::Poisoned) } else { Ok(()) }
    }

    fn sync_file(&self, file: &DataFile) -> Result<(), StorageError> {
        file.device.sync().map_err(|error| {
            self.writer.failed.store(true, Ordering::Release);
            error.into()
        })
    }

    fn write_taken(&self, taken: &Taken, back: &mut Vec<DirtyPage>) -> Result<usize, StorageError> {
        let mut buffer = AlignedBuf::zeroed(taken.pages.len() * PAGE_BYTES);
        let mut copied: Vec<Copied> = Vec::with_capacity(taken.pages.len());
        let mut upto = Lsn(0);
        for (page, recovery) in &taken.pages {
            let at = copied.len();
            let out = place_mut(&mut buffer, at);
            match self.pool.begin_write(&self.file(page.file)?.pool_file, page.page, out) {
                BegunWrite::Begun { frame, recovery: own, group_end, afresh } => {
                    upto = upto.max(group_end);
                    let afresh = self.dirty.rely_on(taken, afresh);
                    copied.push(Copied { page: *page, frame, recovery: own.min(*recovery), at, afresh });
                }
                BegunWrite::Clean => {}
                BegunWrite::Busy => back.push((*page, *recovery)),
            }
        }
        let result = self.flush_log(upto).and_then(|()| self.write_copies(&copied, &mut buffer, upto));
        for one in &copied {
            // Before others may change the page and write it again; after a failure nobody knows what the device has.
            match &result {
                Ok(()) if self.log.is_some() => self.written.put(one.page, header::lsn(place_mut(&mut buffer, one.at))),
                _ => self.written.forget(one.page),
            }
            self.pool.end_write(one.frame, result.is_err().then_some(one.recovery));
            if result.is_err() {
                back.push((one.page, one.recovery));
            }
        }
        WRITES.add(copied.len() as u64);
        result.map(|()| copied.len())
    }

    fn write_copies(&self, copied: &[Copied], buffer: &mut AlignedBuf, upto: Lsn) -> Result<(), StorageError> {
        for one in copied {
            let page = place_mut(buffer, one.at);
            assert!(header::lsn(page) <= upto, "page {:?} is ahead of the flushed log", one.page);
            // A new page whose mini-transaction failed is blank, and stays what the device has for a page never written.
            if !header::is_blank(page) {
                checksum::seal(page);
            }
        }
        if self.log.is_none() {
            return self.write_in_place(copied, buffer).map(drop);
        }
        assert!(self.log.as_ref().is_none_or(|log| log.durable() >= upto), "log before page");
        let protected: Vec<&Copied> = copied.iter().filter(|one| !one.afresh).collect();
        let _region = self.writer.doublewrite.lock();
        if !protected.is_empty() {
            self.write_region(&protected, buffer)?;
        }
        for file in self.write_in_place(copied, buffer)? {
            self.sync_file(file)?;
        }
        Ok(())
    }

    fn write_region(&self, protected: &[&Copied], buffer: &AlignedBuf) -> Result<(), StorageError> {
        let mut region = AlignedBuf::zeroed(protected.len() * PAGE_BYTES);
        for (place, one) in protected.iter().enumerate() {
            region[place * PAGE_BYTES..(place + 1) * PAGE_BYTES].copy_from_slice(bytes_at(buffer, one.at, 1));
        }
        let file = self.file(1)?;
        file.device.write(&[WriteRequest { offset: u64::from(DOUBLEWRITE_PAGE) * PAGE_BYTES as u64, buffer: &region }])?;
        self.sync_file(file)
    }

    /// Writes the copies where they belong, neighbours together. Returns the files touched.
    fn write_in_place(&self, copied: &[Copied], buffer: &AlignedBuf) -> Result<Vec<&DataFile>, StorageError> {
        let mut touched = Vec::new();
        for file in self.files() {
            let mut requests = Vec::new();
            let mut rest = copied.iter().filter(|one| one.page.file == file.number).peekable();
            while let Some(first) = rest.next() {
                let mut count = 1;
                while rest.next_if(|next| next.page.page == first.page.page + count && next.at == first.at + count as usize).is_some() {
                    count += 1;
                }
                let offset = u64::from(first.page.page) * PAGE_BYTES as u64;
                requests.push(WriteRequest { offset, buffer: bytes_at(buffer, first.at, count as usize) });
            }
            if !requests.is_empty() {
                file.device.write(&requests)?;
                touched.push(file);
            }
        }
        Ok(touched)
    }

    /// Keeps a hold until a sync covers what was written under it.
    pub(crate) fn keep_bulk_hold(&self, hold: u64) {
        self.writer.bulk.lock().push(hold);
    }

    /// Makes bulk writes durable in place, so that redo need not keep their images.
    pub(crate) fn sync_bulk(&self) -> Result<(), StorageError> {
        let holds = std::mem::take(&mut *self.writer.bulk.lock());
        if holds.is_empty() {
            return Ok(());
        }
        let synced = self.files().try_for_each(|file| self.sync_file(file));
        if let Err(error) = synced {
            self.writer.bulk.lock().extend(holds);
            return Err(error);
        }
        holds.into_iter().for_each(|hold| self.dirty.release(hold));
        Ok(())
    }
}

pub(super) fn place_mut(buffer: &mut AlignedBuf, at: usize) -> &mut PageBytes {
    buffer[at * PAGE_BYTES..].first_chunk_mut().expect("a place for each page")
}

fn bytes_at(buffer: &AlignedBuf, at: usize, pages: usize) -> &[u8] {
    &buffer[at * PAGE_BYTES..(at + pages) * PAGE_BYTES]
}
