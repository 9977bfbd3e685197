//! Storage from outside: what its doors promise, checked against models.

mod bulk;
mod crash;
mod large;
mod model;
mod read_ahead;
mod rollback;
mod threads;
mod world;
