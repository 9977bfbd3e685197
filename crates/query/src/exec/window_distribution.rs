//! Where a row stands among its partition's rows: PERCENT_RANK, CUME_DIST, PERCENTILE_CONT and PERCENTILE_DISC.
//!
//! ```text
//! rows of the partition, in order      a  b  b  c      (n = 4)
//! PERCENT_RANK  (rank - 1) / (n - 1)   0  1/3 1/3 1    0 for a partition of one row
//! CUME_DIST     rows up to the peers / n
//! ```
//! PERCENTILE_CONT takes the place `1 + fraction * (n - 1)` among the values that are not NULL and interpolates between the two
//! rows beside it; PERCENTILE_DISC takes the first value whose CUME_DIST reaches the fraction, which is row `ceil(fraction * n)`.
//!
//! Invariants: rows come in the order that the functions ask for ([`super::window`] sorts). No locks, nothing blocks.
//! Failure: 10762 for a fraction outside of 0 to 1.

use arrow_array::{Array, ArrayRef, Float64Array};
use std::sync::Arc;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// PERCENT_RANK of each row, of the first rows of each row's peers.
pub(super) fn percent_rank(peer_start: &[usize]) -> ArrayRef {
    let others = peer_start.len().saturating_sub(1).max(1) as f64;
    Arc::new(peer_start.iter().map(|start| Some(*start as f64 / others)).collect::<Float64Array>())
}

/// CUME_DIST of each row, of the rows behind each row's peers.
pub(super) fn cume_dist(peer_end: &[usize]) -> ArrayRef {
    let rows = peer_end.len() as f64;
    Arc::new(peer_end.iter().map(|end| Some(*end as f64 / rows)).collect::<Float64Array>())
}

/// The value at `fraction` of the ordered `values`; NULL where none is there.
pub(super) fn percentile(values: &dyn Array, sql_type: &SqlType, fraction: &Scalar, continuous: bool) -> Result<Scalar, SqlError> {
    let Scalar::Float(fraction) = *fraction else { return Err(message(10762, &[])) };
    if !(0.0..=1.0).contains(&fraction) {
        return Err(message(10762, &[]));
    }
    let rows: Vec<usize> = (0..values.len()).filter(|row| values.is_valid(*row)).collect();
    let Some(last) = rows.len().checked_sub(1) else { return Ok(Scalar::Null) };
    let at = |nth: usize| scalar_at(values, rows[nth.min(last)], sql_type);
    if !continuous {
        let nth = (fraction * rows.len() as f64).ceil() as usize;
        return Ok(at(nth.saturating_sub(1)));
    }
    let place = fraction * last as f64;
    let (below, above) = (place.floor(), place.ceil());
    let (Scalar::Float(low), Scalar::Float(high)) = (at(below as usize), at(above as usize)) else { return Ok(Scalar::Null) };
    // As documented: the nearer row weighs more.
    let value = if below == above { low } else { (above - place) * low + (place - below) * high };
    Ok(Scalar::Float(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_leave_nulls_out() {
        let values = Float64Array::from(vec![None, Some(1.0), Some(2.0), Some(4.0), Some(8.0)]);
        let told = |fraction, continuous| percentile(&values, &SqlType::Float, &Scalar::Float(fraction), continuous).expect("a fraction");
        for (fraction, interpolated, exact) in [(0.0, 1.0, 1.0), (0.25, 1.75, 1.0), (0.5, 3.0, 2.0), (0.75, 5.0, 4.0), (1.0, 8.0, 8.0)] {
            assert_eq!((told(fraction, true), told(fraction, false)), (Scalar::Float(interpolated), Scalar::Float(exact)), "{fraction}");
        }
        let none = Float64Array::from(vec![None, None]);
        assert_eq!(percentile(&none, &SqlType::Float, &Scalar::Float(0.5), true).expect("a fraction"), Scalar::Null);
        assert_eq!(percentile(&none, &SqlType::Float, &Scalar::Float(1.5), true).expect_err("outside").number, 10762);
    }
}
