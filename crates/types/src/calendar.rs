//! Calendar (being written).
