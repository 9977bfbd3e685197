//! The session as one of several threads of a statement sees it: everything that can be read, nothing that changes.
//!
//! The optimizer divides only what asks for no more (`optimize::parallel`): a call of anything that changes the session or its
//! transaction is our mistake (8624). Messages are kept, for the statement's own thread to send. Cancellation is the
//! session's, or that nobody wants the rows any more.

use crate::context::{SessionInfo, StatementHost};
use crate::exec::exchange::Exchange;
use crate::locking::ReadLevel;
use crate::workers::WorkerBudget;
use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use thawdb_catalog::{Catalog, DatabaseId, ObjectId, TableDef};
use thawdb_device::Env;
use thawdb_storage::memory::MemoryAccount;
use thawdb_storage::{ReadView, StorageError, Txn};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError};

/// A thread's view of the session.
pub(super) struct ParallelHost<'s> {
    session: &'s dyn StatementHost,
    exchange: &'s Exchange,
    memory_grant_bytes: usize,
    pub(super) infos: Vec<SqlError>,
}

impl<'s> ParallelHost<'s> {
    /// With so much of the statement's memory.
    pub(super) fn new(session: &'s dyn StatementHost, exchange: &'s Exchange, memory_grant_bytes: usize) -> Self {
        Self { session, exchange, memory_grant_bytes, infos: Vec::new() }
    }
}

fn changes_nothing<T>() -> Result<T, SqlError> {
    debug_assert!(false, "what several threads do changes nothing");
    Err(message(8624, &[]))
}

impl SessionInfo for ParallelHost<'_> {
    fn global(&self, name: &str) -> Result<Scalar, SqlError> {
        self.session.global(name)
    }
    fn now_utc_ticks(&self) -> i64 {
        self.session.now_utc_ticks()
    }
    fn local_offset_minutes(&self) -> i32 {
        self.session.local_offset_minutes()
    }
    fn date_first(&self) -> u8 {
        self.session.date_first()
    }
    fn date_order(&self) -> thawdb_types::convert::DateOrder {
        self.session.date_order()
    }
    fn random(&self, bytes: &mut [u8]) {
        self.session.random(bytes);
    }
    fn database(&self) -> DatabaseId {
        self.session.database()
    }
    fn catalog(&self, database: DatabaseId) -> Option<Arc<Catalog>> {
        self.session.catalog(database)
    }
    fn database_id(&self, name: &str) -> Result<Option<DatabaseId>, SqlError> {
        self.session.database_id(name)
    }
    fn function(&self, name: &str, arguments: &[Scalar]) -> Result<Scalar, SqlError> {
        self.session.function(name, arguments)
    }
    fn as_any(&self) -> &dyn Any {
        self.session.session().as_any()
    }
}

impl StatementHost for ParallelHost<'_> {
    fn read_view(&self, database: DatabaseId) -> Result<ReadView, SqlError> {
        self.session.read_view(database)
    }
    fn txn(&mut self, _: DatabaseId) -> Result<&mut Txn, SqlError> {
        changes_nothing()
    }
    fn read_level(&self, database: DatabaseId) -> Result<(ReadLevel, bool), SqlError> {
        self.session.read_level(database)
    }
    fn next_identity(&mut self, _: DatabaseId, _: ObjectId, _: u64) -> Result<i64, SqlError> {
        changes_nothing()
    }
    fn note_identity(&mut self, _: DatabaseId, _: ObjectId, _: i64) -> Result<(), SqlError> {
        changes_nothing()
    }
    fn set_last_identity(&mut self, _: i64) {
        debug_assert!(false, "what several threads do changes nothing");
    }
    fn next_row_number(&mut self, _: DatabaseId, _: ObjectId, _: u64) -> Result<u64, SqlError> {
        changes_nothing()
    }
    fn identity_insert(&self, database: DatabaseId, table: ObjectId) -> bool {
        self.session.identity_insert(database, table)
    }
    fn check_cancelled(&self) -> Result<(), SqlError> {
        // Whoever closed the exchange has told why: this error goes nowhere.
        if self.exchange.is_closed() { Err(message(3617, &[])) } else { self.session.check_cancelled() }
    }
    fn variable(&self, index: usize) -> Scalar {
        self.session.variable(index)
    }
    fn set_variable(&mut self, _: usize, _: Scalar) {
        debug_assert!(false, "what several threads do changes nothing");
    }
    fn info(&mut self, message: SqlError) {
        self.infos.push(message);
    }
    fn session(&self) -> &dyn SessionInfo {
        self.session.session()
    }
    fn memory_grant_bytes(&self) -> usize {
        self.memory_grant_bytes
    }
    fn memory_account(&self) -> Option<Arc<MemoryAccount>> {
        self.session.memory_account()
    }
    fn storage_error(&self, database: DatabaseId, error: StorageError) -> SqlError {
        self.session.storage_error(database, error)
    }
    fn temp_folder(&self) -> PathBuf {
        self.session.temp_folder()
    }
    fn watches(&self, table: &TableDef) -> bool {
        self.session.watches(table)
    }
    fn worker_budget(&self) -> Option<Arc<WorkerBudget>> {
        // A thread of several has no threads of its own.
        None
    }
    fn env(&self) -> &Env {
        self.session.env()
    }
}
