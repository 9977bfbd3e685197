//! Window functions.
