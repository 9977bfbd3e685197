//! From syntax tree to rows: binder, optimizer, operators, functions, DML.
//!
//! ```text
//! tsql::ast ── bind ──► algebra ── optimize ──► phys::Node ── exec ──► Arrow batches
//! ```

pub mod access;
mod aggregate;
pub mod algebra;
pub mod bind;
pub mod bulk;
pub mod compile;
pub mod context;
mod eval;
pub mod exec;
pub mod explain;
pub mod expr;
pub mod functions;
mod json;
pub mod locking;
pub mod optimize;
pub mod phys;
pub mod statistics;
pub mod usage;
pub mod workers;

mod xml;

#[cfg(test)]
mod sql_tests;
#[cfg(test)]
mod testing;

pub use compile::{
    CompileContext, Compiled, CompiledKind, Dependency, Settings, bind_assignment, bind_default, bind_scalar, compile, insert_all,
};
