//! Built-in functions: their type rules here, their evaluation beside them, joined by the upper-case name.

pub(crate) mod call;
pub(crate) mod eval;
