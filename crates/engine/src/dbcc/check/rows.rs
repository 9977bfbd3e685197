//! The rows of a table: every value by its column's type, and every index against them, both ways.

use super::Scope;
use super::report::{Place, Report};
use super::structures::shown;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::rows::display;
use crate::storage_error::{cancelled, decode_index_key};
use std::sync::Arc;
use thawdb_catalog::{IndexDef, TableDef, TreeLayout};
use thawdb_maintain::{BuildError, ColumnFinding, IndexFinding, TableCheck, check_indexes};
use thawdb_storage::locks::LockMode;
use thawdb_storage::{PageId, StorageError};
use thawdb_types::Scalar;

/// Checks values and indexes, unless only pages are asked for or the pages are not sound (`sound`): SQL Server too compares
/// no index with rows it could not read.
pub(super) fn check(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    scope: &Scope,
    sound: bool,
    report: &mut Report,
) -> Result<(), Failure> {
    if scope.physical_only || !sound {
        return Ok(());
    }
    let count = if scope.without_indexes { 1 } else { table.indexes.len() };
    let checked = interpreter.transactional(|this| {
        this.session.lock(open.object_resource(table.id), LockMode::SchS, true)?;
        let part = this.session.transactions.existing(open.id.0);
        let view = open.storage.read_view(part.map(|part| &part.txn));
        let cancel = this.session.cancel.clone();
        match check_indexes(table, count, &view, &mut || cancel.check().map_err(|_| cancelled())) {
            Ok(check) => Ok(Ok(check)),
            // Writers go on: a page may have become unreadable since the structures were looked at.
            Err(BuildError::Storage(error @ StorageError::Damage { .. })) => Ok(Err(this.session.storage_failure(open.id, error))),
            Err(BuildError::Storage(error)) => Err(Failure::run(this.session.storage_failure(open.id, error))),
            Err(BuildError::Sql(error)) => Err(Failure::run(error)),
        }
    })?;
    let check = match checked {
        Ok(check) => check,
        Err(damage) => {
            report.error(interpreter, damage, Place { object: table.id.0, ..Place::default() });
            return Ok(());
        }
    };
    check.columns.iter().for_each(|finding| tell_value(interpreter, open, table, finding, report));
    tell_indexes(interpreter, open, table, &check, report);
    let pages = open.storage.tree_page_count(table.rows().tree).map_err(|error| interpreter.session.storage_failure(open.id, error))?;
    report.inform(interpreter, message(2593, &[&check.rows, &pages, &table.name]));
    Ok(())
}

/// Where the row or entry of a key lies now.
fn place_of(open: &OpenDatabase, table: &TableDef, index: &IndexDef, key: &[u8]) -> Place {
    let found = open.storage.place_of(index.tree, key).ok().flatten();
    let (page, slot) = found.unwrap_or((PageId::NONE, 0));
    let slot = u16::try_from(slot).unwrap_or(u16::MAX);
    Place { object: table.id.0, index: index.id.0, tree: index.tree.0, page, slot, is_allocation: false }
}

/// 2570 for a value that its type does not have, 8970 for a NULL where none may be.
fn tell_value(interpreter: &mut Interpreter<'_, '_>, open: &OpenDatabase, table: &TableDef, finding: &ColumnFinding, report: &mut Report) {
    let place = place_of(open, table, table.rows(), &finding.key);
    let (object, index, tree) = (place.object, place.index, place.tree);
    let column = &table.columns[finding.column];
    let page = shown(place.page);
    let told = if finding.is_null {
        message(8970, &[&object, &index, &tree, &tree, &"In-row data", &page, &place.slot, &column.name])
    } else {
        message(2570, &[&page, &place.slot, &object, &index, &tree, &tree, &"In-row data", &column.name, &column.sql_type.name()])
    };
    report.error(interpreter, told, place);
}

/// `a = 1 and b = 'x'`: the values of an index's own key columns at the start of `key`; of a heap the name of what it has.
fn key_values(table: &TableDef, index: &IndexDef, key: &[u8]) -> String {
    let columns = index.keys.iter().map(|part| &table.columns[part.column_index]);
    let values = decode_index_key(table, index, key);
    let shown: Vec<String> = columns
        .zip(values)
        .map(|(column, (value, sql_type))| match value {
            Scalar::Null => format!("{} = NULL", column.name),
            Scalar::Text(text) => format!("{} = '{text}'", column.name),
            _ => format!("{} = {}", column.name, display(&value, &sql_type)),
        })
        .collect();
    if shown.is_empty() { "HEAP RID".into() } else { shown.join(" and ") }
}

/// 8951 and 8955 for a row without its entry, 8952 and 8956 for an entry without its row.
fn tell_indexes(interpreter: &mut Interpreter<'_, '_>, open: &OpenDatabase, table: &TableDef, check: &TableCheck, report: &mut Report) {
    for ((at, index), found) in table.indexes.iter().enumerate().skip(1).zip(&check.indexes) {
        let (name, layout) = (index.name.as_deref().unwrap_or(""), TreeLayout::new(table, at));
        for finding in &found.findings {
            let (IndexFinding::Missing(key) | IndexFinding::Extra(key)) = finding;
            let row_key = layout.row_key(key).unwrap_or_default();
            let (values, row) = (key_values(table, index, key), key_values(table, table.rows(), row_key));
            let in_index = Place { object: table.id.0, index: index.id.0, tree: index.tree.0, ..Place::default() };
            let (number, detail, place) = match finding {
                IndexFinding::Missing(_) => {
                    let Place { page, slot, .. } = place_of(open, table, table.rows(), row_key);
                    (8951, message(8955, &[&page.file, &page.page, &slot, &row, &values]), in_index)
                }
                IndexFinding::Extra(_) => {
                    let place = place_of(open, table, index, key);
                    (8952, message(8956, &[&place.page.file, &place.page.page, &place.slot, &values, &row]), place)
                }
            };
            report.error(interpreter, message(number, &[&table.name, &table.id.0, &name, &index.id.0]), place);
            report.detail(interpreter, detail, place);
        }
        report.count_unshown(found.finding_count - found.findings.len() as u64);
    }
}
