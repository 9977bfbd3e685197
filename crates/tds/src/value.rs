//! Values on the wire (MS-TDS 2.2.5.5): one scalar at a time for parameters, whole batches for rows.
//!
//! ```text
//! Byte     n u8  | n bytes            0 is NULL
//! UShort   n u16 | n bytes            0xFFFF is NULL
//! Chunks   total u64 (all ones NULL, all ones less one unknown) | { n u32 | n bytes }* | 0 u32
//! Pointer  16 u8 | 16 bytes | 8 bytes | n u32 | n bytes      0 u8 is NULL
//! ULong    a sql_variant: see `variant`
//! ```
//!
//! Rows are written from Arrow arrays through [`RowEncoder`], which looks at each column's type once a batch and then
//! runs down the rows. Invariant V1: a value whose bytes contradict its TYPE_INFO is an error, never a guess.

use crate::buffer::{DecodeError, Reader, Writer, utf16_text};
use crate::type_info::{TypeInfo, USHORT_NULL, ValueLength, decimal_bytes, time_bytes};
use crate::variant;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef};
use thawdb_types::collation::{decode_1252, encode_1252};
use thawdb_types::{Scalar, SqlType};

/// PLP length of NULL.
const CHUNKS_NULL: u64 = u64::MAX;
/// PLP length of a value whose length the sender does not know.
const CHUNKS_UNKNOWN: u64 = u64::MAX - 1;
/// Largest chunk we send.
const CHUNK_BYTES: usize = 32 * 1024;
/// The first day behind 9999-12-31, counted from 0001-01-01.
const DAYS_END: i64 = 3_652_059;
/// 14 hours: no place is further from UTC.
const OFFSET_MINUTES_MAX: u16 = 840;
/// Largest value of any type: 2^31 - 1 bytes.
const VALUE_BYTES_MAX: usize = i32::MAX as usize;
/// 1/300 s in a day.
const DATETIME_UNITS_PER_DAY: i64 = 300 * 86_400;
/// 100 ns in a day.
const TICKS_PER_DAY: i64 = 10_000_000 * 86_400;
/// Minutes in a day.
const MINUTES_PER_DAY: i64 = 1440;

/// Appends a value of `info`.
pub fn encode(info: &TypeInfo, value: &Scalar, out: &mut Vec<u8>) {
    match value {
        Scalar::Null => encode_null(info, out),
        Scalar::Bit(v) => put_short(out, &[u8::from(*v)]),
        Scalar::TinyInt(v) => put_short(out, &[*v]),
        Scalar::SmallInt(v) => put_short(out, &v.to_le_bytes()),
        Scalar::Int(v) => put_short(out, &v.to_le_bytes()),
        Scalar::BigInt(v) => put_short(out, &v.to_le_bytes()),
        Scalar::Real(v) => put_short(out, &v.to_le_bytes()),
        Scalar::Float(v) => put_short(out, &v.to_le_bytes()),
        Scalar::Decimal(v) => put_decimal(info, *v, out),
        Scalar::Money(v) => put_money(info, *v, out),
        Scalar::Date(days) => put_short(out, &days.to_le_bytes()[..3]),
        Scalar::Time(ticks) => put_time(info, *ticks, out),
        Scalar::DateTime(units) => put_datetime(*units, out),
        Scalar::SmallDateTime(minutes) => put_small_datetime(*minutes, out),
        Scalar::DateTime2(ticks) => put_datetime2(info, *ticks, out),
        Scalar::DateTimeOffset(ticks, offset) => put_datetime_offset(info, *ticks, *offset, out),
        Scalar::Text(text) => put_text(info, text, out),
        Scalar::Binary(bytes) if info.sql_type == SqlType::SqlVariant => variant::encode(bytes, out),
        Scalar::Binary(bytes) => put_bytes(info, bytes, out),
        Scalar::Guid(bytes) => put_short(out, bytes),
    }
}

fn encode_null(info: &TypeInfo, out: &mut Vec<u8>) {
    match info.length {
        ValueLength::Fixed(_) | ValueLength::Byte | ValueLength::TextPointer => out.put_u8(0),
        ValueLength::UShort => out.put_u16(USHORT_NULL),
        ValueLength::Chunks => out.put_u64(CHUNKS_NULL),
        ValueLength::ULong => out.put_u32(0),
    }
}

fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(u8::try_from(bytes.len()).expect("byte-counted values have at most 17 bytes"));
    out.extend_from_slice(bytes);
}

fn put_decimal(info: &TypeInfo, value: i128, out: &mut Vec<u8>) {
    let SqlType::Decimal { precision, .. } = info.sql_type else { return encode_null(info, out) };
    let width = decimal_bytes(precision);
    out.extend_from_slice(&[width + 1, u8::from(value >= 0)]);
    out.extend_from_slice(&value.unsigned_abs().to_le_bytes()[..usize::from(width)]);
}

fn put_money(info: &TypeInfo, value: i64, out: &mut Vec<u8>) {
    if info.sql_type == SqlType::SmallMoney {
        let narrow = i32::try_from(value).expect("smallmoney was checked when it was made");
        return put_short(out, &narrow.to_le_bytes());
    }
    out.put_u8(8);
    out.extend_from_slice(&value.to_le_bytes()[4..]);
    out.extend_from_slice(&value.to_le_bytes()[..4]);
}

fn scale_of(info: &TypeInfo) -> u8 {
    match info.sql_type {
        SqlType::Time { scale } | SqlType::DateTime2 { scale } | SqlType::DateTimeOffset { scale } => scale,
        _ => 7,
    }
}

fn time_units(ticks: i64, scale: u8) -> [u8; 8] {
    (ticks / 10i64.pow(u32::from(7 - scale.min(7)))).to_le_bytes()
}

fn put_time(info: &TypeInfo, ticks: i64, out: &mut Vec<u8>) {
    let scale = scale_of(info);
    put_short(out, &time_units(ticks, scale)[..time_bytes(scale)]);
}

fn put_ticks(scale: u8, ticks: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&time_units(ticks.rem_euclid(TICKS_PER_DAY), scale)[..time_bytes(scale)]);
    out.extend_from_slice(&ticks.div_euclid(TICKS_PER_DAY).to_le_bytes()[..3]);
}

fn put_datetime2(info: &TypeInfo, ticks: i64, out: &mut Vec<u8>) {
    let scale = scale_of(info);
    out.push(u8::try_from(time_bytes(scale) + 3).expect("8 at most"));
    put_ticks(scale, ticks, out);
}

fn put_datetime_offset(info: &TypeInfo, ticks: i64, offset_minutes: i16, out: &mut Vec<u8>) {
    let scale = scale_of(info);
    out.push(u8::try_from(time_bytes(scale) + 5).expect("10 at most"));
    put_ticks(scale, ticks, out);
    out.extend_from_slice(&offset_minutes.to_le_bytes());
}

fn put_datetime(units: i64, out: &mut Vec<u8>) {
    let days = i32::try_from(units.div_euclid(DATETIME_UNITS_PER_DAY)).expect("datetime spans 1753 to 9999");
    let rest = u32::try_from(units.rem_euclid(DATETIME_UNITS_PER_DAY)).expect("a day has 25,920,000 units");
    out.put_u8(8);
    out.put_i32(days);
    out.put_u32(rest);
}

fn put_small_datetime(minutes: i64, out: &mut Vec<u8>) {
    let days = u16::try_from(minutes.div_euclid(MINUTES_PER_DAY)).expect("smalldatetime spans 1900 to 2079");
    let rest = u16::try_from(minutes.rem_euclid(MINUTES_PER_DAY)).expect("a day has 1,440 minutes");
    out.put_u8(4);
    out.put_u16(days);
    out.put_u16(rest);
}

fn put_text(info: &TypeInfo, text: &str, out: &mut Vec<u8>) {
    if !is_wide(info) && (info.utf8 || text.is_ascii()) {
        return put_bytes(info, text.as_bytes(), out);
    }
    if info.length == ValueLength::UShort && is_wide(info) {
        let at = out.len();
        out.put_u16(0);
        let bytes = out.put_utf16(text) * 2;
        let count = u16::try_from(bytes).expect("nvarchar(n) has at most 8,000 bytes");
        out[at..at + 2].copy_from_slice(&count.to_le_bytes());
        return;
    }
    let mut bytes = Vec::with_capacity(text.len() * 2);
    if is_wide(info) {
        bytes.put_utf16(text);
    } else {
        encode_1252(text, &mut bytes);
    }
    put_bytes(info, &bytes, out);
}

fn is_wide(info: &TypeInfo) -> bool {
    matches!(info.sql_type, SqlType::NChar { .. } | SqlType::NVarChar { .. } | SqlType::NText { .. } | SqlType::Xml)
}

fn put_bytes(info: &TypeInfo, bytes: &[u8], out: &mut Vec<u8>) {
    match info.length {
        ValueLength::UShort => {
            out.put_u16(u16::try_from(bytes.len()).expect("limited types have at most 8,000 bytes"));
            out.extend_from_slice(bytes);
        }
        ValueLength::Chunks => {
            out.put_u64(bytes.len() as u64);
            for chunk in bytes.chunks(CHUNK_BYTES) {
                out.put_u32(u32::try_from(chunk.len()).expect("chunks are small"));
                out.extend_from_slice(chunk);
            }
            out.put_u32(0);
        }
        ValueLength::TextPointer => {
            out.put_u8(16);
            out.extend_from_slice(b"thawdb text ptr\0\0\0\0\0\0\0\0\0");
            out.put_u32(u32::try_from(bytes.len()).expect("values are below 2^31 bytes"));
            out.extend_from_slice(bytes);
        }
        ValueLength::Fixed(_) | ValueLength::Byte | ValueLength::ULong => put_short(out, bytes),
    }
}

/// Reads a value of `info`.
pub fn decode(info: &TypeInfo, reader: &mut Reader<'_>) -> Result<Scalar, DecodeError> {
    match info.length {
        ValueLength::Fixed(0) => Ok(Scalar::Null),
        ValueLength::Fixed(width) => scalar(info, reader.bytes(usize::from(width), "value")?, reader),
        ValueLength::Byte => match reader.u8("value length")? {
            0 => Ok(Scalar::Null),
            width => scalar(info, reader.bytes(usize::from(width), "value")?, reader),
        },
        ValueLength::UShort => match reader.u16("value length")? {
            USHORT_NULL => Ok(Scalar::Null),
            width => scalar(info, reader.bytes(usize::from(width), "value")?, reader),
        },
        ValueLength::Chunks => match chunks(reader)? {
            None => Ok(Scalar::Null),
            Some(bytes) => scalar(info, &bytes, reader),
        },
        ValueLength::TextPointer => match reader.u8("text pointer length")? {
            0 => Ok(Scalar::Null),
            pointer => {
                reader.bytes(usize::from(pointer) + 8, "text pointer")?;
                large(info, reader)
            }
        },
        ValueLength::ULong => variant::decode(reader),
    }
}

/// Reads a parameter's value; text, ntext and image have a ULONG length and no pointer there.
pub fn decode_parameter(info: &TypeInfo, reader: &mut Reader<'_>) -> Result<Scalar, DecodeError> {
    match info.length {
        ValueLength::TextPointer => large(info, reader),
        _ => decode(info, reader),
    }
}

fn large(info: &TypeInfo, reader: &mut Reader<'_>) -> Result<Scalar, DecodeError> {
    match reader.u32("text length")? {
        u32::MAX => Ok(Scalar::Null),
        length => scalar(info, reader.bytes(length as usize, "text")?, reader),
    }
}

fn chunks(reader: &mut Reader<'_>) -> Result<Option<Vec<u8>>, DecodeError> {
    let total = reader.u64("chunked length")?;
    if total == CHUNKS_NULL {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    loop {
        let length = reader.u32("chunk length")? as usize;
        if length == 0 {
            break;
        }
        if bytes.len() + length > VALUE_BYTES_MAX {
            return Err(reader.malformed("chunked value"));
        }
        bytes.extend_from_slice(reader.bytes(length, "chunk")?);
    }
    if total != CHUNKS_UNKNOWN && total != bytes.len() as u64 {
        return Err(reader.malformed("chunked length"));
    }
    Ok(Some(bytes))
}

pub(crate) fn scalar(info: &TypeInfo, bytes: &[u8], at: &Reader<'_>) -> Result<Scalar, DecodeError> {
    let wrong = || at.no_value("value");
    let fixed = |n: usize| if bytes.len() == n { Ok(little(bytes)) } else { Err(wrong()) };
    Ok(match info.sql_type {
        SqlType::Bit => Scalar::Bit(fixed(1)? != 0),
        SqlType::TinyInt => Scalar::TinyInt(fixed(1)? as u8),
        SqlType::SmallInt => Scalar::SmallInt(fixed(2)? as i16),
        SqlType::Int => Scalar::Int(fixed(4)? as i32),
        SqlType::BigInt => Scalar::BigInt(fixed(8)? as i64),
        // Neither infinity nor what is no number is a value of these types.
        SqlType::Real => Scalar::Real(Some(f32::from_bits(fixed(4)? as u32)).filter(|v| v.is_finite()).ok_or_else(wrong)?),
        SqlType::Float => Scalar::Float(Some(f64::from_bits(fixed(8)?)).filter(|v| v.is_finite()).ok_or_else(wrong)?),
        SqlType::SmallMoney => Scalar::Money(i64::from(fixed(4)? as i32)),
        SqlType::Money => Scalar::Money(fixed(8)?.rotate_left(32) as i64),
        SqlType::Decimal { .. } => decimal(bytes).ok_or_else(wrong)?,
        SqlType::Date => Scalar::Date(i32::try_from(fixed(3)?).ok().filter(|days| i64::from(*days) < DAYS_END).ok_or_else(wrong)?),
        SqlType::DateTime => datetime(fixed(8)?).ok_or_else(wrong)?,
        SqlType::SmallDateTime => small_datetime(fixed(4)?).ok_or_else(wrong)?,
        SqlType::Time { scale } => Scalar::Time(time_of_day(bytes, scale).ok_or_else(wrong)?),
        SqlType::DateTime2 { scale } => Scalar::DateTime2(ticks(bytes, scale).ok_or_else(wrong)?),
        SqlType::DateTimeOffset { scale } => {
            let (moment, offset) = bytes.split_at_checked(bytes.len().wrapping_sub(2)).ok_or_else(wrong)?;
            let offset = Some(little(offset) as i16).filter(|minutes| minutes.unsigned_abs() <= OFFSET_MINUTES_MAX).ok_or_else(wrong)?;
            Scalar::DateTimeOffset(ticks(moment, scale).ok_or_else(wrong)?, offset)
        }
        SqlType::UniqueIdentifier => Scalar::Guid(bytes.try_into().map_err(|_| wrong())?),
        SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Image | SqlType::RowVersion | SqlType::HierarchyId => {
            Scalar::Binary(bytes.to_vec())
        }
        _ if is_wide(info) && !bytes.len().is_multiple_of(2) => return Err(wrong()),
        _ if is_wide(info) => Scalar::Text(utf16_text(bytes)),
        _ if info.utf8 => Scalar::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => Scalar::Text(decode_1252(bytes)),
    })
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn decimal(bytes: &[u8]) -> Option<Scalar> {
    let (sign, magnitude) = bytes.split_first()?;
    if magnitude.len() > 16 {
        return None;
    }
    let magnitude = magnitude.iter().rev().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
    let value = i128::try_from(magnitude).ok().filter(|v| *v < 10i128.pow(38))?;
    Some(Scalar::Decimal(if *sign == 0 { -value } else { value }))
}

fn datetime(value: u64) -> Option<Scalar> {
    let days = i64::from(value as u32 as i32);
    let units = (value >> 32) as i64;
    let in_range = (-53_690..=2_958_463).contains(&days) && units < DATETIME_UNITS_PER_DAY;
    in_range.then_some(Scalar::DateTime(days * DATETIME_UNITS_PER_DAY + units))
}

fn small_datetime(value: u64) -> Option<Scalar> {
    let (days, minutes) = ((value & 0xFFFF) as i64, (value >> 16) as i64);
    (minutes < MINUTES_PER_DAY).then_some(Scalar::SmallDateTime(days * MINUTES_PER_DAY + minutes))
}

fn time_of_day(bytes: &[u8], scale: u8) -> Option<i64> {
    let units = (bytes.len() == time_bytes(scale)).then(|| little(bytes))?;
    let ticks = i64::try_from(units).ok()?.checked_mul(10i64.pow(u32::from(7 - scale)))?;
    (ticks < TICKS_PER_DAY).then_some(ticks)
}

fn ticks(bytes: &[u8], scale: u8) -> Option<i64> {
    let (time, date) = bytes.split_at_checked(time_bytes(scale))?;
    let days = (date.len() == 3).then(|| little(date) as i64).filter(|d| *d < DAYS_END)?;
    Some(days * TICKS_PER_DAY + time_of_day(time, scale)?)
}

/// Writes rows of one result set.
#[derive(Debug)]
pub struct RowEncoder {
    infos: Vec<TypeInfo>,
}

/// ROW token.
pub const ROW: u8 = 0xD1;

impl RowEncoder {
    /// An encoder of rows with these types.
    pub fn new(infos: Vec<TypeInfo>) -> Self {
        Self { infos }
    }

    /// Appends rows `range` of `columns` as ROW tokens (MS-TDS 2.2.7.19).
    pub fn encode(&self, columns: &[ArrayRef], range: std::ops::Range<usize>, out: &mut Vec<u8>) {
        assert_eq!(columns.len(), self.infos.len(), "rows agree with their metadata");
        for row in range {
            out.put_u8(ROW);
            for (info, array) in self.infos.iter().zip(columns) {
                encode_cell(info, array, row, out);
            }
        }
    }
}

fn encode_cell(info: &TypeInfo, array: &ArrayRef, row: usize, out: &mut Vec<u8>) {
    if array.is_null(row) {
        return encode_null(info, out);
    }
    match info.sql_type {
        SqlType::Bit => put_short(out, &[u8::from(array.as_boolean().value(row))]),
        SqlType::TinyInt => put_short(out, &[array.as_primitive::<UInt8Type>().value(row)]),
        SqlType::SmallInt => put_short(out, &array.as_primitive::<Int16Type>().value(row).to_le_bytes()),
        SqlType::Int => put_short(out, &array.as_primitive::<Int32Type>().value(row).to_le_bytes()),
        SqlType::BigInt => put_short(out, &array.as_primitive::<Int64Type>().value(row).to_le_bytes()),
        SqlType::Real => put_short(out, &array.as_primitive::<Float32Type>().value(row).to_le_bytes()),
        SqlType::Float => put_short(out, &array.as_primitive::<Float64Type>().value(row).to_le_bytes()),
        SqlType::Decimal { .. } => put_decimal(info, array.as_primitive::<Decimal128Type>().value(row), out),
        SqlType::Money | SqlType::SmallMoney => put_money(info, array.as_primitive::<Int64Type>().value(row), out),
        SqlType::Date => put_short(out, &array.as_primitive::<Int32Type>().value(row).to_le_bytes()[..3]),
        SqlType::Time { .. } => put_time(info, array.as_primitive::<Int64Type>().value(row), out),
        SqlType::DateTime => put_datetime(array.as_primitive::<Int64Type>().value(row), out),
        SqlType::SmallDateTime => put_small_datetime(array.as_primitive::<Int64Type>().value(row), out),
        SqlType::DateTime2 { .. } => put_datetime2(info, array.as_primitive::<Int64Type>().value(row), out),
        SqlType::DateTimeOffset { .. } => {
            let bytes = array.as_fixed_size_binary().value(row);
            put_datetime_offset(info, little(&bytes[..8]) as i64, little(&bytes[8..]) as i16, out);
        }
        SqlType::UniqueIdentifier => put_short(out, array.as_fixed_size_binary().value(row)),
        SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Image | SqlType::RowVersion | SqlType::HierarchyId => {
            put_bytes(info, array.as_binary::<i32>().value(row), out);
        }
        SqlType::SqlVariant => variant::encode(array.as_binary::<i32>().value(row), out),
        _ => put_text(info, array.as_string::<i32>().value(row), out),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::type_info::tests::every_type;
    use thawdb_types::{Collation, MaxLength};

    pub(crate) fn samples(sql_type: SqlType) -> Vec<Scalar> {
        let mut values = vec![Scalar::Null];
        values.extend(match sql_type {
            SqlType::Bit => vec![Scalar::Bit(true), Scalar::Bit(false)],
            SqlType::TinyInt => vec![Scalar::TinyInt(0), Scalar::TinyInt(255)],
            SqlType::SmallInt => vec![Scalar::SmallInt(i16::MIN), Scalar::SmallInt(i16::MAX)],
            SqlType::Int => vec![Scalar::Int(i32::MIN), Scalar::Int(-1), Scalar::Int(i32::MAX)],
            SqlType::BigInt => vec![Scalar::BigInt(i64::MIN), Scalar::BigInt(i64::MAX)],
            SqlType::Real => vec![Scalar::Real(-1.5)],
            SqlType::Float => vec![Scalar::Float(f64::MAX)],
            SqlType::Money => vec![Scalar::Money(i64::MIN), Scalar::Money(-1), Scalar::Money(i64::MAX)],
            SqlType::SmallMoney => vec![Scalar::Money(i64::from(i32::MIN)), Scalar::Money(12_345)],
            SqlType::Decimal { precision, .. } => {
                let most = 10i128.pow(u32::from(precision)) - 1;
                vec![Scalar::Decimal(0), Scalar::Decimal(most), Scalar::Decimal(-most)]
            }
            SqlType::Date => vec![Scalar::Date(0), Scalar::Date(3_652_058)],
            SqlType::Time { scale } => vec![Scalar::Time(0), Scalar::Time(TICKS_PER_DAY - 10i64.pow(7 - u32::from(scale)))],
            SqlType::DateTime => vec![Scalar::DateTime(-53_690 * DATETIME_UNITS_PER_DAY), Scalar::DateTime(1)],
            SqlType::SmallDateTime => vec![Scalar::SmallDateTime(0), Scalar::SmallDateTime(65_535 * 1440 + 1439)],
            SqlType::DateTime2 { .. } => vec![Scalar::DateTime2(0), Scalar::DateTime2(3_652_058 * TICKS_PER_DAY)],
            SqlType::DateTimeOffset { .. } => vec![Scalar::DateTimeOffset(TICKS_PER_DAY, -840)],
            SqlType::UniqueIdentifier => vec![Scalar::Guid([7; 16])],
            SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Image | SqlType::RowVersion => {
                vec![Scalar::Binary(vec![]), Scalar::Binary((0..=255).collect())]
            }
            _ => vec![Scalar::Text(String::new()), Scalar::Text("plain".into()), Scalar::Text("Grüße €".into())],
        });
        values
    }

    #[test]
    fn every_type_round_trips() {
        for sql_type in every_type() {
            let info = TypeInfo::of(sql_type);
            for value in samples(sql_type) {
                let mut bytes = Vec::new();
                encode(&info, &value, &mut bytes);
                let mut reader = Reader::new(&bytes);
                assert_eq!(decode(&info, &mut reader).unwrap(), value, "{sql_type:?}");
                assert!(reader.is_empty());
                for length in 0..bytes.len() {
                    assert!(decode(&info, &mut Reader::new(&bytes[..length])).is_err(), "{sql_type:?} cut at {length}");
                }
            }
        }
    }

    #[test]
    fn large_values_come_in_chunks() {
        let info = TypeInfo::of(SqlType::VarBinary { length: MaxLength::Max });
        let value = Scalar::Binary((0..100_000u32).map(|n| n as u8).collect());
        let mut bytes = Vec::new();
        encode(&info, &value, &mut bytes);
        assert_eq!(decode(&info, &mut Reader::new(&bytes)).unwrap(), value);
        bytes[..8].copy_from_slice(&CHUNKS_UNKNOWN.to_le_bytes());
        assert_eq!(decode(&info, &mut Reader::new(&bytes)).unwrap(), value);
        bytes[..8].copy_from_slice(&7u64.to_le_bytes());
        assert!(decode(&info, &mut Reader::new(&bytes)).is_err());
    }

    #[test]
    fn values_beyond_their_type_are_refused() {
        for (sql_type, bytes) in [
            (SqlType::Int, vec![3, 1, 2, 3]),
            (SqlType::DateTime, [vec![8], i32::MAX.to_le_bytes().to_vec(), vec![0; 4]].concat()),
            (SqlType::Date, vec![2, 0, 0]),
            (SqlType::DateTime2 { scale: 7 }, vec![8, 255, 255, 255, 255, 255, 0, 0, 0]),
            (SqlType::Decimal { precision: 38, scale: 0, numeric: false }, [vec![17, 1], vec![255; 16]].concat()),
            (SqlType::NVarChar { length: MaxLength::Limited(9), collation: Collation::DEFAULT }, vec![3, 0, 65, 0, 66]),
        ] {
            assert!(decode(&TypeInfo::of(sql_type), &mut Reader::new(&bytes)).is_err(), "{sql_type:?}");
        }
    }
}
