//! sys.stats, sys.stats_columns, sys.dm_db_stats_properties, sys.dm_db_stats_histogram.
//!
//! The statistics of an index are there with it, their contents once somebody has asked for them.

use crate::security::rule::Securable;
use crate::session::state::SessionState;
use crate::statistics::{all_of, can_have};
use crate::views::functions::Function;
use crate::views::objects::tables_of;
use crate::views::{Column, DESC, Rows, View, big, bit, col, int, null, text, variant};
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, Statistics, StatisticsOrigin, TableDef};
use thawdb_types::SqlType::{BigInt, Bit, Float, Int, Real, SqlVariant};
use thawdb_types::calendar::Moment;
use thawdb_types::{Scalar, SqlError, SqlType};

const STATS: &[Column] = &[
    col("object_id", Int),
    null("name", SqlType::SYSNAME),
    col("stats_id", Int),
    null("auto_created", Bit),
    null("user_created", Bit),
    null("no_recompute", Bit),
    null("has_filter", Bit),
    null("filter_definition", SqlType::NVARCHAR_MAX),
    null("is_temporary", Bit),
    null("is_incremental", Bit),
    null("has_persisted_sample", Bit),
    null("stats_generation_method", Int),
    null("stats_generation_method_desc", DESC),
    null("auto_drop", Bit),
];

const STATS_COLUMNS: &[Column] = &[col("object_id", Int), col("stats_id", Int), null("stats_column_id", Int), null("column_id", Int)];

const PROPERTIES: &[Column] = &[
    col("object_id", Int),
    col("stats_id", Int),
    null("last_updated", SqlType::DateTime2 { scale: 7 }),
    null("rows", BigInt),
    null("rows_sampled", BigInt),
    null("steps", Int),
    null("unfiltered_rows", BigInt),
    null("modification_counter", BigInt),
    null("persisted_sample_percent", Float),
];

const HISTOGRAM: &[Column] = &[
    col("object_id", Int),
    col("stats_id", Int),
    col("step_number", Int),
    null("range_high_key", SqlVariant),
    null("range_rows", Real),
    null("equal_rows", Real),
    null("distinct_range_rows", BigInt),
    null("average_range_rows", Real),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "stats", columns: STATS, rows: stats },
    View { schema: "sys", name: "stats_columns", columns: STATS_COLUMNS, rows: stats_columns },
];

/// The functions of this file.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function { name: "dm_db_stats_properties", columns: PROPERTIES, arguments: 2, rows: properties },
    Function { name: "dm_db_stats_histogram", columns: HISTOGRAM, arguments: 2, rows: histogram },
];

fn each(session: &SessionState, database: DatabaseId) -> Result<Vec<(Arc<TableDef>, Statistics)>, SqlError> {
    let open = session.storage_of(database)?;
    let of_table = |table: Arc<TableDef>| {
        let all = if can_have(&table) { all_of(&open, &table) } else { Vec::new() };
        all.into_iter().map(move |one| (table.clone(), one))
    };
    Ok(tables_of(session, database).into_iter().flat_map(of_table).collect())
}

fn stats(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let row = |(table, one): (Arc<TableDef>, Statistics)| {
        vec![
            int(table.id.0),
            text(one.name.clone()),
            int(one.id),
            bit(one.origin == StatisticsOrigin::Automatic),
            bit(one.origin == StatisticsOrigin::User),
            bit(one.no_recompute),
            bit(false),
            Scalar::Null,
            bit(false),
            bit(false),
            bit(one.sample_percent.is_some()),
            int(0),
            text("Sort based statistics"),
            bit(false),
        ]
    };
    Ok(each(session, database)?.into_iter().map(row).collect())
}

fn stats_columns(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let rows = |(table, one): (Arc<TableDef>, Statistics)| {
        let row = move |(ordinal, column): (i32, i32)| vec![int(table.id.0), int(one.id), int(ordinal), int(column)];
        (1..).zip(one.columns).map(row).collect::<Rows>()
    };
    Ok(each(session, database)?.into_iter().flat_map(rows).collect())
}

/// The statistics that two arguments name; NULL names none. They tell of values: who may not read the columns gets none.
fn named(session: &SessionState, database: DatabaseId, arguments: &[Scalar]) -> Result<Option<(Arc<TableDef>, Statistics)>, SqlError> {
    let number = |at: usize| arguments.get(at).and_then(Scalar::as_i64);
    let (Some(table), Some(id)) = (number(0), number(1)) else { return Ok(None) };
    let open = session.storage_of(database)?;
    let table = tables_of(session, database).into_iter().find(|known| i64::from(known.id.0) == table && can_have(known));
    let Some(table) = table else { return Ok(None) };
    let judge = session.judge(database)?;
    let may_read = |column: &i32| judge.allows(Securable::Column(table.id.0, *column), "SELECT");
    let found = all_of(&open, &table).into_iter().find(|one| i64::from(one.id) == id);
    Ok(found.filter(|one| one.columns.iter().all(may_read)).map(|one| (table, one)))
}

fn properties(session: &SessionState, database: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let Some((table, one)) = named(session, database, arguments)? else { return Ok(Rows::new()) };
    let changes = session.storage_of(database)?.statistics.changes(table.id, &one);
    let mut row = vec![int(table.id.0), int(one.id)];
    match &one.data {
        None => row.extend([const { Scalar::Null }; 6]),
        Some(data) => {
            let updated = Moment::of(&Scalar::DateTime(data.updated)).map_or(Scalar::Null, |at| Scalar::DateTime2(at.total_ticks()));
            let rows = big(data.rows as u64);
            let steps = i32::try_from(data.steps.len()).unwrap_or(i32::MAX);
            row.extend([updated, rows.clone(), big(data.rows_sampled), int(steps), rows, big(changes)]);
        }
    }
    row.push(Scalar::Float(one.sample_percent.unwrap_or(0.0)));
    Ok(vec![row])
}

fn histogram(session: &SessionState, database: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let Some((table, one)) = named(session, database, arguments)? else { return Ok(Rows::new()) };
    let Some(data) = &one.data else { return Ok(Rows::new()) };
    let key_type = data.key_type;
    let real = |value: f64| Scalar::Real(value as f32);
    let row = |(number, step): (i32, &thawdb_catalog::HistogramStep)| {
        let key = match &step.high {
            // It is a sql_variant's bytes already.
            Scalar::Binary(bytes) if key_type == SqlVariant => Scalar::Binary(bytes.clone()),
            value if thawdb_types::variant::holds(&key_type) => variant(value.clone(), &key_type),
            _ => Scalar::Null,
        };
        let average = if step.distinct_range_rows > 0.0 { step.range_rows / step.distinct_range_rows } else { 1.0 };
        vec![
            int(table.id.0),
            int(one.id),
            int(number),
            key,
            real(step.range_rows),
            real(step.equal_rows),
            big(step.distinct_range_rows.round() as u64),
            real(average),
        ]
    };
    Ok((1..).zip(&data.steps).map(row).collect())
}

/// STATS_DATE: when statistics were made.
pub(crate) fn date(session: &SessionState, table: &TableDef, id: i32) -> Scalar {
    let Ok(open) = session.storage_of(table.database) else { return Scalar::Null };
    let one = all_of(&open, table).into_iter().find(|one| one.id == id);
    one.and_then(|one| one.data).map_or(Scalar::Null, |data| Scalar::DateTime(data.updated))
}
