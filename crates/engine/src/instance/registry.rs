//! The sessions of an instance: numbers, and the facts about each that others may see.
//!
//! Invariants: 1. a session number is in use by one session at a time (`Sessions::open`, `Drop` of the ticket).
//! 2. What another thread may read of a session is in [`SessionFacts`]; nothing else of it is shared.
//!
//! Locks: SESSION_LIST (rank 5) and SESSION_FACTS (rank 5), each held for a copy only.

use crate::messages::message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thawdb_catalog::DatabaseId;
use thawdb_observe::cancel::{CancelReason, CancelToken};
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_observe::wait::SessionWaits;
use thawdb_types::SqlError;

static LIST: LockClass = LockClass::new("SESSION_LIST", 5);
static ON_KILL: LockClass = LockClass::new("SESSION_ON_KILL", 5);
static CANCEL: LockClass = LockClass::new("SESSION_CANCEL", 5);
static FACTS: LockClass = LockClass::new("SESSION_FACTS", 5);

/// First number of a client's session; lower ones are the system's, as in SQL Server.
const FIRST_ID: i16 = 51;
/// Sessions at one time: SQL Server's limit of user connections.
const SESSIONS_MAX: i16 = 32_767;

/// What others may see of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFacts {
    pub(crate) login_name: String,
    pub(crate) host_name: String,
    pub(crate) app_name: String,
    pub(crate) client_interface: String,
    pub(crate) client_process_id: i32,
    pub(crate) client_address: String,
    pub(crate) packet_bytes: u32,
    pub(crate) encrypted: bool,
    pub(crate) database: i32,
    pub(crate) language: String,
    /// 1/300 s since 1900-01-01, as all moments here.
    pub(crate) login_time: i64,
    pub(crate) request_start: i64,
    pub(crate) request_end: i64,
    pub(crate) running: bool,
    /// Kind of the running statement, as sys.dm_exec_requests.command shows it.
    pub(crate) command: &'static str,
    /// Text of the running batch.
    pub(crate) text: Arc<str>,
    pub(crate) transaction_count: i32,
    /// The open transaction, as its client calls it; 0 if there is none.
    pub(crate) transaction_id: u64,
    pub(crate) transaction_name: String,
    pub(crate) transaction_begin: i64,
    pub(crate) isolation: u8,
    pub(crate) lock_timeout_ms: i32,
    pub(crate) row_count: i64,
    pub(crate) last_error: i32,
    pub(crate) date_first: u8,
    pub(crate) date_order: thawdb_types::convert::DateOrder,
    pub(crate) prepared_count: usize,
    /// Of long work, 0 to 100; 0 for other work.
    pub(crate) percent_complete: f32,
    /// Whether that work is a resumable operation.
    pub(crate) resumable: bool,
}

/// The shared side of a session.
pub(crate) struct SessionTicket {
    pub(crate) id: i16,
    /// A number no other session of this process ever has.
    pub(crate) unique: u64,
    pub(crate) facts: Mutex<SessionFacts>,
    /// Ends the running call; each call has its own.
    pub(crate) cancel: Mutex<CancelToken>,
    /// The session is to end.
    pub(crate) killed: AtomicBool,
    /// What it waits for and has waited for.
    pub(crate) waits: Arc<SessionWaits>,
    /// Told when the session is killed, for who waits for its next request.
    pub(crate) on_kill: Mutex<Option<OnKill>>,
}

/// Whom to tell that a session is killed.
pub(crate) type OnKill = Arc<dyn Fn() + Send + Sync>;

/// The sessions of an instance.
pub(crate) struct Sessions {
    list: Mutex<BTreeMap<i16, Arc<SessionTicket>>>,
    unique_next: AtomicU64,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self { list: Mutex::new(&LIST, BTreeMap::new()), unique_next: AtomicU64::new(1) }
    }

    /// Registers a session under the lowest free number.
    pub(crate) fn open(&self, facts: SessionFacts) -> Result<Arc<SessionTicket>, SqlError> {
        let mut list = self.list.lock();
        let id = (FIRST_ID..SESSIONS_MAX).find(|id| !list.contains_key(id)).ok_or_else(|| message(701, &[&"internal"]))?;
        let ticket = Arc::new(SessionTicket {
            id,
            // Relaxed: only uniqueness matters.
            unique: self.unique_next.fetch_add(1, Ordering::Relaxed),
            facts: Mutex::new(&FACTS, facts),
            cancel: Mutex::new(&CANCEL, CancelToken::new()),
            killed: AtomicBool::new(false),
            waits: SessionWaits::new(i32::from(id)),
            on_kill: Mutex::new(&ON_KILL, None),
        });
        list.insert(id, ticket.clone());
        Ok(ticket)
    }

    /// Sessions opened since the start.
    pub(crate) fn opened_count(&self) -> u64 {
        self.unique_next.load(Ordering::Relaxed) - 1
    }

    /// Gives a number back.
    pub(crate) fn close(&self, ticket: &SessionTicket) {
        self.list.lock().remove(&ticket.id);
    }

    pub(crate) fn get(&self, id: i16) -> Option<Arc<SessionTicket>> {
        self.list.lock().get(&id).cloned()
    }

    /// All sessions by number.
    pub(crate) fn all(&self) -> Vec<Arc<SessionTicket>> {
        self.list.lock().values().cloned().collect()
    }

    /// Whether any session other than `except` is in this database.
    pub(crate) fn uses(&self, database: DatabaseId, except: i16) -> bool {
        self.all().iter().any(|ticket| ticket.id != except && ticket.facts.lock().database == database.0)
    }

    pub(crate) fn kill(&self, id: i16) -> bool {
        let Some(ticket) = self.get(id) else { return false };
        ticket.kill();
        true
    }

    pub(crate) fn kill_all(&self) {
        self.all().iter().for_each(|ticket| ticket.kill());
    }
}

impl SessionTicket {
    fn kill(&self) {
        // Release: whoever sees it also sees why. The mark outlives the call, the token ends the one that runs.
        self.killed.store(true, Ordering::Release);
        self.cancel_call(CancelReason::Kill);
        let told = self.on_kill.lock().clone();
        told.into_iter().for_each(|tell| tell());
    }

    /// Ends the call that runs now, if one does.
    pub(crate) fn cancel_call(&self, reason: CancelReason) {
        let token = self.cancel.lock().clone();
        token.cancel(reason);
    }

    /// A token for a new call: what cancelled an earlier one does not cancel this.
    pub(crate) fn begin_call(&self) -> CancelToken {
        let token = CancelToken::new();
        *self.cancel.lock() = token.clone();
        if self.is_killed() {
            token.cancel(CancelReason::Kill);
        }
        token
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }
}
