//! Reading rows: one column of many rows into its Arrow builder, or one value of one row.

use super::{Damage, LARGE_FLAG, MARKER_BYTES, Place, RowForm, RowLayout, StoredColumn};
use crate::column::offset_parts;
use crate::{ColumnBuilder, Scalar, SqlType};

/// Some rows to be decoded, and where their large parts are.
pub trait RowSource {
    /// What reading a large part may fail with.
    type Error: From<Damage>;

    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In-line bytes of row `index`.
    fn row(&self, index: usize) -> &[u8];

    /// Large part `ordinal` of row `index`, whole.
    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, Self::Error>;
}

/// Rows that have no large parts.
impl RowSource for [&[u8]] {
    type Error = Damage;

    fn len(&self) -> usize {
        self.len()
    }

    fn row(&self, index: usize) -> &[u8] {
        self[index]
    }

    fn large(&self, index: usize, ordinal: usize) -> Result<Vec<u8>, Damage> {
        Err(Damage::new(format!("row {index} names large part {ordinal} and has none")))
    }
}

#[inline]
fn u16_at(row: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes([*row.get(at)?, *row.get(at + 1)?])))
}

/// What a row says of one column.
pub(super) enum Found<'a> {
    Null,
    /// Written before the column was added.
    Missing,
    Bytes(&'a [u8]),
    Large {
        ordinal: usize,
        length: usize,
    },
}

/// Whether the column is NULL in the row; `None` if the row was written before the column was added.
#[inline]
fn null_bit(row: &[u8], fixed_end: usize, position: usize) -> Result<Option<bool>, Damage> {
    let count = u16_at(row, fixed_end).ok_or_else(|| Damage::new("a row ends before its column count"))?;
    if position >= count {
        return Ok(None);
    }
    let byte = row.get(fixed_end + 2 + position / 8).ok_or_else(|| Damage::new("a row ends within its null bitmap"))?;
    Ok(Some(byte >> (position % 8) & 1 == 1))
}

fn find<'a>(row: &'a [u8], position: usize, place: Place) -> Result<Found<'a>, Damage> {
    let fixed_end = u16_at(row, 0).ok_or_else(|| Damage::new("a row of less than two bytes"))?;
    match null_bit(row, fixed_end, position)? {
        None => return Ok(Found::Missing),
        Some(true) => return Ok(Found::Null),
        Some(false) => {}
    }
    match place {
        Place::Fixed { offset, width } if offset + width <= fixed_end => {
            row.get(offset..offset + width).map(Found::Bytes).ok_or_else(|| Damage::new("a row ends within its fixed values"))
        }
        Place::Fixed { .. } => Err(Damage::new("a row's fixed values end before one it counts")),
        Place::Variable { index } => find_variable(row, fixed_end, index),
    }
}

#[inline]
fn find_variable(row: &[u8], fixed_end: usize, index: usize) -> Result<Found<'_>, Damage> {
    let short = || Damage::new("a row ends within its variable values");
    let columns = u16_at(row, fixed_end).ok_or_else(short)?;
    let counted = fixed_end + 2 + columns.div_ceil(8);
    let count = u16_at(row, counted).ok_or_else(short)?;
    if index >= count {
        return Ok(Found::Bytes(&[]));
    }
    let ends = counted + 2;
    let end = u16_at(row, ends + 2 * index).ok_or_else(short)?;
    let start =
        if index == 0 { ends + 2 * count } else { u16_at(row, ends + 2 * (index - 1)).ok_or_else(short)? & !usize::from(LARGE_FLAG) };
    let is_large = end & usize::from(LARGE_FLAG) != 0;
    let bytes = row.get(start..end & !usize::from(LARGE_FLAG)).ok_or_else(short)?;
    if !is_large {
        return Ok(Found::Bytes(bytes));
    }
    let marker: [u8; MARKER_BYTES] = bytes.try_into().map_err(|_| Damage::new("the marker of a large value is not six bytes"))?;
    let length = u32::from_le_bytes([marker[2], marker[3], marker[4], marker[5]]);
    Ok(Found::Large { ordinal: usize::from(u16::from_le_bytes([marker[0], marker[1]])), length: length as usize })
}

impl RowLayout {
    /// Appends column `position` of every row of `rows` to `builder`, which was made for the column's type.
    ///
    /// # Errors
    /// [`Damage`] for bytes no encoder wrote, and what reading a large part fails with; the builder is then unusable.
    pub fn decode_column<R: RowSource + ?Sized>(&self, position: usize, rows: &R, builder: &mut ColumnBuilder) -> Result<(), R::Error> {
        if self.form == RowForm::Compact {
            return self.decode_compact(position, rows, builder);
        }
        let column = &self.columns[position];
        match (self.places[position], builder) {
            (Place::Fixed { offset, .. }, builder) => {
                let at = FixedPlace { position, offset, column };
                decode_fixed(at, rows, builder).map_err(R::Error::from)
            }
            (Place::Variable { .. }, ColumnBuilder::Text(text)) => self.decode_variable(position, rows, |bytes| match bytes {
                Some(bytes) => {
                    let value = std::str::from_utf8(bytes).map_err(|_| Damage::new("text is not UTF-8"))?;
                    text.append_value(value);
                    Ok(())
                }
                None => {
                    text.append_null();
                    Ok(())
                }
            }),
            (Place::Variable { .. }, ColumnBuilder::Binary(binary)) => self.decode_variable(position, rows, |bytes| {
                binary.append_option(bytes);
                Ok(())
            }),
            (Place::Variable { .. }, _) => panic!("the builder is not of the column's type"),
        }
    }

    fn decode_variable<R: RowSource + ?Sized>(
        &self,
        position: usize,
        rows: &R,
        mut push: impl FnMut(Option<&[u8]>) -> Result<(), Damage>,
    ) -> Result<(), R::Error> {
        let missing = match &self.columns[position].missing {
            Scalar::Text(text) => Some(text.as_bytes()),
            Scalar::Binary(bytes) => Some(bytes.as_slice()),
            _ => None,
        };
        for index in 0..rows.len() {
            match find(rows.row(index), position, self.places[position])? {
                Found::Null => push(None)?,
                Found::Missing => push(missing)?,
                Found::Bytes(bytes) => push(Some(bytes))?,
                Found::Large { ordinal, length } => {
                    let bytes = rows.large(index, ordinal)?;
                    if bytes.len() != length {
                        return Err(Damage::new(format!("a large value of {length} bytes has {}", bytes.len())).into());
                    }
                    push(Some(&bytes))?;
                }
            }
        }
        Ok(())
    }

    /// Column `position` of row `index`.
    ///
    /// # Errors
    /// As [`Self::decode_column`].
    pub fn decode_value<R: RowSource + ?Sized>(&self, position: usize, rows: &R, index: usize) -> Result<Scalar, R::Error> {
        if self.form == RowForm::Compact {
            return self.compact_value(position, rows, index);
        }
        let column = &self.columns[position];
        let value = |bytes: &[u8]| match self.places[position] {
            Place::Fixed { .. } => fixed_scalar(bytes, &column.sql_type),
            Place::Variable { .. } => variable_scalar(bytes, &column.sql_type),
        };
        Ok(match find(rows.row(index), position, self.places[position])? {
            Found::Null => Scalar::Null,
            Found::Missing => column.missing.clone(),
            Found::Bytes(bytes) => value(bytes)?,
            Found::Large { ordinal, length } => {
                let bytes = rows.large(index, ordinal)?;
                if bytes.len() != length {
                    return Err(Damage::new(format!("a large value of {length} bytes has {}", bytes.len())).into());
                }
                value(&bytes)?
            }
        })
    }

    /// Every column of row `index`.
    ///
    /// # Errors
    /// As [`Self::decode_column`].
    pub fn decode_row<R: RowSource + ?Sized>(&self, rows: &R, index: usize) -> Result<Vec<Scalar>, R::Error> {
        (0..self.columns.len()).map(|position| self.decode_value(position, rows, index)).collect()
    }
}

pub(super) fn variable_scalar(bytes: &[u8], sql_type: &SqlType) -> Result<Scalar, Damage> {
    if sql_type.is_text() || matches!(sql_type, SqlType::Xml) {
        let text = std::str::from_utf8(bytes).map_err(|_| Damage::new("text is not UTF-8"))?;
        return Ok(Scalar::text(text));
    }
    Ok(Scalar::Binary(bytes.to_vec()))
}

/// `W` bytes as a signed integer of 64 bits, the sign kept.
#[inline]
fn signed<const W: usize>(bytes: [u8; W]) -> i64 {
    let mut wide = [0; 8];
    wide[..W].copy_from_slice(&bytes);
    let unused = 64 - 8 * W as u32;
    i64::from_le_bytes(wide) << unused >> unused
}

/// A time of day: 40 bits without a sign, for a day has more ticks than 39 bits hold.
#[inline]
fn time_ticks([a, b, c, d, e]: [u8; 5]) -> i64 {
    i64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
}

pub(super) fn fixed_scalar(bytes: &[u8], sql_type: &SqlType) -> Result<Scalar, Damage> {
    fn array<const W: usize>(bytes: &[u8]) -> [u8; W] {
        bytes.try_into().expect("the place of a fixed column is as wide as its type")
    }
    let number = || match bytes.len() {
        1 => i64::from(bytes[0]),
        2 => signed::<2>(array(bytes)),
        3 => signed::<3>(array(bytes)),
        4 => signed::<4>(array(bytes)),
        5 => time_ticks(array(bytes)),
        _ => signed::<8>(array(bytes)),
    };
    Ok(match sql_type {
        SqlType::Bit => Scalar::Bit(bit(bytes[0])?),
        SqlType::TinyInt => Scalar::TinyInt(bytes[0]),
        SqlType::SmallInt => Scalar::SmallInt(number() as i16),
        SqlType::Int => Scalar::Int(number() as i32),
        SqlType::BigInt => Scalar::BigInt(number()),
        SqlType::Decimal { precision, .. } => {
            let value = if bytes.len() == 16 { i128::from_le_bytes(array(bytes)) } else { i128::from(number()) };
            Scalar::Decimal(decimal(value, *precision)?)
        }
        SqlType::Money | SqlType::SmallMoney => Scalar::Money(number()),
        SqlType::Real => Scalar::Real(f32::from_le_bytes(array(bytes))),
        SqlType::Float => Scalar::Float(f64::from_le_bytes(array(bytes))),
        SqlType::Date => Scalar::Date(number() as i32),
        SqlType::Time { .. } => Scalar::Time(number()),
        SqlType::DateTime => Scalar::DateTime(number()),
        SqlType::SmallDateTime => Scalar::SmallDateTime(number()),
        SqlType::DateTime2 { .. } => Scalar::DateTime2(number()),
        SqlType::DateTimeOffset { .. } => {
            let (utc, minutes) = offset_parts(bytes);
            Scalar::DateTimeOffset(utc, minutes)
        }
        SqlType::UniqueIdentifier => Scalar::Guid(array(bytes)),
        _ => Scalar::Binary(bytes.to_vec()),
    })
}

fn bit(byte: u8) -> Result<bool, Damage> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Damage::new(format!("bit {other:#04x}"))),
    }
}

fn decimal(value: i128, precision: u8) -> Result<i128, Damage> {
    if value.unsigned_abs() < 10u128.pow(u32::from(precision)) {
        Ok(value)
    } else {
        Err(Damage::new(format!("decimal {value} has more than {precision} digits")))
    }
}

/// A column of fixed width within its rows.
#[derive(Clone, Copy)]
struct FixedPlace<'a> {
    position: usize,
    offset: usize,
    column: &'a StoredColumn,
}

impl FixedPlace<'_> {
    /// Reads the column of all rows. `push` gets the values; `missing` stands for rows older than the column.
    ///
    /// A column that cannot be NULL in any row needs neither bitmap nor column count: it is there exactly when the
    /// row's fixed area reaches over it.
    #[inline]
    fn read<const W: usize, T, R: RowSource + ?Sized>(
        self,
        rows: &R,
        missing: Option<T>,
        convert: impl Fn([u8; W]) -> Result<T, Damage>,
        mut push: impl FnMut(Option<T>),
    ) -> Result<(), Damage>
    where
        T: Copy,
    {
        let end = self.offset + W;
        for index in 0..rows.len() {
            let row = rows.row(index);
            let fixed_end = u16_at(row, 0).ok_or_else(|| Damage::new("a row of less than two bytes"))?;
            if self.column.nullable {
                match null_bit(row, fixed_end, self.position)? {
                    None => {
                        push(missing);
                        continue;
                    }
                    Some(true) => {
                        push(None);
                        continue;
                    }
                    Some(false) if end > fixed_end => return Err(Damage::new("a row's fixed values end before one it counts")),
                    Some(false) => {}
                }
            } else if end > fixed_end {
                push(missing);
                continue;
            }
            let bytes = row.get(self.offset..end).ok_or_else(|| Damage::new("a row ends within its fixed values"))?;
            push(Some(convert(bytes.try_into().expect("the slice is W bytes"))?));
        }
        Ok(())
    }
}

/// What rows older than a column read for it, as its Arrow value.
pub(super) fn missing_long(value: &Scalar) -> Option<i64> {
    match value {
        Scalar::Date(v) => Some(i64::from(*v)),
        Scalar::Money(v) | Scalar::Time(v) | Scalar::DateTime(v) | Scalar::SmallDateTime(v) | Scalar::DateTime2(v) => Some(*v),
        other => other.as_i64(),
    }
}

fn decode_fixed<R: RowSource + ?Sized>(at: FixedPlace<'_>, rows: &R, builder: &mut ColumnBuilder) -> Result<(), Damage> {
    let missing = &at.column.missing;
    let long = missing_long(missing);
    let width = at.column.sql_type.fixed_bytes().expect("the column is of fixed width");
    match (builder, width) {
        (ColumnBuilder::Boolean(b), _) => at.read(rows, long.map(|v| v != 0), |[v]: [u8; 1]| bit(v), |v| b.append_option(v)),
        (ColumnBuilder::UInt8(b), _) => at.read(rows, long.map(|v| v as u8), |[v]: [u8; 1]| Ok(v), |v| b.append_option(v)),
        (ColumnBuilder::Int16(b), _) => at.read(rows, long.map(|v| v as i16), |v| Ok(i16::from_le_bytes(v)), |v| b.append_option(v)),
        (ColumnBuilder::Int32(b), 3) => at.read(rows, long.map(|v| v as i32), |v: [u8; 3]| Ok(signed(v) as i32), |v| b.append_option(v)),
        (ColumnBuilder::Int32(b), _) => at.read(rows, long.map(|v| v as i32), |v| Ok(i32::from_le_bytes(v)), |v| b.append_option(v)),
        (ColumnBuilder::Int64(b), 4) => at.read(rows, long, |v: [u8; 4]| Ok(signed(v)), |v| b.append_option(v)),
        (ColumnBuilder::Int64(b), 5) => at.read(rows, long, |v: [u8; 5]| Ok(time_ticks(v)), |v| b.append_option(v)),
        (ColumnBuilder::Int64(b), _) => at.read(rows, long, |v| Ok(i64::from_le_bytes(v)), |v| b.append_option(v)),
        (ColumnBuilder::Decimal(b), width) => {
            let precision = at.column.sql_type.precision();
            let missing = if let Scalar::Decimal(v) = missing { Some(*v) } else { None };
            let push = |v| b.append_option(v);
            match width {
                4 => at.read(rows, missing, |v: [u8; 4]| decimal(i128::from(signed(v)), precision), push),
                8 => at.read(rows, missing, |v: [u8; 8]| decimal(i128::from(signed(v)), precision), push),
                _ => at.read(rows, missing, |v| decimal(i128::from_le_bytes(v), precision), push),
            }
        }
        (ColumnBuilder::Float32(b), _) => {
            let missing = if let Scalar::Real(v) = missing { Some(*v) } else { None };
            at.read(rows, missing, |v| Ok(f32::from_le_bytes(v)), |v| b.append_option(v))
        }
        (ColumnBuilder::Float64(b), _) => {
            let missing = if let Scalar::Float(v) = missing { Some(*v) } else { None };
            at.read(rows, missing, |v| Ok(f64::from_le_bytes(v)), |v| b.append_option(v))
        }
        (ColumnBuilder::Fixed(b), width) => {
            let mut push = |bytes: Option<&[u8]>| match bytes {
                Some(bytes) => b.append_value(bytes).expect("the builder is as wide as the column"),
                None => b.append_null(),
            };
            match (width, missing) {
                (10, Scalar::DateTimeOffset(utc, minutes)) => {
                    let missing = crate::column::offset_bytes(*utc, *minutes);
                    at.read(rows, Some(missing), Ok::<[u8; 10], Damage>, |v| push(v.as_ref().map(|v| v.as_slice())))
                }
                (10, _) => at.read(rows, None, Ok::<[u8; 10], Damage>, |v| push(v.as_ref().map(|v| v.as_slice()))),
                (_, Scalar::Guid(v)) => at.read(rows, Some(*v), Ok::<[u8; 16], Damage>, |v| push(v.as_ref().map(|v| v.as_slice()))),
                _ => at.read(rows, None, Ok::<[u8; 16], Damage>, |v| push(v.as_ref().map(|v| v.as_slice()))),
            }
        }
        (ColumnBuilder::Binary(b), _) => at.read(rows, None, Ok::<[u8; 8], Damage>, |v| b.append_option(v)),
        (ColumnBuilder::Text(_), _) => panic!("text has no fixed width"),
    }
}
