//! CREATE INDEX and DROP INDEX.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::constraints::{NewIndex, check_clause, check_key_types, check_options, filegroup_of, included_of, keys_of, options_of};
use crate::ddl::index_filter::FilterReader;
use crate::ddl::index_options::BuildOptions;
use crate::ddl::names::{database_of, find_table, shown};
use crate::ddl::table::{filegroup_number, index_name};
use crate::ddl::{lock_for_change, online, plain_error, put_table};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{IndexId, TableDef};
use thawdb_maintain::{BuildError, BuildProgress, IndexBuild, IndexBuildOptions};
use thawdb_query::context::StatementHost;
use thawdb_storage::{TreeId, TreeSpec};
use thawdb_tsql::ast::{CreateIndex, DropIndex, DropIndexItem, Span};
use thawdb_types::SqlError;

/// The index that CREATE INDEX asks for.
pub(crate) fn new_index(session: &SessionState, table: &TableDef, node: &CreateIndex) -> Result<NewIndex, SqlError> {
    let clustered = node.clustered.unwrap_or(false);
    let written = shown(&node.table);
    check_clause(clustered, node.unique, &node.include, node.filter.is_some(), (&node.name.text, &written), &node.options)?;
    let keys = keys_of(&table.columns, &table.name, &node.keys, "index")?;
    check_key_types(&table.columns, &table.name, &keys)?;
    let reader = FilterReader { session, table: &written, columns: &table.columns };
    Ok(NewIndex {
        name: Some(node.name.text.clone()),
        included: included_of(&table.columns, &table.name, &node.include, &keys)?,
        keys,
        unique: node.unique,
        primary_key: false,
        unique_constraint: false,
        clustered: Some(clustered),
        filegroup: filegroup_of(node.on.as_ref())?,
        filter: filter_of(&reader, node, table)?,
        options: options_of(&node.options)?,
    })
}

/// The filter, which may not name a computed column (10609).
fn filter_of(
    reader: &FilterReader<'_>,
    node: &CreateIndex,
    table: &TableDef,
) -> Result<Option<Arc<thawdb_catalog::IndexFilter>>, SqlError> {
    let Some(filter) = &node.filter else { return Ok(None) };
    let filter = reader.read(&node.name.text, filter)?;
    let computed = filter.columns().map(|at| &table.columns[at]).find(|column| column.computed.is_some());
    match computed {
        Some(column) => Err(message(10609, &[&"index", &node.name.text, &table.name, &column.name])),
        None => Ok(Some(filter)),
    }
}

/// An index that was added.
pub(crate) struct AddedIndex {
    pub(crate) name: String,
    pub(crate) id: IndexId,
}

/// CREATE INDEX.
pub(crate) fn create_index(interpreter: &mut Interpreter<'_, '_>, node: &CreateIndex, span: Span) -> Result<(), Failure> {
    if node.columnstore || node.filestream_on.is_some() {
        return Err(unsupported_option(if node.columnstore { "COLUMNSTORE" } else { "FILESTREAM_ON" }).into());
    }
    let options = BuildOptions::read(interpreter, &node.options, "CREATE INDEX")?;
    check_options(&options.rest)?;
    store_computed(interpreter, node)?;
    // Within a transaction an online build holds its locks to the end as an offline one does, and so it is one.
    if options.online && interpreter.session.transactions.count == 0 {
        return online::create_index(interpreter, node, span, &options);
    }
    interpreter.transactional(|this| {
        let open = database_of(this.session, &node.table)?;
        let missing = || message(1088, &[&shown(&node.table)]);
        let table = find_table(this.session, &node.table)?.ok_or_else(missing)?;
        lock_for_change(this.session, &open, table.id)?;
        let table = this.session.table(open.id, table.id).ok_or_else(missing)?;
        let index = new_index(this.session, &table, node)?;
        add_index_by(this, &open, &table, &index, options.max_dop).map(drop)
    })
}

/// Makes rows hold the computed columns that an index is to be over.
fn store_computed(interpreter: &mut Interpreter<'_, '_>, node: &CreateIndex) -> Result<(), Failure> {
    let Some(table) = find_table(interpreter.session, &node.table)? else { return Ok(()) };
    let named = node.keys.iter().map(|key| &key.column).chain(&node.include);
    let positions: Vec<usize> = named.filter_map(|name| table.column_index(&name.text)).collect();
    if !positions.iter().any(|at| table.columns[*at].computed.is_some()) {
        return Ok(());
    }
    interpreter.transactional(|this| {
        let open = database_of(this.session, &node.table)?;
        crate::ddl::computed::store(this, &open, &table, &positions, &node.name.text).map(drop)
    })
}

/// Threads of an index operation: MAXDOP, or the server's setting where it says nothing; never more than there are
/// processors.
pub(crate) fn build_threads(session: &SessionState, max_dop: i16) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let asked = if max_dop > 0 { i64::from(max_dop) } else { crate::views::server::setting(session, MAX_DEGREE_OF_PARALLELISM) };
    usize::try_from(asked).ok().filter(|asked| *asked > 0).map_or(processors, |asked| asked.min(processors))
}

/// Memory of an index operation: "index create memory" if it was set, else what any statement is granted.
pub(crate) fn build_memory_bytes(session: &SessionState) -> usize {
    let set_bytes = usize::try_from(crate::views::server::setting(session, INDEX_CREATE_MEMORY)).unwrap_or(0) << 10;
    let granted = session.memory_grant_bytes();
    if set_bytes == 0 { granted } else { set_bytes.min(granted) }
}

/// Numbers of settings in sys.configurations.
const MAX_DEGREE_OF_PARALLELISM: i32 = 1539;
const INDEX_CREATE_MEMORY: i32 = 1505;

/// The number the next index of a table gets.
pub(crate) fn next_index_id(table: &TableDef) -> IndexId {
    let last = table.indexes.iter().map(|known| known.id.0).max().unwrap_or(0);
    IndexId(last.max(1) + 1)
}

/// 1913 if the table has an index of this name.
pub(crate) fn check_index_name(table: &TableDef, name: &str) -> Result<(), SqlError> {
    if table.indexes.iter().any(|known| known.name.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name))) {
        return Err(message(1913, &[&name, &"table", &shown_table(table)]));
    }
    Ok(())
}

/// Builds an index and makes it part of the table.
pub(crate) fn add_index(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    index: &NewIndex,
) -> Result<AddedIndex, Failure> {
    add_index_by(interpreter, open, table, index, 0)
}

/// The same as MAXDOP says.
fn add_index_by(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    index: &NewIndex,
    max_dop: i16,
) -> Result<AddedIndex, Failure> {
    let clustered = index.clustered == Some(true);
    if clustered && !table.rows().keys.is_empty() {
        let known = table.rows().name.as_deref().unwrap_or("");
        return Err(message(1902, &[&"table", &table.name, &known]).into());
    }
    if clustered {
        return add_clustered(interpreter, open, table, index);
    }
    let id = next_index_id(table);
    let name = index_name(&table.name, index, table.id, id.0);
    check_index_name(table, &name)?;
    let filegroup = filegroup_number(open, index.filegroup.as_deref())?;
    let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: id.0.cast_unsigned(), filegroup };
    let tree = interpreter.session.part(open.id)?.txn.create_tree(spec).map_err(plain_error(open))?;
    let mut altered = (**table).clone();
    altered.indexes.push(index.definition(id, name.clone(), tree));
    altered.modified = interpreter.session.engine.now_datetime();
    let altered = Arc::new(altered);
    fill_by(interpreter.session, open, table, &altered, altered.indexes.len() - 1, max_dop)?;
    let definition = (*altered).clone();
    put_table(interpreter.session, open, definition, &[])?;
    Ok(AddedIndex { name, id })
}

/// Fills index `position` of `table` from the rows of `source`; how many there were.
pub(crate) fn fill(
    session: &mut SessionState,
    open: &Arc<OpenDatabase>,
    source: &TableDef,
    table: &Arc<TableDef>,
    position: usize,
) -> Result<u64, SqlError> {
    fill_by(session, open, source, table, position, 0)
}

/// The same as MAXDOP says.
pub(crate) fn fill_by(
    session: &mut SessionState,
    open: &Arc<OpenDatabase>,
    source: &TableDef,
    table: &Arc<TableDef>,
    position: usize,
    max_dop: i16,
) -> Result<u64, SqlError> {
    let threads = build_threads(session, max_dop);
    let options = IndexBuildOptions {
        memory_bytes_max: build_memory_bytes(session),
        temp_folder: session.temp_folder(),
        rows_expected: open.counters.rows_at_most(table.id),
    };
    // The view of the statement may be older than the lock; what is committed now and what this transaction did counts.
    let part = session.part(open.id)?;
    let view = open.storage.read_view(Some(&part.txn));
    let env = session.engine.config.env.clone();
    let cancel = session.cancel.clone();
    let part = session.part(open.id)?;
    let built = IndexBuild::new(&env, source, table, position, view, options).and_then(|mut build| {
        build.use_threads(threads)?;
        let check = &mut |_: &BuildProgress| cancel.check().map_err(|_| crate::storage_error::cancelled());
        build.run(&mut part.txn, check).map(|()| build.progress().rows_scanned)
    });
    built.map_err(|error| match error {
        BuildError::Sql(error) => error,
        BuildError::Storage(error) => session.storage_failure(open.id, error),
    })
}

/// Turns a heap into a clustered index: rows move to a new tree, the other indexes are built anew on it.
fn add_clustered(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    index: &NewIndex,
) -> Result<AddedIndex, Failure> {
    let name = index_name(&table.name, index, table.id, 1);
    if table.indexes.iter().any(|known| known.name.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(&name))) {
        return Err(message(1913, &[&name, &"table", &shown_table(table)]).into());
    }
    let filegroup = filegroup_number(open, index.filegroup.as_deref())?;
    let session = &mut *interpreter.session;
    let mut altered = (**table).clone();
    for position in 0..altered.indexes.len() {
        let id = if position == 0 { IndexId(1) } else { altered.indexes[position].id };
        let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: id.0.cast_unsigned(), filegroup };
        let tree = session.part(open.id)?.txn.create_tree(spec).map_err(plain_error(open))?;
        if position == 0 {
            altered.indexes[0] = index.definition(id, name.clone(), tree);
        } else {
            altered.indexes[position].tree = tree;
        }
    }
    altered.modified = session.engine.now_datetime();
    let altered = Arc::new(altered);
    let rows = fill(session, open, table, &altered, 0)?;
    // Rows of a clustered index that is not unique were numbered from 1; those to come go on behind them.
    open.counters.raise_row_number(open, table.id, rows + 1).map_err(|error| session.storage_failure(open.id, error))?;
    for position in 1..altered.indexes.len() {
        fill(session, open, &altered, &altered, position)?;
    }
    let definition = (*altered).clone();
    let gone: Vec<TreeId> = table.indexes.iter().map(|index| index.tree).collect();
    put_table(session, open, definition, &gone)?;
    Ok(AddedIndex { name, id: IndexId(1) })
}

fn shown_table(table: &TableDef) -> String {
    format!("{}.{}", table.schema_name, table.name)
}

/// DROP INDEX.
pub(crate) fn drop_index(interpreter: &mut Interpreter<'_, '_>, node: &DropIndex) -> Result<(), Failure> {
    node.items.iter().try_for_each(|item| interpreter.transactional(|this| drop_one(this, item, node.if_exists)))
}

fn drop_one(interpreter: &mut Interpreter<'_, '_>, item: &DropIndexItem, if_exists: bool) -> Result<(), Failure> {
    check_options(&item.options)?;
    let open = database_of(interpreter.session, &item.table)?;
    let full = format!("{}.{}", shown(&item.table), item.name.text);
    let missing = || message(3701, &[&"drop", &"index", &full]).with_state(7);
    let Some(table) = find_table(interpreter.session, &item.table)? else {
        return if if_exists { Ok(()) } else { Err(missing().into()) };
    };
    lock_for_change(interpreter.session, &open, table.id)?;
    let now = find_table(interpreter.session, &item.table)?;
    let Some(table) = now.filter(|now| now.id == table.id) else { return Err(missing().into()) };
    let index = table.indexes.iter().find(|index| index.name.as_deref().is_some_and(|name| item.name.is(name)));
    let Some(index) = index else {
        return if if_exists { Ok(()) } else { Err(missing().into()) };
    };
    if index.primary_key || index.unique_constraint {
        let kind = if index.primary_key { "PRIMARY KEY" } else { "UNIQUE KEY" };
        return Err(message(3723, &[&full, &kind]).into());
    }
    let id = index.id;
    remove_index(interpreter, &open, &table, id)
}

/// Takes an index out of its table.
pub(crate) fn remove_index(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    id: IndexId,
) -> Result<(), Failure> {
    if id.0 == 1 {
        return crate::ddl::rewrite::to_heap(interpreter, open, table);
    }
    let mut altered = (**table).clone();
    let position = altered.indexes.iter().position(|index| index.id == id).ok_or_else(|| message(3701, &[&"drop", &"index", &id.0]))?;
    let index = altered.indexes.remove(position);
    altered.modified = interpreter.session.engine.now_datetime();
    put_table(interpreter.session, open, altered, &[index.tree]).map_err(Failure::run)
}
