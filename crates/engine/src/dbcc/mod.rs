//! DBCC: one file for each group of commands; what they share is here.
//!
//! ```text
//! run ─ check (CHECKDB ..) ─ log (SQLPERF, LOGINFO) ─ shrink (SHRINKFILE, SHRINKDATABASE) ─ page (PAGE, IND) ─ flags
//!     ─ show_statistics
//! ```
//! A command's rows and messages come first, then 2528 unless NO_INFOMSGS. What is not built is 40510 by its name.

mod check;
mod flags;
mod identity;
mod log;
mod page;
mod show_statistics;
mod shrink;

use crate::api::batch::Batch;
use crate::api::sink::StatementKind;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported};
use crate::views::{Column, Rows};
use std::sync::Arc;
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ast::{Dbcc, DbccArgument};
use thawdb_types::column::array_from_scalars;

/// DBCC.
pub(crate) fn run(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let quiet = node.options.iter().any(|option| option.name == "NO_INFOMSGS");
    match node.name.as_str() {
        "CHECKDB" | "CHECKALLOC" | "CHECKCATALOG" => check::check_database(interpreter, node)?,
        "CHECKTABLE" => check::check_one(interpreter, node)?,
        "CHECKIDENT" => identity::check_identity(interpreter, node, quiet)?,
        "TRACEON" | "TRACEOFF" => flags::change(interpreter, node)?,
        "TRACESTATUS" => flags::status(interpreter, node)?,
        "SQLPERF" => log::performance(interpreter, node)?,
        "LOGINFO" => log::loginfo(interpreter, node)?,
        "SHRINKFILE" => shrink::shrink_file(interpreter, node)?,
        "SHRINKDATABASE" => shrink::shrink_database(interpreter, node)?,
        "PAGE" => page::page(interpreter, node)?,
        "SHOW_STATISTICS" => show_statistics::show(interpreter, node)?,
        "IND" => page::index_pages(interpreter, node)?,
        "FREEPROCCACHE" | "FREESYSTEMCACHE" | "FREESESSIONCACHE" => interpreter.session.engine.plans.clear(),
        "DROPCLEANBUFFERS" => interpreter.session.engine.storage.drop_clean_pages(),
        name => return Err(unsupported(format!("DBCC {name}")).into()),
    }
    if !quiet {
        interpreter.out.message(&message(2528, &[]));
    }
    interpreter.session.row_count = 0;
    interpreter.session.last_error = 0;
    interpreter.out.done(StatementKind::Other, None, false);
    Ok(())
}

/// An argument as text: a name, a string, or a number.
fn argument(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, at: usize) -> Result<Option<String>, Failure> {
    match node.arguments.get(at) {
        None => Ok(None),
        Some(DbccArgument::Name(name)) => Ok(Some(crate::ddl::names::shown(name))),
        Some(DbccArgument::Expr(expr)) => {
            let (value, sql_type) = interpreter.value(expr)?;
            Ok(Some(crate::rows::display(&value, &sql_type)))
        }
    }
}

/// An argument as a whole number; 2560 if it is none.
fn number(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, at: usize) -> Result<Option<i64>, Failure> {
    match argument(interpreter, node, at)? {
        None => Ok(None),
        Some(text) => match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(message(2560, &[&(at + 1)]).into()),
        },
    }
}

/// The database an argument names or numbers; the present one if it is left out, 0 or empty.
fn database_argument(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, at: usize) -> Result<Arc<OpenDatabase>, Failure> {
    match argument(interpreter, node, at)?.filter(|name| name != "0" && !name.is_empty()) {
        None => Ok(interpreter.session.database.clone()),
        Some(name) => {
            let by_number = name.parse().ok().and_then(|id| interpreter.session.engine.database(thawdb_catalog::DatabaseId(id)));
            let open = match by_number {
                Some(open) => Some(open),
                None => interpreter.session.engine.usable_database(&name)?,
            };
            Ok(open.ok_or_else(|| message(911, &[&name]))?)
        }
    }
}

/// Sends a result set.
fn send_rows(interpreter: &mut Interpreter<'_, '_>, columns: &[Column], rows: &Rows) -> Result<(), Failure> {
    let output = |column: &Column| OutputColumn {
        name: column.name.to_owned(),
        sql_type: column.sql_type,
        nullable: column.nullable,
        identity: false,
    };
    let outputs: Vec<OutputColumn> = columns.iter().map(output).collect();
    let array = |(at, column): (usize, &Column)| {
        let values: Vec<_> = rows.iter().map(|row| row[at].clone()).collect();
        array_from_scalars(&column.sql_type, &values)
    };
    let arrays = columns.iter().enumerate().map(array).collect();
    interpreter.out.columns(&outputs)?;
    interpreter.out.rows(&Batch { columns: arrays, row_count: rows.len() })?;
    let count = interpreter.shown_count(rows.len() as u64);
    interpreter.out.done(StatementKind::Select, count, false);
    Ok(())
}
