//! Large parts that no row and no version holds: written for a row that is still to come, or left by one that went.
//!
//! ```text
//!   first page of a part ──loose──> row's change ──held──> row, versions ──loose──> last page freed ──held (gone)
//!                             \──────────── crash, rollback: the cleaner frees it ────────/
//! ```
//! What is in this list is also in the log: each step above is one record in the group that makes it so, and a checkpoint
//! carries the list. So after a crash it is known at once which parts nobody holds, whatever the size of anything.
//!
//! Invariants: 1. a part is held by exactly one of: a row, a version record, this list; each group that takes it from one
//! gives it to another (`Mini::loosen`, `Mini::hold_parts`), so that it is freed once. 2. What [`Loose::snapshot`] returns
//! has every change logged before its LSN: appending and applying happen inside the gate ([`Loose::enter`]).
//!
//! Locks: LARGE_GATE (2), shared around an append of such a group, exclusive for a moment of a checkpoint; LARGE_LOOSE (5).
//! Failure: none of its own.

use crate::ids::{Lsn, PageId, TreeId};
use crate::record::LooseChange;
use observe::sync::{LockClass, Mutex, RwLock, RwLockReadGuard};
use std::collections::BTreeSet;
use thawdb_observe as observe;

static LARGE_GATE: LockClass = LockClass::new("LARGE_GATE", 2);
static LARGE_LOOSE: LockClass = LockClass::new("LARGE_LOOSE", 5);

/// A part's first page, and its tree: the tree may be gone already, and the page another's.
pub(crate) type LoosePart = (PageId, TreeId);

/// The list of one database.
pub(crate) struct Loose {
    gate: RwLock<()>,
    parts: Mutex<BTreeSet<LoosePart>>,
}

impl Loose {
    pub(crate) fn new() -> Self {
        Self { gate: RwLock::new(&LARGE_GATE, ()), parts: Mutex::new(&LARGE_LOOSE, BTreeSet::new()) }
    }

    /// Keeps checkpoints away between an append and its [`Self::apply`].
    pub(crate) fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read()
    }

    /// Takes over what a group has logged.
    pub(crate) fn apply(&self, changes: &[(LooseChange, LoosePart)]) {
        if changes.is_empty() {
            return;
        }
        let mut parts = self.parts.lock();
        for (change, part) in changes {
            match change {
                LooseChange::Held => parts.remove(part),
                LooseChange::Loose | LooseChange::Image => parts.insert(*part),
            };
        }
    }

    /// What recovery found.
    pub(crate) fn fill(&self, parts: BTreeSet<LoosePart>) {
        *self.parts.lock() = parts;
    }

    /// The list as of the LSN that `here` reads.
    pub(crate) fn snapshot(&self, here: impl FnOnce() -> Lsn) -> (Lsn, Vec<LoosePart>) {
        let _gate = self.gate.write();
        let here = here();
        (here, self.all())
    }

    /// All of it now.
    pub(crate) fn all(&self) -> Vec<LoosePart> {
        self.parts.lock().iter().copied().collect()
    }
}
