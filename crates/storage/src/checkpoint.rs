//! Checkpoints: where recovery begins.
//!
//! ```text
//! sync bulk pages -> scan = start of the log's last block -> floor = oldest change the device lacks, or the log's end
//!   -> snapshots: transactions, loose large parts, dirty pages with their newest changes
//!   -> their records, checkpoint record, flushed -> master record -> log before all of these is free
//! ```
//!
//! A checkpoint is fuzzy: nothing stops for it, and it writes no page. Its cost is that of the dirty lists, never of the
//! pool. Since it tells which pages are dirty and where their chains of records begin, the next open looks only through the
//! log from `scan` on, however far back redo will have to go.
//!
//! 1. `redo_from` is not above any change of a page that the device lacks: the log's end is read before the lists, and a
//!    mini-transaction lists its pages before it appends ([`crate::mini::Mini`], 2).
//! 2. Each page with a change that the device may lack is in a record of dirty pages with its newest change, or has that
//!    change in a block from `scan` on: the block is read first, the LSN of a page under its latch later; what bulk work
//!    writes past the pool holds `scan` back until it is synced ([`Store::missing_pages`]).
//! 3. Every logical record below `logical_from` is in the transactions' bytes; those at or above are handed to recovery
//!    again, so applying one twice must do nothing ([`TransactionTable::snapshot`]). The same holds for the list of loose
//!    parts (`store::loose`). Images lie in records of their own between `logical_from` and the checkpoint record.
//! 4. The master record is set only after the checkpoint record is durable, and the log is freed only after that.
//!
//! Locks: `CHECKPOINT` (1) for its whole length; no latch but tried ones. Failure: the last checkpoint stands.
//! A list of dirty pages that the log has no room for is made short by writing them.

use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::log::{Log, LogHoldup, ScanStart, Use};
use crate::pool::WriteBack;
use crate::record::{self, LooseChange, MissingPage};
use crate::store::Store;
use crate::store::dirty::DirtyPage;
use crate::store::write::BATCH_PAGES;
use observe::sync::{LockClass, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thawdb_observe as observe;

static CHECKPOINT: LockClass = LockClass::new("CHECKPOINT", 1);

/// Loose parts in one record: 28 KiB, which fits the smallest log.
const LOOSE_PARTS: usize = 2048;

/// Dirty pages in one record: 22 KiB.
const DIRTY_PAGES: usize = 1024;
/// How often a checkpoint looks again at pages that somebody changes, and how long it waits between: latches are held for
/// microseconds, unless a page is being read or written.
const BUSY_ROUNDS: usize = 20;
const BUSY_PAUSE: Duration = Duration::from_micros(100);

/// What a checkpoint asks the transactions' half.
pub trait TransactionTable: Send + Sync {
    /// Its state as bytes, and an LSN: every logical record below it is reflected in them. Records at or above may be
    /// too, and will be handed to recovery again. `log_end` reads the log's end.
    fn snapshot(&self, log_end: &dyn Fn() -> Lsn) -> (Lsn, Vec<u8>);
}

/// State of checkpoints of one database.
pub struct Checkpoints {
    one: Mutex<()>,
    table: OnceLock<Arc<dyn TransactionTable>>,
    /// Log end at the last checkpoint.
    last_end: AtomicU64,
    /// Where the log began that the last checkpoint kept.
    last_keep: AtomicU64,
    /// Whether the store's pages have left the pool for good.
    over: AtomicBool,
}

impl Checkpoints {
    pub(crate) fn new() -> Self {
        Self {
            one: Mutex::new(&CHECKPOINT, ()),
            table: OnceLock::new(),
            last_end: AtomicU64::new(0),
            last_keep: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }
}

impl Checkpoints {
    /// What the last checkpoint kept of the log begins here.
    pub(crate) fn keep(&self) -> Lsn {
        Lsn(self.last_keep.load(Ordering::Relaxed))
    }

    /// Takes over where the last checkpoint before an open was.
    pub(crate) fn found(&self, keep: Lsn, checkpoint: Lsn) {
        self.last_keep.store(keep.0, Ordering::Relaxed);
        self.last_end.store(checkpoint.0, Ordering::Relaxed);
    }
}

impl Store {
    /// Says whom checkpoints ask for the transactions; once, after opening or making.
    pub fn set_transaction_table(&self, table: Arc<dyn TransactionTable>) {
        let set = self.checkpoints.table.set(table);
        assert!(set.is_ok(), "a database has one table of transactions");
    }

    /// Writes every page that is dirty now, except those that stay latched.
    pub fn write_all(&self) -> Result<(), StorageError> {
        // Twice as many batches as the list needs: pages becoming dirty meanwhile must not keep it going for ever.
        let batches = 2 * self.dirty.len().div_ceil(BATCH_PAGES) + 2;
        for _ in 0..batches {
            if self.dirty.is_empty() {
                break;
            }
            self.write_back(BATCH_PAGES)?;
        }
        Ok(())
    }

    /// Writes down where recovery begins now, with the pages that are dirty, and frees the log before. Pages are written by
    /// others: by [`Self::write_all`] before, or a few at a time.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        let Some(log) = self.log() else {
            return Ok(());
        };
        let _one = self.checkpoints.one.lock();
        self.check_usable()?;
        self.sync_bulk()?;
        match self.checkpoint_with_pages(log) {
            // The list of dirty pages is too long for what is left of the log.
            Err(StorageError::LogFull { .. }) => {
                self.write_all()?;
                self.checkpoint_with_pages(log)
            }
            other => other,
        }
    }

    fn checkpoint_with_pages(&self, log: &Arc<Log>) -> Result<(), StorageError> {
        let scan = log.scan_start();
        let end = log.end();
        let pending = self.pending.oldest();
        let redo_from = self.dirty.set_floor(log.start(), pending.map_or(end, |oldest| oldest.min(end)));
        let log_end = || log.end();
        let (logical_from, transactions) = match self.checkpoints.table.get() {
            Some(table) => table.snapshot(&log_end),
            None => (end, Vec::new()),
        };
        let (loose_from, loose) = self.loose.snapshot(log_end);
        let logical_from = logical_from.min(loose_from);
        let (pages, scan) = self.missing_pages(log, scan);
        let images = pages.chunks(DIRTY_PAGES).map(record::dirty);
        let images: Vec<_> = images.chain(loose.chunks(LOOSE_PARTS).map(|parts| record::loose(LooseChange::Image, parts))).collect();
        log.checkpoint_fits(redo_from.min(logical_from).min(scan.at))?;
        // A short list may use what is kept free for checkpoints; a long one must not use what rollbacks have reserved.
        let usage = if images.len() <= 2 { Use::Checkpoint } else { Use::Normal };
        for image in &images {
            log.append(&[image], usage, &mut Vec::new())?;
        }
        let record = record::checkpoint(&record::Checkpoint { redo_from, logical_from, transactions: &transactions });
        let mut lsns = Vec::new();
        let after = log.append(&[&record], Use::Checkpoint, &mut lsns)?;
        log.flush(after)?;
        let keep = redo_from.min(logical_from).min(lsns[0]).min(scan.at);
        log.set_master(keep, scan, &lsns[0].0.to_le_bytes())?;
        log.truncate_before(keep, if redo_from < end { LogHoldup::OldestPage } else { LogHoldup::Checkpoint });
        // Relaxed, as below: estimates of the background's.
        self.checkpoints.last_keep.store(keep.0, Ordering::Relaxed);
        self.checkpoints.last_end.store(after.0, Ordering::Relaxed);
        Ok(())
    }

    /// Pages with changes that the device may lack, as of a moment not before `scan`, and from where on the log tells of
    /// all others.
    fn missing_pages(&self, log: &Log, scan: ScanStart) -> (Vec<MissingPage>, ScanStart) {
        // Those to be redone first: a page that is redone meanwhile is on a dirty list before it leaves them.
        let mut missing = self.pending.all();
        let (dirty, holds) = self.dirty.all();
        let mut scan = holds.map_or(scan, |holds| holds.min(scan));
        let mut busy = Vec::new();
        let mut add = |(page, recovery): DirtyPage, busy: &mut Vec<DirtyPage>| match self.newest_change(page) {
            Ok(Some(newest)) => missing.push((page, recovery.min(newest), newest)),
            // It has been written, or is a new page that never was.
            Ok(None) => {}
            Err(()) => busy.push((page, recovery)),
        };
        dirty.into_iter().for_each(|page| add(page, &mut busy));
        for _ in 0..BUSY_ROUNDS {
            if busy.is_empty() {
                break;
            }
            self.env().clock.sleep(BUSY_PAUSE);
            std::mem::take(&mut busy).into_iter().for_each(|page| add(page, &mut busy));
        }
        // Somebody holds on to them: recovery will look for their changes in the log.
        for (_, recovery) in busy {
            scan = scan.min(log.scan_start_before(recovery));
        }
        missing.sort_unstable();
        missing.dedup();
        (missing, scan)
    }

    fn newest_change(&self, page: PageId) -> Result<Option<Lsn>, ()> {
        let Ok(file) = self.file(page.file) else { return Ok(None) };
        Ok(self.pool().page_lsn(&file.pool_file, page.page)?.filter(|lsn| *lsn > Lsn(0)))
    }

    /// Bytes logged since the last checkpoint.
    pub fn log_bytes_since_checkpoint(&self) -> u64 {
        self.log_end().0.saturating_sub(self.checkpoints.last_end.load(Ordering::Relaxed))
    }

    /// Ends the database's work: everything dirty is written, and the next open has nothing to redo. Nobody uses the
    /// store any more; its pages leave the pool.
    pub fn close(&self) -> Result<(), StorageError> {
        self.finish_redo()?;
        self.write_all()?;
        let result = self.checkpoint();
        self.discard_all();
        result
    }

    /// Drops every page from the pool unwritten, as a crash would.
    pub fn discard_all(&self) {
        // Once: the pool gives the places of forgotten files to others.
        if self.checkpoints.over.swap(true, Ordering::AcqRel) {
            return;
        }
        self.files().for_each(|file| self.pool().forget(&file.pool_file));
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.discard_all();
    }
}
