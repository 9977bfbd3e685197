//! DROP of tables, schemas, databases, logins, and of the objects that are no tables.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::module::word_of;
use crate::ddl::names::{database_of, find_table, is_local_temporary, schema_of, shown};
use crate::ddl::{catalog_error, change_catalog, lock_for_change, plain_error};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::transaction::{DatabaseTxn, OnCommit};
use thawdb_catalog::{ObjectKind, TableDef};
use thawdb_tsql::ast::{DropKind, DropObject, ObjectName};
use thawdb_types::SqlError;

/// DROP kind [IF EXISTS] names: names before one that fails stay dropped, as in SQL Server.
pub(crate) fn drop_objects(interpreter: &mut Interpreter<'_, '_>, node: &DropObject) -> Result<(), Failure> {
    for name in &node.names {
        match node.kind {
            DropKind::Table => interpreter.transactional(|this| drop_table(this, name, node.if_exists))?,
            DropKind::Schema => interpreter.transactional(|this| crate::ddl::schema::drop_schema(this, name, node.if_exists))?,
            DropKind::Database => crate::ddl::database::drop_database(interpreter, name, node.if_exists)?,
            DropKind::Login => crate::security::logins::drop_login(interpreter, &name.name.text)?,
            DropKind::ServerRole => crate::security::roles::drop_server_role(interpreter.session, &name.name.text, node.if_exists)?,
            DropKind::User => {
                interpreter.transactional(|this| crate::security::users::drop_user(this, &name.name.text, node.if_exists))?;
            }
            DropKind::Role => {
                interpreter.transactional(|this| crate::security::roles::drop_role(this, &name.name.text, node.if_exists))?;
            }
            kind => interpreter.transactional(|this| drop_object(this, name, kind, node.if_exists))?,
        }
    }
    Ok(())
}

/// What DROP kind drops, how the kind is called in messages, and its word in statements.
fn kinds_of(kind: DropKind) -> (&'static [ObjectKind], &'static str, &'static str) {
    match kind {
        DropKind::View => (&[ObjectKind::View], "view", "VIEW"),
        DropKind::Procedure => (&[ObjectKind::Procedure], "procedure", "PROCEDURE"),
        DropKind::Function => {
            (&[ObjectKind::ScalarFunction, ObjectKind::InlineFunction, ObjectKind::TableFunction], "function", "FUNCTION")
        }
        DropKind::Trigger => (&[ObjectKind::Trigger], "trigger", "TRIGGER"),
        DropKind::Sequence => (&[ObjectKind::Sequence], "sequence object", "SEQUENCE"),
        DropKind::Synonym => (&[ObjectKind::Synonym], "synonym", "SYNONYM"),
        DropKind::Type => (&[ObjectKind::TableType, ObjectKind::AliasType], "type", "TYPE"),
        _ => (&[], "object", "OBJECT"),
    }
}

/// DROP of an object that is no table: 3701 if there is none, 3705 if it is of another kind.
fn drop_object(interpreter: &mut Interpreter<'_, '_>, name: &ObjectName, kind: DropKind, if_exists: bool) -> Result<(), Failure> {
    let (kinds, word, statement) = kinds_of(kind);
    if matches!(kind, DropKind::Procedure | DropKind::View | DropKind::Function | DropKind::Trigger) && name.database.is_some() {
        return Err(message(166, &[&format!("DROP {statement}")]).into());
    }
    if kind != DropKind::Type
        && let Some(table) = find_table(interpreter.session, name)?
    {
        return Err(message(3705, &[&statement, &shown(name), &table.name, &"table", &"DROP TABLE"]).into());
    }
    let (open, schema) = (database_of(interpreter.session, name)?, schema_of(interpreter.session, name));
    if kind == DropKind::View {
        let view = interpreter.session.definitions(open.id).and_then(|catalog| catalog.object(&schema, &name.name.text).cloned());
        if let Some(view) = view {
            crate::ddl::binding::refuse_drop(interpreter.session, &open, view.id, ("DROP VIEW", &shown(name)))?;
        }
    }
    let dropped = change_catalog(interpreter.session, &open, |catalog, part| {
        let of_types = kind == DropKind::Type;
        let found = if of_types { catalog.user_type(&schema, &name.name.text) } else { catalog.object(&schema, &name.name.text) };
        let Some(object) = found.cloned() else { return Ok(false) };
        if !kinds.contains(&object.kind) {
            let own = word_of(object.kind);
            return Err(message(3705, &[&statement, &shown(name), &object.name, &own, &format!("DROP {}", own.to_uppercase())]));
        }
        if of_types {
            crate::ddl::user_type::refuse_used(catalog, &object)?;
        }
        catalog.remove_object(&mut part.txn, object.id).map_err(catalog_error(&open))?;
        part.on_commit.push(OnCommit::Forget(object.id));
        Ok(true)
    })?;
    match dropped || if_exists {
        true => Ok(()),
        false => Err(message(3701, &[&"drop", &word, &shown(name)]).with_state(5).into()),
    }
}

fn drop_table(interpreter: &mut Interpreter<'_, '_>, name: &ObjectName, if_exists: bool) -> Result<(), Failure> {
    let missing = || message(3701, &[&"drop", &"table", &shown(name)]).with_state(5);
    let session = &mut *interpreter.session;
    let open = database_of(session, name)?;
    let Some(table) = find_table(session, name)? else {
        let other = session.definitions(open.id).and_then(|catalog| crate::ddl::names::find_object(session, &catalog, name));
        if let Some(other) = other.filter(|_| !is_local_temporary(name)) {
            let own = word_of(other.kind);
            return Err(message(3705, &[&"TABLE", &shown(name), &other.name, &own, &format!("DROP {}", own.to_uppercase())]).into());
        }
        return if if_exists { Ok(()) } else { Err(missing().into()) };
    };
    if is_local_temporary(name) {
        return crate::ddl::temporary::drop_local(session, &name.name.text).map_err(Failure::run);
    }
    lock_for_change(session, &open, table.id)?;
    crate::ddl::binding::refuse_drop(session, &open, table.id, ("DROP TABLE", &shown(name)))?;
    let dropped = change_catalog(session, &open, |catalog, part| {
        // Another session may have dropped it, or made another of the name, while this one waited.
        let Some(table) = catalog.tables.tables.get(&table.id.0).cloned() else {
            return Ok(false);
        };
        let referring = catalog.related(table.id).is_some_and(|r| r.referenced_by.iter().any(|c| c.table != table.id));
        let disabled = |c: &thawdb_catalog::ConstraintDef| c.foreign_key.as_ref().is_some_and(|key| key.referenced == table.id);
        if referring || catalog.constraints.values().any(|c| c.table != table.id && disabled(c)) {
            return Err(message(3726, &[&shown(name)]));
        }
        if crate::ddl::temporal::is_bound(&table) {
            return Err(message(13_552, &[&format!("{}.{}.{}", open.name(), table.schema_name, table.name)]));
        }
        drop_trees(&open, part, &table)?;
        catalog.remove_table(&mut part.txn, table.id).map_err(catalog_error(&open))?;
        Ok(true)
    })?;
    if session.options.identity_insert == Some((open.id, table.id)) {
        session.options.identity_insert = None;
    }
    if dropped || if_exists { Ok(()) } else { Err(missing().into()) }
}

/// Drops a table's trees with the transaction, and its counters once that has committed.
pub(crate) fn drop_trees(open: &OpenDatabase, part: &mut DatabaseTxn, table: &TableDef) -> Result<(), SqlError> {
    for index in &table.indexes {
        part.txn.drop_tree(index.tree).map_err(plain_error(open))?;
    }
    part.on_commit.push(OnCommit::Forget(table.id));
    Ok(())
}
