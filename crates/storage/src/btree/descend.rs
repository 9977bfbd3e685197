//! From the root to a leaf.
//!
//! Readers and writers couple latches: the child is latched before the parent is given up, so a split or unlinking in
//! between cannot be met half-way. Inner nodes are latched shared, the leaf as the caller wishes. The root page never
//! moves; whether it is a leaf is known only once it is latched, and may change between two latchings, hence the loop
//! in `leaf_for_write`. For a split everything is latched exclusively from the root down (`path_for_split`).
//!
//! Invariants: 1. the leaf returned is the one whose range holds the key for as long as it stays latched. 2. A page that
//! is no node of this tree at the level expected is `Damage`, so a wrong pointer never loops or crosses trees (`node`).
//! Latches: parent to child (rank 2). Blocks on page reads.

use super::Tree;
use super::node::{child_at, slot_before, slot_for};
use crate::error::StorageError;
use crate::ids::PageId;
use crate::mini::{Handle, Mini};
use crate::page::{PAGE_BYTES, PageBytes, PageType, Slotted, header};
use crate::pool::PageRead;

/// Which leaf is sought.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seek<'k> {
    /// The one whose range holds the key.
    Key(&'k [u8]),
    /// The one with the greatest keys below the key.
    Before(&'k [u8]),
    /// The leftmost.
    First,
    /// The rightmost.
    Last,
}

impl Seek<'_> {
    pub(super) fn slot(self, node: Slotted<'_>) -> usize {
        match self {
            Self::Key(key) => slot_for(node, key),
            Self::Before(key) => slot_before(node, key),
            Self::First => 0,
            Self::Last => node.len().saturating_sub(1),
        }
    }
}

/// An exclusively latched way from the root to a leaf.
pub(super) struct Path {
    /// The inner nodes and the slot taken in each, root first.
    pub(super) inner: Vec<(Handle, usize)>,
    pub(super) leaf: Handle,
}

impl<'a> Tree<'a> {
    /// Checks that a page is a node of this tree, at `level` if that is known; returns its level.
    pub(crate) fn check_node(&self, page: &PageBytes, id: PageId, level: Option<u8>) -> Result<u8, StorageError> {
        let found = header::level(page);
        let expected_type = if found == 0 { PageType::Leaf } else { PageType::Inner };
        let good = header::tree(page) == self.info.id
            && header::page_type(page) == Some(expected_type)
            && level.is_none_or(|level| level == found)
            && (found == 0 || !Slotted(page).is_empty());
        if good {
            return Ok(found);
        }
        let detail = format!(
            "expected a node of tree {} at level {level:?}, found {:?} of tree {} at level {found}",
            self.info.id.0,
            header::page_type(page),
            header::tree(page).0,
        );
        Err(StorageError::Damage { page: id, offset: u64::from(id.page) * PAGE_BYTES as u64, detail })
    }

    /// The leaf sought, latched shared. `visit` sees each inner node on the way, the one above it last.
    pub(crate) fn leaf_for_read(&self, seek: Seek<'_>, visit: &mut dyn FnMut(Slotted<'_>, usize)) -> Result<PageRead<'a>, StorageError> {
        self.descend(seek, 0, visit)
    }

    /// The node above the leaf sought, latched shared, and the leaf's name: the leaf's range holds the key for as long as the
    /// node stays latched. `None` where the root is the leaf. `visit` sees each inner node, this one last.
    pub(crate) fn above_leaf(
        &self,
        seek: Seek<'_>,
        visit: &mut dyn FnMut(Slotted<'_>, usize),
    ) -> Result<Option<(PageRead<'a>, PageId)>, StorageError> {
        let page = self.descend(seek, 1, visit)?;
        if header::level(&page) == 0 {
            return Ok(None);
        }
        let slot = seek.slot(Slotted(&page));
        visit(Slotted(&page), slot);
        let leaf = child_at(Slotted(&page), slot)?;
        Ok(Some((page, leaf)))
    }

    /// The node of level `floor` on the way to the leaf sought, or the root if that is lower. `visit` sees those above.
    fn descend(&self, seek: Seek<'_>, floor: u8, visit: &mut dyn FnMut(Slotted<'_>, usize)) -> Result<PageRead<'a>, StorageError> {
        let mut page = self.store.read(self.info.root)?;
        let mut level = self.check_node(&page, self.info.root, None)?;
        while level > floor {
            let node = Slotted(&page);
            let slot = seek.slot(node);
            visit(node, slot);
            let child = child_at(node, slot)?;
            let below = self.store.read(child)?;
            level = self.check_node(&below, child, Some(level - 1))?;
            page = below;
        }
        Ok(page)
    }

    /// The leaf whose range holds `key`, latched exclusively in `mini`.
    pub(crate) fn leaf_for_write(&self, mini: &mut Mini<'a>, seek: Seek<'_>) -> Result<Handle, StorageError> {
        loop {
            let mut page = self.store.read(self.info.root)?;
            let mut level = self.check_node(&page, self.info.root, None)?;
            if level == 0 {
                drop(page);
                let root = mini.latch(self.info.root)?;
                if self.check_node(mini.page(root), self.info.root, None)? == 0 {
                    return Ok(root);
                }
                mini.unlatch(root);
                continue;
            }
            loop {
                let child = child_at(Slotted(&page), seek.slot(Slotted(&page)))?;
                if level == 1 {
                    let leaf = mini.latch(child)?;
                    self.check_node(mini.page(leaf), child, Some(0))?;
                    return Ok(leaf);
                }
                let below = self.store.read(child)?;
                level = self.check_node(&below, child, Some(level - 1))?;
                page = below;
            }
        }
    }

    /// The way to the leaf whose range holds `key`, all latched exclusively.
    pub(super) fn path_for_split(&self, mini: &mut Mini<'a>, seek: Seek<'_>) -> Result<Path, StorageError> {
        let mut inner = Vec::new();
        let mut page = mini.latch(self.info.root)?;
        let mut level = self.check_node(mini.page(page), self.info.root, None)?;
        while level > 0 {
            let node = Slotted(mini.page(page));
            let slot = seek.slot(node);
            let child = child_at(node, slot)?;
            inner.push((page, slot));
            page = mini.latch(child)?;
            level = self.check_node(mini.page(page), child, Some(level - 1))?;
        }
        Ok(Path { inner, leaf: page })
    }
}
