//! sys.columns, sys.all_columns, sys.identity_columns and the old syscolumns.

use crate::session::state::SessionState;
use crate::views::objects::{catalog, tables_of};
use crate::views::{Column, DESC, Rows, View, bit, col, int, null, numbered, optional_text, small, text, tiny, variant};
use thawdb_catalog::temporal::PeriodColumn;
use thawdb_catalog::{ColumnDef, ConstraintKind, DatabaseId, TableDef};
use thawdb_types::SqlType::{Bit, Int, SmallInt, TinyInt};
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const COLUMNS: [Column; 40] = [
    col("object_id", Int),
    null("name", NAME),
    col("column_id", Int),
    col("system_type_id", TinyInt),
    col("user_type_id", Int),
    col("max_length", SmallInt),
    col("precision", TinyInt),
    col("scale", TinyInt),
    null("collation_name", NAME),
    null("is_nullable", Bit),
    col("is_ansi_padded", Bit),
    col("is_rowguidcol", Bit),
    col("is_identity", Bit),
    col("is_computed", Bit),
    col("is_filestream", Bit),
    null("is_replicated", Bit),
    null("is_non_sql_subscribed", Bit),
    null("is_merge_published", Bit),
    null("is_dts_replicated", Bit),
    col("is_xml_document", Bit),
    col("xml_collection_id", Int),
    col("default_object_id", Int),
    col("rule_object_id", Int),
    null("is_sparse", Bit),
    null("is_column_set", Bit),
    null("generated_always_type", TinyInt),
    null("generated_always_type_desc", DESC),
    null("encryption_type", Int),
    null("encryption_type_desc", SqlType::nvarchar(64)),
    null("encryption_algorithm_name", NAME),
    null("column_encryption_key_id", Int),
    null("column_encryption_key_database_name", NAME),
    null("is_hidden", Bit),
    col("is_masked", Bit),
    null("graph_type", Int),
    null("graph_type_desc", DESC),
    null("is_data_deletion_filter_column", Bit),
    null("ledger_view_column_type", TinyInt),
    null("ledger_view_column_type_desc", DESC),
    null("is_dropped_ledger_column", Bit),
];

/// What sys.identity_columns has in place of the columns from is_sparse on: its own after the common ones.
const IDENTITY_COLUMNS: [Column; 29] = identity_columns();

const fn identity_columns() -> [Column; 29] {
    let mut columns = [COLUMNS[0]; 29];
    let mut at = 0;
    while at < 25 {
        columns[at] = COLUMNS[at];
        at += 1;
    }
    columns[25] = null("seed_value", SqlType::SqlVariant);
    columns[26] = null("increment_value", SqlType::SqlVariant);
    columns[27] = null("last_value", SqlType::SqlVariant);
    columns[28] = null("is_not_for_replication", Bit);
    columns
}

/// What sys.computed_columns has likewise.
const COMPUTED_COLUMNS: [Column; 28] = computed_columns();

const fn computed_columns() -> [Column; 28] {
    let mut columns = [COLUMNS[0]; 28];
    let mut at = 0;
    while at < 25 {
        columns[at] = COLUMNS[at];
        at += 1;
    }
    columns[25] = null("definition", SqlType::NVARCHAR_MAX);
    columns[26] = null("uses_database_collation", Bit);
    columns[27] = col("is_persisted", Bit);
    columns
}

const COLUMNS_2022: &[Column] = &COLUMNS;

const SYSCOLUMNS: &[Column] = &[
    null("name", NAME),
    col("id", Int),
    col("xtype", TinyInt),
    col("length", SmallInt),
    null("colid", SmallInt),
    null("prec", SmallInt),
    null("scale", Int),
    null("isnullable", Int),
];

/// Of bulk copies: how the text of each column travels.
const TABLE_COLLATIONS: &[Column] = &[
    col("object_id", Int),
    col("colid", Int),
    null("name", NAME),
    null("tds_collation_100", SqlType::Binary { length: 5 }),
    null("collation_100", NAME),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "columns", columns: COLUMNS_2022, rows: columns },
    View { schema: "sys", name: "all_columns", columns: COLUMNS_2022, rows: all_columns },
    View { schema: "sys", name: "system_columns", columns: COLUMNS_2022, rows: system_columns },
    View { schema: "sys", name: "identity_columns", columns: &IDENTITY_COLUMNS, rows: identities },
    View { schema: "sys", name: "computed_columns", columns: &COMPUTED_COLUMNS, rows: computed },
    View { schema: "sys", name: "syscolumns", columns: SYSCOLUMNS, rows: syscolumns },
    View { schema: "sys", name: "spt_tablecollations_view", columns: TABLE_COLLATIONS, rows: table_collations },
];

fn row(object: i32, column: &ColumnDef, default_object: i32) -> Vec<Scalar> {
    let sql_type = &column.sql_type;
    let collation = sql_type.collation().map(|collation| collation.name());
    let mut row = vec![
        int(object),
        text(column.name.clone()),
        int(column.id.0),
        tiny(sql_type.system_type_id()),
        int(column.user_type.map_or(sql_type.user_type_id(), |id| id.0)),
        small(sql_type.max_length()),
        tiny(sql_type.precision()),
        tiny(sql_type.scale()),
        optional_text(collation),
        bit(column.nullable),
        bit(sql_type.is_text() || sql_type.is_binary()),
        bit(false),
        bit(column.identity.is_some()),
        bit(column.computed.is_some()),
    ];
    row.extend((0..6).map(|_| bit(false)));
    row.extend([int(0), int(default_object), int(0), bit(false), bit(false), tiny(0), text("NOT_APPLICABLE")]);
    row.extend((0..5).map(|_| Scalar::Null));
    row.extend([bit(false), bit(false), Scalar::Null, Scalar::Null, bit(false), Scalar::Null, Scalar::Null, bit(false)]);
    row
}

/// Number of the DEFAULT constraint of each column of a table.
fn default_object(session: &SessionState, table: &TableDef, column: &ColumnDef) -> i32 {
    let Some(catalog) = catalog(session, table.database) else { return 0 };
    let of_column = catalog.constraints_of(table.id).find(|constraint| constraint.kind == ConstraintKind::Default(column.id));
    of_column.map_or(0, |constraint| constraint.id.0)
}

/// What a column of a period has otherwise.
fn generated(table: &TableDef, at: usize, row: &mut [Scalar]) {
    let (kind, description) = match table.period_column(at) {
        None => return,
        Some(PeriodColumn::Start) => (1, "AS_ROW_START"),
        Some(PeriodColumn::End) => (2, "AS_ROW_END"),
    };
    let place = |name: &str| COLUMNS.iter().position(|column| column.name == name).expect("a column of sys.columns");
    row[place("generated_always_type")] = tiny(kind);
    row[place("generated_always_type_desc")] = text(description);
    row[place("is_hidden")] = bit(table.is_hidden(at));
}

fn columns(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for table in tables_of(session, database) {
        for (at, column) in table.columns.iter().enumerate() {
            let mut row = row(table.id.0, column, default_object(session, &table, column));
            generated(&table, at, &mut row);
            rows.push(row);
        }
    }
    let shown = |object: &std::sync::Arc<thawdb_catalog::ObjectDef>| object.kind != thawdb_catalog::ObjectKind::AliasType;
    for object in crate::views::modules::objects_of(session, database).into_iter().filter(shown) {
        rows.extend(object.columns.iter().map(|column| row(object.id.0, column, 0)));
    }
    Ok(rows)
}

fn system_columns(_: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for (id, view) in numbered() {
        for (ordinal, column) in (1..).zip(view.columns) {
            let definition = ColumnDef {
                id: thawdb_catalog::ColumnId(ordinal),
                name: column.name.to_owned(),
                sql_type: column.sql_type,
                nullable: column.nullable,
                identity: None,
                default: None,
                default_name: None,
                computed: None,
                user_type: None,
            };
            rows.push(row(id, &definition, 0));
        }
    }
    Ok(rows)
}

fn all_columns(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = columns(session, database)?;
    rows.extend(system_columns(session, database)?);
    Ok(rows)
}

/// A whole number as a value of an identity column's type.
pub(super) fn whole(value: i64, sql_type: &SqlType) -> Scalar {
    thawdb_types::convert::convert(&Scalar::BigInt(value), &SqlType::BigInt, sql_type, 0).unwrap_or(Scalar::Null)
}

fn identities(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for table in tables_of(session, database) {
        for column in &table.columns {
            let Some(identity) = column.identity else { continue };
            let mut row = row(table.id.0, column, 0);
            row.truncate(25);
            let last = crate::instance::counters::IdentityColumn { definition: identity, sql_type: column.sql_type };
            let last = session.storage_of(table.database)?.counters.last_identity(table.id, last);
            let number = |value: i64| variant(whole(value, &column.sql_type), &column.sql_type);
            row.extend([number(identity.seed), number(identity.increment), last.map_or(Scalar::Null, number), bit(false)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn computed(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for table in tables_of(session, database) {
        for column in &table.columns {
            let Some(computed) = &column.computed else { continue };
            let mut row = row(table.id.0, column, 0);
            row.truncate(25);
            row.extend([text(computed.definition.clone()), bit(column.sql_type.collation().is_some()), bit(computed.persisted)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn syscolumns(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let mut rows = Rows::new();
    for table in tables_of(session, database) {
        for column in &table.columns {
            rows.push(vec![
                text(column.name.clone()),
                int(table.id.0),
                tiny(column.sql_type.system_type_id()),
                small(column.sql_type.max_length()),
                small(i16::try_from(column.id.0).unwrap_or(i16::MAX)),
                small(i16::from(column.sql_type.precision())),
                int(i32::from(column.sql_type.scale())),
                int(i32::from(column.nullable)),
            ]);
        }
    }
    Ok(rows)
}

fn table_collations(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let of = |row: Vec<Scalar>| {
        let collation = row[8].as_text().and_then(thawdb_types::Collation::by_name);
        let bytes = collation.map_or(Scalar::Null, |collation| Scalar::Binary(collation.tds_bytes().to_vec()));
        vec![row[0].clone(), row[2].clone(), row[1].clone(), bytes, row[8].clone()]
    };
    Ok(all_columns(session, database)?.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_every_column() {
        let column = ColumnDef {
            id: thawdb_catalog::ColumnId(1),
            name: "c".into(),
            sql_type: Int,
            nullable: true,
            identity: None,
            default: None,
            default_name: None,
            computed: None,
            user_type: None,
        };
        assert_eq!(row(1, &column, 0).len(), COLUMNS_2022.len());
        assert_eq!(COLUMNS_2022[39].name, "is_dropped_ledger_column");
    }
}
