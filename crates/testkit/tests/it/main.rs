//! Runs of the whole engine, made of seeds.

mod fuzz;
mod logic;
mod mutate;
mod simulate;
