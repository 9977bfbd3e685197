//! Reads that lock: the newest committed rows, each waited for while another transaction is changing it.
//!
//! ```text
//!   copy the leaf ──> lock its keys (and the gap) ──> is the leaf still the same? ── no, or had to wait ──> again
//!                                                          └ yes ──> rows as they stand, seen by a view taken now
//! ```
//! Without keeping locks nothing is locked that stands committed: who is changing a row holds X on its key, so a row whose
//! newest writer has ended could be locked at once and given back, and only others are waited for.
//!
//! Invariants:
//! 1. With kept locks a row is given out only in a state that was on its leaf after its key was locked (`is_unchanged`).
//! 2. With ranges every key of the tree between the range's start and the last key locked is locked itself, and the leaves
//!    between were unchanged after the last of them was locked: nothing lies in a gap unseen (`Leaves`).
//! 3. A statement does not see its own changes, as with views (`Txn::read_visibility`).
//!
//! Locks: table, then keys, never under a latch. Latches: one leaf at a time, shared. Failure: as of `locks`, and `Damage`
//! as met; `SnapshotConflict` for a row that the transaction's snapshot does not see.

use crate::btree::Tree;
use crate::database::Database;
use crate::error::StorageError;
use crate::ids::{PageId, TreeId, TxnId};
use crate::locks::LockMode;
use crate::page::{PageBytes, Slotted, header};
use crate::row_block::RowBlock;
use crate::scan::position::{Position, Sideways};
use crate::spec::{KeyRange, ScanDirection};
use crate::txn::Txn;
use crate::txn_locks::ReadLocks;
use crate::units::TreeInfo;
use crate::versions::commit_table::{Fate, Visibility, txn_of};
use crate::versions::store::VersionStore;
use crate::versions::version::Version;
use crate::view::{self, ReadView};
use std::collections::BTreeSet;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Rows that a locking read has found.
#[derive(Default)]
pub struct LockedRows {
    /// The rows.
    pub block: RowBlock,
    /// For each row, whether its lock was not held before: it may be given back if the row is not wanted.
    pub fresh: Vec<bool>,
}

/// A scan that locks; holds no latch between calls.
pub struct LockingScan {
    database: Arc<Database>,
    tree: Arc<TreeInfo>,
    position: Position,
    locks: ReadLocks,
    done: bool,
    /// The gap beyond the range's upper end is still to be locked (scans that fall).
    gap_above: bool,
    /// Keys locked for the rows to come that were not locked before.
    fresh: BTreeSet<Vec<u8>>,
    /// Keeps the versions behind the copied leaves.
    _guard: ReadView,
}

/// Copies of the leaves from the last key dealt with to the next one; the last has it, if there is one.
struct Leaves {
    pages: Vec<Box<PageBytes>>,
    slots: Range<usize>,
    /// The range ends in the last leaf, or the tree does.
    at_end: bool,
}

impl Leaves {
    fn leaf(&self) -> &PageBytes {
        self.pages.last().expect("a leaf was copied")
    }

    fn key(&self, slot: usize) -> Vec<u8> {
        let mut key = Vec::new();
        Slotted(self.leaf()).key(slot, &mut key);
        key
    }
}

impl LockedRows {
    /// Keeps the rows whose number `keep` accepts; they are numbered anew.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut row = 0;
        self.fresh.retain(|_| {
            row += 1;
            keep(row - 1)
        });
        self.block.retain_listed(keep);
    }
}

impl Txn {
    /// What a locking read of the running statement sees now: all that is committed, and this transaction's changes of
    /// statements before.
    fn read_visibility(&mut self) -> Visibility {
        let command = match self.statement_command {
            Some(command) => command,
            None => *self.statement_command.insert(self.begin_view()),
        };
        self.database.commits.view_up_to(self.id, command)
    }

    /// A scan that locks as `locks` says.
    pub fn locking_scan(
        &mut self,
        tree: TreeId,
        range: KeyRange,
        direction: ScanDirection,
        locks: ReadLocks,
    ) -> Result<LockingScan, StorageError> {
        let place = self.open_for_read(tree, &locks)?;
        let guard = ReadView::new(self.database.clone(), self.read_visibility());
        Ok(LockingScan {
            database: self.database.clone(),
            tree: self.trees[place].info.clone(),
            position: Position::new(range, direction),
            locks,
            done: false,
            gap_above: locks.ranges && direction == ScanDirection::Backward,
            fresh: BTreeSet::new(),
            _guard: guard,
        })
    }

    /// The one row with `key`, locked. With ranges, the gap is locked if there is no such row.
    pub fn read_locked(&mut self, tree: TreeId, key: &[u8], locks: ReadLocks) -> Result<LockedRows, StorageError> {
        let place = self.open_for_read(tree, &locks)?;
        let info = self.trees[place].info.clone();
        let plain = ReadLocks { ranges: false, ..locks };
        let mut fresh = false;
        if !self.is_covered(place, locks.mode) {
            if locks.keep {
                let Some(lock) = self.lock_for_read(place, Some(key), &plain)? else { return Ok(LockedRows::default()) };
                fresh = lock.fresh;
            } else if self.is_open_elsewhere(&info, key)? && !self.wait_for_writer(place, key, &plain)? {
                return Ok(LockedRows::default());
            }
        }
        let view = self.read_visibility();
        if let Some(row) = view::row_of(&self.database, &info, key, &view)? {
            self.check_snapshot(&info, key, &view)?;
            return Ok(LockedRows { block: row, fresh: vec![fresh] });
        }
        if locks.keep && fresh {
            self.unlock_read(tree, key);
        }
        if locks.keep && locks.ranges && !self.is_covered(place, locks.key_mode()) {
            let range = KeyRange { start: Bound::Included(key.to_vec()), end: Bound::Included(key.to_vec()) };
            let mut scan = self.locking_scan(tree, range, ScanDirection::Forward, locks)?;
            // A row may have come before the gap was locked.
            return Ok(scan.next_rows(self, 1)?.unwrap_or_default());
        }
        Ok(LockedRows::default())
    }

    /// Whether another transaction is changing the row.
    fn is_open_elsewhere(&self, info: &TreeInfo, key: &[u8]) -> Result<bool, StorageError> {
        let writer = view::newest_writer(&self.database, info, key)?;
        Ok(writer.is_some_and(|writer| self.is_others(writer) && self.database.commits.fate(writer) == Fate::Active))
    }

    fn is_others(&self, writer: u64) -> bool {
        self.id.is_none_or(|me| me.0 != txn_of(writer))
    }

    /// Under a snapshot, a row locked for update must be the one the snapshot sees.
    pub(crate) fn check_snapshot(&self, info: &TreeInfo, key: &[u8], now: &Visibility) -> Result<(), StorageError> {
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        let newest = view::newest_writer(&self.database, info, key)?;
        let changed = newest.is_some_and(|writer| self.is_others(writer) && now.sees(writer) && !snapshot.sees(writer));
        if changed { Err(StorageError::SnapshotConflict { tree: info.id }) } else { Ok(()) }
    }
}

impl LockingScan {
    /// The next rows, at most `rows_max` and of one leaf; `None` at the end.
    pub fn next_rows(&mut self, txn: &mut Txn, rows_max: usize) -> Result<Option<LockedRows>, StorageError> {
        if std::mem::take(&mut self.gap_above) {
            self.lock_gap_above(txn)?;
        }
        while !self.done {
            let place = txn.known_tree(self.tree.id)?;
            let found = if txn.is_covered(place, self.locks.key_mode()) {
                Some(self.take_unlocked(txn, place, rows_max, true)?)
            } else if self.locks.keep {
                self.take_locked(txn, place, rows_max)?
            } else {
                Some(self.take_unlocked(txn, place, rows_max, false)?)
            };
            if let Some(rows) = found.filter(|rows| !rows.block.is_empty()) {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// Locks the first key beyond the range.
    fn lock_gap_above(&self, txn: &mut Txn) -> Result<(), StorageError> {
        let beyond = match &self.position.range.end {
            Bound::Unbounded => {
                let place = txn.known_tree(self.tree.id)?;
                return txn.lock_for_read(place, None, &self.locks).map(drop);
            }
            Bound::Included(end) => KeyRange { start: Bound::Excluded(end.clone()), end: Bound::Included(end.clone()) },
            Bound::Excluded(end) => KeyRange { start: Bound::Included(end.clone()), end: Bound::Excluded(end.clone()) },
        };
        let mut scan = txn.locking_scan(self.tree.id, beyond, ScanDirection::Forward, self.locks)?;
        scan.next_rows(txn, 1).map(drop)
    }

    /// Rows of the next leaf that nobody is changing; waits if it begins with one that somebody is. With `covered`, the
    /// lock on the table says that nobody is.
    fn take_unlocked(&mut self, txn: &mut Txn, place: usize, rows_max: usize, covered: bool) -> Result<LockedRows, StorageError> {
        // Before the leaf is copied: whoever changes a row twice and commits in between would be seen half-way otherwise.
        let view = txn.read_visibility();
        let leaves = self.load()?;
        let mut rows = LockedRows::default();
        rows.block.copy_page(leaves.leaf());
        let leaf = Slotted(leaves.leaf());
        let creator = header::creator_number(leaves.leaf());
        for (at, slot) in self.in_order(&leaves.slots).enumerate() {
            let writer = Version::of(&leaf.entry(slot), creator).writer;
            let is_open = !covered && !view.sees(writer) && txn.is_others(writer) && self.database.commits.fate(writer) != Fate::Aborted;
            if is_open && at > 0 {
                return Ok(rows);
            }
            let key = leaves.key(slot);
            if is_open {
                if !txn.wait_for_writer(place, &key, &self.locks)? {
                    self.position.after = Some(key);
                }
                return Ok(rows);
            }
            self.list(&mut rows, slot, &view)?;
            self.position.after = Some(key);
            if rows.block.len() >= rows_max {
                return Ok(rows);
            }
        }
        self.done = leaves.at_end;
        Ok(rows)
    }

    /// Locks keys of the next leaf and gives their rows; `None` if the leaf has changed meanwhile and must be looked at again.
    fn take_locked(&mut self, txn: &mut Txn, place: usize, rows_max: usize) -> Result<Option<LockedRows>, StorageError> {
        let leaves = self.load()?;
        let leaf = Slotted(leaves.leaf());
        let creator = header::creator_number(leaves.leaf());
        let (mut chosen, mut waited, mut all, mut last) = (Vec::new(), false, true, None);
        for slot in self.in_order(&leaves.slots) {
            if chosen.len() >= rows_max {
                all = false;
                break;
            }
            last = Some(slot);
            let version = Version::of(&leaf.entry(slot), creator);
            let is_gone =
                version.ghost && (!txn.is_others(version.writer) || self.database.commits.fate(version.writer) == Fate::Committed);
            if is_gone && !self.locks.ranges {
                continue;
            }
            let key = leaves.key(slot);
            if let Some(lock) = txn.lock_for_read(place, Some(&key), &self.locks)? {
                waited |= lock.waited;
                if lock.fresh {
                    self.fresh.insert(key);
                }
                chosen.push(slot);
            }
        }
        let to_end = all && leaves.at_end;
        if to_end && self.locks.ranges && self.position.is_forward() {
            let beyond = (leaves.slots.end < leaf.len()).then(|| leaves.key(leaves.slots.end));
            waited |= txn.lock_for_read(place, beyond.as_deref(), &self.locks)?.is_some_and(|lock| lock.waited);
        }
        // What was changed while this waited may have been committed without a trace on the page.
        if waited || !self.is_unchanged(&leaves)? {
            return Ok(None);
        }
        let rows = self.list_locked(txn, &leaves, &chosen)?;
        if let Some(slot) = last {
            self.position.after = Some(leaves.key(slot));
        }
        self.done = to_end;
        Ok(Some(rows))
    }

    /// The rows of locked slots, as they stand. Locks of those that are gone are given back, unless they are of the range.
    fn list_locked(&mut self, txn: &mut Txn, leaves: &Leaves, chosen: &[usize]) -> Result<LockedRows, StorageError> {
        let view = txn.read_visibility();
        let leaf = Slotted(leaves.leaf());
        let creator = header::creator_number(leaves.leaf());
        let mut rows = LockedRows::default();
        rows.block.copy_page(leaves.leaf());
        let fresh = std::mem::take(&mut self.fresh);
        let mut given = BTreeSet::new();
        for &slot in chosen {
            let writer = Version::of(&leaf.entry(slot), creator).writer;
            if txn.snapshot.as_ref().is_some_and(|snapshot| txn.is_others(writer) && view.sees(writer) && !snapshot.sees(writer)) {
                return Err(StorageError::SnapshotConflict { tree: self.tree.id });
            }
            let before = rows.block.len();
            self.list(&mut rows, slot, &view)?;
            if rows.block.len() > before {
                let key = leaves.key(slot);
                rows.fresh.push(fresh.contains(&key));
                given.insert(key);
            }
        }
        if !self.locks.ranges {
            fresh.difference(&given).for_each(|key| txn.unlock_read(self.tree.id, key));
        }
        Ok(rows)
    }

    fn list(&self, rows: &mut LockedRows, slot: usize, view: &Visibility) -> Result<(), StorageError> {
        let mut older = |pointer: u64, out: &mut Vec<u8>| VersionStore::read(&self.database.store, pointer, out);
        rows.block.list_one(slot, view, &mut older)
    }

    fn in_order(&self, slots: &Range<usize>) -> Box<dyn Iterator<Item = usize>> {
        match self.position.direction {
            ScanDirection::Forward => Box::new(slots.clone()),
            ScanDirection::Backward => Box::new(slots.clone().rev()),
        }
    }

    fn is_unchanged(&self, leaves: &Leaves) -> Result<bool, StorageError> {
        Ok(self.load()?.pages == leaves.pages)
    }

    /// Copies leaves until one has a slot within the range and beyond what was dealt with, or the range has ended.
    fn load(&self) -> Result<Leaves, StorageError> {
        let tree = Tree { store: &self.database.store, info: &self.tree, author: TxnId(0), finishing: false };
        let mut sideways = Sideways::new();
        loop {
            let mut pages = vec![Box::new(*tree.leaf_for_read(self.position.seek(), &mut |_, _| {})?)];
            loop {
                let page = pages.last().expect("one was pushed");
                let slots = self.position.slots_inside(page);
                let beside = self.position.beside(page);
                let at_end = self.position.ends_in(page, &slots) || beside == PageId::NONE;
                if at_end || !slots.is_empty() {
                    return Ok(Leaves { pages, slots, at_end });
                }
                let here = header::page_id(page);
                match self.step(here, beside) {
                    Ok(Some(next)) if sideways.stepped(beside) => pages.push(next),
                    Ok(_) => break sideways.failed(here, beside, None)?,
                    // A page that was freed meanwhile may even be unreadable: then the descent finds the way.
                    Err(error) => break sideways.failed(here, beside, Some(error))?,
                }
            }
        }
    }

    /// A copy of the leaf beside `here`, if it still is beside it.
    fn step(&self, here: PageId, beside: PageId) -> Result<Option<Box<PageBytes>>, StorageError> {
        let next = self.database.store.read(beside)?;
        Ok(self.position.follows(&next, self.tree.id, here).then(|| Box::new(*next)))
    }
}

impl ReadLocks {
    /// A read that only waits for those who are changing rows: READ COMMITTED without row versions.
    pub const COMMITTED: Self = Self { mode: LockMode::S, keep: false, ranges: false, skip_locked: false, no_wait: false, table: None };
}
