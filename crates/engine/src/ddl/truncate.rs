//! TRUNCATE TABLE: new empty trees take the place of the old ones, whatever the number of rows (law L7).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, find_table, is_local_temporary, shown};
use crate::ddl::{catalog_error, change_catalog, lock_for_change, plain_error};
use crate::instance::database::OpenDatabase;
use crate::instance::statistics::Changed;
use crate::messages::{message, unsupported_option};
use crate::session::temporary::TempTable;
use crate::session::transaction::{DatabaseTxn, OnCommit};
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_storage::TreeSpec;
use thawdb_tsql::ast::TruncateTable;
use thawdb_types::SqlError;

/// TRUNCATE TABLE.
pub(crate) fn truncate_table(interpreter: &mut Interpreter<'_, '_>, node: &TruncateTable) -> Result<(), Failure> {
    if !node.partitions.is_empty() {
        return Err(unsupported_option("PARTITIONS").into());
    }
    interpreter.transactional(|this| {
        let session = &mut *this.session;
        let missing = || message(4701, &[&shown(&node.table)]);
        let open = database_of(session, &node.table)?;
        let table = find_table(session, &node.table)?.ok_or_else(missing)?;
        if is_local_temporary(&node.table) {
            let level = session.temp.get(&table.name).map_or(1, |temp| temp.level);
            let emptied = emptied(&open, session.part(open.id)?, &table)?;
            session.temp.put(TempTable { table: Arc::new(emptied), level });
            return Ok(());
        }
        lock_for_change(session, &open, table.id)?;
        let id = table.id;
        change_catalog(session, &open, |catalog, part| {
            let table = catalog.tables.tables.get(&id.0).cloned().ok_or_else(missing)?;
            if catalog.related(id).is_some_and(|related| related.referenced_by.iter().any(|c| c.table != id)) {
                return Err(message(4712, &[&shown(&node.table)]));
            }
            if crate::ddl::temporal::is_bound(&table) {
                return Err(message(13_545, &[&format!("{}.{}.{}", open.name(), table.schema_name, table.name)]));
            }
            let emptied = emptied(&open, part, &table)?;
            catalog.put_table(&mut part.txn, emptied).map_err(catalog_error(&open))
        })?;
        if let Some(rows) = open.statistics.rows(&table) {
            open.statistics.note(id, Changed::Rows(-i64::try_from(rows).unwrap_or(i64::MAX)));
        }
        Ok(())
    })
}

fn emptied(open: &OpenDatabase, part: &mut DatabaseTxn, table: &TableDef) -> Result<TableDef, SqlError> {
    let mut emptied = table.clone();
    for index in &mut emptied.indexes {
        let filegroup = open.storage.filegroup_of(index.tree).map_err(plain_error(open))?;
        let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: index.id.0.cast_unsigned(), filegroup };
        let tree = part.txn.create_tree_of(spec, index.options.compression.packs_leaves()).map_err(plain_error(open))?;
        part.txn.drop_tree(index.tree).map_err(plain_error(open))?;
        index.tree = tree;
    }
    if table.columns.iter().any(|column| column.identity.is_some()) {
        part.on_commit.push(OnCommit::ResetIdentity(table.id));
    }
    Ok(emptied)
}
