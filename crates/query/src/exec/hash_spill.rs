//! Rows set aside in the order of their keys' hashes: how grouping, DISTINCT and hash joins go on beyond their grant.
//!
//! ```text
//! push(hash of the key, row) ─► external sort by hash ─► parts that end where the hash changes
//! ```
//! Rows with equal keys have equal hashes and so come together, in the order in which they were pushed. An operator takes
//! parts until its memory is full, hands on what it has at the end of a hash and goes on with empty tables. That is a
//! partitioning with as many partitions as the rows turn out to need, without recursion: only the rows of one hash must
//! fit in memory.
//!
//! Memory: the sort's share of the grant ([`SHARE`]), held in the account from the first row on. Failure: a full disk is
//! what storage says of it; files go when the operator does.

use crate::exec::spill::{decode_row, encode_row, failed};
use crate::exec::{Batch, Cx};
use arrow_array::ArrayRef;
use thawdb_storage::StorageError;
use thawdb_storage::sort::{ExternalSort, SortOptions, SortedRows};
use thawdb_types::{ColumnBuilder, SqlError, SqlType};

/// One part of so many of the grant is what setting rows aside takes: two such sorts (a join's) leave half of it.
pub(super) const SHARE: usize = 8;
/// Least memory of a sort: below it runs would be many and short.
const MEMORY_BYTES_MIN: usize = 16 << 10;

fn share_of(cx: &Cx<'_, '_>) -> usize {
    (cx.host.memory_grant_bytes() / SHARE).max(MEMORY_BYTES_MIN)
}

/// Rows being set aside.
pub(super) struct HashSpill {
    sort: ExternalSort,
    types: Vec<SqlType>,
    payload: Vec<u8>,
}

impl HashSpill {
    pub(super) fn new(types: Vec<SqlType>, cx: &Cx<'_, '_>) -> Self {
        // Stable: aggregates that depend on the order of their rows see the order of the input.
        let options = SortOptions { memory_bytes_max: share_of(cx), temp_folder: cx.host.temp_folder(), stable: true, ordered_bytes: 0 };
        Self { sort: ExternalSort::new(cx.host.env().clone(), options), types, payload: Vec::new() }
    }

    /// Memory that setting aside takes, and reading back after it.
    pub(super) fn memory_bytes(cx: &Cx<'_, '_>) -> usize {
        share_of(cx)
    }

    /// Sets a row aside.
    pub(super) fn push(&mut self, hash: u64, columns: &[ArrayRef], row: usize, cx: &Cx<'_, '_>) -> Result<(), SqlError> {
        self.payload.clear();
        encode_row(columns, &self.types, row, &mut self.payload);
        self.sort.push(&hash.to_be_bytes(), &self.payload).map_err(|e| failed(e, cx))
    }

    /// Ends the intake.
    pub(super) fn finish(self, cx: &mut Cx<'_, '_>) -> Result<HashedRows, SqlError> {
        let rows = self.sort.finish().map_err(|e| failed(e, cx))?;
        cx.state.spilled_bytes += rows.statistics().spilled_bytes;
        let mut hashed = HashedRows { rows, types: self.types, hash: None, payload: Vec::new() };
        hashed.step().map_err(|e| failed(e, cx))?;
        Ok(hashed)
    }
}

/// Rows on their way back.
pub(super) struct HashedRows {
    rows: SortedRows,
    types: Vec<SqlType>,
    /// Hash of the next row, whose bytes are in `payload`.
    hash: Option<u64>,
    payload: Vec<u8>,
}

/// Some rows.
pub(super) struct Part {
    pub(super) batch: Batch,
    /// Hash of the last of them.
    pub(super) hash: u64,
    /// Whether no row of that hash is left.
    pub(super) ends_hash: bool,
}

impl HashedRows {
    fn step(&mut self) -> Result<(), StorageError> {
        self.hash = None;
        if let Some((key, payload)) = self.rows.next()? {
            let key: [u8; 8] = key.try_into().map_err(|_| StorageError::Bug("the key of a row set aside is not a hash".into()))?;
            self.hash = Some(u64::from_be_bytes(key));
            self.payload.clear();
            self.payload.extend_from_slice(payload);
        }
        Ok(())
    }

    /// The next rows with hashes up to `hash_max`: about `rows_aim` of them, a few more if that lets them end with their
    /// hash. `None` if there are none.
    pub(super) fn next(&mut self, rows_aim: usize, hash_max: u64, cx: &Cx<'_, '_>) -> Result<Option<Part>, SqlError> {
        self.next_part(rows_aim, hash_max).map_err(|e| failed(e, cx))
    }

    fn next_part(&mut self, rows_aim: usize, hash_max: u64) -> Result<Option<Part>, StorageError> {
        let mut builders: Vec<ColumnBuilder> = self.types.iter().map(|t| ColumnBuilder::new(t, rows_aim)).collect();
        let (mut rows, mut last) = (0, None);
        while let Some(hash) = self.hash.filter(|hash| *hash <= hash_max) {
            let more = rows < rows_aim || (last == Some(hash) && rows < 2 * rows_aim);
            if !more {
                break;
            }
            decode_row(&self.payload, &mut builders)?;
            (rows, last) = (rows + 1, Some(hash));
            self.step()?;
        }
        let Some(hash) = last else { return Ok(None) };
        let batch = Batch::new(builders.iter_mut().map(ColumnBuilder::finish).collect(), rows);
        Ok(Some(Part { batch, hash, ends_hash: self.hash != Some(hash) }))
    }
}
