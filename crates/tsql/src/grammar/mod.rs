//! The grammar, one construct a file. Each file's header quotes its part of the grammar and names its messages.
//!
//! Notation: `[x]` optional, `{a | b}` choice, `x, ...` a list with commas, capitals are words of the language.

mod condition;
mod control;
mod cursor;
mod ddl_column;
mod ddl_constraint;
mod ddl_database;
mod ddl_index;
mod ddl_module;
mod ddl_other;
mod ddl_table;
mod dml;
mod event_session;
mod execute;
mod expr;
mod from;
mod function;
mod hint;
mod literal;
mod maintenance;
mod name;
mod option;
mod security;
mod select;
mod set;
mod statement;
mod transaction;
