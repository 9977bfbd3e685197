//! What the floors above see: plain values in, a stream of results out; no sockets, no packets.
//!
//! ```text
//! tds, embedding ── Engine::login ──► Session ── execute / execute_rpc / bulk_load ──► ResultSink
//! ```

pub mod batch;
pub mod bulk;
pub mod config;
pub mod login;
pub mod parameter;
pub mod sink;
