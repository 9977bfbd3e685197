//! UPDATE: new values over the rows of [`super::target`].
//!
//! 8102 for IDENTITY, 272 for rowversion, 264 for a column set twice are raised here; NULL and length are the executor's.

use super::output::InputColumns;
use super::target::Target;
use super::{BoundStmt, BoundUpdate};
use crate::access::AccessAction;
use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Rel};
use crate::bind::error::{error, not_built};
use crate::bind::expr::binary;
use crate::bind::query::assign_operator;
use crate::bind::scope::same_name;
use crate::bind::{Binder, Clause, Level, coerce};
use crate::compile::ChangeAction;
use thawdb_catalog::TableDef;
use thawdb_tsql::ast::{self, Assignment, ExprKind};
use thawdb_types::{SqlError, SqlType};

/// What SET says, bound.
#[derive(Default)]
pub(super) struct Assignments {
    pub(super) columns: Vec<(usize, BoundExpr)>,
    /// Variable, and either a value or the column whose new value it takes.
    pub(super) variables: Vec<(usize, VariableValue)>,
}

pub(super) enum VariableValue {
    Expr(BoundExpr),
    NewColumn(usize),
}

impl Binder<'_> {
    /// Binds an UPDATE statement.
    pub(crate) fn bind_update(&mut self, update: &ast::Update) -> Result<BoundStmt, SqlError> {
        if let Some(with) = &update.with {
            self.push_ctes(with)?;
        }
        self.levels.push(Level::new());
        let bound = self.bind_update_level(update);
        self.levels.pop();
        bound
    }

    fn bind_update_level(&mut self, update: &ast::Update) -> Result<BoundStmt, SqlError> {
        let view = self.instead_view(&update.target, &update.from, ChangeAction::Update)?;
        let of_view = view.is_some();
        let target = match view {
            Some(view) => self.instead_target(view, update.where_.as_ref())?,
            None => self.bind_target(&update.target, &update.from, update.where_.as_ref())?,
        };
        let table = target.table.clone();
        self.refuse_history(&table, Some(ChangeAction::Update), update.target.span)?;
        self.check_output(&update.output, &table, &[ChangeAction::Update])?;
        let mut set = self.within(Clause::Set, |b| b.bind_assignments(&update.assignments, &target))?;
        let input = InputColumns { deleted: target.columns.clone(), target: target.position, merge: false };
        let set_columns: Vec<usize> = set.columns.iter().map(|(at, _)| *at).collect();
        if !of_view && !set.columns.is_empty() {
            self.begin_period(&table, &mut set.columns);
        }
        self.target_rows(&table);
        self.need_change(AccessAction::Update, &table, &set_columns);
        let output = self.bind_output(&update.output, &table, Some(&input))?;
        let inserted = match &output {
            Some(output) => output.inserted.clone(),
            None => table.columns.iter().map(|c| self.columns.add(c.name.clone(), c.sql_type, c.nullable)).collect(),
        };
        let mut rel = self.target_top(target.rel, update.top.as_ref())?;
        let subqueries = set.columns.iter().any(|(_, e)| e.has_subquery());
        if target.joined || subqueries {
            let extra = output.as_ref().map_or_else(Vec::new, |o| o.items.iter().flat_map(|(_, e)| e.free_columns()).collect());
            rel = self.project_new_values(rel, target.locator, &target.columns, &mut set, &extra);
        }
        if target.joined {
            rel = self.once(rel, target.locator);
        }
        if of_view || self.is_instead(&table, ChangeAction::Update) {
            if !set.variables.is_empty() {
                return Err(not_built("SET @variable where an INSTEAD OF trigger runs", update.target.span));
            }
            return Ok(self.instead_of_update((table, rel), target.columns, set.columns, output));
        }
        let computed = self.stored_computed(&table)?;
        let variables = set
            .variables
            .into_iter()
            .map(|(variable, value)| match value {
                VariableValue::Expr(expr) => (variable, expr),
                VariableValue::NewColumn(index) => (variable, self.column_expr(inserted[index])),
            })
            .collect();
        Ok(BoundStmt::Update(Box::new(BoundUpdate {
            table,
            input: rel,
            locator: target.locator,
            old: target.columns,
            assignments: set.columns,
            computed,
            variables,
            output,
            inserted,
        })))
    }

    pub(super) fn bind_assignments(&mut self, assignments: &[Assignment], target: &Target) -> Result<Assignments, SqlError> {
        let (table, columns) = (&*target.table, target.columns.as_slice());
        let named = assignments.iter().filter_map(|assignment| match assignment {
            Assignment::Column { column, .. } | Assignment::Method { column, .. } => Some(column),
            Assignment::Variable { column, .. } => column.as_ref(),
        });
        for column in named {
            let at = target.names.iter().find(|(name, _)| same_name(name, &column.column.text)).map(|(_, at)| *at);
            if at.is_some_and(|at| table.period_column(at).is_some()) {
                return Err(error(13_537, &[&self.full_name(table)], column.span));
            }
        }
        let mut set = Assignments::default();
        for assignment in assignments {
            match assignment {
                Assignment::Column { column, op, value } => {
                    let index = set_column(column, target, &set)?;
                    let value = self.new_value(table, columns, index, *op, value)?;
                    set.columns.push((index, value));
                }
                Assignment::Variable { variable, column, op, value } => {
                    let (slot, sql_type) = self.cx.variable(&variable.name).ok_or_else(|| error(137, &[&variable.name], variable.span))?;
                    match column {
                        Some(column) => {
                            let index = set_column(column, target, &set)?;
                            let new = self.new_value(table, columns, index, *op, value)?;
                            set.columns.push((index, new));
                            if table.columns[index].sql_type != sql_type {
                                return Err(not_built("@v = column = value with another type than the column's", variable.span));
                            }
                            set.variables.push((slot, VariableValue::NewColumn(index)));
                        }
                        None => {
                            let mut expr = self.bind_expr(value)?;
                            if let Some(op) = assign_operator(*op) {
                                expr = binary(op, BoundExpr::new(BoundExprKind::Variable(slot), sql_type), expr, value.span)?;
                            }
                            set.variables.push((slot, VariableValue::Expr(coerce::assign(expr, sql_type, value.span)?)));
                        }
                    }
                }
                Assignment::Method { column, method, arguments } => {
                    let index = set_column(column, target, &set)?;
                    let value = match (method.is("modify"), arguments.as_slice()) {
                        (true, [text]) => {
                            let receiver = ast::Expr { kind: ExprKind::Column(column.clone()), span: column.span };
                            self.bind_modify(&receiver, text)?
                        }
                        _ => self.mutated(&table.columns[index], columns[index], method, arguments)?,
                    };
                    set.columns.push((index, value));
                }
            }
        }
        Ok(set)
    }

    fn new_value(
        &mut self,
        table: &TableDef,
        columns: &[ColumnRef],
        index: usize,
        op: ast::AssignOp,
        value: &ast::Expr,
    ) -> Result<BoundExpr, SqlError> {
        let column = &table.columns[index];
        let mut bound = match value.kind {
            ExprKind::Default => self.column_default(column, value.span)?,
            _ => self.bind_expr(value)?,
        };
        if let Some(op) = assign_operator(op) {
            bound = binary(op, self.column_expr(columns[index]), bound, value.span)?;
        }
        coerce::store(bound, column.sql_type, value.span)
    }

    /// `column.WRITE(value, offset, length)`: the column's new value.
    fn mutated(
        &mut self,
        column: &thawdb_catalog::ColumnDef,
        old: ColumnRef,
        method: &ast::Ident,
        arguments: &[ast::Expr],
    ) -> Result<BoundExpr, SqlError> {
        let (sql_type, span) = (column.sql_type, method.span);
        if !(method.is("WRITE") && sql_type.max_length() == -1 && (sql_type.is_text() || sql_type.is_binary())) {
            return Err(error(258, &[&sql_type.message_name()], span));
        }
        let [value, offset, length] = arguments else {
            return Err(error(174, &[&method.text, &3], span));
        };
        let mut bound = vec![self.column_expr(old), coerce::convert(self.bind_expr(value)?, sql_type, value.span)?];
        for number in [offset, length] {
            bound.push(coerce::convert(self.bind_expr(number)?, thawdb_types::SqlType::BigInt, number.span)?);
        }
        let kind = BoundExprKind::Function { name: "WRITE", arguments: bound };
        Ok(BoundExpr { kind, sql_type, nullable: true })
    }

    /// Computes new values below, so that joins may multiply rows and subqueries become joins without harm.
    fn project_new_values(&mut self, rel: Rel, locator: ColumnRef, old: &[ColumnRef], set: &mut Assignments, extra: &[ColumnRef]) -> Rel {
        let have = rel.columns();
        let mut exprs = vec![(locator, self.column_expr(locator))];
        let through = |exprs: &mut Vec<(ColumnRef, BoundExpr)>, column: ColumnRef, b: &Self| {
            if have.contains(&column) && !exprs.iter().any(|(c, _)| *c == column) {
                exprs.push((column, b.column_expr(column)));
            }
        };
        for column in old.iter().chain(extra) {
            through(&mut exprs, *column, self);
        }
        for (_, value) in &set.variables {
            if let VariableValue::Expr(expr) = value {
                expr.free_columns().into_iter().for_each(|c| through(&mut exprs, c, self));
            }
        }
        for (_, value) in &mut set.columns {
            if matches!(value.kind, BoundExprKind::Literal(_) | BoundExprKind::Variable(_)) {
                continue;
            }
            // Always a column of its own: an assigned column of the target must not be mistaken for its old value.
            let column = self.columns.add("", value.sql_type, value.nullable);
            exprs.push((column, value.clone()));
            *value = self.column_expr(column);
        }
        Rel::Project { input: Box::new(rel), exprs }
    }
}

fn set_column(name: &ast::ColumnName, target: &Target, set: &Assignments) -> Result<usize, SqlError> {
    let index = target.names.iter().find(|(n, _)| same_name(n, &name.column.text)).map(|(_, i)| *i);
    if index.is_none() && target.derived.iter().any(|derived| same_name(derived, &name.column.text)) {
        let computed = target.table.columns.iter().find(|c| c.is_virtual() && same_name(&c.name, &name.column.text));
        return Err(computed.map_or_else(|| error(4406, &[&target.name], name.span), |c| error(271, &[&c.name], name.span)));
    }
    let index = index.ok_or_else(|| error(207, &[&name.column.text], name.span))?;
    if set.columns.iter().any(|(i, _)| *i == index) {
        return Err(error(264, &[&name.column.text], name.span));
    }
    let column = &target.table.columns[index];
    if column.identity.is_some() {
        return Err(error(8102, &[&column.name], name.span));
    }
    if column.computed.is_some() {
        return Err(error(271, &[&column.name], name.span));
    }
    if column.sql_type == SqlType::RowVersion {
        return Err(error(272, &[], name.span));
    }
    Ok(index)
}
