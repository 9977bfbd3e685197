//! From syntax tree to rows: binder, optimizer, operators, functions, DML.
//!
//! ```text
//! tsql::ast ── bind ──► algebra ── optimize ──► phys::Node ── exec ──► Arrow batches
//! ```

mod aggregate;
pub mod context;
mod eval;
pub mod exec;
pub mod expr;
mod functions;
pub mod phys;

#[cfg(test)]
mod testing;
