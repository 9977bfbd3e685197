//! Checkpoints: where recovery begins.
//!
//! ```text
//! [write dirty pages] -> sync bulk pages -> end = log end -> floor = oldest change the device lacks, or end
//!   -> snapshot of the transactions -> checkpoint record, flushed -> master record -> log before all of these is free
//! ```
//!
//! A checkpoint is fuzzy: nothing stops for it. Its cost is that of the dirty lists, never of the pool.
//!
//! 1. `redo_from` is not above any change of a page that the device lacks: the log's end is read before the lists, and a
//!    mini-transaction lists its pages before it appends ([`crate::mini::Mini`], 2).
//! 2. Every logical record below `logical_from` is in the transactions' bytes; those at or above are handed to recovery
//!    again, so applying one twice must do nothing ([`TransactionTable::snapshot`]).
//! 3. The master record is set only after the checkpoint record is durable, and the log is freed only after that.
//!
//! Locks: `CHECKPOINT` (1) for its whole length; no latch but tried ones. Failure: the last checkpoint stands.

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::log::{LogHoldup, Use};
use crate::pool::WriteBack;
use crate::record;
use crate::store::Store;
use crate::store::write::BATCH_PAGES;
use observe::sync::{LockClass, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use thawdb_observe as observe;

static CHECKPOINT: LockClass = LockClass::new("CHECKPOINT", 1);

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
    /// Whether the store's pages have left the pool for good.
    over: AtomicBool,
}

impl Checkpoints {
    pub(crate) fn new() -> Self {
        Self { one: Mutex::new(&CHECKPOINT, ()), table: OnceLock::new(), last_end: AtomicU64::new(0), over: AtomicBool::new(false) }
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

    /// Moves the start of recovery to what is on the device now, and frees the log before it.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        let Some(log) = self.log() else {
            return Ok(());
        };
        let _one = self.checkpoints.one.lock();
        self.check_usable()?;
        self.sync_bulk()?;
        let end = log.end();
        let pending = self.pending.oldest();
        let redo_from = self.dirty.set_floor(log.start(), pending.map_or(end, |oldest| oldest.min(end)));
        let log_end = || log.end();
        let (logical_from, transactions) = match self.checkpoints.table.get() {
            Some(table) => table.snapshot(&log_end),
            None => (end, Vec::new()),
        };
        log.checkpoint_fits(redo_from.min(logical_from))?;
        let record = record::checkpoint(&record::Checkpoint { redo_from, logical_from, transactions: &transactions });
        let mut lsns = Vec::new();
        let after = log.append(&[&record], Use::Checkpoint, &mut lsns)?;
        log.flush(after)?;
        let keep = redo_from.min(logical_from).min(lsns[0]);
        log.set_master(keep, &lsns[0].0.to_le_bytes())?;
        log.truncate_before(keep, if redo_from < end { LogHoldup::OldestPage } else { LogHoldup::Checkpoint });
        self.checkpoints.last_end.store(after.0, Ordering::Relaxed);
        Ok(())
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
