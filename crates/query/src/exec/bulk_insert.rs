//! A load into a table whose rows come by themselves: the wire's bulk load and BULK INSERT, a batch at a time.
//!
//! [`crate::bulk::load`] does the work. The caller holds a lock on the table that keeps other writers out until its
//! transaction ends. Failure: the caller's savepoint takes everything back.

use crate::bulk::load::{BulkLoad, LoadOptions};
use crate::context::StatementHost;
use crate::expr::Expr;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::{Batch, SqlError, SqlType};

/// Where rows go and what they lack.
#[derive(Debug, Clone)]
pub struct BulkTarget {
    /// The table.
    pub table: Arc<TableDef>,
    /// Table column of each column that is pushed.
    pub targets: Vec<usize>,
    /// Type of each column that is pushed: that of the table's column.
    pub types: Vec<SqlType>,
    /// Defaults of table columns: for columns not pushed, and for NULLs unless `keep_nulls`.
    pub defaults: Vec<(usize, Expr)>,
    /// Identity values come with the rows; otherwise a pushed identity column is ignored and numbers are handed out.
    pub keep_identity: bool,
    /// NULLs stay NULL where the column has a default.
    pub keep_nulls: bool,
}

/// A load at work.
pub struct BulkInsert(BulkLoad);

impl BulkInsert {
    /// Begins a load in the session's transaction.
    ///
    /// # Errors
    /// What looking at the table fails with.
    pub fn begin(target: BulkTarget, host: &mut dyn StatementHost) -> Result<Self, SqlError> {
        let options = LoadOptions {
            keep_identity: target.keep_identity,
            keep_nulls: target.keep_nulls,
            table_locked: true,
            defaults: target.defaults,
            temp_folder: host.temp_folder(),
            progress: None,
        };
        Ok(Self(BulkLoad::new(&target.table, &target.targets, options, host)?))
    }

    /// Takes rows in.
    ///
    /// # Errors
    /// See [`crate::bulk::load`].
    pub fn push(&mut self, batch: Batch, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        self.0.push(&batch, host)
    }

    /// Writes what is left and the other indexes; the number of rows.
    ///
    /// # Errors
    /// See [`crate::bulk::load`].
    pub fn finish(self, host: &mut dyn StatementHost) -> Result<u64, SqlError> {
        self.0.finish(host)
    }
}
