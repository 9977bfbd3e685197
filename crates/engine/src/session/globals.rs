//! `@@names` and functions of the session without arguments.

use crate::instance::registry::SessionFacts;
use crate::messages::message;
use crate::session::state::SessionState;
use thawdb_types::{Scalar, SqlError};

/// `@@VERSION`: drivers read the words before the bracket and the number behind the dash.
pub(crate) fn version_text() -> String {
    let edition = format!("ThawDB {} (64-bit)", env!("CARGO_PKG_VERSION"));
    format!("Microsoft SQL Server 2022 (ThawDB {}) - 16.0.1000.6 (X64) \n\t{edition}\n\ton Linux", env!("CARGO_PKG_VERSION"))
}

fn text(value: impl Into<String>) -> Scalar {
    Scalar::Text(value.into())
}

/// The last identity as numeric(38,0) has it.
fn identity(value: Option<i64>) -> Scalar {
    value.map_or(Scalar::Null, |value| Scalar::Decimal(i128::from(value)))
}

/// The value of `name`, lower case, with its signs or without (functions).
pub(crate) fn global(session: &SessionState, name: &str) -> Result<Scalar, SqlError> {
    if let Some(value) = of_statement(session, name) {
        return Ok(value);
    }
    if let Some(value) = of_options(session, name) {
        return Ok(value);
    }
    let facts = session.ticket.facts.lock().clone();
    of_session(session, &facts, name).or_else(|| of_instance(session, name)).ok_or_else(|| message(137, &[&name]))
}

fn of_statement(session: &SessionState, name: &str) -> Option<Scalar> {
    let caught = || session.frames.iter().rev().find_map(|frame| frame.caught.last().map(|(_, error)| (error, frame)));
    Some(match name {
        "@@error" => Scalar::Int(session.last_error),
        "@@rowcount" => Scalar::Int(i32::try_from(session.row_count).unwrap_or(i32::MAX)),
        "rowcount_big" => Scalar::BigInt(session.row_count),
        "@@trancount" => Scalar::Int(i32::try_from(session.transactions.count).unwrap_or(i32::MAX)),
        "xact_state" => Scalar::SmallInt(session.transactions.state()),
        "@@identity" => identity(session.last_identity),
        "scope_identity" => identity(session.frames.last().and_then(|frame| frame.scope_identity)),
        "@@nestlevel" => Scalar::Int(i32::try_from(session.nest_level()).unwrap_or(32)),
        "@@procid" => Scalar::Int(session.frames.last().map_or(0, |frame| frame.module)),
        "@@cursor_rows" => Scalar::Int(session.cursors.rows_of_last()),
        "@@fetch_status" => Scalar::Int(session.cursors.fetch_status),
        "@@spid" => Scalar::SmallInt(session.ticket.id),
        "error_number" => caught().map_or(Scalar::Null, |(error, _)| Scalar::Int(error.number)),
        "error_severity" => caught().map_or(Scalar::Null, |(error, _)| Scalar::Int(i32::from(error.severity))),
        "error_state" => caught().map_or(Scalar::Null, |(error, _)| Scalar::Int(i32::from(error.state))),
        "error_message" => caught().map_or(Scalar::Null, |(error, _)| text(error.text.clone())),
        "error_line" => caught().map_or(Scalar::Null, |(error, _)| Scalar::Int(i32::try_from(error.line).unwrap_or(0))),
        "error_procedure" => caught().and_then(|(error, _)| error.procedure.clone()).map_or(Scalar::Null, text),
        _ => return None,
    })
}

fn of_options(session: &SessionState, name: &str) -> Option<Scalar> {
    let options = &session.options;
    Some(match name {
        "@@datefirst" => Scalar::TinyInt(options.date_first),
        "@@lock_timeout" => Scalar::Int(options.lock_timeout_ms),
        "@@options" => Scalar::Int(options.bits()),
        "@@textsize" => Scalar::Int(options.text_size),
        "context_info" if options.context_info.is_empty() => Scalar::Null,
        "context_info" => Scalar::Binary(options.context_info.to_vec()),
        _ => return None,
    })
}

fn of_session(session: &SessionState, facts: &SessionFacts, name: &str) -> Option<Scalar> {
    Some(match name {
        "host_name" => text(facts.host_name.clone()),
        "host_id" => text(facts.client_process_id.to_string()),
        "app_name" | "program_name" => text(facts.app_name.clone()),
        "db_name" => text(session.database.name()),
        "db_id" => Scalar::SmallInt(i16::try_from(session.database.id.0).unwrap_or(i16::MAX)),
        "@@language" => text(facts.language.clone()),
        "@@langid" => Scalar::SmallInt(0),
        _ => return crate::security::functions::of_nobody_else(session, name),
    })
}

fn of_instance(session: &SessionState, name: &str) -> Option<Scalar> {
    let engine = &session.engine;
    Some(match name {
        "@@version" => text(version_text()),
        "@@servername" => text(engine.config.server_name.clone()),
        "@@servicename" => text("MSSQLSERVER"),
        "@@microsoftversion" => Scalar::Int(0x1000_03E8),
        "@@max_connections" => Scalar::Int(32_767),
        "@@max_precision" => Scalar::TinyInt(38),
        "@@remserver" => Scalar::Null,
        "@@dbts" => Scalar::Binary(session.database.counters.last_row_version().to_be_bytes().to_vec()),
        "@@timeticks" => Scalar::Int(31_250),
        "@@connections" => Scalar::Int(i32::try_from(engine.sessions.opened_count()).unwrap_or(i32::MAX)),
        "@@cpu_busy" | "@@idle" | "@@io_busy" | "@@pack_received" | "@@pack_sent" | "@@packet_errors" | "@@total_errors"
        | "@@total_read" | "@@total_write" => Scalar::Int(0),
        _ => return None,
    })
}
