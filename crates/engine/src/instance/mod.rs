//! The instance: its databases, logins and running sessions, and how it comes up and goes down.
//!
//! ```text
//! open:  folder empty ── create master, tempdb, model, msdb ──┐
//!        master there ── open master ─ read its records ──────┴─ finish half-made and half-dropped databases
//!                                                                 ─ open the others ─ make tempdb anew ─► Engine
//! ```
//!
//! 1. A database is usable only when master's committed record says so (`create_database`, `drop_database`).
//! 2. Files of a database whose creation did not commit are removed at the next start, never opened.
//! 3. tempdb never survives a start.
//!
//! Locks: MASTER (rank 1) serialises changes to what master records; DATABASES (rank 1) guards the list of open ones
//! and is held only to read or replace it. Failure: errors of storage through `storage_error`, 823/824 included.

pub(crate) mod caretaker;
pub(crate) mod counters;
pub(crate) mod database;
pub(crate) mod error_log;
pub(crate) mod index_jobs;
pub(crate) mod lifecycle;
pub(crate) mod login;
pub(crate) mod registry;
pub(crate) mod startup;
pub(crate) mod suspect_pages;
mod unopened;

use crate::api::config::EngineConfig;
use crate::api::login::{LoginInfo, LoginRequest};
use crate::batch::plan_cache::PlanCache;
use crate::session::Session;
use database::OpenDatabase;
use registry::Sessions;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_catalog::{DatabaseId, InstanceCatalog};
use thawdb_observe::sync::{LockClass, Mutex, RwLock};
use thawdb_query::workers::WorkerBudget;
use thawdb_storage::Storage;
use thawdb_storage::locks::LockManager;
use thawdb_types::SqlError;

static MASTER: LockClass = LockClass::new("MASTER_CATALOG", 1);
static DATABASES: LockClass = LockClass::new("DATABASE_LIST", 1);
static UNOPENED: LockClass = LockClass::new("DATABASES_UNOPENED", 5);
static SETTINGS: LockClass = LockClass::new("SETTINGS_IN_USE", 5);

/// Number of master.
pub(crate) const MASTER_ID: DatabaseId = DatabaseId(1);
/// Number of tempdb.
pub(crate) const TEMPDB_ID: DatabaseId = DatabaseId(2);

/// Folder under the data folder for runs of sorts that do not fit memory; emptied at start.
pub(crate) const SORT_FOLDER: &str = "sort";

/// A running instance. One a data folder.
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) storage: Arc<Storage>,
    pub(crate) locks: Arc<LockManager>,
    pub(crate) sessions: Sessions,
    pub(crate) plans: PlanCache,
    /// What master records; the guard serialises its writers.
    pub(crate) master: Mutex<InstanceCatalog>,
    pub(crate) databases: RwLock<BTreeMap<i32, Arc<OpenDatabase>>>,
    /// Those that master lists and that could not be opened.
    unopened: Mutex<BTreeMap<i32, unopened::Unopened>>,
    /// Settings in use, by configuration_id: those that master recorded at the start or the last RECONFIGURE.
    pub(crate) settings: RwLock<BTreeMap<i32, i64>>,
    /// Threads that statements may use beside their own.
    pub(crate) workers: Arc<WorkerBudget>,
    /// The moment of start, 1/300 s since 1900-01-01.
    pub(crate) started: i64,
    pub(crate) error_log: error_log::ErrorLog,
    caretaker: caretaker::Caretaker,
    closed: AtomicBool,
    /// Whether a session is writing down suspect pages.
    pub(crate) recording_suspects: AtomicBool,
}

impl Engine {
    /// Opens the instance in `config.data_folder`, creating master, tempdb, model and msdb if the folder is empty.
    pub fn open(config: EngineConfig) -> Result<Arc<Self>, SqlError> {
        startup::open(config)
    }

    /// Checks name and password and opens a session. 18456 whatever was wrong with them, 4060 for the database.
    pub fn login(self: &Arc<Self>, request: LoginRequest) -> Result<(Session, LoginInfo), SqlError> {
        login::login(self, request)
    }

    /// A session as sa without a login, for embedding and for the engine's own use.
    pub fn internal_session(self: &Arc<Self>) -> Session {
        login::internal_session(self)
    }

    /// Ends a session's statement and the session itself (KILL); false if there is none with this number.
    pub fn kill(&self, session_id: i16) -> bool {
        self.sessions.kill(session_id)
    }

    /// Asks every resumable index operation that runs to pause, as a server does that lets other requests end: it may take hours,
    /// and goes on where it is. Its statement ends with 1219 and 596.
    pub fn pause_index_operations(&self) {
        for database in self.all_databases() {
            let catalog = database.catalog();
            for job in catalog.jobs.values().filter(|job| job.resumable) {
                // One that rests needs nothing.
                database.jobs.ask_stop(job.table);
            }
        }
    }

    /// Checkpoints and closes every database. Sessions still open fail from here on.
    pub fn close(&self) -> Result<(), SqlError> {
        // AcqRel: whoever sees it closed also sees all work done before.
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.caretaker.stop();
        self.sessions.kill_all();
        let databases: Vec<_> = self.databases.read().values().cloned().collect();
        let mut outcome = Ok(());
        for database in databases.into_iter().rev() {
            let closed = database.counters.save_exact(&database).and_then(|()| database.storage.close());
            if let Err(error) = closed {
                outcome = Err(crate::storage_error::plain(&database.name(), error));
            }
        }
        self.databases.write().clear();
        outcome
    }

    /// A bounded piece of each database's background work, by number; true if there is more. For environments whose
    /// background work is stepped. An error ends nothing but the turn, as it does where threads do this work.
    pub fn background_turn(&self) -> bool {
        self.all_databases().iter().fold(false, |busy, database| database.storage.background_turn().unwrap_or(false) | busy)
    }

    /// Whether the instance has been closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The open database of a number.
    pub(crate) fn database(&self, id: DatabaseId) -> Option<Arc<OpenDatabase>> {
        self.databases.read().get(&id.0).cloned()
    }

    /// The open database of a name.
    pub(crate) fn database_named(&self, name: &str) -> Option<Arc<OpenDatabase>> {
        self.databases.read().values().find(|d| d.name().eq_ignore_ascii_case(name)).cloned()
    }

    /// All open databases by number.
    pub(crate) fn all_databases(&self) -> Vec<Arc<OpenDatabase>> {
        self.databases.read().values().cloned().collect()
    }

    /// Now, as `TableDef::created` has it: 1/300 s since 1900-01-01, UTC.
    pub(crate) fn now_datetime(&self) -> i64 {
        datetime_of(self.config.env.clock.utc_ns())
    }
}

/// Days from 1900-01-01 to 1970-01-01.
const DAYS_1900_TO_1970: i128 = 25_567;

/// 1/300 s since 1900-01-01 of nanoseconds since 1970.
fn datetime_of(utc_ns: i128) -> i64 {
    let since_1900_ns = utc_ns + DAYS_1900_TO_1970 * 86_400 * 1_000_000_000;
    i64::try_from(since_1900_ns * 3 / 10_000_000).expect("the clock is within 10^9 years")
}
