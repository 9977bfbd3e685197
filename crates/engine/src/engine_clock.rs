//! Moments as the engine keeps them, from the environment's clock.

/// Days from 0001-01-01 to 1970-01-01 in the proleptic Gregorian calendar.
const DAYS_TO_1970: i128 = 719_162;

/// 100 ns since 0001-01-01 of nanoseconds since 1970.
pub(crate) fn ticks_of(utc_ns: i128) -> i64 {
    i64::try_from(utc_ns.div_euclid(100) + DAYS_TO_1970 * 86_400 * 10_000_000).expect("the clock is within year 9999")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_is_where_it_should_be() {
        // 1970-01-01 is 719,162 days after 0001-01-01: 621,355,968,000,000,000 ticks.
        assert_eq!(ticks_of(0), 621_355_968_000_000_000);
    }
}
