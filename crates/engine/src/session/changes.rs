//! What a statement does to tables that constraints and triggers look at: conditions checked row by row, changes kept.
//!
//! ```text
//! run_plan ─ watch(plan) ─► Watch per table ─ check_rows (547 before the write) ─ note_rows ─► old and new rows side by side
//!                                                        └ taken by batch::integrity and batch::trigger after the statement
//! ```
//!
//! A statement within a statement (a cascade, a trigger's) has watches of its own: they are a stack (`Changes::begin`).

use crate::batch::compile_cx::CompileCx;
use crate::batch::trigger::ChangeKind;
use crate::messages::message;
use crate::session::rowset::Rowset;
use crate::session::state::SessionState;
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_catalog::{ConstraintDef, DatabaseId, Related, TableDef};
use thawdb_query::compile::bind_row_condition;
use thawdb_query::expr::Expr;
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ParseOptions;
use thawdb_types::SqlError;

/// A table being watched by the present statement.
pub(crate) struct Watch {
    pub(crate) table: Arc<TableDef>,
    pub(crate) related: Arc<Related>,
    /// Conditions of its CHECK constraints over its columns.
    checks: Arc<Vec<(Arc<ConstraintDef>, Expr)>>,
    /// The rows inserted, updated and deleted, by [`ChangeKind`].
    changed: [ChangedRows; 3],
    /// Whether rows are kept whatever is related: they are an INSTEAD OF trigger's, and nothing is changed, or a view is asked
    /// about them.
    keeps: bool,
}

/// Rows that a statement changed in one way.
#[derive(Default)]
pub(crate) struct ChangedRows {
    /// Old rows, none if rows were inserted.
    pub(crate) old: Rowset,
    /// New rows, none if rows were deleted; beside the old ones if they were updated.
    pub(crate) new: Rowset,
}

impl Watch {
    /// The rows changed in one way.
    pub(crate) fn changed(&self, kind: ChangeKind) -> &ChangedRows {
        &self.changed[kind as usize]
    }

    /// Takes the rows changed in one way.
    pub(crate) fn take_changed(&mut self, kind: ChangeKind) -> ChangedRows {
        let mut taken = std::mem::take(&mut self.changed[kind as usize]);
        taken.describe(&self.table);
        taken
    }

    /// The same watch, or a new one of the table, that keeps the rows.
    pub(crate) fn keeping(known: Option<Self>, table: &Arc<TableDef>) -> Self {
        Self { keeps: true, ..known.unwrap_or_else(|| Self::instead(table)) }
    }

    /// The new rows of every change, as rows of a query.
    pub(crate) fn new_rows(&self) -> Rowset {
        let rows = self.changed.iter().flat_map(|changed| changed.new.rows.iter().cloned()).collect();
        Rowset { columns: columns_of(&self.table), rows }
    }

    /// The rows of a statement that an INSTEAD OF trigger takes.
    pub(crate) fn instead(table: &Arc<TableDef>) -> Self {
        Self { table: table.clone(), related: Arc::default(), checks: Arc::default(), changed: Default::default(), keeps: true }
    }

    fn keeps_rows(&self) -> bool {
        if self.keeps {
            return true;
        }
        let related = &self.related;
        !(related.foreign_keys.is_empty() && related.referenced_by.is_empty() && related.triggers.is_empty())
    }
}

/// The watches of the statements being run, the innermost last.
#[derive(Default)]
pub(crate) struct Changes {
    statements: Vec<Vec<Watch>>,
}

impl Changes {
    pub(crate) fn begin(&mut self, watches: Vec<Watch>) {
        self.statements.push(watches);
    }

    pub(crate) fn end(&mut self) -> Vec<Watch> {
        self.statements.pop().unwrap_or_default()
    }

    fn of(&self, table: &TableDef) -> Option<&Watch> {
        self.statements.last()?.iter().find(|watch| watch.table.id == table.id && watch.table.database == table.database)
    }

    fn of_mut(&mut self, table: &TableDef) -> Option<&mut Watch> {
        self.statements.last_mut()?.iter_mut().find(|watch| watch.table.id == table.id && watch.table.database == table.database)
    }

    pub(crate) fn watches(&self, table: &TableDef) -> bool {
        self.of(table).is_some()
    }
}

impl ChangedRows {
    /// Gives the rows their columns: most statements that are watched change rows in one way alone, or none.
    fn describe(&mut self, table: &TableDef) {
        if self.old.columns.is_empty() {
            (self.old.columns, self.new.columns) = (columns_of(table), columns_of(table));
        }
    }

    /// Whether no row was changed so.
    pub(crate) fn is_empty(&self) -> bool {
        self.old.rows.is_empty() && self.new.rows.is_empty()
    }
}

fn columns_of(table: &TableDef) -> Vec<OutputColumn> {
    let output = |column: &thawdb_catalog::ColumnDef| OutputColumn {
        name: column.name.clone(),
        sql_type: column.sql_type,
        nullable: column.nullable,
        identity: false,
    };
    table.columns.iter().map(output).collect()
}

impl SessionState {
    /// The watch of a table, if anything is bound to its changes.
    pub(crate) fn watch_of(&self, database: DatabaseId, table: &Arc<TableDef>) -> Result<Option<Watch>, SqlError> {
        let related = match self.temp_checks.get(&table.id.0) {
            Some(own) => Some(own.clone()),
            None => self.definitions(database).and_then(|catalog| catalog.related(table.id).cloned()),
        };
        let Some(related) = related else { return Ok(None) };
        let mut checks = Vec::with_capacity(related.checks.len());
        for constraint in &related.checks {
            let text = constraint.check.as_ref().map_or("", |check| check.definition.as_str());
            let parsed = thawdb_tsql::parse_expr(text, &ParseOptions::default());
            let parsed = parsed.map_err(|_| message(102, &[&text]))?;
            checks.push((constraint.clone(), bind_row_condition(&parsed, table, &CompileCx::new(self, 0))?));
        }
        Ok(Some(Watch { table: table.clone(), related, checks: Arc::new(checks), changed: Default::default(), keeps: false }))
    }

    /// 547 if a condition of the table is false for any of the rows.
    pub(crate) fn check_new_rows(&mut self, statement: &str, table: &TableDef, columns: &[ArrayRef], rows: usize) -> Result<(), SqlError> {
        let Some(checks) = self.changes.of(table).map(|watch| watch.checks.clone()) else { return Ok(()) };
        for (constraint, condition) in checks.iter() {
            if thawdb_query::exec::eval_rows_false(condition, columns, rows, self)? {
                let column = constraint.check.as_ref().and_then(|check| check.column);
                let column = column.and_then(|id| table.columns.iter().find(|column| column.id == id));
                return Err(self.conflict(statement, "CHECK", &constraint.name, table, column.map(|column| column.name.as_str())));
            }
        }
        Ok(())
    }

    /// Keeps changed rows for what looks at them when the statement has ended.
    pub(crate) fn keep_rows(&mut self, table: &TableDef, old: &[ArrayRef], new: &[ArrayRef], rows: usize) {
        if let Some(watch) = self.changes.of_mut(table).filter(|watch| watch.keeps_rows()) {
            let kind = match (old.is_empty(), new.is_empty()) {
                (true, _) => ChangeKind::Insert,
                (false, true) => ChangeKind::Delete,
                (false, false) => ChangeKind::Update,
            };
            let changed = &mut watch.changed[kind as usize];
            changed.describe(table);
            changed.old.push_columns(old, if old.is_empty() { 0 } else { rows });
            changed.new.push_columns(new, if new.is_empty() { 0 } else { rows });
        }
    }

    /// 547: the statement, the kind and name of the constraint, the table and perhaps the column it names.
    pub(crate) fn conflict(&self, statement: &str, kind: &str, name: &str, table: &TableDef, column: Option<&str>) -> SqlError {
        let database = self.storage_of(table.database).map_or(String::new(), |open| open.name());
        let shown = format!("{}.{}", table.schema_name, table.name);
        let (before, after) = if column.is_some() { (", column '", "'") } else { ("", "") };
        message(547, &[&statement, &kind, &name, &database, &shown, &before, &column.unwrap_or(""), &after])
    }
}
