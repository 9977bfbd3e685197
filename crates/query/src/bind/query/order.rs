//! ORDER BY: positions, names of the select list, then expressions over FROM.
//!
//! A bare name that is a name of the select list means that item, even if FROM has a column so called; inside a larger
//! expression names mean columns of FROM. 108, 145, 104, 169, 408, 1008, 209 are raised here.

use super::select::Item;
use super::{BoundQuery, OutputName, Tail};
use crate::algebra::{BoundExpr, BoundExprKind, BoundSortKey, Rel};
use crate::bind::error::error;
use crate::bind::scope::same_name;
use crate::bind::{Binder, Clause, Level};
use thawdb_tsql::ast::{self, ExprKind, Literal};
use thawdb_types::SqlError;

/// What an ORDER BY item means.
pub(super) enum OrderKey {
    /// An item of the select list.
    Output(usize),
    /// Anything else.
    Expr(BoundExpr),
}

/// The select item at a written position.
fn position(item: &ast::OrderItem, count: usize) -> Result<Option<usize>, SqlError> {
    match &item.expr.kind {
        ExprKind::Literal(Literal::Integer(n)) => match usize::try_from(*n) {
            Ok(n) if (1..=count).contains(&n) => Ok(Some(n - 1)),
            _ => Err(error(108, &[n], item.expr.span)),
        },
        _ => Ok(None),
    }
}

fn bare_name(expr: &ast::Expr) -> Option<&ast::Ident> {
    match &expr.kind {
        ExprKind::Column(ast::ColumnName { table: None, column, .. }) => Some(column),
        _ => None,
    }
}

impl Binder<'_> {
    /// Binds the ORDER BY of a SELECT with these items.
    pub(super) fn bind_order(&mut self, order: &[ast::OrderItem], items: &[Item]) -> Result<Vec<(OrderKey, bool)>, SqlError> {
        let mut keys: Vec<(OrderKey, bool)> = Vec::with_capacity(order.len());
        for (index, item) in order.iter().enumerate() {
            let key = self.bind_order_item(item, index, items)?;
            let expr = |k: &OrderKey| match k {
                OrderKey::Output(i) => items[*i].expr.clone(),
                OrderKey::Expr(e) => e.clone(),
            };
            let this = expr(&key);
            if this.sql_type.is_incomparable() {
                return Err(error(if this.sql_type == thawdb_types::SqlType::Xml { 305 } else { 306 }, &[], item.expr.span));
            }
            if keys.iter().any(|(k, _)| expr(k).same(&this)) {
                return Err(error(169, &[], item.expr.span));
            }
            keys.push((key, item.descending));
        }
        Ok(keys)
    }

    fn bind_order_item(&mut self, item: &ast::OrderItem, index: usize, items: &[Item]) -> Result<OrderKey, SqlError> {
        if let Some(at) = position(item, items.len())? {
            return Ok(OrderKey::Output(at));
        }
        if let Some(name) = bare_name(&item.expr) {
            let mut named = items.iter().enumerate().filter(|(_, i)| same_name(&i.name, &name.text));
            if let Some((first, found)) = named.next() {
                let _ = found;
                if named.next().is_some() {
                    return Err(error(209, &[&name.text], name.span));
                }
                return Ok(OrderKey::Output(first));
            }
        }
        if matches!(item.expr.kind, ExprKind::Literal(_)) {
            return Err(error(408, &[&(index + 1)], item.expr.span));
        }
        let expr = self.within(Clause::OrderBy, |b| b.bind_expr(&item.expr))?;
        if matches!(expr.kind, BoundExprKind::Variable(_)) {
            return Err(error(1008, &[&(index + 1)], item.expr.span));
        }
        Ok(match items.iter().position(|i| i.expr.same(&expr)) {
            Some(at) => OrderKey::Output(at),
            None => OrderKey::Expr(expr),
        })
    }

    /// ORDER BY over a result whose columns are all there is: of a set operation or a parenthesised query, `body`.
    pub(super) fn order_outputs(&mut self, mut bound: BoundQuery, body: &ast::QueryBody, tail: Tail<'_>) -> Result<BoundQuery, SqlError> {
        let mut keys = Vec::with_capacity(tail.order_by.len());
        for item in tail.order_by {
            let at = match position(item, bound.outputs.len())? {
                Some(at) => at,
                None => match written_item(body, &item.expr).filter(|at| *at < bound.outputs.len()) {
                    Some(at) => at,
                    None => named_output(&bound.outputs, item)?,
                },
            };
            keys.push(BoundSortKey { expr: self.column_expr(bound.outputs[at].column), descending: item.descending });
        }
        if !keys.is_empty() {
            bound.rel = Rel::Sort { input: Box::new(bound.rel), keys: keys.clone() };
        }
        self.levels.push(Level::new());
        let limited = self.limit(bound.rel, None, tail.offset, keys);
        self.levels.pop();
        bound.rel = limited?;
        Ok(bound)
    }
}

/// The item of the first SELECT that is written just like this column with its table, as `t.a` in
/// `SELECT t.a FROM t UNION SELECT ... ORDER BY t.a`.
fn written_item(body: &ast::QueryBody, expr: &ast::Expr) -> Option<usize> {
    let ExprKind::Column(ast::ColumnName { table: Some(table), column, .. }) = &expr.kind else { return None };
    let parts = |name: &ast::ObjectName| [&name.database, &name.schema].map(|part| part.as_ref().map(|part| part.text.clone()));
    let is_it = |item: &ast::SelectItem| match item {
        ast::SelectItem::Expr { expr: ast::Expr { kind: ExprKind::Column(own), .. }, .. } => own.table.as_ref().is_some_and(|of| {
            same_name(&own.column.text, &column.text) && same_name(&of.name.text, &table.name.text) && parts(of) == parts(table)
        }),
        _ => false,
    };
    match body {
        // Behind a `*` items and columns no longer stand at the same places.
        ast::QueryBody::Select(select) if select.items.iter().all(|item| matches!(item, ast::SelectItem::Expr { .. })) => {
            select.items.iter().position(is_it)
        }
        ast::QueryBody::Select(_) => None,
        ast::QueryBody::Paren(query) => written_item(&query.body, expr),
        ast::QueryBody::Set { operands, .. } => written_item(operands.first()?, expr),
    }
}

fn named_output(outputs: &[OutputName], item: &ast::OrderItem) -> Result<usize, SqlError> {
    let name = bare_name(&item.expr).ok_or_else(|| error(104, &[], item.expr.span))?;
    let mut found = outputs.iter().enumerate().filter(|(_, o)| same_name(&o.name, &name.text));
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some((at, a)), Some((_, b))) if a.column == b.column => Ok(at),
        (Some(_), Some(_)) => Err(error(209, &[&name.text], name.span)),
        (None, _) => Err(error(207, &[&name.text], name.span)),
    }
}
