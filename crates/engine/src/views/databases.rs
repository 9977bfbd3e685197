//! sys.databases and the old sysdatabases.

use crate::session::state::SessionState;
use crate::views::{Column, DESC, Rows, View, bit, col, int, moment, null, small, text, tiny};
use thawdb_catalog::{DatabaseId, DatabaseRecord};
use thawdb_storage::log::LogHoldup;
use thawdb_types::SqlType::{Bit, DateTime, Int, SmallInt, TinyInt, UniqueIdentifier};
use thawdb_types::{Collation, Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const COLUMNS: &[Column] = &[
    col("name", NAME),
    col("database_id", Int),
    null("source_database_id", Int),
    null("owner_sid", SqlType::varbinary(85)),
    col("create_date", DateTime),
    col("compatibility_level", TinyInt),
    null("collation_name", NAME),
    null("user_access", TinyInt),
    null("user_access_desc", DESC),
    null("is_read_only", Bit),
    col("is_auto_close_on", Bit),
    null("is_auto_shrink_on", Bit),
    null("state", TinyInt),
    null("state_desc", DESC),
    null("is_in_standby", Bit),
    null("is_cleanly_shutdown", Bit),
    null("is_supplemental_logging_enabled", Bit),
    null("snapshot_isolation_state", TinyInt),
    null("snapshot_isolation_state_desc", DESC),
    null("is_read_committed_snapshot_on", Bit),
    null("recovery_model", TinyInt),
    null("recovery_model_desc", DESC),
    null("page_verify_option", TinyInt),
    null("page_verify_option_desc", DESC),
    null("is_auto_create_stats_on", Bit),
    null("is_auto_create_stats_incremental_on", Bit),
    null("is_auto_update_stats_on", Bit),
    null("is_auto_update_stats_async_on", Bit),
    null("is_ansi_null_default_on", Bit),
    null("is_ansi_nulls_on", Bit),
    null("is_ansi_padding_on", Bit),
    null("is_ansi_warnings_on", Bit),
    null("is_arithabort_on", Bit),
    null("is_concat_null_yields_null_on", Bit),
    null("is_numeric_roundabort_on", Bit),
    null("is_quoted_identifier_on", Bit),
    null("is_recursive_triggers_on", Bit),
    null("is_cursor_close_on_commit_on", Bit),
    null("is_local_cursor_default", Bit),
    null("is_fulltext_enabled", Bit),
    null("is_trustworthy_on", Bit),
    null("is_db_chaining_on", Bit),
    null("is_parameterization_forced", Bit),
    col("is_master_key_encrypted_by_server", Bit),
    null("is_query_store_on", Bit),
    col("is_published", Bit),
    col("is_subscribed", Bit),
    col("is_merge_published", Bit),
    col("is_distributor", Bit),
    col("is_sync_with_backup", Bit),
    col("service_broker_guid", UniqueIdentifier),
    col("is_broker_enabled", Bit),
    null("log_reuse_wait", TinyInt),
    null("log_reuse_wait_desc", DESC),
    col("is_date_correlation_on", Bit),
    col("is_cdc_enabled", Bit),
    null("is_encrypted", Bit),
    null("is_honor_broker_priority_on", Bit),
    null("replica_id", UniqueIdentifier),
    null("group_database_id", UniqueIdentifier),
    null("resource_pool_id", Int),
    null("default_language_lcid", SmallInt),
    null("default_language_name", SqlType::nvarchar(128)),
    null("default_fulltext_language_lcid", Int),
    null("default_fulltext_language_name", SqlType::nvarchar(128)),
    null("is_nested_triggers_on", Bit),
    null("is_transform_noise_words_on", Bit),
    null("two_digit_year_cutoff", SmallInt),
    null("containment", TinyInt),
    null("containment_desc", DESC),
    null("target_recovery_time_in_seconds", Int),
    null("delayed_durability", Int),
    null("delayed_durability_desc", DESC),
    null("is_memory_optimized_elevate_to_snapshot_on", Bit),
    null("is_federation_member", Bit),
    null("is_remote_data_archive_enabled", Bit),
    null("is_mixed_page_allocation_on", Bit),
    null("is_temporal_history_retention_enabled", Bit),
    null("catalog_collation_type", Int),
    null("catalog_collation_type_desc", DESC),
    null("physical_database_name", SqlType::nvarchar(128)),
    null("is_result_set_caching_on", Bit),
    null("is_accelerated_database_recovery_on", Bit),
    null("is_tempdb_spill_to_remote_store", Bit),
    null("is_stale_page_detection_on", Bit),
    null("is_memory_optimized_enabled", Bit),
    null("is_data_retention_enabled", Bit),
    null("is_ledger_on", Bit),
    null("is_change_feed_enabled", Bit),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[View { schema: "sys", name: "databases", columns: COLUMNS, rows: databases }];

/// The records of all databases, tempdb's included, by number.
pub(crate) fn records(session: &SessionState) -> Vec<(std::sync::Arc<DatabaseRecord>, bool)> {
    let mut all: std::collections::BTreeMap<i32, _> =
        session.engine.master.lock().databases.iter().map(|(id, record)| (*id, (record.clone(), false))).collect();
    for open in session.engine.all_databases() {
        all.insert(open.id.0, (open.record(), true));
    }
    all.into_values().collect()
}

/// sys.databases.recovery_model and its description.
pub(crate) fn recovery(record: &DatabaseRecord) -> (u8, &'static str) {
    match record.properties.get("RECOVERY").map(String::as_str) {
        Some("SIMPLE") => (3, "SIMPLE"),
        Some("BULK_LOGGED") => (2, "BULK_LOGGED"),
        _ => (1, "FULL"),
    }
}

/// sys.databases.delayed_durability and its description.
fn delayed_durability(record: &DatabaseRecord) -> (i32, &'static str) {
    match record.properties.get("DELAYED_DURABILITY").map(String::as_str) {
        Some("ALLOWED") => (1, "ALLOWED"),
        Some("FORCED") => (2, "FORCED"),
        _ => (0, "DISABLED"),
    }
}

fn databases(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let holdup = |id| {
        let log = session.storage_of(id).ok()?.storage.store().log().cloned()?;
        Some(log.holdup())
    };
    let state = |record: &DatabaseRecord, is_open: bool| match session.engine.unopened(record.id.0) {
        Some(why) if !is_open => why.state(),
        _ if is_open => (0, "ONLINE"),
        // Between the record and the files: CREATE DATABASE or DROP DATABASE is at it.
        _ => (1, "RESTORING"),
    };
    Ok(records(session).iter().map(|(record, open)| row(record, state(record, *open), holdup(record.id))).collect())
}

fn row(record: &DatabaseRecord, (state, state_name): (u8, &str), holdup: Option<LogHoldup>) -> Vec<Scalar> {
    let on = |name: &str, default: bool| bit(record.properties.get(name).map_or(default, |value| value == "ON"));
    let no = || bit(false);
    let allows_snapshot = record.id.0 < 5 || record.properties.get("ALLOW_SNAPSHOT_ISOLATION").is_some_and(|value| value == "ON");
    let (model, model_name) = recovery(record);
    let level = record.properties.get("COMPATIBILITY_LEVEL").and_then(|level| level.parse().ok()).unwrap_or(160);
    let target = crate::ddl::alter_database::target_recovery_s(record);
    let mut row = vec![
        text(record.name.clone()),
        int(record.id.0),
        Scalar::Null,
        Scalar::Binary(record.owner_sid.clone()),
        moment(record.created),
        tiny(level),
        text(Collation::DEFAULT.name()),
        tiny(0),
        text("MULTI_USER"),
        no(),
        no(),
        no(),
        tiny(state),
        text(state_name),
        no(),
        no(),
        no(),
        tiny(u8::from(allows_snapshot)),
        text(if allows_snapshot { "ON" } else { "OFF" }),
        on("READ_COMMITTED_SNAPSHOT", true),
        tiny(model),
        text(model_name),
        tiny(2),
        text("CHECKSUM"),
    ];
    row.extend([
        on("AUTO_CREATE_STATISTICS", true),
        no(),
        on("AUTO_UPDATE_STATISTICS", true),
        on("AUTO_UPDATE_STATISTICS_ASYNC", false),
        on("ANSI_NULL_DEFAULT", false),
        on("ANSI_NULLS", false),
        on("ANSI_PADDING", false),
        on("ANSI_WARNINGS", false),
        on("ARITHABORT", false),
        on("CONCAT_NULL_YIELDS_NULL", false),
        no(),
        on("QUOTED_IDENTIFIER", false),
        on("RECURSIVE_TRIGGERS", false),
        on("CURSOR_CLOSE_ON_COMMIT", false),
        bit(record.properties.get("CURSOR_DEFAULT").is_some_and(|value| value == "LOCAL")),
    ]);
    // Full text to log_reuse_wait: nothing of it is built, so nothing of it is on.
    row.extend((0..11).map(|_| no()));
    let holdup = holdup.unwrap_or(LogHoldup::Nothing);
    row.extend([Scalar::Guid([0; 16]), no(), tiny(holdup.number()), text(holdup.name()), no(), no(), no(), no()]);
    row.extend([Scalar::Null, Scalar::Null, Scalar::Null, small(1033), text("us_english"), int(1033), text("English")]);
    row.extend([Scalar::Null, Scalar::Null, Scalar::Null, tiny(0), text("NONE"), int(target.cast_signed())]);
    let (durability, durability_name) = delayed_durability(record);
    row.extend([int(durability), text(durability_name)]);
    row.extend([no(), no(), no(), no(), bit(true), int(0), text("DATABASE_DEFAULT"), text(record.name.clone())]);
    // Recovery needs no undo pass: what SQL Server calls accelerated database recovery is how this engine works.
    row.extend([no(), bit(true), no(), no(), no(), no(), no(), no()]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_every_column_in_its_type() {
        let record = DatabaseRecord {
            id: DatabaseId(5),
            name: "d".into(),
            state: thawdb_catalog::DatabaseState::Online,
            files: Vec::new(),
            filegroups: Vec::new(),
            created: 0,
            properties: Default::default(),
            owner_sid: vec![1],
        };
        let row = row(&record, (0, "ONLINE"), None);
        assert_eq!(row.len(), COLUMNS.len());
        for (value, column) in row.iter().zip(COLUMNS) {
            let fits = match value {
                Scalar::Null => column.nullable,
                Scalar::Bit(_) => column.sql_type == Bit,
                Scalar::TinyInt(_) => column.sql_type == TinyInt,
                Scalar::SmallInt(_) => column.sql_type == SmallInt,
                Scalar::Int(_) => column.sql_type == Int,
                Scalar::Text(_) => column.sql_type.is_text(),
                Scalar::Guid(_) => column.sql_type == UniqueIdentifier,
                Scalar::DateTime(_) => column.sql_type == DateTime,
                _ => column.sql_type.is_binary(),
            };
            assert!(fits, "{} is {value:?}", column.name);
        }
    }
}
