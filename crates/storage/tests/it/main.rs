//! Storage from outside: what its doors promise, checked against models.

mod ahead_trust;
mod bulk;
mod compaction;
mod crash;
mod damage;
mod faults;
mod large;
mod look;
mod model;
mod private_rows;
mod read_ahead;
mod rollback;
mod shrink;
mod small_log;
mod small_pool;
mod threads;
mod world;
