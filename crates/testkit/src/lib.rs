//! What tests of every floor share; nothing but tests and benches sees it.

pub mod crash;
pub mod fuzz;
pub mod history;
pub mod logic;
pub mod mutate;
pub mod simulate;
