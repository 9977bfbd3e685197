//! Instance, sessions, batches, catalog views: everything between a client's text and the executor, without sockets.
//!
//! ```text
//! Engine::open ─► Engine ── login ─► Session ── execute(text) ─► parse ─► Program ─► query::compile ─► query::exec
//!                   │                   │                            └─► DDL, SET, transactions, EXEC, DBCC
//!                   └ databases         └ transactions, variables, options, cancellation
//! ```

pub mod api;
mod backup;
mod batch;
mod dbcc;
mod ddl;
mod engine_clock;
mod instance;
mod messages;
mod observed;
mod procedures;
mod rows;
mod security;
mod session;
mod statistics;
mod storage_error;
mod views;

pub use api::batch::Batch;
pub use api::bulk::BulkColumn;
pub use api::config::{EngineConfig, Secret};
pub use api::login::{LoginInfo, LoginRequest, PRODUCT_VERSION, PROGRAM_NAME};
pub use api::parameter::{Parameter, TableRows};
pub use api::sink::{BrowseColumn, DoneInfo, DoneKind, EnvChange, ResultSink, SinkClosed, StatementKind};
pub use instance::Engine;
pub use session::{BulkLoader, CancelToken, Isolation, Session};
pub use thawdb_query::phys::OutputColumn;
