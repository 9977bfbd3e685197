//! ALTER INDEX: PAUSE, RESUME and ABORT of an operation that goes on beside the table's use; REBUILD offline.
//!
//! | action | nothing there | ALL, nothing there |
//! |---|---|---|
//! | RESUME, ABORT | 10638 | 10680 |
//! | PAUSE | 10641 | 10680 |
//!
//! REBUILD fills a new tree and swaps it in; the rows' own tree likewise. Where rows are numbered (heaps, clustered indexes
//! that are not unique) a rebuild of the rows numbers them anew, and every other index is rebuilt with them.
//! SET and the options of REBUILD are kept with the index.
//! Not built: REORGANIZE, DISABLE, online and resumable REBUILD, partitions (40514).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::constraints::{change_options, check_options};
use crate::ddl::index::fill;
use crate::ddl::index_options::{BuildOptions, duration_of};
use crate::ddl::names::{database_of, find_table, shown};
use crate::ddl::online::{job_of, take_back, work};
use crate::ddl::{lock_for_change, plain_error, put_table};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::{IndexJob, TableDef};
use thawdb_storage::{TreeId, TreeSpec};
use thawdb_tsql::ast::{AlterIndex, AlterIndexAction, Ident, IndexOption, IndexOptionKind};
use thawdb_types::SqlError;

/// ALTER INDEX.
pub(crate) fn alter_index(interpreter: &mut Interpreter<'_, '_>, node: &AlterIndex) -> Result<(), Failure> {
    let open = database_of(interpreter.session, &node.table)?;
    let table = find_table(interpreter.session, &node.table)?.ok_or_else(|| message(1088, &[&shown(&node.table)]))?;
    match &node.action {
        AlterIndexAction::Pause => pause(interpreter, &open, &table, node.name.as_ref()),
        AlterIndexAction::Resume(options) => resume(interpreter, &open, &table, node.name.as_ref(), options),
        AlterIndexAction::Abort => abort(interpreter, &open, &table, node.name.as_ref()),
        AlterIndexAction::Rebuild { partition: Some(_), .. } => Err(unsupported_option("PARTITION").into()),
        AlterIndexAction::Rebuild { partition: None, options } => rebuild(interpreter, &open, &table, node, options),
        AlterIndexAction::Reorganize { .. } => Err(unsupported("ALTER INDEX REORGANIZE").into()),
        AlterIndexAction::Disable => Err(unsupported("ALTER INDEX DISABLE").into()),
        AlterIndexAction::Set(options) => interpreter.transactional(|this| {
            lock_for_change(this.session, &open, table.id)?;
            let table = this.session.table(open.id, table.id).ok_or_else(|| message(1088, &[&shown(&node.table)]))?;
            let altered = with_options(&table, &positions_of(&table, node.name.as_ref())?, options)?;
            put_table(this.session, &open, altered, &[]).map_err(Failure::run)
        }),
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
        let positions = positions_of(&table, node.name.as_ref())?;
        let altered = with_options(&table, &positions, options)?;
        rebuild_at(this, open, (&table, altered), positions).map_err(Failure::run)
    })
}

/// Positions of the indexes meant; `None` is ALL.
fn positions_of(table: &TableDef, name: Option<&Ident>) -> Result<Vec<usize>, SqlError> {
    let Some(name) = name else { return Ok((0..table.indexes.len()).collect()) };
    let is_named = |at: &usize| table.indexes[*at].name.as_deref().is_some_and(|known| name.is(known));
    let found = (0..table.indexes.len()).find(is_named);
    Ok(vec![found.ok_or_else(|| message(2727, &[&name.text]))?])
}

/// The table with what SET or WITH says of these indexes. 10618, 1916 and 1979 for what may not ignore duplicates.
fn with_options(table: &TableDef, positions: &[usize], options: &[IndexOption]) -> Result<TableDef, SqlError> {
    check_options(&options.iter().filter(|option| !is_of_the_build(option)).cloned().collect::<Vec<_>>())?;
    let mut altered = table.clone();
    for at in positions.iter().filter(|at| !table.rows().keys.is_empty() || **at > 0) {
        let index = &mut altered.indexes[*at];
        change_options(&mut index.options, options)?;
        let name = index.name.clone().unwrap_or_default();
        if index.options.ignore_dup_key && !table.indexes[*at].options.ignore_dup_key {
            if index.filter.is_some() {
                return Err(message(10618, &[&"alter", &name, &table.name]));
            }
            if index.primary_key || index.unique_constraint {
                return Err(message(1979, &[&name]));
            }
            if !index.unique {
                return Err(message(1916, &[&"nonunique", &"ignore_dup_key"]));
            }
        }
    }
    Ok(altered)
}

fn is_of_the_build(option: &IndexOption) -> bool {
    matches!(option.kind, IndexOptionKind::Online { .. } | IndexOptionKind::Resumable(_) | IndexOptionKind::MaxDuration(_))
}

/// Fills new trees for the indexes at `positions` and swaps them in.
fn rebuild_at(
    this: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    (table, mut altered): (&Arc<TableDef>, TableDef),
    mut positions: Vec<usize>,
) -> Result<(), SqlError> {
    let session = &mut *this.session;
    let numbered = table.rows().keys.is_empty() || !table.rows().unique;
    if positions.contains(&0) && numbered {
        positions = (0..table.indexes.len()).collect();
    }
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
    let gone: Vec<TreeId> = positions.iter().map(|at| table.indexes[*at].tree).collect();
    put_table(session, open, definition, &gone)
}
