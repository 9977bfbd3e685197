//! Conversions from one type to another.

mod rules;

pub use rules::{CastRule, implicit_cast};
