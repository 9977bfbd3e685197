//! ALTER INDEX: PAUSE, RESUME and ABORT of an operation that goes on beside the table's use; SET; and the way to REBUILD,
//! REORGANIZE and DISABLE.
//!
//! | action | nothing there | ALL, nothing there |
//! |---|---|---|
//! | RESUME, ABORT | 10638 | 10680 |
//! | PAUSE | 10641 | 10680 |
//!
//! SET and the options of REBUILD are kept with the index. Not built: partitions (7729, 7735: nothing is partitioned).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::constraints::{change_options, check_options};
use crate::ddl::index_options::{BuildOptions, Supports, duration_of, low_priority};
use crate::ddl::names::{database_of, find_table, is_local_temporary, shown};
use crate::ddl::online::{self, Planned, job_of, take_back, work};
use crate::ddl::rebuild::{enable, filegroup_of, refill};
use crate::ddl::{disable, lock_for_change, put_table, reorganize};
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::{IndexDef, IndexId, IndexJob, JobPurpose, TableDef};
use thawdb_tsql::ast::{AlterIndex, AlterIndexAction, Ident, IndexOption, IndexOptionKind, Span};
use thawdb_types::SqlError;

/// ALTER INDEX.
pub(crate) fn alter_index(interpreter: &mut Interpreter<'_, '_>, node: &AlterIndex, span: Span) -> Result<(), Failure> {
    let open = database_of(interpreter.session, &node.table)?;
    let table = find_table(interpreter.session, &node.table)?.ok_or_else(|| message(1088, &[&shown(&node.table)]).with_state(9))?;
    let name = node.name.as_ref();
    match &node.action {
        AlterIndexAction::Pause => pause(interpreter, &open, &table, name),
        AlterIndexAction::Resume(options) => resume(interpreter, &open, &table, name, options),
        AlterIndexAction::Abort => abort(interpreter, &open, &table, name),
        AlterIndexAction::Rebuild { partition: Some(_), .. } => {
            let shown = name.map_or(&table.name, |name| &name.text);
            Err(message(7729, &[&"alter", &"index", &if name.is_some() { "index" } else { "table" }, shown]).into())
        }
        AlterIndexAction::Rebuild { partition: None, options } => rebuild(interpreter, &open, &table, node, (options, span)),
        AlterIndexAction::Reorganize { partition, options } => {
            reorganize::reorganize(interpreter, &open, &table, name, partition.is_some(), options)
        }
        AlterIndexAction::Disable => disable::disable(interpreter, &open, &table, name),
        AlterIndexAction::Set(options) => set(interpreter, &open, &table, name, options),
    }
}

fn set(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    name: Option<&Ident>,
    options: &[IndexOption],
) -> Result<(), Failure> {
    interpreter.transactional(|this| {
        lock_for_change(this.session, open, table.id)?;
        let table = this.session.table(open.id, table.id).ok_or_else(|| message(1088, &[&table.name]))?;
        let chosen = chosen(&table, name)?;
        if let Some(name) = name
            && table.is_disabled(chosen[0])
        {
            return Err(message(1973, &[&name.text, &"table", &table.name]).into());
        }
        for option in options {
            let kept = matches!(
                option.kind,
                IndexOptionKind::AllowRowLocks(_)
                    | IndexOptionKind::AllowPageLocks(_)
                    | IndexOptionKind::OptimizeForSequentialKey(_)
                    | IndexOptionKind::IgnoreDupKey(_)
                    | IndexOptionKind::StatisticsNoRecompute(_)
            );
            if !kept {
                let written = this.text.get(option.span.start as usize..option.span.end as usize).unwrap_or_default();
                let word = written.split(['=', ' ', '(']).next().unwrap_or_default();
                return Err(message(155, &[&word, &"ALTER INDEX"]).at_line(option.span.line).into());
            }
        }
        let altered = with_options(&table, &chosen, options)?;
        put_table(this.session, open, altered, &[]).map_err(Failure::run)
    })
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

/// Tells the error log of a control statement.
fn note(interpreter: &Interpreter<'_, '_>, action: &str, job: &IndexJob, table: &TableDef) {
    let session = &*interpreter.session;
    let host = session.ticket.facts.lock().host_name.clone();
    let name = job.index.name.clone().unwrap_or_default();
    let text = message(10659, &[&action, &name, &table.name, &host]).text;
    session.engine.error_log.write(session.engine.now_datetime(), Some(session.ticket.id), text);
}

/// 574 inside a transaction.
fn refuse_in_transaction(interpreter: &Interpreter<'_, '_>, statement: &str) -> Result<(), SqlError> {
    if interpreter.session.transactions.count > 0 { Err(message(574, &[&statement])) } else { Ok(()) }
}

fn pause(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, table: &TableDef, name: Option<&Ident>) -> Result<(), Failure> {
    refuse_in_transaction(interpreter, "ALTER INDEX PAUSE")?;
    let job = job_named(interpreter, open, table, name, "PAUSE")?;
    note(interpreter, "PAUSE", &job, table);
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
    let (mut max_duration, mut max_dop, mut wait) = (None, None, None);
    for option in options {
        match &option.kind {
            IndexOptionKind::MaxDuration(value) => {
                max_duration = Some(duration_of(interpreter.int_value(value)?.unwrap_or(0))?);
            }
            IndexOptionKind::MaxDop(value) => max_dop = interpreter.int_value(value)?,
            IndexOptionKind::WaitAtLowPriority(written) => wait = Some(low_priority(interpreter, written)?),
            _ => return Err(unsupported_option("option of RESUME").at_line(option.span.line).into()),
        }
    }
    refuse_in_transaction(interpreter, "ALTER INDEX RESUME")?;
    let job = job_named(interpreter, open, table, name, "RESUME")?;
    if open.jobs.state(table.id).running {
        let known = job.index.name.clone().unwrap_or_default();
        return Err(message(10638, &[&"RESUME", &known, &table.name]).into());
    }
    note(interpreter, "RESUME", &job, table);
    let keeps_dop = job.purpose != JobPurpose::Replace;
    if keeps_dop && max_dop.is_some_and(|dop| dop != i64::from(job.max_dop)) {
        interpreter.out.message(&message(10667, &[&job.max_dop, &job.max_dop]));
    }
    work(interpreter, open, table.id, max_duration, wait)
}

fn abort(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, table: &TableDef, name: Option<&Ident>) -> Result<(), Failure> {
    refuse_in_transaction(interpreter, "ALTER INDEX ABORT")?;
    let job = job_named(interpreter, open, table, name, "ABORT")?;
    note(interpreter, "ABORT", &job, table);
    if open.jobs.ask_stop(table.id) {
        open.jobs.wait_stopped(table.id);
    }
    interpreter.transactional(|this| take_back(this.session, open, &job).map_err(Failure::run))
}

/// REBUILD: beside the table's use where it can go so, else with the table to itself.
fn rebuild(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    node: &AlterIndex,
    (options, span): (&[IndexOption], Span),
) -> Result<(), Failure> {
    let name = node.name.as_ref();
    let index = name.map(|name| disable::find(table, name)).transpose()?;
    let is_other = index.is_some_and(|index| index.id.0 > 1) && !is_local_temporary(&node.table);
    let is_whole = is_other && index.is_some_and(|index| !table.is_disabled(index.id));
    let supports = Supports { online: is_other, resumable: is_whole && open.id != TEMPDB_ID };
    let read = BuildOptions::read(interpreter, open, options, "ALTER INDEX REBUILD", supports)?;
    check_options(&read.rest)?;
    online::refuse_where_unsupported(open, table, &read)?;
    if read.resumable {
        refuse_resumable(table, index)?;
    }
    if let Some(name) = name
        && index.is_some_and(|index| index.id.0 > 1)
        && table.rows_disabled
    {
        return Err(message(1987, &[&"rebuild", &name.text, &"table", &table.name]).into());
    }
    if read.online && is_other && interpreter.session.transactions.count == 0 {
        let chosen = index.map_or(IndexId(0), |index| index.id);
        let plan = |_: &mut crate::session::state::SessionState, table: &Arc<TableDef>| planned(open, table, chosen, options);
        return online::build(interpreter, open, table, &read, span, &plan);
    }
    interpreter.transactional(|this| {
        lock_for_change(this.session, open, table.id)?;
        let table = this.session.table(open.id, table.id).ok_or_else(|| message(1088, &[&shown(&node.table)]))?;
        let chosen = chosen(&table, name)?;
        let mut altered = with_options(&table, &chosen, options)?;
        altered.rows_disabled &= !chosen.contains(&table.rows().id);
        enable(&mut altered, |index| chosen.contains(&index.id));
        refill(this.session, open, &table, altered, (&chosen, None, read.max_dop)).map(drop).map_err(Failure::run)
    })
}

/// What RESUMABLE cannot do to an index: 11433, 11434, and what is not built.
fn refuse_resumable(table: &TableDef, index: Option<&IndexDef>) -> Result<(), SqlError> {
    let Some(index) = index else { return Err(message(11433, &[&"ALTER INDEX REBUILD", &"RESUMABLE", &"ALL", &table.name])) };
    let name = index.name.clone().unwrap_or_default();
    if table.is_disabled(index.id) {
        return Err(message(11434, &[&"RESUMABLE", &name, &"table", &table.name]));
    }
    if index.id.0 == 1 { Err(unsupported_option("RESUMABLE of a clustered index")) } else { Ok(()) }
}

/// The index with this number as a rebuild makes it.
fn planned(open: &OpenDatabase, table: &TableDef, chosen: IndexId, options: &[IndexOption]) -> Result<Planned, SqlError> {
    let altered = with_options(table, &[chosen], options)?;
    let index = altered.every_index().find(|index| index.id == chosen).cloned();
    let index = index.ok_or_else(|| message(2727, &[&chosen.0]))?;
    let filegroup = filegroup_of(open, table, &index)?;
    Ok(Planned { index: IndexDef { tree: IndexDef::NO_TREE, ..index }, filegroup, purpose: JobPurpose::Replace })
}

/// Numbers of the indexes meant; `None` is ALL.
fn chosen(table: &TableDef, name: Option<&Ident>) -> Result<Vec<IndexId>, SqlError> {
    match name {
        Some(name) => Ok(vec![disable::find(table, name)?.id]),
        None => Ok(table.every_index().map(|index| index.id).collect()),
    }
}

/// The table with what SET or WITH says of these indexes. 10618, 1916 and 1979 for what may not ignore duplicates.
fn with_options(table: &TableDef, chosen: &[IndexId], options: &[IndexOption]) -> Result<TableDef, SqlError> {
    check_options(&options.iter().filter(|option| !is_of_the_build(option)).cloned().collect::<Vec<_>>())?;
    let mut altered = table.clone();
    for index in altered.every_index_mut().filter(|index| index.id.0 > 0 && chosen.contains(&index.id)) {
        let ignored = index.options.ignore_dup_key;
        change_options(&mut index.options, options)?;
        let name = index.name.clone().unwrap_or_default();
        if index.options.ignore_dup_key && !ignored {
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

/// Whether an option is of how an operation goes, not of what it makes.
pub(crate) fn is_of_the_build(option: &IndexOption) -> bool {
    matches!(
        option.kind,
        IndexOptionKind::Online { .. } | IndexOptionKind::Resumable(_) | IndexOptionKind::MaxDuration(_) | IndexOptionKind::DropExisting(_)
    )
}
