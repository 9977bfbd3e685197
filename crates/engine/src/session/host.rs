//! The session as a running statement sees it: the doors that `query` states in `context`.

use crate::instance::counters::{IdentityColumn, IdentityError, identity_overflow};
use crate::instance::statistics::Changed;
use crate::messages::message;
use crate::session::globals;
use crate::session::isolation::Isolation;
use crate::session::state::SessionState;
use crate::session::temporary::VARIABLES_ID;
use arrow_array::ArrayRef;
use std::any::Any;
use std::sync::Arc;
use thawdb_catalog::{Catalog, DatabaseId, ObjectId, TableDef};
use thawdb_device::Env;
use thawdb_query::context::{SessionInfo, StatementHost};
use thawdb_query::locking::ReadLevel;
use thawdb_storage::{ReadView, StorageError, Txn};
use thawdb_types::{Scalar, SqlError};

impl SessionInfo for SessionState {
    fn global(&self, name: &str) -> Result<Scalar, SqlError> {
        globals::global(self, name)
    }

    fn now_utc_ticks(&self) -> i64 {
        self.now_ticks
    }

    fn local_offset_minutes(&self) -> i32 {
        self.engine.config.env.clock.local_offset_minutes()
    }

    fn date_first(&self) -> u8 {
        self.options.date_first
    }

    fn date_order(&self) -> thawdb_types::convert::DateOrder {
        self.options.date_order
    }

    fn random(&self, bytes: &mut [u8]) {
        self.engine.config.env.random.fill(bytes);
    }

    fn database(&self) -> DatabaseId {
        self.database.id
    }

    fn catalog(&self, database: DatabaseId) -> Option<Arc<Catalog>> {
        self.tables(database)
    }

    fn database_id(&self, name: &str) -> Result<Option<DatabaseId>, SqlError> {
        Ok(self.engine.usable_database(name)?.map(|open| open.id))
    }

    fn enter(&self, database: DatabaseId) -> Result<(), SqlError> {
        self.check_entry(database)
    }

    fn function(&self, name: &str, arguments: &[Scalar]) -> Result<Scalar, SqlError> {
        crate::session::functions::function(self, name, arguments)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl StatementHost for SessionState {
    fn read_view(&self, database: DatabaseId) -> Result<ReadView, SqlError> {
        if let Some(view) = self.views.lock().get(&database.0) {
            return Ok(view.clone());
        }
        let open = self.storage_of(database)?;
        let own = if database == VARIABLES_ID { self.variable_rows.existing(open.id.0) } else { self.transactions.existing(open.id.0) };
        let snapshot = own.filter(|_| self.options.isolation == Isolation::Snapshot).and_then(|part| Some((part.snapshot.as_ref()?, part)));
        let view = match snapshot {
            Some((snapshot, part)) => snapshot.with_txn(&part.txn),
            None => open.storage.read_view(own.map(|part| &part.txn)),
        };
        self.views.lock().insert(database.0, view.clone());
        Ok(view)
    }

    fn read_level(&self, database: DatabaseId) -> Result<(ReadLevel, bool), SqlError> {
        let versions = self.storage_of(database)?.reads_versions();
        Ok((self.options.isolation.read_level(versions), versions))
    }

    fn txn(&mut self, database: DatabaseId) -> Result<&mut Txn, SqlError> {
        self.part(database).map(|part| &mut part.txn)
    }

    fn next_identity(&mut self, database: DatabaseId, table: ObjectId, count: u64) -> Result<i64, SqlError> {
        let (open, column) = (self.storage_of(database)?, self.identity_column(database, table)?);
        let first = open.counters.next_identity(&open, table, column, count);
        first.map_err(|error| self.identity_failure(database, column, error))
    }

    fn note_identity(&mut self, database: DatabaseId, table: ObjectId, value: i64) -> Result<(), SqlError> {
        let (open, column) = (self.storage_of(database)?, self.identity_column(database, table)?);
        let noted = open.counters.note_identity(&open, table, column, value);
        noted.map_err(|error| self.identity_failure(database, column, error))
    }

    fn set_last_identity(&mut self, value: i64) {
        self.last_identity = Some(value);
        self.frame_mut().scope_identity = Some(value);
    }

    fn next_row_number(&mut self, database: DatabaseId, table: ObjectId, count: u64) -> Result<u64, SqlError> {
        let open = self.storage_of(database)?;
        open.counters.next_row_number(&open, table, count).map_err(|error| self.storage_failure(database, error))
    }

    fn next_row_version(&mut self, database: DatabaseId, count: u64) -> Result<u64, SqlError> {
        let open = self.storage_of(database)?;
        let first = open
            .counters
            .next_row_number(&open, crate::instance::counters::ROW_VERSIONS, count)
            .map_err(|error| self.storage_failure(database, error))?;
        Ok(first + crate::instance::counters::ROW_VERSION_FIRST)
    }

    fn identity_insert(&self, database: DatabaseId, table: ObjectId) -> bool {
        self.options.identity_insert == Some((database, table))
    }

    fn check_cancelled(&self) -> Result<(), SqlError> {
        self.check()
    }

    fn variable(&self, index: usize) -> Scalar {
        self.frame().variables[index].value.clone()
    }

    fn set_variable(&mut self, index: usize, value: Scalar) {
        self.frame_mut().variables[index].value = value;
    }

    fn info(&mut self, message: SqlError) {
        self.infos.push(message);
    }

    fn session(&self) -> &dyn SessionInfo {
        self
    }

    fn memory_grant_bytes(&self) -> usize {
        // A quarter of the instance's memory for one statement, as SQL Server's default resource group grants.
        usize::try_from(self.engine.config.memory_bytes_max / 4).unwrap_or(usize::MAX)
    }

    fn memory_account(&self) -> Option<Arc<thawdb_storage::memory::MemoryAccount>> {
        Some(self.engine.storage.memory().clone())
    }

    fn worker_budget(&self) -> Option<Arc<thawdb_query::workers::WorkerBudget>> {
        // A plan that was made elsewhere may be run here.
        let alone = self.in_function > 0 || self.in_trigger();
        (!alone).then(|| self.engine.workers.clone())
    }

    fn temp_folder(&self) -> std::path::PathBuf {
        self.engine.config.data_folder.join(crate::instance::SORT_FOLDER)
    }

    fn watches(&self, table: &TableDef) -> bool {
        self.changes.watches(table)
    }

    fn check_rows(&mut self, statement: &str, table: &Arc<TableDef>, columns: &[ArrayRef], rows: usize) -> Result<(), SqlError> {
        self.check_new_rows(statement, table, columns, rows)
    }

    fn note_rows(&mut self, table: &Arc<TableDef>, old: &[ArrayRef], new: &[ArrayRef], rows: usize) -> Result<(), SqlError> {
        self.keep_rows(table, old, new, rows);
        Ok(())
    }

    fn rows_loaded(&mut self, table: &TableDef, rows: u64) {
        let changed = Changed::Rows(i64::try_from(rows).unwrap_or(i64::MAX));
        if let Ok(open) = self.storage_of(table.database) {
            open.statistics.note(table.id, changed);
        }
    }

    fn call_function(&mut self, database: DatabaseId, function: ObjectId, arguments: Vec<Scalar>) -> Result<Scalar, SqlError> {
        crate::batch::function::call_scalar(self, database, function, arguments)
    }

    fn function_rows(&mut self, database: DatabaseId, function: ObjectId, arguments: &[Scalar]) -> Result<Vec<Vec<Scalar>>, SqlError> {
        crate::batch::function::rows_of(self, database, function, arguments)
    }

    fn storage_error(&self, database: DatabaseId, error: StorageError) -> SqlError {
        self.storage_failure(database, error)
    }

    fn env(&self) -> &Env {
        &self.engine.config.env
    }
}

impl SessionState {
    /// The identity column of a table; 8106 if it has none.
    pub(crate) fn identity_column(&self, database: DatabaseId, table: ObjectId) -> Result<IdentityColumn, SqlError> {
        let table = self.table(database, table).ok_or_else(|| message(208, &[&table.0]))?;
        let of =
            |column: &thawdb_catalog::ColumnDef| column.identity.map(|definition| IdentityColumn { definition, sql_type: column.sql_type });
        table.columns.iter().find_map(of).ok_or_else(|| message(8106, &[&table.name]))
    }

    fn identity_failure(&self, database: DatabaseId, column: IdentityColumn, error: IdentityError) -> SqlError {
        match error {
            IdentityError::Overflow => identity_overflow(&column.sql_type),
            IdentityError::Storage(error) => self.storage_failure(database, error),
        }
    }
}
