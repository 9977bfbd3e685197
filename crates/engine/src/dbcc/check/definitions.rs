//! CHECKCATALOG: whether what definitions name is there (8992, with the message 3853 of the catalog in it).
//!
//! Each table's schema, each index's key columns and each index's tree; of a constraint the table that it is of.

use super::report::{Place, Report};
use crate::batch::interpreter::Interpreter;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use thawdb_storage::StorageError;

pub(super) fn check(interpreter: &mut Interpreter<'_, '_>, open: &OpenDatabase, report: &mut Report) {
    let Some(catalog) = crate::views::objects::catalog(interpreter.session, open.id) else { return };
    let mut missing = Vec::new();
    for table in catalog.tables.tables.values().filter(|table| table.id.0 > 0) {
        let (object, schema) = (table.id.0, table.schema.0);
        if !catalog.schemas.contains_key(&schema) {
            let row = format!("object_id={object}");
            missing.push((object, attribute(&format!("schema_id={schema}"), &row, "sys.objects", "sys.schemas")));
        }
        for index in &table.indexes {
            let row = format!("object_id={object},index_id={}", index.id.0);
            for at in index.keys.iter().map(|key| key.column_index).chain(index.included.iter().copied()) {
                if at >= table.columns.len() {
                    missing.push((object, attribute(&format!("column_id={}", at + 1), &row, "sys.index_columns", "sys.columns")));
                }
            }
            if matches!(open.storage.filegroup_of(index.tree), Err(StorageError::NoTree(_))) {
                missing.push((object, attribute(&format!("partition_id={}", index.tree.0), &row, "sys.indexes", "sys.partitions")));
            }
        }
    }
    for constraint in catalog.constraints.values().filter(|constraint| !catalog.tables.tables.contains_key(&constraint.table.0)) {
        let (object, parent) = (constraint.id.0, constraint.table.0);
        let row = format!("object_id={object}");
        missing.push((object, attribute(&format!("parent_object_id={parent}"), &row, "sys.objects", "sys.objects")));
    }
    for (object, text) in missing {
        report.error(interpreter, message(8992, &[&3853, &1, &text]), Place { object, ..Place::default() });
    }
}

fn attribute(value: &str, row: &str, of: &str, named: &str) -> String {
    format!("Attribute ({value}) of row ({row}) in {of} does not have a matching row ({value}) in {named}.")
}
