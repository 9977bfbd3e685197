//! What a transaction locks: tables, keys, the gaps between keys; and how many locks become one.
//!
//! ```text
//!   table  IS IX S SIX X        one for all trees of a table (by object id); the system's own trees each by itself
//!   key    S U X                a row or an index entry, by the hash of its key
//!   key    RangeS-S .. RangeX-X the key and the gap below it, down to the key before; the last gap is that of `END_ITEM`
//! ```
//! Phantoms: who reads a range at SERIALIZABLE locks every key in it, ghosts too, and the first key beyond. Who puts a new
//! key into a tree asks for RangeI-N on the key above it and keeps that until the new key is there. Nobody pays for it
//! while no transaction holds ranges in the tree: the database counts those that do, and the count is read under the
//! leaf's latch, which a reader of ranges takes only after having been counted.
//!
//! Invariants:
//! 1. A key is locked only with an intent, or more, on its table (`lock_table` before `lock_key`).
//! 2. A gap that a transaction holds stays its own when it puts a key into it: the new key is locked with its gap
//!    (`lock_gap`), since a lock on the key above reaches down to the new key only.
//! 3. A ghost that somebody has locked is not purged (`Database::ghost_is_locked`): its lock may stand for a gap.
//!
//! Locks: logical ones only, never under a latch; LOCK_HASH is tried under one by `ghost_is_locked`. Failure: as of
//! `locks`; after `Deadlock` the transaction is rolled back.

use crate::database::Database;
use crate::error::StorageError;
use crate::hash::key_hash;
use crate::ids::TreeId;
use crate::locks::{LockMode, LockWait, Resource, ResourceKind};
use crate::txn::{Txn, TxnTree};
use crate::units::TreeInfo;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Key locks of one statement in one tree at which it tries to lock the whole table instead: SQL Server's threshold.
const ESCALATION_LOCKS: usize = 5000;
/// Further key locks until it tries again: SQL Server's step.
const ESCALATION_STEP: usize = 1250;
/// The place of the gap above every key; `(ffffffffffff)` in views.
pub const END_ITEM: u64 = u64::MAX;
/// Counters over which trees are spread; two trees that share one only test gaps in vain.
const RANGE_COUNTERS: usize = 256;

/// How many transactions hold ranges, by tree.
pub(crate) struct RangeHolders([AtomicU32; RANGE_COUNTERS]);

impl RangeHolders {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU32::new(0) }; RANGE_COUNTERS])
    }

    fn of(&self, tree: TreeId) -> &AtomicU32 {
        &self.0[tree.0 as usize % RANGE_COUNTERS]
    }
}

/// The key above a place in a tree; `None` above the last.
pub(crate) type NextKey = Option<Vec<u8>>;

/// Whether the gap a new key falls into is locked against readers of ranges.
pub(crate) enum Gap {
    /// It is not.
    Unlocked,
    /// RangeI-N is held on the key above.
    Locked {
        /// That key.
        next: NextKey,
        /// What was held there before.
        before: Option<LockMode>,
        /// Where.
        resource: Resource,
    },
}

/// How a read locks what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLocks {
    /// S, U or X.
    pub mode: LockMode,
    /// Locks stay to the end of the transaction. Otherwise the read only waits for those who are changing a row.
    pub keep: bool,
    /// Gaps are locked with the keys.
    pub ranges: bool,
    /// Rows that somebody has locked are passed over.
    pub skip_locked: bool,
    /// Nothing is waited for.
    pub no_wait: bool,
    /// A lock of the whole table, instead of single ones if it grants as much.
    pub table: Option<LockMode>,
}

impl ReadLocks {
    /// The mode of a key's lock.
    pub(crate) fn key_mode(&self) -> LockMode {
        match (self.ranges, self.mode) {
            (false, mode) => mode,
            (true, LockMode::S) => LockMode::RangeSS,
            (true, LockMode::U) => LockMode::RangeSU,
            (true, _) => LockMode::RangeXX,
        }
    }

    fn intent(&self) -> LockMode {
        if self.mode == LockMode::S { LockMode::IS } else { LockMode::IX }
    }
}

/// Whether a lock on the table grants what one on a key would.
fn covers(table: LockMode, key: LockMode) -> bool {
    match table {
        LockMode::X | LockMode::SchM => true,
        LockMode::S | LockMode::SIU | LockMode::SIX => matches!(key, LockMode::S | LockMode::RangeSS),
        _ => false,
    }
}

impl Database {
    /// Whether somebody holds ranges in a tree. To be asked under the latch of the leaf in question.
    pub(crate) fn has_range_holders(&self, tree: TreeId) -> bool {
        // Relaxed: the leaf's latch orders it with the reader's look at the leaf.
        self.range_holders.of(tree).load(Ordering::Relaxed) > 0
    }

    /// Whether a ghost may stand for a gap that somebody has locked. May be asked under a latch.
    pub(crate) fn ghost_is_locked(&self, tree: TreeId, key: &[u8]) -> bool {
        self.has_range_holders(tree) && self.locks.is_locked(key_resource(self.number, tree, key_hash(key)))
    }
}

fn key_resource(database: u32, tree: TreeId, item: u64) -> Resource {
    Resource { database, kind: ResourceKind::Key, container: tree.0, item }
}

impl Txn {
    /// Takes a lock on anything until the end of the transaction.
    pub fn lock(&mut self, resource: Resource, mode: LockMode) -> Result<(), StorageError> {
        self.lock_within(resource, mode, self.lock_timeout)
    }

    fn lock_within(&mut self, resource: Resource, mode: LockMode, timeout: Option<Duration>) -> Result<(), StorageError> {
        let wait = LockWait {
            timeout,
            cancel: self.cancel.as_ref(),
            deadlock_priority: self.deadlock_priority,
            cost: self.undo.entry_count(),
            low_priority: false,
        };
        let outcome = self.database.locks.acquire(&mut self.owner, resource, mode, wait);
        if matches!(outcome, Err(StorageError::Deadlock)) {
            self.roll_back_all();
        }
        if !self.statement_locks.is_empty() {
            self.statement_locks.retain(|held| *held != resource);
        }
        outcome
    }

    pub(crate) fn unlock(&mut self, resource: Resource) {
        self.database.locks.release(&mut self.owner, resource);
    }

    /// A statement begins: its locks are counted anew, and it sees what the ones before have changed.
    pub fn begin_statement(&mut self) {
        self.statement_command = None;
        for known in &mut self.trees {
            (known.key_locks, known.escalate_at) = (0, ESCALATION_LOCKS);
        }
    }

    /// A statement ends: locks that were its own go.
    pub fn end_statement(&mut self) {
        for resource in std::mem::take(&mut self.statement_locks) {
            self.unlock(resource);
        }
    }

    /// The locks of this table stay single however many they are (LOCK_ESCALATION = DISABLE), or not any more.
    pub fn set_escalates(&mut self, object_id: u32, escalates: bool) {
        self.never_escalated.retain(|known| *known != object_id);
        if !escalates {
            self.never_escalated.push(object_id);
        }
    }

    /// Gives everything back.
    pub(crate) fn forget_locks(&mut self) {
        self.database.locks.release_all(&mut self.owner);
        for tree in self.range_trees.drain(..) {
            self.database.range_holders.of(tree).fetch_sub(1, Ordering::Release);
        }
        self.statement_locks.clear();
        self.statement_command = None;
    }

    fn table_resource(&self, info: &TreeInfo) -> Resource {
        if info.id.0 < Database::FIRST_FREE_TREE {
            return Resource { database: self.database.number, kind: ResourceKind::Tree, container: info.id.0, item: 0 };
        }
        Resource { database: self.database.number, kind: ResourceKind::Object, container: u64::from(info.object_id), item: 0 }
    }

    pub(crate) fn key_resource(&self, tree: TreeId, key: &[u8]) -> Resource {
        key_resource(self.database.number, tree, key_hash(key))
    }

    fn gap_resource(&self, tree: TreeId, next: Option<&[u8]>) -> Resource {
        key_resource(self.database.number, tree, next.map_or(END_ITEM, key_hash))
    }

    /// The place of a tree among those this transaction knows.
    pub(crate) fn known_tree(&mut self, tree: TreeId) -> Result<usize, StorageError> {
        let me = self.id.map_or(0, |id| id.0);
        let place = match self.trees.iter().rposition(|known| known.info.id == tree) {
            Some(place) => place,
            None => {
                let info = self.database.tree(tree, me)?;
                self.trees.push(TxnTree { info, touch: true, key_locks: 0, escalate_at: ESCALATION_LOCKS, table_mode: None });
                self.trees.len() - 1
            }
        };
        if me != 0 && self.trees[place].info.dropped_by() == me {
            return Err(StorageError::NoTree(tree));
        }
        Ok(place)
    }

    /// Locks the table of a tree.
    pub(crate) fn lock_table(&mut self, place: usize, mode: LockMode) -> Result<(), StorageError> {
        self.lock_table_within(place, mode, self.lock_timeout)
    }

    fn lock_table_within(&mut self, place: usize, mode: LockMode, timeout: Option<Duration>) -> Result<(), StorageError> {
        let resource = self.table_resource(&self.trees[place].info);
        self.lock_within(resource, mode, timeout)?;
        self.trees[place].table_mode = self.owner.held(resource);
        Ok(())
    }

    /// Whether what is held on the table makes a lock of `mode` on a key needless.
    pub(crate) fn is_covered(&self, place: usize, mode: LockMode) -> bool {
        self.trees[place].table_mode.is_some_and(|table| covers(table, mode))
    }

    pub(crate) fn lock_key(&mut self, place: usize, key: &[u8], mode: LockMode) -> Result<(), StorageError> {
        if self.is_covered(place, mode) {
            return Ok(());
        }
        let resource = self.key_resource(self.trees[place].info.id, key);
        self.lock_key_resource(place, resource, mode, self.lock_timeout)
    }

    fn lock_key_resource(
        &mut self,
        place: usize,
        resource: Resource,
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> Result<(), StorageError> {
        let before = self.owner.lock_count();
        self.lock_within(resource, mode, timeout)?;
        let known = &mut self.trees[place];
        known.key_locks += self.owner.lock_count() - before;
        if known.key_locks >= known.escalate_at {
            known.escalate_at += ESCALATION_STEP;
            self.escalate(place);
        }
        Ok(())
    }

    /// Locks the whole table in place of its keys, if nobody else is in its way.
    fn escalate(&mut self, place: usize) {
        let info = self.trees[place].info.clone();
        if info.id.0 < Database::FIRST_FREE_TREE || self.never_escalated.contains(&info.object_id) {
            return;
        }
        let resource = self.table_resource(&info);
        let mode = if self.trees[place].table_mode == Some(LockMode::IS) { LockMode::S } else { LockMode::X };
        let now = LockWait { timeout: Some(Duration::ZERO), ..LockWait::default() };
        if self.database.locks.acquire(&mut self.owner, resource, mode, now).is_err() {
            return;
        }
        let held = self.owner.held(resource);
        let of_table = |known: &TxnTree| known.info.object_id == info.object_id && known.info.id.0 >= Database::FIRST_FREE_TREE;
        self.trees.iter_mut().filter(|known| of_table(known)).for_each(|known| known.table_mode = held);
        let trees: Vec<u64> = self.trees.iter().filter(|known| of_table(known)).map(|known| known.info.id.0).collect();
        let number = self.database.number;
        self.database.locks.release_where(&mut self.owner, |resource| {
            resource.kind == ResourceKind::Key && resource.database == number && trees.contains(&resource.container)
        });
    }

    /// Prepares a locking read of a tree: its place, with the table locked as the read asks.
    pub(crate) fn open_for_read(&mut self, tree: TreeId, locks: &ReadLocks) -> Result<usize, StorageError> {
        let place = self.known_tree(tree)?;
        let resource = self.table_resource(&self.trees[place].info);
        let timeout = if locks.no_wait { Some(Duration::ZERO) } else { self.lock_timeout };
        let of_statement = !locks.keep && (self.owner.held(resource).is_none() || self.statement_locks.contains(&resource));
        self.lock_table_within(place, locks.table.unwrap_or_else(|| locks.intent()), timeout)?;
        if locks.table.is_some() {
            // TABLOCK with U is X or S of the table, of which S leaves single updates to their own locks.
            self.lock_table_within(place, locks.intent(), timeout)?;
        }
        if of_statement {
            self.statement_locks.push(resource);
        }
        if locks.ranges && !self.is_covered(place, locks.key_mode()) && !self.range_trees.contains(&tree) {
            // Before any leaf is looked at: who inserts there later sees it under the leaf's latch.
            self.database.range_holders.of(tree).fetch_add(1, Ordering::AcqRel);
            self.range_trees.push(tree);
        }
        Ok(place)
    }

    /// Locks a key, or with `None` the end, for a read. True if the read had to wait; `None` if it passes the key over.
    pub(crate) fn lock_for_read(&mut self, place: usize, key: Option<&[u8]>, locks: &ReadLocks) -> Result<Option<ReadLock>, StorageError> {
        let mode = locks.key_mode();
        if self.is_covered(place, mode) {
            return Ok(Some(ReadLock { fresh: false, waited: false }));
        }
        let resource = self.gap_resource(self.trees[place].info.id, key);
        let fresh = self.owner.held(resource).is_none();
        match self.lock_key_resource(place, resource, mode, Some(Duration::ZERO)) {
            Ok(()) => return Ok(Some(ReadLock { fresh, waited: false })),
            Err(StorageError::LockTimeout) if locks.skip_locked => return Ok(None),
            Err(StorageError::LockTimeout) if !locks.no_wait => {}
            Err(error) => return Err(error),
        }
        self.lock_key_resource(place, resource, mode, self.lock_timeout)?;
        Ok(Some(ReadLock { fresh, waited: true }))
    }

    /// Gives back the lock that a read has just taken on a key.
    pub fn unlock_read(&mut self, tree: TreeId, key: &[u8]) {
        self.unlock(self.key_resource(tree, key));
    }

    /// Waits until nobody is changing the key; false if it is to be passed over.
    pub(crate) fn wait_for_writer(&mut self, place: usize, key: &[u8], locks: &ReadLocks) -> Result<bool, StorageError> {
        let plain = ReadLocks { mode: LockMode::S, ranges: false, ..*locks };
        match self.lock_for_read(place, Some(key), &plain)? {
            None => Ok(false),
            Some(lock) => {
                if lock.fresh {
                    self.unlock(self.key_resource(self.trees[place].info.id, key));
                }
                Ok(true)
            }
        }
    }

    /// Locks the gap below `next` for a new key. A gap that is this transaction's own stays so on both sides of the key.
    pub(crate) fn lock_gap(&mut self, place: usize, key: &[u8], next: NextKey) -> Result<Gap, StorageError> {
        let tree = self.trees[place].info.id;
        let resource = self.gap_resource(tree, next.as_deref());
        let before = self.owner.held(resource);
        self.lock(resource, LockMode::RangeIN)?;
        if before.is_some_and(LockMode::holds_gap) {
            self.lock(self.key_resource(tree, key), LockMode::RangeXX)?;
        }
        Ok(Gap::Locked { next, before, resource })
    }

    pub(crate) fn unlock_gap(&mut self, gap: Gap) {
        match gap {
            Gap::Unlocked => {}
            Gap::Locked { before: None, resource, .. } => self.unlock(resource),
            Gap::Locked { before: Some(mode), resource, .. } => self.database.locks.weaken(&mut self.owner, resource, mode),
        }
    }
}

/// A lock that a read has taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLock {
    /// It was not held before.
    pub(crate) fresh: bool,
    /// The key may have changed meanwhile.
    pub(crate) waited: bool,
}
