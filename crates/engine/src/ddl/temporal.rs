//! System-versioned tables: the period, the history, and what may not be done to them.
//!
//! ```text
//! CREATE TABLE ... PERIOD FOR SYSTEM_TIME ─► Temporal::period       ALTER TABLE ADD | DROP PERIOD
//! SYSTEM_VERSIONING = ON ─► a history made or adopted ─► Temporal::versioning of the one, history_of of the other
//! ```
//! 1. A history has its table's columns, by name, type and nullability, and nothing that could refuse a row (`adopt`).
//! 2. With DATA_CONSISTENCY_CHECK, the default, an adopted history's periods are sound and do not overlap (`check_rows`).
//! 3. Columns that come and go while versioning is ON do so in both tables (`history_body`).
//!
//! Messages: 13501 to 13509, 13587 (the period); 13510 to 13531, 13539, 13553, 13566 to 13568, 13574, 13595, 13596, 13757
//! (SYSTEM_VERSIONING); 13541, 13543, 13573 (rows of a history); 13542, 13575, 13597, 13598 (ADD PERIOD); 13743, 13744, 13765.

use crate::batch::failure::Failure;
use crate::batch::integrity::bracketed;
use crate::batch::interpreter::Interpreter;
use crate::ddl::constraints::NewIndex;
use crate::ddl::names::{find_table, is_local_temporary, shown};
use crate::ddl::table::{NewTable, add_table};
use crate::ddl::{catalog_error, change_catalog, lock_for_change};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, Compression, IndexKey, IndexOptions, Period, RetentionUnit, TableDef, Temporal, Versioning};
use thawdb_tsql::ast::{
    ColumnDefinition, ColumnKind, ExprKind, GeneratedAlways, Ident, Literal, ObjectName, OptionItem, OptionValue, SystemTimePeriod,
    TableBody,
};
use thawdb_types::{SqlError, SqlType};

/// SYSTEM_VERSIONING = ON as written.
pub(crate) struct VersioningClause {
    history: Option<ObjectName>,
    check: bool,
    /// `None` is unsaid.
    retention: Option<Option<(i32, RetentionUnit)>>,
}

/// Takes SYSTEM_VERSIONING out of a list of options: `Some(None)` is OFF.
pub(crate) fn versioning_of(options: &[OptionItem]) -> Result<(Option<Option<VersioningClause>>, Vec<OptionItem>), SqlError> {
    let (own, rest): (Vec<OptionItem>, Vec<OptionItem>) = options.iter().cloned().partition(|option| option.name == "SYSTEM_VERSIONING");
    let said = match own.as_slice() {
        [] => None,
        [one] => Some(match &one.value {
            OptionValue::Switch(false) => None,
            OptionValue::Switch(true) => Some(clause(&[])?),
            OptionValue::SwitchList(true, list) => Some(clause(list)?),
            _ => return Err(message(102, &[&"SYSTEM_VERSIONING"]).at_line(one.span.line)),
        }),
        [_, second, ..] => return Err(message(102, &[&"SYSTEM_VERSIONING"]).at_line(second.span.line)),
    };
    Ok((said, rest))
}

fn clause(options: &[OptionItem]) -> Result<VersioningClause, SqlError> {
    let mut clause = VersioningClause { history: None, check: true, retention: None };
    for option in options {
        let line = option.span.line;
        let wrong = || message(102, &[&option.name]).at_line(line);
        match (option.name.as_str(), &option.value) {
            ("HISTORY_TABLE", OptionValue::Expr(expr)) => {
                let ExprKind::Column(name) = &expr.kind else { return Err(wrong()) };
                let schema = name.table.as_ref().filter(|schema| schema.is_simple()).map(|schema| schema.name.clone());
                let Some(schema) = schema else {
                    let written = name.table.as_ref().map_or(String::new(), |table| format!("{}.", shown(table)));
                    return Err(message(13_539, &[&format!("{written}{}", name.column.text)]).at_line(line));
                };
                clause.history = Some(ObjectName { schema: Some(schema), ..ObjectName::simple(name.column.clone()) });
            }
            ("DATA_CONSISTENCY_CHECK", OptionValue::Switch(on)) => clause.check = *on,
            ("HISTORY_RETENTION_PERIOD", OptionValue::Word(word)) if word == "INFINITE" => clause.retention = Some(None),
            ("HISTORY_RETENTION_PERIOD", value) => clause.retention = Some(Some(retention(value).map_err(|error| error.at_line(line))?)),
            _ => return Err(wrong()),
        }
    }
    Ok(clause)
}

fn retention(value: &OptionValue) -> Result<(i32, RetentionUnit), SqlError> {
    let OptionValue::Quantity(number, unit) = value else { return Err(message(102, &[&"HISTORY_RETENTION_PERIOD"])) };
    let named = |known: &RetentionUnit| unit.strip_suffix('S').unwrap_or(unit) == known.name();
    let known = RetentionUnit::ALL.into_iter().find(named).ok_or_else(|| message(13_744, &[unit]))?;
    let (sign, literal) = match &number.kind {
        ExprKind::Unary { operand, .. } => (-1, &operand.kind),
        other => (1, other),
    };
    let ExprKind::Literal(Literal::Integer(count)) = literal else { return Err(message(102, &[&"HISTORY_RETENTION_PERIOD"])) };
    let count = sign * i64::from(*count);
    if count <= 0 {
        return Err(message(13_743, &[&count]));
    }
    let days = match known {
        RetentionUnit::Day => count,
        RetentionUnit::Week => count * 7,
        RetentionUnit::Month => count * 30,
        RetentionUnit::Year => count * 365,
    };
    // The calendar's own length: no row is older.
    match i32::try_from(count).ok().filter(|_| days <= 3_652_059) {
        Some(count) => Ok((count, known)),
        None => Err(message(13_749, &[&count, unit])),
    }
}

/// The period that a table's body tells, of columns that are defined already.
pub(crate) fn period_of(body: &TableBody, columns: &[ColumnDef]) -> Result<Option<Period>, SqlError> {
    let generated = |which: GeneratedAlways| {
        let of = move |column: &&ColumnDefinition| matches!(&column.kind, ColumnKind::Regular(syntax) if syntax.generated == Some(which));
        body.columns.iter().filter(of).collect::<Vec<_>>()
    };
    let (starts, ends) = (generated(GeneratedAlways::RowStart), generated(GeneratedAlways::RowEnd));
    if starts.len() > 1 {
        return Err(message(13_502, &[]));
    }
    if ends.len() > 1 {
        return Err(message(13_503, &[]));
    }
    let Some(period) = &body.period else {
        return if starts.is_empty() && ends.is_empty() { Ok(None) } else { Err(message(13_509, &[])) };
    };
    let start = starts.first().ok_or_else(|| message(13_504, &[]))?;
    let end = ends.first().ok_or_else(|| message(13_505, &[]))?;
    if !period.start.is(&start.name.text) {
        return Err(message(13_506, &[]));
    }
    if !period.end.is(&end.name.text) {
        return Err(message(13_507, &[]));
    }
    let hidden = |column: &ColumnDefinition| matches!(&column.kind, ColumnKind::Regular(syntax) if syntax.hidden);
    period_over(columns, period, (hidden(start), hidden(end))).map(Some)
}

/// The period over columns of a table: 13501 and 13587 for a column that cannot be of one.
fn period_over(columns: &[ColumnDef], period: &SystemTimePeriod, hidden: (bool, bool)) -> Result<Period, SqlError> {
    let find = |name: &Ident| {
        let column = columns.iter().find(|column| name.is(&column.name)).ok_or_else(|| message(13_750, &[&name.text]))?;
        if !matches!(column.sql_type, SqlType::DateTime2 { .. }) {
            return Err(message(13_501, &[&column.name]));
        }
        if column.nullable {
            return Err(message(13_587, &[&column.name]));
        }
        Ok(column.id)
    };
    Ok(Period { start: find(&period.start)?, end: find(&period.end)?, hidden })
}

impl Interpreter<'_, '_> {
    /// SYSTEM_VERSIONING = ON for a table that is there, locked by the caller.
    pub(crate) fn turn_versioning_on(
        &mut self,
        open: &Arc<OpenDatabase>,
        table: &TableDef,
        clause: &VersioningClause,
    ) -> Result<(), Failure> {
        let table = self.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?;
        let full = self.session.full_name(&table);
        if is_temporary(&table) {
            return Err(message(13_568, &[&table.name]).into());
        }
        if table.temporal.period.is_none() {
            return Err(message(13_510, &[]).into());
        }
        if table.temporal.versioning.is_some() {
            return self.change_retention(open, &table, clause);
        }
        if !table.every_index().any(|index| index.primary_key) {
            return Err(message(13_553, &[&full]).into());
        }
        let instead = |object: &Arc<thawdb_catalog::ObjectDef>| object.trigger.is_some_and(|trigger| trigger.instead_of);
        if self.session.definitions(open.id).is_some_and(|catalog| catalog.triggers_of(table.id).any(instead)) {
            return Err(message(13_774, &[&full]).into());
        }
        let history = match &clause.history {
            None => self.make_history(open, &table, None)?,
            Some(name) if is_local_temporary(name) => return Err(message(13_567, &[&name.name.text]).into()),
            Some(name) => match find_table(self.session, name)? {
                Some(found) => {
                    lock_for_change(self.session, open, found.id)?;
                    self.adopt(&table, &found)?;
                    if clause.check {
                        self.check_rows_of(&table, &found)?;
                    }
                    found
                }
                None => {
                    let definitions = self.session.definitions(open.id);
                    if definitions.is_some_and(|catalog| crate::ddl::names::find_object(self.session, &catalog, name).is_some()) {
                        return Err(message(13_511, &[&shown(name)]).into());
                    }
                    self.make_history(open, &table, Some(name))?
                }
            },
        };
        let retention = clause.retention.flatten();
        if retention.is_some() {
            require_cleanup_index(self.session, &table, &history)?;
        }
        let now = self.session.engine.now_datetime();
        change_catalog(self.session, open, |catalog, part| {
            let versioning = Some(Versioning { history: history.id, retention });
            let current = TableDef { temporal: Temporal { versioning, ..table.temporal }, modified: now, ..(*table).clone() };
            let past = TableDef { temporal: Temporal { history_of: Some(table.id), ..Temporal::default() }, ..(*history).clone() };
            catalog.put_table(&mut part.txn, current).map_err(catalog_error(open))?;
            catalog.put_table(&mut part.txn, past).map_err(catalog_error(open))
        })
        .map_err(Failure::run)
    }

    /// SYSTEM_VERSIONING = ON where it is on already: only the retention period may be another.
    fn change_retention(&mut self, open: &Arc<OpenDatabase>, table: &TableDef, clause: &VersioningClause) -> Result<(), Failure> {
        let full = self.session.full_name(table);
        let known = table.temporal.versioning.and_then(|versioning| self.session.table(open.id, versioning.history));
        let (Some(name), Some(history)) = (&clause.history, known) else { return Err(message(13_596, &[&full]).into()) };
        match find_table(self.session, name)? {
            None => return Err(message(13_757, &[&full]).into()),
            Some(other) if other.id != history.id => {
                return Err(message(13_595, &[&self.session.full_name(&other), &full]).into());
            }
            Some(_) => {}
        }
        let retention = clause.retention.flatten();
        if retention.is_some() {
            require_cleanup_index(self.session, table, &history)?;
        }
        change_catalog(self.session, open, |catalog, part| {
            let versioning = Some(Versioning { history: history.id, retention });
            let altered = TableDef { temporal: Temporal { versioning, ..table.temporal }, ..table.clone() };
            catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))
        })
        .map_err(Failure::run)
    }

    /// SYSTEM_VERSIONING = OFF: both are tables like others, the one with its period.
    pub(crate) fn turn_versioning_off(&mut self, open: &Arc<OpenDatabase>, table: &TableDef) -> Result<(), Failure> {
        let table = self.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?;
        let versioning = table.temporal.versioning.ok_or_else(|| message(13_591, &[&self.session.full_name(&table)]))?;
        lock_for_change(self.session, open, versioning.history)?;
        let history = self.session.table(open.id, versioning.history);
        change_catalog(self.session, open, |catalog, part| {
            let current = TableDef { temporal: Temporal { versioning: None, ..table.temporal }, ..(*table).clone() };
            catalog.put_table(&mut part.txn, current).map_err(catalog_error(open))?;
            let Some(history) = history else { return Ok(()) };
            let freed = TableDef { temporal: Temporal::default(), ..(*history).clone() };
            catalog.put_table(&mut part.txn, freed).map_err(catalog_error(open))
        })
        .map_err(Failure::run)
    }

    /// Makes a history: named, or as SQL Server names one.
    fn make_history(&mut self, open: &Arc<OpenDatabase>, table: &TableDef, name: Option<&ObjectName>) -> Result<Arc<TableDef>, SqlError> {
        let name = name.cloned().unwrap_or_else(|| {
            let made_up = format!("MSSQL_TemporalHistoryFor_{}", table.id.0);
            let taken = self.session.definitions(open.id).is_some_and(|c| c.tables.table(&table.schema_name, &made_up).is_some());
            let unique = if taken { format!("{made_up}_{:08X}", open.catalog_version()) } else { made_up };
            ObjectName { schema: Some(Ident::new(table.schema_name.clone())), ..ObjectName::simple(Ident::new(unique)) }
        });
        let plain = |column: &ColumnDef| ColumnDef {
            user_type: column.user_type,
            ..ColumnDef::plain(column.id, &column.name, of_history(&column.sql_type), column.nullable)
        };
        let (start, end) = table.period_positions().ok_or_else(|| message(13_510, &[]))?;
        let index = NewIndex {
            name: Some(format!("ix_{}", name.name.text)),
            keys: vec![IndexKey { column_index: end, descending: false }, IndexKey { column_index: start, descending: false }],
            included: Vec::new(),
            unique: false,
            primary_key: false,
            unique_constraint: false,
            clustered: Some(true),
            filegroup: None,
            filter: None,
            options: IndexOptions { compression: Compression::Page, ..IndexOptions::default() },
            says_compression: true,
        };
        let new = NewTable {
            name: name.name.text.clone(),
            columns: table.columns.iter().map(plain).collect(),
            indexes: vec![index],
            default_names: vec![None; table.columns.len()],
            filegroup: None,
            compression: Compression::Page,
            period: None,
            rules: Vec::new(),
        };
        let in_database = ObjectName { database: Some(Ident::new(open.name())), ..name };
        add_table(self.session, &in_database, new)
    }

    /// Whether a table can be the history of another: its columns are the same, and nothing of it refuses rows.
    fn adopt(&self, table: &TableDef, history: &TableDef) -> Result<(), SqlError> {
        let (full, past) = (self.session.full_name(table), self.session.full_name(history));
        if history.temporal.history_of.is_some() {
            return Err(message(13_514, &[&past]));
        }
        if history.temporal.versioning.is_some() || history.id == table.id {
            return Err(message(13_566, &[&past]));
        }
        let related = self.session.definitions(table.database).and_then(|catalog| catalog.related(history.id).cloned()).unwrap_or_default();
        let refusals = [
            (history.temporal.period.is_some(), 13_574),
            (history.every_index().any(|index| index.unique), 13_515),
            (!related.foreign_keys.is_empty(), 13_516),
            (!related.checks.is_empty(), 13_517),
            (history.columns.iter().any(|column| column.identity.is_some()), 13_518),
            (history.columns.iter().any(|column| column.computed.is_some()), 13_519),
            (!related.triggers.is_empty(), 13_522),
        ];
        if let Some((_, number)) = refusals.iter().find(|(refused, _)| *refused) {
            return Err(message(*number, &[&past]));
        }
        let (own, other) = (table.columns.len(), history.columns.len());
        if own != other {
            return Err(message(13_523, &[&full, &own, &past, &other]));
        }
        for (at, (column, kept)) in table.columns.iter().zip(&history.columns).enumerate() {
            if !kept.name.eq_ignore_ascii_case(&column.name) {
                return Err(message(13_524, &[&kept.name, &(at + 1), &past, &column.name, &full]));
            }
            let (is, was) = (of_history(&column.sql_type), kept.sql_type);
            let collation = is.collation().unwrap_or(thawdb_types::Collation::DEFAULT);
            if was.with_collation(collation) != is {
                return Err(message(13_525, &[&column.name, &was.name(), &past, &is.name(), &full]));
            }
            if was != is {
                return Err(message(13_526, &[&column.name, &full, &past]));
            }
            if kept.nullable && table.period_column(at).is_some() {
                return Err(message(13_530, &[&kept.name, &past, &full]));
            }
            if kept.nullable != column.nullable {
                return Err(message(13_531, &[&column.name, &full, &past]));
            }
        }
        Ok(())
    }

    /// DATA_CONSISTENCY_CHECK: 13541, 13543, 13573.
    fn check_rows_of(&mut self, table: &TableDef, history: &TableDef) -> Result<(), Failure> {
        let Some((start, end)) = table.period_positions() else { return Ok(()) };
        let (start, end) = (bracketed(&table.columns[start].name), bracketed(&table.columns[end].name));
        let of = |table: &TableDef| format!("{}.{}", bracketed(&table.schema_name), bracketed(&table.name));
        let primary = table.every_index().find(|index| index.primary_key);
        let keys = primary.map_or(String::new(), |index| {
            index.keys.iter().map(|key| bracketed(&table.columns[key.column_index].name)).collect::<Vec<_>>().join(", ")
        });
        let both = format!(
            "SELECT {keys}, {start}, {end} FROM {} WHERE {start} < {end} UNION ALL SELECT {keys}, {start}, {end} FROM {} WHERE {start} < {end}",
            of(history),
            of(table)
        );
        let checks = [
            (13_541, format!("SELECT TOP (1) 1 AS found FROM {} WHERE {end} < {start}", of(history))),
            (13_543, format!("SELECT TOP (1) 1 AS found FROM {} WHERE {end} > SYSUTCDATETIME()", of(history))),
            (
                13_573,
                format!(
                    "SELECT TOP (1) 1 AS found FROM (SELECT {start} AS s, LAG({end}) OVER (PARTITION BY {keys} ORDER BY {start}, {end}) AS e \
                     FROM ({both}) AS a) AS b WHERE e > s"
                ),
            ),
        ];
        for (number, text) in checks {
            if self.any_row(&text)? {
                return Err(message(number, &[&self.session.full_name(history)]).into());
            }
        }
        Ok(())
    }

    /// ADD PERIOD FOR SYSTEM_TIME over columns that are there by now.
    pub(crate) fn add_period(&mut self, open: &Arc<OpenDatabase>, table: &TableDef, body: &TableBody) -> Result<(), Failure> {
        let Some(period) = &body.period else { return Ok(()) };
        let table = self.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?;
        let full = self.session.full_name(&table);
        let hidden = |name: &Ident| {
            let added = body.columns.iter().find(|column| column.name.is(&name.text));
            added.is_some_and(|column| matches!(&column.kind, ColumnKind::Regular(syntax) if syntax.hidden))
        };
        let made = period_over(&table.columns, period, (hidden(&period.start), hidden(&period.end)))?;
        let name = format!("{}.{}", bracketed(&table.schema_name), bracketed(&table.name));
        let (start, end) = (bracketed(&period.start.text), bracketed(&period.end.text));
        let scale = table.columns.iter().find(|column| column.id == made.end).map_or(7, |column| column.sql_type.scale());
        let last = match scale {
            0 => "9999-12-31 23:59:59".to_owned(),
            digits => format!("9999-12-31 23:59:59.{}", "9".repeat(usize::from(digits))),
        };
        // The statement's own columns and rows are what is looked at.
        self.session.views.lock().clear();
        let closed = format!("SELECT TOP (1) 1 AS found FROM {name} WHERE {end} <> CAST('{last}' AS datetime2({scale}))");
        if self.any_row(&closed)? {
            return Err(message(13_575, &[&full]).into());
        }
        if self.any_row(&format!("SELECT TOP (1) 1 AS found FROM {name} WHERE {start} > SYSUTCDATETIME()"))? {
            return Err(message(13_542, &[&full]).into());
        }
        let altered = TableDef { temporal: Temporal { period: Some(made), ..table.temporal }, ..(*table).clone() };
        change_catalog(self.session, open, |catalog, part| catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open)))
            .map_err(Failure::run)
    }

    /// DROP PERIOD FOR SYSTEM_TIME.
    pub(crate) fn drop_period(&mut self, open: &Arc<OpenDatabase>, table: &TableDef) -> Result<(), Failure> {
        let full = self.session.full_name(table);
        if table.temporal.versioning.is_some() {
            return Err(message(13_592, &[&full]).into());
        }
        if table.temporal.period.is_none() {
            return Err(message(13_593, &[&full]).into());
        }
        let altered = TableDef { temporal: Temporal::default(), ..table.clone() };
        change_catalog(self.session, open, |catalog, part| catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open)))
            .map_err(Failure::run)
    }

    /// ALTER COLUMN c ADD | DROP HIDDEN: 13735 for a column that is not generated.
    pub(crate) fn set_hidden(&mut self, open: &Arc<OpenDatabase>, table: &TableDef, column: &Ident, hide: bool) -> Result<(), Failure> {
        let at =
            table.column_index(&column.text).ok_or_else(|| message(4924, &[&"ALTER TABLE ALTER COLUMN", &column.text, &table.name]))?;
        let mut altered = table.clone();
        match (table.period_column(at), &mut altered.temporal.period) {
            (Some(thawdb_catalog::temporal::PeriodColumn::Start), Some(period)) => period.hidden.0 = hide,
            (Some(thawdb_catalog::temporal::PeriodColumn::End), Some(period)) => period.hidden.1 = hide,
            _ => return Err(message(13_735, &[&column.text, &self.session.full_name(table)]).into()),
        }
        change_catalog(self.session, open, |catalog, part| catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open)))
            .map_err(Failure::run)
    }
}

fn is_temporary(table: &TableDef) -> bool {
    table.id.0 < 0 || table.name.starts_with('#')
}

/// A rowversion's history is its bytes.
fn of_history(sql_type: &SqlType) -> SqlType {
    if *sql_type == SqlType::RowVersion { SqlType::Binary { length: 8 } } else { *sql_type }
}

/// 13765 unless the history's rows are kept by the end of their period.
fn require_cleanup_index(session: &SessionState, table: &TableDef, history: &TableDef) -> Result<(), SqlError> {
    let end = table.period_positions().map(|(_, end)| &table.columns[end].name);
    let leads = history.rows().keys.first().map(|key| &history.columns[key.column_index].name);
    if leads.is_some() && leads == end {
        return Ok(());
    }
    let state = if leads.is_none() { 1 } else { 2 };
    Err(message(13_765, &[&session.full_name(table), &session.full_name(history)]).with_state(state))
}

/// What ALTER TABLE ADD adds to the history: the columns alone. 13704 and 13724 for what a history cannot have.
pub(crate) fn history_body(session: &SessionState, history: &TableDef, body: &TableBody) -> Result<TableBody, SqlError> {
    let mut plain = TableBody::default();
    for column in &body.columns {
        let ColumnKind::Regular(syntax) = &column.kind else { return Err(message(13_724, &[])) };
        if syntax.identity.is_some() {
            return Err(message(13_704, &[&session.full_name(history)]));
        }
        let mut syntax = syntax.clone();
        syntax.constraints.clear();
        if let Some(default) = &mut syntax.default {
            default.name = None;
        }
        plain.columns.push(ColumnDefinition { name: column.name.clone(), kind: ColumnKind::Regular(syntax), span: column.span });
    }
    Ok(plain)
}

/// What may not be done to tables that versioning binds together; `ALTER TABLE` asks before it does anything.
pub(crate) fn refuse(session: &SessionState, table: &TableDef, action: &thawdb_tsql::ast::AlterTableAction) -> Result<(), SqlError> {
    use thawdb_tsql::ast::{AlterTableAction as A, ConstraintKind as C};
    let full = || session.full_name(table);
    let is_history = table.temporal.history_of.is_some();
    let period = |name: &Ident| table.column_index(&name.text).is_some_and(|at| table.period_column(at).is_some());
    match action {
        A::Add { body, .. } if is_history => {
            if body.period.is_some() {
                return Err(message(13_598, &[&full()]));
            }
            if !body.columns.is_empty() {
                return Err(message(13_550, &[&full()]));
            }
            for constraint in &body.constraints {
                match &constraint.kind {
                    C::PrimaryKey(_) => return Err(message(13_558, &[&full()])),
                    C::Unique(_) => return Err(message(13_583, &[&full()])),
                    C::Check { .. } => return Err(message(13_564, &[&full()])),
                    C::ForeignKey(_) => {
                        let name = constraint.name.as_ref().map_or("", |name| name.text.as_str());
                        return Err(message(13_565, &[&name]));
                    }
                    _ => {}
                }
            }
            Ok(())
        }
        A::Add { body, .. } if body.period.is_some() && table.temporal.period.is_some() => Err(message(13_597, &[&full()])),
        A::Drop(items) => items.iter().try_for_each(|item| match item.column {
            true if is_history => Err(message(13_551, &[&full()])),
            true if period(&item.name) => Err(message(13_588, &[&item.name.text, &full()])),
            false if table.temporal.versioning.is_some() => {
                let is_key = |index: &thawdb_catalog::IndexDef| index.primary_key && index.name.as_deref().is_some_and(|n| item.name.is(n));
                if table.every_index().any(is_key) { Err(message(13_557, &[&full()])) } else { Ok(()) }
            }
            _ => Ok(()),
        }),
        A::AlterColumn { column } if is_history => Err(message(13_548, &[&column.name.text, &full()])),
        A::AlterColumn { column } if period(&column.name) => Err(message(13_599, &[&column.name.text])),
        A::Switch { .. } if table.temporal.versioning.is_some() => Err(message(13_546, &[&full()])),
        _ => Ok(()),
    }
}

/// The history of a table that has one.
pub(crate) fn history_of(session: &SessionState, open: &OpenDatabase, table: &TableDef) -> Option<Arc<TableDef>> {
    table.temporal.versioning.and_then(|versioning| session.table(open.id, versioning.history))
}

/// Whether DROP, TRUNCATE and their kin must leave a table alone.
pub(crate) fn is_bound(table: &TableDef) -> bool {
    table.temporal.versioning.is_some() || table.temporal.history_of.is_some()
}
