//! Bulk loading: character files to batches, and batches of any origin into a table.
//!
//! ```text
//! file ─ source ─► bytes ─ reader (scan) ─► fields ─ field ─► Batch ┐
//! INSERT BULK of the wire, the demo's generator ────────► Batch ────┴─ load ─► sorted rows ─► whole leaves
//! ```
//! | module | what it is |
//! |---|---|
//! | [`options`] | WITH (...) of BULK INSERT and OPENROWSET(BULK), checked |
//! | `source` | the file in large pieces: byte order mark, UTF-16 to UTF-8 |
//! | `scan` | finding terminators, eight bytes at a time |
//! | `code_page` | bytes of a field to text |
//! | `field` | one field to one value of its column |
//! | [`reader`] | rows, their errors, batches |
//! | [`load`] | identity, defaults, NULLs, keys: batches into the table's trees |
//! | `tree_load` | one tree's part of a load: append, sort, insert |
//!
//! What is not built: native and widenative files, FORMATFILE, ERRORFILE (40514 each).

mod code_page;
mod field;
pub mod load;
pub mod options;
pub mod reader;
mod scan;
mod source;
mod tree_load;

#[cfg(test)]
mod tests;

pub use load::{LoadOptions, bulk_insert};
pub use options::{BulkOptions, CodePage};
pub use reader::{BulkField, BulkReader};
pub use source::{WholeFile, read_whole};
