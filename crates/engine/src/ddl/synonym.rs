//! CREATE SYNONYM: another name for an object, looked up when it is used.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, schema_for_new};
use crate::ddl::table::check_free;
use crate::ddl::{catalog_error, change_catalog};
use crate::messages::message;
use std::sync::Arc;
use thawdb_catalog::{ModuleFlags, ObjectDef, ObjectKind};
use thawdb_tsql::ast::{CreateSynonym, ObjectName};

/// CREATE SYNONYM. What it stands for need not be there yet.
pub(crate) fn create_synonym(interpreter: &mut Interpreter<'_, '_>, node: &CreateSynonym) -> Result<(), Failure> {
    interpreter.transactional(|this| {
        let open = database_of(this.session, &node.name)?;
        let now = this.session.engine.now_datetime();
        let schema = schema_for_new(this.session, &node.name);
        change_catalog(this.session, &open, |catalog, part| {
            let schema = catalog.schema(&schema).ok_or_else(|| message(2760, &[&schema]))?.clone();
            check_free(catalog, &schema.name, &node.name.name.text, &node.name.name.text)?;
            let object = ObjectDef {
                id: catalog.take_object_id(),
                schema: schema.id,
                schema_name: schema.name,
                name: node.name.name.text.clone(),
                kind: ObjectKind::Synonym,
                parent: None,
                definition: quoted(&node.object),
                flags: ModuleFlags::default(),
                columns: Vec::new(),
                parameters: Vec::new(),
                trigger: None,
                sequence: None,
                created: now,
                modified: now,
                parsed: Arc::default(),
            };
            catalog.put_object(&mut part.txn, object).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

/// The name as sys.synonyms shows it: every part in brackets.
fn quoted(name: &ObjectName) -> String {
    let parts = [name.server.as_ref(), name.database.as_ref(), name.schema.as_ref()];
    let first = parts.iter().position(Option::is_some).unwrap_or(parts.len());
    let mut text = String::new();
    for part in &parts[first..] {
        if let Some(part) = part {
            text.push_str(&format!("[{}]", part.text.replace(']', "]]")));
        }
        text.push('.');
    }
    text + &format!("[{}]", name.name.text.replace(']', "]]"))
}
