//! Transactions: changes that come together or not at all, and the locks that keep writers apart.
//!
//! ```text
//!   begin ── first write: id ── per table: IX lock, per tree: Touch ── per row: X lock, change, undo ── commit | rollback
//!   commit:   commit record (ordered with checkpoints) -> flush -> publish -> release locks
//!   rollback: undo entries newest first, as logged changes -> "nothing left" record -> release locks
//! ```
//! Invariants:
//! 1. While a transaction is open it holds X on the key of every row it changed, or X on the whole table (`txn_locks`).
//! 2. Its changes are seen by views only after its commit record is durable and its locks are still held (`commit`).
//! 3. A rollback that cannot finish leaves the transaction aborted: its rows are read through and cleaned later
//!    (`abandon`); the caller learns of it only if it asked for a savepoint.
//!
//! Locks: table before key, never under a latch. Failure: see each method; after `Deadlock` everything is rolled back.

use crate::btree::{RowEdit, Tree};
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::PageId;
use crate::ids::{LargeRef, TreeId, TxnId};
use crate::locks::{LockMode, LockOwner, Party, Resource};
use crate::mini::Mini;
use crate::row_block::RowBlock;
use crate::row_change::{Along, Changed, EditorState, LogReserve, RowEditor};
use crate::spec::{KeyRange, Row, TreeSpec};
use crate::txn_locks::{Gap, NextKey};
use crate::undo::UndoLog;
use crate::units::{TreeInfo, UnitKind, unit_key};
use crate::versions::commit_table::{COMMAND_MAX, Visibility, writer_of};
use crate::versions::records::TxnRecord;
use crate::versions::version::Change;
use crate::view::{self, ReadView};
use observe::cancel::CancelToken;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thawdb_observe as observe;

/// A transaction, or a place for one: it gets its id with its first write. Dropping an unfinished one rolls it back.
pub struct Txn {
    pub(crate) database: Arc<Database>,
    pub(crate) id: Option<TxnId>,
    pub(crate) undo: UndoLog,
    pub(crate) owner: LockOwner,
    pub(crate) trees: Vec<TxnTree>,
    pub(crate) reserve: LogReserve,
    pub(crate) leaves: Vec<(TreeId, PageId)>,
    /// Large parts that nothing refers to any more, to be freed at the end.
    pub(crate) freed_large: Vec<(TreeId, Vec<u8>)>,
    pub(crate) dropped: Vec<Arc<TreeInfo>>,
    pub(crate) edit: RowEdit,
    pub(crate) snapshot: Option<Visibility>,
    pub(crate) lock_timeout: Option<Duration>,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) deadlock_priority: i8,
    /// Locks that go when the statement ends.
    pub(crate) statement_locks: Vec<Resource>,
    /// Trees in which it holds key ranges, counted in the database.
    pub(crate) range_trees: Vec<TreeId>,
    /// Tables whose locks stay single however many they are.
    pub(crate) never_escalated: Vec<u32>,
    /// The command up to which the running statement's locking reads see changes.
    pub(crate) statement_command: Option<u64>,
    /// Its commit returns before it is durable.
    delayed: bool,
    /// A rollback did not finish: only ending is left.
    pub(crate) failed: bool,
    /// Number of the present command: changes made now carry it.
    command: u64,
    /// A view of its changes was taken: the next change belongs to a new command, which that view does not see.
    viewed: AtomicBool,
}

/// What a transaction knows of a tree it writes.
pub(crate) struct TxnTree {
    pub(crate) info: Arc<TreeInfo>,
    /// The `Touch` record is still to be logged.
    pub(crate) touch: bool,
    /// Key locks of the running statement, and their number at which it tries to lock the table instead.
    pub(crate) key_locks: usize,
    pub(crate) escalate_at: usize,
    /// What is held on the table.
    pub(crate) table_mode: Option<LockMode>,
}

/// A point within a transaction to which it can be rolled back (statement start, SAVE TRANSACTION).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub(crate) usize);

impl Txn {
    pub(crate) fn new(database: Arc<Database>, party: Option<Party>) -> Self {
        let owner = party.map_or_else(|| database.locks.owner(), |party| database.locks.owner_of(party));
        Self {
            database,
            id: None,
            undo: UndoLog::default(),
            owner,
            trees: Vec::new(),
            reserve: LogReserve::default(),
            leaves: Vec::new(),
            freed_large: Vec::new(),
            dropped: Vec::new(),
            edit: RowEdit::default(),
            snapshot: None,
            lock_timeout: None,
            cancel: None,
            deadlock_priority: 0,
            delayed: false,
            statement_locks: Vec::new(),
            range_trees: Vec::new(),
            never_escalated: Vec::new(),
            statement_command: None,
            failed: false,
            command: 0,
            viewed: AtomicBool::new(false),
        }
    }

    /// Its id; `None` before its first write.
    pub fn id(&self) -> Option<TxnId> {
        self.id
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Its number in the lock table (`Database::locks`).
    pub fn lock_owner(&self) -> u64 {
        self.owner.id()
    }

    /// Longest wait for a lock (SET LOCK_TIMEOUT): zero is NOWAIT, `None`, as at first, for ever.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.lock_timeout = timeout;
    }

    /// What ends its waits with `Cancelled`.
    pub fn set_cancel(&mut self, cancel: Option<CancelToken>) {
        self.cancel = cancel;
    }

    /// SET DEADLOCK_PRIORITY, -10 to 10; 0 at first.
    pub fn set_deadlock_priority(&mut self, priority: i8) {
        self.deadlock_priority = priority;
    }

    /// Lets its commit return before it is durable: a crash soon after may lose it, whole, with all that followed it. It is
    /// durable with the next commit that is not delayed, and within a turn of the background at the latest.
    pub fn set_delayed_durability(&mut self, delayed: bool) {
        self.delayed = delayed;
    }

    /// SNAPSHOT isolation: writing a row that has changed since `view` is `SnapshotConflict` from now on.
    pub fn use_snapshot(&mut self, view: &ReadView) {
        self.snapshot = Some(view.visibility().clone());
    }

    /// Another level than SNAPSHOT: rows are written whoever changed them before.
    pub fn leave_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// What a deadlock would cost it: changes to be undone.
    pub fn undo_count(&self) -> u64 {
        self.undo.entry_count()
    }

    /// Its id, given now if it has none.
    pub(crate) fn ensure_id(&mut self) -> Result<TxnId, StorageError> {
        if self.failed {
            return Err(StorageError::Bug("a transaction that could not be rolled back to its savepoint goes on".into()));
        }
        if let Some(id) = self.id {
            return Ok(id);
        }
        let id = self.database.commits.begin();
        self.database.commits.advance_horizon();
        self.id = Some(id);
        Ok(id)
    }

    /// The command up to which a view taken now sees its changes.
    pub(crate) fn begin_view(&self) -> u64 {
        // Relaxed: only the transaction's own thread writes.
        self.viewed.store(true, Ordering::Relaxed);
        self.command
    }

    /// The writer of a change made now.
    pub(crate) fn writer(&mut self, me: TxnId) -> u64 {
        if self.viewed.swap(false, Ordering::Relaxed) {
            self.command = (self.command + 1).min(COMMAND_MAX);
        }
        writer_of(me, self.command)
    }

    /// The place in `trees` of a tree that is about to be written, with `mode` held on its table.
    pub(crate) fn open_tree(&mut self, tree: TreeId, mode: LockMode) -> Result<usize, StorageError> {
        self.database.store.relieve_log()?;
        let me = self.ensure_id()?;
        let place = self.known_tree(tree)?;
        self.database.store.check_writable(self.trees[place].info.filegroup, tree)?;
        self.lock_table(place, mode)?;
        if self.trees[place].touch {
            self.database.commits.touch(me, tree);
        }
        self.database.make_version_segment()?;
        Ok(place)
    }

    /// Makes an empty tree; gone again if the transaction rolls back.
    pub fn create_tree(&mut self, spec: TreeSpec) -> Result<TreeId, StorageError> {
        self.create_tree_of(spec, false)
    }

    /// The same; with `packs_leaves`, one whose rows are in the compact form and whose leaves are packed when they are full.
    pub fn create_tree_of(&mut self, spec: TreeSpec, packs_leaves: bool) -> Result<TreeId, StorageError> {
        let me = self.ensure_id()?;
        let place = self.open_tree(Database::UNITS_TREE, LockMode::IX)?;
        let tree = self.database.commits.tree_id();
        let writer = self.writer(me);
        let mut made = None;
        let mut along = |mini: &mut Mini<'_>, edit: &mut RowEdit| {
            mini.log_only(&TxnRecord::TreeMade(tree).encode());
            let info = Database::make_tree(mini, tree, (spec, packs_leaves), TxnId(writer))?;
            edit.payload.clear();
            edit.payload.extend_from_slice(&info.encode());
            made = Some(info);
            Ok(())
        };
        let blank = [0; crate::units::UNIT_ROW_BYTES];
        let changed = self.change_in(place, &unit_key(tree), Change::Insert, &blank, &[], Some(&mut along))?;
        assert!(changed == Changed::Done, "tree ids are given once");
        self.database.add_tree(made.expect("made along with its row"));
        self.undo.tree_made(tree);
        Ok(tree)
    }

    /// Drops a tree: unseen at once, its pages freed in the background after commit, there again after rollback.
    pub fn drop_tree(&mut self, tree: TreeId) -> Result<(), StorageError> {
        let me = self.ensure_id()?;
        let dropped = self.open_tree(tree, LockMode::X)?;
        let info = self.trees[dropped].info.clone();
        if info.kind != UnitKind::Tree || tree.0 < Database::FIRST_FREE_TREE {
            return Err(StorageError::NoTree(tree));
        }
        let place = self.open_tree(Database::UNITS_TREE, LockMode::IX)?;
        // The ghost keeps the row: whoever frees the pages after a crash reads there which.
        match self.change_in(place, &unit_key(tree), Change::Delete, &info.encode(), &[], None)? {
            Changed::Done => {}
            Changed::Duplicate | Changed::Missing | Changed::GapUnlocked => return Err(StorageError::NoTree(tree)),
        }
        info.set_dropped_by(me.0);
        self.undo.tree_dropped(tree);
        self.dropped.push(info);
        Ok(())
    }

    /// Inserts; `Duplicate` if a row with the key is there (waits for the fate of another transaction's).
    pub fn insert(&mut self, tree: TreeId, key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
        match self.change(tree, key, Change::Insert, row)? {
            Changed::Done => Ok(()),
            Changed::Duplicate | Changed::Missing | Changed::GapUnlocked => Err(StorageError::Duplicate { tree, key: key.to_vec() }),
        }
    }

    /// Replaces the row with `key`; false if none is there now. Waits for other writers of the row.
    pub fn update(&mut self, tree: TreeId, key: &[u8], row: Row<'_>) -> Result<bool, StorageError> {
        Ok(self.change(tree, key, Change::Update, row)? == Changed::Done)
    }

    /// Deletes the row with `key`; false if none is there now. Waits for other writers of the row.
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool, StorageError> {
        Ok(self.change(tree, key, Change::Delete, Row::inline(&[]))? == Changed::Done)
    }

    fn change(&mut self, tree: TreeId, key: &[u8], change: Change, row: Row<'_>) -> Result<Changed, StorageError> {
        check_lengths(key, row)?;
        let place = self.open_tree(tree, LockMode::IX)?;
        self.lock_key(place, key, LockMode::X)?;
        if row.large.is_empty() {
            return self.change_in(place, key, change, row.inline, &[], None);
        }
        let refs = self.write_large(place, row.large)?;
        let outcome = self.change_in(place, key, change, row.inline, &refs, None);
        if !matches!(outcome, Ok(Changed::Done)) {
            self.freed_large.push((tree, refs));
        }
        outcome
    }

    pub(crate) fn write_large(&mut self, place: usize, parts: &[&[u8]]) -> Result<Vec<u8>, StorageError> {
        let info = self.trees[place].info.clone();
        let me = self.ensure_id()?;
        let mut refs = Vec::with_capacity(parts.len() * size_of::<LargeRef>());
        for part in parts {
            match crate::large::write(&self.database, &info, me, part) {
                Ok(at) => refs.extend_from_slice(&at.0),
                Err(error) => {
                    self.freed_large.push((info.id, refs));
                    return Err(error);
                }
            }
        }
        Ok(refs)
    }

    fn change_in(
        &mut self,
        place: usize,
        key: &[u8],
        change: Change,
        inline: &[u8],
        large: &[u8],
        mut along: Option<Along<'_, '_>>,
    ) -> Result<Changed, StorageError> {
        let me = self.ensure_id()?;
        let writer = self.writer(me);
        let mut gap = Gap::Unlocked;
        loop {
            let (changed, next) = self.edit_row(place, key, (me, writer), (change, inline, large), &gap, along.as_deref_mut())?;
            if changed == Changed::GapUnlocked {
                self.unlock_gap(gap);
                gap = self.lock_gap(place, key, next)?;
                continue;
            }
            self.unlock_gap(gap);
            return Ok(changed);
        }
    }

    /// One attempt at a change; the key above, if it must be locked first.
    fn edit_row(
        &mut self,
        place: usize,
        key: &[u8],
        (me, writer): (TxnId, u64),
        (change, inline, large): (Change, &[u8], &[u8]),
        gap: &Gap,
        along: Option<Along<'_, '_>>,
    ) -> Result<(Changed, NextKey), StorageError> {
        let database = self.database.clone();
        let known = &mut self.trees[place];
        let tree = Tree { store: &database.store, info: &known.info, author: me, finishing: false };
        let mut editor = RowEditor {
            database: &database,
            undo: &mut self.undo,
            reserve: &mut self.reserve,
            touch: &mut known.touch,
            leaves: &mut self.leaves,
            freed_large: &mut self.freed_large,
            snapshot: self.snapshot.as_ref(),
            along,
            me,
            writer,
            tree: known.info.id,
            key,
            change,
            inline,
            large,
            gap: (known.table_mode != Some(LockMode::X)).then_some(gap),
            state: EditorState::default(),
        };
        let changed = tree.edit(key, &mut self.edit, &database.settler(known.info.id), &mut editor)?;
        Ok((changed, editor.state.next_key))
    }

    /// Locks the row for update and returns its newest committed (or own) state, `None` if it is gone: what UPDATE and
    /// DELETE re-check their predicate on. Under SNAPSHOT a row changed since is `SnapshotConflict`.
    pub fn lock_row(&mut self, tree: TreeId, key: &[u8]) -> Result<Option<RowBlock>, StorageError> {
        let place = self.open_tree(tree, LockMode::IX)?;
        self.lock_key(place, key, LockMode::U)?;
        let info = self.trees[place].info.clone();
        let view = self.database.commits.view(self.id);
        self.check_snapshot(&info, key, &view)?;
        view::row_of(&self.database, &info, key, &view)
    }

    /// Whether a row is there, as its newest committed (or own) state says; it stays so until this transaction ends: what a
    /// FOREIGN KEY asks of the row referred to.
    pub fn share_row(&mut self, tree: TreeId, key: &[u8]) -> Result<bool, StorageError> {
        let place = self.open_tree(tree, LockMode::IX)?;
        self.lock_key(place, key, LockMode::S)?;
        let info = self.trees[place].info.clone();
        let view = self.database.commits.view(self.id);
        Ok(view::row_of(&self.database, &info, key, &view)?.is_some())
    }

    /// Whether any live entry (committed, or this transaction's own) has a key in `range` other than `except`:
    /// the uniqueness check of secondary indexes. Waits for the fate of other transactions' entries there, and keeps
    /// others who ask about a range with the same start waiting until this transaction ends. Under SNAPSHOT an entry there that has
    /// gone since is `SnapshotConflict`.
    pub fn any_live_in(&mut self, tree: TreeId, range: &KeyRange, except: Option<&[u8]>) -> Result<bool, StorageError> {
        let place = self.open_tree(tree, LockMode::IX)?;
        if let Bound::Included(start) | Bound::Excluded(start) = &range.start {
            self.lock_key(place, start, LockMode::X)?;
        }
        loop {
            let info = self.trees[place].info.clone();
            let view = self.database.commits.view(self.id);
            match crate::unique::look(&self.database, &info, range, except, (&view, self.snapshot.as_ref()))? {
                crate::unique::Found::Live => return Ok(true),
                crate::unique::Found::GoneSince => return Err(StorageError::SnapshotConflict { tree }),
                crate::unique::Found::Nothing => return Ok(false),
                crate::unique::Found::Open(key) => {
                    let resource = self.key_resource(tree, &key);
                    let held = self.owner.held(resource);
                    self.lock(resource, LockMode::S)?;
                    if held.is_none() {
                        self.unlock(resource);
                    }
                }
            }
        }
    }

    /// The present point.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.undo.position())
    }

    /// Commits; durable on return.
    pub fn commit(mut self) -> Result<(), StorageError> {
        if self.failed {
            self.roll_back_all();
            return Err(StorageError::Bug("a transaction that could not be rolled back to its savepoint was committed".into()));
        }
        let Some(me) = self.id else {
            self.finish();
            return Ok(());
        };
        if self.trees.iter().all(|tree| tree.touch) {
            // It has an id and changed nothing.
            self.database.commits.reverted(me);
            self.finish();
            return Ok(());
        }
        let logged = self.database.commits.begin_commit(me, || {
            let mut mini = Mini::begin(&self.database.store, me).finishing();
            mini.log_only(&TxnRecord::Commit(me).encode());
            mini.commit()
        });
        let end = match logged {
            Ok(end) => end,
            Err(error) => {
                self.roll_back_all();
                return Err(error);
            }
        };
        let flushed = if self.delayed { Ok(()) } else { self.database.store.flush_log(end) };
        if let Err(error) = flushed {
            // Nobody knows whether it is durable: it stays open, unseen, until the database is opened again.
            self.finish();
            return Err(error);
        }
        self.database.commits.publish(me);
        self.database.after_commit(me, &mut self.leaves, &mut self.dropped);
        self.finish();
        Ok(())
    }

    /// Rolls everything back.
    pub fn rollback(mut self) -> Result<(), StorageError> {
        self.roll_back_all();
        Ok(())
    }

    /// Gives up locks and what else it holds; it is as new.
    pub(crate) fn finish(&mut self) {
        self.reserve.release(&self.database);
        self.database.free_large_later(&mut self.freed_large);
        self.forget_locks();
        self.undo = UndoLog::default();
        self.trees.clear();
        self.leaves.clear();
        self.dropped.clear();
        self.id = None;
        self.failed = false;
        self.command = 0;
    }
}

pub(crate) fn check_lengths(key: &[u8], row: Row<'_>) -> Result<(), StorageError> {
    if key.len() > Database::KEY_BYTES_MAX {
        return Err(StorageError::TooLong { bytes: key.len(), bytes_max: Database::KEY_BYTES_MAX });
    }
    let bytes = key.len() + row.inline.len() + row.large.len() * size_of::<LargeRef>();
    if bytes > Database::INLINE_BYTES_MAX {
        return Err(StorageError::TooLong { bytes, bytes_max: Database::INLINE_BYTES_MAX });
    }
    Ok(())
}

impl Drop for Txn {
    fn drop(&mut self) {
        if self.id.is_some() || self.owner.lock_count() > 0 {
            self.roll_back_all();
        }
    }
}
