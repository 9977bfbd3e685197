//! Scans: a leaf at a time, copied under its latch, in key order either way.
//!
//! ```text
//!   first:  descend to the range's end
//!   then:   neighbour of the leaf before, if the two still point at each other; else descend by the last key seen
//!   every 64 leaves forward: descend, and prefetch the children that the level above names next
//! ```
//! No latch is held between calls, so leaves may split, empty and move meanwhile. What makes that harmless: keys at or
//! before the last key seen are skipped wherever they are met, and a leaf reached sideways counts only if it is a leaf
//! of this tree that names the one before as its neighbour.
//!
//! Invariants: 1. keys come strictly in order, none twice (`after`). 2. Every row the view sees is met: a row moves only
//! within the order, and the scan resumes by key. Latches: one leaf, shared. Failure: `Damage` as met.

use crate::btree::{Seek, Tree};
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::page::{PageType, Slotted, header};
use crate::pool::AccessHint;
use crate::row_block::RowBlock;
use crate::spec::{KeyRange, ScanDirection};
use crate::units::TreeInfo;
use crate::versions::store::VersionStore;
use crate::view::ReadView;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Leaves asked for at a time: half a megabyte, which keeps a disk busy while the rows before are worked on.
const PREFETCH_LEAVES: usize = 64;

/// A scan of a tree in key order, one leaf's visible rows at a time; holds no latch between calls.
pub struct Scan {
    view: ReadView,
    tree: Arc<TreeInfo>,
    range: KeyRange,
    direction: ScanDirection,
    block: RowBlock,
    done: bool,
    /// The bound of what has been seen: everything up to and with it is skipped.
    after: Option<Vec<u8>>,
    last_leaf: PageId,
    next_leaf: PageId,
    /// A neighbour that could not be read.
    unreadable: PageId,
    leaves_until_prefetch: usize,
    last_leaf_had_keys: bool,
}

impl Scan {
    pub(crate) fn new(view: ReadView, tree: Arc<TreeInfo>, range: KeyRange, direction: ScanDirection) -> Self {
        Self {
            view,
            tree,
            range,
            direction,
            block: RowBlock::default(),
            done: false,
            after: None,
            last_leaf: PageId::NONE,
            next_leaf: PageId::NONE,
            unreadable: PageId::NONE,
            leaves_until_prefetch: 0,
            last_leaf_had_keys: false,
        }
    }

    /// The tree.
    pub fn tree(&self) -> TreeId {
        self.tree.id
    }

    /// The next leaf's visible rows, at least one; `None` at the end.
    pub fn next_block(&mut self) -> Result<Option<&mut RowBlock>, StorageError> {
        while !self.done {
            self.load_leaf()?;
            let slots = self.slots_inside();
            self.remember(&slots);
            let database = self.view.database().clone();
            let backward = self.direction == ScanDirection::Backward;
            let mut older = |pointer: u64, out: &mut Vec<u8>| VersionStore::read(&database.store, pointer, out);
            self.block.list(slots, backward, self.view.visibility(), &mut older)?;
            if !self.block.is_empty() {
                return Ok(Some(&mut self.block));
            }
        }
        Ok(None)
    }

    /// Copies the next leaf into the block.
    fn load_leaf(&mut self) -> Result<(), StorageError> {
        // Descending by the last key seen must not lead back over leaves without keys.
        if (self.leaves_until_prefetch > 0 || !self.last_leaf_had_keys) && self.load_neighbour()? {
            self.leaves_until_prefetch = self.leaves_until_prefetch.saturating_sub(1);
            return Ok(());
        }
        let database = self.view.database().clone();
        let tree = Tree { store: &database.store, info: &self.tree, author: TxnId(0), finishing: false };
        let forward = self.direction == ScanDirection::Forward;
        let seek = match (&self.after, forward) {
            (Some(key), true) => Seek::Key(key),
            (Some(key), false) => Seek::Before(key),
            (None, true) => match &self.range.start {
                Bound::Included(key) | Bound::Excluded(key) => Seek::Key(key),
                Bound::Unbounded => Seek::First,
            },
            (None, false) => match &self.range.end {
                Bound::Included(key) => Seek::Key(key),
                Bound::Excluded(key) => Seek::Before(key),
                Bound::Unbounded => Seek::Last,
            },
        };
        let resumes = self.last_leaf != PageId::NONE;
        let mut ahead = Vec::new();
        let leaf = tree.leaf_for_read(seek, &mut |node, slot| {
            // A scan that has shown to be long asks for what comes; a first look at a leaf does not.
            if resumes && forward {
                let last = node.len().min(slot + 1 + PREFETCH_LEAVES);
                ahead = (slot + 1..last).filter_map(|slot| crate::btree::child_of(node, slot)).collect();
            }
        })?;
        self.block.copy_page(&leaf);
        drop(leaf);
        self.leaves_until_prefetch = if forward && resumes { ahead.len().max(1) } else { PREFETCH_LEAVES };
        if !ahead.is_empty() {
            database.store.prefetch(&ahead)?;
        } else if !resumes {
            self.leaves_until_prefetch = 1;
        }
        Ok(())
    }

    /// Copies the leaf beside the last one, if it still is beside it.
    fn load_neighbour(&mut self) -> Result<bool, StorageError> {
        if self.next_leaf == PageId::NONE {
            return Ok(false);
        }
        let database = self.view.database().clone();
        // A page that was freed meanwhile may even be unreadable: then the descent finds the way.
        let page = match database.store.read_with(self.next_leaf, AccessHint::Once) {
            Ok(page) => page,
            // The descent has led back here: the leaf is this one's neighbour still, and cannot be read.
            Err(error) if self.unreadable == self.next_leaf => return Err(error),
            Err(_) => {
                self.unreadable = self.next_leaf;
                return Ok(false);
            }
        };
        let back = match self.direction {
            ScanDirection::Forward => header::left(&page),
            ScanDirection::Backward => header::right(&page),
        };
        let good = header::page_type(&page) == Some(PageType::Leaf) && header::tree(&page) == self.tree.id && back == self.last_leaf;
        if good {
            self.block.copy_page(&page);
        }
        Ok(good)
    }

    /// Slots of the copied leaf within the range and beyond what was seen.
    fn slots_inside(&self) -> Range<usize> {
        let leaf = Slotted(self.block.page());
        let from = |key: &[u8], excluded: bool| match leaf.search(key) {
            Ok(slot) => slot + usize::from(excluded),
            Err(slot) => slot,
        };
        let mut start = match &self.range.start {
            Bound::Included(key) => from(key, false),
            Bound::Excluded(key) => from(key, true),
            Bound::Unbounded => 0,
        };
        let mut end = match &self.range.end {
            Bound::Included(key) => from(key, true),
            Bound::Excluded(key) => from(key, false),
            Bound::Unbounded => leaf.len(),
        };
        if let Some(key) = &self.after {
            match self.direction {
                ScanDirection::Forward => start = start.max(from(key, true)),
                ScanDirection::Backward => end = end.min(from(key, false)),
            }
        }
        start..end.max(start)
    }

    /// Notes where to go on after the copied leaf, or that there is nothing more.
    fn remember(&mut self, slots: &Range<usize>) {
        let page = self.block.page();
        let leaf = Slotted(page);
        let (at_range_end, next, last_slot) = match self.direction {
            ScanDirection::Forward => (slots.end < leaf.len(), header::right(page), slots.end.checked_sub(1)),
            ScanDirection::Backward => (slots.start > 0, header::left(page), Some(slots.start)),
        };
        if at_range_end || next == PageId::NONE {
            self.done = true;
            return;
        }
        let last_slot = last_slot.filter(|slot| slots.contains(slot));
        self.last_leaf_had_keys = last_slot.is_some();
        if let Some(slot) = last_slot {
            let mut key = self.after.take().unwrap_or_default();
            key.clear();
            leaf.key(slot, &mut key);
            self.after = Some(key);
        }
        self.last_leaf = header::page_id(page);
        self.next_leaf = next;
    }
}
