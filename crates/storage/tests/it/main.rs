//! Storage from outside: what its doors promise, checked against models.

mod bulk;
mod crash;
mod large;
mod model;
mod small_log;
mod threads;
mod world;
