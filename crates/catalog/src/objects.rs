//! What a database's catalog holds beside tables: schemas, constraints, users, properties; and its records' formats.

use crate::defs::{
    ColumnDef, ColumnId, Compression, ComputedDef, DatabaseId, IdentityDef, IndexDef, IndexId, IndexKey, IndexOptions, LockEscalation,
    ObjectId, SchemaId, TableDef,
};
use crate::filter::{read_filter, write_filter};
use crate::record::{Reader, RecordError, Writer};
use crate::temporal::{Temporal, read_temporal, write_temporal};
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_storage::TreeId;

/// Format of all records of this version.
pub(crate) const RECORD_VERSION: u8 = 1;
/// Format of records that hold indexes. 2: filters by their tests, options of indexes, LOCK_ESCALATION. 3: computed columns,
/// types of users; disabled indexes; of an index operation what it makes. 4: DATA_COMPRESSION of indexes. 5: what is temporal
/// about tables.
pub(crate) const TABLE_VERSION: u8 = 5;

/// A schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaDef {
    /// Its number.
    pub id: SchemaId,
    /// Its name.
    pub name: String,
    /// The user who owns it.
    pub owner: i32,
}

/// What a constraint asserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstraintKind {
    /// PRIMARY KEY, backed by an index.
    PrimaryKey(IndexId),
    /// UNIQUE, backed by an index.
    Unique(IndexId),
    /// DEFAULT of a column.
    Default(ColumnId),
    /// CHECK: its details are in [`ConstraintDef::check`].
    Check,
    /// FOREIGN KEY: its details are in [`ConstraintDef::foreign_key`].
    ForeignKey,
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDef {
    /// The column it was written at, if it was.
    pub column: Option<ColumnId>,
    /// The condition, as sys.check_constraints shows it.
    pub definition: String,
    /// NOCHECK CONSTRAINT.
    pub disabled: bool,
    /// Rows exist that were never checked.
    pub not_trusted: bool,
}

/// What happens to referring rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each variant is the action of its name
pub enum ReferentialAction {
    NoAction = 0,
    Cascade = 1,
    SetNull = 2,
    SetDefault = 3,
}

/// A FOREIGN KEY constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeyDef {
    /// Referring columns.
    pub columns: Vec<ColumnId>,
    /// The table referred to.
    pub referenced: ObjectId,
    /// Its columns, in the order of `columns`.
    pub referenced_columns: Vec<ColumnId>,
    /// Its unique index over them.
    pub index: IndexId,
    /// ON DELETE.
    pub on_delete: ReferentialAction,
    /// ON UPDATE.
    pub on_update: ReferentialAction,
    /// NOCHECK CONSTRAINT.
    pub disabled: bool,
    /// Rows exist that were never checked.
    pub not_trusted: bool,
}

/// A constraint: an object of its own, with its table as parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintDef {
    /// Its number among the database's objects.
    pub id: ObjectId,
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: ObjectId,
    /// What it asserts.
    pub kind: ConstraintKind,
    /// Whether the engine made the name up.
    pub system_named: bool,
    /// Creation, as in `TableDef`.
    pub created: i64,
    /// Of a CHECK.
    pub check: Option<CheckDef>,
    /// Of a FOREIGN KEY.
    pub foreign_key: Option<ForeignKeyDef>,
}

/// A user or role of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDef {
    /// principal_id.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// sys.database_principals.type: `S` SQL user, `R` role.
    pub kind: u8,
    /// Security identifier of its login, if any.
    pub sid: Option<Vec<u8>>,
    /// Its default schema, if any.
    pub default_schema: Option<String>,
    /// Fixed roles cannot be dropped.
    pub fixed: bool,
    /// Creation, as in `TableDef`.
    pub created: i64,
    /// Who owns it, if it is a role.
    pub owner: i32,
}

/// Format of users' records: 1 had no owner.
const USER_VERSION: u8 = 2;
/// dbo, who owns what nobody else does.
pub(crate) const DBO: i32 = 1;

/// Properties of a database by upper-case name (`RECOVERY` = `FULL`), as ALTER DATABASE SET records them.
pub type Properties = BTreeMap<String, String>;

pub(crate) fn write_schema(schema: &SchemaDef) -> Vec<u8> {
    let mut w = Writer::new(RECORD_VERSION);
    w.i32(schema.id.0).text(&schema.name).i32(schema.owner);
    w.finish()
}

pub(crate) fn read_schema(record: &[u8]) -> Result<SchemaDef, RecordError> {
    let mut r = Reader::new(record, RECORD_VERSION)?;
    let schema = SchemaDef { id: SchemaId(r.i32()?), name: r.text()?, owner: r.i32()? };
    r.finish().map(|()| schema)
}

pub(crate) fn write_constraint(constraint: &ConstraintDef) -> Vec<u8> {
    let (tag, part) = match constraint.kind {
        ConstraintKind::PrimaryKey(index) => (1, index.0),
        ConstraintKind::Unique(index) => (2, index.0),
        ConstraintKind::Default(column) => (3, column.0),
        ConstraintKind::Check => (4, 0),
        ConstraintKind::ForeignKey => (5, 0),
    };
    let mut w = Writer::new(RECORD_VERSION);
    w.i32(constraint.id.0).text(&constraint.name).i32(constraint.table.0).u8(tag).i32(part);
    w.flag(constraint.system_named).i64(constraint.created);
    if let Some(check) = &constraint.check {
        w.i32(check.column.map_or(0, |column| column.0)).text(&check.definition).flag(check.disabled).flag(check.not_trusted);
    }
    if let Some(key) = &constraint.foreign_key {
        w.count(key.columns.len());
        for (own, referenced) in key.columns.iter().zip(&key.referenced_columns) {
            w.i32(own.0).i32(referenced.0);
        }
        w.i32(key.referenced.0).i32(key.index.0).u8(key.on_delete as u8).u8(key.on_update as u8);
        w.flag(key.disabled).flag(key.not_trusted);
    }
    w.finish()
}

fn read_check(r: &mut Reader<'_>) -> Result<CheckDef, RecordError> {
    let (column, definition) = (r.i32()?, r.text()?);
    let column = (column != 0).then_some(ColumnId(column));
    Ok(CheckDef { column, definition, disabled: r.flag()?, not_trusted: r.flag()? })
}

fn read_action(r: &mut Reader<'_>) -> Result<ReferentialAction, RecordError> {
    Ok(match r.u8()? {
        0 => ReferentialAction::NoAction,
        1 => ReferentialAction::Cascade,
        2 => ReferentialAction::SetNull,
        3 => ReferentialAction::SetDefault,
        other => return Err(RecordError(format!("referential action {other}"))),
    })
}

fn read_foreign_key(r: &mut Reader<'_>) -> Result<ForeignKeyDef, RecordError> {
    let pairs = r.list(|r| Ok((ColumnId(r.i32()?), ColumnId(r.i32()?))))?;
    let (columns, referenced_columns) = pairs.into_iter().unzip();
    let (referenced, index) = (ObjectId(r.i32()?), IndexId(r.i32()?));
    let (on_delete, on_update) = (read_action(r)?, read_action(r)?);
    let (disabled, not_trusted) = (r.flag()?, r.flag()?);
    Ok(ForeignKeyDef { columns, referenced, referenced_columns, index, on_delete, on_update, disabled, not_trusted })
}

pub(crate) fn read_constraint(record: &[u8]) -> Result<ConstraintDef, RecordError> {
    let mut r = Reader::new(record, RECORD_VERSION)?;
    let (id, name, table) = (ObjectId(r.i32()?), r.text()?, ObjectId(r.i32()?));
    let kind = match (r.u8()?, r.i32()?) {
        (1, index) => ConstraintKind::PrimaryKey(IndexId(index)),
        (2, index) => ConstraintKind::Unique(IndexId(index)),
        (3, column) => ConstraintKind::Default(ColumnId(column)),
        (4, _) => ConstraintKind::Check,
        (5, _) => ConstraintKind::ForeignKey,
        (tag, _) => return Err(RecordError(format!("constraint of tag {tag}"))),
    };
    let (system_named, created) = (r.flag()?, r.i64()?);
    let check = if kind == ConstraintKind::Check { Some(read_check(&mut r)?) } else { None };
    let foreign_key = if kind == ConstraintKind::ForeignKey { Some(read_foreign_key(&mut r)?) } else { None };
    let constraint = ConstraintDef { id, name, table, kind, system_named, created, check, foreign_key };
    r.finish().map(|()| constraint)
}

pub(crate) fn write_user(user: &UserDef) -> Vec<u8> {
    let mut w = Writer::new(USER_VERSION);
    w.i32(user.id).text(&user.name).u8(user.kind).flag(user.sid.is_some());
    if let Some(sid) = &user.sid {
        w.bytes(sid);
    }
    w.optional_text(user.default_schema.as_deref()).flag(user.fixed).i64(user.created).i32(user.owner);
    w.finish()
}

pub(crate) fn read_user(record: &[u8]) -> Result<UserDef, RecordError> {
    let mut r = Reader::of_versions(record, 1, USER_VERSION)?;
    let (id, name, kind) = (r.i32()?, r.text()?, r.u8()?);
    let sid = if r.flag()? { Some(r.bytes()?.to_vec()) } else { None };
    let (default_schema, fixed, created) = (r.optional_text()?, r.flag()?, r.i64()?);
    let owner = if r.version() > 1 { r.i32()? } else { DBO };
    r.finish().map(|()| UserDef { id, name, kind, sid, default_schema, fixed, created, owner })
}

pub(crate) fn write_properties(properties: &Properties) -> Vec<u8> {
    let mut w = Writer::new(RECORD_VERSION);
    w.count(properties.len());
    for (name, value) in properties {
        w.text(name).text(value);
    }
    w.finish()
}

pub(crate) fn read_properties(record: &[u8]) -> Result<Properties, RecordError> {
    let mut r = Reader::new(record, RECORD_VERSION)?;
    let pairs = r.list(|r| Ok((r.text()?, r.text()?)))?;
    r.finish().map(|()| pairs.into_iter().collect())
}

pub(crate) fn write_column(w: &mut Writer, column: &ColumnDef) {
    w.i32(column.id.0).text(&column.name).sql_type(&column.sql_type).flag(column.nullable);
    w.flag(column.identity.is_some());
    if let Some(identity) = column.identity {
        w.i64(identity.seed).i64(identity.increment);
    }
    w.optional_text(column.default.as_deref()).optional_text(column.default_name.as_deref());
    w.optional_text(column.computed.as_ref().map(|computed| computed.definition.as_str()));
    if let Some(computed) = &column.computed {
        w.flag(computed.persisted).flag(computed.stored);
    }
    w.i32(column.user_type.map_or(0, |id| id.0));
}

/// Reads a column; formats before `extended` ones know no computed columns.
pub(crate) fn read_column(r: &mut Reader<'_>, extended: bool) -> Result<ColumnDef, RecordError> {
    let (id, name, sql_type, nullable) = (ColumnId(r.i32()?), r.text()?, r.sql_type()?, r.flag()?);
    let identity = if r.flag()? { Some(IdentityDef { seed: r.i64()?, increment: r.i64()? }) } else { None };
    let (default, default_name) = (r.optional_text()?, r.optional_text()?);
    let computed = match if extended { r.optional_text()? } else { None } {
        None => None,
        Some(definition) => Some(ComputedDef { definition, persisted: r.flag()?, stored: r.flag()? }),
    };
    let user_type = if extended { Some(r.i32()?).filter(|id| *id != 0).map(ObjectId) } else { None };
    Ok(ColumnDef { id, name, sql_type, nullable, identity, default, default_name, computed, user_type })
}

pub(crate) fn write_index(w: &mut Writer, index: &IndexDef) {
    w.i32(index.id.0).optional_text(index.name.as_deref()).count(index.keys.len());
    for key in &index.keys {
        w.count(key.column_index).flag(key.descending);
    }
    w.count(index.included.len());
    for &column_index in &index.included {
        w.count(column_index);
    }
    w.flag(index.unique).flag(index.primary_key).flag(index.unique_constraint);
    w.flag(index.filter.is_some());
    if let Some(filter) = &index.filter {
        write_filter(w, filter);
    }
    let options = &index.options;
    w.flag(options.ignore_dup_key).u8(options.fill_factor).flag(options.pad_index);
    w.flag(options.allow_row_locks).flag(options.allow_page_locks).flag(options.sequential_key);
    w.u8(options.compression as u8);
    w.u64(index.tree.0);
}

/// Reads what `write_index` wrote into a record of [`TABLE_VERSION`], or of format 1, which had no options.
pub(crate) fn read_index(r: &mut Reader<'_>) -> Result<IndexDef, RecordError> {
    let (id, name) = (IndexId(r.i32()?), r.optional_text()?);
    let keys = r.list(|r| Ok(IndexKey { column_index: r.count()?, descending: r.flag()? }))?;
    let included = r.list(Reader::count)?;
    let (unique, primary_key, unique_constraint) = (r.flag()?, r.flag()?, r.flag()?);
    let filter = match (r.flag()?, r.version()) {
        (false, _) => None,
        (true, 1) => return Err(RecordError("a filter in a record of format 1".into())),
        (true, _) => Some(Arc::new(read_filter(r)?)),
    };
    let mut options = IndexOptions::default();
    if r.version() > 1 {
        (options.ignore_dup_key, options.fill_factor, options.pad_index) = (r.flag()?, r.u8()?, r.flag()?);
        (options.allow_row_locks, options.allow_page_locks, options.sequential_key) = (r.flag()?, r.flag()?, r.flag()?);
    }
    if r.version() > 3 {
        options.compression = read_compression(r)?;
    }
    let tree = TreeId(r.u64()?);
    Ok(IndexDef { id, name, keys, included, unique, primary_key, unique_constraint, filter, options, tree })
}

/// The record of a table. Its database is the one it lies in, its schema's name that of the schema's record.
pub(crate) fn write_table(table: &TableDef) -> Vec<u8> {
    let mut w = Writer::new(TABLE_VERSION);
    w.i32(table.id.0).i32(table.schema.0).text(&table.name).i64(table.created).i64(table.modified);
    w.count(table.columns.len());
    for column in &table.columns {
        write_column(&mut w, column);
    }
    w.count(table.indexes.len());
    for index in &table.indexes {
        write_index(&mut w, index);
    }
    w.u8(table.lock_escalation as u8).flag(table.rows_disabled).count(table.disabled.len());
    for index in &table.disabled {
        write_index(&mut w, index);
    }
    write_temporal(&mut w, &table.temporal);
    w.finish()
}

pub(crate) fn read_table(record: &[u8], database: DatabaseId, schemas: &BTreeMap<i32, SchemaDef>) -> Result<TableDef, RecordError> {
    let mut r = Reader::of_versions(record, 1, TABLE_VERSION)?;
    let (id, schema, name) = (ObjectId(r.i32()?), SchemaId(r.i32()?), r.text()?);
    let (created, modified) = (r.i64()?, r.i64()?);
    let computed = r.version() > 2;
    let columns = r.list(|r| read_column(r, computed))?;
    let indexes = r.list(read_index)?;
    let lock_escalation = if r.version() > 1 { read_escalation(&mut r)? } else { LockEscalation::default() };
    let (mut rows_disabled, mut disabled) = (false, Vec::new());
    if r.version() > 2 {
        (rows_disabled, disabled) = (r.flag()?, r.list(read_index)?);
    }
    let temporal = if r.version() > 4 { read_temporal(&mut r)? } else { Temporal::default() };
    r.finish()?;
    let schema_name = schemas.get(&schema.0).ok_or_else(|| RecordError(format!("table {} is of unknown schema {}", id.0, schema.0)))?;
    let filtered = |index: &IndexDef| index.filter.iter().flat_map(|filter| filter.columns()).all(|c| c < columns.len());
    let in_range = |index: &IndexDef| {
        let mut listed = index.keys.iter().map(|k| k.column_index).chain(index.included.iter().copied());
        listed.all(|c| c < columns.len()) && filtered(index)
    };
    if indexes.is_empty() || !indexes.iter().chain(&disabled).all(in_range) {
        return Err(RecordError(format!("table {} has indexes that do not fit its columns", id.0)));
    }
    Ok(TableDef {
        database,
        id,
        schema,
        schema_name: schema_name.name.clone(),
        name,
        columns,
        indexes,
        disabled,
        rows_disabled,
        temporal,
        building: None,
        lock_escalation,
        created,
        modified,
    })
}

fn read_compression(r: &mut Reader<'_>) -> Result<Compression, RecordError> {
    let tag = r.u8()?;
    let known = Compression::ALL.into_iter().find(|known| *known as u8 == tag);
    known.ok_or_else(|| RecordError(format!("compression of tag {tag}")))
}

fn read_escalation(r: &mut Reader<'_>) -> Result<LockEscalation, RecordError> {
    match r.u8()? {
        0 => Ok(LockEscalation::Table),
        1 => Ok(LockEscalation::Disable),
        2 => Ok(LockEscalation::Auto),
        tag => Err(RecordError(format!("lock escalation of tag {tag}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{FilterConjunct, FilterOp, FilterTest, IndexFilter};
    use crate::temporal::{Period, RetentionUnit, Versioning};
    use thawdb_types::SqlType;

    fn table() -> TableDef {
        let column = |id: i32| ColumnDef {
            id: ColumnId(id),
            name: format!("c{id}"),
            sql_type: SqlType::Int,
            nullable: true,
            identity: None,
            default: None,
            default_name: None,
            computed: None,
            user_type: None,
        };
        let definition = ComputedDef { definition: "([c1]+[c2])".into(), persisted: true, stored: true };
        let computed = ColumnDef { computed: Some(definition), user_type: Some(ObjectId(11)), ..column(3) };
        let heap = IndexDef {
            id: IndexId(0),
            name: None,
            keys: Vec::new(),
            included: Vec::new(),
            unique: false,
            primary_key: false,
            unique_constraint: false,
            filter: None,
            options: IndexOptions::default(),
            tree: TreeId(9),
        };
        let test = FilterTest::Compare(FilterOp::Greater, vec![1, 2]);
        let filter = IndexFilter { text: "([c2]>(0))".into(), conjuncts: vec![FilterConjunct { column_index: 1, test }] };
        let filtered = IndexDef {
            id: IndexId(2),
            name: Some("i".into()),
            keys: vec![IndexKey { column_index: 0, descending: true }],
            included: vec![1],
            filter: Some(Arc::new(filter)),
            options: IndexOptions { ignore_dup_key: true, fill_factor: 80, pad_index: true, ..IndexOptions::default() },
            ..heap.clone()
        };
        let out = IndexDef { id: IndexId(3), name: Some("out".into()), tree: IndexDef::NO_TREE, ..filtered.clone() };
        TableDef {
            database: DatabaseId(5),
            id: ObjectId(7),
            schema: SchemaId(1),
            schema_name: "dbo".into(),
            name: "t".into(),
            columns: vec![column(1), column(2), computed],
            indexes: vec![heap, filtered],
            disabled: vec![out],
            rows_disabled: true,
            temporal: Temporal {
                period: Some(Period { start: ColumnId(1), end: ColumnId(2), hidden: (true, false) }),
                versioning: Some(Versioning { history: ObjectId(8), retention: Some((6, RetentionUnit::Month)) }),
                history_of: Some(ObjectId(9)),
            },
            building: None,
            lock_escalation: LockEscalation::Auto,
            created: 1,
            modified: 2,
        }
    }

    fn schemas() -> BTreeMap<i32, SchemaDef> {
        BTreeMap::from([(1, SchemaDef { id: SchemaId(1), name: "dbo".into(), owner: 1 })])
    }

    #[test]
    fn a_table_comes_back_and_no_part_of_its_record_does() {
        let bytes = write_table(&table());
        assert_eq!(read_table(&bytes, DatabaseId(5), &schemas()), Ok(table()));
        (0..bytes.len()).for_each(|cut| assert!(read_table(&bytes[..cut], DatabaseId(5), &schemas()).is_err(), "{cut}"));
    }

    /// Format 1, as it was written before indexes had options: one heap.
    #[test]
    fn a_record_of_format_1_is_read() {
        let mut w = Writer::new(1);
        w.i32(7).i32(1).text("t").i64(1).i64(2).count(1);
        w.i32(1).text("c1").sql_type(&SqlType::Int).flag(true).flag(false).optional_text(None).optional_text(None);
        w.count(1).i32(0).optional_text(None).count(0).count(0).flag(false).flag(false).flag(false).optional_text(None).u64(9);
        let read = read_table(&w.finish(), DatabaseId(5), &schemas()).expect("an older format");
        assert_eq!((read.indexes[0].options, read.lock_escalation), (IndexOptions::default(), LockEscalation::Table));
        assert_eq!(read.indexes[0].tree, TreeId(9));
    }

    /// Format 2, as it was written before columns were computed and indexes could be disabled.
    #[test]
    fn a_record_of_format_2_is_read() {
        let mut w = Writer::new(2);
        w.i32(7).i32(1).text("t").i64(1).i64(2).count(1);
        w.i32(1).text("c1").sql_type(&SqlType::Int).flag(true).flag(false).optional_text(None).optional_text(Some("d"));
        // An index of then: six options and no data compression.
        w.count(1).i32(1).optional_text(None).count(1).count(0).flag(false).count(0).flag(true).flag(true).flag(false).flag(false);
        w.flag(false).u8(70).flag(false).flag(true).flag(true).flag(false).u64(9);
        w.u8(LockEscalation::Disable as u8);
        let read = read_table(&w.finish(), DatabaseId(5), &schemas()).expect("an older format");
        assert_eq!((read.indexes[0].options.fill_factor, read.indexes[0].options.compression), (70, Compression::None));
        assert_eq!((read.columns[0].computed.as_ref(), read.columns[0].user_type), (None, None));
        assert_eq!((read.rows_disabled, read.disabled.len()), (false, 0));
        assert_eq!((read.columns[0].default_name.as_deref(), read.lock_escalation), (Some("d"), LockEscalation::Disable));
    }

    #[test]
    fn a_filter_on_a_column_that_is_not_there_is_damage() {
        let mut table = table();
        table.columns.truncate(1);
        table.indexes[1].included.clear();
        assert!(read_table(&write_table(&table), DatabaseId(5), &schemas()).is_err());
    }
}
