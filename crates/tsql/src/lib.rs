//! T-SQL text to syntax tree: lexer, parser, source positions, script splitting at GO.
//!
//! ```text
//! script ─ split_script ─> batches ─ parse_batch ─> Batch { statements, errors }
//! ```
//!
//! A batch with an error in it executes nothing, as in SQL Server. The crate knows no catalog and no types: what a name
//! means is the binder's business. The tree's rules are in [`ast`], the bounds in [`limits`], the messages in [`error`].

pub mod ast;
pub mod error;
pub mod limits;

pub use error::SyntaxError;

/// What the session's options change about reading a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseOptions {
    /// `SET QUOTED_IDENTIFIER`: whether `"x"` is a name or a string.
    pub quoted_identifier: bool,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self { quoted_identifier: true }
    }
}

/// A parsed batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// The statements. Not to be run when there are errors.
    pub statements: Vec<ast::Stmt>,
    /// What is wrong with the text; empty if nothing is.
    pub errors: Vec<SyntaxError>,
}
