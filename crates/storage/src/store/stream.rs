//! New pages of bulk work: logged whole, then written past the pool in large requests while the next are being made.
//!
//! ```text
//! caller   pages 1: log ─┐ pages 2: log ─┐ pages 3: log ...         land 1: pool forgets, reachable from now on
//! device               └ flush log, write └ flush log, write ...
//! ```
//! A batch is durable by the log before its first page is written, as every page is; the wait for that and for the write
//! is a task of the device's threads, so the log's write of one batch goes on beside the data's write of the one before.
//!
//! A batch may also be *forced*: of its pages the log has only that they were made, and the device threads sync what they
//! wrote before it lands. Until then nobody reaches them; a crash before leaves garbage that redo names a `Run` page,
//! which no tree holds, so that a page lost after it landed is damage and never an empty leaf.
//!
//! Invariants: 1. pages are written only after the log is durable beyond their records (`write_batch`). 2. Redo from
//! before a batch's records stays possible until a sync has covered its write ([`Store::land`]). 3. A batch that was
//! started is waited for before its pages are given to others: [`Batch`] waits when it is dropped.
//!
//! Locks: `NEW_PAGES` (5) guards one batch's outcome. Blocking: `start_new_pages` when the log's buffer is full, `land`
//! until the batch is written. Failure: of the log's flush or the write, told by `land`; the pages are garbage then.

use super::Store;
use super::file::DataFile;
use super::write::place_mut;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId, TxnId};
use crate::log::format::RECORD_HEADER_BYTES;
use crate::log::{Log, ScanStart, Use};
use crate::page::{Format, PAGE_BYTES, PageBytes, PageOp, PageType, checksum, header};
use crate::pool::{AccessHint, Loaded};
use crate::record;
use observe::sync::{Condvar, LockClass, Mutex};
use std::ops::Range;
use std::sync::Arc;
use thawdb_device::{AlignedBuf, BlockFile, WriteRequest};
use thawdb_observe as observe;

static NEW_PAGES: LockClass = LockClass::new("NEW_PAGES", 5);

/// A batch of fewer pages is written by the caller: waking a thread costs more than it saves, even where the log has to be
/// synced first.
const ALONG_PAGES_MIN: usize = 8;

type Done = (AlignedBuf, Result<(), StorageError>);

/// Pages that are being written.
pub(crate) struct Batch {
    pub(crate) ids: Vec<PageId>,
    /// Bytes of log that its pages took.
    pub(crate) logged_bytes: u64,
    hold: u64,
    outcome: Option<Arc<Outcome>>,
}

struct Outcome {
    done: Mutex<Option<Done>>,
    arrived: Condvar,
}

impl Outcome {
    fn wait(&self) -> Done {
        let mut done = self.done.lock();
        loop {
            if let Some(done) = done.take() {
                return done;
            }
            self.arrived.wait(&mut done);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take() {
            // Whoever drops it has failed otherwise and gives the pages up.
            let _ = outcome.wait();
        }
    }
}

/// What a device thread needs to write a batch.
struct Job {
    log: Option<Arc<Log>>,
    upto: Lsn,
    runs: Vec<(Arc<dyn BlockFile>, u64, Range<usize>)>,
    buffer: AlignedBuf,
    page_count: usize,
    forced: bool,
    outcome: Arc<Outcome>,
}

impl Job {
    fn run(mut self) {
        let result = self.write_batch();
        *self.outcome.done.lock() = Some((self.buffer, result));
        self.outcome.arrived.notify_all();
    }

    fn write_batch(&mut self) -> Result<(), StorageError> {
        (0..self.page_count).for_each(|at| checksum::seal(place_mut(&mut self.buffer, at)));
        if let Some(log) = &self.log {
            log.flush(self.upto)?;
            assert!(log.durable() >= self.upto, "log before page");
        }
        for (file, offset, bytes) in &self.runs {
            file.write(&[WriteRequest { offset: *offset, buffer: &self.buffer[bytes.clone()] }])?;
        }
        let files = if self.forced { self.runs.as_slice() } else { &[] };
        for (at, (file, _, _)) in files.iter().enumerate() {
            if !files[..at].iter().any(|(known, _, _)| Arc::ptr_eq(known, file)) {
                file.sync()?;
            }
        }
        Ok(())
    }
}

impl Store {
    /// Logs whole new pages and begins to write them straight to the device, past the pool. The pages, in order at the
    /// front of `buffer` and formatted with their names, belong to no tree yet: nobody may reach them before
    /// [`Store::land`].
    pub(crate) fn start_new_pages(
        &self,
        ids: Vec<PageId>,
        mut buffer: AlignedBuf,
        txn: TxnId,
        forced: bool,
    ) -> Result<Batch, StorageError> {
        self.check_usable()?;
        let runs = self.runs_of(&ids)?;
        for (at, id) in ids.iter().enumerate() {
            assert!(header::page_id(place_mut(&mut buffer, at)) == *id, "a new page carries its name");
            self.pool.discard(&self.file(id.file)?.pool_file, id.page);
        }
        let scan = self.log.as_ref().map_or(ScanStart::default(), |log| log.scan_start());
        let hold = self.dirty.hold(self.log_end(), scan);
        let mut batch = Batch { ids, logged_bytes: 0, hold, outcome: None };
        if forced {
            self.bulk_pages.note();
        }
        let upto = match self.log_new_pages(&mut buffer, batch.ids.len(), txn, forced) {
            Ok((upto, logged_bytes)) => {
                if forced {
                    self.bulk_pages.note();
                }
                batch.logged_bytes = logged_bytes;
                upto
            }
            Err(error) => {
                self.keep_bulk_hold(hold);
                return Err(error);
            }
        };
        // The records start the pages afresh: what redo still owed them is of no use, and older than what they get.
        batch.ids.iter().for_each(|id| self.pending.remove(*id));
        let outcome = Arc::new(Outcome { done: Mutex::new(&NEW_PAGES, None), arrived: Condvar::new() });
        batch.outcome = Some(outcome.clone());
        let page_count = batch.ids.len();
        let job = Job { log: self.log.clone(), upto, runs, buffer, page_count, forced, outcome };
        match job.runs.first().map(|(file, _, _)| file.clone()) {
            Some(file) if page_count >= ALONG_PAGES_MIN => file.start_task(Box::new(move || job.run())),
            _ => job.run(),
        }
        Ok(batch)
    }

    /// Waits until a batch is written: its pages may be reached from now on. Gives the buffer back.
    pub(crate) fn land(&self, mut batch: Batch) -> Result<AlignedBuf, StorageError> {
        let outcome = batch.outcome.take().expect("a batch lands once");
        let (buffer, result) = outcome.wait();
        // After a failure too: it may be half on the device.
        self.keep_bulk_hold(batch.hold);
        result?;
        for (at, id) in batch.ids.iter().enumerate() {
            if self.log.is_some() {
                let page: &PageBytes = buffer[at * PAGE_BYTES..].first_chunk().expect("a place for each page");
                self.written.put(*id, header::lsn(page));
            }
            // Whoever followed an old reference here meanwhile has brought the old bytes into the pool.
            self.pool.discard(&self.file(id.file)?.pool_file, id.page);
        }
        if let Some((last, at)) = batch.ids.last().zip(batch.ids.len().checked_sub(1)) {
            self.let_in(*last, buffer[at * PAGE_BYTES..].first_chunk().expect("a place for each page"));
        }
        Ok(buffer)
    }

    /// Has the pool have a page as it is on the device, if it has room: what comes next hangs behind the last page of a batch, and
    /// would read it back for that.
    fn let_in(&self, page: PageId, bytes: &PageBytes) {
        let Some(mark) = self.absence(page) else { return };
        let Ok(file) = self.file_of(page) else { return };
        if let Some(mut loading) = self.pool.begin_load_since(&file.pool_file, page.page, mark) {
            *loading.bytes() = *bytes;
            loading.install(Loaded::Clean, AccessHint::Once, false);
        }
    }

    /// Logs and writes pages that follow each other from `first` on; they are durable by the log once it is flushed.
    pub fn write_new_pages(&self, first: PageId, pages: &[PageBytes], txn: TxnId) -> Result<(), StorageError> {
        let ids = (first.page..).take(pages.len()).map(|page| PageId { file: first.file, page }).collect();
        let mut buffer = AlignedBuf::zeroed(pages.len() * PAGE_BYTES);
        pages.iter().enumerate().for_each(|(at, page)| *place_mut(&mut buffer, at) = *page);
        let batch = self.start_new_pages(ids, buffer, txn, false)?;
        self.land(batch).map(drop)
    }

    /// Stretches of ids that follow each other: where they go, and where their bytes are in the buffer.
    fn runs_of(&self, ids: &[PageId]) -> Result<Vec<(Arc<dyn BlockFile>, u64, Range<usize>)>, StorageError> {
        let mut runs = Vec::new();
        let mut start = 0;
        while start < ids.len() {
            let first = ids[start];
            let follows = |at: &usize| ids[*at].file == first.file && ids[*at].page as usize == first.page as usize + at - start;
            let end = (start..ids.len()).take_while(follows).count() + start;
            let file: &DataFile = self.file_of(ids[end - 1])?;
            runs.push((file.device.clone(), u64::from(first.page) * PAGE_BYTES as u64, start * PAGE_BYTES..end * PAGE_BYTES));
            start = end;
        }
        Ok(runs)
    }

    /// Logs the pages whole and stamps their LSNs; where their records end, and how long they are.
    fn log_new_pages(&self, buffer: &mut AlignedBuf, count: usize, txn: TxnId, forced: bool) -> Result<(Lsn, u64), StorageError> {
        let Some(log) = &self.log else {
            return Ok((Lsn(0), 0));
        };
        // Groups of half the largest size: pages of a bulk write need not be atomic with each other.
        let group_bytes = log.group_bytes_max() / 2;
        let (mut end, mut logged_bytes) = (Lsn(0), 0);
        let (mut bytes, mut records, mut lsns) = (Vec::new(), Vec::new(), Vec::with_capacity(count));
        let mut at = 0;
        while at < count {
            bytes.clear();
            records.clear();
            while at + records.len() < count && (records.is_empty() || bytes.len() + (PAGE_BYTES + RECORD_HEADER_BYTES) < group_bytes) {
                let page = place_mut(buffer, at + records.len());
                debug_assert!(crate::page::verify::first_violation(page, header::page_id(page)).is_none(), "a new page is sound");
                let start = bytes.len();
                record::begin_page(&mut bytes, header::page_id(page), Lsn(0), txn);
                if forced {
                    PageOp::Format(name_of(page)).encode(&mut bytes);
                } else {
                    PageOp::encode_whole(page, &mut bytes);
                }
                records.push(start..bytes.len());
            }
            let group: Vec<&[u8]> = records.iter().map(|record| &bytes[record.clone()]).collect();
            end = log.append(&group, Use::Normal, &mut lsns)?;
            logged_bytes += bytes.len() as u64;
            at += group.len();
        }
        for (at, lsn) in lsns.iter().enumerate() {
            header::set_lsn_number(place_mut(buffer, at), lsn.0);
        }
        Ok((end, logged_bytes))
    }
}

/// What redo makes of a forced page that never reached the device: it has its name and no place in any tree.
fn name_of(page: &PageBytes) -> Format {
    Format {
        page_type: PageType::Run,
        tree: header::tree(page),
        object_id: header::object_id(page),
        index_id: header::index_id(page),
        level: 0,
        creator: header::creator(page),
    }
}
