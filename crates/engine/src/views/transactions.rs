//! Management views over locks, who waits for them, and transactions.
//!
//! Locks are shown as they lie in the lock table at the moment, partition by partition: a row may have gone before the
//! last is read. A key's description is the last 48 bits of its hash, `(ffffffffffff)` the end of an index.

use crate::instance::registry::SessionFacts;
use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, big, bit, col, int, moment, null, small, text};
use std::collections::BTreeMap;
use thawdb_catalog::DatabaseId;
use thawdb_storage::locks::{LockInfo, LockStatus, ResourceKind};
use thawdb_types::SqlType::{BigInt, Bit, DateTime, Int, SmallInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::nvarchar(60);
const ADDRESS: SqlType = SqlType::varbinary(8);
/// Bits of a hash that a description shows.
const SHOWN_BITS: u64 = (1 << 48) - 1;

const LOCK_COLUMNS: &[Column] = &[
    col("resource_type", NAME),
    col("resource_subtype", NAME),
    col("resource_database_id", Int),
    null("resource_description", SqlType::nvarchar(256)),
    null("resource_associated_entity_id", BigInt),
    col("resource_lock_partition", Int),
    col("request_mode", NAME),
    col("request_type", NAME),
    col("request_status", NAME),
    col("request_reference_count", SmallInt),
    col("request_lifetime", Int),
    col("request_session_id", Int),
    col("request_exec_context_id", Int),
    col("request_request_id", Int),
    col("request_owner_type", NAME),
    null("request_owner_id", BigInt),
];

const WAITING_COLUMNS: &[Column] = &[
    col("waiting_task_address", ADDRESS),
    null("session_id", SmallInt),
    null("exec_context_id", Int),
    null("wait_duration_ms", BigInt),
    null("wait_type", NAME),
    null("resource_address", ADDRESS),
    null("blocking_task_address", ADDRESS),
    null("blocking_session_id", SmallInt),
    null("blocking_exec_context_id", Int),
    null("resource_description", SqlType::nvarchar(3072)),
];

const SESSION_TRANSACTION_COLUMNS: &[Column] = &[
    col("session_id", Int),
    col("transaction_id", BigInt),
    col("transaction_descriptor", ADDRESS),
    col("enlist_count", Int),
    col("is_user_transaction", Bit),
    col("is_local", Bit),
    col("is_enlisted", Bit),
    col("is_bound", Bit),
    col("open_transaction_count", Int),
];

const ACTIVE_TRANSACTION_COLUMNS: &[Column] = &[
    col("transaction_id", BigInt),
    col("name", SqlType::nvarchar(32)),
    col("transaction_begin_time", DateTime),
    col("transaction_type", Int),
    null("transaction_uow", SqlType::UniqueIdentifier),
    col("transaction_state", Int),
    col("transaction_status", Int),
    col("transaction_status2", Int),
    col("dtc_state", Int),
    col("dtc_status", Int),
    col("dtc_isolation_level", Int),
    col("filestream_transaction_id", SqlType::varbinary(128)),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "dm_tran_locks", columns: LOCK_COLUMNS, rows: locks },
    View { schema: "sys", name: "dm_os_waiting_tasks", columns: WAITING_COLUMNS, rows: waiting },
    View { schema: "sys", name: "dm_tran_session_transactions", columns: SESSION_TRANSACTION_COLUMNS, rows: session_transactions },
    View { schema: "sys", name: "dm_tran_active_transactions", columns: ACTIVE_TRANSACTION_COLUMNS, rows: active_transactions },
];

fn resource_type(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Database => "DATABASE",
        ResourceKind::Object => "OBJECT",
        ResourceKind::Tree => "HOBT",
        ResourceKind::Page => "PAGE",
        ResourceKind::Key => "KEY",
        ResourceKind::Application => "APPLICATION",
        ResourceKind::Metadata => "METADATA",
    }
}

/// Databases by their numbers in the lock table.
fn databases(session: &SessionState) -> BTreeMap<u32, i32> {
    let records = crate::views::databases::records(session);
    let open = records.iter().filter_map(|(record, _)| session.engine.database(record.id));
    open.map(|database| (database.storage.lock_number(), database.id.0)).collect()
}

fn description(lock: &LockInfo) -> String {
    if lock.resource.item == 0 { String::new() } else { format!("({:012x})", lock.resource.item & SHOWN_BITS) }
}

fn locks(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let databases = databases(session);
    let row = |lock: LockInfo| {
        let status = match lock.status {
            LockStatus::Grant => "GRANT",
            LockStatus::Convert => "CONVERT",
            LockStatus::Wait => "WAIT",
            LockStatus::LowPriorityConvert => "LOW_PRIORITY_CONVERT",
            LockStatus::LowPriorityWait => "LOW_PRIORITY_WAIT",
        };
        let owner = if lock.resource.kind == ResourceKind::Database { "SHARED_TRANSACTION_WORKSPACE" } else { "TRANSACTION" };
        vec![
            text(resource_type(lock.resource.kind)),
            text(""),
            int(databases.get(&lock.resource.database).copied().unwrap_or(0)),
            text(description(&lock)),
            big(lock.resource.container),
            int(0),
            text(lock.mode.name()),
            text("LOCK"),
            text(status),
            small(1),
            int(0),
            int(lock.party.session_id().unwrap_or(0)),
            int(0),
            int(0),
            text(owner),
            big(lock.owner),
        ]
    };
    Ok(session.engine.locks.locks().into_iter().map(row).collect())
}

/// What a waiting request is for, in the words of SQL Server's resource descriptions.
fn lock_description(lock: &LockInfo, databases: &BTreeMap<u32, i32>) -> String {
    let database = databases.get(&lock.resource.database).copied().unwrap_or(0);
    let (container, mode) = (lock.resource.container, lock.mode.name());
    match lock.resource.kind {
        ResourceKind::Object => {
            format!(
                "objectlock lockPartition=0 objid={container} subresource=FULL dbid={database} mode={mode} associatedObjectId={container}"
            )
        }
        ResourceKind::Key => format!("keylock hobtid={container} dbid={database} hash={} mode={mode}", description(lock)),
        ResourceKind::Database => format!("databaselock subresource=FULL dbid={database} mode={mode}"),
        kind => format!("{}lock dbid={database} mode={mode}", resource_type(kind).to_lowercase()),
    }
}

fn waiting(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let (databases, locks) = (databases(session), session.engine.locks.locks());
    let now_ns = thawdb_observe::clock::now_ns();
    let row = |ticket: &crate::instance::registry::SessionTicket| {
        let wait = ticket.waits.current()?;
        let of_session = |lock: &&LockInfo| lock.party.session_id() == Some(i32::from(ticket.id)) && lock.status != LockStatus::Grant;
        let lock = locks.iter().find(of_session).map(|lock| lock_description(lock, &databases));
        let address = Scalar::Binary(ticket.unique.to_be_bytes().to_vec());
        let blocker = wait.blocked_by.and_then(|id| i16::try_from(id).ok());
        Some(vec![
            address,
            small(ticket.id),
            int(0),
            big(now_ns.saturating_sub(wait.since_ns) / 1_000_000),
            text(wait.kind.name()),
            Scalar::Null,
            Scalar::Null,
            blocker.map_or(Scalar::Null, small),
            Scalar::Null,
            text(lock.unwrap_or_else(|| wait.resource.description())),
        ])
    };
    Ok(session.engine.sessions.all().iter().filter_map(|ticket| row(ticket)).collect())
}

/// One row for each session in a transaction that BEGIN TRANSACTION or the client's transaction manager began.
fn each_transaction(session: &SessionState, row: impl Fn(i16, &SessionFacts) -> Vec<Scalar>) -> Rows {
    let sessions = session.engine.sessions.all();
    let facts = sessions.iter().map(|ticket| (ticket.id, ticket.facts.lock().clone()));
    facts.filter(|(_, facts)| facts.transaction_id != 0).map(|(id, facts)| row(id, &facts)).collect()
}

fn session_transactions(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(each_transaction(session, |id, facts| {
        let descriptor = Scalar::Binary(facts.transaction_id.to_le_bytes().to_vec());
        let mut row = vec![int(i32::from(id)), big(facts.transaction_id), descriptor, int(1)];
        row.extend([true, true, false, false].map(bit));
        row.push(int(facts.transaction_count));
        row
    }))
}

fn active_transactions(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(each_transaction(session, |_, facts| {
        let name = if facts.transaction_name.is_empty() { "user_transaction" } else { facts.transaction_name.as_str() };
        let mut row = vec![big(facts.transaction_id), text(name), moment(facts.transaction_begin), int(1), Scalar::Null, int(2)];
        row.extend([0, 0, 0, 0, 0].map(int));
        row.push(Scalar::Binary(Vec::new()));
        row
    }))
}
