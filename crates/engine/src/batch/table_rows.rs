//! Rows that a client sends as a table-valued parameter, on their way into a table variable.
//!
//! The rows become a rowset of a frame of their own and go through INSERT: defaults, identities, conversions, lengths and
//! keys are as in any other statement. The frame ends with the call; the table variable is the caller's.

use crate::api::parameter::TableRows;
use crate::batch::compile_cx::CompileCx;
use crate::messages::message;
use crate::session::frame::Frame;
use crate::session::rowset::Rowset;
use crate::session::state::SessionState;
use crate::storage_error::internal;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_query::compile::compile;
use thawdb_query::exec;
use thawdb_query::phys::OutputColumn;
use thawdb_tsql::{ParseOptions, parse_batch};
use thawdb_types::SqlError;

/// The names under which the statement finds the table and the rows: no names a user can write.
const TABLE: &str = "@filled$";
const SENT: &str = "\u{1}sent";

/// Inserts the rows; 500 where the client sends columns that the table type has not.
pub(crate) fn fill(session: &mut SessionState, table: &Arc<TableDef>, sent: &TableRows) -> Result<(), SqlError> {
    if sent.rows.is_empty() {
        return Ok(());
    }
    let mut columns = Vec::with_capacity(sent.targets.len());
    for (at, sql_type) in sent.targets.iter().zip(&sent.types) {
        let column = table.columns.get(*at).ok_or_else(|| message(500, &[&sent.targets.len(), &table.columns.len()]))?;
        columns.push(OutputColumn { name: column.name.clone(), sql_type: *sql_type, nullable: true, identity: false });
    }
    let names: Vec<String> = columns.iter().map(|column| crate::batch::integrity::bracketed(&column.name)).collect();
    let list = names.join(", ");
    let text = format!("INSERT INTO {TABLE} ({list}) SELECT {list} FROM [{SENT}]");
    let batch = parse_batch(&text, &ParseOptions { quoted_identifier: true });
    let statement = batch.statements.first().filter(|_| batch.errors.is_empty());
    let statement = statement.ok_or_else(|| internal(format!("a text of ours does not parse: {text}")))?;
    let mut frame = Frame::default();
    frame.table_variables.insert(TABLE.to_owned(), table.clone());
    frame.rowsets.insert(SENT.to_owned(), Arc::new(Rowset { columns, rows: sent.rows.clone() }));
    session.frames.push(frame);
    session.views.lock().clear();
    let outcome = compile(statement, &CompileCx::new(session, 0)).and_then(|plan| {
        let mut execution = exec::run(&plan.node, session)?;
        execution.drain(session)
    });
    session.frames.pop();
    outcome.map_err(|error| error.at_line(0))
}
