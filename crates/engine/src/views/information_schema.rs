//! INFORMATION_SCHEMA: the standard's views of tables, columns and keys.

use crate::session::state::SessionState;
use crate::views::modules::objects_of;
use crate::views::objects::{catalog, tables_of};
use crate::views::{Column, Rows, View, col, int, null, optional_text, small, text, tiny};
use thawdb_catalog::{ColumnDef, DatabaseId, ObjectKind, TableDef};
use thawdb_types::SqlType::{Int, SmallInt, TinyInt};
use thawdb_types::{Collation, Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const TABLES: &[Column] =
    &[null("TABLE_CATALOG", NAME), null("TABLE_SCHEMA", NAME), col("TABLE_NAME", NAME), null("TABLE_TYPE", SqlType::varchar(10))];

const COLUMNS: &[Column] = &[
    null("TABLE_CATALOG", NAME),
    null("TABLE_SCHEMA", NAME),
    col("TABLE_NAME", NAME),
    null("COLUMN_NAME", NAME),
    null("ORDINAL_POSITION", Int),
    null("COLUMN_DEFAULT", SqlType::nvarchar(4000)),
    null("IS_NULLABLE", SqlType::varchar(3)),
    null("DATA_TYPE", NAME),
    null("CHARACTER_MAXIMUM_LENGTH", Int),
    null("CHARACTER_OCTET_LENGTH", Int),
    null("NUMERIC_PRECISION", TinyInt),
    null("NUMERIC_PRECISION_RADIX", SmallInt),
    null("NUMERIC_SCALE", Int),
    null("DATETIME_PRECISION", SmallInt),
    null("CHARACTER_SET_CATALOG", NAME),
    null("CHARACTER_SET_SCHEMA", NAME),
    null("CHARACTER_SET_NAME", NAME),
    null("COLLATION_CATALOG", NAME),
    null("COLLATION_SCHEMA", NAME),
    null("COLLATION_NAME", NAME),
    null("DOMAIN_CATALOG", NAME),
    null("DOMAIN_SCHEMA", NAME),
    null("DOMAIN_NAME", NAME),
];

const SCHEMATA: &[Column] = &[
    null("CATALOG_NAME", NAME),
    col("SCHEMA_NAME", NAME),
    null("SCHEMA_OWNER", NAME),
    null("DEFAULT_CHARACTER_SET_CATALOG", SqlType::varchar(6)),
    null("DEFAULT_CHARACTER_SET_SCHEMA", SqlType::varchar(3)),
    null("DEFAULT_CHARACTER_SET_NAME", NAME),
];

const IS: &str = "INFORMATION_SCHEMA";

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: IS, name: "TABLES", columns: TABLES, rows: tables },
    View { schema: IS, name: "COLUMNS", columns: COLUMNS, rows: columns },
    View { schema: IS, name: "SCHEMATA", columns: SCHEMATA, rows: schemata },
];

pub(super) fn database_name(session: &SessionState, database: DatabaseId) -> Result<Scalar, SqlError> {
    Ok(text(session.storage_of(database)?.name()))
}

fn tables(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let row = |table: &std::sync::Arc<TableDef>| {
        vec![name.clone(), text(table.schema_name.clone()), text(table.name.clone()), text("BASE TABLE")]
    };
    let mut rows: Rows = tables_of(session, database).iter().map(row).collect();
    let views = objects_of(session, database).into_iter().filter(|object| object.kind == ObjectKind::View);
    rows.extend(views.map(|view| vec![name.clone(), text(view.schema_name.clone()), text(view.name.clone()), text("VIEW")]));
    Ok(rows)
}

/// Characters of a type as the standard counts them: -1 for max, 2^31 - 1 for the old large types.
fn character_length(sql_type: &SqlType) -> Option<i32> {
    match sql_type {
        SqlType::Text { .. } | SqlType::Image => Some(i32::MAX),
        SqlType::NText { .. } => Some(i32::MAX / 2),
        SqlType::Xml => Some(-1),
        _ if sql_type.is_text() || sql_type.is_binary() => Some(sql_type.length().map_or(-1, i32::from)),
        _ => None,
    }
}

fn column_row(database: &Scalar, table: (&str, &str), ordinal: i32, column: &ColumnDef) -> Vec<Scalar> {
    let sql_type = &column.sql_type;
    let length = character_length(sql_type);
    let octets = length.map(|length| if sql_type.is_unicode() && length > 0 { length.saturating_mul(2) } else { length });
    let numeric = sql_type.is_numeric() && *sql_type != SqlType::Bit;
    let approximate = matches!(sql_type, SqlType::Float | SqlType::Real);
    let precision = if numeric { tiny(sql_type.precision()) } else { Scalar::Null };
    let radix = if numeric { small(if approximate { 2 } else { 10 }) } else { Scalar::Null };
    let scale = if numeric && !approximate { int(i32::from(sql_type.scale())) } else { Scalar::Null };
    let fraction = if sql_type.is_date_time() { small(i16::from(sql_type.scale())) } else { Scalar::Null };
    let charset = sql_type.is_text().then_some(if sql_type.is_unicode() { "UNICODE" } else { "iso_1" });
    vec![
        database.clone(),
        text(table.0),
        text(table.1),
        text(column.name.clone()),
        int(ordinal),
        optional_text(column.default.as_deref()),
        text(if column.nullable { "YES" } else { "NO" }),
        text(sql_type.base_name()),
        length.map_or(Scalar::Null, int),
        octets.map_or(Scalar::Null, int),
        precision,
        radix,
        scale,
        fraction,
        Scalar::Null,
        Scalar::Null,
        optional_text(charset),
        Scalar::Null,
        Scalar::Null,
        optional_text(sql_type.collation().map(Collation::name)),
        Scalar::Null,
        Scalar::Null,
        Scalar::Null,
    ]
}

fn columns(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let mut rows = Rows::new();
    for table in tables_of(session, database) {
        let of = (table.schema_name.as_str(), table.name.as_str());
        rows.extend((1..).zip(&table.columns).map(|(ordinal, column)| column_row(&name, of, ordinal, column)));
    }
    for view in objects_of(session, database).into_iter().filter(|object| object.kind == ObjectKind::View) {
        let of = (view.schema_name.as_str(), view.name.as_str());
        rows.extend((1..).zip(&view.columns).map(|(ordinal, column)| column_row(&name, of, ordinal, column)));
    }
    Ok(rows)
}

fn schemata(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let Some(catalog) = catalog(session, database) else { return Ok(Rows::new()) };
    let row = |schema: &thawdb_catalog::SchemaDef| {
        let owner = catalog.users.get(&schema.owner).map(|user| user.name.as_str());
        vec![name.clone(), text(schema.name.clone()), optional_text(owner), Scalar::Null, Scalar::Null, text("iso_1")]
    };
    Ok(catalog.schemas.values().map(row).collect())
}
