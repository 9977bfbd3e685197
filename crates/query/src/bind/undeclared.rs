//! Types for parameters of a text that nobody has declared, by the places they stand in (sp_describe_undeclared_parameters).
//!
//! ```text
//! @p ─ nobody declared it ─► Variable(FIRST + n) of type UNTYPED, for the binder a constant NULL: what stands beside it types it
//!    =, IN, SET, VALUES, CAST, arguments of users' functions     that very type           (simple deduction)
//!    < > <= >=, BETWEEN, LIKE, operators, built-in functions     the type's widest kin    (general deduction, `general`)
//! ```
//! Invariant: such expressions are in no plan: only [`types_of`] looks at what is bound with them.
//!
//! Failure: 11502 for one whose place tells nothing, 11503 for two that only tell of each other.
//!
//! Of the documented choice among types by the conversions they cause, an operator's other side decides here.

use super::error::error;
use super::statement::{BoundStmt, MergeStepKind};
use crate::algebra::{BoundExpr, BoundExprKind, Rel};
use crate::functions::signature::Arg;
use thawdb_tsql::ast::Span;
use thawdb_types::{Collation, MaxLength, SqlError, SqlType};

/// Slots from here on are those of undeclared parameters.
const FIRST: usize = usize::MAX / 2;
/// The type of one that nothing has typed: no expression else has it.
const UNTYPED: SqlType = SqlType::Char { length: 0, collation: Collation::DEFAULT };

/// The `n`-th undeclared parameter.
pub(crate) fn parameter(n: usize) -> BoundExpr {
    BoundExpr::new(BoundExprKind::Variable(FIRST + n), UNTYPED)
}

/// Which one an expression is.
pub(crate) fn number_of(expr: &BoundExpr) -> Option<usize> {
    match expr.kind {
        BoundExprKind::Variable(slot) => slot.checked_sub(FIRST),
        _ => None,
    }
}

/// The type among those that general deduction knows.
pub(crate) fn general(of: SqlType) -> SqlType {
    let long = of.length().is_none() && of.max_length() == -1 || of.is_large();
    match of {
        _ if of == UNTYPED => UNTYPED,
        SqlType::Decimal { .. } => SqlType::numeric(38, 19),
        _ if of.is_unicode() => {
            let length = if long { MaxLength::Max } else { MaxLength::Limited(4000) };
            SqlType::NVarChar { length, collation: of.collation().unwrap_or(Collation::DEFAULT) }
        }
        _ if of.is_text() => {
            let length = if long { MaxLength::Max } else { MaxLength::Limited(8000) };
            SqlType::VarChar { length, collation: of.collation().unwrap_or(Collation::DEFAULT) }
        }
        SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::RowVersion => {
            SqlType::VarBinary { length: if long { MaxLength::Max } else { MaxLength::Limited(8000) } }
        }
        SqlType::Time { .. } => SqlType::Time { scale: 7 },
        SqlType::DateTime2 { .. } => SqlType::DateTime2 { scale: 7 },
        SqlType::DateTimeOffset { .. } => SqlType::DateTimeOffset { scale: 7 },
        other => other,
    }
}

/// The type for an argument of a built-in function: of those that need no conversion the one of the highest precedence.
pub(crate) fn of_argument(wanted: Arg) -> Option<SqlType> {
    Some(match wanted {
        Arg::Text | Arg::TextOrBinary | Arg::Unicode | Arg::National | Arg::Character | Arg::Concat => SqlType::nvarchar(4000),
        Arg::Int => SqlType::Int,
        Arg::BigInt => SqlType::BigInt,
        Arg::Float | Arg::Number => SqlType::Float,
        Arg::Bit => SqlType::Bit,
        Arg::Date | Arg::Offset | Arg::DateAndTime => SqlType::DateTimeOffset { scale: 7 },
        Arg::Binary => SqlType::varbinary(8000),
        Arg::Variant => SqlType::SqlVariant,
        Arg::Part | Arg::Any | Arg::Common => return None,
    })
}

/// The types of the parameters of these names in a bound statement: number and type, by number.
pub(crate) fn types_of(stmt: &BoundStmt, names: &[String], span: Span) -> Result<Vec<(usize, SqlType)>, SqlError> {
    let mut found: Vec<(usize, SqlType)> = Vec::new();
    let mut pair = None;
    walk(stmt, &mut |expr| {
        if let Some(number) = number_of(expr) {
            match found.iter_mut().find(|(known, _)| *known == number) {
                Some((_, known)) if *known == UNTYPED => *known = expr.sql_type,
                Some(_) => {}
                None => found.push((number, expr.sql_type)),
            }
        }
        let untyped = expr.children().into_iter().filter(|child| child.sql_type == UNTYPED).filter_map(number_of);
        if let [left, right, ..] = untyped.collect::<Vec<_>>().as_slice() {
            pair = pair.or(Some((*left, *right)));
        }
    });
    let name = |number: usize| names.get(number).map_or("", String::as_str);
    if let Some((left, right)) = pair {
        return Err(error(11_503, &[&name(left), &name(right)], span));
    }
    if let Some((number, _)) = found.iter().find(|(_, sql_type)| *sql_type == UNTYPED) {
        return Err(error(11_502, &[&name(*number)], span));
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found)
}

fn walk(stmt: &BoundStmt, visit: &mut dyn FnMut(&BoundExpr)) {
    let (rel, output): (&Rel, _) = match stmt {
        BoundStmt::Query { rel, .. } | BoundStmt::Assign { rel, .. } | BoundStmt::SelectInto { rel, .. } => (rel, &None),
        BoundStmt::Insert(insert) => (&insert.input, &insert.output),
        BoundStmt::Update(update) => (&update.input, &update.output),
        BoundStmt::Delete(delete) => (&delete.input, &delete.output),
        BoundStmt::Merge(merge) => (&merge.input, &merge.output),
        BoundStmt::Instead(instead) => (&instead.input, &instead.output),
    };
    rel.walk_exprs(visit);
    let mut each = |exprs: &[(usize, BoundExpr)]| exprs.iter().for_each(|(_, expr)| expr.walk(visit));
    match stmt {
        BoundStmt::Assign { assignments, .. } => each(assignments),
        BoundStmt::Update(update) => {
            each(&update.assignments);
            each(&update.variables);
        }
        BoundStmt::Merge(merge) => {
            for step in &merge.steps {
                match step {
                    MergeStepKind::Delete => {}
                    MergeStepKind::Update { assignments } => each(assignments),
                    MergeStepKind::Insert { values, .. } => each(values),
                }
            }
        }
        BoundStmt::Instead(instead) => instead.new.iter().for_each(|expr| expr.walk(visit)),
        _ => {}
    }
    for (_, item) in output.iter().flat_map(|output| &output.items) {
        item.walk(visit);
    }
}
