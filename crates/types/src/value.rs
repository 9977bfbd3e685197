//! One value.

/// A value of some SQL type. The type itself travels beside it: see the table in [`crate::sql_type`].
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // each variant is the Arrow value of the table in `sql_type`
pub enum Scalar {
    Null,
    Bit(bool),
    TinyInt(u8),
    SmallInt(i16),
    Int(i32),
    BigInt(i64),
    /// The unscaled integer; precision and scale are the type's.
    Decimal(i128),
    /// Ten-thousandths; money and smallmoney.
    Money(i64),
    Real(f32),
    Float(f64),
    /// Days since 0001-01-01.
    Date(i32),
    /// 100 ns since midnight.
    Time(i64),
    /// 1/300 s since 1900-01-01.
    DateTime(i64),
    /// Minutes since 1900-01-01.
    SmallDateTime(i64),
    /// 100 ns since 0001-01-01.
    DateTime2(i64),
    /// 100 ns since 0001-01-01 UTC, and the offset in minutes.
    DateTimeOffset(i64, i16),
    /// Every character type.
    Text(String),
    /// Every binary type.
    Binary(Vec<u8>),
    Guid([u8; 16]),
}
