//! SQL behaviour as text: every file of `tests/sql` is a conversation, each batch with what a client must see.
//!
//! ```text
//! SELECT 1 AS a          the batch, up to a line of four dashes
//! ----
//! [a int]                a result set's columns
//! 1                      its rows, values between bars
//! done 1                 completions, messages, changes of transaction, in order
//! ```
//!
//! `session name` on a line of its own before a batch chooses the session. `THAWDB_UPDATE=1` rewrites the expectations;
//! reviewing what changed against SQL Server's documentation is the work.

mod anomalies;
mod api_cursors;
mod asked;
mod bulk_logging;
mod calls;
mod compression;
mod damage;
mod engine;
mod folders;
mod histories;
mod index_statements;
mod index_stops;
mod lockdown;
mod locking;
mod log_size;
mod nonsense;
mod parallel_plans;
mod point;
mod resumable;
mod script;
mod security;
mod sessions;
mod short;
mod statistics;
mod tempdb;
mod together;
mod transcript;
