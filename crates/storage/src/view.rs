//! Reading: views and what they are asked.
//!
//! A view is a snapshot of the commit table; while it lives, the versions it needs are kept. Reads take no locks.
//! Latches: parent to child, shared, and one version page at a time. Failure: `NotFound` for a tree that is not there for
//! the view's transaction, `Damage`, `Io`.

use crate::btree::{Seek, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{LargeRef, TreeId, TxnId};
use crate::page::{Entry, Slotted, header};
use crate::read_ahead::group::ScanGroup;
use crate::row_block::RowBlock;
use crate::scan::Scan;
use crate::space::layout::EXTENT_PAGES;
use crate::spec::{KeyRange, ScanDirection};
use crate::txn::Txn;
use crate::units::{TreeInfo, extents_of};
use crate::versions::commit_table::Visibility;
use crate::versions::store::VersionStore;
use crate::versions::version::{SAME, Version, visible_behind};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What a reader sees: everything committed before it was taken, and its own transaction's changes.
#[derive(Clone)]
pub struct ReadView {
    database: Arc<Database>,
    visibility: Visibility,
}

impl ReadView {
    pub(crate) fn new(database: Arc<Database>, visibility: Visibility) -> Self {
        Self { database, visibility }
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    pub(crate) fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    /// The same snapshot, with the changes of `txn` up to now.
    pub fn with_txn(&self, txn: &Txn) -> Self {
        Self { database: self.database.clone(), visibility: self.visibility.with_own(txn.id(), txn.begin_view()) }
    }

    /// A view of what is there, committed or not (READ UNCOMMITTED), with its transaction's changes as before.
    pub fn uncommitted(&self) -> Self {
        Self { database: self.database.clone(), visibility: self.visibility.uncommitted() }
    }

    /// The one row with `key`, if the view sees one.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<RowBlock>, StorageError> {
        let info = self.database.tree(tree, self.visibility.own())?;
        row_of(&self.database, &info, key, &self.visibility)
    }

    /// A scan of `range`.
    pub fn scan(&self, tree: TreeId, range: KeyRange, direction: ScanDirection) -> Result<Scan, StorageError> {
        let info = self.database.tree(tree, self.visibility.own())?;
        Ok(Scan::new(self.clone(), info, range, direction))
    }

    /// Up to `parts - 1` keys, rising, that divide a tree into parts of about the same size; fewer of a small tree.
    pub fn dividing_keys(&self, tree: TreeId, parts: usize) -> Result<Vec<Vec<u8>>, StorageError> {
        let info = self.database.tree(tree, self.visibility.own())?;
        self.database.system_tree(&info).dividing_keys(parts.max(1)..=parts.max(1), 1)
    }

    /// The same, of as many parts inside of `parts` as have about `leaves_each` leaves.
    pub fn dividing_keys_of_leaves(
        &self,
        tree: TreeId,
        parts: RangeInclusive<usize>,
        leaves_each: usize,
    ) -> Result<Vec<Vec<u8>>, StorageError> {
        let info = self.database.tree(tree, self.visibility.own())?;
        self.database.system_tree(&info).dividing_keys(parts, leaves_each)
    }

    /// What scans of parts of these ranges of a tree share.
    pub fn scan_group(&self, tree: TreeId, ranges: &[KeyRange]) -> Result<Arc<ScanGroup>, StorageError> {
        let info = self.database.tree(tree, self.visibility.own())?;
        let nodes = self.database.system_tree(&info);
        let leaves = ranges.iter().map(|range| nodes.leaves_between(range)).sum::<Result<usize, _>>()?;
        Ok(Arc::new(ScanGroup::reading(leaves, self.database.store.pool())))
    }

    /// Leaves that scans taking turns should have asked for ahead, so that the disk does not stand still.
    pub fn leaves_ahead(&self) -> usize {
        crate::read_ahead::leaves_ahead(&self.database.store)
    }

    /// Leaves of a tree, about: read from its upper levels, whatever its size.
    pub fn leaf_count(&self, tree: TreeId) -> Result<u64, StorageError> {
        let info = self.database.tree(tree, self.visibility.own())?;
        self.database.system_tree(&info).leaf_count()
    }

    /// Reads a large part whole.
    pub fn read_large(&self, at: LargeRef) -> Result<Vec<u8>, StorageError> {
        crate::large::read(&self.database.store, at)
    }
}

impl Database {
    /// How many pages the extents of a tree have, large values apart: from its maps, without a look at its own pages.
    pub fn pages_at_most(&self, tree: TreeId) -> Result<u64, StorageError> {
        let info = self.tree(tree, 0)?;
        Ok(extents_of(&self.store, info.unit)? * u64::from(EXTENT_PAGES))
    }
}

/// The writer of the newest version of a row, ghost or not; `None` if the tree has no such key.
pub(crate) fn newest_writer(database: &Database, info: &TreeInfo, key: &[u8]) -> Result<Option<u64>, StorageError> {
    let tree = Tree { store: &database.store, info, author: TxnId(0), finishing: false };
    let page = tree.leaf_for_read(Seek::Key(key), &mut |_, _| {})?;
    let leaf = Slotted(&page);
    Ok(leaf.search(key).ok().map(|slot| Version::of(&leaf.entry(slot), header::creator_number(&page)).writer))
}

/// The row with `key` that `view` sees.
pub(crate) fn row_of(database: &Database, info: &TreeInfo, key: &[u8], view: &Visibility) -> Result<Option<RowBlock>, StorageError> {
    let tree = Tree { store: &database.store, info, author: TxnId(0), finishing: false };
    let page = tree.leaf_for_read(Seek::Key(key), &mut |_, _| {})?;
    let (pointer, copy) = {
        let leaf = Slotted(&page);
        let Ok(slot) = leaf.search(key) else { return Ok(None) };
        let entry = leaf.entry(slot);
        let version = Version::of(&entry, header::creator_number(&page));
        let is_seen = view.sees(version.writer);
        if is_seen && version.ghost || !is_seen && version.pointer == 0 {
            return Ok(None);
        }
        if is_seen || version.pointer == SAME {
            let mut whole = Vec::new();
            let row = leaf.row(slot, &mut whole)?;
            return Ok(Some(RowBlock::of_one(key, row.payload, row.large_bytes)));
        }
        (version.pointer, leaf.bytes(slot).to_vec())
    };
    drop(page);
    let entry = Entry::parse(&copy).map_err(|why| StorageError::Bug(format!("entry that was verified: {}", why.0)))?;
    let mut record = Vec::new();
    let mut older = |pointer: u64, out: &mut Vec<u8>| VersionStore::read(&database.store, pointer, out);
    let found = visible_behind(pointer, &entry, &mut record, view, &mut older)?;
    Ok(found.map(|version| RowBlock::of_one(key, version.payload, version.large)))
}
