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
    /// Every binary type; the bytes of [`crate::variant`] for sql_variant.
    Binary(Vec<u8>),
    Guid([u8; 16]),
}

impl Scalar {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// A character value.
    pub fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }

    /// The value of any integer type or bit, widened.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Bit(v) => Some(i64::from(*v)),
            Self::TinyInt(v) => Some(i64::from(*v)),
            Self::SmallInt(v) => Some(i64::from(*v)),
            Self::Int(v) => Some(i64::from(*v)),
            Self::BigInt(v) => Some(*v),
            _ => None,
        }
    }

    /// The text of a character value.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// One telling value of every type, for tests of this crate.
#[cfg(test)]
pub(crate) fn samples() -> Vec<(crate::SqlType, Scalar)> {
    use crate::{Collation, MaxLength, SqlType as T};
    let collation = Collation::DEFAULT;
    vec![
        (T::Bit, Scalar::Bit(true)),
        (T::TinyInt, Scalar::TinyInt(200)),
        (T::SmallInt, Scalar::SmallInt(-30000)),
        (T::Int, Scalar::Int(i32::MIN)),
        (T::BigInt, Scalar::BigInt(i64::MAX)),
        (T::decimal(9, 2), Scalar::Decimal(-123_456_789)),
        (T::decimal(18, 4), Scalar::Decimal(123_456_789_012_345_678)),
        (T::decimal(38, 10), Scalar::Decimal(-99_999_999_999_999_999_999_999_999_999_999_999_999)),
        (T::Money, Scalar::Money(-12_345)),
        (T::SmallMoney, Scalar::Money(i64::from(i32::MAX))),
        (T::Real, Scalar::Real(-1.5)),
        (T::Float, Scalar::Float(1e300)),
        (T::Date, Scalar::Date(738_000)),
        (T::Time { scale: 7 }, Scalar::Time(863_999_999_999)),
        (T::DateTime, Scalar::DateTime(-12_345_678)),
        (T::SmallDateTime, Scalar::SmallDateTime(60_000_000)),
        (T::DateTime2 { scale: 7 }, Scalar::DateTime2(638_000_000_000_000_001)),
        (T::DateTimeOffset { scale: 7 }, Scalar::DateTimeOffset(638_000_000_000_000_001, -330)),
        (T::Char { length: 5, collation }, Scalar::text("ab   ")),
        (T::varchar(20), Scalar::text("caf\u{e9}")),
        (T::NChar { length: 2, collation }, Scalar::text("\u{1F600}")),
        (T::nvarchar(20), Scalar::text("\u{65e5}\u{672c}\u{8a9e}")),
        (T::NVARCHAR_MAX, Scalar::text("x".repeat(5000))),
        (T::VarChar { length: MaxLength::Max, collation }, Scalar::text("")),
        (T::Binary { length: 3 }, Scalar::Binary(vec![0, 255, 0])),
        (T::varbinary(10), Scalar::Binary(vec![])),
        (T::VARBINARY_MAX, Scalar::Binary(vec![7; 9000])),
        (T::UniqueIdentifier, Scalar::Guid(*b"0123456789abcdef")),
        (T::HierarchyId, Scalar::Binary(vec![0x5A, 0xC0])),
        (T::RowVersion, Scalar::Binary(vec![0, 0, 0, 0, 0, 0, 7, 208])),
        (T::SqlVariant, Scalar::Binary(crate::variant::encode(&Scalar::Int(0), &T::Int))),
    ]
}

/// A type and a value of it, for property tests.
#[cfg(test)]
pub(crate) fn any_value() -> impl proptest::strategy::Strategy<Value = (crate::SqlType, Scalar)> {
    use proptest::prelude::*;
    let types: Vec<_> = samples().into_iter().map(|(t, _)| t).collect();
    proptest::sample::select(types).prop_flat_map(|t| (Just(t), value_of(t)))
}

/// A value of `sql_type`, often small and sometimes NULL, for property tests.
#[cfg(test)]
pub(crate) fn value_of(sql_type: crate::SqlType) -> proptest::strategy::BoxedStrategy<Scalar> {
    use crate::SqlType as T;
    use proptest::prelude::*;
    let long = prop_oneof![-3i64..3, any::<i32>().prop_map(i64::from)];
    let value = match sql_type {
        T::Bit => any::<bool>().prop_map(Scalar::Bit).boxed(),
        T::TinyInt => any::<u8>().prop_map(Scalar::TinyInt).boxed(),
        T::SmallInt => any::<i16>().prop_map(Scalar::SmallInt).boxed(),
        T::Int => any::<i32>().prop_map(Scalar::Int).boxed(),
        T::BigInt => any::<i64>().prop_map(Scalar::BigInt).boxed(),
        T::Decimal { precision, .. } => {
            let limit = 10i128.pow(u32::from(precision)) - 1;
            (-limit..=limit).prop_map(Scalar::Decimal).boxed()
        }
        T::Money => any::<i64>().prop_map(Scalar::Money).boxed(),
        T::SmallMoney => any::<i32>().prop_map(|v| Scalar::Money(i64::from(v))).boxed(),
        T::Real => proptest::num::f32::NORMAL.prop_map(Scalar::Real).boxed(),
        T::Float => prop_oneof![proptest::num::f64::NORMAL, Just(0.0), Just(-0.0)].prop_map(Scalar::Float).boxed(),
        T::Date => (0..3_652_059).prop_map(Scalar::Date).boxed(),
        T::Time { .. } => (0..864_000_000_000i64).prop_map(Scalar::Time).boxed(),
        T::DateTime => long.prop_map(Scalar::DateTime).boxed(),
        T::SmallDateTime => (0..65_535 * 1440i64).prop_map(Scalar::SmallDateTime).boxed(),
        T::DateTime2 { .. } => (0..3_155_378_976_000_000_000i64).prop_map(Scalar::DateTime2).boxed(),
        T::DateTimeOffset { .. } => {
            (0..3_155_378_976_000_000_000i64, -840..=840i16).prop_map(|(a, b)| Scalar::DateTimeOffset(a, b)).boxed()
        }
        T::UniqueIdentifier => any::<[u8; 16]>().prop_map(Scalar::Guid).boxed(),
        T::RowVersion => any::<[u8; 8]>().prop_map(|v| Scalar::Binary(v.to_vec())).boxed(),
        T::Binary { length } => proptest::collection::vec(0..4u8, usize::from(length)).prop_map(Scalar::Binary).boxed(),
        T::HierarchyId => proptest::sample::select(vec![vec![], vec![0x58], vec![0x5A, 0xC0], vec![0x68]]).prop_map(Scalar::Binary).boxed(),
        T::VarBinary { .. } | T::Image => proptest::collection::vec(0..4u8, 0..6).prop_map(Scalar::Binary).boxed(),
        T::SqlVariant => {
            proptest::sample::select(vec![T::Int, T::decimal(18, 4), T::Float, T::varchar(20), T::Date, T::Money, T::varbinary(10)])
                .prop_flat_map(|base| value_of(base).prop_map(move |value| (base, value)))
                .prop_map(|(base, value)| match value {
                    Scalar::Null => Scalar::Null,
                    value => Scalar::Binary(crate::variant::encode(&value, &base)),
                })
                .boxed()
        }
        _ => "[a-cA-C \u{e9}\u{c9}\u{301}\u{0}-\u{3}\u{65e5}]{0,5}"
            .prop_map(move |text| Scalar::Text(crate::convert::fit_text(text, &sql_type)))
            .boxed(),
    };
    prop_oneof![1 => Just(Scalar::Null), 12 => value].boxed()
}
