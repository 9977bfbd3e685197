//! Scans: a leaf at a time, copied under its latch or as it was read ahead, in key order either way.
//!
//! ```text
//!   first:  descend to the range's end
//!   then:   neighbour of the leaf before, if the two still point at each other; else descend by the last key seen
//!   from the second leaf on, forward: `read_ahead` asks for what the level above names next
//!   begun before its turn: from the first leaf on, which the node above it leads to, latched
//! ```
//! No latch is held between calls, so leaves may split, empty and move meanwhile. What makes that harmless: keys at or
//! before the last key seen are skipped wherever they are met, and a leaf reached sideways counts only if it is a leaf
//! of this tree that names the one before as its neighbour.
//!
//! Invariants: 1. keys come strictly in order, none twice (`after`). 2. Every row the view sees is met: a row moves only
//! within the order, and the scan resumes by key. 3. It ends (`position::Sideways`). Latches: one leaf, shared. Failure:
//! `Damage` as met.

pub(crate) mod position;

use crate::ahead_page::AheadPage;
use crate::btree::Tree;
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::page::{PageBytes, Slotted, header};
use crate::pool::{AccessHint, PageRead};
use crate::read_ahead::ReadAhead;
use crate::read_ahead::group::ScanGroup;
use crate::row_block::RowBlock;
use crate::spec::{KeyRange, ScanDirection};
use crate::units::TreeInfo;
use crate::versions::store::VersionStore;
use crate::view::ReadView;
use position::{Position, Sideways};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A scan of a tree in key order, one leaf's visible rows at a time; holds no latch between calls.
pub struct Scan {
    view: ReadView,
    tree: Arc<TreeInfo>,
    position: Position,
    block: RowBlock,
    done: bool,
    last_leaf: PageId,
    next_leaf: PageId,
    ahead: ReadAhead,
    /// Begun before its turn, and not asked for anything yet.
    begun: bool,
    sideways: Sideways,
}

/// A leaf to be looked at: in the pool, or read ahead.
enum Leaf<'d> {
    Latched(PageRead<'d>),
    Ahead(AheadPage),
}

impl Deref for Leaf<'_> {
    type Target = PageBytes;
    fn deref(&self) -> &PageBytes {
        match self {
            Self::Latched(page) => page,
            Self::Ahead(page) => page,
        }
    }
}

impl Scan {
    pub(crate) fn new(view: ReadView, tree: Arc<TreeInfo>, range: KeyRange, direction: ScanDirection) -> Self {
        Self {
            view,
            tree,
            position: Position::new(range, direction),
            block: RowBlock::default(),
            done: false,
            last_leaf: PageId::NONE,
            next_leaf: PageId::NONE,
            ahead: ReadAhead::new(),
            begun: false,
            sideways: Sideways::new(),
        }
    }

    /// This scan is one of many that take turns: it reads ahead no more than `leaves` at a time, and the next once they are used.
    pub fn read_ahead_at_most(&mut self, leaves: usize) {
        self.ahead.bound(leaves);
    }

    /// The range is read to its end: reading ahead need not find out first.
    pub fn expect_whole(&mut self) {
        self.ahead.expect_whole();
    }

    /// Asks for what a forward scan reads first, before its turn comes: the scan is of one of the parts of a tree that those of
    /// `group` read to their ends one after another.
    pub fn begin(&mut self, group: &Arc<ScanGroup>) -> Result<(), StorageError> {
        assert!(self.position.is_forward() && self.next_leaf == PageId::NONE && !self.begun, "a forward scan begins once");
        let (database, tree) = (self.view.database().clone(), self.tree.clone());
        let nodes = Tree { store: &database.store, info: &tree, author: TxnId(0), finishing: false };
        let mut above = [None; 2];
        let found = nodes.above_leaf(self.position.seek(), &mut |node, slot| above = [above[1], Some((header::page_id(node.0), slot))])?;
        drop(found);
        if let Some(node) = above[1] {
            self.ahead.begin((&database.store, &tree, &self.position.range), group, node, above[0]);
            self.begun = true;
        }
        Ok(())
    }

    /// Leaves that were asked for and that the scan has not come to.
    pub fn leaves_ahead(&self) -> usize {
        self.ahead.leaves_under_way()
    }

    /// The tree.
    pub fn tree(&self) -> TreeId {
        self.tree.id
    }

    /// Goes on with the rows that `view` sees: what has been read ahead, and where the scan is, stays. For work so long that
    /// one view would keep old versions alive.
    pub fn renew(&mut self, view: ReadView) {
        self.view = view;
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
            let slots = self.position.slots_inside(&leaf);
            self.remember(&leaf, &slots);
            Self::hand_over(leaf, block);
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
            let slots = self.position.slots_inside(&leaf);
            self.remember(&leaf, &slots);
            let count = if RowBlock::all_seen(&leaf, self.view.visibility()) {
                slots.len()
            } else {
                let mut block = std::mem::take(&mut self.block);
                Self::hand_over(leaf, &mut block);
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

    fn hand_over(leaf: Leaf<'_>, block: &mut RowBlock) {
        match leaf {
            Leaf::Latched(page) => block.copy_page(&page),
            Leaf::Ahead(page) => block.look_at(page),
        }
    }

    fn list(&self, slots: Range<usize>, block: &mut RowBlock, database: &Database) -> Result<(), StorageError> {
        let backward = !self.position.is_forward();
        let mut older = |pointer: u64, out: &mut Vec<u8>| VersionStore::read(&database.store, pointer, out);
        block.list(slots, backward, self.view.visibility(), &mut older)
    }

    /// The leaf beside the last one, or the one found by descending.
    fn next_leaf<'d>(&mut self, database: &'d Database, tree: &'d TreeInfo) -> Result<Leaf<'d>, StorageError> {
        if self.next_leaf != PageId::NONE {
            if self.position.is_forward() {
                self.ahead.advance(&database.store, tree, &self.position.range);
            }
            // Sideways first: descending by the last key seen must not lead back over leaves without keys.
            let error = match self.neighbour(database) {
                Ok(Some(leaf)) if self.sideways.stepped(self.next_leaf) => return Ok(leaf),
                Ok(_) => None,
                // A page that was freed meanwhile may even be unreadable: then the descent finds the way.
                Err(error) => Some(error),
            };
            self.sideways.failed(self.last_leaf, self.next_leaf, error)?;
            self.ahead.restart();
        }
        let tree = Tree { store: &database.store, info: tree, author: TxnId(0), finishing: false };
        if std::mem::take(&mut self.begun)
            && let Some(page) = self.first_ahead(&tree)?
        {
            return Ok(Leaf::Ahead(page));
        }
        // The nodes of level 2, if there is one, and of level 1.
        let mut above = [None; 2];
        let seek = self.position.seek();
        let leaf = tree.leaf_for_read(seek, &mut |node, slot| above = [above[1], Some((header::page_id(node.0), slot))])?;
        if let Some(node) = above[1].filter(|_| self.position.is_forward()) {
            self.ahead.start(node, above[0]);
        }
        Ok(Leaf::Latched(leaf))
    }

    /// The first leaf of a scan that was begun before its turn, if it was read ahead.
    fn first_ahead(&mut self, tree: &Tree<'_>) -> Result<Option<AheadPage>, StorageError> {
        self.ahead.advance(tree.store, tree.info, &self.position.range);
        // Waited for before the node is latched.
        self.ahead.receive_first();
        let Some((_above, leaf)) = tree.above_leaf(self.position.seek(), &mut |_, _| {})? else { return Ok(None) };
        let page = self.ahead.page_of(tree.store, leaf);
        // With the node above latched, and absent from the pool since it was read, it is what the node leads to.
        Ok(page.filter(|page| tree.check_node(page, leaf, Some(0)).is_ok()))
    }

    /// The leaf beside the last one, if it still is beside it.
    fn neighbour<'d>(&mut self, database: &'d Database) -> Result<Option<Leaf<'d>>, StorageError> {
        if let Some(page) = self.ahead.page_of(&database.store, self.next_leaf).filter(|page| self.is_beside(page)) {
            return Ok(Some(Leaf::Ahead(page)));
        }
        let page = database.store.read_with(self.next_leaf, AccessHint::Once)?;
        Ok(if self.is_beside(&page) { Some(Leaf::Latched(page)) } else { None })
    }

    fn is_beside(&self, page: &PageBytes) -> bool {
        self.position.follows(page, self.tree.id, self.last_leaf)
    }

    /// Notes where to go on after a leaf, or that there is nothing more.
    fn remember(&mut self, page: &PageBytes, slots: &Range<usize>) {
        let next = self.position.beside(page);
        if self.position.ends_in(page, slots) || next == PageId::NONE {
            self.done = true;
            return;
        }
        let last_slot = if self.position.is_forward() { slots.end.checked_sub(1) } else { Some(slots.start) };
        if let Some(slot) = last_slot.filter(|slot| slots.contains(slot)) {
            let mut key = self.position.after.take().unwrap_or_default();
            key.clear();
            Slotted(page).key(slot, &mut key);
            self.position.after = Some(key);
            self.sideways.found_keys();
        }
        self.last_leaf = header::page_id(page);
        self.next_leaf = next;
    }
}
