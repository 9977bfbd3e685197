//! From what storage says to what a client is told: total over `StorageError`, by kind, never by text.

use crate::ddl::filegroups::name_of;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use thawdb_catalog::{CatalogError, IndexDef, TableDef};
use thawdb_device::{DeviceError, DeviceErrorKind};
use thawdb_storage::{StorageError, TreeId};
use thawdb_types::{Scalar, SqlError};

/// `5(Access is denied.)` as SQL Server writes an operating system's error.
pub(crate) fn operating_system_error(number: i32) -> String {
    let text = std::io::Error::from_raw_os_error(number).to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    format!("{number}({text}.)")
}

fn device(error: &DeviceError, database: &str) -> SqlError {
    let offset = error.offset.unwrap_or(0);
    match error.kind {
        DeviceErrorKind::Full => message(1101, &[&database, &"PRIMARY"]),
        DeviceErrorKind::NotFound | DeviceErrorKind::Denied | DeviceErrorKind::Busy | DeviceErrorKind::AlreadyExists => {
            let text = std::io::Error::from_raw_os_error(error.os_error).to_string();
            message(5120, &[&error.path.display(), &error.os_error, &text])
        }
        DeviceErrorKind::EndOfFile | DeviceErrorKind::Io => {
            let what = if error.operation == "read" { "read" } else { "write" };
            message(823, &[&operating_system_error(error.os_error), &what, &offset, &error.path.display()])
        }
    }
}

/// The message for an error that names no table.
pub(crate) fn plain(database: &str, error: StorageError) -> SqlError {
    match error {
        StorageError::Duplicate { tree, .. } => {
            internal(format!("duplicate key in tree {} of database {database}, which no table explains", tree.0))
        }
        StorageError::SnapshotConflict { .. } => message(3960, &[&"", &database]),
        StorageError::Deadlock => message(1205, &[&0, &"lock"]),
        StorageError::LockTimeout => message(1222, &[]),
        StorageError::Cancelled => cancelled(),
        StorageError::LogFull { reuse_wait, holdup } => message(9002, &[&database, &reuse_wait, &holdup]),
        StorageError::FileFull { .. } => message(1105, &[&"dbo.SYSTEM OBJECT", &"", &database, &"PRIMARY"]),
        StorageError::ReadOnly { filegroup, tree } => message(652, &[&"", &"", &tree.0, &filegroup]),
        StorageError::PoolExhausted => message(802, &[]),
        StorageError::TooLong { bytes, bytes_max } => crate::messages::too_long(bytes, bytes_max),
        StorageError::Damage { page, offset, detail } => {
            message(824, &[&detail, &"read", &format!("({}:{})", page.file, page.page), &0, &offset, &database])
        }
        StorageError::Io(error) => device(&error, database),
        StorageError::Poisoned => message(9001, &[&database]),
        StorageError::NoTree(tree) => message(608, &[&tree.0, &0]),
        StorageError::NoEntry(_) => message(8646, &[&0, &0, &database]),
        StorageError::NotFound(what) => internal(format!("{what} not found in database {database}")),
        StorageError::Bug(what) => internal(what),
    }
}

/// A mistake of ours: 3624 of severity 20, so that the connection ends and nothing goes on from a state nobody knows.
pub(crate) fn internal(what: String) -> SqlError {
    message(3624, &[&what])
}

/// How a cancelled statement ends inside the engine; never sent to a client.
pub(crate) const CANCELLED: i32 = 3617;

/// The internal error of a cancelled statement.
pub(crate) fn cancelled() -> SqlError {
    message(CANCELLED, &[])
}

/// The message for an error of a catalog.
pub(crate) fn catalog(database: &str, error: CatalogError) -> SqlError {
    match error {
        CatalogError::Storage(error) => plain(database, error),
        CatalogError::Damage(what) => internal(format!("catalog of database {database} damaged: {what}")),
    }
}

/// The message for an error met while working on `database`, with the names of the objects concerned.
pub(crate) fn named(database: &OpenDatabase, tables: &thawdb_catalog::Catalog, session_id: i16, error: StorageError) -> SqlError {
    match error {
        StorageError::Duplicate { tree, ref key } => match find_tree(tables, tree) {
            Some((table, index)) => duplicate(table, index, key),
            None => plain(&database.name(), error),
        },
        StorageError::Deadlock => message(1205, &[&session_id, &"lock"]),
        StorageError::FileFull { filegroup, tree } => {
            let (object, index) = match (find_tree(tables, tree), find_job(database, tables, tree)) {
                (Some((table, index)), _) => (format!("{}.{}", table.schema_name, table.name), index.name.clone()),
                (None, Some(found)) => found,
                (None, None) => ("dbo.SYSTEM OBJECT".to_owned(), None),
            };
            let index = index.map_or_else(String::new, |name| format!(".'{name}'"));
            message(1105, &[&object, &index, &database.name(), &name_of(&database.record(), filegroup)])
        }
        StorageError::ReadOnly { filegroup, tree } => {
            let (table, index) =
                find_tree(tables, tree).map_or(("", ""), |(table, index)| (&table.name, index.name.as_deref().unwrap_or("")));
            message(652, &[&index, &table, &tree.0, &name_of(&database.record(), filegroup)])
        }
        StorageError::SnapshotConflict { tree } => {
            let table = find_tree(tables, tree).map(|(table, _)| format!("{}.{}", table.schema_name, table.name));
            message(3960, &[&table.unwrap_or_default(), &database.name()])
        }
        StorageError::Damage { page, offset, ref detail } => {
            let file = database.storage.store().file(page.file).map(|file| file.spec().path.clone()).ok();
            let page = format!("({}:{})", page.file, page.page);
            message(824, &[detail, &"read", &page, &database.id.0, &offset, &file.unwrap_or_default().display()])
        }
        StorageError::NoTree(tree) => message(608, &[&tree.0, &database.id.0]),
        StorageError::NoEntry(tree) => {
            let (index, table) = find_tree(tables, tree).map_or((0, 0), |(table, index)| (index.id.0, table.id.0));
            message(8646, &[&index, &table, &database.name()])
        }
        other => plain(&database.name(), other),
    }
}

fn find_tree(tables: &thawdb_catalog::Catalog, tree: TreeId) -> Option<(&TableDef, &IndexDef)> {
    tables.tables.values().find_map(|t| t.indexes.iter().find(|i| i.tree == tree).map(|i| (t.as_ref(), i)))
}

/// Names of the table and the index of the operation beside its use whose tree it is.
fn find_job(database: &OpenDatabase, tables: &thawdb_catalog::Catalog, tree: TreeId) -> Option<(String, Option<String>)> {
    let catalog = database.catalog();
    let job = catalog.jobs.values().find(|job| [job.index.tree, job.side, job.runs].contains(&tree))?;
    let table = tables.tables.get(&job.table.0)?;
    Some((format!("{}.{}", table.schema_name, table.name), job.index.name.clone()))
}

/// 2627 for a constraint, 2601 for an index, with the key's values.
pub(crate) fn duplicate(table: &TableDef, index: &IndexDef, key: &[u8]) -> SqlError {
    let object = format!("{}.{}", table.schema_name, table.name);
    let name = index.name.as_deref().unwrap_or("");
    let values = key_text(table, index, key);
    if index.primary_key || index.unique_constraint {
        let kind = if index.primary_key { "PRIMARY KEY" } else { "UNIQUE KEY" };
        message(2627, &[&kind, &name, &object, &values])
    } else {
        message(2601, &[&object, &name, &values])
    }
}

/// `(1, abc)`: the key columns' values as the messages show them.
pub(crate) fn key_text(table: &TableDef, index: &IndexDef, key: &[u8]) -> String {
    let values = decode_index_key(table, index, key);
    let shown: Vec<String> = values.iter().map(|(value, sql_type)| shown(value, sql_type)).collect();
    format!("({})", shown.join(", "))
}

/// The values of an index's own key columns at the start of `key`, as far as they can be read, each with its type.
pub(crate) fn decode_index_key(table: &TableDef, index: &IndexDef, key: &[u8]) -> Vec<(Scalar, thawdb_types::SqlType)> {
    let columns = index.keys.iter().map(|k| thawdb_types::key::KeyColumn {
        sql_type: table.columns[k.column_index].sql_type,
        nullable: table.columns[k.column_index].nullable,
        descending: k.descending,
    });
    crate::rows::decode_key(columns, key)
}

fn shown(value: &Scalar, sql_type: &thawdb_types::SqlType) -> String {
    match value {
        Scalar::Null => "<NULL>".into(),
        _ => crate::rows::display(value, sql_type),
    }
}
