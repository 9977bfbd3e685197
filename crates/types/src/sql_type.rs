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
//! sql_variant                 Binary               type and value (see `variant`)
//! ```
//!
//! Text is UTF-8 in memory and on disk whatever its SQL type; code pages and UTF-16 appear only at the wire,
//! in lengths, and where T-SQL counts characters.

use crate::SqlError;
use crate::error::message;
use arrow_schema::DataType;

/// Largest length of a character or binary type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaxLength {
    /// `n`: bytes for char, varchar, binary and varbinary (1..=8000), UTF-16 units for nchar and nvarchar (1..=4000).
    Limited(u16),
    /// `max`: 2^31 - 1 bytes.
    Max,
}

/// A collation, by its position in the table of known collations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
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
    /// A path of a tree, as the bytes of [`crate::hierarchy`].
    HierarchyId,
}

/// What stands in the brackets after a type's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeArgument {
    /// A number.
    Number(i64),
    /// The word `max`.
    Max,
}

/// Where a type name was written: decides default lengths and which message a bad one gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeUse<'a> {
    /// A column of a table; ordinal from 1.
    Column {
        /// Position in the table, from 1.
        ordinal: i32,
        /// Its name.
        name: &'a str,
    },
    /// A variable or parameter; ordinal from 1.
    Parameter {
        /// Position in the DECLARE or parameter list, from 1.
        ordinal: i32,
        /// Its name with the `@`.
        name: &'a str,
    },
    /// CAST, CONVERT, PARSE: a length left out means 30.
    Cast,
}

impl TypeUse<'_> {
    fn ordinal(&self) -> i32 {
        match self {
            Self::Column { ordinal, .. } | Self::Parameter { ordinal, .. } => *ordinal,
            Self::Cast => 1,
        }
    }

    fn default_length(&self) -> u16 {
        if matches!(self, Self::Cast) { 30 } else { 1 }
    }

    /// What %S_MSG and %.*ls of 131 and 2717 say.
    fn described<'b>(&'b self, type_name: &'b str) -> (&'static str, &'b str) {
        match self {
            Self::Column { name, .. } => ("column", name),
            Self::Parameter { name, .. } => ("parameter", name),
            Self::Cast => ("type", type_name),
        }
    }
}

impl SqlType {
    /// `varchar(max)` under the default collation.
    pub const VARCHAR_MAX: Self = Self::VarChar { length: MaxLength::Max, collation: Collation::DEFAULT };
    /// `nvarchar(max)` under the default collation.
    pub const NVARCHAR_MAX: Self = Self::NVarChar { length: MaxLength::Max, collation: Collation::DEFAULT };
    /// `varbinary(max)`.
    pub const VARBINARY_MAX: Self = Self::VarBinary { length: MaxLength::Max };
    /// `sysname`: nvarchar(128) under the default collation.
    pub const SYSNAME: Self = Self::NVarChar { length: MaxLength::Limited(128), collation: Collation::DEFAULT };

    /// `decimal(precision, scale)`.
    pub const fn decimal(precision: u8, scale: u8) -> Self {
        Self::Decimal { precision, scale, numeric: false }
    }

    /// `numeric(precision, scale)`: what literals and arithmetic give.
    pub const fn numeric(precision: u8, scale: u8) -> Self {
        Self::Decimal { precision, scale, numeric: true }
    }

    /// `varchar(length)` under the default collation.
    pub const fn varchar(length: u16) -> Self {
        Self::VarChar { length: MaxLength::Limited(length), collation: Collation::DEFAULT }
    }

    /// `nvarchar(length)` under the default collation.
    pub const fn nvarchar(length: u16) -> Self {
        Self::NVarChar { length: MaxLength::Limited(length), collation: Collation::DEFAULT }
    }

    /// `varbinary(length)`.
    pub const fn varbinary(length: u16) -> Self {
        Self::VarBinary { length: MaxLength::Limited(length) }
    }

    /// The Arrow type of a column of it (the table at the head of this module).
    pub fn arrow_type(&self) -> DataType {
        match *self {
            Self::Bit => DataType::Boolean,
            Self::TinyInt => DataType::UInt8,
            Self::SmallInt => DataType::Int16,
            Self::Int | Self::Date => DataType::Int32,
            Self::BigInt
            | Self::Money
            | Self::SmallMoney
            | Self::Time { .. }
            | Self::DateTime
            | Self::SmallDateTime
            | Self::DateTime2 { .. } => DataType::Int64,
            Self::Decimal { precision, scale, .. } => DataType::Decimal128(precision, scale as i8),
            Self::Real => DataType::Float32,
            Self::Float => DataType::Float64,
            Self::DateTimeOffset { .. } => DataType::FixedSizeBinary(10),
            Self::UniqueIdentifier => DataType::FixedSizeBinary(16),
            Self::Char { .. }
            | Self::VarChar { .. }
            | Self::NChar { .. }
            | Self::NVarChar { .. }
            | Self::Text { .. }
            | Self::NText { .. }
            | Self::Xml => DataType::Utf8,
            Self::Binary { .. } | Self::VarBinary { .. } | Self::Image | Self::RowVersion | Self::SqlVariant | Self::HierarchyId => {
                DataType::Binary
            }
        }
    }

    /// The name without arguments, as sys.types has it.
    pub fn base_name(&self) -> &'static str {
        match self {
            Self::Bit => "bit",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Decimal { numeric: false, .. } => "decimal",
            Self::Decimal { numeric: true, .. } => "numeric",
            Self::Money => "money",
            Self::SmallMoney => "smallmoney",
            Self::Real => "real",
            Self::Float => "float",
            Self::Date => "date",
            Self::Time { .. } => "time",
            Self::DateTime => "datetime",
            Self::SmallDateTime => "smalldatetime",
            Self::DateTime2 { .. } => "datetime2",
            Self::DateTimeOffset { .. } => "datetimeoffset",
            Self::Char { .. } => "char",
            Self::VarChar { .. } => "varchar",
            Self::NChar { .. } => "nchar",
            Self::NVarChar { .. } => "nvarchar",
            Self::Text { .. } => "text",
            Self::NText { .. } => "ntext",
            Self::Binary { .. } => "binary",
            Self::VarBinary { .. } => "varbinary",
            Self::Image => "image",
            Self::UniqueIdentifier => "uniqueidentifier",
            Self::RowVersion => "timestamp",
            Self::Xml => "xml",
            Self::SqlVariant => "sql_variant",
            Self::HierarchyId => "hierarchyid",
        }
    }

    /// The name conversion messages use: as [`Self::base_name`], but decimal is called numeric, and max is said.
    pub fn message_name(&self) -> &'static str {
        match self {
            Self::Decimal { .. } => "numeric",
            Self::VarChar { length: MaxLength::Max, .. } => "varchar(max)",
            Self::NVarChar { length: MaxLength::Max, .. } => "nvarchar(max)",
            Self::VarBinary { length: MaxLength::Max } => "varbinary(max)",
            _ => self.base_name(),
        }
    }

    /// The name as it would be declared: `nvarchar(50)`, `decimal(10,2)`, `varbinary(max)`.
    pub fn name(&self) -> String {
        let base = self.base_name();
        match *self {
            Self::Decimal { precision, scale, .. } => format!("{base}({precision},{scale})"),
            Self::Time { scale } | Self::DateTime2 { scale } | Self::DateTimeOffset { scale } => format!("{base}({scale})"),
            Self::Char { length, .. } | Self::NChar { length, .. } | Self::Binary { length } => format!("{base}({length})"),
            Self::VarChar { length, .. } | Self::NVarChar { length, .. } | Self::VarBinary { length } => match length {
                MaxLength::Limited(n) => format!("{base}({n})"),
                MaxLength::Max => format!("{base}(max)"),
            },
            _ => base.to_string(),
        }
    }

    /// sys.types.system_type_id.
    pub fn system_type_id(&self) -> u8 {
        match self {
            Self::Image => 34,
            Self::Text { .. } => 35,
            Self::UniqueIdentifier => 36,
            Self::Date => 40,
            Self::Time { .. } => 41,
            Self::DateTime2 { .. } => 42,
            Self::DateTimeOffset { .. } => 43,
            Self::TinyInt => 48,
            Self::SmallInt => 52,
            Self::Int => 56,
            Self::SmallDateTime => 58,
            Self::Real => 59,
            Self::Money => 60,
            Self::DateTime => 61,
            Self::Float => 62,
            Self::SqlVariant => 98,
            Self::NText { .. } => 99,
            Self::Bit => 104,
            Self::Decimal { numeric: false, .. } => 106,
            Self::Decimal { numeric: true, .. } => 108,
            Self::SmallMoney => 122,
            Self::BigInt => 127,
            Self::VarBinary { .. } => 165,
            Self::VarChar { .. } => 167,
            Self::Binary { .. } => 173,
            Self::Char { .. } => 175,
            Self::RowVersion => 189,
            Self::NVarChar { .. } => 231,
            Self::NChar { .. } => 239,
            Self::HierarchyId => 240,
            Self::Xml => 241,
        }
    }

    /// sys.types.user_type_id of the built-in type (`sysname`, 256, is an alias the catalog keeps).
    pub fn user_type_id(&self) -> i32 {
        // hierarchyid is a type of the common language runtime that is there from the beginning.
        if *self == Self::HierarchyId { 128 } else { i32::from(self.system_type_id()) }
    }

    /// sys.columns.max_length: bytes, -1 for max types.
    pub fn max_length(&self) -> i16 {
        let limited = |length: MaxLength, factor: u16| match length {
            MaxLength::Limited(n) => (n * factor) as i16,
            MaxLength::Max => -1,
        };
        match *self {
            Self::Bit | Self::TinyInt => 1,
            Self::SmallInt => 2,
            Self::Int | Self::Real | Self::SmallMoney | Self::SmallDateTime => 4,
            Self::BigInt | Self::Float | Self::Money | Self::DateTime | Self::RowVersion => 8,
            Self::Decimal { precision, .. } => match precision {
                0..=9 => 5,
                10..=19 => 9,
                20..=28 => 13,
                _ => 17,
            },
            Self::Date => 3,
            Self::Time { scale } => time_bytes(scale),
            Self::DateTime2 { scale } => time_bytes(scale) + 3,
            Self::DateTimeOffset { scale } => time_bytes(scale) + 5,
            Self::Char { length, .. } | Self::Binary { length } => length as i16,
            Self::NChar { length, .. } => (length * 2) as i16,
            Self::VarChar { length, .. } | Self::VarBinary { length } => limited(length, 1),
            Self::NVarChar { length, .. } => limited(length, 2),
            Self::Text { .. } | Self::NText { .. } | Self::Image | Self::UniqueIdentifier => 16,
            Self::Xml => -1,
            Self::SqlVariant => 8016,
            Self::HierarchyId => crate::hierarchy::BYTES_MAX as i16,
        }
    }

    /// sys.columns.precision.
    pub fn precision(&self) -> u8 {
        match *self {
            Self::Bit => 1,
            Self::TinyInt => 3,
            Self::SmallInt => 5,
            Self::Int | Self::SmallMoney => 10,
            Self::BigInt | Self::Money => 19,
            Self::Decimal { precision, .. } => precision,
            Self::Real => 24,
            Self::Float => 53,
            Self::Date => 10,
            Self::Time { scale } => 8 + scale + u8::from(scale > 0),
            Self::DateTime => 23,
            Self::SmallDateTime => 16,
            Self::DateTime2 { scale } => 19 + scale + u8::from(scale > 0),
            Self::DateTimeOffset { scale } => 26 + scale + u8::from(scale > 0),
            _ => 0,
        }
    }

    /// sys.columns.scale.
    pub fn scale(&self) -> u8 {
        match *self {
            Self::Decimal { scale, .. } | Self::Time { scale } | Self::DateTime2 { scale } | Self::DateTimeOffset { scale } => scale,
            Self::Money | Self::SmallMoney => 4,
            Self::DateTime => 3,
            _ => 0,
        }
    }

    /// Rank in the documented order of type precedence: of two operands the one with the *lower* rank wins.
    pub fn precedence(&self) -> u8 {
        match self {
            Self::HierarchyId => 1,
            Self::SqlVariant => 2,
            Self::Xml => 3,
            Self::DateTimeOffset { .. } => 4,
            Self::DateTime2 { .. } => 5,
            Self::DateTime => 6,
            Self::SmallDateTime => 7,
            Self::Date => 8,
            Self::Time { .. } => 9,
            Self::Float => 10,
            Self::Real => 11,
            Self::Decimal { .. } => 12,
            Self::Money => 13,
            Self::SmallMoney => 14,
            Self::BigInt => 15,
            Self::Int => 16,
            Self::SmallInt => 17,
            Self::TinyInt => 18,
            Self::Bit => 19,
            Self::NText { .. } => 20,
            Self::Text { .. } => 21,
            Self::Image => 22,
            Self::RowVersion => 23,
            Self::UniqueIdentifier => 24,
            Self::NVarChar { .. } => 25,
            Self::NChar { .. } => 26,
            Self::VarChar { .. } => 27,
            Self::Char { .. } => 28,
            Self::VarBinary { .. } => 29,
            Self::Binary { .. } => 30,
        }
    }

    /// Width in the row codec's fixed area, `None` for what is stored as variable data (see `row`).
    pub fn fixed_bytes(&self) -> Option<usize> {
        Some(match *self {
            Self::Bit | Self::TinyInt => 1,
            Self::SmallInt => 2,
            Self::Int | Self::Real | Self::SmallMoney | Self::SmallDateTime => 4,
            Self::BigInt | Self::Float | Self::Money | Self::DateTime | Self::DateTime2 { .. } | Self::RowVersion => 8,
            Self::Decimal { precision, .. } => match precision {
                0..=9 => 4,
                10..=18 => 8,
                _ => 16,
            },
            Self::Date => 3,
            Self::Time { .. } => 5,
            Self::DateTimeOffset { .. } => 10,
            Self::UniqueIdentifier => 16,
            Self::Char { .. }
            | Self::VarChar { .. }
            | Self::NChar { .. }
            | Self::NVarChar { .. }
            | Self::Text { .. }
            | Self::NText { .. }
            | Self::Xml
            | Self::Binary { .. }
            | Self::VarBinary { .. }
            | Self::Image
            | Self::HierarchyId
            | Self::SqlVariant => return None,
        })
    }

    /// The collation of a character type.
    pub fn collation(&self) -> Option<Collation> {
        match *self {
            Self::Char { collation, .. }
            | Self::VarChar { collation, .. }
            | Self::NChar { collation, .. }
            | Self::NVarChar { collation, .. }
            | Self::Text { collation }
            | Self::NText { collation } => Some(collation),
            _ => None,
        }
    }

    /// The same type under another collation; other types unchanged.
    pub fn with_collation(mut self, new: Collation) -> Self {
        match &mut self {
            Self::Char { collation, .. }
            | Self::VarChar { collation, .. }
            | Self::NChar { collation, .. }
            | Self::NVarChar { collation, .. }
            | Self::Text { collation }
            | Self::NText { collation } => *collation = new,
            _ => {}
        }
        self
    }

    /// Character types (xml not among them).
    pub fn is_text(&self) -> bool {
        self.collation().is_some()
    }

    /// nchar, nvarchar, ntext.
    pub fn is_unicode(&self) -> bool {
        matches!(self, Self::NChar { .. } | Self::NVarChar { .. } | Self::NText { .. })
    }

    /// binary, varbinary, image, rowversion.
    pub fn is_binary(&self) -> bool {
        matches!(self, Self::Binary { .. } | Self::VarBinary { .. } | Self::Image | Self::RowVersion)
    }

    /// tinyint, smallint, int, bigint.
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt)
    }

    /// Numbers without rounding: integers, bit, decimal, money.
    pub fn is_exact_numeric(&self) -> bool {
        self.is_integer() || matches!(self, Self::Bit | Self::Decimal { .. } | Self::Money | Self::SmallMoney)
    }

    /// Every number type.
    pub fn is_numeric(&self) -> bool {
        self.is_exact_numeric() || matches!(self, Self::Real | Self::Float)
    }

    /// Every date or time type.
    pub fn is_date_time(&self) -> bool {
        matches!(
            self,
            Self::Date | Self::Time { .. } | Self::DateTime | Self::SmallDateTime | Self::DateTime2 { .. } | Self::DateTimeOffset { .. }
        )
    }

    /// Types that may not be a key, be grouped by or compared: text, ntext, image, xml.
    pub fn is_incomparable(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::NText { .. } | Self::Image | Self::Xml)
    }

    /// varchar(max), nvarchar(max), varbinary(max), text, ntext, image, xml.
    pub fn is_large(&self) -> bool {
        self.is_incomparable() || self.max_length() == -1
    }

    /// Declared length in the type's own unit (bytes or UTF-16 units); `None` where there is none or it is max.
    pub fn length(&self) -> Option<u16> {
        match *self {
            Self::Char { length, .. } | Self::NChar { length, .. } | Self::Binary { length } => Some(length),
            Self::VarChar { length, .. } | Self::NVarChar { length, .. } | Self::VarBinary { length } => match length {
                MaxLength::Limited(n) => Some(n),
                MaxLength::Max => None,
            },
            _ => None,
        }
    }

    /// char, nchar and binary: values are padded to their length.
    pub fn is_padded(&self) -> bool {
        matches!(self, Self::Char { .. } | Self::NChar { .. } | Self::Binary { .. })
    }

    /// The type a name and its arguments mean; character types get `collation`.
    ///
    /// # Errors
    /// SQL Server's own: 2715 (no such type), 2716 (may not have a length), 1001, 1002, 131, 2717, 2750, 2751, 192.
    pub fn from_name(name: &str, arguments: &[TypeArgument], at: TypeUse<'_>, collation: Collation) -> Result<Self, SqlError> {
        let lower = name.to_ascii_lowercase();
        let plain = |sql_type: Self| match arguments {
            [] => Ok(sql_type),
            _ => Err(message(2716, &[&at.ordinal(), &sql_type.base_name()])),
        };
        match lower.as_str() {
            "bit" => plain(Self::Bit),
            "tinyint" => plain(Self::TinyInt),
            "smallint" => plain(Self::SmallInt),
            "int" | "integer" => plain(Self::Int),
            "bigint" => plain(Self::BigInt),
            "money" => plain(Self::Money),
            "smallmoney" => plain(Self::SmallMoney),
            "real" => plain(Self::Real),
            "date" => plain(Self::Date),
            "datetime" => plain(Self::DateTime),
            "smalldatetime" => plain(Self::SmallDateTime),
            "text" => plain(Self::Text { collation }),
            "ntext" => plain(Self::NText { collation }),
            "image" => plain(Self::Image),
            "uniqueidentifier" => plain(Self::UniqueIdentifier),
            "timestamp" | "rowversion" => plain(Self::RowVersion),
            "xml" => plain(Self::Xml),
            "sql_variant" => plain(Self::SqlVariant),
            "hierarchyid" => plain(Self::HierarchyId),
            "sysname" => plain(Self::SYSNAME.with_collation(collation)),
            "decimal" | "dec" | "numeric" => decimal_from_arguments(arguments, lower == "numeric", at),
            "float" | "double precision" => float_from_arguments(arguments, at),
            "time" => Ok(Self::Time { scale: scale_argument(arguments, at, "time")? }),
            "datetime2" => Ok(Self::DateTime2 { scale: scale_argument(arguments, at, "datetime2")? }),
            "datetimeoffset" => Ok(Self::DateTimeOffset { scale: scale_argument(arguments, at, "datetimeoffset")? }),
            _ => sized_from_name(&lower, arguments, at, collation)?.ok_or_else(|| message(2715, &[&at.ordinal(), &name])),
        }
    }

    /// The type operands of both types are brought to before they are compared, concatenated by UNION, or
    /// chosen between by CASE and COALESCE.
    ///
    /// # Errors
    /// 206 when neither converts to the other by itself.
    pub fn common(left: &Self, right: &Self) -> Result<Self, SqlError> {
        let (high, low) = if left.precedence() <= right.precedence() { (left, right) } else { (right, left) };
        if high == low {
            return Ok(*high);
        }
        if crate::convert::implicit_cast(low, high) != crate::convert::CastRule::Allowed {
            return Err(message(206, &[&left.message_name(), &right.message_name()]));
        }
        Ok(widen(high, low))
    }
}

fn time_bytes(scale: u8) -> i16 {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}

/// `high` made wide enough that no value of `low` loses digits or characters where a wider type exists.
fn widen(high: &SqlType, low: &SqlType) -> SqlType {
    use SqlType as T;
    let longer = |a: MaxLength, b: Option<MaxLength>| match (a, b) {
        (MaxLength::Limited(x), Some(MaxLength::Limited(y))) => MaxLength::Limited(x.max(y)),
        (_, Some(_)) => MaxLength::Max,
        (a, None) => a,
    };
    let low_length = match *low {
        T::Char { length, .. } | T::NChar { length, .. } | T::Binary { length } => Some(MaxLength::Limited(length)),
        T::VarChar { length, .. } | T::NVarChar { length, .. } | T::VarBinary { length } => Some(length),
        T::Text { .. } | T::NText { .. } | T::Image => Some(MaxLength::Max),
        _ => None,
    };
    // A varchar may hold twice the characters an nvarchar(n) may: above 4,000 only max is long enough.
    let unicode_length = |length: MaxLength| match length {
        MaxLength::Limited(n) if n > 4000 => MaxLength::Limited(4000),
        other => other,
    };
    match *high {
        T::Decimal { precision, scale, numeric } if low.is_exact_numeric() => {
            let (low_precision, low_scale) = (low.precision(), low.scale());
            let new_scale = scale.max(low_scale);
            let whole = (precision - scale).max(low_precision - low_scale);
            let new_precision = (whole + new_scale).min(38);
            let new_scale = new_scale.min(new_precision.saturating_sub(whole));
            T::Decimal { precision: new_precision, scale: new_scale, numeric }
        }
        T::Time { scale } => T::Time { scale: scale.max(if matches!(low, T::Time { .. }) { low.scale() } else { 0 }) },
        T::DateTime2 { scale } => T::DateTime2 { scale: scale.max(datetime_scale(low)) },
        T::DateTimeOffset { scale } => T::DateTimeOffset { scale: scale.max(datetime_scale(low)) },
        T::NVarChar { length, collation } => T::NVarChar { length: unicode_length(longer(length, low_length)), collation },
        T::NChar { length, collation } => match (low, low_length.unwrap_or(MaxLength::Limited(length))) {
            (T::NChar { .. } | T::Char { .. }, MaxLength::Limited(n)) => T::NChar { length: length.max(n).min(4000), collation },
            (_, n) => T::NVarChar { length: unicode_length(longer(MaxLength::Limited(length), Some(n))), collation },
        },
        T::VarChar { length, collation } => T::VarChar { length: longer(length, low_length), collation },
        T::Char { length, collation } => T::Char { length: length.max(low.length().unwrap_or(0)), collation },
        T::VarBinary { length } => T::VarBinary { length: longer(length, low_length) },
        T::Binary { length } => T::Binary { length: length.max(low.length().unwrap_or(0)) },
        other => other,
    }
}

fn datetime_scale(sql_type: &SqlType) -> u8 {
    if sql_type.is_date_time() { sql_type.scale() } else { 0 }
}

fn number_argument(argument: TypeArgument, at: TypeUse<'_>, name: &str) -> Result<i64, SqlError> {
    match argument {
        TypeArgument::Number(n) => Ok(n),
        TypeArgument::Max => Err(message(2716, &[&at.ordinal(), &name])),
    }
}

fn decimal_from_arguments(arguments: &[TypeArgument], numeric: bool, at: TypeUse<'_>) -> Result<SqlType, SqlError> {
    let name = if numeric { "numeric" } else { "decimal" };
    let (precision, scale) = match *arguments {
        [] => (18, 0),
        [p] => (number_argument(p, at, name)?, 0),
        [p, s] => (number_argument(p, at, name)?, number_argument(s, at, name)?),
        _ => return Err(message(2716, &[&at.ordinal(), &name])),
    };
    if precision < 1 {
        return Err(message(1001, &[&1, &precision]));
    }
    if precision > 38 {
        return Err(match at {
            TypeUse::Cast => message(2717, &[&precision, &"type", &name, &38]),
            _ => message(2750, &[&at.ordinal(), &precision, &38]),
        });
    }
    if scale > precision || scale < 0 {
        return Err(match at {
            TypeUse::Column { ordinal, .. } => message(2751, &[&ordinal, &scale, &precision]),
            _ => message(192, &[]),
        });
    }
    Ok(SqlType::Decimal { precision: precision as u8, scale: scale as u8, numeric })
}

fn float_from_arguments(arguments: &[TypeArgument], at: TypeUse<'_>) -> Result<SqlType, SqlError> {
    let bits = match *arguments {
        [] => 53,
        [n] => number_argument(n, at, "float")?,
        _ => return Err(message(2716, &[&at.ordinal(), &"float"])),
    };
    match bits {
        1..=24 => Ok(SqlType::Real),
        25..=53 => Ok(SqlType::Float),
        n if n < 1 => Err(message(1001, &[&1, &n])),
        n => Err(message(2750, &[&at.ordinal(), &n, &53])),
    }
}

fn scale_argument(arguments: &[TypeArgument], at: TypeUse<'_>, name: &str) -> Result<u8, SqlError> {
    match *arguments {
        [] => Ok(7),
        [n] => match number_argument(n, at, name)? {
            n @ 0..=7 => Ok(n as u8),
            n => Err(message(1002, &[&1, &n])),
        },
        _ => Err(message(2716, &[&at.ordinal(), &name])),
    }
}

/// char, varchar, nchar, nvarchar, binary, varbinary and their longer spellings; `None` for no such type.
fn sized_from_name(lower: &str, arguments: &[TypeArgument], at: TypeUse<'_>, collation: Collation) -> Result<Option<SqlType>, SqlError> {
    let (name, length_max) = match lower {
        "char" | "character" => ("char", 8000),
        "varchar" | "char varying" | "character varying" => ("varchar", 8000),
        "nchar" | "national char" | "national character" => ("nchar", 4000),
        "nvarchar" | "national char varying" | "national character varying" => ("nvarchar", 4000),
        "binary" => ("binary", 8000),
        "varbinary" | "binary varying" => ("varbinary", 8000),
        _ => return Ok(None),
    };
    let varying = name.contains("var");
    let length = match *arguments {
        [] => MaxLength::Limited(at.default_length()),
        [TypeArgument::Max] if varying => MaxLength::Max,
        [TypeArgument::Number(n)] => {
            let (kind, called) = at.described(name);
            match n {
                n if n < 1 => return Err(message(1001, &[&1, &n])),
                n if n > 8000 => return Err(message(131, &[&n, &kind, &called, &8000])),
                n if n > length_max => return Err(message(2717, &[&n, &kind, &called, &length_max])),
                n => MaxLength::Limited(n as u16),
            }
        }
        _ => return Err(message(2716, &[&at.ordinal(), &name])),
    };
    let fixed = match length {
        MaxLength::Limited(n) => n,
        MaxLength::Max => 0,
    };
    Ok(Some(match name {
        "char" => SqlType::Char { length: fixed, collation },
        "varchar" => SqlType::VarChar { length, collation },
        "nchar" => SqlType::NChar { length: fixed, collation },
        "nvarchar" => SqlType::NVarChar { length, collation },
        "binary" => SqlType::Binary { length: fixed },
        _ => SqlType::VarBinary { length },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(name: &str, arguments: &[i64]) -> Result<SqlType, i32> {
        let arguments: Vec<_> = arguments.iter().map(|n| TypeArgument::Number(*n)).collect();
        SqlType::from_name(name, &arguments, TypeUse::Cast, Collation::DEFAULT).map_err(|e| e.number)
    }

    #[test]
    fn names_round_trip() {
        for (name, arguments, shown) in [
            ("INT", &[][..], "int"),
            ("Decimal", &[10, 2], "decimal(10,2)"),
            ("numeric", &[], "numeric(18,0)"),
            ("nvarchar", &[50], "nvarchar(50)"),
            ("varchar", &[], "varchar(30)"),
            ("datetime2", &[], "datetime2(7)"),
            ("float", &[24], "real"),
            ("binary", &[8], "binary(8)"),
        ] {
            assert_eq!(cast(name, arguments).map(|t| t.name()), Ok(shown.to_string()));
        }
    }

    #[test]
    fn limits_have_sql_servers_numbers() {
        for (name, arguments, number) in [
            ("varchar", &[8001][..], 131),
            ("nvarchar", &[4001], 2717),
            ("varchar", &[0], 1001),
            ("int", &[4], 2716),
            ("decimal", &[5, 6], 192),
            ("datetime2", &[8], 1002),
            ("nonesuch", &[], 2715),
            ("float", &[54], 2750),
        ] {
            assert_eq!(cast(name, arguments), Err(number), "{name}{arguments:?}");
        }
        let column = TypeUse::Column { ordinal: 2, name: "b" };
        let error = SqlType::from_name("varchar", &[TypeArgument::Number(9000)], column, Collation::DEFAULT).unwrap_err();
        assert_eq!(error.text, "The size (9000) given to the column 'b' exceeds the maximum allowed for any data type (8000).");
    }

    #[test]
    fn common_types() {
        let common = |a, b| SqlType::common(&a, &b).unwrap();
        assert_eq!(common(SqlType::Int, SqlType::BigInt), SqlType::BigInt);
        assert_eq!(common(SqlType::numeric(5, 2), SqlType::Int), SqlType::numeric(12, 2));
        assert_eq!(common(SqlType::varchar(10), SqlType::nvarchar(5)), SqlType::nvarchar(10));
        assert_eq!(common(SqlType::varchar(10), SqlType::Int), SqlType::Int);
        assert_eq!(SqlType::common(&SqlType::UniqueIdentifier, &SqlType::Int).unwrap_err().number, 206);
    }
}
