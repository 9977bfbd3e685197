//! sys.objects, sys.tables, sys.schemas and their kin.

use crate::session::state::SessionState;
use crate::views::{CHAR_2, Column, DESC, Rows, View, bit, col, int, moment, null, numbered, text, tiny};
use std::sync::Arc;
use thawdb_catalog::{ConstraintDef, ConstraintKind, DatabaseCatalog, DatabaseId, LockEscalation, ObjectDef, TableDef, Temporal};
use thawdb_types::SqlType::{Bit, DateTime, Int, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

/// The columns that every view over objects begins with.
pub(crate) const OBJECT_COLUMNS: [Column; 12] = [
    col("name", NAME),
    col("object_id", Int),
    null("principal_id", Int),
    col("schema_id", Int),
    col("parent_object_id", Int),
    null("type", CHAR_2),
    null("type_desc", DESC),
    col("create_date", DateTime),
    col("modify_date", DateTime),
    col("is_ms_shipped", Bit),
    col("is_published", Bit),
    col("is_schema_published", Bit),
];

const TABLE_COLUMNS: &[Column] = &[
    OBJECT_COLUMNS[0],
    OBJECT_COLUMNS[1],
    OBJECT_COLUMNS[2],
    OBJECT_COLUMNS[3],
    OBJECT_COLUMNS[4],
    OBJECT_COLUMNS[5],
    OBJECT_COLUMNS[6],
    OBJECT_COLUMNS[7],
    OBJECT_COLUMNS[8],
    OBJECT_COLUMNS[9],
    OBJECT_COLUMNS[10],
    OBJECT_COLUMNS[11],
    col("lob_data_space_id", Int),
    null("filestream_data_space_id", Int),
    col("max_column_id_used", Int),
    col("lock_on_bulk_load", Bit),
    null("uses_ansi_nulls", Bit),
    null("is_replicated", Bit),
    null("has_replication_filter", Bit),
    null("is_merge_published", Bit),
    null("is_sync_tran_subscribed", Bit),
    col("has_unchecked_assembly_data", Bit),
    null("text_in_row_limit", Int),
    null("large_value_types_out_of_row", Bit),
    null("is_tracked_by_cdc", Bit),
    null("lock_escalation", TinyInt),
    null("lock_escalation_desc", DESC),
    null("is_filetable", Bit),
    null("is_memory_optimized", Bit),
    null("durability", TinyInt),
    null("durability_desc", DESC),
    null("temporal_type", TinyInt),
    null("temporal_type_desc", DESC),
    null("history_table_id", Int),
    null("is_remote_data_archive_enabled", Bit),
    col("is_external", Bit),
    null("history_retention_period", Int),
    null("history_retention_period_unit", Int),
    null("history_retention_period_unit_desc", SqlType::nvarchar(10)),
    null("is_node", Bit),
    null("is_edge", Bit),
    null("data_retention_period", Int),
    null("data_retention_period_unit", Int),
    null("data_retention_period_unit_desc", SqlType::nvarchar(10)),
    null("ledger_type", TinyInt),
    null("ledger_type_desc", DESC),
    null("ledger_view_id", Int),
    null("is_dropped_ledger_table", Bit),
];

const SCHEMA_COLUMNS: &[Column] = &[col("name", NAME), col("schema_id", Int), null("principal_id", Int)];

const SYSOBJECTS_COLUMNS: &[Column] = &[
    col("name", NAME),
    col("id", Int),
    col("xtype", CHAR_2),
    null("uid", SqlType::SmallInt),
    col("parent_obj", Int),
    col("crdate", DateTime),
    null("type", CHAR_2),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "objects", columns: &OBJECT_COLUMNS, rows: objects },
    View { schema: "sys", name: "all_objects", columns: &OBJECT_COLUMNS, rows: all_objects },
    View { schema: "sys", name: "system_objects", columns: &OBJECT_COLUMNS, rows: system_objects },
    View { schema: "sys", name: "tables", columns: TABLE_COLUMNS, rows: tables },
    View { schema: "sys", name: "periods", columns: PERIOD_COLUMNS, rows: periods },
    View { schema: "sys", name: "schemas", columns: SCHEMA_COLUMNS, rows: schemas },
    View { schema: "sys", name: "sysobjects", columns: SYSOBJECTS_COLUMNS, rows: sysobjects },
    View { schema: "dbo", name: "sysobjects", columns: SYSOBJECTS_COLUMNS, rows: sysobjects },
];

/// The catalog of a database as the session sees it; empty if the database has gone.
pub(crate) fn catalog(session: &SessionState, database: DatabaseId) -> Option<Arc<DatabaseCatalog>> {
    session.visible(database)
}

/// The tables of a database by number, the session's temporary ones included.
pub(crate) fn tables_of(session: &SessionState, database: DatabaseId) -> Vec<Arc<TableDef>> {
    let (Some(all), Some(seen)) = (session.tables(database), session.visible(database)) else { return Vec::new() };
    // Temporary tables are in no catalog: the session's own are there for itself.
    let shown = |table: &&Arc<TableDef>| table.id.0 < 0 || table.name.starts_with('#') || seen.tables.tables.contains_key(&table.id.0);
    all.tables.values().filter(shown).cloned().collect()
}

/// sys.objects.type and type_desc of a constraint.
pub(crate) fn constraint_type(kind: &ConstraintKind) -> (&'static str, &'static str) {
    match kind {
        ConstraintKind::PrimaryKey(_) => ("PK", "PRIMARY_KEY_CONSTRAINT"),
        ConstraintKind::Unique(_) => ("UQ", "UNIQUE_CONSTRAINT"),
        ConstraintKind::Default(_) => ("D ", "DEFAULT_CONSTRAINT"),
        ConstraintKind::Check => ("C ", "CHECK_CONSTRAINT"),
        ConstraintKind::ForeignKey => ("F ", "FOREIGN_KEY_CONSTRAINT"),
    }
}

fn table_row(table: &TableDef) -> Vec<Scalar> {
    vec![
        text(table.name.clone()),
        int(table.id.0),
        Scalar::Null,
        int(table.schema.0),
        int(0),
        text("U "),
        text("USER_TABLE"),
        moment(table.created),
        moment(table.modified),
        bit(false),
        bit(false),
        bit(false),
    ]
}

/// The object columns of a constraint.
pub(crate) fn constraint_row(constraint: &ConstraintDef, schema: i32) -> Vec<Scalar> {
    let (code, description) = constraint_type(&constraint.kind);
    vec![
        text(constraint.name.clone()),
        int(constraint.id.0),
        Scalar::Null,
        int(schema),
        int(constraint.table.0),
        text(code),
        text(description),
        moment(constraint.created),
        moment(constraint.created),
        bit(false),
        bit(false),
        bit(false),
    ]
}

/// The object columns of a procedure, function, view and their kin.
pub(crate) fn module_row(object: &ObjectDef) -> Vec<Scalar> {
    let (code, description) = object.kind.code();
    vec![
        text(object.name.clone()),
        int(object.id.0),
        Scalar::Null,
        int(object.schema.0),
        int(object.parent.map_or(0, |id| id.0)),
        text(code),
        text(description),
        moment(object.created),
        moment(object.modified),
        bit(false),
        bit(false),
        bit(false),
    ]
}

/// The constraints of a database with the number of their table's schema.
pub(crate) fn constraints_of(session: &SessionState, database: DatabaseId) -> Vec<(Arc<ConstraintDef>, i32)> {
    let Some(catalog) = catalog(session, database) else { return Vec::new() };
    let schema = |constraint: &ConstraintDef| catalog.tables.tables.get(&constraint.table.0).map_or(1, |table| table.schema.0);
    catalog.constraints.values().map(|constraint| (constraint.clone(), schema(constraint))).collect()
}

fn objects(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows: Rows = tables_of(session, database).iter().map(|table| table_row(table)).collect();
    rows.extend(constraints_of(session, database).iter().map(|(constraint, schema)| constraint_row(constraint, *schema)));
    let objects = crate::views::modules::objects_of(session, database);
    rows.extend(objects.iter().filter(|object| !object.kind.is_type()).map(|object| module_row(object)));
    Ok(rows)
}

pub(super) fn system_objects(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let of_view = |(id, view): (i32, &crate::views::View)| {
        let schema = match view.schema {
            "sys" => 4,
            "INFORMATION_SCHEMA" => 3,
            _ => 1,
        };
        vec![
            text(view.name),
            int(id),
            Scalar::Null,
            int(schema),
            int(0),
            text("V "),
            text("VIEW"),
            moment(session.engine.started),
            moment(session.engine.started),
            bit(true),
            bit(false),
            bit(false),
        ]
    };
    Ok(numbered().map(of_view).collect())
}

fn all_objects(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = objects(session, database)?;
    rows.extend(system_objects(session, database)?);
    Ok(rows)
}

fn tables(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    Ok(tables_of(session, database).iter().map(|table| full_table_row(table)).collect())
}

/// From temporal_type to history_retention_period_unit_desc.
fn temporal_columns(temporal: &Temporal) -> Vec<Scalar> {
    let (kind, description) = match (temporal.history_of, temporal.versioning) {
        (Some(_), _) => (1, "HISTORY_TABLE"),
        (None, Some(_)) => (2, "SYSTEM_VERSIONED_TEMPORAL_TABLE"),
        (None, None) => (0, "NON_TEMPORAL_TABLE"),
    };
    let history = temporal.versioning.map_or(Scalar::Null, |versioning| int(versioning.history.0));
    let retention = match temporal.versioning.map(|versioning| versioning.retention) {
        None => [Scalar::Null, Scalar::Null, Scalar::Null],
        Some(None) => [int(-1), int(-1), text("INFINITE")],
        Some(Some((count, unit))) => [int(count), int(i32::from(unit as u8)), text(unit.name())],
    };
    let mut columns = vec![tiny(kind), text(description), history, bit(false), bit(false)];
    columns.extend(retention);
    columns
}

const PERIOD_COLUMNS: &[Column] = &[
    null("name", NAME),
    null("period_type", TinyInt),
    null("period_type_desc", DESC),
    col("object_id", Int),
    null("start_column_id", Int),
    null("end_column_id", Int),
];

fn periods(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let row = |table: &Arc<TableDef>| {
        let period = table.temporal.period?;
        let name = [text("SYSTEM_TIME"), tiny(1), text("SYSTEM_TIME_PERIOD")];
        Some(name.into_iter().chain([int(table.id.0), int(period.start.0), int(period.end.0)]).collect())
    };
    Ok(tables_of(session, database).iter().filter_map(row).collect())
}

fn full_table_row(table: &TableDef) -> Vec<Scalar> {
    let mut row = table_row(table);
    let large = table.columns.iter().any(|column| column.sql_type.is_large());
    let last = table.columns.iter().map(|column| column.id.0).max().unwrap_or(0);
    row.extend([int(i32::from(large)), Scalar::Null, int(last), bit(false), bit(true)]);
    row.extend((0..5).map(|_| bit(false)));
    let escalation = match table.lock_escalation {
        LockEscalation::Table => "TABLE",
        LockEscalation::Disable => "DISABLE",
        LockEscalation::Auto => "AUTO",
    };
    row.extend([
        int(0),
        bit(false),
        bit(false),
        tiny(table.lock_escalation as u8),
        text(escalation),
        bit(false),
        bit(false),
        tiny(0),
        text("SCHEMA_AND_DATA"),
    ]);
    row.extend(temporal_columns(&table.temporal));
    row.extend([bit(false), bit(false), Scalar::Null, Scalar::Null, Scalar::Null]);
    row.extend([tiny(0), text("NON_LEDGER_TABLE"), Scalar::Null, bit(false)]);
    row
}

fn schemas(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let Some(catalog) = catalog(session, database) else { return Ok(Rows::new()) };
    Ok(catalog.schemas.values().map(|schema| vec![text(schema.name.clone()), int(schema.id.0), int(schema.owner)]).collect())
}

fn sysobjects(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let narrow = |row: Vec<Scalar>| {
        let schema = if let Scalar::Int(id) = row[3] { Scalar::SmallInt(i16::try_from(id).unwrap_or(0)) } else { Scalar::Null };
        vec![row[0].clone(), row[1].clone(), row[5].clone(), schema, row[4].clone(), row[7].clone(), row[5].clone()]
    };
    Ok(objects(session, database)?.into_iter().map(narrow).collect())
}
