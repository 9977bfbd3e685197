//! Segments of the version store: made, and freed after the large parts of the versions they held were taken from them.
//!
//! A record's large parts are dead with the segment, unless the version was given back to its leaf: after the pusher
//! committed, the version is history; after it aborted, versions of others were restored (and marked so), and its own
//! intermediate versions are dead.
//!
//! Invariants: as of `cleaner`; a record whose parts were taken is marked in the same group, as one given back is, so that
//! they are taken once. Latches: one page at a time. Failure: freeing is tried again from the start.

use crate::btree::{Decision, EditKind, Editor, RowEdit};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::mini::{Mini, UnitSpec};
use crate::page::{PageBytes, PageType, Slotted, VersionTag, header};
use crate::space::Unit;
use crate::units::{TreeInfo, UNIT_ROW_BYTES, UnitKind, unit_key};
use crate::versions::store::{Segment, VersionStore};
use crate::versions::version;
use std::sync::atomic::Ordering;

struct SegmentEditor {
    tree: TreeId,
    unit: Option<Unit>,
}

impl Editor for SegmentEditor {
    type Outcome = ();

    fn decide(&mut self, _page: &PageBytes, found: Result<usize, usize>, edit: &mut RowEdit) -> Result<Decision<()>, StorageError> {
        if found.is_ok() {
            return Err(StorageError::Bug(format!("tree id {} is taken", self.tree.0)));
        }
        edit.kind = EditKind::Insert;
        edit.payload.resize(UNIT_ROW_BYTES, 0);
        // Committed from the start, whatever transaction made the page.
        edit.tag = Some(VersionTag { txn: TxnId(0), version: 0 });
        Ok(Decision::Apply(()))
    }

    fn push(&mut self, mini: &mut Mini<'_>, edit: &mut RowEdit) -> Result<(), StorageError> {
        mini.log_only(&Database::tree_made_record(self.tree));
        let unit = mini.create_unit(UnitSpec { tree: self.tree, object_id: 0, index_id: 0, filegroup: 1 })?;
        let info = TreeInfo::new(self.tree, UnitKind::Versions, PageId::NONE, unit, 1, 0, 0);
        edit.payload.copy_from_slice(&info.encode());
        self.unit = Some(unit);
        Ok(())
    }

    fn done(&mut self, _leaf: PageId, _edit: &RowEdit) {}
}

/// Makes the unit of a version segment and its row in the units tree, in one group.
pub(crate) fn make_segment(database: &Database, tree: TreeId) -> Result<Unit, StorageError> {
    let mut editor = SegmentEditor { tree, unit: None };
    let units = database.units().clone();
    database.system_tree(&units).edit(&unit_key(tree), &mut RowEdit::default(), &database.settler(units.id), &mut editor)?;
    Ok(editor.unit.expect("an edit that returns has pushed"))
}

/// Removes a row that nobody needs, without version or trace.
pub(super) struct RowRemover;

impl Editor for RowRemover {
    type Outcome = ();

    fn decide(&mut self, _page: &PageBytes, found: Result<usize, usize>, edit: &mut RowEdit) -> Result<Decision<()>, StorageError> {
        if found.is_err() {
            return Ok(Decision::Leave(()));
        }
        edit.kind = EditKind::Remove;
        Ok(Decision::Apply(()))
    }

    fn push(&mut self, _mini: &mut Mini<'_>, _edit: &mut RowEdit) -> Result<(), StorageError> {
        Ok(())
    }

    fn done(&mut self, _leaf: PageId, _edit: &RowEdit) {}
}

impl Database {
    /// Frees the segments that nobody needs any more.
    pub(super) fn free_segments(&self, horizon: u64) -> Result<bool, StorageError> {
        let segments = self.versions.take_unneeded(horizon, !self.commits.aborted_are_forgotten());
        for (index, segment) in segments.iter().enumerate() {
            if let Err(error) = self.free_segment(segment) {
                self.versions.give_back(segments[index..].to_vec());
                return Err(error);
            }
        }
        Ok(!segments.is_empty())
    }

    fn free_segment(&self, segment: &Segment) -> Result<(), StorageError> {
        if segment.has_large.load(Ordering::Acquire) {
            for page in self.unit_pages(segment.unit, segment.tree)? {
                self.loosen_large_of(page, segment.tree)?;
            }
        }
        self.free_unit(segment.unit, segment.tree)?;
        self.remove_unit_row(segment.tree)
    }

    /// Takes the large parts of the dead versions on a page of the store from them, to be freed.
    fn loosen_large_of(&self, page: PageId, segment: TreeId) -> Result<(), StorageError> {
        let mut mini = Mini::begin(&self.store, TxnId(0)).finishing();
        let latched = mini.latch(page)?;
        let bytes = mini.page(latched);
        if header::page_type(bytes) != Some(PageType::Version) || header::tree(bytes) != segment {
            return Ok(());
        }
        let records = Slotted(bytes);
        let mut dead: Vec<(u64, TreeId, Vec<u8>)> = Vec::new();
        for slot in 0..records.len() {
            let pointer = version::pointer(page, u16::try_from(slot).expect("slots are few"));
            let (key, old) = version::decode_record(records.bytes(slot)).map_err(|why| version::damaged(pointer, why))?;
            if !key.restored && !old.large.is_empty() {
                dead.push((pointer, TreeId(key.tree), old.large.to_vec()));
            }
        }
        for (pointer, tree, parts) in &dead {
            VersionStore::mark_restored(&mut mini, *pointer)?;
            mini.loosen(*tree, parts);
        }
        mini.commit()?;
        self.cleaner.free_large(dead.into_iter().map(|(_, tree, parts)| (tree, parts)).collect());
        Ok(())
    }
}
