//! The log as administrators see it: sys.dm_db_log_space_usage, dm_db_log_info, dm_db_log_stats, and the rows of DBCC
//! LOGINFO and SQLPERF(LOGSPACE).

use crate::instance::database::OpenDatabase;
use crate::session::state::SessionState;
use crate::views::databases::recovery;
use crate::views::functions::{Function, databases};
use crate::views::{Column, DESC, Rows, View, big, bit, col, float, int, moment, null, small, text, tiny};
use std::sync::Arc;
use thawdb_catalog::DatabaseId;
use thawdb_storage::Lsn;
use thawdb_storage::log::{Log, LogPoint, VlfInfo, VlfStatus};
use thawdb_types::SqlType::{BigInt, Bit, DateTime, Float, Int, Real, SmallInt, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const LSN: SqlType = SqlType::nvarchar(24);
const MEGABYTE: f64 = 1_048_576.0;

const SPACE_COLUMNS: &[Column] = &[
    col("database_id", SmallInt),
    col("total_log_size_in_bytes", BigInt),
    col("used_log_space_in_bytes", BigInt),
    col("used_log_space_in_percent", Real),
    col("log_space_in_bytes_since_last_backup", BigInt),
];

const INFO_COLUMNS: &[Column] = &[
    col("database_id", Int),
    col("file_id", SmallInt),
    col("vlf_begin_offset", BigInt),
    col("vlf_size_mb", Float),
    col("vlf_sequence_number", BigInt),
    col("vlf_active", Bit),
    col("vlf_status", Int),
    col("vlf_parity", TinyInt),
    null("vlf_first_lsn", SqlType::nvarchar(48)),
    null("vlf_create_lsn", SqlType::nvarchar(48)),
    null("vlf_encryptor_thumbprint", SqlType::varbinary(20)),
];

const STATS_COLUMNS: &[Column] = &[
    col("database_id", Int),
    col("recovery_model", DESC),
    null("log_min_lsn", LSN),
    null("log_end_lsn", LSN),
    col("current_vlf_sequence_number", BigInt),
    col("current_vlf_size_mb", Float),
    col("total_vlf_count", BigInt),
    col("total_log_size_mb", Float),
    col("active_vlf_count", BigInt),
    col("active_log_size_mb", Float),
    col("log_truncation_holdup_reason", DESC),
    null("log_backup_time", DateTime),
    null("log_backup_lsn", LSN),
    null("log_since_last_log_backup_mb", Float),
    null("log_checkpoint_lsn", LSN),
    null("log_since_last_checkpoint_mb", Float),
    null("log_recovery_lsn", LSN),
    null("log_recovery_size_mb", Float),
    null("recovery_vlf_count", BigInt),
    null("log_state", DESC),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[View { schema: "sys", name: "dm_db_log_space_usage", columns: SPACE_COLUMNS, rows: space_usage }];

/// The functions of this file.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function { name: "dm_db_log_info", columns: INFO_COLUMNS, arguments: 1, rows: info },
    Function { name: "dm_db_log_stats", columns: STATS_COLUMNS, arguments: 1, rows: stats },
];

/// Number of a database's first log file.
pub(crate) const LOG_FILE: i16 = 2;

fn log_of(open: &OpenDatabase) -> Option<Arc<Log>> {
    open.storage.store().log().cloned()
}

fn megabytes(bytes: u64) -> f64 {
    (bytes as f64 / MEGABYTE * 100.0).round() / 100.0
}

fn lsn(point: Option<LogPoint>) -> Scalar {
    point.map_or(Scalar::Null, |point| text(point.hex()))
}

/// Usable bytes, bytes in use, and the part in per cent.
pub(crate) fn usage(log: &Log) -> (u64, u64, f32) {
    let (total, used) = (log.usable_bytes(), log.space().used_bytes);
    (total, used, (used as f64 / total as f64 * 100.0) as f32)
}

fn space_usage(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let open = session.storage_of(database)?;
    let Some(log) = log_of(&open) else { return Ok(Rows::new()) };
    let (total, used, percent) = usage(&log);
    let since = log.bytes_since(log.policy().keeps_from().unwrap_or(Lsn(0)));
    let id = i16::try_from(database.0).unwrap_or(i16::MAX);
    Ok(vec![vec![small(id), big(total), big(used), Scalar::Real(percent), big(since)]])
}

fn status_number(status: VlfStatus) -> i32 {
    match status {
        VlfStatus::Unused | VlfStatus::Free => 0,
        VlfStatus::Active => 2,
    }
}

fn info(session: &SessionState, _: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for open in databases(session, &arguments[0]) {
        for vlf in log_of(&open).map(|log| log.vlfs()).unwrap_or_default() {
            rows.push(vec![
                int(open.id.0),
                small(LOG_FILE),
                big(vlf.offset),
                float(megabytes(vlf.size_bytes)),
                big(vlf.number),
                bit(vlf.status == VlfStatus::Active),
                int(status_number(vlf.status)),
                tiny(vlf.parity),
                text(vlf.first.unwrap_or_default().hex()),
                text(vlf.created_at.unwrap_or_default().hex()),
                Scalar::Null,
            ]);
        }
    }
    Ok(rows)
}

fn stats(session: &SessionState, _: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for open in databases(session, &arguments[0]) {
        if let Some(log) = log_of(&open) {
            rows.push(stats_row(&open, &log));
        }
    }
    Ok(rows)
}

fn stats_row(open: &OpenDatabase, log: &Log) -> Vec<Scalar> {
    let (vlfs, space, policy) = (log.vlfs(), log.space(), log.policy());
    let current = vlfs.iter().filter(|vlf| vlf.status == VlfStatus::Active).max_by_key(|vlf| vlf.number);
    let backup = policy.chain.filter(|_| policy.backup_time != 0);
    let (checkpoint, end) = (log.checkpoint_lsn(), log.end());
    let recovery_bytes = log.bytes_since(checkpoint);
    let active_bytes: u64 = vlfs.iter().filter(|vlf| vlf.status == VlfStatus::Active).map(|vlf| vlf.size_bytes).sum();
    let first_of_recovery = log.point(checkpoint).map_or(0, |point| point.number);
    let recovery_vlfs = vlfs.iter().filter(|vlf| vlf.status == VlfStatus::Active && vlf.number >= first_of_recovery).count();
    vec![
        int(open.id.0),
        text(recovery(&open.record()).1),
        lsn(log.point(log.start())),
        lsn(log.point(end)),
        big(current.map_or(0, |vlf| vlf.number)),
        float(current.map_or(0.0, |vlf| megabytes(vlf.size_bytes))),
        big(vlfs.len()),
        float(megabytes(space.size_bytes)),
        big(space.active_count),
        float(megabytes(active_bytes)),
        text(log.holdup().name()),
        backup.map_or(Scalar::Null, |_| moment(policy.backup_time)),
        backup.map_or(Scalar::Null, |chain| lsn(log.point(chain.backed_up_to))),
        policy.chain.map_or(Scalar::Null, |chain| float(megabytes(log.bytes_since(chain.backed_up_to)))),
        lsn(log.point(checkpoint)),
        float(megabytes(open.storage.store().log_bytes_since_checkpoint())),
        lsn(log.point(checkpoint)),
        float(megabytes(recovery_bytes)),
        big(recovery_vlfs),
        text("Normal"),
    ]
}

/// Rows of DBCC LOGINFO.
pub(crate) fn loginfo(open: &OpenDatabase) -> Rows {
    let row = |vlf: VlfInfo| {
        vec![
            int(0),
            int(i32::from(LOG_FILE)),
            big(vlf.size_bytes),
            big(vlf.offset),
            int(i32::try_from(vlf.number).unwrap_or(i32::MAX)),
            int(status_number(vlf.status)),
            tiny(vlf.parity),
            Scalar::Decimal(i256_of(vlf.created_at.unwrap_or_default().decimal())),
        ]
    };
    log_of(open).map(|log| log.vlfs().into_iter().map(row).collect()).unwrap_or_default()
}

fn i256_of(value: u128) -> i128 {
    i128::try_from(value).expect("38 digits at most")
}
