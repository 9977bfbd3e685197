//! ALTER INDEX REORGANIZE: leaves put together in place, beside the table's use.
//!
//! Storage goes through the tree from its end and moves rows of neighbouring leaves together, two leaves a step, each step
//! whole by itself ([`thawdb_storage::Database::compact_leaves`]). No row is locked and no lock of the table is kept but
//! Sch-S, so that its definition stays; what is done when the statement ends early stays done.
//!
//! LOB_COMPACTION: large values lie packed in pages of their own and leave no holes that could be closed, so ON and OFF
//! are one.
//!
//! Failure: 1973 for a disabled index, 2552 where page locks are off, 7735 for a partition, 155 for another option,
//! 10637 while an operation goes on; storage's.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::{disable, online};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use std::sync::Arc;
use thawdb_catalog::{IndexDef, TableDef};
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::{Ident, IndexOption, IndexOptionKind};
use thawdb_types::SqlError;

/// ALTER INDEX REORGANIZE; no name is ALL.
pub(crate) fn reorganize(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    name: Option<&Ident>,
    of_partition: bool,
    options: &[IndexOption],
) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    if session.transactions.count > 0 {
        return Err(message(574, &[&"ALTER INDEX REORGANIZE"]).into());
    }
    if of_partition {
        let (kind, shown) = name.map_or(("table", &table.name), |name| ("index", &name.text));
        return Err(message(7735, &[&"index", &kind, shown, &kind]).into());
    }
    for option in options {
        if !matches!(option.kind, IndexOptionKind::LobCompaction(_) | IndexOptionKind::CompressAllRowGroups(_)) {
            return Err(message(155, &[&"option", &"ALTER INDEX REORGANIZE"]).at_line(option.span.line).into());
        }
    }
    session.lock(open.object_resource(table.id), LockMode::SchS, true)?;
    online::refuse_beside_job(session, open, table.id)?;
    let table = session.table(open.id, table.id).ok_or_else(|| message(1088, &[&table.name]))?;
    let chosen: Vec<IndexDef> = match name {
        None if table.rows_disabled => Vec::new(),
        None => table.indexes.clone(),
        Some(name) => {
            let index = disable::find(&table, name)?;
            if table.is_disabled(index.id) {
                return Err(message(1973, &[&name.text, &"table", &table.name]).into());
            }
            vec![index.clone()]
        }
    };
    if let Some(index) = chosen.iter().find(|index| !index.options.allow_page_locks) {
        return Err(message(2552, &[&index.name.clone().unwrap_or_default(), &index.tree.0, &table.name]).into());
    }
    for index in &chosen {
        compact(interpreter, open, index)?;
    }
    Ok(())
}

fn compact(interpreter: &mut Interpreter<'_, '_>, open: &OpenDatabase, index: &IndexDef) -> Result<(), SqlError> {
    let fill_percent = match index.options.fill_factor {
        0 => 100,
        given => given,
    };
    let mut before = None;
    loop {
        interpreter.session.check()?;
        let turned = open.storage.compact_leaves(index.tree, before.as_deref(), fill_percent);
        match turned.map_err(|error| interpreter.session.storage_failure(open.id, error))? {
            Some(key) => before = Some(key),
            None => return Ok(()),
        }
    }
}
