//! Pages, log, trees, transactions: the floor that stores bytes and never asks what they mean.
//!
//! Keys are memcmp-ordered byte strings, rows are byte strings. The doors to this crate are [`Storage`] (one an
//! instance), [`Database`], [`Txn`], [`ReadView`], [`Scan`], [`BulkAppender`] and `sort::ExternalSort`.

mod ahead_page;
mod btree;
mod bulk;
pub mod check;
pub mod checkpoint;
mod cleaner;
mod compaction;
mod database;
pub mod error;
#[cfg(test)]
mod format_tests;
mod hash;
pub mod ids;
mod large;
mod locked_scan;
pub mod locks;
pub mod log;
mod look;
pub mod memory;
pub mod mini;
pub mod page;
pub mod page_reads;
pub mod pool;
mod private_row;
mod read_ahead;
pub mod record;
pub mod recovery;
mod rollback;
mod row_block;
mod row_change;
mod scan;
pub mod sort;
pub mod space;
mod spec;
mod storage;
pub mod store;
mod txn;
mod txn_locks;
mod undo;
mod unique;
mod units;
mod versions;
mod view;

pub use bulk::{BulkAppend, BulkAppender};
pub use checkpoint::TransactionTable;
pub use database::Database;
pub use error::StorageError;
pub use ids::{LargeRef, Lsn, PageId, TreeId, TxnId};
pub use locked_scan::{LockedRows, LockingScan};
pub use look::{Look, TreeHandle};
pub use mini::{Handle, Mini, UnitSpec};
pub use read_ahead::group::ScanGroup;
pub use recovery::RecoveryListener;
pub use row_block::{PlainRows, RowBlock};
pub use scan::Scan;
pub use space::Unit;
pub use spec::{DatabaseSpec, FileKind, FileSpec, GROWTH_PERCENT, KeyRange, Row, ScanDirection, StorageConfig, TreeSpec, growth_step};
pub use storage::Storage;
pub use store::{Store, background::Background};
pub use txn::{Savepoint, Txn};
pub use txn_locks::{END_ITEM, ReadLocks};
pub use units::TreePage;
pub use view::ReadView;
