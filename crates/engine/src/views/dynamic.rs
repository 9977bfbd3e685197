//! Management views over locks, waits, latches, file I/O and the log.

use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, big, col, int, null, small, text};
use thawdb_catalog::DatabaseId;
use thawdb_storage::locks::{LockStatus, ResourceKind};
use thawdb_types::SqlType::{BigInt, Int, SmallInt};
use thawdb_types::{SqlError, SqlType};

const NAME: SqlType = SqlType::nvarchar(60);

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

const WAIT_COLUMNS: &[Column] = &[
    col("wait_type", NAME),
    col("waiting_tasks_count", BigInt),
    col("wait_time_ms", BigInt),
    col("max_wait_time_ms", BigInt),
    col("signal_wait_time_ms", BigInt),
];

const LATCH_COLUMNS: &[Column] =
    &[col("latch_class", NAME), col("waiting_requests_count", BigInt), col("wait_time_ms", BigInt), col("max_wait_time_ms", BigInt)];

const SPINLOCK_COLUMNS: &[Column] = &[
    col("name", NAME),
    col("collisions", BigInt),
    col("spins", BigInt),
    col("spins_per_collision", SqlType::Real),
    col("sleep_time", BigInt),
    col("backoffs", BigInt),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "dm_tran_locks", columns: LOCK_COLUMNS, rows: locks },
    View { schema: "sys", name: "dm_os_wait_stats", columns: WAIT_COLUMNS, rows: waits },
    View { schema: "sys", name: "dm_os_latch_stats", columns: LATCH_COLUMNS, rows: latches },
    View { schema: "sys", name: "dm_os_spinlock_stats", columns: SPINLOCK_COLUMNS, rows: spinlocks },
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

fn locks(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let owners = session.engine.sessions.owners();
    let of_owner = |owner: u64| owners.iter().find(|(known, _)| *known == owner).map_or(0, |(_, session)| i32::from(*session));
    let row = |lock: thawdb_storage::locks::LockInfo| {
        let status = match lock.status {
            LockStatus::Grant => "GRANT",
            LockStatus::Convert => "CONVERT",
            LockStatus::Wait => "WAIT",
        };
        vec![
            text(resource_type(lock.resource.kind)),
            text(""),
            int(lock.resource.database.cast_signed()),
            text(if lock.resource.item == 0 { String::new() } else { format!("({:012x})", lock.resource.item) }),
            big(lock.resource.container),
            int(0),
            text(lock.mode.name()),
            text("LOCK"),
            text(status),
            small(1),
            int(0),
            int(of_owner(lock.owner)),
            int(0),
            int(0),
            text("TRANSACTION"),
            big(lock.owner),
        ]
    };
    Ok(session.engine.locks.locks().into_iter().map(row).collect())
}

fn waits(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(crate::observed::waits())
}

fn latches(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(crate::observed::latches())
}

fn spinlocks(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(crate::observed::spinlocks())
}
