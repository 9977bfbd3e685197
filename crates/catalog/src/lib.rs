//! Names and what they mean: databases' objects, columns, indexes, as immutable definitions.
//!
//! A [`Catalog`] is a snapshot: DDL makes a new one. The tables it is kept in are trees of `storage` like any other.

pub mod defs;

pub use defs::{Catalog, ColumnDef, ColumnId, DatabaseId, IdentityDef, IndexDef, IndexId, IndexKey, ObjectId, SchemaId, TableDef};
