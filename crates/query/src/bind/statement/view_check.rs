//! WITH CHECK OPTION: rows changed through a view must be rows of the view afterwards.
//!
//! ```text
//! UPDATE v ... ─► the outermost view between v and the target table that has the option ─► Compiled::view_check
//! after it     ─► rows `r` of the table that the statement wrote:  r WHERE NOT EXISTS (the view's rows that come of r alone)   550
//! ```
//! 1. Views below a checked one are checked with it: their conditions are part of its query.
//! 2. "That come of r alone": the one [`Get`] of the target in the view's query is replaced by the row itself; what else the
//!    query reads, in joins and subqueries, is read as it is after the statement.
//!
//! Messages: 4427 (TOP or OFFSET in a checked view), 4510 (WITH CHECK OPTION of a view that cannot be updated).

use super::target::{base_of, collect_gets};
use crate::algebra::{BoundExpr, BoundExprKind, BoundSubquery, ColumnRef, Get, Rel};
use crate::bind::Binder;
use crate::bind::error::error;
use crate::bind::query::{OutputName, QueryUse};
use crate::bind::scope::ScopeTable;
use crate::compile::{ViewCheck, ViewText};
use crate::phys::RowSource;
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, TableDef};
use thawdb_tsql::ast;
use thawdb_types::{SqlError, SqlType};

/// A view with the option that the statement names, or that a view in it names.
#[derive(Debug)]
pub(crate) struct CheckedView {
    view: ViewText,
    database: DatabaseId,
    schema: String,
    /// The first column of each table its query reads.
    reads: Vec<ColumnRef>,
    limited: bool,
}

fn has_limit(rel: &Rel) -> bool {
    matches!(rel, Rel::Limit { .. }) || rel.inputs().into_iter().any(has_limit)
}

/// Puts `row` in the place of the read that puts out `first`.
fn replace_get(rel: &mut Rel, first: ColumnRef, row: &mut Option<Rel>) {
    if matches!(rel, Rel::Get(get) if get.columns.iter().any(|(_, column)| *column == first)) {
        if let Some(row) = row.take() {
            *rel = row;
        }
        return;
    }
    rel.inputs_mut().into_iter().for_each(|input| replace_get(input, first, row));
}

impl Binder<'_> {
    /// Remembers a bound view that has the option.
    pub(crate) fn note_checked_view(&mut self, view: &ViewText, (database, schema): (DatabaseId, &str), rel: &Rel) {
        if !view.definition.check_option {
            return;
        }
        let mut gets = Vec::new();
        collect_gets(rel, &mut gets);
        let reads = gets.into_iter().filter_map(|get| get.columns.first().map(|(_, column)| *column)).collect();
        self.checked_views.push(CheckedView { view: view.clone(), database, schema: schema.to_owned(), reads, limited: has_limit(rel) });
    }

    /// Finds out which view the rows written to `target` must be in afterwards.
    pub(super) fn choose_view_check(&mut self, target: &Get, name: &str, span: ast::Span) -> Result<(), SqlError> {
        let Some((_, first)) = target.columns.first() else { return Ok(()) };
        // Inner views were bound, and noted, before those around them.
        let Some(at) = self.checked_views.iter().rposition(|view| view.reads.contains(first)) else { return Ok(()) };
        let chosen = self.checked_views.swap_remove(at);
        if chosen.limited {
            return Err(error(4427, &[&name], span));
        }
        let CheckedView { view, database, schema, .. } = chosen;
        self.view_check = Some(Arc::new(ViewCheck { view, database, schema, table: target.table.clone() }));
        Ok(())
    }

    /// The rows of `rows`, new rows of the table, that the view would not show.
    pub(crate) fn rows_outside_view(&mut self, check: &ViewCheck, rows: Arc<dyn RowSource>) -> Result<(Rel, Vec<OutputName>), SqlError> {
        let span = self.statement;
        let (written, columns) = self.source_columns(rows, Vec::new());
        let named =
            ast::NamedTable { name: check.view.definition.name.clone(), alias: None, system_time: None, sample: None, hints: Vec::new() };
        let (mut shown, scope) = self.view_reference(&check.view, (check.database, &check.schema), &named)?;
        let get = self.read_of(&shown, &scope[0], &check.table, span)?;
        let exprs = get.columns.iter().map(|(at, column)| (*column, self.column_expr(columns[*at].column))).collect();
        replace_get(&mut shown, get.columns[0].1, &mut Some(Rel::Project { input: Box::new(Rel::OneRow), exprs }));
        let column = scope[0].columns[0].column;
        let kind = BoundExprKind::Subquery { plan: Box::new(shown), column, kind: BoundSubquery::Exists { negated: true } };
        let outside = BoundExpr { kind, sql_type: SqlType::Bit, nullable: false };
        let output = OutputName { name: columns[0].name.clone(), column: columns[0].column, table: None };
        Ok((written.filter(vec![outside]), vec![output]))
    }

    /// The read of the table in a view's query. Of a join, that of the table meant.
    fn read_of(&self, rel: &Rel, scope: &ScopeTable, table: &TableDef, span: ast::Span) -> Result<Get, SqlError> {
        let mut gets = Vec::new();
        collect_gets(rel, &mut gets);
        gets.retain(|get| get.table.id == table.id && get.table.database == table.database);
        match gets.as_slice() {
            [one] => Ok((*one).clone()),
            _ => base_of(rel, scope, span),
        }
    }

    /// 4510 unless rows can be changed through a view of this query.
    pub(crate) fn check_updatable(&mut self, query: &ast::Query) -> Result<(), SqlError> {
        let refused = || error(4510, &[&"CHECK OPTION"], query.span);
        let mut bound = self.bind_query(query, QueryUse::Derived)?;
        let mut gets = Vec::new();
        collect_gets(&bound.rel, &mut gets);
        gets.retain(|get| get.columns.iter().any(|(_, column)| bound.outputs.iter().any(|output| output.column == *column)));
        let columns: Vec<ColumnRef> = gets.first().ok_or_else(refused)?.columns.iter().map(|(_, column)| *column).collect();
        let locator = self.columns.add("", SqlType::varbinary(1700), false);
        if self.expose(&mut bound.rel, &columns, locator) { Ok(()) } else { Err(refused()) }
    }
}
