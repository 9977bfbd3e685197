//! What a session waits for, in SQL Server's words.
//!
//! ```text
//! enter(kind) -> WaitGuard ... drop -> count, time, maximum of the kind (sharded) and the session's own
//!      |                         |
//!      +-- session's slot: current wait, resource, since when -- and back to the wait around it
//! ```
//!
//! A session's slot is bound to the thread that works for it ([`bind`]); views read it from any thread
//! ([`SessionWaits::current`]). Waits may nest (an I/O inside a latch wait): each is counted, the inner one shows.
//!
//! 1. A guard dropped while unwinding counts like any other: no wait is ever left showing ([`WaitGuard::drop`]).
//! 2. The figures are those since the start or the last [`clear`], as DBCC SQLPERF (..., CLEAR) asks.
//!
//! It does not tell signal time (ready, not yet running) from resource time: our workers are the system's threads.

use crate::clock;
use crate::event::{self, Event, Family};
use crate::shard::Sharded;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

macro_rules! wait_kinds {
    ($($variant:ident $name:literal,)*) => {
        /// A kind of wait. The list is closed, so that its statistics are an array.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum WaitKind {
            $(#[doc = $name] $variant,)*
        }

        impl WaitKind {
            /// Every kind, in the order of the declaration.
            pub const ALL: &'static [WaitKind] = &[$(WaitKind::$variant,)*];

            /// SQL Server's name of it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(WaitKind::$variant => $name,)*
                }
            }
        }
    };
}

wait_kinds! {
    LockSchemaStability "LCK_M_SCH_S",
    LockSchemaModification "LCK_M_SCH_M",
    LockSchemaModificationLowPriority "LCK_M_SCH_M_LOW_PRIORITY",
    LockShared "LCK_M_S",
    LockUpdate "LCK_M_U",
    LockExclusive "LCK_M_X",
    LockIntentShared "LCK_M_IS",
    LockIntentUpdate "LCK_M_IU",
    LockIntentExclusive "LCK_M_IX",
    LockSharedIntentUpdate "LCK_M_SIU",
    LockSharedIntentExclusive "LCK_M_SIX",
    LockUpdateIntentExclusive "LCK_M_UIX",
    LockBulkUpdate "LCK_M_BU",
    LockRangeSharedShared "LCK_M_RS_S",
    LockRangeSharedUpdate "LCK_M_RS_U",
    LockRangeInsertNull "LCK_M_RIn_NL",
    LockRangeExclusive "LCK_M_RX_X",
    LatchShared "LATCH_SH",
    LatchExclusive "LATCH_EX",
    PageLatchShared "PAGELATCH_SH",
    PageLatchUpdate "PAGELATCH_UP",
    PageLatchExclusive "PAGELATCH_EX",
    PageIoLatchShared "PAGEIOLATCH_SH",
    PageIoLatchUpdate "PAGEIOLATCH_UP",
    PageIoLatchExclusive "PAGEIOLATCH_EX",
    WriteLog "WRITELOG",
    LogBuffer "LOGBUFFER",
    IoCompletion "IO_COMPLETION",
    AsyncIoCompletion "ASYNC_IO_COMPLETION",
    SleepBufferPool "SLEEP_BPOOL_STEAL",
    BackupIo "BACKUPIO",
    AsyncNetworkIo "ASYNC_NETWORK_IO",
    SchedulerYield "SOS_SCHEDULER_YIELD",
    ThreadPool "THREADPOOL",
    ResourceSemaphore "RESOURCE_SEMAPHORE",
    ResourceSemaphoreCompile "RESOURCE_SEMAPHORE_QUERY_COMPILE",
    ParallelExchange "CXPACKET",
    ParallelConsumer "CXCONSUMER",
    WaitFor "WAITFOR",
    SleepTask "SLEEP_TASK",
    CheckpointQueue "CHECKPOINT_QUEUE",
    DirtyPagePoll "DIRTY_PAGE_POLL",
    LogManagerQueue "LOGMGR_QUEUE",
    LazyWriterSleep "LAZYWRITER_SLEEP",
    DeadlockSearch "REQUEST_FOR_DEADLOCK_SEARCH",
    VersionCleaner "PVS_PREALLOCATE",
}

/// What is waited for, beyond its kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WaitResource {
    /// Nothing more to say.
    #[default]
    None,
    /// A latch, by the name of its class.
    Latch(&'static str),
    /// A page, shown as `database:file:page`.
    Page {
        /// Database number.
        database: u32,
        /// File number.
        file: u32,
        /// Page number in the file.
        page: u64,
    },
    /// Anything else, in the words of `sys.dm_os_waiting_tasks.resource_description`.
    Text(Arc<str>),
}

impl WaitResource {
    /// As `sys.dm_os_waiting_tasks.resource_description` shows it.
    pub fn description(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Latch(name) => (*name).to_owned(),
            Self::Page { database, file, page } => format!("{database}:{file}:{page}"),
            Self::Text(text) => text.to_string(),
        }
    }
}

/// A wait that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentWait {
    /// Its kind.
    pub kind: WaitKind,
    /// What is waited for.
    pub resource: WaitResource,
    /// When it began, by [`clock::now_ns`].
    pub since_ns: u64,
    /// The session that holds what is waited for, if known.
    pub blocked_by: Option<i32>,
}

/// The figures of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitStats {
    /// The kind.
    pub kind: WaitKind,
    /// Waits ended.
    pub count: u64,
    /// Time in them.
    pub wait_ns: u64,
    /// The longest.
    pub wait_ns_max: u64,
}

const COUNT: usize = 0;
const WAIT_NS: usize = 1;
const WAIT_NS_MAX: usize = 2;
const KINDS: usize = WaitKind::ALL.len();

struct KindStats {
    sums: Sharded<3>,
    /// Count and time at the last [`clear`].
    cleared: [AtomicU64; 2],
}

static STATS: [KindStats; KINDS] = [const { KindStats { sums: Sharded::new(), cleared: [const { AtomicU64::new(0) }; 2] } }; KINDS];

thread_local! {
    static SESSION: RefCell<Option<Arc<SessionWaits>>> = const { RefCell::new(None) };
}

/// The waits of one session; the engine keeps one beside each session, and one for each background task.
#[derive(Debug)]
pub struct SessionWaits {
    session_id: i32,
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
struct SlotState {
    current: Option<CurrentWait>,
    last: Option<WaitKind>,
    /// Count and time by kind, grown when a kind is first met.
    totals: Vec<(WaitKind, u64, u64, u64)>,
}

impl SessionWaits {
    /// The slot of a session that waits for nothing.
    pub fn new(session_id: i32) -> Arc<Self> {
        Arc::new(Self { session_id, state: Mutex::new(SlotState::default()) })
    }

    /// The session it belongs to.
    pub fn session_id(&self) -> i32 {
        self.session_id
    }

    /// The wait that goes on, if any.
    pub fn current(&self) -> Option<CurrentWait> {
        self.state().current.clone()
    }

    /// The kind of the present wait or, without one, of the last (`last_wait_type`).
    pub fn last_kind(&self) -> Option<WaitKind> {
        self.state().last
    }

    /// The session's own figures, by kind (`sys.dm_exec_session_wait_stats`).
    pub fn stats(&self) -> Vec<WaitStats> {
        let mut rows: Vec<WaitStats> = self
            .state()
            .totals
            .iter()
            .map(|&(kind, count, wait_ns, wait_ns_max)| WaitStats { kind, count, wait_ns, wait_ns_max })
            .collect();
        rows.sort_by_key(|row| row.kind);
        rows
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, wait: CurrentWait) -> Option<CurrentWait> {
        let mut state = self.state();
        state.last = Some(wait.kind);
        state.current.replace(wait)
    }

    fn end(&self, kind: WaitKind, wait_ns: u64, outer: Option<CurrentWait>) {
        let mut state = self.state();
        state.current = outer;
        match state.totals.iter_mut().find(|row| row.0 == kind) {
            Some(row) => *row = (kind, row.1 + 1, row.2.saturating_add(wait_ns), row.3.max(wait_ns)),
            None => state.totals.push((kind, 1, wait_ns, wait_ns)),
        }
    }
}

/// While it lives, the calling thread works for a session.
#[derive(Debug)]
pub struct SessionBinding {
    former: Option<Arc<SessionWaits>>,
    /// The binding is of this thread, so it must end on it.
    _stays: std::marker::PhantomData<*const ()>,
}

/// Says that the calling thread works for the session of `slot` until the binding is dropped.
pub fn bind(slot: &Arc<SessionWaits>) -> SessionBinding {
    let former = SESSION.with(|session| session.borrow_mut().replace(Arc::clone(slot)));
    SessionBinding { former, _stays: std::marker::PhantomData }
}

impl Drop for SessionBinding {
    fn drop(&mut self) {
        let _ = SESSION.try_with(|session| *session.borrow_mut() = self.former.take());
    }
}

/// The slot of the session the calling thread works for.
pub fn session() -> Option<Arc<SessionWaits>> {
    SESSION.try_with(|session| session.borrow().clone()).ok().flatten()
}

/// A wait; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the wait ends when its guard is dropped"]
pub struct WaitGuard {
    kind: WaitKind,
    since_ns: u64,
    slot: Option<Arc<SessionWaits>>,
    outer: Option<CurrentWait>,
}

/// Begins a wait.
pub fn enter(kind: WaitKind) -> WaitGuard {
    enter_on(kind, WaitResource::None)
}

/// Begins a wait for something that can be named.
pub fn enter_on(kind: WaitKind, resource: WaitResource) -> WaitGuard {
    let since_ns = clock::now_ns();
    let slot = session();
    let outer = slot.as_ref().and_then(|slot| slot.begin(CurrentWait { kind, resource, since_ns, blocked_by: None }));
    WaitGuard { kind, since_ns, slot, outer }
}

impl WaitGuard {
    /// Names the session that holds what is waited for.
    pub fn blocked_by(&self, session_id: Option<i32>) {
        if let Some(slot) = &self.slot
            && let Some(current) = slot.state().current.as_mut()
        {
            current.blocked_by = session_id;
        }
    }

    /// Ends the wait and tells how long it was.
    pub fn finish(self) -> u64 {
        let wait_ns = clock::now_ns().saturating_sub(self.since_ns);
        drop(self);
        wait_ns
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        let wait_ns = clock::now_ns().saturating_sub(self.since_ns);
        let sums = &STATS[self.kind as usize].sums;
        sums.add(COUNT, 1);
        sums.add(WAIT_NS, wait_ns);
        sums.raise(WAIT_NS_MAX, wait_ns);
        if let Some(slot) = &self.slot {
            slot.end(self.kind, wait_ns, self.outer.take());
        }
        event::emit(Family::Wait, || Event::WaitDone { kind: self.kind, wait_ns });
    }
}

/// The figures of every kind, in the order of [`WaitKind::ALL`].
pub fn stats() -> Vec<WaitStats> {
    let row = |&kind: &WaitKind| {
        let KindStats { sums, cleared } = &STATS[kind as usize];
        let since = |field: usize| sums.sum(field).wrapping_sub(cleared[field].load(Ordering::Relaxed));
        WaitStats { kind, count: since(COUNT), wait_ns: since(WAIT_NS), wait_ns_max: sums.largest(WAIT_NS_MAX) }
    };
    WaitKind::ALL.iter().map(row).collect()
}

/// Begins the figures anew. The sums themselves stay, since their owners write them without locks.
pub fn clear() {
    for KindStats { sums, cleared } in &STATS {
        cleared[COUNT].store(sums.sum(COUNT), Ordering::Relaxed);
        cleared[WAIT_NS].store(sums.sum(WAIT_NS), Ordering::Relaxed);
        sums.forget(WAIT_NS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: WaitKind) -> WaitStats {
        stats()[kind as usize]
    }

    #[test]
    fn names_are_unique_and_indexed_by_kind() {
        for (index, kind) in WaitKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            assert_eq!(WaitKind::ALL.iter().filter(|other| other.name() == kind.name()).count(), 1);
        }
    }

    #[test]
    fn a_session_shows_its_innermost_wait_and_keeps_its_sums() {
        let slot = SessionWaits::new(51);
        let reader = Arc::clone(&slot);
        let binding = bind(&slot);
        assert_eq!(reader.current(), None);
        {
            let lock = enter_on(WaitKind::LockExclusive, WaitResource::Text("keylock".into()));
            lock.blocked_by(Some(77));
            {
                let _page = enter_on(WaitKind::PageIoLatchShared, WaitResource::Page { database: 5, file: 1, page: 1234 });
                let seen = reader.current().expect("it waits");
                assert_eq!((seen.kind, seen.resource.description().as_str()), (WaitKind::PageIoLatchShared, "5:1:1234"));
            }
            let seen = reader.current().expect("it waits still");
            assert_eq!((seen.kind, seen.blocked_by), (WaitKind::LockExclusive, Some(77)));
        }
        assert_eq!(reader.current(), None);
        assert_eq!(reader.last_kind(), Some(WaitKind::PageIoLatchShared));
        let rows: Vec<_> = reader.stats().iter().map(|row| (row.kind, row.count)).collect();
        assert_eq!(rows, [(WaitKind::LockExclusive, 1), (WaitKind::PageIoLatchShared, 1)]);
        drop(binding);
        drop(enter(WaitKind::LockExclusive));
        assert_eq!(reader.stats()[0].count, 1, "unbound, the wait is not the session's");
    }

    #[test]
    fn clearing_begins_the_counts_anew() {
        // A kind no other test of this crate waits for.
        drop(enter(WaitKind::BackupIo));
        drop(enter(WaitKind::BackupIo));
        assert_eq!(of(WaitKind::BackupIo).count, 2);
        assert!(of(WaitKind::BackupIo).wait_ns >= of(WaitKind::BackupIo).wait_ns_max);
        clear();
        assert_eq!(of(WaitKind::BackupIo), WaitStats { kind: WaitKind::BackupIo, count: 0, wait_ns: 0, wait_ns_max: 0 });
        drop(enter(WaitKind::BackupIo));
        assert_eq!(of(WaitKind::BackupIo).count, 1);
    }
}
