//! The dirty lists of one database, and what is being written: what checkpoint and shutdown read instead of the pool.
//!
//! ```text
//! mark_dirty --> list of the thread's shard --take--> in flight (oldest LSN kept) --synced--> gone
//!                        ^----- busy or failed -------/
//! ```
//!
//! 1. From the moment a page is marked dirty until its write is synced, an LSN not above its first change the device
//!    lacks is in a list or in flight ([`DirtyLists::oldest`] sees it): entries move only under `WRITES_IN_FLIGHT`.
//! 2. A page may be listed twice; the second writer finds it clean.

use crate::ids::{Lsn, PageId};
use crate::log::ScanStart;
use observe::sync::{LockClass, Mutex};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use thawdb_observe as observe;

static DIRTY_LIST: LockClass = LockClass::new("DIRTY_LIST", 5);
static IN_FLIGHT: LockClass = LockClass::new("WRITES_IN_FLIGHT", 5);

/// Lists of a database; threads are dealt out over them.
const SHARDS: usize = 16;

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static SHARD: Cell<usize> = Cell::new(NEXT_THREAD.fetch_add(1, Ordering::Relaxed) % SHARDS);
}

/// A dirty page and where its redo begins.
pub type DirtyPage = (PageId, Lsn);

/// The lists.
pub struct DirtyLists {
    shards: [Mutex<VecDeque<DirtyPage>>; SHARDS],
    in_flight: Mutex<InFlight>,
    count: AtomicUsize,
}

#[derive(Default)]
struct InFlight {
    next: u64,
    oldest: BTreeMap<u64, Lsn>,
    /// The pages of writes under way.
    pages: BTreeMap<u64, Vec<DirtyPage>>,
    /// Where the block begins from which on a hold's records lie, of holds alone.
    holds: BTreeMap<u64, ScanStart>,
    /// Where the newest checkpoint, done or under way, lets redo begin.
    floor: Lsn,
}

/// Pages taken for writing.
pub struct Taken {
    number: u64,
    /// The pages, in file order.
    pub pages: Vec<DirtyPage>,
}

impl DirtyLists {
    /// Nothing is dirty.
    pub fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(&DIRTY_LIST, VecDeque::new())),
            in_flight: Mutex::new(&IN_FLIGHT, InFlight::default()),
            count: AtomicUsize::new(0),
        }
    }

    /// Lists a page that became dirty.
    pub fn push(&self, page: PageId, recovery: Lsn) {
        self.shards[SHARD.get()].lock().push_back((page, recovery));
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Entries listed, at about this moment.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes up to `pages_max` entries, the oldest of each list first.
    pub fn take(&self, pages_max: usize) -> Taken {
        let mut pages = Vec::new();
        let mut in_flight = self.in_flight.lock();
        in_flight.next += 1;
        let number = in_flight.next;
        for turn in 0..SHARDS {
            let mut list = self.shards[(SHARD.get() + turn) % SHARDS].lock();
            let count = list.len().min(pages_max - pages.len());
            let Some(oldest) = list.iter().take(count).map(|(_, lsn)| *lsn).min() else {
                continue;
            };
            let known = in_flight.oldest.entry(number).or_insert(oldest);
            *known = oldest.min(*known);
            pages.extend(list.drain(..count));
            self.count.fetch_sub(count, Ordering::Relaxed);
        }
        pages.sort_unstable();
        if !pages.is_empty() {
            in_flight.pages.insert(number, pages.clone());
        }
        Taken { number, pages }
    }

    /// Ends what [`Self::take`] began; `back` is dirty still.
    pub fn done(&self, taken: &Taken, back: &[DirtyPage]) {
        let mut in_flight = self.in_flight.lock();
        let mut list = self.shards[SHARD.get()].lock();
        // To the front: they are older than what was listed meanwhile.
        back.iter().for_each(|page| list.push_front(*page));
        drop(list);
        self.count.fetch_add(back.len(), Ordering::Relaxed);
        in_flight.oldest.remove(&taken.number);
        in_flight.pages.remove(&taken.number);
    }

    /// Keeps redo from `from` on possible until [`Self::release`]: for pages that are written by other means. `from` and
    /// `scan` are read from the log before anything of it is appended.
    pub fn hold(&self, from: Lsn, scan: ScanStart) -> u64 {
        let mut in_flight = self.in_flight.lock();
        in_flight.next += 1;
        let number = in_flight.next;
        in_flight.oldest.insert(number, from);
        in_flight.holds.insert(number, scan);
        number
    }

    /// Ends a hold.
    pub fn release(&self, number: u64) {
        let mut in_flight = self.in_flight.lock();
        in_flight.oldest.remove(&number);
        in_flight.holds.remove(&number);
    }

    /// Keeps redo from `afresh` on possible while `taken` is in flight, if no checkpoint has passed it yet: then a torn
    /// write of the page harms nothing, the log can make it anew.
    pub fn rely_on(&self, taken: &Taken, afresh: Lsn) -> bool {
        let mut in_flight = self.in_flight.lock();
        let possible = afresh > Lsn(0) && afresh >= in_flight.floor;
        if possible {
            let oldest = in_flight.oldest.entry(taken.number).or_insert(afresh);
            *oldest = afresh.min(*oldest);
        }
        possible
    }

    /// Decides where redo begins from now on: at the oldest change that the device lacks, at the latest at `end`, at the
    /// earliest at `held`, where the log begins. It may go back for a page that was repaired from older log.
    pub fn set_floor(&self, held: Lsn, end: Lsn) -> Lsn {
        let mut in_flight = self.in_flight.lock();
        in_flight.floor = self.oldest_of(&in_flight).map_or(end, |oldest| oldest.min(end)).max(held);
        in_flight.floor
    }

    /// Every page of which the device may lack a change, and where the first records of holds may lie.
    pub fn all(&self) -> (Vec<DirtyPage>, Option<ScanStart>) {
        let in_flight = self.in_flight.lock();
        let mut pages: Vec<DirtyPage> = in_flight.pages.values().flatten().copied().collect();
        self.shards.iter().for_each(|shard| pages.extend(shard.lock().iter()));
        (pages, in_flight.holds.values().min().copied())
    }

    /// About the oldest LSN from which redo may be needed, without looking at every page.
    pub fn about_oldest(&self) -> Option<Lsn> {
        let in_flight = self.in_flight.lock();
        let listed = self.shards.iter().filter_map(|shard| shard.lock().front().map(|(_, lsn)| *lsn)).min();
        in_flight.oldest.values().copied().chain(listed).min()
    }

    fn oldest_of(&self, in_flight: &InFlight) -> Option<Lsn> {
        let listed = self.shards.iter().filter_map(|shard| shard.lock().iter().map(|(_, lsn)| *lsn).min()).min();
        in_flight.oldest.values().copied().chain(listed).min()
    }

    /// The oldest LSN from which redo may be needed; `None` if nothing is dirty.
    pub fn oldest(&self) -> Option<Lsn> {
        let in_flight = self.in_flight.lock();
        self.oldest_of(&in_flight)
    }
}

impl Default for DirtyLists {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_known_from_listing_to_the_end_of_the_write() {
        let lists = DirtyLists::new();
        let page = |page| PageId { file: 1, page };
        lists.push(page(9), Lsn(90));
        lists.push(page(3), Lsn(30));
        assert_eq!((lists.oldest(), lists.len()), (Some(Lsn(30)), 2));
        let taken = lists.take(10);
        assert_eq!(taken.pages, [(page(3), Lsn(30)), (page(9), Lsn(90))]);
        assert_eq!((lists.oldest(), lists.len()), (Some(Lsn(30)), 0));
        assert!(lists.rely_on(&taken, Lsn(20)));
        assert_eq!(lists.set_floor(Lsn(1), Lsn(100)), Lsn(20), "what is relied on is kept");
        lists.done(&taken, &[(page(9), Lsn(90))]);
        assert_eq!(lists.set_floor(Lsn(1), Lsn(100)), Lsn(90));
        let taken = lists.take(0);
        assert!(!lists.rely_on(&taken, Lsn(89)), "a checkpoint has passed it");
        lists.done(&taken, &[]);
        assert_eq!((lists.oldest(), lists.len()), (Some(Lsn(90)), 1));
    }
}
