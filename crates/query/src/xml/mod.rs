//! xml values in queries: FOR XML, and the methods value, query, exist, nodes and modify.
//!
//! ```text
//! rows ── format (FOR XML) ──► text
//! text ── types::xml::parse ──► tree ── xpath ──► items ── methods ──► Scalar, rows
//! ```
//!
//! A value is text in the normal form of `types::xml`. The XQuery that is taken is XPath 1.0 paths with predicates,
//! comparisons, arithmetic and a few functions, on untyped XML; FLWOR and schemas answer 9335; constructors stand in modify() alone. Rows of nodes()
//! hold the node alone, so that no path leads out of it upwards.

pub(crate) mod format;
pub(crate) mod methods;
pub(crate) mod modify;
pub(crate) mod modify_parse;
pub(crate) mod xpath;
