//! Batches: text to statements, statements to steps, steps to results.
//!
//! ```text
//! text ─ tsql::parse_batch ─► statements ─ Program::new ─► ops ─ Interpreter::run ─► Outbox ─► ResultSink
//!                                                        (flat: IF, WHILE, GOTO, TRY are jumps)
//! ```

pub(crate) mod arguments;
pub(crate) mod compile_cx;
pub(crate) mod control;
pub(crate) mod cursor;
pub(crate) mod dispatch;
pub(crate) mod execute;
pub(crate) mod failure;
pub(crate) mod function;
pub(crate) mod insert_execute;
pub(crate) mod integrity;
pub(crate) mod interpreter;
pub(crate) mod kept;
pub(crate) mod kept_steps;
pub(crate) mod module;
pub(crate) mod outbox;
pub(crate) mod parsed;
pub(crate) mod plan_cache;
pub(crate) mod point_read;
pub(crate) mod program;
pub(crate) mod query;
pub(crate) mod ready;
pub(crate) mod result_sets;
pub(crate) mod row_limit;
pub(crate) mod set_option;
pub(crate) mod show_plan;
pub(crate) mod simple;
pub(crate) mod statistics;
pub(crate) mod table_rows;
pub(crate) mod temporal;
pub(crate) mod transactions;
pub(crate) mod trigger;
