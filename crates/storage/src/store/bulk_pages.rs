//! Minimal logging: which bulk work is logged by its extents only, and how a log backup comes by what the log lacks.
//!
//! ```text
//! FULL          new pages are in the log, whole
//! BULK_LOGGED   the log has that pages were made ─► BACKUP LOG finds these records and copies the pages beside the log
//! SIMPLE        the same; nobody backs the log up
//! ```
//! No map of changed extents is kept: the log that a backup copies names the pages itself, and log is kept until it is
//! backed up. Sorted runs of index operations are forced under every model and come along the same way.
//!
//! Invariants: 1. every forced page whose record is in the log backed up is in this backup, or, if it had not reached the
//! device yet, in the next one that is made before a restart (`Store::copy_forced_pages`); after a restart it belongs to
//! nobody, because a batch is reachable only once it is on the device. 2. A page is copied as it is on the device or newer;
//! what changed it later is in the log behind its making.
//!
//! Locks: `BULK_PAGES` (5) guards the pages to be copied by a later backup; log backups come one at a time. Failure: the
//! device's and the sink's.

use super::Store;
use super::data_backup::BackupSink;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::log::{Log, RecoveryModel};
use crate::page::{PAGE_BYTES, PageBytes, PageOp, PageType, checksum, header};
use crate::record::{self, Record};
use observe::sync::{LockClass, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_device::{AlignedBuf, ReadRequest};
use thawdb_observe as observe;

static BULK_PAGES: LockClass = LockClass::new("BULK_PAGES", 5);

/// Pages read and given at once: 1 MiB.
const RUN_PAGES: usize = 128;

type Pages = BTreeMap<PageId, Lsn>;

/// What log backups have to know of forced pages.
pub(crate) struct BulkPages {
    /// Pages may have been forced since the last log backup. Set before and after the records are appended, so that neither
    /// the backup that has them nor the one after misses them; true after a start, when nothing is known.
    any: AtomicBool,
    /// Guarded by `BULK_PAGES`: pages that were on their way when their records were backed up.
    late: Mutex<Pages>,
}

impl BulkPages {
    pub(crate) fn new() -> Self {
        Self { any: AtomicBool::new(true), late: Mutex::new(&BULK_PAGES, Pages::new()) }
    }

    /// Pages are being forced.
    pub(crate) fn note(&self) {
        // Sequentially consistent with the backup's `take`; what it protects is ordered by the log's own locks.
        self.any.store(true, Ordering::SeqCst);
    }

    /// Whether log from the last backup to now may name forced pages: to be asked before the end of that log is taken.
    pub(crate) fn take(&self) -> bool {
        self.any.swap(false, Ordering::SeqCst)
    }
}

impl Store {
    /// Whether bulk work may leave the contents of new pages out of the log.
    pub(crate) fn logs_bulk_work_by_extent(&self) -> bool {
        self.log().is_some_and(|log| log.policy().model != RecoveryModel::Full)
    }

    /// Gives `sink` the pages that log from `first` up to `last` only names. Returns how many. After a copy-only backup the
    /// next one has them again.
    pub(crate) fn copy_forced_pages(
        &self,
        log: &Arc<Log>,
        (first, last): (Lsn, Lsn),
        copy_only: bool,
        sink: &mut dyn BackupSink,
    ) -> Result<u64, StorageError> {
        let mut pages = self.bulk_pages.late.lock().clone();
        forced_pages(log, first, last, &mut pages)?;
        let (copied, late) = self.copy_pages(&pages, sink)?;
        if !copy_only {
            *self.bulk_pages.late.lock() = late;
        }
        Ok(copied)
    }

    /// Copies pages; returns how many, and those that are not on the device yet.
    fn copy_pages(&self, pages: &Pages, sink: &mut dyn BackupSink) -> Result<(u64, Pages), StorageError> {
        let all: Vec<(PageId, Lsn)> = pages.iter().map(|(page, lsn)| (*page, *lsn)).collect();
        let (mut copied, mut late) = (0, Pages::new());
        let follows = |a: &(PageId, Lsn), b: &(PageId, Lsn)| a.0.file == b.0.file && a.0.page + 1 == b.0.page;
        for run in all.chunk_by(follows).flat_map(|run| run.chunks(RUN_PAGES)) {
            let first = run[0].0;
            let file = self.file(first.file)?;
            let mut buffer = AlignedBuf::zeroed(run.len() * PAGE_BYTES);
            file.device.read(&mut [ReadRequest { offset: u64::from(first.page) * PAGE_BYTES as u64, buffer: &mut buffer }])?;
            let is_there = |(at, (page, lsn)): (usize, &(PageId, Lsn))| {
                let bytes: &PageBytes = buffer[at * PAGE_BYTES..].first_chunk().expect("a place for each page");
                checksum::verify(bytes, *page).is_ok() && header::lsn(bytes) >= *lsn
            };
            let there: Vec<bool> = run.iter().enumerate().map(is_there).collect();
            let mut at = 0;
            for stretch in there.chunk_by(|a, b| a == b) {
                let end = at + stretch.len();
                if stretch[0] {
                    sink.pages(run[at].0, &buffer[at * PAGE_BYTES..end * PAGE_BYTES])?;
                    copied += stretch.len() as u64;
                } else {
                    late.extend(run[at..end].iter().copied());
                }
                at = end;
            }
        }
        Ok((copied, late))
    }
}

/// Adds the pages whose making, without contents, is in the log from `first` up to `last`.
fn forced_pages(log: &Arc<Log>, first: Lsn, last: Lsn, pages: &mut Pages) -> Result<(), StorageError> {
    let mut reader = log.reader(first)?;
    while let Some((lsn, bytes)) = reader.next_record()? {
        if lsn >= last {
            break;
        }
        let Ok(Record::Page(record)) = record::decode(bytes) else { continue };
        let is_forced = matches!(record.ops().next(), Some(Ok(PageOp::Format(format))) if format.page_type == PageType::Run);
        if is_forced {
            pages.insert(record.page, lsn);
        } else if record.starts_afresh() {
            // It was given to others, and the log has all of it.
            pages.remove(&record.page);
        }
    }
    Ok(())
}
