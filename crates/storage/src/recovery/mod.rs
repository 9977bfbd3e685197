//! Opening a database after shutdown or crash: read the log once, open at once, redo each page when it is first touched.
//!
//! ```text
//! boot page -> log -> analysis: the last checkpoint's dirty pages, and the log from where it began:
//!                    page -> newest change; logical records -> transactions' half                 then it is open
//!                                   |
//! first touch of a page (or background): device copy --chain of records, newest back--> apply forward --> dirty
//! ```
//!
//! 1. A page with changes that the device may lack is in [`Pending`] until its redone frame is on a dirty list: a
//!    checkpoint between sees one or the other ([`Store::redo`], `Pending::oldest`).
//! 2. Redo applies a record only to the state before it: the chain is walked back from the newest record until one that
//!    the page already has (LSN not above the page's) or one that starts it afresh ([`Store::chain`]).
//!    Records come from stretches of the log that are kept for a while: neighbours on a chain often lie in one.
//! 3. There is no undo: what a transaction that did not commit left is the transactions' half's.
//!
//! | evidence for a page | decision |
//! |---|---|
//! | whole, not pending | use it |
//! | whole, pending | redo from its LSN |
//! | broken or blank, pending, chain starts afresh | redo from nothing |
//! | broken, pending, copy in the doublewrite region | redo from the copy |
//! | older than what was written (a lost write) | redo from its LSN ([`Store::repair`]) |
//! | broken, not pending, copy in the doublewrite region, the log holds all after | redo from the copy |
//! | broken, not pending, the log still holds a start and all after | make it anew |
//! | anything else | [`StorageError::Damage`] (824) |
//!
//! Locks: `REDO_PENDING` (5). Redo reads the log under the exclusive latch of the page being loaded.

mod open;
mod places;
mod redo;
#[cfg(test)]
mod tests;

pub(crate) use places::Relocated;

use crate::hash::FastHash;
use crate::ids::{Lsn, PageId};
use crate::log::WindowCache;
use crate::page::PageBytes;
use crate::record::MissingPage;
use observe::sync::{LockClass, Mutex};
use std::collections::{BTreeMap, HashMap};
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
    /// Log read for redo.
    windows: WindowCache,
    state: Mutex<PendingState>,
}

#[derive(Default)]
struct PendingState {
    pages: HashMap<u64, Missing, FastHash>,
    /// The pages in file order as they were found, from the last to the first, for the background.
    order: Option<Vec<u64>>,
    /// Pages from the doublewrite region.
    copies: BTreeMap<PageId, Box<PageBytes>>,
}

/// A page as one number, in file order.
fn number_of(page: PageId) -> u64 {
    u64::from(page.file) << 32 | u64::from(page.page)
}

fn page_of(number: u64) -> PageId {
    PageId { file: (number >> 32) as u16, page: number as u32 }
}

impl PendingState {
    fn add(&mut self, page: PageId, oldest: Lsn, newest: Lsn) {
        let missing = self.pages.entry(number_of(page)).or_insert(Missing { oldest, newest });
        missing.oldest = missing.oldest.min(oldest);
        missing.newest = missing.newest.max(newest);
    }
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self { left: AtomicUsize::new(0), windows: WindowCache::new(), state: Mutex::new(&REDO_PENDING, PendingState::default()) }
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
        if self.is_empty() { None } else { self.state.lock().pages.get(&number_of(page)).copied() }
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
        if state.pages.remove(&number_of(page)).is_some() {
            state.copies.remove(&page);
            self.left.store(state.pages.len(), Ordering::Release);
            if state.pages.is_empty() {
                *state = PendingState::default();
                self.windows.clear();
            }
        }
    }

    /// Some pages left, in file order.
    fn some(&self, pages_max: usize) -> Vec<PageId> {
        let mut state = self.state.lock();
        let PendingState { pages, order, .. } = &mut *state;
        let order = order.get_or_insert_with(|| {
            let mut all: Vec<u64> = pages.keys().copied().collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            all
        });
        let mut some = Vec::new();
        while some.len() < pages_max {
            // All were seen and some are left: those that could not be redone. They are tried again.
            let Some(page) = order.pop() else { break };
            if pages.contains_key(&page) {
                some.push(page_of(page));
            }
        }
        if order.is_empty() {
            state.order = None;
        }
        some
    }

    /// Forgets the log that a repair has read, unless there is more to redo.
    fn forget_windows(&self) {
        if self.is_empty() {
            self.windows.clear();
        }
    }

    /// Stretches of the log that are kept.
    #[cfg(test)]
    fn window_count(&self) -> usize {
        self.windows.len()
    }

    /// All of them, with their oldest and newest changes.
    pub(crate) fn all(&self) -> Vec<MissingPage> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<_> =
            self.state.lock().pages.iter().map(|(page, missing)| (page_of(*page), missing.oldest, missing.newest)).collect();
        all.sort_unstable();
        all
    }

    /// The oldest change that the device may lack.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        if self.is_empty() { None } else { self.state.lock().pages.values().map(|missing| missing.oldest).min() }
    }
}
