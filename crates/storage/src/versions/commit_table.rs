//! The commit table: the fate of every transaction, and which of them a view sees.
//!
//! ```text
//!   txn ids   0 ........... base ............ low ............ high = next id
//!             long committed │  slots: 0 active, 1 aborted, n+1 committed as n-th
//!             (or in `aborted`)
//! ```
//! A view keeps `low` (all below have ended), `high` (none from there on counts), the commit sequence it was taken at
//! and the slots between, so that it asks no lock and no shared counter again.
//!
//! Invariants:
//! 1. A slot is written before the sequence that makes it visible is published, and both before `lowest_active` passes
//!    it (`publish`); a view reads in the opposite order (`view`). So below `low` everything is at or below its sequence.
//! 2. `horizon` is at most the `low` of every registered view and of every view still to come.
//! 3. What `open_txns` returns never lists a transaction whose commit record precedes the call, nor omits one whose
//!    commit record follows it: both sides hold `ACTIVE_TXNS` (`begin_commit`, `open_txns`).
//! 4. An id leaves `aborted` only when no row carries it any more (`reverted`; the cleaner's promise).
//!
//! Locks: ACTIVE_TXNS (1), then COMMIT_WINDOW (5); VIEW_SHARD (5), then COMMIT_WINDOW for reading. The closure given to
//! `begin_commit` appends to the log (rank 4) under ACTIVE_TXNS. Failure: none but the closure's.

use super::records::OpenTxns;
use crate::error::StorageError;
use crate::ids::{TreeId, TxnId};
use observe::sync::{self, LockClass, Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thawdb_observe as observe;

static ACTIVE_TXNS: LockClass = LockClass::new("ACTIVE_TXNS", 1);
static COMMIT_WINDOW: LockClass = LockClass::new("COMMIT_WINDOW", 5);
static VIEW_SHARD: LockClass = LockClass::new("VIEW_SHARD", 5);

/// Bits of a writer that are the transaction's id: at a hundred thousand transactions a second they last 1.4 years, at
/// ten thousand 14. The rest is the command within the transaction.
const TXN_BITS: u32 = 42;
/// The last command number: a transaction with more keeps it, and then sees its later changes too.
pub(crate) const COMMAND_MAX: u64 = (1 << (64 - TXN_BITS)) - 1;

/// The writer of a version: a transaction and which of its commands.
pub(crate) fn writer_of(txn: TxnId, command: u64) -> u64 {
    assert!(txn.0 >> TXN_BITS == 0 && command <= COMMAND_MAX, "ids and commands fit their bits");
    txn.0 | (command << TXN_BITS)
}

/// The transaction of a writer.
#[inline]
pub(crate) fn txn_of(writer: u64) -> u64 {
    writer & ((1 << TXN_BITS) - 1)
}

const CHUNK_SLOTS: usize = 1024;
/// Views of that many threads register without meeting.
const VIEW_SHARDS: usize = 8;
const ACTIVE: u64 = 0;
const ABORTED: u64 = 1;

type Chunk = [AtomicU64; CHUNK_SLOTS];
type AbortedTxns = BTreeMap<u64, BTreeSet<u64>>;

/// How a transaction ended, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Active,
    Aborted,
    Committed,
}

#[derive(Clone)]
struct Window {
    base: u64,
    chunks: Arc<Vec<Arc<Chunk>>>,
    aborted: Arc<AbortedTxns>,
}

impl Window {
    fn slot(&self, txn: u64) -> Option<&AtomicU64> {
        let index = usize::try_from(txn.checked_sub(self.base)?).ok()?;
        self.chunks.get(index / CHUNK_SLOTS).map(|chunk| &chunk[index % CHUNK_SLOTS])
    }
}

struct Active {
    txn_next: u64,
    tree_next: u64,
    open: BTreeMap<u64, OpenTxn>,
}

#[derive(Default)]
struct OpenTxn {
    trees: BTreeSet<u64>,
    commit_logged: bool,
}

/// The table of one database.
pub(crate) struct CommitTable {
    active: Mutex<Active>,
    window: RwLock<Window>,
    published: AtomicU64,
    lowest_active: AtomicU64,
    /// Aborted transactions with rows left, so that who asks about a settled writer need not look at the window.
    aborted_count: AtomicU64,
    txn_next: AtomicU64,
    horizon: AtomicU64,
    /// The id that was skipped when the last aborted transaction was cleaned.
    cleaned_at: AtomicU64,
    views: [Mutex<BTreeMap<u64, usize>>; VIEW_SHARDS],
    view_count: AtomicU64,
}

impl CommitTable {
    /// The table as recovery or a new database leaves it: what is open in `image` has aborted.
    pub(crate) fn new(image: OpenTxns) -> Self {
        let base = image.txn_next;
        let aborted_count = AtomicU64::new(image.open.len() as u64);
        Self {
            active: Mutex::new(&ACTIVE_TXNS, Active { txn_next: base, tree_next: image.tree_next, open: BTreeMap::new() }),
            window: RwLock::new(&COMMIT_WINDOW, Window { base, chunks: Arc::new(Vec::new()), aborted: Arc::new(image.open) }),
            published: AtomicU64::new(0),
            lowest_active: AtomicU64::new(base),
            aborted_count,
            txn_next: AtomicU64::new(base),
            horizon: AtomicU64::new(base),
            cleaned_at: AtomicU64::new(0),
            views: std::array::from_fn(|_| Mutex::new(&VIEW_SHARD, BTreeMap::new())),
            view_count: AtomicU64::new(0),
        }
    }

    /// Gives out the next id.
    pub(crate) fn begin(&self) -> TxnId {
        let mut active = self.active.lock();
        let txn = active.txn_next;
        let missing = self.window.read().slot(txn).is_none();
        if missing {
            self.slide_window();
        }
        active.txn_next += 1;
        active.open.insert(txn, OpenTxn::default());
        self.txn_next.store(active.txn_next, Ordering::Release);
        TxnId(txn)
    }

    /// Adds a chunk at the top and drops those below every open transaction; views keep the chunks they saw.
    fn slide_window(&self) {
        let settled = self.lowest_active.load(Ordering::Acquire);
        let mut window = self.window.write();
        let mut chunks: Vec<Arc<Chunk>> = window.chunks.as_ref().clone();
        while !chunks.is_empty() && window.base + CHUNK_SLOTS as u64 <= settled {
            chunks.remove(0);
            window.base += CHUNK_SLOTS as u64;
        }
        chunks.push(Arc::new(std::array::from_fn(|_| AtomicU64::new(ACTIVE))));
        window.chunks = Arc::new(chunks);
    }

    /// A tree id never given before.
    pub(crate) fn tree_id(&self) -> TreeId {
        let mut active = self.active.lock();
        active.tree_next += 1;
        TreeId(active.tree_next - 1)
    }

    /// Remembers that the transaction may have rows in the tree; before the record that says so is logged.
    pub(crate) fn touch(&self, txn: TxnId, tree: TreeId) {
        let mut active = self.active.lock();
        active.open.get_mut(&txn.0).expect("touching transactions are open").trees.insert(tree.0);
    }

    /// Runs `append`, which puts the commit record into the log, so that no checkpoint falls between record and mark.
    pub(crate) fn begin_commit<R>(&self, txn: TxnId, append: impl FnOnce() -> Result<R, StorageError>) -> Result<R, StorageError> {
        let mut active = self.active.lock();
        let logged = append()?;
        active.open.get_mut(&txn.0).expect("committing transactions are open").commit_logged = true;
        Ok(logged)
    }

    /// Makes a transaction, whose commit record is durable, visible to views taken from now on.
    pub(crate) fn publish(&self, txn: TxnId) {
        let mut active = self.active.lock();
        let sequence = self.published.load(Ordering::Relaxed) + 1;
        self.window.read().slot(txn.0).expect("open transactions have a slot").store(sequence + 1, Ordering::Release);
        sync::point();
        // Release: who reads this sequence finds the slot written.
        self.published.store(sequence, Ordering::Release);
        self.close(&mut active, txn);
    }

    fn close(&self, active: &mut Active, txn: TxnId) {
        sync::point();
        active.open.remove(&txn.0);
        let lowest = active.open.first_key_value().map_or(active.txn_next, |(id, _)| *id);
        self.lowest_active.store(lowest, Ordering::Release);
    }

    /// Ends a transaction of which nothing is left in any tree.
    pub(crate) fn reverted(&self, txn: TxnId) {
        let mut active = self.active.lock();
        if active.open.contains_key(&txn.0) {
            self.window.read().slot(txn.0).expect("open transactions have a slot").store(ABORTED, Ordering::Release);
            self.close(&mut active, txn);
            return;
        }
        let mut window = self.window.write();
        let mut aborted = window.aborted.as_ref().clone();
        aborted.remove(&txn.0);
        self.aborted_count.store(aborted.len() as u64, Ordering::Release);
        window.aborted = Arc::new(aborted);
        // One id is skipped, so that the horizon can tell views taken before this moment from those after it.
        self.cleaned_at.store(active.txn_next, Ordering::Release);
        active.txn_next += 1;
        self.txn_next.store(active.txn_next, Ordering::Release);
        if active.open.is_empty() {
            self.lowest_active.store(active.txn_next, Ordering::Release);
        }
    }

    /// Whether no row of an aborted transaction is left, and no view remains that may still believe so.
    pub(crate) fn aborted_are_forgotten(&self) -> bool {
        self.window.read().aborted.is_empty() && self.horizon() > self.cleaned_at.load(Ordering::Acquire)
    }

    /// Ends a transaction that left rows behind: they are read through until somebody reverts them.
    pub(crate) fn abandon(&self, txn: TxnId) {
        let mut active = self.active.lock();
        let trees = active.open.get(&txn.0).map(|open| open.trees.clone()).unwrap_or_default();
        {
            let mut window = self.window.write();
            let mut aborted = window.aborted.as_ref().clone();
            aborted.insert(txn.0, trees);
            // Before `close` raises the lowest active id: see `is_published`.
            self.aborted_count.store(aborted.len() as u64, Ordering::Release);
            window.aborted = Arc::new(aborted);
            window.slot(txn.0).expect("open transactions have a slot").store(ABORTED, Ordering::Release);
        }
        self.close(&mut active, txn);
    }

    /// What a checkpoint stores: everything that would have aborted if the log ended here. `here` is asked in the same
    /// moment: each commit is either before it and counted, or behind it.
    pub(crate) fn open_txns<R>(&self, here: impl FnOnce() -> R) -> (R, OpenTxns) {
        let active = self.active.lock();
        let here = here();
        let mut open = self.window.read().aborted.as_ref().clone();
        for (txn, state) in active.open.iter().filter(|(_, state)| !state.commit_logged) {
            open.insert(*txn, state.trees.clone());
        }
        (here, OpenTxns { txn_next: active.txn_next, tree_next: active.tree_next, open })
    }

    /// Aborted transactions that still have rows somewhere, with the trees to look in.
    pub(crate) fn aborted(&self) -> AbortedTxns {
        self.window.read().aborted.as_ref().clone()
    }

    /// The fate of the writer of a row that is latched now. 0 has committed before memory.
    pub(crate) fn fate(&self, writer: u64) -> Fate {
        let txn = txn_of(writer);
        let window = self.window.read();
        if window.aborted.contains_key(&txn) {
            return Fate::Aborted;
        }
        match window.slot(txn).map(|slot| slot.load(Ordering::Acquire)) {
            Some(ACTIVE) => Fate::Active,
            Some(ABORTED) => Fate::Aborted,
            Some(_) | None => Fate::Committed,
        }
    }

    /// Whether every view taken from now on sees the writer of a row that is latched now. A false "no" is possible.
    #[inline]
    pub(crate) fn is_published(&self, writer: u64) -> bool {
        let txn = txn_of(writer);
        // In this order: an abandoned transaction is counted before the lowest active id passes it.
        if txn < self.lowest_active.load(Ordering::Acquire) && self.aborted_count.load(Ordering::Acquire) == 0 {
            return true;
        }
        let window = self.window.read();
        if window.aborted.contains_key(&txn) {
            return false;
        }
        let published = self.published.load(Ordering::Acquire);
        window.slot(txn).is_none_or(|slot| (2..=published + 1).contains(&slot.load(Ordering::Acquire)))
    }

    /// Whether every view, present or to come, sees the writer. A false "no" is possible, a false "yes" is not.
    pub(crate) fn seen_by_all(&self, writer: u64) -> bool {
        let txn = txn_of(writer);
        txn == 0 || (txn < self.horizon.load(Ordering::Acquire) && self.fate(txn) == Fate::Committed)
    }

    /// The present horizon: transactions below have ended before every view was taken.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon.load(Ordering::Acquire)
    }

    /// Moves the horizon as far as open transactions and views allow, and returns it.
    pub(crate) fn advance_horizon(&self) -> u64 {
        // Read first: a view registering behind our back in a shard already passed takes a `low` at least as high.
        let mut horizon = self.lowest_active.load(Ordering::SeqCst);
        for shard in &self.views {
            if let Some((low, _)) = shard.lock().first_key_value() {
                horizon = horizon.min(*low);
            }
        }
        self.horizon.fetch_max(horizon, Ordering::AcqRel).max(horizon)
    }

    /// A view of what is committed now, and of all `own` changes.
    pub(crate) fn view(self: &Arc<Self>, own: Option<TxnId>) -> Visibility {
        self.view_up_to(own, COMMAND_MAX)
    }

    /// A view of what is committed now, and of `own` changes up to a command.
    pub(crate) fn view_up_to(self: &Arc<Self>, own: Option<TxnId>, own_command: u64) -> Visibility {
        loop {
            let registration = Arc::new(self.register());
            let low = registration.low;
            sync::point();
            let sequence = self.published.load(Ordering::Acquire);
            sync::point();
            let high = self.txn_next.load(Ordering::Acquire);
            let window = self.window.read().clone();
            // A window that slid past `low` meanwhile no longer tells who committed before `sequence`.
            if window.base <= low {
                return Visibility {
                    low,
                    high,
                    sequence,
                    own: own.map_or(0, |txn| txn.0),
                    own_command,
                    uncommitted: false,
                    window,
                    registration,
                };
            }
        }
    }

    fn register(self: &Arc<Self>) -> Registration {
        // Relaxed: it only spreads views over shards.
        let shard = self.view_count.fetch_add(1, Ordering::Relaxed) as usize % VIEW_SHARDS;
        let mut views = self.views[shard].lock();
        let low = self.lowest_active.load(Ordering::SeqCst);
        *views.entry(low).or_default() += 1;
        drop(views);
        Registration { table: self.clone(), shard, low }
    }
}

struct Registration {
    table: Arc<CommitTable>,
    shard: usize,
    low: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut views = self.table.views[self.shard].lock();
        let count = views.get_mut(&self.low).expect("registered views are counted");
        *count -= 1;
        if *count == 0 {
            views.remove(&self.low);
        }
    }
}

/// Which transactions' rows a view sees. While it lives, nothing it needs is cleaned away.
#[derive(Clone)]
pub(crate) struct Visibility {
    low: u64,
    high: u64,
    sequence: u64,
    own: u64,
    own_command: u64,
    /// What is not committed is seen too.
    uncommitted: bool,
    window: Window,
    /// While views live, the horizon stays below them.
    registration: Arc<Registration>,
}

impl Visibility {
    /// Whether rows of the writer are seen.
    #[inline]
    pub(crate) fn sees(&self, writer: u64) -> bool {
        let txn = txn_of(writer);
        if txn < self.low {
            return self.window.aborted.is_empty() || !self.window.aborted.contains_key(&txn);
        }
        if txn == self.own {
            return writer >> TXN_BITS <= self.own_command;
        }
        if self.uncommitted {
            return self.registration.table.fate(writer) != Fate::Aborted;
        }
        if txn >= self.high {
            return false;
        }
        self.window.slot(txn).is_some_and(|slot| (2..=self.sequence + 1).contains(&slot.load(Ordering::Acquire)))
    }

    /// The same snapshot, seeing the changes of `own` up to a command.
    pub(crate) fn with_own(&self, own: Option<TxnId>, own_command: u64) -> Self {
        Self { own: own.map_or(0, |txn| txn.0), own_command, ..self.clone() }
    }

    /// The same, seeing also what is not committed and not rolled back.
    pub(crate) fn uncommitted(&self) -> Self {
        Self { uncommitted: true, ..self.clone() }
    }

    /// The transaction of whose changes it sees some, 0 if none.
    pub(crate) fn own(&self) -> u64 {
        self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Arc<CommitTable> {
        Arc::new(CommitTable::new(OpenTxns::default()))
    }

    #[test]
    fn published_are_those_that_later_views_see() {
        let table = table();
        let (a, b, c) = (table.begin(), table.begin(), table.begin());
        table.publish(b);
        let published = |txn: TxnId| (table.is_published(txn.0), table.view(None).sees(txn.0));
        assert_eq!([published(a), published(b), published(c)], [(false, false), (true, true), (false, false)]);
        table.abandon(a);
        assert_eq!([published(a), published(b), published(c)], [(false, false), (true, true), (false, false)]);
        table.publish(c);
        assert_eq!([published(a), published(b), published(c)], [(false, false), (true, true), (true, true)]);
        assert!(table.is_published(0));
        table.reverted(a);
        assert!(table.is_published(c.0) && table.is_published(writer_of(b, 9)));
    }

    #[test]
    fn views_see_what_was_published_before_them() {
        let table = table();
        let (a, b) = (table.begin(), table.begin());
        table.publish(b);
        let early = table.view(None);
        table.publish(a);
        let late = table.view(None);
        let c = table.begin();
        let own = table.view(Some(c));
        assert_eq!([early.sees(a.0), early.sees(b.0), early.sees(c.0)], [false, true, false]);
        assert_eq!([late.sees(a.0), late.sees(b.0), late.sees(c.0)], [true, true, false]);
        assert_eq!([own.sees(a.0), own.sees(c.0), own.sees(0)], [true, true, true]);
        assert!(late.with_own(Some(c), 0).sees(c.0));
        assert!(!late.with_own(Some(c), 3).sees(writer_of(c, 4)) && late.with_own(Some(c), 4).sees(writer_of(c, 4)));
        table.publish(c);
        assert!(!late.sees(c.0));
    }

    #[test]
    fn the_horizon_waits_for_views_and_writers() {
        let table = table();
        let a = table.begin();
        let view = table.view(None);
        table.publish(a);
        let b = table.begin();
        assert_eq!(table.advance_horizon(), a.0);
        assert!(!table.seen_by_all(a.0));
        drop(view);
        assert_eq!(table.advance_horizon(), b.0);
        assert!(table.seen_by_all(a.0) && !table.seen_by_all(b.0));
    }

    #[test]
    fn the_aborted_stay_unseen_until_reverted() {
        let mut image = OpenTxns { txn_next: 50, ..OpenTxns::default() };
        image.open.insert(40, BTreeSet::from([1]));
        let table = Arc::new(CommitTable::new(image.clone()));
        assert_eq!(table.open_txns(|| ()).1, image);
        assert_eq!((table.fate(40), table.fate(41)), (Fate::Aborted, Fate::Committed));
        let view = table.view(None);
        assert!(!view.sees(40) && view.sees(41));
        let c = table.begin();
        table.touch(c, TreeId(7));
        table.abandon(c);
        assert_eq!(table.aborted(), BTreeMap::from([(40, BTreeSet::from([1])), (c.0, BTreeSet::from([7]))]));
        table.reverted(TxnId(40));
        table.reverted(c);
        assert!(table.aborted().is_empty() && !view.sees(40));
        assert_eq!(table.fate(c.0), Fate::Aborted);
    }

    #[test]
    fn the_window_slides_and_old_views_keep_theirs() {
        let table = table();
        let slow = table.begin();
        let view = table.view(None);
        for _ in 0..3 * CHUNK_SLOTS {
            let txn = table.begin();
            table.publish(txn);
        }
        assert_eq!(table.window.read().chunks.len(), 4);
        table.publish(slow);
        for _ in 0..CHUNK_SLOTS {
            let txn = table.begin();
            table.publish(txn);
        }
        assert!(table.window.read().chunks.len() <= 2);
        assert!(!view.sees(slow.0) && !view.sees(slow.0 + 5) && table.view(None).sees(slow.0));
        assert_eq!(table.fate(slow.0), Fate::Committed);
    }

    #[test]
    fn concurrent_views_are_prefixes_of_publication() {
        let table = table();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..4000 {
                        let txn = table.begin();
                        table.publish(txn);
                    }
                });
            }
            scope.spawn(|| {
                let mut before = 0;
                for _ in 0..2000 {
                    let view = table.view(None);
                    let seen = (1..view.high).filter(|txn| view.sees(*txn)).count();
                    assert_eq!(seen as u64, view.sequence, "exactly the published ones are seen");
                    assert!(view.sequence >= before && table.advance_horizon() <= view.low);
                    before = view.sequence;
                }
            });
        });
    }

    /// Writers commit one transaction after another, two of them one behind the other's back; readers take views, and note
    /// which commits had been answered before.
    ///
    /// Seen to find: `publish` that tells the sequence, and closes the transaction, before the slot is written.
    #[test]
    fn whatever_the_schedule_a_view_sees_what_was_answered_and_never_changes_its_mind() {
        for seed in 0..400 {
            let table = table();
            let answered: Mutex<Vec<u64>> = Mutex::new(&VIEW_SHARD, Vec::new());
            let all = 1..=8_u64;
            let mut bodies: Vec<observe::explore::Body<'_>> = Vec::new();
            for writer in 0..2 {
                let (table, answered) = (&table, &answered);
                bodies.push(Box::new(move || {
                    for turn in 0..3 {
                        let txn = table.begin();
                        if (writer + turn) % 3 == 2 {
                            table.abandon(txn);
                            continue;
                        }
                        table.publish(txn);
                        answered.lock().push(txn.0);
                    }
                }));
                let all = all.clone();
                bodies.push(Box::new(move || {
                    for _ in 0..2 {
                        let before = answered.lock().clone();
                        let view = table.view(None);
                        let seen: Vec<u64> = all.clone().filter(|txn| view.sees(*txn)).collect();
                        assert!(before.iter().all(|txn| seen.contains(txn)), "{before:?} were answered, {seen:?} are seen");
                        assert!(table.advance_horizon() <= view.low, "the horizon passed a view");
                        sync::point();
                        let again: Vec<u64> = all.clone().filter(|txn| view.sees(*txn)).collect();
                        assert_eq!(seen, again, "a view changed its mind");
                        let later = table.view(None);
                        assert!(seen.iter().all(|txn| later.sees(*txn)), "a later view sees less");
                    }
                }));
            }
            assert_eq!(observe::explore::run(seed, bodies), Ok(()), "seed {seed}");
        }
    }
}
