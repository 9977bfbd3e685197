//! One resource of the lock table: who holds it, who waits, and who is served next.
//!
//! ```text
//!   granted  [(owner, party, mode)]        the first is kept inline: nearly all entries have one and nobody waiting
//!   queue    conversions, then the rest, then those of low priority, each in order of arrival; the front is served as
//!            soon as modes allow
//! ```
//! Invariants: 1. granted modes go together, party by party (`grant`). 2. The front of the queue never could be granted
//! (`serve_queue` after every release). Locks: the entry's partition is held; LOCK_CELL (5) to settle a waiter. No failure.

use super::{LockMode, LockOwner, Party, Resource};
use crate::hash::FastHash;
use observe::cancel::CancelToken;
use observe::sync::{Condvar, LockClass, Mutex};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use thawdb_observe as observe;

pub(super) static LOCK_CELL: LockClass = LockClass::new("LOCK_CELL", 5);

pub(super) struct Granted {
    pub(super) owner: u64,
    pub(super) party: Party,
    pub(super) mode: LockMode,
}

pub(super) struct Waiter {
    pub(super) owner: u64,
    pub(super) party: Party,
    pub(super) mode: LockMode,
    pub(super) converts: bool,
    pub(super) low_priority: bool,
    pub(super) cell: Arc<WaitCell>,
}

/// What has become of a request that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Waiting,
    Granted,
    Victim,
}

/// What a waiter sleeps on.
pub(super) struct WaitCell {
    /// Its place among all waits.
    pub(super) number: u64,
    verdict: Mutex<Verdict>,
    changed: Condvar,
}

impl WaitCell {
    pub(super) fn new(number: u64) -> Self {
        Self { number, verdict: Mutex::new(&LOCK_CELL, Verdict::Waiting), changed: Condvar::new() }
    }

    pub(super) fn verdict(&self) -> Verdict {
        *self.verdict.lock()
    }

    pub(super) fn settle(&self, verdict: Verdict) {
        let mut now = self.verdict.lock();
        if *now == Verdict::Waiting {
            *now = verdict;
        }
        self.changed.notify_all();
    }

    /// Wakes the sleeper to look around.
    pub(super) fn wake(&self) {
        // Under the mutex, so that it does not fall between a look at the token and going to sleep.
        let _verdict = self.verdict.lock();
        self.changed.notify_all();
    }

    /// Sleeps at most `slice`, not at all if there is a verdict or a cancellation.
    pub(super) fn wait_for(&self, slice: Duration, cancel: Option<&CancelToken>) {
        let mut verdict = self.verdict.lock();
        if *verdict == Verdict::Waiting && cancel.is_none_or(|token| token.check().is_ok()) {
            self.changed.wait_for(&mut verdict, slice);
        }
    }
}

#[derive(Default)]
pub(super) struct Entry {
    first: Option<Granted>,
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    granted: Vec<Granted>,
    queue: VecDeque<Waiter>,
}

pub(super) type Partition = HashMap<Resource, Entry, FastHash>;

impl Entry {
    pub(super) fn granted(&self) -> impl Iterator<Item = &Granted> {
        self.first.iter().chain(self.more.iter().flat_map(|more| &more.granted))
    }

    fn granted_mut(&mut self) -> impl Iterator<Item = &mut Granted> {
        self.first.iter_mut().chain(self.more.iter_mut().flat_map(|more| &mut more.granted))
    }

    pub(super) fn queue(&self) -> impl Iterator<Item = &Waiter> {
        self.more.iter().flat_map(|more| &more.queue)
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    pub(super) fn party_holds(&self, party: Party) -> bool {
        self.granted().any(|granted| granted.party == party)
    }

    pub(super) fn compatible_with_others(&self, party: Party, mode: LockMode) -> bool {
        self.granted().all(|granted| granted.party == party || granted.mode.compatible(mode))
    }

    /// Parties that a request must wait for: those whose grants it does not go with, and those ahead in the queue.
    pub(super) fn blockers(&self, party: Party, owner: u64, mode: LockMode) -> impl Iterator<Item = Party> {
        let granted = self.granted().filter(move |g| !g.mode.compatible(mode)).map(|g| g.party);
        let ahead = self.queue().take_while(move |w| w.owner != owner).map(|w| w.party);
        granted.chain(ahead).filter(move |blocker| *blocker != party)
    }

    pub(super) fn grant(&mut self, owner: &LockOwner, mode: LockMode) {
        self.grant_to(owner.id, owner.party, mode);
    }

    fn grant_to(&mut self, owner: u64, party: Party, mode: LockMode) {
        debug_assert!(self.compatible_with_others(party, mode), "granted modes are compatible");
        if let Some(granted) = self.granted_mut().find(|granted| granted.owner == owner) {
            granted.mode = mode;
        } else if self.first.is_none() {
            self.first = Some(Granted { owner, party, mode });
        } else {
            self.more().granted.push(Granted { owner, party, mode });
        }
    }

    pub(super) fn weaken(&mut self, owner: u64, mode: LockMode) {
        self.granted_mut().filter(|granted| granted.owner == owner).for_each(|granted| granted.mode = mode);
    }

    pub(super) fn enqueue(&mut self, waiter: Waiter) {
        let queue = &mut self.more().queue;
        let place = match (waiter.low_priority, waiter.converts) {
            (true, _) => queue.len(),
            (false, true) => queue.iter().take_while(|w| w.converts && !w.low_priority).count(),
            (false, false) => queue.iter().take_while(|w| !w.low_priority).count(),
        };
        queue.insert(place, waiter);
    }

    /// Takes a waiter out of the queue; false if it is not there.
    pub(super) fn withdraw(&mut self, cell: &Arc<WaitCell>) -> bool {
        let Some(more) = &mut self.more else { return false };
        let before = more.queue.len();
        more.queue.retain(|waiter| !Arc::ptr_eq(&waiter.cell, cell));
        more.queue.len() < before
    }

    pub(super) fn revoke(&mut self, owner: u64) {
        if self.first.as_ref().is_some_and(|granted| granted.owner == owner) {
            self.first = self.more.as_mut().and_then(|more| more.granted.pop());
        } else if let Some(more) = &mut self.more {
            more.granted.retain(|granted| granted.owner != owner);
        }
    }

    /// Grants from the front of the queue as far as modes allow.
    pub(super) fn serve_queue(&mut self) {
        while let Some(next) = self.more.as_ref().and_then(|more| more.queue.front()) {
            if !self.compatible_with_others(next.party, next.mode) {
                return;
            }
            let waiter = self.more().queue.pop_front().expect("seen above");
            self.grant_to(waiter.owner, waiter.party, waiter.mode);
            waiter.cell.settle(Verdict::Granted);
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.first.is_none() && self.more.as_ref().is_none_or(|more| more.granted.is_empty() && more.queue.is_empty())
    }
}
