//! Definitions: statements that make, change and remove objects, through the session's transaction.
//!
//! ```text
//! lock definitions of the database (to the end of the transaction) ─► private copy of its catalog
//!    ─► change copy and tree together ─► keep the copy with the transaction ─► commit publishes it
//! ```
//!
//! 1. One transaction at a time changes a database's definitions (`change_catalog`), so a private copy is always made
//!    from the newest published one.
//! 2. A table that is changed or dropped is locked Sch-M until the transaction ends: nobody runs a plan on it meanwhile.

pub(crate) mod alter_column;
pub(crate) mod alter_database;
pub(crate) mod alter_index;
pub(crate) mod alter_table;
pub(crate) mod binding;
pub(crate) mod bulk_insert;
pub(crate) mod columns;
pub(crate) mod compression;
pub(crate) mod computed;
pub(crate) mod constraints;
pub(crate) mod database;
pub(crate) mod disable;
pub(crate) mod drop;
pub(crate) mod filegroups;
pub(crate) mod files;
pub(crate) mod function;
pub(crate) mod index;
pub(crate) mod index_filter;
pub(crate) mod index_options;
pub(crate) mod key_constraint;
pub(crate) mod low_priority;
pub(crate) mod module;
pub(crate) mod names;
pub(crate) mod online;
pub(crate) mod procedure;
pub(crate) mod rebuild;
pub(crate) mod reorganize;
pub(crate) mod rewrite;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod scoped;
pub(crate) mod sequence;
pub(crate) mod statistics;
pub(crate) mod synonym;
pub(crate) mod table;
pub(crate) mod temporal;
pub(crate) mod temporary;
pub(crate) mod trigger;
pub(crate) mod truncate;
pub(crate) mod user_type;
pub(crate) mod view;

use crate::instance::database::OpenDatabase;
use crate::session::state::SessionState;
use crate::session::temporary::TempTable;
use crate::session::transaction::DatabaseTxn;
use crate::storage_error;
use std::sync::Arc;
use thawdb_catalog::{CatalogError, DatabaseCatalog, ObjectId, TableDef};
use thawdb_storage::locks::LockMode;
use thawdb_storage::{StorageError, TreeId};
use thawdb_types::SqlError;

/// Changes a database's catalog within the session's transaction.
pub(crate) fn change_catalog<R>(
    session: &mut SessionState,
    database: &Arc<OpenDatabase>,
    change: impl FnOnce(&mut DatabaseCatalog, &mut DatabaseTxn) -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    session.lock(database.definitions_resource(), LockMode::X, false)?;
    let published = session.definitions(database.id).expect("an open database has a catalog");
    let mut catalog = (*published).clone();
    let part = session.part(database.id)?;
    let result = change(&mut catalog, part)?;
    part.catalog = Some(Arc::new(catalog));
    Ok(result)
}

/// Replaces the definition of a table, in the catalog or, of a temporary table, in the session; `gone` are trees it has no
/// more.
pub(crate) fn put_table(
    session: &mut SessionState,
    database: &Arc<OpenDatabase>,
    table: TableDef,
    gone: &[TreeId],
) -> Result<(), SqlError> {
    let drop_trees = |part: &mut DatabaseTxn| gone.iter().try_for_each(|tree| part.txn.drop_tree(*tree)).map_err(plain_error(database));
    if let Some(level) = temporary::level_of(session, database, &table) {
        drop_trees(session.part(database.id)?)?;
        session.temp.put(TempTable { table: Arc::new(table), level });
        return Ok(());
    }
    change_catalog(session, database, |catalog, part| {
        drop_trees(part)?;
        catalog.put_table(&mut part.txn, table).map_err(catalog_error(database))
    })
}

/// Keeps everybody from a table until the transaction ends; 10637 while an index operation goes on there.
pub(crate) fn lock_for_change(session: &mut SessionState, database: &Arc<OpenDatabase>, table: ObjectId) -> Result<(), SqlError> {
    session.lock(database.object_resource(table), LockMode::SchM, false)?;
    online::refuse_beside_job(session, database, table)
}

/// The message for an error of a catalog.
pub(crate) fn catalog_error(database: &OpenDatabase) -> impl Fn(CatalogError) -> SqlError + '_ {
    move |error| storage_error::catalog(&database.name(), error)
}

/// The message for an error of storage that no table explains.
pub(crate) fn plain_error(database: &OpenDatabase) -> impl Fn(StorageError) -> SqlError + '_ {
    move |error| storage_error::plain(&database.name(), error)
}
