//! sql_variant on the wire (MS-TDS 2.2.5.5.4): a value that brings its type along.
//!
//! ```text
//! length u32 (0 is NULL) | type u8 | n u8 | n bytes of properties | value, of no length of its own
//!
//! decimal, numeric                 precision u8, scale u8
//! time, datetime2, datetimeoffset  scale u8
//! binary, varbinary                longest u16
//! char, varchar, nchar, nvarchar   collation 5, longest u16 in bytes
//! every other type                 none; the type is the one of fixed length
//! ```
//! Invariant: what [`decode`] takes [`thawdb_types::variant`] can hold; everything else is an error, never a guess.

use crate::buffer::{DecodeError, Reader, Writer};
use crate::type_info::{TypeInfo, code};
use crate::value;
use thawdb_types::{Collation, MaxLength, Scalar, SqlType, variant};

/// Longest value with its type and properties.
const BYTES_MAX: usize = 8009;

/// Appends the value that `bytes` are of.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let Some((base, value)) = variant::decode(bytes) else { return out.put_u32(0) };
    let at = out.len();
    out.put_u32(0);
    let mut properties = Vec::new();
    match base {
        SqlType::Decimal { precision, scale, .. } => properties.extend([precision, scale]),
        SqlType::Time { scale } | SqlType::DateTime2 { scale } | SqlType::DateTimeOffset { scale } => properties.push(scale),
        _ => {
            properties.extend(base.collation().into_iter().flat_map(Collation::tds_bytes));
            if base.length().is_some() {
                properties.put_u16(base.max_length() as u16);
            }
        }
    }
    out.extend([code_of(&base), properties.len() as u8]);
    out.extend(properties);
    let mut counted = Vec::new();
    value::encode(&TypeInfo::of(base), &value, &mut counted);
    // The count before the value is what the length of the whole says already.
    let count_bytes = if base.length().is_some() { 2 } else { 1 };
    out.extend(&counted[count_bytes..]);
    let length = u32::try_from(out.len() - at - 4).expect("a sql_variant has at most 8,016 bytes");
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

fn code_of(base: &SqlType) -> u8 {
    match base {
        SqlType::Bit => code::BIT,
        SqlType::TinyInt => code::INT1,
        SqlType::SmallInt => code::INT2,
        SqlType::Int => code::INT4,
        SqlType::BigInt => code::INT8,
        SqlType::Real => code::FLT4,
        SqlType::Float => code::FLT8,
        SqlType::Money => code::MONEY,
        SqlType::SmallMoney => code::MONEY4,
        SqlType::DateTime => code::DATETIME,
        SqlType::SmallDateTime => code::DATETIM4,
        other => TypeInfo::of(*other).code,
    }
}

/// Reads a value: the bytes of a sql_variant, or NULL.
pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Scalar, DecodeError> {
    let length = reader.u32("sql_variant length")? as usize;
    if length == 0 {
        return Ok(Scalar::Null);
    }
    let whole = reader.bytes(length, "sql_variant value")?;
    // Its length says where it ends, whatever is wrong inside.
    value_of(whole).ok_or(reader.no_value("sql_variant value"))
}

/// The bytes to be kept of a whole value.
fn value_of(whole: &[u8]) -> Option<Scalar> {
    if whole.len() > BYTES_MAX {
        return None;
    }
    let mut inner = Reader::new(whole);
    let info = base_info(&mut inner).ok()?;
    let bytes = inner.bytes(inner.remaining(), "sql_variant value").ok()?;
    let scalar = value::scalar(&info, bytes, &inner).ok()?;
    fits(&info.sql_type, &scalar, bytes.len()).then(|| Scalar::Binary(variant::encode(&scalar, &info.sql_type)))
}

/// Whether a text or binary is no longer, and a decimal has no more digits, than its type says.
fn fits(base: &SqlType, value: &Scalar, bytes: usize) -> bool {
    match (base, value) {
        (SqlType::Decimal { precision, .. }, Scalar::Decimal(v)) => v.unsigned_abs() < 10u128.pow(u32::from(*precision)),
        _ => base.length().is_none() || bytes <= base.max_length() as usize,
    }
}

/// The type and its properties.
fn base_info(reader: &mut Reader<'_>) -> Result<TypeInfo, DecodeError> {
    let code = reader.u8("sql_variant type")?;
    let count = reader.u8("sql_variant properties")?;
    let wrong = |reader: &Reader<'_>| Err(reader.malformed("sql_variant type"));
    let base = match (code, count) {
        (code::BIT, 0) => SqlType::Bit,
        (code::INT1, 0) => SqlType::TinyInt,
        (code::INT2, 0) => SqlType::SmallInt,
        (code::INT4, 0) => SqlType::Int,
        (code::INT8, 0) => SqlType::BigInt,
        (code::FLT4, 0) => SqlType::Real,
        (code::FLT8, 0) => SqlType::Float,
        (code::MONEY, 0) => SqlType::Money,
        (code::MONEY4, 0) => SqlType::SmallMoney,
        (code::DATETIME, 0) => SqlType::DateTime,
        (code::DATETIM4, 0) => SqlType::SmallDateTime,
        (code::GUID, 0) => SqlType::UniqueIdentifier,
        (code::DATEN, 0) => SqlType::Date,
        (code::TIMEN | code::DATETIME2N | code::DATETIMEOFFSETN, 1) => match (code, reader.u8("time scale")?) {
            (_, 8..) => return wrong(reader),
            (code::TIMEN, scale) => SqlType::Time { scale },
            (code::DATETIME2N, scale) => SqlType::DateTime2 { scale },
            (_, scale) => SqlType::DateTimeOffset { scale },
        },
        (code::DECIMALN | code::NUMERICN, 2) => {
            let [precision, scale] = reader.array("decimal type")?;
            if !(1..=38).contains(&precision) || scale > precision {
                return wrong(reader);
            }
            SqlType::Decimal { precision, scale, numeric: code == code::NUMERICN }
        }
        (code::BIGVARBIN | code::BIGBINARY, 2) => match (code, reader.u16("type length")?.max(1)) {
            (_, 8001..) => return wrong(reader),
            (code::BIGBINARY, length) => SqlType::Binary { length },
            (_, length) => SqlType::VarBinary { length: MaxLength::Limited(length) },
        },
        (code::BIGVARCHR | code::BIGCHAR | code::NVARCHAR | code::NCHAR, 7) => {
            let collation = Collation::by_tds_bytes(reader.array("collation")?).unwrap_or_default();
            text_base(code, collation, reader.u16("type length")?, reader)?
        }
        _ => return wrong(reader),
    };
    Ok(TypeInfo::of(base))
}

fn text_base(code: u8, collation: Collation, bytes: u16, reader: &Reader<'_>) -> Result<SqlType, DecodeError> {
    if bytes > 8000 {
        return Err(reader.malformed("type length"));
    }
    let (narrow, wide) = (bytes.max(1), (bytes / 2).max(1));
    Ok(match code {
        code::BIGVARCHR => SqlType::VarChar { length: MaxLength::Limited(narrow), collation },
        code::BIGCHAR => SqlType::Char { length: narrow, collation },
        code::NVARCHAR => SqlType::NVarChar { length: MaxLength::Limited(wide), collation },
        _ => SqlType::NChar { length: wide, collation },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_info::tests::every_type;

    #[test]
    fn every_base_round_trips() {
        let mut count = 0;
        for base in every_type().into_iter().filter(variant::holds) {
            for scalar in value::tests::samples(base).into_iter().filter(|s| !s.is_null()) {
                let short = match (&scalar, base.length()) {
                    (Scalar::Binary(bytes), Some(length)) => Scalar::Binary(bytes[..bytes.len().min(usize::from(length))].to_vec()),
                    (Scalar::Text(text), Some(length)) => Scalar::Text(text.chars().take(usize::from(length)).collect()),
                    _ => scalar,
                };
                let stored = Scalar::Binary(variant::encode(&short, &base));
                let info = TypeInfo::of(SqlType::SqlVariant);
                let mut bytes = Vec::new();
                value::encode(&info, &stored, &mut bytes);
                let mut reader = Reader::new(&bytes);
                assert_eq!(value::decode(&info, &mut reader).unwrap(), stored, "{}", base.name());
                assert!(reader.is_empty());
                for length in 0..bytes.len() {
                    assert!(value::decode(&info, &mut Reader::new(&bytes[..length])).is_err(), "{} cut at {length}", base.name());
                }
                count += 1;
            }
        }
        assert!(count > 40, "{count} values");
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let shown = |value: Scalar, base: SqlType| {
            let mut out = Vec::new();
            encode(&variant::encode(&value, &base), &mut out);
            out
        };
        assert_eq!(shown(Scalar::Int(7), SqlType::Int), [6, 0, 0, 0, 0x38, 0, 7, 0, 0, 0]);
        assert_eq!(shown(Scalar::Decimal(-150), SqlType::decimal(5, 2)), [9, 0, 0, 0, 0x6A, 2, 5, 2, 0, 150, 0, 0, 0]);
        let word = shown(Scalar::text("ab"), SqlType::nvarchar(3));
        assert_eq!(word[..6], [13, 0, 0, 0, 0xE7, 7]);
        assert_eq!(word[11..], [6, 0, b'a', 0, b'b', 0]);
    }

    /// Bytes that a client makes up: whatever is taken can be held, sorted, shown as text and sent back.
    #[test]
    fn no_bytes_make_it_panic() {
        use thawdb_types::convert::{ConvertOptions, convert};
        let mut state = 7u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let codes = every_type().into_iter().filter(variant::holds).map(|base| code_of(&base)).chain([0x62, 0x63, 0xF1, 0x26]);
        let codes: Vec<u8> = codes.collect();
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..400_000 {
            let code = codes[random(codes.len() as u64) as usize];
            let mut whole = vec![code];
            let properties = [0, 0, 1, 2, 7][random(5) as usize];
            whole.push(properties);
            (0..properties).for_each(|_| whole.push(if random(2) == 0 { random(40) } else { random(256) } as u8));
            let value = [0, 1, 2, 3, 4, 5, 8, 10, 16, 17][random(10) as usize];
            (0..value).for_each(|_| whole.push(if random(4) == 0 { 0xFF } else { random(256) } as u8));
            let mut bytes = (whole.len() as u32).to_le_bytes().to_vec();
            bytes.extend(&whole);
            let Ok(Scalar::Binary(held)) = decode(&mut Reader::new(&bytes)) else {
                refused += 1;
                continue;
            };
            taken += 1;
            assert!(variant::decode(&held).is_some(), "{whole:?}");
            let mut order = Vec::new();
            variant::order_key(&held, &mut order);
            let _shown = convert(&Scalar::Binary(held.clone()), &SqlType::SqlVariant, &SqlType::NVARCHAR_MAX, ConvertOptions::default());
            let mut again = Vec::new();
            encode(&held, &mut again);
            assert!(decode(&mut Reader::new(&again)).is_ok(), "{whole:?}");
        }
        assert!(taken > 5_000 && refused > 5_000, "{taken} taken, {refused} refused");
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for bytes in [
            vec![3, 0, 0, 0, 0x38, 0, 7],
            vec![6, 0, 0, 0, 0x38, 1, 7, 0, 0, 0],
            vec![2, 0, 0, 0, 0x62, 0],
            vec![5, 0, 0, 0, 0x6A, 2, 39, 2, 1],
            vec![6, 0, 0, 0, 0xA5, 2, 1, 0, 9, 9],
            vec![1, 0, 0, 0, 0x38],
            vec![0xFF, 0xFF, 0, 0, 0x38, 0],
            vec![2, 0, 0, 0, 0x38, 0],
            vec![6, 0, 0, 0, 0x6A, 2, 2, 0, 1, 100],
            vec![5, 0, 0, 0, 0x28, 0, 0xFF, 0xFF, 0xFF],
            vec![11, 0, 0, 0, 0x2B, 1, 0, 0, 0, 0, 0, 0, 0, 0x49, 3],
        ] {
            assert!(decode(&mut Reader::new(&bytes)).is_err(), "{bytes:?}");
        }
        assert_eq!(decode(&mut Reader::new(&[0, 0, 0, 0])).unwrap(), Scalar::Null);
    }
}
