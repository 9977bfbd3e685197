//! CREATE, ALTER, ENABLE and DISABLE TRIGGER: AFTER triggers of tables, INSTEAD OF triggers of tables
//! and views.
//!
//! Messages: 8197 (no such table, or AFTER on a view), 2110 (ALTER of a trigger of another table), 2111 (a second INSTEAD OF
//! trigger of a statement), 2113 (INSTEAD OF beside a cascade), 4929 (no such trigger to enable).

use crate::batch::compile_cx::fires_on;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::module::find_object;
use crate::batch::module::statements_of;
use crate::batch::program::Program;
use crate::ddl::module::{NewModule, execute_as_of, flags_of, keep_module};
use crate::ddl::names::{database_of, find_table, shown};
use crate::ddl::procedure::in_module;
use crate::ddl::{catalog_error, change_catalog, lock_for_change};
use crate::messages::{message, unsupported};
use crate::session::state::SessionState;
use thawdb_catalog::{DatabaseId, ObjectId, ObjectKind, ReferentialAction, TriggerDef};
use thawdb_query::compile::ChangeAction;
use thawdb_tsql::ast::{CreateTrigger, EnableTrigger, Ident, ModuleBody, ObjectName, Stmt, TriggerTarget};
use thawdb_types::SqlError;

/// CREATE [OR ALTER] TRIGGER, ALTER TRIGGER.
pub(crate) fn create_trigger(interpreter: &mut Interpreter<'_, '_>, statement: &Stmt, node: &CreateTrigger) -> Result<(), Failure> {
    let name = &node.name.name.text;
    let TriggerTarget::Object(target) = &node.target else { return Err(unsupported("DDL and logon triggers").into()) };
    if !matches!(node.body, ModuleBody::Statements(_)) {
        return Err(unsupported("CLR").into());
    }
    Program::new(statements_of(&node.body)).map_err(|error| in_module(error, name))?;
    let missing = || in_module(message(8197, &[&shown(target)]), name);
    let parent = Parent::find(interpreter.session, target)?.ok_or_else(missing)?;
    if parent.database != interpreter.session.database.id {
        return Err(in_module(message(2108, &[&"create", &name]), name));
    }
    if parent.is_view && !node.instead_of {
        return Err(missing());
    }
    let fires = |event: &str| node.events.iter().any(|known| known == event);
    let trigger = TriggerDef {
        instead_of: node.instead_of,
        insert: fires("INSERT"),
        update: fires("UPDATE"),
        delete: fires("DELETE"),
        disabled: false,
        order: 0,
    };
    if !(trigger.insert || trigger.update || trigger.delete) {
        return Err(unsupported("DDL triggers").into());
    }
    if let Some(table) = interpreter.session.table(parent.database, parent.id) {
        let state = match (table.temporal.history_of, table.temporal.versioning) {
            (Some(_), _) => Some(1),
            (None, Some(_)) if trigger.instead_of => Some(2),
            _ => None,
        };
        if let Some(state) = state {
            let error = message(13_569, &[&interpreter.session.full_name(&table)]).with_state(state);
            return Err(in_module(error, name).into());
        }
    }
    check_instead(interpreter.session, &parent, name, &trigger).map_err(|error| in_module(error, name))?;
    // A trigger lives in its table's schema whatever its name says; another schema is 2103.
    let mut place = node.name.clone();
    place.schema = Some(Ident::new(parent.schema.clone()));
    let mut new = NewModule::new(node.mode, &place, ObjectKind::Trigger, flags_of(interpreter.session, &node.options)?);
    new.execute_as = execute_as_of(interpreter.session, &node.options)?;
    new.parent = Some(parent.id);
    new.trigger = Some(trigger);
    keep_module(interpreter, statement, new)
}

/// What a trigger is on.
struct Parent {
    database: DatabaseId,
    id: ObjectId,
    schema: String,
    name: String,
    is_view: bool,
}

impl Parent {
    fn find(session: &SessionState, name: &ObjectName) -> Result<Option<Self>, SqlError> {
        if let Some(table) = find_table(session, name)?.filter(|table| table.id.0 > 0) {
            let (schema, name) = (table.schema_name.clone(), table.name.clone());
            return Ok(Some(Self { database: table.database, id: table.id, schema, name, is_view: false }));
        }
        let Some(found) = find_object(session, name)?.filter(|found| found.object.kind == ObjectKind::View) else { return Ok(None) };
        let (schema, name) = (found.object.schema_name.clone(), found.object.name.clone());
        Ok(Some(Self { database: found.database.id, id: found.object.id, schema, name, is_view: true }))
    }
}

/// 2111: one INSTEAD OF trigger a statement; 2113: none beside a cascade.
fn check_instead(session: &SessionState, parent: &Parent, name: &str, trigger: &TriggerDef) -> Result<(), SqlError> {
    let Some(catalog) = session.definitions(parent.database).filter(|_| trigger.instead_of) else { return Ok(()) };
    let words = [(ChangeAction::Insert, "INSERT"), (ChangeAction::Update, "UPDATE"), (ChangeAction::Delete, "DELETE")];
    for known in catalog.triggers_of(parent.id).filter(|known| !known.name.eq_ignore_ascii_case(name)) {
        let Some(other) = known.trigger.filter(|other| other.instead_of) else { continue };
        if let Some((_, word)) = words.iter().find(|(action, _)| fires_on(trigger, *action) && fires_on(&other, *action)) {
            let kind = if parent.is_view { "view" } else { "table" };
            return Err(message(2111, &[&"create", &name, &kind, &parent.name, word]));
        }
    }
    let cascades = catalog.constraints_of(parent.id).any(|constraint| {
        let of = |key: &thawdb_catalog::ForeignKeyDef| {
            let acts = |action: ReferentialAction| action != ReferentialAction::NoAction;
            (trigger.delete && acts(key.on_delete)) || (trigger.update && acts(key.on_update))
        };
        constraint.foreign_key.as_ref().is_some_and(of)
    });
    if cascades { Err(message(2113, &[&"create", &name, &parent.name])) } else { Ok(()) }
}

/// ENABLE TRIGGER, DISABLE TRIGGER.
pub(crate) fn enable_trigger(interpreter: &mut Interpreter<'_, '_>, node: &EnableTrigger) -> Result<(), Failure> {
    let TriggerTarget::Object(target) = &node.target else { return Err(unsupported("DDL and logon triggers").into()) };
    let names: Vec<&str> = node.names.iter().map(|name| name.name.text.as_str()).collect();
    interpreter.transactional(|this| set_enabled(this, target, &names, node.enable))
}

/// Enables or disables triggers of a table; no names are all.
pub(crate) fn set_enabled(interpreter: &mut Interpreter<'_, '_>, target: &ObjectName, names: &[&str], enable: bool) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    let open = database_of(session, target)?;
    let table = Parent::find(session, target)?.ok_or_else(|| message(4902, &[&shown(target)]))?;
    lock_for_change(session, &open, table.id)?;
    let now = session.engine.now_datetime();
    change_catalog(session, &open, |catalog, part| {
        let all: Vec<_> = catalog.triggers_of(table.id).cloned().collect();
        for name in names {
            if !all.iter().any(|trigger| trigger.name.eq_ignore_ascii_case(name)) {
                return Err(message(4929, &[&"alter", name]));
            }
        }
        for object in all.iter().filter(|o| names.is_empty() || names.iter().any(|name| o.name.eq_ignore_ascii_case(name))) {
            let mut changed = (**object).clone();
            if let Some(trigger) = &mut changed.trigger {
                trigger.disabled = !enable;
            }
            changed.modified = now;
            catalog.put_object(&mut part.txn, changed).map_err(catalog_error(&open))?;
        }
        Ok(())
    })
    .map_err(Failure::run)
}
