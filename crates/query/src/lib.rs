//! From syntax tree to rows: binder, optimizer, operators, functions, DML.
//!
//! ```text
//! tsql::ast ── bind ──► algebra ── optimize ──► phys::Node ── exec ──► Arrow batches
//! ```

pub mod context;
pub mod expr;
pub mod phys;
