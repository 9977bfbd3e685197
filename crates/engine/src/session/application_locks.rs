//! Locks on names that applications agree on: sp_getapplock, sp_releaseapplock, APPLOCK_MODE, APPLOCK_TEST.
//!
//! ```text
//! owner Transaction   the session's own lock owner: goes with the transaction
//! owner Session       an owner of its own: goes with sp_releaseapplock, a connection reset, or the session
//! ```
//! Both owners are of one party, the session, and never wait for each other. A name is locked under its database and its
//! principal, by a hash of both of 128 bits: that two names share it is less likely than that the machine errs.
//!
//! Invariants: 1. A name got n times is free after n releases, or with its owner ([`ApplicationLocks::forget`]). 2. A wait that
//! fails leaves what was held before.
//! Failure: a wait that ends otherwise is a return code (-1 time-out, -2 cancelled, -3 deadlock), not an error.

use crate::session::state::SessionState;
use std::collections::BTreeMap;
use std::time::Duration;
use thawdb_storage::StorageError;
use thawdb_storage::locks::{LockManager, LockMode, LockOwner, LockWait, Resource, ResourceKind};

/// Characters of a name that count.
const NAME_CHARACTERS_MAX: usize = 255;

/// Whose the locks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ownership {
    Transaction,
    Session,
}

impl Ownership {
    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "transaction" => Some(Self::Transaction),
            "session" => Some(Self::Session),
            _ => None,
        }
    }
}

/// The modes a name can be locked in, as they are written.
const MODES: [(&str, LockMode); 5] = [
    ("Shared", LockMode::S),
    ("Update", LockMode::U),
    ("Exclusive", LockMode::X),
    ("IntentShared", LockMode::IS),
    ("IntentExclusive", LockMode::IX),
];

/// The mode of this name.
pub(crate) fn mode_named(name: &str) -> Option<LockMode> {
    MODES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, mode)| *mode)
}

/// A mode as APPLOCK_MODE shows it.
fn mode_shown(mode: LockMode) -> &'static str {
    match mode {
        LockMode::SIX => "SharedIntentExclusive",
        LockMode::SIU => "SharedIntentUpdate",
        LockMode::UIX => "UpdateIntentExclusive",
        _ => MODES.iter().find(|(_, known)| *known == mode).map_or("NoLock", |(name, _)| name),
    }
}

/// What a session holds of them.
#[derive(Debug)]
pub(crate) struct ApplicationLocks {
    owner: LockOwner,
    /// How often each was got.
    counts: BTreeMap<(Ownership, Resource), u32>,
}

impl ApplicationLocks {
    pub(crate) fn new(owner: LockOwner) -> Self {
        Self { owner, counts: BTreeMap::new() }
    }

    /// Forgets what went with the transaction.
    pub(crate) fn forget_transaction(&mut self) {
        self.counts.retain(|(ownership, _), _| *ownership == Ownership::Session);
    }

    /// Gives everything back.
    pub(crate) fn forget(&mut self, locks: &LockManager) {
        self.counts.clear();
        locks.release_all(&mut self.owner);
    }
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    // FNV-1a, finished so that near names do not stay near.
    let mixed = bytes.iter().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

impl SessionState {
    /// The resource of a name in the current database, compared byte for byte.
    pub(crate) fn application_resource(&self, principal: &str, name: &str) -> Resource {
        let name: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
        let whole = format!("{}\0{name}", principal.to_lowercase());
        let database = self.database.storage.lock_number();
        let (container, item) = (hash(1, whole.as_bytes()), hash(2, whole.as_bytes()) | 1);
        Resource { database, kind: ResourceKind::Application, container, item }
    }

    /// Gets a lock on a name: sp_getapplock's return code.
    pub(crate) fn get_application_lock(
        &mut self,
        resource: Resource,
        mode: LockMode,
        ownership: Ownership,
        timeout: Option<Duration>,
    ) -> i32 {
        let cancel = self.cancel.clone();
        let (deadlock_priority, cost) = (self.options.deadlock_priority, self.transactions.cost());
        let locks = &self.engine.locks;
        let owner = match ownership {
            Ownership::Transaction => &mut self.owner,
            Ownership::Session => &mut self.application_locks.owner,
        };
        let wait = |timeout| LockWait { timeout, cancel: Some(&cancel), deadlock_priority, cost, low_priority: false };
        let code = match locks.acquire(owner, resource, mode, wait(Some(Duration::ZERO))) {
            Ok(()) => 0,
            Err(StorageError::LockTimeout) if timeout != Some(Duration::ZERO) => {
                match locks.acquire(owner, resource, mode, wait(timeout)) {
                    Ok(()) => 1,
                    Err(error) => failure_code(&error),
                }
            }
            Err(error) => failure_code(&error),
        };
        if code >= 0 {
            *self.application_locks.counts.entry((ownership, resource)).or_default() += 1;
        }
        code
    }

    /// Gives a lock on a name back; false if the session does not have it.
    pub(crate) fn release_application_lock(&mut self, resource: Resource, ownership: Ownership) -> bool {
        let Some(count) = self.application_locks.counts.get_mut(&(ownership, resource)) else { return false };
        *count -= 1;
        if *count == 0 {
            self.application_locks.counts.remove(&(ownership, resource));
            let owner = match ownership {
                Ownership::Transaction => &mut self.owner,
                Ownership::Session => &mut self.application_locks.owner,
            };
            self.engine.locks.release(owner, resource);
        }
        true
    }

    /// The mode the session holds, as APPLOCK_MODE tells it.
    pub(crate) fn application_mode(&self, resource: Resource, ownership: Ownership) -> &'static str {
        let owner = match ownership {
            Ownership::Transaction => &self.owner,
            Ownership::Session => &self.application_locks.owner,
        };
        owner.held(resource).map_or("NoLock", mode_shown)
    }

    /// Whether the session could have the lock at once.
    pub(crate) fn test_application_lock(&self, resource: Resource, mode: LockMode) -> bool {
        let locks = &self.engine.locks;
        let mut trial = locks.owner_of(self.owner.party());
        let wait = LockWait { timeout: Some(Duration::ZERO), ..LockWait::default() };
        let is_free = locks.acquire(&mut trial, resource, mode, wait).is_ok();
        locks.release_all(&mut trial);
        is_free
    }
}

fn failure_code(error: &StorageError) -> i32 {
    match error {
        StorageError::LockTimeout => -1,
        StorageError::Cancelled => -2,
        StorageError::Deadlock => -3,
        _ => -999,
    }
}
