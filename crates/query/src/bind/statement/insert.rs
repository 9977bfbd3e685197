//! INSERT: VALUES, DEFAULT VALUES and SELECT, into base tables and table variables.
//!
//! Every value reaches the executor in its column's type, characters and bytes in their own length (see
//! [`crate::bind::coerce::store`]); NULL into NOT NULL is the executor's 515, length its 2628.

use super::{BoundInsert, BoundStmt};
use crate::access::AccessAction;
use crate::algebra::{BoundExpr, ColumnRef, Rel, Top};
use crate::bind::error::{error, not_built};
use crate::bind::query::{OutputName, QueryUse};
use crate::bind::scope::same_name;
use crate::bind::{Binder, Clause, Level, coerce};
use crate::compile::ChangeAction;
use crate::locking::LockHints;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, TableDef};
use thawdb_tsql::ast::{self, InsertSource, Span};
use thawdb_types::{Scalar, SqlError, SqlType};

impl Binder<'_> {
    /// Binds an INSERT statement.
    pub(crate) fn bind_insert(&mut self, insert: &ast::Insert) -> Result<BoundStmt, SqlError> {
        if let Some(with) = &insert.with {
            self.push_ctes(with)?;
        }
        let span = insert.target.span;
        let before = self.needs.len();
        let view = self.instead_view(&insert.target, &[], ChangeAction::Insert)?;
        let through = match (&view, &insert.target.kind) {
            (None, ast::DmlTargetKind::Name(name)) => self.view_columns(name, &insert.target)?,
            _ => None,
        };
        let of_view = view.is_some();
        let (table, insert) = match (view, through) {
            (Some(view), _) => (view.table, std::borrow::Cow::Borrowed(insert)),
            (None, None) => (self.find_target_table(&insert.target.kind, span)?, std::borrow::Cow::Borrowed(insert)),
            (None, Some((table, columns))) => {
                let insert = through_view(insert, &table, &columns)?;
                (table, std::borrow::Cow::Owned(insert))
            }
        };
        // A view is looked at for its columns: nothing of it is read.
        self.needs.truncate(before);
        let insert = &*insert;
        self.check_output(&insert.output, &table, &[ChangeAction::Insert])?;
        if !of_view {
            self.depend(&table, true);
        }
        self.hint_insert_target(&insert.target.hints, span)?;
        self.refuse_history(&table, Some(ChangeAction::Insert), span)?;
        let targets = self.insert_targets(&table, insert, span)?;
        if !matches!(insert.source, InsertSource::Values(_) | InsertSource::DefaultValues) {
            self.refuse_period(&table, &targets, span)?;
        }
        self.need_change(AccessAction::Insert, &table, if insert.columns.is_empty() { &[] } else { &targets });
        let (input, columns) = match &insert.source {
            InsertSource::Values(rows) => self.insert_values(&table, &targets, rows, insert.columns.is_empty(), span)?,
            InsertSource::DefaultValues => (Rel::OneRow, Vec::new()),
            InsertSource::Query(query) => self.insert_query(&table, &targets, query, insert.columns.is_empty())?,
            InsertSource::Execute(_) | InsertSource::ExecuteString(_) => return Err(not_built("INSERT ... EXEC", span)),
        };
        let input = self.insert_top(input, insert.top.as_ref())?;
        let targets = if matches!(insert.source, InsertSource::DefaultValues) { Vec::new() } else { targets };
        let defaults = self.missing_defaults(&table, &targets, span)?;
        let output = self.bind_output(&insert.output, &table, None)?.map(|mut o| {
            o.deleted.clear();
            o
        });
        let values = targets.into_iter().zip(columns).collect();
        let instead = of_view || self.is_instead(&table, ChangeAction::Insert);
        let computed = self.stored_computed(&table)?;
        let bound = BoundInsert { table, input, values, defaults, computed, output };
        Ok(if instead { self.instead_of_insert(bound) } else { BoundStmt::Insert(Box::new(bound)) })
    }

    /// Hints of the target: those about the whole table count, rows are locked anyway.
    fn hint_insert_target(&mut self, hints: &[ast::TableHint], span: Span) -> Result<(), SqlError> {
        super::target::refuse_dirty_target(hints, span)?;
        let mut locking = LockHints::default();
        for hint in hints {
            if let ast::TableHint::Word(word) = hint {
                locking.add(word).map_err(|error| error.at_line(span.line))?;
            }
        }
        if let Some(target) = self.dependencies.last_mut().filter(|target| target.writes) {
            target.whole = locking.table;
        }
        Ok(())
    }

    /// Positions of the columns the statement gives values for.
    pub(super) fn insert_targets(&self, table: &TableDef, insert: &ast::Insert, span: Span) -> Result<Vec<usize>, SqlError> {
        let identity_insert = self.cx.identity_insert(table);
        let is_default = matches!(insert.source, InsertSource::DefaultValues);
        if insert.columns.is_empty() {
            if identity_insert && table.columns.iter().any(|c| c.identity.is_some()) && !is_default {
                return Err(error(8101, &[&table.name], span));
            }
            return Ok((0..table.columns.len()).filter(|i| is_given(table, *i)).collect());
        }
        let mut targets = Vec::with_capacity(insert.columns.len());
        for name in &insert.columns {
            let index = table.columns.iter().position(|c| same_name(&c.name, &name.text));
            let index = index.ok_or_else(|| error(207, &[&name.text], name.span))?;
            if targets.contains(&index) {
                return Err(error(264, &[&name.text], name.span));
            }
            let column = &table.columns[index];
            if column.identity.is_some() && !identity_insert {
                return Err(error(544, &[&table.name], span));
            }
            if column.computed.is_some() {
                return Err(error(271, &[&column.name], span));
            }
            if column.sql_type == SqlType::RowVersion {
                return Err(error(273, &[], span));
            }
            targets.push(index);
        }
        let identity = table.columns.iter().position(|c| c.identity.is_some());
        match identity {
            Some(identity) if identity_insert && !targets.contains(&identity) => Err(error(545, &[&table.name], span)),
            _ => Ok(targets),
        }
    }

    fn insert_values(
        &mut self,
        table: &TableDef,
        targets: &[usize],
        rows: &[Vec<ast::Expr>],
        no_list: bool,
        span: Span,
    ) -> Result<(Rel, Vec<ColumnRef>), SqlError> {
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|r| r.len() != width) {
            return Err(error(10709, &[], span));
        }
        self.check_width(table, targets, width, if no_list { (213, 213) } else { (109, 110) }, span)?;
        let mut columns = Vec::with_capacity(width);
        let mut by_column = Vec::with_capacity(width);
        for (at, index) in targets.iter().enumerate() {
            let values = match self.period_value(table, *index) {
                Some(value) => {
                    if rows.iter().any(|row| !matches!(row[at].kind, ast::ExprKind::Default)) {
                        return Err(error(13_536, &[&self.full_name(table)], span));
                    }
                    vec![value; rows.len()]
                }
                None => self.column_values(&table.columns[*index], rows, at)?,
            };
            let sql_type = values.first().map_or(SqlType::Int, |v| v.sql_type);
            columns.push(self.columns.add(table.columns[*index].name.clone(), sql_type, values.iter().any(|v| v.nullable)));
            by_column.push(values.into_iter());
        }
        let rows = (0..rows.len()).map(|_| by_column.iter_mut().map(|c| c.next().expect("one value a row")).collect()).collect();
        Ok((Rel::Values { rows, columns: columns.clone() }, columns))
    }

    /// The values of one column in all rows: brought to one type among themselves, then to the column's.
    fn column_values(&mut self, column: &ColumnDef, rows: &[Vec<ast::Expr>], at: usize) -> Result<Vec<BoundExpr>, SqlError> {
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let value = &row[at];
            let bound = match value.kind {
                ast::ExprKind::Default if column.identity.is_some() => return Err(error(339, &[], value.span)),
                ast::ExprKind::Default => self.column_default(column, value.span)?,
                _ => self.bind_value(value)?,
            };
            values.push((bound, value.span));
        }
        if values.len() > 1 {
            let spans: Vec<Span> = values.iter().map(|(_, s)| *s).collect();
            let (unified, _) = coerce::unify(values, "VALUES")?;
            values = unified.into_iter().zip(spans).collect();
        }
        values.into_iter().map(|(v, s)| coerce::store(v, column.sql_type, s)).collect()
    }

    fn bind_value(&mut self, value: &ast::Expr) -> Result<BoundExpr, SqlError> {
        let mut level = Level::new();
        level.clause = Clause::Other;
        self.levels.push(level);
        let bound = self.bind_expr(value);
        self.levels.pop();
        bound.map_err(|e| match &value.kind {
            // A name among VALUES is no missing column: names are not permitted there at all.
            ast::ExprKind::Column(name) if e.number == 207 => error(128, &[&name.column.text], name.span),
            _ => e,
        })
    }

    fn insert_query(
        &mut self,
        table: &TableDef,
        targets: &[usize],
        query: &ast::Query,
        no_list: bool,
    ) -> Result<(Rel, Vec<ColumnRef>), SqlError> {
        let bound = self.bind_query(query, QueryUse::InsertSource)?;
        if !bound.assignments.is_empty() {
            return Err(error(199, &[], query.span));
        }
        let numbers = if no_list { (213, 213) } else { (120, 121) };
        self.check_width(table, targets, bound.outputs.len(), numbers, query.span)?;
        self.stored(bound.rel, &bound.outputs, targets.iter().map(|t| &table.columns[*t]), query.span)
    }

    /// `rel` with its `outputs` converted for `columns`.
    pub(super) fn stored<'d>(
        &mut self,
        rel: Rel,
        outputs: &[OutputName],
        columns: impl Iterator<Item = &'d ColumnDef>,
        span: Span,
    ) -> Result<(Rel, Vec<ColumnRef>), SqlError> {
        let mut exprs: Vec<(ColumnRef, BoundExpr)> = Vec::with_capacity(outputs.len());
        let mut ids = Vec::with_capacity(outputs.len());
        let mut computed = false;
        for (output, column) in outputs.iter().zip(columns) {
            let expr = coerce::store(self.column_expr(output.column), column.sql_type, span)?;
            computed |= expr.as_column().is_none();
            let id = self.name_expr(&column.name, &expr);
            if !exprs.iter().any(|(c, _)| *c == id) {
                exprs.push((id, expr));
            }
            ids.push(id);
        }
        Ok((if computed { Rel::Project { input: Box::new(rel), exprs } } else { rel }, ids))
    }

    /// Fewer and more values than columns have their numbers; without a list it is 213, or 8101 for one too many.
    pub(super) fn check_width(
        &self,
        table: &TableDef,
        targets: &[usize],
        width: usize,
        numbers: (i32, i32),
        span: Span,
    ) -> Result<(), SqlError> {
        if width == targets.len() {
            return Ok(());
        }
        let without_list = numbers.0 == 213 && targets.len() == (0..table.columns.len()).filter(|at| is_given(table, *at)).count();
        let identity = table.columns.iter().any(|c| c.identity.is_some());
        if without_list && identity && width == targets.len() + 1 {
            return Err(error(8101, &[&table.name], span));
        }
        Err(error(if width < targets.len() { numbers.0 } else { numbers.1 }, &[], span))
    }

    fn insert_top(&mut self, input: Rel, top: Option<&ast::Top>) -> Result<Rel, SqlError> {
        let Some(top) = top else { return Ok(input) };
        let limit = self.bind_count(&top.count, if top.percent { SqlType::Float } else { SqlType::BigInt })?;
        let top = Top { offset: None, limit: Some(limit), percent: top.percent, ties: Vec::new() };
        Ok(Rel::Limit { input: Box::new(input), top: Box::new(top) })
    }

    /// 13536 if rows of a query would give the period's columns values.
    pub(super) fn refuse_period(&self, table: &TableDef, targets: &[usize], span: Span) -> Result<(), SqlError> {
        if targets.iter().any(|at| table.period_column(*at).is_some()) {
            return Err(error(13_536, &[&self.full_name(table)], span));
        }
        Ok(())
    }

    /// Defaults of the columns without a value.
    pub(super) fn missing_defaults(
        &mut self,
        table: &Arc<TableDef>,
        targets: &[usize],
        span: Span,
    ) -> Result<Vec<(usize, BoundExpr)>, SqlError> {
        let mut defaults = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            if targets.contains(&index) {
                continue;
            }
            if let Some(value) = self.period_value(table, index) {
                defaults.push((index, value));
            } else if column.default.is_some() {
                defaults.push((index, self.column_default(column, span)?));
            }
        }
        Ok(defaults)
    }

    /// What DEFAULT means for a column: its default, or NULL.
    pub(super) fn column_default(&mut self, column: &ColumnDef, span: Span) -> Result<BoundExpr, SqlError> {
        let Some(text) = &column.default else {
            return Ok(BoundExpr::literal(Scalar::Null, column.sql_type));
        };
        let expr = parse_default(text).ok_or_else(|| error(102, &[text], span))?;
        let before = self.needs.len();
        let bound = self.bind_default_value(&expr, column);
        // What a default calls was asked about when it was made, and is called for the table's owner.
        self.needs.truncate(before);
        bound
    }

    /// A default's expression, converted to its column's type.
    pub(crate) fn bind_default_value(&mut self, expr: &ast::Expr, column: &ColumnDef) -> Result<BoundExpr, SqlError> {
        let levels = std::mem::take(&mut self.levels);
        let bound = self.bind_expr(expr);
        self.levels = levels;
        coerce::store(bound?, column.sql_type, expr.span)
    }
}

/// Whether an INSERT without a list of columns gives a value for it.
pub(super) fn is_given(table: &TableDef, at: usize) -> bool {
    let column = &table.columns[at];
    column.identity.is_none() && column.sql_type != SqlType::RowVersion && column.computed.is_none() && !table.is_hidden(at)
}

/// An INSERT through a view as one into its table: 4406 for columns that the table does not have as such.
pub(super) fn through_view(insert: &ast::Insert, table: &TableDef, columns: &[(String, Option<usize>)]) -> Result<ast::Insert, SqlError> {
    let derived = || match &insert.target.kind {
        ast::DmlTargetKind::Name(name) => error(4406, &[&crate::bind::scope::shown_object(name)], insert.target.span),
        _ => error(4406, &[&""], insert.target.span),
    };
    let mut mapped = insert.clone();
    let named = |at: usize, span: Span| ast::Ident { span, ..ast::Ident::new(table.columns[at].name.clone()) };
    if insert.columns.is_empty() {
        mapped.columns.clear();
        for (_, at) in columns {
            let at = at.ok_or_else(derived)?;
            if is_given(table, at) {
                mapped.columns.push(named(at, insert.target.span));
            }
        }
        return Ok(mapped);
    }
    for (slot, name) in mapped.columns.iter_mut().zip(&insert.columns) {
        let known = columns.iter().find(|(known, _)| same_name(known, &name.text));
        let (_, at) = known.ok_or_else(|| error(207, &[&name.text], name.span))?;
        *slot = named(at.ok_or_else(derived)?, name.span);
    }
    Ok(mapped)
}

/// The expression a stored default's text says.
fn parse_default(text: &str) -> Option<ast::Expr> {
    thawdb_tsql::parse_expr(text, &thawdb_tsql::ParseOptions::default()).ok()
}
