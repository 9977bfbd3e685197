//! Rows as byte strings and back: what operators hand to the external sort when they hold more than their grant.
//!
//! ```text
//! row:    value | value | ...            value: 00 NULL, or 01 and fixed bytes or length u32 and bytes
//! ```
//! The bytes live no longer than the statement and are read by the code that wrote them: the format is nobody's contract.
//! Still, what comes back from a file is checked for length before it is used.

use crate::exec::Cx;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef};
use thawdb_storage::StorageError;
use thawdb_storage::sort::{ExternalSort, SortOptions, SortedRows};
use thawdb_types::{Batch, ColumnBuilder, Scalar, SqlError, SqlType, scalar_at};

/// An external sort with half of the statement's grant; the other half is for what the operator holds besides.
pub(super) fn external_sort(stable: bool, cx: &Cx<'_, '_>) -> ExternalSort {
    let memory_bytes_max = (cx.host.memory_grant_bytes() / 2).max(1 << 16);
    let options = SortOptions { memory_bytes_max, temp_folder: cx.host.temp_folder(), stable, ordered_bytes: 0 };
    ExternalSort::new(cx.host.env().clone(), options).accounted(cx.host.memory_account())
}

/// What the client is told when a spill fails.
pub(super) fn failed(error: StorageError, cx: &Cx<'_, '_>) -> SqlError {
    cx.host.storage_error(cx.host.database(), error)
}

/// Appends the bytes of row `row`.
pub(super) fn encode_row(columns: &[ArrayRef], types: &[SqlType], row: usize, out: &mut Vec<u8>) {
    for (array, sql_type) in columns.iter().zip(types) {
        if array.is_null(row) {
            out.push(0);
            continue;
        }
        out.push(1);
        encode_present(array, sql_type, row, out);
    }
}

fn encode_present(array: &ArrayRef, sql_type: &SqlType, row: usize, out: &mut Vec<u8>) {
    use arrow_schema::DataType as D;
    let long = |bytes: &[u8], out: &mut Vec<u8>| {
        out.extend(u32::try_from(bytes.len()).expect("a value is below 2^31 bytes").to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match sql_type.arrow_type() {
        D::Boolean => out.push(u8::from(array.as_boolean().value(row))),
        D::UInt8 => out.push(array.as_primitive::<UInt8Type>().value(row)),
        D::Int16 => out.extend(array.as_primitive::<Int16Type>().value(row).to_le_bytes()),
        D::Int32 => out.extend(array.as_primitive::<Int32Type>().value(row).to_le_bytes()),
        D::Int64 => out.extend(array.as_primitive::<Int64Type>().value(row).to_le_bytes()),
        D::Float32 => out.extend(array.as_primitive::<Float32Type>().value(row).to_le_bytes()),
        D::Float64 => out.extend(array.as_primitive::<Float64Type>().value(row).to_le_bytes()),
        D::Decimal128(..) => out.extend(array.as_primitive::<Decimal128Type>().value(row).to_le_bytes()),
        D::FixedSizeBinary(_) => long(array.as_fixed_size_binary().value(row), out),
        D::Utf8 => long(array.as_string::<i32>().value(row).as_bytes(), out),
        _ => match scalar_at(array.as_ref(), row, sql_type) {
            Scalar::Binary(bytes) => long(&bytes, out),
            other => panic!("{other:?} is no column's value"),
        },
    }
}

/// Reads values one after another.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], StorageError> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or_else(short)?;
        self.0 = rest;
        Ok(*first)
    }
}

fn short() -> StorageError {
    StorageError::Bug("a spilled row ends before its last value".into())
}

/// Appends a row's values to the builders of its columns.
pub(super) fn decode_row(bytes: &[u8], builders: &mut [ColumnBuilder]) -> Result<(), StorageError> {
    let mut bytes = Bytes(bytes);
    for builder in builders {
        if bytes.take::<1>()? == [0] {
            builder.append_null();
        } else {
            decode_present(&mut bytes, builder)?;
        }
    }
    Ok(())
}

fn decode_present(bytes: &mut Bytes<'_>, builder: &mut ColumnBuilder) -> Result<(), StorageError> {
    match builder {
        ColumnBuilder::Boolean(b) => b.append_value(bytes.take::<1>()? != [0]),
        ColumnBuilder::UInt8(b) => b.append_value(u8::from_le_bytes(bytes.take()?)),
        ColumnBuilder::Int16(b) => b.append_value(i16::from_le_bytes(bytes.take()?)),
        ColumnBuilder::Int32(b) => b.append_value(i32::from_le_bytes(bytes.take()?)),
        ColumnBuilder::Int64(b) => b.append_value(i64::from_le_bytes(bytes.take()?)),
        ColumnBuilder::Float32(b) => b.append_value(f32::from_le_bytes(bytes.take()?)),
        ColumnBuilder::Float64(b) => b.append_value(f64::from_le_bytes(bytes.take()?)),
        ColumnBuilder::Decimal(b) => b.append_value(i128::from_le_bytes(bytes.take()?)),
        ColumnBuilder::Fixed(b) => {
            b.append_value(long_value(bytes)?).map_err(|_| StorageError::Bug("a spilled value is of another width".into()))?
        }
        ColumnBuilder::Text(b) => {
            let text = std::str::from_utf8(long_value(bytes)?).map_err(|_| StorageError::Bug("a spilled text is not UTF-8".into()))?;
            b.append_value(text);
        }
        ColumnBuilder::Binary(b) => b.append_value(long_value(bytes)?),
    }
    Ok(())
}

fn long_value<'a>(bytes: &mut Bytes<'a>) -> Result<&'a [u8], StorageError> {
    let length = u32::from_le_bytes(bytes.take()?) as usize;
    let (value, rest) = bytes.0.split_at_checked(length).ok_or_else(short)?;
    bytes.0 = rest;
    Ok(value)
}

/// Spilled rows on their way back, in key order.
pub(super) struct Spilled {
    rows: SortedRows,
    types: Vec<SqlType>,
}

/// How many sorted rows are wanted.
#[derive(Default)]
pub(super) struct Wanted {
    /// Rows still wanted.
    pub(super) left: u64,
    /// Rows with the key of the last one too.
    pub(super) with_ties: bool,
    last_key: Option<Vec<u8>>,
}

impl Wanted {
    pub(super) fn new(left: u64, with_ties: bool) -> Self {
        Self { left, with_ties, last_key: None }
    }

    fn takes(&mut self, key: &[u8]) -> bool {
        if self.left == 0 {
            return self.last_key.as_deref() == Some(key);
        }
        self.left -= 1;
        if self.left == 0 && self.with_ties {
            self.last_key = Some(key.to_vec());
        }
        true
    }
}

impl Spilled {
    /// Up to `rows_max` of the wanted rows; `None` when there are no more.
    pub(super) fn next_wanted(&mut self, rows_max: usize, wanted: &mut Wanted) -> Result<Option<Batch>, StorageError> {
        let mut builders: Vec<ColumnBuilder> = self.types.iter().map(|t| ColumnBuilder::new(t, rows_max)).collect();
        let mut rows = 0;
        while rows < rows_max
            && (wanted.left > 0 || wanted.last_key.is_some())
            && let Some((key, payload)) = self.rows.next()?
        {
            if !wanted.takes(key) {
                *wanted = Wanted::default();
                break;
            }
            decode_row(payload, &mut builders)?;
            rows += 1;
        }
        Ok((rows > 0).then(|| Batch::new(builders.iter_mut().map(ColumnBuilder::finish).collect(), rows)))
    }

    /// Bytes written to files.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.rows.statistics().spilled_bytes
    }

    pub(super) fn new(sort: ExternalSort, types: Vec<SqlType>) -> Result<Self, StorageError> {
        Ok(Self { rows: sort.finish()?, types })
    }

    /// Up to `rows_max` rows; `None` at the end.
    pub(super) fn next(&mut self, rows_max: usize) -> Result<Option<Batch>, StorageError> {
        let mut builders: Vec<ColumnBuilder> = self.types.iter().map(|t| ColumnBuilder::new(t, rows_max)).collect();
        let mut rows = 0;
        while rows < rows_max
            && let Some((_, payload)) = self.rows.next()?
        {
            decode_row(payload, &mut builders)?;
            rows += 1;
        }
        Ok((rows > 0).then(|| Batch::new(builders.iter_mut().map(ColumnBuilder::finish).collect(), rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_types::column::array_from_scalars;

    #[test]
    fn rows_come_back() {
        let columns = [
            (SqlType::Bit, Scalar::Bit(true)),
            (SqlType::TinyInt, Scalar::TinyInt(200)),
            (SqlType::Int, Scalar::Int(-5)),
            (SqlType::numeric(38, 4), Scalar::Decimal(-12_345_678_901_234_567_890)),
            (SqlType::Float, Scalar::Float(1.5)),
            (SqlType::UniqueIdentifier, Scalar::Guid([7; 16])),
            (SqlType::DateTimeOffset { scale: 7 }, Scalar::DateTimeOffset(5, -60)),
            (SqlType::nvarchar(10), Scalar::text("\u{e9}a")),
            (SqlType::varbinary(10), Scalar::Binary(vec![0, 1])),
        ];
        let types: Vec<SqlType> = columns.iter().map(|(t, _)| *t).collect();
        let arrays: Vec<ArrayRef> = columns.iter().map(|(t, v)| array_from_scalars(t, [v, &Scalar::Null])).collect();
        for row in 0..2 {
            let mut bytes = Vec::new();
            encode_row(&arrays, &types, row, &mut bytes);
            let mut builders: Vec<ColumnBuilder> = types.iter().map(|t| ColumnBuilder::new(t, 1)).collect();
            decode_row(&bytes, &mut builders).unwrap();
            for ((builder, array), sql_type) in builders.iter_mut().zip(&arrays).zip(&types) {
                assert_eq!(scalar_at(builder.finish().as_ref(), 0, sql_type), scalar_at(array.as_ref(), row, sql_type));
            }
            let mut builders: Vec<ColumnBuilder> = types.iter().map(|t| ColumnBuilder::new(t, 1)).collect();
            assert!(decode_row(&bytes[..bytes.len() - 1], &mut builders).is_err());
        }
    }
}
