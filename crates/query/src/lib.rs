//! ThawDB query.
