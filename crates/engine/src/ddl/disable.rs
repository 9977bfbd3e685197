//! ALTER INDEX DISABLE: definitions stay, use ends until a rebuild.
//!
//! | index | what becomes of it | of others |
//! |---|---|---|
//! | nonclustered | its tree goes, its definition waits in [`TableDef::disabled`] | foreign keys that refer to it are disabled (1992) |
//! | clustered | rows stay, nobody reads or writes them (8655) | the table's nonclustered indexes (3750) and all its foreign keys too |
//!
//! A disabled index is enabled by REBUILD or DROP_EXISTING, or dropped. Foreign keys stay disabled until somebody
//! enables them, which 1989 refuses before their index is.
//!
//! Locks: the table's Sch-M to the end of the transaction. Failure: 2727, 10637.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::{catalog_error, change_catalog, lock_for_change, put_table};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use std::sync::Arc;
use thawdb_catalog::{ConstraintDef, IndexDef, IndexId, TableDef};
use thawdb_storage::TreeId;
use thawdb_tsql::ast::Ident;
use thawdb_types::SqlError;

/// ALTER INDEX DISABLE; no name is ALL.
pub(crate) fn disable(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    name: Option<&Ident>,
) -> Result<(), Failure> {
    interpreter.transactional(|this| {
        lock_for_change(this.session, open, table.id)?;
        let table = this.session.table(open.id, table.id).ok_or_else(|| message(1088, &[&table.name]))?;
        let chosen: Vec<IndexId> = match name {
            Some(name) => vec![find(&table, name)?.id],
            None => table.every_index().map(|index| index.id).collect(),
        };
        let takes_rows = chosen.contains(&IndexId(1));
        let mut altered = (*table).clone();
        altered.rows_disabled |= takes_rows;
        let is_out = |index: &IndexDef| index.id.0 > 1 && (takes_rows || chosen.contains(&index.id));
        let (out, stay) = std::mem::take(&mut altered.indexes).into_iter().partition::<Vec<_>, _>(is_out);
        altered.indexes = stay;
        let gone: Vec<TreeId> = out.iter().map(|index| index.tree).collect();
        let names: Vec<String> =
            out.iter().filter(|index| !chosen.contains(&index.id) || name.is_none()).filter_map(|i| i.name.clone()).collect();
        altered.disabled.extend(out.into_iter().map(|index| IndexDef { tree: IndexDef::NO_TREE, ..index }));
        altered.modified = this.session.engine.now_datetime();
        put_table(this.session, open, altered, &gone)?;
        if takes_rows {
            for index in names {
                this.out.message(&message(3750, &[&index, &"table", &table.name, &"table"]));
            }
        }
        disable_keys(this, open, &table, &chosen).map_err(Failure::run)
    })
}

/// The index of this name, in use or disabled: 2727 if there is none.
pub(crate) fn find<'t>(table: &'t TableDef, name: &Ident) -> Result<&'t IndexDef, SqlError> {
    let is_named = |index: &&IndexDef| index.name.as_deref().is_some_and(|known| name.is(known));
    table.every_index().find(is_named).ok_or_else(|| message(2727, &[&name.text]))
}

/// Disables the foreign keys that refer to these indexes, and of a table whose rows are disabled its own.
fn disable_keys(this: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, table: &TableDef, disabled: &[IndexId]) -> Result<(), SqlError> {
    let Some(catalog) = this.session.definitions(open.id) else { return Ok(()) };
    let with_rows = disabled.contains(&IndexId(1));
    let is_hit = |constraint: &&Arc<ConstraintDef>| {
        constraint.foreign_key.as_ref().is_some_and(|key| {
            let refers = key.referenced == table.id && (with_rows || disabled.contains(&key.index));
            !key.disabled && (refers || with_rows && constraint.table == table.id)
        })
    };
    for constraint in catalog.constraints.values().filter(is_hit) {
        let mut changed = (**constraint).clone();
        let Some(key) = &mut changed.foreign_key else { continue };
        (key.disabled, key.not_trusted) = (true, true);
        let (referenced, index) = (key.referenced, key.index);
        change_catalog(this.session, open, |catalog, part| catalog.put_constraint(&mut part.txn, changed).map_err(catalog_error(open)))?;
        let name_of = |id: thawdb_catalog::ObjectId| catalog.tables.tables.get(&id.0).map_or_else(String::new, |table| table.name.clone());
        let by = if referenced == table.id { index } else { IndexId(1) };
        let index = table.every_index().find(|known| known.id == by).and_then(|known| known.name.clone()).unwrap_or_default();
        this.out.message(&message(1992, &[&constraint.name, &name_of(constraint.table), &name_of(referenced), &index]));
    }
    Ok(())
}
