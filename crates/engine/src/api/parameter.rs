//! Parameters of a batch or a remote procedure call.

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
}

impl Parameter {
    /// An input parameter.
    pub fn input(name: impl Into<String>, sql_type: SqlType, value: Scalar) -> Self {
        Self { name: name.into(), sql_type, value, output: false }
    }
}
