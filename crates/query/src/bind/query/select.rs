//! One SELECT: FROM, WHERE, GROUP BY, HAVING, the list, windows, DISTINCT, ORDER BY, TOP, in that order.
//!
//! ```text
//! from ─ Filter(where) ─ Aggregate ─ Filter(having) ─ Window* ─ Project ─ Distinct ─ Sort ─ Limit
//! ```

use super::group::{GroupCheck, Grouping};
use super::order::OrderKey;
use super::{BoundQuery, OutputName, Tail};
use crate::algebra::{BoundExpr, BoundExprKind, BoundSortKey, ColumnRef, Rel};
use crate::bind::error::{error, not_built};
use crate::bind::expr::binary;
use crate::bind::{Binder, Clause, Level, PendingWindow, coerce};
use thawdb_tsql::ast::{self, AssignOp, BinaryOp, ExprKind, SelectItem, Span};
use thawdb_types::SqlError;

/// An item of the select list.
pub(super) struct Item {
    pub expr: BoundExpr,
    pub name: String,
    pub span: Span,
    /// Name of the table of FROM that it is a column of.
    pub table: Option<String>,
}

/// The operator inside `+=` and its kin.
pub(crate) fn assign_operator(op: AssignOp) -> Option<BinaryOp> {
    Some(match op {
        AssignOp::Set => return None,
        AssignOp::Add => BinaryOp::Add,
        AssignOp::Subtract => BinaryOp::Subtract,
        AssignOp::Multiply => BinaryOp::Multiply,
        AssignOp::Divide => BinaryOp::Divide,
        AssignOp::Modulo => BinaryOp::Modulo,
        AssignOp::BitAnd => BinaryOp::BitAnd,
        AssignOp::BitOr => BinaryOp::BitOr,
        AssignOp::BitXor => BinaryOp::BitXor,
    })
}

impl Binder<'_> {
    pub(super) fn bind_select(&mut self, select: &ast::Select, tail: Tail<'_>) -> Result<BoundQuery, SqlError> {
        self.levels.push(Level::new());
        let bound = self.bind_select_level(select, tail);
        self.levels.pop();
        bound
    }

    fn bind_select_level(&mut self, select: &ast::Select, tail: Tail<'_>) -> Result<BoundQuery, SqlError> {
        let mut rel = self.bind_from(&select.from)?;
        if let Some(condition) = &select.where_ {
            let predicates = self.within(Clause::Where, |b| b.bind_condition(condition))?.conjuncts();
            rel = rel.filter(predicates);
        }
        self.level().named_windows.clone_from(&select.windows);
        let grouping = select.group_by.as_ref().map(|g| self.bind_group_by(g, select.span)).transpose()?;
        let (mut items, mut assignments) = self.within(Clause::Select, |b| b.bind_items(&select.items, select.into.is_some()))?;
        if !assignments.is_empty() && !items.is_empty() {
            return Err(error(141, &[], select.span));
        }
        let having = select.having.as_ref().map(|h| self.within(Clause::Having, |b| b.bind_condition(h))).transpose()?;
        let mut order = self.bind_order(tail.order_by, &items)?;
        let grouped = grouping.is_some() || having.is_some() || !self.level().aggregates.is_empty() || !self.level().groupings.is_empty();
        let mut having = having.map_or_else(Vec::new, BoundExpr::conjuncts);
        if grouped {
            let grouping = grouping.unwrap_or_default();
            let mut parts = Parts { items: &mut items, assignments: &mut assignments, having: &mut having, order: &mut order };
            rel = self.group(rel, &grouping, &mut parts, select)?;
        }
        rel = rel.filter(having);
        rel = self.plan_windows(rel);
        rel = self.plan_next_values(rel);
        if !assignments.is_empty() {
            return self.finish_assignments(rel, assignments, order, select, tail);
        }
        self.finish_select(rel, items, order, select, tail)
    }

    fn bind_items(&mut self, items: &[SelectItem], makes_table: bool) -> Result<(Vec<Item>, Vec<(usize, BoundExpr)>), SqlError> {
        let mut bound = Vec::with_capacity(items.len());
        let mut assignments = Vec::new();
        for item in items {
            match item {
                SelectItem::Wildcard { table, span } => self.bind_wildcard(table.as_ref(), *span, &mut bound)?,
                SelectItem::Expr { expr, alias } => {
                    let value = match identity_call(expr).filter(|_| makes_table) {
                        Some(call) => self.bind_identity(call, bound.len(), expr.span)?,
                        None => self.bind_expr(expr)?,
                    };
                    let name = alias.as_ref().map_or_else(|| self.natural_name(expr, &value), |a| a.text.clone());
                    let table = value.as_column().and_then(|column| self.table_of(column));
                    bound.push(Item { expr: value, name, span: expr.span, table });
                }
                SelectItem::Assign { variable, op, value } => {
                    let (index, sql_type) = self.cx.variable(&variable.name).ok_or_else(|| error(137, &[&variable.name], variable.span))?;
                    let mut expr = self.bind_expr(value)?;
                    if let Some(op) = assign_operator(*op) {
                        let before = BoundExpr::new(BoundExprKind::Variable(index), sql_type);
                        expr = binary(op, before, expr, value.span)?;
                    }
                    assignments.push((index, coerce::assign(expr, sql_type, value.span)?));
                }
            }
        }
        Ok((bound, assignments))
    }

    /// The name of an item without alias: a column's own, none for an expression.
    fn natural_name(&self, expr: &ast::Expr, value: &BoundExpr) -> String {
        match &expr.kind {
            ExprKind::Column(name) => match value.as_column() {
                Some(column) => self.column_name(column).unwrap_or_else(|| name.column.text.clone()),
                None => name.column.text.clone(),
            },
            ExprKind::Paren(inner) => self.natural_name(inner, value),
            ExprKind::Pseudo { .. } => value.as_column().and_then(|c| self.column_name(c)).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// The table of this level's FROM that has a column.
    fn table_of(&self, column: ColumnRef) -> Option<String> {
        let tables = &self.levels.last()?.tables;
        tables.iter().find(|t| t.columns.iter().any(|c| c.column == column)).map(|t| t.name.clone())
    }

    fn column_name(&self, column: ColumnRef) -> Option<String> {
        self.levels.iter().rev().flat_map(|l| &l.tables).flat_map(|t| &t.columns).find(|c| c.column == column).map(|c| c.name.clone())
    }

    fn bind_wildcard(&mut self, table: Option<&ast::ObjectName>, span: Span, items: &mut Vec<Item>) -> Result<(), SqlError> {
        if self.views_deep == 0 && self.cx.is_schema_bound() {
            return Err(error(1054, &[&"*"], span).with_state(6));
        }
        let tables = &self.level().tables;
        if tables.is_empty() {
            return Err(error(263, &[], span));
        }
        let wanted: Vec<_> = tables.iter().filter(|t| table.is_none_or(|name| t.is_called(name))).cloned().collect();
        if wanted.is_empty() {
            let name = table.map(crate::bind::scope::shown_object).unwrap_or_default();
            return Err(error(107, &[&name], span));
        }
        for (table, column) in wanted.iter().flat_map(|t| t.columns.iter().filter(|c| !c.hidden).map(move |column| (&t.name, column))) {
            self.use_column(column.column);
            items.push(Item { expr: self.column_expr(column.column), name: column.name.clone(), span, table: Some(table.clone()) });
        }
        Ok(())
    }

    fn group(&mut self, rel: Rel, grouping: &Grouping, parts: &mut Parts<'_>, select: &ast::Select) -> Result<Rel, SqlError> {
        let tables = self.level().tables.clone();
        let check = |message: i32, span: Span| GroupCheck { grouping, tables: &tables, message, span };
        for item in parts.items.iter_mut() {
            check(8120, item.span).apply(&mut item.expr)?;
        }
        for (_, expr) in parts.assignments.iter_mut() {
            check(8120, select.span).apply(expr)?;
        }
        let having_span = select.having.as_ref().map_or(select.span, |h| h.span);
        for expr in parts.having.iter_mut() {
            check(8121, having_span).apply(expr)?;
        }
        for (key, _) in parts.order.iter_mut() {
            if let OrderKey::Expr(expr) = key {
                check(8127, select.span).apply(expr)?;
            }
        }
        let mut windows = std::mem::take(&mut self.level().windows);
        for window in &mut windows {
            let own = window.function.exprs_mut().into_iter().chain(&mut window.partition);
            for expr in own.chain(window.order.iter_mut().map(|k| &mut k.expr)) {
                check(8120, select.span).apply(expr)?;
            }
        }
        let aggregates = std::mem::take(&mut self.level().aggregates);
        self.level().windows = windows;
        self.aggregate(rel, grouping, aggregates, select.span)
    }

    /// One Window operator per distinct partition and order.
    fn plan_windows(&mut self, mut rel: Rel) -> Rel {
        let mut pending = std::mem::take(&mut self.level().windows);
        while !pending.is_empty() {
            let first = pending.remove(0);
            let (same, rest): (Vec<_>, Vec<_>) = pending.into_iter().partition(|w| same_window(w, &first));
            pending = rest;
            let functions = std::iter::once((first.column, first.function)).chain(same.into_iter().map(|w| (w.column, w.function)));
            rel = Rel::Window { input: Box::new(rel), partition: first.partition, order: first.order, functions: functions.collect() };
        }
        rel
    }

    /// Values of sequences, computed once a row, below the select list.
    fn plan_next_values(&mut self, rel: Rel) -> Rel {
        let asked = std::mem::take(&mut self.level().next_values);
        if asked.is_empty() {
            return rel;
        }
        let mut exprs: Vec<(ColumnRef, BoundExpr)> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        exprs.extend(asked);
        Rel::Project { input: Box::new(rel), exprs }
    }

    /// IDENTITY(type, seed, increment) of SELECT INTO: the rows numbered, and a column of the new table that goes on from there.
    fn bind_identity(&mut self, call: &ast::FunctionCall, item: usize, span: Span) -> Result<BoundExpr, SqlError> {
        let (name, parameters) = match call.arguments.first().map(|a| &a.kind) {
            Some(ExprKind::Column(name)) => (name.column.text.clone(), Vec::new()),
            Some(ExprKind::Function(inner)) => (inner.name.name.text.clone(), inner.arguments.clone()),
            _ => return Err(error(102, &[&"IDENTITY"], span)),
        };
        let number = |expr: &ast::Expr| match &expr.kind {
            ExprKind::Literal(ast::Literal::Integer(n)) => Some(i64::from(*n)),
            ExprKind::Unary { op: ast::UnaryOp::Minus, operand } => match &operand.kind {
                ExprKind::Literal(ast::Literal::Integer(n)) => Some(-i64::from(*n)),
                _ => None,
            },
            _ => None,
        };
        let parameters: Vec<_> = parameters.iter().filter_map(number).map(thawdb_types::TypeArgument::Number).collect();
        let sql_type = thawdb_types::SqlType::from_name(&name, &parameters, thawdb_types::TypeUse::Cast, thawdb_types::Collation::DEFAULT)?;
        if !(sql_type.is_integer() || matches!(sql_type, thawdb_types::SqlType::Decimal { scale: 0, .. })) {
            return Err(error(2749, &[&""], span));
        }
        if self.identity_item.is_some() {
            return Err(error(2744, &[&""], span));
        }
        let argument = |at: usize| call.arguments.get(at).map_or(Ok(1), |e| number(e).ok_or_else(|| error(102, &[&"IDENTITY"], span)));
        let (seed, increment) = (argument(1)?, argument(2)?);
        self.identity_item = Some((item, thawdb_catalog::IdentityDef { seed, increment }));
        let big = thawdb_types::SqlType::BigInt;
        let number = self.columns.add("", big, false);
        let function = crate::algebra::BoundWindow::RowNumber;
        self.level().windows.push(PendingWindow { column: number, function, partition: Vec::new(), order: Vec::new() });
        let constant = |n: i64| BoundExpr::literal(thawdb_types::Scalar::BigInt(n), big);
        let scaled = binary(BinaryOp::Multiply, self.column_expr(number), constant(increment), span)?;
        let value = binary(BinaryOp::Add, scaled, constant(seed - increment), span)?;
        coerce::convert(value, sql_type, span)
    }

    /// A column for a value of the query's own: a column of an enclosing query is not produced here, only read.
    fn column_for(&mut self, produced: &[ColumnRef], name: &str, expr: &BoundExpr) -> ColumnRef {
        match expr.as_column() {
            Some(column) if !produced.contains(&column) => self.columns.add(name, expr.sql_type, expr.nullable),
            _ => self.name_expr(name, expr),
        }
    }

    fn finish_select(
        &mut self,
        mut rel: Rel,
        items: Vec<Item>,
        order: Vec<(OrderKey, bool)>,
        select: &ast::Select,
        tail: Tail<'_>,
    ) -> Result<BoundQuery, SqlError> {
        let mut exprs: Vec<(ColumnRef, BoundExpr)> = Vec::with_capacity(items.len());
        let mut outputs = Vec::with_capacity(items.len());
        let produced = rel.columns();
        for item in items {
            if select.distinct && item.expr.sql_type.is_incomparable() {
                return Err(error(421, &[&item.expr.sql_type.message_name()], item.span));
            }
            let column = self.column_for(&produced, &item.name, &item.expr);
            if !exprs.iter().any(|(c, _)| *c == column) {
                exprs.push((column, item.expr));
            }
            outputs.push(OutputName { name: item.name, column, table: item.table });
        }
        let mut keys = Vec::with_capacity(order.len());
        for (key, descending) in order {
            let column = match key {
                OrderKey::Output(index) => outputs[index].column,
                OrderKey::Expr(_) if select.distinct => return Err(error(145, &[], select.span)),
                OrderKey::Expr(expr) => {
                    let column = self.column_for(&produced, "", &expr);
                    if !exprs.iter().any(|(c, _)| *c == column) {
                        exprs.push((column, expr));
                    }
                    column
                }
            };
            keys.push(BoundSortKey { expr: self.column_expr(column), descending });
        }
        rel = Rel::Project { input: Box::new(rel), exprs };
        if select.distinct {
            rel = Rel::Distinct { input: Box::new(rel) };
        }
        if !keys.is_empty() {
            rel = Rel::Sort { input: Box::new(rel), keys: keys.clone() };
        }
        let rel = self.limit(rel, select.top.as_ref(), tail.offset, keys)?;
        Ok(BoundQuery { rel, outputs, assignments: Vec::new() })
    }

    /// SELECT @v = ...: values are computed row by row above order and limit, since they may read what was assigned before.
    fn finish_assignments(
        &mut self,
        mut rel: Rel,
        assignments: Vec<(usize, BoundExpr)>,
        order: Vec<(OrderKey, bool)>,
        select: &ast::Select,
        tail: Tail<'_>,
    ) -> Result<BoundQuery, SqlError> {
        if tail.usage != super::QueryUse::Statement {
            return Err(error(10734, &[], select.span));
        }
        if select.distinct {
            return Err(not_built("SELECT DISTINCT with assignments", select.span));
        }
        let keys: Vec<_> = order
            .into_iter()
            .map(|(key, descending)| match key {
                OrderKey::Expr(expr) => BoundSortKey { expr, descending },
                OrderKey::Output(_) => BoundSortKey { expr: BoundExpr::null(), descending },
            })
            .collect();
        if !keys.is_empty() {
            rel = Rel::Sort { input: Box::new(rel), keys: keys.clone() };
        }
        rel = self.limit(rel, select.top.as_ref(), tail.offset, keys)?;
        Ok(BoundQuery { rel, outputs: Vec::new(), assignments })
    }
}

/// The call, if the item is IDENTITY(...).
fn identity_call(expr: &ast::Expr) -> Option<&ast::FunctionCall> {
    match &expr.kind {
        ExprKind::Function(call) if call.name.is_simple() && call.name.name.is("IDENTITY") => Some(call),
        _ => None,
    }
}

/// What grouping rewrites.
struct Parts<'p> {
    items: &'p mut Vec<Item>,
    assignments: &'p mut Vec<(usize, BoundExpr)>,
    having: &'p mut Vec<BoundExpr>,
    order: &'p mut Vec<(OrderKey, bool)>,
}

fn same_window(a: &PendingWindow, b: &PendingWindow) -> bool {
    let keys = |x: &[BoundSortKey], y: &[BoundSortKey]| {
        x.len() == y.len() && x.iter().zip(y).all(|(a, b)| a.descending == b.descending && a.expr.same(&b.expr))
    };
    a.partition.len() == b.partition.len() && a.partition.iter().zip(&b.partition).all(|(x, y)| x.same(y)) && keys(&a.order, &b.order)
}
