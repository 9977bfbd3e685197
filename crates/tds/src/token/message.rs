//! ERROR and INFO (MS-TDS 2.2.7.10, 2.2.7.13): what went wrong, or is worth saying.
//!
//! ```text
//! token u8 | length u16 | number i32 | state u8 | class u8 | US_VARCHAR text | B_VARCHAR server | B_VARCHAR procedure
//!   | line u32 (u16 before 7.2)
//! ```
//!
//! Severity up to 10 is INFO, above it ERROR. A text longer than the USHORT length allows is cut.

use crate::TdsVersion;
use crate::buffer::{DecodeError, Reader, Writer};
use crate::token::code;
use thawdb_types::SqlError;

/// Longest message SQL Server formats, in characters.
const TEXT_CHARACTERS_MAX: usize = 2047;

/// A message of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub error: SqlError,
    /// Name of the server.
    pub server: String,
}

impl Message {
    /// Appends the token.
    pub fn encode(&self, version: TdsVersion, out: &mut Vec<u8>) {
        let error = &self.error;
        out.put_u8(if error.severity > 10 { code::ERROR } else { code::INFO });
        out.put_counted_u16(|out| {
            out.put_i32(error.number);
            out.put_u8(error.state);
            out.put_u8(error.severity);
            let cut = error.text.char_indices().nth(TEXT_CHARACTERS_MAX).map_or(error.text.len(), |(at, _)| at);
            out.put_us_varchar(&error.text[..cut]);
            out.put_b_varchar(&self.server);
            out.put_b_varchar(error.procedure.as_deref().unwrap_or(""));
            if version.since_7_2() {
                out.put_u32(error.line);
            } else {
                out.put_u16(u16::try_from(error.line).unwrap_or(u16::MAX));
            }
        });
    }

    /// Reads the token after its code.
    pub fn decode(reader: &mut Reader<'_>, version: TdsVersion) -> Result<Self, DecodeError> {
        let length = usize::from(reader.u16("message length")?);
        let mut reader = Reader::new(reader.bytes(length, "message")?);
        let number = reader.i32("message number")?;
        let state = reader.u8("message state")?;
        let severity = reader.u8("message class")?;
        let text = reader.us_varchar("message text")?;
        let server = reader.b_varchar("message server")?;
        let procedure = Some(reader.b_varchar("message procedure")?).filter(|name| !name.is_empty());
        let line = if version.since_7_2() { reader.u32("message line")? } else { u32::from(reader.u16("message line")?) };
        Ok(Self { error: SqlError { number, severity, state, text, line, procedure }, server })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for (severity, token) in [(0, code::INFO), (10, code::INFO), (11, code::ERROR), (25, code::ERROR)] {
            let text = "Ungültiger Objektname 'x'.".into();
            let error = SqlError { number: 208, severity, state: 1, text, line: 70_000, procedure: Some("dbo.p".into()) };
            let message = Message { error, server: "THAW".into() };
            let mut bytes = Vec::new();
            message.encode(TdsVersion::V7_4, &mut bytes);
            assert_eq!(bytes[0], token);
            assert_eq!(Message::decode(&mut Reader::new(&bytes[1..]), TdsVersion::V7_4).unwrap(), message);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let error = SqlError { number: 50_000, severity: 16, state: 1, text: "é".repeat(40_000), line: 1, procedure: None };
        let mut bytes = Vec::new();
        Message { error, server: "s".into() }.encode(TdsVersion::V7_4, &mut bytes);
        let read = Message::decode(&mut Reader::new(&bytes[1..]), TdsVersion::V7_4).unwrap();
        assert_eq!(read.error.text.chars().count(), TEXT_CHARACTERS_MAX);
    }
}
