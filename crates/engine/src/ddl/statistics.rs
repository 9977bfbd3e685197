//! CREATE, UPDATE and DROP STATISTICS.
//!
//! ```text
//! WITH FULLSCAN | SAMPLE n PERCENT | SAMPLE n ROWS | RESAMPLE      how many rows are looked at
//!      NORECOMPUTE, PERSIST_SAMPLE_PERCENT = ON                    kept with the statistics
//!      ALL | COLUMNS | INDEX                                       which of a table's are updated
//! ```
//! They are no part of a transaction: what is made or dropped is recorded at once, and stays so after a rollback.
//! INCREMENTAL = ON, AUTO_DROP = ON, WHERE, and statistics of temporary tables, of large and of virtual columns are not built (40517, 1978).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, find_table, shown};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::statistics::{Share, all_of, can_have, make};
use std::sync::Arc;
use thawdb_catalog::{Statistics, StatisticsData, StatisticsOrigin, TableDef};
use thawdb_query::statistics::can_be_counted;
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::{CreateStatistics, ObjectName, OptionItem, OptionValue, UpdateStatistics};

/// Which of a table's statistics UPDATE STATISTICS is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    OfColumns,
    OfIndexes,
}

/// What the options say.
struct Options {
    share: Share,
    /// The share of each is that of the last time.
    resample: bool,
    no_recompute: bool,
    persists: Option<bool>,
    rows: Option<f64>,
    which: Which,
}

impl Options {
    fn read(interpreter: &mut Interpreter<'_, '_>, items: &[OptionItem]) -> Result<Self, Failure> {
        let mut options =
            Self { share: Share::Default, resample: false, no_recompute: false, persists: None, rows: None, which: Which::All };
        for item in items {
            match (item.name.as_str(), &item.value) {
                ("FULLSCAN", OptionValue::None) => options.share = Share::Full,
                ("RESAMPLE", OptionValue::None) => options.resample = true,
                ("NORECOMPUTE", OptionValue::None) => options.no_recompute = true,
                ("ALL", OptionValue::None) => options.which = Which::All,
                ("COLUMNS", OptionValue::None) => options.which = Which::OfColumns,
                ("INDEX", OptionValue::None) => options.which = Which::OfIndexes,
                ("PERSIST_SAMPLE_PERCENT", OptionValue::Switch(on)) => options.persists = Some(*on),
                ("INCREMENTAL" | "AUTO_DROP", OptionValue::Switch(false)) => {}
                // Rows are looked at by one thread, which any bound allows.
                ("MAXDOP", _) => {}
                ("SAMPLE", OptionValue::Quantity(number, unit)) => {
                    let number = interpreter.int_value(number)?.unwrap_or(0);
                    match unit.as_str() {
                        "PERCENT" if (0..=100).contains(&number) => options.share = Share::Percent(number as f64),
                        "ROWS" if number >= 0 => options.rows = Some(number as f64),
                        _ => return Err(message(153, &[&"SAMPLE", &"UPDATE STATISTICS"]).into()),
                    }
                }
                (name, _) => return Err(unsupported_option(name).at_line(item.span.line).into()),
            }
        }
        Ok(options)
    }

    /// How much of the rows is looked at for these.
    fn share_of(&self, open: &OpenDatabase, table: &TableDef, data: Option<&StatisticsData>) -> Share {
        if let Some(rows) = self.rows {
            let all = open.statistics.rows(table).or_else(|| open.counters.rows_at_most(table.id));
            return all.map_or(Share::Default, |all| Share::Percent((rows * 100.0 / all.max(1) as f64).min(100.0)));
        }
        match data.filter(|_| self.resample) {
            Some(data) if data.rows_sampled as f64 >= data.rows => Share::Full,
            Some(data) => Share::Percent(data.rows_sampled as f64 * 100.0 / data.rows),
            None => self.share,
        }
    }

    /// What of the options is kept.
    fn keep_in(&self, one: &mut Statistics, share: Share) {
        one.no_recompute = self.no_recompute;
        one.sample_percent = match (self.persists, share) {
            (Some(true), Share::Percent(percent)) => Some(percent),
            (Some(true), Share::Full) => Some(100.0),
            (Some(false), _) => None,
            _ => one.sample_percent,
        };
    }
}

type Target = (Arc<OpenDatabase>, Arc<TableDef>);

fn target(interpreter: &Interpreter<'_, '_>, name: &ObjectName, missing: i32) -> Result<Target, Failure> {
    let session = &*interpreter.session;
    let open = database_of(session, name)?;
    let table = find_table(session, name)?.ok_or_else(|| message(missing, &[&shown(name)]))?;
    if can_have(&table) { Ok((open, table)) } else { Err(unsupported_option("STATISTICS of a temporary table").into()) }
}

/// The same with the definition held to the end of the statement.
fn held_target(interpreter: &mut Interpreter<'_, '_>, name: &ObjectName, missing: i32) -> Result<Target, Failure> {
    let (open, table) = target(interpreter, name, missing)?;
    interpreter.session.lock(open.object_resource(table.id), LockMode::SchS, true)?;
    let now = target(interpreter, name, missing)?;
    // Another table of the name: rarer than to be worth another lock.
    if now.1.id == table.id { Ok((open, now.1)) } else { Err(message(missing, &[&shown(name)]).into()) }
}

/// 1974 where no row can be read.
fn refuse_disabled_rows(table: &TableDef) -> Result<(), Failure> {
    let name = table.rows().name.as_deref().unwrap_or_default();
    if table.rows_disabled { Err(message(1974, &[&"table", &table.name, &name]).into()) } else { Ok(()) }
}

/// CREATE STATISTICS.
pub(crate) fn create_statistics(interpreter: &mut Interpreter<'_, '_>, node: &CreateStatistics) -> Result<(), Failure> {
    let options = Options::read(interpreter, &node.options)?;
    if node.filter.is_some() {
        return Err(unsupported_option("WHERE").into());
    }
    let (open, table) = held_target(interpreter, &node.table, 1088)?;
    refuse_disabled_rows(&table)?;
    if all_of(&open, &table).iter().any(|one| one.name.eq_ignore_ascii_case(&node.name.text)) {
        return Err(message(1927, &[&shown(&node.table), &node.name.text]).into());
    }
    let mut columns: Vec<i32> = Vec::with_capacity(node.columns.len());
    for name in &node.columns {
        let found = table.columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name.text));
        let at = found.ok_or_else(|| message(1911, &[&name.text]))?;
        if !can_be_counted(&table, at) {
            return Err(message(1978, &[&name.text, &table.name]).into());
        }
        let id = table.columns[at].id.0;
        if columns.contains(&id) {
            return Err(message(1909, &[&"statistics", &name.text]).into());
        }
        columns.push(id);
    }
    let mut one = Statistics {
        id: 0,
        name: node.name.text.clone(),
        columns,
        origin: StatisticsOrigin::User,
        no_recompute: false,
        sample_percent: None,
        data: None,
    };
    let share = options.share_of(&open, &table, None);
    options.keep_in(&mut one, share);
    make(interpreter.session, &open, &table, one, share)?;
    Ok(())
}

/// UPDATE STATISTICS.
pub(crate) fn update_statistics(interpreter: &mut Interpreter<'_, '_>, node: &UpdateStatistics) -> Result<(), Failure> {
    let options = Options::read(interpreter, &node.options)?;
    let (open, table) = held_target(interpreter, &node.table, 2706)?;
    refuse_disabled_rows(&table)?;
    let all = all_of(&open, &table);
    let mut chosen: Vec<Statistics> = Vec::new();
    for name in &node.names {
        let one = all.iter().find(|one| one.name.eq_ignore_ascii_case(&name.text));
        chosen.push(one.ok_or_else(|| message(2767, &[&name.text]))?.clone());
    }
    if node.names.is_empty() {
        chosen = all;
        chosen.retain(|one| match options.which {
            Which::All => true,
            Which::OfColumns => one.origin != StatisticsOrigin::Index,
            Which::OfIndexes => one.origin == StatisticsOrigin::Index,
        });
    }
    for mut one in chosen {
        let share = options.share_of(&open, &table, one.data.as_ref());
        options.keep_in(&mut one, share);
        make(interpreter.session, &open, &table, one, share)?;
    }
    Ok(())
}

/// DROP STATISTICS, each `table.statistics`.
pub(crate) fn drop_statistics(interpreter: &mut Interpreter<'_, '_>, names: &[ObjectName]) -> Result<(), Failure> {
    for name in names {
        let missing = || message(3701, &[&"drop", &"statistics", &shown(name)]);
        let mut table_name = name.clone();
        table_name.name = name.schema.clone().ok_or_else(missing)?;
        (table_name.schema, table_name.database) = (name.database.clone(), None);
        let (open, table) = target(interpreter, &table_name, 3701).map_err(|_| missing())?;
        if !interpreter.session.may_alter(open.id, table.id) {
            return Err(missing().into());
        }
        let all = all_of(&open, &table);
        let one = all.iter().find(|one| one.name.eq_ignore_ascii_case(&name.name.text)).ok_or_else(missing)?;
        if one.origin == StatisticsOrigin::Index {
            return Err(message(3739, &[&"DROP", &shown(name)]).into());
        }
        if !open.statistics.drop_one(&open, &table, one.id)? {
            return Err(missing().into());
        }
    }
    Ok(())
}
