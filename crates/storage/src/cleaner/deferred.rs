//! Rollbacks of many rows: the transaction has aborted and let its locks go; its rows are given back here, a turn at a time.
//!
//! ```text
//!   Txn::rollback ──abort, unlock──> Deferred (undo entries, log reserve) ──newest first──> rows given back ──> "nothing left"
//! ```
//! A row may have been reverted already, by a writer who met it, and be another's since: then it is left alone. An entry for
//! a further change of the same row needs nothing: giving a row back goes behind all versions of its transaction.
//!
//! Invariants: 1. the transaction is forgotten only after every row it changed was looked at. 2. It holds the log space that
//! its undoing may need until then. Latches: one path at a time. Failure: the rest is left to the sweep, which finds it
//! without the entries, as after a crash.

use super::Cleaner;
use super::sweep::GiveBack;
use crate::btree::{RowEdit, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{TreeId, TxnId};
use crate::row_change::LogReserve;
use crate::undo::{Undo, UndoLog};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Rows given back in a turn.
const TURN_ROWS: usize = 1000;

/// A rollback to be done.
pub(crate) struct Deferred {
    pub(crate) txn: TxnId,
    pub(crate) undo: UndoLog,
    pub(crate) reserve: LogReserve,
}

impl Cleaner {
    /// Rows up to which a transaction rolls itself back.
    pub(crate) fn eager_rows_max(&self) -> u64 {
        // Relaxed: a setting.
        self.eager_rows_max.load(Ordering::Relaxed)
    }

    pub(crate) fn defer(&self, deferred: Deferred) {
        self.queue.lock().deferred.push_back(deferred);
    }

    /// Transactions whose rows are given back by their entries.
    pub(super) fn deferred(&self) -> BTreeSet<u64> {
        self.queue.lock().deferred.iter().map(|deferred| deferred.txn.0).collect()
    }
}

impl Database {
    /// Sets up to how many changed rows a rollback is done by its own transaction, under its locks.
    pub fn set_eager_rollback_rows(&self, rows_max: u64) {
        self.cleaner.eager_rows_max.store(rows_max, Ordering::Relaxed);
    }

    /// Gives back some rows of the oldest deferred rollback; true if there is more.
    pub(super) fn roll_back_turn(&self) -> Result<bool, StorageError> {
        let Some(mut deferred) = self.cleaner.queue.lock().deferred.pop_front() else { return Ok(false) };
        let outcome = self.roll_back_some(&mut deferred);
        match outcome {
            Ok(true) => {
                self.cleaner.queue.lock().deferred.push_front(deferred);
                Ok(true)
            }
            Ok(false) => {
                let forgotten = self.forget_aborted(&[deferred.txn.0]);
                deferred.reserve.release(self);
                forgotten.map(|()| true)
            }
            Err(error) => {
                deferred.reserve.release(self);
                Err(error)
            }
        }
    }

    fn roll_back_some(&self, deferred: &mut Deferred) -> Result<bool, StorageError> {
        let mut edit = RowEdit::default();
        for _ in 0..TURN_ROWS {
            match deferred.undo.pop(0) {
                Some(Undo::First { tree, key }) => self.give_row_back(tree, &key, &mut edit)?,
                Some(Undo::Again { .. }) => {}
                Some(other) => return Err(StorageError::Bug(format!("{other:?} in a rollback of rows"))),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn give_row_back(&self, tree: TreeId, key: &[u8], edit: &mut RowEdit) -> Result<(), StorageError> {
        let info = match self.tree(tree, 0) {
            Ok(info) => info,
            // Dropped since, and its rows with it.
            Err(StorageError::NoTree(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut freed = Vec::new();
        let mut editor = GiveBack { database: self, tree, freed: &mut freed };
        let tree = Tree { finishing: true, ..self.system_tree(&info) };
        tree.edit(key, edit, &self.settler(info.id), &mut editor)?;
        if !freed.is_empty() {
            self.cleaner.free_large(vec![(info.id, freed)]);
        }
        Ok(())
    }
}
