//! Hanging whole new leaves onto the right end of a tree, and cutting them off again.
//!
//! ```text
//!   inner spine:  root ── ... ── rightmost node of level 1        each latched exclusively, kept in hand
//!   leaves:       ... R | L1 L2 ... Ln                            L's are on the device already, unreachable until commit
//! ```
//! A separator goes to the end of the rightmost node of level 1; if that is full, a new node to its right takes it, and
//! its separator goes one level up; a full root moves its entries to a new page and becomes their parent. So every step
//! costs the same, from the first leaf to the last.
//!
//! Invariants: 1. leaves become reachable and allocated in the same group (`hang_leaves`). 2. Inner nodes are full, but
//! for the rightmost of each level. 3. Cutting off leaves no empty inner node.
//! Latches: the spine, then the last leaf. Failure: nothing is changed.

use super::Tree;
use super::node::{child_at, child_bytes};
use crate::error::StorageError;
use crate::ids::{PageId, TxnId};
use crate::mini::{Handle, Mini};
use crate::page::{Entry, PAGE_BYTES, PageBytes, PageOp, Slotted, header, op};

/// Leaves of a tree with large parts that are cut off at once: a leaf names up to 500 of them.
const CUT_LEAVES_LARGE: usize = 4;

/// A new leaf and the key that leads to it.
pub(crate) struct NewLeaf {
    pub(crate) page: PageId,
    pub(crate) separator: Vec<u8>,
}

impl<'a> Tree<'a> {
    /// The latched spine: inner nodes from the root down, and the rightmost leaf.
    fn spine(&self, mini: &mut Mini<'a>) -> Result<(Vec<Handle>, Handle), StorageError> {
        let mut inner = Vec::new();
        let mut node = mini.latch(self.info.root)?;
        let mut level = self.check_node(mini.page(node), self.info.root, None)?;
        while level > 0 {
            let view = Slotted(mini.page(node));
            let child = child_at(view, view.len() - 1)?;
            inner.push(node);
            node = mini.latch(child)?;
            level = self.check_node(mini.page(node), child, Some(level - 1))?;
        }
        Ok((inner, node))
    }

    /// The rightmost leaf, which the next append will follow. A root that is a leaf with rows hands them to a new page.
    /// `None` if the tree is an empty root. To be called in the group that hangs the leaves.
    pub(crate) fn begin_append(&self, mini: &mut Mini<'a>) -> Result<Option<PageId>, StorageError> {
        let (inner, leaf) = self.spine(mini)?;
        if !inner.is_empty() {
            return Ok(Some(mini.id(leaf)));
        }
        if Slotted(mini.page(leaf)).is_empty() {
            return Ok(None);
        }
        let moved = self.move_root(mini, leaf)?;
        Ok(Some(mini.id(moved)))
    }

    /// Hangs leaves, which point at each other and back at `after`, behind the last leaf.
    pub(crate) fn hang_leaves(&self, mini: &mut Mini<'a>, after: Option<PageId>, leaves: &[NewLeaf]) -> Result<(), StorageError> {
        let (mut spine, last) = self.spine(mini)?;
        match after {
            Some(after) => {
                assert!(mini.id(last) == after, "the spine is latched since `begin_append`");
                mini.apply(last, PageOp::SetRight(leaves[0].page))?;
            }
            None => {
                mini.apply(last, PageOp::Format(self.format(1, TxnId(0))))?;
                spine.push(last);
            }
        }
        for (index, leaf) in leaves.iter().enumerate() {
            // The leftmost node of a level stands for everything below its second key.
            let separator = if index == 0 && after.is_none() { &[][..] } else { &leaf.separator };
            let deepest = spine.len() - 1;
            self.append_child(mini, &mut spine, deepest, separator, leaf.page)?;
        }
        Ok(())
    }

    fn append_child(
        &self,
        mini: &mut Mini<'a>,
        spine: &mut Vec<Handle>,
        depth: usize,
        key: &[u8],
        child: PageId,
    ) -> Result<(), StorageError> {
        let node = spine[depth];
        let view = Slotted(mini.page(node));
        let slot = u16::try_from(view.len()).expect("slots are few");
        let (shares, prefix_bytes) = (key.starts_with(view.prefix()), view.prefix().len());
        let mut bytes = Vec::new();
        if shares {
            Entry::plain(&key[prefix_bytes..], &child_bytes(child)).encode(&mut bytes);
            if view.fits(bytes.len()) {
                return mini.apply(node, PageOp::SlotInsert { slot, bytes: &bytes });
            }
        }
        let level = header::level(mini.page(node));
        let left = mini.id(node);
        if depth == 0 {
            let moved = self.move_root(mini, node)?;
            spine.insert(1, moved);
            return self.append_child(mini, spine, 1, key, child);
        }
        let right = mini.allocate(self.info.unit, self.format(level, TxnId(0)))?;
        mini.apply(right, PageOp::SetLeft(left))?;
        mini.apply(node, PageOp::SetRight(mini.id(right)))?;
        bytes.clear();
        Entry::plain(key, &child_bytes(child)).encode(&mut bytes);
        mini.apply(right, PageOp::SlotInsert { slot: 0, bytes: &bytes })?;
        let id = mini.id(right);
        let above = spine.len();
        self.append_child(mini, spine, depth - 1, key, id)?;
        // The root may have moved its entries down: then everything is one deeper.
        let depth = depth + spine.len() - above;
        spine[depth] = right;
        Ok(())
    }

    /// Moves the root's entries to a new page and makes it their parent, a level higher.
    fn move_root(&self, mini: &mut Mini<'a>, root: Handle) -> Result<Handle, StorageError> {
        let copy = *mini.page(root);
        let level = header::level(&copy);
        let format = self.format(level, header::creator(&copy));
        let moved = mini.allocate(self.info.unit, format)?;
        let id = mini.id(moved);
        let image = moved_image(&copy, id)?;
        mini.apply(moved, PageOp::Image { lz4: &PageOp::compress(&image) })?;
        mini.apply(root, PageOp::Format(self.format(level + 1, TxnId(0))))?;
        let mut bytes = Vec::new();
        Entry::plain(&[], &child_bytes(id)).encode(&mut bytes);
        mini.apply(root, PageOp::SlotInsert { slot: 0, bytes: &bytes })?;
        Ok(moved)
    }

    /// Cuts off the leaves at the right end whose keys are all above `above`, as far as they hang under one node; false
    /// when nothing is left to cut. Nobody else writes the tree. References to the large parts of what is cut go to `freed`;
    /// of a tree with such parts few leaves are cut at a time, since each part is named in the group.
    pub(crate) fn cut_off_step(&self, above: Option<&[u8]>, freed: &mut Vec<u8>) -> Result<bool, StorageError> {
        let mut mini = self.begin();
        let (mut spine, last) = self.spine(&mut mini)?;
        let Some(node) = spine.pop() else {
            let view = Slotted(mini.page(last));
            let from = above.map_or(0, |above| view.search(above).map_or_else(|slot| slot, |slot| slot + 1));
            if from < view.len() {
                let parts = large_parts(view, from);
                mini.apply(last, PageOp::Truncate { from_slot: u16::try_from(from).expect("slots are few") })?;
                mini.loosen(self.info.id, &parts);
                mini.commit()?;
                freed.extend_from_slice(&parts);
            }
            return Ok(false);
        };
        let view = Slotted(mini.page(node));
        let mut from = 0;
        if let Some(above) = above {
            let is_kept = |slot: usize| {
                let mut key = Vec::new();
                view.key(slot, &mut key);
                key.as_slice() <= above
            };
            from = (0..view.len()).take_while(|slot| is_kept(*slot)).count();
        }
        let count = view.len();
        if from == count {
            return Ok(false);
        }
        let has_large = self.info.large_unit().is_some();
        if has_large {
            from = from.max(count.saturating_sub(CUT_LEAVES_LARGE));
        }
        let children: Vec<PageId> = (from..count).map(|slot| child_at(view, slot)).collect::<Result<_, _>>()?;
        let before = header::left(&*self.store_read_latched(&mini, children[0], last)?);
        if before != PageId::NONE {
            let left = mini.latch(before)?;
            mini.apply(left, PageOp::SetRight(PageId::NONE))?;
        }
        let mut parts = Vec::new();
        for child in &children {
            if has_large {
                let page = self.store_read_latched(&mini, *child, last)?;
                parts.append(&mut large_parts(Slotted(&page), 0));
            }
            mini.free(self.info.unit, *child)?;
        }
        self.shorten(&mut mini, &mut spine, node, from)?;
        mini.loosen(self.info.id, &parts);
        mini.commit()?;
        freed.append(&mut parts);
        Ok(true)
    }

    /// A copy of a leaf that this mini-transaction may have latched itself.
    fn store_read_latched(&self, mini: &Mini<'a>, page: PageId, last: Handle) -> Result<Box<PageBytes>, StorageError> {
        if mini.id(last) == page { Ok(Box::new(*mini.page(last))) } else { Ok(Box::new(*self.store.read(page)?)) }
    }

    /// Removes the entries of a rightmost inner node from `from` on; a node that would be empty goes itself.
    fn shorten(&self, mini: &mut Mini<'a>, spine: &mut Vec<Handle>, node: Handle, from: usize) -> Result<(), StorageError> {
        if from > 0 {
            return mini.apply(node, PageOp::Truncate { from_slot: u16::try_from(from).expect("slots are few") });
        }
        let Some(parent) = spine.pop() else {
            // Everything is gone: the root is an empty leaf again.
            return mini.apply(node, PageOp::Format(self.format(0, TxnId(0))));
        };
        let left = header::left(mini.page(node));
        if left != PageId::NONE {
            let left = mini.latch(left)?;
            mini.apply(left, PageOp::SetRight(PageId::NONE))?;
        }
        mini.free(self.info.unit, mini.id(node))?;
        let last = Slotted(mini.page(parent)).len() - 1;
        self.shorten(mini, spine, parent, last)
    }

    /// The greatest key in the tree, ghosts included.
    pub(crate) fn last_key(&self) -> Result<Option<Vec<u8>>, StorageError> {
        let mut page = *self.leaf_for_read(super::Seek::Last, &mut |_, _| {})?;
        loop {
            let leaf = Slotted(&page);
            if let Some(last) = leaf.len().checked_sub(1) {
                let mut key = Vec::new();
                leaf.key(last, &mut key);
                return Ok(Some(key));
            }
            match header::left(&page) {
                PageId::NONE => return Ok(None),
                left => page = *self.store.read(left)?,
            }
        }
    }
}

/// References to the large parts of a leaf's entries from a slot on.
fn large_parts(leaf: Slotted<'_>, from: usize) -> Vec<u8> {
    (from..leaf.len()).flat_map(|slot| leaf.entry(slot).large_bytes.iter().copied()).collect()
}

/// A node's bytes under another page id.
fn moved_image(page: &PageBytes, id: PageId) -> Result<Box<PageBytes>, StorageError> {
    let view = Slotted(page);
    let mut image: Box<PageBytes> = Box::new([0; PAGE_BYTES]);
    let mut draw = |operation: PageOp<'_>| {
        op::apply(&mut image, id, &operation).map_err(|error| StorageError::Bug(format!("root that moves: {error:?}")))
    };
    let page_type = header::page_type(page).ok_or_else(|| StorageError::Bug("a root of no type".into()))?;
    draw(PageOp::Format(crate::page::Format {
        page_type,
        tree: header::tree(page),
        object_id: header::object_id(page),
        index_id: header::index_id(page),
        level: header::level(page),
        creator: header::creator(page),
    }))?;
    draw(PageOp::SetPrefix(view.prefix()))?;
    draw(PageOp::SetDictionary(view.dictionary()))?;
    for slot in 0..view.len() {
        draw(PageOp::SlotInsert { slot: u16::try_from(slot).expect("slots are few"), bytes: view.bytes(slot) })?;
    }
    Ok(image)
}
