//! sql_variant: a value together with the type it was given.
//!
//! ```text
//! type u8 | what the type needs                                   | value
//!           decimal, numeric                precision u8, scale u8 | 16 bytes, the unscaled integer
//!           time, datetime2, datetimeoffset scale u8               | 8, 8 and 10 bytes, as in Arrow
//!           char, varchar, nchar, nvarchar  collation u16, length u16 (in the type's unit) | UTF-8
//!           binary, varbinary               length u16             | the bytes
//!           every other type                                       | its Arrow value, little-endian
//! ```
//! The type is its `sys.types.system_type_id`. These bytes are what a [`Scalar::Binary`] of [`SqlType::SqlVariant`] holds,
//! in memory and in rows; NULL is NULL, without a type.
//!
//! Order, as documented for comparisons of sql_variant: first the family (uniqueidentifier, binary, text, exact numbers,
//! approximate numbers, dates and times, in this order), then the value within it, whatever its type: 1 equals 1.0, a date
//! equals the datetime2 of its midnight, a time is one of 1900-01-01. Texts go by their collation first, then by it.
//!
//! Invariants: 1. `decode(encode(v, t)) == (t, v)` for every type that [`holds`] takes (test). 2. [`order_key`] is the one
//! definition of the order: [`crate::compare`] and [`crate::key`] both use it.
//!
//! Failure: bytes that [`encode`] cannot have made decode to `None`; they sort below all others.

use crate::calendar::{Moment, TICKS_PER_MINUTE};
use crate::column::{offset_bytes, offset_parts};
use crate::compare::{GUID_ORDER, trim_zeros};
use crate::{Collation, MaxLength, Scalar, SqlType, convert};

/// One of a decimal's digits at the 38th place: fractions are counted in these.
const FRACTION_DIGITS: u32 = 38;

/// The families, as they sort.
#[derive(Clone, Copy)]
enum Family {
    Damaged,
    Guid,
    Binary,
    Text,
    Exact,
    Approximate,
    DateTime,
}

/// Whether a value of `base` may be a sql_variant's.
pub fn holds(base: &SqlType) -> bool {
    !base.is_large() && !matches!(base, SqlType::RowVersion | SqlType::SqlVariant | SqlType::HierarchyId)
}

/// The bytes of a value of `base`, which [`holds`] takes; the value is not NULL.
pub fn encode(value: &Scalar, base: &SqlType) -> Vec<u8> {
    assert!(holds(base), "a sql_variant cannot hold {}", base.name());
    let mut out = vec![base.system_type_id()];
    match *base {
        SqlType::Decimal { precision, scale, .. } => out.extend([precision, scale]),
        SqlType::Time { scale } | SqlType::DateTime2 { scale } | SqlType::DateTimeOffset { scale } => out.push(scale),
        _ => {
            out.extend(base.collation().into_iter().flat_map(|collation| collation.0.to_le_bytes()));
            out.extend(base.length().into_iter().flat_map(u16::to_le_bytes));
        }
    }
    match value {
        Scalar::Bit(v) => out.push(u8::from(*v)),
        Scalar::TinyInt(v) => out.push(*v),
        Scalar::SmallInt(v) => out.extend(v.to_le_bytes()),
        Scalar::Int(v) | Scalar::Date(v) => out.extend(v.to_le_bytes()),
        Scalar::BigInt(v) | Scalar::Money(v) | Scalar::Time(v) | Scalar::DateTime(v) | Scalar::SmallDateTime(v) | Scalar::DateTime2(v) => {
            out.extend(v.to_le_bytes())
        }
        Scalar::Decimal(v) => out.extend(v.to_le_bytes()),
        Scalar::Real(v) => out.extend(v.to_le_bytes()),
        Scalar::Float(v) => out.extend(v.to_le_bytes()),
        Scalar::DateTimeOffset(utc, minutes) => out.extend(offset_bytes(*utc, *minutes)),
        Scalar::Text(text) => out.extend(text.as_bytes()),
        Scalar::Binary(bytes) => out.extend(bytes),
        Scalar::Guid(guid) => out.extend(guid),
        Scalar::Null => panic!("NULL has no type to be a sql_variant's value by"),
    }
    out
}

/// The type and the value; `None` of bytes that are no sql_variant's.
pub fn decode(bytes: &[u8]) -> Option<(SqlType, Scalar)> {
    let (base, value) = base_of(bytes)?;
    let long = || value.try_into().ok().map(i64::from_le_bytes);
    let int = || value.try_into().ok().map(i32::from_le_bytes);
    let scalar = match base {
        SqlType::Bit => Scalar::Bit(match value {
            [0] => false,
            [1] => true,
            _ => return None,
        }),
        SqlType::TinyInt => Scalar::TinyInt(u8::from_le_bytes(value.try_into().ok()?)),
        SqlType::SmallInt => Scalar::SmallInt(i16::from_le_bytes(value.try_into().ok()?)),
        SqlType::Int => Scalar::Int(int()?),
        SqlType::Date => Scalar::Date(int()?),
        SqlType::BigInt => Scalar::BigInt(long()?),
        SqlType::Money | SqlType::SmallMoney => Scalar::Money(long()?),
        SqlType::Time { .. } => Scalar::Time(long()?),
        SqlType::DateTime => Scalar::DateTime(long()?),
        SqlType::SmallDateTime => Scalar::SmallDateTime(long()?),
        SqlType::DateTime2 { .. } => Scalar::DateTime2(long()?),
        SqlType::Decimal { .. } => Scalar::Decimal(i128::from_le_bytes(value.try_into().ok()?)),
        SqlType::Real => Scalar::Real(f32::from_le_bytes(value.try_into().ok()?)),
        SqlType::Float => Scalar::Float(f64::from_le_bytes(value.try_into().ok()?)),
        SqlType::DateTimeOffset { .. } => {
            let (utc, minutes) = offset_parts(<&[u8; 10]>::try_from(value).ok()?);
            Scalar::DateTimeOffset(utc, minutes)
        }
        SqlType::UniqueIdentifier => Scalar::Guid(value.try_into().ok()?),
        _ if base.is_text() => Scalar::Text(std::str::from_utf8(value).ok()?.to_owned()),
        _ => Scalar::Binary(value.to_vec()),
    };
    Some((base, scalar))
}

/// The type, and the bytes of the value.
fn base_of(bytes: &[u8]) -> Option<(SqlType, &[u8])> {
    let (&id, rest) = bytes.split_first()?;
    let byte = |at: usize| rest.get(at).copied();
    let short = |at: usize| rest.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let plain = [
        SqlType::Bit,
        SqlType::TinyInt,
        SqlType::SmallInt,
        SqlType::Int,
        SqlType::BigInt,
        SqlType::Money,
        SqlType::SmallMoney,
        SqlType::Real,
        SqlType::Float,
        SqlType::Date,
        SqlType::DateTime,
        SqlType::SmallDateTime,
        SqlType::UniqueIdentifier,
    ];
    let (base, width) = match id {
        106 | 108 => (SqlType::Decimal { precision: byte(0)?, scale: byte(1)?, numeric: id == 108 }, 2),
        41 => (SqlType::Time { scale: byte(0)? }, 1),
        42 => (SqlType::DateTime2 { scale: byte(0)? }, 1),
        43 => (SqlType::DateTimeOffset { scale: byte(0)? }, 1),
        173 => (SqlType::Binary { length: short(0)? }, 2),
        165 => (SqlType::VarBinary { length: MaxLength::Limited(short(0)?) }, 2),
        167 | 175 | 231 | 239 => {
            let (collation, length) = (Collation(short(0)?), short(2)?);
            let base = match id {
                167 => SqlType::VarChar { length: MaxLength::Limited(length), collation },
                175 => SqlType::Char { length, collation },
                231 => SqlType::NVarChar { length: MaxLength::Limited(length), collation },
                _ => SqlType::NChar { length, collation },
            };
            (base, 4)
        }
        _ => (plain.into_iter().find(|sql_type| sql_type.system_type_id() == id)?, 0),
    };
    let is_known = match base {
        SqlType::Decimal { precision, scale, .. } => (1..=38).contains(&precision) && scale <= precision,
        SqlType::Time { scale } | SqlType::DateTime2 { scale } | SqlType::DateTimeOffset { scale } => scale <= 7,
        _ => base.collation().is_none_or(|collation| usize::from(collation.0) < crate::collation::COLLATIONS.len()),
    };
    is_known.then(|| (base, &rest[width..]))
}

/// Appends bytes whose `memcmp` order is that of sql_variants; equal for those that are equal.
pub fn order_key(bytes: &[u8], out: &mut Vec<u8>) {
    let Some((base, value)) = decode(bytes) else {
        out.push(Family::Damaged as u8);
        return out.extend(bytes);
    };
    if let Some(moment) = Moment::of(&value) {
        out.push(Family::DateTime as u8);
        let utc = moment.total_ticks() - i64::from(moment.offset) * TICKS_PER_MINUTE;
        return out.extend((utc as u64 ^ 1 << 63).to_be_bytes());
    }
    match &value {
        Scalar::Guid(guid) => {
            out.push(Family::Guid as u8);
            out.extend(GUID_ORDER.map(|at| guid[at]));
        }
        Scalar::Binary(bytes) => {
            out.push(Family::Binary as u8);
            out.extend(trim_zeros(bytes));
        }
        Scalar::Text(text) => {
            out.push(Family::Text as u8);
            out.extend(base.collation().unwrap_or_default().0.to_be_bytes());
            crate::key::encode_text(text, &base, out);
        }
        Scalar::Real(v) => approximate(f64::from(*v), out),
        Scalar::Float(v) => approximate(*v, out),
        exact => exact_number(exact, &base, out),
    }
}

fn approximate(value: f64, out: &mut Vec<u8>) {
    out.push(Family::Approximate as u8);
    // Adding zero turns -0 into 0, which it equals.
    let bits = (value + 0.0).to_bits();
    out.extend((if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes());
}

/// The whole part, rounded down, then the fraction in units of the 38th digit unless there is none.
fn exact_number(value: &Scalar, base: &SqlType, out: &mut Vec<u8>) {
    let unscaled = match value {
        Scalar::Decimal(v) => *v,
        Scalar::Money(v) => i128::from(*v),
        other => i128::from(other.as_i64().expect("every other exact number is an integer")),
    };
    let scale = u32::from(base.scale());
    let unit = 10i128.pow(scale);
    out.push(Family::Exact as u8);
    out.extend((unscaled.div_euclid(unit) as u128 ^ 1 << 127).to_be_bytes());
    match unscaled.rem_euclid(unit) {
        0 => out.push(0),
        fraction => {
            out.push(1);
            out.extend((fraction * 10i128.pow(FRACTION_DIGITS - scale)).to_be_bytes());
        }
    }
}

/// What SQL_VARIANT_PROPERTY tells, itself the bytes of a sql_variant; `None` is NULL.
pub fn property(bytes: &[u8], name: &str) -> Option<Vec<u8>> {
    let (base, value) = decode(bytes)?;
    let number = |n: i32| Some(encode(&Scalar::Int(n), &SqlType::Int));
    let text = |text: &str| Some(encode(&Scalar::text(text), &SqlType::SYSNAME));
    match name.trim_end_matches(' ').to_ascii_lowercase().as_str() {
        "basetype" => text(base.base_name()),
        "precision" => number(i32::from(base.precision())),
        "scale" => number(i32::from(base.scale())),
        "maxlength" => number(i32::from(base.max_length())),
        "collation" => base.collation().and_then(|collation| text(collation.name())),
        "totalbytes" => number(total_bytes(&value, &base)),
        _ => None,
    }
}

/// Bytes SQL Server takes for the type and the value: two for the type and its version, what the type needs, the value.
fn total_bytes(value: &Scalar, base: &SqlType) -> i32 {
    let described = match base {
        SqlType::Decimal { .. } => 2,
        SqlType::Time { .. } | SqlType::DateTime2 { .. } | SqlType::DateTimeOffset { .. } => 1,
        _ if base.is_text() => 6,
        _ if base.is_binary() => 2,
        _ => 0,
    };
    let stored = match value {
        Scalar::Text(text) => convert::text_bytes(text, base).len() as i32,
        Scalar::Binary(bytes) => bytes.len() as i32,
        _ => i32::from(base.max_length()),
    };
    2 + described + stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::samples;
    use std::cmp::Ordering;

    fn variant(value: Scalar, base: SqlType) -> Vec<u8> {
        encode(&value, &base)
    }

    fn order(a: &[u8], b: &[u8]) -> Ordering {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        order_key(a, &mut left);
        order_key(b, &mut right);
        left.cmp(&right)
    }

    #[test]
    fn every_type_comes_back() {
        for (sql_type, value) in samples().into_iter().filter(|(t, _)| holds(t)) {
            let bytes = encode(&value, &sql_type);
            assert_eq!(decode(&bytes), Some((sql_type, value.clone())), "{}", sql_type.name());
            // No prefix of what has a fixed width decodes, and none makes anybody panic.
            for length in 0..bytes.len() {
                if let Some((base, _)) = decode(&bytes[..length]) {
                    assert!(base.is_text() || base.is_binary(), "{}", base.name());
                }
            }
        }
        assert!(!holds(&SqlType::VARCHAR_MAX) && !holds(&SqlType::Xml) && !holds(&SqlType::RowVersion));
    }

    #[test]
    fn families_then_values() {
        let rising = [
            variant(Scalar::Guid([0xFF; 16]), SqlType::UniqueIdentifier),
            variant(Scalar::Binary(vec![0xFF, 1]), SqlType::varbinary(2)),
            variant(Scalar::text("9"), SqlType::varchar(1)),
            variant(Scalar::text("zz"), SqlType::nvarchar(2)),
            variant(Scalar::Decimal(-10i128.pow(38) + 1), SqlType::decimal(38, 0)),
            variant(Scalar::Decimal(-15), SqlType::decimal(3, 1)),
            variant(Scalar::Int(-1), SqlType::Int),
            variant(Scalar::Decimal(-1), SqlType::decimal(38, 38)),
            variant(Scalar::Bit(false), SqlType::Bit),
            variant(Scalar::Decimal(1), SqlType::decimal(38, 38)),
            variant(Scalar::Money(12_345), SqlType::Money),
            variant(Scalar::BigInt(i64::MAX), SqlType::BigInt),
            variant(Scalar::Float(-1.5), SqlType::Float),
            variant(Scalar::Real(2.5), SqlType::Real),
            variant(Scalar::Time(7), SqlType::Time { scale: 7 }),
            variant(Scalar::Date(738_000), SqlType::Date),
            variant(Scalar::DateTimeOffset(738_001 * 864_000_000_000, 60), SqlType::DateTimeOffset { scale: 0 }),
        ];
        for (at, a) in rising.iter().enumerate() {
            for (bt, b) in rising.iter().enumerate() {
                assert_eq!(order(a, b), at.cmp(&bt), "{:?} {:?}", decode(a), decode(b));
            }
        }
    }

    #[test]
    fn values_of_one_family_are_equal_across_types() {
        for (a, b) in [
            (variant(Scalar::Int(1), SqlType::Int), variant(Scalar::Decimal(100), SqlType::decimal(5, 2))),
            (variant(Scalar::Bit(true), SqlType::Bit), variant(Scalar::Money(10_000), SqlType::SmallMoney)),
            (variant(Scalar::Real(0.5), SqlType::Real), variant(Scalar::Float(0.5), SqlType::Float)),
            (variant(Scalar::text("Abc"), SqlType::varchar(3)), variant(Scalar::text("aBC  "), SqlType::nvarchar(9))),
            (variant(Scalar::Date(693_595), SqlType::Date), variant(Scalar::DateTime(0), SqlType::DateTime)),
            (variant(Scalar::Binary(vec![1]), SqlType::varbinary(3)), variant(Scalar::Binary(vec![1, 0]), SqlType::Binary { length: 2 })),
        ] {
            assert_eq!(order(&a, &b), Ordering::Equal, "{:?} {:?}", decode(&a), decode(&b));
        }
    }

    #[test]
    fn properties() {
        let shown = |bytes: &[u8], name: &str| property(bytes, name).and_then(|p| decode(&p)).map(|(_, value)| value);
        let price = variant(Scalar::Decimal(46_279), SqlType::decimal(8, 2));
        assert_eq!(shown(&price, "BaseType"), Some(Scalar::text("decimal")));
        assert_eq!(shown(&price, "Precision"), Some(Scalar::Int(8)));
        assert_eq!(shown(&price, "scale "), Some(Scalar::Int(2)));
        assert_eq!(shown(&price, "TotalBytes"), Some(Scalar::Int(9)));
        assert_eq!(shown(&price, "Collation"), None);
        let word = variant(Scalar::text("ab"), SqlType::nvarchar(10));
        assert_eq!(shown(&word, "MaxLength"), Some(Scalar::Int(20)));
        assert_eq!(shown(&word, "TotalBytes"), Some(Scalar::Int(12)));
        assert_eq!(shown(&word, "Collation"), Some(Scalar::text("SQL_Latin1_General_CP1_CI_AS")));
        assert_eq!(shown(&word, "nonesuch"), None);
    }
}
