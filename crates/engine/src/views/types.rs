//! sys.types: the types every database has.

use crate::session::state::SessionState;
use crate::views::{Column, Rows, View, bit, col, int, null, optional_text, small, text, tiny};
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectDef, ObjectKind};
use thawdb_types::SqlType::{Bit, Int, SmallInt, TinyInt};
use thawdb_types::{Collation, MaxLength, Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const COLUMNS: &[Column] = &[
    col("name", NAME),
    col("system_type_id", TinyInt),
    col("user_type_id", Int),
    col("schema_id", Int),
    null("principal_id", Int),
    col("max_length", SmallInt),
    col("precision", TinyInt),
    col("scale", TinyInt),
    null("collation_name", NAME),
    null("is_nullable", Bit),
    col("is_user_defined", Bit),
    col("is_assembly_type", Bit),
    col("default_object_id", Int),
    col("rule_object_id", Int),
    col("is_table_type", Bit),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "types", columns: COLUMNS, rows: types },
    View { schema: "sys", name: "table_types", columns: &TABLE_TYPES, rows: table_types },
];

/// What sys.table_types has: its own columns after those of sys.types.
const TABLE_TYPES: [Column; 17] = table_type_columns();

const fn table_type_columns() -> [Column; 17] {
    let mut columns = [COLUMNS[0]; 17];
    let mut at = 0;
    while at < COLUMNS.len() {
        columns[at] = COLUMNS[at];
        at += 1;
    }
    columns[15] = col("type_table_object_id", Int);
    columns[16] = null("is_memory_optimized", Bit);
    columns
}

/// The types that users have made in a database.
fn user_types(session: &SessionState, database: DatabaseId) -> Vec<Arc<ObjectDef>> {
    let Some(catalog) = session.visible(database) else { return Vec::new() };
    catalog.objects.values().filter(|object| object.kind.is_type()).cloned().collect()
}

fn user_row(object: &ObjectDef) -> Vec<Scalar> {
    let base = object.columns.first().filter(|_| object.kind == ObjectKind::AliasType);
    let sql_type = base.map(|column| column.sql_type);
    vec![
        text(object.name.clone()),
        tiny(sql_type.map_or(243, |of| of.system_type_id())),
        int(object.id.0),
        int(object.schema.0),
        Scalar::Null,
        small(sql_type.map_or(-1, |of| of.max_length())),
        tiny(sql_type.map_or(0, |of| of.precision())),
        tiny(sql_type.map_or(0, |of| of.scale())),
        optional_text(sql_type.and_then(|of| of.collation()).map(|collation| collation.name())),
        bit(base.is_some_and(|column| column.nullable)),
        bit(true),
        bit(false),
        int(0),
        int(0),
        bit(object.kind == ObjectKind::TableType),
    ]
}

fn table_types(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let tables = user_types(session, database).into_iter().filter(|object| object.kind == ObjectKind::TableType);
    let row = |object: Arc<ObjectDef>| {
        let mut row = user_row(&object);
        row.extend([int(object.id.0), bit(false)]);
        row
    };
    Ok(tables.map(row).collect())
}

/// TYPE_ID and TYPE_NAME of a user's type.
pub(crate) fn user_type_named(session: &SessionState, schema: &str, name: &str) -> Option<i32> {
    session.visible(session.database.id)?.user_type(schema, name).map(|object| object.id.0)
}

/// The name of a user's type.
pub(crate) fn user_type_name(session: &SessionState, id: i32) -> Option<String> {
    let catalog = session.visible(session.database.id)?;
    catalog.objects.get(&id).filter(|object| object.kind.is_type()).map(|object| object.name.clone())
}

/// A type as sys.types shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownType {
    pub(crate) name: &'static str,
    pub(crate) system_type_id: u8,
    pub(crate) user_type_id: i32,
    pub(crate) max_length: i16,
    pub(crate) precision: u8,
    pub(crate) scale: u8,
    collated: bool,
    nullable: bool,
}

const C: Collation = Collation::DEFAULT;
const LONGEST: MaxLength = MaxLength::Limited(8000);
const LONGEST_UNICODE: MaxLength = MaxLength::Limited(4000);

/// Each type at its greatest, as sys.types describes it.
const GREATEST: [SqlType; 31] = [
    SqlType::Image,
    SqlType::Text { collation: C },
    SqlType::UniqueIdentifier,
    SqlType::Date,
    SqlType::Time { scale: 7 },
    SqlType::DateTime2 { scale: 7 },
    SqlType::DateTimeOffset { scale: 7 },
    SqlType::TinyInt,
    SqlType::SmallInt,
    SqlType::Int,
    SqlType::SmallDateTime,
    SqlType::Real,
    SqlType::Money,
    SqlType::DateTime,
    SqlType::Float,
    SqlType::SqlVariant,
    SqlType::NText { collation: C },
    SqlType::Bit,
    SqlType::Decimal { precision: 38, scale: 38, numeric: false },
    SqlType::Decimal { precision: 38, scale: 38, numeric: true },
    SqlType::SmallMoney,
    SqlType::BigInt,
    SqlType::VarBinary { length: LONGEST },
    SqlType::VarChar { length: LONGEST, collation: C },
    SqlType::Binary { length: 8000 },
    SqlType::Char { length: 8000, collation: C },
    SqlType::RowVersion,
    SqlType::NVarChar { length: LONGEST_UNICODE, collation: C },
    SqlType::NChar { length: 4000, collation: C },
    SqlType::Xml,
    SqlType::HierarchyId,
];

/// user_type_id of sysname.
const SYSNAME_ID: i32 = 256;

/// All types in the order of sys.types.
pub(crate) fn known() -> impl Iterator<Item = KnownType> {
    let plain = GREATEST.iter().map(|sql_type| KnownType {
        name: sql_type.base_name(),
        system_type_id: sql_type.system_type_id(),
        user_type_id: sql_type.user_type_id(),
        max_length: sql_type.max_length(),
        precision: sql_type.precision(),
        scale: sql_type.scale(),
        collated: sql_type.is_text(),
        nullable: !matches!(sql_type, SqlType::RowVersion),
    });
    let sysname = KnownType {
        name: "sysname",
        system_type_id: 231,
        user_type_id: SYSNAME_ID,
        max_length: 256,
        precision: 0,
        scale: 0,
        collated: true,
        nullable: false,
    };
    plain.chain([sysname])
}

/// The type of a name.
pub(crate) fn by_name(name: &str) -> Option<KnownType> {
    known().find(|known| known.name.eq_ignore_ascii_case(name))
}

/// TYPE_ID.
pub(crate) fn id_of_name(name: &str) -> Option<i32> {
    by_name(name).map(|known| known.user_type_id)
}

/// TYPE_NAME.
pub(crate) fn name_of_id(id: i32) -> Option<&'static str> {
    known().find(|known| known.user_type_id == id).map(|known| known.name)
}

fn types(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let row = |known: KnownType| {
        vec![
            text(known.name),
            tiny(known.system_type_id),
            int(known.user_type_id),
            int(4),
            Scalar::Null,
            small(known.max_length),
            tiny(known.precision),
            tiny(known.scale),
            optional_text(known.collated.then(|| Collation::DEFAULT.name())),
            bit(known.nullable),
            bit(false),
            bit(false),
            int(0),
            int(0),
            bit(false),
        ]
    };
    let mut rows: Rows = known().map(row).collect();
    rows.extend(user_types(session, database).iter().map(|object| user_row(object)));
    Ok(rows)
}
