//! RETURNVALUE (MS-TDS 2.2.7.19): an output parameter on its way back.
//!
//! ```text
//! token u8 | ordinal u16 | B_VARCHAR name | status u8 | user type u32 (u16 before 7.2) | flags u16 | TYPE_INFO | value
//! ```

use crate::TdsVersion;
use crate::buffer::{DecodeError, Reader, Writer};
use crate::token::code;
use crate::type_info::TypeInfo;
use crate::value;
use thawdb_types::{Scalar, SqlType};

/// Status: the value of an output parameter (2 would be a function's result).
const OUTPUT_PARAMETER: u8 = 1;

/// The value.
#[derive(Debug, Clone, PartialEq)]
pub struct ReturnValue {
    /// Position among the call's parameters.
    pub ordinal: u16,
    /// Name with its sign.
    pub name: String,
    /// Type.
    pub sql_type: SqlType,
    /// Value.
    pub value: Scalar,
}

impl ReturnValue {
    /// Appends the token.
    pub fn encode(&self, version: TdsVersion, out: &mut Vec<u8>) {
        out.put_u8(code::RETURN_VALUE);
        out.put_u16(self.ordinal);
        out.put_b_varchar(&self.name);
        out.put_u8(OUTPUT_PARAMETER);
        if version.since_7_2() {
            out.put_u32(0);
        } else {
            out.put_u16(0);
        }
        out.put_u16(0);
        let info = TypeInfo::of(self.sql_type);
        info.encode(out);
        value::encode(&info, &self.value, out);
    }

    /// Reads the token after its code.
    pub fn decode(reader: &mut Reader<'_>, version: TdsVersion) -> Result<Self, DecodeError> {
        let ordinal = reader.u16("return value ordinal")?;
        let name = reader.b_varchar("return value name")?;
        reader.bytes(if version.since_7_2() { 7 } else { 5 }, "return value flags")?;
        let info = TypeInfo::decode(reader)?;
        Ok(Self { ordinal, name, sql_type: info.sql_type, value: value::decode(&info, reader)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let value = ReturnValue { ordinal: 2, name: "@x".into(), sql_type: SqlType::Int, value: Scalar::Int(9) };
        for version in [TdsVersion::V7_1, TdsVersion::V7_4] {
            let mut bytes = Vec::new();
            value.encode(version, &mut bytes);
            assert_eq!(ReturnValue::decode(&mut Reader::new(&bytes[1..]), version).unwrap(), value);
        }
    }
}
