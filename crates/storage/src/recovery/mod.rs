//! Opening a database after shutdown or crash: read the log once, open at once, redo each page when it is first touched.
//!
//! ```text
//! boot page -> log -> analysis: page -> newest change; logical records -> transactions' half    then it is open
//!                                   |
//! first touch of a page (or background): device copy --chain of records, newest back--> apply forward --> dirty
//! ```
//!
//! 1. A page with changes that the device may lack is in [`Pending`] until its redone frame is on a dirty list: a
//!    checkpoint between sees one or the other ([`Store::redo`], `Pending::oldest`).
//! 2. Redo applies a record only to the state before it: the chain is walked back from the newest record until one that
//!    the page already has (LSN not above the page's) or one that starts it afresh ([`Store::chain`]).
//! 3. There is no undo: what a transaction that did not commit left is the transactions' half's.
//!
//! | evidence for a page | decision |
//! |---|---|
//! | whole, not pending | use it |
//! | whole, pending | redo from its LSN |
//! | broken or blank, pending, chain starts afresh | redo from nothing |
//! | broken, pending, copy in the doublewrite region | redo from the copy |
//! | broken, not pending, the log still holds a start and all after | make it anew ([`Store::repair`]) |
//! | anything else | [`StorageError::Damage`] (824) |
//!
//! Locks: `REDO_PENDING` (5). Redo reads the log under the exclusive latch of the page being loaded.

mod open;
mod redo;
#[cfg(test)]
mod tests;

use crate::ids::{Lsn, PageId};
use crate::page::PageBytes;
use observe::sync::{LockClass, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use thawdb_observe as observe;

static REDO_PENDING: LockClass = LockClass::new("REDO_PENDING", 5);

/// Where the transactions' half hears what the log says.
pub trait RecoveryListener {
    /// The bytes of the last checkpoint's snapshot; called once, first. Empty for a database that never had one.
    fn table(&mut self, transactions: &[u8]);
    /// A logical record, in order. One that the snapshot reflects may come again.
    fn record(&mut self, lsn: Lsn, payload: &[u8]);
}

/// Changes of a page that the device may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    oldest: Lsn,
    newest: Lsn,
}

/// Pages to be redone.
pub struct Pending {
    left: AtomicUsize,
    state: Mutex<PendingState>,
}

#[derive(Default)]
struct PendingState {
    pages: BTreeMap<PageId, Missing>,
    /// Pages from the doublewrite region.
    copies: BTreeMap<PageId, Box<PageBytes>>,
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self { left: AtomicUsize::new(0), state: Mutex::new(&REDO_PENDING, PendingState::default()) }
    }

    fn fill(&self, state: PendingState) {
        self.left.store(state.pages.len(), Ordering::Release);
        *self.state.lock() = state;
    }

    /// Pages left.
    pub fn len(&self) -> usize {
        // Acquire: a reader that sees 0 sees the dirty lists that took over.
        self.left.load(Ordering::Acquire)
    }

    /// Whether all is redone.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn get(&self, page: PageId) -> Option<Missing> {
        if self.is_empty() { None } else { self.state.lock().pages.get(&page).copied() }
    }

    /// Whether `page` has changes that the device may lack.
    pub(crate) fn holds(&self, page: PageId) -> bool {
        self.get(page).is_some()
    }

    fn copy(&self, page: PageId) -> Option<Box<PageBytes>> {
        self.state.lock().copies.get(&page).cloned()
    }

    pub(crate) fn remove(&self, page: PageId) {
        let mut state = self.state.lock();
        if state.pages.remove(&page).is_some() {
            state.copies.remove(&page);
            self.left.store(state.pages.len(), Ordering::Release);
            if state.pages.is_empty() {
                state.copies.clear();
            }
        }
    }

    /// Some pages left, in file order.
    fn some(&self, pages_max: usize) -> Vec<PageId> {
        self.state.lock().pages.keys().take(pages_max).copied().collect()
    }

    /// The oldest change that the device may lack.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        if self.is_empty() { None } else { self.state.lock().pages.values().map(|missing| missing.oldest).min() }
    }
}
