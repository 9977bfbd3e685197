//! T-SQL text to syntax tree: lexer, parser, source positions, script splitting at GO.
//!
//! ```text
//! script ─ split_script ─> batch texts ─ lex ─> tokens ─ grammar ─> Batch { statements, errors }
//!                                                                   Expr ─ definition ─> text for catalog views
//! ```
//!
//! 1. A batch with an error in it executes nothing, as in SQL Server: look at `errors` before running `statements`.
//! 2. Nothing panics and nothing loops, whatever the text: every bound is in [`limits`], reaching one is an error.
//! 3. The crate knows no catalog and no types: what a name means is the binder's business.
//!
//! The tree's rules are in [`ast`], the messages in [`error`], the notation of the grammar in `grammar`.

pub mod ast;
mod deparse;
pub mod error;
mod grammar;
pub mod lexer;
pub mod limits;
mod parser;
mod script;
pub mod token;

pub use deparse::definition;
pub use error::SyntaxError;
pub use script::{ScriptBatch, split_script};

use ast::{Expr, Parameter, Stmt};
use parser::{Parsed, Parser};

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
    /// The statements; empty when there are errors.
    pub statements: Vec<Stmt>,
    /// What is wrong with the text, in the order a client is to see it; empty if nothing is.
    pub errors: Vec<SyntaxError>,
}

/// Parses a batch: never panics, never loops.
#[must_use]
pub fn parse_batch(text: &str, options: &ParseOptions) -> Batch {
    match parse_with(text, options, |parser| parser.batch()) {
        Ok(statements) => Batch { statements, errors: Vec::new() },
        Err(errors) => Batch { statements: Vec::new(), errors },
    }
}

/// Parses a scalar expression or a condition that fills the whole text, such as a default or check kept in the catalog.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_expr(text: &str, options: &ParseOptions) -> Result<Expr, Vec<SyntaxError>> {
    parse_with(text, options, |parser| {
        let expr = parser.condition_or_value()?;
        if parser.at_end() { Ok(expr) } else { parser.unexpected() }
    })
}

/// Parses a list of parameter declarations: `@a int, @b nvarchar(50) OUTPUT`. An empty text has none.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_parameter_list(text: &str, options: &ParseOptions) -> Result<Vec<Parameter>, Vec<SyntaxError>> {
    parse_with(text, options, |parser| {
        if parser.at_end() {
            return Ok(Vec::new());
        }
        let parameters = parser.comma_list(Parser::parameter)?;
        if parser.at_end() { Ok(parameters) } else { parser.unexpected() }
    })
}

/// Parses a data type that fills the whole text: `decimal(10, 2)`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_data_type(text: &str, options: &ParseOptions) -> Result<ast::DataType, Vec<SyntaxError>> {
    parse_with(text, options, |parser| {
        let data_type = parser.data_type()?;
        if parser.at_end() { Ok(data_type) } else { parser.unexpected() }
    })
}

/// Parses a name of one to four parts that fills the whole text, such as an argument of OBJECT_ID.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_object_name(text: &str, options: &ParseOptions) -> Result<ast::ObjectName, Vec<SyntaxError>> {
    parse_with(text, options, |parser| {
        let name = parser.object_name()?;
        if parser.at_end() { Ok(name) } else { parser.unexpected() }
    })
}

fn parse_with<T>(text: &str, options: &ParseOptions, parse: impl FnOnce(&mut Parser<'_>) -> Parsed<T>) -> Result<T, Vec<SyntaxError>> {
    let (tokens, mut errors) = lexer::lex(text, options);
    if let Some(first) = errors.first() {
        // Behind an unclosed string SQL Server says where it stood as well.
        if first.number == 105 {
            let near = SyntaxError::new(102, first.args.clone(), &first.near, first.span);
            errors.insert(1, near);
        }
        return Err(errors);
    }
    parse(&mut Parser::new(text, &tokens)).map_err(|error| vec![*error])
}
