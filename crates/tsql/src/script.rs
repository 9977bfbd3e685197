//! Scripts: a text with GO lines, as sqlcmd and SSMS take it.
//!
//! ```text
//! line of a separator ::= blanks GO [blanks count] [blanks -- comment] [;]         any case
//! ```
//!
//! 1. A GO inside a string, a delimited name or a block comment separates nothing ([`Scanner`] follows those).
//! 2. `first_line` is the line of the script on which the batch's text begins, so that `first_line + line - 1` is the
//!    place of an error in the script.
//!
//! GO is the client's word, not the language's: a batch that still contains it is a syntax error or a procedure call.

/// One batch of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptBatch {
    /// The text between two separators.
    pub text: String,
    /// The line of the script its first line is, from 1.
    pub first_line: u32,
    /// How often it is to be run: the number behind GO, or 1.
    pub count: u32,
}

/// Splits a script at its GO lines. Batches of white space alone are left out.
#[must_use]
pub fn split_script(text: &str) -> Vec<ScriptBatch> {
    let mut batches = Vec::new();
    let mut scanner = Scanner::Code;
    let mut batch = String::new();
    let mut first_line = 1;
    let mut line_number = 0;
    for line in text.split_inclusive('\n') {
        line_number += 1;
        let separator = if scanner == Scanner::Code { separator_count(line) } else { None };
        if let Some(count) = separator {
            push(&mut batches, &mut batch, first_line, count);
            first_line = line_number + 1;
        } else {
            batch.push_str(line);
            scanner = scanner.over(line);
        }
    }
    push(&mut batches, &mut batch, first_line, 1);
    batches
}

fn push(batches: &mut Vec<ScriptBatch>, batch: &mut String, first_line: u32, count: u32) {
    let text = std::mem::take(batch);
    if !text.trim().is_empty() {
        batches.push(ScriptBatch { text, first_line, count });
    }
}

/// The number behind GO if the line is a separator.
fn separator_count(line: &str) -> Option<u32> {
    let line = line.trim_start_matches('\u{feff}').trim();
    let code = line.split("--").next().unwrap_or("").trim().trim_end_matches(';').trim_end();
    let mut words = code.split_whitespace();
    if !words.next()?.eq_ignore_ascii_case("GO") {
        return None;
    }
    match (words.next(), words.next()) {
        (None, None) => Some(1),
        (Some(count), None) => count.parse().ok(),
        _ => None,
    }
}

/// What the end of a line stands inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scanner {
    Code,
    /// A string or a delimited name, by its closing character.
    Quoted(char),
    /// Nested comments.
    Comment(u32),
}

impl Scanner {
    /// The state behind `line`.
    fn over(mut self, line: &str) -> Self {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            let pair = (c, chars.peek().copied());
            self = match (self, pair) {
                (Self::Code, ('-', Some('-'))) => return self,
                (Self::Code, ('/', Some('*'))) => {
                    chars.next();
                    Self::Comment(1)
                }
                (Self::Code, ('\'' | '"', _)) => Self::Quoted(c),
                (Self::Code, ('[', _)) => Self::Quoted(']'),
                // A doubled quote closes and opens again, which comes to the same.
                (Self::Quoted(close), _) if c == close => Self::Code,
                (Self::Comment(depth), ('*', Some('/'))) => {
                    chars.next();
                    if depth == 1 { Self::Code } else { Self::Comment(depth - 1) }
                }
                (Self::Comment(depth), ('/', Some('*'))) => {
                    chars.next();
                    Self::Comment(depth + 1)
                }
                (same, _) => same,
            };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &[(&str, u32, u32)]) {
        let found: Vec<_> = split_script(script).into_iter().map(|b| (b.text, b.first_line, b.count)).collect();
        let expected: Vec<_> = expected.iter().map(|&(text, line, count)| (text.to_owned(), line, count)).collect();
        assert_eq!(found, expected, "{script:?}");
    }

    #[test]
    fn splits_at_go_lines_only() {
        check("select 1\ngo\nselect 2", &[("select 1\n", 1, 1), ("select 2", 3, 1)]);
        check("a\r\n  Go 5 -- five\r\nb\r\nGO;\r\n", &[("a\r\n", 1, 5), ("b\r\n", 3, 1)]);
        check("GO\nGO\n\nselect 1\nGO\n", &[("\nselect 1\n", 3, 1)]);
        check("select goes\ngo_on\ngo x\n", &[("select goes\ngo_on\ngo x\n", 1, 1)]);
        check("", &[]);
    }

    #[test]
    fn go_inside_quotes_and_comments_is_text() {
        check("select 'x\nGO\n'\nGO\ny", &[("select 'x\nGO\n'\n", 1, 1), ("y", 5, 1)]);
        check("/* a /* b */\nGO\n*/ c\nGO\n", &[("/* a /* b */\nGO\n*/ c\n", 1, 1)]);
        check("select [a\nGO\n] -- it's\nGO\nz", &[("select [a\nGO\n] -- it's\n", 1, 1), ("z", 5, 1)]);
        check("select 'it''s'\nGO\nz", &[("select 'it''s'\n", 1, 1), ("z", 3, 1)]);
    }
}
