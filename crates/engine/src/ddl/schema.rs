//! CREATE SCHEMA and DROP SCHEMA.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::{catalog_error, change_catalog};
use crate::messages::{message, unsupported_option};
use crate::security::ownership::may_give_to;
use crate::security::token::DBO;
use thawdb_catalog::{SchemaDef, SchemaId};
use thawdb_tsql::ast::{CreateSchema, ObjectName};

/// First number of a user's schema.
const FIRST_SCHEMA: i32 = 5;

/// CREATE SCHEMA: 2714 if there is one of the name.
pub(crate) fn create_schema(interpreter: &mut Interpreter<'_, '_>, node: &CreateSchema) -> Result<(), Failure> {
    if !node.elements.is_empty() {
        return Err(unsupported_option("CREATE SCHEMA with elements").into());
    }
    let name = node.name.as_ref().or(node.authorization.as_ref()).map(|name| name.text.clone()).unwrap_or_default();
    interpreter.transactional(|this| {
        let open = this.session.database.clone();
        let judge = this.session.judge(open.id)?;
        let me = judge.user.as_ref().map_or(DBO, |(user, _)| user.user);
        change_catalog(this.session, &open, |catalog, part| {
            if catalog.schema(&name).is_some() {
                return Err(message(2714, &[&name]).with_state(6));
            }
            let owner = match &node.authorization {
                None => me,
                Some(owner) => {
                    let found = catalog.user(&owner.text).map(|user| user.id).filter(|id| may_give_to(&judge, catalog, *id));
                    found.ok_or_else(|| message(15151, &[&"find", &"user", &owner.text]))?
                }
            };
            let last = catalog.schemas.keys().filter(|id| **id < 16384).max().copied().unwrap_or(0);
            let schema = SchemaDef { id: SchemaId((last + 1).max(FIRST_SCHEMA)), name: name.clone(), owner };
            catalog.put_schema(&mut part.txn, schema).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

/// DROP SCHEMA: 15151 if there is none, 3729 if it is not empty, 15150 for one of the system's.
pub(crate) fn drop_schema(interpreter: &mut Interpreter<'_, '_>, name: &ObjectName, if_exists: bool) -> Result<(), Failure> {
    let (open, name) = (interpreter.session.database.clone(), &name.name.text);
    change_catalog(interpreter.session, &open, |catalog, part| {
        let Some(schema) = catalog.schema(name).cloned() else {
            return if if_exists { Ok(()) } else { Err(message(15151, &[&"drop", &"schema", name])) };
        };
        if schema.id.0 < FIRST_SCHEMA {
            return Err(message(15150, &[&"drop", &"schema", name]));
        }
        if let Some(table) = catalog.tables.tables.values().find(|table| table.schema == schema.id) {
            return Err(message(3729, &[&"drop schema", name, &table.name]));
        }
        if let Some(object) = catalog.objects.values().find(|object| object.schema == schema.id) {
            return Err(message(3729, &[&"drop schema", name, &object.name]));
        }
        catalog.remove_schema(&mut part.txn, schema.id).map_err(catalog_error(&open))
    })
    .map_err(Failure::run)
}
