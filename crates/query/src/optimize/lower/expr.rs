//! Expressions: columns become positions or outer references, subqueries become plans.

use super::{Lowerer, Want};
use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind as B, BoundSubquery, BoundWindow, ColumnRef};
use crate::expr::{Aggregate, Expr, ExprKind as K, SubqueryKind};
use crate::functions::call::Calling;
use crate::optimize::plan_bug;
use crate::phys::{SortKey, WindowFunction};
use std::sync::Arc;
use thawdb_types::SqlError;

fn boxed(low: &mut Lowerer<'_, '_>, expr: &BoundExpr, input: &[ColumnRef]) -> Result<Box<Expr>, SqlError> {
    lower_expr(low, expr, input).map(Box::new)
}

/// Lowers `expr` over the row `input`.
pub(super) fn lower_expr(low: &mut Lowerer<'_, '_>, expr: &BoundExpr, input: &[ColumnRef]) -> Result<Expr, SqlError> {
    let mut list = |exprs: &[BoundExpr]| exprs.iter().map(|e| lower_expr(low, e, input)).collect::<Result<Vec<_>, _>>();
    let kind = match &expr.kind {
        B::Literal(value) => K::Literal(value.clone()),
        B::Column(column) => return lower_column(low, *column, input),
        B::Variable(index) => K::Variable(*index),
        B::Global(name) => K::Global(name.clone()),
        B::And(terms) => K::And(list(terms)?),
        B::Or(terms) => K::Or(list(terms)?),
        B::Function { name, arguments } => K::Function { name, calling: Calling::of(name), arguments: list(arguments)? },
        B::InList { operand, list: items, negated } => {
            let list = list(items)?;
            K::InList { operand: boxed(low, operand, input)?, list, negated: *negated }
        }
        B::Arithmetic { op, left, right } => K::Arithmetic { op: *op, left: boxed(low, left, input)?, right: boxed(low, right, input)? },
        B::Compare { op, left, right } => K::Compare { op: *op, left: boxed(low, left, input)?, right: boxed(low, right, input)? },
        B::Concat(left, right) => K::Concat(boxed(low, left, input)?, boxed(low, right, input)?),
        B::Negate(e) => K::Negate(boxed(low, e, input)?),
        B::BitNot(e) => K::BitNot(boxed(low, e, input)?),
        B::Not(e) => K::Not(boxed(low, e, input)?),
        B::IsNull { operand, negated } => K::IsNull { operand: boxed(low, operand, input)?, negated: *negated },
        B::Like { operand, pattern, escape, negated } => K::Like {
            operand: boxed(low, operand, input)?,
            pattern: boxed(low, pattern, input)?,
            escape: escape.as_ref().map(|e| boxed(low, e, input)).transpose()?,
            negated: *negated,
        },
        B::Case { branches, otherwise } => {
            let mut lowered = Vec::with_capacity(branches.len());
            for (when, then) in branches {
                lowered.push((lower_expr(low, when, input)?, lower_expr(low, then, input)?));
            }
            K::Case { branches: lowered, otherwise: otherwise.as_ref().map(|o| boxed(low, o, input)).transpose()? }
        }
        B::Convert { operand, style, attempt } => K::Convert { operand: boxed(low, operand, input)?, style: *style, attempt: *attempt },
        // A collation is part of the type: the value is the same.
        B::Collate(operand) => {
            let mut inner = lower_expr(low, operand, input)?;
            inner.sql_type = expr.sql_type;
            return Ok(inner);
        }
        B::Subquery { plan, column, kind } => lower_subquery(low, plan, *column, kind, input)?,
    };
    Ok(Expr { kind, sql_type: expr.sql_type, nullable: expr.nullable })
}

fn lower_column(low: &Lowerer<'_, '_>, column: ColumnRef, input: &[ColumnRef]) -> Result<Expr, SqlError> {
    let info = low.cx.columns.info(column);
    let find = |row: &[ColumnRef]| row.iter().position(|c| *c == column);
    let kind = match find(input) {
        Some(position) => K::Column(position),
        None => {
            let outer = low.outers.iter().rev().enumerate().find_map(|(up, row)| find(row).map(|position| (up + 1, position)));
            let (level, column) = outer.ok_or_else(|| plan_bug(&format!("nobody produces column {} ({})", column.0, info.name)))?;
            K::Outer { level, column }
        }
    };
    Ok(Expr { kind, sql_type: info.sql_type, nullable: info.nullable })
}

fn lower_subquery(
    low: &mut Lowerer<'_, '_>,
    plan: &crate::algebra::Rel,
    column: ColumnRef,
    kind: &BoundSubquery,
    input: &[ColumnRef],
) -> Result<K, SqlError> {
    let kind = match kind {
        BoundSubquery::Scalar => SubqueryKind::Scalar,
        BoundSubquery::Exists { negated } => SubqueryKind::Exists { negated: *negated },
        BoundSubquery::Quantified { operand, op, all } => {
            SubqueryKind::Quantified { operand: boxed(low, operand, input)?, op: *op, all: *all }
        }
    };
    low.outers.push(input.to_vec());
    let goal = matches!(kind, SubqueryKind::Exists { .. }).then_some(1.0);
    let lowered = low.lower(plan, &Want { order: Vec::new(), goal });
    let lowered = lowered.and_then(|l| if matches!(kind, SubqueryKind::Exists { .. }) { Ok(l) } else { low.exactly(l, &[column]) });
    low.outers.pop();
    Ok(K::Subquery { plan: Arc::new(lowered?.node), kind })
}

impl Lowerer<'_, '_> {
    pub(super) fn sort_keys(&mut self, keys: &[crate::algebra::BoundSortKey], input: &[ColumnRef]) -> Result<Vec<SortKey>, SqlError> {
        keys.iter().map(|k| Ok(SortKey { expr: self.expr(&k.expr, input)?, descending: k.descending })).collect()
    }

    pub(super) fn lower_aggregate(&mut self, aggregate: &BoundAggregate, input: &[ColumnRef]) -> Result<Aggregate, SqlError> {
        let argument = aggregate.argument.as_ref().map(|a| self.expr(a, input)).transpose()?;
        Ok(Aggregate {
            function: aggregate.function,
            argument,
            distinct: aggregate.distinct,
            sql_type: aggregate.sql_type,
            separator: aggregate.separator.clone(),
        })
    }

    pub(super) fn lower_window(&mut self, function: &BoundWindow, input: &[ColumnRef]) -> Result<WindowFunction, SqlError> {
        Ok(match function {
            BoundWindow::RowNumber => WindowFunction::RowNumber,
            BoundWindow::Rank => WindowFunction::Rank,
            BoundWindow::DenseRank => WindowFunction::DenseRank,
            BoundWindow::Ntile(groups) => WindowFunction::Ntile(self.expr(groups, input)?),
            BoundWindow::PercentRank => WindowFunction::PercentRank,
            BoundWindow::CumeDist => WindowFunction::CumeDist,
            BoundWindow::Percentile { value, fraction, continuous } => WindowFunction::Percentile {
                value: self.expr(value, input)?,
                fraction: self.expr(fraction, input)?,
                continuous: *continuous,
            },
            BoundWindow::Lag { value, offset, default, lead, ignore_nulls } => WindowFunction::Lag {
                value: self.expr(value, input)?,
                offset: self.expr(offset, input)?,
                default: default.as_ref().map(|d| self.expr(d, input)).transpose()?,
                lead: *lead,
                ignore_nulls: *ignore_nulls,
            },
            BoundWindow::FirstValue { value, last, frame, ignore_nulls } => {
                let value = self.expr(value, input)?;
                WindowFunction::FirstValue { value, last: *last, frame: *frame, ignore_nulls: *ignore_nulls }
            }
            BoundWindow::Aggregate { aggregate, frame } => {
                WindowFunction::Aggregate { aggregate: self.lower_aggregate(aggregate, input)?, frame: *frame }
            }
        })
    }
}
