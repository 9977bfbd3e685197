//! Products and dividends of 256 bits, for decimals whose 38 digits times 38 digits no machine integer holds.

/// An unsigned number of 256 bits.
#[derive(Clone, Copy)]
struct Wide {
    high: u128,
    low: u128,
}

const HALF: u32 = 64;
const LOW_HALF: u128 = u64::MAX as u128;

fn multiply(a: u128, b: u128) -> Wide {
    let (a_high, a_low, b_high, b_low) = (a >> HALF, a & LOW_HALF, b >> HALF, b & LOW_HALF);
    let low = a_low * b_low;
    let middle = a_high * b_low + (low >> HALF);
    let (middle, carry) = middle.overflowing_add(a_low * b_high);
    let high = a_high * b_high + (middle >> HALF) + if carry { 1 << HALF } else { 0 };
    Wide { high, low: middle << HALF | low & LOW_HALF }
}

/// Quotient and rest; `None` if the quotient does not fit 128 bits. `divisor` is not 0.
fn divide(value: Wide, divisor: u128) -> Option<(u128, u128)> {
    if value.high == 0 {
        return Some((value.low / divisor, value.low % divisor));
    }
    if value.high >= divisor {
        return None;
    }
    // Bit by bit: this is the rare path, and 128 steps of shift and subtract cannot be got wrong.
    let (mut rest, mut quotient) = (value.high, 0u128);
    for bit in (0..128).rev() {
        let overflowed = rest >> 127 == 1;
        rest = rest << 1 | value.low >> bit & 1;
        quotient <<= 1;
        if overflowed || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1;
        }
    }
    Some((quotient, rest))
}

fn signed(negative: bool, magnitude: u128) -> Option<i128> {
    let value = i128::try_from(magnitude).ok()?;
    Some(if negative { -value } else { value })
}

/// `a * b / 10^exponent`, half away from zero; `None` if it does not fit.
pub(super) fn multiply_divide_round(a: i128, b: i128, exponent: u32) -> Option<i128> {
    if exponent == 0 {
        return a.checked_mul(b);
    }
    // Rounding half away from zero looks at the first digit left out only, so all but that one may be cut off first.
    let cut = exponent - 1;
    let divisor = super::power_of_ten(cut.min(38)).unsigned_abs();
    let (quotient, _) = divide(multiply(a.unsigned_abs(), b.unsigned_abs()), divisor)?;
    let quotient = quotient / super::power_of_ten(cut - cut.min(38)).unsigned_abs();
    signed((a < 0) != (b < 0), quotient / 10 + u128::from(quotient % 10 >= 5))
}

/// `a * 10^exponent / b`, cut off; `None` if it does not fit. `b` is not 0.
pub(super) fn scale_divide(a: i128, exponent: i32, b: i128) -> Option<i128> {
    if exponent < 0 {
        // A quotient at a lower scale than the dividend's: divide first, the rest cannot matter to a cut-off.
        return Some(a / b / super::power_of_ten(exponent.unsigned_abs().min(38)));
    }
    // More than 38 digits are multiplied in two steps; the first leaves room or the result would not fit anyway.
    let (first, second) = (exponent.min(38), exponent - exponent.min(38));
    let a = a.checked_mul(super::power_of_ten(second as u32))?;
    let product = multiply(a.unsigned_abs(), super::power_of_ten(first as u32).unsigned_abs());
    let (quotient, _) = divide(product, b.unsigned_abs())?;
    signed((a < 0) != (b < 0), quotient)
}

/// `a * 10^exponent % b` with the sign of `a`. `b` is not 0.
pub(super) fn scale_modulo(a: i128, exponent: u32, b: i128) -> Option<i128> {
    let divisor = b.unsigned_abs();
    let product = multiply(a.unsigned_abs() % divisor, super::power_of_ten(exponent).unsigned_abs() % divisor);
    let (_, rest) = divide(product, divisor)?;
    signed(a < 0, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn division_undoes_multiplication(a: u128, b in 1..u128::MAX, rest: u128) {
            let rest = rest % b;
            let product = multiply(a, b);
            let (low, carry) = product.low.overflowing_add(rest);
            let value = Wide { high: product.high + u128::from(carry), low };
            prop_assert_eq!(divide(value, b), Some((a, rest)));
        }

        #[test]
        fn small_numbers_agree_with_machine_arithmetic(a in -1_000_000i128..1_000_000, e in 0..6i32, b in 1..1_000_000i128) {
            prop_assert_eq!(scale_divide(a, e, b), Some(a * 10i128.pow(e as u32) / b));
            prop_assert_eq!(scale_modulo(a, e as u32, b), Some(a * 10i128.pow(e as u32) % b));
            prop_assert_eq!(multiply_divide_round(a, b, 2), Some(super::super::round_divide(a * b, 100)));
        }
    }
}
