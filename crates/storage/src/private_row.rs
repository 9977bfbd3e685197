//! Rows of a tree that nobody else reads yet, set once and for all: what a build does to its target when it can do it again.
//!
//! A row that others may read gets its writer's name and leaves the version before it behind; in a leaf that was filled to the brim
//! that is a split, even for a row that goes. Here nobody asks who wrote a row, so it is as if the leaf had been made with it.
//!
//! Invariants: 1. the leaf's creator has committed, so that a row without a name of its own is seen by everybody
//! (`PrivateEditor::decide`). 2. Nothing is remembered for a rollback: whoever sets rows sets them again, or drops the tree.
//! Latches: a leaf, or a path to split it. Locks: the tree, shared. Failure: `Bug` for rows with large parts; storage's.

use crate::btree::{Decision, EditKind, Editor, RowEdit, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId};
use crate::locks::LockMode;
use crate::mini::Mini;
use crate::page::{PageBytes, Slotted, header};
use crate::spec::Row;
use crate::txn::{Txn, check_lengths};
use crate::versions::commit_table::Fate;

struct PrivateEditor<'t> {
    database: &'t Database,
    tree: TreeId,
    /// None takes it out.
    row: Option<&'t [u8]>,
    /// Leaves with rows that are gone.
    leaves: &'t mut Vec<(TreeId, PageId)>,
}

impl Txn {
    /// Makes `row` the row of `key`, or takes that out, in a tree that nobody else reads or writes: at once, and for good
    /// whatever becomes of this transaction. Leaves that lost rows are put in order once it has committed, if it changes another
    /// tree as well.
    ///
    /// # Errors
    /// Storage's; nothing is changed then.
    pub fn set_private(&mut self, tree: TreeId, key: &[u8], row: Option<&[u8]>) -> Result<(), StorageError> {
        check_lengths(key, Row::inline(row.unwrap_or_default()))?;
        let me = self.ensure_id()?;
        let place = self.open_tree(tree, LockMode::IS)?;
        let (database, info) = (self.database.clone(), self.trees[place].info.clone());
        let nodes = Tree { store: &database.store, info: &info, author: me, finishing: false };
        let mut editor = PrivateEditor { database: &database, tree, row, leaves: &mut self.leaves };
        nodes.edit(key, &mut self.edit, &database.settler(tree), &mut editor)
    }
}

impl Editor for PrivateEditor<'_> {
    type Outcome = ();

    fn decide(&mut self, page: &PageBytes, found: Result<usize, usize>, edit: &mut RowEdit) -> Result<Decision<()>, StorageError> {
        if self.database.commits.fate(header::creator_number(page)) != Fate::Committed {
            return Err(StorageError::Bug("a leaf of a tree that nobody else reads is not committed".into()));
        }
        if found.is_ok_and(|slot| !Slotted(page).entry(slot).large_bytes.is_empty()) {
            return Err(StorageError::Bug("a row that is set for good has large parts".into()));
        }
        if self.row.is_none() && found.map_or(true, |slot| Slotted(page).entry(slot).ghost) {
            return Ok(Decision::Leave(()));
        }
        edit.kind = if found.is_ok() { EditKind::Replace } else { EditKind::Insert };
        // What is left of a row that goes is the cleaner's, which sees to leaves that become empty.
        edit.ghost = self.row.is_none();
        edit.payload.extend_from_slice(self.row.unwrap_or_default());
        Ok(Decision::Apply(()))
    }

    fn push(&mut self, _mini: &mut Mini<'_>, _edit: &mut RowEdit) -> Result<(), StorageError> {
        Ok(())
    }

    fn done(&mut self, leaf: PageId, edit: &RowEdit) {
        if edit.ghost && self.leaves.last() != Some(&(self.tree, leaf)) {
            self.leaves.push((self.tree, leaf));
        }
    }
}
