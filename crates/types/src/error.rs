//! What a client is told: number, severity, state, text, line, procedure.
//!
//! Every text comes from the one table in [`crate::messages`]; [`message`] fills its placeholders. Code above never
//! writes a message text of its own.
//!
//! ```text
//! message(208, &[&"dbo.t"])  ->  Msg 208, Level 16, State 1, Line 0: Invalid object name 'dbo.t'.
//! ```
//!
//! Placeholders: `%d %i %u %ld %I64d` and their kin print a number, `%x %X %08X` print it in hexadecimal,
//! `%s %ls %.*ls %S_MSG %S_PGID %c` print text, `%f` prints six decimals, `%%` is a per cent sign. Each takes the next argument;
//! an argument that is missing prints as `(null)`, as SQL Server does.

use crate::messages::find;
use std::fmt::{self, Display, Write};

/// An error or informational message as SQL Server would send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// Message number (sys.messages.message_id).
    pub number: i32,
    /// Severity (class): up to 10 informs, 11-16 fails the statement, 17-19 resources, 20+ ends the connection.
    pub severity: u8,
    /// State.
    pub state: u8,
    /// The formatted text.
    pub text: String,
    /// Line in the batch or procedure, from 1; 0 while unknown.
    pub line: u32,
    /// The procedure it was raised in, if any.
    pub procedure: Option<String>,
}

impl SqlError {
    /// The same message with another state.
    pub fn with_state(mut self, state: u8) -> Self {
        self.state = state;
        self
    }

    /// The same message at a line.
    pub fn at_line(mut self, line: u32) -> Self {
        self.line = line;
        self
    }

    /// Whether it only informs (severity 10 and below).
    pub fn is_informational(&self) -> bool {
        self.severity <= 10
    }
}

impl Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Msg {}, Level {}, State {}, Line {}: {}", self.number, self.severity, self.state, self.line, self.text)
    }
}

impl std::error::Error for SqlError {}

/// Message `number` of the catalogue with its placeholders filled from `arguments` in order.
///
/// A number the catalogue lacks is our mistake: it comes out at severity 16 and says so, and the tests of the
/// crates that raise messages find it.
pub fn message(number: i32, arguments: &[&dyn Display]) -> SqlError {
    let (severity, state, text) = match find(number) {
        Some(found) => (found.severity, found.state, format_text(found.text, arguments)),
        None => (16, 1, format!("Message {number} is not in the catalogue.")),
    };
    SqlError { number, severity, state, text, line: 0, procedure: None }
}

/// `template` with its printf-style placeholders filled from `arguments`: also what RAISERROR and FORMATMESSAGE do.
pub fn format_text(template: &str, arguments: &[&dyn Display]) -> String {
    let mut out = String::with_capacity(template.len() + 16);
    let mut next = arguments.iter();
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match Placeholder::parse(rest) {
            Some((placeholder, length)) => {
                placeholder.print(&mut out, &mut next);
                rest = &rest[length..];
            }
            None => {
                out.push('%');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// One placeholder: flags, width, precision and what it prints.
struct Placeholder {
    left: bool,
    zero: bool,
    plus: bool,
    hash: bool,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

impl Placeholder {
    /// The placeholder at the start of `text` and its length in bytes; `None` if there is none.
    fn parse(text: &str) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        let mut at = 1;
        if let Some(name) = text.strip_prefix("%S_") {
            let length = name.bytes().take_while(u8::is_ascii_uppercase).count();
            return Some((Self { left: false, zero: false, plus: false, hash: false, width: 0, precision: None, kind: 's' }, 3 + length));
        }
        let mut found = Self { left: false, zero: false, plus: false, hash: false, width: 0, precision: None, kind: '%' };
        while let Some(flag) = bytes.get(at) {
            match flag {
                b'-' => found.left = true,
                b'0' => found.zero = true,
                b'+' => found.plus = true,
                b'#' => found.hash = true,
                b' ' if bytes.get(at + 1).is_some_and(|b| b.is_ascii_digit() || *b == b'd') => {}
                _ => break,
            }
            at += 1;
        }
        while let Some(digit) = bytes.get(at).filter(|b| b.is_ascii_digit()) {
            found.width = (found.width * 10 + usize::from(digit - b'0')).min(1000);
            at += 1;
        }
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            let mut precision = None;
            while let Some(digit) = bytes.get(at).filter(|b| b.is_ascii_digit()) {
                precision = Some((precision.unwrap_or(0) * 10 + usize::from(digit - b'0')).min(4000));
                at += 1;
            }
            found.precision = precision;
        }
        if bytes.get(at) == Some(&b'*') {
            at += 1;
        }
        for size in ["I64", "ll", "l", "h", "w"] {
            if text[at..].starts_with(size) {
                at += size.len();
                break;
            }
        }
        found.kind = match bytes.get(at)? {
            b'd' | b'i' | b'u' | b'D' => 'd',
            b'x' => 'x',
            b'X' => 'X',
            b'o' => 'o',
            b's' | b'S' | b'c' => 's',
            b'f' => 'f',
            b'%' if at == 1 => '%',
            _ => return None,
        };
        Some((found, at + 1))
    }

    fn print<'a>(&self, out: &mut String, arguments: &mut impl Iterator<Item = &'a &'a dyn Display>) {
        if self.kind == '%' {
            out.push('%');
            return;
        }
        let text = arguments.next().map_or_else(|| "(null)".to_string(), ToString::to_string);
        let number = text.parse::<i64>().ok();
        let shown = match (self.kind, number) {
            ('x', Some(n)) => format!("{}{n:x}", if self.hash { "0x" } else { "" }),
            ('X', Some(n)) => format!("{}{n:X}", if self.hash { "0X" } else { "" }),
            ('o', Some(n)) => format!("{n:o}"),
            ('d', Some(n)) if self.plus && n >= 0 => format!("+{n}"),
            ('f', _) => text.parse::<f64>().map_or(text, |n| format!("{n:.*}", self.precision.unwrap_or(6))),
            ('s', _) => match self.precision {
                Some(most) => text.chars().take(most).collect(),
                None => text,
            },
            _ => text,
        };
        let width = self.width;
        let _infallible = match (self.left, self.zero && self.kind != 's') {
            (true, _) => write!(out, "{shown:<width$}"),
            (false, true) => write!(out, "{shown:0>width$}"),
            (false, false) => write!(out, "{shown:>width$}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
        for (template, arguments, shown) in [
            ("Near '%.*ls'.", &[&"x" as &dyn Display][..], "Near 'x'."),
            ("%d of %ld, %I64d%%", &[&1, &2, &3i64], "1 of 2, 3%"),
            ("0x%08x", &[&255], "0x000000ff"),
            ("%S_MSG '%ls' %u", &[&"table", &"t", &7], "table 't' 7"),
            ("%5d|%-5d|%05d", &[&1, &2, &3], "    1|2    |00003"),
            ("%.3s|%s", &[&"abcdef"], "abc|(null)"),
            ("value = %f.", &[&1.5], "value = 1.500000."),
            ("100% sure", &[], "100% sure"),
        ] {
            assert_eq!(format_text(template, arguments), shown);
        }
    }

    #[test]
    fn messages_have_their_severity() {
        let error = message(208, &[&"dbo.t"]);
        assert_eq!(error.to_string(), "Msg 208, Level 16, State 1, Line 0: Invalid object name 'dbo.t'.");
        assert_eq!(message(1205, &[&52, &"lock"]).severity, 13);
        assert!(message(5701, &[&"master"]).is_informational());
    }
}
