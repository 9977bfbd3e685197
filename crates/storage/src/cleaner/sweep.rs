//! Sweeping trees for rows of aborted transactions: after a crash, or after a rollback that could not finish.
//!
//! ```text
//!   aborted set ──> trees they touched, the units tree first ──> leaves left to right, a few a turn ──> forgotten
//! ```
//! Rows move only to the right of where they are (splits), and the sweep goes left to right by key, so none is missed.
//! Rows of the aborted cannot come to be while it goes on: their transactions have ended.
//!
//! Invariants: 1. only transactions that were aborted when the sweep began are forgotten at its end. 2. A tree made by an
//! aborted transaction is freed before its row goes. Latches: one leaf at a time. Failure: the sweep begins anew.

use super::each_leaf;
use crate::btree::{Decision, EditKind, Editor, RowEdit};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::mini::Mini;
use crate::page::{PageBytes, Slotted, header};
use crate::row_change::{Original, give_back, original, push_versions};
use crate::units::TreeInfo;
use crate::versions::commit_table::Fate;
use crate::versions::records::TxnRecord;
use crate::versions::version::Version;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Leaves looked at in a turn.
const TURN_LEAVES: usize = 256;

/// A sweep under way.
pub(super) struct Sweep {
    txns: Vec<u64>,
    trees: Vec<TreeId>,
    after: Option<Vec<u8>>,
}

/// Gives a row of an aborted writer back.
pub(super) struct GiveBack<'a> {
    pub(super) database: &'a Database,
    pub(super) tree: TreeId,
    pub(super) freed: &'a mut Vec<u8>,
}

fn key_at(page: &PageBytes, slot: usize) -> Vec<u8> {
    let mut key = Vec::new();
    Slotted(page).key(slot, &mut key);
    key
}

impl Editor for GiveBack<'_> {
    type Outcome = ();

    fn decide(&mut self, page: &PageBytes, found: Result<usize, usize>, edit: &mut RowEdit) -> Result<Decision<()>, StorageError> {
        let Ok(slot) = found else { return Ok(Decision::Leave(())) };
        let creator = header::creator_number(page);
        let version = Version::of(&Slotted(page).entry(slot), creator);
        if self.database.commits.fate(version.writer) != Fate::Aborted {
            return Ok(Decision::Leave(()));
        }
        give_back(self.database, &version, creator, edit)?;
        if edit.kind == EditKind::Remove && self.database.ghost_is_locked(header::tree(page), &key_at(page, slot)) {
            // Its lock may stand for the gap below it: the sweep begins anew later.
            return Err(StorageError::LockTimeout);
        }
        Ok(Decision::Apply(()))
    }

    fn push(&mut self, mini: &mut Mini<'_>, edit: &mut RowEdit) -> Result<(), StorageError> {
        push_versions(self.database, mini, edit, self.tree, TxnId(0), false)
    }

    fn done(&mut self, _leaf: PageId, edit: &RowEdit) {
        self.freed.extend_from_slice(&edit.freed_large);
    }
}

impl Database {
    /// A piece of the sweep, begun if there is reason to; true if there is more.
    pub(super) fn sweep_turn(&self, sweep: &mut Option<Sweep>) -> Result<bool, StorageError> {
        if sweep.is_none() {
            let mut aborted = self.commits.aborted();
            for txn in self.cleaner.deferred() {
                aborted.remove(&txn);
            }
            if aborted.is_empty() {
                return Ok(false);
            }
            let touched: BTreeSet<u64> = aborted.values().flatten().copied().collect();
            // Taken from the end: the units tree comes first, so that trees it makes vanish are not looked for.
            let mut trees: Vec<TreeId> = touched.into_iter().map(TreeId).filter(|tree| *tree != Self::UNITS_TREE).collect();
            trees.push(Self::UNITS_TREE);
            *sweep = Some(Sweep { txns: aborted.into_keys().collect(), trees, after: None });
        }
        let going = sweep.as_mut().expect("begun above");
        let outcome = self.sweep_on(going);
        match outcome {
            Ok(true) => Ok(true),
            Ok(false) => {
                let done = sweep.take().expect("begun above");
                self.forget_aborted(&done.txns)?;
                Ok(true)
            }
            Err(error) => {
                *sweep = None;
                Err(error)
            }
        }
    }

    pub(super) fn forget_aborted(&self, txns: &[u64]) -> Result<(), StorageError> {
        let mut mini = Mini::begin(&self.store, TxnId(0)).finishing();
        for txn in txns {
            mini.log_only(&TxnRecord::Reverted(TxnId(*txn)).encode());
        }
        mini.commit()?;
        txns.iter().for_each(|txn| self.commits.reverted(TxnId(*txn)));
        Ok(())
    }

    fn sweep_on(&self, sweep: &mut Sweep) -> Result<bool, StorageError> {
        let Some(tree) = sweep.trees.last().copied() else { return Ok(false) };
        let info = match self.tree(tree, 0) {
            Ok(info) => info,
            Err(StorageError::NoTree(_)) => {
                sweep.trees.pop();
                sweep.after = None;
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let mut keys = Vec::new();
        let mut left = TURN_LEAVES;
        let mut last_key = sweep.after.clone();
        let mut finished = true;
        each_leaf(self, &info, sweep.after.as_deref(), &mut |page| {
            let leaf = Slotted(page);
            let creator = header::creator_number(page);
            for slot in 0..leaf.len() {
                let version = Version::of(&leaf.entry(slot), creator);
                let mut key = Vec::new();
                leaf.key(slot, &mut key);
                if self.commits.fate(version.writer) == Fate::Aborted {
                    keys.push(key.clone());
                }
                last_key = Some(key);
            }
            left -= 1;
            // Without a key to go on from, the turn goes on to the next leaf.
            finished = left > 0 || last_key == sweep.after;
            Ok(finished)
        })?;
        self.give_rows_back(&info, &keys)?;
        if finished {
            sweep.trees.pop();
            sweep.after = None;
        } else {
            sweep.after = last_key;
        }
        Ok(!sweep.trees.is_empty())
    }

    fn give_rows_back(&self, info: &Arc<TreeInfo>, keys: &[Vec<u8>]) -> Result<(), StorageError> {
        let mut freed = Vec::new();
        let mut edit = RowEdit::default();
        for key in keys {
            if info.id == Self::UNITS_TREE {
                self.free_aborted_tree(key)?;
            }
            let mut editor = GiveBack { database: self, tree: info.id, freed: &mut freed };
            let tree = crate::btree::Tree { finishing: true, ..self.system_tree(info) };
            tree.edit(key, &mut edit, &self.settler(info.id), &mut editor)?;
        }
        if !freed.is_empty() {
            self.cleaner.free_large(vec![(info.id, freed)]);
        }
        Ok(())
    }

    /// Frees the pages of a tree that an aborted transaction made.
    fn free_aborted_tree(&self, key: &[u8]) -> Result<(), StorageError> {
        let mut made = None;
        each_leaf(self, self.units(), Some(key), &mut |page| {
            let leaf = Slotted(page);
            if let Ok(slot) = leaf.search(key) {
                let entry = leaf.entry(slot);
                let version = Version::of(&entry, header::creator_number(page));
                let aborted = self.commits.fate(version.writer) == Fate::Aborted;
                if aborted && matches!(original(self, &version)?, Original::Absent) {
                    made = Some(TreeInfo::decode(key, entry.payload)?);
                }
            }
            Ok(false)
        })?;
        match made {
            Some(info) => {
                self.forget_tree(info.id);
                self.free_tree_pages(&info)
            }
            None => Ok(()),
        }
    }
}
