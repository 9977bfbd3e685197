//! Parameters of a batch or a remote procedure call.

use std::sync::Arc;
use thawdb_types::{Scalar, SqlType};

/// One parameter as a client sends it.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name with the sign (`@p1`); empty when given by position.
    pub name: String,
    /// Its type as sent.
    pub sql_type: SqlType,
    /// Its value.
    pub value: Scalar,
    /// Whether the caller wants its value back.
    pub output: bool,
    /// Whether the procedure's default is wanted in place of the value.
    pub is_default: bool,
    /// The rows of a table-valued parameter, which has no value.
    pub rows: Option<Arc<TableRows>>,
}

/// The rows of a table-valued parameter.
#[derive(Debug, Clone, Default)]
pub struct TableRows {
    /// Types of the columns sent.
    pub types: Vec<SqlType>,
    /// Position in the table type of each column sent.
    pub targets: Vec<usize>,
    /// The rows, a value for each column sent.
    pub rows: Vec<Vec<Scalar>>,
}

impl Parameter {
    /// An input parameter.
    pub fn input(name: impl Into<String>, sql_type: SqlType, value: Scalar) -> Self {
        Self { name: name.into(), sql_type, value, output: false, is_default: false, rows: None }
    }
}
