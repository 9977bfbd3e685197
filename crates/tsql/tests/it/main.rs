//! Tests of the parser as its callers see it: trees, errors, bounds, and that no text whatever makes it panic.

mod dump;
mod errors;
mod fuzz;
mod limits;
mod real;
mod trees;
