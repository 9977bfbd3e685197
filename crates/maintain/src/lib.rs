//! ThawDB maintain.
