//! The real device keeps the contract of `thawdb_device::file`, on every way a batch can go.

mod os;
mod sim;
