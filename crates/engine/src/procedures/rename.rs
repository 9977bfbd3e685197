//! sp_rename: another name for a table, column, index, constraint or other object.
//!
//! ```text
//! @objname, @newname [, @objtype] ─► what it means ─► the new name is free? (15335) ─► catalog ─► 15477 warns
//! ```
//!
//! 1. Texts of modules keep the old name, as in SQL Server: who uses them meets 207 or 208.
//! 2. A column that a CHECK speaks of keeps its name (15336): its text would mean another column or none.
//!
//! Messages: 15225 (nothing of the name), 15248 (@objtype does not fit), 15249 (no such @objtype), 15335, 15336.

use crate::batch::arguments::Argument;
use crate::batch::failure::Failure;
use crate::batch::outbox::Outbox;
use crate::ddl::names::{database_of, parse_name, schema_of};
use crate::ddl::table::check_free;
use crate::ddl::{catalog_error, change_catalog, lock_for_change};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::procedures::{Returned, parameter};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{ConstraintKind, DatabaseCatalog, IndexId, TableDef};
use thawdb_tsql::ast::{Ident, ObjectName};
use thawdb_types::SqlError;

const PARAMETERS: [&str; 3] = ["@objname", "@newname", "@objtype"];

/// Calls it, as a statement of its own.
pub(crate) fn call(session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Argument]) -> Result<Returned, Failure> {
    let mut given: [Option<String>; 3] = [None, None, None];
    for (at, argument) in arguments.iter().enumerate() {
        given[parameter::place("sp_rename", &PARAMETERS, at, argument)?] = argument.value.as_text().map(str::to_owned);
    }
    let [old, new, kind] = given;
    let old = old.ok_or_else(|| message(201, &[&"sp_rename", &PARAMETERS[0]]))?;
    let new = new.ok_or_else(|| message(201, &[&"sp_rename", &PARAMETERS[1]]))?;
    let mark = session.begin_statement();
    let outcome = rename(session, &old, &new, kind.as_deref()).and_then(|()| session.end_statement());
    if let Err(error) = outcome {
        session.undo_statement(&mark)?;
        return Err(error.into());
    }
    out.message(&message(15_477, &[]).at_line(1));
    Ok(Returned::default())
}

fn rename(session: &mut SessionState, old: &str, new: &str, kind: Option<&str>) -> Result<(), SqlError> {
    let upper = kind.map(|kind| kind.trim().to_ascii_uppercase());
    let nothing = || message(15_225, &[&old, &session.database.name(), &kind.unwrap_or("(null)")]);
    let name = parse_name(old).ok_or_else(nothing)?;
    match upper.as_deref() {
        Some("COLUMN") => rename_column(session, &name, new, "COLUMN"),
        Some("INDEX") => rename_index(session, &name, new, "INDEX"),
        None | Some("OBJECT") => {
            let nothing = nothing();
            if rename_object(session, &name, new)? { Ok(()) } else { Err(nothing) }
        }
        Some(other) => Err(message(15_249, &[&other])),
    }
}

/// `[schema.]table.part` as the table and the part. 15248 if there is no such table.
fn table_of(session: &mut SessionState, name: &ObjectName, kind: &str) -> Result<(Arc<OpenDatabase>, Arc<TableDef>, Ident), SqlError> {
    let wrong = || message(15_248, &[&kind]);
    let table = ObjectName {
        server: None,
        database: name.server.clone(),
        schema: name.database.clone(),
        name: name.schema.clone().ok_or_else(wrong)?,
        span: name.span,
    };
    let open = database_of(session, &table)?;
    let find = |session: &SessionState| {
        crate::ddl::names::find_table(session, &table).ok().flatten().filter(|found| session.may_alter(found.database, found.id))
    };
    let found = find(session).ok_or_else(wrong)?;
    lock_for_change(session, &open, found.id)?;
    let found = find(session).filter(|now| now.id == found.id).ok_or_else(wrong)?;
    Ok((open, found, name.name.clone()))
}

fn rename_column(session: &mut SessionState, name: &ObjectName, new: &str, kind: &str) -> Result<(), SqlError> {
    let (open, table, column) = table_of(session, name, kind)?;
    let position = table.column_index(&column.text).ok_or_else(|| message(15_248, &[&kind]))?;
    if table.column_index(new).is_some_and(|taken| taken != position) {
        return Err(message(15_335, &[&new, &kind]));
    }
    let mut altered = (*table).clone();
    altered.columns[position].name = new.to_owned();
    altered.modified = session.engine.now_datetime();
    if crate::ddl::alter_column::checks_without(session, &open, &table, position) {
        return Err(message(15_336, &[&format!("{}.{}", table.name, column.text)]));
    }
    if table.temporal.history_of.is_some() {
        return Err(message(13_759, &[&session.full_name(&table)]));
    }
    // A history's columns are called as its table's.
    let mut history = crate::ddl::temporal::history_of(session, &open, &table).map(|history| (*history).clone());
    if let Some(history) = &mut history {
        lock_for_change(session, &open, history.id)?;
        if let Some(at) = history.column_index(&column.text) {
            history.columns[at].name = new.to_owned();
        }
    }
    change_catalog(session, &open, |catalog, part| {
        for table in history.into_iter().chain([altered]) {
            catalog.put_table(&mut part.txn, table).map_err(catalog_error(&open))?;
        }
        Ok(())
    })
}

fn rename_index(session: &mut SessionState, name: &ObjectName, new: &str, kind: &str) -> Result<(), SqlError> {
    let (open, table, index) = table_of(session, name, kind)?;
    let called = |known: &Option<String>, name: &str| known.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name));
    let found = table.every_index().find(|known| called(&known.name, &index.text));
    let id = found.ok_or_else(|| message(15_248, &[&kind]))?.id;
    if table.every_index().any(|known| known.id != id && called(&known.name, new)) {
        return Err(message(15_335, &[&new, &kind]));
    }
    let now = session.engine.now_datetime();
    change_catalog(session, &open, |catalog, part| {
        let backed = catalog.constraints_of(table.id).find(|constraint| match constraint.kind {
            ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => index == id,
            _ => false,
        });
        if let Some(mut constraint) = backed.map(|constraint| (**constraint).clone()) {
            new.clone_into(&mut constraint.name);
            catalog.put_constraint(&mut part.txn, constraint).map_err(catalog_error(&open))?;
        }
        put_index_name(catalog, part, &open, &table, (id, new), now)
    })
}

fn put_index_name(
    catalog: &mut DatabaseCatalog,
    part: &mut crate::session::transaction::DatabaseTxn,
    open: &OpenDatabase,
    table: &TableDef,
    (id, new): (IndexId, &str),
    now: i64,
) -> Result<(), SqlError> {
    let mut altered = table.clone();
    altered.every_index_mut().filter(|index| index.id == id).for_each(|index| index.name = Some(new.to_owned()));
    altered.modified = now;
    catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))
}

/// Renames a table, a constraint or what else has a name in a schema; false if there is nothing of the name.
fn rename_object(session: &mut SessionState, name: &ObjectName, new: &str) -> Result<bool, SqlError> {
    let open = database_of(session, name)?;
    let (schema, now) = (schema_of(session, name), session.engine.now_datetime());
    let definitions = session.definitions(open.id);
    let known = definitions.as_ref().and_then(|catalog| catalog.tables.table(&schema, &name.name.text).cloned());
    let object =
        definitions.as_ref().and_then(|catalog| catalog.object(&schema, &name.name.text).map(|object| object.parent.unwrap_or(object.id)));
    let constraint = definitions.as_ref().and_then(|catalog| catalog.constraint(&schema, &name.name.text).map(|c| c.table));
    let altered = known.as_ref().map(|table| table.id).or(object).or(constraint);
    if altered.is_some_and(|id| !session.may_alter(open.id, id)) {
        return Ok(false);
    }
    if let Some(table) = known {
        lock_for_change(session, &open, table.id)?;
    }
    change_catalog(session, &open, |catalog, part| {
        let table = catalog.tables.table(&schema, &name.name.text).cloned();
        let object = catalog.object(&schema, &name.name.text).cloned();
        let constraint = catalog.constraint(&schema, &name.name.text).cloned();
        if table.is_none() && object.is_none() && constraint.is_none() {
            return Ok(false);
        }
        if !name.name.text.eq_ignore_ascii_case(new) {
            check_free(catalog, &schema, new, new).map_err(|_| message(15_335, &[&new, &"OBJECT"]))?;
        }
        if let Some(table) = table {
            let altered = TableDef { name: new.to_owned(), modified: now, ..(*table).clone() };
            catalog.put_table(&mut part.txn, altered).map_err(catalog_error(&open))?;
        } else if let Some(object) = object {
            let mut altered = (*object).clone();
            new.clone_into(&mut altered.name);
            altered.modified = now;
            catalog.put_object(&mut part.txn, altered).map_err(catalog_error(&open))?;
        } else if let Some(constraint) = constraint {
            let mut altered = (*constraint).clone();
            new.clone_into(&mut altered.name);
            altered.system_named = false;
            let table = catalog.tables.tables.get(&constraint.table.0).cloned();
            catalog.put_constraint(&mut part.txn, altered).map_err(catalog_error(&open))?;
            if let Some(table) = table {
                rename_in_table(catalog, part, &open, &table, (&constraint.kind, new), now)?;
            }
        }
        Ok(true)
    })
}

/// A key's index has its constraint's name, a default's column tells it.
fn rename_in_table(
    catalog: &mut DatabaseCatalog,
    part: &mut crate::session::transaction::DatabaseTxn,
    open: &OpenDatabase,
    table: &TableDef,
    (kind, new): (&ConstraintKind, &str),
    now: i64,
) -> Result<(), SqlError> {
    match kind {
        ConstraintKind::PrimaryKey(id) | ConstraintKind::Unique(id) => put_index_name(catalog, part, open, table, (*id, new), now),
        ConstraintKind::Default(_) => {
            let altered = catalog.constraints_named(table.clone());
            catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))
        }
        ConstraintKind::Check | ConstraintKind::ForeignKey => Ok(()),
    }
}
