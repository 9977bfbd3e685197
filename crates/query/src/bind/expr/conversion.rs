//! CAST, CONVERT, PARSE and their TRY_ forms.

use crate::algebra::{BoundExpr, BoundExprKind};
use crate::bind::error::{at, error};
use crate::bind::{Binder, coerce, undeclared};
use thawdb_tsql::ast::{self, Span, TypeParameter};
use thawdb_types::convert::{CastRule, implicit_cast};

use thawdb_types::{Collation, Scalar, SqlError, SqlType, TypeArgument, TypeUse};

/// The type a written name means.
pub fn resolve_type(data_type: &ast::DataType, at_use: TypeUse<'_>) -> Result<SqlType, SqlError> {
    let arguments: Vec<TypeArgument> = data_type
        .parameters
        .iter()
        .map(|p| match p {
            TypeParameter::Number(n) => TypeArgument::Number(i64::from(*n)),
            TypeParameter::Max => TypeArgument::Max,
        })
        .collect();
    SqlType::from_name(&data_type.name.name.text, &arguments, at_use, Collation::DEFAULT).map_err(|e| at(e, data_type.span))
}

impl Binder<'_> {
    pub(super) fn bind_cast(
        &mut self,
        operand: &ast::Expr,
        data_type: &ast::DataType,
        style: Option<&ast::Expr>,
        attempt: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let target = match resolve_type(data_type, TypeUse::Cast) {
            Err(e) if e.number == 2715 => return Err(error(243, &[&data_type.name.name.text], data_type.span)),
            other => other?,
        };
        let operand = self.bind_expr(operand)?;
        let style = style.map(|s| self.bind_expr(s)).transpose()?;
        if undeclared::number_of(&operand).is_some() {
            return Ok(BoundExpr { sql_type: target, ..operand });
        }
        if operand.is_null() {
            // A conversion, that the NULL may be told from one without a type.
            return Ok(converted(BoundExpr::literal(Scalar::Null, target), target, 0, false));
        }
        let target = match operand.sql_type.collation() {
            Some(collation) if target.is_text() => target.with_collation(collation),
            _ => target,
        };
        if implicit_cast(&operand.sql_type, &target) == CastRule::Never {
            return Err(error(529, &[&operand.sql_type.message_name(), &target.message_name()], span));
        }
        match style {
            None => {}
            Some(style) => match style.kind {
                BoundExprKind::Literal(Scalar::Int(style)) => {
                    let style = if style == 0 && shows_seconds_by_default(&operand.sql_type) && target.is_text() { 100 } else { style };
                    return Ok(converted(operand, target, style, attempt));
                }
                BoundExprKind::Literal(Scalar::Null) => return Ok(BoundExpr::literal(Scalar::Null, target)),
                _ => return self.variable_style(operand, target, style, attempt, span),
            },
        }
        if operand.sql_type == target && !attempt {
            return Ok(operand);
        }
        Ok(converted(operand, target, 0, attempt))
    }

    /// CONVERT with a style known only at run time: a choice among the documented styles.
    fn variable_style(
        &mut self,
        operand: BoundExpr,
        target: SqlType,
        style: BoundExpr,
        attempt: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        const STYLES: [i32; 39] = [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 25, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109,
            110, 111, 112, 113, 114, 120, 121, 126,
        ];
        let style = coerce::convert(style, SqlType::Int, span)?;
        let branches = STYLES.iter().map(|s| {
            let literal = BoundExpr::literal(Scalar::Int(*s), SqlType::Int);
            let same = BoundExpr::compare(crate::expr::CompareOp::Equal, style.clone(), literal);
            (same, converted(operand.clone(), target, *s, attempt))
        });
        Ok(BoundExpr::new(BoundExprKind::Case { branches: branches.collect(), otherwise: None }, target))
    }

    pub(super) fn bind_parse(
        &mut self,
        operand: &ast::Expr,
        data_type: &ast::DataType,
        culture: Option<&ast::Expr>,
        attempt: bool,
        span: Span,
    ) -> Result<BoundExpr, SqlError> {
        let name = if attempt { "TRY_PARSE" } else { "PARSE" };
        let target = match resolve_type(data_type, TypeUse::Cast) {
            Err(e) if e.number == 2715 => return Err(error(243, &[&data_type.name.name.text], data_type.span)),
            other => other?,
        };
        if !(target.is_numeric() && target != SqlType::Bit || target.is_date_time()) {
            return Err(error(10761, &[&data_type.name.name.text, &name], span));
        }
        let operand = self.bind_expr(operand)?;
        if operand.is_null() {
            return Err(error(8116, &[&"NULL", &1, &name.to_ascii_lowercase()], span));
        }
        let operand = coerce::convert(operand, SqlType::nvarchar(4000), span)?;
        let culture = culture.map(|c| self.bind_expr(c)).transpose()?;
        let culture = culture.unwrap_or_else(|| BoundExpr::literal(Scalar::Text(String::new()), SqlType::nvarchar(20)));
        let culture = coerce::convert(culture, SqlType::nvarchar(20), span)?;
        let attempt = BoundExpr::literal(Scalar::Bit(attempt), SqlType::Bit);
        let kind = BoundExprKind::Function { name: "PARSE", arguments: vec![operand, culture, attempt] };
        Ok(BoundExpr { kind, sql_type: target, nullable: true })
    }
}

/// Types whose text without a style is that of style 121; an explicit 0 is the short form all the same.
fn shows_seconds_by_default(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::Date | SqlType::Time { .. } | SqlType::DateTime2 { .. } | SqlType::DateTimeOffset { .. })
}

fn converted(operand: BoundExpr, target: SqlType, style: i32, attempt: bool) -> BoundExpr {
    let nullable = operand.nullable || attempt;
    BoundExpr { kind: BoundExprKind::Convert { operand: Box::new(operand), style, attempt }, sql_type: target, nullable }
}
