//! Golden plans.
