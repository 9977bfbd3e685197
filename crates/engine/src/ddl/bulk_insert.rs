//! BULK INSERT: a file's rows into a table, in one transaction or one every BATCHSIZE rows.

use crate::api::sink::StatementKind;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, find_table, shown};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::bulk::defaults_of;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_query::bulk::load::BulkLoad;
use thawdb_query::bulk::{BulkOptions, BulkReader, LoadOptions};
use thawdb_query::context::StatementHost;
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::BulkInsert;
use thawdb_types::SqlError;

/// BULK INSERT.
pub(crate) fn bulk_insert(interpreter: &mut Interpreter<'_, '_>, node: &BulkInsert) -> Result<(), Failure> {
    let options = BulkOptions::from_ast(&node.options, &node.order)?;
    let env = interpreter.session.engine.config.env.clone();
    let table = target(interpreter.session, node)?;
    let (mut reader, targets) = BulkReader::open(&env, &node.file, &options, &table)?;
    let mut total = 0;
    loop {
        total += interpreter.transactional(|this| load_some(this.session, node, &mut reader, &targets, &options))?;
        if reader.is_ended() {
            break;
        }
    }
    interpreter.counted(total);
    let count = interpreter.shown_count(total);
    interpreter.send_infos();
    interpreter.out.done(StatementKind::BulkInsert, count, false);
    Ok(())
}

fn target(session: &SessionState, node: &BulkInsert) -> Result<Arc<TableDef>, SqlError> {
    find_table(session, &node.table)?.ok_or_else(|| message(208, &[&shown(&node.table)]))
}

/// Locks a table against other writers: whole leaves are appended where nobody else may add.
pub(crate) fn lock_for_load(session: &mut SessionState, open: &Arc<OpenDatabase>, table: &TableDef) -> Result<(), SqlError> {
    if table.id.0 < 0 { Ok(()) } else { session.lock(open.object_resource(table.id), LockMode::X, false) }
}

/// Loads up to BATCHSIZE rows, or all; how many there were.
fn load_some(
    session: &mut SessionState,
    node: &BulkInsert,
    reader: &mut BulkReader,
    targets: &[usize],
    options: &BulkOptions,
) -> Result<u64, Failure> {
    let open = database_of(session, &node.table)?;
    let before = target(session, node)?;
    lock_for_load(session, &open, &before)?;
    // The table may have been changed while this waited; the file was opened for what it was.
    let table = target(session, node)?;
    if table.columns != before.columns {
        return Err(message(208, &[&shown(&node.table)]).into());
    }
    let load_options = LoadOptions {
        keep_identity: options.keep_identity,
        keep_nulls: options.keep_nulls,
        table_locked: true,
        defaults: defaults_of(session, &table)?,
        temp_folder: session.temp_folder(),
        progress: None,
    };
    let mut load = BulkLoad::new(&table, targets, load_options, session)?;
    let mut rows_left = options.batch_rows.unwrap_or(u64::MAX);
    while let Some(batch) = reader.next_batch_within(session, &mut rows_left)? {
        load.push(&batch, session)?;
    }
    Ok(load.finish(session)?)
}
