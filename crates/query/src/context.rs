//! What a running statement may ask of the session above it.
//!
//! `query` never sees sessions: `engine` implements these traits and hands them in.

use crate::locking::ReadLevel;
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_catalog::{Catalog, DatabaseId, ObjectId, TableDef};
use thawdb_storage::{ReadView, Txn};
use thawdb_types::convert::DateOrder;
use thawdb_types::{Scalar, SqlError};

/// Facts about the session that functions and views show. Cheap to ask.
pub trait SessionInfo: Send + Sync {
    /// Value of an `@@name` (with the signs, lower case) or of a session function (`suser_sname`, `db_name`, `host_name` ...).
    fn global(&self, name: &str) -> Result<Scalar, SqlError>;
    /// The statement's moment in UTC, 100 ns since 0001-01-01: the same for every row of a statement.
    fn now_utc_ticks(&self) -> i64;
    /// Minutes local time is ahead of UTC.
    fn local_offset_minutes(&self) -> i32;
    /// SET DATEFIRST, 1..=7.
    fn date_first(&self) -> u8;
    /// SET DATEFORMAT.
    fn date_order(&self) -> DateOrder {
        DateOrder::Mdy
    }
    /// Fills with randomness: NEWID, RAND.
    fn random(&self, bytes: &mut [u8]);
    /// The database in use.
    fn database(&self) -> DatabaseId;
    /// Snapshot of a database's catalog; `None` if there is no such database open.
    fn catalog(&self, database: DatabaseId) -> Option<Arc<Catalog>>;
    /// Number of the database with this name; fails for one that is there and cannot be used.
    fn database_id(&self, name: &str) -> Result<Option<DatabaseId>, SqlError>;
    /// Whether the session may use a database: 916 if not.
    fn enter(&self, database: DatabaseId) -> Result<(), SqlError> {
        let _ = database;
        Ok(())
    }
    /// Value of a function that only the session knows: object, database, login, error and property functions
    /// (`OBJECT_ID`, `DB_NAME`, `ERROR_NUMBER`, `SCOPE_IDENTITY` ...), by its upper-case name. `arguments` have the types
    /// of the function's signature. Not overridden: 195.
    fn function(&self, name: &str, arguments: &[Scalar]) -> Result<Scalar, SqlError> {
        let _ = arguments;
        Err(thawdb_types::message(195, &[&name, &"function name"]))
    }
    /// Lets `engine` answer from its own state in views and functions; downcast there.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// What DML needs besides: transactions, identity, cancellation, messages.
pub trait StatementHost: SessionInfo {
    /// What this statement sees of a database: one view for the whole statement.
    fn read_view(&self, database: DatabaseId) -> Result<ReadView, SqlError>;
    /// The session's transaction in a database, begun if need be.
    fn txn(&mut self, database: DatabaseId) -> Result<&mut Txn, SqlError>;
    /// How reads of a database behave, and whether READ COMMITTED reads row versions there.
    fn read_level(&self, database: DatabaseId) -> Result<(ReadLevel, bool), SqlError> {
        let _ = database;
        Ok((ReadLevel::ReadCommittedVersions, true))
    }
    /// Hands out `count` identity values of a table in one step; the first is returned.
    fn next_identity(&mut self, database: DatabaseId, table: ObjectId, count: u64) -> Result<i64, SqlError>;
    /// Tells that an explicit identity value was inserted, so that later ones lie beyond it.
    fn note_identity(&mut self, database: DatabaseId, table: ObjectId, value: i64) -> Result<(), SqlError>;
    /// SCOPE_IDENTITY and @@IDENTITY are now this.
    fn set_last_identity(&mut self, value: i64);
    /// Hands out `count` row numbers for heaps and non-unique clustered indexes.
    fn next_row_number(&mut self, database: DatabaseId, table: ObjectId, count: u64) -> Result<u64, SqlError>;
    /// Hands out `count` values of a database's rowversion; the first is returned.
    fn next_row_version(&mut self, database: DatabaseId, count: u64) -> Result<u64, SqlError> {
        let (_, _) = (database, count);
        Err(thawdb_types::message(8624, &[]))
    }
    /// Whether SET IDENTITY_INSERT is ON for the table.
    fn identity_insert(&self, database: DatabaseId, table: ObjectId) -> bool;
    /// Fails if the statement has been cancelled (attention, KILL, timeout).
    fn check_cancelled(&self) -> Result<(), SqlError>;
    /// Value of a variable.
    fn variable(&self, index: usize) -> Scalar;
    /// Assigns a variable; the value already has its type.
    fn set_variable(&mut self, index: usize, value: Scalar);
    /// Sends an informational message (severity up to 10) after the rows before it.
    fn info(&mut self, message: SqlError);
    /// The session as read-only facts.
    fn session(&self) -> &dyn SessionInfo;
    /// Bytes of memory the statement may use for sorts and hashes before it spills.
    fn memory_grant_bytes(&self) -> usize;
    /// The instance's memory account, from which that memory is taken; `None` where nobody keeps one.
    fn memory_account(&self) -> Option<Arc<thawdb_storage::memory::MemoryAccount>> {
        None
    }
    /// The workers of the instance, of which the statement may ask for some; `None` where it is to run on its own thread.
    fn worker_budget(&self) -> Option<Arc<crate::workers::WorkerBudget>> {
        None
    }
    /// Maps a storage error to what the client is told; names of objects are looked up here.
    fn storage_error(&self, database: DatabaseId, error: thawdb_storage::StorageError) -> SqlError;
    /// Folder for the run files of sorts that do not fit the memory grant.
    fn temp_folder(&self) -> std::path::PathBuf {
        std::env::temp_dir()
    }
    /// Whether the host wants to see the rows of the table as they change.
    fn watches(&self, table: &TableDef) -> bool {
        let _ = table;
        false
    }
    /// New rows of a watched table, about to be written by a statement of this name: CHECK constraints (547).
    fn check_rows(&mut self, statement: &str, table: &Arc<TableDef>, columns: &[ArrayRef], rows: usize) -> Result<(), SqlError> {
        let _ = (statement, table, columns, rows);
        Ok(())
    }
    /// Rows of a watched table have changed: old rows (none of INSERT) and new rows (none of DELETE), side by side.
    fn note_rows(&mut self, table: &Arc<TableDef>, old: &[ArrayRef], new: &[ArrayRef], rows: usize) -> Result<(), SqlError> {
        let _ = (table, old, new, rows);
        Ok(())
    }
    /// A bulk load has put so many rows into the table.
    fn rows_loaded(&mut self, table: &TableDef, rows: u64) {
        let (_, _) = (table, rows);
    }
    /// Runs a user's scalar function; the arguments have the types of its parameters.
    fn call_function(&mut self, database: DatabaseId, function: ObjectId, arguments: Vec<Scalar>) -> Result<Scalar, SqlError> {
        let _ = (database, arguments);
        Err(thawdb_types::message(208, &[&function.0]))
    }
    /// The rows of a user's table-valued function with a body.
    fn function_rows(&mut self, database: DatabaseId, function: ObjectId, arguments: &[Scalar]) -> Result<Vec<Vec<Scalar>>, SqlError> {
        let _ = (database, arguments);
        Err(thawdb_types::message(208, &[&function.0]))
    }
    /// The environment: files and time.
    fn env(&self) -> &thawdb_device::Env;
}
