//! Table-valued functions of the system: views that take arguments.
//!
//! Arguments come as the statement wrote them; NULL and DEFAULT are `Scalar::Null`. Which are left out is for each
//! function to say, by [`Function::arguments`].

use crate::session::state::SessionState;
use crate::storage_error::internal;
use crate::views::{Column, Rows};
use std::sync::Arc;
use thawdb_catalog::DatabaseId;
use thawdb_query::context::SessionInfo;
use thawdb_query::phys::{OutputColumn, RowSource};
use thawdb_types::{Scalar, SqlError};

/// A function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    /// How many arguments it takes.
    pub(crate) arguments: usize,
    pub(crate) rows: fn(&SessionState, DatabaseId, &[Scalar]) -> Result<Rows, SqlError>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sys.{}", self.name)
    }
}

fn all() -> impl Iterator<Item = &'static Function> {
    let groups: [&'static [Function]; 6] = [
        super::log::FUNCTIONS,
        super::files::FUNCTIONS,
        super::statistics::FUNCTIONS,
        super::plans::FUNCTIONS,
        super::allocations::FUNCTIONS,
        super::principals::FUNCTIONS,
    ];
    groups.into_iter().flatten()
}

#[derive(Debug)]
struct BoundFunction {
    function: &'static Function,
    database: DatabaseId,
    columns: Vec<OutputColumn>,
}

impl RowSource for BoundFunction {
    fn name(&self) -> &str {
        self.function.name
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, cx: &dyn SessionInfo, arguments: &[Scalar]) -> Result<Rows, SqlError> {
        let session = cx.as_any().downcast_ref::<SessionState>();
        let session = session.ok_or_else(|| internal(format!("{:?} asked outside a session", self.function)))?;
        if arguments.len() < self.function.arguments {
            return Err(crate::messages::message(313, &[&format!("{:?}", self.function)]));
        }
        if arguments.len() > self.function.arguments {
            return Err(crate::messages::message(8144, &[&format!("{:?}", self.function)]));
        }
        crate::security::visibility::check_view(session, self.function.name, self.database)?;
        (self.function.rows)(session, self.database, arguments)
    }
}

/// The function of a schema and name.
pub(crate) fn find(database: DatabaseId, schema: &str, name: &str) -> Option<Arc<dyn RowSource>> {
    // Functions called fn_... are found without their schema too.
    let named = |function: &Function| function.name.eq_ignore_ascii_case(name);
    let placed = |function: &Function| schema.eq_ignore_ascii_case("sys") || (schema.is_empty() && function.name.starts_with("fn_"));
    let function = all().find(|function| named(function) && placed(function))?;
    let output = |column: &Column| OutputColumn {
        name: column.name.to_owned(),
        sql_type: column.sql_type,
        nullable: column.nullable,
        identity: false,
    };
    Some(Arc::new(BoundFunction { function, database, columns: function.columns.iter().map(output).collect() }))
}

/// The databases an argument means: all open ones for NULL, none for a number of none.
pub(crate) fn databases(session: &SessionState, argument: &Scalar) -> Vec<Arc<crate::instance::database::OpenDatabase>> {
    match argument {
        Scalar::Null => session.engine.all_databases(),
        other => {
            let id = other.as_i64().and_then(|id| i32::try_from(id).ok()).unwrap_or(-1);
            let id = if id == 0 { session.database.id.0 } else { id };
            session.engine.database(DatabaseId(id)).into_iter().collect()
        }
    }
}
