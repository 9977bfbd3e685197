//! What the engine sees of itself: named locks, waits and counters.
//!
//! Every crate above takes its locks, counts its work and reports its waits through this one, so that
//! a DBA can read them from T-SQL and a test can replace the scheduler beneath them.

pub mod sync;
