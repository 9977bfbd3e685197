//! sys.index_resumable_operations: index operations that go on beside their tables' use, running or paused; and
//! sys.thawdb_index_operations, what this engine knows of them beside.
//!
//! `rows_processed` counts rows read and entries gathered in this life of the instance, whatever became of them: what a crash
//! cost is the difference between what it was before and the rows that are there afterwards.

use crate::session::state::SessionState;
use crate::views::{Column, DESC, Rows, View, big, col, int, moment, null, optional_text, small, text, tiny};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::{BigInt, DateTime, Int, Real, SmallInt, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const COLUMNS: &[Column] = &[
    col("object_id", Int),
    col("index_id", Int),
    null("name", SqlType::SYSNAME),
    null("sql_text", SqlType::NVARCHAR_MAX),
    col("last_max_dop", SmallInt),
    null("partition_number", Int),
    col("state", TinyInt),
    col("state_desc", DESC),
    col("start_time", DateTime),
    null("last_pause_time", DateTime),
    col("total_execution_time", Int),
    col("percent_complete", Real),
    col("page_count", BigInt),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "index_resumable_operations", columns: COLUMNS, rows: operations },
    View { schema: "sys", name: "thawdb_index_operations", columns: OWN_COLUMNS, rows: own_operations },
];

const OWN_COLUMNS: &[Column] = &[
    col("object_id", Int),
    col("index_id", Int),
    col("rows_scanned", BigInt),
    col("rows_appended", BigInt),
    col("run_count", BigInt),
    col("rows_processed", BigInt),
    col("is_kept_in_memory", SqlType::Bit),
];

fn own_operations(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let (Some(catalog), Ok(open)) = (session.visible(database), session.storage_of(database)) else { return Ok(Rows::new()) };
    let row = |job: &std::sync::Arc<thawdb_catalog::IndexJob>| {
        let state = open.jobs.state(job.table);
        let progress = state.progress.as_ref().unwrap_or(&job.progress);
        vec![
            int(job.table.0),
            int(job.index.id.0),
            big(progress.rows_scanned),
            big(progress.rows_appended),
            big(progress.run_count),
            big(state.rows_processed),
            Scalar::Bit(state.kept),
        ]
    };
    Ok(catalog.jobs.values().map(row).collect())
}

fn operations(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let (Some(catalog), Ok(open)) = (session.visible(database), session.storage_of(database)) else { return Ok(Rows::new()) };
    let mut rows = Rows::new();
    for job in catalog.jobs.values().filter(|job| job.resumable) {
        let state = open.jobs.state(job.table);
        let progress = state.progress.as_ref().unwrap_or(&job.progress);
        // What the instance's end paused, it has not written down.
        let by_start = (!state.running && job.started < session.engine.started).then_some(session.engine.started);
        let paused = state.paused.or(progress.paused).or(by_start);
        let mut pages = 0;
        for tree in [job.index.tree, job.side, job.runs] {
            pages += open.storage.tree_page_count(tree).map_err(|error| session.storage_failure(database, error))?;
        }
        rows.push(vec![
            int(job.table.0),
            int(job.index.id.0),
            optional_text(job.index.name.as_deref()),
            text(job.statement.clone()),
            small(job.max_dop),
            Scalar::Null,
            tiny(u8::from(!state.running)),
            text(if state.running { "RUNNING" } else { "PAUSED" }),
            moment(job.started),
            paused.map_or(Scalar::Null, moment),
            int(i32::try_from(progress.worked_ms / 60_000).unwrap_or(i32::MAX)),
            Scalar::Real(job.percent(progress) as f32),
            big(pages),
        ]);
    }
    Ok(rows)
}
