//! CREATE TABLE and the table of SELECT INTO.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::columns::{COLUMNS_MAX, NewColumn, define};
use crate::ddl::compression;
use crate::ddl::constraints::{NewIndex, filegroup_of, inline_index, key_constraint};
use crate::ddl::index_filter::FilterReader;
use crate::ddl::names::{database_of, is_local_temporary, schema_for_new, shown};
use crate::ddl::rules::{NewRule, rule_of, rules_of};
use crate::ddl::temporary::keep_checks;
use crate::ddl::{catalog_error, change_catalog, plain_error, temporal};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported, unsupported_option};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{
    ColumnDef, Compression, ConstraintDef, ConstraintKind, DatabaseCatalog, IndexDef, IndexId, IndexOptions, ObjectId, Period, SchemaId,
    TableDef, Temporal,
};
use thawdb_storage::{TreeSpec, Txn};
use thawdb_tsql::ast::{ColumnDefinition, ColumnKind, ConstraintKind as ConstraintSyntax, CreateTable, ObjectName, TableBody};
use thawdb_types::{SqlError, SqlType};

/// A table as its clauses describe it, before it has numbers and trees.
pub(crate) struct NewTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<ColumnDef>,
    pub(crate) indexes: Vec<NewIndex>,
    /// Name given to the DEFAULT of each column that has one.
    pub(crate) default_names: Vec<Option<String>>,
    pub(crate) filegroup: Option<String>,
    /// DATA_COMPRESSION of the table.
    pub(crate) compression: Compression,
    /// PERIOD FOR SYSTEM_TIME.
    pub(crate) period: Option<Period>,
    /// CHECK and FOREIGN KEY constraints, added once the table is there.
    pub(crate) rules: Vec<NewRule>,
}

/// CREATE TABLE.
pub(crate) fn create_table(interpreter: &mut Interpreter<'_, '_>, node: &CreateTable) -> Result<(), Failure> {
    if node.as_query.is_some() || node.flavor.is_some() {
        return Err(unsupported("CREATE TABLE AS").into());
    }
    if node.filestream_on.is_some() {
        return Err(unsupported_option("FILESTREAM_ON").into());
    }
    let (versioning, options) = temporal::versioning_of(&node.options)?;
    let compression = compression::of_table(&options)?;
    interpreter.transactional(|this| {
        let mut new = describe(this.session, &node.name.name.text, &node.body)?;
        new.filegroup = filegroup_of(node.on.as_ref())?;
        new.compression = compression;
        let rules = std::mem::take(&mut new.rules);
        let temporary = is_local_temporary(&node.name);
        let table = add_table(this.session, &node.name, new)?;
        let versioning = versioning.flatten();
        if temporary {
            if versioning.is_some() {
                return Err(message(13_568, &[&table.name]).into());
            }
            return keep_checks(this.session, &table, &rules).map_err(Failure::run);
        }
        let open = database_of(this.session, &node.name)?;
        for rule in &rules {
            this.add_rule(&open, &table, rule, true).map_err(|mut failure| {
                failure.error = failure.error.at_line(rule.line);
                failure
            })?;
        }
        match versioning {
            Some(clause) => this.turn_versioning_on(&open, &table, &clause),
            None => Ok(()),
        }
    })
}

/// Makes the table of SELECT INTO: a heap with the query's columns.
pub(crate) fn create_for_select_into(
    interpreter: &mut Interpreter<'_, '_>,
    name: &ObjectName,
    columns: &[ColumnDef],
) -> Result<Arc<TableDef>, Failure> {
    let new = NewTable {
        name: name.name.text.clone(),
        columns: columns.to_vec(),
        indexes: Vec::new(),
        default_names: vec![None; columns.len()],
        filegroup: None,
        compression: Compression::None,
        period: None,
        rules: Vec::new(),
    };
    check_column_names(&new)?;
    add_table(interpreter.session, name, new).map_err(Failure::run)
}

/// Reads the clauses of a table.
pub(crate) fn describe(session: &SessionState, name: &str, body: &TableBody) -> Result<NewTable, SqlError> {
    if body.columns.len() > COLUMNS_MAX {
        return Err(message(1702, &[&body.columns[COLUMNS_MAX].name.text, &name, &COLUMNS_MAX]));
    }
    let mut columns = Vec::with_capacity(body.columns.len());
    let ordinal = |at: usize| i32::try_from(at + 1).expect("at most 1,024");
    let is_computed = |column: &ColumnDefinition| matches!(column.kind, ColumnKind::Computed(_));
    let mut known: Vec<ColumnDef> = Vec::with_capacity(body.columns.len());
    for (at, column) in body.columns.iter().enumerate().filter(|(_, column)| !is_computed(column)) {
        columns.push(define(session, name, &[], column, ordinal(at))?);
        known.push(columns[columns.len() - 1].definition.clone());
    }
    // Computed columns may name columns that come after them.
    for (at, column) in body.columns.iter().enumerate().filter(|(_, column)| is_computed(column)) {
        let new = define(session, name, &known, column, ordinal(at))?;
        known.push(new.definition.clone());
        columns.insert(at, new);
    }
    let default_names = columns.iter().map(|c| c.syntax.default.as_ref().and_then(|d| d.name.as_ref()).map(|n| n.text.clone())).collect();
    let definitions: Vec<ColumnDef> = columns.iter().map(|c| c.definition.clone()).collect();
    let period = temporal::period_of(body, &definitions)?;
    let reader = FilterReader { session, table: name, columns: &definitions };
    let indexes = describe_indexes(&reader, body, &columns)?;
    let mut new = NewTable {
        name: name.to_owned(),
        columns: definitions,
        indexes,
        default_names,
        filegroup: None,
        compression: Compression::None,
        period,
        rules: rules_of(body),
    };
    check_column_names(&new)?;
    check_row_size(&new)?;
    if new.columns.iter().filter(|c| c.identity.is_some()).count() > 1 {
        return Err(message(2744, &[&name]));
    }
    check_keys(&mut new, &columns)?;
    store_indexed(session, &mut new)?;
    check_row_versions(&new.columns, name)?;
    Ok(new)
}

/// 2738 for a second rowversion.
pub(crate) fn check_row_versions(columns: &[ColumnDef], table: &str) -> Result<(), SqlError> {
    match columns.iter().filter(|column| column.sql_type == SqlType::RowVersion).nth(1) {
        Some(second) => Err(message(2738, &[&table, &second.name])),
        None => Ok(()),
    }
}

/// Makes rows hold the computed columns that are indexed.
fn store_indexed(session: &SessionState, new: &mut NewTable) -> Result<(), SqlError> {
    let definitions = new.columns.clone();
    for index in &new.indexes {
        let shown = index.name.clone().unwrap_or_default();
        for at in index.keys.iter().map(|key| key.column_index).chain(index.included.iter().copied()) {
            crate::ddl::computed::check_indexable(session, (&new.name, &definitions), at, &shown)?;
            if let Some(computed) = &mut new.columns[at].computed {
                computed.stored = true;
            }
        }
    }
    Ok(())
}

/// Bytes of a row in a page.
const ROW_BYTES_MAX: usize = 8_060;

/// 1701 if the columns of fixed length alone are longer than a row may be.
fn check_row_size(new: &NewTable) -> Result<(), SqlError> {
    let bytes = |column: &ColumnDef| match column.sql_type {
        SqlType::Char { length, .. } | SqlType::Binary { length } => usize::from(length),
        SqlType::NChar { length, .. } => 2 * usize::from(length),
        SqlType::Bit => 0,
        other => other.fixed_bytes().unwrap_or(0),
    };
    let bits = new.columns.iter().filter(|column| column.sql_type == SqlType::Bit).count();
    // A row's header, the count of its columns, and a bit for each that says whether it is NULL.
    let overhead = 6 + new.columns.len().div_ceil(8);
    let least = overhead + bits.div_ceil(8) + new.columns.iter().map(bytes).sum::<usize>();
    if least > ROW_BYTES_MAX { Err(message(1701, &[&new.name, &least, &overhead, &ROW_BYTES_MAX])) } else { Ok(()) }
}

fn check_column_names(new: &NewTable) -> Result<(), SqlError> {
    for (at, column) in new.columns.iter().enumerate() {
        if new.columns[..at].iter().any(|earlier| earlier.name.eq_ignore_ascii_case(&column.name)) {
            return Err(message(2705, &[&column.name, &new.name]));
        }
    }
    Ok(())
}

fn describe_indexes(reader: &FilterReader<'_>, body: &TableBody, columns: &[NewColumn<'_>]) -> Result<Vec<NewIndex>, SqlError> {
    let (table, definitions) = (reader.table, reader.columns);
    let mut indexes = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        for constraint in column.syntax.constraints.iter().filter(|constraint| rule_of(constraint, None).is_none()) {
            let line = constraint.span.line;
            let made = constraint_index(definitions, table, constraint, Some(at)).map_err(|error| error.at_line(line))?;
            indexes.push(made);
        }
        if let Some(index) = &column.syntax.index {
            indexes.push(inline_index(reader, index, Some(at))?);
        }
    }
    for constraint in body.constraints.iter().filter(|constraint| rule_of(constraint, None).is_none()) {
        let line = constraint.span.line;
        indexes.push(constraint_index(definitions, table, constraint, None).map_err(|error| error.at_line(line))?);
    }
    for index in &body.indexes {
        indexes.push(inline_index(reader, index, None)?);
    }
    Ok(indexes)
}

/// The index behind a constraint; constraints without one are not built.
pub(crate) fn constraint_index(
    columns: &[ColumnDef],
    table: &str,
    constraint: &thawdb_tsql::ast::TableConstraint,
    at_column: Option<usize>,
) -> Result<NewIndex, SqlError> {
    match &constraint.kind {
        ConstraintSyntax::PrimaryKey(clause) => key_constraint(columns, table, constraint.name.as_ref(), clause, true, at_column),
        ConstraintSyntax::Unique(clause) => key_constraint(columns, table, constraint.name.as_ref(), clause, false, at_column),
        ConstraintSyntax::ForeignKey(_) => Err(unsupported_option("FOREIGN KEY")),
        ConstraintSyntax::Check { .. } => Err(unsupported_option("CHECK")),
        ConstraintSyntax::Default { .. } => Err(message(142, &[&"DEFAULT"])),
        ConstraintSyntax::Connection(_) => Err(unsupported_option("CONNECTION")),
    }
}

/// One primary key (8110), one clustered index (8112), no NULL in the primary key (8111).
fn check_keys(new: &mut NewTable, columns: &[NewColumn<'_>]) -> Result<(), SqlError> {
    if new.indexes.iter().filter(|index| index.primary_key).count() > 1 {
        return Err(message(8110, &[&new.name]));
    }
    if new.indexes.iter().filter(|index| index.clustered == Some(true)).count() > 1 {
        return Err(message(8112, &[&new.name]));
    }
    for key in new.indexes.iter().filter(|index| index.primary_key).flat_map(|index| &index.keys) {
        if columns[key.column_index].explicitly_nullable {
            return Err(message(8111, &[&new.name]));
        }
        let column = &new.columns[key.column_index];
        if column.computed.as_ref().is_some_and(|computed| !computed.persisted || column.nullable) {
            return Err(message(1711, &[&column.name, &new.name]));
        }
        new.columns[key.column_index].nullable = false;
    }
    let taken = new.indexes.iter().any(|index| index.clustered == Some(true));
    for index in &mut new.indexes {
        // A primary key is clustered unless it says otherwise or another index is.
        index.clustered = Some(index.clustered.unwrap_or(index.primary_key && !taken));
    }
    Ok(())
}

/// Makes a described table, temporary or not.
pub(crate) fn add_table(session: &mut SessionState, name: &ObjectName, new: NewTable) -> Result<Arc<TableDef>, SqlError> {
    if is_local_temporary(name) {
        return crate::ddl::temporary::add_local(session, new);
    }
    let open = database_of(session, name)?;
    let global = name.name.text.starts_with("##");
    let schema = schema_for_new(session, name);
    let now = session.engine.now_datetime();
    let text = shown(name);
    let table = change_catalog(session, &open, |catalog, part| {
        let schema = catalog.schema(&schema).ok_or_else(|| message(2760, &[&schema]))?.clone();
        check_free(catalog, &schema.name, &new.name, &text)?;
        let id = catalog.take_object_id();
        let table = build(&open, &mut part.txn, id, (schema.id, &schema.name), &new, now, |_| true)?;
        name_constraints(catalog, part, &open, &new, &table, now)?;
        let table = catalog.constraints_named(table);
        catalog.put_table(&mut part.txn, table.clone()).map_err(catalog_error(&open))?;
        Ok(Arc::new(table))
    })?;
    if global {
        session.global_temp.push(table.id);
    }
    Ok(table)
}

/// 2714 if the schema has an object of this name.
pub(crate) fn check_free(catalog: &DatabaseCatalog, schema: &str, name: &str, shown: &str) -> Result<(), SqlError> {
    let taken = catalog.tables.table(schema, name).is_some() || catalog.constraint(schema, name).is_some();
    if taken || catalog.object(schema, name).is_some() {
        return Err(message(2714, &[&shown]).with_state(6));
    }
    Ok(())
}

/// Makes the trees of a table and its definition. `checked` is asked for each index name.
pub(crate) fn build(
    open: &OpenDatabase,
    txn: &mut Txn,
    id: ObjectId,
    schema: (SchemaId, &str),
    new: &NewTable,
    now: i64,
    checked: impl Fn(&str) -> bool,
) -> Result<TableDef, SqlError> {
    let mut make_tree = |index: IndexId, filegroup: &Option<String>, compression: Compression| {
        let filegroup = filegroup_number(open, filegroup.as_deref().or(new.filegroup.as_deref()))?;
        let spec = TreeSpec { object_id: id.0.cast_unsigned(), index_id: index.0.cast_unsigned(), filegroup };
        txn.create_tree_of(spec, compression.packs_leaves()).map_err(plain_error(open))
    };
    let mut indexes: Vec<IndexDef> = Vec::with_capacity(new.indexes.len() + 1);
    if let Some(clustered) = new.indexes.iter().find(|index| index.clustered == Some(true)) {
        let compression = if clustered.says_compression { clustered.options.compression } else { new.compression };
        let tree = make_tree(IndexId(1), &clustered.filegroup, compression)?;
        let mut definition = clustered.definition(IndexId(1), index_name(&new.name, clustered, id, 1), tree);
        definition.options.compression = compression;
        indexes.push(definition);
    } else {
        let tree = make_tree(IndexId(0), &None, new.compression)?;
        indexes.push(heap(tree, new.compression));
    }
    for index in new.indexes.iter().filter(|index| index.clustered != Some(true)) {
        let number = IndexId(i32::try_from(indexes.len()).expect("few indexes") + 1);
        let name = index_name(&new.name, index, id, number.0);
        if indexes.iter().any(|known| known.name.as_deref().is_some_and(|k| k.eq_ignore_ascii_case(&name))) || !checked(&name) {
            return Err(message(1913, &[&name, &"table", &new.name]));
        }
        let tree = make_tree(number, &index.filegroup, index.options.compression)?;
        indexes.push(index.definition(number, name, tree));
    }
    Ok(TableDef {
        database: open.id,
        id,
        schema: schema.0,
        schema_name: schema.1.to_owned(),
        name: new.name.clone(),
        columns: new.columns.clone(),
        indexes,
        lock_escalation: Default::default(),
        disabled: Vec::new(),
        rows_disabled: false,
        temporal: Temporal { period: new.period, ..Temporal::default() },
        building: None,
        created: now,
        modified: now,
    })
}

/// The index 0 of a table without a clustered index.
pub(crate) fn heap(tree: thawdb_storage::TreeId, compression: Compression) -> IndexDef {
    IndexDef {
        id: IndexId(0),
        name: None,
        keys: Vec::new(),
        included: Vec::new(),
        unique: false,
        primary_key: false,
        unique_constraint: false,
        filter: None,
        options: IndexOptions { compression, ..IndexOptions::default() },
        tree,
    }
}

/// The name given, or one made up as SQL Server does: `PK__table__` and sixteen hexadecimal digits.
pub(crate) fn index_name(table: &str, index: &NewIndex, id: ObjectId, number: i32) -> String {
    match &index.name {
        Some(name) => name.clone(),
        None => system_name(if index.primary_key { "PK" } else { "UQ" }, table, id, number),
    }
}

/// `PK__Votes__35BCFE0A00000001`: kind, the table's first characters, its number and the part's.
pub(crate) fn system_name(kind: &str, table: &str, id: ObjectId, part: i32) -> String {
    let start: String = table.chars().take(8).collect();
    format!("{kind}__{start}__{:08X}{part:08X}", id.0)
}

/// Number of a filegroup of the database: 1921 if it has none of the name.
pub(crate) fn filegroup_number(open: &OpenDatabase, name: Option<&str>) -> Result<u16, SqlError> {
    let record = open.record();
    let Some(name) = name.filter(|name| !name.eq_ignore_ascii_case("default")) else {
        return Ok(crate::ddl::filegroups::default_of(&record));
    };
    let number = crate::ddl::filegroups::number_of(&record, name).ok_or_else(|| message(1921, &[&"filegroup", &name]))?;
    let has_files = record.files.iter().any(|file| file.kind == thawdb_storage::FileKind::Rows { filegroup: number });
    if has_files { Ok(number) } else { Err(message(622, &[&name])) }
}

/// Records the constraints of a new table as objects of their own.
fn name_constraints(
    catalog: &mut DatabaseCatalog,
    part: &mut crate::session::transaction::DatabaseTxn,
    open: &OpenDatabase,
    new: &NewTable,
    table: &TableDef,
    now: i64,
) -> Result<(), SqlError> {
    for index in table.indexes.iter().filter(|index| index.primary_key || index.unique_constraint) {
        let name = index.name.clone().expect("a constraint's index has a name");
        let given = new.indexes.iter().any(|n| n.name.as_deref() == Some(name.as_str()));
        let kind = if index.primary_key { ConstraintKind::PrimaryKey(index.id) } else { ConstraintKind::Unique(index.id) };
        add_constraint(catalog, part, open, table, (name, !given), kind, now)?;
    }
    for (column, given) in table.columns.iter().zip(&new.default_names).filter(|(column, _)| column.default.is_some()) {
        let name = given.clone().unwrap_or_else(|| system_name("DF", &table.name, table.id, column.id.0));
        add_constraint(catalog, part, open, table, (name, given.is_none()), ConstraintKind::Default(column.id), now)?;
    }
    Ok(())
}

/// Records one constraint: 2714 if its name is taken. `name` is the name and whether the engine made it up.
pub(crate) fn add_constraint(
    catalog: &mut DatabaseCatalog,
    part: &mut crate::session::transaction::DatabaseTxn,
    open: &OpenDatabase,
    table: &TableDef,
    name: (String, bool),
    kind: ConstraintKind,
    now: i64,
) -> Result<(), SqlError> {
    check_free(catalog, &table.schema_name, &name.0, &name.0)?;
    let id = catalog.take_object_id();
    let constraint =
        ConstraintDef { id, name: name.0, table: table.id, kind, system_named: name.1, created: now, check: None, foreign_key: None };
    catalog.put_constraint(&mut part.txn, constraint).map_err(catalog_error(open))
}
