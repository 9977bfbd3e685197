//! What the lexer and parser report: a SQL Server message number, its arguments, and where.
//!
//! 1. Severity is 15 and state 1 unless the table of [`template`] says otherwise.
//! 2. `line` is the line of the token the message is about, counted from 1 in the parsed text.
//!
//! The texts are SQL Server's and stand here so that this crate can be tested and used alone; `types` carries the whole
//! catalogue and the engine may format from there by number and arguments.

use crate::ast::Span;

/// One error found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The message number of sys.messages.
    pub number: i32,
    /// Severity.
    pub severity: u8,
    /// State.
    pub state: u8,
    /// Line, from 1.
    pub line: u32,
    /// The arguments of the message's text, in its order.
    pub args: Vec<String>,
    /// The text of the token the message is about; empty at the end of the text.
    pub near: String,
    /// Where that token stands.
    pub span: Span,
}

/// The number, severity and text of every message this crate raises; `%` marks an argument.
const MESSAGES: &[(i32, u8, &str)] = &[
    (102, 15, "Incorrect syntax near '%'."),
    (103, 15, "The % that starts with '%' is too long. Maximum length is %."),
    (105, 15, "Unclosed quotation mark after the character string '%'."),
    (111, 15, "'%' must be the first statement in a query batch."),
    (113, 15, "Missing end comment mark '*/'."),
    (133, 15, "A GOTO statement references the label '%' but the label has not been declared."),
    (135, 15, "Cannot use a BREAK statement outside the scope of a WHILE statement."),
    (136, 15, "Cannot use a CONTINUE statement outside the scope of a WHILE statement."),
    (117, 15, "The % name '%' contains more than the maximum number of prefixes. The maximum is %."),
    (132, 15, "The label '%' has already been declared. Label names must be unique within a query batch or stored procedure."),
    (142, 15, "Incorrect syntax for definition of the '%' constraint."),
    (155, 15, "'%' is not a recognized % option."),
    (156, 15, "Incorrect syntax near the keyword '%'."),
    (168, 15, "The floating point value '%' is out of the range of computer representation (% bytes)."),
    (178, 15, "A RETURN statement with a return value cannot be used in this context."),
    (191, 15, "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries."),
    (195, 15, "'%' is not a recognized %."),
    (
        319,
        15,
        "Incorrect syntax near the keyword 'with'. If this statement is a common table expression, an xmlnamespaces clause or a change tracking context clause, the previous statement must be terminated with a semicolon.",
    ),
    (1007, 15, "The number '%' is out of the range for numeric representation (maximum precision 38)."),
    (1035, 15, "Incorrect syntax near '%', expected '%'."),
    (
        1038,
        15,
        "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias to a valid name.",
    ),
    (4145, 15, "An expression of non-boolean type specified in a context where a condition is expected, near '%'."),
    (
        8623,
        16,
        "The query processor ran out of internal resources and could not produce a query plan. This is a rare event and only expected for extremely complex queries or queries that reference a very large number of tables or partitions. Please simplify the query. If you believe you have received this message in error, contact Customer Support Services for more information.",
    ),
    (10713, 15, "A MERGE statement must be terminated by a semi-colon (;)."),
    (10734, 15, "Variable assignment is not allowed in a statement containing a top level UNION, INTERSECT or EXCEPT operator."),
    (
        10739,
        15,
        "The insert column list used in the MERGE statement cannot contain multi-part identifiers. Use single part identifiers instead.",
    ),
];

fn template(number: i32) -> (u8, &'static str) {
    match MESSAGES.iter().find(|m| m.0 == number) {
        Some(&(_, severity, text)) => (severity, text),
        None => (15, "Incorrect syntax near '%'."),
    }
}

impl SyntaxError {
    /// An error about the token `near` at `span`.
    #[must_use]
    pub fn new(number: i32, args: Vec<String>, near: &str, span: Span) -> Self {
        Self {
            number,
            severity: template(number).0,
            state: if number == 1035 { 10 } else { 1 },
            line: span.line,
            args,
            near: near.to_owned(),
            span,
        }
    }

    /// The message's text with its arguments in place.
    #[must_use]
    pub fn text(&self) -> String {
        let mut arguments = self.args.iter();
        let mut out = String::new();
        for piece in template(self.number).1.split_inclusive('%') {
            match piece.strip_suffix('%') {
                Some(before) => {
                    out.push_str(before);
                    out.push_str(arguments.next().map_or("", String::as_str));
                }
                None => out.push_str(piece),
            }
        }
        out
    }
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Msg {}, Level {}, State {}, Line {}: {}", self.number, self.severity, self.state, self.line, self.text())
    }
}

impl std::error::Error for SyntaxError {}
