//! Who wrote which version of a row, who may see it, and how it goes again.
//!
//! `records` are the log's words for transactions, `commit_table` their fates and the views on them.

pub(crate) mod commit_table;
pub(crate) mod records;
pub(crate) mod store;
pub(crate) mod version;
