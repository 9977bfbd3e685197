//! Arithmetic (being written).
