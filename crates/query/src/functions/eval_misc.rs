//! Logic, identifiers, checksums, hashes, and what the session answers itself.

use crate::eval::convert_scalar;
use crate::functions::call::Call;
use crate::functions::eval_text::or_null;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering as Memory};
use thawdb_types::compare::compare;
use thawdb_types::convert::{parse_float, text_bytes};
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

/// Answered by the session: object, database, login, error and property functions.
pub(super) fn ask_session(call: &Call<'_>) -> Result {
    call.session.function(call.name, call.values)
}

/// Known by name, not built: an honest refusal.
pub(super) fn not_built(call: &Call<'_>) -> Result {
    Err(message(40514, &[&format!("Function {}", call.name)]))
}

/// ISNULL, COALESCE: normally answered before their arguments are all evaluated.
pub(super) fn first_value(call: &Call<'_>) -> Result {
    Ok(call.values.iter().find(|v| !v.is_null()).cloned().unwrap_or(Scalar::Null))
}

pub(super) fn nullif(call: &Call<'_>) -> Result {
    let same = !call.value(0).is_null() && compare(call.value(0), call.value(1), call.type_of(0)) == Ordering::Equal;
    Ok(if same { Scalar::Null } else { call.value(0).clone() })
}

pub(super) fn iif(call: &Call<'_>) -> Result {
    Ok(call.value(if *call.value(0) == Scalar::Bit(true) { 1 } else { 2 }).clone())
}

pub(super) fn choose(call: &Call<'_>) -> Result {
    let index = or_null!(call.integer(0).and_then(|i| usize::try_from(i).ok()).filter(|i| *i > 0));
    Ok(call.value(index).clone())
}

fn extreme(call: &Call<'_>, wanted: Ordering) -> Result {
    let present = call.values.iter().filter(|v| !v.is_null());
    let best = present.reduce(|best, value| if compare(value, best, call.type_of(0)) == wanted { value } else { best });
    Ok(best.cloned().unwrap_or(Scalar::Null))
}

pub(super) fn greatest(call: &Call<'_>) -> Result {
    extreme(call, Ordering::Greater)
}

pub(super) fn least(call: &Call<'_>) -> Result {
    extreme(call, Ordering::Less)
}

pub(super) fn isnumeric(call: &Call<'_>) -> Result {
    let sql_type = call.type_of(0);
    let numeric = match call.value(0) {
        Scalar::Null => false,
        Scalar::Text(text) => is_number(text, sql_type),
        Scalar::Binary(bytes) if *sql_type == SqlType::SqlVariant => match thawdb_types::variant::decode(bytes) {
            Some((base, Scalar::Text(text))) => is_number(&text, &base),
            Some((base, _)) => base.is_numeric(),
            None => false,
        },
        _ => sql_type.is_numeric(),
    };
    Ok(Scalar::Int(i32::from(numeric)))
}

fn is_number(text: &str, sql_type: &SqlType) -> bool {
    let trimmed = text.trim_matches(' ');
    // Signs, separators and currency signs alone count too: they convert to money.
    if matches!(trimmed, "+" | "-" | "." | "," | "$" | "\u{a3}" | "\u{20ac}" | "\u{a5}") {
        return true;
    }
    !trimmed.is_empty()
        && (parse_float(trimmed).is_some_and(f64::is_finite)
            || convert_scalar(Scalar::text(text), sql_type, &SqlType::Money, 0, false).is_ok())
}

pub(super) fn sql_variant_property(call: &Call<'_>) -> Result {
    let Scalar::Binary(bytes) = call.value(0) else { return Ok(Scalar::Null) };
    let name = or_null!(call.text(1));
    Ok(thawdb_types::variant::property(bytes, name).map_or(Scalar::Null, Scalar::Binary))
}

pub(super) fn newid(call: &Call<'_>) -> Result {
    let mut bytes = [0; 16];
    call.session.random(&mut bytes);
    // Version 4, variant 1; the third group lies little-endian.
    bytes[7] = bytes[7] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    Ok(Scalar::Guid(bytes))
}

static SEQUENTIAL: AtomicU32 = AtomicU32::new(0);

/// Rising in the order uniqueidentifiers are compared: the last six bytes hold the time, the ones before them a counter.
pub(super) fn newsequentialid(call: &Call<'_>) -> Result {
    let mut bytes = [0; 16];
    call.session.random(&mut bytes[..4]);
    // Relaxed: only uniqueness of the number matters, nothing is published by it.
    let number = SEQUENTIAL.fetch_add(1, Memory::Relaxed);
    let time = (call.session.now_utc_ticks() as u64 >> 8).to_be_bytes();
    bytes[10..16].copy_from_slice(&time[2..8]);
    bytes[8..10].copy_from_slice(&((number >> 16) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&(number as u16).to_be_bytes());
    Ok(Scalar::Guid(bytes))
}

/// Bytes of a value as BINARY_CHECKSUM and HASHBYTES see it.
fn value_bytes(value: &Scalar, sql_type: &SqlType) -> Vec<u8> {
    match value {
        Scalar::Null => Vec::new(),
        Scalar::Binary(bytes) if *sql_type == SqlType::SqlVariant => match thawdb_types::variant::decode(bytes) {
            Some((base, value)) => value_bytes(&value, &base),
            None => bytes.clone(),
        },
        Scalar::Text(text) => text_bytes(text, sql_type),
        Scalar::Binary(bytes) => bytes.clone(),
        other => match convert_scalar(other.clone(), sql_type, &SqlType::VARBINARY_MAX, 0, true) {
            Ok(Scalar::Binary(bytes)) => bytes,
            _ => Vec::new(),
        },
    }
}

/// The checksum of one value: an integer is its own, others fold their bytes by rotation and exclusive or.
fn checksum_of(value: &Scalar, sql_type: &SqlType, fold_case: bool) -> i32 {
    match value {
        Scalar::Null => i32::MAX,
        Scalar::BigInt(v) => (*v as i32) ^ (*v >> 32) as i32,
        Scalar::Text(text) if fold_case => rotate_bytes(&text_bytes(&text.trim_end_matches(' ').to_uppercase(), sql_type)),
        Scalar::Text(text) => rotate_bytes(&text_bytes(text, sql_type)),
        other => other.as_i64().map_or_else(|| rotate_bytes(&value_bytes(other, sql_type)), |v| v as i32),
    }
}

fn rotate_bytes(bytes: &[u8]) -> i32 {
    bytes.iter().fold(0u32, |sum, byte| sum.rotate_left(4) ^ u32::from(*byte)) as i32
}

fn checksum_with(call: &Call<'_>, fold_case: bool) -> Result {
    let mut sums = call.values.iter().zip(call.arguments).map(|(value, argument)| {
        let insensitive = argument.sql_type.collation().is_some_and(|c| !c.info().case_sensitive && !c.info().binary);
        checksum_of(value, &argument.sql_type, fold_case && insensitive)
    });
    let first = sums.next().unwrap_or(0);
    Ok(Scalar::Int(sums.fold(first, |sum, value| sum.rotate_left(4) ^ value)))
}

pub(super) fn checksum(call: &Call<'_>) -> Result {
    checksum_with(call, true)
}

pub(super) fn binary_checksum(call: &Call<'_>) -> Result {
    checksum_with(call, false)
}

pub(super) fn hashbytes(call: &Call<'_>) -> Result {
    let algorithm = or_null!(call.text(0)).to_ascii_uppercase();
    if call.value(1).is_null() {
        return Ok(Scalar::Null);
    }
    let bytes = value_bytes(call.value(1), call.type_of(1));
    Ok(match algorithm.as_str() {
        "MD5" => Scalar::Binary(Md5::digest(&bytes).to_vec()),
        "SHA" | "SHA1" => Scalar::Binary(Sha1::digest(&bytes).to_vec()),
        "SHA2_256" => Scalar::Binary(Sha256::digest(&bytes).to_vec()),
        "SHA2_512" => Scalar::Binary(Sha512::digest(&bytes).to_vec()),
        "MD2" | "MD4" => return not_built(call),
        _ => Scalar::Null,
    })
}
