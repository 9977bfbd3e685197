//! Bulk load over the wire: INSERT BULK announces table and columns, then rows come as batches.
//!
//! ```text
//! execute("INSERT BULK t (...)") ─► announce ─► BulkTarget kept in the session until the next call
//! bulk_load() ─► begin (lock, mark) ─► push* ─► finish (kept) | drop (undone)
//! ```

use crate::api::batch::Batch;
use crate::api::bulk::BulkColumn;
use crate::api::sink::{DoneKind, ResultSink, StatementKind};
use crate::batch::compile_cx::CompileCx;
use crate::batch::outbox::Outbox;
use crate::ddl::bulk_insert::lock_for_load;
use crate::ddl::names::{database_of, find_table, shown};
use crate::messages::message;
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use crate::session::transaction::Mark;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_query::compile::{bind_computed_columns, bind_default, bind_period};
use thawdb_query::exec::{BulkInsert as Load, BulkTarget as LoadTarget};
use thawdb_query::expr::{Expr, ExprKind};
use thawdb_tsql::ast::{InsertBulk, ObjectName};
use thawdb_tsql::{ParseOptions, parse_expr};
use thawdb_types::{SqlError, SqlType};

/// What INSERT BULK announced.
#[derive(Debug, Clone)]
pub(crate) struct BulkTarget {
    name: ObjectName,
    columns: Vec<BulkColumn>,
    targets: Vec<usize>,
    keep_nulls: bool,
}

/// The DEFAULT of each column that has one, ready to run.
pub(crate) fn defaults_of(session: &SessionState, table: &TableDef) -> Result<Vec<(usize, Expr)>, SqlError> {
    let mut defaults = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let Some(text) = column.default.as_ref().filter(|_| table.period_column(at).is_none()) else { continue };
        let expr = parse_expr(text, &ParseOptions::default());
        let expr = expr.map_err(|_| crate::storage_error::internal(format!("default {text} does not read back")))?;
        let bound = bind_default(&expr, column, &CompileCx::new(session, 0))?;
        defaults.push((at, of_type(bound, column.sql_type)));
    }
    defaults.extend(bind_period(table, &CompileCx::new(session, 0))?);
    Ok(defaults)
}

/// 13559 for a load into a history, 13536 for one that brings values for the period's columns.
pub(crate) fn refuse_temporal(session: &SessionState, table: &TableDef, targets: &[usize]) -> Result<(), SqlError> {
    if table.temporal.history_of.is_some() {
        return Err(message(13_559, &[&session.full_name(table)]));
    }
    if targets.iter().any(|at| table.period_column(*at).is_some()) {
        return Err(message(13_536, &[&session.full_name(table)]));
    }
    Ok(())
}

/// An expression of exactly this type: the loader puts its values among the column's own.
fn of_type(expr: Expr, sql_type: SqlType) -> Expr {
    if expr.sql_type == sql_type {
        return expr;
    }
    let nullable = expr.nullable;
    Expr { kind: ExprKind::Convert { operand: Box::new(expr), style: 0, attempt: false }, sql_type, nullable }
}

/// Checks an INSERT BULK statement against its table: 208, 207.
pub(crate) fn announce(session: &SessionState, node: &InsertBulk) -> Result<BulkTarget, SqlError> {
    let table = find_table(session, &node.table)?.ok_or_else(|| message(208, &[&shown(&node.table)]))?;
    let keep_nulls = node.options.iter().any(|option| option.name == "KEEP_NULLS");
    let (mut columns, mut targets) = (Vec::new(), Vec::new());
    let all: Vec<String> = match node.columns.is_empty() {
        true => table.columns.iter().filter(|column| column.computed.is_none()).map(|column| column.name.clone()).collect(),
        false => node.columns.iter().map(|column| column.name.text.clone()).collect(),
    };
    for name in all {
        let at = table.column_index(&name).ok_or_else(|| message(207, &[&name]))?;
        let column = &table.columns[at];
        if column.computed.is_some() {
            return Err(message(271, &[&column.name]));
        }
        columns.push(BulkColumn { name: column.name.clone(), sql_type: column.sql_type, nullable: column.nullable });
        targets.push(at);
    }
    Ok(BulkTarget { name: node.table.clone(), columns, targets, keep_nulls })
}

/// Takes rows for the table of an `INSERT BULK`. Dropped without `finish`, nothing of it is kept.
pub struct BulkLoader<'s> {
    session: &'s mut SessionState,
    columns: Vec<BulkColumn>,
    mark: Mark,
    /// `None` once the load has failed.
    load: Option<Load>,
}

/// Begins the load that was announced: 4002 if none was.
pub(crate) fn begin(session: &mut SessionState) -> Result<BulkLoader<'_>, SqlError> {
    let target = session.bulk.take().ok_or_else(|| message(4002, &[]))?;
    session.cancel = session.ticket.begin_call();
    session.frames.push(Frame::default());
    let mark = session.begin_statement();
    match begin_load(session, &target) {
        Ok(load) => Ok(BulkLoader { session, columns: target.columns, mark, load: Some(load) }),
        Err(error) => {
            session.undo_statement(&mark)?;
            session.frames.pop();
            Err(error)
        }
    }
}

fn begin_load(session: &mut SessionState, target: &BulkTarget) -> Result<Load, SqlError> {
    let missing = || message(208, &[&shown(&target.name)]);
    let open = database_of(session, &target.name)?;
    let before = find_table(session, &target.name)?.ok_or_else(missing)?;
    lock_for_load(session, &open, &before)?;
    let table: Arc<TableDef> = find_table(session, &target.name)?.filter(|now| now.columns == before.columns).ok_or_else(missing)?;
    refuse_temporal(session, &table, &target.targets)?;
    // A client that sends the identity column wants its values kept; otherwise it leaves the column out.
    let keep_identity = target.targets.iter().any(|at| table.columns[*at].identity.is_some());
    let load = LoadTarget {
        types: target.columns.iter().map(|column| column.sql_type).collect(),
        targets: target.targets.clone(),
        defaults: defaults_of(session, &table)?,
        computed: bind_computed_columns(&table, &CompileCx::new(session, 0))?,
        keep_identity,
        keep_nulls: target.keep_nulls,
        table,
    };
    Load::begin(load, session)
}

impl BulkLoader<'_> {
    /// What each pushed array must be, in the order the client announced.
    pub fn columns(&self) -> &[BulkColumn] {
        &self.columns
    }

    /// Takes some rows. After an error the load is over and undone.
    pub fn push(&mut self, batch: Batch) -> Result<(), SqlError> {
        let Some(load) = &mut self.load else { return Err(message(4002, &[])) };
        let pushed = self.session.check().and_then(|()| load.push(batch.into(), self.session));
        if pushed.is_err() {
            self.load = None;
        }
        pushed
    }

    /// Completes the load: messages and the final `done` with the count of rows go to `sink`.
    pub fn finish(mut self, sink: &mut dyn ResultSink) {
        let mut out = Outbox::new(sink);
        let finished = match self.load.take() {
            Some(load) => load.finish(self.session).and_then(|count| self.session.end_statement().map(|()| count)),
            None => Err(message(4002, &[])),
        };
        for info in std::mem::take(&mut self.session.infos) {
            out.message(&info);
        }
        let failed = match finished {
            Ok(count) => {
                self.session.row_count = i64::try_from(count).unwrap_or(i64::MAX);
                self.session.last_error = 0;
                // What is kept must not be undone by the drop below.
                self.mark = self.session.begin_statement();
                out.done(StatementKind::BulkInsert, Some(count), false);
                false
            }
            Err(error) => {
                self.session.last_error = error.number;
                out.message(&error);
                true
            }
        };
        out.finish(DoneKind::Statement, failed, false);
    }
}

impl Drop for BulkLoader<'_> {
    fn drop(&mut self) {
        // Undoing can fail only when storage has failed; the transaction is then aborted at the next start.
        let _ = self.session.undo_statement(&self.mark);
        self.session.frames.pop();
    }
}
