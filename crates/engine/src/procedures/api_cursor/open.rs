//! sp_cursoropen, and the opening of prepared cursors.

use super::options::{ALLOW_DIRECT, AUTO_CLOSE, AUTO_FETCH, Asked, FAST_FORWARD, KEYSET, READ_ONLY, STATIC, Settled};
use super::{fetch, int_at, origin, returned};
use crate::api::sink::{BrowseColumn, StatementKind};
use crate::batch::arguments::Argument;
use crate::batch::compile_cx::CompileCx;
use crate::batch::execute::{Declared, bind_declared, parse_declarations, run_with_parameters};
use crate::batch::failure::{Failure, Fate};
use crate::batch::interpreter::Interpreter;
use crate::batch::outbox::Outbox;
use crate::messages::message;
use crate::procedures::Returned;
use crate::session::api_cursors::ApiCursor;
use crate::session::cursors::CursorDeclaration;
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use std::collections::BTreeSet;
use std::sync::Arc;
use thawdb_query::compile::compile_cursor;
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::ParseOptions;
use thawdb_tsql::ast::{Query, QueryBody, SelectItem, Stmt, StmtKind};
use thawdb_types::SqlType;

/// Concurrency where none is asked: optimistic.
const OPTIMISTIC: i32 = 0x4;

/// Where in a call the options stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) cursor: usize,
    pub(super) scroll: usize,
    pub(super) concurrency: usize,
    pub(super) rows: usize,
    /// The first value of a parameter.
    pub(super) bound: usize,
}

/// Opens a cursor over a text.
pub(super) fn call(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    declarations: &str,
    text: &str,
    places: &Places,
    arguments: &[Argument],
) -> Result<Returned, Failure> {
    let scroll = int_at(arguments, places.scroll)?.unwrap_or(KEYSET);
    let asked = Asked { scroll, concurrency: int_at(arguments, places.concurrency)?.unwrap_or(OPTIMISTIC) };
    let bound = arguments.get(places.bound..).unwrap_or_default();
    let options = ParseOptions { quoted_identifier: session.options.quoted_identifier };
    let parsed = session.engine.plans.texts.batch(text, &options);
    let query = if parsed.batch.errors.is_empty() { only_query(&parsed.batch.statements) } else { None };
    let Some(query) = query else {
        // What is wrong with a text is told by running it.
        if asked.allows_direct() || !parsed.batch.errors.is_empty() {
            return run_direct(session, out, declarations, text, places, arguments);
        }
        return Err(message(16_937, &[]).into());
    };
    let mut frame = Frame::default();
    let declared = parse_declarations(session, declarations)?;
    bind_declared(session, &mut frame, &declared, Declared::Text { declarations, text }, bound)?;
    session.frames.push(frame);
    let opened = open(session, out, query, asked);
    let first_rows = int_at(arguments, places.rows)?.unwrap_or(0);
    let outcome = opened.and_then(|handle| announce(session, out, handle, asked, first_rows).map(|status| (handle, status)));
    session.frames.pop();
    let (handle, status) = outcome.map_err(|failure| not_declared(out, failure))?;
    let cursor = &session.api_cursors.open.get(&handle);
    let (scroll, concurrency) = cursor.map_or((scroll, asked.concurrency), |cursor| (cursor.scroll, cursor.concurrency));
    let count =
        cursor.and_then(|cursor| session.cursors.all.get(&cursor.id)).and_then(|cursor| cursor.open.as_ref()).map(|open| open.count);
    let counted = Settled { scroll, concurrency }.counts();
    let count = count.filter(|_| counted).map_or(-1, |count| i32::try_from(count).unwrap_or(i32::MAX));
    let values = vec![(places.cursor, handle), (places.scroll, scroll), (places.concurrency, concurrency), (places.rows, count)];
    Ok(returned(arguments, status, values))
}

/// An error of compilation is told, and that the cursor was not declared.
fn not_declared(out: &mut Outbox<'_>, failure: Failure) -> Failure {
    if failure.fate != Fate::Scope || failure.told {
        return failure;
    }
    out.message(&failure.error);
    Failure::run(message(16_945, &[]).with_state(2).at_line(1))
}

/// The text's query, if it is nothing else.
fn only_query(statements: &[Stmt]) -> Option<&Query> {
    let [statement] = statements else { return None };
    let StmtKind::Select(query) = &statement.kind else { return None };
    let plain = match &query.body {
        QueryBody::Select(select) => select.into.is_none() && !select.items.iter().any(|item| matches!(item, SelectItem::Assign { .. })),
        _ => true,
    };
    (plain && query.for_clause.is_none()).then_some(query)
}

/// Runs a text that is no cursor's; its results are the call's, and there is no handle.
fn run_direct(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    declarations: &str,
    text: &str,
    places: &Places,
    arguments: &[Argument],
) -> Result<Returned, Failure> {
    let bound = arguments.get(places.bound..).unwrap_or_default();
    let (status, outputs) = run_with_parameters(session, out, text, declarations, bound, Frame::default())?;
    let concurrency = int_at(arguments, places.concurrency)?.unwrap_or(OPTIMISTIC) & !ALLOW_DIRECT;
    let mut result = returned(arguments, status, vec![(places.cursor, 0), (places.concurrency, concurrency), (places.rows, -1)]);
    let place = |(at, variable): (usize, crate::session::frame::Variable)| (places.bound + at, variable.value, variable.sql_type);
    result.outputs.extend(outputs.into_iter().map(place));
    Ok(result)
}

/// Opens the cursor in the scope of its parameters; its handle.
fn open(session: &mut SessionState, out: &mut Outbox<'_>, query: &Query, asked: Asked) -> Result<i32, Failure> {
    let line = 1;
    let (plan, tables) = compile_cursor(query, true, line, &CompileCx::new(session, usize::MAX)).map_err(Failure::compile)?;
    session.may_run(&plan)?;
    let settled = asked.settle(!tables.is_empty())?;
    let snapshot = matches!(settled.scroll, STATIC | FAST_FORWARD);
    let variables = session.frame().variables.clone();
    let declaration = CursorDeclaration {
        kind: settled.kind(),
        scrolls: settled.scrolls(),
        read_only: snapshot || tables.is_empty(),
        query: Arc::new(query.clone()),
        line,
        variables,
        table_variables: session.frame().table_variables.clone(),
    };
    let handle = session.api_cursors.next_handle().ok_or_else(|| message(701, &[&"default"]))?;
    let id = session.cursors.add(declaration);
    let name = format!("thawdb cursor {handle}");
    session.cursors.globals.insert(name.clone(), id);
    let declaration = session.cursors.all[&id].declaration.clone();
    let rows = Interpreter { session, out, text: "", kept: None, at: usize::MAX, guarded: false }.open_rows(&declaration);
    let rows = rows.inspect_err(|_| {
        session.cursors.globals.remove(&name);
        session.cursors.all.remove(&id);
    })?;
    let mut columns = rows.columns.clone();
    let origins = origin::columns(session, query, &columns, &rows.tables);
    let tables = origin::tables(session, &rows.tables);
    columns.push(OutputColumn { name: "ROWSTAT".to_owned(), sql_type: SqlType::Int, nullable: true, identity: false });
    session.cursors.all.get_mut(&id).expect("added above").open = Some(rows);
    // A batch that fails later does not take it along.
    session.cursors.begin_batch();
    let cursor = ApiCursor {
        id,
        name,
        scroll: settled.scroll,
        concurrency: settled.concurrency,
        closes: asked.has(AUTO_CLOSE),
        columns: Arc::new(columns),
        tables,
        origins,
        buffer_start: 0,
        buffer_rows: 0,
        stale: false,
        missing: BTreeSet::new(),
    };
    session.api_cursors.open.insert(handle, cursor);
    Ok(handle)
}

/// Sends the columns, and with AUTO_FETCH the first rows; the status of the call.
fn announce(session: &mut SessionState, out: &mut Outbox<'_>, handle: i32, asked: Asked, first_rows: i32) -> Result<i32, Failure> {
    if asked.has(AUTO_FETCH) && first_rows > 0 {
        return fetch::first_rows(session, out, handle, u64::from(first_rows.unsigned_abs()));
    }
    send_columns(session, out, handle)?;
    out.done(StatementKind::Select, Some(0), false);
    Ok(0)
}

/// The columns of a cursor, and where they come from.
pub(super) fn send_columns(session: &SessionState, out: &mut Outbox<'_>, handle: i32) -> Result<(), Failure> {
    let cursor = &session.api_cursors.open[&handle];
    out.columns(&cursor.columns)?;
    if cursor.concurrency != READ_ONLY {
        let column = |(column, origin): (&OutputColumn, &crate::session::api_cursors::ColumnOrigin)| BrowseColumn {
            table: origin.table,
            key: origin.key,
            base_name: (origin.table > 0 && column.name != origin.column).then(|| origin.column.clone()),
        };
        let mut columns: Vec<BrowseColumn> = cursor.columns.iter().zip(&cursor.origins).map(column).collect();
        columns.push(BrowseColumn { table: 0, key: false, base_name: None });
        out.browse(&cursor.tables, &columns);
    }
    Ok(())
}
