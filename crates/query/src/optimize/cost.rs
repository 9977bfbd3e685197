//! Cost of physical operations, in units of one row read by a scan.
//!
//! The numbers are ratios, measured on TPC-H's tables in memory: a row of 130 bytes goes through a scan in 43 ns, which is 1.3
//! units; a seek walks three or four pages of which most are not in the processor's cache and takes 2 to 4 us, a look-up of one
//! row that a secondary index names little less; a row goes into a hash table of millions in some 130 ns and is looked up there
//! in half of that. Sorting n rows costs n log n comparisons.

/// Finding the first row of a range.
pub const SEEK: f64 = 60.0;
/// Fetching the row a secondary index names.
pub const LOOKUP: f64 = 50.0;
/// Putting a row into a hash table.
pub const BUILD: f64 = 4.0;
/// Looking a row up in a hash table.
pub const PROBE: f64 = 2.0;
/// Starting an operator again for the next outer row.
pub const REBIND: f64 = 10.0;
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
