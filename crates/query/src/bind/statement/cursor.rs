//! The query of a cursor, and WHERE CURRENT OF.
//!
//! ```text
//! SELECT a, b FROM t ...  ─►  a, b │ locator of t, clustered key of t     (kept beside each row of an updatable cursor)
//! UPDATE t ... WHERE CURRENT OF c  ─►  WHERE key = kept key AND locator = kept locator
//! ```
//!
//! 1. Columns beyond the select list are hidden: `CursorTable` says where they stand, and no client sees them.
//! 2. A query whose rows are not rows of its tables (DISTINCT, GROUP BY, UNION) has no hidden columns: it is read-only.
//!
//! The key finds the row through the clustered index; the locator, which also tells rows of an equal key apart, decides.
//! Failure: 16929, 16931 and 16933 come from the session, which knows the cursor.

use super::target::{collect_gets, get_with};
use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Get, Rel};
use crate::bind::Binder;
use crate::bind::query::{OutputName, QueryUse};
use crate::compile::CursorTable;
use crate::expr::CompareOp;
use thawdb_tsql::ast;
use thawdb_types::{Scalar, SqlError, SqlType};

impl Binder<'_> {
    /// Binds the query of a cursor: its rows, their columns with the hidden ones behind, and what those are.
    pub(crate) fn bind_cursor_query(
        &mut self,
        query: &ast::Query,
        updatable: bool,
    ) -> Result<(Rel, Vec<OutputName>, Vec<CursorTable>), SqlError> {
        let bound = self.bind_query(query, QueryUse::Statement)?;
        let (mut rel, mut outputs) = (bound.rel, bound.outputs);
        let mut tables = Vec::new();
        if updatable {
            let mut gets = Vec::new();
            collect_gets(&rel, &mut gets);
            let gets: Vec<Get> = gets.into_iter().cloned().collect();
            for get in &gets {
                let mut with_locator = rel.clone();
                if let Some(table) = self.keep_locator(&mut with_locator, get, &mut outputs) {
                    rel = with_locator;
                    tables.push(table);
                }
            }
        }
        Ok((rel, outputs, tables))
    }

    fn keep_locator(&mut self, rel: &mut Rel, get: &Get, outputs: &mut Vec<OutputName>) -> Option<CursorTable> {
        let place = |at: usize| get.columns.iter().find(|(position, _)| *position == at).map(|(_, column)| *column);
        let keys: Vec<(usize, ColumnRef)> =
            get.table.rows().keys.iter().filter_map(|key| place(key.column_index).map(|c| (key.column_index, c))).collect();
        // A table of a heap has no key; any column tells which table is meant.
        let columns: Vec<ColumnRef> = match keys.as_slice() {
            [] => get.columns.first().map(|(_, column)| vec![*column])?,
            keys => keys.iter().map(|(_, column)| *column).collect(),
        };
        let locator = self.columns.add("", SqlType::varbinary(1700), true);
        if !self.expose(rel, &columns, locator) {
            return None;
        }
        // Rows are only read here: what UPDATE does for its target is not wanted.
        if let Some(own) = get_with(rel, &columns) {
            own.locking.target = get.locking.target;
        }
        let hide = |outputs: &mut Vec<OutputName>, column| {
            outputs.push(OutputName { name: String::new(), column, table: None });
            outputs.len() - 1
        };
        let locator = hide(outputs, locator);
        let keys = keys.into_iter().map(|(at, column)| (at, hide(outputs, column))).collect();
        Some(CursorTable { database: get.table.database, table: get.table.id, locator, keys })
    }

    /// The conditions that only the cursor's present row of `get`'s table meets.
    pub(super) fn current_of(&mut self, cursor: &ast::CursorName, get: &Get, locator: ColumnRef) -> Result<Vec<BoundExpr>, SqlError> {
        let row = self.cx.cursor_row(cursor, &get.table).map_err(|error| error.at_line(self.statement.line))?;
        let mut predicates = Vec::with_capacity(row.keys.len() + 1);
        for (at, value) in row.keys {
            let column = get.columns.iter().find(|(position, _)| *position == at).map(|(_, column)| *column);
            if let Some(column) = column.filter(|_| !value.is_null()) {
                predicates.push(self.is_value(column, value));
            }
        }
        predicates.push(self.is_value(locator, Scalar::Binary(row.locator)));
        Ok(predicates)
    }

    fn is_value(&self, column: ColumnRef, value: Scalar) -> BoundExpr {
        let left = self.column_expr(column);
        let right = BoundExpr::literal(value, left.sql_type);
        let nullable = left.nullable;
        let kind = BoundExprKind::Compare { op: CompareOp::Equal, left: Box::new(left), right: Box::new(right) };
        BoundExpr { kind, sql_type: SqlType::Bit, nullable }
    }
}
