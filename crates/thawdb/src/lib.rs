//! The embedding API.
