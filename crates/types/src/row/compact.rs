//! Rows in the compact form: what DATA_COMPRESSION = ROW and PAGE store.
//!
//! ```text
//! | columns | codes, four bits each | short values ... | ends of the long values | long values ... |
//!   1 or 2     low half first         0 to 8 bytes       u16 each, from 0
//!
//! code 0 to 8   a value of so many bytes            9   NULL, no bytes
//!      10       a long value                        11  a large value: ordinal u16, length u32, among the short ones
//!      12       the one byte 01, no bytes           13 to 15  page compression's own; damage in a row by itself
//! ```
//! `columns` is one byte up to 127; else the low seven bits with the top bit set, then the rest. Every value takes its least
//! length: integers, money, decimals and times are big-endian without the bytes that repeat the sign (of bit, tinyint and time
//! without leading zeros), floats big-endian without trailing zeros, rowversion without leading ones, the rest as it is. `char`,
//! `nchar` and `binary` over [`AS_IT_IS_MAX`] bytes are stored without their trailing blanks or zeros, behind which stands how
//! many they were: u8, or u16 and 255.
//!
//! Numbers are big-endian so that values of one column begin alike: page compression (`storage::page::dictionary`) looks for
//! that, and knows this form, not the types.
//!
//! Invariants: 1. one row has one form: a value of at most eight bytes is short, the byte 01 is code 12 (`Codes::push`). 2. What
//! [`find`] is handed ends in values or [`Damage`].

use super::decode::Found;
use super::encode::{RowBuffer, Values};
use super::{Damage, LARGE_BYTES, MARKER_BYTES, Place, RowLayout, RowSource};
use crate::{ColumnBuilder, Scalar, SqlError, SqlType};

/// A short value's greatest length.
const SHORT_BYTES_MAX: usize = 8;
const NULL: u8 = 9;
const LONG: u8 = 10;
const LARGE: u8 = 11;
const ONE: u8 = 12;
/// Declared bytes up to which padded types are stored as they are: counting what was cut off costs a byte.
const AS_IT_IS_MAX: u16 = 4;

/// How a fixed value loses the bytes that say nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Narrow {
    Signed,
    Unsigned,
    Float,
    LeadingZeros,
    AsItIs,
}

fn narrow_of(sql_type: &SqlType) -> Narrow {
    match sql_type {
        SqlType::Bit | SqlType::TinyInt | SqlType::Time { .. } => Narrow::Unsigned,
        SqlType::Real | SqlType::Float => Narrow::Float,
        SqlType::RowVersion => Narrow::LeadingZeros,
        SqlType::DateTimeOffset { .. } | SqlType::UniqueIdentifier => Narrow::AsItIs,
        _ => Narrow::Signed,
    }
}

/// What a padded type is padded with, if its trailing padding is left out.
fn padding(sql_type: &SqlType) -> Option<u8> {
    match *sql_type {
        SqlType::Char { length, .. } | SqlType::NChar { length, .. } if length > AS_IT_IS_MAX => Some(b' '),
        SqlType::Binary { length } if length > AS_IT_IS_MAX => Some(0),
        _ => None,
    }
}

/// A fixed value at its least length.
struct Least {
    bytes: [u8; 16],
    from: usize,
    to: usize,
}

impl Least {
    /// Of the bytes that [`Values::put_fixed`] wrote.
    fn of(stored: &[u8], sql_type: &SqlType) -> Self {
        let width = stored.len();
        let mut bytes = [0; 16];
        bytes[..width].copy_from_slice(stored);
        let kind = narrow_of(sql_type);
        if matches!(kind, Narrow::Signed | Narrow::Unsigned | Narrow::Float) {
            bytes[..width].reverse();
        }
        let value = &bytes[..width];
        let zeros = |from: &mut dyn Iterator<Item = &u8>| from.take_while(|byte| **byte == 0).count();
        let (from, to) = match kind {
            Narrow::AsItIs => (0, width),
            Narrow::Unsigned | Narrow::LeadingZeros => (zeros(&mut value.iter()), width),
            Narrow::Float => (0, width - zeros(&mut value.iter().rev())),
            Narrow::Signed => (signed_from(value), width),
        };
        Self { bytes, from, to }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }
}

/// Where a big-endian number begins to say more than its sign; zero says nothing.
fn signed_from(value: &[u8]) -> usize {
    let sign = if value[0] & 0x80 == 0 { 0 } else { 0xFF };
    let same = value.iter().take_while(|byte| **byte == sign).count();
    match value.get(same) {
        None if sign == 0 => value.len(),
        // The first byte kept must carry the sign.
        Some(next) if (next ^ sign) & 0x80 == 0 => same,
        _ => same - 1,
    }
}

/// A variable value without its padding, and the bytes that say how much that was.
struct Trimmed<'v> {
    value: &'v [u8],
    trailer: [u8; 3],
    trailer_bytes: usize,
}

impl<'v> Trimmed<'v> {
    fn of(value: &'v [u8], sql_type: &SqlType) -> Self {
        let Some(pad) = padding(sql_type) else { return Self { value, trailer: [0; 3], trailer_bytes: 0 } };
        let cut = value.iter().rev().take_while(|byte| **byte == pad).count();
        let kept = &value[..value.len() - cut];
        match u8::try_from(cut) {
            Ok(cut) if cut < u8::MAX => Self { value: kept, trailer: [cut, 0, 0], trailer_bytes: 1 },
            _ => {
                let [low, high] = u16::try_from(cut).expect("a padded value has at most 8,000 bytes").to_le_bytes();
                Self { value: kept, trailer: [low, high, u8::MAX], trailer_bytes: 3 }
            }
        }
    }

    fn len(&self) -> usize {
        self.value.len() + self.trailer_bytes
    }

    fn parts(&self) -> [&[u8]; 2] {
        [self.value, &self.trailer[..self.trailer_bytes]]
    }
}

/// A padded value and how many bytes of padding follow it.
fn untrimmed<'v>(stored: &'v [u8], sql_type: &SqlType) -> Result<(&'v [u8], usize, u8), Damage> {
    let Some(pad) = padding(sql_type) else { return Ok((stored, 0, 0)) };
    let damaged = || Damage::new("a padded value does not say how much was cut off");
    let (last, rest) = stored.split_last().ok_or_else(damaged)?;
    if *last < u8::MAX {
        return Ok((rest, usize::from(*last), pad));
    }
    let (value, count) = rest.split_last_chunk::<2>().ok_or_else(damaged)?;
    Ok((value, usize::from(u16::from_le_bytes(*count)), pad))
}

/// A row in the making.
struct Codes<'b> {
    row: &'b mut Vec<u8>,
    codes_at: usize,
    position: usize,
}

impl Codes<'_> {
    fn code(&mut self, code: u8) {
        self.row[self.codes_at + self.position / 2] |= code << (4 * (self.position % 2));
        self.position += 1;
    }

    /// A value in pieces; false if it is long and its bytes come later.
    fn push(&mut self, pieces: [&[u8]; 2]) -> bool {
        let bytes = pieces[0].len() + pieces[1].len();
        if bytes > SHORT_BYTES_MAX {
            self.code(LONG);
            return false;
        }
        if bytes == 1 && (pieces[0] == [1] || pieces[1] == [1]) {
            self.code(ONE);
        } else {
            self.code(bytes as u8);
            self.row.extend_from_slice(pieces[0]);
            self.row.extend_from_slice(pieces[1]);
        }
        true
    }
}

/// The row's column count, and where its codes begin.
#[inline]
fn counted(row: &[u8]) -> Option<(usize, usize)> {
    let first = usize::from(*row.first()?);
    if first < 0x80 { Some((first, 1)) } else { Some((first & 0x7F | usize::from(*row.get(1)?) << 7, 2)) }
}

/// Bytes that two codes together say of the short values.
const PAIR_BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = short_bytes(at as u8 & 15) + short_bytes(at as u8 >> 4);
        at += 1;
    }
    table
};

const fn short_bytes(code: u8) -> u8 {
    match code {
        0..=8 => code,
        LARGE => MARKER_BYTES as u8,
        _ => 0,
    }
}

#[inline]
fn code_at(codes: &[u8], position: usize) -> u8 {
    codes[position / 2] >> (4 * (position % 2)) & 15
}

/// Bytes of the short values of the first `position` columns.
#[inline]
fn short_before(codes: &[u8], position: usize) -> usize {
    let pairs: usize = codes[..position / 2].iter().map(|pair| usize::from(PAIR_BYTES[usize::from(*pair)])).sum();
    pairs + if position % 2 == 1 { usize::from(short_bytes(codes[position / 2] & 15)) } else { 0 }
}

/// What a row in this form says of one column; the bytes are those stored.
#[inline]
pub(super) fn find(row: &[u8], position: usize) -> Result<Found<'_>, Damage> {
    let short = || Damage::new("a compact row ends before a value it counts");
    let (count, codes_at) = counted(row).ok_or_else(short)?;
    if position >= count {
        return Ok(Found::Missing);
    }
    let shorts_at = codes_at + count.div_ceil(2);
    let codes = row.get(codes_at..shorts_at).ok_or_else(short)?;
    let code = code_at(codes, position);
    match code {
        NULL => Ok(Found::Null),
        ONE => Ok(Found::Bytes(&[1])),
        0..=8 => {
            let at = shorts_at + short_before(codes, position);
            row.get(at..at + usize::from(code)).map(Found::Bytes).ok_or_else(short)
        }
        LARGE => {
            let at = shorts_at + short_before(codes, position);
            let marker: &[u8; MARKER_BYTES] = row.get(at..).and_then(|rest| rest.first_chunk()).ok_or_else(short)?;
            let length = u32::from_le_bytes([marker[2], marker[3], marker[4], marker[5]]);
            Ok(Found::Large { ordinal: usize::from(u16::from_le_bytes([marker[0], marker[1]])), length: length as usize })
        }
        LONG => {
            let longs = |to: usize| (0..to).filter(|at| code_at(codes, *at) == LONG).count();
            let (index, count) = (longs(position), longs(count));
            let ends_at = shorts_at + short_before(codes, counted(row).map_or(0, |(count, _)| count));
            let end = |index: usize| row.get(ends_at + 2 * index..).and_then(|rest| rest.first_chunk()).map(|end| u16::from_le_bytes(*end));
            let start = if index == 0 { ends_at + 2 * count } else { usize::from(end(index - 1).ok_or_else(short)?) };
            row.get(start..usize::from(end(index).ok_or_else(short)?)).map(Found::Bytes).ok_or_else(short)
        }
        _ => Err(Damage::new(format!("code {code} in a row by itself"))),
    }
}

/// A number of up to eight big-endian bytes.
#[inline]
fn number(bytes: &[u8], sql_type: &SqlType) -> Result<i64, Damage> {
    if bytes.len() > 8 {
        return Err(Damage::new(format!("a number of {} bytes", bytes.len())));
    }
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0) && narrow_of(sql_type) == Narrow::Signed;
    Ok(bytes.iter().fold(if negative { -1 } else { 0 }, |value, byte| value << 8 | i64::from(*byte)))
}

/// The stored bytes of a fixed value, as wide as its type and in the order of the plain form.
fn widened(bytes: &[u8], sql_type: &SqlType) -> Result<([u8; 16], usize), Damage> {
    let width = sql_type.fixed_bytes().expect("the column is of fixed width");
    if bytes.len() > width {
        return Err(Damage::new(format!("{} bytes for a value of {width}", bytes.len())));
    }
    let kind = narrow_of(sql_type);
    let mut wide = [0; 16];
    let unused = width - bytes.len();
    match kind {
        Narrow::AsItIs if unused > 0 => return Err(Damage::new(format!("{} bytes for a value of {width}", bytes.len()))),
        Narrow::AsItIs | Narrow::Float => wide[..bytes.len()].copy_from_slice(bytes),
        Narrow::Signed if bytes.first().is_some_and(|first| first & 0x80 != 0) => {
            wide[..unused].fill(0xFF);
            wide[unused..width].copy_from_slice(bytes);
        }
        Narrow::Signed | Narrow::Unsigned | Narrow::LeadingZeros => wide[unused..width].copy_from_slice(bytes),
    }
    if matches!(kind, Narrow::Signed | Narrow::Unsigned | Narrow::Float) {
        wide[..width].reverse();
    }
    Ok((wide, width))
}

impl RowLayout {
    /// Encodes a row in the compact form.
    pub(super) fn encode_compact(&self, values: &impl Values, out: &mut RowBuffer) -> Result<(), SqlError> {
        let count = self.columns.len();
        let large = self.compact_large(values)?;
        let is_large = |index: usize| large.get(index).copied().unwrap_or(false);
        let mut inline = std::mem::take(&mut out.inline);
        if count < 0x80 {
            inline.push(count as u8);
        } else {
            inline.extend_from_slice(&[(count & 0x7F | 0x80) as u8, (count >> 7) as u8]);
        }
        let codes_at = inline.len();
        inline.resize(codes_at + count.div_ceil(2), 0);
        let mut codes = Codes { row: &mut inline, codes_at, position: 0 };
        let mut longs = Vec::new();
        for (position, place) in self.places.iter().enumerate() {
            if values.is_null(position) {
                codes.code(NULL);
                continue;
            }
            let is_short = match *place {
                Place::Fixed { .. } => codes.push([self.least(values, position).bytes(), &[]]),
                Place::Variable { index } if is_large(index) => {
                    let bytes = values.variable(position);
                    let length = u32::try_from(bytes.len()).expect("a value is at most 2^31 - 1 bytes");
                    codes.code(LARGE);
                    let ordinal = out.add_large(bytes);
                    codes.row.extend_from_slice(&ordinal.to_le_bytes());
                    codes.row.extend_from_slice(&length.to_le_bytes());
                    true
                }
                Place::Variable { .. } => codes.push(self.trimmed(values, position).parts()),
            };
            if !is_short {
                longs.push(position);
            }
        }
        let ends_at = inline.len();
        inline.resize(ends_at + 2 * longs.len(), 0);
        for (index, position) in longs.iter().enumerate() {
            match self.places[*position] {
                Place::Fixed { .. } => inline.extend_from_slice(self.least(values, *position).bytes()),
                Place::Variable { .. } => self.trimmed(values, *position).parts().iter().for_each(|part| inline.extend_from_slice(part)),
            }
            let end = (inline.len() as u16).to_le_bytes();
            inline[ends_at + 2 * index..ends_at + 2 * index + 2].copy_from_slice(&end);
        }
        out.inline = inline;
        self.check_length(out.inline.len())
    }

    fn least(&self, values: &impl Values, position: usize) -> Least {
        let sql_type = &self.columns[position].sql_type;
        let mut stored = [0; 16];
        let width = sql_type.fixed_bytes().expect("the column is of fixed width");
        values.put_fixed(position, &mut stored[..width]);
        Least::of(&stored[..width], sql_type)
    }

    fn trimmed<'v>(&self, values: &'v impl Values, position: usize) -> Trimmed<'v> {
        Trimmed::of(values.variable(position), &self.columns[position].sql_type)
    }

    /// Which variable values go apart; empty where none does.
    fn compact_large(&self, values: &impl Values) -> Result<Vec<bool>, SqlError> {
        let length = |index: usize| {
            let column = self.variable_columns[index];
            if values.is_null(column) { 0 } else { self.trimmed(values, column).len() }
        };
        let count = self.variable_columns.len();
        let lengths: usize = (0..count).map(length).sum();
        let any_max = || (0..count).any(|i| length(i) > LARGE_BYTES && self.columns[self.variable_columns[i]].sql_type.is_large());
        // The least that is beside them and the most there can be.
        let most = 2 + self.columns.len().div_ceil(2) + 2 * self.columns.len() + self.fixed_end + lengths;
        if most <= self.inline_bytes_max && !any_max() {
            return Ok(Vec::new());
        }
        let fixed_bytes = |position: usize| match self.places[position] {
            Place::Fixed { .. } if !values.is_null(position) => {
                let bytes = self.least(values, position).bytes().len();
                bytes + if bytes > SHORT_BYTES_MAX { 2 } else { 0 }
            }
            _ => 0,
        };
        let fixed: usize = (0..self.columns.len()).map(fixed_bytes).sum();
        let long_ends = 2 * (0..count).filter(|index| length(*index) > SHORT_BYTES_MAX).count();
        self.choose_large(count, 2 + self.columns.len().div_ceil(2) + fixed + long_ends, &length)
    }

    /// A value of a row in the compact form.
    pub(super) fn compact_scalar(&self, position: usize, bytes: &[u8]) -> Result<Scalar, Damage> {
        let sql_type = &self.columns[position].sql_type;
        match self.places[position] {
            Place::Fixed { .. } => {
                let (wide, width) = widened(bytes, sql_type)?;
                super::decode::fixed_scalar(&wide[..width], sql_type)
            }
            Place::Variable { .. } => {
                let (value, cut, pad) = untrimmed(bytes, sql_type)?;
                if cut == 0 {
                    return super::decode::variable_scalar(value, sql_type);
                }
                let mut whole = value.to_vec();
                whole.resize(value.len() + cut, pad);
                super::decode::variable_scalar(&whole, sql_type)
            }
        }
    }

    /// Appends column `position` of rows in the compact form to `builder`.
    pub(super) fn decode_compact<R: RowSource + ?Sized>(
        &self,
        position: usize,
        rows: &R,
        builder: &mut ColumnBuilder,
    ) -> Result<(), R::Error> {
        let column = &self.columns[position];
        let sql_type = &column.sql_type;
        let beyond = |_| Damage::new("a number is beyond its type");
        let missing = super::decode::missing_long(&column.missing);
        match builder {
            ColumnBuilder::Int16(b) => each(rows, position, |found| {
                b.append_option(long(found, missing, sql_type)?.map(i16::try_from).transpose().map_err(beyond)?);
                Ok(())
            })?,
            ColumnBuilder::Int32(b) => each(rows, position, |found| {
                b.append_option(long(found, missing, sql_type)?.map(i32::try_from).transpose().map_err(beyond)?);
                Ok(())
            })?,
            ColumnBuilder::Int64(b) => each(rows, position, |found| {
                b.append_option(long(found, missing, sql_type)?);
                Ok(())
            })?,
            ColumnBuilder::UInt8(b) => each(rows, position, |found| {
                b.append_option(long(found, missing, sql_type)?.map(u8::try_from).transpose().map_err(beyond)?);
                Ok(())
            })?,
            ColumnBuilder::Text(text) if padding(sql_type).is_none() => {
                for index in 0..rows.len() {
                    match find(rows.row(index), position)? {
                        Found::Bytes(bytes) => text.append_value(std::str::from_utf8(bytes).map_err(|_| Damage::new("text is not UTF-8"))?),
                        Found::Null => text.append_null(),
                        Found::Missing | Found::Large { .. } => match self.compact_value(position, rows, index)? {
                            Scalar::Text(value) => text.append_value(&*value),
                            _ => text.append_null(),
                        },
                    }
                }
            }
            _ => {
                for index in 0..rows.len() {
                    let value = self.compact_value(position, rows, index)?;
                    builder.append(&value);
                }
            }
        }
        Ok(())
    }

    /// Column `position` of row `index` of rows in the compact form.
    pub(super) fn compact_value<R: RowSource + ?Sized>(&self, position: usize, rows: &R, index: usize) -> Result<Scalar, R::Error> {
        Ok(match find(rows.row(index), position)? {
            Found::Null => Scalar::Null,
            Found::Missing => self.columns[position].missing.clone(),
            Found::Bytes(bytes) => self.compact_scalar(position, bytes)?,
            Found::Large { ordinal, length } => {
                let bytes = rows.large(index, ordinal)?;
                if bytes.len() != length {
                    return Err(Damage::new(format!("a large value of {length} bytes has {}", bytes.len())).into());
                }
                super::decode::variable_scalar(&bytes, &self.columns[position].sql_type)?
            }
        })
    }
}

/// A number that a row says of a column.
#[inline]
fn long(found: Found<'_>, missing: Option<i64>, sql_type: &SqlType) -> Result<Option<i64>, Damage> {
    match found {
        Found::Null => Ok(None),
        Found::Missing => Ok(missing),
        Found::Bytes(bytes) => number(bytes, sql_type).map(Some),
        Found::Large { .. } => Err(Damage::new("a number is stored as a large value")),
    }
}

fn each<R: RowSource + ?Sized>(rows: &R, position: usize, mut push: impl FnMut(Found<'_>) -> Result<(), Damage>) -> Result<(), Damage> {
    (0..rows.len()).try_for_each(|index| push(find(rows.row(index), position)?))
}
