//! What the doors of this crate are told: settings, files, trees, rows, ranges. Plain data without behaviour.

use std::ops::Bound;
use std::path::PathBuf;

/// Settings of the instance's storage.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// Most memory the buffer pool, sorts and versions may use together, in bytes (`max server memory`).
    pub memory_bytes_max: u64,
}

/// What a file of a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Rows, of the filegroup with this number (1 is PRIMARY).
    Rows {
        /// Filegroup number.
        filegroup: u16,
    },
    /// The log.
    Log,
}

/// One file of a database as CREATE DATABASE names it.
#[derive(Debug, Clone)]
pub struct FileSpec {
    /// Logical name.
    pub name: String,
    /// Physical path, as written.
    pub path: PathBuf,
    /// What it holds.
    pub kind: FileKind,
    /// First size in bytes.
    pub size_bytes: u64,
    /// Greatest size in bytes; `None` is UNLIMITED.
    pub size_bytes_max: Option<u64>,
    /// Growth step: bytes, or with [`GROWTH_PERCENT`] per cent of the present size; 0 is none.
    pub growth_bytes: u64,
}

/// Bit that makes a growth step one in per cent of the present size: so it is kept in files and catalogs.
pub const GROWTH_PERCENT: u64 = 1 << 63;
/// Least growth by per cent: an extent.
const GROWTH_BYTES_MIN: u64 = 64 << 10;

/// Bytes by which a file of `present_bytes` grows at a time; 0 if it does not.
pub fn growth_step(growth: u64, present_bytes: u64) -> u64 {
    match growth {
        0 => 0,
        growth if growth & GROWTH_PERCENT != 0 => {
            let step = present_bytes / 100 * (growth & !GROWTH_PERCENT);
            step.next_multiple_of(GROWTH_BYTES_MIN).max(GROWTH_BYTES_MIN)
        }
        bytes => bytes,
    }
}

/// A database to be made or opened.
#[derive(Debug, Clone)]
pub struct DatabaseSpec {
    /// Its name, for messages and views only.
    pub name: String,
    /// Its files; the first `Rows` file is the primary one.
    pub files: Vec<FileSpec>,
    /// Contents need not outlive the instance (tempdb): nothing is logged or synced.
    pub temporary: bool,
}

/// A tree to be made.
#[derive(Debug, Clone, Copy)]
pub struct TreeSpec {
    /// Object it belongs to; written in every page header.
    pub object_id: u32,
    /// Index number within the object (1 clustered, 2.. others); written in every page header.
    pub index_id: u32,
    /// Filegroup to allocate from.
    pub filegroup: u16,
}

/// A row to be written: its inline bytes and the values too large for a page.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Stored on the leaf; with the key at most [`crate::Database::INLINE_BYTES_MAX`] bytes.
    pub inline: &'a [u8],
    /// Stored apart, each up to 2^31 - 1 bytes; read back one at a time by position. At most 1,024; the reference to each
    /// takes sixteen of the inline bytes.
    pub large: &'a [&'a [u8]],
}

impl<'a> Row<'a> {
    /// A row without large parts.
    pub const fn inline(inline: &'a [u8]) -> Self {
        Self { inline, large: &[] }
    }
}

/// Keys from one bound to another.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// Lower bound.
    pub start: Bound<Vec<u8>>,
    /// Upper bound.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: Self = Self { start: Bound::Unbounded, end: Bound::Unbounded };
}

/// Direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanDirection {
    /// Rising keys.
    Forward,
    /// Falling keys.
    Backward,
}
