//! Comparisons and the other predicates without subqueries.

use crate::algebra::{BoundExpr, BoundExprKind};
use crate::bind::error::error;
use crate::bind::types::comparison_name;
use crate::bind::{Binder, coerce, collation, undeclared};
use crate::expr::CompareOp;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::{SqlError, SqlType};

/// The bound comparison behind the written one.
pub(crate) fn compare_op(op: ast::CompareOp) -> CompareOp {
    match op {
        ast::CompareOp::Equal => CompareOp::Equal,
        ast::CompareOp::NotEqual => CompareOp::NotEqual,
        ast::CompareOp::Less => CompareOp::Less,
        ast::CompareOp::LessOrEqual => CompareOp::LessOrEqual,
        ast::CompareOp::Greater => CompareOp::Greater,
        ast::CompareOp::GreaterOrEqual => CompareOp::GreaterOrEqual,
    }
}

/// Brings two operands of a comparison to one type and collation. Text stays the text it is: only the collation counts.
pub(crate) fn comparable(left: BoundExpr, right: BoundExpr, name: &str, span: Span) -> Result<(BoundExpr, BoundExpr), SqlError> {
    let (l, r) = (left.sql_type, right.sql_type);
    let refuse = || error(402, &[&l.message_name(), &r.message_name(), &name], span);
    if l.is_incomparable() || r.is_incomparable() {
        return Err(if matches!(l, SqlType::Xml) || matches!(r, SqlType::Xml) { error(305, &[], span) } else { refuse() });
    }
    if l == r {
        return Ok((left, right));
    }
    if left.is_null() || right.is_null() {
        let target = if left.is_null() { r } else { l };
        return Ok((coerce::convert(left, target, span)?, coerce::convert(right, target, span)?));
    }
    if l.is_text() && r.is_text() {
        let shared = collation::shared(&left, &right, name, span)?.expect("both have one");
        let under = |e: BoundExpr| {
            let target = e.sql_type.with_collation(shared);
            if e.sql_type == target { e } else { coerce::cast(e, target) }
        };
        return Ok((under(left), under(right)));
    }
    if l.is_binary() && r.is_binary() {
        return Ok((left, right));
    }
    let common = SqlType::common(&l, &r).map_err(|e| if e.number == 206 { crate::bind::error::clash(&l, &r, span) } else { e })?;
    // Against a string the other side's type decides alone, whatever its length.
    let of = |t: SqlType| if t.base_name() == common.base_name() && !matches!(t, SqlType::Decimal { .. }) { t } else { common };
    let (left_type, right_type) = (of(l), of(r));
    let target = if left_type == right_type { left_type } else { common };
    Ok((coerce::convert(left, target, span)?, coerce::convert(right, target, span)?))
}

/// `left op right` of any operands.
pub(crate) fn compare(op: CompareOp, name: &str, left: BoundExpr, right: BoundExpr, span: Span) -> Result<BoundExpr, SqlError> {
    let (mut left, mut right) = comparable(left, right, name, span)?;
    if matches!(op, CompareOp::Less | CompareOp::LessOrEqual | CompareOp::Greater | CompareOp::GreaterOrEqual) {
        for side in [&mut left, &mut right].into_iter().filter(|side| undeclared::number_of(side).is_some()) {
            side.sql_type = undeclared::general(side.sql_type);
        }
    }
    Ok(BoundExpr::compare(op, left, right))
}

/// `left op right` of two moments, whatever their types of them.
pub(crate) fn compare_moments(op: CompareOp, left: BoundExpr, right: BoundExpr, span: Span) -> Result<BoundExpr, SqlError> {
    compare(op, "compare", left, right, span)
}

/// `NOT inner`.
pub(crate) fn negate(inner: BoundExpr, negated: bool) -> BoundExpr {
    if !negated {
        return inner;
    }
    let nullable = inner.nullable;
    BoundExpr { kind: BoundExprKind::Not(Box::new(inner)), sql_type: SqlType::Bit, nullable }
}

impl Binder<'_> {
    pub(super) fn bind_compare(
        &mut self,
        op: ast::CompareOp,
        left: &ast::Expr,
        right: &ast::Expr,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let left = self.bind_expr(left)?;
        let right = self.bind_expr(right)?;
        if !self.settings.ansi_nulls && matches!(op, ast::CompareOp::Equal | ast::CompareOp::NotEqual) {
            let is_variable = |e: &BoundExpr| e.is_null() || matches!(e.kind, BoundExprKind::Variable(_));
            if is_variable(&left) || is_variable(&right) {
                let op = if op == ast::CompareOp::Equal { CompareOp::Same } else { CompareOp::NotSame };
                return compare(op, "equal to", left, right, span);
            }
        }
        compare(compare_op(op), comparison_name(op), left, right, span)
    }

    pub(super) fn bind_is_null(&mut self, operand: &ast::Expr, negated: bool) -> Result<BoundExpr, SqlError> {
        let operand = Box::new(self.bind_expr(operand)?);
        Ok(BoundExpr { kind: BoundExprKind::IsNull { operand, negated }, sql_type: SqlType::Bit, nullable: false })
    }

    pub(super) fn bind_is_distinct(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        negated: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let left = self.bind_expr(left)?;
        let right = self.bind_expr(right)?;
        compare(if negated { CompareOp::Same } else { CompareOp::NotSame }, "is distinct from", left, right, span)
    }

    pub(super) fn bind_between(
        &mut self,
        operand: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let operand_low = self.bind_expr(operand)?;
        let operand_high = operand_low.clone();
        let low = self.bind_expr(low)?;
        let high = self.bind_expr(high)?;
        let above = compare(CompareOp::GreaterOrEqual, "greater than or equal to", operand_low, low, span)?;
        let below = compare(CompareOp::LessOrEqual, "less than or equal to", operand_high, high, span)?;
        Ok(negate(BoundExpr::and(vec![above, below]), negated))
    }

    pub(super) fn bind_in_list(
        &mut self,
        operand: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let operand = self.bind_expr(operand)?;
        let mut bound = Vec::with_capacity(list.len());
        for item in list {
            bound.push(self.bind_expr(item)?);
        }
        // One type for all if every item compares in the operand's own type; else item by item, as it is defined.
        let pairs: Result<Vec<_>, _> = bound.iter().map(|i| comparable(operand.clone(), i.clone(), "equal to", span)).collect();
        let pairs = pairs?;
        let uniform = pairs.iter().all(|(o, _)| o.same(&pairs[0].0)) || pairs.iter().all(|(o, _)| o.sql_type == pairs[0].0.sql_type);
        let subqueries = operand.has_subquery() || bound.iter().any(BoundExpr::has_subquery);
        if uniform && !subqueries {
            let nullable = pairs.iter().any(|(o, i)| o.nullable || i.nullable);
            let first = pairs[0].0.clone();
            let list = pairs.into_iter().map(|(_, i)| i).collect();
            let kind = BoundExprKind::InList { operand: Box::new(first), list, negated };
            return Ok(BoundExpr { kind, sql_type: SqlType::Bit, nullable });
        }
        let terms: Vec<_> = pairs.into_iter().map(|(o, i)| BoundExpr::compare(CompareOp::Equal, o, i)).collect();
        let nullable = terms.iter().any(|t| t.nullable);
        Ok(negate(BoundExpr { kind: BoundExprKind::Or(terms), sql_type: SqlType::Bit, nullable }, negated))
    }

    pub(super) fn bind_like(
        &mut self,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let mut operand = self.text_operand(operand, 1, span)?;
        let mut pattern = self.text_operand(pattern, 2, span)?;
        if undeclared::number_of(&pattern).is_some() {
            pattern.sql_type = undeclared::general(operand.sql_type);
        } else if undeclared::number_of(&operand).is_some() {
            operand.sql_type = undeclared::general(pattern.sql_type);
        }
        let escape = escape.map(|e| self.text_operand(e, 3, span)).transpose()?;
        let shared = collation::shared(&operand, &pattern, "like", span)?;
        let under = |e: BoundExpr| match shared {
            Some(c) if e.sql_type.collation() != Some(c) => {
                let target = e.sql_type.with_collation(c);
                coerce::cast(e, target)
            }
            _ => e,
        };
        let (operand, pattern) = (Box::new(under(operand)), Box::new(under(pattern)));
        let nullable = operand.nullable || pattern.nullable;
        let kind = BoundExprKind::Like { operand, pattern, escape: escape.map(Box::new), negated };
        Ok(BoundExpr { kind, sql_type: SqlType::Bit, nullable })
    }

    /// A value as text, converted the way LIKE and string functions do.
    fn text_operand(&mut self, expr: &ast::Expr, position: i32, span: Span) -> Result<BoundExpr, SqlError> {
        let expr = self.bind_expr(expr)?;
        if expr.sql_type == SqlType::SqlVariant {
            return Err(error(8116, &[&expr.sql_type.message_name(), &position, &"like"], span));
        }
        if expr.sql_type.is_text() {
            return Ok(expr);
        }
        coerce::convert(expr, SqlType::varchar(8000), span)
    }
}
