//! Columns of stored rows: from the key where it gives them back, else from the row.
//!
//! One loop a column over the rows of some leaves; integers at a fixed place of the key, which most clustered keys are,
//! take a loop without decoding what stands before them.

use crate::index_build::BuildError;
use thawdb_catalog::{ColumnPlace, TreeLayout};
use thawdb_storage::{ReadView, RowBlock};
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

fn append_key(layout: &TreeLayout, at: usize, block: &RowBlock, builder: &mut ColumnBuilder) -> Result<(), Damage> {
    let column = &layout.key[at];
    if let Some(offset) = layout.fixed_key_offset(at).filter(|_| !column.nullable)
        && append_fixed(column, offset, block, builder)?
    {
        return Ok(());
    }
    for index in 0..block.len() {
        let mut rest = block.key(index);
        layout.key[..at].iter().try_for_each(|before| skip_value(&mut rest, before))?;
        builder.append(&decode_value(&mut rest, column)?);
    }
    Ok(())
}

/// Integers at a fixed place of the key; false if the column is not one.
fn append_fixed(column: &KeyColumn, offset: usize, block: &RowBlock, builder: &mut ColumnBuilder) -> Result<bool, Damage> {
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
            for index in 0..block.len() {
                b.append_value((u32::from_be_bytes(bytes(block.key(index), offset, turn)?) ^ 1 << 31) as i32);
            }
        }
        ColumnBuilder::Int64(b) => {
            for index in 0..block.len() {
                b.append_value((u64::from_be_bytes(bytes(block.key(index), offset, turn)?) ^ 1 << 63) as i64);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
