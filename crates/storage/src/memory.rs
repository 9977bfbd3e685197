//! The memory account of an instance: `max server memory` divided between the buffer pool and everybody else.
//!
//! ```text
//! |<------------------------------ bytes_max ------------------------------>|
//! | pool ................................. | free for grants | others' grants |
//!                                          ^ moves left when grants need it: the pool gives frames back to the system
//! | pool's least |
//! ```
//! Whoever holds memory in amounts that matter (sorts, hash tables, read-ahead, bulk work) takes it from here first, as a
//! [`Grant`], and gives it back by dropping it. What nobody takes (caches, sessions, what the allocator keeps) is measured
//! as the process's memory less all that is known, and is charged too, beyond [`GENERAL_BYTES_FREE`].
//!
//! Long-lived work takes the memory of its grants in pieces ([`MemoryAccount::take_piece`]). What it gives back stays mapped for
//! the next for some seconds: the system zeroes memory before it hands it out, and a virtual machine may have to find it first.
//!
//! Invariants: 1. grants that were asked for with [`Grant::try_resize`] leave the pool its least ([`MemoryAccount::try_take`]).
//! 2. the pool aims at what grants leave, and at no more than it was made with ([`MemoryAccount::settle`]). 3. What a clerk has
//! is the sum of its grants ([`Grant`] alone changes it).
//!
//! Locks: `MEMORY_ACCOUNTS` (5) guards the list of accounts; `MEMORY_PIECES` (5) the pieces kept; `MEMORY_ACCOUNT` (1) while the pool is being made smaller or larger, which may write dirty pages; only tried, by
//! threads that hold no latch. Failure: none; who gets no grant spills, or says 701.
//!
//! What it does not do: queue those who get nothing (RESOURCE_SEMAPHORE), or bound what is measured rather than granted.

use observe::sync::{LockClass, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use thawdb_device::AlignedBuf;
use thawdb_device::buffer::HUGE_BYTES;
use thawdb_observe as observe;

static MEMORY_ACCOUNT: LockClass = LockClass::new("MEMORY_ACCOUNT", 1);
static ACCOUNTS_CLASS: LockClass = LockClass::new("MEMORY_ACCOUNTS", 5);
static PIECES_CLASS: LockClass = LockClass::new("MEMORY_PIECES", 5);
/// The accounts of this process, one an instance: what one of them knows of is not the rest of the process to another.
static ACCOUNTS: Mutex<Vec<Weak<MemoryAccount>>> = Mutex::new(&ACCOUNTS_CLASS, Vec::new());

/// Share of the whole that grants may take before the pool gives anything back: one statement's grant.
const GRANTS_SHARE: u64 = 4;
/// Share of the whole that the pool keeps whatever grants need: below it trees are read from disk at every step.
const POOL_LEAST_SHARE: u64 = 4;
/// What the process may use beside pool and grants before that is charged: code, stacks, catalogs and caches of an instance
/// at work, as seen with the benchmarks.
const GENERAL_BYTES_FREE: u64 = 128 << 20;

/// A piece of memory: some huge pages.
pub const PIECE_BYTES: usize = 4 * HUGE_BYTES;
/// Share of the whole that pieces may be kept of.
const PIECES_SHARE: u64 = 8;
/// Turns of the background after which pieces that nobody took are given to the system, one a turn.
const PIECE_TURNS: u32 = 100;

/// Pieces that nobody uses, and for how many turns none was taken or given back.
#[derive(Default)]
struct Pieces {
    kept: Vec<AlignedBuf>,
    turns: u32,
}

/// Who has memory: a row of sys.dm_os_memory_clerks each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clerk {
    /// Frames of the buffer pool.
    Pool,
    /// Sorts, hash tables and other work of statements and index builds.
    Query,
    /// Read-ahead and bulk writes.
    Storage,
    /// Everything else, as measured.
    General,
}

impl Clerk {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pool, Self::Query, Self::Storage, Self::General];

    /// Its type in SQL Server's words.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Pool => "MEMORYCLERK_SQLBUFFERPOOL",
            Self::Query => "MEMORYCLERK_SQLQERESERVATIONS",
            Self::Storage => "MEMORYCLERK_SQLSTORENG",
            Self::General => "MEMORYCLERK_SQLGENERAL",
        }
    }
}

/// The pool, as the account sees it.
pub trait Yielding: Send + Sync {
    /// Bytes it serves with.
    fn serving_bytes(&self) -> u64;
    /// Bytes of memory it occupies: those ever used of the ones it serves with.
    fn resident_bytes(&self) -> u64;
    /// Serves with about so many bytes from now on, as far as it can.
    fn serve_with(&self, bytes: u64);
}

/// The account.
pub struct MemoryAccount {
    bytes_max: u64,
    taken: [AtomicU64; Clerk::ALL.len()],
    /// Most that grants had together.
    peak: AtomicU64,
    pool: OnceLock<Weak<dyn Yielding>>,
    settling: Mutex<()>,
    pieces: Mutex<Pieces>,
}

impl MemoryAccount {
    /// An account of `bytes_max` bytes of which nothing is taken.
    pub fn new(bytes_max: u64) -> Arc<Self> {
        let account = Arc::new(Self {
            bytes_max,
            taken: Default::default(),
            peak: AtomicU64::new(0),
            pool: OnceLock::new(),
            settling: Mutex::new(&MEMORY_ACCOUNT, ()),
            pieces: Mutex::new(&PIECES_CLASS, Pieces::default()),
        });
        let mut accounts = ACCOUNTS.lock();
        accounts.retain(|known| known.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        drop(accounts);
        account
    }

    /// An account that lets a pool have `pool_bytes` at most.
    pub fn for_pool(pool_bytes: u64) -> Arc<Self> {
        Self::new(pool_bytes / (GRANTS_SHARE - 1) * GRANTS_SHARE)
    }

    /// `max server memory`.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Most that the pool can have.
    pub fn pool_bytes_max(&self) -> u64 {
        self.bytes_max - self.bytes_max / GRANTS_SHARE
    }

    fn pool_bytes_min(&self) -> u64 {
        self.bytes_max / POOL_LEAST_SHARE
    }

    /// Makes the pool known, once.
    pub fn set_pool(&self, pool: Weak<dyn Yielding>) {
        assert!(self.pool.set(pool).is_ok(), "an account has one pool");
    }

    fn pool(&self) -> Option<Arc<dyn Yielding>> {
        self.pool.get().and_then(Weak::upgrade)
    }

    // Relaxed throughout: the figures order nothing else, and each step of taking is one read-modify-write.
    fn cell(&self, clerk: Clerk) -> &AtomicU64 {
        &self.taken[clerk as usize]
    }

    /// What `clerk` has now.
    pub fn bytes_of(&self, clerk: Clerk) -> u64 {
        match clerk {
            Clerk::Pool => self.pool().map_or(0, |pool| pool.resident_bytes()),
            _ => self.cell(clerk).load(Ordering::Relaxed),
        }
    }

    /// What all but the pool have now, as it counts against the whole.
    pub fn granted_bytes(&self) -> u64 {
        let general = self.bytes_of(Clerk::General).saturating_sub(GENERAL_BYTES_FREE);
        self.bytes_of(Clerk::Query) + self.bytes_of(Clerk::Storage) + general
    }

    /// Most that grants had at once.
    pub fn granted_bytes_peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// What the instance aims to use in all: sys.dm_os_sys_info.committed_target_kb.
    pub fn target_bytes(&self) -> u64 {
        self.bytes_max
    }

    /// Whether grants have so much more than they may that nobody who can do otherwise should go on.
    pub fn is_overdrawn(&self) -> bool {
        self.granted_bytes() > self.bytes_max - self.pool_bytes_min() + self.bytes_max / 16
    }

    /// Takes `bytes` if the pool keeps its least.
    fn try_take(&self, clerk: Clerk, bytes: u64) -> bool {
        let before = self.granted_bytes();
        if before + bytes > self.bytes_max - self.pool_bytes_min() {
            return false;
        }
        self.take(clerk, bytes);
        true
    }

    fn take(&self, clerk: Clerk, bytes: u64) {
        self.cell(clerk).fetch_add(bytes, Ordering::Relaxed);
        self.peak.fetch_max(self.granted_bytes(), Ordering::Relaxed);
        self.settle();
    }

    fn give_back(&self, clerk: Clerk, bytes: u64) {
        let before = self.cell(clerk).fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "a clerk gives back what it took");
    }

    /// Makes the pool as large as grants leave it: smaller by a sixteenth more than is needed, and larger again when that is
    /// worth it. Grants that are taken make it smaller at once; it grows at a turn of the background ([`Self::note_process`]),
    /// because whoever gives a grant back often asks for the next within milliseconds, and moving the pool costs as much.
    pub fn settle(&self) {
        let Some(pool) = self.pool() else { return };
        loop {
            let granted = self.granted_bytes();
            let aim = self.bytes_max.saturating_sub(granted).clamp(self.pool_bytes_min(), self.pool_bytes_max());
            let (now, step) = (pool.serving_bytes(), self.pool_bytes_max() / 16);
            let is_calm = granted < self.bytes_max / GRANTS_SHARE / 2;
            let next = match () {
                () if now > aim => (aim - step.min(aim)).max(self.pool_bytes_min()),
                () if now + 2 * step <= aim || (is_calm && now < aim) => aim,
                () => return,
            };
            // Who is at it looks again before it ends.
            let Some(settling) = self.settling.try_lock() else { return };
            pool.serve_with(next);
            drop(settling);
            if self.granted_bytes() == granted {
                return;
            }
        }
    }

    /// [`PIECE_BYTES`] of memory, with whatever was in it, for someone who has a grant for them.
    pub fn take_piece(&self) -> AlignedBuf {
        let mut pieces = self.pieces.lock();
        pieces.turns = 0;
        pieces.kept.pop().unwrap_or_else(|| {
            drop(pieces);
            AlignedBuf::zeroed(PIECE_BYTES)
        })
    }

    /// Takes a piece back.
    pub fn keep_piece(&self, piece: AlignedBuf) {
        assert!(piece.len() == PIECE_BYTES, "pieces have one size");
        let mut pieces = self.pieces.lock();
        pieces.turns = 0;
        if ((pieces.kept.len() + 1) * PIECE_BYTES) as u64 <= self.bytes_max / PIECES_SHARE {
            pieces.kept.push(piece);
        }
    }

    /// Pieces that are kept for whoever needs one next.
    pub fn pieces_kept(&self) -> usize {
        self.pieces.lock().kept.len()
    }

    /// A turn of the background: gives the system a piece that nobody has taken for a while, or all when memory is short.
    fn let_pieces_go(&self) {
        let is_short = self.granted_bytes() > self.bytes_max / GRANTS_SHARE;
        let mut pieces = self.pieces.lock();
        pieces.turns += 1;
        let gone = match () {
            () if is_short => std::mem::take(&mut pieces.kept),
            () if pieces.turns > PIECE_TURNS => Vec::from_iter(pieces.kept.pop()),
            () => Vec::new(),
        };
        drop(pieces);
        drop(gone);
    }

    /// Notes the process's memory as the system sees it: what is not the pool's nor granted is charged to
    /// [`Clerk::General`].
    pub fn note_process(&self, process_bytes: u64) {
        self.let_pieces_go();
        if process_bytes == 0 {
            return self.settle();
        }
        let accounts: Vec<Arc<Self>> = ACCOUNTS.lock().iter().filter_map(Weak::upgrade).collect();
        let clerks = [Clerk::Pool, Clerk::Query, Clerk::Storage];
        let known = accounts.iter().flat_map(|account| clerks.map(|clerk| account.bytes_of(clerk))).sum();
        self.cell(Clerk::General).store(process_bytes.saturating_sub(known), Ordering::Relaxed);
        self.settle();
    }
}

/// Memory taken from an account; given back when dropped.
pub struct Grant {
    account: Arc<MemoryAccount>,
    clerk: Clerk,
    bytes: u64,
}

impl Grant {
    /// Nothing yet.
    pub fn new(account: Arc<MemoryAccount>, clerk: Clerk) -> Self {
        assert!(!matches!(clerk, Clerk::Pool | Clerk::General), "these are measured");
        Self { account, clerk, bytes: 0 }
    }

    /// What it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it `bytes`; false, and as it was, if there is no room for that.
    pub fn try_resize(&mut self, bytes: u64) -> bool {
        if bytes > self.bytes && !self.account.try_take(self.clerk, bytes - self.bytes) {
            return false;
        }
        if bytes < self.bytes {
            self.account.give_back(self.clerk, self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }

    /// Makes it `bytes`, room or not: for what is held already, or is the least to go on with.
    pub fn resize(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.account.take(self.clerk, bytes - self.bytes);
        } else {
            self.account.give_back(self.clerk, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.account.give_back(self.clerk, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    struct FakePool(AtomicU64);

    impl Yielding for FakePool {
        fn serving_bytes(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn resident_bytes(&self) -> u64 {
            self.serving_bytes()
        }

        fn serve_with(&self, bytes: u64) {
            self.0.store(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn pieces_are_kept_for_a_while_and_not_while_memory_is_short() {
        let account = MemoryAccount::new(32 * PIECE_BYTES as u64);
        let pieces: Vec<AlignedBuf> = (0..6).map(|_| account.take_piece()).collect();
        pieces.into_iter().for_each(|piece| account.keep_piece(piece));
        assert_eq!(account.pieces_kept(), 4, "an eighth");
        (0..PIECE_TURNS).for_each(|_| account.note_process(0));
        let piece = account.take_piece();
        account.keep_piece(piece);
        (0..PIECE_TURNS).for_each(|_| account.note_process(0));
        assert_eq!(account.pieces_kept(), 4, "one was of use meanwhile");
        account.note_process(0);
        assert_eq!(account.pieces_kept(), 3);
        let mut grant = Grant::new(account.clone(), Clerk::Query);
        assert!(grant.try_resize(9 * PIECE_BYTES as u64));
        account.note_process(0);
        assert_eq!(account.pieces_kept(), 0);
    }

    #[test]
    fn the_pool_gives_what_grants_need_and_gets_it_back() {
        let account = MemoryAccount::new(64 * MIB);
        let pool: Arc<FakePool> = Arc::new(FakePool(AtomicU64::new(account.pool_bytes_max())));
        let weak: Weak<dyn Yielding> = Arc::downgrade(&pool) as Weak<dyn Yielding>;
        account.set_pool(weak);
        let mut first = Grant::new(account.clone(), Clerk::Query);
        assert!(first.try_resize(16 * MIB));
        assert_eq!(pool.serving_bytes(), 48 * MIB, "the first quarter is free");
        let mut second = Grant::new(account.clone(), Clerk::Storage);
        assert!(second.try_resize(20 * MIB));
        assert_eq!(pool.serving_bytes(), 25 * MIB, "28 less a sixteenth of 48");
        assert!(!second.try_resize(33 * MIB), "the pool keeps a quarter");
        assert_eq!((second.bytes(), account.granted_bytes()), (20 * MIB, 36 * MIB));
        second.resize(60 * MIB);
        assert_eq!(pool.serving_bytes(), 16 * MIB, "its least");
        drop((first, second));
        assert_eq!(pool.serving_bytes(), 16 * MIB, "until the next turn");
        account.note_process(0);
        assert_eq!((pool.serving_bytes(), account.granted_bytes(), account.granted_bytes_peak()), (48 * MIB, 0, 76 * MIB));
    }

    #[test]
    fn what_the_process_has_beside_is_charged_beyond_its_allowance() {
        let account = MemoryAccount::new(u64::MAX >> 8);
        // Accounts of other tests may live meanwhile: the figures are far above theirs.
        let (base, near) = (1 << 50, |found: u64, expected: u64| found.abs_diff(expected) < 1 << 40);
        account.note_process(base);
        assert!(near(account.bytes_of(Clerk::General), base) && near(account.granted_bytes(), base - GENERAL_BYTES_FREE));
        let other = MemoryAccount::new(u64::MAX >> 8);
        let mut grant = Grant::new(other.clone(), Clerk::Query);
        grant.resize(base / 2);
        account.note_process(base);
        assert!(near(account.granted_bytes(), base / 2), "another instance's memory is not the rest of the process");
        account.note_process(0);
        assert!(near(account.granted_bytes(), base / 2), "nothing measured, nothing changed");
        drop(grant);
        account.note_process(100 * MIB);
        assert_eq!((account.granted_bytes(), other.granted_bytes()), (0, 0), "within the allowance");
    }
}
