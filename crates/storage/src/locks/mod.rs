//! Logical locks: who may do what to an object, a page, a key or a name, and who waits for whom.
//!
//! ```text
//!   party (a session) ─┬─ owner (its object locks) ── acquire(resource, mode) ──> partition by hash of resource
//!                      └─ owner (its transaction)          entry: granted [(owner, mode)...]  queue: conversions, then FIFO
//!   wait:  queue ──> sleep ──> still waiting: wait table ──> search of the wait-for graph ──> victim | sleep until granted
//! ```
//! A party is who can do one thing at a time: its owners never wait for each other, and the wait-for graph has parties as
//! nodes. So a circle through a row, a table and a name given by sp_getapplock is one circle.
//!
//! Invariants:
//! 1. All granted modes of a resource are compatible, party by party (asserted in `Entry::grant`).
//! 2. A request waits behind every earlier one that waits, except that who holds something there already (a conversion)
//!    waits behind conversions only, and that nobody waits behind one of low priority, which waits behind all.
//! 3. A cycle of waiters has a victim: the last of them to enter the wait table searches after entering it, and searches
//!    are serialised by that table's mutex (`deadlock::search`). A waiter enters when its first sleep has not been enough,
//!    so that short waits touch nothing but their partition.
//! 4. An owner's `held` map equals what the entries grant it (only `LockManager` writes either).
//! 5. While Sch-M on an object is held nobody reads it briefly (`brief`, whose gate `acquire` shuts and `release_entry` opens).
//!
//! Locks: LOCK_WAITS (rank 1) before one LOCK_HASH partition (rank 1); LOCK_CELL last. Callers hold no latch: a wait
//! may last for ever; only `is_locked` may be asked under one, since it tries. Failure: `Deadlock` (1205), `LockTimeout`
//! (1222), `Cancelled`; the request is gone on return and what was held stays held. It does not escalate by itself and
//! does not know what an object is.
//!
//! Further reading: Gray, Reuter, Transaction Processing, chapter 8 (lock manager), whose conversion rule this follows.

mod brief;
mod deadlock;
mod entry;
mod mode;

#[cfg(test)]
mod tests;

pub use brief::{BriefRead, BriefReader};
pub use mode::LockMode;

use crate::error::StorageError;
use crate::hash::FastHash;
use brief::BriefReads;
use entry::{Partition, Verdict, WaitCell, Waiter};
use observe::cancel::CancelToken;
use observe::sync::{LockClass, Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use thawdb_device::Env;
use thawdb_observe as observe;

static LOCK_HASH: LockClass = LockClass::new("LOCK_HASH", 1);
static LOCK_WAITS: LockClass = LockClass::new("LOCK_WAITS", 1);
/// A power of two well above the cores of large machines, so that two threads seldom meet in one.
const PARTITION_COUNT: usize = 128;
/// How long a waiter without a time limit sleeps before it looks at its verdict again, woken or not.
const WAIT_SLICE: Duration = Duration::from_secs(1);
/// How long a waiter sleeps before it looks for a deadlock: longer than nearly all waits, too short to be felt in one.
const SEARCH_AFTER: Duration = Duration::from_millis(5);

/// What kind of thing a resource is, as `sys.dm_tran_locks.resource_type` groups them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A database.
    Database,
    /// A table, view or other object.
    Object,
    /// A tree: HOBT.
    Tree,
    /// A page.
    Page,
    /// A key, by its hash.
    Key,
    /// A name given by `sp_getapplock`.
    Application,
    /// A piece of metadata.
    Metadata,
}

/// A thing that can be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// Number of the database, as the owner of the manager gives them out.
    pub database: u32,
    /// Kind.
    pub kind: ResourceKind,
    /// Object id, tree id, or the file of a page.
    pub container: u64,
    /// Key hash, page number or name hash; 0 if the container is meant.
    pub item: u64,
}

/// One who can wait for one thing at a time: a session, by its number, or a transaction of no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Party(u32);

impl Party {
    /// Session numbers are below; others are made up.
    const SESSIONS_END: u32 = 1 << 16;

    /// The party that is a session.
    pub fn session(id: i16) -> Self {
        Self(u32::from(id.unsigned_abs()))
    }

    /// The session it is, if it is one.
    pub fn session_id(self) -> Option<i32> {
        (self.0 < Self::SESSIONS_END).then_some(self.0.cast_signed())
    }
}

/// One who holds locks: a transaction, or a session for locks that outlive it.
#[derive(Debug)]
pub struct LockOwner {
    id: u64,
    party: Party,
    held: HashMap<Resource, LockMode, FastHash>,
}

impl LockOwner {
    /// Its number in the lock table.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Who it is part of.
    pub fn party(&self) -> Party {
        self.party
    }

    /// The mode held on a resource.
    pub fn held(&self, resource: Resource) -> Option<LockMode> {
        self.held.get(&resource).copied()
    }

    /// Locks held.
    pub fn lock_count(&self) -> usize {
        self.held.len()
    }
}

/// How a request waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct LockWait<'a> {
    /// Longest wait; zero is NOWAIT, `None` for ever.
    pub timeout: Option<Duration>,
    /// Ends the wait with `Cancelled`.
    pub cancel: Option<&'a CancelToken>,
    /// DEADLOCK_PRIORITY, -10 to 10: the lowest in a cycle is the victim.
    pub deadlock_priority: i8,
    /// Work that would be lost; among equal priorities the least is the victim.
    pub cost: u64,
    /// WAIT_AT_LOW_PRIORITY: requests that come later pass by, and it is served when nobody else waits.
    pub low_priority: bool,
}

/// Whether a request has been granted, as `request_status` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockStatus {
    /// Held.
    Grant,
    /// Held in another mode and waiting for this one.
    Convert,
    /// Waiting.
    Wait,
    /// Held in another mode and waiting for this one while others pass by.
    LowPriorityConvert,
    /// Waiting while others pass by.
    LowPriorityWait,
}

/// One row of `sys.dm_tran_locks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockInfo {
    /// The resource.
    pub resource: Resource,
    /// Who holds it or waits.
    pub party: Party,
    /// Number of the owner.
    pub owner: u64,
    /// Mode held or asked for.
    pub mode: LockMode,
    /// Which of the two.
    pub status: LockStatus,
}

/// One who sleeps in a queue.
struct Sleeper {
    owner: u64,
    resource: Resource,
    deadlock_priority: i8,
    cost: u64,
    /// Its place among all waits, in order of their beginnings.
    wait: u64,
    cell: Arc<WaitCell>,
}

fn wait_kind(mode: LockMode, low_priority: bool) -> observe::wait::WaitKind {
    use observe::wait::WaitKind;
    match mode {
        LockMode::SchM if low_priority => WaitKind::LockSchemaModificationLowPriority,
        LockMode::SchS => WaitKind::LockSchemaStability,
        LockMode::SchM => WaitKind::LockSchemaModification,
        LockMode::S => WaitKind::LockShared,
        LockMode::U => WaitKind::LockUpdate,
        LockMode::X => WaitKind::LockExclusive,
        LockMode::IS => WaitKind::LockIntentShared,
        LockMode::IU => WaitKind::LockIntentUpdate,
        LockMode::IX => WaitKind::LockIntentExclusive,
        LockMode::SIU => WaitKind::LockSharedIntentUpdate,
        LockMode::SIX => WaitKind::LockSharedIntentExclusive,
        LockMode::UIX => WaitKind::LockUpdateIntentExclusive,
        LockMode::BU => WaitKind::LockBulkUpdate,
        LockMode::RangeSS | LockMode::RangeSU => WaitKind::LockRangeSharedShared,
        LockMode::RangeIN | LockMode::RangeIS | LockMode::RangeIU | LockMode::RangeIX => WaitKind::LockRangeInsertNull,
        LockMode::RangeXS | LockMode::RangeXU | LockMode::RangeXX => WaitKind::LockRangeExclusive,
    }
}

/// Whether a lock keeps brief readers out.
fn shuts_gate(resource: Resource, mode: LockMode) -> bool {
    mode == LockMode::SchM && resource.kind == ResourceKind::Object
}

/// The lock table of an instance.
pub struct LockManager {
    env: Env,
    partitions: Vec<Mutex<Partition>>,
    sleepers: Mutex<BTreeMap<Party, Sleeper>>,
    brief: Arc<BriefReads>,
    owner_next: AtomicU64,
    party_next: AtomicU32,
    wait_next: AtomicU64,
    deadlock_count: AtomicU64,
}

impl LockManager {
    /// An empty table.
    pub fn new(env: Env) -> Self {
        Self {
            env,
            partitions: (0..PARTITION_COUNT).map(|_| Mutex::new(&LOCK_HASH, Partition::default())).collect(),
            sleepers: Mutex::new(&LOCK_WAITS, BTreeMap::new()),
            brief: Arc::new(BriefReads::new()),
            owner_next: AtomicU64::new(1),
            party_next: AtomicU32::new(Party::SESSIONS_END),
            wait_next: AtomicU64::new(0),
            deadlock_count: AtomicU64::new(0),
        }
    }

    /// A new owner that is a party of its own.
    pub fn owner(&self) -> LockOwner {
        // Relaxed: only uniqueness matters. After 2^32 owners numbers come again, long after their first bearers ended.
        self.owner_of(Party(self.party_next.fetch_add(1, Ordering::Relaxed).max(Party::SESSIONS_END)))
    }

    /// A new owner, holding nothing. It must be given to [`Self::release_all`] before it is dropped.
    pub fn owner_of(&self, party: Party) -> LockOwner {
        // Relaxed: only uniqueness matters.
        LockOwner { id: self.owner_next.fetch_add(1, Ordering::Relaxed), party, held: HashMap::default() }
    }

    /// A reader of one object at a time that leaves no entry in the table.
    pub fn brief_reader(&self) -> BriefReader {
        BriefReader::new(&self.brief)
    }

    /// Deadlocks resolved so far.
    pub fn deadlock_count(&self) -> u64 {
        self.deadlock_count.load(Ordering::Relaxed)
    }

    fn partition_of(&self, resource: Resource) -> &Mutex<Partition> {
        let hash = FastHash.hash_one(resource);
        // The low bits choose the bucket within the map; the partition takes others.
        &self.partitions[(hash >> 40) as usize % PARTITION_COUNT]
    }

    fn partition(&self, resource: Resource) -> MutexGuard<'_, Partition> {
        self.partition_of(resource).lock()
    }

    /// Takes `mode` on `resource` in addition to what the owner holds there, waiting as `wait` says.
    pub fn acquire(&self, owner: &mut LockOwner, resource: Resource, mode: LockMode, wait: LockWait<'_>) -> Result<(), StorageError> {
        let held = owner.held(resource);
        let wanted = held.map_or(mode, |held| held.combined(mode));
        if held == Some(wanted) {
            return Ok(());
        }
        if !shuts_gate(resource, wanted) {
            return self.acquire_entry(owner, resource, wanted, wait);
        }
        self.brief.shut(resource);
        self.acquire_entry(owner, resource, wanted, wait).inspect_err(|_| {
            // A victim that was granted in the same moment keeps the lock until it gives way.
            if owner.held(resource) != Some(wanted) {
                self.brief.open(resource);
            }
        })?;
        self.brief.drain(resource, &self.env);
        Ok(())
    }

    /// Takes `wanted`, which is more than the owner holds, from the table.
    fn acquire_entry(&self, owner: &mut LockOwner, resource: Resource, wanted: LockMode, wait: LockWait<'_>) -> Result<(), StorageError> {
        let held = owner.held(resource);
        let (cell, blocker) = {
            let mut partition = self.partition(resource);
            let entry = partition.entry(resource).or_default();
            let converts = held.is_some() || entry.party_holds(owner.party);
            // The queue's end is of low priority: nobody waits behind it.
            let must_queue = !converts && entry.queue().next().is_some_and(|first| !first.low_priority || wait.low_priority);
            if !must_queue && entry.compatible_with_others(owner.party, wanted) {
                entry.grant(owner, wanted);
                owner.held.insert(resource, wanted);
                return Ok(());
            }
            if wait.timeout == Some(Duration::ZERO) {
                return Err(StorageError::LockTimeout);
            }
            let blocker = entry.blockers(owner.party, owner.id, wanted).next();
            // Relaxed: the partition orders those who wait for one thing, others need no order.
            let cell = Arc::new(WaitCell::new(self.wait_next.fetch_add(1, Ordering::Relaxed)));
            let low_priority = wait.low_priority;
            entry.enqueue(Waiter { owner: owner.id, party: owner.party, mode: wanted, converts, low_priority, cell: cell.clone() });
            (cell, blocker)
        };
        let waiting = observe::wait::enter(wait_kind(wanted, wait.low_priority));
        waiting.blocked_by(blocker.and_then(Party::session_id));
        let outcome = self.sleep(owner, resource, &cell, wait);
        drop(waiting);
        match outcome {
            Ok(()) => {
                owner.held.insert(resource, wanted);
                Ok(())
            }
            Err(error) if self.leave_queue(owner.id, resource, &cell) => {
                // Granted in the same moment: the victim of a cycle must still give way, others may keep it.
                owner.held.insert(resource, wanted);
                if matches!(error, StorageError::Deadlock) { Err(error) } else { Ok(()) }
            }
            Err(error) => Err(error),
        }
    }

    /// Sleeps until the request is granted or given up; enters the wait table if a first short sleep is not enough.
    fn sleep(&self, owner: &LockOwner, resource: Resource, cell: &Arc<WaitCell>, wait: LockWait<'_>) -> Result<(), StorageError> {
        let _wake_on_cancel = wait.cancel.map(|token| {
            let cell = cell.clone();
            token.on_cancel(move || cell.wake())
        });
        let start_ns = self.env.clock.monotonic_ns();
        let mut entered = false;
        let outcome = loop {
            match cell.verdict() {
                Verdict::Granted => break Ok(()),
                Verdict::Victim => break Err(StorageError::Deadlock),
                Verdict::Waiting => {}
            }
            if wait.cancel.is_some_and(|token| token.check().is_err()) {
                break Err(StorageError::Cancelled);
            }
            let waited = Duration::from_nanos(self.env.clock.monotonic_ns().saturating_sub(start_ns));
            let slice = if entered { WAIT_SLICE } else { SEARCH_AFTER };
            let slice = match wait.timeout {
                None => slice,
                Some(timeout) if waited >= timeout => break Err(StorageError::LockTimeout),
                Some(timeout) => slice.min(timeout - waited),
            };
            cell.wait_for(slice, wait.cancel);
            if !entered && cell.verdict() == Verdict::Waiting {
                entered = true;
                self.enter_wait_table(owner, resource, cell, wait);
            }
        };
        if entered {
            self.sleepers.lock().remove(&owner.party);
        }
        outcome
    }

    fn enter_wait_table(&self, owner: &LockOwner, resource: Resource, cell: &Arc<WaitCell>, wait: LockWait<'_>) {
        let LockWait { deadlock_priority, cost, .. } = wait;
        let sleeper = Sleeper { owner: owner.id, resource, deadlock_priority, cost, wait: cell.number, cell: cell.clone() };
        let mut sleepers = self.sleepers.lock();
        sleepers.insert(owner.party, sleeper);
        self.resolve_deadlocks(&sleepers, owner.party);
    }

    fn resolve_deadlocks(&self, sleepers: &BTreeMap<Party, Sleeper>, start: Party) {
        // Each victim breaks one cycle; a new waiter can close as many as there are sleepers.
        for _ in 0..=sleepers.len() {
            let Some(cycle) = deadlock::search(self, sleepers, start) else { return };
            let victim = deadlock::victim(sleepers, &cycle);
            self.deadlock_count.fetch_add(1, Ordering::Relaxed);
            sleepers[&victim].cell.settle(Verdict::Victim);
            if victim == start {
                return;
            }
        }
    }

    /// Withdraws a request. True if it had been granted meanwhile.
    fn leave_queue(&self, owner: u64, resource: Resource, cell: &Arc<WaitCell>) -> bool {
        let mut partition = self.partition(resource);
        let Some(entry) = partition.get_mut(&resource) else { return false };
        if !entry.withdraw(cell) {
            return entry.granted().any(|granted| granted.owner == owner);
        }
        entry.serve_queue();
        if entry.is_unused() {
            partition.remove(&resource);
        }
        false
    }

    fn release_entry(&self, owner: u64, resource: Resource, held: LockMode) {
        let mut partition = self.partition(resource);
        let entry = partition.get_mut(&resource).expect("held locks have an entry");
        entry.revoke(owner);
        entry.serve_queue();
        if entry.is_unused() {
            partition.remove(&resource);
        }
        drop(partition);
        if shuts_gate(resource, held) {
            self.brief.open(resource);
        }
    }

    /// Gives one lock back; nothing happens if it is not held.
    pub fn release(&self, owner: &mut LockOwner, resource: Resource) {
        if let Some(held) = owner.held.remove(&resource) {
            self.release_entry(owner.id, resource, held);
        }
    }

    /// Weakens a lock to `mode`, which it grants already.
    pub fn weaken(&self, owner: &mut LockOwner, resource: Resource, mode: LockMode) {
        let Some(held) = owner.held.get_mut(&resource) else { return };
        debug_assert!(held.combined(mode) == *held, "only what is held can be kept");
        debug_assert!(!shuts_gate(resource, *held), "a change of definition is given back whole");
        *held = mode;
        let mut partition = self.partition(resource);
        let entry = partition.get_mut(&resource).expect("held locks have an entry");
        entry.weaken(owner.id, mode);
        entry.serve_queue();
    }

    /// Whether somebody holds a lock on the resource or waits for one, or it cannot be told at once. May be asked under a
    /// latch.
    pub fn is_locked(&self, resource: Resource) -> bool {
        self.partition_of(resource).try_lock().is_none_or(|partition| partition.contains_key(&resource))
    }

    /// Gives back what `chosen` names.
    pub fn release_where(&self, owner: &mut LockOwner, chosen: impl Fn(Resource) -> bool) {
        for (resource, held) in owner.held.extract_if(|resource, _| chosen(*resource)) {
            self.release_entry(owner.id, resource, held);
        }
    }

    /// Gives everything back.
    pub fn release_all(&self, owner: &mut LockOwner) {
        for (resource, held) in owner.held.drain() {
            self.release_entry(owner.id, resource, held);
        }
    }

    /// Every lock held or waited for, ordered by resource and owner.
    pub fn locks(&self) -> Vec<LockInfo> {
        let mut all = Vec::new();
        for partition in &self.partitions {
            for (&resource, entry) in partition.lock().iter() {
                let granted =
                    |g: &entry::Granted| LockInfo { resource, party: g.party, owner: g.owner, mode: g.mode, status: LockStatus::Grant };
                all.extend(entry.granted().map(granted));
                all.extend(entry.queue().map(|w| {
                    let status = match (w.converts, w.low_priority) {
                        (true, false) => LockStatus::Convert,
                        (false, false) => LockStatus::Wait,
                        (true, true) => LockStatus::LowPriorityConvert,
                        (false, true) => LockStatus::LowPriorityWait,
                    };
                    LockInfo { resource, party: w.party, owner: w.owner, mode: w.mode, status }
                }));
            }
        }
        all.sort_unstable();
        all
    }
}
