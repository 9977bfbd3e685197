//! Runs of the whole engine, made of seeds.

mod simulate;
