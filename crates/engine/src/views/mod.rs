//! Catalog and management views: rows made from definitions and state when asked, never stored.
//!
//! ```text
//! binder ─ source(database, schema, name) ─► find ─► BoundView ─ rows(session) ─► View::rows(session, database)
//! ```
//!
//! One file per group of views; each states columns and their order as SQL Server documents them. A view shows the
//! catalog as its session sees it, uncommitted definitions of its own included.
//!
//! Numbers of the views are negative, as SQL Server's are, and rise with their place in [`ALL`]: they are not stored.

pub(crate) mod allocations;
pub(crate) mod columns;
pub(crate) mod constraints;
pub(crate) mod databases;
pub(crate) mod dynamic;
pub(crate) mod empty;
pub(crate) mod error_log;
pub(crate) mod files;
pub(crate) mod functions;
pub(crate) mod indexes;
pub(crate) mod information_schema;
pub(crate) mod log;
pub(crate) mod modules;
pub(crate) mod objects;
pub(crate) mod plans;
pub(crate) mod principals;
pub(crate) mod resumable;
pub(crate) mod scoped;
pub(crate) mod server;
pub(crate) mod sessions;
pub(crate) mod standard_constraints;
pub(crate) mod statistics;
pub(crate) mod transactions;
pub(crate) mod types;

use crate::session::state::SessionState;
use crate::storage_error::internal;
use std::sync::Arc;
use thawdb_catalog::DatabaseId;
use thawdb_query::context::SessionInfo;
use thawdb_query::phys::{OutputColumn, RowSource};
use thawdb_types::{Collation, Scalar, SqlError, SqlType};

/// Rows of a view.
pub(crate) type Rows = Vec<Vec<Scalar>>;

/// A column of a view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) sql_type: SqlType,
    pub(crate) nullable: bool,
}

/// A column that is never NULL.
pub(crate) const fn col(name: &'static str, sql_type: SqlType) -> Column {
    Column { name, sql_type, nullable: false }
}

/// A column that may be NULL.
pub(crate) const fn null(name: &'static str, sql_type: SqlType) -> Column {
    Column { name, sql_type, nullable: true }
}

/// char(2), as sys.objects.type.
pub(crate) const CHAR_2: SqlType = SqlType::Char { length: 2, collation: Collation::DEFAULT };
/// nvarchar(60), as every `_desc` column.
pub(crate) const DESC: SqlType = SqlType::nvarchar(60);

/// A view.
pub(crate) struct View {
    pub(crate) schema: &'static str,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) rows: fn(&SessionState, DatabaseId) -> Result<Rows, SqlError>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// All views, group by group.
fn all() -> impl Iterator<Item = &'static View> {
    let groups: [&'static [View]; 22] = [
        databases::VIEWS,
        objects::VIEWS,
        columns::VIEWS,
        types::VIEWS,
        indexes::VIEWS,
        constraints::VIEWS,
        modules::VIEWS,
        files::VIEWS,
        statistics::VIEWS,
        principals::VIEWS,
        server::VIEWS,
        sessions::VIEWS,
        transactions::VIEWS,
        dynamic::VIEWS,
        log::VIEWS,
        information_schema::VIEWS,
        standard_constraints::VIEWS,
        empty::VIEWS,
        resumable::VIEWS,
        plans::VIEWS,
        scoped::VIEWS,
        error_log::VIEWS,
    ];
    groups.into_iter().flatten()
}

/// Number of the first view.
const FIRST_ID: i32 = -400;

fn number(position: usize) -> i32 {
    FIRST_ID - i32::try_from(position).expect("few views")
}

/// Number of a view.
pub(crate) fn id_of(schema: &str, name: &str) -> Option<i32> {
    all().position(|view| is_named(view, schema, name)).map(number)
}

/// Schema and name of the view of a number.
pub(crate) fn name_of(id: i32) -> Option<(&'static str, &'static str)> {
    let position = usize::try_from(FIRST_ID.checked_sub(id)?).ok()?;
    all().nth(position).map(|view| (view.schema, view.name))
}

/// Every view with its number.
pub(crate) fn numbered() -> impl Iterator<Item = (i32, &'static View)> {
    all().enumerate().map(|(position, view)| (number(position), view))
}

fn is_named(view: &View, schema: &str, name: &str) -> bool {
    view.schema.eq_ignore_ascii_case(schema) && view.name.eq_ignore_ascii_case(name)
}

/// A view of one database, as plans hold it.
#[derive(Debug)]
struct BoundView {
    view: &'static View,
    database: DatabaseId,
    columns: Vec<OutputColumn>,
}

impl RowSource for BoundView {
    fn name(&self) -> &str {
        self.view.name
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Rows, SqlError> {
        debug_assert!(arguments.is_empty(), "views take no arguments");
        let session = cx.as_any().downcast_ref::<SessionState>();
        let session = session.ok_or_else(|| internal(format!("{} asked outside a session", self.view.name)))?;
        crate::security::visibility::check_view(session, self.view.name, self.database)?;
        let rows = (self.view.rows)(session, self.database)?;
        debug_assert!(rows.iter().all(|row| row.len() == self.columns.len()), "{:?} has rows of another width", self.view);
        Ok(rows)
    }
}

/// The view of a schema and name. A query that names no schema does not find it, except for the old `sysobjects` names.
pub(crate) fn find(database: DatabaseId, schema: &str, name: &str) -> Option<Arc<dyn RowSource>> {
    let view = all().find(|view| is_named(view, schema, name))?;
    let output = |column: &Column| OutputColumn {
        name: column.name.to_owned(),
        sql_type: column.sql_type,
        nullable: column.nullable,
        identity: false,
    };
    Some(Arc::new(BoundView { view, database, columns: view.columns.iter().map(output).collect() }))
}

/// A table-valued function of the system.
pub(crate) fn find_function(database: DatabaseId, schema: &str, name: &str) -> Option<Arc<dyn RowSource>> {
    functions::find(database, schema, name)
}

// Short ways to write rows.

pub(crate) fn text(value: impl Into<String>) -> Scalar {
    Scalar::Text(value.into())
}

pub(crate) fn int(value: i32) -> Scalar {
    Scalar::Int(value)
}

pub(crate) fn bit(value: bool) -> Scalar {
    Scalar::Bit(value)
}

pub(crate) fn tiny(value: u8) -> Scalar {
    Scalar::TinyInt(value)
}

pub(crate) fn small(value: i16) -> Scalar {
    Scalar::SmallInt(value)
}

pub(crate) fn big(value: impl TryInto<i64>) -> Scalar {
    Scalar::BigInt(value.try_into().unwrap_or(i64::MAX))
}

pub(crate) fn float(value: f64) -> Scalar {
    Scalar::Float(value)
}

pub(crate) fn moment(value: i64) -> Scalar {
    Scalar::DateTime(value)
}

/// A value of `base` in a column of sql_variant.
pub(crate) fn variant(value: Scalar, base: &SqlType) -> Scalar {
    if value.is_null() { Scalar::Null } else { Scalar::Binary(thawdb_types::variant::encode(&value, base)) }
}

pub(crate) fn optional_text(value: Option<&str>) -> Scalar {
    value.map_or(Scalar::Null, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_numbers_come_back() {
        let mut names: Vec<_> = all().map(|view| (view.schema.to_lowercase(), view.name.to_lowercase())).collect();
        for view in all() {
            let id = id_of(view.schema, view.name).expect("listed");
            assert_eq!(name_of(id), Some((view.schema, view.name)));
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "two views of one name");
    }
}
