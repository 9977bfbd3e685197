//! Columns of stored rows: from the key where it gives them back, else from the row.
//!
//! One loop a column over the rows of some leaves; integers at a fixed place of the key, which most clustered keys are,
//! take a loop without decoding what stands before them.

use crate::index_build::BuildError;
use thawdb_catalog::{ColumnPlace, TreeLayout};
use thawdb_storage::{PlainRows, ReadView, RowBlock};
use thawdb_types::key::{Damage, KeyColumn, decode_value, skip_value};
use thawdb_types::row::RowSource;
use thawdb_types::{ColumnBuilder, Scalar, SqlType};

/// The rows of a leaf.
struct Rows<'a> {
    block: &'a RowBlock,
    view: &'a ReadView,
}

impl RowSource for Rows<'_> {
    type Error = BuildError;

    fn len(&self) -> usize {
        self.block.len()
    }

    #[inline]
    fn row(&self, index: usize) -> &[u8] {
        self.block.value(index)
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, BuildError> {
        let part = self.block.large(index).get(ordinal);
        let part = part.ok_or_else(|| Damage::new(format!("a row names large part {ordinal} and has none")))?;
        Ok(self.view.read_large(*part)?)
    }
}

/// Appends a column of all rows of `blocks`.
pub(crate) fn append_column(
    layout: &TreeLayout,
    column: usize,
    blocks: &[RowBlock],
    view: &ReadView,
    builder: &mut ColumnBuilder,
) -> Result<(), BuildError> {
    for block in blocks {
        match layout.place(column) {
            ColumnPlace::Row(position) => layout.row.decode_column(position, &Rows { block, view }, builder)?,
            ColumnPlace::Key(at) => append_key(layout, at, block, builder)?,
            // A virtual column: rows do not hold it, and no index is over it.
            ColumnPlace::Elsewhere => (0..block.len()).for_each(|_| builder.append(&Scalar::Null)),
        }
    }
    Ok(())
}

/// Appends the column at `position` of the rows' own bytes.
pub(crate) fn append_row_column(
    layout: &TreeLayout,
    position: usize,
    blocks: &[RowBlock],
    view: &ReadView,
    builder: &mut ColumnBuilder,
) -> Result<(), BuildError> {
    blocks.iter().try_for_each(|block| layout.row.decode_column(position, &Rows { block, view }, builder))
}

/// The keys of a block's rows, whether they are spelled or not.
pub(crate) struct Keys<'a> {
    block: &'a RowBlock,
    plain: Option<PlainRows<'a>>,
    scratch: Vec<u8>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(block: &'a RowBlock) -> Self {
        let plain = block.plain();
        let scratch = plain.as_ref().map_or_else(Vec::new, |plain| plain.prefix.to_vec());
        Self { block, plain, scratch }
    }

    /// Whole.
    #[inline]
    pub(crate) fn key(&mut self, index: usize) -> &[u8] {
        let Some(plain) = &self.plain else { return self.block.key(index) };
        self.scratch.truncate(plain.prefix.len());
        self.scratch.extend_from_slice(&plain.page[usize::from(plain.keys_at[index])..usize::from(plain.values_at[index])]);
        &self.scratch
    }

    /// Appended to `out`.
    #[inline]
    pub(crate) fn append(&self, index: usize, out: &mut Vec<u8>) {
        let Some(plain) = &self.plain else { return out.extend_from_slice(self.block.key(index)) };
        out.extend_from_slice(plain.prefix);
        out.extend_from_slice(&plain.page[usize::from(plain.keys_at[index])..usize::from(plain.values_at[index])]);
    }
}

fn append_key(layout: &TreeLayout, at: usize, block: &RowBlock, builder: &mut ColumnBuilder) -> Result<(), Damage> {
    let column = &layout.key[at];
    let mut keys = Keys::new(block);
    if let Some(offset) = layout.fixed_key_offset(at).filter(|_| !column.nullable)
        && append_fixed(column, offset, &mut keys, builder)?
    {
        return Ok(());
    }
    for index in 0..block.len() {
        let mut rest = keys.key(index);
        layout.key[..at].iter().try_for_each(|before| skip_value(&mut rest, before))?;
        builder.append(&decode_value(&mut rest, column)?);
    }
    Ok(())
}

/// Integers at a fixed place of the key; false if the column is not one.
fn append_fixed(column: &KeyColumn, offset: usize, keys: &mut Keys<'_>, builder: &mut ColumnBuilder) -> Result<bool, Damage> {
    fn bytes<const W: usize>(key: &[u8], offset: usize, turn: u8) -> Result<[u8; W], Damage> {
        let found: [u8; W] = key
            .get(offset..offset + W)
            .and_then(|b| b.try_into().ok())
            .ok_or_else(|| Damage::new(format!("a key ends before byte {}", offset + W)))?;
        Ok(found.map(|byte| byte ^ turn))
    }
    let turn = if column.descending { 0xFF } else { 0 };
    match builder {
        ColumnBuilder::Int32(b) if matches!(column.sql_type, SqlType::Int | SqlType::Date) => {
            for index in 0..keys.block.len() {
                b.append_value((u32::from_be_bytes(bytes(keys.key(index), offset, turn)?) ^ 1 << 31) as i32);
            }
        }
        ColumnBuilder::Int64(b) => {
            for index in 0..keys.block.len() {
                b.append_value((u64::from_be_bytes(bytes(keys.key(index), offset, turn)?) ^ 1 << 63) as i64);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
