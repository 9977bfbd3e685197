//! sp_cursorfetch: the buffer moves through the rows.

use super::{close, cursor, int_at, open, returned};
use crate::api::sink::StatementKind;
use crate::batch::arguments::Argument;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::outbox::Outbox;
use crate::messages::message;
use crate::procedures::Returned;
use crate::session::cursors::{CursorKind, OpenCursor};
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use std::collections::{BTreeMap, BTreeSet};
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

const NAME: &str = "sp_cursorfetch";
const FIRST: i32 = 0x1;
const NEXT: i32 = 0x2;
const PREVIOUS: i32 = 0x4;
const LAST: i32 = 0x8;
const ABSOLUTE: i32 = 0x10;
const RELATIVE: i32 = 0x20;
const REFRESH: i32 = 0x80;
const INFO: i32 = 0x100;
const PREVIOUS_NO_ADJUST: i32 = 0x200;
/// Says nothing to a server that keeps no concurrency values.
const SKIP_CONCURRENCY: i32 = 0x400;
/// Status of a fetch that closed its cursor.
const CLOSED: i32 = 16;
const ROW_READ: i32 = 1;
const ROW_MISSING: i32 = 2;

/// A buffer: its first row, counted from 1, and how many rows it has.
type Buffer = (u64, u64);

/// Calls it.
pub(super) fn call(session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Argument]) -> Result<Returned, Failure> {
    let handle = int_at(arguments, 0)?.unwrap_or(0);
    let kind = int_at(arguments, 1)?.unwrap_or(NEXT) & !SKIP_CONCURRENCY;
    let row = int_at(arguments, 2)?.unwrap_or(1);
    let count = int_at(arguments, 3)?.unwrap_or(20);
    cursor(session, NAME, handle)?;
    if kind == INFO {
        let (cursor, rows) = opened(session, handle)?;
        let at = i32::try_from(cursor).unwrap_or(i32::MAX);
        return Ok(returned(arguments, 0, vec![(2, at), (3, i32::try_from(rows.count).unwrap_or(i32::MAX))]));
    }
    let count = u64::try_from(count).map_err(|_| message(16_902, &[&NAME, &"'nrows'"]))?;
    let cursor = &session.api_cursors.open[&handle];
    if !session.cursors.all[&cursor.id].declaration.scrolls && !matches!(kind, NEXT | FIRST | REFRESH) {
        return Err(message(16_911, &[&NAME, &"scroll"]).into());
    }
    if cursor.stale || kind == REFRESH {
        refresh(session, out, handle)?;
    }
    let buffer = (session.api_cursors.open[&handle].buffer_start, session.api_cursors.open[&handle].buffer_rows);
    let (_, rows) = opened(session, handle)?;
    let next = moved(buffer, rows.count, kind, row, count).ok_or_else(|| message(16_902, &[&NAME, &"'fetchtype'"]))?;
    let status = send(session, out, handle, next)?;
    Ok(Returned { status, outputs: Vec::new() })
}

/// The first rows, with the open that asked for them.
pub(super) fn first_rows(session: &mut SessionState, out: &mut Outbox<'_>, handle: i32, count: u64) -> Result<i32, Failure> {
    let (_, rows) = opened(session, handle)?;
    let buffer = (1, count.min(rows.count));
    send(session, out, handle, buffer)
}

/// Position and rows of an open cursor: 16917 where a rollback has closed it.
fn opened(session: &SessionState, handle: i32) -> Result<(u64, &OpenCursor), SqlError> {
    let cursor = &session.api_cursors.open[&handle];
    let rows = session.cursors.all.get(&cursor.id).and_then(|cursor| cursor.open.as_ref());
    Ok((cursor.buffer_start, rows.ok_or_else(|| message(16_917, &[]))?))
}

/// Where a fetch leads from `buffer` among `total` rows; `None` for a kind there is none of.
fn moved((start, length): Buffer, total: u64, kind: i32, row: i32, count: u64) -> Option<Buffer> {
    let (from, rows, wanted) = (i128::from(start), i128::from(total), i128::from(count));
    let row = i128::from(row);
    let to = match kind {
        FIRST => 1,
        NEXT if from == 0 => 1,
        NEXT => from + i128::from(length).max(i128::from(start <= total)),
        // What is less than a buffer away from the first row is the first buffer.
        PREVIOUS if from > 1 => (from - wanted).max(1),
        PREVIOUS => 0,
        PREVIOUS_NO_ADJUST if from > 1 && from <= wanted => return Some((1, start - 1)),
        PREVIOUS_NO_ADJUST => from - wanted,
        LAST => (rows - wanted + 1).max(1),
        ABSOLUTE if row < 0 && -row > rows && -row <= wanted => 1,
        ABSOLUTE if row < 0 => rows + 1 + row,
        ABSOLUTE => row,
        RELATIVE if from + row < 1 && from > 1 && -row <= wanted => 1,
        RELATIVE => from + row,
        REFRESH => return Some((start, length)),
        _ => return None,
    };
    let to = u64::try_from(to.clamp(0, rows + 1)).expect("clamped");
    let there = if to == 0 { 0 } else { count.min((total + 1).saturating_sub(to)) };
    Some((to, there))
}

/// Sends the rows of a buffer and keeps it; a cursor that is through, and was to close then, closes.
fn send(session: &mut SessionState, out: &mut Outbox<'_>, handle: i32, buffer: Buffer) -> Result<i32, Failure> {
    open::send_columns(session, out, handle)?;
    let (_, rows) = opened(session, handle)?;
    let cursor = &session.api_cursors.open[&handle];
    let columns = cursor.columns.clone();
    for position in buffer.0..buffer.0 + buffer.1 {
        let row = rows.row(position).filter(|_| !cursor.missing.contains(&position));
        let own = &columns[..columns.len() - 1];
        let mut values: Vec<Scalar> = match &row {
            Some(row) => own.iter().zip(&row.columns).map(|(column, array)| scalar_at(array.as_ref(), 0, &column.sql_type)).collect(),
            None => vec![Scalar::Null; own.len()],
        };
        values.push(Scalar::Int(if row.is_some() { ROW_READ } else { ROW_MISSING }));
        out.row(&columns, &values)?;
    }
    out.done(StatementKind::Select, Some(buffer.1), false);
    let through = buffer.0 + buffer.1 > rows.count;
    if cursor.closes && through {
        close(session, handle);
        return Ok(CLOSED);
    }
    let cursor = session.api_cursors.open.get_mut(&handle).expect("seen above");
    (cursor.buffer_start, cursor.buffer_rows) = buffer;
    let id = cursor.id;
    if let Some(rows) = session.cursors.all.get_mut(&id).and_then(|cursor| cursor.open.as_mut()) {
        rows.position = buffer.0;
    }
    Ok(0)
}

/// Reads the rows again. Which rows there are, and in what order, stays; one that is no more is missing, and of a dynamic
/// cursor forgotten.
pub(super) fn refresh(session: &mut SessionState, out: &mut Outbox<'_>, handle: i32) -> Result<(), Failure> {
    let id = session.api_cursors.open[&handle].id;
    let declaration = session.cursors.all[&id].declaration.clone();
    opened(session, handle)?;
    if declaration.read_only {
        return Ok(());
    }
    session.frames.push(Frame::default());
    let read = Interpreter { session, out, text: "", kept: None, at: usize::MAX, guarded: false }.open_rows(&declaration);
    session.frames.pop();
    let read = read?;
    let found: BTreeMap<Vec<Locator>, u64> = (1..=read.count).map(|position| (locators(&read, position), position)).collect();
    let Some(kept) = session.cursors.all.get_mut(&id).and_then(|cursor| cursor.open.as_mut()) else { return Ok(()) };
    let cursor = session.api_cursors.open.get_mut(&handle).expect("seen above");
    let dynamic = declaration.kind == CursorKind::Dynamic;
    let (mut batches, mut missing) = (Vec::new(), BTreeSet::new());
    let (mut start, mut length) = (cursor.buffer_start, cursor.buffer_rows);
    for position in 1..=kept.count {
        let again = found.get(&locators(kept, position)).and_then(|at| read.row(*at));
        match again {
            Some(row) => batches.push(row),
            None if dynamic && position < cursor.buffer_start => start -= 1,
            None if dynamic && position < cursor.buffer_start + cursor.buffer_rows => length -= 1,
            None if dynamic => {}
            None => {
                missing.insert(batches.len() as u64 + 1);
                batches.push(kept.row(position).expect("a position of its rows"));
            }
        }
    }
    kept.count = batches.len() as u64;
    kept.batches = batches;
    (cursor.buffer_start, cursor.buffer_rows, cursor.missing, cursor.stale) = (start, length, missing, false);
    Ok(())
}

/// Bytes by which a table's row is found.
type Locator = Vec<u8>;

/// What tells a row from others: where it is in each of the cursor's tables.
fn locators(rows: &OpenCursor, position: u64) -> Vec<Locator> {
    let Some(row) = rows.row(position) else { return Vec::new() };
    let locator = SqlType::varbinary(1700);
    let of = |table: &thawdb_query::compile::CursorTable| match scalar_at(row.columns[table.locator].as_ref(), 0, &locator) {
        Scalar::Binary(bytes) => bytes,
        _ => Vec::new(),
    };
    rows.tables.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_move_as_documented() {
        for (buffer, kind, row, count, wanted) in [
            ((0, 0), FIRST, 0, 2, (1, 2)),
            ((0, 0), NEXT, 0, 2, (1, 2)),
            ((1, 2), NEXT, 0, 2, (3, 2)),
            ((3, 2), NEXT, 0, 2, (5, 1)),
            ((5, 1), NEXT, 0, 2, (6, 0)),
            ((6, 0), NEXT, 0, 2, (6, 0)),
            ((6, 0), PREVIOUS, 0, 2, (4, 2)),
            ((4, 2), PREVIOUS, 0, 2, (2, 2)),
            ((2, 2), PREVIOUS, 0, 2, (1, 2)),
            ((2, 2), PREVIOUS_NO_ADJUST, 0, 2, (1, 1)),
            ((1, 2), PREVIOUS, 0, 2, (0, 0)),
            ((1, 2), LAST, 0, 2, (4, 2)),
            ((1, 2), LAST, 0, 9, (1, 5)),
            ((1, 2), ABSOLUTE, 4, 3, (4, 2)),
            ((1, 2), ABSOLUTE, 0, 3, (0, 0)),
            ((1, 2), ABSOLUTE, -1, 3, (5, 1)),
            ((1, 2), ABSOLUTE, 99, 3, (6, 0)),
            ((3, 1), RELATIVE, 1, 2, (4, 2)),
            ((3, 1), RELATIVE, -2, 2, (1, 2)),
            ((3, 1), RELATIVE, 0, 1, (3, 1)),
        ] {
            assert_eq!(moved(buffer, 5, kind, row, count), Some(wanted), "{kind:x} {row} {count} from {buffer:?}");
        }
        assert_eq!(moved((1, 1), 5, 0x40, 0, 1), None);
    }
}
