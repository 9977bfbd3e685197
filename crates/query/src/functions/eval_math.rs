//! Numeric functions. Integers, decimals and money stay exact; the rest is float.

use crate::eval::convert_scalar;
use crate::functions::call::Call;
use crate::functions::eval_text::or_null;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

type Result<T = Scalar> = std::result::Result<T, SqlError>;

fn overflow(sql_type: &SqlType) -> SqlError {
    message(8115, &[&"expression", &sql_type.message_name()])
}

/// An exact number: its unscaled value and scale.
fn exact(value: &Scalar, sql_type: &SqlType) -> Option<(i128, u32)> {
    match value {
        Scalar::Decimal(v) => Some((*v, u32::from(sql_type.scale()))),
        Scalar::Money(v) => Some((i128::from(*v), 4)),
        other => other.as_i64().map(|v| (i128::from(v), 0)),
    }
}

/// An exact number as the result's type.
fn exact_result(call: &Call<'_>, unscaled: i128, scale: u32) -> Result {
    if matches!(call.result, SqlType::Float | SqlType::Real) {
        return float_result(call, unscaled as f64 / 10f64.powi(scale as i32));
    }
    let precision = if unscaled.unsigned_abs() >= 10u128.pow(38) { return Err(overflow(call.result)) } else { 38 };
    let from = SqlType::numeric(precision, scale as u8);
    convert_scalar(Scalar::Decimal(unscaled), &from, call.result, 0, false).map_err(|_| overflow(call.result))
}

/// A float's digits at a scale, half away from zero.
fn rounded(value: f64, scale: usize) -> Option<i128> {
    // Twenty digits more than are kept tell on which side of a half it is.
    let text = format!("{value:.*}", scale + 20).replace('.', "");
    let (kept, rest) = text.split_at(text.len() - 20);
    let up = i128::from(rest.starts_with(['5', '6', '7', '8', '9']));
    let unscaled = match kept {
        "" | "-" => 0,
        digits => digits.parse::<i128>().ok()?,
    };
    Some(if text.starts_with('-') { unscaled - up } else { unscaled + up })
}

fn float_result(call: &Call<'_>, value: f64) -> Result {
    if value.is_nan() {
        return Err(message(3623, &[]));
    }
    if value.is_infinite() {
        return Err(overflow(&SqlType::Float));
    }
    match call.result {
        SqlType::Float => Ok(Scalar::Float(value)),
        // All digits that the value has in binary, not the seventeen of a conversion.
        SqlType::Decimal { precision, scale, .. } => {
            let unscaled = rounded(value, usize::from(*scale)).filter(|v| v.unsigned_abs() < 10u128.pow(u32::from(*precision)));
            unscaled.map(Scalar::Decimal).ok_or_else(|| overflow(call.result))
        }
        other => convert_scalar(Scalar::Float(value), &SqlType::Float, other, 0, false),
    }
}

/// The first argument as a float, whatever number it is.
fn number(call: &Call<'_>, at: usize) -> Option<f64> {
    match (call.float(at), exact(call.value(at), call.arguments.get(at).map(|a| &a.sql_type)?)) {
        (Some(value), _) => Some(value),
        (None, Some((unscaled, scale))) => Some(unscaled as f64 / 10f64.powi(scale as i32)),
        _ => None,
    }
}

pub(super) fn abs(call: &Call<'_>) -> Result {
    match exact(call.value(0), call.type_of(0)) {
        Some((unscaled, scale)) => exact_result(call, unscaled.abs(), scale),
        None => float_result(call, or_null!(call.float(0)).abs()),
    }
}

pub(super) fn sign(call: &Call<'_>) -> Result {
    match exact(call.value(0), call.type_of(0)) {
        Some((unscaled, _)) => exact_result(call, unscaled.signum(), 0),
        None => {
            let value = or_null!(call.float(0));
            float_result(call, if value == 0.0 { 0.0 } else { value.signum() })
        }
    }
}

pub(super) fn ceiling(call: &Call<'_>) -> Result {
    match exact(call.value(0), call.type_of(0)) {
        Some((unscaled, scale)) => exact_result(call, -((-unscaled).div_euclid(10i128.pow(scale))), 0),
        None => float_result(call, or_null!(call.float(0)).ceil()),
    }
}

pub(super) fn floor(call: &Call<'_>) -> Result {
    match exact(call.value(0), call.type_of(0)) {
        Some((unscaled, scale)) => exact_result(call, unscaled.div_euclid(10i128.pow(scale)), 0),
        None => float_result(call, or_null!(call.float(0)).floor()),
    }
}

pub(super) fn round(call: &Call<'_>) -> Result {
    let digits = or_null!(call.integer(1));
    let cut = if call.values.len() > 2 { or_null!(call.integer(2)) != 0 } else { false };
    match exact(call.value(0), call.type_of(0)) {
        Some((unscaled, scale)) => {
            let dropped = i64::from(scale) - digits;
            if dropped <= 0 {
                return exact_result(call, unscaled, scale);
            }
            if dropped > 38 {
                return exact_result(call, 0, scale);
            }
            let unit = 10i128.pow(dropped as u32);
            let half = if cut { 0 } else { unit / 2 * unscaled.signum() };
            exact_result(call, (unscaled + half) / unit * unit, scale)
        }
        None => {
            let value = or_null!(call.float(0));
            let factor = 10f64.powi(digits.clamp(-400, 400) as i32);
            let scaled = value * factor;
            if !scaled.is_finite() {
                return float_result(call, value);
            }
            if factor == 0.0 {
                return float_result(call, 0.0);
            }
            float_result(call, if cut { scaled.trunc() } else { scaled.round() } / factor)
        }
    }
}

pub(super) fn power(call: &Call<'_>) -> Result {
    let exponent = or_null!(number(call, 1));
    if let (Some((base, 0)), true) = (exact(call.value(0), call.type_of(0)), exponent >= 0.0 && exponent.fract() == 0.0) {
        let Some(value) = base.checked_pow(exponent.min(1e6) as u32).filter(|v| *call.result != SqlType::Int || i32::try_from(*v).is_ok())
        else {
            return float_result(call, (base as f64).powf(exponent));
        };
        return exact_result(call, value, 0);
    }
    let base = or_null!(number(call, 0));
    if base == 0.0 && exponent < 0.0 {
        return Err(message(8134, &[]));
    }
    float_result(call, base.powf(exponent))
}

/// A function of one float.
macro_rules! of_float {
    ($($name:ident: $compute:expr;)*) => {$(
        pub(super) fn $name(call: &Call<'_>) -> Result {
            let compute: fn(f64) -> f64 = $compute;
            float_result(call, compute(or_null!(number(call, 0))))
        }
    )*};
}

of_float! {
    sqrt: f64::sqrt;
    square: |v| v * v;
    exp: f64::exp;
    sin: f64::sin;
    cos: f64::cos;
    tan: f64::tan;
    asin: f64::asin;
    acos: f64::acos;
    atan: f64::atan;
    degrees: f64::to_degrees;
    radians: f64::to_radians;
    log10: |v| if v > 0.0 { v.log10() } else { f64::NAN };
}

pub(super) fn cot(call: &Call<'_>) -> Result {
    let tangent = or_null!(number(call, 0)).tan();
    if tangent == 0.0 { Err(message(8134, &[])) } else { float_result(call, 1.0 / tangent) }
}

pub(super) fn log(call: &Call<'_>) -> Result {
    let value = or_null!(number(call, 0));
    let natural = if value > 0.0 { value.ln() } else { f64::NAN };
    if call.values.len() < 2 {
        return float_result(call, natural);
    }
    let base = or_null!(number(call, 1));
    let sound = base > 0.0 && base != 1.0;
    float_result(call, if sound { natural / base.ln() } else { f64::NAN })
}

pub(super) fn atn2(call: &Call<'_>) -> Result {
    float_result(call, or_null!(number(call, 0)).atan2(or_null!(number(call, 1))))
}

pub(super) fn pi(call: &Call<'_>) -> Result {
    float_result(call, std::f64::consts::PI)
}

/// L'Ecuyer's combined generator, as RAND with a seed shows it: the first value after seeding.
fn seeded(seed: i64) -> f64 {
    const FIRST: i64 = 2_147_483_563;
    const SECOND: i64 = 2_147_483_399;
    let first = 40_014 * (if seed == 0 { 12_345 } else { seed.abs() % FIRST }) % FIRST;
    let second = 40_692 * 67_890 % SECOND;
    let mut value = first - second;
    if value < 1 {
        value += FIRST - 1;
    }
    value as f64 * 4.656_613e-10
}

pub(super) fn rand(call: &Call<'_>) -> Result {
    if let Some(seed) = call.integer(0) {
        return Ok(Scalar::Float(seeded(seed)));
    }
    let mut bytes = [0; 8];
    call.session.random(&mut bytes);
    // 53 random bits fill a float's fraction.
    Ok(Scalar::Float((u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64))
}

pub(super) fn bit_count(call: &Call<'_>) -> Result {
    let ones = match call.value(0) {
        Scalar::Null => return Ok(Scalar::Null),
        Scalar::Bit(v) => u32::from(*v),
        Scalar::TinyInt(v) => v.count_ones(),
        Scalar::SmallInt(v) => v.count_ones(),
        Scalar::Int(v) => v.count_ones(),
        Scalar::BigInt(v) => v.count_ones(),
        Scalar::Binary(bytes) => bytes.iter().map(|b| b.count_ones()).sum(),
        _ => return Err(message(8116, &[&call.type_of(0).message_name(), &1, &"bit_count"])),
    };
    Ok(Scalar::BigInt(i64::from(ones)))
}

/// The bits of an integer or binary argument, as bytes from the highest.
fn bits_of(call: &Call<'_>) -> Result<Vec<u8>> {
    Ok(match call.value(0) {
        Scalar::TinyInt(v) => v.to_be_bytes().to_vec(),
        Scalar::SmallInt(v) => v.to_be_bytes().to_vec(),
        Scalar::Int(v) => v.to_be_bytes().to_vec(),
        Scalar::BigInt(v) => v.to_be_bytes().to_vec(),
        Scalar::Binary(bytes) => bytes.clone(),
        _ => return Err(message(8116, &[&call.type_of(0).message_name(), &1, &call.name.to_ascii_lowercase()])),
    })
}

/// Bytes from the highest as a value of the call's first type.
fn of_bits(call: &Call<'_>, bytes: Vec<u8>) -> Scalar {
    let number = bytes.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte)).cast_signed();
    match call.type_of(0) {
        SqlType::TinyInt => Scalar::TinyInt(number as u8),
        SqlType::SmallInt => Scalar::SmallInt(number as i16),
        SqlType::Int => Scalar::Int(number as i32),
        SqlType::BigInt => Scalar::BigInt(number),
        _ => Scalar::Binary(bytes),
    }
}

/// The byte and mask of the bit at `offset` from the lowest; 9837 beyond the value's bits.
fn bit_at(call: &Call<'_>, bytes: &[u8], offset: i64) -> Result<(usize, u8)> {
    let at = usize::try_from(offset).ok().filter(|at| *at < bytes.len() * 8);
    let at = at.ok_or_else(|| message(4199, &[&offset, &2, &call.name.to_ascii_lowercase()]))?;
    Ok((bytes.len() - 1 - at / 8, 1 << (at % 8)))
}

pub(super) fn get_bit(call: &Call<'_>) -> Result {
    if call.values.iter().any(Scalar::is_null) {
        return Ok(Scalar::Null);
    }
    let bytes = bits_of(call)?;
    let (byte, mask) = bit_at(call, &bytes, or_null!(call.integer(1)))?;
    Ok(Scalar::Bit(bytes[byte] & mask != 0))
}

pub(super) fn set_bit(call: &Call<'_>) -> Result {
    if call.values.iter().any(Scalar::is_null) {
        return Ok(Scalar::Null);
    }
    let mut bytes = bits_of(call)?;
    let (byte, mask) = bit_at(call, &bytes, or_null!(call.integer(1)))?;
    match if call.values.len() > 2 { or_null!(call.integer(2)) } else { 1 } {
        0 => bytes[byte] &= !mask,
        1 => bytes[byte] |= mask,
        other => return Err(message(4199, &[&other, &3, &"set_bit"])),
    }
    Ok(of_bits(call, bytes))
}

pub(super) fn left_shift(call: &Call<'_>) -> Result {
    shifted(call, true)
}

pub(super) fn right_shift(call: &Call<'_>) -> Result {
    shifted(call, false)
}

/// Bits moved to the left, or by a negative number to the right; what is moved in is zero.
fn shifted(call: &Call<'_>, left: bool) -> Result {
    if call.values.iter().any(Scalar::is_null) {
        return Ok(Scalar::Null);
    }
    let bytes = bits_of(call)?;
    let by = or_null!(call.integer(1));
    let by = if left { by } else { by.saturating_neg() };
    let bits = bytes.len() * 8;
    let lit = |at: i64| usize::try_from(at).is_ok_and(|at| at < bits && bytes[bytes.len() - 1 - at / 8] >> (at % 8) & 1 == 1);
    let mut moved = vec![0; bytes.len()];
    for at in 0..bits {
        if lit((at as i64).saturating_sub(by)) {
            moved[bytes.len() - 1 - at / 8] |= 1 << (at % 8);
        }
    }
    Ok(of_bits(call, moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_give_sql_servers_values() {
        for (seed, value) in [(0, 0.943597390424144), (1, 0.713591993212924), (2, 0.713610626184182)] {
            assert!((seeded(seed) - value).abs() < 1e-14, "RAND({seed})");
        }
    }
}
