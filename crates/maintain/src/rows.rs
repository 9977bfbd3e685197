//! Rows of a scan, some thousand at a time, in memory that is used again.
//!
//! What is decoded together stays in a core's second-level cache. Blocks may come without whole keys:
//! [`crate::columns::Keys`] spells them. No locks; failure is the scan's.

use thawdb_storage::{RowBlock, Scan, StorageError};

/// Rows decoded together: their columns stay in the second-level cache.
pub(crate) const DECODE_ROWS: usize = 4_096;

/// Blocks of rows that were read together.
#[derive(Default)]
pub(crate) struct RowBatch {
    blocks: Vec<RowBlock>,
    used: usize,
}

impl RowBatch {
    /// Takes leaves of the scan until there are `rows_min` rows; how many there are, 0 at the end.
    pub(crate) fn fill(&mut self, scan: &mut Scan, rows_min: usize) -> Result<usize, StorageError> {
        self.fill_bounded(scan, rows_min, usize::MAX)
    }

    /// The same with no more than `leaves_max` leaves.
    pub(crate) fn fill_bounded(&mut self, scan: &mut Scan, rows_min: usize, leaves_max: usize) -> Result<usize, StorageError> {
        self.used = 0;
        let mut rows = 0;
        while rows < rows_min && self.used < leaves_max {
            if self.used == self.blocks.len() {
                self.blocks.push(RowBlock::default());
            }
            let block = &mut self.blocks[self.used];
            if !scan.next_into(block)? {
                break;
            }
            rows += block.len();
            self.used += 1;
        }
        // Those of a longer batch before.
        self.blocks[self.used..].iter_mut().for_each(RowBlock::let_go);
        Ok(rows)
    }

    /// The leaves.
    pub(crate) fn blocks(&self) -> &[RowBlock] {
        &self.blocks[..self.used]
    }
}
