//! sp_cursor: changes rows of the buffer, or adds rows to the cursor's table.

use super::{cursor, int_at};
use crate::batch::arguments::Argument;
use crate::batch::execute::{Caller, Source, run_scope};
use crate::batch::failure::Failure;
use crate::batch::outbox::Outbox;
use crate::messages::message;
use crate::procedures::Returned;
use crate::session::frame::{Frame, Variable};
use crate::session::state::SessionState;
use thawdb_types::{Scalar, SqlError};

const NAME: &str = "sp_cursor";
const UPDATE: i32 = 0x1;
const DELETE: i32 = 0x2;
const INSERT: i32 = 0x4;
const REFRESH: i32 = 0x8;
const LOCK: i32 = 0x10;
const SET_POSITION: i32 = 0x20;
/// The row is counted from the set's first row, not from the buffer's.
const ABSOLUTE: i32 = 0x40;
const KNOWN: i32 = UPDATE | DELETE | INSERT | REFRESH | LOCK | SET_POSITION | ABSOLUTE;

/// Calls it: cursor, operation, row, table, values named after the columns or in their order.
pub(super) fn call(session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Argument]) -> Result<Returned, Failure> {
    let handle = int_at(arguments, 0)?.unwrap_or(0);
    let operation = int_at(arguments, 1)?.unwrap_or(0);
    let row = int_at(arguments, 2)?.unwrap_or(0);
    cursor(session, NAME, handle)?;
    if operation & !KNOWN != 0 || operation & !ABSOLUTE == 0 {
        return Err(message(16_902, &[&NAME, &"'optype'"]).into());
    }
    let table = table_name(session, handle, arguments.get(3))?;
    let values = arguments.get(4..).unwrap_or_default();
    if operation & INSERT != 0 {
        insert(session, out, handle, &table, values)?;
        return Ok(Returned::default());
    }
    for position in positions(session, handle, row, operation & ABSOLUTE != 0)? {
        // A trigger of the row before may have closed it.
        cursor(session, NAME, handle)?;
        stand_on(session, handle, position);
        let name = session.api_cursors.open[&handle].name.clone();
        if operation & UPDATE != 0 {
            let columns = names(session, handle, values)?;
            let set: Vec<String> = (0..).zip(&columns).map(|(at, column)| format!("{} = @p{at}", quoted(column))).collect();
            let text = format!("SET NOCOUNT ON UPDATE {table} SET {} WHERE CURRENT OF GLOBAL {}", set.join(", "), quoted(&name));
            run(session, out, &text, values)?;
        }
        if operation & DELETE != 0 {
            let text = format!("SET NOCOUNT ON DELETE {table} WHERE CURRENT OF GLOBAL {}", quoted(&name));
            run(session, out, &text, &[])?;
        }
    }
    let changes = operation & (UPDATE | DELETE | REFRESH) != 0;
    if let Some(cursor) = session.api_cursors.open.get_mut(&handle).filter(|_| changes) {
        cursor.stale = true;
    }
    Ok(Returned::default())
}

fn insert(session: &mut SessionState, out: &mut Outbox<'_>, handle: i32, table: &str, values: &[Argument]) -> Result<(), Failure> {
    let columns: Vec<String> = names(session, handle, values)?.iter().map(|column| quoted(column)).collect();
    let given: Vec<String> = (0..columns.len()).map(|at| format!("@p{at}")).collect();
    let text = match columns.is_empty() {
        true => format!("SET NOCOUNT ON INSERT {table} DEFAULT VALUES"),
        false => format!("SET NOCOUNT ON INSERT {table} ({}) VALUES ({})", columns.join(", "), given.join(", ")),
    };
    run(session, out, &text, values)
}

/// The table that is meant: the one named, or the cursor's only one. 16929 where the cursor changes none.
fn table_name(session: &SessionState, handle: i32, argument: Option<&Argument>) -> Result<String, SqlError> {
    let cursor = &session.api_cursors.open[&handle];
    let given = argument.and_then(|argument| argument.value.as_text()).filter(|name| !name.trim().is_empty());
    let whole = |parts: &[String; 3]| parts.iter().map(|part| quoted(part)).collect::<Vec<_>>().join(".");
    match given {
        // Taken apart and put together again: whatever is sent, it is a name.
        Some(name) => {
            let parsed = crate::ddl::names::parse_name(name).ok_or_else(|| message(208, &[&name]))?;
            let parts = [&parsed.database, &parsed.schema].into_iter().flatten().map(|part| quoted(&part.text));
            let parts: Vec<String> = parts.chain([quoted(&parsed.name.text)]).collect();
            Ok(parts.join(if parsed.database.is_some() && parsed.schema.is_none() { ".." } else { "." }))
        }
        None => cursor.tables.first().map(whole).ok_or_else(|| message(16_929, &[])),
    }
}

/// Positions in the set of the rows that are meant: one of the buffer, or with 0 all of it. 16930, 16931.
fn positions(session: &SessionState, handle: i32, row: i32, absolute: bool) -> Result<Vec<u64>, SqlError> {
    let cursor = &session.api_cursors.open[&handle];
    let row = u64::try_from(row).map_err(|_| message(16_902, &[&NAME, &"'rownum'"]))?;
    let rows = session.cursors.all.get(&cursor.id).and_then(|cursor| cursor.open.as_ref()).ok_or_else(|| message(16_917, &[]))?;
    match row {
        _ if absolute && (1..=rows.count).contains(&row) => Ok(vec![row]),
        _ if cursor.buffer_rows == 0 => Err(message(16_931, &[])),
        0 => Ok((cursor.buffer_start..cursor.buffer_start + cursor.buffer_rows).collect()),
        row if row <= cursor.buffer_rows => Ok(vec![cursor.buffer_start + row - 1]),
        _ => Err(message(16_930, &[])),
    }
}

fn stand_on(session: &mut SessionState, handle: i32, position: u64) {
    let id = session.api_cursors.open[&handle].id;
    if let Some(rows) = session.cursors.all.get_mut(&id).and_then(|cursor| cursor.open.as_mut()) {
        rows.position = position;
    }
}

/// The column each value is for: the one its parameter is named after, or the next of the cursor's.
fn names(session: &SessionState, handle: i32, values: &[Argument]) -> Result<Vec<String>, SqlError> {
    let origins = &session.api_cursors.open[&handle].origins;
    let name = |(at, value): (usize, &Argument)| match value.name.trim_start_matches('@') {
        "" => origins.get(at).filter(|origin| origin.table > 0).map(|origin| origin.column.clone()),
        name => Some(name.to_owned()),
    };
    let names: Option<Vec<String>> = values.iter().enumerate().map(name).collect();
    names.ok_or_else(|| message(16_903, &[&NAME]))
}

/// Runs a statement whose parameters are the values.
fn run(session: &mut SessionState, out: &mut Outbox<'_>, text: &str, values: &[Argument]) -> Result<(), Failure> {
    let variable = |(at, value): (usize, &Argument)| Variable {
        name: format!("@p{at}"),
        sql_type: value.sql_type,
        value: if value.is_default { Scalar::Null } else { value.value.clone() },
        declared_at: 0,
    };
    let frame = Frame { variables: values.iter().enumerate().map(variable).collect(), ..Frame::default() };
    let (_, frame) = run_scope(session, out, Source::Text(text), frame, Caller::Procedure)?;
    // A statement that was refused inside has been told of there.
    if frame.worst_severity > 10 { Err(Failure { told: true, ..Failure::run(message(16_947, &[])) }) } else { Ok(()) }
}

/// A name in brackets.
fn quoted(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}
