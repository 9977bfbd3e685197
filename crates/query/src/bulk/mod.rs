//! BULK INSERT's data files: options, splitting into rows and fields, fields into typed columns.
//!
//! ```text
//! file ─ chunks ─► buffer ─ split ─► field ranges of one row ─ parse ─► builders ─► Batch ─► exec::BulkInsert
//! ```
//! Invariants: 1. memory is bounded by one buffer, which holds whole rows and grows only for a row that is larger
//! ([`reader`] refuses one beyond its bound, 4866). 2. A row that cannot be parsed is counted, told, and left out, until
//! MAXERRORS is passed (4865).
//! It writes nothing: the rows go to whoever asked for them.

mod field;
mod options;
mod reader;
mod split;

#[cfg(test)]
mod tests;

pub use options::{BulkFileOptions, BulkOptions, CodePage};
pub use reader::{BulkField, BulkReader};
