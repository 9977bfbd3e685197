//! Columns of rows that lie in one piece of memory and were all written by one layout: the common case of a scan.
//!
//! ```text
//! uniform(): each row once    fixed_end and column_count are the layout's, the row reaches over its bitmap
//!                             └─► the null bits of all rows, ored
//! decode_packed(): a column   value at start + offset, no question asked; NULLs only if the ored bits say so
//! ```
//! Invariant: [`RowLayout::decode_packed`] gives what [`RowLayout::decode_column`] gives (property test in `tests`). Whatever
//! it is handed, it ends in values or [`Damage`].

use super::{Damage, Place, RowLayout};
use crate::{ColumnBuilder, SqlType};
use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::ArrowPrimitiveType;

/// Rows of one piece of memory.
#[derive(Debug, Clone, Copy)]
pub struct PackedRows<'a> {
    /// The memory.
    pub bytes: &'a [u8],
    /// Where each row begins.
    pub starts: &'a [u16],
    /// Where it ends.
    pub ends: &'a [u16],
}

/// What [`RowLayout::uniform`] found: every row is whole and of the layout.
#[derive(Debug, Clone, Copy)]
pub struct Uniform {
    /// Bit `n`: column `n` is NULL in some row; the last bit stands for all columns from there on.
    nulls: u64,
}

/// Columns that have a bit of their own.
const NULL_BITS: usize = 64;

fn damaged() -> Damage {
    Damage::new("a row ends before a value it counts")
}

impl RowLayout {
    /// Whether every row was written by this very layout, in the plain form, and reaches over its null bitmap.
    pub fn uniform(&self, rows: PackedRows<'_>) -> Option<Uniform> {
        if self.form == super::RowForm::Compact {
            return None;
        }
        let bitmap_at = self.fixed_end + 2;
        let bitmap_bytes = self.columns.len().div_ceil(8);
        let (fixed_end, count) = (u16::try_from(self.fixed_end).ok()?, u16::try_from(self.columns.len()).ok()?);
        let mut nulls = [0_u8; NULL_BITS / 8];
        for (start, end) in rows.starts.iter().zip(rows.ends) {
            let row = rows.bytes.get(usize::from(*start)..usize::from(*end))?;
            let bitmap = row.get(bitmap_at..bitmap_at + bitmap_bytes)?;
            let counted = [row[self.fixed_end], row[self.fixed_end + 1]];
            if u16::from_le_bytes([row[0], row[1]]) != fixed_end || u16::from_le_bytes(counted) != count {
                return None;
            }
            for (at, byte) in bitmap.iter().enumerate() {
                match nulls.get_mut(at) {
                    Some(all) => *all |= byte,
                    None => nulls[NULL_BITS / 8 - 1] |= if *byte == 0 { 0 } else { 0x80 },
                }
            }
        }
        Some(Uniform { nulls: u64::from_le_bytes(nulls) })
    }

    /// Appends column `position` of uniform rows to `builder`; false, with nothing done, if its type has no loop here.
    ///
    /// # Errors
    /// [`Damage`] for values the column cannot have; the builder is then unusable.
    pub fn decode_packed(
        &self,
        position: usize,
        rows: PackedRows<'_>,
        uniform: Uniform,
        builder: &mut ColumnBuilder,
    ) -> Result<bool, Damage> {
        let Place::Fixed { offset, width } = self.places[position] else { return Ok(false) };
        let has_nulls = self.columns[position].nullable && uniform.nulls >> position.min(NULL_BITS - 1) & 1 == 1;
        let null_bit = has_nulls.then_some((self.fixed_end + 2 + position / 8, 1_u8 << (position % 8)));
        let column = Packed { rows, offset, null_bit };
        let three = |[a, b, c]: [u8; 3]| i32::from_le_bytes([0, a, b, c]) >> 8;
        match (builder, width) {
            (ColumnBuilder::UInt8(b), 1) => column.append(b, |[v]: [u8; 1]| v)?,
            (ColumnBuilder::Int16(b), 2) => column.append(b, i16::from_le_bytes)?,
            (ColumnBuilder::Int32(b), 3) => column.append(b, three)?,
            (ColumnBuilder::Int32(b), 4) => column.append(b, i32::from_le_bytes)?,
            (ColumnBuilder::Int64(b), 4) => column.append(b, |v: [u8; 4]| i64::from(i32::from_le_bytes(v)))?,
            (ColumnBuilder::Int64(b), 5) => column.append(b, |[v, w, x, y, z]: [u8; 5]| i64::from_le_bytes([v, w, x, y, z, 0, 0, 0]))?,
            (ColumnBuilder::Int64(b), 8) => column.append(b, i64::from_le_bytes)?,
            (ColumnBuilder::Float32(b), 4) => column.append(b, f32::from_le_bytes)?,
            (ColumnBuilder::Float64(b), 8) => column.append(b, f64::from_le_bytes)?,
            (ColumnBuilder::Decimal(b), _) => return self.append_decimals(position, &column, width, b),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn append_decimals(
        &self,
        position: usize,
        column: &Packed<'_>,
        width: usize,
        builder: &mut PrimitiveBuilder<arrow_array::types::Decimal128Type>,
    ) -> Result<bool, Damage> {
        let SqlType::Decimal { precision, .. } = self.columns[position].sql_type else { return Ok(false) };
        let beyond = 10_u128.pow(u32::from(precision));
        let from = builder.values_slice().len();
        match width {
            4 => column.append(builder, |v: [u8; 4]| i128::from(i32::from_le_bytes(v)))?,
            8 => column.append(builder, |v: [u8; 8]| i128::from(i64::from_le_bytes(v)))?,
            16 => column.append(builder, i128::from_le_bytes)?,
            _ => return Ok(false),
        }
        match builder.values_slice()[from..].iter().find(|value| value.unsigned_abs() >= beyond) {
            Some(value) => Err(Damage::new(format!("decimal {value} has more than {precision} digits"))),
            None => Ok(true),
        }
    }
}

/// A column of fixed width within uniform rows.
struct Packed<'a> {
    rows: PackedRows<'a>,
    offset: usize,
    /// Byte and bit within a row that say whether the value is NULL, if any is.
    null_bit: Option<(usize, u8)>,
}

impl Packed<'_> {
    #[inline]
    fn append<const W: usize, T: ArrowPrimitiveType>(
        &self,
        builder: &mut PrimitiveBuilder<T>,
        convert: impl Fn([u8; W]) -> T::Native,
    ) -> Result<(), Damage> {
        let mut whole = true;
        let values = self.rows.starts.iter().map(|start| {
            let at = usize::from(*start) + self.offset;
            match self.rows.bytes.get(at..at + W).and_then(|bytes| bytes.first_chunk()) {
                Some(bytes) => convert(*bytes),
                None => {
                    whole = false;
                    T::Native::default()
                }
            }
        });
        // A place for the values first: builders take slices.
        let values: Vec<T::Native> = values.collect();
        match self.null_bit {
            None => builder.append_slice(&values),
            Some((byte, bit)) => {
                let valid = self.rows.starts.iter().map(|start| self.rows.bytes.get(usize::from(*start) + byte).map(|b| b & bit == 0));
                let valid: Vec<bool> = valid.map(|valid| valid.unwrap_or_default()).collect();
                builder.append_values(&values, &valid);
            }
        }
        if whole { Ok(()) } else { Err(damaged()) }
    }
}
