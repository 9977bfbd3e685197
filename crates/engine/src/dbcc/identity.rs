//! DBCC CHECKIDENT: what the identity column's last value is, and another one.
//!
//! Failure: 7997 for a table without an identity column.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::dbcc::argument;
use crate::ddl::names::{find_table, parse_name};
use crate::messages::message;
use thawdb_tsql::ast::Dbcc;

/// DBCC CHECKIDENT (table [, NORESEED | RESEED [, value]]).
pub(super) fn check_identity(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, quiet: bool) -> Result<(), Failure> {
    let name = argument(interpreter, node, 0)?.ok_or_else(|| message(2526, &[]))?;
    let parsed = parse_name(&name).ok_or_else(|| message(2501, &[&name]))?;
    let table = find_table(interpreter.session, &parsed)?.ok_or_else(|| message(2501, &[&name]))?;
    let column = interpreter.session.identity_column(table.database, table.id).map_err(|_| message(7997, &[&table.name]))?;
    let open = interpreter.session.storage_of(table.database)?;
    let last = open.counters.last_identity(table.id, column);
    let shown = last.map_or("NULL".to_owned(), |last| last.to_string());
    if !quiet {
        interpreter.out.message(&message(7998, &[&shown, &shown]));
    }
    let reseeds = argument(interpreter, node, 1)?.is_some_and(|word| word.eq_ignore_ascii_case("RESEED"));
    if let (true, Some(value)) = (reseeds, argument(interpreter, node, 2)?) {
        let value: i64 = value.parse().map_err(|_| message(2560, &[&3]))?;
        // Of a table that never had a row the value itself is next, of others the one after it.
        let next = if last.is_none() { value } else { value.saturating_add(column.definition.increment) };
        let reset = open.counters.reset_identity(&open, table.id, Some(next));
        reset.map_err(|error| interpreter.session.storage_failure(open.id, error))?;
    }
    Ok(())
}
