//! CASE and what is defined by it: IIF, COALESCE, NULLIF.

use super::predicate::compare;
use crate::algebra::{BoundExpr, BoundExprKind};
use crate::bind::error::error;
use crate::bind::{Binder, coerce};
use crate::expr::CompareOp;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::{SqlError, SqlType};

/// A searched CASE of unified results.
pub(crate) fn case(
    conditions: Vec<BoundExpr>,
    results: Vec<(BoundExpr, Span)>,
    has_else: bool,
    span: Span,
) -> Result<BoundExpr, SqlError> {
    if results.iter().all(|(r, _)| r.is_null()) {
        return Err(error(8133, &[], span));
    }
    let (mut results, sql_type) = coerce::unify(results, "CASE")?;
    let otherwise = if has_else { results.pop().map(Box::new) } else { None };
    let nullable = otherwise.as_ref().is_none_or(|o| o.nullable) || results.iter().any(|r| r.nullable);
    let branches = conditions.into_iter().zip(results).collect();
    Ok(BoundExpr { kind: BoundExprKind::Case { branches, otherwise }, sql_type, nullable })
}

impl Binder<'_> {
    pub(super) fn bind_case(
        &mut self,
        operand: Option<&ast::Expr>,
        branches: &[ast::CaseBranch],
        otherwise: Option<&ast::Expr>,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let operand = operand.map(|o| self.bind_expr(o)).transpose()?;
        let mut conditions = Vec::with_capacity(branches.len());
        let mut results = Vec::with_capacity(branches.len() + 1);
        for branch in branches {
            conditions.push(match &operand {
                Some(operand) => {
                    let when = self.bind_expr(&branch.when)?;
                    compare(CompareOp::Equal, "equal to", operand.clone(), when, branch.when.span)?
                }
                None => self.bind_condition(&branch.when)?,
            });
            results.push((self.bind_expr(&branch.then)?, branch.then.span));
        }
        if let Some(otherwise) = otherwise {
            results.push((self.bind_expr(otherwise)?, otherwise.span));
        }
        case(conditions, results, otherwise.is_some(), span)
    }

    pub(super) fn bind_iif(&mut self, condition: &ast::Expr, then: &ast::Expr, otherwise: &ast::Expr) -> Result<BoundExpr, SqlError> {
        let condition = self.bind_condition(condition)?;
        let results = vec![(self.bind_expr(then)?, then.span), (self.bind_expr(otherwise)?, otherwise.span)];
        case(vec![condition], results, true, then.span)
    }

    pub(super) fn bind_coalesce(&mut self, arguments: &[ast::Expr], span: Span) -> Result<BoundExpr, SqlError> {
        let mut bound = Vec::with_capacity(arguments.len());
        for argument in arguments {
            bound.push((self.bind_expr(argument)?, argument.span));
        }
        if bound.iter().all(|(a, _)| a.is_null()) {
            return Err(error(4127, &[], span));
        }
        let (values, sql_type) = coerce::unify(bound, "COALESCE")?;
        let nullable = values.iter().all(|v| v.nullable);
        // Not a CASE: that would evaluate each argument twice, which a subquery or NEWID would show.
        Ok(BoundExpr { kind: BoundExprKind::Function { name: "COALESCE", arguments: values }, sql_type, nullable })
    }

    pub(super) fn bind_nullif(&mut self, left: &ast::Expr, right: &ast::Expr, span: Span) -> Result<BoundExpr, SqlError> {
        let value = self.bind_expr(left)?;
        let other = self.bind_expr(right)?;
        if value.is_null() {
            return Err(error(4151, &[], left.span));
        }
        let sql_type = value.sql_type;
        let equal = compare(CompareOp::Equal, "equal to", value.clone(), other, span)?;
        let branches = vec![(equal, BoundExpr::literal(thawdb_types::Scalar::Null, sql_type))];
        Ok(BoundExpr { kind: BoundExprKind::Case { branches, otherwise: Some(Box::new(value)) }, sql_type, nullable: true })
    }

    /// CHOOSE(index, value, ...): the values have one type.
    pub(super) fn bind_choose(&mut self, arguments: &[ast::Expr], span: Span) -> Result<BoundExpr, SqlError> {
        let [index, values @ ..] = arguments else {
            return Err(error(189, &[&"choose", &2, &254], span));
        };
        if values.is_empty() {
            return Err(error(189, &[&"choose", &2, &254], span));
        }
        let index_expr = self.bind_expr(index)?;
        let index = coerce::convert(index_expr, SqlType::Int, index.span)?;
        let mut bound = Vec::with_capacity(values.len());
        for value in values {
            bound.push((self.bind_expr(value)?, value.span));
        }
        let (values, sql_type) = coerce::unify(bound, "CHOOSE")?;
        let arguments = std::iter::once(index).chain(values).collect();
        Ok(BoundExpr::new(BoundExprKind::Function { name: "CHOOSE", arguments }, sql_type))
    }

    /// ISNULL(value, replacement): the type of the value, that of the replacement if the value is the constant NULL.
    pub(super) fn bind_isnull(&mut self, arguments: &[ast::Expr], span: Span) -> Result<BoundExpr, SqlError> {
        let [value, replacement] = arguments else {
            return Err(error(174, &[&"isnull", &2], span));
        };
        let value = self.bind_expr(value)?;
        let replacement = self.bind_expr(replacement)?;
        let sql_type = if value.is_null() { replacement.sql_type } else { value.sql_type };
        let value = coerce::convert(value, sql_type, span)?;
        let replacement = coerce::convert(replacement, sql_type, span)?;
        let nullable = value.nullable && replacement.nullable;
        Ok(BoundExpr { kind: BoundExprKind::Function { name: "ISNULL", arguments: vec![value, replacement] }, sql_type, nullable })
    }
}
