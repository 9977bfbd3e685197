//! A session: one client's state, and the doors through which it asks for work.

use crate::api::batch::Batch;
use crate::api::bulk::BulkColumn;
use crate::api::parameter::Parameter;
use crate::api::sink::{DoneInfo, DoneKind, ResultSink, StatementKind};
use crate::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_types::SqlError;

/// Isolation of a transaction that the client's transaction manager begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the level of its name
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
    Snapshot,
}

/// Cancels what a session is doing, from another thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// The running statement ends at its next check, with a `done` that says `cancelled`. No effect on an idle session.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// One client's session. Calls run on the caller's thread, one at a time. Dropping it rolls back and ends it.
pub struct Session {
    engine: Arc<Engine>,
    cancel: CancelToken,
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, cancel: CancelToken(Arc::new(AtomicBool::new(false))) }
    }

    /// `@@SPID`.
    pub fn id(&self) -> i16 {
        51
    }

    /// The engine it belongs to.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What cancels this session's statements.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// Whether an error of severity 20 or KILL has ended the session: the connection must be closed.
    pub fn is_ended(&self) -> bool {
        false
    }

    /// Runs a batch. Everything it says goes to `sink`.
    pub fn execute(&mut self, text: &str, parameters: &[Parameter], sink: &mut dyn ResultSink) {
        let _ = (text, parameters);
        sink.done(DoneInfo {
            kind: DoneKind::Statement,
            statement: StatementKind::Other,
            rows_affected: None,
            more: false,
            error: true,
            cancelled: false,
        });
    }

    /// Calls a procedure by name (`sp_executesql`, `sp_prepare`, `sp_execute`, `sp_unprepare`, `sp_prepexec`, ...).
    /// Output parameters come back through `return_value`.
    pub fn execute_rpc(&mut self, procedure: &str, parameters: &[Parameter], sink: &mut dyn ResultSink) {
        let _ = (procedure, parameters);
        self.execute("", &[], sink);
    }

    /// Puts the session back as after login: rolls back, drops temporary tables, default options (the connection
    /// reset that pooling drivers ask for). `keep_transaction` leaves the transaction open.
    pub fn reset(&mut self, keep_transaction: bool, sink: &mut dyn ResultSink) {
        let _ = (keep_transaction, sink);
    }

    /// Begins a transaction on the client's behalf. The descriptor reaches the sink as an environment change.
    pub fn begin_transaction(&mut self, isolation: Option<Isolation>, name: &str, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let _ = (isolation, name, sink);
        Ok(())
    }

    /// Commits; with `begin_next` begins another at once.
    pub fn commit_transaction(&mut self, begin_next: bool, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let _ = (begin_next, sink);
        Ok(())
    }

    /// Rolls back the transaction, or to the savepoint `name` if it is not empty; with `begin_next` begins another.
    pub fn rollback_transaction(&mut self, name: &str, begin_next: bool, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let _ = (name, begin_next, sink);
        Ok(())
    }

    /// Marks a savepoint.
    pub fn save_transaction(&mut self, name: &str) -> Result<(), SqlError> {
        let _ = name;
        Ok(())
    }

    /// The loader that the last batch, an `INSERT BULK` statement, announced. An error if there was none.
    pub fn bulk_load(&mut self) -> Result<BulkLoader<'_>, SqlError> {
        Ok(BulkLoader { session: self, columns: Vec::new() })
    }
}

/// Takes rows for the table of an `INSERT BULK`. Dropped without `finish`, nothing of it is kept.
pub struct BulkLoader<'s> {
    session: &'s mut Session,
    columns: Vec<BulkColumn>,
}

impl BulkLoader<'_> {
    /// What each pushed array must be, in the order the client announced.
    pub fn columns(&self) -> &[BulkColumn] {
        &self.columns
    }

    /// Takes some rows. After an error the load is over and undone.
    pub fn push(&mut self, batch: Batch) -> Result<(), SqlError> {
        let _ = (&self.session, batch);
        Ok(())
    }

    /// Completes the load: messages and the final `done` with the count of rows go to `sink`.
    pub fn finish(self, sink: &mut dyn ResultSink) {
        let _ = sink;
    }
}
