//! Index operations beside the table's use: begun, worked on in chunks, paused by anything, taken up again, published.
//!
//! ```text
//! begin    Sch-M for a moment: trees, the job's record; writers know of the build from here on     one transaction
//! work     a chunk, commit, a look at cancellation, PAUSE and MAX_DURATION ...                     one a chunk, no lock held
//! publish  Sch-M for a moment: the side tree's last words, the index, the record's end             one transaction
//! ```
//! CREATE INDEX, REBUILD, DROP_EXISTING and ADD CONSTRAINT differ in what they want ([`Planned`]) and in what publishing
//! does with it; all else is one.
//!
//! 1. The job's record is in the catalog from `begin` to `publish` or `abort`; other definitions of the table are refused
//!    meanwhile (10637, [`refuse_beside_job`]).
//! 2. Whatever ends the work before publication pauses the operation: nothing needs to be written for that. One that is
//!    not resumable is taken back instead.
//!
//! Locks: the table's Sch-M at both ends, as [`low_priority`] says. Failure: 1505 for a duplicate; 9002, 1105 and others as
//! storage says them; 1219 and 596 when another session pauses or aborts; 3643 and 596 when MAX_DURATION is over.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::index::{build_memory_bytes, build_threads, check_index_name};
use crate::ddl::index_options::{BuildOptions, LowPriority};
use crate::ddl::table::{add_constraint, check_free};
use crate::ddl::{catalog_error, change_catalog, low_priority, plain_error};
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::instance::index_jobs::Runner;
use crate::messages::message;
use crate::session::state::SessionState;
use std::sync::Arc;
use std::time::Duration;
use thawdb_catalog::store::put_job;
use thawdb_catalog::{ConstraintKind, IndexDef, IndexJob, JobProgress, JobPurpose, ObjectId, TableDef};
use thawdb_device::BackgroundWork;
use thawdb_maintain::{BuildError, OnlineBuild, OnlineOptions, Step};
use thawdb_storage::TreeSpec;
use thawdb_storage::locks::{LockMode, Party};
use thawdb_tsql::ast::Span;
use thawdb_types::{SqlError, SqlType};

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

/// What an operation is to make.
pub(crate) struct Planned {
    /// The index; its tree is [`IndexDef::NO_TREE`].
    pub(crate) index: IndexDef,
    pub(crate) filegroup: u16,
    pub(crate) purpose: JobPurpose,
}

/// Finds out what a statement wants of a table as it is now.
pub(crate) type Plan<'p> = dyn Fn(&mut SessionState, &Arc<TableDef>) -> Result<Planned, SqlError> + 'p;

/// 11439 and 1917 for tables that have no operations beside their use.
pub(crate) fn refuse_where_unsupported(open: &OpenDatabase, table: &TableDef, options: &BuildOptions) -> Result<(), SqlError> {
    if open.id == TEMPDB_ID && options.resumable {
        return Err(message(11439, &[]));
    }
    let is_local = table.name.starts_with('#') && !table.name.starts_with("##");
    if is_local && options.online { Err(message(1917, &[])) } else { Ok(()) }
}

/// Makes what `plan` says, beside the table's use. `span` is the statement's, whose text is kept with the operation.
pub(crate) fn build(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    options: &BuildOptions,
    span: Span,
    plan: &Plan<'_>,
) -> Result<(), Failure> {
    refuse_where_unsupported(open, table, options)?;
    if let Some(job) = job_of(interpreter.session, open, table.id).filter(|job| !is_abandoned(open, job)) {
        let wanted = plan(interpreter.session, table)?;
        take_up_instead(interpreter, open, table, &job, &wanted, options)?;
    } else {
        let text = interpreter.text.get(span.start as usize..span.end as usize).unwrap_or_default().to_owned();
        interpreter.transactional(|this| begin(this, open, table.id, options, plan, text).map_err(Failure::run))?;
    }
    work(interpreter, open, table.id, options.max_duration, options.low_priority)
}

/// The same statement again takes the operation up (10645); another is refused (10637).
fn take_up_instead(
    interpreter: &mut Interpreter<'_, '_>,
    open: &OpenDatabase,
    table: &TableDef,
    job: &IndexJob,
    wanted: &Planned,
    options: &BuildOptions,
) -> Result<(), Failure> {
    let known = IndexDef { tree: IndexDef::NO_TREE, ..job.index.clone() };
    let is_same = options.resumable
        && job.resumable
        && (&known, job.purpose, job.fill_factor) == (&wanted.index, wanted.purpose, options.fill_factor);
    if !is_same || open.jobs.state(table.id).running {
        return Err(message(10637, &[&table.name, &table.id.0]).into());
    }
    interpreter.out.message(&message(10645, &[&table.name]));
    if options.max_dop != job.max_dop {
        interpreter.out.message(&message(10667, &[&job.max_dop, &job.max_dop]));
    }
    Ok(())
}

/// 10639, 10644 and 10670 for columns that an operation beside the table's use has no way with; 1913 and 2714 for names taken.
fn check(session: &SessionState, open: &OpenDatabase, table: &TableDef, planned: &Planned, resumable: bool) -> Result<(), SqlError> {
    let index = &planned.index;
    let name = index.name.clone().unwrap_or_default();
    let stamp = index.keys.iter().map(|key| &table.columns[key.column_index]).find(|column| column.sql_type == SqlType::RowVersion);
    if let Some(column) = stamp {
        return Err(message(10639, &[&"index", &name, &column.name]));
    }
    // Entries end in the key of their row.
    let every_key = index.keys.iter().chain(&table.rows().keys);
    let computed = every_key.map(|key| &table.columns[key.column_index]).find(|column| column.computed.is_some());
    if let Some(column) = computed.filter(|_| resumable) {
        return Err(message(10644, &[&"index", &name, &column.name]));
    }
    if let Some(column) = index.included.iter().find(|column| table.columns[**column].sql_type.is_large()) {
        return Err(message(10670, &[&"index", &name, &table.columns[*column].name]));
    }
    if planned.purpose != JobPurpose::Replace {
        check_index_name(table, &name)?;
    }
    if let (JobPurpose::Constraint { .. }, Some(catalog)) = (planned.purpose, session.definitions(open.id)) {
        check_free(&catalog, &table.schema_name, &name, &name)?;
    }
    Ok(())
}

/// Makes the trees and the record.
fn begin(
    this: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    id: ObjectId,
    options: &BuildOptions,
    plan: &Plan<'_>,
    statement: String,
) -> Result<(), SqlError> {
    // Whoever wrote the table before has ended, and whoever writes it after knows of the build.
    low_priority::lock(this.session, open.object_resource(id), LockMode::SchM, options.low_priority)?;
    refuse_beside_job(this.session, open, id)?;
    let table = this.session.table(open.id, id).ok_or_else(|| message(1088, &[&id.0]))?;
    let planned = plan(this.session, &table)?;
    check(this.session, open, &table, &planned, options.resumable)?;
    let index_id = planned.index.id;
    let spec = TreeSpec { object_id: id.0.cast_unsigned(), index_id: index_id.0.cast_unsigned(), filegroup: planned.filegroup };
    let started = this.session.engine.now_datetime();
    let rows_expected = open.counters.rows_at_most(id).unwrap_or(0);
    change_catalog(this.session, open, |catalog, part| {
        let mut tree = |packs_leaves| part.txn.create_tree_of(spec, packs_leaves).map_err(plain_error(open));
        let packs_leaves = planned.index.options.compression.packs_leaves();
        let (target, side, runs) = (tree(packs_leaves)?, tree(false)?, tree(false)?);
        let job = IndexJob {
            table: id,
            index: IndexDef { tree: target, ..planned.index },
            side,
            runs,
            statement,
            max_dop: options.max_dop,
            resumable: options.resumable,
            fill_factor: options.fill_factor,
            started,
            rows_expected,
            purpose: planned.purpose,
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
    low_priority: Option<LowPriority>,
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
    interpreter.session.ticket.facts.lock().resumable = job.resumable;
    let mut outcome = run_chunks(interpreter, open, definition, &job, &runner, (max_duration, low_priority));
    {
        let mut facts = interpreter.session.ticket.facts.lock();
        (facts.percent_complete, facts.resumable) = (0.0, false);
    }
    if outcome.is_err() && job.resumable {
        note_pause(interpreter.session, open, definition, &mut job);
    }
    let is_constraint = matches!(job.purpose, JobPurpose::Constraint { .. });
    if outcome.is_err() && runner.is_to_stop() {
        interpreter.out.message(&message(1219, &[]));
        if is_constraint {
            interpreter.out.message(&message(1750, &[]));
        }
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

/// Tells the error log of a pause, and writes down when it began, if the log has room for that: what has been done is
/// recorded already.
fn note_pause(session: &SessionState, open: &OpenDatabase, table: &TableDef, job: &mut IndexJob) {
    let now = session.engine.now_datetime();
    let name = job.index.name.clone().unwrap_or_default();
    session.engine.error_log.write(now, Some(session.ticket.id), message(10656, &[&name, &table.name]).text);
    if let Some(progress) = open.jobs.state(job.table).progress {
        job.progress = progress;
    }
    job.progress.paused = Some(now);
    let mut txn = open.storage.begin();
    txn.set_delayed_durability(true);
    // An error leaves the record as the last chunk wrote it.
    let _ = put_job(&mut txn, job).map_err(drop).and_then(|()| txn.commit().map_err(drop));
}

/// One chunk after another, and publication.
fn run_chunks(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    definition: &TableDef,
    job: &IndexJob,
    runner: &Runner,
    (max_duration, low_priority): (Option<Duration>, Option<LowPriority>),
) -> Result<(), Failure> {
    let clock = interpreter.session.engine.config.env.clock.clone();
    let start_ns = clock.monotonic_ns();
    let party = Some(Party::session(interpreter.session.ticket.id));
    let is_simulated = interpreter.session.engine.config.env.background == BackgroundWork::Stepped;
    let redone_rows = if is_simulated { SIMULATED_REDONE_ROWS } else { OnlineOptions::default().redone_rows };
    let (lock_timeout, cancel) = (interpreter.session.lock_timeout(), Some(interpreter.session.cancel.clone()));
    let memory_bytes_max = build_memory_bytes(interpreter.session);
    // Not all processors unless asked for: reading ahead and writing behind take one while chunks are on their way, and a second
    // thread of the build on two processors only waits for them (measured: 1.1 to 1.3 times as long).
    let threads = match job.max_dop {
        0 => build_threads(interpreter.session, 0).saturating_sub(1).max(1),
        asked => build_threads(interpreter.session, asked),
    };
    let options = OnlineOptions { redone_rows, party, lock_timeout, cancel, memory_bytes_max, threads };
    let begun = take_up(open, definition, job, options);
    let mut build = begun.map_err(|error| told(interpreter.session, open, error))?;
    let outcome = run_build(interpreter, open, job, &mut build, runner, (max_duration, low_priority, start_ns));
    if job.resumable && outcome.is_err() && build.is_settled() {
        build.rest();
        open.jobs.keep(job.table, build);
    }
    outcome
}

/// The build as it was kept since it was paused, or begun anew.
fn take_up(open: &OpenDatabase, definition: &TableDef, job: &IndexJob, options: OnlineOptions) -> Result<Box<OnlineBuild>, BuildError> {
    match open.jobs.take_kept(job.table).filter(|kept| kept.is_of(&open.storage, definition, job)) {
        Some(mut kept) => match kept.go_on(options) {
            Ok(()) => Ok(kept),
            Err(error) => {
                // It has not begun to go on: whoever takes it up next finds it as it was.
                open.jobs.keep(job.table, kept);
                Err(error)
            }
        },
        None => OnlineBuild::begin(&open.storage, definition, job, options).map(Box::new),
    }
}

/// Chunks and publication.
fn run_build(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    job: &IndexJob,
    build: &mut OnlineBuild,
    runner: &Runner,
    (max_duration, low_priority, start_ns): (Option<Duration>, Option<LowPriority>, u64),
) -> Result<(), Failure> {
    let stepped = step_on(interpreter, open, job, build, runner, max_duration, start_ns);
    // A pause keeps what is on its way; the error that made it comes first.
    let settled = build.settle().map_err(|error| told(interpreter.session, open, error));
    runner.note(build.progress(), build.rows_read());
    stepped.and(settled)?;
    interpreter.transactional(|this| publish(this.session, open, build, low_priority).map_err(Failure::run))
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
        if runner.note(build.progress(), build.rows_read()) {
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

/// Makes the index part of the table, in place of the one it replaces, with the constraint it enforces.
fn publish(
    session: &mut SessionState,
    open: &Arc<OpenDatabase>,
    build: &mut OnlineBuild,
    low_priority: Option<LowPriority>,
) -> Result<(), SqlError> {
    let job = build.job().clone();
    low_priority::lock(session, open.object_resource(job.table), LockMode::SchM, low_priority)?;
    let caught_up = build.catch_up_all(&mut session.part(open.id)?.txn);
    caught_up.map_err(|error| told(session, open, error).error)?;
    let now = session.engine.now_datetime();
    change_catalog(session, open, |catalog, part| {
        let table = catalog.tables.tables.get(&job.table.0).ok_or_else(|| message(10673, &[]))?;
        let mut altered = (**table).clone();
        let mut gone = vec![job.side, job.runs];
        match altered.indexes.iter_mut().find(|index| index.id == job.index.id) {
            Some(place) => {
                gone.push(place.tree);
                *place = job.index.clone();
            }
            None => {
                // Of one that was disabled only the definition was left.
                altered.disabled.retain(|index| index.id != job.index.id);
                altered.indexes.push(job.index.clone());
            }
        }
        altered.modified = now;
        if let JobPurpose::Constraint { system_named } = job.purpose {
            let (id, name) = (job.index.id, job.index.name.clone().unwrap_or_default());
            let kind = if job.index.primary_key { ConstraintKind::PrimaryKey(id) } else { ConstraintKind::Unique(id) };
            add_constraint(catalog, part, open, &altered, (name, system_named), kind, now)?;
        }
        catalog.put_table(&mut part.txn, altered).map_err(catalog_error(open))?;
        catalog.remove_job(&mut part.txn, job.table).map_err(catalog_error(open))?;
        gone.into_iter().try_for_each(|tree| part.txn.drop_tree(tree)).map_err(plain_error(open))
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
