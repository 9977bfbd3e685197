//! Cursors by call: sp_cursoropen, sp_cursorfetch, sp_cursor and their kin, which ODBC, JDBC and OLE DB use in place of
//! DECLARE CURSOR (MS-TDS 2.2.6.6 gives their numbers, the manual their options).
//!
//! ```text
//! sp_cursoropen text ─► parsed, compiled ─► options as the query allows ─► a cursor of `session::cursors`, opened
//!                                                                      ─► columns and ROWSTAT, no row ─► handle, options, count
//! sp_cursorfetch     ─► the buffer moves ─► its rows, each with ROWSTAT (1 read, 2 missing)
//! sp_cursor          ─► UPDATE, DELETE, INSERT ... WHERE CURRENT OF the row of the buffer
//! ```
//!
//! Rows are those at the open, as of all our cursors; after a change through the cursor, and at a REFRESH, the query is run
//! again and the rows are found by their locators: those that are gone are missing.
//!
//! Failure: 16909 for a handle that is not open, 8179 for one not prepared, 16930 for a row outside the buffer, 16902 for
//! a value out of range, 16966 and 16955 for options that exclude each other; 16945 follows the error of a text that cannot
//! be a cursor.

mod change;
mod fetch;
mod open;
mod options;
mod origin;

use crate::batch::arguments::Argument;
use crate::batch::failure::Failure;
use crate::batch::outbox::Outbox;
use crate::messages::message;
use crate::procedures::Returned;
use crate::rows;
use crate::session::api_cursors::{ApiCursor, PreparedCursor};
use crate::session::state::SessionState;
use thawdb_types::{Scalar, SqlError, SqlType};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorProcedure {
    Cursor,
    Open,
    Prepare,
    Execute,
    PrepareAndExecute,
    Unprepare,
    Fetch,
    Option,
    Close,
}

impl CursorProcedure {
    /// The one of this lower-case name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "sp_cursor" => Self::Cursor,
            "sp_cursoropen" => Self::Open,
            "sp_cursorprepare" => Self::Prepare,
            "sp_cursorexecute" => Self::Execute,
            "sp_cursorprepexec" => Self::PrepareAndExecute,
            "sp_cursorunprepare" => Self::Unprepare,
            "sp_cursorfetch" => Self::Fetch,
            "sp_cursoroption" => Self::Option,
            "sp_cursorclose" => Self::Close,
            _ => return None,
        })
    }
}

/// Calls it.
pub(crate) fn call(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    procedure: CursorProcedure,
    arguments: &[Argument],
) -> Result<Returned, Failure> {
    match procedure {
        CursorProcedure::Cursor => change::call(session, out, arguments),
        CursorProcedure::Open => {
            let places = open::Places { cursor: 0, scroll: 2, concurrency: 3, rows: 4, bound: 5 };
            let text = text_at("sp_cursoropen", arguments, 1)?;
            // With parameters their declaration comes before their values.
            let parameterized = int_at(arguments, 2)?.unwrap_or(options::KEYSET) & options::PARAMETERIZED != 0;
            if !parameterized {
                return open::call(session, out, "", &text, &places, arguments);
            }
            let declarations = text_at("sp_cursoropen", arguments, 5)?;
            open::call(session, out, &declarations, &text, &open::Places { bound: 6, ..places }, arguments)
        }
        CursorProcedure::Prepare => {
            let handle = prepare(session, text_at("sp_cursorprepare", arguments, 1)?, text_at("sp_cursorprepare", arguments, 2)?)?;
            Ok(returned(arguments, 0, vec![(0, handle)]))
        }
        CursorProcedure::Execute => {
            let handle = int_at(arguments, 0)?.unwrap_or(0);
            let prepared = session.api_cursors.prepared.get(&handle).cloned().ok_or_else(|| message(8179, &[&handle]))?;
            let places = open::Places { cursor: 1, scroll: 2, concurrency: 3, rows: 4, bound: 5 };
            open::call(session, out, &prepared.declarations, &prepared.text, &places, arguments)
        }
        CursorProcedure::PrepareAndExecute => {
            let declarations = text_at("sp_cursorprepexec", arguments, 2)?;
            let text = text_at("sp_cursorprepexec", arguments, 3)?;
            let handle = prepare(session, declarations.clone(), text.clone())?;
            let places = open::Places { cursor: 1, scroll: 4, concurrency: 5, rows: 6, bound: 7 };
            let mut result = open::call(session, out, &declarations, &text, &places, arguments)?;
            result.outputs.insert(0, (0, Scalar::Int(handle), SqlType::Int));
            Ok(result)
        }
        CursorProcedure::Unprepare => {
            let handle = int_at(arguments, 0)?.unwrap_or(0);
            session.api_cursors.prepared.remove(&handle).ok_or_else(|| message(8179, &[&handle]))?;
            Ok(Returned::default())
        }
        CursorProcedure::Fetch => fetch::call(session, out, arguments),
        CursorProcedure::Option => option(session, arguments),
        CursorProcedure::Close => {
            match int_at(arguments, 0)?.unwrap_or(0) {
                -1 => session.api_cursors.open.keys().copied().collect::<Vec<_>>().into_iter().for_each(|handle| close(session, handle)),
                handle => {
                    cursor(session, "sp_cursorclose", handle)?;
                    close(session, handle);
                }
            }
            Ok(Returned::default())
        }
    }
}

fn prepare(session: &mut SessionState, declarations: String, text: String) -> Result<i32, SqlError> {
    session.api_cursors.prepare(PreparedCursor { declarations, text }).ok_or_else(|| message(701, &[&"default"]))
}

/// sp_cursoroption: a name for the cursor (2), or its options and count given back (4 to 6).
fn option(session: &mut SessionState, arguments: &[Argument]) -> Result<Returned, Failure> {
    const NAME: i32 = 2;
    const SCROLL: i32 = 4;
    const CONCURRENCY: i32 = 5;
    const ROWS: i32 = 6;
    let handle = int_at(arguments, 0)?.unwrap_or(0);
    let open = cursor(session, "sp_cursoroption", handle)?;
    let (id, scroll, concurrency) = (open.id, open.scroll, open.concurrency);
    match int_at(arguments, 1)?.unwrap_or(0) {
        NAME => {
            let key = text_at("sp_cursoroption", arguments, 2)?.to_lowercase();
            if session.cursors.globals.contains_key(&key) {
                return Err(message(16_915, &[&key]).into());
            }
            session.cursors.globals.insert(key, id);
            Ok(Returned::default())
        }
        SCROLL => Ok(returned(arguments, 0, vec![(2, scroll)])),
        CONCURRENCY => Ok(returned(arguments, 0, vec![(2, concurrency)])),
        ROWS => {
            let count = session.cursors.all.get(&id).and_then(|cursor| cursor.open.as_ref()).map_or(0, |open| open.count);
            Ok(returned(arguments, 0, vec![(2, i32::try_from(count).unwrap_or(i32::MAX))]))
        }
        // Text pointers in place of values are asked for by OLE DB's oldest providers alone.
        _ => Err(message(16_902, &[&"sp_cursoroption", &"'code'"]).into()),
    }
}

/// Forgets a cursor and its names.
fn close(session: &mut SessionState, handle: i32) {
    let Some(cursor) = session.api_cursors.open.remove(&handle) else { return };
    session.cursors.globals.retain(|_, id| *id != cursor.id);
    session.cursors.all.remove(&cursor.id);
}

/// The open cursor of a handle: 16909.
fn cursor<'s>(session: &'s mut SessionState, procedure: &str, handle: i32) -> Result<&'s mut ApiCursor, SqlError> {
    let there = session.api_cursors.open.get(&handle).is_some_and(|cursor| session.cursors.all.contains_key(&cursor.id));
    if !there {
        close(session, handle);
        return Err(message(16_909, &[&procedure, &format!("{handle:x}")]));
    }
    Ok(session.api_cursors.open.get_mut(&handle).expect("seen above"))
}

/// An argument as an int; `None` where none or NULL was given.
fn int_at(arguments: &[Argument], at: usize) -> Result<Option<i32>, SqlError> {
    let Some(argument) = arguments.get(at) else { return Ok(None) };
    Ok(match rows::convert(&argument.value, &argument.sql_type, &SqlType::Int)? {
        Scalar::Int(value) => Some(value),
        _ => None,
    })
}

/// An argument that is a text: 201 where there is none, 214 for another type.
fn text_at(procedure: &str, arguments: &[Argument], at: usize) -> Result<String, SqlError> {
    match arguments.get(at).map(|argument| (&argument.value, argument.sql_type.is_text())) {
        Some((Scalar::Text(text), true)) => Ok(text.clone()),
        Some((Scalar::Null, _)) => Ok(String::new()),
        Some(_) => Err(message(214, &[&procedure, &"ntext/nchar/nvarchar"])),
        None => Err(message(201, &[&procedure, &"@stmt"])),
    }
}

/// What a call gives back: a status, and ints for those of the output arguments that the caller has given.
fn returned(arguments: &[Argument], status: i32, values: Vec<(usize, i32)>) -> Returned {
    let wanted = |(at, _): &(usize, i32)| arguments.get(*at).is_some_and(|argument| argument.output);
    let outputs = values.into_iter().filter(wanted).map(|(at, value)| (at, Scalar::Int(value), SqlType::Int)).collect();
    Returned { status, outputs }
}
