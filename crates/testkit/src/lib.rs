//! ThawDB testkit.
