//! B+trees: ordered maps from keys to rows on pages, changed one entry at a time or filled in order.
//!
//! ```text
//!   descend  from the root to a leaf, coupling latches        edit     what becomes of one entry
//!   split    a full node becomes two                          compact  a full leaf loses tags, ghosts, what its rows share
//!   node     children, separators, where to cut               append   whole leaves at the right end
//!   tidy     a leaf put in order, an empty leaf unlinked     merge    sparse nodes put together, roots made lower
//!   divide   keys that make parts of about one size          places   many leaves brought into the pool at once
//! ```
//! A tree knows nothing of transactions: what becomes of an entry is decided by the caller in [`Tree::edit`], under the
//! leaf's latch, and whether a writer is seen by everybody is asked through [`Settler`].
//!
//! Invariants: 1. one `edit` is one atomic group of the log, the version it pushes included. 2. `decide` may be called
//! more than once and changes nothing; `push` is called once for each group that commits, after `decide`.
//! Latches: parent to child, then left to right, then version pages, then maps. Splits of one tree exclude each other by
//! the root's latch. Failure: an error before `push` leaves everything as it was.
//!
//! Further reading: Graefe, "Modern B-Tree Techniques" (2011), sections 3 (prefix truncation) and 4 (latching).

mod append;
mod compact;
mod descend;
mod divide;
mod edit;
mod merge;
mod node;
mod pack;
mod places;
mod split;
mod tidy;

pub(crate) use append::NewLeaf;
pub(crate) use descend::Seek;
pub(crate) use edit::{EditKind, RowEdit};
pub(crate) use node::separator as separator_between;
pub(crate) use tidy::Tidied;

use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::mini::Mini;
use crate::page::{PageBytes, PageOp, Slotted, header};
use crate::store::Store;
use crate::units::TreeInfo;
use split::SplitDone;

/// Tells who is seen by everybody, so that a full leaf can be cleaned before it is split.
pub(crate) trait Settler {
    /// Whether every view sees the writer.
    fn seen_by_all(&self, writer: u64) -> bool;
    /// Whether ghosts may go too.
    fn purges_ghosts(&self) -> bool;
    /// Whether the ghost of this key must stay because somebody has locked it.
    fn ghost_is_locked(&self, key: &[u8]) -> bool;
}

/// What `decide` says of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision<R> {
    /// Leave it.
    Leave(R),
    /// Change it as the edit says.
    Apply(R),
    /// Change it as the edit says, then decide again.
    ApplyAndLookAgain,
}

/// The caller's part of an edit.
pub(crate) trait Editor {
    /// What the edit leads to.
    type Outcome;
    /// Looks at the leaf, where the key is or would be, and fills `edit`.
    fn decide(
        &mut self,
        page: &PageBytes,
        found: Result<usize, usize>,
        edit: &mut RowEdit,
    ) -> Result<Decision<Self::Outcome>, StorageError>;
    /// Tells, before `decide`, of the leaf to the right if the edit itself has it latched: `decide` must not latch it again.
    fn beside(&mut self, right: Option<&PageBytes>) -> Result<(), StorageError> {
        let _ = right;
        Ok(())
    }
    /// Puts into the same group what belongs to the edit: version records, logical records.
    fn push(&mut self, mini: &mut Mini<'_>, edit: &mut RowEdit) -> Result<(), StorageError>;
    /// The group has been committed.
    fn done(&mut self, leaf: PageId, edit: &RowEdit);
}

/// The child in a slot, for reading ahead.
pub(crate) fn child_of(node: Slotted<'_>, slot: usize) -> Option<PageId> {
    node::child_at(node, slot).ok()
}

/// A tree in its database.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'a> {
    pub(crate) store: &'a Store,
    pub(crate) info: &'a TreeInfo,
    /// The transaction that the log names as the author of changes.
    pub(crate) author: TxnId,
    /// Changes undo others and may use the log's reserve.
    pub(crate) finishing: bool,
}

impl<'a> Tree<'a> {
    /// Begins a mini-transaction; with `finishing`, one that must be able to end though the log is full.
    fn begin(&self) -> Mini<'a> {
        let mini = Mini::begin(self.store, self.author);
        if self.finishing { mini.finishing() } else { mini }
    }

    /// Changes the entry of `key` as `editor` decides.
    pub(crate) fn edit<E: Editor>(
        &self,
        key: &[u8],
        edit: &mut RowEdit,
        settler: &dyn Settler,
        editor: &mut E,
    ) -> Result<E::Outcome, StorageError> {
        loop {
            let mut mini = self.begin();
            let leaf = self.leaf_for_write(&mut mini, Seek::Key(key))?;
            let found = Slotted(mini.page(leaf)).search(key);
            edit.clear();
            editor.beside(None)?;
            let decision = editor.decide(mini.page(leaf), found, edit)?;
            if let Decision::Leave(outcome) = decision {
                return Ok(outcome);
            }
            let (Ok(slot) | Err(slot)) = found;
            let decision = if edit.fits(mini.page(leaf), slot, key) {
                editor.push(&mut mini, edit)?;
                edit.install(&mut mini, leaf, slot, key)?;
                let id = mini.id(leaf);
                mini.commit()?;
                editor.done(id, edit);
                decision
            } else {
                drop(mini);
                self.edit_full_leaf(key, edit, settler, editor)?
            };
            match decision {
                Decision::Apply(outcome) | Decision::Leave(outcome) => return Ok(outcome),
                Decision::ApplyAndLookAgain => {}
            }
        }
    }

    /// As `edit`, for a leaf found full: cleans it, or splits it.
    fn edit_full_leaf<E: Editor>(
        &self,
        key: &[u8],
        edit: &mut RowEdit,
        settler: &dyn Settler,
        editor: &mut E,
    ) -> Result<Decision<E::Outcome>, StorageError> {
        loop {
            let mut mini = self.begin();
            let path = self.path_for_split(&mut mini, Seek::Key(key))?;
            let leaf = path.leaf;
            let neighbour = header::right(mini.page(leaf));
            if neighbour != PageId::NONE {
                // Before the version page that `push` latches: pages of a tree come first, left to right.
                let right = mini.latch(neighbour)?;
                editor.beside(Some(mini.page(right)))?;
            }
            if let Some(image) = compact::compacted(mini.page(leaf), settler) {
                mini.apply(leaf, PageOp::Image { lz4: &PageOp::compress(&image) })?;
            }
            let mut found = Slotted(mini.page(leaf)).search(key);
            edit.clear();
            let mut decision = editor.decide(mini.page(leaf), found, edit)?;
            if let Decision::Leave(_) = decision {
                mini.commit()?;
                return Ok(decision);
            }
            let (Ok(slot) | Err(slot)) = found;
            if self.info.packs_leaves
                && !edit.fits(mini.page(leaf), slot, key)
                && let Some(image) = compact::packed(mini.page(leaf))
            {
                mini.apply(leaf, PageOp::Image { lz4: &PageOp::compress(&image) })?;
                // What was decided may rest on how the row lay.
                found = Slotted(mini.page(leaf)).search(key);
                edit.clear();
                decision = editor.decide(mini.page(leaf), found, edit)?;
            }
            let (Ok(slot) | Err(slot)) = found;
            let id = mini.id(leaf);
            if edit.fits(mini.page(leaf), slot, key) {
                editor.push(&mut mini, edit)?;
                edit.install(&mut mini, leaf, slot, key)?;
            } else if self.split_leaf(&mut mini, path, slot, key, edit, &mut |mini, edit| editor.push(mini, edit))? == SplitDone::LookAgain
            {
                mini.commit()?;
                continue;
            }
            mini.commit()?;
            editor.done(id, edit);
            return Ok(decision);
        }
    }
}
