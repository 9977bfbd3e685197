//! Which parameter of a system procedure an argument is for: by its place, or by its name whatever the case.

use crate::batch::arguments::Argument;
use crate::messages::message;
use thawdb_types::SqlError;

/// The place among `parameters` of the `at`-th argument of a call.
///
/// # Errors
/// 8144 for one more than there are parameters, 8145 for a name that none has.
pub(crate) fn place(procedure: &str, parameters: &[&str], at: usize, argument: &Argument) -> Result<usize, SqlError> {
    if argument.name.is_empty() {
        return (at < parameters.len()).then_some(at).ok_or_else(|| message(8144, &[&procedure]));
    }
    let named = parameters.iter().position(|known| known.eq_ignore_ascii_case(&argument.name));
    named.ok_or_else(|| message(8145, &[&argument.name, &procedure]))
}
