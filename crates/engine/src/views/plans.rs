//! sys.dm_exec_cached_plans, sys.dm_exec_query_stats and sys.dm_exec_sql_text, from the plan cache.
//!
//! A plan is of one statement here, so that each is a row of both views and its text that of the statement. Handles are a
//! kind (2 of a text, 6 of a plan), the database and the plan's number, which no other plan of the process has. Times are
//! of the clock on the wall: processor time is not measured, and the columns of worker time show the elapsed time.

use crate::batch::plan_cache::ShownPlan;
use crate::session::state::SessionState;
use crate::views::functions::Function;
use crate::views::{Column, Rows, View, big, bit, col, int, moment, null, small, text};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use thawdb_catalog::DatabaseId;
use thawdb_query::compile::Compiled;
use thawdb_query::explain::{explain, session_names};
use thawdb_types::SqlType::{BigInt, Bit, DateTime, Int, SmallInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const HANDLE: SqlType = SqlType::varbinary(64);
const HASH: SqlType = SqlType::Binary { length: 8 };

const PLAN_COLUMNS: &[Column] = &[
    col("bucketid", Int),
    col("refcounts", Int),
    col("usecounts", Int),
    col("size_in_bytes", Int),
    col("memory_object_address", SqlType::varbinary(8)),
    col("cacheobjtype", SqlType::nvarchar(34)),
    col("objtype", SqlType::nvarchar(16)),
    col("plan_handle", HANDLE),
    col("pool_id", Int),
    null("parent_plan_handle", HANDLE),
];

const STATS_COLUMNS: &[Column] = &[
    col("sql_handle", HANDLE),
    col("statement_start_offset", Int),
    col("statement_end_offset", Int),
    col("plan_generation_num", BigInt),
    col("plan_handle", HANDLE),
    col("creation_time", DateTime),
    col("last_execution_time", DateTime),
    col("execution_count", BigInt),
    col("total_worker_time", BigInt),
    col("last_worker_time", BigInt),
    col("min_worker_time", BigInt),
    col("max_worker_time", BigInt),
    col("total_elapsed_time", BigInt),
    col("last_elapsed_time", BigInt),
    col("min_elapsed_time", BigInt),
    col("max_elapsed_time", BigInt),
    col("query_hash", HASH),
    col("query_plan_hash", HASH),
    col("total_rows", BigInt),
    col("last_rows", BigInt),
    col("min_rows", BigInt),
    col("max_rows", BigInt),
];

const TEXT_COLUMNS: &[Column] =
    &[null("dbid", SmallInt), null("objectid", Int), null("number", SmallInt), col("encrypted", Bit), null("text", SqlType::NVARCHAR_MAX)];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "dm_exec_cached_plans", columns: PLAN_COLUMNS, rows: plans },
    View { schema: "sys", name: "dm_exec_query_stats", columns: STATS_COLUMNS, rows: stats },
];

/// The functions of this file.
pub(crate) const FUNCTIONS: &[Function] = &[Function { name: "dm_exec_sql_text", columns: TEXT_COLUMNS, arguments: 1, rows: sql_text }];

const OF_TEXT: u8 = 2;
const OF_PLAN: u8 = 6;

fn handle(kind: u8, plan: &ShownPlan) -> Scalar {
    let mut bytes = vec![kind, 0];
    bytes.extend_from_slice(&plan.key.database.0.to_le_bytes());
    bytes.extend_from_slice(&plan.number.to_be_bytes());
    Scalar::Binary(bytes)
}

/// The number of the plan that a handle names.
fn number_of(handle: &[u8]) -> Option<u64> {
    let (head, number) = handle.split_last_chunk::<8>()?;
    (head.len() == 6 && matches!(head[0], OF_TEXT | OF_PLAN)).then(|| u64::from_be_bytes(*number))
}

fn hash(value: impl Hash) -> Scalar {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    Scalar::Binary(hasher.finish().to_be_bytes().to_vec())
}

fn plans(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let row = |plan: ShownPlan| {
        let uses = plan.plan.usage.summary().map_or(0, |summary| summary.runs);
        let kind = if plan.key.variables.is_empty() { "Adhoc" } else { "Prepared" };
        vec![
            int(i32::try_from(plan.bucket).unwrap_or(i32::MAX)),
            // Those who hold it besides this view.
            int(i32::try_from(Arc::strong_count(&plan.plan) - 1).unwrap_or(i32::MAX)),
            int(i32::try_from(uses).unwrap_or(i32::MAX)),
            int(i32::try_from(size_of::<Compiled>() + plan.key.text.len()).unwrap_or(i32::MAX)),
            Scalar::Binary((Arc::as_ptr(&plan.plan).addr() as u64).to_be_bytes().to_vec()),
            text("Compiled Plan"),
            text(kind),
            handle(OF_PLAN, &plan),
            int(1),
            Scalar::Null,
        ]
    };
    Ok(session.engine.plans.shown().into_iter().map(row).collect())
}

fn stats(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let names = session_names(session);
    let row = |plan: ShownPlan| {
        let summary = plan.plan.usage.summary()?;
        let times = summary.elapsed_ns.map(|ns| big(ns / 1000));
        let mut row = vec![
            handle(OF_TEXT, &plan),
            int(0),
            int(-1),
            big(1),
            handle(OF_PLAN, &plan),
            moment(plan.made),
            moment(summary.last_at),
            big(summary.runs),
        ];
        row.extend(times.iter().cloned());
        row.extend(times.iter().cloned());
        row.push(hash(&plan.key.text));
        row.push(hash(explain(&plan.plan.node, &names)));
        row.extend(summary.rows.map(big));
        Some(row)
    };
    Ok(session.engine.plans.shown().into_iter().filter_map(row).collect())
}

fn sql_text(session: &SessionState, _: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let Scalar::Binary(handle) = &arguments[0] else { return Ok(Rows::new()) };
    let Some(number) = number_of(handle) else { return Ok(Rows::new()) };
    let found = session.engine.plans.shown().into_iter().find(|plan| plan.number == number);
    let row = |plan: ShownPlan| {
        let database = small(i16::try_from(plan.key.database.0).unwrap_or(i16::MAX));
        vec![database, Scalar::Null, Scalar::Null, bit(false), text(plan.key.text)]
    };
    Ok(found.map(row).into_iter().collect())
}
