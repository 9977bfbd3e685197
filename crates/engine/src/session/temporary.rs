//! A session's temporary tables and table variables: definitions that live in the session, rows that live in tempdb.
//!
//! ```text
//! #t   TempTables (shared copy on write)   database 2: rows change with the session's transaction
//! @t   Frame::table_variables              database VARIABLES: rows change with the statement only, ROLLBACK keeps them
//! ```
//!
//! Nothing of them reaches a catalog on disk: tempdb is made anew at every start.

use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_catalog::{Catalog, DatabaseId, TableDef};

/// The database that table variables say they are in: tempdb's storage under a transaction of their own.
pub(crate) const VARIABLES_ID: DatabaseId = DatabaseId(-2);

/// A local temporary table.
#[derive(Debug, Clone)]
pub(crate) struct TempTable {
    pub(crate) table: Arc<TableDef>,
    /// Level of the scope that made it and with whose end it goes.
    pub(crate) level: usize,
}

/// The local temporary tables of a session, by lower-case name with the `#`. A clone is a snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct TempTables {
    tables: Arc<BTreeMap<String, TempTable>>,
}

impl TempTables {
    pub(crate) fn get(&self, name: &str) -> Option<&TempTable> {
        self.tables.get(&name.to_lowercase())
    }

    pub(crate) fn put(&mut self, table: TempTable) {
        Arc::make_mut(&mut self.tables).insert(table.table.name.to_lowercase(), table);
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<TempTable> {
        Arc::make_mut(&mut self.tables).remove(&name.to_lowercase())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Tables made at `level` or deeper, by name.
    pub(crate) fn from_level(&self, level: usize) -> Vec<TempTable> {
        self.tables.values().filter(|t| t.level >= level).cloned().collect()
    }

    /// By object number.
    pub(crate) fn by_id(&self, id: thawdb_catalog::ObjectId) -> Option<&TempTable> {
        self.tables.values().find(|t| t.table.id == id)
    }

    /// tempdb's catalog with these tables in it, as the session sees it.
    pub(crate) fn merged_into(&self, tempdb: &Arc<Catalog>) -> Arc<Catalog> {
        if self.is_empty() {
            return tempdb.clone();
        }
        let mut merged = (**tempdb).clone();
        for temp in self.tables.values() {
            merged.tables.insert(temp.table.id.0, temp.table.clone());
        }
        Arc::new(merged)
    }
}
