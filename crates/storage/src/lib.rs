//! Pages, log, trees, transactions: the floor that stores bytes and never asks what they mean.
//!
//! Keys are memcmp-ordered byte strings, rows are byte strings. The doors to this crate are [`Storage`] (one an
//! instance), [`Database`], [`Txn`], [`ReadView`], [`Scan`], [`BulkAppender`] and `sort::ExternalSort`.

pub mod checkpoint;
mod database;
pub mod error;
#[cfg(test)]
mod format_tests;
mod hash;
pub mod ids;
pub mod locks;
pub mod log;
pub mod mini;
pub mod page;
pub mod pool;
pub mod record;
pub mod recovery;
pub mod sort;
pub mod space;
pub mod store;
mod versions;

pub use checkpoint::TransactionTable;
pub use database::{
    BulkAppender, Database, DatabaseSpec, FileKind, FileSpec, KeyRange, ReadView, Row, RowBlock, Savepoint, Scan, ScanDirection, Storage,
    StorageConfig, TreeSpec, Txn,
};
pub use error::StorageError;
pub use ids::{LargeRef, Lsn, PageId, TreeId, TxnId};
pub use mini::{Handle, Mini, UnitSpec};
pub use recovery::RecoveryListener;
pub use space::Unit;
pub use store::{Store, background::Background};
