//! COLMETADATA (MS-TDS 2.2.7.4): the columns of the rows that follow.
//!
//! ```text
//! token u8 | count u16 | { user type u32 (u16 before 7.2) | flags u16 | TYPE_INFO | [table name] | B_VARCHAR name }*
//! ```

use crate::TdsVersion;
use crate::buffer::{DecodeError, Reader, Writer};
use crate::token::code;
use crate::type_info::TypeInfo;

/// The value may be NULL.
const NULLABLE: u16 = 0x0001;
/// Whether the column can be updated is not told.
const UPDATABLE_UNKNOWN: u16 = 0x0008;
/// An IDENTITY column.
const IDENTITY: u16 = 0x0010;
/// Count that says "no metadata".
const NO_METADATA: u16 = 0xFFFF;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Its name; empty for an unnamed expression.
    pub name: String,
    /// Its type.
    pub info: TypeInfo,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether it is an IDENTITY column.
    pub identity: bool,
}

/// The columns of a result set or bulk load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColMetadata {
    /// In order.
    pub columns: Vec<ColumnMeta>,
}

impl ColMetadata {
    /// Appends the token.
    pub fn encode(&self, version: TdsVersion, out: &mut Vec<u8>) {
        self.encode_named(version, version.since_7_2(), out);
    }

    /// Appends the token as bulk loads have it: their table names have no parts, whatever the version.
    pub fn encode_bulk(&self, version: TdsVersion, out: &mut Vec<u8>) {
        self.encode_named(version, false, out);
    }

    fn encode_named(&self, version: TdsVersion, parts: bool, out: &mut Vec<u8>) {
        out.put_u8(code::COL_METADATA);
        out.put_u16(u16::try_from(self.columns.len()).expect("a select list has at most 4,096 columns"));
        for column in &self.columns {
            if version.since_7_2() {
                out.put_u32(0);
            } else {
                out.put_u16(0);
            }
            let bit = |set: bool, bit: u16| if set { bit } else { 0 };
            out.put_u16(UPDATABLE_UNKNOWN | bit(column.nullable, NULLABLE) | bit(column.identity, IDENTITY));
            column.info.encode(out);
            if column.info.has_table_name() {
                // One part at least, even if nothing is told: mssql-jdbc takes none for a broken stream.
                if parts {
                    out.put_u8(1);
                }
                out.put_us_varchar("");
            }
            out.put_b_varchar(&column.name);
        }
    }

    /// Reads the token after its code.
    pub fn decode(reader: &mut Reader<'_>, version: TdsVersion) -> Result<Self, DecodeError> {
        Self::decode_named(reader, version, version.since_7_2())
    }

    /// Reads the token of a bulk load after its code.
    pub fn decode_bulk(reader: &mut Reader<'_>, version: TdsVersion) -> Result<Self, DecodeError> {
        Self::decode_named(reader, version, false)
    }

    fn decode_named(reader: &mut Reader<'_>, version: TdsVersion, parts: bool) -> Result<Self, DecodeError> {
        let count = reader.u16("column count")?;
        let mut columns = Vec::new();
        if count == NO_METADATA {
            return Ok(Self { columns });
        }
        for _ in 0..count {
            reader.bytes(if version.since_7_2() { 4 } else { 2 }, "user type")?;
            let flags = reader.u16("column flags")?;
            let info = TypeInfo::decode(reader)?;
            if info.has_table_name() {
                let parts = if parts { reader.u8("table name parts")? } else { 1 };
                for _ in 0..parts {
                    reader.us_varchar("table name")?;
                }
            }
            let name = reader.b_varchar("column name")?;
            columns.push(ColumnMeta { name, info, nullable: flags & NULLABLE != 0, identity: flags & IDENTITY != 0 });
        }
        Ok(Self { columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_info::tests::every_type;

    #[test]
    fn round_trip() {
        let column =
            |(n, sql_type)| ColumnMeta { name: format!("c{n}"), info: TypeInfo::of(sql_type), nullable: n % 2 == 0, identity: n % 3 == 0 };
        let metadata = ColMetadata { columns: every_type().into_iter().enumerate().map(column).collect() };
        for version in [TdsVersion::V7_1, TdsVersion::V7_4] {
            let mut bytes = Vec::new();
            metadata.encode(version, &mut bytes);
            assert_eq!(ColMetadata::decode(&mut Reader::new(&bytes[1..]), version).unwrap(), metadata);
            let mut bulk = Vec::new();
            metadata.encode_bulk(version, &mut bulk);
            assert_eq!(ColMetadata::decode_bulk(&mut Reader::new(&bulk[1..]), version).unwrap(), metadata);
        }
    }
}
