//! Cost of physical operations, in units of one row read by a scan.
//!
//! The numbers are ratios, from the shape of the work: a seek walks three or four pages (some 30 rows' worth), a look-up
//! of one row from a secondary index is such a walk with warm upper levels, hashing a row costs a few comparisons,
//! sorting n rows costs n log n comparisons. They will be measured once the operators stand.

/// Finding the first row of a range.
pub const SEEK: f64 = 15.0;
/// Fetching the row a secondary index names.
pub const LOOKUP: f64 = 8.0;
/// Putting a row into a hash table.
pub const BUILD: f64 = 2.0;
/// Looking a row up in a hash table.
pub const PROBE: f64 = 1.2;
/// Starting an operator again for the next outer row.
pub const REBIND: f64 = 2.0;
/// Evaluating a predicate or expression on a row.
pub const EVALUATE: f64 = 0.1;
/// Advancing both sides of a merge join by a row.
pub const MERGE: f64 = 0.4;

/// Sorting `rows` rows.
pub fn sort(rows: f64) -> f64 {
    rows * rows.max(2.0).log2() * 0.3
}

/// Keeping the first `limit` of `rows` rows in order.
pub fn top(rows: f64, limit: f64) -> f64 {
    rows * limit.clamp(2.0, rows.max(2.0)).log2() * 0.15
}

/// Reading a row of so many bytes in a scan.
pub fn scan_row(bytes: f64) -> f64 {
    0.2 + bytes / 120.0
}
