//! Unary and binary operators, COLLATE.

use super::integer_digits;
use crate::algebra::{BoundExpr, BoundExprKind};
use crate::bind::error::error;
use crate::bind::types::{Operation, arithmetic_op, operation};
use crate::bind::{Binder, coerce, collation, undeclared};
use thawdb_tsql::ast::{self, BinaryOp, Span, UnaryOp};
use thawdb_types::{Collation, Scalar, SqlError, SqlType};

impl Binder<'_> {
    pub(super) fn bind_unary(&mut self, op: UnaryOp, operand: &ast::Expr, span: Span) -> Result<BoundExpr, SqlError> {
        let operand = self.bind_expr(operand)?;
        let invalid = |name: &str| Err(error(8117, &[&operand.sql_type.message_name(), &name], span));
        match op {
            UnaryOp::Plus => Ok(operand),
            UnaryOp::BitNot if operand.sql_type.is_integer() || operand.sql_type == SqlType::Bit || operand.is_null() => {
                let (sql_type, nullable) = (operand.sql_type, operand.nullable);
                Ok(BoundExpr { kind: BoundExprKind::BitNot(Box::new(operand)), sql_type, nullable })
            }
            UnaryOp::BitNot => invalid("'~'"),
            UnaryOp::Minus => match (&operand.kind, operand.sql_type) {
                (BoundExprKind::Literal(value), sql_type) if negated(value).is_some() => {
                    Ok(BoundExpr::literal(negated(value).expect("just seen"), sql_type))
                }
                (_, t) if t.is_numeric() && t != SqlType::Bit => {
                    // Unary minus of tinyint is smallint: the type has no negative values.
                    let t = if t == SqlType::TinyInt { SqlType::SmallInt } else { t };
                    let operand = coerce::convert(operand, t, span)?;
                    let nullable = operand.nullable;
                    Ok(BoundExpr { kind: BoundExprKind::Negate(Box::new(operand)), sql_type: t, nullable })
                }
                _ => invalid("minus"),
            },
        }
    }

    pub(super) fn bind_binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr, span: Span) -> Result<BoundExpr, SqlError> {
        let left = self.bind_expr(left)?;
        let right = self.bind_expr(right)?;
        let (left, right) = if op == BinaryOp::Add && !self.settings.concat_null_yields_null && (text(&left) || text(&right)) {
            (null_as_empty(left), null_as_empty(right))
        } else {
            (left, right)
        };
        binary(op, left, right, span)
    }

    pub(super) fn bind_collate(&mut self, operand: &ast::Expr, name: &ast::Ident, span: Span) -> Result<BoundExpr, SqlError> {
        let operand = self.bind_expr(operand)?;
        if !operand.sql_type.is_text() {
            return Err(error(447, &[&operand.sql_type.message_name()], span));
        }
        let collation = if name.is("database_default") || name.is("catalog_default") {
            Collation::DEFAULT
        } else {
            Collation::by_name(&name.text).ok_or_else(|| error(448, &[&name.text], name.span))?
        };
        let (sql_type, nullable) = (operand.sql_type.with_collation(collation), operand.nullable);
        Ok(BoundExpr { kind: BoundExprKind::Collate(Box::new(operand)), sql_type, nullable })
    }
}

/// `left op right` with operands brought to their types.
pub(crate) fn binary(op: BinaryOp, mut left: BoundExpr, mut right: BoundExpr, span: Span) -> Result<BoundExpr, SqlError> {
    // The constant NULL takes the type of what stands beside it.
    if left.is_null() && !right.is_null() {
        left.sql_type = if undeclared::number_of(&left).is_some() { undeclared::general(right.sql_type) } else { right.sql_type };
    } else if right.is_null() {
        right.sql_type = if undeclared::number_of(&right).is_some() { undeclared::general(left.sql_type) } else { left.sql_type };
    }
    if matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight) {
        let name = if op == BinaryOp::ShiftLeft { "LEFT_SHIFT" } else { "RIGHT_SHIFT" };
        return super::function::call_bound(name, vec![left, right], span);
    }
    let nullable = left.nullable || right.nullable;
    match operation(op, (&left.sql_type, integer_digits(&left)), (&right.sql_type, integer_digits(&right)), span)? {
        Operation::Arithmetic { left: l, right: r, result } => {
            let (left, right) = (Box::new(coerce::convert(left, l, span)?), Box::new(coerce::convert(right, r, span)?));
            let op = arithmetic_op(op).expect("only concatenation and shifts have none");
            Ok(BoundExpr { kind: BoundExprKind::Arithmetic { op, left, right }, sql_type: result, nullable })
        }
        Operation::Concat(mut result) => {
            if let Some(collation) = collation::shared(&left, &right, "add", span)? {
                result = result.with_collation(collation);
            }
            let left = to_family(left, &result, span)?;
            let right = to_family(right, &result, span)?;
            Ok(BoundExpr { kind: BoundExprKind::Concat(Box::new(left), Box::new(right)), sql_type: result, nullable })
        }
    }
}

/// A string or binary in the family of `result` with its own length: text stays text.
fn to_family(expr: BoundExpr, result: &SqlType, span: Span) -> Result<BoundExpr, SqlError> {
    if expr.sql_type.is_text() == result.is_text() { Ok(expr) } else { coerce::convert(expr, *result, span) }
}

fn text(expr: &BoundExpr) -> bool {
    expr.sql_type.is_text()
}

/// An operand of a concatenation under SET CONCAT_NULL_YIELDS_NULL OFF.
fn null_as_empty(expr: BoundExpr) -> BoundExpr {
    if expr.is_null() {
        return BoundExpr::literal(Scalar::Text(String::new()), SqlType::varchar(1));
    }
    if !text(&expr) || !expr.nullable {
        return expr;
    }
    let sql_type = expr.sql_type;
    let empty = BoundExpr::literal(Scalar::Text(String::new()), sql_type);
    BoundExpr { kind: BoundExprKind::Function { name: "ISNULL", arguments: vec![expr, empty] }, sql_type, nullable: false }
}

fn negated(value: &Scalar) -> Option<Scalar> {
    Some(match value {
        Scalar::Int(v) => Scalar::Int(v.checked_neg()?),
        Scalar::BigInt(v) => Scalar::BigInt(v.checked_neg()?),
        Scalar::Decimal(v) => Scalar::Decimal(-v),
        Scalar::Float(v) => Scalar::Float(-v),
        Scalar::Money(v) => Scalar::Money(v.checked_neg()?),
        _ => return None,
    })
}
