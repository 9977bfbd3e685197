//! Runs of the whole engine, made of seeds.

mod fuzz;
mod mutate;
mod simulate;
