//! Date parts (being written).
