//! sys.dm_exec_sessions, sys.dm_exec_connections, sys.dm_exec_requests, sys.sysprocesses.

use crate::instance::registry::{SessionFacts, SessionTicket};
use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, big, bit, col, int, moment, null, small, text};
use std::sync::Arc;
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::{BigInt, Bit, DateTime, Int, SmallInt, UniqueIdentifier};
use thawdb_types::{Collation, Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::nvarchar(128);
const STATUS: SqlType = SqlType::nvarchar(30);

const SESSION_COLUMNS: &[Column] = &[
    col("session_id", SmallInt),
    col("login_time", DateTime),
    null("host_name", NAME),
    null("program_name", NAME),
    null("host_process_id", Int),
    null("client_version", Int),
    null("client_interface_name", SqlType::nvarchar(32)),
    col("security_id", SqlType::varbinary(85)),
    col("login_name", NAME),
    null("nt_domain", NAME),
    null("nt_user_name", NAME),
    col("status", STATUS),
    null("context_info", SqlType::varbinary(128)),
    col("cpu_time", Int),
    col("memory_usage", Int),
    col("total_scheduled_time", Int),
    col("total_elapsed_time", Int),
    col("endpoint_id", Int),
    col("last_request_start_time", DateTime),
    null("last_request_end_time", DateTime),
    col("reads", BigInt),
    col("writes", BigInt),
    col("logical_reads", BigInt),
    col("is_user_process", Bit),
    col("text_size", Int),
    null("language", NAME),
    null("date_format", SqlType::nvarchar(3)),
    col("date_first", SmallInt),
    col("quoted_identifier", Bit),
    col("arithabort", Bit),
    col("ansi_null_dflt_on", Bit),
    col("ansi_defaults", Bit),
    col("ansi_warnings", Bit),
    col("ansi_padding", Bit),
    col("ansi_nulls", Bit),
    col("concat_null_yields_null", Bit),
    col("transaction_isolation_level", SmallInt),
    col("lock_timeout", Int),
    col("deadlock_priority", Int),
    col("row_count", BigInt),
    col("prev_error", Int),
    col("original_security_id", SqlType::varbinary(85)),
    col("original_login_name", NAME),
    null("last_successful_logon", DateTime),
    null("last_unsuccessful_logon", DateTime),
    null("unsuccessful_logons", BigInt),
    col("group_id", Int),
    col("database_id", SmallInt),
    null("authenticating_database_id", Int),
    col("open_transaction_count", Int),
    null("page_server_reads", BigInt),
];

const CONNECTION_COLUMNS: &[Column] = &[
    null("session_id", Int),
    null("most_recent_session_id", Int),
    col("connect_time", DateTime),
    col("net_transport", SqlType::nvarchar(40)),
    null("protocol_type", SqlType::nvarchar(40)),
    null("protocol_version", Int),
    null("endpoint_id", Int),
    col("encrypt_option", SqlType::nvarchar(40)),
    col("auth_scheme", SqlType::nvarchar(40)),
    col("node_affinity", SmallInt),
    null("num_reads", Int),
    null("num_writes", Int),
    null("last_read", DateTime),
    null("last_write", DateTime),
    null("net_packet_size", Int),
    null("client_net_address", SqlType::nvarchar(48)),
    null("client_tcp_port", Int),
    null("local_net_address", SqlType::nvarchar(48)),
    null("local_tcp_port", Int),
    col("connection_id", UniqueIdentifier),
    null("parent_connection_id", UniqueIdentifier),
    null("most_recent_sql_handle", SqlType::varbinary(64)),
];

const REQUEST_COLUMNS: &[Column] = &[
    col("session_id", SmallInt),
    col("request_id", Int),
    col("start_time", DateTime),
    col("status", STATUS),
    col("command", SqlType::nvarchar(32)),
    null("sql_handle", SqlType::varbinary(64)),
    null("statement_start_offset", Int),
    null("statement_end_offset", Int),
    null("plan_handle", SqlType::varbinary(64)),
    col("database_id", SmallInt),
    col("user_id", Int),
    null("connection_id", UniqueIdentifier),
    null("blocking_session_id", SmallInt),
    null("wait_type", SqlType::nvarchar(60)),
    col("wait_time", Int),
    col("last_wait_type", SqlType::nvarchar(60)),
    col("wait_resource", SqlType::nvarchar(256)),
    col("open_transaction_count", Int),
    col("open_resultset_count", Int),
    col("transaction_id", BigInt),
    null("context_info", SqlType::varbinary(128)),
    col("percent_complete", SqlType::Real),
    col("estimated_completion_time", BigInt),
    col("cpu_time", Int),
    col("total_elapsed_time", Int),
    null("scheduler_id", Int),
    null("task_address", SqlType::varbinary(8)),
    col("reads", BigInt),
    col("writes", BigInt),
    col("logical_reads", BigInt),
    col("text_size", Int),
    null("language", NAME),
    col("row_count", BigInt),
    col("is_resumable", Bit),
];

const PROCESS_COLUMNS: &[Column] = &[
    col("spid", SmallInt),
    col("kpid", SmallInt),
    col("blocked", SmallInt),
    col("dbid", SmallInt),
    col("cpu", Int),
    col("login_time", DateTime),
    col("last_batch", DateTime),
    col("open_tran", SmallInt),
    col("status", SqlType::NChar { length: 30, collation: Collation::DEFAULT }),
    col("hostname", SqlType::NChar { length: 128, collation: Collation::DEFAULT }),
    col("program_name", SqlType::NChar { length: 128, collation: Collation::DEFAULT }),
    col("hostprocess", SqlType::NChar { length: 10, collation: Collation::DEFAULT }),
    col("cmd", SqlType::NChar { length: 26, collation: Collation::DEFAULT }),
    col("loginame", SqlType::NChar { length: 128, collation: Collation::DEFAULT }),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "dm_exec_sessions", columns: SESSION_COLUMNS, rows: sessions },
    View { schema: "sys", name: "dm_exec_connections", columns: CONNECTION_COLUMNS, rows: connections },
    View { schema: "sys", name: "dm_exec_requests", columns: REQUEST_COLUMNS, rows: requests },
    View { schema: "sys", name: "sysprocesses", columns: PROCESS_COLUMNS, rows: processes },
    View { schema: "dbo", name: "sysprocesses", columns: PROCESS_COLUMNS, rows: processes },
];

fn each(session: &SessionState, row: impl Fn(&SessionTicket, &SessionFacts) -> Option<Vec<Scalar>>) -> Rows {
    let tickets: Vec<Arc<SessionTicket>> = session.engine.sessions.all();
    let everybody = crate::security::visibility::sees_server(session).is_ok();
    tickets
        .iter()
        .filter(|ticket| everybody || ticket.id == session.ticket.id)
        .filter_map(|ticket| {
            let facts = ticket.facts.lock().clone();
            row(ticket, &facts)
        })
        .collect()
}

/// Milliseconds from one moment of 1/300 s to another.
fn elapsed_ms(from: i64, to: i64) -> Scalar {
    int(i32::try_from((to - from).max(0) * 10 / 3).unwrap_or(i32::MAX))
}

fn status(facts: &SessionFacts) -> &'static str {
    if facts.running { "running" } else { "sleeping" }
}

fn database_number(facts: &SessionFacts) -> Scalar {
    small(i16::try_from(facts.database).unwrap_or(i16::MAX))
}

fn sessions(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let now = session.engine.now_datetime();
    Ok(each(session, |ticket, facts| {
        let end = if facts.running { now } else { facts.request_end };
        let mut row = vec![
            small(ticket.id),
            moment(facts.login_time),
            text(facts.host_name.clone()),
            text(facts.app_name.clone()),
            int(facts.client_process_id),
            int(7),
            text(facts.client_interface.clone()),
            Scalar::Binary(vec![1]),
            text(facts.login_name.clone()),
            Scalar::Null,
            Scalar::Null,
            text(status(facts)),
            Scalar::Null,
        ];
        row.extend([int(0), int(0), int(0), elapsed_ms(facts.request_start, end), int(4)]);
        row.extend([moment(facts.request_start), moment(facts.request_end), big(0), big(0), big(0), bit(true), int(i32::MAX)]);
        row.extend([text(facts.language.clone()), text(facts.date_order.name()), small(i16::from(facts.date_first))]);
        row.extend([true, true, true, false, true, true, true, true].map(bit));
        row.extend([small(i16::from(facts.isolation)), int(facts.lock_timeout_ms), int(0), big(facts.row_count), int(facts.last_error)]);
        row.extend([Scalar::Binary(vec![1]), text(facts.login_name.clone()), Scalar::Null, Scalar::Null, Scalar::Null, int(2)]);
        row.extend([database_number(facts), int(1), int(facts.transaction_count), big(0)]);
        Some(row)
    }))
}

fn connections(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(each(session, |ticket, facts| {
        let local = facts.client_address.starts_with('<');
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&ticket.unique.to_le_bytes());
        let mut row = vec![
            int(i32::from(ticket.id)),
            int(i32::from(ticket.id)),
            moment(facts.login_time),
            text(if local { "Shared memory" } else { "TCP" }),
            text("TSQL"),
            int(0x7400_0004),
            int(4),
            text(if facts.encrypted { "TRUE" } else { "FALSE" }),
            text("SQL"),
            small(0),
        ];
        row.extend([Scalar::Null, Scalar::Null, moment(facts.request_start), moment(facts.request_end)]);
        row.extend([int(i32::try_from(facts.packet_bytes).unwrap_or(0)), text(facts.client_address.clone())]);
        row.extend([Scalar::Null, Scalar::Null, Scalar::Null, Scalar::Guid(guid), Scalar::Null, Scalar::Null]);
        Some(row)
    }))
}

fn requests(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let now = session.engine.now_datetime();
    Ok(each(session, |ticket, facts| {
        if !facts.running {
            return None;
        }
        let wait = ticket.waits.current();
        let state = if wait.is_some() { "suspended" } else { "running" };
        let mut row = vec![small(ticket.id), int(0), moment(facts.request_start), text(state), text(facts.command)];
        let blocker = wait.as_ref().and_then(|wait| i16::try_from(wait.blocked_by?).ok()).unwrap_or(0);
        row.extend([Scalar::Null, Scalar::Null, Scalar::Null, Scalar::Null, database_number(facts), int(1), Scalar::Null, small(blocker)]);
        let waited_ns = wait.as_ref().map_or(0, |wait| thawdb_observe::clock::now_ns().saturating_sub(wait.since_ns));
        row.push(wait.as_ref().map_or(Scalar::Null, |wait| text(wait.kind.name())));
        row.push(int(i32::try_from(waited_ns / 1_000_000).unwrap_or(i32::MAX)));
        row.push(text(ticket.waits.last_kind().map_or("MISCELLANEOUS", |kind| kind.name())));
        row.push(text(wait.map_or_else(String::new, |wait| wait.resource.description())));
        row.extend([int(facts.transaction_count), int(1), big(facts.transaction_id), Scalar::Null]);
        row.extend([
            Scalar::Real(facts.percent_complete),
            big(0),
            int(0),
            elapsed_ms(facts.request_start, now),
            Scalar::Null,
            Scalar::Null,
        ]);
        row.extend([big(0), big(0), big(0), int(i32::MAX), text(facts.language.clone()), big(facts.row_count)]);
        row.push(Scalar::Bit(facts.resumable));
        Some(row)
    }))
}

fn processes(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(each(session, |ticket, facts| {
        Some(vec![
            small(ticket.id),
            small(0),
            small(0),
            database_number(facts),
            int(0),
            moment(facts.login_time),
            moment(facts.request_start),
            small(i16::try_from(facts.transaction_count).unwrap_or(i16::MAX)),
            text(format!("{:<30}", status(facts))),
            text(format!("{:<128}", facts.host_name)),
            text(format!("{:<128}", facts.app_name)),
            text(format!("{:<10}", facts.client_process_id)),
            text(format!("{:<26}", facts.command)),
            text(format!("{:<128}", facts.login_name)),
        ])
    }))
}
