//! Instance, sessions, batches, catalog views: everything between a client's text and the executor, without sockets.
//!
//! ```text
//! Engine::open ─► Engine ── login ─► Session ── execute(text) ─► parse ─► statement loop ─► query::compile ─► query::run
//!                   │                   │                            └─► DDL, SET, transactions, EXEC, DBCC
//!                   └ databases         └ transactions, variables, options, cancellation
//! ```

pub mod api;
mod engine;
mod session;

pub use api::batch::Batch;
pub use api::bulk::BulkColumn;
pub use api::config::{EngineConfig, Secret};
pub use api::login::{LoginInfo, LoginRequest, PRODUCT_VERSION, PROGRAM_NAME};
pub use api::parameter::Parameter;
pub use api::sink::{DoneInfo, DoneKind, EnvChange, ResultSink, SinkClosed, StatementKind};
pub use engine::Engine;
pub use session::{BulkLoader, CancelToken, Isolation, Session};
pub use thawdb_query::phys::OutputColumn;
