//! ALTER TABLE: columns that need no row rewritten, keys, defaults.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::columns::{COLUMNS_MAX, define};
use crate::ddl::names::{database_of, find_table, shown};
use crate::ddl::rewrite::{Source, rewrite};
use crate::ddl::rules::{rule_of, rules_of};
use crate::ddl::table::{add_constraint, check_row_versions, system_name};
use crate::ddl::temporary::{add_checks, drop_check, level_of};
use crate::ddl::{catalog_error, change_catalog, lock_for_change, plain_error, put_table, temporal};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::{ColumnId, ConstraintKind, LockEscalation, TableDef};
use thawdb_query::context::StatementHost;
use thawdb_storage::{KeyRange, ScanDirection};
use thawdb_tsql::ast::{
    AlterTable, AlterTableAction, AlterTableDrop, ConstraintKind as ConstraintSyntax, DefaultDefinition, OptionItem, OptionValue, Span,
    TableBody,
};
use thawdb_types::SqlError;

/// ALTER TABLE.
pub(crate) fn alter_table(interpreter: &mut Interpreter<'_, '_>, node: &AlterTable, span: Span) -> Result<(), Failure> {
    if let AlterTableAction::Add { body, .. } = &node.action
        && crate::ddl::key_constraint::add_beside(interpreter, &node.table, body, span)?
    {
        return Ok(());
    }
    interpreter.transactional(|this| {
        let open = database_of(this.session, &node.table)?;
        let missing = || message(4902, &[&shown(&node.table)]);
        let found = find_table(this.session, &node.table)?.ok_or_else(missing)?;
        lock_for_change(this.session, &open, found.id)?;
        let now = find_table(this.session, &node.table)?;
        let table = now.filter(|table| table.id == found.id).ok_or_else(missing)?;
        refuse_disabled_rows(&table, &node.action)?;
        temporal::refuse(this.session, &table, &node.action)?;
        let history = temporal::history_of(this.session, &open, &table);
        if let Some(history) = &history {
            lock_for_change(this.session, &open, history.id)?;
        }
        match &node.action {
            AlterTableAction::Add { body, check } => {
                if let Some(history) = history.as_ref().filter(|_| !body.columns.is_empty()) {
                    let plain = temporal::history_body(this.session, history, body)?;
                    add_columns(this, &open, history, &plain)?;
                }
                add(this, &open, &table, body, check.unwrap_or(true))
            }
            AlterTableAction::Drop(items) => items.iter().try_for_each(|item| {
                drop_part(this, &open, &table, item)?;
                match history.as_ref().filter(|_| item.column) {
                    Some(history) => drop_part(this, &open, history, &AlterTableDrop { if_exists: true, ..item.clone() }),
                    None => Ok(()),
                }
            }),
            AlterTableAction::DropPeriod => this.drop_period(&open, &table),
            AlterTableAction::AlterColumnProperty { column, add, property, .. } if property == "HIDDEN" => {
                this.set_hidden(&open, &table, column, *add)
            }
            AlterTableAction::CheckConstraint { with_check, enable, names } => {
                this.enable_rules(&open, &table, (names, *enable, with_check.unwrap_or(false)))
            }
            AlterTableAction::Trigger { enable, names } => {
                let names: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
                crate::ddl::trigger::set_enabled(this, &node.table, &names, *enable)
            }
            AlterTableAction::Set(options) => set_options(this, &open, &table, options),
            AlterTableAction::AlterColumn { .. } if level_of(this.session, &open, &table).is_some() => {
                Err(unsupported("ALTER TABLE ALTER COLUMN of a temporary table").into())
            }
            AlterTableAction::AlterColumn { column } => {
                if let Some(history) = &history {
                    crate::ddl::alter_column::alter_column(this, &open, history, column)?;
                }
                crate::ddl::alter_column::alter_column(this, &open, &table, column)
            }
            AlterTableAction::Rebuild { partition, options } => {
                crate::ddl::key_constraint::rebuild_table(this, &open, &table, partition.is_some(), options)
            }
            AlterTableAction::Switch { .. } => Err(unsupported("ALTER TABLE SWITCH").into()),
            _ => Err(unsupported("ALTER TABLE").into()),
        }
    })
}

fn add(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    body: &TableBody,
    check: bool,
) -> Result<(), Failure> {
    if !body.indexes.is_empty() {
        return Err(unsupported_option("ALTER TABLE ADD INDEX").into());
    }
    let generated = |column: &thawdb_tsql::ast::ColumnDefinition| matches!(&column.kind, thawdb_tsql::ast::ColumnKind::Regular(syntax) if syntax.generated.is_some());
    if body.period.is_none() && body.columns.iter().any(generated) {
        return Err(message(13_509, &[]).into());
    }
    add_columns(interpreter, open, table, body)?;
    interpreter.add_period(open, table, body)?;
    let temporary = level_of(interpreter.session, open, table).is_some();
    if temporary {
        let table = interpreter.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?;
        add_checks(interpreter, &table, &rules_of(body), check)?;
    }
    for rule in rules_of(body).into_iter().filter(|_| !temporary) {
        interpreter.add_rule(open, table, &rule, check).map_err(|mut failure| {
            failure.error = failure.error.at_line(rule.line);
            failure
        })?;
    }
    for constraint in body.constraints.iter().filter(|constraint| rule_of(constraint, None).is_none()) {
        let line = constraint.span.line;
        let table = interpreter.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?;
        match &constraint.kind {
            ConstraintSyntax::Default { value, column, .. } => {
                let default = DefaultDefinition {
                    name: constraint.name.clone(),
                    value: (**value).clone(),
                    with_values: false,
                    span: constraint.span,
                };
                add_default(interpreter, open, &table, &column.text, &default).map_err(|error| error.at_line(line))?;
            }
            _ => {
                crate::ddl::key_constraint::add(interpreter, open, &table, constraint)?;
            }
        }
    }
    Ok(())
}

/// SET (LOCK_ESCALATION = ...), SET (SYSTEM_VERSIONING = ...).
fn set_options(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    options: &[OptionItem],
) -> Result<(), Failure> {
    let (versioning, rest) = temporal::versioning_of(options)?;
    match versioning {
        Some(Some(clause)) => interpreter.turn_versioning_on(open, table, &clause)?,
        Some(None) => interpreter.turn_versioning_off(open, table)?,
        None => {}
    }
    if rest.is_empty() {
        return Ok(());
    }
    let mut altered = (*interpreter.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?).clone();
    for option in &rest {
        let line = option.span.line;
        if option.name != "LOCK_ESCALATION" {
            return Err(unsupported_option(&option.name).at_line(line).into());
        }
        altered.lock_escalation = match &option.value {
            OptionValue::Word(word) if word == "TABLE" => LockEscalation::Table,
            OptionValue::Word(word) if word == "AUTO" => LockEscalation::Auto,
            OptionValue::Word(word) if word == "DISABLE" => LockEscalation::Disable,
            OptionValue::Word(word) => return Err(message(102, &[word]).at_line(line).into()),
            _ => return Err(message(102, &[&"LOCK_ESCALATION"]).at_line(line).into()),
        };
    }
    altered.modified = interpreter.session.engine.now_datetime();
    put_table(interpreter.session, open, altered, &[]).map_err(Failure::run)
}

fn has_rows(interpreter: &Interpreter<'_, '_>, open: &OpenDatabase, table: &TableDef) -> Result<bool, SqlError> {
    let view = interpreter.session.read_view(open.id)?;
    let mut scan = view.scan(table.rows().tree, KeyRange::ALL, ScanDirection::Forward).map_err(plain_error(open))?;
    Ok(scan.next_block().map_err(plain_error(open))?.is_some())
}

fn add_columns(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    body: &TableBody,
) -> Result<(), Failure> {
    if body.columns.is_empty() {
        return Ok(());
    }
    let mut altered = (**table).clone();
    let (mut defaults, mut filled) = (Vec::new(), Vec::new());
    let occupied = has_rows(interpreter, open, table)?;
    for column in &body.columns {
        let last = altered.columns.iter().map(|c| c.id.0).max().unwrap_or(0);
        let new = define(interpreter.session, &table.name, &altered.columns, column, last + 1)?;
        let of_rows = new.definition.computed.as_ref().is_some_and(|computed| computed.stored);
        let of_rows = of_rows || new.definition.sql_type == thawdb_types::SqlType::RowVersion;
        if altered.column_index(&new.definition.name).is_some() {
            return Err(message(2705, &[&new.definition.name, &table.name]).at_line(column.span.line).into());
        }
        if new.syntax.constraints.iter().any(|c| rule_of(c, None).is_none()) || new.syntax.index.is_some() {
            return Err(unsupported_option("constraint at an added column").at_line(column.span.line).into());
        }
        if of_rows && occupied {
            filled.push((new.definition.id, String::new()));
        } else if occupied
            && new.definition.computed.is_none()
            && let Some(value) = value_for_rows(&new.definition, &new.syntax, table)?
        {
            filled.push((new.definition.id, value));
        }
        if let Some(default) = &new.syntax.default {
            let given = default.name.as_ref().map(|name| name.text.clone());
            defaults.push((new.definition.id, given));
        }
        altered.columns.push(new.definition);
    }
    check_row_versions(&altered.columns, &table.name)?;
    if altered.columns.len() > COLUMNS_MAX {
        return Err(message(1702, &[&altered.columns[COLUMNS_MAX].name, &table.name, &COLUMNS_MAX]).into());
    }
    if !filled.is_empty() && level_of(interpreter.session, open, table).is_some() {
        return Err(unsupported("ALTER TABLE ADD of a column with values to a temporary table").into());
    }
    if !filled.is_empty() {
        altered = rewrite(interpreter, open, table, altered, |column| {
            let added = table.columns.iter().all(|old| old.id != column.id);
            let value = filled.iter().find(|(id, _)| *id == column.id).map_or("NULL", |(_, value)| value.as_str());
            if added { Source::Value(value.to_owned()) } else { Source::Kept }
        })?;
    }
    let now = interpreter.session.engine.now_datetime();
    altered.modified = now;
    if level_of(interpreter.session, open, table).is_some() {
        for (id, given) in defaults {
            name_default(&mut altered, id, given);
        }
        return put_table(interpreter.session, open, altered, &[]).map_err(Failure::run);
    }
    change_catalog(interpreter.session, open, |catalog, part| {
        for (column, given) in defaults {
            let name = given.clone().unwrap_or_else(|| system_name("DF", &altered.name, altered.id, column.0));
            add_constraint(catalog, part, open, &altered, (name, given.is_none()), ConstraintKind::Default(column), now)?;
        }
        let altered = catalog.constraints_named(altered);
        catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))
    })
    .map_err(Failure::run)
}

/// What rows written before get in an added column; `None` where they may read NULL, as they do by themselves. 4901 if
/// nothing is said and NULL may not be.
fn value_for_rows(
    column: &thawdb_catalog::ColumnDef,
    syntax: &thawdb_tsql::ast::RegularColumn,
    table: &TableDef,
) -> Result<Option<String>, SqlError> {
    let with_values = syntax.default.as_ref().is_some_and(|default| default.with_values);
    if let Some(identity) = &column.identity {
        let nth = "(ROW_NUMBER() OVER (ORDER BY (SELECT NULL)) - 1)";
        return Ok(Some(format!("{} + {nth} * {}", identity.seed, identity.increment)));
    }
    match &column.default {
        Some(default) if with_values || !column.nullable => Ok(Some(default.clone())),
        _ if column.nullable => Ok(None),
        _ => Err(message(4901, &[&column.name, &table.name])),
    }
}

fn add_default(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &TableDef,
    column: &str,
    default: &DefaultDefinition,
) -> Result<(), SqlError> {
    let position = table.column_index(column).ok_or_else(|| message(1752, &[&column, &table.name]))?;
    if table.columns[position].default.is_some() {
        return Err(message(1781, &[]));
    }
    if table.columns[position].identity.is_some() {
        return Err(message(1754, &[&table.name, &column]));
    }
    let mut altered = table.clone();
    altered.columns[position].default = Some(crate::ddl::columns::default_text(interpreter.session, default, &table.columns[position])?);
    let id = altered.columns[position].id;
    let now = interpreter.session.engine.now_datetime();
    altered.modified = now;
    let given = default.name.as_ref().map(|name| name.text.clone());
    if level_of(interpreter.session, open, table).is_some() {
        name_default(&mut altered, id, given);
        return put_table(interpreter.session, open, altered, &[]);
    }
    change_catalog(interpreter.session, open, |catalog, part| {
        let name = given.clone().unwrap_or_else(|| system_name("DF", &altered.name, altered.id, id.0));
        add_constraint(catalog, part, open, &altered, (name, given.is_none()), ConstraintKind::Default(id), now)?;
        let altered = catalog.constraints_named(altered);
        catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))
    })
}

/// 1974 for what the rows of a disabled clustered index would have to be read or known for.
fn refuse_disabled_rows(table: &TableDef, action: &AlterTableAction) -> Result<(), SqlError> {
    let needs_rows =
        matches!(action, AlterTableAction::Add { .. } | AlterTableAction::AlterColumn { .. } | AlterTableAction::Rebuild { .. });
    if table.rows_disabled && needs_rows {
        return Err(message(1974, &[&"table", &table.name, &table.rows().name.as_deref().unwrap_or_default()]));
    }
    Ok(())
}

fn drop_part(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    item: &AlterTableDrop,
) -> Result<(), Failure> {
    let table = interpreter.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?;
    if level_of(interpreter.session, open, &table).is_some() {
        return drop_of_temporary(interpreter, open, &table, item);
    }
    if item.column {
        return crate::ddl::alter_column::drop_column(interpreter, open, &table, &item.name, item.if_exists);
    }
    let definitions = interpreter.session.definitions(open.id).ok_or_else(|| message(4902, &[&table.name]))?;
    let constraint = definitions.constraints_of(table.id).find(|constraint| item.name.is(&constraint.name)).cloned();
    let Some(constraint) = constraint else {
        return if item.if_exists { Ok(()) } else { Err(message(3728, &[&item.name.text]).into()) };
    };
    match constraint.kind {
        ConstraintKind::Default(column) => drop_default(interpreter, open, &table, column)?,
        ConstraintKind::Check | ConstraintKind::ForeignKey => {}
        ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => {
            let refers = |c: &&Arc<thawdb_catalog::ConstraintDef>| {
                c.foreign_key.as_ref().is_some_and(|key| key.referenced == table.id && key.index == index)
            };
            if let Some(key) = definitions.constraints.values().find(refers) {
                let child = interpreter.session.table(open.id, key.table).map_or(String::new(), |child| child.name.clone());
                return Err(message(3725, &[&constraint.name, &child, &key.name]).into());
            }
            crate::ddl::index::remove_index(interpreter, open, &table, index)?;
        }
    }
    change_catalog(interpreter.session, open, |catalog, part| {
        catalog.remove_constraint(&mut part.txn, constraint.id).map_err(catalog_error(open))
    })
    .map_err(Failure::run)
}

fn drop_default(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &TableDef,
    column: ColumnId,
) -> Result<(), SqlError> {
    let mut altered = table.clone();
    for known in altered.columns.iter_mut().filter(|known| known.id == column) {
        known.default = None;
        known.default_name = None;
    }
    altered.modified = interpreter.session.engine.now_datetime();
    put_table(interpreter.session, open, altered, &[])
}

/// A temporary table's constraints are no objects: their names are in its definition alone.
fn name_default(table: &mut TableDef, id: ColumnId, given: Option<String>) {
    let name = given.unwrap_or_else(|| system_name("DF", &table.name, table.id, id.0));
    for column in table.columns.iter_mut().filter(|column| column.id == id) {
        column.default_name = Some(name.clone());
    }
}

fn drop_of_temporary(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    item: &AlterTableDrop,
) -> Result<(), Failure> {
    if item.column {
        return Err(unsupported("ALTER TABLE DROP COLUMN of a temporary table").into());
    }
    let is_named = |name: &Option<String>| name.as_deref().is_some_and(|name| item.name.is(name));
    if let Some(column) = table.columns.iter().find(|column| is_named(&column.default_name)) {
        return drop_default(interpreter, open, table, column.id).map_err(Failure::run);
    }
    if drop_check(interpreter.session, table, &item.name.text) {
        return Ok(());
    }
    let key = table.every_index().find(|index| (index.primary_key || index.unique_constraint) && is_named(&index.name));
    match key {
        Some(index) => crate::ddl::index::remove_index(interpreter, open, table, index.id),
        None if item.if_exists => Ok(()),
        None => Err(message(3728, &[&item.name.text]).into()),
    }
}
