//! The rows a sort holds in memory, in the layout that fits them.
//!
//! The first row decides: key and payload of at most 32 bytes together start as words (`fixed`), which stays as long
//! as every row has the same two lengths; the first that differs moves everything to the arena.
//!
//! Invariants: 1. between `sort` and `clear`, rows are in order (`sort`); 2. `used_bytes` counts capacity that was
//! touched, so that the bound holds for the allocator too. No locks; fails only by running out of memory.

use super::arena::ArenaRows;
use super::fixed::FixedRows;
use crate::error::StorageError;

/// Key and payload length of rows that all have the same.
pub(super) type RowShape = (u32, u32);

pub(super) enum RowBuffer {
    Empty,
    Words1(FixedRows<1>),
    Words2(FixedRows<2>),
    Words3(FixedRows<3>),
    Words4(FixedRows<4>),
    Arena(ArenaRows),
}

macro_rules! each_fixed {
    ($self:expr, $rows:ident => $fixed:expr, $arena:ident => $general:expr, $empty:expr) => {
        match $self {
            RowBuffer::Empty => $empty,
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

    fn for_first_row(key: &[u8], payload: &[u8]) -> Self {
        let shape = (key.len(), payload.len());
        match (key.len() + payload.len()).div_ceil(8) {
            0 | 1 => Self::Words1(FixedRows::new(shape)),
            2 => Self::Words2(FixedRows::new(shape)),
            3 => Self::Words3(FixedRows::new(shape)),
            4 => Self::Words4(FixedRows::new(shape)),
            _ => Self::arena(),
        }
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
            Self::Empty => *self = Self::for_first_row(key, payload),
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
