//! DBCC SHOW_STATISTICS: the header, the densities and the histogram of statistics, each a result set. Statistics of an
//! index that nobody has asked for yet are made first.

use super::{argument, send_rows};
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, find_table, parse_name};
use crate::messages::message;
use crate::statistics::{Share, all_of, can_have, make};
use crate::views::{Column, Rows, big, null, optional_text, small, text};
use thawdb_catalog::{HistogramStep, Statistics, StatisticsData, TableDef};
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::Dbcc;
use thawdb_types::SqlType::{BigInt, Real, SmallInt};
use thawdb_types::{Scalar, SqlType};

const HEADER: &[Column] = &[
    null("Name", SqlType::SYSNAME),
    null("Updated", SqlType::nvarchar(20)),
    null("Rows", BigInt),
    null("Rows Sampled", BigInt),
    null("Steps", SmallInt),
    null("Density", Real),
    null("Average key length", Real),
    null("String Index", SqlType::nvarchar(3)),
    null("Filter Expression", SqlType::nvarchar(4000)),
    null("Unfiltered Rows", BigInt),
    null("Persisted Sample Percent", Real),
];

const DENSITIES: &[Column] = &[null("All density", Real), null("Average Length", Real), null("Columns", SqlType::nvarchar(4000))];

/// DBCC SHOW_STATISTICS (table, statistics | index | column).
pub(super) fn show(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let table_name = argument(interpreter, node, 0)?.ok_or_else(|| message(2560, &[&1]))?;
    let target = argument(interpreter, node, 1)?.ok_or_else(|| message(2560, &[&2]))?;
    let missing = || message(2501, &[&table_name]);
    let parsed = parse_name(&table_name).ok_or_else(missing)?;
    let open = database_of(interpreter.session, &parsed)?;
    let table = find_table(interpreter.session, &parsed)?.ok_or_else(missing)?;
    let all = all_of(&open, &table);
    let target = parse_name(&target).map_or(target, |name| name.name.text);
    let of_column = || {
        let column = table.columns.iter().find(|column| column.name.eq_ignore_ascii_case(&target))?;
        all.iter().find(|one| one.columns.first() == Some(&column.id.0) && one.data.is_some())
    };
    let one = all.iter().find(|one| one.name.eq_ignore_ascii_case(&target)).or_else(of_column);
    let mut one = one.ok_or_else(|| message(2767, &[&target]))?.clone();
    if one.data.is_none() && can_have(&table) && !table.rows_disabled {
        interpreter.session.lock(open.object_resource(table.id), LockMode::SchS, true)?;
        let now = interpreter.session.table(open.id, table.id).ok_or_else(missing)?;
        let table = now;
        make(interpreter.session, &open, &table, one.clone(), Share::Default)?;
        one = all_of(&open, &table).into_iter().find(|made| made.id == one.id).unwrap_or(one);
    }
    let asked = |name: &str| node.options.iter().any(|option| option.name == name);
    let every = !["STAT_HEADER", "DENSITY_VECTOR", "HISTOGRAM"].into_iter().any(asked);
    if every || asked("STAT_HEADER") {
        send_rows(interpreter, HEADER, &vec![header(&one)])?;
    }
    let Some(data) = &one.data else { return Ok(()) };
    if every || asked("DENSITY_VECTOR") {
        send_rows(interpreter, DENSITIES, &densities(&table, &one, data))?;
    }
    if every || asked("HISTOGRAM") {
        let columns = [
            null("RANGE_HI_KEY", data.key_type),
            null("RANGE_ROWS", Real),
            null("EQ_ROWS", Real),
            null("DISTINCT_RANGE_ROWS", BigInt),
            null("AVG_RANGE_ROWS", Real),
        ];
        send_rows(interpreter, &columns, &data.steps.iter().map(step).collect())?;
    }
    Ok(())
}

fn real(value: f64) -> Scalar {
    Scalar::Real(value as f32)
}

fn header(one: &Statistics) -> Vec<Scalar> {
    let mut row = vec![text(one.name.clone())];
    match &one.data {
        None => row.extend([const { Scalar::Null }; 6]),
        Some(data) => {
            let shown = crate::rows::display(&Scalar::DateTime(data.updated), &SqlType::DateTime);
            // The density of values within steps, those that have a step of their own left out.
            let within: f64 = data.steps.iter().map(|step| step.distinct_range_rows).sum();
            let density = if within > 0.0 { 1.0 / within } else { 0.0 };
            let steps = i16::try_from(data.steps.len()).unwrap_or(i16::MAX);
            let length = data.average_bytes.last().copied().unwrap_or(0.0);
            row.extend([text(shown), big(data.rows as u64), big(data.rows_sampled), small(steps), real(density), real(length)]);
        }
    }
    let rows = one.data.as_ref().map_or(Scalar::Null, |data| big(data.rows as u64));
    row.extend([text("NO"), Scalar::Null, rows, real(one.sample_percent.unwrap_or(0.0))]);
    row
}

fn densities(table: &TableDef, one: &Statistics, data: &StatisticsData) -> Rows {
    let name = |id: &i32| table.columns.iter().find(|column| column.id.0 == *id).map(|column| column.name.as_str());
    let names: Vec<&str> = one.columns.iter().filter_map(name).collect();
    let row = |(at, (distinct, bytes)): (usize, (&f64, &f64))| {
        let columns = names.get(..=at).map(|names| names.join(", "));
        vec![real(1.0 / distinct.max(1.0)), real(*bytes), optional_text(columns.as_deref())]
    };
    data.distinct.iter().zip(&data.average_bytes).enumerate().map(row).collect()
}

fn step(step: &HistogramStep) -> Vec<Scalar> {
    let average = if step.distinct_range_rows > 0.0 { step.range_rows / step.distinct_range_rows } else { 1.0 };
    let distinct = big(step.distinct_range_rows.round() as u64);
    vec![step.high.clone(), real(step.range_rows), real(step.equal_rows), distinct, real(average)]
}
