//! Logical locks: who may do what to an object, a page, a key or a name, and who waits for whom.
//!
//! ```text
//!   owner ── acquire(resource, mode) ──> partition by hash of resource
//!                                         entry: granted [(owner, mode)...]  queue: conversions first, then FIFO
//!   wait:  queue ──> wait table ──> search of the wait-for graph ──> victim | sleep until granted
//! ```
//! Invariants:
//! 1. All granted modes of a resource are compatible, owner by owner (`grantable`, asserted in `Entry::grant`).
//! 2. A request waits behind every earlier one that waits, except that a conversion waits behind conversions only.
//! 3. A cycle of waiters has a victim: the last to wait enters the wait table before it searches, and searches are
//!    serialised by that table's mutex (`deadlock::search`).
//! 4. An owner's `held` map equals what the entries grant it (only `LockManager` writes either).
//!
//! Locks: LOCK_WAITS (rank 1) before one LOCK_HASH partition (rank 1); LOCK_CELL last. Callers hold no latch: a wait
//! may last for ever. Failure: `Deadlock` (1205), `LockTimeout` (1222), `Cancelled`; the request is gone on return and
//! what was held stays held. It does not escalate by itself and does not know what an object is.
//!
//! Further reading: Gray, Reuter, Transaction Processing, chapter 8 (lock manager), whose conversion rule this follows.

mod deadlock;
mod mode;

#[cfg(test)]
mod tests;

pub use mode::LockMode;

use crate::error::StorageError;
use crate::hash::FastHash;
use observe::cancel::CancelToken;
use observe::sync::{Condvar, LockClass, Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thawdb_device::Env;
use thawdb_observe as observe;

static LOCK_HASH: LockClass = LockClass::new("LOCK_HASH", 1);
static LOCK_WAITS: LockClass = LockClass::new("LOCK_WAITS", 1);
static LOCK_CELL: LockClass = LockClass::new("LOCK_CELL", 5);

/// A power of two well above the cores of large machines, so that two threads seldom meet in one.
const PARTITION_COUNT: usize = 128;
/// How long a waiter without a time limit sleeps before it looks at its verdict again, woken or not.
const WAIT_SLICE: Duration = Duration::from_secs(1);

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

/// One who holds locks: a transaction, or a session for locks that outlive it.
#[derive(Debug)]
pub struct LockOwner {
    id: u64,
    held: HashMap<Resource, LockMode, FastHash>,
}

impl LockOwner {
    /// Its number in the lock table.
    pub fn id(&self) -> u64 {
        self.id
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
}

/// One row of `sys.dm_tran_locks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockInfo {
    /// The resource.
    pub resource: Resource,
    /// Number of the owner.
    pub owner: u64,
    /// Mode held or asked for.
    pub mode: LockMode,
    /// Which of the two.
    pub status: LockStatus,
}

struct Granted {
    owner: u64,
    mode: LockMode,
}

struct Waiter {
    owner: u64,
    mode: LockMode,
    converts: bool,
    cell: Arc<WaitCell>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Waiting,
    Granted,
    Victim,
}

struct WaitCell {
    verdict: Mutex<Verdict>,
    changed: Condvar,
}

impl WaitCell {
    fn settle(&self, verdict: Verdict) {
        let mut now = self.verdict.lock();
        if *now == Verdict::Waiting {
            *now = verdict;
        }
        self.changed.notify_all();
    }
}

/// The first grant is kept inline: nearly all entries have one owner and nobody waiting.
#[derive(Default)]
struct Entry {
    first: Option<Granted>,
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    granted: Vec<Granted>,
    queue: VecDeque<Waiter>,
}

impl Entry {
    fn granted(&self) -> impl Iterator<Item = &Granted> {
        self.first.iter().chain(self.more.iter().flat_map(|more| &more.granted))
    }

    fn queue(&self) -> impl Iterator<Item = &Waiter> {
        self.more.iter().flat_map(|more| &more.queue)
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    fn compatible_with_others(&self, owner: u64, mode: LockMode) -> bool {
        self.granted().all(|granted| granted.owner == owner || granted.mode.compatible(mode))
    }

    fn grant(&mut self, owner: u64, mode: LockMode) {
        debug_assert!(self.compatible_with_others(owner, mode), "granted modes are compatible");
        if let Some(granted) =
            self.first.iter_mut().chain(self.more.iter_mut().flat_map(|more| &mut more.granted)).find(|g| g.owner == owner)
        {
            granted.mode = mode;
        } else if self.first.is_none() {
            self.first = Some(Granted { owner, mode });
        } else {
            self.more().granted.push(Granted { owner, mode });
        }
    }

    fn enqueue(&mut self, waiter: Waiter) {
        let queue = &mut self.more().queue;
        let place = if waiter.converts { queue.iter().take_while(|w| w.converts).count() } else { queue.len() };
        queue.insert(place, waiter);
    }

    fn revoke(&mut self, owner: u64) {
        if self.first.as_ref().is_some_and(|granted| granted.owner == owner) {
            self.first = self.more.as_mut().and_then(|more| more.granted.pop());
        } else if let Some(more) = &mut self.more {
            more.granted.retain(|granted| granted.owner != owner);
        }
    }

    /// Grants from the front of the queue as far as modes allow.
    fn serve_queue(&mut self) {
        while let Some(next) = self.more.as_ref().and_then(|more| more.queue.front()) {
            if !self.compatible_with_others(next.owner, next.mode) {
                return;
            }
            let waiter = self.more().queue.pop_front().expect("seen above");
            self.grant(waiter.owner, waiter.mode);
            waiter.cell.settle(Verdict::Granted);
        }
    }

    fn is_unused(&self) -> bool {
        self.first.is_none() && self.more.as_ref().is_none_or(|more| more.granted.is_empty() && more.queue.is_empty())
    }
}

type Partition = HashMap<Resource, Entry, FastHash>;

/// One who sleeps in a queue.
struct Sleeper {
    resource: Resource,
    deadlock_priority: i8,
    cost: u64,
    cell: Arc<WaitCell>,
}

fn wait_kind(mode: LockMode) -> observe::wait::WaitKind {
    use observe::wait::WaitKind;
    match mode {
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

/// The lock table of an instance.
pub struct LockManager {
    env: Env,
    partitions: Vec<Mutex<Partition>>,
    sleepers: Mutex<BTreeMap<u64, Sleeper>>,
    owner_next: AtomicU64,
    deadlock_count: AtomicU64,
}

impl LockManager {
    /// An empty table.
    pub fn new(env: Env) -> Self {
        Self {
            env,
            partitions: (0..PARTITION_COUNT).map(|_| Mutex::new(&LOCK_HASH, Partition::default())).collect(),
            sleepers: Mutex::new(&LOCK_WAITS, BTreeMap::new()),
            owner_next: AtomicU64::new(1),
            deadlock_count: AtomicU64::new(0),
        }
    }

    /// A new owner, holding nothing. It must be given to [`Self::release_all`] before it is dropped.
    pub fn owner(&self) -> LockOwner {
        // Relaxed: only uniqueness matters.
        LockOwner { id: self.owner_next.fetch_add(1, Ordering::Relaxed), held: HashMap::default() }
    }

    /// Deadlocks resolved so far.
    pub fn deadlock_count(&self) -> u64 {
        self.deadlock_count.load(Ordering::Relaxed)
    }

    fn partition(&self, resource: Resource) -> MutexGuard<'_, Partition> {
        let hash = FastHash.hash_one(resource);
        // The low bits choose the bucket within the map; the partition takes others.
        self.partitions[(hash >> 40) as usize % PARTITION_COUNT].lock()
    }

    /// Takes `mode` on `resource` in addition to what the owner holds there, waiting as `wait` says.
    pub fn acquire(&self, owner: &mut LockOwner, resource: Resource, mode: LockMode, wait: LockWait<'_>) -> Result<(), StorageError> {
        let held = owner.held(resource);
        let wanted = held.map_or(mode, |held| held.combined(mode));
        if held == Some(wanted) {
            return Ok(());
        }
        let cell = {
            let mut partition = self.partition(resource);
            let entry = partition.entry(resource).or_default();
            let must_queue = held.is_none() && entry.queue().next().is_some();
            if !must_queue && entry.compatible_with_others(owner.id, wanted) {
                entry.grant(owner.id, wanted);
                owner.held.insert(resource, wanted);
                return Ok(());
            }
            if wait.timeout == Some(Duration::ZERO) {
                return Err(StorageError::LockTimeout);
            }
            let cell = Arc::new(WaitCell { verdict: Mutex::new(&LOCK_CELL, Verdict::Waiting), changed: Condvar::new() });
            entry.enqueue(Waiter { owner: owner.id, mode: wanted, converts: held.is_some(), cell: cell.clone() });
            cell
        };
        let waiting = observe::wait::enter(wait_kind(wanted));
        let outcome = self.sleep(owner.id, resource, &cell, wait);
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

    fn sleep(&self, owner: u64, resource: Resource, cell: &Arc<WaitCell>, wait: LockWait<'_>) -> Result<(), StorageError> {
        {
            let mut sleepers = self.sleepers.lock();
            sleepers.insert(owner, Sleeper { resource, deadlock_priority: wait.deadlock_priority, cost: wait.cost, cell: cell.clone() });
            self.resolve_deadlocks(&sleepers, owner);
        }
        let outcome = self.sleep_in(cell, wait);
        self.sleepers.lock().remove(&owner);
        outcome
    }

    fn sleep_in(&self, cell: &Arc<WaitCell>, wait: LockWait<'_>) -> Result<(), StorageError> {
        let _wake_on_cancel = wait.cancel.map(|token| {
            let cell = cell.clone();
            token.on_cancel(move || {
                // Under the mutex, so that it does not fall between a look at the token and going to sleep.
                let _verdict = cell.verdict.lock();
                cell.changed.notify_all();
            })
        });
        let start_ns = self.env.clock.monotonic_ns();
        let mut verdict = cell.verdict.lock();
        loop {
            match *verdict {
                Verdict::Granted => return Ok(()),
                Verdict::Victim => return Err(StorageError::Deadlock),
                Verdict::Waiting => {}
            }
            if wait.cancel.is_some_and(|token| token.check().is_err()) {
                return Err(StorageError::Cancelled);
            }
            let waited = Duration::from_nanos(self.env.clock.monotonic_ns() - start_ns);
            let slice = match wait.timeout {
                None => WAIT_SLICE,
                Some(timeout) if waited >= timeout => return Err(StorageError::LockTimeout),
                Some(timeout) => WAIT_SLICE.min(timeout - waited),
            };
            cell.changed.wait_for(&mut verdict, slice);
        }
    }

    fn resolve_deadlocks(&self, sleepers: &BTreeMap<u64, Sleeper>, start: u64) {
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
        let queue = &mut entry.more().queue;
        let before = queue.len();
        queue.retain(|waiter| !Arc::ptr_eq(&waiter.cell, cell));
        if queue.len() == before {
            return entry.granted().any(|granted| granted.owner == owner);
        }
        entry.serve_queue();
        if entry.is_unused() {
            partition.remove(&resource);
        }
        false
    }

    fn release_in(partition: &mut Partition, owner: u64, resource: Resource) {
        let entry = partition.get_mut(&resource).expect("held locks have an entry");
        entry.revoke(owner);
        entry.serve_queue();
        if entry.is_unused() {
            partition.remove(&resource);
        }
    }

    /// Gives one lock back; nothing happens if it is not held.
    pub fn release(&self, owner: &mut LockOwner, resource: Resource) {
        if owner.held.remove(&resource).is_some() {
            Self::release_in(&mut self.partition(resource), owner.id, resource);
        }
    }

    /// Gives back what `chosen` names.
    pub fn release_where(&self, owner: &mut LockOwner, chosen: impl Fn(Resource) -> bool) {
        for (resource, _) in owner.held.extract_if(|resource, _| chosen(*resource)) {
            Self::release_in(&mut self.partition(resource), owner.id, resource);
        }
    }

    /// Gives everything back.
    pub fn release_all(&self, owner: &mut LockOwner) {
        for (resource, _) in owner.held.drain() {
            Self::release_in(&mut self.partition(resource), owner.id, resource);
        }
    }

    /// Every lock held or waited for, ordered by resource and owner.
    pub fn locks(&self) -> Vec<LockInfo> {
        let mut all = Vec::new();
        for partition in &self.partitions {
            for (&resource, entry) in partition.lock().iter() {
                all.extend(entry.granted().map(|g| LockInfo { resource, owner: g.owner, mode: g.mode, status: LockStatus::Grant }));
                all.extend(entry.queue().map(|w| {
                    let status = if w.converts { LockStatus::Convert } else { LockStatus::Wait };
                    LockInfo { resource, owner: w.owner, mode: w.mode, status }
                }));
            }
        }
        all.sort_unstable();
        all
    }
}
