//! LOGINACK (MS-TDS 2.2.7.14): come in.
//!
//! ```text
//! token u8 | length u16 | interface u8 | version u32 big-endian | B_VARCHAR program | major u8 | minor u8 | build u16 be
//! ```

use crate::TdsVersion;
use crate::buffer::{DecodeError, Reader, Writer};
use crate::token::code;

/// The interface we speak: T-SQL.
const INTERFACE_TSQL: u8 = 1;

/// The acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginAck {
    /// The protocol version spoken from here on.
    pub version: TdsVersion,
    /// Name of the product.
    pub program: String,
    /// Its version: major, minor, build.
    pub program_version: (u8, u8, u16),
}

impl LoginAck {
    /// Appends the token.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(code::LOGIN_ACK);
        out.put_counted_u16(|out| {
            out.put_u8(INTERFACE_TSQL);
            out.extend_from_slice(&self.version.0.to_be_bytes());
            out.put_b_varchar(&self.program);
            out.extend_from_slice(&[self.program_version.0, self.program_version.1]);
            out.put_u16_be(self.program_version.2);
        });
    }

    /// Reads the token after its code.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(reader.u16("login acknowledgement length")?);
        let mut reader = Reader::new(reader.bytes(length, "login acknowledgement")?);
        reader.u8("interface")?;
        let version = TdsVersion(u32::from_be_bytes(reader.array("version")?));
        let program = reader.b_varchar("program")?;
        let [major, minor] = reader.array("program version")?;
        Ok(Self { version, program, program_version: (major, minor, reader.u16_be("program build")?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let ack = LoginAck { version: TdsVersion::V7_4, program: "Microsoft SQL Server".into(), program_version: (16, 0, 1000) };
        let mut bytes = Vec::new();
        ack.encode(&mut bytes);
        assert_eq!(LoginAck::decode(&mut Reader::new(&bytes[1..])).unwrap(), ack);
        assert_eq!(bytes[4..8], [0x74, 0, 0, 4]);
    }
}
