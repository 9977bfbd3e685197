//! CREATE INDEX and DROP INDEX.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::constraints::{
    NewIndex, check_clause, check_key_types, check_options, filegroup_of, included_of, keys_of, options_of, says_compression,
};
use crate::ddl::index_filter::FilterReader;
use crate::ddl::index_options::{BuildOptions, Supports};
use crate::ddl::names::{database_of, find_table, is_local_temporary, shown};
use crate::ddl::online::{self, Planned};
use crate::ddl::table::{filegroup_number, heap, index_name};
use crate::ddl::{lock_for_change, plain_error, put_table, rebuild};
use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{IndexDef, IndexId, IndexKey, JobPurpose, StatisticsOrigin, TableDef};
use thawdb_maintain::{BuildError, BuildProgress, IndexBuild, IndexBuildOptions};
use thawdb_query::context::StatementHost;
use thawdb_storage::{TreeId, TreeSpec};
use thawdb_tsql::ast::{CreateIndex, DropIndex, DropIndexItem, Ident, Span};
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
        says_compression: says_compression(&node.options),
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
    let open = database_of(interpreter.session, &node.table)?;
    let missing = || message(1088, &[&shown(&node.table)]);
    let found = find_table(interpreter.session, &node.table)?.ok_or_else(missing)?;
    if node.unique && found.temporal.history_of.is_some() {
        return Err(message(13_741, &[&interpreter.session.full_name(&found)]).into());
    }
    let goes_beside = node.clustered != Some(true) && !is_local_temporary(&node.table);
    let supports = Supports { online: goes_beside, resumable: goes_beside && open.id != TEMPDB_ID };
    let options = BuildOptions::read(interpreter, &open, &node.options, "CREATE INDEX", supports)?;
    check_options(&options.rest)?;
    online::refuse_where_unsupported(&open, &found, &options)?;
    if options.resumable && !goes_beside {
        return Err(unsupported_option("RESUMABLE of a clustered index").into());
    }
    store_computed(interpreter, node)?;
    // Within a transaction an online build holds its locks to the end as an offline one does, and so it is one.
    let is_free = interpreter.session.transactions.count == 0;
    let plan = |session: &mut SessionState, table: &Arc<TableDef>| planned(session, &open, table, node, options.drop_existing);
    if options.online && goes_beside && is_free && !(keeps_large(&found, node) && !options.resumable) {
        return online::build(interpreter, &open, &found, &options, span, &plan);
    }
    interpreter.transactional(|this| {
        lock_for_change(this.session, &open, found.id)?;
        let table = this.session.table(open.id, found.id).ok_or_else(missing)?;
        let index = new_index(this.session, &table, node)?;
        if options.drop_existing {
            return replace_index(this, &open, &table, &index, options.max_dop);
        }
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

/// Whether an index keeps columns that lie apart from their rows, which an operation beside the table's use has no way with.
fn keeps_large(table: &TableDef, node: &CreateIndex) -> bool {
    let is_large = |name: &Ident| table.column_index(&name.text).is_some_and(|at| table.columns[at].sql_type.is_large());
    node.include.iter().any(is_large)
}

/// What CREATE INDEX makes beside the table's use.
fn planned(
    session: &mut SessionState,
    open: &OpenDatabase,
    table: &TableDef,
    node: &CreateIndex,
    replaces: bool,
) -> Result<Planned, SqlError> {
    refuse_beside_disabled_rows(table, "create", &node.name.text)?;
    let index = new_index(session, table, node)?;
    if replaces {
        let old = replaced(table, &index)?;
        refuse_other_keys(session, open, table, (old, &index))?;
        let own = index.filegroup.as_deref().map(|name| filegroup_number(open, Some(name)));
        let filegroup = own.unwrap_or_else(|| rebuild::filegroup_of(open, table, old))?;
        return Ok(Planned { index: replacement(old, &index), filegroup, purpose: JobPurpose::Replace });
    }
    let filegroup = filegroup_number(open, index.filegroup.as_deref())?;
    let index = index.definition(next_index_id(open, table), node.name.text.clone(), IndexDef::NO_TREE);
    Ok(Planned { index, filegroup, purpose: JobPurpose::Create })
}

/// 1987 for another index of a table whose clustered index is disabled.
fn refuse_beside_disabled_rows(table: &TableDef, action: &str, name: &str) -> Result<(), SqlError> {
    if table.rows_disabled { Err(message(1987, &[&action, &name, &"table", &table.name])) } else { Ok(()) }
}

/// The index that DROP_EXISTING means: 7999 if there is none of the name, 1925 for the clustered one, 1907 for one behind a
/// constraint that the new one would not enforce.
fn replaced<'t>(table: &'t TableDef, new: &NewIndex) -> Result<&'t IndexDef, SqlError> {
    let name = new.name.as_deref().unwrap_or_default();
    let old = table.index_named(name).ok_or_else(|| message(7999, &[&name, &table.name]))?;
    if old.id == IndexId(1) && new.clustered != Some(true) {
        return Err(message(1925, &[]));
    }
    let is_same = new.unique && new.keys == old.keys && new.included.is_empty() && new.filter.is_none();
    if (old.primary_key || old.unique_constraint) && !is_same {
        return Err(message(1907, &[&name]));
    }
    Ok(old)
}

/// The new definition under the old one's number, enforcing the constraint it enforced.
fn replacement(old: &IndexDef, new: &NewIndex) -> IndexDef {
    let made = new.definition(old.id, old.name.clone().unwrap_or_default(), IndexDef::NO_TREE);
    IndexDef { primary_key: old.primary_key, unique_constraint: old.unique_constraint, ..made }
}

/// CREATE INDEX WITH (DROP_EXISTING = ON).
fn replace_index(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    index: &NewIndex,
    max_dop: i16,
) -> Result<(), Failure> {
    let old = replaced(table, index)?.clone();
    refuse_other_keys(interpreter.session, open, table, (&old, index))?;
    let own = index.filegroup.as_deref().map(|name| filegroup_number(open, Some(name))).transpose()?;
    if index.clustered == Some(true) && old.id != IndexId(1) {
        refuse_second_clustered(table)?;
        refuse_referred(interpreter.session, open, table, old.id)?;
        // It leaves its place for that of the heap.
        let mut without = (**table).clone();
        without.indexes.retain(|known| known.id != old.id);
        without.disabled.retain(|known| known.id != old.id);
        let gone = if old.tree == IndexDef::NO_TREE { Vec::new() } else { vec![old.tree] };
        put_table(interpreter.session, open, without, &gone)?;
        let table = interpreter.session.table(open.id, table.id).ok_or_else(|| message(1088, &[&table.name]))?;
        return add_clustered(interpreter, open, &table, index, max_dop).map(drop);
    }
    if index.clustered != Some(true) {
        refuse_beside_disabled_rows(table, "create", old.name.as_deref().unwrap_or_default())?;
    }
    let mut altered = (**table).clone();
    altered.rows_disabled &= old.id != IndexId(1);
    rebuild::enable(&mut altered, |known| known.id == old.id);
    for place in altered.indexes.iter_mut().filter(|known| known.id == old.id) {
        *place = IndexDef { tree: old.tree, ..replacement(&old, index) };
    }
    rebuild::refill(interpreter.session, open, table, altered, (&[old.id], own, max_dop)).map(drop).map_err(Failure::run)
}

/// Whether foreign keys refer to an index.
fn is_referred(session: &SessionState, open: &OpenDatabase, table: &TableDef, index: IndexId) -> bool {
    let Some(catalog) = session.definitions(open.id) else { return false };
    let refers = |key: &thawdb_catalog::ForeignKeyDef| key.referenced == table.id && key.index == index;
    catalog.constraints.values().any(|constraint| constraint.foreign_key.as_ref().is_some_and(refers))
}

/// 1930 for an index that foreign keys refer to and that is to become the clustered one, under another number.
fn refuse_referred(session: &SessionState, open: &OpenDatabase, table: &TableDef, index: IndexId) -> Result<(), SqlError> {
    if is_referred(session, open, table, index) { Err(message(1930, &[])) } else { Ok(()) }
}

/// 3723 for an index that foreign keys refer to, if the new one would not do for them.
fn refuse_other_keys(
    session: &SessionState,
    open: &OpenDatabase,
    table: &TableDef,
    (old, new): (&IndexDef, &NewIndex),
) -> Result<(), SqlError> {
    let columns = |keys: &[IndexKey]| keys.iter().map(|key| key.column_index).collect::<Vec<_>>();
    let does = new.unique && new.filter.is_none() && columns(&new.keys) == columns(&old.keys);
    if does || !is_referred(session, open, table, old.id) {
        return Ok(());
    }
    Err(message(3723, &[&format!("{}.{}", table.name, old.name.as_deref().unwrap_or_default()), &"FOREIGN KEY"]))
}

/// 1902 if the table has a clustered index.
fn refuse_second_clustered(table: &TableDef) -> Result<(), SqlError> {
    if table.rows().keys.is_empty() {
        return Ok(());
    }
    Err(message(1902, &[&"table", &table.name, &table.rows().name.as_deref().unwrap_or("")]))
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
pub(crate) const MAX_DEGREE_OF_PARALLELISM: i32 = 1539;
const INDEX_CREATE_MEMORY: i32 = 1505;

/// The number the next index of a table gets.
pub(crate) fn next_index_id(open: &OpenDatabase, table: &TableDef) -> IndexId {
    let statistics = open.statistics.of(table);
    let of_statistics = statistics.iter().flat_map(|known| &known.list).map(|one| one.id);
    let last = table.every_index().map(|known| known.id.0).chain(of_statistics).max().unwrap_or(0);
    IndexId(last.max(1) + 1)
}

/// 1913 if the table has an index of this name, or statistics.
pub(crate) fn check_index_name(open: &OpenDatabase, table: &TableDef, name: &str) -> Result<(), SqlError> {
    let of_statistics = open.statistics.of(table).is_some_and(|known| {
        let named = known.named(name);
        named.is_some_and(|one| one.origin != StatisticsOrigin::Index)
    });
    if table.index_named(name).is_some() || of_statistics {
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
    if index.clustered == Some(true) {
        refuse_second_clustered(table)?;
        return add_clustered(interpreter, open, table, index, max_dop);
    }
    refuse_beside_disabled_rows(table, "create", index.name.as_deref().unwrap_or_default())?;
    let id = next_index_id(open, table);
    let name = index_name(&table.name, index, table.id, id.0);
    check_index_name(open, table, &name)?;
    let filegroup = filegroup_number(open, index.filegroup.as_deref())?;
    let spec = TreeSpec { object_id: table.id.0.cast_unsigned(), index_id: id.0.cast_unsigned(), filegroup };
    let packs_leaves = index.options.compression.packs_leaves();
    let tree = interpreter.session.part(open.id)?.txn.create_tree_of(spec, packs_leaves).map_err(plain_error(open))?;
    let mut altered = (**table).clone();
    altered.indexes.push(index.definition(id, name.clone(), tree));
    altered.modified = interpreter.session.engine.now_datetime();
    let altered = Arc::new(altered);
    fill_by(interpreter.session, open, table, &altered, altered.indexes.len() - 1, max_dop)?;
    let definition = (*altered).clone();
    put_table(interpreter.session, open, definition, &[])?;
    Ok(AddedIndex { name, id })
}

/// Fills index `position` of `table` from the rows of `source`, by as many threads as MAXDOP says; how many there were.
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

/// Turns a heap into a clustered index: rows move to a new tree, the other indexes are built anew on it, disabled ones too.
fn add_clustered(
    interpreter: &mut Interpreter<'_, '_>,
    open: &Arc<OpenDatabase>,
    table: &Arc<TableDef>,
    index: &NewIndex,
    max_dop: i16,
) -> Result<AddedIndex, Failure> {
    let name = index_name(&table.name, index, table.id, 1);
    check_index_name(open, table, &name)?;
    let own = index.filegroup.as_deref().map(|name| filegroup_number(open, Some(name))).transpose()?;
    let mut altered = (**table).clone();
    altered.indexes[0] = index.definition(IndexId(1), name.clone(), table.rows().tree);
    if !index.says_compression {
        altered.indexes[0].options.compression = table.rows().options.compression;
    }
    rebuild::enable(&mut altered, |_| true);
    rebuild::refill(interpreter.session, open, table, altered, (&[IndexId(1)], own, max_dop))?;
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
    let index = table.every_index().find(|index| index.name.as_deref().is_some_and(|name| item.name.is(name)));
    let Some(index) = index else {
        return if if_exists { Ok(()) } else { Err(missing().into()) };
    };
    if index.primary_key || index.unique_constraint {
        let kind = if index.primary_key { "PRIMARY KEY" } else { "UNIQUE KEY" };
        return Err(message(3723, &[&full, &kind]).into());
    }
    if is_referred(interpreter.session, &open, &table, index.id) {
        return Err(message(3723, &[&full, &"FOREIGN KEY"]).into());
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
    open.statistics.purge(open, table.id, &|one| one.id == id.0 && one.origin == StatisticsOrigin::Index);
    let mut altered = (**table).clone();
    if id.0 == 1 {
        // Rows of a disabled clustered index are those of the heap; its other indexes stay disabled.
        altered.indexes[0] = heap(table.rows().tree, table.rows().options.compression);
        altered.rows_disabled = false;
        return rebuild::refill(interpreter.session, open, table, altered, (&[IndexId(0)], None, 0)).map(drop).map_err(Failure::run);
    }
    let gone: Vec<TreeId> = altered.indexes.iter().filter(|index| index.id == id).map(|index| index.tree).collect();
    altered.indexes.retain(|index| index.id != id);
    altered.disabled.retain(|index| index.id != id);
    altered.modified = interpreter.session.engine.now_datetime();
    put_table(interpreter.session, open, altered, &gone).map_err(Failure::run)
}
