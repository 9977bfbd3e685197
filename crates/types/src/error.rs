//! What a client is told: number, severity, state, text, line, procedure.

use std::fmt;

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

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Msg {}, Level {}, State {}, Line {}: {}", self.number, self.severity, self.state, self.line, self.text)
    }
}

impl std::error::Error for SqlError {}
