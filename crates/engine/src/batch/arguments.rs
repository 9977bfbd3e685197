//! Arguments of a procedure call, from a statement or a remote call, and their way to the parameters.

use crate::api::parameter::Parameter;
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
    /// DEFAULT was written, or nothing was sent.
    pub(crate) is_default: bool,
}

impl From<&Parameter> for Argument {
    fn from(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name.clone(),
            value: parameter.value.clone(),
            sql_type: parameter.sql_type,
            output: parameter.output,
            target: None,
            is_default: false,
        }
    }
}
