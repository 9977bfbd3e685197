//! ALTER INDEX: PAUSE, RESUME and ABORT of an operation that goes on beside the table's use; REBUILD offline.
//!
//! | action | nothing there | ALL, nothing there |
//! |---|---|---|
//! | RESUME, ABORT | 10638 | 10680 |
//! | PAUSE | 10641 | 10680 |
//!
//! REBUILD fills a new tree and swaps it in; the rows' own tree likewise. Where rows are numbered (heaps, clustered indexes
//! that are not unique) a rebuild of the rows numbers them anew, and every other index is rebuilt with them.
//! Not built: REORGANIZE, DISABLE, SET, online and resumable REBUILD, partitions (40514).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::constraints::check_options;
use crate::ddl::index::fill;
use crate::ddl::index_options::{BuildOptions, duration_of};
use crate::ddl::names::{database_of, find_table, is_local_temporary, shown};
use crate::ddl::online::{job_of, take_back, work};
use crate::ddl::{catalog_error, change_catalog, lock_for_change, plain_error};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::{IndexJob, TableDef};
use thawdb_storage::TreeSpec;
use thawdb_tsql::ast::{AlterIndex, AlterIndexAction, Ident, IndexOption, IndexOptionKind};
use thawdb_types::SqlError;

/// ALTER INDEX.
pub(crate) fn alter_index(interpreter: &mut Interpreter<'_, '_>, node: &AlterIndex) -> Result<(), Failure> {
    let open = database_of(interpreter.session, &node.table)?;
    let table = find_table(interpreter.session, &node.table)?.ok_or_else(|| message(1088, &[&shown(&node.table)]))?;
    if is_local_temporary(&node.table) {
        return Err(unsupported("ALTER INDEX on a temporary table").into());
    }
    match &node.action {
        AlterIndexAction::Pause => pause(interpreter, &open, &table, node.name.as_ref()),
        AlterIndexAction::Resume(options) => resume(interpreter, &open, &table, node.name.as_ref(), options),
        AlterIndexAction::Abort => abort(interpreter, &open, &table, node.name.as_ref()),
        AlterIndexAction::Rebuild { partition: Some(_), .. } => Err(unsupported_option("PARTITION").into()),
        AlterIndexAction::Rebuild { partition: None, options } => rebuild(interpreter, &open, &table, node, options),
        AlterIndexAction::Reorganize { .. } => Err(unsupported("ALTER INDEX REORGANIZE").into()),
        AlterIndexAction::Disable => Err(unsupported("ALTER INDEX DISABLE").into()),
        AlterIndexAction::Set(_) => Err(unsupported("ALTER INDEX SET").into()),
    }
}

/// The operation that is meant.
fn job_named(
    interpreter: &Interpreter<'_, '_>,
    open: &OpenDatabase,
    table: &TableDef,
    name: Option<&Ident>,
    action: &str,
) -> Result<Arc<IndexJob>, SqlError> {
    let job = job_of(interpreter.session, open, table.id).filter(|job| job.resumable);
    let job = job.filter(|job| name.is_none_or(|name| job.index.name.as_deref().is_some_and(|known| name.is(known))));
    job.ok_or_else(|| match (name, action) {
        (None, _) => message(10680, &[&action, &table.name]),
        (Some(name), "PAUSE") => message(10641, &[&name.text, &table.name]),
        (Some(name), _) => message(10638, &[&action, &name.text, &table.name]),
    })
}

fn pause(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, table: &TableDef, name: Option<&Ident>) -> Result<(), Failure> {
    let job = job_named(interpreter, open, table, name, "PAUSE")?;
    if !open.jobs.ask_stop(table.id) {
        let known = job.index.name.clone().unwrap_or_default();
        return Err(match name {
            None => message(10680, &[&"PAUSE", &table.name]),
            Some(_) => message(10641, &[&known, &table.name]),
        }
        .into());
    }
    open.jobs.wait_stopped(table.id);
    Ok(())
}

fn resume(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &TableDef,
    name: Option<&Ident>,
    options: &[IndexOption],
) -> Result<(), Failure> {
    let (mut max_duration, mut max_dop) = (None, None);
    for option in options {
        match &option.kind {
            IndexOptionKind::MaxDuration(value) => {
                max_duration = Some(duration_of(interpreter.int_value(value)?.unwrap_or(0))?);
            }
            IndexOptionKind::MaxDop(value) => max_dop = interpreter.int_value(value)?,
            _ => return Err(unsupported_option("option of RESUME").at_line(option.span.line).into()),
        }
    }
    if interpreter.session.transactions.count > 0 {
        return Err(message(574, &[&"ALTER INDEX RESUME"]).into());
    }
    let job = job_named(interpreter, open, table, name, "RESUME")?;
    if open.jobs.state(table.id).running {
        let known = job.index.name.clone().unwrap_or_default();
        return Err(message(10638, &[&"RESUME", &known, &table.name]).into());
    }
    if max_dop.is_some_and(|dop| dop != i64::from(job.max_dop)) {
        interpreter.out.message(&message(10667, &[&job.max_dop, &job.max_dop]));
    }
    work(interpreter, open, table.id, max_duration)
}

fn abort(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, table: &TableDef, name: Option<&Ident>) -> Result<(), Failure> {
    if interpreter.session.transactions.count > 0 {
        return Err(message(574, &[&"ALTER INDEX ABORT"]).into());
    }
    let job = job_named(interpreter, open, table, name, "ABORT")?;
    if open.jobs.ask_stop(table.id) {
        open.jobs.wait_stopped(table.id);
    }
    interpreter.transactional(|this| take_back(this.session, open, &job).map_err(Failure::run))
}

fn rebuild(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    node: &AlterIndex,
    options: &[IndexOption],
) -> Result<(), Failure> {
    let read = BuildOptions::read(interpreter, options, "ALTER INDEX REBUILD")?;
    if read.resumable && node.name.is_none() {
        return Err(message(11433, &[&"ALTER INDEX REBUILD", &"RESUMABLE", &"ALL", &table.name]).into());
    }
    if read.online || read.resumable {
        return Err(unsupported_option(if read.resumable { "RESUMABLE of REBUILD" } else { "ONLINE of REBUILD" }).into());
    }
    check_options(&read.rest)?;
    interpreter.transactional(|this| {
        lock_for_change(this.session, open, table.id)?;
        let table = this.session.table(open.id, table.id).ok_or_else(|| message(1088, &[&shown(&node.table)]))?;
        let positions: Vec<usize> = match &node.name {
            None => (0..table.indexes.len()).collect(),
            Some(name) => {
                let is_named = |at: &usize| table.indexes[*at].name.as_deref().is_some_and(|known| name.is(known));
                let found = (0..table.indexes.len()).find(is_named);
                vec![found.ok_or_else(|| message(2727, &[&name.text]))?]
            }
        };
        rebuild_at(this, open, &table, positions).map_err(Failure::run)
    })
}

/// Fills new trees for the indexes at `positions` and swaps them in.
fn rebuild_at(
    this: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    mut positions: Vec<usize>,
) -> Result<(), SqlError> {
    let session = &mut *this.session;
    let numbered = table.rows().keys.is_empty() || !table.rows().unique;
    if positions.contains(&0) && numbered {
        positions = (0..table.indexes.len()).collect();
    }
    let mut altered = (**table).clone();
    for at in &positions {
        let index = &mut altered.indexes[*at];
        let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: index.id.0.cast_unsigned(), filegroup: 1 };
        index.tree = session.part(open.id)?.txn.create_tree(spec).map_err(plain_error(open))?;
    }
    altered.modified = session.engine.now_datetime();
    let altered = Arc::new(altered);
    for at in &positions {
        // The rows come first: the others' entries end in their keys.
        let source = if *at > 0 && positions.contains(&0) { &altered } else { table };
        let rows = fill(session, open, source, &altered, *at)?;
        if *at == 0 && numbered {
            let raised = open.counters.raise_row_number(open, table.id, rows + 1);
            raised.map_err(|error| session.storage_failure(open.id, error))?;
        }
    }
    let definition = (*altered).clone();
    change_catalog(session, open, |catalog, part| {
        for at in &positions {
            part.txn.drop_tree(table.indexes[*at].tree).map_err(plain_error(open))?;
        }
        catalog.put_table(&mut part.txn, definition).map_err(catalog_error(open))
    })
}
