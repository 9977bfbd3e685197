//! Pages that were found wrong, for msdb.dbo.suspect_pages, and what the store knows it has written.
//!
//! ```text
//!   read ──error──> SuspectPages (823, 824)      repaired from the log ──> SuspectPages (restored)
//!   write synced ──page, LSN──> Written          read: an LSN below it ──> a write went astray: redo from what is there
//! ```
//! A device may acknowledge a write and lose it, or put it elsewhere: then the old page is there, whole and of the right
//! name, and only its LSN tells. While a database is open the store remembers the LSNs that it has written lately.
//! Whoever keeps the suspect pages beyond the process takes what is new of them ([`SuspectPages::take_new`]).
//!
//! Invariants: 1. both lists are bounded: [`SUSPECT_PAGES_MAX`], SQL Server's limit, the oldest row goes first;
//! [`WRITTEN_PAGES_MAX`] a shard, and a full shard is forgotten, which costs a chance to find a lost write and nothing else.
//! Locks: SUSPECT_PAGES (5), WRITTEN_PAGES (5). Failure: none. What it does not do: outlive the process (the
//! engine keeps the suspect pages in msdb).

use crate::error::StorageError;
use crate::hash::FastHash;
use crate::ids::{Lsn, PageId};
use observe::sync::{LockClass, Mutex};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_observe as observe;

static SUSPECT_PAGES: LockClass = LockClass::new("SUSPECT_PAGES", 5);
static WRITTEN_PAGES: LockClass = LockClass::new("WRITTEN_PAGES", 5);

/// Rows of the list; what SQL Server keeps.
const SUSPECT_PAGES_MAX: usize = 1000;
const SHARDS: usize = 16;
/// Pages remembered in a shard: all of them together are 2 GB of pages in 8 MB of memory.
const WRITTEN_PAGES_MAX: usize = 1 << 14;

/// What happened to a page, by SQL Server's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspectEvent {
    /// 1: the device failed (823), or the content is wrong in another way than by checksum (824).
    Bad,
    /// 2: the checksum does not match (824).
    Checksum,
    /// 4: it was found wrong and made whole from the log.
    Restored,
}

impl SuspectEvent {
    /// event_type.
    pub fn number(self) -> i32 {
        match self {
            Self::Bad => 1,
            Self::Checksum => 2,
            Self::Restored => 4,
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspectPage {
    /// The page.
    pub page: PageId,
    /// What happened last.
    pub event: SuspectEvent,
    /// How often.
    pub error_count: i32,
    /// When, in nanoseconds since 1970.
    pub last_update_ns: i128,
}

/// A row, and how much of its count nobody has taken.
struct Noted {
    row: SuspectPage,
    new_count: i32,
}

/// The list of one database.
pub(crate) struct SuspectPages {
    pages: Mutex<BTreeMap<PageId, Noted>>,
    /// Whether there is something to take: asked after every call of a session.
    has_new: AtomicBool,
}

impl SuspectPages {
    pub(crate) fn new() -> Self {
        Self { pages: Mutex::new(&SUSPECT_PAGES, BTreeMap::new()), has_new: AtomicBool::new(false) }
    }

    pub(crate) fn failed(&self, page: PageId, error: &StorageError, now_ns: i128) {
        let event = match error {
            StorageError::Damage { detail, .. } if detail.starts_with("checksum") => SuspectEvent::Checksum,
            StorageError::Damage { .. } | StorageError::Io(_) => SuspectEvent::Bad,
            // What is wrong is not the page.
            _ => return,
        };
        self.note(page, event, now_ns);
    }

    pub(crate) fn note(&self, page: PageId, event: SuspectEvent, last_update_ns: i128) {
        let mut pages = self.pages.lock();
        if pages.len() >= SUSPECT_PAGES_MAX && !pages.contains_key(&page) {
            let oldest = pages.values().min_by_key(|noted| noted.row.last_update_ns).map(|noted| noted.row.page);
            oldest.and_then(|oldest| pages.remove(&oldest));
        }
        let row = SuspectPage { page, event, error_count: 0, last_update_ns };
        let noted = pages.entry(page).or_insert(Noted { row, new_count: 0 });
        noted.row.error_count += 1;
        noted.new_count += 1;
        (noted.row.event, noted.row.last_update_ns) = (event, last_update_ns);
        // Under the mutex, which orders it with `take_new`.
        self.has_new.store(true, Ordering::Relaxed);
    }

    pub(crate) fn rows(&self) -> Vec<SuspectPage> {
        self.pages.lock().values().map(|noted| noted.row).collect()
    }

    /// Whether [`Self::take_new`] would give anything.
    pub(crate) fn has_new(&self) -> bool {
        // Relaxed: what is missed now is taken after the next call.
        self.has_new.load(Ordering::Relaxed)
    }

    /// The pages with something new, each with how often it has failed since it was taken last.
    pub(crate) fn take_new(&self) -> Vec<SuspectPage> {
        let mut pages = self.pages.lock();
        self.has_new.store(false, Ordering::Relaxed);
        let new = pages.values_mut().filter(|noted| noted.new_count > 0);
        new.map(|noted| SuspectPage { error_count: std::mem::take(&mut noted.new_count), ..noted.row }).collect()
    }

    /// What was taken could not be kept: it is new again.
    pub(crate) fn give_back(&self, rows: &[SuspectPage]) {
        let mut pages = self.pages.lock();
        for row in rows {
            if let Some(noted) = pages.get_mut(&row.page) {
                noted.new_count += row.error_count;
            }
        }
        self.has_new.store(!rows.is_empty(), Ordering::Relaxed);
    }
}

/// What was written lately.
pub(crate) struct Written([Mutex<HashMap<u64, Lsn, FastHash>>; SHARDS]);

impl Written {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(&WRITTEN_PAGES, HashMap::with_hasher(FastHash))))
    }

    fn place(&self, page: PageId) -> (&Mutex<HashMap<u64, Lsn, FastHash>>, u64) {
        (&self.0[page.page as usize % SHARDS], u64::from(page.file) << 32 | u64::from(page.page))
    }

    /// The page was written with this LSN, and synced.
    pub(crate) fn put(&self, page: PageId, lsn: Lsn) {
        let (shard, number) = self.place(page);
        let mut shard = shard.lock();
        if shard.len() >= WRITTEN_PAGES_MAX {
            shard.clear();
        }
        shard.insert(number, lsn);
    }

    /// The LSN that the page on the device has at least, as far as is known.
    pub(crate) fn at_least(&self, page: PageId) -> Lsn {
        let (shard, number) = self.place(page);
        shard.lock().get(&number).copied().unwrap_or_default()
    }

    /// Nothing is known of the page any more.
    pub(crate) fn forget(&self, page: PageId) {
        let (shard, number) = self.place(page);
        shard.lock().remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_counts() {
        let list = SuspectPages::new();
        let damage = |detail: &str| StorageError::Damage { page: PageId::NONE, offset: 0, detail: detail.into() };
        for page in 0..1500 {
            list.failed(PageId { file: 1, page }, &damage("checksum: wrong"), i128::from(page));
        }
        let last = PageId { file: 1, page: 1499 };
        list.failed(last, &damage("page id: wrong"), 2000);
        list.failed(last, &StorageError::Poisoned, 3000);
        let rows = list.rows();
        assert_eq!((rows.len(), rows[0].page.page), (SUSPECT_PAGES_MAX, 500));
        assert_eq!(rows[999], SuspectPage { page: last, event: SuspectEvent::Bad, error_count: 2, last_update_ns: 2000 });
    }
}
