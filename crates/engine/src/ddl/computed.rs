//! Computed columns in definitions: what may be one, what may be indexed, and rows that come to hold one.
//!
//! ```text
//! c AS expression             worked out when it is read, rows do not hold it
//! c AS expression PERSISTED   worked out when a row is written
//! ... in an index             the same: the table's rows are written anew once, with the values (`store`)
//! ```
//!
//! Messages: 1046, 1759 (what it names), 4934, 4936 (what cannot be persisted), 8183 (constraints that ask for PERSISTED), 1711
//! (a primary key over what may be NULL or is not persisted), 2729, 2799 (what cannot be indexed).

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::lock_for_change;
use crate::ddl::rewrite::{Source, rewrite};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::state::SessionState;
use crate::storage_error::internal;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, ColumnId, ComputedDef, LockEscalation, ObjectId, SchemaId, TableDef};
use thawdb_query::compile::{ComputedFacts, bind_computed};
use thawdb_tsql::ast::{ColumnDefinition, ComputedColumn, ConstraintKind};
use thawdb_tsql::{ParseOptions, parse_expr};
use thawdb_types::SqlError;

/// The table that columns being defined will be in, as far as it is known.
pub(crate) fn provisional(session: &SessionState, name: &str, columns: &[ColumnDef]) -> Arc<TableDef> {
    Arc::new(TableDef {
        database: session.database.id,
        id: ObjectId(0),
        schema: SchemaId(1),
        schema_name: "dbo".to_owned(),
        name: name.to_owned(),
        columns: columns.to_vec(),
        indexes: Vec::new(),
        rows_disabled: false,
        disabled: Vec::new(),
        lock_escalation: LockEscalation::default(),
        temporal: Default::default(),
        building: None,
        created: 0,
        modified: 0,
    })
}

/// The definition of a computed column over `others`.
pub(crate) fn define_computed(
    session: &SessionState,
    table: &str,
    others: &[ColumnDef],
    column: &ColumnDefinition,
    syntax: &ComputedColumn,
    ordinal: i32,
) -> Result<ColumnDef, SqlError> {
    let (line, name) = (column.span.line, &column.name.text);
    let at_line = |error: SqlError| error.at_line(line);
    let facts = bind_computed(&syntax.expr, &provisional(session, table, others), &CompileCx::new(session, 0)).map_err(at_line)?;
    let definition = thawdb_tsql::definition(&syntax.expr).ok_or_else(|| message(1046, &[]).at_line(line))?;
    if syntax.persisted && facts.calls_user_code {
        return Err(at_line(message(4934, &[&name, &table])));
    }
    if syntax.persisted && !facts.deterministic {
        return Err(at_line(message(4936, &[&name, &table])));
    }
    let asks_for_values = |kind: &ConstraintKind| matches!(kind, ConstraintKind::Check { .. } | ConstraintKind::ForeignKey(_));
    if !syntax.persisted && (syntax.nullable == Some(false) || syntax.constraints.iter().any(|c| asks_for_values(&c.kind))) {
        return Err(at_line(message(8183, &[])));
    }
    let computed = ComputedDef { definition, persisted: syntax.persisted, stored: syntax.persisted };
    let nullable = facts.nullable && syntax.nullable != Some(false);
    Ok(ColumnDef { computed: Some(computed), ..ColumnDef::plain(ColumnId(ordinal), name, facts.sql_type, nullable) })
}

/// What is known of a computed column of a definition.
fn facts(session: &SessionState, table: &str, columns: &[ColumnDef], at: usize) -> Result<ComputedFacts, SqlError> {
    let text = columns[at].computed.as_ref().map_or("", |computed| computed.definition.as_str());
    let expr = parse_expr(text, &ParseOptions::default());
    let expr = expr.map_err(|_| internal(format!("the definition of {} no longer parses", columns[at].name)))?;
    bind_computed(&expr, &provisional(session, table, columns), &CompileCx::new(session, 0))
}

/// Whether a computed column may be in an index: 2729 and 2799 if not.
pub(crate) fn check_indexable(
    session: &SessionState,
    (table, columns): (&str, &[ColumnDef]),
    at: usize,
    index: &str,
) -> Result<(), SqlError> {
    let column = &columns[at];
    if column.computed.is_none() {
        return Ok(());
    }
    let facts = facts(session, table, columns, at)?;
    if !facts.deterministic || facts.calls_user_code {
        return Err(message(2729, &[&column.name, &"table", &table]));
    }
    let persisted = column.computed.as_ref().is_some_and(|computed| computed.persisted);
    if facts.precise || persisted { Ok(()) } else { Err(message(2799, &[&index, &table, &column.name])) }
}

/// Whether something else must stay as long as the computed columns of a table name the column at `position`.
pub(crate) fn users_of(session: &SessionState, table: &TableDef, position: usize) -> Result<Vec<String>, SqlError> {
    let mut users = Vec::new();
    for at in (0..table.columns.len()).filter(|at| *at != position && table.columns[*at].computed.is_some()) {
        if facts(session, &table.name, &table.columns, at)?.columns.contains(&position) {
            users.push(table.columns[at].name.clone());
        }
    }
    Ok(users)
}

/// Makes rows of a table hold the virtual columns at `positions`, for an index over them. The table as it is then.
pub(crate) fn store(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    positions: &[usize],
    index: &str,
) -> Result<Arc<TableDef>, Failure> {
    let virtuals: Vec<usize> = positions.iter().copied().filter(|at| table.columns[*at].computed.is_some()).collect();
    for at in &virtuals {
        check_indexable(interpreter.session, (&table.name, &table.columns), *at, index)?;
    }
    if !virtuals.iter().any(|at| table.columns[*at].is_virtual()) {
        return Ok(table.clone());
    }
    lock_for_change(interpreter.session, open, table.id)?;
    let mut altered = (**table).clone();
    for at in virtuals {
        if let Some(computed) = &mut altered.columns[at].computed {
            computed.stored = true;
        }
    }
    rewrite(interpreter, open, table, altered, |_| Source::Kept)?;
    interpreter.session.table(table.database, table.id).ok_or_else(|| message(4902, &[&table.name]).into())
}
