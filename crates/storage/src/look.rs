//! Looking at the newest state of one row: what a point read at READ COMMITTED needs, without a view being made.
//!
//! ```text
//! handle(tree) once a plan ─► look(handle, own, key) ─► leaf latched shared ─► newest version
//!      its writer is the looker's transaction, or has committed and is published  ─► Seen, or Absent if it is a ghost
//!      no entry of the key                                                        ─► Absent
//!      anything else: somebody is changing the row, or aborted, or it is large    ─► Unsure: ask a view
//! ```
//! A statement that reads one row reads it at one moment, that of the latch: the answer is that of a view taken then, and
//! nothing has to be kept for it.
//!
//! Invariants: 1. a writer counts as committed only once its sequence is published ([`CommitTable::is_published`]), so
//! that a view taken after the look sees it too. 2. The tree is not dropped meanwhile: the caller keeps its object's
//! definition from changing. Latches: parent to child, shared. Failure: `Damage`, `Io`, `NoTree`.

use crate::btree::{Seek, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{TreeId, TxnId};
use crate::page::{Slotted, header};
use crate::units::TreeInfo;
use crate::versions::commit_table::txn_of;
use crate::versions::version::Version;
use std::sync::Arc;

/// A tree found once, for many looks. Good for as long as the tree is not dropped.
#[derive(Debug, Clone)]
pub struct TreeHandle(Arc<TreeInfo>);

impl TreeHandle {
    /// The tree.
    pub fn id(&self) -> TreeId {
        self.0.id
    }
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look<R> {
    /// The row, read.
    Seen(R),
    /// There is no such row.
    Absent,
    /// Its newest version is not for everybody, or not in one piece: a view must tell.
    Unsure,
}

impl Database {
    /// Finds a tree for looks at it.
    pub fn handle(&self, tree: TreeId) -> Result<TreeHandle, StorageError> {
        self.tree(tree, 0).map(TreeHandle)
    }

    /// Looks at the newest state of the row with `key`; `read` gets its bytes under the leaf's latch and must not wait.
    pub fn look<R>(
        &self,
        tree: &TreeHandle,
        own: Option<TxnId>,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Look<R>, StorageError> {
        let tree = Tree { store: &self.store, info: &tree.0, author: TxnId(0), finishing: false };
        let page = tree.leaf_for_read(Seek::Key(key), &mut |_, _| {})?;
        let leaf = Slotted(&page);
        let Ok(slot) = leaf.search(key) else { return Ok(Look::Absent) };
        let entry = leaf.entry(slot);
        let version = Version::of(&entry, header::creator_number(&page));
        let is_own = own.is_some_and(|own| txn_of(version.writer) == own.0);
        if !is_own && !self.commits.is_published(version.writer) {
            return Ok(Look::Unsure);
        }
        if version.ghost {
            return Ok(Look::Absent);
        }
        if !entry.large_bytes.is_empty() {
            return Ok(Look::Unsure);
        }
        if entry.packed {
            let mut whole = Vec::new();
            leaf.unpack(entry.payload, slot, &mut whole)?;
            return Ok(Look::Seen(read(&whole)));
        }
        Ok(Look::Seen(read(entry.payload)))
    }
}
