//! Subqueries inside expressions: scalar, EXISTS, IN, ANY, ALL. Any correlation binds; how it runs is the optimizer's.

use super::predicate::{comparable, compare_op, negate};
use crate::algebra::{BoundExpr, BoundExprKind, BoundSubquery, ColumnRef, Rel};
use crate::bind::error::error;
use crate::bind::query::QueryUse;
use crate::bind::types::comparison_name;
use crate::bind::{Binder, coerce};
use crate::expr::CompareOp;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::{Scalar, SqlError, SqlType};

impl Binder<'_> {
    /// Binds a subquery of one column.
    fn bind_one_column(&mut self, query: &ast::Query) -> Result<(Rel, ColumnRef), SqlError> {
        let bound = self.bind_query(query, QueryUse::Subquery)?;
        match bound.outputs.as_slice() {
            [output] => Ok((bound.rel, output.column)),
            _ => Err(error(116, &[], query.span)),
        }
    }

    fn forbid_in_aggregate(&self, span: Span) -> Result<(), SqlError> {
        if self.levels.last().is_some_and(|l| l.in_aggregate) { Err(error(130, &[], span)) } else { Ok(()) }
    }

    pub(super) fn bind_scalar_subquery(&mut self, query: &ast::Query, span: Span) -> Result<BoundExpr, SqlError> {
        self.forbid_in_aggregate(span)?;
        if self.clause() == crate::bind::Clause::GroupBy {
            return Err(error(144, &[], span));
        }
        let (rel, column) = self.bind_one_column(query)?;
        let sql_type = self.columns.info(column).sql_type;
        let value = BoundExpr::new(BoundExprKind::Subquery { plan: Box::new(rel), column, kind: BoundSubquery::Scalar }, sql_type);
        if !matches!(query.for_clause, Some(ast::ForClause::Json { .. })) {
            return Ok(value);
        }
        // Marked as JSON, which goes into other JSON as it is.
        let arguments = vec![BoundExpr::literal(Scalar::text("\u{1f}"), SqlType::NVARCHAR_MAX), value];
        Ok(BoundExpr { kind: BoundExprKind::Function { name: "FOR JSON", arguments }, sql_type, nullable: true })
    }

    pub(super) fn bind_exists(&mut self, query: &ast::Query) -> Result<BoundExpr, SqlError> {
        self.forbid_in_aggregate(query.span)?;
        let bound = self.bind_query(query, QueryUse::Exists)?;
        let column = bound.outputs.first().map_or(ColumnRef(0), |o| o.column);
        let kind = BoundExprKind::Subquery { plan: Box::new(bound.rel), column, kind: BoundSubquery::Exists { negated: false } };
        Ok(BoundExpr { kind, sql_type: SqlType::Bit, nullable: false })
    }

    pub(super) fn bind_in_query(
        &mut self,
        operand: &ast::Expr,
        query: &ast::Query,
        negated: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        // NOT IN is `<> ALL`, which is exactly NOT (= ANY) in three-valued logic.
        let op = if negated { CompareOp::NotEqual } else { CompareOp::Equal };
        self.quantified(op, "equal to", negated, operand, query, span)
    }

    pub(super) fn bind_quantified(
        &mut self,
        op: ast::CompareOp,
        quantifier: ast::Quantifier,
        left: &ast::Expr,
        query: &ast::Query,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        self.quantified(compare_op(op), comparison_name(op), quantifier == ast::Quantifier::All, left, query, span)
    }

    fn quantified(
        &mut self,
        op: CompareOp,
        name: &str,
        all: bool,
        operand: &ast::Expr,
        query: &ast::Query,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        self.forbid_in_aggregate(span)?;
        let operand = self.bind_expr(operand)?;
        let (rel, column) = self.bind_one_column(query)?;
        let value = self.column_expr(column);
        let nullable = operand.nullable || value.nullable;
        let (operand, value) = comparable(operand, value, name, span)?;
        let (plan, column) = match value.as_column() {
            Some(column) => (rel, column),
            // The subquery's value needs a conversion of its own, under it.
            None => {
                let converted = self.columns.add("", value.sql_type, value.nullable);
                (Rel::Project { input: Box::new(rel), exprs: vec![(converted, value)] }, converted)
            }
        };
        let kind = BoundSubquery::Quantified { operand: Box::new(operand), op, all };
        let kind = BoundExprKind::Subquery { plan: Box::new(plan), column, kind };
        let bound = BoundExpr { kind, sql_type: SqlType::Bit, nullable };
        Ok(negate(bound, false))
    }

    /// A value converted for a place that wants bigint: TOP, OFFSET, FETCH.
    pub(crate) fn bind_count(&mut self, expr: &ast::Expr, target: SqlType) -> Result<BoundExpr, SqlError> {
        let bound = self.bind_expr(expr)?;
        let whole = bound.sql_type.is_integer() || matches!(bound.sql_type, SqlType::Decimal { scale: 0, .. });
        if !(whole || target == SqlType::Float && bound.sql_type.is_numeric() || bound.is_null()) {
            return Err(error(1060, &[], expr.span));
        }
        coerce::convert(bound, target, expr.span)
    }
}
