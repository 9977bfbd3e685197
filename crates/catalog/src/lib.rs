//! ThawDB catalog.
