//! The embedding API and the commands of the `thawdb` binary.

pub mod votes;
