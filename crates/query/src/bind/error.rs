//! Making errors of binding: number, arguments, line.

use std::fmt::Display;
use thawdb_tsql::ast::Span;
use thawdb_types::{SqlError, SqlType, message};

/// The message `number` with `arguments`, at the line of `span`.
pub fn error(number: i32, arguments: &[&dyn Display], span: Span) -> SqlError {
    at(message(number, arguments), span)
}

/// `error` at the line of `span`, unless it has one.
pub fn at(mut error: SqlError, span: Span) -> SqlError {
    if error.line == 0 {
        error.line = span.line;
    }
    error
}

/// 40514: the language has it, we do not yet.
pub fn not_built(what: &str, span: Span) -> SqlError {
    error(40514, &[&what], span)
}

/// 206: values of the two types do not go together.
pub fn clash(left: &SqlType, right: &SqlType, span: Span) -> SqlError {
    error(206, &[&left.message_name(), &right.message_name()], span)
}
