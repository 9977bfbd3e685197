//! The key codec: values to bytes whose `memcmp` order is SQL's order.
//!
//! ```text
//! column, nullable      00 = NULL | 01, then the value        not nullable: the value alone
//! bit, tinyint          1 byte                                real, float    sign-folded bits, big-endian
//! other integers, date, time, datetime...   big-endian with the sign bit turned over (2, 4 or 8 bytes)
//! decimal(p,s)          4, 8 or 16 bytes by p, as an integer
//! uniqueidentifier      its bytes in the order SQL Server compares them
//! binary(n), rowversion n bytes                               varbinary      00 escaped to 00 FF, ended by 00 00
//! text                  collation sort key, ended by 00       text under _BIN   as varbinary
//! sql_variant           its order (`variant`) as varbinary
//! descending            every byte of the column, the NULL byte too, turned over
//! ```
//!
//! Invariants:
//! 1. `encode(a) < encode(b)` exactly when `a` sorts before `b` by [`crate::compare`] (property test); so NULL is first
//!    ascending and last descending.
//! 2. Every column's bytes end themselves: the key of the first columns is a prefix of the whole key, and a seek on it
//!    is the range from the prefix to [`range_end`].
//! 3. What [`is_lossless`] says can be decoded gives the very value back.
//!
//! Failure: damaged bytes give [`Damage`], never a panic. The format is stored: it changes only with the file version.
//! Length is not limited here; storage refuses keys beyond its 1,700 bytes.

use crate::collation;
use crate::column::{offset_bytes, offset_parts, scalar_at};
use crate::compare::{GUID_ORDER, trim_zeros};
use crate::{Scalar, SqlType};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use std::fmt;

/// One column of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its type.
    pub sql_type: SqlType,
    /// It may be NULL: costs a byte.
    pub nullable: bool,
    /// Falling order.
    pub descending: bool,
}

impl KeyColumn {
    /// An ascending key column.
    pub const fn ascending(sql_type: SqlType, nullable: bool) -> Self {
        Self { sql_type, nullable, descending: false }
    }
}

/// Bytes that this crate's codecs cannot have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What was expected and what was found.
    pub detail: String,
}

impl Damage {
    /// The one place damage is made, so that a breakpoint here catches all of it.
    #[cold]
    pub fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged bytes: {}", self.detail)
    }
}

impl std::error::Error for Damage {}

const NULL: u8 = 0;
const PRESENT: u8 = 1;
/// The bytes of a key nothing comes after: beyond every encoded column.
const BEYOND: u8 = 0xFF;

/// Appends the key of `values`, one per column of `columns`; fewer values than columns give the prefix of a key.
pub fn encode_key(values: &[Scalar], columns: &[KeyColumn], out: &mut Vec<u8>) {
    assert!(values.len() <= columns.len(), "a key has no more values than columns");
    for (value, column) in values.iter().zip(columns) {
        encode_value(value, column, out);
    }
}

/// Appends one column of a key.
pub fn encode_value(value: &Scalar, column: &KeyColumn, out: &mut Vec<u8>) {
    let start = out.len();
    match (value, column.nullable) {
        (Scalar::Null, true) => out.push(NULL),
        (Scalar::Null, false) => panic!("a key column that is not nullable got NULL"),
        (value, nullable) => {
            if nullable {
                out.push(PRESENT);
            }
            encode_present(value, &column.sql_type, out);
        }
    }
    if column.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn encode_present(value: &Scalar, sql_type: &SqlType, out: &mut Vec<u8>) {
    match value {
        Scalar::Bit(v) => out.push(u8::from(*v)),
        Scalar::TinyInt(v) => out.push(*v),
        Scalar::SmallInt(v) => out.extend_from_slice(&ordered_16(*v)),
        Scalar::Int(v) | Scalar::Date(v) => out.extend_from_slice(&ordered_32(*v)),
        Scalar::BigInt(v)
        | Scalar::Money(v)
        | Scalar::Time(v)
        | Scalar::DateTime(v)
        | Scalar::SmallDateTime(v)
        | Scalar::DateTime2(v)
        | Scalar::DateTimeOffset(v, _) => out.extend_from_slice(&ordered_64(*v)),
        Scalar::Decimal(v) => match sql_type.fixed_bytes() {
            Some(4) => out.extend_from_slice(&ordered_32(*v as i32)),
            Some(8) => out.extend_from_slice(&ordered_64(*v as i64)),
            _ => out.extend_from_slice(&(*v as u128 ^ 1 << 127).to_be_bytes()),
        },
        Scalar::Real(v) => {
            let bits = (v + 0.0).to_bits();
            out.extend_from_slice(&(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }).to_be_bytes());
        }
        Scalar::Float(v) => {
            let bits = (v + 0.0).to_bits();
            out.extend_from_slice(&(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes());
        }
        Scalar::Text(text) => encode_text(text, sql_type, out),
        Scalar::Binary(bytes) if *sql_type == SqlType::SqlVariant => {
            let mut order = Vec::with_capacity(bytes.len() + 1);
            crate::variant::order_key(bytes, &mut order);
            encode_escaped(&order, out);
        }
        Scalar::Binary(bytes) => match fixed_binary(sql_type) {
            Some(width) => {
                let kept = bytes.len().min(width);
                out.extend_from_slice(&bytes[..kept]);
                out.resize(out.len() + width - kept, 0);
            }
            None => encode_escaped(trim_zeros(bytes), out),
        },
        Scalar::Guid(v) => out.extend_from_slice(&GUID_ORDER.map(|at| v[at])),
        Scalar::Null => unreachable!("NULL is told apart before"),
    }
}

pub(crate) fn encode_text(text: &str, sql_type: &SqlType, out: &mut Vec<u8>) {
    let collation = sql_type.collation().unwrap_or(crate::Collation::DEFAULT);
    if collation.info().binary {
        encode_escaped(collation::trimmed(text).as_bytes(), out);
    } else {
        collation::sort_key(text, collation, out);
        out.push(0);
    }
}

fn encode_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|b| *b == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn ordered_16(value: i16) -> [u8; 2] {
    (value as u16 ^ 1 << 15).to_be_bytes()
}

fn ordered_32(value: i32) -> [u8; 4] {
    (value as u32 ^ 1 << 31).to_be_bytes()
}

fn ordered_64(value: i64) -> [u8; 8] {
    (value as u64 ^ 1 << 63).to_be_bytes()
}

/// Width of binary types whose every value has the same length.
fn fixed_binary(sql_type: &SqlType) -> Option<usize> {
    match sql_type {
        SqlType::Binary { length } => Some(usize::from(*length)),
        SqlType::RowVersion => Some(8),
        _ => None,
    }
}

/// Bytes of a value in a key without the NULL byte, where that is always the same.
pub fn fixed_key_bytes(sql_type: &SqlType) -> Option<usize> {
    Some(match sql_type {
        SqlType::Bit | SqlType::TinyInt => 1,
        SqlType::SmallInt => 2,
        SqlType::Int | SqlType::Date | SqlType::Real => 4,
        SqlType::BigInt
        | SqlType::Money
        | SqlType::SmallMoney
        | SqlType::Time { .. }
        | SqlType::DateTime
        | SqlType::SmallDateTime
        | SqlType::DateTime2 { .. }
        | SqlType::DateTimeOffset { .. }
        | SqlType::Float => 8,
        SqlType::Decimal { .. } => sql_type.fixed_bytes().expect("decimal has a fixed width"),
        SqlType::UniqueIdentifier => 16,
        other => return fixed_binary(other),
    })
}

/// Whether a key holds the value itself, so that an index can give it back without the row.
pub fn is_lossless(sql_type: &SqlType) -> bool {
    fixed_key_bytes(sql_type).is_some() && !matches!(sql_type, SqlType::DateTimeOffset { .. } | SqlType::Real | SqlType::Float)
}

/// The least key above every key that begins with `prefix`.
pub fn range_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last != BEYOND {
            end.push(last + 1);
            return end;
        }
    }
    // A prefix of nothing but FF: no key of ours is longer than storage's 1,700 bytes, so more FF than that is above all.
    vec![BEYOND; 1701]
}

/// Reads one column from the front of `bytes` and moves past it. Text, float, varbinary and datetimeoffset cannot be
/// read back (see [`is_lossless`]): for those use [`skip_value`].
pub fn decode_value(bytes: &mut &[u8], column: &KeyColumn) -> Result<Scalar, Damage> {
    assert!(is_lossless(&column.sql_type), "only lossless key columns are decoded");
    if column.nullable && take_null(bytes, column.descending)? {
        return Ok(Scalar::Null);
    }
    let width = fixed_key_bytes(&column.sql_type).expect("lossless columns are of fixed width");
    let (value, rest) = bytes.split_at_checked(width).ok_or_else(|| Damage::new(format!("a key ends within {} bytes", width)))?;
    *bytes = rest;
    let mut value = value.to_vec();
    if column.descending {
        value.iter_mut().for_each(|byte| *byte = !*byte);
    }
    decode_present(&value, &column.sql_type)
}

/// Moves past one column of any type.
pub fn skip_value(bytes: &mut &[u8], column: &KeyColumn) -> Result<(), Damage> {
    if column.nullable && take_null(bytes, column.descending)? {
        return Ok(());
    }
    let turned = if column.descending { 0xFF } else { 0 };
    let linguistic = column.sql_type.collation().is_some_and(|c| !c.info().binary);
    let length = match fixed_key_bytes(&column.sql_type) {
        Some(width) => Some(width),
        None if linguistic => bytes.iter().position(|b| b ^ turned == 0).map(|at| at + 1),
        None => {
            let mut at = 0;
            loop {
                match (bytes.get(at).map(|b| b ^ turned), bytes.get(at + 1).map(|b| b ^ turned)) {
                    (Some(0), Some(0)) => break Some(at + 2),
                    (Some(0), Some(_)) => at += 2,
                    (Some(_), _) => at += 1,
                    (None, _) => break None,
                }
            }
        }
    };
    let rest = length.and_then(|length| bytes.get(length..)).ok_or_else(|| Damage::new("a key column has no end"))?;
    *bytes = rest;
    Ok(())
}

fn take_null(bytes: &mut &[u8], descending: bool) -> Result<bool, Damage> {
    let (first, rest) = bytes.split_first().ok_or_else(|| Damage::new("a key ends before its column"))?;
    *bytes = rest;
    match first ^ if descending { 0xFF } else { 0 } {
        NULL => Ok(true),
        PRESENT => Ok(false),
        other => Err(Damage::new(format!("NULL byte {other:#04x}"))),
    }
}

fn decode_present(value: &[u8], sql_type: &SqlType) -> Result<Scalar, Damage> {
    let long = || (u64::from_be_bytes(value.try_into().expect("eight bytes were taken")) ^ 1 << 63) as i64;
    let int = || (u32::from_be_bytes(value.try_into().expect("four bytes were taken")) ^ 1 << 31) as i32;
    Ok(match sql_type {
        SqlType::Bit if value[0] > 1 => return Err(Damage::new(format!("bit {:#04x}", value[0]))),
        SqlType::Bit => Scalar::Bit(value[0] == 1),
        SqlType::TinyInt => Scalar::TinyInt(value[0]),
        SqlType::SmallInt => Scalar::SmallInt((u16::from_be_bytes([value[0], value[1]]) ^ 1 << 15) as i16),
        SqlType::Int => Scalar::Int(int()),
        SqlType::Date => Scalar::Date(int()),
        SqlType::BigInt => Scalar::BigInt(long()),
        SqlType::Money | SqlType::SmallMoney => Scalar::Money(long()),
        SqlType::Time { .. } => Scalar::Time(long()),
        SqlType::DateTime => Scalar::DateTime(long()),
        SqlType::SmallDateTime => Scalar::SmallDateTime(long()),
        SqlType::DateTime2 { .. } => Scalar::DateTime2(long()),
        SqlType::Decimal { .. } => Scalar::Decimal(match value.len() {
            4 => i128::from(int()),
            8 => i128::from(long()),
            _ => (u128::from_be_bytes(value.try_into().expect("sixteen bytes were taken")) ^ 1 << 127) as i128,
        }),
        SqlType::UniqueIdentifier => {
            let mut guid = [0; 16];
            for (byte, at) in value.iter().zip(GUID_ORDER) {
                guid[at] = *byte;
            }
            Scalar::Guid(guid)
        }
        _ => Scalar::Binary(value.to_vec()),
    })
}

/// Keys of many rows in one buffer.
#[derive(Debug, Clone, Default)]
pub struct KeyBuffer {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl KeyBuffer {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Key `index`.
    pub fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    /// The keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.key(index))
    }

    /// Forgets the keys, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Encodes the keys of all rows of `arrays` (one per column of `columns`, of equal length) into `out`, replacing its content.
///
/// One integer, date or datetime column takes a loop of its own; everything else goes row by row.
pub fn encode_arrays(arrays: &[ArrayRef], columns: &[KeyColumn], out: &mut KeyBuffer) {
    assert_eq!(arrays.len(), columns.len(), "one array per key column");
    out.clear();
    let rows = arrays.first().map_or(0, |a| a.len());
    if let ([array], [column]) = (arrays, columns)
        && !column.nullable
        && encode_single(array, column, out)
    {
        return;
    }
    for row in 0..rows {
        for (array, column) in arrays.iter().zip(columns) {
            encode_array_value(array, row, column, &mut out.bytes);
        }
        out.ends.push(u32::try_from(out.bytes.len()).expect("a batch's keys take less than 4 GiB"));
    }
}

/// Appends one column of one row's key.
pub fn encode_array_value(array: &ArrayRef, row: usize, column: &KeyColumn, out: &mut Vec<u8>) {
    if array.is_null(row) {
        return encode_value(&Scalar::Null, column, out);
    }
    let start = out.len();
    if column.nullable {
        out.push(PRESENT);
    }
    match &column.sql_type {
        SqlType::Int | SqlType::Date => out.extend_from_slice(&ordered_32(array.as_primitive::<Int32Type>().value(row))),
        SqlType::BigInt | SqlType::DateTime | SqlType::DateTime2 { .. } | SqlType::Money => {
            out.extend_from_slice(&ordered_64(array.as_primitive::<Int64Type>().value(row)));
        }
        text if text.is_text() => encode_text(array.as_string::<i32>().value(row), text, out),
        other => encode_present(&scalar_at(array, row, other), other, out),
    }
    if column.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn encode_single(array: &ArrayRef, column: &KeyColumn, out: &mut KeyBuffer) -> bool {
    assert_eq!(array.null_count(), 0, "a key column that is not nullable has no NULL");
    let turned = |on: bool| if on { u64::MAX } else { 0 };
    let turn = turned(column.descending);
    let width = match &column.sql_type {
        SqlType::SmallInt => {
            let values = array.as_primitive::<Int16Type>().values();
            out.bytes.extend(values.iter().flat_map(|v| ((*v as u16 ^ 1 << 15) ^ turn as u16).to_be_bytes()));
            2
        }
        SqlType::Int | SqlType::Date => {
            let values = array.as_primitive::<Int32Type>().values();
            out.bytes.reserve(values.len() * 4);
            for v in values {
                out.bytes.extend_from_slice(&((*v as u32 ^ 1 << 31) ^ turn as u32).to_be_bytes());
            }
            4
        }
        SqlType::BigInt | SqlType::DateTime | SqlType::DateTime2 { .. } | SqlType::Money => {
            let values = array.as_primitive::<Int64Type>().values();
            out.bytes.reserve(values.len() * 8);
            for v in values {
                out.bytes.extend_from_slice(&((*v as u64 ^ 1 << 63) ^ turn).to_be_bytes());
            }
            8
        }
        _ => return false,
    };
    out.ends.extend((1..=array.len()).map(|row| (row * width) as u32));
    true
}

/// The ten bytes a datetimeoffset has where a value, not a key, is stored: exported for codecs above.
pub fn datetimeoffset_bytes(utc: i64, minutes: i16) -> [u8; 10] {
    offset_bytes(utc, minutes)
}

/// The reverse of [`datetimeoffset_bytes`].
pub fn datetimeoffset_parts(bytes: &[u8; 10]) -> (i64, i16) {
    offset_parts(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::array_from_scalars;
    use crate::compare::compare;
    use crate::value::{any_value, samples};
    use proptest::prelude::*;

    fn key(value: &Scalar, column: &KeyColumn) -> Vec<u8> {
        let mut out = Vec::new();
        encode_value(value, column, &mut out);
        out
    }

    #[test]
    fn every_type_encodes_decodes_and_skips() {
        for (sql_type, value) in samples() {
            for (nullable, descending) in [(false, false), (true, false), (false, true), (true, true)] {
                let column = KeyColumn { sql_type, nullable, descending };
                let mut bytes = key(&value, &column);
                bytes.push(77);
                let mut rest = bytes.as_slice();
                skip_value(&mut rest, &column).unwrap();
                assert_eq!(rest, [77], "{}", sql_type.name());
                if is_lossless(&sql_type) {
                    let mut rest = bytes.as_slice();
                    assert_eq!(decode_value(&mut rest, &column).unwrap(), value, "{}", sql_type.name());
                    assert_eq!(rest, [77]);
                }
                let array = array_from_scalars(&sql_type, [&value]);
                let mut keys = KeyBuffer::default();
                encode_arrays(&[array], &[column], &mut keys);
                assert_eq!(keys.key(0), &bytes[..bytes.len() - 1], "{}", sql_type.name());
            }
        }
    }

    #[test]
    fn nulls_come_first_and_ranges_end() {
        let column = KeyColumn::ascending(SqlType::Int, true);
        assert!(key(&Scalar::Null, &column) < key(&Scalar::Int(i32::MIN), &column));
        assert_eq!(range_end(&[1, 0xFF]), vec![2]);
        assert!(range_end(&[0xFF, 0xFF]) > vec![0xFF; 1700]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn order_is_that_of_compare((sql_type, a, b) in any_value().prop_flat_map(|(t, _)| (Just(t), crate::value::value_of(t), crate::value::value_of(t))), descending: bool) {
            let column = KeyColumn { sql_type, nullable: true, descending };
            let expected = compare(&a, &b, &sql_type);
            let found = key(&a, &column).cmp(&key(&b, &column));
            prop_assert_eq!(found, if descending { expected.reverse() } else { expected }, "{} {:?} {:?}", sql_type.name(), a, b);
        }

        #[test]
        fn hostile_bytes_are_refused((sql_type, _) in any_value(), bytes in proptest::collection::vec(any::<u8>(), 0..40), descending: bool) {
            let column = KeyColumn { sql_type, nullable: true, descending };
            let mut rest = bytes.as_slice();
            let _ = skip_value(&mut rest, &column);
            if is_lossless(&sql_type) {
                let mut rest = bytes.as_slice();
                let _ = decode_value(&mut rest, &column);
            }
        }
    }
}
