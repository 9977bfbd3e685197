//! CREATE, ALTER, ENABLE and DISABLE TRIGGER: AFTER triggers of tables.
//!
//! Messages: 8197 (no such table), 2110 (ALTER of a trigger of another table), 4929 (no such trigger to enable).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::module::statements_of;
use crate::batch::program::Program;
use crate::ddl::module::{NewModule, flags_of, keep_module};
use crate::ddl::names::{database_of, find_table, shown};
use crate::ddl::procedure::in_module;
use crate::ddl::{catalog_error, change_catalog, lock_for_change};
use crate::messages::{message, unsupported, unsupported_option};
use thawdb_catalog::{ObjectKind, TriggerDef};
use thawdb_tsql::ast::{CreateTrigger, EnableTrigger, Ident, ModuleBody, ObjectName, Stmt, TriggerTarget};

/// CREATE [OR ALTER] TRIGGER, ALTER TRIGGER.
pub(crate) fn create_trigger(interpreter: &mut Interpreter<'_, '_>, statement: &Stmt, node: &CreateTrigger) -> Result<(), Failure> {
    let name = &node.name.name.text;
    let TriggerTarget::Object(target) = &node.target else { return Err(unsupported("DDL and logon triggers").into()) };
    if node.instead_of {
        return Err(unsupported_option("INSTEAD OF").into());
    }
    if !matches!(node.body, ModuleBody::Statements(_)) {
        return Err(unsupported("CLR").into());
    }
    Program::new(statements_of(&node.body)).map_err(|error| in_module(error, name))?;
    let missing = || in_module(message(8197, &[&shown(target)]), name);
    let table = find_table(interpreter.session, target)?.filter(|table| table.id.0 > 0).ok_or_else(missing)?;
    if table.database != interpreter.session.database.id {
        return Err(in_module(message(2108, &[&"create", &name]), name));
    }
    let fires = |event: &str| node.events.iter().any(|known| known == event);
    let trigger =
        TriggerDef { instead_of: false, insert: fires("INSERT"), update: fires("UPDATE"), delete: fires("DELETE"), disabled: false };
    if !(trigger.insert || trigger.update || trigger.delete) {
        return Err(unsupported("DDL triggers").into());
    }
    // A trigger lives in its table's schema whatever its name says; another schema is 2103.
    let mut place = node.name.clone();
    place.schema = Some(Ident::new(table.schema_name.clone()));
    let mut new = NewModule::new(node.mode, &place, ObjectKind::Trigger, flags_of(interpreter.session, &node.options)?);
    new.parent = Some(table.id);
    new.trigger = Some(trigger);
    keep_module(interpreter, statement, new)
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
    let table = find_table(session, target)?.ok_or_else(|| message(4902, &[&shown(target)]))?;
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
