//! Stored rows to columns: key columns from keys, row columns by the row codec, the locator as it is.
//!
//! ```text
//! blocks of a scan ─► Picked { block, row }... ─► one loop a column ─► ColumnBuilder
//! ```
//! Integers at a fixed place of the key take a loop of their own; they are most clustered keys.

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use std::sync::Arc;
use thawdb_catalog::{ColumnPlace, TreeLayout};
use thawdb_storage::{PageId, ReadView, RowBlock, StorageError};
use thawdb_types::key::{Damage, KeyColumn, decode_value, skip_value};
use thawdb_types::row::RowSource;
use thawdb_types::{ColumnBuilder, SqlType};

/// What reading rows may fail with.
#[derive(Debug)]
pub(super) struct ReadError(pub(super) StorageError);

impl From<Damage> for ReadError {
    fn from(damage: Damage) -> Self {
        Self(StorageError::Damage { page: PageId::NONE, offset: 0, detail: damage.detail })
    }
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self(error)
    }
}

/// All rows of a block.
struct Whole<'a> {
    block: &'a RowBlock,
    view: &'a ReadView,
}

/// Some rows of some blocks.
struct Picked<'a> {
    blocks: &'a [RowBlock],
    picks: &'a [(u32, u32)],
    view: &'a ReadView,
}

/// Rows whose keys can be asked as well.
trait KeyedRows: RowSource<Error = ReadError> {
    fn key(&self, index: usize) -> &[u8];
}

fn large(view: &ReadView, block: &RowBlock, row: usize, ordinal: usize) -> Result<Vec<u8>, ReadError> {
    let part = block.large(row).get(ordinal).ok_or_else(|| Damage::new(format!("a row names large part {ordinal} and has none")))?;
    Ok(view.read_large(*part)?)
}

impl RowSource for Whole<'_> {
    type Error = ReadError;

    fn len(&self) -> usize {
        self.block.len()
    }

    #[inline]
    fn row(&self, index: usize) -> &[u8] {
        self.block.value(index)
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, ReadError> {
        large(self.view, self.block, index, ordinal)
    }
}

impl KeyedRows for Whole<'_> {
    #[inline]
    fn key(&self, index: usize) -> &[u8] {
        self.block.key(index)
    }
}

impl RowSource for Picked<'_> {
    type Error = ReadError;

    fn len(&self) -> usize {
        self.picks.len()
    }

    #[inline]
    fn row(&self, index: usize) -> &[u8] {
        let (block, row) = self.picks[index];
        self.blocks[block as usize].value(row as usize)
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, ReadError> {
        let (block, row) = self.picks[index];
        large(self.view, &self.blocks[block as usize], row as usize, ordinal)
    }
}

impl KeyedRows for Picked<'_> {
    #[inline]
    fn key(&self, index: usize) -> &[u8] {
        let (block, row) = self.picks[index];
        self.blocks[block as usize].key(row as usize)
    }
}

/// What a scan reads: a column of the table, or the locator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Column {
        place: ColumnPlace,
        sql_type: SqlType,
    },
    /// The row's whole key.
    Locator {
        of_secondary: bool,
    },
}

/// Column `wanted` of the rows of `blocks`: of all of them, or of `picks` only.
pub(super) fn decode(
    layout: &TreeLayout,
    wanted: &Wanted,
    blocks: &[RowBlock],
    picks: Option<&[(u32, u32)]>,
    view: &ReadView,
) -> Result<ArrayRef, ReadError> {
    let rows = picks.map_or_else(|| blocks.iter().map(RowBlock::len).sum(), <[_]>::len);
    match wanted {
        Wanted::Locator { of_secondary } => locators(layout, *of_secondary, blocks, picks, view, rows),
        Wanted::Column { place, sql_type } => {
            let mut builder = ColumnBuilder::new(sql_type, rows);
            match picks {
                Some(picks) => append(layout, *place, &Picked { blocks, picks, view }, &mut builder)?,
                None => blocks.iter().try_for_each(|block| append(layout, *place, &Whole { block, view }, &mut builder))?,
            }
            Ok(builder.finish())
        }
    }
}

fn append(layout: &TreeLayout, place: ColumnPlace, rows: &impl KeyedRows, builder: &mut ColumnBuilder) -> Result<(), ReadError> {
    match place {
        ColumnPlace::Row(position) => layout.row.decode_column(position, rows, builder),
        ColumnPlace::Key(at) => append_key(layout, at, rows, builder),
        ColumnPlace::Elsewhere => panic!("the scan looks up columns its index lacks"),
    }
}

fn append_key(layout: &TreeLayout, at: usize, rows: &impl KeyedRows, builder: &mut ColumnBuilder) -> Result<(), ReadError> {
    let column = &layout.key[at];
    if let Some(offset) = layout.fixed_key_offset(at).filter(|_| !column.nullable) {
        if append_fixed(column, offset, rows, builder)? {
            return Ok(());
        }
    }
    for index in 0..rows.len() {
        let mut rest = rows.key(index);
        layout.key[..at].iter().try_for_each(|before| skip_value(&mut rest, before))?;
        builder.append(&decode_value(&mut rest, column)?);
    }
    Ok(())
}

/// The loop for integers at a fixed place of the key; false if the column is not one.
fn append_fixed(column: &KeyColumn, offset: usize, rows: &impl KeyedRows, builder: &mut ColumnBuilder) -> Result<bool, Damage> {
    fn bytes<const W: usize>(key: &[u8], offset: usize, turn: u8) -> Result<[u8; W], Damage> {
        let found: [u8; W] = key
            .get(offset..offset + W)
            .and_then(|b| b.try_into().ok())
            .ok_or_else(|| Damage::new(format!("a key ends before byte {}", offset + W)))?;
        Ok(if turn == 0 { found } else { found.map(|b| !b) })
    }
    let turn = if column.descending { 0xFF } else { 0 };
    match builder {
        ColumnBuilder::Int32(b) if matches!(column.sql_type, SqlType::Int | SqlType::Date) => {
            for index in 0..rows.len() {
                b.append_value((u32::from_be_bytes(bytes(rows.key(index), offset, turn)?) ^ 1 << 31) as i32);
            }
        }
        ColumnBuilder::Int64(b) => {
            for index in 0..rows.len() {
                b.append_value((u64::from_be_bytes(bytes(rows.key(index), offset, turn)?) ^ 1 << 63) as i64);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn locators(
    layout: &TreeLayout,
    of_secondary: bool,
    blocks: &[RowBlock],
    picks: Option<&[(u32, u32)]>,
    view: &ReadView,
    rows: usize,
) -> Result<ArrayRef, ReadError> {
    fn fill(layout: &TreeLayout, of_secondary: bool, rows: &impl KeyedRows, builder: &mut BinaryBuilder) -> Result<(), ReadError> {
        for index in 0..rows.len() {
            let key = rows.key(index);
            builder.append_value(if of_secondary { layout.row_key(key)? } else { key });
        }
        Ok(())
    }
    let mut builder = BinaryBuilder::with_capacity(rows, rows * 8);
    match picks {
        Some(picks) => fill(layout, of_secondary, &Picked { blocks, picks, view }, &mut builder)?,
        None => blocks.iter().try_for_each(|block| fill(layout, of_secondary, &Whole { block, view }, &mut builder))?,
    }
    Ok(Arc::new(builder.finish()))
}
