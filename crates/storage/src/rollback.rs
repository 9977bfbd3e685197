//! Undoing: from the newest undo entry back to a point, each step a logged change like any other; or, where that would take
//! long, at once: the transaction is aborted, its locks go, and the cleaner gives its rows back by the same entries.
//!
//! ```text
//!   few changes, or trees made or filled  ──> undone here, then "nothing left"
//!   many rows                             ──> aborted: read through and reverted by who meets them ──> cleaner ──> "nothing left"
//! ```
//! A step may use the log's reserve, which its change set aside. If a step fails all the same (a device, a damaged
//! page), the transaction is abandoned: aborted, its rows read through and reverted by who meets them or by the cleaner.
//!
//! Tried: undoing always here. A transaction of 5,000,000 rows holds its table's lock then for the half minute it takes.
//!
//! Invariants: 1. after `roll_back_all` the transaction holds nothing and is as new. 2. "Nothing left" is logged only
//! when every step has succeeded. Latches and failure: as for changes.

use crate::btree::Tree;
use crate::cleaner::Deferred;
use crate::error::StorageError;
use crate::ids::{TreeId, TxnId};
use crate::mini::Mini;
use crate::row_change::UndoEditor;
use crate::txn::{Savepoint, Txn};
use crate::undo::Undo;
use crate::versions::records::TxnRecord;

impl Txn {
    /// Undoes everything after `to`, newest first; locks are kept. If that fails, the transaction can only be ended, and
    /// will have been rolled back as a whole.
    pub fn rollback_to(&mut self, to: Savepoint) -> Result<(), StorageError> {
        let outcome = self.undo_down_to(to.0);
        if outcome.is_err() {
            self.failed = true;
        }
        outcome
    }

    pub(crate) fn roll_back_all(&mut self) {
        if let Some(me) = self.id.filter(|_| self.is_long()) {
            self.database.commits.abandon(me);
            // The reserve goes along: the rows are given back though the log be full.
            let (undo, reserve) = (std::mem::take(&mut self.undo), std::mem::take(&mut self.reserve));
            self.database.cleaner.defer(Deferred { txn: me, undo, reserve });
        } else if let Some(me) = self.id {
            match self.undo_down_to(0).and_then(|()| self.log_reverted(me)) {
                Ok(()) if !self.failed => self.database.commits.reverted(me),
                _ => {
                    self.database.commits.abandon(me);
                    self.database.forget_trees_of(me);
                }
            }
        }
        self.finish();
    }

    /// Whether others would wait for its locks while its rows are undone.
    fn is_long(&self) -> bool {
        !self.failed && self.undo.is_of_rows() && self.undo.entry_count() > self.database.cleaner.eager_rows_max()
    }

    fn log_reverted(&mut self, me: TxnId) -> Result<(), StorageError> {
        if self.failed || self.trees.iter().all(|tree| tree.touch) {
            return Ok(());
        }
        let mut mini = Mini::begin(&self.database.store, me).finishing();
        mini.log_only(&TxnRecord::Reverted(me).encode());
        mini.commit().map(drop)
    }

    fn undo_down_to(&mut self, to: usize) -> Result<(), StorageError> {
        if self.failed {
            return Err(StorageError::Bug("a rollback that failed goes on".into()));
        }
        while let Some(step) = self.undo.pop(to) {
            self.undo_step(step)?;
        }
        Ok(())
    }

    fn undo_step(&mut self, step: Undo) -> Result<(), StorageError> {
        match step {
            Undo::First { tree, key } => self.undo_row(tree, &key, None),
            Undo::Again { tree, key, entry, record } => self.undo_row(tree, &key, Some((&entry, record))),
            Undo::TreeDropped { tree } => {
                self.dropped.retain(|info| info.id != tree);
                let me = self.ensure_id()?;
                self.database.tree(tree, 0)?.set_dropped_by(0);
                debug_assert!(me.0 != 0);
                Ok(())
            }
            Undo::TreeMade { tree } => {
                let info = self.database.tree(tree, 0)?;
                self.database.forget_tree(tree);
                self.trees.retain(|known| known.info.id != tree);
                self.database.free_tree_pages(&info)
            }
            Undo::Appended { tree, above } => {
                let info = self.database.tree(tree, 0)?;
                let me = self.ensure_id()?;
                let large = crate::bulk::undo(&self.database, &info, me, above.as_deref())?;
                if !large.is_empty() {
                    self.freed_large.push((tree, large));
                }
                Ok(())
            }
        }
    }

    fn undo_row(&mut self, tree: TreeId, key: &[u8], restore: Option<(&[u8], u64)>) -> Result<(), StorageError> {
        let me = self.ensure_id()?;
        let database = self.database.clone();
        let info = database.tree(tree, 0)?;
        let tree = Tree { store: &database.store, info: &info, author: me, finishing: true };
        let mut editor = UndoEditor { database: &database, freed_large: &mut self.freed_large, me, tree: info.id, restore };
        tree.edit(key, &mut self.edit, &database.settler(info.id), &mut editor)
    }
}
