//! CREATE INDEX beside the table's use: begun, worked on in chunks, paused by anything, taken up again, published.
//!
//! ```text
//! begin    Sch-M for a moment: trees, the job's record; writers know of the build from here on     one transaction
//! work     a chunk, commit, a look at cancellation, PAUSE and MAX_DURATION ...                     one a chunk, no lock held
//! publish  Sch-M for a moment: the side tree's last words, the index, the record's end             one transaction
//! ```
//! 1. The job's record is in the catalog from `begin` to `publish` or `abort`; other definitions of the table are refused
//!    meanwhile (10637, [`refuse_beside_job`]).
//! 2. Whatever ends the work before publication pauses the operation: nothing needs to be written for that. One that is
//!    not resumable is taken back instead.
//!
//! Failure: 1505 for a duplicate; 9002, 1105 and others as storage says them; 1219 and 596 when another session pauses or
//! aborts; 3643 and 596 when MAX_DURATION is over.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::index::{build_memory_bytes, check_index_name, new_index, next_index_id};
use crate::ddl::index_options::BuildOptions;
use crate::ddl::names::{database_of, find_table, is_local_temporary, shown};
use crate::ddl::table::filegroup_number;
use crate::ddl::{catalog_error, change_catalog, lock_for_change, plain_error};
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::instance::index_jobs::Runner;
use crate::messages::{message, unsupported, unsupported_option};
use crate::session::state::SessionState;
use std::sync::Arc;
use std::time::Duration;
use thawdb_catalog::{IndexDef, IndexJob, JobProgress, ObjectId, TableDef};
use thawdb_device::BackgroundWork;
use thawdb_maintain::{BuildError, OnlineBuild, OnlineOptions, Step};
use thawdb_storage::TreeSpec;
use thawdb_storage::locks::{LockMode, Party};
use thawdb_tsql::ast::{CreateIndex, Span};
use thawdb_types::SqlError;

/// Rows of a chunk in a simulated world, whose tables have few: so that a build there has many chunks.
const SIMULATED_REDONE_ROWS: usize = 60;

/// 10637 while an index operation goes on at a table, which the caller has locked. One that nobody can take up again and
/// that could not be taken back when it failed, because others used the table, is taken back now.
pub(crate) fn refuse_beside_job(session: &mut SessionState, open: &Arc<OpenDatabase>, table: ObjectId) -> Result<(), SqlError> {
    let Some(catalog) = session.definitions(open.id) else { return Ok(()) };
    let Some(job) = catalog.jobs.get(&table.0).cloned() else { return Ok(()) };
    if is_abandoned(open, &job) {
        return take_back(session, open, &job);
    }
    let name = catalog.tables.tables.get(&table.0).map_or_else(String::new, |table| table.name.clone());
    Err(message(10637, &[&name, &table.0]))
}

/// Whether an operation has failed and nobody can take it up again.
fn is_abandoned(open: &OpenDatabase, job: &IndexJob) -> bool {
    let state = open.jobs.state(job.table);
    // Before its work has begun it is not paused either.
    !job.resumable && !state.running && state.paused.is_some()
}

/// The operation at a table.
pub(crate) fn job_of(session: &SessionState, open: &OpenDatabase, table: ObjectId) -> Option<Arc<IndexJob>> {
    session.definitions(open.id)?.jobs.get(&table.0).cloned()
}

/// CREATE INDEX WITH (ONLINE = ON).
pub(crate) fn create_index(
    interpreter: &mut Interpreter<'_, '_>,
    node: &CreateIndex,
    span: Span,
    options: &BuildOptions,
) -> Result<(), Failure> {
    let open = database_of(interpreter.session, &node.table)?;
    if open.id == TEMPDB_ID && options.resumable {
        return Err(message(11439, &[]).into());
    }
    if is_local_temporary(&node.table) {
        return Err(unsupported("CREATE INDEX on a temporary table").into());
    }
    let missing = || message(1088, &[&shown(&node.table)]);
    let table = find_table(interpreter.session, &node.table)?.ok_or_else(missing)?;
    if node.clustered == Some(true) {
        return Err(unsupported_option("ONLINE with CLUSTERED").into());
    }
    if let Some(job) = job_of(interpreter.session, &open, table.id).filter(|job| !is_abandoned(&open, job)) {
        take_up_instead(interpreter, &open, &table, &job, node, options)?;
        return work(interpreter, &open, table.id, options.max_duration);
    }
    let text = interpreter.text.get(span.start as usize..span.end as usize).unwrap_or_default().to_owned();
    interpreter.transactional(|this| begin(this, &open, node, options, text).map_err(Failure::run))?;
    work(interpreter, &open, table.id, options.max_duration)
}

/// The same statement again takes the operation up (10645); another is refused (10637).
fn take_up_instead(
    interpreter: &mut Interpreter<'_, '_>,
    open: &OpenDatabase,
    table: &TableDef,
    job: &IndexJob,
    node: &CreateIndex,
    options: &BuildOptions,
) -> Result<(), Failure> {
    let wanted = new_index(interpreter.session, table, node)?;
    let known = &job.index;
    let is_same = options.resumable
        && job.resumable
        && known.name.as_deref().is_some_and(|name| node.name.is(name))
        && (&known.keys, &known.included, known.unique) == (&wanted.keys, &wanted.included, wanted.unique)
        && (&known.filter, known.options) == (&wanted.filter, wanted.options)
        && job.fill_factor == options.fill_factor;
    if !is_same || open.jobs.state(table.id).running {
        return Err(message(10637, &[&table.name, &table.id.0]).into());
    }
    interpreter.out.message(&message(10645, &[&table.name]));
    if options.max_dop != job.max_dop {
        interpreter.out.message(&message(10667, &[&job.max_dop, &job.max_dop]));
    }
    Ok(())
}

/// Makes the trees and the record.
fn begin(
    this: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    node: &CreateIndex,
    options: &BuildOptions,
    statement: String,
) -> Result<(), SqlError> {
    let missing = || message(1088, &[&shown(&node.table)]);
    let table = find_table(this.session, &node.table)?.ok_or_else(missing)?;
    // Whoever wrote the table before has ended, and whoever writes it after knows of the build.
    lock_for_change(this.session, open, table.id)?;
    let table = this.session.table(open.id, table.id).ok_or_else(missing)?;
    let index = new_index(this.session, &table, node)?;
    check_index_name(&table, &node.name.text)?;
    let large = index.included.iter().find(|column| table.columns[**column].sql_type.is_large());
    if let Some(column) = large {
        return Err(message(10670, &[&"index", &node.name.text, &table.columns[*column].name]));
    }
    let id = next_index_id(&table);
    let filegroup = filegroup_number(open, index.filegroup.as_deref())?;
    let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: id.0.cast_unsigned(), filegroup };
    let started = this.session.engine.now_datetime();
    let rows_expected = open.counters.rows_at_most(table.id).unwrap_or(0);
    change_catalog(this.session, open, |catalog, part| {
        let mut tree = || part.txn.create_tree(spec).map_err(plain_error(open));
        let (target, side, runs) = (tree()?, tree()?, tree()?);
        let job = IndexJob {
            table: table.id,
            index: index.definition(id, node.name.text.clone(), target),
            side,
            runs,
            statement,
            max_dop: options.max_dop,
            resumable: options.resumable,
            fill_factor: options.fill_factor,
            started,
            rows_expected,
            progress: JobProgress::default(),
        };
        catalog.put_job(&mut part.txn, job).map_err(catalog_error(open))
    })
}

/// Works on the operation at a table until it is published or something stops it.
pub(crate) fn work(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: ObjectId,
    max_duration: Option<Duration>,
) -> Result<(), Failure> {
    let engine = interpreter.session.engine.clone();
    let now = Box::new(move || engine.now_datetime());
    let definitions = open.catalog();
    let (Some(job), Some(definition)) = (definitions.jobs.get(&table.0), definitions.tables.tables.get(&table.0)) else {
        return Err(message(10638, &[&"RESUME", &"", &""]).into());
    };
    let Some(runner) = open.jobs.begin(table, interpreter.session.cancel.clone(), now) else {
        return Err(message(10637, &[&definition.name, &table.0]).into());
    };
    let mut job = (**job).clone();
    if let Some(progress) = open.jobs.state(table).progress {
        job.progress = progress;
    }
    let mut outcome = run_chunks(interpreter, open, definition, &job, &runner, max_duration);
    interpreter.session.ticket.facts.lock().percent_complete = 0.0;
    if outcome.is_err() && runner.is_to_stop() {
        interpreter.out.message(&message(1219, &[]));
        outcome = Err(Failure::run(message(596, &[])));
    }
    drop(runner);
    match &outcome {
        Ok(()) => open.jobs.forget(table),
        // Nobody can take it up again: what it left goes with it.
        Err(_) if !job.resumable => {
            interpreter.transactional(|this| take_back(this.session, open, &job).map_err(Failure::run))?;
        }
        Err(_) => {}
    }
    outcome
}

/// One chunk after another, and publication.
fn run_chunks(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    definition: &TableDef,
    job: &IndexJob,
    runner: &Runner,
    max_duration: Option<Duration>,
) -> Result<(), Failure> {
    let clock = interpreter.session.engine.config.env.clock.clone();
    let start_ns = clock.monotonic_ns();
    let party = Some(Party::session(interpreter.session.ticket.id));
    let is_simulated = interpreter.session.engine.config.env.background == BackgroundWork::Stepped;
    let redone_rows = if is_simulated { SIMULATED_REDONE_ROWS } else { OnlineOptions::default().redone_rows };
    let (lock_timeout, cancel) = (interpreter.session.lock_timeout(), Some(interpreter.session.cancel.clone()));
    let memory_bytes_max = build_memory_bytes(interpreter.session);
    let options = OnlineOptions { redone_rows, party, lock_timeout, cancel, memory_bytes_max };
    let begun = OnlineBuild::begin(&open.storage, definition, job, options);
    let mut build = begun.map_err(|error| told(interpreter.session, open, error))?;
    let stepped = step_on(interpreter, open, job, &mut build, runner, max_duration, start_ns);
    // A pause keeps what is on its way; the error that made it comes first.
    let settled = build.settle().map_err(|error| told(interpreter.session, open, error));
    runner.note(build.progress());
    stepped.and(settled)?;
    interpreter.transactional(|this| publish(this.session, open, &mut build).map_err(Failure::run))
}

/// Chunks until the side tree is nearly empty.
fn step_on(
    interpreter: &mut Interpreter<'_, '_>,
    open: &OpenDatabase,
    job: &IndexJob,
    build: &mut OnlineBuild,
    runner: &Runner,
    max_duration: Option<Duration>,
    start_ns: u64,
) -> Result<(), Failure> {
    let clock = interpreter.session.engine.config.env.clock.clone();
    loop {
        let elapsed = Duration::from_nanos(clock.monotonic_ns().saturating_sub(start_ns));
        interpreter.session.ticket.facts.lock().percent_complete = build.percent() as f32;
        if runner.note(build.progress()) {
            return Err(Failure::run(message(596, &[])));
        }
        if max_duration.is_some_and(|most| elapsed >= most) {
            interpreter.out.message(&message(3643, &[]));
            return Err(Failure::run(message(596, &[])));
        }
        interpreter.session.check()?;
        let worked_ms = job.progress.worked_ms + u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        if build.step(worked_ms).map_err(|error| told(interpreter.session, open, error))? == Step::Ready {
            return Ok(());
        }
    }
}

fn told(session: &SessionState, open: &OpenDatabase, error: BuildError) -> Failure {
    Failure::run(match error {
        BuildError::Sql(error) => error,
        BuildError::Storage(error) => session.storage_failure(open.id, error),
    })
}

/// Makes the index part of the table.
fn publish(session: &mut SessionState, open: &Arc<OpenDatabase>, build: &mut OnlineBuild) -> Result<(), SqlError> {
    let job = build.job().clone();
    session.lock(open.object_resource(job.table), LockMode::SchM, false)?;
    let caught_up = build.catch_up_all(&mut session.part(open.id)?.txn);
    caught_up.map_err(|error| told(session, open, error).error)?;
    let now = session.engine.now_datetime();
    change_catalog(session, open, |catalog, part| {
        let table = catalog.tables.tables.get(&job.table.0).ok_or_else(|| message(10673, &[]))?;
        let mut altered = (**table).clone();
        altered.indexes.push(IndexDef { ..job.index.clone() });
        altered.modified = now;
        catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))?;
        catalog.remove_job(&mut part.txn, job.table).map_err(catalog_error(open))?;
        for tree in [job.side, job.runs] {
            part.txn.drop_tree(tree).map_err(plain_error(open))?;
        }
        Ok(())
    })
}

/// Takes an operation back: its trees go, the table is as if it had never been.
pub(crate) fn take_back(session: &mut SessionState, open: &Arc<OpenDatabase>, job: &IndexJob) -> Result<(), SqlError> {
    session.lock(open.object_resource(job.table), LockMode::SchM, false)?;
    change_catalog(session, open, |catalog, part| {
        if !catalog.jobs.contains_key(&job.table.0) {
            return Ok(());
        }
        catalog.remove_job(&mut part.txn, job.table).map_err(catalog_error(open))?;
        for tree in [job.index.tree, job.side, job.runs] {
            part.txn.drop_tree(tree).map_err(plain_error(open))?;
        }
        Ok(())
    })?;
    open.jobs.forget(job.table);
    Ok(())
}
