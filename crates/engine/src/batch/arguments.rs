//! Arguments of a procedure call, from a statement or a remote call, and their way to the parameters.

use crate::api::parameter::{Parameter, TableRows};
use std::sync::Arc;
use thawdb_catalog::{ObjectId, TableDef};
use thawdb_types::{Scalar, SqlType};

/// One argument.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// Name of the parameter with its `@`; empty when given by position.
    pub(crate) name: String,
    pub(crate) value: Scalar,
    pub(crate) sql_type: SqlType,
    /// Whether the caller wants the value back.
    pub(crate) output: bool,
    /// Variable of the calling scope that takes it.
    pub(crate) target: Option<usize>,
    /// A table variable, or rows that a client sent, in place of a value.
    pub(crate) table: Option<TableArgument>,
    /// DEFAULT was written, or nothing was sent.
    pub(crate) is_default: bool,
}

/// A table as an argument.
#[derive(Debug, Clone)]
pub(crate) enum TableArgument {
    /// A table variable of the caller, and its table type.
    Variable { table: Arc<TableDef>, of: Option<ObjectId> },
    /// Rows a client sent.
    Rows(Arc<TableRows>),
}

impl From<&Parameter> for Argument {
    fn from(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name.clone(),
            value: parameter.value.clone(),
            sql_type: parameter.sql_type,
            output: parameter.output,
            target: None,
            table: parameter.rows.clone().map(TableArgument::Rows),
            is_default: parameter.is_default,
        }
    }
}
