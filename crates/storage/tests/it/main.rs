//! Storage from outside: what its doors promise, checked against models.

mod bulk;
mod crash;
mod damage;
mod faults;
mod large;
mod model;
mod read_ahead;
mod rollback;
mod threads;
mod world;
