//! JSON as T-SQL has it: text, read where it stands.
//!
//! ```text
//! text ── scan ──► values as spans of the text ── path ──► one span ── functions, modify, table ──► Scalar, rows
//! columns of a query ── format (FOR JSON) ──► text
//! ```
//!
//! 1. Nothing is built from the text: a value is where it begins and ends, so JSON_QUERY gives back what was written and
//!    JSON_MODIFY changes only what it names. That is why no JSON library stands here: they keep values, not places.
//! 2. Text is read only as far as the answer needs; what lies behind may be broken and is not noticed, as in SQL Server.
//! 3. No recursion over the text: depth costs a bit of memory a level, never stack.
//!
//! Source: RFC 8259; the documented behaviour of ISJSON, JSON_VALUE, JSON_QUERY, JSON_MODIFY, OPENJSON and FOR JSON.

pub(crate) mod format;
pub(crate) mod functions;
mod modify;
mod path;
mod scan;
pub(crate) mod table;

pub(crate) use scan::escape_into;
