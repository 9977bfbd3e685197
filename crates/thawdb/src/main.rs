//! The ThawDB binary.
fn main() {}
