//! Writing pages: dirty ones back from the pool, new ones straight to the device.
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
use crate::ids::{Lsn, PageId, TxnId};
use crate::log::format::RECORD_HEADER_BYTES;
use crate::log::{ScanStart, Use};
use crate::page::{PAGE_BYTES, PageBytes, PageOp, checksum, header};
use crate::pool::{BegunWrite, WriteBack};
use crate::record;
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
/// Images logged, flushed and written at once: 4 MiB, so that the log's sync is small beside the writes (at 64 pages it was
/// most of the time), and still a small buffer.
const IMAGE_CHUNK_PAGES: usize = 512;

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

    /// Logs whole new pages as images and writes them straight to the device in large requests, past the pool: for bulk
    /// work on pages from [`crate::mini::Mini::allocate_run`]. The pages follow each other from `first` on; each must be
    /// formatted with its own name. They are durable by the log once it is flushed to what is returned.
    pub fn write_new_pages(&self, first: PageId, pages: &[PageBytes], txn: TxnId) -> Result<Lsn, StorageError> {
        let last = u32::try_from(pages.len()).ok().and_then(|count| first.page.checked_add(count.saturating_sub(1)));
        let last = last.ok_or_else(|| StorageError::Bug("a run beyond the file".into()))?;
        let file = self.file_of(PageId { file: first.file, page: last })?;
        let scan = self.log.as_ref().map_or(ScanStart::default(), |log| log.scan_start());
        let hold = self.dirty.hold(self.log_end(), scan);
        let result = self.write_image_chunks(file, first, pages, txn);
        // After a failure too: chunks before it may be half on the device.
        self.writer.bulk.lock().push(hold);
        result
    }

    fn write_image_chunks(&self, file: &DataFile, first: PageId, pages: &[PageBytes], txn: TxnId) -> Result<Lsn, StorageError> {
        let mut end = Lsn(0);
        for (number, chunk) in pages.chunks(IMAGE_CHUNK_PAGES).enumerate() {
            let start = first.page + u32::try_from(number * IMAGE_CHUNK_PAGES).expect("checked by the caller");
            let mut buffer = AlignedBuf::zeroed(chunk.len() * PAGE_BYTES);
            for (at, page) in chunk.iter().enumerate() {
                let id = PageId { file: file.number, page: start + u32::try_from(at).expect("few") };
                if let Some(violation) = crate::page::verify::first_violation(page, id) {
                    return Err(StorageError::Bug(format!("page {id:?} to be written: {violation:?}")));
                }
                *place_mut(&mut buffer, at) = *page;
                self.pool.discard(&file.pool_file, id.page);
            }
            end = self.log_images(&mut buffer, chunk.len(), txn)?;
            let ids = (start..).take(chunk.len()).map(|page| PageId { file: file.number, page });
            // The images start the pages afresh: what redo still owed them is of no use, and older than what they get.
            ids.clone().for_each(|id| self.pending.remove(id));
            (0..chunk.len()).for_each(|at| checksum::seal(place_mut(&mut buffer, at)));
            self.flush_log(end)?;
            file.device.write(&[WriteRequest { offset: u64::from(start) * PAGE_BYTES as u64, buffer: &buffer }])?;
            // Whoever followed an old reference here meanwhile has brought the old bytes into the pool.
            ids.for_each(|id| self.pool.discard(&file.pool_file, id.page));
        }
        Ok(end)
    }

    fn log_images(&self, buffer: &mut AlignedBuf, count: usize, txn: TxnId) -> Result<Lsn, StorageError> {
        let Some(log) = &self.log else {
            return Ok(Lsn(0));
        };
        let mut records = Vec::with_capacity(count);
        for at in 0..count {
            let page = place_mut(buffer, at);
            let mut bytes = Vec::new();
            record::begin_page(&mut bytes, header::page_id(page), Lsn(0), txn);
            PageOp::Image { lz4: &PageOp::compress(page) }.encode(&mut bytes);
            records.push(bytes);
        }
        let mut lsns = Vec::with_capacity(count);
        let mut end = Lsn(0);
        // Groups of half the largest size: pages of a bulk write need not be atomic with each other.
        let group_bytes = log.group_bytes_max() / 2;
        let mut rest: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|record| {
                bytes += record.len() + RECORD_HEADER_BYTES;
                bytes <= group_bytes
            });
            let group: Vec<&[u8]> = rest.drain(..fitting.count().max(1)).collect();
            end = log.append(&group, Use::Normal, &mut lsns)?;
        }
        for (at, lsn) in lsns.iter().enumerate() {
            header::set_lsn_number(place_mut(buffer, at), lsn.0);
        }
        Ok(end)
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

fn place_mut(buffer: &mut AlignedBuf, at: usize) -> &mut PageBytes {
    buffer[at * PAGE_BYTES..].first_chunk_mut().expect("a place for each page")
}

fn bytes_at(buffer: &AlignedBuf, at: usize, pages: usize) -> &[u8] {
    &buffer[at * PAGE_BYTES..(at + pages) * PAGE_BYTES]
}
