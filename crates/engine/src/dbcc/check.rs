//! DBCC CHECKDB, CHECKTABLE, CHECKALLOC, CHECKIDENT: the integrity check.
//!
//! ```text
//! CHECKDB  structures of every page (storage) ─► findings? look again with writers kept out
//!          each table: indexes against rows (maintain), under one view a table
//! ```
//! Messages as SQL Server's: 2536, 2593, findings, 8989 or 8990, 2528; NO_INFOMSGS leaves out what finds nothing.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::dbcc::{argument, database_argument};
use crate::ddl::names::{find_table, parse_name};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::storage_error::cancelled;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_maintain::{BuildError, IndexFinding, check_table};
use thawdb_storage::check::{Finding, FindingKind};
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::Dbcc;

/// What a check found.
#[derive(Default)]
struct Tally {
    allocation: u64,
    consistency: u64,
}

pub(super) fn check_database(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, quiet: bool) -> Result<(), Failure> {
    let open = database_argument(interpreter, node, 0)?;
    let name = open.name();
    if !quiet {
        interpreter.out.message(&message(2536, &[&name]));
    }
    let mut tally = Tally::default();
    let findings = structures(interpreter, &open)?;
    tell_findings(interpreter, &open, &findings, &mut tally);
    if node.name == "CHECKDB" {
        let tables: Vec<_> = crate::views::objects::tables_of(interpreter.session, open.id);
        for table in tables.iter().filter(|table| table.id.0 > 0) {
            if !quiet {
                interpreter.out.message(&message(2536, &[&table.name]));
            }
            check_rows(interpreter, &open, table, quiet, &mut tally)?;
        }
    }
    if !quiet || tally.allocation + tally.consistency > 0 {
        interpreter.out.message(&message(8989, &[&node.name, &tally.allocation, &tally.consistency, &name]));
    }
    Ok(())
}

/// What is wrong with pages and maps. Writers may make the first look mistaken; a second keeps them out.
fn structures(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>) -> Result<Vec<Finding>, Failure> {
    let look = |interpreter: &Interpreter<'_, '_>| {
        open.storage.check().map_err(|error| Failure::run(interpreter.session.storage_failure(open.id, error)))
    };
    if look(interpreter)?.is_empty() {
        return Ok(Vec::new());
    }
    interpreter.transactional(|this| {
        let tables = crate::views::objects::tables_of(this.session, open.id);
        this.session.lock(open.definitions_resource(), LockMode::S, true)?;
        for table in tables.iter().filter(|table| table.id.0 > 0) {
            this.session.lock(open.object_resource(table.id), LockMode::S, true)?;
        }
        look(this)
    })
}

pub(super) fn check_one(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, quiet: bool) -> Result<(), Failure> {
    let name = argument(interpreter, node, 0)?.ok_or_else(|| message(2526, &[]))?;
    let parsed = parse_name(&name).ok_or_else(|| message(2501, &[&name]))?;
    let table = find_table(interpreter.session, &parsed)?.ok_or_else(|| message(2501, &[&name]))?;
    let open = interpreter.session.storage_of(table.database)?;
    if !quiet {
        interpreter.out.message(&message(2536, &[&table.name]));
    }
    let mut tally = Tally::default();
    for index in &table.indexes {
        let findings = open.storage.check_tree(index.tree).map_err(|error| interpreter.session.storage_failure(open.id, error))?;
        tell_findings(interpreter, &open, &findings, &mut tally);
    }
    check_rows(interpreter, &open, &table, quiet, &mut tally)?;
    if tally.allocation + tally.consistency > 0 {
        interpreter.out.message(&message(8990, &[&"CHECKTABLE", &tally.allocation, &tally.consistency, &table.name, &table.id.0]));
    }
    Ok(())
}

/// Compares a table's indexes with its rows.
fn check_rows(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    quiet: bool,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let check = interpreter.transactional(|this| {
        this.session.lock(open.object_resource(table.id), LockMode::SchS, true)?;
        let part = this.session.transactions.existing(open.id.0);
        let view = open.storage.read_view(part.map(|part| &part.txn));
        let cancel = this.session.cancel.clone();
        let checked = check_table(table, &view, &mut || cancel.check().map_err(|_| cancelled()));
        checked.map_err(|error| match error {
            BuildError::Sql(error) => Failure::run(error),
            BuildError::Storage(error) => Failure::run(this.session.storage_failure(open.id, error)),
        })
    })?;
    let mut wrong = 0;
    for (index, found) in table.indexes.iter().skip(1).zip(&check.indexes) {
        let name = index.name.as_deref().unwrap_or("");
        for finding in &found.findings {
            let number = if matches!(finding, IndexFinding::Missing(_)) { 8951 } else { 8952 };
            interpreter.out.message(&message(number, &[&table.name, &table.id.0, &name, &index.id.0]));
        }
        wrong += found.finding_count;
    }
    tally.consistency += wrong;
    if !quiet {
        let pages = open.storage.tree_page_count(table.rows().tree).map_err(|error| interpreter.session.storage_failure(open.id, error))?;
        interpreter.out.message(&message(2593, &[&check.rows, &pages, &table.name]));
    }
    if wrong > 0 {
        interpreter.out.message(&message(8990, &[&"CHECKDB", &0, &wrong, &table.name, &table.id.0]));
    }
    Ok(())
}

/// Tells storage's findings by SQL Server's numbers and counts them.
fn tell_findings(interpreter: &mut Interpreter<'_, '_>, open: &OpenDatabase, findings: &[Finding], tally: &mut Tally) {
    let tables = interpreter.session.tables(open.id);
    for finding in findings {
        let tree = finding.tree.map_or(0, |tree| tree.0);
        let owner = tables.as_ref().and_then(|tables| {
            let found = tables.tables.values().find_map(|t| t.indexes.iter().find(|i| i.tree.0 == tree).map(|i| (t.id.0, i.id.0)));
            found.or(Some((0, 0)))
        });
        let (object, index) = owner.unwrap_or((0, 0));
        let page = format!("({}:{})", finding.page.file, finding.page.page);
        let in_row = "In-row data";
        let told = match finding.kind {
            FindingKind::Unreached => message(2533, &[&page, &object, &index, &tree, &tree, &in_row]),
            FindingKind::Unallocated | FindingKind::Extent | FindingKind::Shared => message(8905, &[&page, &open.id.0]),
            FindingKind::Unreadable => message(8928, &[&object, &index, &tree, &tree, &in_row, &page]),
            FindingKind::Order => {
                let slot = finding.slot.unwrap_or(0);
                message(8944, &[&object, &index, &tree, &tree, &in_row, &page, &slot, &finding.detail, &0, &0])
            }
            FindingKind::Sibling => message(8978, &[&object, &index, &tree, &tree, &in_row, &page, &finding.detail]),
            _ => message(8939, &[&object, &index, &tree, &tree, &in_row, &page, &finding.detail, &0, &0]),
        };
        match finding.kind {
            FindingKind::Unreached | FindingKind::Unallocated | FindingKind::Extent | FindingKind::Shared => tally.allocation += 1,
            _ => tally.consistency += 1,
        }
        interpreter.out.message(&told);
    }
}

/// DBCC CHECKIDENT (table [, NORESEED | RESEED [, value]]).
pub(super) fn check_identity(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, quiet: bool) -> Result<(), Failure> {
    let name = argument(interpreter, node, 0)?.ok_or_else(|| message(2526, &[]))?;
    let parsed = parse_name(&name).ok_or_else(|| message(2501, &[&name]))?;
    let table = find_table(interpreter.session, &parsed)?.ok_or_else(|| message(2501, &[&name]))?;
    let column = interpreter.session.identity_column(table.database, table.id).map_err(|_| message(7997, &[&table.name]))?;
    let open = interpreter.session.storage_of(table.database)?;
    let last = open.counters.last_identity(table.id, column);
    let shown = last.map_or("NULL".to_owned(), |last| last.to_string());
    if !quiet {
        interpreter.out.message(&message(7998, &[&shown, &shown]));
    }
    let reseeds = argument(interpreter, node, 1)?.is_some_and(|word| word.eq_ignore_ascii_case("RESEED"));
    if let (true, Some(value)) = (reseeds, argument(interpreter, node, 2)?) {
        let value: i64 = value.parse().map_err(|_| message(2560, &[&3]))?;
        // Of a table that never had a row the value itself is next, of others the one after it.
        let next = if last.is_none() { value } else { value.saturating_add(column.definition.increment) };
        let reset = open.counters.reset_identity(&open, table.id, Some(next));
        reset.map_err(|error| interpreter.session.storage_failure(open.id, error))?;
    }
    Ok(())
}
