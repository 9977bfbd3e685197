//! BULK INSERT: a file's rows into a table, in one transaction or one every BATCHSIZE rows.

use crate::api::sink::StatementKind;
use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, find_table, shown};
use crate::instance::database::OpenDatabase;
use crate::messages::message;
use crate::session::bulk::{defaults_of, refuse_temporal};
use crate::session::state::SessionState;
use std::path::Path;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, TableDef};
use thawdb_query::bulk::{BulkField, BulkOptions, BulkReader};
use thawdb_query::compile::bind_computed_columns;
use thawdb_query::exec::{BulkInsert as Load, BulkTarget};
use thawdb_storage::locks::LockMode;
use thawdb_tsql::ast::BulkInsert;
use thawdb_types::{Batch, SqlError};

/// BULK INSERT.
pub(crate) fn bulk_insert(interpreter: &mut Interpreter<'_, '_>, node: &BulkInsert) -> Result<(), Failure> {
    let options = BulkOptions::from_items(&node.options)?;
    let table = target(interpreter.session, node)?;
    let mut file = DataFile::open(interpreter.session, node, &options, &table)?;
    let mut total = 0;
    loop {
        total += interpreter.transactional(|this| load_some(this.session, node, &mut file, &options))?;
        if file.is_ended {
            break;
        }
    }
    interpreter.counted(total);
    let count = interpreter.shown_count(total);
    interpreter.send_infos();
    interpreter.out.done(StatementKind::BulkInsert, count, false);
    Ok(())
}

/// The file, and what has been read of it and not loaded yet.
struct DataFile {
    reader: BulkReader,
    /// The table's column of each kept column.
    targets: Vec<usize>,
    /// Positions of the file's columns that are kept: an identity column's values are read over without KEEPIDENTITY.
    kept: Vec<usize>,
    rest: Option<Batch>,
    is_ended: bool,
}

impl DataFile {
    fn open(session: &SessionState, node: &BulkInsert, options: &BulkOptions, table: &TableDef) -> Result<Self, SqlError> {
        let device = session.engine.config.env.device.clone();
        let field = |column: &ColumnDef| BulkField {
            name: column.name.clone(),
            sql_type: column.sql_type,
            nullable: column.nullable || (column.default.is_some() && !options.keep_nulls) || column.identity.is_some(),
        };
        // The file has no field for what a row works out by itself.
        let given: Vec<usize> = (0..table.columns.len()).filter(|at| table.columns[*at].computed.is_none()).collect();
        let fields = given.iter().map(|at| field(&table.columns[*at])).collect();
        let reader = BulkReader::open(device, Path::new(&node.file), options.file.clone(), fields)?;
        let is_kept = |at: &usize| options.keep_identity || table.columns[given[*at]].identity.is_none();
        let kept: Vec<usize> = (0..given.len()).filter(is_kept).collect();
        Ok(Self { reader, targets: kept.iter().map(|at| given[*at]).collect(), kept, rest: None, is_ended: false })
    }

    /// The next rows, at most `rows_max`; `None` at the end of the file, which is then known.
    fn next(&mut self, session: &mut SessionState, rows_max: u64) -> Result<Option<Batch>, SqlError> {
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.reader.next(session)? {
                Some(batch) => batch.project(&self.kept),
                None => {
                    self.is_ended = true;
                    return Ok(None);
                }
            },
        };
        let rows = batch.rows.min(usize::try_from(rows_max).unwrap_or(usize::MAX));
        if rows < batch.rows {
            self.rest = Some(batch.slice(rows, batch.rows - rows));
        }
        Ok(Some(batch.slice(0, rows)))
    }
}

fn target(session: &SessionState, node: &BulkInsert) -> Result<Arc<TableDef>, SqlError> {
    find_table(session, &node.table)?.ok_or_else(|| message(208, &[&shown(&node.table)]))
}

/// Locks a table against other writers: whole leaves are appended where nobody else may add.
pub(crate) fn lock_for_load(session: &mut SessionState, open: &Arc<OpenDatabase>, table: &TableDef) -> Result<(), SqlError> {
    if table.id.0 < 0 { Ok(()) } else { session.lock(open.object_resource(table.id), LockMode::X, false) }
}

/// Loads up to BATCHSIZE rows, or all; how many there were.
fn load_some(session: &mut SessionState, node: &BulkInsert, file: &mut DataFile, options: &BulkOptions) -> Result<u64, Failure> {
    let open = database_of(session, &node.table)?;
    let before = target(session, node)?;
    lock_for_load(session, &open, &before)?;
    // The table may have been changed while this waited; the file was opened for what it was.
    let table = target(session, node)?;
    if table.columns != before.columns {
        return Err(message(208, &[&shown(&node.table)]).into());
    }
    refuse_temporal(session, &table, &file.targets)?;
    let target = BulkTarget {
        targets: file.targets.clone(),
        types: file.targets.iter().map(|at| table.columns[*at].sql_type).collect(),
        defaults: defaults_of(session, &table)?,
        computed: bind_computed_columns(&table, &CompileCx::new(session, 0))?,
        keep_identity: options.keep_identity,
        keep_nulls: options.keep_nulls,
        table,
    };
    let mut load = Load::begin(target, session)?;
    let mut rows_left = options.batch_rows.unwrap_or(u64::MAX);
    while rows_left > 0 {
        let Some(batch) = file.next(session, rows_left)? else { break };
        rows_left -= batch.rows as u64;
        load.push(batch, session)?;
    }
    Ok(load.finish(session)?)
}
