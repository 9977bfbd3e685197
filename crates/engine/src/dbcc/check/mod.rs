//! DBCC CHECKDB, CHECKTABLE, CHECKALLOC, CHECKCATALOG: the integrity check.
//!
//! ```text
//! CHECKDB  = structures of every page (storage) ─► findings? look again with writers kept out
//!            definitions (CHECKCATALOG), each table: values, indexes against rows (maintain), one view a table
//! CHECKALLOC = maps and files alone        CHECKTABLE = the trees of one table, its values and indexes
//! ```
//! Messages as SQL Server's: 2536, findings, 2593, 8990 a table; 8954 for what no table owns; 8989 and 2528 at the end.
//! NO_INFOMSGS leaves out what finds nothing, TABLERESULTS gives all as rows, PHYSICAL_ONLY and NOINDEX leave out what
//! they say; ALL_ERRORMSGS is the default, as in SQL Server.
//!
//! Failure: what cannot be read is a finding. Where the list of trees itself cannot be read the check ends (8921).
//! It repairs nothing: REPAIR_* is refused by name, and so is ESTIMATEONLY, since no tempdb is used.

mod definitions;
mod report;
mod rows;
mod structures;

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::dbcc::{argument, database_argument};
use crate::ddl::names::{find_table, parse_name};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported};
use report::{Place, Report, Tally};
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_storage::StorageError;
use thawdb_storage::check::Finding;
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::{Dbcc, DbccArgument};

/// What is asked for.
struct Scope {
    /// PHYSICAL_ONLY: pages and maps, no values, no indexes against rows.
    physical_only: bool,
    /// NOINDEX: indexes other than the rows' own are left out of the comparison.
    without_indexes: bool,
}

fn scope(node: &Dbcc) -> Result<Scope, Failure> {
    let has = |name: &str| node.options.iter().any(|option| option.name == name);
    if has("ESTIMATEONLY") {
        return Err(unsupported(format!("DBCC {} WITH ESTIMATEONLY", node.name)).into());
    }
    let mut without_indexes = false;
    for argument in &node.arguments {
        if let DbccArgument::Name(name) = argument {
            match crate::ddl::names::shown(name).to_ascii_uppercase().as_str() {
                "NOINDEX" => without_indexes = true,
                word if word.starts_with("REPAIR_") => return Err(unsupported(format!("DBCC {} ({word})", node.name)).into()),
                _ => {}
            }
        }
    }
    Ok(Scope { physical_only: has("PHYSICAL_ONLY"), without_indexes })
}

/// The number that an option or a bare word in the first place stands for: `DBCC CHECKDB (NOINDEX)` names no database.
fn database_of(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<Arc<OpenDatabase>, Failure> {
    let names_none = match node.arguments.first() {
        Some(DbccArgument::Name(name)) => crate::ddl::names::shown(name).eq_ignore_ascii_case("NOINDEX"),
        _ => false,
    };
    if names_none { Ok(interpreter.session.database.clone()) } else { database_argument(interpreter, node, 0) }
}

pub(super) fn check_database(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let scope = scope(node)?;
    let open = database_of(interpreter, node)?;
    let name = open.name();
    let mut report = Report::new(node, open.id.0);
    report.inform(interpreter, message(2536, &[&name]));
    let findings = match node.name.as_str() {
        "CHECKCATALOG" => Vec::new(),
        which => {
            let allocation_only = which == "CHECKALLOC";
            let look = |open: &OpenDatabase| if allocation_only { open.storage.check_allocation() } else { open.storage.check() };
            structures_of(interpreter, &open, &look)?
        }
    };
    if !findings.is_empty() {
        crate::instance::suspect_pages::record(&interpreter.session.engine);
    }
    let tables = crate::views::objects::tables_of(interpreter.session, open.id);
    let is_of = |finding: &Finding, table: &TableDef| finding.tree.is_some_and(|tree| owns(table, tree.0));
    let mut all = Tally::default();
    for finding in findings.iter().filter(|finding| !tables.iter().any(|table| is_of(finding, table))) {
        structures::tell(interpreter, &open, finding, None, &mut report);
    }
    if matches!(node.name.as_str(), "CHECKDB" | "CHECKCATALOG") && !scope.physical_only {
        definitions::check(interpreter, &open, &mut report);
    }
    let homeless = report.end_object(&mut all);
    if homeless.is_any() {
        report.summarize(interpreter, message(8954, &[&node.name, &homeless.allocation, &homeless.consistency]), Place::default());
    }
    for table in tables.iter().filter(|table| table.id.0 > 0 && node.name != "CHECKCATALOG") {
        let own: Vec<&Finding> = findings.iter().filter(|finding| is_of(finding, table)).collect();
        if node.name == "CHECKDB" {
            report.inform(interpreter, message(2536, &[&table.name]));
        }
        own.iter().for_each(|finding| structures::tell(interpreter, &open, finding, Some(table), &mut report));
        if node.name == "CHECKDB" {
            rows::check(interpreter, &open, table, &scope, own.is_empty(), &mut report)?;
        }
        end_table(interpreter, node, table, &mut report, &mut all);
    }
    if node.name != "CHECKCATALOG" {
        let summary = message(8989, &[&node.name, &all.allocation, &all.consistency, &name]);
        if all.is_any() {
            report.summarize(interpreter, summary, Place::default());
        } else {
            report.inform(interpreter, summary);
        }
    }
    report.finish(interpreter)
}

fn owns(table: &TableDef, tree: u64) -> bool {
    table.indexes.iter().chain(table.building.as_deref()).any(|index| index.tree.0 == tree)
}

/// 8990, if the table had errors.
fn end_table(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc, table: &TableDef, report: &mut Report, all: &mut Tally) {
    let own = report.end_object(all);
    if own.is_any() {
        let summary = message(8990, &[&node.name, &own.allocation, &own.consistency, &table.name, &table.id.0]);
        report.summarize(interpreter, summary, Place { object: table.id.0, ..Place::default() });
    }
}

/// What is wrong with pages and maps. Writers may make the first look mistaken; a second keeps them out.
fn structures_of(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    look: &dyn Fn(&OpenDatabase) -> Result<Vec<Finding>, StorageError>,
) -> Result<Vec<Finding>, Failure> {
    let look = |interpreter: &mut Interpreter<'_, '_>| {
        look(open).map_err(|error| {
            // The list of trees cannot be read: 824 says where, 8921 that nothing more can be said.
            let cause = interpreter.session.storage_failure(open.id, error);
            if cause.number == 824 {
                interpreter.out.message(&cause);
                return Failure::run(message(8921, &[]));
            }
            Failure::run(cause)
        })
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

pub(super) fn check_one(interpreter: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    let scope = scope(node)?;
    let name = argument(interpreter, node, 0)?.ok_or_else(|| message(2526, &[]))?;
    let parsed = parse_name(&name).ok_or_else(|| message(2501, &[&name]))?;
    let table = find_table(interpreter.session, &parsed)?.ok_or_else(|| message(2501, &[&name]))?;
    let open = interpreter.session.storage_of(table.database)?;
    let mut report = Report::new(node, open.id.0);
    report.inform(interpreter, message(2536, &[&table.name]));
    let count = if scope.without_indexes { 1 } else { table.indexes.len() };
    let mut sound = true;
    for index in &table.indexes[..count] {
        let found = structures_of(interpreter, &open, &|open| open.storage.check_tree(index.tree))?;
        sound &= found.is_empty();
        found.iter().for_each(|finding| structures::tell(interpreter, &open, finding, Some(&table), &mut report));
    }
    rows::check(interpreter, &open, &table, &scope, sound, &mut report)?;
    end_table(interpreter, node, &table, &mut report, &mut Tally::default());
    report.finish(interpreter)
}
