//! Management views over waits, latches, file I/O and the log.

use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, col};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::BigInt;
use thawdb_types::{SqlError, SqlType};

const NAME: SqlType = SqlType::nvarchar(60);

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
    View { schema: "sys", name: "dm_os_wait_stats", columns: WAIT_COLUMNS, rows: waits },
    View { schema: "sys", name: "dm_os_latch_stats", columns: LATCH_COLUMNS, rows: latches },
    View { schema: "sys", name: "dm_os_spinlock_stats", columns: SPINLOCK_COLUMNS, rows: spinlocks },
];

fn waits(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(crate::observed::waits())
}

fn latches(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(crate::observed::latches())
}

fn spinlocks(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    Ok(crate::observed::spinlocks())
}
