//! A leaf put in order, and an empty leaf taken out of its tree.
//!
//! ```text
//!   left <──> empty <──> right        parent: ... | c_left | c_empty | c_right ...
//!   left <─────────────> right        parent: ... | c_left | c_right ...            the page is free after commit
//! ```
//! The first child of a parent is unlinked only if the leaf before it can be latched at once, since it hangs elsewhere;
//! the last child of a parent stays, so no inner node is ever empty.
//!
//! Invariants: 1. a leaf is unlinked only while empty and exclusively latched with its parent and both neighbours.
//! 2. The first child's key stays, whoever the first child is: keys below it would else be split off in
//! wrong order. 3. Who still has its page id finds an empty leaf of this tree that names its old neighbours, or another page.
//! Latches: path, left, leaf, right. Failure: nothing is changed.

use super::node::{child_at, child_bytes, slot_for};
use super::{Settler, Tree};
use super::{compact, merge};
use crate::error::StorageError;
use crate::ids::PageId;
use crate::mini::{Handle, Mini};
use crate::page::{Entry, PageOp, PageType, Slotted, header};

/// What a leaf is after it was put in order; the key leads to it.
pub(crate) enum Tidied {
    /// Nothing more is to be done.
    Good,
    /// It has no entry.
    Empty(Vec<u8>),
    /// It has few.
    Sparse(Vec<u8>),
}

impl Tree<'_> {
    /// Takes what nobody needs out of the leaf on `page`, if that still is one of this tree. References to large parts of
    /// removed ghosts go to `freed`.
    pub(crate) fn tidy_leaf(&self, page: PageId, settler: &dyn Settler, freed: &mut Vec<u8>) -> Result<Tidied, StorageError> {
        let mut mini = self.begin();
        let leaf = mini.latch(page)?;
        let bytes = mini.page(leaf);
        let ours = header::page_type(bytes) == Some(PageType::Leaf) && header::tree(bytes) == self.info.id;
        if !ours || Slotted(bytes).is_empty() {
            return Ok(Tidied::Good);
        }
        let mut key = Vec::new();
        Slotted(bytes).key(0, &mut key);
        let mut parts = Vec::new();
        let Some(image) = compact::tidied(bytes, settler, &mut parts) else { return Ok(Tidied::Good) };
        mini.apply(leaf, PageOp::Image { lz4: &PageOp::compress(&image) })?;
        mini.loosen(self.info.id, &parts);
        mini.commit()?;
        freed.append(&mut parts);
        Ok(match () {
            () if Slotted(&image).is_empty() => Tidied::Empty(key),
            () if merge::is_sparse(&image) => Tidied::Sparse(key),
            () => Tidied::Good,
        })
    }

    /// Unlinks the leaf to which `key` leads, if it is empty and has a neighbour under its parent.
    pub(crate) fn unlink_empty_leaf(&self, key: &[u8]) -> Result<(), StorageError> {
        let mut mini = self.begin();
        let mut node = mini.latch(self.info.root)?;
        let mut level = self.check_node(mini.page(node), self.info.root, None)?;
        if level == 0 {
            return Ok(());
        }
        let slot = loop {
            let view = Slotted(mini.page(node));
            let slot = slot_for(view, key);
            if level == 1 {
                break slot;
            }
            let child = child_at(view, slot)?;
            // Exclusive all the way: splits of this tree wait at the root.
            node = mini.latch(child)?;
            level = self.check_node(mini.page(node), child, Some(level - 1))?;
        };
        let view = Slotted(mini.page(node));
        if view.len() < 2 {
            return Ok(());
        }
        let id = child_at(view, slot)?;
        let left = if slot > 0 {
            Some(mini.latch(child_at(Slotted(mini.page(node)), slot - 1)?)?)
        } else {
            // The leaf before hangs under another parent. It is to be latched before this one, without waiting.
            let before = header::left(&*self.store.read(id)?);
            match before {
                PageId::NONE => None,
                before => match mini.try_latch(before)? {
                    Some(latched) => Some(latched),
                    None => return Ok(()),
                },
            }
        };
        let leaf = mini.latch(id)?;
        self.check_node(mini.page(leaf), id, Some(0))?;
        let (before, after) = (header::left(mini.page(leaf)), header::right(mini.page(leaf)));
        if !Slotted(mini.page(leaf)).is_empty() || before != left.map_or(PageId::NONE, |left| mini.id(left)) {
            return Ok(());
        }
        if after != PageId::NONE {
            let right = mini.latch(after)?;
            mini.apply(right, PageOp::SetLeft(before))?;
        }
        if let Some(left) = left {
            mini.apply(left, PageOp::SetRight(after))?;
        }
        remove_child(&mut mini, node, slot)?;
        mini.free(self.info.unit, id)?;
        mini.commit().map(drop)
    }
}

/// Takes the child in `slot` out of an inner node with more children than one.
fn remove_child(mini: &mut Mini<'_>, node: Handle, slot: usize) -> Result<(), StorageError> {
    let place = |slot: usize| u16::try_from(slot).expect("slots are few");
    if slot > 0 {
        return mini.apply(node, PageOp::SlotRemove { slot: place(slot) });
    }
    let view = Slotted(mini.page(node));
    let child = child_bytes(child_at(view, 1)?);
    let mut bytes = Vec::new();
    Entry { payload: &child, ..view.entry(0) }.encode(&mut bytes);
    mini.apply(node, PageOp::SlotReplace { slot: 0, bytes: &bytes })?;
    mini.apply(node, PageOp::SlotRemove { slot: 1 })
}
