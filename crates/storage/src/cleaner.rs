//! Tidying: what commits and rollbacks leave behind for when nobody needs it any more.
use crate::btree::{Decision, EditKind, Editor, RowEdit};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::mini::{Mini, UnitSpec};
use crate::page::PageBytes;
use crate::space::Unit;
use crate::units::{TreeInfo, UNIT_ROW_BYTES, UnitKind, unit_key};
use observe::sync::{LockClass, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use thawdb_observe as observe;

static CLEANER: LockClass = LockClass::new("VERSION_CLEANER", 5);

struct Committed {
    txn: TxnId,
    leaves: Vec<(TreeId, PageId)>,
    dropped: Vec<Arc<TreeInfo>>,
}

#[derive(Default)]
struct Queue {
    committed: VecDeque<Committed>,
    large: Vec<(TreeId, Vec<u8>)>,
}

/// What waits to be tidied.
pub(crate) struct Cleaner {
    queue: Mutex<Queue>,
}

impl Cleaner {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(&CLEANER, Queue::default()) }
    }

    pub(crate) fn committed(&self, txn: TxnId, leaves: Vec<(TreeId, PageId)>, dropped: Vec<Arc<TreeInfo>>) {
        self.queue.lock().committed.push_back(Committed { txn, leaves, dropped });
    }

    pub(crate) fn free_large(&self, mut large: Vec<(TreeId, Vec<u8>)>) {
        if !large.is_empty() {
            self.queue.lock().large.append(&mut large);
        }
    }
}

/// Makes the unit of a version segment and its row in the units tree, in one group.
pub(crate) fn make_segment(database: &Database, tree: TreeId) -> Result<Unit, StorageError> {
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
            edit.tag = Some(crate::page::VersionTag { txn: TxnId(0), version: 0 });
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
    let mut editor = SegmentEditor { tree, unit: None };
    let units = database.units().clone();
    database.system_tree(&units).edit(&unit_key(tree), &mut RowEdit::default(), &database.settler(units.id), &mut editor)?;
    Ok(editor.unit.expect("an edit that returns has pushed"))
}
