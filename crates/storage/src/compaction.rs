//! A tree's leaves filled up in place, from its end to its beginning: what ALTER INDEX REORGANIZE asks for.
//!
//! A turn goes over a bounded number of leaves and tells the key to go on from. Each leaf is tidied as the cleaner does it,
//! then filled from the one before it ([`crate::btree`]'s `pack`): one mini-transaction each, so whatever ends it leaves
//! a good tree, and nothing holds the log.
//!
//! Locks: none; latches of a few pages at a time. Failure: storage's. Not here: order on disk, levels above the leaves.

use crate::btree::Seek;
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId};
use crate::page::{PageBytes, PageType, Slotted, header};

/// Leaves of a turn: some milliseconds in memory.
const TURN_LEAVES: usize = 256;

/// The first key of a leaf; of an empty one none.
fn first_key(page: &PageBytes) -> Option<Vec<u8>> {
    let leaf = Slotted(page);
    let mut key = Vec::new();
    (!leaf.is_empty()).then(|| leaf.key(0, &mut key))?;
    Some(key)
}

impl Database {
    /// Fills leaves of a tree, from its end or from the one that `from` leads to, up to `fill_percent`; the key to go on
    /// from, or `None` at the tree's beginning.
    ///
    /// # Errors
    /// Storage's; what was done stays.
    pub fn compact_leaves(&self, tree: TreeId, from: Option<&[u8]>, fill_percent: u8) -> Result<Option<Vec<u8>>, StorageError> {
        // What was deleted a moment ago may go if nobody sees it any more.
        self.commits.advance_horizon();
        let info = self.tree(tree, 0)?;
        let nodes = self.system_tree(&info);
        let settler = self.settler(tree);
        let mut from = from.map(<[u8]>::to_vec);
        for _ in 0..TURN_LEAVES {
            let seek = from.as_deref().map_or(Seek::Last, Seek::Key);
            let page = *nodes.leaf_for_read(seek, &mut |_, _| {})?;
            let Some(key) = self.key_of(&page, tree)? else { return Ok(None) };
            self.tidy_leaf(&info, header::page_id(&page))?;
            let before = loop {
                let page = *nodes.leaf_for_read(Seek::Key(&key), &mut |_, _| {})?;
                let left = header::left(&page);
                if left == PageId::NONE {
                    return Ok(None);
                }
                self.tidy_leaf(&info, left)?;
                if !nodes.pack_leaf(&key, &settler, fill_percent)? {
                    break header::left(&*nodes.leaf_for_read(Seek::Key(&key), &mut |_, _| {})?);
                }
            };
            if before == PageId::NONE {
                return Ok(None);
            }
            // Where the leaf before has become another's meanwhile, the sweep ends early.
            match self.key_of(&*self.store.read(before)?, tree)? {
                Some(next) if next < key => from = Some(next),
                _ => return Ok(None),
            }
        }
        Ok(from)
    }

    /// The first key of a leaf of this tree, or of the next to the left that has one.
    fn key_of(&self, page: &PageBytes, tree: TreeId) -> Result<Option<Vec<u8>>, StorageError> {
        let mut page = *page;
        loop {
            if header::page_type(&page) != Some(PageType::Leaf) || header::tree(&page) != tree {
                return Ok(None);
            }
            match (first_key(&page), header::left(&page)) {
                (Some(key), _) => return Ok(Some(key)),
                (None, PageId::NONE) => return Ok(None),
                (None, left) => page = *self.store.read(left)?,
            }
        }
    }
}
