//! SQL batches (MS-TDS 2.2.6.7) and the ALL_HEADERS that open every request since 7.2 (2.2.5.3).
//!
//! ```text
//! total u32 | { length u32 | type u16 | data }*   then the batch as UTF-16
//! ```

use crate::TdsVersion;
use crate::buffer::{DecodeError, Reader, Writer, utf16_text};

/// Header type: transaction descriptor and outstanding requests.
const TRANSACTION_DESCRIPTOR: u16 = 2;

/// What the headers of a request say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headers {
    /// The transaction the client believes to be in; 0 for none.
    pub transaction: u64,
}

impl Headers {
    /// Reads ALL_HEADERS; clients before 7.2 send none.
    pub fn decode(reader: &mut Reader<'_>, version: TdsVersion) -> Result<Self, DecodeError> {
        let mut headers = Self::default();
        if !version.since_7_2() {
            return Ok(headers);
        }
        let total = reader.u32("headers length")? as usize;
        let body = total.checked_sub(4).ok_or(reader.malformed("headers length"))?;
        let mut all = Reader::new(reader.bytes(body, "headers")?);
        while !all.is_empty() {
            let length = all.u32("header length")? as usize;
            let kind = all.u16("header type")?;
            let data = length.checked_sub(6).ok_or(all.malformed("header length"))?;
            let mut data = Reader::new(all.bytes(data, "header data")?);
            if kind == TRANSACTION_DESCRIPTOR {
                headers.transaction = data.u64("transaction descriptor")?;
            }
        }
        Ok(headers)
    }

    /// Appends ALL_HEADERS.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.put_u32(22);
        out.put_u32(18);
        out.put_u16(TRANSACTION_DESCRIPTOR);
        out.put_u64(self.transaction);
        out.put_u32(1);
    }
}

/// The text of a SQL batch message.
pub fn decode(data: &[u8], version: TdsVersion) -> Result<String, DecodeError> {
    let mut reader = Reader::new(data);
    Headers::decode(&mut reader, version)?;
    let length = reader.remaining();
    if !length.is_multiple_of(2) {
        return Err(reader.malformed("batch text"));
    }
    Ok(utf16_text(reader.bytes(length, "batch text")?))
}

/// Appends the data of a SQL batch message.
pub fn encode(text: &str, headers: Headers, out: &mut Vec<u8>) {
    headers.encode(out);
    out.put_utf16(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let mut bytes = Vec::new();
        encode("SELECT N'é'", Headers { transaction: 9 }, &mut bytes);
        assert_eq!(decode(&bytes, TdsVersion::V7_4).unwrap(), "SELECT N'é'");
        assert_eq!(Headers::decode(&mut Reader::new(&bytes), TdsVersion::V7_4).unwrap().transaction, 9);
        assert_eq!(decode(&[65, 0], TdsVersion::V7_1).unwrap(), "A");
    }

    #[test]
    fn hostile_headers_are_errors() {
        for bytes in [&[1, 0, 0, 0][..], &[255, 255, 255, 255], &[8, 0, 0, 0, 1, 0, 0, 0], &[22, 0, 0, 0, 3, 0, 0, 0, 2, 0]] {
            assert!(decode(bytes, TdsVersion::V7_4).is_err(), "{bytes:?}");
        }
        assert_eq!(decode(&[4, 0, 0, 0, 65], TdsVersion::V7_4).unwrap_err().what, "batch text");
    }
}
