//! DROP TABLE, SCHEMA, DATABASE and LOGIN; what else can be dropped cannot have been made.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, find_table, is_local_temporary, schema_of, shown};
use crate::ddl::{catalog_error, change_catalog, lock_for_change, plain_error};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::transaction::{DatabaseTxn, OnCommit};
use thawdb_catalog::TableDef;
use thawdb_catalog::store::remove_counters;
use thawdb_tsql::ast::{DropKind, DropObject, ObjectName};
use thawdb_types::SqlError;

/// DROP kind [IF EXISTS] names: names before one that fails stay dropped, as in SQL Server.
pub(crate) fn drop_objects(interpreter: &mut Interpreter<'_, '_>, node: &DropObject) -> Result<(), Failure> {
    for name in &node.names {
        match node.kind {
            DropKind::Table => interpreter.transactional(|this| drop_table(this, name, node.if_exists))?,
            DropKind::Schema => interpreter.transactional(|this| crate::ddl::schema::drop_schema(this, name, node.if_exists))?,
            DropKind::Database => crate::ddl::database::drop_database(interpreter, name, node.if_exists)?,
            DropKind::Login => crate::ddl::login::drop_login(interpreter, name)?,
            kind => drop_unknown(interpreter, name, kind, node.if_exists)?,
        }
    }
    Ok(())
}

/// Objects of kinds that cannot be made do not exist: 3701, or nothing under IF EXISTS.
fn drop_unknown(interpreter: &Interpreter<'_, '_>, name: &ObjectName, kind: DropKind, if_exists: bool) -> Result<(), Failure> {
    let (word, statement) = match kind {
        DropKind::View => ("view", "VIEW"),
        DropKind::Procedure => ("procedure", "PROCEDURE"),
        DropKind::Function => ("function", "FUNCTION"),
        DropKind::Trigger => ("trigger", "TRIGGER"),
        DropKind::Sequence => ("sequence object", "SEQUENCE"),
        DropKind::Synonym => ("synonym", "SYNONYM"),
        DropKind::Type => ("type", "TYPE"),
        DropKind::User => ("user", "USER"),
        DropKind::Role => ("role", "ROLE"),
        _ => ("object", "OBJECT"),
    };
    if let Some(table) = find_table(interpreter.session, name)? {
        return Err(message(3705, &[&statement, &shown(name), &table.name, &"table", &"DROP TABLE"]).into());
    }
    if if_exists { Ok(()) } else { Err(message(3701, &[&"drop", &word, &shown(name)]).with_state(5).into()) }
}

fn drop_table(interpreter: &mut Interpreter<'_, '_>, name: &ObjectName, if_exists: bool) -> Result<(), Failure> {
    let missing = || message(3701, &[&"drop", &"table", &shown(name)]).with_state(5);
    let session = &mut *interpreter.session;
    let open = database_of(session, name)?;
    let Some(table) = find_table(session, name)? else {
        return if if_exists { Ok(()) } else { Err(missing().into()) };
    };
    if is_local_temporary(name) {
        return crate::ddl::temporary::drop_local(session, &name.name.text).map_err(Failure::run);
    }
    lock_for_change(session, &open, table.id)?;
    let dropped = change_catalog(session, &open, |catalog, part| {
        // Another session may have dropped it, or made another of the name, while this one waited.
        let Some(table) = catalog.tables.table(schema_of(name), &name.name.text).filter(|now| now.id == table.id).cloned() else {
            return Ok(false);
        };
        drop_trees(&open, part, &table)?;
        catalog.remove_table(&mut part.txn, table.id).map_err(catalog_error(&open))?;
        Ok(true)
    })?;
    if session.options.identity_insert == Some((open.id, table.id)) {
        session.options.identity_insert = None;
    }
    if dropped || if_exists { Ok(()) } else { Err(missing().into()) }
}

/// Drops a table's trees and counters with the transaction.
pub(crate) fn drop_trees(open: &OpenDatabase, part: &mut DatabaseTxn, table: &TableDef) -> Result<(), SqlError> {
    for index in &table.indexes {
        part.txn.drop_tree(index.tree).map_err(plain_error(open))?;
    }
    remove_counters(&mut part.txn, table.id).map_err(catalog_error(open))?;
    part.on_commit.push(OnCommit::Forget(table.id));
    Ok(())
}
