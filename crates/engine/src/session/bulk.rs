//! Bulk load over the wire: INSERT BULK announces table and columns, then rows come as batches.

use crate::api::batch::Batch;
use crate::api::bulk::BulkColumn;
use crate::api::sink::ResultSink;
use crate::messages::unsupported;
use crate::session::state::SessionState;
use thawdb_tsql::ast::InsertBulk;
use thawdb_types::SqlError;

/// What INSERT BULK announced.
#[derive(Debug, Clone)]
pub(crate) struct BulkTarget {
    columns: Vec<BulkColumn>,
}

/// Checks an INSERT BULK statement against its table.
pub(crate) fn announce(_: &SessionState, _: &InsertBulk) -> Result<BulkTarget, SqlError> {
    Err(unsupported("INSERT BULK"))
}

/// Takes rows for the table of an `INSERT BULK`. Dropped without `finish`, nothing of it is kept.
pub struct BulkLoader<'s> {
    session: &'s mut SessionState,
    target: BulkTarget,
}

/// Begins the load that was announced.
pub(crate) fn begin(session: &mut SessionState) -> Result<BulkLoader<'_>, SqlError> {
    let target = session.bulk.take().ok_or_else(|| unsupported("bulk load without INSERT BULK"))?;
    Ok(BulkLoader { session, target })
}

impl BulkLoader<'_> {
    /// What each pushed array must be, in the order the client announced.
    pub fn columns(&self) -> &[BulkColumn] {
        &self.target.columns
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
