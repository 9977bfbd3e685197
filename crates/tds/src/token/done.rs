//! DONE, DONEPROC, DONEINPROC (MS-TDS 2.2.7.6 to 2.2.7.8): a statement or procedure is over.
//!
//! ```text
//! token u8 | status u16 | command u16 | row count u64 (u32 before 7.2)
//! ```

use crate::TdsVersion;
use crate::buffer::{DecodeError, Reader, Writer};
use crate::token::code;

/// More results follow.
const MORE: u16 = 0x01;
/// The statement failed.
const ERROR: u16 = 0x02;
/// The row count is meaningful.
const COUNT: u16 = 0x10;
/// Acknowledges an attention.
const ATTENTION: u16 = 0x20;
/// The error ended the session.
const SERVER_ERROR: u16 = 0x100;

/// Which of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DoneToken {
    /// A statement of a batch.
    Done = code::DONE,
    /// A procedure.
    DoneProc = code::DONE_PROC,
    /// A statement within a procedure.
    DoneInProc = code::DONE_IN_PROC,
}

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Which token.
    pub token: DoneToken,
    /// More results follow.
    pub more: bool,
    /// It failed.
    pub error: bool,
    /// It failed so badly that the connection ends.
    pub fatal: bool,
    /// It acknowledges an attention.
    pub attention: bool,
    /// The statement's number.
    pub command: u16,
    /// Rows, if counted.
    pub rows: Option<u64>,
}

impl Done {
    /// A plain completion of a batch with nothing to say.
    pub const FINAL: Self =
        Self { token: DoneToken::Done, more: false, error: false, fatal: false, attention: false, command: 0, rows: None };

    /// Appends the token.
    pub fn encode(&self, version: TdsVersion, out: &mut Vec<u8>) {
        let bit = |set: bool, bit: u16| if set { bit } else { 0 };
        out.put_u8(self.token as u8);
        out.put_u16(
            bit(self.more, MORE)
                | bit(self.error, ERROR)
                | bit(self.rows.is_some(), COUNT)
                | bit(self.attention, ATTENTION)
                | bit(self.fatal, SERVER_ERROR),
        );
        out.put_u16(self.command);
        let rows = self.rows.unwrap_or(0);
        if version.since_7_2() {
            out.put_u64(rows);
        } else {
            out.put_u32(u32::try_from(rows).unwrap_or(u32::MAX));
        }
    }

    /// Reads the token after its code.
    pub fn decode(token: DoneToken, reader: &mut Reader<'_>, version: TdsVersion) -> Result<Self, DecodeError> {
        let status = reader.u16("done status")?;
        let command = reader.u16("done command")?;
        let rows = if version.since_7_2() { reader.u64("done rows")? } else { u64::from(reader.u32("done rows")?) };
        Ok(Self {
            token,
            more: status & MORE != 0,
            error: status & ERROR != 0,
            fatal: status & SERVER_ERROR != 0,
            attention: status & ATTENTION != 0,
            command,
            rows: (status & COUNT != 0).then_some(rows),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for token in [DoneToken::Done, DoneToken::DoneProc, DoneToken::DoneInProc] {
            for bits in 0..16 {
                let done = Done {
                    token,
                    more: bits & 1 != 0,
                    error: bits & 2 != 0,
                    fatal: bits & 4 != 0,
                    attention: bits & 8 != 0,
                    command: 0xC1,
                    rows: Some(7),
                };
                for version in [TdsVersion::V7_1, TdsVersion::V7_4] {
                    let mut bytes = Vec::new();
                    done.encode(version, &mut bytes);
                    assert_eq!(bytes[0], token as u8);
                    let mut reader = Reader::new(&bytes[1..]);
                    assert_eq!(Done::decode(token, &mut reader, version).unwrap(), done);
                    assert!(reader.is_empty());
                }
            }
        }
    }
}
