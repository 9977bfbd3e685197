//! ENVCHANGE (MS-TDS 2.2.7.9): the session's surroundings changed, and the client must know.
//!
//! ```text
//! token u8 | length u16 | type u8 | new value | old value      each a B_VARCHAR or B_VARBYTE by type
//! ```

use crate::buffer::{DecodeError, Reader, Writer};
use crate::token::code;

const DATABASE: u8 = 1;
const LANGUAGE: u8 = 2;
const PACKET_SIZE: u8 = 4;
const COLLATION: u8 = 7;
const BEGIN_TRANSACTION: u8 = 8;
const COMMIT_TRANSACTION: u8 = 9;
const ROLLBACK_TRANSACTION: u8 = 10;
const RESET_CONNECTION: u8 = 18;

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the change of its name in MS-TDS 2.2.7.9
pub enum EnvChange {
    Database {
        new: String,
        old: String,
    },
    Language {
        new: String,
        old: String,
    },
    PacketSize {
        new: String,
        old: String,
    },
    Collation([u8; 5]),
    BeginTransaction(u64),
    CommitTransaction(u64),
    RollbackTransaction(u64),
    ResetConnection,
    /// A type we do not read.
    Other(u8),
}

impl EnvChange {
    /// Appends the token.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let texts = |out: &mut Vec<u8>, kind: u8, new: &str, old: &str| {
            out.put_u8(kind);
            out.put_b_varchar(new);
            out.put_b_varchar(old);
        };
        let bytes = |out: &mut Vec<u8>, kind: u8, new: &[u8], old: &[u8]| {
            out.put_u8(kind);
            for value in [new, old] {
                out.put_u8(u8::try_from(value.len()).expect("8 bytes at most"));
                out.extend_from_slice(value);
            }
        };
        out.put_u8(code::ENV_CHANGE);
        out.put_counted_u16(|out| match self {
            Self::Database { new, old } => texts(out, DATABASE, new, old),
            Self::Language { new, old } => texts(out, LANGUAGE, new, old),
            Self::PacketSize { new, old } => texts(out, PACKET_SIZE, new, old),
            Self::Collation(new) => bytes(out, COLLATION, new, &[]),
            Self::BeginTransaction(new) => bytes(out, BEGIN_TRANSACTION, &new.to_le_bytes(), &[]),
            Self::CommitTransaction(old) => bytes(out, COMMIT_TRANSACTION, &[], &old.to_le_bytes()),
            Self::RollbackTransaction(old) => bytes(out, ROLLBACK_TRANSACTION, &[], &old.to_le_bytes()),
            Self::ResetConnection => bytes(out, RESET_CONNECTION, &[], &[]),
            Self::Other(kind) => bytes(out, *kind, &[], &[]),
        });
    }

    /// Reads the token after its code.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(reader.u16("environment length")?);
        let mut reader = Reader::new(reader.bytes(length, "environment")?);
        let kind = reader.u8("environment type")?;
        match kind {
            DATABASE | LANGUAGE | PACKET_SIZE => {
                let new = reader.b_varchar("environment value")?;
                let old = reader.b_varchar("environment value")?;
                Ok(match kind {
                    DATABASE => Self::Database { new, old },
                    LANGUAGE => Self::Language { new, old },
                    _ => Self::PacketSize { new, old },
                })
            }
            COLLATION | BEGIN_TRANSACTION | COMMIT_TRANSACTION | ROLLBACK_TRANSACTION => {
                let mut value = || {
                    let length = usize::from(reader.u8("environment length")?);
                    reader.bytes(length, "environment value")
                };
                let (new, old) = (value()?, value()?);
                let number = |bytes: &[u8]| Reader::new(bytes).u64("transaction descriptor");
                Ok(match kind {
                    COLLATION => Self::Collation(Reader::new(new).array("collation")?),
                    BEGIN_TRANSACTION => Self::BeginTransaction(number(new)?),
                    COMMIT_TRANSACTION => Self::CommitTransaction(number(old)?),
                    _ => Self::RollbackTransaction(number(old)?),
                })
            }
            RESET_CONNECTION => Ok(Self::ResetConnection),
            _ => Ok(Self::Other(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for change in [
            EnvChange::Database { new: "votes".into(), old: "master".into() },
            EnvChange::Language { new: "us_english".into(), old: String::new() },
            EnvChange::PacketSize { new: "8192".into(), old: "4096".into() },
            EnvChange::Collation([9, 4, 208, 0, 52]),
            EnvChange::BeginTransaction(1 << 40),
            EnvChange::CommitTransaction(2),
            EnvChange::RollbackTransaction(3),
            EnvChange::ResetConnection,
            EnvChange::Other(20),
        ] {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            assert_eq!(EnvChange::decode(&mut Reader::new(&bytes[1..])).unwrap(), change);
            for length in 1..bytes.len() {
                assert!(EnvChange::decode(&mut Reader::new(&bytes[1..length])).is_err());
            }
        }
    }
}
