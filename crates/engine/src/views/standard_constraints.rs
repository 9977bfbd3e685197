//! INFORMATION_SCHEMA's views of FOREIGN KEY and CHECK constraints, and the rows that these add to TABLE_CONSTRAINTS and
//! KEY_COLUMN_USAGE. A constraint is seen by who sees its table.

use crate::session::state::SessionState;
use crate::views::objects::constraints_of;
use crate::views::{Column, Rows, View, col, int, null, optional_text, text};
use std::sync::Arc;
use thawdb_catalog::{ColumnId, ConstraintDef, DatabaseId, ReferentialAction, TableDef};
use thawdb_types::{Scalar, SqlError, SqlType};

const IS: &str = "INFORMATION_SCHEMA";
const NAME: SqlType = SqlType::SYSNAME;

const REFERENTIAL_CONSTRAINTS: &[Column] = &[
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
    null("UNIQUE_CONSTRAINT_CATALOG", NAME),
    null("UNIQUE_CONSTRAINT_SCHEMA", NAME),
    null("UNIQUE_CONSTRAINT_NAME", NAME),
    null("MATCH_OPTION", SqlType::varchar(7)),
    null("UPDATE_RULE", SqlType::varchar(11)),
    null("DELETE_RULE", SqlType::varchar(11)),
];

const CHECK_CONSTRAINTS: &[Column] = &[
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
    null("CHECK_CLAUSE", SqlType::nvarchar(4000)),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: IS, name: "REFERENTIAL_CONSTRAINTS", columns: REFERENTIAL_CONSTRAINTS, rows: referential_constraints },
    View { schema: IS, name: "CHECK_CONSTRAINTS", columns: CHECK_CONSTRAINTS, rows: check_constraints },
];

/// Each constraint that is no key, with its table.
fn others(session: &SessionState, database: DatabaseId) -> Vec<(Arc<ConstraintDef>, Arc<TableDef>)> {
    let seen = constraints_of(session, database).into_iter();
    let with_table = |constraint: Arc<ConstraintDef>| {
        let table = crate::security::visibility::table(session, database, constraint.table)?;
        Some((constraint, table))
    };
    seen.map(|(constraint, _)| constraint).filter(|c| c.check.is_some() || c.foreign_key.is_some()).filter_map(with_table).collect()
}

fn column_name(table: &TableDef, id: ColumnId) -> Option<&str> {
    table.columns.iter().find(|column| column.id == id).map(|column| column.name.as_str())
}

/// Rows of TABLE_CONSTRAINTS.
pub(crate) fn table_rows(session: &SessionState, database: DatabaseId, name: &Scalar) -> Rows {
    let row = |(constraint, table): (Arc<ConstraintDef>, Arc<TableDef>)| {
        let kind = if constraint.check.is_some() { "CHECK" } else { "FOREIGN KEY" };
        vec![
            name.clone(),
            text(table.schema_name.clone()),
            text(constraint.name.clone()),
            name.clone(),
            text(table.schema_name.clone()),
            text(table.name.clone()),
            text(kind),
            text("NO"),
            text("NO"),
        ]
    };
    others(session, database).into_iter().map(row).collect()
}

/// Rows of KEY_COLUMN_USAGE.
pub(crate) fn key_rows(session: &SessionState, database: DatabaseId, name: &Scalar) -> Rows {
    let mut rows = Rows::new();
    for (constraint, table) in others(session, database) {
        let Some(key) = &constraint.foreign_key else { continue };
        for (ordinal, column) in (1..).zip(&key.columns) {
            rows.push(vec![
                name.clone(),
                text(table.schema_name.clone()),
                text(constraint.name.clone()),
                name.clone(),
                text(table.schema_name.clone()),
                text(table.name.clone()),
                optional_text(column_name(&table, *column)),
                int(ordinal),
            ]);
        }
    }
    rows
}

fn rule(action: ReferentialAction) -> Scalar {
    text(match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    })
}

fn referential_constraints(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = text(session.storage_of(database)?.name());
    let mut rows = Rows::new();
    for (constraint, table) in others(session, database) {
        let Some(key) = &constraint.foreign_key else { continue };
        let referenced = crate::security::visibility::table(session, database, key.referenced);
        let index = referenced.as_ref().and_then(|table| table.every_index().find(|index| index.id == key.index)?.name.clone());
        rows.push(vec![
            name.clone(),
            text(table.schema_name.clone()),
            text(constraint.name.clone()),
            name.clone(),
            optional_text(referenced.as_ref().map(|table| table.schema_name.as_str())),
            optional_text(index.as_deref()),
            text("SIMPLE"),
            rule(key.on_update),
            rule(key.on_delete),
        ]);
    }
    Ok(rows)
}

fn check_constraints(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = text(session.storage_of(database)?.name());
    let row = |(constraint, table): (Arc<ConstraintDef>, Arc<TableDef>)| {
        let check = constraint.check.as_ref()?;
        let clause = text(check.definition.clone());
        Some(vec![name.clone(), text(table.schema_name.clone()), text(constraint.name.clone()), clause])
    };
    Ok(others(session, database).into_iter().filter_map(row).collect())
}
