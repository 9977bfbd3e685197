//! PIVOT and UNPIVOT, said in words the binder knows already.
//!
//! ```text
//! t PIVOT (SUM(a) FOR c IN ([x], [y])) p   ─►  SELECT others, SUM(CASE WHEN c = 'x' THEN a END) AS [x], ... FROM t GROUP BY others
//! t UNPIVOT (v FOR n IN (x, y)) u          ─►  SELECT others, v, n FROM t CROSS APPLY (VALUES ('x', x), ('y', y)) WHERE v IS NOT NULL
//! ```
//!
//! The others are all columns of the input that the clause does not name: the input is bound once to learn them, and
//! again as part of what it means.
//!
//! Failure: 207 for a column the input has not; 8167 for columns of several types in UNPIVOT; 102 for an aggregate over
//! something else than a column.

use super::{BoundTable, derived_scope, need_alias};
use crate::bind::Binder;
use crate::bind::error::error;
use crate::bind::query::QueryUse;
use crate::bind::scope::{ScopeColumn, same_name};
use thawdb_tsql::ast::{self, QueryBody, StmtKind, TableRefKind};
use thawdb_types::SqlError;

fn quoted(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

fn literal(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

impl Binder<'_> {
    pub(super) fn bind_pivot(&mut self, pivot: &ast::Pivot, span: ast::Span) -> Result<BoundTable, SqlError> {
        let alias = need_alias(pivot.alias.as_ref(), span)?;
        let columns = self.columns_of(&pivot.input)?;
        let argument = match pivot.arguments.as_slice() {
            [ast::Expr { kind: ast::ExprKind::Column(column), .. }] => &column.column.text,
            _ => return Err(error(102, &[&")"], span)),
        };
        let by = &pivot.column.column.text;
        for name in [by, argument] {
            find(&columns, name).ok_or_else(|| error(207, &[name], pivot.column.span))?;
        }
        let others: Vec<String> =
            columns.iter().filter(|c| !same_name(&c.name, by) && !same_name(&c.name, argument)).map(|c| quoted(&c.name)).collect();
        let aggregate = |value: &ast::Ident| {
            let (by, argument) = (quoted(by), quoted(argument));
            let case = format!("CASE WHEN {by} = {} THEN {argument} END", literal(&value.text));
            format!("{}({case}) AS {}", pivot.aggregate.name.text, quoted(&value.text))
        };
        let items: Vec<String> = others.iter().cloned().chain(pivot.values.iter().map(aggregate)).collect();
        let group = if others.is_empty() { String::new() } else { format!(" GROUP BY {}", others.join(", ")) };
        let text = format!("SELECT {} FROM x{group}", items.join(", "));
        self.bind_rewritten(&text, &pivot.input, alias, span)
    }

    pub(super) fn bind_unpivot(&mut self, unpivot: &ast::Unpivot, span: ast::Span) -> Result<BoundTable, SqlError> {
        let alias = need_alias(unpivot.alias.as_ref(), span)?;
        let columns = self.columns_of(&unpivot.input)?;
        let mut first = None;
        for column in &unpivot.columns {
            let name = &column.column.text;
            let found = find(&columns, name).ok_or_else(|| error(207, &[name], column.span))?;
            let sql_type = self.columns.info(found.column).sql_type;
            if *first.get_or_insert(sql_type) != sql_type {
                return Err(error(8167, &[name], column.span));
            }
        }
        let named = |c: &&ScopeColumn| !unpivot.columns.iter().any(|column| same_name(&column.column.text, &c.name));
        let mut items: Vec<String> = columns.iter().filter(named).map(|c| quoted(&c.name)).collect();
        let (value, name) = (quoted(&unpivot.value.text), quoted(&unpivot.column.text));
        items.extend([format!("[unpivoted$].{value}"), format!("[unpivoted$].{name}")]);
        let row = |column: &ast::ColumnName| {
            let column = &column.column.text;
            format!("(CAST({} AS nvarchar(128)), {})", literal(column), quoted(column))
        };
        let rows: Vec<String> = unpivot.columns.iter().map(row).collect();
        let text = format!(
            "SELECT {} FROM x CROSS APPLY (VALUES {}) AS [unpivoted$] ({name}, {value}) WHERE [unpivoted$].{value} IS NOT NULL",
            items.join(", "),
            rows.join(", ")
        );
        self.bind_rewritten(&text, &unpivot.input, alias, span)
    }

    fn columns_of(&mut self, input: &ast::TableRef) -> Result<Vec<ScopeColumn>, SqlError> {
        let (_, tables) = self.bind_table_ref(input)?;
        Ok(tables.into_iter().flat_map(|table| table.columns).collect())
    }

    /// Binds a query whose table `x` is `input`.
    fn bind_rewritten(&mut self, text: &str, input: &ast::TableRef, alias: &ast::Alias, span: ast::Span) -> Result<BoundTable, SqlError> {
        let batch = thawdb_tsql::parse_batch(text, &thawdb_tsql::ParseOptions { quoted_identifier: true });
        let statement = batch.statements.into_iter().next().map(|statement| statement.kind);
        let Some(StmtKind::Select(mut query)) = statement.filter(|_| batch.errors.is_empty()) else {
            return Err(error(102, &[&alias.name.text], span));
        };
        if let QueryBody::Select(select) = &mut query.body
            && let Some(from) = select.from.first_mut()
        {
            match &mut from.kind {
                TableRefKind::Apply { left, .. } => **left = input.clone(),
                _ => *from = input.clone(),
            }
        }
        // The text is one line of ours: what is wrong with it is wrong with the clause.
        let bound = self.bind_query(&query, QueryUse::Derived).map_err(|wrong| wrong.at_line(span.line));
        let mut bound = bound?;
        crate::bind::query::rename_outputs(&mut bound.outputs, &alias.columns, &alias.name.text, span)?;
        Ok((bound.rel, vec![derived_scope(&bound.outputs, &alias.name.text)]))
    }
}

fn find<'c>(columns: &'c [ScopeColumn], name: &str) -> Option<&'c ScopeColumn> {
    columns.iter().find(|column| same_name(&column.name, name))
}
