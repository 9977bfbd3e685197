//! TYPE_INFO (MS-TDS 2.2.5.4 to 2.2.5.6): how a column or parameter lies on the wire.
//!
//! A [`TypeInfo`] keeps both what the wire says (token, lengths) and the SQL type it stands for. What we send always
//! uses the nullable, 7.2-and-later form of a type: every client we know reads it, and no row can contradict its
//! metadata. What we read accepts every form.

use crate::buffer::{DecodeError, Reader, Writer};
use thawdb_types::{Collation, MaxLength, SqlType};

/// fUTF8 of the collation's second 16 bits.
const COLLATION_UTF8: u8 = 0x04;
/// The USHORT length that stands for `max`, and for a NULL value of a USHORT-counted type.
pub const USHORT_NULL: u16 = 0xFFFF;

/// Data type tokens.
#[allow(missing_docs)] // each is the token of its name in MS-TDS 2.2.5.4
pub mod code {
    pub const NULL: u8 = 0x1F;
    pub const INT1: u8 = 0x30;
    pub const BIT: u8 = 0x32;
    pub const INT2: u8 = 0x34;
    pub const INT4: u8 = 0x38;
    pub const DATETIM4: u8 = 0x3A;
    pub const FLT4: u8 = 0x3B;
    pub const MONEY: u8 = 0x3C;
    pub const DATETIME: u8 = 0x3D;
    pub const FLT8: u8 = 0x3E;
    pub const MONEY4: u8 = 0x7A;
    pub const INT8: u8 = 0x7F;
    pub const IMAGE: u8 = 0x22;
    pub const TEXT: u8 = 0x23;
    pub const GUID: u8 = 0x24;
    pub const VARBINARY: u8 = 0x25;
    pub const INTN: u8 = 0x26;
    pub const VARCHAR: u8 = 0x27;
    pub const DATEN: u8 = 0x28;
    pub const TIMEN: u8 = 0x29;
    pub const DATETIME2N: u8 = 0x2A;
    pub const DATETIMEOFFSETN: u8 = 0x2B;
    pub const BINARY: u8 = 0x2D;
    pub const CHAR: u8 = 0x2F;
    pub const DECIMAL: u8 = 0x37;
    pub const NUMERIC: u8 = 0x3F;
    pub const SSVARIANT: u8 = 0x62;
    pub const NTEXT: u8 = 0x63;
    pub const BITN: u8 = 0x68;
    pub const DECIMALN: u8 = 0x6A;
    pub const NUMERICN: u8 = 0x6C;
    pub const FLTN: u8 = 0x6D;
    pub const MONEYN: u8 = 0x6E;
    pub const DATETIMN: u8 = 0x6F;
    pub const BIGVARBIN: u8 = 0xA5;
    pub const BIGVARCHR: u8 = 0xA7;
    pub const BIGBINARY: u8 = 0xAD;
    pub const BIGCHAR: u8 = 0xAF;
    pub const NVARCHAR: u8 = 0xE7;
    pub const NCHAR: u8 = 0xEF;
    pub const UDT: u8 = 0xF0;
    pub const XML: u8 = 0xF1;
    pub const TVP: u8 = 0xF3;
}

/// How the length of each value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueLength {
    /// No length: the value has this many bytes and is never NULL.
    Fixed(u8),
    /// A byte; 0 is NULL.
    Byte,
    /// A USHORT; 0xFFFF is NULL.
    UShort,
    /// Partially length-prefixed chunks.
    Chunks,
    /// A text pointer, a time stamp and a ULONG; a pointer of length 0 is NULL.
    TextPointer,
    /// A ULONG; 0 is NULL (sql_variant).
    ULong,
}

/// A type on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeInfo {
    /// Its token.
    pub code: u8,
    /// The SQL type.
    pub sql_type: SqlType,
    /// How values carry their length.
    pub length: ValueLength,
    /// Text is UTF-8 rather than the code page.
    pub utf8: bool,
}

/// The class behind hierarchyid, as COLMETADATA names it.
const HIERARCHY_ASSEMBLY: &str = "Microsoft.SqlServer.Types.SqlHierarchyId, Microsoft.SqlServer.Types, Version=11.0.0.0, Culture=neutral, PublicKeyToken=89845dcd8080cc91";

impl TypeInfo {
    /// How values of a SQL type are sent.
    pub fn of(sql_type: SqlType) -> Self {
        let (code, length) = match sql_type {
            SqlType::Bit => (code::BITN, ValueLength::Byte),
            SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt => (code::INTN, ValueLength::Byte),
            SqlType::Decimal { numeric: false, .. } => (code::DECIMALN, ValueLength::Byte),
            SqlType::Decimal { .. } => (code::NUMERICN, ValueLength::Byte),
            SqlType::Money | SqlType::SmallMoney => (code::MONEYN, ValueLength::Byte),
            SqlType::Real | SqlType::Float => (code::FLTN, ValueLength::Byte),
            SqlType::Date => (code::DATEN, ValueLength::Byte),
            SqlType::Time { .. } => (code::TIMEN, ValueLength::Byte),
            SqlType::DateTime | SqlType::SmallDateTime => (code::DATETIMN, ValueLength::Byte),
            SqlType::DateTime2 { .. } => (code::DATETIME2N, ValueLength::Byte),
            SqlType::DateTimeOffset { .. } => (code::DATETIMEOFFSETN, ValueLength::Byte),
            SqlType::UniqueIdentifier => (code::GUID, ValueLength::Byte),
            SqlType::Char { .. } => (code::BIGCHAR, ValueLength::UShort),
            SqlType::VarChar { length, .. } => (code::BIGVARCHR, counted(length)),
            SqlType::NChar { .. } => (code::NCHAR, ValueLength::UShort),
            SqlType::NVarChar { length, .. } => (code::NVARCHAR, counted(length)),
            SqlType::Binary { .. } | SqlType::RowVersion => (code::BIGBINARY, ValueLength::UShort),
            SqlType::VarBinary { length } => (code::BIGVARBIN, counted(length)),
            SqlType::Text { .. } => (code::TEXT, ValueLength::TextPointer),
            SqlType::NText { .. } => (code::NTEXT, ValueLength::TextPointer),
            SqlType::Image => (code::IMAGE, ValueLength::TextPointer),
            SqlType::Xml => (code::XML, ValueLength::Chunks),
            SqlType::SqlVariant => (code::SSVARIANT, ValueLength::ULong),
            SqlType::HierarchyId => (code::UDT, ValueLength::Chunks),
        };
        let utf8 = matches!(sql_type, SqlType::Char { collation, .. } | SqlType::VarChar { collation, .. } if collation.info().utf8);
        Self { code, sql_type, length, utf8 }
    }

    /// Bytes of a value of fixed width: what the length byte of its TYPE_INFO says.
    fn width(&self) -> u8 {
        match self.sql_type {
            SqlType::Bit | SqlType::TinyInt => 1,
            SqlType::SmallInt => 2,
            SqlType::Int | SqlType::Real | SqlType::SmallMoney | SqlType::SmallDateTime => 4,
            SqlType::UniqueIdentifier => 16,
            SqlType::Decimal { precision, .. } => decimal_bytes(precision) + 1,
            _ => 8,
        }
    }

    /// Appends TYPE_INFO, and for text, ntext and image the (empty) table name that COLMETADATA wants after it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.code);
        match self.sql_type {
            SqlType::Date => {}
            SqlType::Time { scale } | SqlType::DateTime2 { scale } | SqlType::DateTimeOffset { scale } => out.put_u8(scale),
            SqlType::Decimal { precision, scale, .. } => out.extend_from_slice(&[self.width(), precision, scale]),
            SqlType::Char { length, collation } | SqlType::VarChar { length: MaxLength::Limited(length), collation } => {
                out.put_u16(length);
                out.extend_from_slice(&collation.tds_bytes());
            }
            SqlType::NChar { length, collation } | SqlType::NVarChar { length: MaxLength::Limited(length), collation } => {
                out.put_u16(length * 2);
                out.extend_from_slice(&collation.tds_bytes());
            }
            SqlType::VarChar { length: MaxLength::Max, collation } | SqlType::NVarChar { length: MaxLength::Max, collation } => {
                out.put_u16(USHORT_NULL);
                out.extend_from_slice(&collation.tds_bytes());
            }
            SqlType::Binary { length } | SqlType::VarBinary { length: MaxLength::Limited(length) } => out.put_u16(length),
            SqlType::RowVersion => out.put_u16(8),
            SqlType::VarBinary { length: MaxLength::Max } => out.put_u16(USHORT_NULL),
            SqlType::Text { collation } | SqlType::NText { collation } => {
                out.put_u32(0x7FFF_FFFF);
                out.extend_from_slice(&collation.tds_bytes());
            }
            SqlType::Image => out.put_u32(0x7FFF_FFFF),
            SqlType::Xml => out.put_u8(0),
            SqlType::SqlVariant => out.put_u32(8009),
            SqlType::HierarchyId => {
                out.put_u16(thawdb_types::hierarchy::BYTES_MAX as u16);
                for name in ["", "sys", "hierarchyid"] {
                    out.put_b_varchar(name);
                }
                out.put_us_varchar(HIERARCHY_ASSEMBLY);
            }
            _ => out.put_u8(self.width()),
        }
    }

    /// Whether COLMETADATA has a table name for a column of this type.
    pub fn has_table_name(&self) -> bool {
        self.length == ValueLength::TextPointer
    }

    /// Reads TYPE_INFO.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = reader.u8("type token")?;
        let simple = |sql_type, length| Ok(Self { code, sql_type, length, utf8: false });
        match code {
            // A NULL of no type: as nvarchar it converts to every type, as NULL of an int would not to a uniqueidentifier.
            code::NULL => simple(SqlType::nvarchar(1), ValueLength::Fixed(0)),
            code::BIT => simple(SqlType::Bit, ValueLength::Fixed(1)),
            code::INT1 => simple(SqlType::TinyInt, ValueLength::Fixed(1)),
            code::INT2 => simple(SqlType::SmallInt, ValueLength::Fixed(2)),
            code::INT4 => simple(SqlType::Int, ValueLength::Fixed(4)),
            code::INT8 => simple(SqlType::BigInt, ValueLength::Fixed(8)),
            code::FLT4 => simple(SqlType::Real, ValueLength::Fixed(4)),
            code::FLT8 => simple(SqlType::Float, ValueLength::Fixed(8)),
            code::MONEY => simple(SqlType::Money, ValueLength::Fixed(8)),
            code::MONEY4 => simple(SqlType::SmallMoney, ValueLength::Fixed(4)),
            code::DATETIME => simple(SqlType::DateTime, ValueLength::Fixed(8)),
            code::DATETIM4 => simple(SqlType::SmallDateTime, ValueLength::Fixed(4)),
            code::BITN | code::INTN | code::FLTN | code::MONEYN | code::DATETIMN | code::GUID => Self::decode_sized(code, reader),
            code::DECIMAL | code::NUMERIC | code::DECIMALN | code::NUMERICN => Self::decode_decimal(code, reader),
            code::DATEN => simple(SqlType::Date, ValueLength::Byte),
            code::TIMEN | code::DATETIME2N | code::DATETIMEOFFSETN => Self::decode_scaled(code, reader),
            code::BIGCHAR | code::BIGVARCHR | code::NCHAR | code::NVARCHAR => Self::decode_text(code, reader),
            code::BIGBINARY | code::BIGVARBIN => Self::decode_binary(code, reader),
            code::CHAR | code::VARCHAR | code::BINARY | code::VARBINARY => {
                let length = u16::from(reader.u8("type length")?.max(1));
                match code {
                    code::CHAR | code::VARCHAR => {
                        let collation = Collation::DEFAULT;
                        simple(SqlType::VarChar { length: MaxLength::Limited(length), collation }, ValueLength::Byte)
                    }
                    _ => simple(SqlType::VarBinary { length: MaxLength::Limited(length) }, ValueLength::Byte),
                }
            }
            code::TEXT | code::NTEXT | code::IMAGE => Self::decode_large(code, reader),
            code::XML => {
                if reader.u8("xml schema flag")? != 0 {
                    reader.b_varchar("xml schema database")?;
                    reader.b_varchar("xml schema owner")?;
                    reader.us_varchar("xml schema collection")?;
                }
                simple(SqlType::Xml, ValueLength::Chunks)
            }
            code::UDT => {
                for what in ["type database", "type schema"] {
                    reader.b_varchar(what)?;
                }
                match reader.b_varchar("type name")?.eq_ignore_ascii_case("hierarchyid") {
                    true => simple(SqlType::HierarchyId, ValueLength::Chunks),
                    false => Err(reader.malformed("user-defined type")),
                }
            }
            code::SSVARIANT => {
                reader.u32("sql_variant length")?;
                simple(SqlType::SqlVariant, ValueLength::ULong)
            }
            _ => Err(reader.malformed("type token")),
        }
    }

    fn decode_sized(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let width = reader.u8("type length")?;
        let sql_type = match (code, width) {
            (code::BITN, 1) => SqlType::Bit,
            (code::INTN, 1) => SqlType::TinyInt,
            (code::INTN, 2) => SqlType::SmallInt,
            (code::INTN, 4) => SqlType::Int,
            (code::INTN, 8) => SqlType::BigInt,
            (code::FLTN, 4) => SqlType::Real,
            (code::FLTN, 8) => SqlType::Float,
            (code::MONEYN, 4) => SqlType::SmallMoney,
            (code::MONEYN, 8) => SqlType::Money,
            (code::DATETIMN, 4) => SqlType::SmallDateTime,
            (code::DATETIMN, 8) => SqlType::DateTime,
            (code::GUID, 16) => SqlType::UniqueIdentifier,
            _ => return Err(reader.malformed("type length")),
        };
        Ok(Self { code, sql_type, length: ValueLength::Byte, utf8: false })
    }

    fn decode_decimal(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [_, precision, scale] = reader.array("decimal type")?;
        // mssql-jdbc's word for the decimals of a table value without rows.
        let precision = if precision == 0 { 38 } else { precision };
        if !(1..=38).contains(&precision) || scale > precision {
            return Err(reader.malformed("decimal type"));
        }
        let numeric = matches!(code, code::NUMERIC | code::NUMERICN);
        Ok(Self { code, sql_type: SqlType::Decimal { precision, scale, numeric }, length: ValueLength::Byte, utf8: false })
    }

    fn decode_scaled(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let scale = reader.u8("time scale")?;
        if scale > 7 {
            return Err(reader.malformed("time scale"));
        }
        let sql_type = match code {
            code::TIMEN => SqlType::Time { scale },
            code::DATETIME2N => SqlType::DateTime2 { scale },
            _ => SqlType::DateTimeOffset { scale },
        };
        Ok(Self { code, sql_type, length: ValueLength::Byte, utf8: false })
    }

    fn decode_text(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = reader.u16("type length")?;
        let (collation, utf8) = decode_collation(reader)?;
        let wide = matches!(code, code::NCHAR | code::NVARCHAR);
        let bytes_max = 8000;
        if bytes != USHORT_NULL && bytes > bytes_max {
            return Err(reader.malformed("type length"));
        }
        let limited = (if wide { bytes / 2 } else { bytes }).max(1);
        let length = if bytes == USHORT_NULL { MaxLength::Max } else { MaxLength::Limited(limited) };
        let sql_type = match (code, length) {
            (code::BIGCHAR, MaxLength::Limited(length)) => SqlType::Char { length, collation },
            (code::NCHAR, MaxLength::Limited(length)) => SqlType::NChar { length, collation },
            (code::BIGVARCHR, _) => SqlType::VarChar { length, collation },
            (code::NVARCHAR, _) => SqlType::NVarChar { length, collation },
            _ => return Err(reader.malformed("type length")),
        };
        Ok(Self { code, sql_type, length: counted(length), utf8 })
    }

    fn decode_binary(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bytes = reader.u16("type length")?;
        let length = if bytes == USHORT_NULL { MaxLength::Max } else { MaxLength::Limited(bytes.max(1)) };
        let sql_type = match (code, length) {
            (code::BIGBINARY, MaxLength::Limited(length)) if length <= 8000 => SqlType::Binary { length },
            (code::BIGVARBIN, MaxLength::Max) => SqlType::VarBinary { length },
            (code::BIGVARBIN, MaxLength::Limited(1..=8000)) => SqlType::VarBinary { length },
            _ => return Err(reader.malformed("type length")),
        };
        Ok(Self { code, sql_type, length: counted(length), utf8: false })
    }

    fn decode_large(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u32("type length")?;
        if code == code::IMAGE {
            return Ok(Self { code, sql_type: SqlType::Image, length: ValueLength::TextPointer, utf8: false });
        }
        let (collation, utf8) = decode_collation(reader)?;
        let sql_type = if code == code::TEXT { SqlType::Text { collation } } else { SqlType::NText { collation } };
        Ok(Self { code, sql_type, length: ValueLength::TextPointer, utf8 })
    }
}

/// A collation we do not know counts as the default one; whether its text is UTF-8 is told by its flags all the same.
fn decode_collation(reader: &mut Reader<'_>) -> Result<(Collation, bool), DecodeError> {
    let bytes = reader.array::<5>("collation")?;
    Ok((Collation::by_tds_bytes(bytes).unwrap_or(Collation::DEFAULT), bytes[3] & COLLATION_UTF8 != 0))
}

fn counted(length: MaxLength) -> ValueLength {
    match length {
        MaxLength::Limited(_) => ValueLength::UShort,
        MaxLength::Max => ValueLength::Chunks,
    }
}

/// Bytes of the magnitude of a decimal of this precision, its sign byte not counted (MS-TDS 2.2.5.5.1.6).
pub fn decimal_bytes(precision: u8) -> u8 {
    match precision {
        0..=9 => 4,
        10..=19 => 8,
        20..=28 => 12,
        _ => 16,
    }
}

/// Bytes of a time of day with this scale.
pub fn time_bytes(scale: u8) -> usize {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn every_type() -> Vec<SqlType> {
        let collation = Collation::DEFAULT;
        let mut types = vec![
            SqlType::Bit,
            SqlType::TinyInt,
            SqlType::SmallInt,
            SqlType::Int,
            SqlType::BigInt,
            SqlType::Money,
            SqlType::SmallMoney,
            SqlType::Real,
            SqlType::Float,
            SqlType::Date,
            SqlType::DateTime,
            SqlType::SmallDateTime,
            SqlType::Char { length: 10, collation },
            SqlType::NChar { length: 10, collation },
            SqlType::Text { collation },
            SqlType::NText { collation },
            SqlType::Image,
            SqlType::Binary { length: 16 },
            SqlType::UniqueIdentifier,
            SqlType::Xml,
        ];
        for precision in [1, 9, 10, 19, 20, 28, 29, 38] {
            types.push(SqlType::Decimal { precision, scale: precision / 2, numeric: precision % 2 == 0 });
        }
        for scale in 0..=7 {
            types.extend([SqlType::Time { scale }, SqlType::DateTime2 { scale }, SqlType::DateTimeOffset { scale }]);
        }
        for length in [MaxLength::Limited(4000), MaxLength::Max] {
            types.extend([SqlType::VarChar { length, collation }, SqlType::NVarChar { length, collation }, SqlType::VarBinary { length }]);
        }
        types
    }

    #[test]
    fn round_trip_and_every_cut() {
        for sql_type in every_type() {
            let mut bytes = Vec::new();
            TypeInfo::of(sql_type).encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(TypeInfo::decode(&mut reader).unwrap(), TypeInfo::of(sql_type));
            assert!(reader.is_empty());
            for length in 0..bytes.len() {
                assert!(TypeInfo::decode(&mut Reader::new(&bytes[..length])).is_err());
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [&[0x26, 3][..], &[0x6A, 5, 39, 0], &[0x6A, 5, 5, 6], &[0x29, 8], &[0xE7, 0x42, 0x1F, 0, 0, 0, 0, 0], &[0x00], &[0xF0]]
        {
            assert!(TypeInfo::decode(&mut Reader::new(bytes)).is_err(), "{bytes:02x?}");
        }
    }
}
