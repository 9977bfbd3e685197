//! Implicit conversions, written out.
//!
//! ```text
//! convert   any place that needs one given type: operands, arguments
//! assign    a value into a variable: char lengths are cut silently, as SET does
//! store     a value into a column: same family, never cut, so that the executor can tell 2628
//! unify     several values to one type: CASE, COALESCE, UNION, VALUES
//! ```
//!
//! Failure: 206 when types clash, 257 when a conversion exists but only explicitly.

use super::error::{at, clash, error};
use super::{collation, undeclared};
use crate::algebra::{BoundExpr, BoundExprKind};
use thawdb_tsql::ast::Span;
use thawdb_types::convert::{CastRule, implicit_cast};
use thawdb_types::{MaxLength, Scalar, SqlError, SqlType};

/// `expr` as `target`, converted if need be.
pub fn convert(expr: BoundExpr, target: SqlType, span: Span) -> Result<BoundExpr, SqlError> {
    if expr.sql_type == target {
        return Ok(expr);
    }
    if undeclared::number_of(&expr).is_some() {
        return Ok(BoundExpr { sql_type: target, ..expr });
    }
    if expr.is_null() {
        return Ok(BoundExpr::literal(Scalar::Null, target));
    }
    match implicit_cast(&expr.sql_type, &target) {
        CastRule::Allowed => Ok(cast(expr, target)),
        CastRule::ExplicitOnly => Err(error(257, &[&expr.sql_type.message_name(), &target.message_name()], span)),
        CastRule::Never => Err(clash(&expr.sql_type, &target, span)),
    }
}

/// `expr` converted to `target` without asking whether it may.
pub fn cast(expr: BoundExpr, target: SqlType) -> BoundExpr {
    let nullable = expr.nullable;
    BoundExpr { kind: BoundExprKind::Convert { operand: Box::new(expr), style: 0, attempt: false }, sql_type: target, nullable }
}

/// `expr` as a value for a variable of type `target`.
pub fn assign(expr: BoundExpr, target: SqlType, span: Span) -> Result<BoundExpr, SqlError> {
    convert(expr, target, span)
}

/// `expr` as a value for a column of type `target`: characters and bytes keep their length, for the executor to check.
pub fn store(expr: BoundExpr, target: SqlType, span: Span) -> Result<BoundExpr, SqlError> {
    let from = expr.sql_type;
    if from == target || expr.is_null() || !(target.is_text() || target.is_binary()) || target.is_large() {
        return convert(expr, target, span);
    }
    let length = match from {
        _ if from.is_text() || from.is_binary() => from.length().map_or(MaxLength::Max, MaxLength::Limited),
        _ => return convert(expr, target, span),
    };
    if from.is_text() != target.is_text() {
        return convert(expr, target, span);
    }
    let wide = match target {
        SqlType::Char { collation, .. } | SqlType::VarChar { collation, .. } => SqlType::VarChar { length, collation },
        SqlType::NChar { collation, .. } | SqlType::NVarChar { collation, .. } => {
            let length = match length {
                MaxLength::Limited(n) if n > 4000 => MaxLength::Max,
                other => other,
            };
            SqlType::NVarChar { length, collation }
        }
        SqlType::RowVersion => return Err(error(273, &[], span)),
        _ => SqlType::VarBinary { length },
    };
    let same_family = |a: &SqlType, b: &SqlType| a.is_unicode() == b.is_unicode() && a.is_text() == b.is_text();
    if same_family(&from, &wide) {
        return Ok(expr);
    }
    convert(expr, wide, span)
}

/// Brings `exprs` to the one type that CASE, COALESCE, UNION and VALUES give.
pub fn unify(exprs: Vec<(BoundExpr, Span)>, operation: &str) -> Result<(Vec<BoundExpr>, SqlType), SqlError> {
    let target = common_type(exprs.iter().map(|(e, s)| (e, *s)), operation)?;
    let converted: Result<Vec<_>, _> = exprs.into_iter().map(|(e, s)| convert(e, target, s)).collect();
    Ok((converted?, target))
}

/// The type that values of all `exprs` are brought to; NULL constants have no say.
pub fn common_type<'e>(exprs: impl Iterator<Item = (&'e BoundExpr, Span)>, operation: &str) -> Result<SqlType, SqlError> {
    let mut so_far: Option<(SqlType, &BoundExpr)> = None;
    for (expr, span) in exprs {
        if expr.is_null() {
            continue;
        }
        so_far = Some(match so_far {
            None => (expr.sql_type, expr),
            Some((before, witness)) => {
                let mut common = SqlType::common(&before, &expr.sql_type).map_err(|e| at(e, span))?;
                if common.is_text() && before.is_text() && expr.sql_type.is_text() {
                    if let Some(collation) = collation::shared(witness, expr, operation, span)? {
                        common = common.with_collation(collation);
                    }
                }
                let stronger = collation::label(expr) > collation::label(witness);
                (common, if stronger { expr } else { witness })
            }
        });
    }
    Ok(so_far.map_or(SqlType::Int, |(t, _)| t))
}
