//! Why a statement did not go on, and how much ends with it.
//!
//! ```text
//! Statement   only the statement; the batch goes on           (constraint violations, 8134, RAISERROR ...)
//! Scope       the batch, procedure or text it stands in       (errors of compilation: 207, 208, 102 in EXEC ...)
//! Batch       everything the client sent, perhaps with the transaction   (conversions, deadlock, THROW ...)
//! Connection  the session                                     (severity 20 and above, KILL)
//! ```
//!
//! SQL Server decides by the number of the error; the tables below are Sommarskog's and the manual's.

use crate::storage_error::CANCELLED;
use thawdb_types::SqlError;

/// How much an error ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Statement,
    Scope,
    Batch { rollback: bool },
    Connection,
}

/// A statement that did not go on.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) error: SqlError,
    pub(crate) fate: Fate,
    /// RAISERROR: XACT_ABORT does not look at it.
    pub(crate) raised: bool,
    /// The client has been told already; only the unwinding is left.
    pub(crate) told: bool,
}

/// Errors after which SQL Server ends the batch and takes the transaction back: nesting too deep, arguments for a procedure
/// without parameters, conversions of values, deadlock,
/// update conflict under snapshot isolation, writes in a doomed transaction.
const BATCH_ENDING: [i32; 20] =
    [217, 241, 242, 244, 245, 248, 293, 295, 296, 517, 1205, 3930, 3951, 3952, 3960, 3961, 8114, 8146, 8169, 9803];

impl Failure {
    /// An error of running a statement.
    pub(crate) fn run(error: SqlError) -> Self {
        let fate = match error.number {
            CANCELLED => Fate::Batch { rollback: false },
            _ if error.severity >= 20 => Fate::Connection,
            number if BATCH_ENDING.contains(&number) => Fate::Batch { rollback: true },
            _ => Fate::Statement,
        };
        Self { error, fate, raised: false, told: false }
    }

    /// An error of compiling a statement: its scope ends, and a TRY of the same scope does not see it.
    pub(crate) fn compile(error: SqlError) -> Self {
        Self { fate: Fate::Scope, ..Self::run(error) }
    }

    /// An error raised by RAISERROR.
    pub(crate) fn raised(error: SqlError) -> Self {
        Self { raised: true, ..Self::run(error) }
    }

    /// An error raised by THROW: the batch ends, the transaction stays (XACT_ABORT apart).
    pub(crate) fn thrown(error: SqlError) -> Self {
        Self { fate: Fate::Batch { rollback: false }, ..Self::run(error) }
    }

    /// An error that ends the batch and takes the transaction back where its number alone does not say so.
    pub(crate) fn ends_batch(error: SqlError) -> Self {
        Self { fate: Fate::Batch { rollback: true }, ..Self::run(error) }
    }

    /// Whether it is a cancellation: no TRY catches it and no message tells of it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.error.number == CANCELLED
    }

    /// Whether a TRY around the statement may catch it.
    pub(crate) fn can_be_caught(&self, same_scope: bool) -> bool {
        !self.told && !self.is_cancelled() && self.fate != Fate::Connection && !(same_scope && self.fate == Fate::Scope)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::run(error)
    }
}
