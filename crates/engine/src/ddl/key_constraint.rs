//! ALTER TABLE ADD of a PRIMARY KEY or UNIQUE constraint to a table with rows, and ALTER TABLE REBUILD.
//!
//! ```text
//! ONLINE = ON, not clustered ─► the operation beside the table's use (online.rs): index and constraint are published together
//! otherwise ──────────────────► index built with the table to itself, then the constraint, in one transaction
//! ```
//! Failure: what the index failed with, then 1750. A TRY sees the last of the two, as SQL Server's does. 1779 for a second
//! primary key, 8111 for a primary key over a column that may be NULL, 1711 if that is a computed one.

use crate::batch::failure::{Failure, Fate};
use crate::batch::interpreter::Interpreter;
use crate::ddl::alter_index::is_of_the_build;
use crate::ddl::compression;
use crate::ddl::constraints::{NewIndex, change_options, check_options};
use crate::ddl::index::{AddedIndex, add_index, next_index_id};
use crate::ddl::index_options::{BuildOptions, Supports};
use crate::ddl::names::{database_of, find_table, is_local_temporary};
use crate::ddl::online::{self, Planned};
use crate::ddl::table::{add_constraint, constraint_index, filegroup_number, index_name};
use crate::ddl::temporary::level_of;
use crate::ddl::{change_catalog, computed, rebuild};
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{ConstraintKind, IndexDef, IndexId, IndexKey, JobPurpose, TableDef};
use thawdb_tsql::ast::{
    ConstraintKind as Syntax, IndexKey as IndexColumn, IndexOption, KeyConstraint, ObjectName, Span, TableBody, TableConstraint,
};
use thawdb_types::SqlError;

/// The key that a body adds, if that is all it does.
fn only_key(body: &TableBody) -> Option<(&TableConstraint, &KeyConstraint)> {
    match body.constraints.as_slice() {
        [only] if body.columns.is_empty() && body.indexes.is_empty() => clause_of(only).map(|clause| (only, clause)),
        _ => None,
    }
}

fn clause_of(constraint: &TableConstraint) -> Option<&KeyConstraint> {
    match &constraint.kind {
        Syntax::PrimaryKey(clause) | Syntax::Unique(clause) => Some(clause),
        _ => None,
    }
}

/// The constraint without what says how it is built.
fn without_build_options(constraint: &TableConstraint) -> TableConstraint {
    let mut stripped = constraint.clone();
    if let Syntax::PrimaryKey(clause) | Syntax::Unique(clause) = &mut stripped.kind {
        clause.options.retain(|option| !is_of_the_build(option));
    }
    stripped
}

/// The index behind a key of a table as it is. 1711, 1779, 8111.
fn index_of(table: &TableDef, constraint: &TableConstraint) -> Result<NewIndex, SqlError> {
    let stripped = without_build_options(constraint);
    let made = constraint_index(&table.columns, &table.name, &stripped, None);
    let mut index = made.map_err(|error| error.at_line(constraint.span.line))?;
    if index.primary_key && table.every_index().any(|known| known.primary_key) {
        return Err(message(1779, &[&table.name]));
    }
    let unfit = |key: &&IndexKey| {
        let column = &table.columns[key.column_index];
        column.computed.as_ref().is_some_and(|computed| !computed.persisted || column.nullable)
    };
    if let Some(key) = index.keys.iter().find(unfit).filter(|_| index.primary_key) {
        return Err(message(1711, &[&table.columns[key.column_index].name, &table.name]));
    }
    if index.primary_key && index.keys.iter().any(|key| table.columns[key.column_index].nullable) {
        return Err(message(8111, &[&table.name]));
    }
    let is_heap = table.rows().keys.is_empty();
    index.clustered = Some(index.clustered.unwrap_or(index.primary_key && is_heap));
    Ok(index)
}

/// Tells the client why the index was not made, and fails with 1750; within a TRY that is all there is to see.
fn could_not(interpreter: &mut Interpreter<'_, '_>, failure: Failure) -> Failure {
    if failure.fate != Fate::Statement || failure.told || failure.error.severity > 16 || failure.error.number == 596 {
        return failure;
    }
    if !interpreter.guarded {
        interpreter.out.message(&failure.error);
    }
    Failure::run(message(1750, &[]))
}

/// ADD CONSTRAINT with the table to itself.
pub(crate) fn add(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    constraint: &TableConstraint,
) -> Result<(), Failure> {
    let added = index_of(table, constraint).map_err(Failure::run).and_then(|index| add_index_and_key(interpreter, open, table, &index));
    added.map_err(|mut failure| {
        if failure.error.line == 0 {
            failure.error.line = constraint.span.line;
        }
        could_not(interpreter, failure)
    })
}

fn add_index_and_key(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    index: &NewIndex,
) -> Result<(), Failure> {
    let positions: Vec<usize> = index.keys.iter().map(|key| key.column_index).collect();
    let table = &computed::store(interpreter, open, table, &positions, index.name.as_deref().unwrap_or_default())?;
    let AddedIndex { name, id } = add_index(interpreter, open, table, index)?;
    if level_of(interpreter.session, open, table).is_some() {
        return Ok(());
    }
    let now = interpreter.session.engine.now_datetime();
    let kind = if index.primary_key { ConstraintKind::PrimaryKey(id) } else { ConstraintKind::Unique(id) };
    change_catalog(interpreter.session, open, |catalog, part| {
        add_constraint(catalog, part, open, table, (name, index.name.is_none()), kind, now)
    })
    .map_err(Failure::run)
}

/// ADD CONSTRAINT of one key beside the table's use; false if it is not to go so.
pub(crate) fn add_beside(interpreter: &mut Interpreter<'_, '_>, name: &ObjectName, body: &TableBody, span: Span) -> Result<bool, Failure> {
    let Some((constraint, clause)) = only_key(body) else { return Ok(false) };
    let open = database_of(interpreter.session, name)?;
    let Some(table) = find_table(interpreter.session, name)? else { return Ok(false) };
    let is_primary = matches!(constraint.kind, Syntax::PrimaryKey(_));
    let is_clustered = clause.clustered.unwrap_or(is_primary && table.rows().keys.is_empty());
    // A computed column that rows do not hold yet is written into them with the table to itself.
    let column_of = |key: &IndexColumn| table.column_index(&key.column.text);
    let is_virtual = clause.columns.iter().filter_map(column_of).any(|at| table.columns[at].is_virtual());
    let goes_beside = !is_clustered && !is_local_temporary(name) && !table.rows_disabled && !is_virtual;
    let supports = Supports { online: goes_beside, resumable: goes_beside && open.id != TEMPDB_ID };
    let options = BuildOptions::read(interpreter, &open, &clause.options, "ALTER TABLE ADD CONSTRAINT", supports)?;
    check_options(&options.rest)?;
    online::refuse_where_unsupported(&open, &table, &options)?;
    if options.resumable && is_clustered {
        return Err(unsupported_option("RESUMABLE of a clustered index").into());
    }
    if !options.online || !goes_beside || interpreter.session.transactions.count > 0 {
        return Ok(false);
    }
    let plan = |_: &mut SessionState, table: &Arc<TableDef>| planned(&open, table, constraint);
    let built = online::build(interpreter, &open, &table, &options, span, &plan);
    built.map(|()| true).map_err(|failure| could_not(interpreter, failure))
}

fn planned(open: &OpenDatabase, table: &TableDef, constraint: &TableConstraint) -> Result<Planned, SqlError> {
    let index = index_of(table, constraint)?;
    let id = next_index_id(open, table);
    let name = index_name(&table.name, &index, table.id, id.0);
    let filegroup = filegroup_number(open, index.filegroup.as_deref())?;
    let purpose = JobPurpose::Constraint { system_named: index.name.is_none() };
    Ok(Planned { index: index.definition(id, name, IndexDef::NO_TREE), filegroup, purpose })
}

/// ALTER TABLE REBUILD: the rows' tree, and where that renumbers them every other index.
pub(crate) fn rebuild_table(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    of_partition: bool,
    options: &[IndexOption],
) -> Result<(), Failure> {
    if of_partition {
        return Err(message(7729, &[&"alter", &"table", &"table", &table.name]).into());
    }
    let supports = Supports { online: false, resumable: false };
    let read = BuildOptions::read(interpreter, open, options, "ALTER TABLE REBUILD", supports)?;
    check_options(&read.rest)?;
    online::refuse_where_unsupported(open, table, &read)?;
    let id: IndexId = table.rows().id;
    if read.resumable {
        let is_heap = id.0 == 0;
        let heap = || message(11435, &[&"RESUMABLE", &"table", &table.name]);
        let other = || message(11433, &[&"ALTER TABLE REBUILD", &"RESUMABLE", &"table", &table.name]);
        return Err(if is_heap { heap() } else { other() }.into());
    }
    let mut altered = (**table).clone();
    match compression::said(options, ("alter", "table", &table.name))? {
        _ if id.0 == 1 => change_options(&mut altered.indexes[0].options, options)?,
        Some(said) => altered.indexes[0].options.compression = said,
        None => {}
    }
    rebuild::refill(interpreter.session, open, table, altered, (&[id], None, read.max_dop)).map(drop).map_err(Failure::run)
}
