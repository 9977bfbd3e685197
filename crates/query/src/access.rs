//! What a plan needs to be allowed: noted by the binder, decided by whoever runs it.
//!
//! ```text
//! binder ─ names resolved ─► [AccessNeed] in the plan ─► the engine decides once per plan and security context
//!                                                         └─► Remembered: a number, compared at every later run
//! ```
//! A need says what is done to which object, with the columns named, and through which view or function the statement came
//! to it: where both have one owner nothing is asked (ownership chains). Common table expressions and derived tables are
//! part of the text; views and functions are not, so a column named inside one is no use of a column of its caller's.
//!
//! Invariants: 1. every base table, view, function and sequence that the text names has a need (`Binder::need`); temporary
//! tables and table variables have none. 2. A remembered context was allowed every need ([`Remembered::keep`]); contexts are
//! numbers that are never used again for another. No lock; no failure: this module decides nothing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use thawdb_catalog::{DatabaseId, ObjectId};

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // each is the permission of its name
pub enum AccessAction {
    Select,
    Insert,
    Update,
    Delete,
    Execute,
}

/// An object of a database.
pub type Place = (DatabaseId, ObjectId);

/// One thing a plan needs to be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessNeed {
    /// What is done.
    pub action: AccessAction,
    /// To which object.
    pub object: Place,
    /// Numbers of the columns named; empty if none is, or for what is done to whole rows.
    pub columns: Vec<i32>,
    /// The view, function or table whose definition names the object.
    pub parent: Option<Place>,
    /// The synonym it was named by.
    pub synonym: Option<Place>,
}

/// Contexts remembered a plan: those of the few users who run it by turns.
const CONTEXTS: usize = 4;

/// The contexts that were allowed all a plan needs.
#[derive(Debug, Default)]
pub struct Remembered {
    contexts: [AtomicU64; CONTEXTS],
    next: AtomicUsize,
}

impl Clone for Remembered {
    /// A copy of a plan is looked at anew.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Remembered {
    /// Whether the context, which is not 0, was allowed.
    #[inline]
    pub fn has(&self, context: u64) -> bool {
        // Relaxed: the number is all there is.
        self.contexts.iter().any(|kept| kept.load(Ordering::Relaxed) == context)
    }

    /// The context was allowed.
    pub fn keep(&self, context: u64) {
        let slot = self.next.fetch_add(1, Ordering::Relaxed) % CONTEXTS;
        self.contexts[slot].store(context, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_contexts_are_remembered() {
        let remembered = Remembered::default();
        (1..=5).for_each(|context| remembered.keep(context));
        assert!(!remembered.has(1) && (2..=5).all(|context| remembered.has(context)));
        assert!(!remembered.clone().has(5));
    }
}
