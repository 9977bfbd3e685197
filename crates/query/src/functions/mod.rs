//! Built-in functions: their type rules here, their evaluation beside them, joined by the upper-case name.

pub(crate) mod call;
pub(crate) mod eval;
mod eval_date;
mod eval_format;
mod eval_hierarchy;
mod eval_math;
mod eval_misc;
mod eval_text;
mod format_message;
mod parse;
pub mod signature;
pub(crate) mod table_valued;
mod text;

pub(crate) use eval_text::or_null;
pub use format_message::format_message;

#[cfg(test)]
mod tests;

/// The name under which plans call functions of the user's: the database's and the function's number come first among the
/// arguments.
pub(crate) const USER_FUNCTION: &str = "USER FUNCTION";
