//! The rows a sort holds in memory, in the layout that fits them.
//!
//! The first row decides: key and payload of at most 32 bytes together start as words (`fixed`), which stays as long
//! as every row has the same two lengths; the first that differs moves everything to the arena.
//!
//! Invariants: 1. between `sort` and `clear`, rows are in order (`sort`); 2. `used_bytes` counts capacity that was
//! touched, so that the bound holds for the allocator too. 3. rows that come block by block keep the order of the blocks
//! wherever pushed rows would. No locks; fails only by running out of memory.

use super::arena::ArenaRows;
use super::block::{BLOCK_HEADER_BYTES, RunBlock};
use super::fixed::FixedRows;
use crate::error::StorageError;
use std::ops::Range;

/// Key and payload length of rows that all have the same.
pub(super) type RowShape = (u32, u32);

pub(super) enum RowBuffer {
    /// No row decided yet; of fixed rows, so many last bytes of the keys are in order as the rows come.
    Empty {
        ordered_bytes: usize,
    },
    Words1(FixedRows<1>),
    Words2(FixedRows<2>),
    Words3(FixedRows<3>),
    Words4(FixedRows<4>),
    Arena(ArenaRows),
}

macro_rules! each_fixed {
    ($self:expr, $rows:ident => $fixed:expr, $arena:ident => $general:expr, $empty:expr) => {
        match $self {
            RowBuffer::Empty { .. } => $empty,
            RowBuffer::Words1($rows) => $fixed,
            RowBuffer::Words2($rows) => $fixed,
            RowBuffer::Words3($rows) => $fixed,
            RowBuffer::Words4($rows) => $fixed,
            RowBuffer::Arena($arena) => $general,
        }
    };
}

impl RowBuffer {
    /// A buffer that never uses words.
    pub(super) fn arena() -> Self {
        Self::Arena(ArenaRows::default())
    }

    /// A buffer that its first row will shape, whether it is a stable one or not.
    pub(super) fn unshaped(stable: bool, ordered_bytes: usize) -> Self {
        if stable { Self::arena() } else { Self::Empty { ordered_bytes } }
    }

    /// An empty buffer for rows like those of this one.
    pub(super) fn another(&self) -> Self {
        match self {
            Self::Empty { ordered_bytes } => Self::Empty { ordered_bytes: *ordered_bytes },
            Self::Arena(_) => Self::arena(),
            Self::Words1(rows) => Self::Empty { ordered_bytes: rows.ordered_bytes() },
            Self::Words2(rows) => Self::Empty { ordered_bytes: rows.ordered_bytes() },
            Self::Words3(rows) => Self::Empty { ordered_bytes: rows.ordered_bytes() },
            Self::Words4(rows) => Self::Empty { ordered_bytes: rows.ordered_bytes() },
        }
    }

    fn of_shape(shape: (usize, usize), ordered_bytes: usize) -> Self {
        match (shape.0 + shape.1).div_ceil(8) {
            0 | 1 => Self::Words1(FixedRows::new(shape, ordered_bytes)),
            2 => Self::Words2(FixedRows::new(shape, ordered_bytes)),
            3 => Self::Words3(FixedRows::new(shape, ordered_bytes)),
            4 => Self::Words4(FixedRows::new(shape, ordered_bytes)),
            _ => Self::arena(),
        }
    }

    /// Adds rows of a block.
    pub(super) fn extend(&mut self, block: &RunBlock, range: Range<usize>) {
        let shape = block.shape().map(|(key_bytes, payload_bytes)| (key_bytes as usize, payload_bytes as usize));
        if let (Self::Empty { ordered_bytes }, Some(shape)) = (&self, shape) {
            *self = Self::of_shape(shape, *ordered_bytes);
        }
        if shape.is_some() && self.row_shape() == block.shape() {
            let packed = block.packed(range);
            return each_fixed!(self, rows => rows.extend(packed), _arena => unreachable!("an arena has no shape"), ());
        }
        for index in range {
            let (key, payload) = block.row(index);
            self.push(key, payload);
        }
    }

    /// Hands on all rows in blocks of at most `block_bytes` as they are stored, or of one row.
    pub(super) fn each_block(
        &self,
        block_bytes: usize,
        hand_on: &mut dyn FnMut(RunBlock) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        if let Some((key_bytes, payload_bytes)) = self.row_shape() {
            let step = (block_bytes.saturating_sub(BLOCK_HEADER_BYTES) / ((key_bytes + payload_bytes) as usize).max(1)).max(1);
            for start in (0..self.len()).step_by(step) {
                let range = start..(start + step).min(self.len());
                hand_on(each_fixed!(self, rows => rows.block(range), _arena => unreachable!("an arena has no shape"), RunBlock::new()))?;
            }
            return Ok(());
        }
        let (mut block, mut scratch) = (RunBlock::new(), Vec::new());
        for index in 0..self.len() {
            let (key, payload) = self.row(index, &mut scratch);
            if !block.is_empty() && block.stored_bytes() + RunBlock::row_bytes(None, key.len(), payload.len()) > block_bytes {
                hand_on(std::mem::take(&mut block))?;
            }
            block.push(key, payload);
        }
        if block.is_empty() { Ok(()) } else { hand_on(block) }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], payload: &[u8]) {
        let fits = each_fixed!(self, rows => rows.push(key, payload), arena => { arena.push(key, payload); true }, false);
        if !fits {
            self.push_slow(key, payload);
        }
    }

    #[cold]
    fn push_slow(&mut self, key: &[u8], payload: &[u8]) {
        match self {
            Self::Empty { ordered_bytes } => *self = Self::of_shape((key.len(), payload.len()), *ordered_bytes),
            _ => {
                let mut arena = ArenaRows::default();
                self.for_each(&mut |key, payload| {
                    arena.push(key, payload);
                    Ok(())
                })
                .expect("copying in memory does not fail");
                *self = Self::Arena(arena);
            }
        }
        self.push(key, payload);
    }

    pub(super) fn is_arena(&self) -> bool {
        matches!(self, Self::Arena(_))
    }

    pub(super) fn used_bytes(&self) -> usize {
        each_fixed!(self, rows => rows.used_bytes(), arena => arena.used_bytes(), 0)
    }

    pub(super) fn len(&self) -> usize {
        each_fixed!(self, rows => rows.len(), arena => arena.len(), 0)
    }

    /// The lengths common to all rows, if they are.
    pub(super) fn row_shape(&self) -> Option<RowShape> {
        each_fixed!(self, rows => Some(rows.shape()), _arena => None, None)
    }

    pub(super) fn sort(&mut self, comparison_count: &mut u64) {
        each_fixed!(self, rows => rows.sort(comparison_count), arena => arena.sort(comparison_count), ());
    }

    /// Row `index`; rows kept as words are spelled into `scratch`.
    #[inline]
    pub(super) fn row<'a>(&'a self, index: usize, scratch: &'a mut Vec<u8>) -> (&'a [u8], &'a [u8]) {
        each_fixed!(self, rows => rows.row(index, scratch), arena => arena.row(index), (&[], &[]))
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<(), StorageError>) -> Result<(), StorageError> {
        let mut scratch = Vec::new();
        for index in 0..self.len() {
            let (key, payload) = self.row(index, &mut scratch);
            visit(key, payload)?;
        }
        Ok(())
    }

    /// Forgets the rows, keeps the layout and its memory.
    pub(super) fn clear(&mut self) {
        each_fixed!(self, rows => rows.clear(), arena => arena.clear(), ());
    }
}
