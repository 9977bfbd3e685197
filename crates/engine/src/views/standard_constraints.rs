//! INFORMATION_SCHEMA: the standard's views of constraints and of what they constrain.

use crate::session::state::SessionState;
use crate::views::information_schema::database_name;
use crate::views::objects::constraints_of;
use crate::views::{Column, Rows, View, col, int, null, text};
use std::sync::Arc;
use thawdb_catalog::{ColumnId, ConstraintDef, ConstraintKind, DatabaseId, ObjectId, ReferentialAction, TableDef};
use thawdb_types::SqlType::Int;
use thawdb_types::{Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;

const TABLE_CONSTRAINTS: &[Column] = &[
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
    null("TABLE_CATALOG", NAME),
    null("TABLE_SCHEMA", NAME),
    null("TABLE_NAME", NAME),
    null("CONSTRAINT_TYPE", SqlType::varchar(11)),
    col("IS_DEFERRABLE", SqlType::varchar(2)),
    col("INITIALLY_DEFERRED", SqlType::varchar(2)),
];

const KEY_COLUMN_USAGE: &[Column] = &[
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
    null("TABLE_CATALOG", NAME),
    null("TABLE_SCHEMA", NAME),
    null("TABLE_NAME", NAME),
    null("COLUMN_NAME", NAME),
    col("ORDINAL_POSITION", Int),
];

const CONSTRAINT_COLUMN_USAGE: &[Column] = &[
    null("TABLE_CATALOG", NAME),
    null("TABLE_SCHEMA", NAME),
    col("TABLE_NAME", NAME),
    null("COLUMN_NAME", NAME),
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
];

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

const CONSTRAINT_TABLE_USAGE: &[Column] = &[
    null("TABLE_CATALOG", NAME),
    null("TABLE_SCHEMA", NAME),
    col("TABLE_NAME", NAME),
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
];

const CHECK_CONSTRAINTS: &[Column] = &[
    null("CONSTRAINT_CATALOG", NAME),
    null("CONSTRAINT_SCHEMA", NAME),
    col("CONSTRAINT_NAME", NAME),
    null("CHECK_CLAUSE", SqlType::nvarchar(4000)),
];

const fn standard(name: &'static str, columns: &'static [Column], rows: fn(&SessionState, DatabaseId) -> Result<Rows, SqlError>) -> View {
    View { schema: "INFORMATION_SCHEMA", name, columns, rows }
}

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    standard("TABLE_CONSTRAINTS", TABLE_CONSTRAINTS, table_constraints),
    standard("KEY_COLUMN_USAGE", KEY_COLUMN_USAGE, key_column_usage),
    standard("CONSTRAINT_COLUMN_USAGE", CONSTRAINT_COLUMN_USAGE, constraint_column_usage),
    standard("CONSTRAINT_TABLE_USAGE", CONSTRAINT_TABLE_USAGE, constraint_table_usage),
    standard("REFERENTIAL_CONSTRAINTS", REFERENTIAL_CONSTRAINTS, referential_constraints),
    standard("CHECK_CONSTRAINTS", CHECK_CONSTRAINTS, check_constraints),
];

/// A constraint of the standard's kinds (a default is none), with its table.
struct Found {
    constraint: Arc<ConstraintDef>,
    table: Arc<TableDef>,
    kind: &'static str,
}

impl Found {
    /// Catalog, schema and name.
    fn name(&self, database: &Scalar) -> [Scalar; 3] {
        [database.clone(), text(self.table.schema_name.clone()), text(self.constraint.name.clone())]
    }

    /// The same of its table.
    fn table_name(&self, database: &Scalar) -> [Scalar; 3] {
        [database.clone(), text(self.table.schema_name.clone()), text(self.table.name.clone())]
    }

    /// Names of the columns of a key, in its order.
    fn key_columns(&self) -> Vec<String> {
        let name = |id: &ColumnId| self.table.columns.iter().find(|column| column.id == *id).map(|column| column.name.clone());
        match (&self.constraint.foreign_key, &self.constraint.kind) {
            (Some(key), _) => key.columns.iter().filter_map(name).collect(),
            (None, ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index)) => {
                let index = self.table.every_index().find(|known| known.id == *index);
                let keys = index.map(|index| index.keys.iter().map(|key| self.table.columns[key.column_index].name.clone()));
                keys.into_iter().flatten().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Names of the columns it constrains: also the column of a CHECK written beside one.
    fn columns(&self) -> Vec<String> {
        let Some(check) = &self.constraint.check else { return self.key_columns() };
        let own = |column: &&thawdb_catalog::ColumnDef| check.column == Some(column.id);
        self.table.columns.iter().filter(own).map(|column| column.name.clone()).collect()
    }
}

fn table_of(session: &SessionState, database: DatabaseId, table: ObjectId) -> Option<Arc<TableDef>> {
    crate::security::visibility::table(session, database, table)
}

fn found(session: &SessionState, database: DatabaseId) -> Vec<Found> {
    let of = |(constraint, _): (Arc<ConstraintDef>, i32)| {
        let kind = match &constraint.kind {
            ConstraintKind::PrimaryKey(_) => "PRIMARY KEY",
            ConstraintKind::Unique(_) => "UNIQUE",
            ConstraintKind::Default(_) => return None,
            _ if constraint.foreign_key.is_some() => "FOREIGN KEY",
            _ => "CHECK",
        };
        Some(Found { table: table_of(session, database, constraint.table)?, constraint, kind })
    };
    constraints_of(session, database).into_iter().filter_map(of).collect()
}

fn table_constraints(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let row = |found: Found| {
        let mut row: Vec<Scalar> = found.name(&name).into_iter().chain(found.table_name(&name)).collect();
        row.extend([text(found.kind), text("NO"), text("NO")]);
        row
    };
    Ok(found(session, database).into_iter().map(row).collect())
}

fn key_column_usage(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let mut rows = Rows::new();
    for found in found(session, database) {
        for (ordinal, column) in (1..).zip(found.key_columns()) {
            rows.push(found.name(&name).into_iter().chain(found.table_name(&name)).chain([text(column), int(ordinal)]).collect());
        }
    }
    Ok(rows)
}

fn constraint_column_usage(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let mut rows = Rows::new();
    for found in found(session, database) {
        for column in found.columns() {
            rows.push(found.table_name(&name).into_iter().chain([text(column)]).chain(found.name(&name)).collect());
        }
    }
    Ok(rows)
}

fn constraint_table_usage(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    Ok(found(session, database).into_iter().map(|found| found.table_name(&name).into_iter().chain(found.name(&name)).collect()).collect())
}

fn referential_constraints(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let mut rows = Rows::new();
    for found in found(session, database) {
        let Some(key) = &found.constraint.foreign_key else { continue };
        let referenced = table_of(session, database, key.referenced);
        let unique =
            referenced.as_ref().and_then(|table| Some((table, table.every_index().find(|index| index.id == key.index)?.name.clone()?)));
        let mut row: Vec<Scalar> = found.name(&name).into();
        row.extend(match unique {
            Some((table, unique)) => [name.clone(), text(table.schema_name.clone()), text(unique)],
            None => [Scalar::Null, Scalar::Null, Scalar::Null],
        });
        row.extend([text("SIMPLE"), text(rule(key.on_update)), text(rule(key.on_delete))]);
        rows.push(row);
    }
    Ok(rows)
}

fn rule(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

fn check_constraints(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let name = database_name(session, database)?;
    let mut rows = Rows::new();
    for found in found(session, database) {
        let Some(check) = &found.constraint.check else { continue };
        rows.push(found.name(&name).into_iter().chain([text(check.definition.clone())]).collect());
    }
    Ok(rows)
}
