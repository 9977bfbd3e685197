//! The SQL types and how a column of each is laid out in Arrow.
//!
//! ```text
//! SQL type                    Arrow array          one value
//! bit                         Boolean              false, true
//! tinyint                     UInt8                0..=255
//! smallint, int, bigint       Int16, Int32, Int64
//! real, float                 Float32, Float64
//! decimal(p,s)                Decimal128(p, s)     unscaled integer
//! money, smallmoney           Int64                ten-thousandths
//! date                        Int32                days since 0001-01-01
//! time(s)                     Int64                100 ns since midnight
//! datetime                    Int64                1/300 s since 1900-01-01 (may be negative)
//! smalldatetime               Int64                minutes since 1900-01-01
//! datetime2(s)                Int64                100 ns since 0001-01-01
//! datetimeoffset(s)           FixedSizeBinary(10)  i64 100 ns since 0001-01-01 UTC, i16 minutes, little-endian
//! char, varchar, nchar, nvarchar, text, ntext, xml   Utf8 (LargeUtf8 never: a batch is bounded)
//! binary, varbinary, image, rowversion               Binary
//! uniqueidentifier            FixedSizeBinary(16)  the bytes in the order the wire has them
//! ```
//!
//! Text is UTF-8 in memory and on disk whatever its SQL type; code pages and UTF-16 appear only at the wire,
//! in lengths, and where T-SQL counts characters.

/// Largest length of a character or binary type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaxLength {
    /// `n`: bytes for char, varchar, binary and varbinary (1..=8000), UTF-16 units for nchar and nvarchar (1..=4000).
    Limited(u16),
    /// `max`: 2^31 - 1 bytes.
    Max,
}

/// A collation, by its position in the table of known collations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collation(pub u16);

impl Collation {
    /// `SQL_Latin1_General_CP1_CI_AS`, what an instance has unless told otherwise.
    pub const DEFAULT: Self = Self(0);
}

/// A SQL type with its length, precision, scale and collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each variant is the SQL type of its name
pub enum SqlType {
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    /// `numeric` is the same type by another name; `numeric` here keeps the name the user wrote.
    Decimal {
        precision: u8,
        scale: u8,
        numeric: bool,
    },
    Money,
    SmallMoney,
    Real,
    Float,
    Date,
    Time {
        scale: u8,
    },
    DateTime,
    SmallDateTime,
    DateTime2 {
        scale: u8,
    },
    DateTimeOffset {
        scale: u8,
    },
    Char {
        length: u16,
        collation: Collation,
    },
    VarChar {
        length: MaxLength,
        collation: Collation,
    },
    NChar {
        length: u16,
        collation: Collation,
    },
    NVarChar {
        length: MaxLength,
        collation: Collation,
    },
    Text {
        collation: Collation,
    },
    NText {
        collation: Collation,
    },
    Binary {
        length: u16,
    },
    VarBinary {
        length: MaxLength,
    },
    Image,
    UniqueIdentifier,
    RowVersion,
    Xml,
    SqlVariant,
}
