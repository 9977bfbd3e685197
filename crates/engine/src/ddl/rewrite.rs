//! A table under a new definition: its rows go to new trees, column by column through the rules of INSERT.
//!
//! ```text
//! old definition, old trees ── SELECT expression of each new column ──► INSERT into @rewritten (new definition, new trees)
//!                                                └─ catalog: the new definition; the old trees go with the transaction
//! ```
//!
//! 1. The table is locked Sch-M by the caller: nobody reads or changes rows meanwhile.
//! 2. Everything happens in the session's transaction: an error or a crash leaves the old definition with its trees.
//! 3. Computed columns are computed, and rowversions given, anew.
//! 4. CHECK and FOREIGN KEY constraints are not looked at again: no value they speak of changes its meaning.
//!
//! Failure: what INSERT raises for a value that does not fit: 2628, 220, 8115, 245; 515 speaks of UPDATE, as SQL Server's.

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::{plain_error, put_table};
use crate::instance::database::OpenDatabase;
use crate::session::frame::Frame;
use crate::storage_error::internal;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, TableDef};
use thawdb_query::compile::compile;
use thawdb_query::exec;
use thawdb_storage::TreeSpec;
use thawdb_tsql::{ParseOptions, parse_batch};
use thawdb_types::SqlError;

/// What the new table is called while it is filled: no name a user can write.
const REWRITTEN: &str = "@rewritten$";

/// A name between brackets.
pub(crate) fn quoted(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

/// Where a new column's values come from.
pub(crate) enum Source {
    /// The old column of the same number.
    Kept,
    /// This expression, of no column.
    Value(String),
}

/// Gives the table in `open` the definition `altered`, whose trees are made here, and moves its rows. The definition with
/// its trees comes back.
pub(crate) fn rewrite(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &TableDef,
    mut altered: TableDef,
    source: impl Fn(&ColumnDef) -> Source,
) -> Result<TableDef, Failure> {
    let session = &mut *interpreter.session;
    let filegroups: Vec<_> = table.indexes.iter().map(|index| open.storage.filegroup_of(index.tree)).collect();
    for (index, filegroup) in altered.indexes.iter_mut().zip(filegroups) {
        let filegroup = filegroup.map_err(plain_error(open))?;
        let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: index.id.0.cast_unsigned(), filegroup };
        index.tree =
            session.part(open.id)?.txn.create_tree_of(spec, index.options.compression.packs_leaves()).map_err(plain_error(open))?;
    }
    altered.modified = session.engine.now_datetime();
    let altered = Arc::new(altered);
    let (mut targets, mut values) = (Vec::new(), Vec::new());
    // What a row works out by itself is worked out anew.
    let given = |column: &&ColumnDef| column.computed.is_none() && column.sql_type != thawdb_types::SqlType::RowVersion;
    for column in altered.columns.iter().filter(given) {
        targets.push(quoted(&column.name));
        values.push(match source(column) {
            Source::Value(text) => text,
            Source::Kept => {
                let old = table.columns.iter().find(|old| old.id == column.id);
                quoted(&old.ok_or_else(|| internal(format!("no values for column {}", column.name)))?.name)
            }
        });
    }
    let from = match table.name.starts_with('#') {
        true => quoted(&table.name),
        false => format!("{}.{}.{}", quoted(&open.name()), quoted(&table.schema_name), quoted(&table.name)),
    };
    let text = format!("INSERT INTO {REWRITTEN} ({}) SELECT {} FROM {from}", targets.join(", "), values.join(", "));
    let before = session.options.identity_insert.replace((open.id, table.id));
    let mut frame = Frame::default();
    // A key that two rows come to have is an error here, whatever the index does with those of INSERT.
    let mut strict = (*altered).clone();
    // The period's columns are copied as they are, and a history's rows too.
    strict.temporal = Default::default();
    strict.indexes.iter_mut().for_each(|index| index.options.ignore_dup_key = false);
    frame.table_variables.insert(REWRITTEN.to_owned(), Arc::new(strict));
    session.frames.push(frame);
    // An earlier part of the statement may have written the rows that are read here.
    session.views.lock().clear();
    let last_identity = session.last_identity;
    let moved = move_rows(interpreter, open, &altered, &text);
    let session = &mut *interpreter.session;
    session.frames.pop();
    (session.options.identity_insert, session.last_identity) = (before, last_identity);
    moved?;
    let part = session.part(open.id)?;
    for old in &table.indexes {
        part.txn.drop_tree(old.tree).map_err(plain_error(open))?;
    }
    Ok((*altered).clone())
}

/// Runs the text that moves the rows. Its plan is made under the old definition and runs under the new one, which is
/// what counters of identities and rows ask for.
fn move_rows(interpreter: &mut Interpreter<'_, '_>, open: &Arc<OpenDatabase>, altered: &TableDef, text: &str) -> Result<(), SqlError> {
    let batch = parse_batch(text, &ParseOptions { quoted_identifier: true });
    let statement = batch.statements.first().filter(|_| batch.errors.is_empty());
    let statement = statement.ok_or_else(|| internal(format!("a text of ours does not parse: {text}")))?;
    let session = &mut *interpreter.session;
    let plan = compile(statement, &CompileCx::new(session, 0)).map_err(|error| error.at_line(0))?;
    put_table(session, open, altered.clone(), &[])?;
    let run = |session: &mut crate::session::state::SessionState| {
        let mut execution = exec::run(&plan.node, session)?;
        execution.drain(session)
    };
    run(session).map_err(|mut error| {
        if error.number == 515 {
            error.text = error.text.replace("INSERT fails.", "UPDATE fails.");
        }
        error
    })
}
