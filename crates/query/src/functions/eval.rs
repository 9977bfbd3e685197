//! The table of scalar functions: upper-case name to evaluator.

use crate::functions::call::Call;
use thawdb_types::{Scalar, SqlError};

/// Computes a call.
pub(crate) type Evaluator = fn(&Call<'_>) -> Result<Scalar, SqlError>;

/// The evaluator of a function.
pub(crate) fn find(name: &str) -> Option<Evaluator> {
    EVALUATORS.binary_search_by(|(known, _)| (*known).cmp(name)).ok().map(|at| EVALUATORS[at].1)
}

/// Sorted by name.
pub(crate) static EVALUATORS: &[(&str, Evaluator)] = &[];
