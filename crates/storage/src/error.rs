//! What can go wrong below, by what the caller can do about it.

use crate::ids::{LogPoint, PageId, TreeId};
use std::fmt;
use thawdb_device::DeviceError;

/// An error of this crate. `engine` maps it, totally, to SQL Server's numbers.
#[derive(Debug, Clone)]
pub enum StorageError {
    /// An entry with this key is there already (2601, 2627).
    Duplicate {
        /// The tree.
        tree: TreeId,
        /// The key, as bytes.
        key: Vec<u8>,
    },
    /// Another transaction changed the row since this one's snapshot (3960).
    SnapshotConflict {
        /// The row's tree.
        tree: TreeId,
    },
    /// Chosen as deadlock victim; the transaction has been rolled back (1205).
    Deadlock,
    /// A lock was not granted in time (1222).
    LockTimeout,
    /// The statement was cancelled.
    Cancelled,
    /// The log is full and may not grow (9002); `reuse_wait` is log_reuse_wait_desc.
    LogFull {
        /// Why no part of the log can be used again.
        reuse_wait: &'static str,
        /// Where the log that cannot be used again begins.
        holdup: LogPoint,
    },
    /// Every frame of the buffer pool is latched or dirty and cannot be written (802).
    PoolExhausted,
    /// No data file of the filegroup can grow (1105).
    FileFull {
        /// Its number.
        filegroup: u16,
        /// The tree that wanted room, 0 if none did.
        tree: TreeId,
    },
    /// The tree's filegroup is read-only (652).
    ReadOnly {
        /// Its number.
        filegroup: u16,
        /// The tree.
        tree: TreeId,
    },
    /// A row or key is longer than the format allows.
    TooLong {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes allowed.
        bytes_max: usize,
    },
    /// A read succeeded and its content is wrong (824).
    Damage {
        /// The page, if it is one.
        page: PageId,
        /// Byte offset in the file.
        offset: u64,
        /// What was expected and what was found.
        detail: String,
    },
    /// The device failed (823).
    Io(DeviceError),
    /// A log write failed earlier: the database refuses writes until it is opened again.
    Poisoned,
    /// No such tree, or not any more (608, unless the asker knows better).
    NoTree(TreeId),
    /// An index lacks the entry of a row that is being changed (8646).
    NoEntry(TreeId),
    /// No such database or file.
    NotFound(String),
    /// Our own mistake, caught before it reached data.
    Bug(String),
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for StorageError {}

impl From<DeviceError> for StorageError {
    fn from(error: DeviceError) -> Self {
        Self::Io(error)
    }
}
