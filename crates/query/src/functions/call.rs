//! One call of a scalar function: its values, its types, and who asks.

use crate::context::SessionInfo;
use crate::expr::Expr;
use crate::functions::eval;
use thawdb_types::error::message;
use thawdb_types::{Collation, Scalar, SqlError, SqlType};

/// A call with its arguments evaluated.
pub(crate) struct Call<'a> {
    pub(crate) name: &'static str,
    pub(crate) values: &'a [Scalar],
    pub(crate) arguments: &'a [Expr],
    pub(crate) result: &'a SqlType,
    pub(crate) session: &'a dyn SessionInfo,
}

impl<'a> Call<'a> {
    /// The function's value.
    pub(crate) fn evaluate(&self) -> Result<Scalar, SqlError> {
        match eval::find(self.name) {
            Some(evaluator) => evaluator(self),
            None => Err(message(195, &[&self.name, &"function name"])),
        }
    }

    /// Argument `at`; NULL if it was left out.
    pub(crate) fn value(&self, at: usize) -> &'a Scalar {
        self.values.get(at).unwrap_or(&Scalar::Null)
    }

    /// Argument `at` as text; `None` if it is NULL or left out.
    pub(crate) fn text(&self, at: usize) -> Option<&'a str> {
        self.value(at).as_text()
    }

    /// Argument `at` as an integer.
    pub(crate) fn integer(&self, at: usize) -> Option<i64> {
        self.value(at).as_i64()
    }

    /// Argument `at` as a float.
    pub(crate) fn float(&self, at: usize) -> Option<f64> {
        match self.value(at) {
            Scalar::Float(v) => Some(*v),
            Scalar::Real(v) => Some(f64::from(*v)),
            other => other.as_i64().map(|v| v as f64),
        }
    }

    /// Type of argument `at`.
    pub(crate) fn type_of(&self, at: usize) -> &'a SqlType {
        &self.arguments[at].sql_type
    }

    /// Collation the call compares by: that of the first text argument.
    pub(crate) fn collation(&self) -> Collation {
        self.arguments.iter().find_map(|a| a.sql_type.collation()).unwrap_or(Collation::DEFAULT)
    }
}
