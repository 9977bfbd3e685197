//! ALTER AUTHORIZATION and ALTER SCHEMA TRANSFER: who owns what, and which schema it is in.
//!
//! What changes its owner, or its schema, loses the permissions that were granted on it: they were the old owner's to give.
//!
//! Messages: 15151 (not there, or not for this one), 15110 (the new owner of a database is a user of it), 15346 (the owner is that of
//! another), 15347 (what belongs to its table is moved with it), 15530 (the name is taken where it goes).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{find_object, find_table, shown};
use crate::ddl::{catalog_error, change_catalog, lock_for_change};
use crate::messages::{message, unsupported_option};
use crate::security::logins::principal_named;
use crate::security::permissions::Kind;
use crate::security::rule::{Judge, Securable};
use crate::security::token::{FIRST_USER, SA};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{DatabaseCatalog, ObjectId, ObjectKind};
use thawdb_tsql::ast::{AlterAuthorization, AlterSchema, ObjectName};
use thawdb_types::SqlError;

fn missing(verb: &str, word: &str, name: &str) -> SqlError {
    message(15151, &[&verb, &word, &name])
}

/// Whether the one who acts may make somebody an owner: itself, a role it is in, or whom it may be.
pub(crate) fn may_give_to(judge: &Judge, catalog: &DatabaseCatalog, owner: i32) -> bool {
    let own = judge.user.as_ref().is_some_and(|(user, _)| user.principals.contains(&owner));
    let role = catalog.users.get(&owner).is_some_and(|user| user.kind == b'R');
    let securable = if role { Securable::Role(owner) } else { Securable::User(owner) };
    own || judge.is_unlimited(Kind::Database) || judge.allows(securable, if role { "ALTER" } else { "IMPERSONATE" })
}

/// ALTER AUTHORIZATION.
pub(crate) fn alter_authorization(interpreter: &mut Interpreter<'_, '_>, node: &AlterAuthorization) -> Result<(), Failure> {
    let name = &node.object.name.text;
    match node.class.as_deref() {
        Some("DATABASE") => database_owner(interpreter.session, node).map_err(Failure::run),
        None | Some("OBJECT" | "SCHEMA" | "TYPE" | "ROLE") => {
            interpreter.transactional(|this| owner_in_database(this.session, node).map_err(Failure::run))
        }
        Some("SERVER ROLE") => Err(unsupported_option("ALTER AUTHORIZATION ON SERVER ROLE").into()),
        Some(other) => Err(missing("find", &other.to_lowercase(), name).into()),
    }
}

fn owner_in_database(session: &mut SessionState, node: &AlterAuthorization) -> Result<(), SqlError> {
    let (open, name) = (session.database.clone(), &node.object.name.text);
    let judge = session.judge(open.id)?;
    let known = session.definitions(open.id).ok_or_else(|| message(911, &[&open.name()]))?;
    let owner = match &node.owner {
        None => None,
        Some(owner) => {
            let found = known.user(&owner.text).map(|user| user.id).filter(|id| may_give_to(&judge, &known, *id));
            Some(found.ok_or_else(|| missing("find", "principal", &owner.text))?)
        }
    };
    let securable = match node.class.as_deref() {
        Some("SCHEMA") => {
            let schema = known.schema(name).ok_or_else(|| missing("find", "schema", name))?;
            if schema.id.0 < FIRST_USER {
                return Err(message(15150, &[&"alter", &"schema", name]));
            }
            Securable::Schema(schema.id.0)
        }
        Some("ROLE") => {
            let role = known.user(name).filter(|role| role.kind == b'R' && !role.fixed);
            Securable::Role(role.ok_or_else(|| missing("find", "role", name))?.id)
        }
        Some("TYPE") => {
            let schema = node.object.schema.as_ref().map_or_else(|| session.users_schema().1.to_string(), |schema| schema.text.clone());
            Securable::Type(known.user_type(&schema, name).ok_or_else(|| missing("find", "type", name))?.id.0)
        }
        _ => Securable::Object(object_of(session, &known, &node.object).ok_or_else(|| missing("find", "object", &shown(&node.object)))?),
    };
    if !judge.allows(securable, "TAKE OWNERSHIP") {
        let word = if matches!(securable, Securable::Schema(_)) { "schema" } else { "object" };
        return Err(missing("find", word, name));
    }
    change_catalog(session, &open, |catalog, part| {
        match securable {
            Securable::Schema(id) => {
                let mut schema = catalog.schemas[&id].clone();
                schema.owner = owner.ok_or_else(|| message(102, &[&"SCHEMA OWNER"]))?;
                catalog.put_schema(&mut part.txn, schema).map_err(catalog_error(&open))?;
            }
            Securable::Role(id) => {
                let mut role = catalog.users[&id].clone();
                role.owner = owner.ok_or_else(|| message(102, &[&"SCHEMA OWNER"]))?;
                catalog.put_user(&mut part.txn, role).map_err(catalog_error(&open))?;
            }
            other => {
                let id = ObjectId(other.major());
                let kept = catalog.security.object(id.0);
                catalog.forget_securable(&mut part.txn, other.kind().class(), id.0).map_err(catalog_error(&open))?;
                let object = thawdb_catalog::ObjectSecurity { owner, ..kept };
                return catalog.put_object_security(&mut part.txn, id, object).map_err(catalog_error(&open));
            }
        }
        catalog.forget_securable(&mut part.txn, securable.kind().class(), securable.major()).map_err(catalog_error(&open))
    })
}

/// The number of a table, view, procedure, function or sequence; triggers belong to their tables.
fn object_of(session: &SessionState, catalog: &DatabaseCatalog, name: &ObjectName) -> Option<i32> {
    if let Ok(Some(table)) = find_table(session, name) {
        return Some(table.id.0).filter(|id| *id > 0);
    }
    find_object(session, catalog, name).filter(|object| object.kind != ObjectKind::Trigger).map(|object| object.id.0)
}

fn database_owner(session: &mut SessionState, node: &AlterAuthorization) -> Result<(), SqlError> {
    let name = &node.object.name.text;
    let open = session.engine.database_named(name).ok_or_else(|| missing("find", "database", name))?;
    let Some(owner) = &node.owner else { return Err(message(102, &[&"SCHEMA OWNER"])) };
    let login = principal_named(&session.engine.master.lock(), &owner.text).filter(|login| !login.is_role());
    let judge = session.server_judge();
    let allowed = session.judge(open.id).is_ok_and(|judge| judge.allows(Securable::Database, "TAKE OWNERSHIP"));
    let login = login
        .filter(|login| judge.server.sysadmin || login.id == judge.server.login || judge.allows(Securable::Login(login.id), "IMPERSONATE"));
    let login = login.ok_or_else(|| missing("find", "principal", &owner.text))?;
    if !allowed {
        return Err(missing("find", "database", name));
    }
    let mapped = open.catalog().users.values().any(|user| user.id >= FIRST_USER && user.sid.as_ref() == Some(&login.sid));
    if mapped && login.id != SA {
        return Err(message(15110, &[]));
    }
    session.engine.change_database(open.id, |record| record.owner_sid = login.sid)
}

/// ALTER SCHEMA ... TRANSFER.
pub(crate) fn alter_schema(interpreter: &mut Interpreter<'_, '_>, node: &AlterSchema) -> Result<(), Failure> {
    if let Some(class) = node.class.as_deref().filter(|class| *class != "OBJECT") {
        return Err(unsupported_option(format!("TRANSFER {class}")).into());
    }
    interpreter.transactional(|this| transfer(this.session, node).map_err(Failure::run))
}

fn transfer(session: &mut SessionState, node: &AlterSchema) -> Result<(), SqlError> {
    let open = session.database.clone();
    let judge = session.judge(open.id)?;
    let known = session.definitions(open.id).ok_or_else(|| message(911, &[&open.name()]))?;
    let unseen = || missing("find", "object", &shown(&node.object));
    let schema = known.schema(&node.name.text).filter(|schema| judge.allows(Securable::Schema(schema.id.0), "ALTER"));
    let schema = schema.cloned().ok_or_else(|| missing("alter", "schema", &node.name.text))?;
    let id = object_of(session, &known, &node.object).filter(|id| judge.allows(Securable::Object(*id), "CONTROL")).ok_or_else(unseen)?;
    lock_for_change(session, &open, ObjectId(id))?;
    change_catalog(session, &open, |catalog, part| {
        let name = crate::security::plan::names_of(catalog, id).1;
        let taken = catalog.tables.table(&schema.name, &name).is_some_and(|table| table.id.0 != id);
        if taken || catalog.object(&schema.name, &name).is_some_and(|object| object.id.0 != id) {
            return Err(message(15530, &[&"object", &name]));
        }
        catalog.forget_securable(&mut part.txn, 1, id).map_err(catalog_error(&open))?;
        if let Some(table) = catalog.tables.tables.get(&id) {
            let mut moved = (**table).clone();
            (moved.schema, moved.schema_name) = (schema.id, schema.name.clone());
            catalog.put_table(&mut part.txn, moved).map_err(catalog_error(&open))?;
        }
        let triggers = catalog.objects.values().filter(|object| object.parent == Some(ObjectId(id)) || object.id.0 == id);
        let moved: Vec<_> = triggers.cloned().collect();
        for object in moved {
            let mut object = Arc::unwrap_or_clone(object);
            (object.schema, object.schema_name, object.parsed) = (schema.id, schema.name.clone(), Arc::default());
            catalog.put_object(&mut part.txn, object).map_err(catalog_error(&open))?;
        }
        Ok(())
    })
}
