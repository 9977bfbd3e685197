//! Temporary tables and table variables: trees in tempdb, definitions in the session.

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::rules::{NewRule, NewRuleKind, check_text};
use crate::ddl::table::{NewTable, build, describe, system_name};
use crate::ddl::{catalog_error, change_catalog, plain_error};
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::state::SessionState;
use crate::session::temporary::{TempTable, VARIABLES_ID};
use crate::session::transaction::OnCommit;
use std::sync::Arc;
use thawdb_catalog::{CheckDef, ConstraintDef, ConstraintKind, ObjectDef, ObjectId, Related, SchemaId, TableDef};
use thawdb_query::compile::bind_row_condition;
use thawdb_tsql::ast::{DeclareTable, TableBody};
use thawdb_types::SqlError;

/// Makes a local temporary table: 2714 if the session has one of the name.
pub(crate) fn add_local(session: &mut SessionState, mut new: NewTable) -> Result<Arc<TableDef>, SqlError> {
    if session.temp.get(&new.name).is_some_and(|known| known.level == session.frames.len()) {
        return Err(message(2714, &[&new.name]).with_state(6));
    }
    let (id, now) = (SessionState::new_temp_object(), session.engine.now_datetime());
    name_defaults(&mut new, id);
    let open = session.storage_of(TEMPDB_ID)?;
    let part = session.part(TEMPDB_ID)?;
    let table = Arc::new(build(&open, &mut part.txn, id, (SchemaId(1), "dbo"), &new, now, |_| true)?);
    let level = session.frames.len();
    session.temp.put(TempTable { table: table.clone(), level });
    Ok(table)
}

fn name_defaults(new: &mut NewTable, id: ObjectId) {
    let (table, names) = (new.name.clone(), new.default_names.clone());
    for (column, given) in new.columns.iter_mut().zip(names).filter(|(column, _)| column.default.is_some()) {
        column.default_name = Some(given.unwrap_or_else(|| crate::ddl::table::system_name("DF", &table, id, column.id.0)));
    }
}

/// Level of the scope that made a table, if it is a local temporary one.
pub(crate) fn level_of(session: &SessionState, database: &OpenDatabase, table: &TableDef) -> Option<usize> {
    session.temp.by_id(table.id).filter(|_| database.id == TEMPDB_ID).map(|temp| temp.level)
}

/// Drops the trees of a temporary table and forgets it.
pub(crate) fn drop_local(session: &mut SessionState, name: &str) -> Result<(), SqlError> {
    let Some(temp) = session.temp.get(name).cloned() else { return Ok(()) };
    let open = session.storage_of(TEMPDB_ID)?;
    let part = session.part(TEMPDB_ID)?;
    for index in &temp.table.indexes {
        part.txn.drop_tree(index.tree).map_err(plain_error(&open))?;
    }
    part.on_commit.push(OnCommit::Forget(temp.table.id));
    session.temp_checks.remove(&temp.table.id.0);
    session.temp.remove(name);
    Ok(())
}

/// DECLARE @t TABLE: made when reached, once a scope.
pub(crate) fn declare_table(interpreter: &mut Interpreter<'_, '_>, node: &DeclareTable) -> Result<(), Failure> {
    let name = node.variable.name.to_lowercase();
    if interpreter.session.frame().table_variables.contains_key(&name) {
        return Ok(());
    }
    interpreter.transactional(|this| {
        let table = make_variable(this.session, &node.variable.name, &node.body)?;
        this.session.frame_mut().table_variables.insert(name, table);
        Ok(())
    })
}

/// DECLARE @t of a table type: likewise.
pub(crate) fn declare_of_type(interpreter: &mut Interpreter<'_, '_>, variable: &str, of: &ObjectDef) -> Result<(), Failure> {
    let name = variable.to_lowercase();
    if interpreter.session.frame().table_variables.contains_key(&name) {
        return Ok(());
    }
    interpreter.transactional(|this| {
        let table = crate::ddl::user_type::make_table(this.session, of, variable)?;
        let frame = this.session.frame_mut();
        frame.table_types.insert(name.clone(), of.id);
        frame.table_variables.insert(name, table);
        Ok(())
    })
}

/// An empty table variable of these clauses.
pub(crate) fn make_variable(session: &mut SessionState, name: &str, body: &TableBody) -> Result<Arc<TableDef>, SqlError> {
    if body.period.is_some() {
        return Err(message(13_572, &[]));
    }
    let mut new = describe(session, name, body)?;
    let (id, now) = (SessionState::new_temp_object(), session.engine.now_datetime());
    name_defaults(&mut new, id);
    let open = session.storage_of(TEMPDB_ID)?;
    let part = session.part(VARIABLES_ID)?;
    let mut table = build(&open, &mut part.txn, id, (SchemaId(1), "dbo"), &new, now, |_| true)?;
    table.database = VARIABLES_ID;
    let table = Arc::new(table);
    keep_checks(session, &table, &new.rules)?;
    Ok(table)
}

/// Keeps the CHECK constraints of a temporary table or table variable with the session. FOREIGN KEYs are passed over
/// (1756), as SQL Server passes them over.
pub(crate) fn keep_checks(session: &mut SessionState, table: &Arc<TableDef>, rules: &[NewRule]) -> Result<(), SqlError> {
    let mut related = session.temp_checks.get(&table.id.0).map_or_else(Related::default, |known| (**known).clone());
    let first = i32::try_from(related.checks.len()).unwrap_or(i32::MAX - 1) + 1;
    for (number, rule) in (first..).zip(rules) {
        let NewRuleKind::Check(condition) = &rule.kind else {
            session.infos.push(message(1756, &[&rule.name.clone().unwrap_or_default(), &table.name]).at_line(rule.line));
            continue;
        };
        bind_row_condition(condition, table, &CompileCx::new(session, 0)).map_err(|error| error.at_line(rule.line))?;
        let column = rule.column.as_ref().and_then(|name| table.column_index(name)).map(|at| table.columns[at].id);
        let definition = check_text(condition, rule.line)?;
        related.checks.push(Arc::new(ConstraintDef {
            id: ObjectId(0),
            name: rule.name.clone().unwrap_or_else(|| system_name("CK", &table.name, table.id, number)),
            table: table.id,
            kind: ConstraintKind::Check,
            system_named: rule.name.is_none(),
            created: table.created,
            check: Some(CheckDef { column, definition, disabled: false, not_trusted: false }),
            foreign_key: None,
        }));
    }
    if !related.checks.is_empty() {
        session.temp_checks.insert(table.id.0, Arc::new(related));
    }
    Ok(())
}

/// ALTER TABLE ADD of CHECK constraints to a temporary table; `trusted`: rows that are there are looked at (547).
pub(crate) fn add_checks(
    interpreter: &mut Interpreter<'_, '_>,
    table: &Arc<TableDef>,
    rules: &[NewRule],
    trusted: bool,
) -> Result<(), Failure> {
    let known = interpreter.session.temp_checks.get(&table.id.0).map_or(0, |related| related.checks.len());
    keep_checks(interpreter.session, table, rules)?;
    let Some(related) = interpreter.session.temp_checks.get(&table.id.0).cloned() else { return Ok(()) };
    for constraint in related.checks[known..].iter().filter(|_| trusted) {
        let condition = constraint.check.as_ref().map_or("", |check| check.definition.as_str());
        let name = crate::batch::integrity::bracketed(&table.name);
        if interpreter.any_row(&format!("SELECT TOP (1) 1 AS found FROM {name} WHERE NOT ({condition})"))? {
            let error = interpreter.session.conflict("ALTER TABLE", "CHECK", &constraint.name, table, None);
            drop_check(interpreter.session, table, &constraint.name);
            return Err(error.into());
        }
    }
    Ok(())
}

/// Takes a CHECK constraint from a temporary table; whether it had one of the name.
pub(crate) fn drop_check(session: &mut SessionState, table: &TableDef, name: &str) -> bool {
    let Some(known) = session.temp_checks.get(&table.id.0) else { return false };
    let mut related = (**known).clone();
    related.checks.retain(|check| !check.name.eq_ignore_ascii_case(name));
    let found = related.checks.len() < known.checks.len();
    if related.checks.is_empty() {
        session.temp_checks.remove(&table.id.0);
    } else if found {
        session.temp_checks.insert(table.id.0, Arc::new(related));
    }
    found
}

/// Whether the rules of a table type or of a function's table mean something: told when it is made.
pub(crate) fn validate_rules(session: &SessionState, name: &str, new: &NewTable) -> Result<(), SqlError> {
    let table = crate::ddl::computed::provisional(session, name, &new.columns);
    for rule in &new.rules {
        match &rule.kind {
            NewRuleKind::Check(condition) => {
                bind_row_condition(condition, &table, &CompileCx::new(session, 0)).map_err(|error| error.at_line(rule.line))?;
                check_text(condition, rule.line)?;
            }
            NewRuleKind::ForeignKey(_) => return Err(message(102, &[&"REFERENCES"]).at_line(rule.line)),
        }
    }
    Ok(())
}

/// Ends what a scope made: its table variables and its temporary tables.
pub(crate) fn end_scope(session: &mut SessionState) -> Result<(), SqlError> {
    let level = session.frames.len();
    let frame = session.frame_mut();
    let mut variables = std::mem::take(&mut frame.table_variables);
    // A table that a caller passed is the caller's.
    variables.retain(|name, _| !frame.borrowed_tables.contains(name));
    let temporary = if level > 1 { session.temp.from_level(level) } else { Vec::new() };
    if variables.is_empty() && temporary.is_empty() {
        return Ok(());
    }
    let mark = session.begin_statement();
    let dropped = drop_scope(session, variables.into_values().collect(), temporary);
    match dropped {
        Ok(()) => session.end_statement(),
        Err(error) => {
            session.undo_statement(&mark)?;
            Err(error)
        }
    }
}

fn drop_scope(session: &mut SessionState, variables: Vec<Arc<TableDef>>, temporary: Vec<TempTable>) -> Result<(), SqlError> {
    let open = session.storage_of(TEMPDB_ID)?;
    for table in variables {
        let part = session.part(VARIABLES_ID)?;
        for index in &table.indexes {
            part.txn.drop_tree(index.tree).map_err(plain_error(&open))?;
        }
        part.on_commit.push(OnCommit::Forget(table.id));
        session.temp_checks.remove(&table.id.0);
    }
    // In a doomed transaction nothing can be dropped; its rollback takes the tables.
    if !session.transactions.doomed {
        for temp in temporary {
            drop_local(session, &temp.table.name)?;
        }
    }
    Ok(())
}

/// Ends everything temporary a session has: at its end and at a connection reset, outside any transaction.
pub(crate) fn drop_all(session: &mut SessionState) -> Result<(), SqlError> {
    session.frames.clear();
    let mark = session.begin_statement();
    let dropped = drop_everything(session);
    match dropped {
        Ok(()) => session.end_statement(),
        Err(error) => {
            session.undo_statement(&mark)?;
            Err(error)
        }
    }
}

fn drop_everything(session: &mut SessionState) -> Result<(), SqlError> {
    for temp in session.temp.from_level(0) {
        drop_local(session, &temp.table.name)?;
    }
    let globals = std::mem::take(&mut session.global_temp);
    if globals.is_empty() {
        return Ok(());
    }
    let open = session.storage_of(TEMPDB_ID)?;
    for id in globals {
        crate::ddl::lock_for_change(session, &open, id)?;
        change_catalog(session, &open, |catalog, part| {
            let Some(table) = catalog.tables.tables.get(&id.0).cloned() else { return Ok(()) };
            crate::ddl::drop::drop_trees(&open, part, &table)?;
            catalog.remove_table(&mut part.txn, id).map_err(catalog_error(&open))
        })?;
    }
    Ok(())
}
