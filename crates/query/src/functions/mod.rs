//! Built-in functions: their type rules here, their evaluation beside them, joined by the upper-case name.

pub(crate) mod call;
pub(crate) mod eval;
pub mod signature;
mod eval_date;
mod eval_format;
mod eval_math;
mod eval_misc;
mod eval_text;
mod text;

#[cfg(test)]
mod tests;
