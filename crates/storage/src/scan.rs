//! Scans: a leaf at a time, copied under its latch, in key order either way.
//!
//! ```text
//!   first:  descend to the range's end
//!   then:   neighbour of the leaf before, if the two still point at each other; else descend by the last key seen
//!   from the second leaf on, forward: `read_ahead` asks for what the level above names next
//! ```
//! No latch is held between calls, so leaves may split, empty and move meanwhile. What makes that harmless: keys at or
//! before the last key seen are skipped wherever they are met, and a leaf reached sideways counts only if it is a leaf
//! of this tree that names the one before as its neighbour.
//!
//! Invariants: 1. keys come strictly in order, none twice (`after`). 2. Every row the view sees is met: a row moves only
//! within the order, and the scan resumes by key. Latches: one leaf, shared. Failure: `Damage` as met.

use crate::btree::{Seek, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::page::{PAGE_BYTES, PageBytes, PageType, Slotted, header};
use crate::pool::{AccessHint, PageRead};
use crate::read_ahead::ReadAhead;
use crate::row_block::RowBlock;
use crate::spec::{KeyRange, ScanDirection};
use crate::units::TreeInfo;
use crate::versions::store::VersionStore;
use crate::view::ReadView;
use std::ops::{Bound, Deref, Range};
use std::sync::Arc;

/// Descents in a row back to the leaf just read after which the leaf beside it is taken for damaged.
const LED_BACK_MAX: u32 = 8;

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
    ahead: ReadAhead,
    /// Memory for a leaf that was read ahead, while no block has it.
    spare: Option<Box<PageBytes>>,
    /// Descents in a row that led back to the last leaf.
    led_back: u32,
    /// Why the leaf beside it could not be read.
    beside_error: Option<StorageError>,
    /// The leaf that could not be read, and how often: descents may lead back to it over leaves without keys.
    unreadable: (PageId, u32),
}

/// A leaf to be looked at: in the pool, or read ahead.
enum Leaf<'d> {
    Latched(PageRead<'d>),
    Copied(Box<PageBytes>),
}

impl Deref for Leaf<'_> {
    type Target = PageBytes;
    fn deref(&self) -> &PageBytes {
        match self {
            Self::Latched(page) => page,
            Self::Copied(page) => page,
        }
    }
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
            ahead: ReadAhead::new(),
            spare: None,
            led_back: 0,
            beside_error: None,
            unreadable: (PageId::NONE, 0),
        }
    }

    /// The tree.
    pub fn tree(&self) -> TreeId {
        self.tree.id
    }

    /// The next leaf's visible rows, at least one; `None` at the end.
    pub fn next_block(&mut self) -> Result<Option<&mut RowBlock>, StorageError> {
        let mut block = std::mem::take(&mut self.block);
        let found = self.next_into(&mut block);
        self.block = block;
        if !found? {
            return Ok(None);
        }
        self.block.spell_keys();
        Ok(Some(&mut self.block))
    }

    /// Puts the next leaf's visible rows, at least one, into `block`, whose memory is used again; false at the end. Keys may
    /// lack the leaf's common prefix until [`RowBlock::spell_keys`].
    pub fn next_into(&mut self, block: &mut RowBlock) -> Result<bool, StorageError> {
        let (database, tree) = (self.view.database().clone(), self.tree.clone());
        while !self.done {
            let leaf = self.next_leaf(&database, &tree)?;
            let slots = self.slots_inside(&leaf);
            self.remember(&leaf, &slots);
            self.hand_over(leaf, block);
            self.list(slots, block, &database)?;
            if !block.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many rows the next leaf has that the view sees, at least one; `None` at the end. Where every row of a leaf is
    /// seen, none is looked at.
    pub fn next_count(&mut self) -> Result<Option<usize>, StorageError> {
        let (database, tree) = (self.view.database().clone(), self.tree.clone());
        while !self.done {
            let leaf = self.next_leaf(&database, &tree)?;
            let slots = self.slots_inside(&leaf);
            self.remember(&leaf, &slots);
            let count = if RowBlock::all_seen(&leaf, self.view.visibility()) {
                if let Leaf::Copied(page) = leaf {
                    self.spare = Some(page);
                }
                slots.len()
            } else {
                let mut block = std::mem::take(&mut self.block);
                self.hand_over(leaf, &mut block);
                let listed = self.list(slots, &mut block, &database);
                self.block = block;
                listed?;
                self.block.len()
            };
            if count > 0 {
                return Ok(Some(count));
            }
        }
        Ok(None)
    }

    fn hand_over(&mut self, leaf: Leaf<'_>, block: &mut RowBlock) {
        match leaf {
            Leaf::Latched(page) => block.copy_page(&page),
            Leaf::Copied(page) => self.spare = block.give_page(page),
        }
    }

    fn list(&self, slots: Range<usize>, block: &mut RowBlock, database: &Database) -> Result<(), StorageError> {
        let backward = self.direction == ScanDirection::Backward;
        let mut older = |pointer: u64, out: &mut Vec<u8>| VersionStore::read(&database.store, pointer, out);
        block.list(slots, backward, self.view.visibility(), &mut older)
    }

    /// The leaf beside the last one, or the one found by descending.
    fn next_leaf<'d>(&mut self, database: &'d Database, tree: &'d TreeInfo) -> Result<Leaf<'d>, StorageError> {
        if self.next_leaf != PageId::NONE {
            if self.direction == ScanDirection::Forward {
                self.ahead.advance(&database.store, tree, &self.range);
            }
            // Sideways first: descending by the last key seen must not lead back over leaves without keys.
            if let Some(leaf) = self.neighbour(database) {
                return Ok(leaf);
            }
            if self.unreadable.1 >= LED_BACK_MAX
                && let Some(error) = self.beside_error.take()
            {
                return Err(error);
            }
            self.ahead.restart();
        }
        let tree = Tree { store: &database.store, info: tree, author: TxnId(0), finishing: false };
        // The nodes of level 2, if there is one, and of level 1.
        let mut above = [None; 2];
        let seek = self.seek();
        let leaf = tree.leaf_for_read(seek, &mut |node, slot| above = [above[1], Some((header::page_id(node.0), slot))])?;
        if let Some(node) = above[1].filter(|_| self.direction == ScanDirection::Forward) {
            self.ahead.start(node, above[0]);
        }
        self.refuse_circle(&leaf)?;
        Ok(Leaf::Latched(leaf))
    }

    /// Ends a scan whose descents lead back to the leaf it has read, because the one beside it cannot be used: a damaged
    /// leaf is an error and not a circle. Once may be a leaf that was being freed; more often is not.
    fn refuse_circle(&mut self, leaf: &PageBytes) -> Result<(), StorageError> {
        let beside = if self.direction == ScanDirection::Forward { header::right(leaf) } else { header::left(leaf) };
        let found = header::page_id(leaf);
        if found != self.last_leaf || beside != self.next_leaf || beside == PageId::NONE {
            self.led_back = 0;
            return Ok(());
        }
        self.led_back += 1;
        if self.led_back < LED_BACK_MAX {
            return Ok(());
        }
        let detail = format!("not the leaf beside ({}:{}) that it should be", found.file, found.page);
        Err(self.beside_error.take().unwrap_or(StorageError::Damage { page: beside, offset: 0, detail }))
    }

    fn seek(&self) -> Seek<'_> {
        match (&self.after, self.direction) {
            (Some(key), ScanDirection::Forward) => Seek::Key(key),
            (Some(key), ScanDirection::Backward) => Seek::Before(key),
            (None, ScanDirection::Forward) => match &self.range.start {
                Bound::Included(key) | Bound::Excluded(key) => Seek::Key(key),
                Bound::Unbounded => Seek::First,
            },
            (None, ScanDirection::Backward) => match &self.range.end {
                Bound::Included(key) => Seek::Key(key),
                Bound::Excluded(key) => Seek::Before(key),
                Bound::Unbounded => Seek::Last,
            },
        }
    }

    /// The leaf beside the last one, if it still is beside it.
    fn neighbour<'d>(&mut self, database: &'d Database) -> Option<Leaf<'d>> {
        if self.ahead.may_have(self.next_leaf) {
            let mut page = self.spare.take().unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
            if self.ahead.page_of(&database.store, self.next_leaf, &mut page) && self.is_beside(&page) {
                return Some(Leaf::Copied(page));
            }
            self.spare = Some(page);
        }
        // A page that was freed meanwhile may even be unreadable: then the descent finds the way.
        let page = match database.store.read_with(self.next_leaf, AccessHint::Once) {
            Ok(page) => page,
            Err(error) => {
                let times = if self.unreadable.0 == self.next_leaf { self.unreadable.1 + 1 } else { 1 };
                self.unreadable = (self.next_leaf, times);
                self.beside_error = Some(error);
                return None;
            }
        };
        self.is_beside(&page).then_some(Leaf::Latched(page))
    }

    fn is_beside(&self, page: &PageBytes) -> bool {
        let back = match self.direction {
            ScanDirection::Forward => header::left(page),
            ScanDirection::Backward => header::right(page),
        };
        header::page_type(page) == Some(PageType::Leaf) && header::tree(page) == self.tree.id && back == self.last_leaf
    }

    /// Slots of a leaf within the range and beyond what was seen.
    fn slots_inside(&self, page: &PageBytes) -> Range<usize> {
        let leaf = Slotted(page);
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

    /// Notes where to go on after a leaf, or that there is nothing more.
    fn remember(&mut self, page: &PageBytes, slots: &Range<usize>) {
        let leaf = Slotted(page);
        let (at_range_end, next, last_slot) = match self.direction {
            ScanDirection::Forward => (slots.end < leaf.len(), header::right(page), slots.end.checked_sub(1)),
            ScanDirection::Backward => (slots.start > 0, header::left(page), Some(slots.start)),
        };
        if at_range_end || next == PageId::NONE {
            self.done = true;
            return;
        }
        if let Some(slot) = last_slot.filter(|slot| slots.contains(slot)) {
            let mut key = self.after.take().unwrap_or_default();
            key.clear();
            leaf.key(slot, &mut key);
            self.after = Some(key);
        }
        self.last_leaf = header::page_id(page);
        self.next_leaf = next;
    }
}
