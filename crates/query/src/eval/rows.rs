//! Evaluation of one row: every kind of expression, no arrays made. This is what defines the language; `vector` is a
//! faster way to the same values.

use crate::eval::{arithmetic, convert, subquery};
use crate::exec::cx::Cx;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::functions::call::{Call, Calling, Way};
use arrow_array::ArrayRef;
use std::cmp::Ordering;
use thawdb_catalog::{DatabaseId, ObjectId};
use thawdb_types::arithmetic::negate;
use thawdb_types::collation::LikePattern;
use thawdb_types::compare::{compare, compare_sql};
use thawdb_types::error::message;
use thawdb_types::{Collation, Scalar, SqlError, SqlType, scalar_at};

/// A row: of a batch, or its values as they are.
#[derive(Clone, Copy)]
pub(crate) struct RowRef<'a> {
    pub(crate) columns: &'a [ArrayRef],
    pub(crate) row: usize,
    /// The row's values, of one that is of no batch.
    values: &'a [Scalar],
}

impl<'a> RowRef<'a> {
    /// No row: for expressions that name no column.
    pub(crate) const NOTHING: RowRef<'static> = RowRef { columns: &[], row: 0, values: &[] };

    /// Row `row` of these columns.
    pub(crate) fn at(columns: &'a [ArrayRef], row: usize) -> Self {
        Self { columns, row, values: &[] }
    }

    /// The row with these values. A subquery cannot refer to it.
    pub(crate) fn of_values(values: &'a [Scalar]) -> Self {
        Self { columns: &[], row: 0, values }
    }

    #[inline]
    fn column(self, at: usize, sql_type: &SqlType) -> Scalar {
        match self.columns.get(at) {
            Some(column) => scalar_at(column.as_ref(), self.row, sql_type),
            None => self.values[at].clone(),
        }
    }
}

/// Value of an expression that names no column.
pub(crate) fn eval_free<'p>(expr: &'p Expr, cx: &mut Cx<'p, '_>) -> Result<Scalar, SqlError> {
    eval_row(expr, RowRef::NOTHING, cx)
}

/// Value of `expr` for one row.
pub(crate) fn eval_row<'p>(expr: &'p Expr, row: RowRef<'_>, cx: &mut Cx<'p, '_>) -> Result<Scalar, SqlError> {
    match &expr.kind {
        ExprKind::Literal(value) => Ok(value.clone()),
        ExprKind::Column(at) => Ok(row.column(*at, &expr.sql_type)),
        ExprKind::Outer { level, column } => Ok(cx.outer(*level, *column, &expr.sql_type)),
        ExprKind::Variable(index) => Ok(cx.host.variable(*index)),
        ExprKind::Global(name) => cx.host.global(name),
        ExprKind::Arithmetic { op, left, right } => {
            let (a, b) = (eval_row(left, row, cx)?, eval_row(right, row, cx)?);
            arithmetic::scalar(*op, &a, &left.sql_type, &b, &right.sql_type, &expr.sql_type)
        }
        ExprKind::Negate(operand) => negate(&eval_row(operand, row, cx)?, &expr.sql_type),
        ExprKind::BitNot(operand) => Ok(arithmetic::bit_not(&eval_row(operand, row, cx)?)),
        ExprKind::Concat(left, right) => concat(eval_row(left, row, cx)?, eval_row(right, row, cx)?, &expr.sql_type),
        ExprKind::Compare { op, left, right } => {
            let (a, b) = (eval_row(left, row, cx)?, eval_row(right, row, cx)?);
            Ok(truth(compare_with(*op, &a, &b, &left.sql_type)))
        }
        ExprKind::And(terms) => connect(terms, false, row, cx),
        ExprKind::Or(terms) => connect(terms, true, row, cx),
        ExprKind::Not(operand) => Ok(match eval_row(operand, row, cx)? {
            Scalar::Bit(v) => Scalar::Bit(!v),
            other => other,
        }),
        ExprKind::IsNull { operand, negated } => Ok(Scalar::Bit(eval_row(operand, row, cx)?.is_null() != *negated)),
        ExprKind::InList { operand, list, negated } => in_list(operand, list, *negated, row, cx),
        ExprKind::Like { operand, pattern, escape, negated } => {
            let types = (&operand.sql_type, &pattern.sql_type);
            let (text, pattern) = (eval_row(operand, row, cx)?, eval_row(pattern, row, cx)?);
            let escape = escape.as_deref().map(|e| eval_row(e, row, cx)).transpose()?;
            let matches = is_like(&text, &pattern, escape.as_ref(), types)?;
            Ok(matches.map_or(Scalar::Null, |matches| Scalar::Bit(matches != *negated)))
        }
        ExprKind::Case { branches, otherwise } => {
            for (condition, result) in branches {
                if eval_row(condition, row, cx)? == Scalar::Bit(true) {
                    return eval_row(result, row, cx);
                }
            }
            otherwise.as_deref().map_or(Ok(Scalar::Null), |e| eval_row(e, row, cx))
        }
        ExprKind::Convert { operand, style, attempt } => {
            let how = convert::How { style: *style, attempt: *attempt, date_order: cx.host.session().date_order() };
            convert::scalar_by(eval_row(operand, row, cx)?, &operand.sql_type, &expr.sql_type, how)
        }
        ExprKind::Function { name, calling, arguments } => call(name, *calling, arguments, expr, row, cx),
        ExprKind::Subquery { plan, kind } => subquery::eval(plan, kind, row, cx),
    }
}

/// The first two arguments say which function it is.
fn call_user_function<'p>(arguments: &'p [Expr], row: RowRef<'_>, cx: &mut Cx<'p, '_>) -> Result<Scalar, SqlError> {
    let mut values = arguments.iter().map(|a| eval_row(a, row, cx)).collect::<Result<Vec<_>, _>>()?;
    let rest = values.split_off(2);
    let number = |value: &Scalar| match value {
        Scalar::Int(number) => *number,
        other => unreachable!("the binder names a function by numbers, not {other:?}"),
    };
    cx.host.call_function(DatabaseId(number(&values[0])), ObjectId(number(&values[1])), rest)
}

/// A truth value as SQL has it.
pub(super) fn truth(value: Option<bool>) -> Scalar {
    value.map_or(Scalar::Null, Scalar::Bit)
}

/// Result of a comparison operator; `None` is unknown.
pub(super) fn compare_with(op: CompareOp, left: &Scalar, right: &Scalar, sql_type: &SqlType) -> Option<bool> {
    match op {
        CompareOp::Same => Some(compare(left, right, sql_type) == Ordering::Equal),
        CompareOp::NotSame => Some(compare(left, right, sql_type) != Ordering::Equal),
        _ => compare_sql(left, right, sql_type).map(|order| holds(op, order)),
    }
}

/// Whether an operator holds for values in this order.
pub(super) fn holds(op: CompareOp, order: Ordering) -> bool {
    match op {
        CompareOp::Equal | CompareOp::Same => order == Ordering::Equal,
        CompareOp::NotEqual | CompareOp::NotSame => order != Ordering::Equal,
        CompareOp::Less => order == Ordering::Less,
        CompareOp::LessOrEqual => order != Ordering::Greater,
        CompareOp::Greater => order == Ordering::Greater,
        CompareOp::GreaterOrEqual => order != Ordering::Less,
    }
}

/// AND (`decisive` false) and OR (`decisive` true): the first decisive term ends it.
fn connect<'p>(terms: &'p [Expr], decisive: bool, row: RowRef<'_>, cx: &mut Cx<'p, '_>) -> Result<Scalar, SqlError> {
    let mut result = Scalar::Bit(!decisive);
    for term in terms {
        match eval_row(term, row, cx)? {
            Scalar::Bit(value) if value == decisive => return Ok(Scalar::Bit(decisive)),
            Scalar::Bit(_) => {}
            _ => result = Scalar::Null,
        }
    }
    Ok(result)
}

fn in_list<'p>(operand: &'p Expr, list: &'p [Expr], negated: bool, row: RowRef<'_>, cx: &mut Cx<'p, '_>) -> Result<Scalar, SqlError> {
    let value = eval_row(operand, row, cx)?;
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    let mut unknown = false;
    for item in list {
        match compare_sql(&value, &eval_row(item, row, cx)?, &operand.sql_type) {
            Some(Ordering::Equal) => return Ok(Scalar::Bit(!negated)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Scalar::Null } else { Scalar::Bit(negated) })
}

/// Whether a text is LIKE a pattern; `None` if one of the three is NULL.
fn is_like(text: &Scalar, pattern: &Scalar, escape: Option<&Scalar>, types: (&SqlType, &SqlType)) -> Result<Option<bool>, SqlError> {
    let (Scalar::Text(text), Scalar::Text(pattern), None | Some(Scalar::Text(_))) = (text, pattern, escape) else { return Ok(None) };
    Ok(Some(like_pattern(pattern, escape, types)?.matches(text)))
}

/// The pattern of a LIKE between these types of text and pattern.
pub(super) fn like_pattern(pattern: &str, escape: Option<&Scalar>, types: (&SqlType, &SqlType)) -> Result<LikePattern, SqlError> {
    let collation = types.0.collation().unwrap_or(Collation::DEFAULT);
    let compiled = LikePattern::new(pattern, escape.and_then(Scalar::as_text), collation)?;
    Ok(compiled.for_unicode(types.0.is_unicode() || types.1.is_unicode()))
}

/// `+` of two texts or two byte strings: NULL if either is, cut to what the result's type holds.
pub(super) fn concat(left: Scalar, right: Scalar, sql_type: &SqlType) -> Result<Scalar, SqlError> {
    match (left, right) {
        (Scalar::Text(mut a), Scalar::Text(b)) => {
            a.push_str(&b);
            Ok(convert::cut(Scalar::Text(a), sql_type))
        }
        (Scalar::Binary(mut a), Scalar::Binary(b)) => {
            a.extend(b);
            Ok(convert::cut(Scalar::Binary(a), sql_type))
        }
        _ => Ok(Scalar::Null),
    }
}

fn call<'p>(
    name: &'static str,
    calling: Calling,
    arguments: &'p [Expr],
    expr: &'p Expr,
    row: RowRef<'_>,
    cx: &mut Cx<'p, '_>,
) -> Result<Scalar, SqlError> {
    match calling.0 {
        Way::User => call_user_function(arguments, row, cx),
        Way::FirstValue => {
            for argument in arguments {
                let value = eval_row(argument, row, cx)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Scalar::Null)
        }
        Way::If => {
            let taken = if eval_row(&arguments[0], row, cx)? == Scalar::Bit(true) { 1 } else { 2 };
            eval_row(&arguments[taken], row, cx)
        }
        Way::Choose => {
            let index = eval_row(&arguments[0], row, cx)?.as_i64().and_then(|i| usize::try_from(i).ok()).filter(|i| *i > 0);
            index.and_then(|i| arguments.get(i)).map_or(Ok(Scalar::Null), |e| eval_row(e, row, cx))
        }
        Way::Plain(evaluator) => {
            // Few functions take more than four arguments: those that do may allocate.
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(eval_row(argument, row, cx)?);
            }
            evaluator(&Call { name, values: &values, arguments, result: &expr.sql_type, session: cx.host.session() })
        }
        Way::Unknown => Err(message(195, &[&name, &"function name"])),
    }
}
