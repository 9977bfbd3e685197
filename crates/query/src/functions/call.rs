//! One call of a scalar function: its values, its types, and who asks; and how it is called, found once for a plan.

use crate::context::SessionInfo;
use crate::expr::Expr;
use crate::functions::USER_FUNCTION;
use crate::functions::eval::{self, Evaluator};
use thawdb_types::{Collation, Scalar, SqlType};

/// A call with its arguments evaluated.
pub(crate) struct Call<'a> {
    pub(crate) name: &'static str,
    pub(crate) values: &'a [Scalar],
    pub(crate) arguments: &'a [Expr],
    pub(crate) result: &'a SqlType,
    pub(crate) session: &'a dyn SessionInfo,
}

/// How a function is called, found by its name when a plan is made: looking for it at every row cost more than most functions do.
#[derive(Debug, Clone, Copy)]
pub struct Calling(pub(crate) Way);

/// Which arguments are evaluated, and what becomes of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// All of them, by the host: a function that users wrote.
    User,
    /// One after another until one is not NULL: ISNULL, COALESCE.
    FirstValue,
    /// The condition and then one of two: IIF.
    If,
    /// The index and then the one it names: CHOOSE.
    Choose,
    /// All of them.
    Plain(Evaluator),
    /// No function: 195.
    Unknown,
}

impl Calling {
    /// Of the function with this stable name.
    pub fn of(name: &str) -> Self {
        Self(match name {
            USER_FUNCTION => Way::User,
            "ISNULL" | "COALESCE" => Way::FirstValue,
            "IIF" => Way::If,
            "CHOOSE" => Way::Choose,
            _ => eval::find(name).map_or(Way::Unknown, Way::Plain),
        })
    }
}

impl<'a> Call<'a> {
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
