//! Transaction manager requests (MS-TDS 2.2.6.9): what drivers send instead of BEGIN, COMMIT, ROLLBACK and SAVE.

use crate::TdsVersion;
use crate::batch::Headers;
use crate::buffer::{DecodeError, Reader, Writer};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionRequest {
    /// TM_BEGIN_XACT with an isolation level (0 keeps the session's) and a name.
    Begin {
        /// 0 none, 1 READ UNCOMMITTED, 2 READ COMMITTED, 3 REPEATABLE READ, 4 SERIALIZABLE, 5 SNAPSHOT.
        isolation: u8,
        /// Name, may be empty.
        name: String,
    },
    /// TM_COMMIT_XACT.
    Commit {
        /// Isolation level of a transaction to be begun right after.
        then_begin: Option<u8>,
    },
    /// TM_ROLLBACK_XACT; a name of a savepoint, empty for all.
    Rollback {
        /// Name, may be empty.
        name: String,
        /// Isolation level of a transaction to be begun right after.
        then_begin: Option<u8>,
    },
    /// TM_SAVE_XACT.
    Save {
        /// Name of the savepoint.
        name: String,
    },
    /// Any other request; distributed transactions are not built.
    Unsupported(u16),
}

const BEGIN: u16 = 5;
const COMMIT: u16 = 7;
const ROLLBACK: u16 = 8;
const SAVE: u16 = 9;

impl TransactionRequest {
    /// Reads the data of a transaction manager message.
    pub fn decode(data: &[u8], version: TdsVersion) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        Headers::decode(&mut reader, version)?;
        let what = "transaction request";
        match reader.u16(what)? {
            BEGIN => Ok(Self::Begin { isolation: reader.u8(what)?, name: counted_name(&mut reader)? }),
            COMMIT => {
                counted_name(&mut reader)?;
                Ok(Self::Commit { then_begin: then_begin(&mut reader)? })
            }
            ROLLBACK => Ok(Self::Rollback { name: counted_name(&mut reader)?, then_begin: then_begin(&mut reader)? }),
            SAVE => Ok(Self::Save { name: counted_name(&mut reader)? }),
            other => Ok(Self::Unsupported(other)),
        }
    }

    /// Appends the data of a transaction manager message.
    pub fn encode(&self, headers: Headers, out: &mut Vec<u8>) {
        headers.encode(out);
        let named = |out: &mut Vec<u8>, name: &str| {
            let bytes: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            out.put_u8(u8::try_from(bytes.len()).expect("transaction names have at most 32 characters"));
            out.extend_from_slice(&bytes);
        };
        let then = |out: &mut Vec<u8>, isolation: Option<u8>| {
            out.put_u8(u8::from(isolation.is_some()));
            if let Some(isolation) = isolation {
                out.extend_from_slice(&[isolation, 0]);
            }
        };
        match self {
            Self::Begin { isolation, name } => {
                out.put_u16(BEGIN);
                out.put_u8(*isolation);
                named(out, name);
            }
            Self::Commit { then_begin } => {
                out.put_u16(COMMIT);
                named(out, "");
                then(out, *then_begin);
            }
            Self::Rollback { name, then_begin } => {
                out.put_u16(ROLLBACK);
                named(out, name);
                then(out, *then_begin);
            }
            Self::Save { name } => {
                out.put_u16(SAVE);
                named(out, name);
            }
            Self::Unsupported(number) => out.put_u16(*number),
        }
    }
}

/// The name's length is in bytes here, unlike a B_VARCHAR's.
fn counted_name(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let bytes = usize::from(reader.u8("transaction name")?);
    reader.utf16(bytes / 2, "transaction name")
}

fn then_begin(reader: &mut Reader<'_>) -> Result<Option<u8>, DecodeError> {
    if reader.is_empty() || reader.u8("transaction flags")? & 1 == 0 {
        return Ok(None);
    }
    let isolation = reader.u8("transaction isolation")?;
    counted_name(reader)?;
    Ok(Some(isolation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for request in [
            TransactionRequest::Begin { isolation: 2, name: "é".into() },
            TransactionRequest::Commit { then_begin: Some(4) },
            TransactionRequest::Rollback { name: "s1".into(), then_begin: None },
            TransactionRequest::Save { name: "s2".into() },
            TransactionRequest::Unsupported(0),
        ] {
            let mut bytes = Vec::new();
            request.encode(Headers::default(), &mut bytes);
            assert_eq!(TransactionRequest::decode(&bytes, TdsVersion::V7_4).unwrap(), request);
            for length in 0..24 {
                assert!(TransactionRequest::decode(&bytes[..length.min(bytes.len() - 1)], TdsVersion::V7_4).is_err());
            }
        }
    }
}
