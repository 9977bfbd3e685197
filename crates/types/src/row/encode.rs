//! Writing rows: from scalars (one row) or from arrays (many).

use super::{LARGE_BYTES, LARGE_FLAG, MARKER_BYTES, Place, RowForm, RowLayout};
use crate::column::{offset_bytes, scalar_at};
use crate::{Scalar, SqlError, SqlType, message};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The bytes of one row, its memory used again for the next.
#[derive(Debug, Default)]
pub struct RowBuffer {
    pub(super) inline: Vec<u8>,
    large: Vec<Vec<u8>>,
    large_count: usize,
}

impl RowBuffer {
    /// The bytes for the leaf.
    pub fn inline(&self) -> &[u8] {
        &self.inline
    }

    /// The large parts, by ordinal.
    pub fn large(&self) -> &[Vec<u8>] {
        &self.large[..self.large_count]
    }

    fn clear(&mut self) {
        self.inline.clear();
        self.large_count = 0;
    }

    pub(super) fn add_large(&mut self, bytes: &[u8]) -> u16 {
        if self.large_count == self.large.len() {
            self.large.push(Vec::new());
        }
        self.large[self.large_count].clear();
        self.large[self.large_count].extend_from_slice(bytes);
        self.large_count += 1;
        (self.large_count - 1) as u16
    }
}

/// One row's values, wherever they are.
pub(super) trait Values {
    fn is_null(&self, column: usize) -> bool;
    fn put_fixed(&self, column: usize, out: &mut [u8]);
    fn variable(&self, column: usize) -> &[u8];
}

impl Values for &[Scalar] {
    fn is_null(&self, column: usize) -> bool {
        self[column].is_null()
    }

    fn put_fixed(&self, column: usize, out: &mut [u8]) {
        put_scalar(&self[column], out);
    }

    fn variable(&self, column: usize) -> &[u8] {
        match &self[column] {
            Scalar::Text(text) => text.as_bytes(),
            Scalar::Binary(bytes) => bytes,
            Scalar::Null => &[],
            other => panic!("{other:?} is not stored as variable data"),
        }
    }
}

/// Writes a value of fixed width; `out` is as wide as its type is stored.
fn put_scalar(value: &Scalar, out: &mut [u8]) {
    let width = out.len();
    match value {
        Scalar::Bit(v) => out[0] = u8::from(*v),
        Scalar::TinyInt(v) => out[0] = *v,
        Scalar::SmallInt(v) => out.copy_from_slice(&v.to_le_bytes()),
        Scalar::Int(v) => out.copy_from_slice(&v.to_le_bytes()),
        Scalar::Date(v) => out.copy_from_slice(&v.to_le_bytes()[..width]),
        Scalar::BigInt(v) | Scalar::Money(v) | Scalar::Time(v) | Scalar::DateTime(v) | Scalar::SmallDateTime(v) | Scalar::DateTime2(v) => {
            out.copy_from_slice(&v.to_le_bytes()[..width])
        }
        Scalar::Decimal(v) => out.copy_from_slice(&v.to_le_bytes()[..width]),
        Scalar::Real(v) => out.copy_from_slice(&v.to_le_bytes()),
        Scalar::Float(v) => out.copy_from_slice(&v.to_le_bytes()),
        Scalar::DateTimeOffset(utc, minutes) => out.copy_from_slice(&offset_bytes(*utc, *minutes)),
        Scalar::Guid(v) => out.copy_from_slice(v),
        Scalar::Binary(v) => {
            let kept = v.len().min(width);
            out[..kept].copy_from_slice(&v[..kept]);
        }
        Scalar::Null | Scalar::Text(_) => panic!("{value:?} has no fixed width"),
    }
}

/// A batch's columns, ready to be encoded row by row.
#[derive(Debug)]
pub struct RowEncoder<'a> {
    layout: &'a RowLayout,
    columns: Vec<Source<'a>>,
    row: usize,
}

#[derive(Debug)]
enum Source<'a> {
    Int16(&'a arrow_array::Int16Array),
    Int32(&'a arrow_array::Int32Array),
    Int64(&'a arrow_array::Int64Array),
    Text(&'a arrow_array::StringArray),
    Binary(&'a arrow_array::BinaryArray),
    Other(&'a ArrayRef, SqlType),
}

impl<'a> RowEncoder<'a> {
    /// An encoder of the rows of `arrays`, one array per column of the layout.
    pub fn new(layout: &'a RowLayout, arrays: &'a [ArrayRef]) -> Self {
        assert_eq!(arrays.len(), layout.columns.len(), "one array per stored column");
        let source = |(array, column): (&'a ArrayRef, &super::StoredColumn)| match (array.data_type(), column.sql_type) {
            (DataType::Int16, _) => Source::Int16(array.as_primitive::<Int16Type>()),
            (DataType::Int32, _) => Source::Int32(array.as_primitive::<Int32Type>()),
            (DataType::Int64, _) => Source::Int64(array.as_primitive::<Int64Type>()),
            (DataType::Utf8, _) => Source::Text(array.as_string()),
            (DataType::Binary, _) => Source::Binary(array.as_binary()),
            (_, sql_type) => Source::Other(array, sql_type),
        };
        Self { layout, columns: arrays.iter().zip(&layout.columns).map(source).collect(), row: 0 }
    }

    /// Encodes row `row` of the batch.
    ///
    /// # Errors
    /// 511 if the row cannot be made to fit.
    pub fn encode(&mut self, row: usize, out: &mut RowBuffer) -> Result<(), SqlError> {
        self.row = row;
        self.layout.encode_values(&*self, out)
    }
}

impl Values for &RowEncoder<'_> {
    fn is_null(&self, column: usize) -> bool {
        match &self.columns[column] {
            Source::Int16(a) => a.is_null(self.row),
            Source::Int32(a) => a.is_null(self.row),
            Source::Int64(a) => a.is_null(self.row),
            Source::Text(a) => a.is_null(self.row),
            Source::Binary(a) => a.is_null(self.row),
            Source::Other(a, _) => a.is_null(self.row),
        }
    }

    fn put_fixed(&self, column: usize, out: &mut [u8]) {
        let width = out.len();
        match &self.columns[column] {
            Source::Int16(a) => out.copy_from_slice(&a.value(self.row).to_le_bytes()),
            Source::Int32(a) => out.copy_from_slice(&a.value(self.row).to_le_bytes()[..width]),
            Source::Int64(a) => out.copy_from_slice(&a.value(self.row).to_le_bytes()[..width]),
            Source::Binary(a) => put_scalar(&Scalar::Binary(a.value(self.row).to_vec()), out),
            Source::Text(_) => panic!("text has no fixed width"),
            Source::Other(a, sql_type) => put_scalar(&scalar_at(a, self.row, sql_type), out),
        }
    }

    fn variable(&self, column: usize) -> &[u8] {
        match &self.columns[column] {
            Source::Text(a) => a.value(self.row).as_bytes(),
            Source::Binary(a) => a.value(self.row),
            other => panic!("{other:?} is not stored as variable data"),
        }
    }
}

impl RowLayout {
    /// Encodes one row: a value per column.
    ///
    /// # Errors
    /// 511 if the row cannot be made to fit.
    pub fn encode(&self, values: &[Scalar], out: &mut RowBuffer) -> Result<(), SqlError> {
        assert_eq!(values.len(), self.columns.len(), "one value per stored column");
        self.encode_values(values, out)
    }

    fn encode_values(&self, values: impl Values, out: &mut RowBuffer) -> Result<(), SqlError> {
        out.clear();
        if self.columns.is_empty() {
            // Most index entries: what is known beforehand takes no room.
            return Ok(());
        }
        if self.form == RowForm::Compact {
            return self.encode_compact(&values, out);
        }
        let row = &mut out.inline;
        row.resize(self.fixed_end, 0);
        row[..2].copy_from_slice(&(self.fixed_end as u16).to_le_bytes());
        row.extend_from_slice(&(self.columns.len() as u16).to_le_bytes());
        let bitmap = row.len();
        row.resize(bitmap + self.columns.len().div_ceil(8), 0);
        for (position, place) in self.places.iter().enumerate() {
            if values.is_null(position) {
                row[bitmap + position / 8] |= 1 << (position % 8);
            } else if let Place::Fixed { offset, width } = *place {
                values.put_fixed(position, &mut row[offset..offset + width]);
            }
        }
        if self.variable_columns.is_empty() {
            row.extend_from_slice(&0u16.to_le_bytes());
            return self.check_length(row.len());
        }
        self.encode_variable(&values, out)
    }

    fn encode_variable(&self, values: &impl Values, out: &mut RowBuffer) -> Result<(), SqlError> {
        let bytes_of = |index: usize| {
            let column = self.variable_columns[index];
            if values.is_null(column) { &[][..] } else { values.variable(column) }
        };
        let count = (0..self.variable_columns.len()).rposition(|index| !bytes_of(index).is_empty()).map_or(0, |last| last + 1);
        let header = out.inline.len() + 2 + 2 * count;
        let total: usize = header + (0..count).map(|index| bytes_of(index).len()).sum::<usize>();
        // The common row has nothing large and needs no list of what is.
        let any_max = || (0..count).any(|i| bytes_of(i).len() > LARGE_BYTES && self.columns[self.variable_columns[i]].sql_type.is_large());
        let large = if total > self.inline_bytes_max || any_max() {
            self.choose_large(count, header, &|index| bytes_of(index).len())?
        } else {
            Vec::new()
        };
        out.inline.extend_from_slice(&(count as u16).to_le_bytes());
        let ends = out.inline.len();
        out.inline.resize(ends + 2 * count, 0);
        for index in 0..count {
            let bytes = bytes_of(index);
            let is_large = large.get(index).copied().unwrap_or(false);
            if is_large {
                let ordinal = out.add_large(bytes);
                let length = u32::try_from(bytes.len()).expect("a value is at most 2^31 - 1 bytes");
                out.inline.extend_from_slice(&ordinal.to_le_bytes());
                out.inline.extend_from_slice(&length.to_le_bytes());
            } else {
                out.inline.extend_from_slice(bytes);
            }
            let end = out.inline.len() as u16 | if is_large { LARGE_FLAG } else { 0 };
            out.inline[ends + 2 * index..ends + 2 * index + 2].copy_from_slice(&end.to_le_bytes());
        }
        self.check_length(out.inline.len())
    }

    /// Which variable values go apart: long ones of max types, then the longest of the others until the row fits.
    pub(super) fn choose_large(&self, count: usize, header: usize, length: &impl Fn(usize) -> usize) -> Result<Vec<bool>, SqlError> {
        let is_max = |index: usize| self.columns[self.variable_columns[index]].sql_type.is_large();
        let mut large: Vec<bool> = (0..count).map(|index| is_max(index) && length(index) > LARGE_BYTES).collect();
        let mut total = header + (0..count).map(|i| if large[i] { MARKER_BYTES } else { length(i) }).sum::<usize>();
        let mut by_length: Vec<usize> = (0..count).filter(|i| !large[*i] && length(*i) > MARKER_BYTES).collect();
        by_length.sort_by_key(|index| (!is_max(*index), std::cmp::Reverse(length(*index))));
        for index in by_length {
            if total <= self.inline_bytes_max {
                break;
            }
            large[index] = true;
            total -= length(index) - MARKER_BYTES;
        }
        self.check_length(total)?;
        Ok(large)
    }

    pub(super) fn check_length(&self, bytes: usize) -> Result<(), SqlError> {
        if bytes > self.inline_bytes_max { Err(message(511, &[&bytes, &self.inline_bytes_max])) } else { Ok(()) }
    }
}
