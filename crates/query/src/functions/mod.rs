//! Built-in functions: their type rules here, their evaluation beside them, joined by the upper-case name.

pub(crate) mod call;
pub(crate) mod eval;
mod eval_date;
mod eval_format;
mod eval_math;
mod eval_misc;
mod eval_text;
pub mod signature;
mod text;

#[cfg(test)]
mod tests;
