//! Where a statement's results go, in the order the client must see them.
//!
//! ```text
//! batch  = { columns rows* done(Statement) | message | env_change | done(Statement) }* ; the last done has more = false
//! rpc    = { columns rows* done(InProcedure) | message | env_change }* return_status return_value* done(Procedure)
//! ```
//!
//! Exactly one `done` with `more == false` ends every call of `execute` and `execute_rpc`, whatever happens. An error
//! message precedes the `done` with `error == true` of the statement that failed.

use crate::api::batch::Batch;
use thawdb_query::phys::OutputColumn;
use thawdb_types::{Scalar, SqlError, SqlType, array_from_scalar};

/// Which of the three completion tokens a `done` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneKind {
    /// A statement of a batch (DONE).
    Statement,
    /// A statement within a procedure (DONEINPROC).
    InProcedure,
    /// A procedure (DONEPROC).
    Procedure,
}

/// What sort of statement completed, as the completion token's CurCmd tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
#[allow(missing_docs)] // each variant is the statement of its name
pub enum StatementKind {
    Other = 0,
    Select = 0xC1,
    Insert = 0xC3,
    Delete = 0xC4,
    Update = 0xC5,
    CreateTable = 0xC6,
    DropTable = 0xC7,
    CreateIndex = 0xC8,
    DropIndex = 0xC9,
    CreateDatabase = 0xCB,
    BeginTransaction = 0xD4,
    CommitTransaction = 0xD5,
    RollbackTransaction = 0xD2,
    Merge = 0x117,
    BulkInsert = 0xF0,
    Truncate = 0xD8,
    Use = 0xE2,
    Set = 0xF9,
    Execute = 0xE0,
}

/// A statement or procedure completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneInfo {
    /// Which token.
    pub kind: DoneKind,
    /// Which statement.
    pub statement: StatementKind,
    /// Rows returned or changed; `None` where there is no count, or under SET NOCOUNT ON.
    pub rows_affected: Option<u64>,
    /// Whether more results of this call follow.
    pub more: bool,
    /// Whether it failed.
    pub error: bool,
    /// Whether it ended because the client cancelled (attention).
    pub cancelled: bool,
}

/// A change of the session's surroundings that drivers track.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum EnvChange {
    Database {
        old: String,
        new: String,
    },
    Language {
        old: String,
        new: String,
    },
    /// The descriptor that the client puts in the header of later requests.
    BeginTransaction {
        descriptor: u64,
    },
    CommitTransaction {
        descriptor: u64,
    },
    RollbackTransaction {
        descriptor: u64,
    },
    /// Acknowledges a connection reset.
    ResetConnection,
}

/// Where a column of a cursor's rows comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowseColumn {
    /// Which of the tables told with it, from 1; 0 for an expression.
    pub table: u8,
    /// Whether it is part of the table's key.
    pub key: bool,
    /// Its name in the table, where it is shown by another.
    pub base_name: Option<String>,
}

/// The receiver has gone or refuses more: the statement stops as if cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkClosed;

/// Receives results. Called on the session's thread; a call may block (backpressure).
pub trait ResultSink {
    /// A result set begins; every `rows` until the next `done` belongs to it.
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed>;
    /// Tables (database, schema, name) and columns that the rows of the result set come from, after `columns`: for clients
    /// that change rows through a cursor. Who does not need it ignores it.
    fn browse(&mut self, _tables: &[[String; 3]], _columns: &[BrowseColumn]) {}
    /// Rows of the present result set.
    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed>;
    /// One row of the present result set, by its values; as [`Self::rows`] unless the receiver has a shorter way.
    fn row(&mut self, columns: &[OutputColumn], values: &[Scalar]) -> Result<(), SinkClosed> {
        let arrays = columns.iter().zip(values).map(|(column, value)| array_from_scalar(&column.sql_type, value, 1));
        self.rows(&Batch { columns: arrays.collect(), row_count: 1 })
    }
    /// A statement or procedure completed.
    fn done(&mut self, info: DoneInfo);
    /// An informational message (severity up to 10) or an error, in order.
    fn message(&mut self, message: &SqlError);
    /// Return status of a procedure.
    fn return_status(&mut self, status: i32);
    /// Value of an output parameter. `ordinal` is its position among the call's parameters.
    fn return_value(&mut self, ordinal: u16, name: &str, sql_type: &SqlType, value: &Scalar);
    /// The session's surroundings changed.
    fn env_change(&mut self, change: &EnvChange);
}
