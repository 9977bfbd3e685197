//! Queries: WITH, the body, ORDER BY and what surrounds it.

pub(crate) mod auto_nesting;
mod for_json;
mod for_xml;
mod group;
mod order;
mod select;
mod set_operation;
mod with;

pub(crate) use select::assign_operator;
pub(crate) use with::rename_outputs;

use super::error::error;
use super::{Binder, Clause};
use crate::algebra::{BoundExpr, ColumnRef, Rel, Top};
use thawdb_tsql::ast::{self, ForClause, QueryBody};
use thawdb_types::{SqlError, SqlType};

/// Where a query stands: decides what its ORDER BY may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryUse {
    /// A statement of its own.
    Statement,
    /// The source of INSERT ... SELECT.
    InsertSource,
    /// A derived table, view or common table expression.
    Derived,
    /// A subquery giving a value.
    Subquery,
    /// EXISTS.
    Exists,
}

/// A column of a query's result.
#[derive(Debug, Clone)]
pub struct OutputName {
    /// Its name; empty for none.
    pub name: String,
    /// The column.
    pub column: ColumnRef,
    /// Name of the table of FROM that it is a column of.
    pub table: Option<String>,
}

/// A bound query.
#[derive(Debug)]
pub struct BoundQuery {
    /// Its rows.
    pub rel: Rel,
    /// Its columns; one may stand there twice.
    pub outputs: Vec<OutputName>,
    /// SELECT @v = ...: then there are no outputs.
    pub assignments: Vec<(usize, BoundExpr)>,
}

/// What surrounds a SELECT or set operation.
#[derive(Clone, Copy)]
pub(super) struct Tail<'q> {
    pub order_by: &'q [ast::OrderItem],
    pub offset: Option<&'q ast::Offset>,
    pub usage: QueryUse,
}

impl Binder<'_> {
    /// Binds a query with all around it.
    pub(crate) fn bind_query(&mut self, query: &ast::Query, usage: QueryUse) -> Result<BoundQuery, SqlError> {
        match &query.for_clause {
            None | Some(ForClause::Browse | ForClause::ReadOnly | ForClause::Update(_)) => {}
            Some(ForClause::Xml { mode, name, options }) => {
                return self.bind_for_xml(query, (mode, name.as_deref()), options, usage);
            }
            Some(ForClause::Json { mode, options }) => return self.bind_for_json(query, mode, options, usage),
        }
        self.bind_rows(query, usage)
    }

    /// Binds a query whatever its FOR clause says.
    fn bind_rows(&mut self, query: &ast::Query, usage: QueryUse) -> Result<BoundQuery, SqlError> {
        let reach = self.ctes.len();
        if let Some(with) = &query.with {
            self.push_ctes(with)?;
        }
        let depth = max_recursion(&query.hints);
        let outer_depth = self.recursion_max;
        self.recursion_max = depth.unwrap_or(outer_depth);
        let tail = Tail { order_by: &query.order_by, offset: query.offset.as_ref(), usage };
        let bound = self.bind_body(&query.body, tail);
        self.recursion_max = outer_depth;
        self.ctes.truncate(reach);
        bound
    }

    pub(super) fn bind_body(&mut self, body: &QueryBody, tail: Tail<'_>) -> Result<BoundQuery, SqlError> {
        match body {
            QueryBody::Select(select) => {
                self.check_order_allowed(tail, select.top.is_some(), select.span)?;
                self.bind_select(select, tail)
            }
            QueryBody::Paren(query) => {
                if tail.order_by.is_empty() && tail.offset.is_none() {
                    return self.bind_query(query, tail.usage);
                }
                self.check_order_allowed(tail, false, query.span)?;
                let bound = self.bind_query(query, QueryUse::Derived)?;
                self.order_outputs(bound, body, tail)
            }
            QueryBody::Set { op, operands, span } => {
                self.check_order_allowed(tail, false, *span)?;
                let bound = self.bind_set(*op, operands, *span)?;
                self.order_outputs(bound, body, tail)
            }
        }
    }

    /// 1033: an order means nothing inside, unless it decides which rows there are.
    fn check_order_allowed(&self, tail: Tail<'_>, has_top: bool, span: ast::Span) -> Result<(), SqlError> {
        let inside = !matches!(tail.usage, QueryUse::Statement | QueryUse::InsertSource);
        if inside && !tail.order_by.is_empty() && !has_top && tail.offset.is_none() { Err(error(1033, &[], span)) } else { Ok(()) }
    }

    /// The Limit that TOP or OFFSET mean, over `rel`.
    pub(super) fn limit(
        &mut self,
        rel: Rel,
        top: Option<&ast::Top>,
        offset: Option<&ast::Offset>,
        ties: Vec<crate::algebra::BoundSortKey>,
    ) -> Result<Rel, SqlError> {
        let top = match (top, offset) {
            (None, None) => return Ok(rel),
            (Some(top), None) => {
                let target = if top.percent { SqlType::Float } else { SqlType::BigInt };
                let limit = self.within(Clause::Other, |b| b.bind_count(&top.count, target))?;
                let ties = if top.with_ties { ties } else { Vec::new() };
                if top.with_ties && ties.is_empty() {
                    return Err(error(1062, &[], top.count.span));
                }
                Top { offset: None, limit: Some(limit), percent: top.percent, ties }
            }
            (None, Some(offset)) => {
                let skip = self.within(Clause::Other, |b| b.bind_count(&offset.offset, SqlType::BigInt))?;
                let fetch = offset.fetch.as_ref();
                let limit = fetch.map(|f| self.within(Clause::Other, |b| b.bind_count(f, SqlType::BigInt))).transpose()?;
                Top { offset: Some(skip), limit, percent: false, ties: Vec::new() }
            }
            (Some(_), Some(offset)) => return Err(error(10741, &[], offset.offset.span)),
        };
        Ok(Rel::Limit { input: Box::new(rel), top: Box::new(top) })
    }
}

fn max_recursion(hints: &[ast::QueryHint]) -> Option<u32> {
    hints.iter().find_map(|h| match h {
        ast::QueryHint::Value(name, expr) if name.eq_ignore_ascii_case("MAXRECURSION") => match &expr.kind {
            ast::ExprKind::Literal(ast::Literal::Integer(n)) => u32::try_from(*n).ok(),
            _ => None,
        },
        _ => None,
    })
}
