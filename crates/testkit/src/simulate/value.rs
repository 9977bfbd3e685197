//! Values of the workload: types, random values, and how T-SQL writes them.

use thawdb_observe::seeded::SeededRandom;
use thawdb_types::convert::{ConvertOptions, convert};
use thawdb_types::{Scalar, SqlType};

/// Types that columns are drawn from, those that may be keys first; the last two are large.
const TYPES: [SqlType; 12] = [
    SqlType::Int,
    SqlType::BigInt,
    SqlType::decimal(18, 4),
    SqlType::nvarchar(60),
    SqlType::varchar(30),
    SqlType::Bit,
    SqlType::Float,
    SqlType::Date,
    SqlType::varbinary(40),
    SqlType::nvarchar(900),
    SqlType::NVARCHAR_MAX,
    SqlType::VARBINARY_MAX,
];
/// How many of [`TYPES`] an index can have as keys.
const KEY_TYPES: u64 = 8;

/// Longer values are one byte repeated, and written so.
const LONG_LITERAL: usize = 100;

/// A type of any kind.
pub fn any_type(random: &mut SeededRandom) -> SqlType {
    TYPES[usize::try_from(random.below(TYPES.len() as u64)).expect("small")]
}

/// A type that may be a key.
pub fn key_type(random: &mut SeededRandom) -> SqlType {
    TYPES[usize::try_from(random.below(KEY_TYPES)).expect("small")]
}

/// A value of a column, NULL now and then if it may be.
pub fn any_value(random: &mut SeededRandom, sql_type: &SqlType, nullable: bool) -> Scalar {
    if nullable && random.chance(1, 6) {
        return Scalar::Null;
    }
    let small = i64::try_from(random.below(40)).expect("small") - 10;
    match sql_type {
        SqlType::Int => Scalar::Int(i32::try_from(small).expect("small")),
        SqlType::BigInt => Scalar::BigInt(small * 3_000_000_000),
        SqlType::Decimal { .. } => Scalar::Decimal(i128::from(small) * 12_345),
        SqlType::Bit => Scalar::Bit(random.chance(1, 2)),
        SqlType::Float => Scalar::Float(small as f64 / 4.0),
        SqlType::Date => Scalar::Date(738_000 + i32::try_from(small).expect("small")),
        SqlType::VarBinary { .. } if sql_type.is_large() => {
            let length = large_length(random);
            let byte = b'A' + u8::try_from(random.below(26)).expect("a letter");
            Scalar::Binary(vec![byte; length])
        }
        SqlType::VarBinary { .. } => {
            let mut bytes = vec![0; usize::try_from(random.below(40)).expect("small")];
            random.fill(&mut bytes);
            Scalar::Binary(bytes)
        }
        _ if sql_type.is_large() => {
            let letter = char::from(b'a' + u8::try_from(random.below(26)).expect("a letter"));
            Scalar::text(letter.to_string().repeat(large_length(random)))
        }
        _ => {
            let longest = u64::from(sql_type.length().unwrap_or(1));
            let length = if random.chance(1, 4) { 1 + random.below(longest) } else { 1 + random.below(4) };
            if length > LONG_LITERAL as u64 {
                let letter = char::from(b'a' + u8::try_from(random.below(5)).expect("a letter"));
                return Scalar::text(letter.to_string().repeat(usize::try_from(length).expect("a column's length")));
            }
            // Letters of one case: equality is then the same for the model as for any collation.
            Scalar::text((0..length).map(|_| char::from(b'a' + u8::try_from(random.below(5)).expect("a letter"))).collect::<String>())
        }
    }
}

fn large_length(random: &mut SeededRandom) -> usize {
    let longest = [20, 3_000, 9_000, 40_000][usize::try_from(random.below(4)).expect("small")];
    usize::try_from(random.below(longest)).expect("small")
}

/// The value as T-SQL writes it, of exactly this type.
pub fn literal(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Null => "NULL".into(),
        Scalar::Text(text) if text.len() > LONG_LITERAL => {
            let letter = &text[..1];
            format!("REPLICATE(CONVERT({}, N'{letter}'), {})", sql_type.name(), text.len())
        }
        Scalar::Binary(bytes) if bytes.len() > LONG_LITERAL => {
            format!("CONVERT(varbinary(max), REPLICATE(CONVERT(varchar(max), '{}'), {}))", char::from(bytes[0]), bytes.len())
        }
        Scalar::Binary(bytes) => format!("0x{}", hex(bytes)),
        Scalar::Bit(on) => u8::from(*on).to_string(),
        Scalar::Text(text) => format!("N'{text}'"),
        other => {
            let text = convert(other, sql_type, &SqlType::nvarchar(60), ConvertOptions::default());
            let text = text.unwrap_or_else(|error| panic!("{other:?} has a text: {error}"));
            format!("CONVERT({}, N'{}')", sql_type.name(), text.as_text().expect("converted to text"))
        }
    }
}

/// Bytes as a hexadecimal number.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The value as a field of a file that BULK INSERT reads.
pub fn field(value: &Scalar, sql_type: &SqlType) -> String {
    match value {
        Scalar::Null => String::new(),
        Scalar::Binary(bytes) => hex(bytes),
        Scalar::Bit(on) => u8::from(*on).to_string(),
        Scalar::Text(text) => text.clone(),
        other => {
            let text = convert(other, sql_type, &SqlType::nvarchar(60), ConvertOptions::default());
            text.ok().and_then(|text| text.as_text().map(str::to_owned)).expect("plain values have a text")
        }
    }
}

/// Whether `=` of two values of the type is the same here as in T-SQL.
pub fn is_comparable(sql_type: &SqlType) -> bool {
    !sql_type.is_large() && !sql_type.is_binary()
}

/// Whether every value of the type survives a text file: those of binary types and empty ones do not.
pub fn has_plain_text(sql_type: &SqlType) -> bool {
    !sql_type.is_large() && !sql_type.is_binary()
}
