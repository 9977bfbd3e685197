//! Everything a session carries from statement to statement, and the small steps that keep it whole.
//!
//! 1. Outside a statement, without BEGIN TRANSACTION, no storage transaction and no object lock is open
//!    (`SessionState::end_statement`).
//! 2. What another thread may see is in the ticket's facts and nowhere else.
//!
//! Locks: object locks are taken before a statement touches a table and given back with the statement (reads) or the
//! transaction (changes). The wait for one may last for ever; cancellation ends it.

use crate::engine_clock::ticks_of;
use crate::instance::database::OpenDatabase;
use crate::instance::registry::SessionTicket;
use crate::instance::{Engine, TEMPDB_ID};
use crate::messages::message;
use crate::security::context::Contexts;
use crate::session::api_cursors::ApiCursors;
use crate::session::application_locks::ApplicationLocks;
use crate::session::changes::Changes;
use crate::session::cursors::Cursors;
use crate::session::frame::Frame;
use crate::session::key_values::KeyValues;
use crate::session::options::Options;
use crate::session::prepared::PreparedTexts;
use crate::session::temporary::{TempTable, TempTables, VARIABLES_ID};
use crate::session::transaction::{DatabaseTxn, Mark, Transactions};
use crate::storage_error;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;
use thawdb_catalog::{Catalog, DatabaseCatalog, DatabaseId, ObjectId, Related, TableDef};
use thawdb_observe::cancel::CancelToken;
use thawdb_observe::sync::{LockClass, Mutex};
use thawdb_query::exec::{PointBuffers, TableReads};
use thawdb_storage::locks::{BriefReader, LockMode, LockOwner, LockWait, Party, Resource};
use thawdb_storage::{ReadView, StorageError};
use thawdb_types::SqlError;

static VIEWS: LockClass = LockClass::new("STATEMENT_VIEWS", 5);

/// A session.
pub(crate) struct SessionState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) ticket: Arc<SessionTicket>,
    /// As whom it acts.
    pub(crate) contexts: Contexts,
    pub(crate) database: Arc<OpenDatabase>,
    /// The database to come back to at a connection reset.
    pub(crate) login_database: DatabaseId,
    pub(crate) options: Options,
    pub(crate) transactions: Transactions,
    /// Rows of table variables: ends with each statement.
    pub(crate) variable_rows: Transactions,
    pub(crate) temp: TempTables,
    pub(crate) global_temp: Vec<ObjectId>,
    /// CHECK constraints of local temporary tables and table variables, by object number.
    pub(crate) temp_checks: BTreeMap<i32, Arc<Related>>,
    pub(crate) frames: Vec<Frame>,
    /// Functions running within the present statement, one within the other: their statements are parts of it.
    pub(crate) in_function: usize,
    /// Rows that constraints and triggers of the running statements look at.
    pub(crate) changes: Changes,
    pub(crate) owner: LockOwner,
    pub(crate) application_locks: ApplicationLocks,
    /// Keeps the current database from being dropped.
    pub(crate) database_owner: LockOwner,
    statement_locks: Vec<Resource>,
    /// What plans of the running statement have read, for SET STATISTICS IO.
    pub(crate) statement_reads: Vec<TableReads>,
    /// Informational messages raised by the running statement, not yet sent.
    pub(crate) infos: Vec<SqlError>,
    pub(crate) views: Mutex<BTreeMap<i32, ReadView>>,
    /// Keeps a table from changing its definition while one row of it is looked at.
    pub(crate) brief_reader: BriefReader,
    pub(crate) point_buffers: PointBuffers,
    pub(crate) now_ticks: i64,
    /// When the present call began, 1/300 s since 1900-01-01.
    pub(crate) call_start: i64,
    pub(crate) last_error: i32,
    pub(crate) row_count: i64,
    pub(crate) last_identity: Option<i64>,
    pub(crate) cursors: Cursors,
    pub(crate) api_cursors: ApiCursors,
    pub(crate) prepared: PreparedTexts,
    pub(crate) bulk: Option<crate::session::bulk::BulkTarget>,
    pub(crate) key_values: KeyValues,
    pub(crate) trace_flags: Vec<i32>,
    /// Ends the call being run.
    pub(crate) cancel: CancelToken,
    pub(crate) ended: bool,
}

/// Numbers of temporary objects are negative, as SQL Server's are; unique in the process.
static TEMP_OBJECT_NEXT: AtomicI32 = AtomicI32::new(-2_000_000_000);
static DESCRIPTOR_NEXT: AtomicU64 = AtomicU64::new(1);

impl SessionState {
    pub(crate) fn new(engine: Arc<Engine>, ticket: Arc<SessionTicket>, login: i32, database: Arc<OpenDatabase>) -> Result<Self, SqlError> {
        let party = Party::session(ticket.id);
        let brief_reader = engine.locks.brief_reader();
        let mut state = Self {
            owner: engine.locks.owner_of(party),
            application_locks: ApplicationLocks::new(engine.locks.owner_of(party)),
            database_owner: engine.locks.owner_of(party),
            login_database: database.id,
            engine,
            ticket,
            contexts: Contexts::of(login),
            database: database.clone(),
            options: Options::default(),
            transactions: Transactions::of(party),
            variable_rows: Transactions::of(party),
            temp: TempTables::default(),
            global_temp: Vec::new(),
            temp_checks: BTreeMap::new(),
            frames: Vec::new(),
            in_function: 0,
            changes: Changes::default(),
            statement_locks: Vec::new(),
            statement_reads: Vec::new(),
            infos: Vec::new(),
            views: Mutex::new(&VIEWS, BTreeMap::new()),
            brief_reader,
            point_buffers: PointBuffers::default(),
            now_ticks: 0,
            call_start: 0,
            last_error: 0,
            row_count: 0,
            last_identity: None,
            cursors: Cursors::default(),
            api_cursors: ApiCursors::default(),
            prepared: PreparedTexts::default(),
            bulk: None,
            key_values: KeyValues::default(),
            trace_flags: Vec::new(),
            cancel: CancelToken::new(),
            ended: false,
        };
        state.use_database(database)?;
        Ok(state)
    }

    /// Makes `database` the current one.
    pub(crate) fn use_database(&mut self, database: Arc<OpenDatabase>) -> Result<(), SqlError> {
        self.engine.locks.release_all(&mut self.database_owner);
        let wait = LockWait { timeout: Some(Duration::ZERO), ..LockWait::default() };
        let resource = database.database_resource();
        let shared = self.engine.locks.acquire(&mut self.database_owner, resource, LockMode::S, wait);
        // Whoever drops it holds it exclusively: to others it is no longer there.
        if shared.is_err() || self.engine.database(database.id).is_none() {
            return Err(message(911, &[&database.name()]));
        }
        self.ticket.facts.lock().database = database.id.0;
        self.database = database;
        Ok(())
    }

    pub(crate) fn frame(&self) -> &Frame {
        self.frames.last().expect("a statement runs in a frame")
    }

    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a statement runs in a frame")
    }

    /// `@@NESTLEVEL`.
    pub(crate) fn nest_level(&self) -> usize {
        self.frames.iter().map(|frame| frame.nests).sum()
    }

    /// A descriptor no transaction of this process had before.
    pub(crate) fn new_descriptor() -> u64 {
        // Relaxed: only uniqueness matters.
        DESCRIPTOR_NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a temporary object.
    pub(crate) fn new_temp_object() -> ObjectId {
        ObjectId(TEMP_OBJECT_NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Fails if the running statement has been cancelled or the session killed.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        if self.cancel.check().is_err() {
            return Err(storage_error::cancelled());
        }
        if self.engine.is_closed() {
            return Err(message(596, &[]));
        }
        Ok(())
    }

    /// The database behind a number: table variables lie in tempdb.
    pub(crate) fn storage_of(&self, database: DatabaseId) -> Result<Arc<OpenDatabase>, SqlError> {
        if database == self.database.id {
            // It stays open: the session holds it shared.
            return Ok(self.database.clone());
        }
        let id = if database == VARIABLES_ID { TEMPDB_ID } else { database };
        self.engine.database(id).ok_or_else(|| message(911, &[&id.0]))
    }

    /// The session's part of a transaction in a database. 3930 if the transaction is doomed.
    pub(crate) fn part(&mut self, database: DatabaseId) -> Result<&mut DatabaseTxn, SqlError> {
        let open = self.storage_of(database)?;
        if database == VARIABLES_ID {
            return Ok(self.variable_rows.part(&open));
        }
        if self.transactions.doomed {
            return Err(message(3930, &[]));
        }
        let (cancel, timeout, priority) = (self.cancel.clone(), self.lock_timeout(), self.options.deadlock_priority);
        let part = self.transactions.part(&open);
        part.txn.set_cancel(Some(cancel));
        part.txn.set_lock_timeout(timeout);
        part.txn.set_deadlock_priority(priority);
        Ok(part)
    }

    /// SET LOCK_TIMEOUT as a wait.
    pub(crate) fn lock_timeout(&self) -> Option<Duration> {
        u64::try_from(self.options.lock_timeout_ms).ok().map(Duration::from_millis)
    }

    /// The catalog of a database as this session sees it: its own uncommitted definitions and temporary tables included.
    pub(crate) fn definitions(&self, database: DatabaseId) -> Option<Arc<DatabaseCatalog>> {
        if let Some(own) = self.transactions.existing(database.0).and_then(|part| part.catalog.clone()) {
            return Some(own);
        }
        self.engine.database(database).map(|open| open.catalog())
    }

    /// The tables of a database as this session sees them.
    pub(crate) fn tables(&self, database: DatabaseId) -> Option<Arc<Catalog>> {
        let id = if database == VARIABLES_ID { TEMPDB_ID } else { database };
        let tables = self.definitions(id)?.tables.clone();
        Some(if id == TEMPDB_ID { self.temp.merged_into(&tables) } else { tables })
    }

    /// Version of the tables of a database as this session sees them: another one where anything was defined anew.
    pub(crate) fn catalog_version(&self, database: DatabaseId) -> Option<u64> {
        // The database in use, without definitions of this session's own: nearly always.
        if database == self.database.id && database != TEMPDB_ID && !self.transactions.has_own_definitions(database.0) {
            return Some(self.database.catalog_version());
        }
        self.tables(database).map(|tables| tables.version)
    }

    /// The present definition of a table, wherever it is.
    pub(crate) fn table(&self, database: DatabaseId, id: ObjectId) -> Option<Arc<TableDef>> {
        if database == VARIABLES_ID {
            let of_frames = self.frames.iter().rev().flat_map(|f| f.table_variables.values());
            return of_frames.into_iter().find(|t| t.id == id).cloned();
        }
        if let Some(TempTable { table, .. }) = self.temp.by_id(id).filter(|_| database == TEMPDB_ID) {
            return Some(table.clone());
        }
        self.definitions(database)?.tables.tables.get(&id.0).cloned()
    }

    /// The message for an error of storage met in a database.
    pub(crate) fn storage_failure(&self, database: DatabaseId, error: StorageError) -> SqlError {
        match (self.storage_of(database), self.tables(database)) {
            (Ok(open), Some(tables)) => storage_error::named(&open, &tables, self.ticket.id, error),
            _ => storage_error::plain("", error),
        }
    }

    /// Takes an object lock; `for_statement` gives it back when the statement ends, otherwise the transaction's end does.
    pub(crate) fn lock(&mut self, resource: Resource, mode: LockMode, for_statement: bool) -> Result<(), SqlError> {
        self.lock_waiting(resource, mode, for_statement, (self.lock_timeout(), false))
    }

    /// Takes an object lock to the end of the transaction, or 1222 after `longest`; others pass by meanwhile.
    pub(crate) fn lock_at_low_priority(&mut self, resource: Resource, mode: LockMode, longest: Duration) -> Result<(), SqlError> {
        self.lock_waiting(resource, mode, false, (Some(longest), true))
    }

    /// Does `work` under an object lock unless others hold what is in its way: `None` then. Gives back what it took.
    pub(crate) fn with_lock_at_once<T>(&mut self, resource: Resource, mode: LockMode, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let newly = self.owner.held(resource).is_none();
        let now = LockWait { timeout: Some(Duration::ZERO), ..LockWait::default() };
        self.engine.locks.acquire(&mut self.owner, resource, mode, now).ok()?;
        let outcome = work(self);
        if newly {
            self.engine.locks.release(&mut self.owner, resource);
        }
        Some(outcome)
    }

    fn lock_waiting(
        &mut self,
        resource: Resource,
        mode: LockMode,
        for_statement: bool,
        (timeout, low_priority): (Option<Duration>, bool),
    ) -> Result<(), SqlError> {
        let cancel = self.cancel.clone();
        let wait = LockWait {
            timeout,
            cancel: Some(&cancel),
            deadlock_priority: self.options.deadlock_priority,
            cost: self.transactions.cost(),
            low_priority,
        };
        let newly = self.owner.held(resource).is_none();
        let id = self.ticket.id;
        self.engine.locks.acquire(&mut self.owner, resource, mode, wait).map_err(|error| match error {
            StorageError::Deadlock => message(1205, &[&id, &"lock"]),
            other => storage_error::plain("", other),
        })?;
        match (for_statement, newly) {
            (true, true) => self.statement_locks.push(resource),
            (true, false) => {}
            (false, _) => self.statement_locks.retain(|held| *held != resource),
        }
        Ok(())
    }

    /// The moment of a statement is now.
    pub(crate) fn note_moment(&mut self) {
        self.now_ticks = ticks_of(self.engine.config.env.clock.utc_ns());
    }

    /// Begins a statement: its moment, its views, its mark.
    pub(crate) fn begin_statement(&mut self) -> Mark {
        if self.in_function > 0 {
            self.views.lock().remove(&VARIABLES_ID.0);
            return Mark::default();
        }
        self.note_moment();
        self.views.lock().clear();
        self.transactions.begin_statement();
        self.transactions.mark(&self.temp)
    }

    fn release_statement_locks(&mut self) {
        self.transactions.end_statement();
        for resource in std::mem::take(&mut self.statement_locks) {
            self.engine.locks.release(&mut self.owner, resource);
        }
    }

    /// Ends a statement that did its work: in autocommit the work is committed.
    pub(crate) fn end_statement(&mut self) -> Result<(), SqlError> {
        if self.in_function > 0 {
            self.views.lock().remove(&VARIABLES_ID.0);
            return Ok(());
        }
        self.views.lock().clear();
        self.release_statement_locks();
        self.variable_rows.commit().map_err(|(open, error)| storage_error::plain(&open.name(), error))?;
        if self.transactions.count == 0 {
            return self.commit_work();
        }
        Ok(())
    }

    /// Ends a statement that failed: its work is taken back, to `mark` or, in autocommit, whole.
    pub(crate) fn undo_statement(&mut self, mark: &Mark) -> Result<(), SqlError> {
        if self.in_function > 0 {
            // The statement around the function fails with it and takes everything back.
            return Ok(());
        }
        self.views.lock().clear();
        self.release_statement_locks();
        let mut ignored = TempTables::default();
        let rows = self.variable_rows.rollback(&mut ignored);
        rows.map_err(|(open, error)| storage_error::plain(&open.name(), error))?;
        if self.transactions.count == 0 {
            let before = mark.clone();
            self.rollback_work()?;
            before.restore_temp(&mut self.temp);
            return Ok(());
        }
        self.transactions.rollback_to(mark, &mut self.temp).map_err(|error| storage_error::plain(&self.database.name(), error))
    }

    /// Commits the session's work and gives its locks back.
    pub(crate) fn commit_work(&mut self) -> Result<(), SqlError> {
        let outcome = self.transactions.commit();
        self.views.lock().clear();
        self.statement_locks.clear();
        self.application_locks.forget_transaction();
        self.engine.locks.release_all(&mut self.owner);
        self.note_transaction();
        outcome.map_err(|(open, error)| storage_error::plain(&open.name(), error))
    }

    /// Takes the session's work back and gives its locks back.
    pub(crate) fn rollback_work(&mut self) -> Result<(), SqlError> {
        let outcome = self.transactions.rollback(&mut self.temp);
        self.views.lock().clear();
        self.statement_locks.clear();
        self.application_locks.forget_transaction();
        self.engine.locks.release_all(&mut self.owner);
        self.note_transaction();
        outcome.map_err(|(open, error)| storage_error::plain(&open.name(), error))
    }

    /// Lets others see the transaction count.
    pub(crate) fn note_transaction(&self) {
        let (now, transactions) = (self.engine.now_datetime(), &self.transactions);
        let mut facts = self.ticket.facts.lock();
        facts.transaction_count = i32::try_from(transactions.count).unwrap_or(i32::MAX);
        if facts.transaction_id != transactions.descriptor {
            facts.transaction_id = transactions.descriptor;
            facts.transaction_name = transactions.name.clone().unwrap_or_default();
            facts.transaction_begin = now;
        }
    }
}

impl Drop for SessionState {
    fn drop(&mut self) {
        // An error here has nobody left to be told; what was not committed is read through as aborted.
        let _ = self.rollback_work();
        let _ = crate::ddl::temporary::drop_all(self);
        self.engine.locks.release_all(&mut self.owner);
        self.application_locks.forget(&self.engine.locks);
        self.engine.locks.release_all(&mut self.database_owner);
        self.engine.sessions.close(&self.ticket);
    }
}
