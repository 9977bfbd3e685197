//! RETURNSTATUS (MS-TDS 2.2.7.18): what a procedure returned.

use crate::buffer::{DecodeError, Reader, Writer};
use crate::token::code;

/// The status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnStatus(pub i32);

impl ReturnStatus {
    /// Appends the token.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.put_u8(code::RETURN_STATUS);
        out.put_i32(self.0);
    }

    /// Reads the token after its code.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.i32("return status").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let mut bytes = Vec::new();
        ReturnStatus(-6).encode(&mut bytes);
        assert_eq!(ReturnStatus::decode(&mut Reader::new(&bytes[1..])).unwrap(), ReturnStatus(-6));
    }
}
