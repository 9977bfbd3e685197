//! OUTPUT: values of changed rows, to the client or into a table.
//!
//! `inserted` is the row as stored, `deleted` the row as it was; of UPDATE and DELETE also columns of other tables of
//! FROM. A bare name never means the target's columns.

use super::insert::is_given;
use super::{BoundOutput, OutputInto};
use crate::access::AccessAction;
use crate::algebra::{BoundExpr, ColumnRef};
use crate::bind::error::error;
use crate::bind::scope::{ScopeColumn, ScopeTable, same_name};
use crate::bind::{Binder, Clause, Level, coerce};
use crate::compile::ChangeAction;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_tsql::ast::{self, SelectItem};
use thawdb_types::SqlError;

/// What UPDATE and DELETE offer to OUTPUT besides the new row.
pub(super) struct InputColumns {
    /// The old row.
    pub deleted: Vec<ColumnRef>,
    /// Position of the target among the level's tables.
    pub target: usize,
    /// Whether rows may be without the new row: those MERGE deletes.
    pub merge: bool,
}

impl Binder<'_> {
    pub(super) fn bind_output(
        &mut self,
        outputs: &[ast::Output],
        table: &Arc<TableDef>,
        input: Option<&InputColumns>,
    ) -> Result<Option<BoundOutput>, SqlError> {
        let (output, client) = match outputs {
            [] => return Ok(None),
            [one] => (one, None),
            [first, second, ..] => match (&first.into, &second.into) {
                (Some(_), None) => (first, Some(second)),
                (None, Some(_)) => (second, Some(first)),
                _ => return Err(error(102, &[&"OUTPUT"], second.span)),
            },
        };
        let inserted: Vec<ColumnRef> = {
            let optional = input.is_some_and(|input| input.merge);
            table.columns.iter().map(|c| self.columns.add(c.name.clone(), c.sql_type, c.nullable || optional)).collect()
        };
        let mut level = Level::new();
        level.clause = Clause::Output;
        level.tables.push(pseudo_table("inserted", table, &inserted));
        self.need_output(table, &inserted);
        if let Some(input) = input {
            level.tables.push(pseudo_table("deleted", table, &input.deleted));
            self.need_output(table, &input.deleted);
            let others = &self.levels.last().expect("UPDATE and DELETE have a level").tables;
            level.tables.extend(others.iter().enumerate().filter(|(i, _)| *i != input.target).map(|(_, t)| t.clone()));
        }
        // The target itself is out of reach: enclosing levels are set aside.
        let levels = std::mem::replace(&mut self.levels, vec![level]);
        let items = self.bind_output_items(output);
        let more = client.map_or(Ok(Vec::new()), |client| self.bind_output_items(client));
        self.levels = levels;
        let (mut items, mut more) = (items?, more?);
        for (_, item) in items.iter_mut().chain(&mut more) {
            self.expand_virtual(item, table, &inserted)?;
            if let Some(input) = input {
                self.expand_virtual(item, table, &input.deleted)?;
            }
        }
        let into = output.into.as_ref().map(|into| self.bind_into(into, &mut items, output.span)).transpose()?;
        items.append(&mut more);
        Ok(Some(BoundOutput { inserted, deleted: input.map_or_else(Vec::new, |i| i.deleted.clone()), items, into }))
    }

    fn bind_output_items(&mut self, output: &ast::Output) -> Result<Vec<(String, BoundExpr)>, SqlError> {
        let mut items = Vec::with_capacity(output.items.len());
        for item in &output.items {
            match item {
                SelectItem::Wildcard { table, span } => {
                    let tables = &self.level().tables;
                    let wanted: Vec<ScopeTable> =
                        tables.iter().filter(|t| table.as_ref().is_none_or(|name| t.is_called(name))).cloned().collect();
                    if wanted.is_empty() || table.is_none() {
                        return Err(error(107, &[&table.as_ref().map(|t| t.name.text.clone()).unwrap_or_default()], *span));
                    }
                    let columns = wanted.into_iter().flat_map(|t| t.columns).inspect(|c| self.use_column(c.column));
                    items.extend(columns.map(|c| (c.name, self.column_expr(c.column))).collect::<Vec<_>>());
                }
                SelectItem::Expr { expr, alias } => {
                    let bound = self.bind_expr(expr)?;
                    if bound.has_subquery() {
                        return Err(error(10705, &[], expr.span));
                    }
                    let name = match (alias, &expr.kind) {
                        (Some(alias), _) => alias.text.clone(),
                        (None, ast::ExprKind::Column(name)) => name.column.text.clone(),
                        (None, ast::ExprKind::Pseudo { name, .. }) => format!("${name}"),
                        (None, _) => String::new(),
                    };
                    items.push((name, bound));
                }
                SelectItem::Assign { variable, .. } => return Err(error(102, &[&variable.name], variable.span)),
            }
        }
        Ok(items)
    }

    fn bind_into(&mut self, into: &ast::OutputInto, items: &mut [(String, BoundExpr)], span: ast::Span) -> Result<OutputInto, SqlError> {
        let table = self.find_target_table(&into.target, span)?;
        self.depend(&table, true);
        let through = self.target_view.take();
        self.need_change(AccessAction::Insert, &table, &[]);
        self.target_view = through;
        let targets: Vec<usize> = if into.columns.is_empty() {
            (0..table.columns.len()).filter(|i| is_given(&table, *i)).collect()
        } else {
            let find = |name: &ast::Ident| {
                let index = table.columns.iter().position(|c| same_name(&c.name, &name.text));
                index.ok_or_else(|| error(207, &[&name.text], name.span))
            };
            into.columns.iter().map(find).collect::<Result<_, _>>()?
        };
        if targets.len() != items.len() {
            let number = match (into.columns.is_empty(), items.len() < targets.len()) {
                (true, _) => 213,
                (false, true) => 120,
                (false, false) => 121,
            };
            return Err(error(number, &[], span));
        }
        for ((_, item), target) in items.iter_mut().zip(&targets) {
            *item = coerce::store(item.clone(), table.columns[*target].sql_type, span)?;
        }
        if let Some(at) = targets.iter().find(|at| table.columns[**at].computed.is_some()) {
            return Err(error(271, &[&table.columns[*at].name], span));
        }
        self.refuse_history(&table, Some(ChangeAction::Insert), span)?;
        self.refuse_period(&table, &targets, span)?;
        let defaults = self.missing_defaults(&table, &targets, span)?;
        let computed = self.stored_computed(&table)?;
        Ok(OutputInto { table, targets, defaults, computed })
    }
}

fn pseudo_table(name: &str, table: &TableDef, columns: &[ColumnRef]) -> ScopeTable {
    let column = |at: usize, id: &ColumnRef| ScopeColumn { name: table.columns[at].name.clone(), column: *id, hidden: table.is_hidden(at) };
    let columns = columns.iter().enumerate().map(|(at, id)| column(at, id)).collect();
    ScopeTable { name: name.to_string(), alias: true, schema: String::new(), database: None, columns, base: None, qualified_only: true }
}
