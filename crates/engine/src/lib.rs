//! ThawDB engine.
