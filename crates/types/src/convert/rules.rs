//! Which type converts to which: the documented matrix of CAST and CONVERT.

use crate::SqlType;

/// Whether one type converts to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastRule {
    /// By itself, wherever the other type is wanted.
    Allowed,
    /// Only where CAST or CONVERT says so (257 otherwise).
    ExplicitOnly,
    /// Not at all (529).
    Never,
}

/// The kinds of type that behave alike in the matrix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Binary,
    Char,
    NChar,
    DateTime,
    Date,
    Time,
    DateTime2,
    Exact,
    Approximate,
    RowVersion,
    Guid,
    Image,
    Text,
    NText,
    Xml,
    Variant,
    Hierarchy,
}

fn kind(sql_type: &SqlType) -> Kind {
    use SqlType as T;
    match sql_type {
        T::Binary { .. } | T::VarBinary { .. } => Kind::Binary,
        T::Char { .. } | T::VarChar { .. } => Kind::Char,
        T::NChar { .. } | T::NVarChar { .. } => Kind::NChar,
        T::DateTime | T::SmallDateTime => Kind::DateTime,
        T::Date => Kind::Date,
        T::Time { .. } => Kind::Time,
        T::DateTime2 { .. } | T::DateTimeOffset { .. } => Kind::DateTime2,
        T::Bit | T::TinyInt | T::SmallInt | T::Int | T::BigInt | T::Decimal { .. } | T::Money | T::SmallMoney => Kind::Exact,
        T::Real | T::Float => Kind::Approximate,
        T::RowVersion => Kind::RowVersion,
        T::UniqueIdentifier => Kind::Guid,
        T::Image => Kind::Image,
        T::Text { .. } => Kind::Text,
        T::NText { .. } => Kind::NText,
        T::Xml => Kind::Xml,
        T::SqlVariant => Kind::Variant,
        T::HierarchyId => Kind::Hierarchy,
    }
}

/// Whether `from` converts to `to` by itself, only when told to, or never.
pub fn implicit_cast(from: &SqlType, to: &SqlType) -> CastRule {
    use CastRule::{Allowed as I, ExplicitOnly as E, Never as X};
    use Kind as K;
    if matches!(to, SqlType::SqlVariant) && from != to && !crate::variant::holds(from) {
        return X;
    }
    let (from, to) = (kind(from), kind(to));
    if from == to {
        return I;
    }
    match (from, to) {
        // Text and bytes become paths by themselves, paths only when told to.
        (K::Char | K::NChar | K::Binary, K::Hierarchy) => I,
        (K::Hierarchy, K::Char | K::NChar | K::Binary) => E,
        (K::Hierarchy, _) | (_, K::Hierarchy) => X,
        (K::Variant, K::Text | K::NText | K::Image | K::Xml | K::RowVersion) => X,
        (K::Variant, _) => E,
        (_, K::Variant) => I,

        (K::Binary, K::Date | K::Time | K::DateTime2) => E,
        (K::Binary, K::Approximate | K::Text | K::NText) => X,
        (K::Binary, _) => I,

        (K::Char, K::Binary | K::RowVersion) | (K::NChar, K::Binary | K::RowVersion) => E,
        (K::NChar, K::Image) => X,
        (K::Char | K::NChar, _) => I,

        (K::DateTime, K::Char | K::NChar | K::Date | K::Time | K::DateTime2) => I,
        (K::DateTime, K::Binary | K::Exact | K::Approximate | K::RowVersion) => E,
        (K::Date, K::Char | K::NChar | K::DateTime | K::DateTime2) => I,
        (K::Time, K::Char | K::NChar | K::DateTime | K::DateTime2) => I,
        (K::DateTime2, K::Char | K::NChar | K::DateTime | K::Date | K::Time) => I,
        (K::Date | K::Time | K::DateTime2, K::Binary) => E,
        (K::DateTime | K::Date | K::Time | K::DateTime2, _) => X,

        (K::Exact, K::Binary | K::Char | K::NChar | K::DateTime | K::Approximate | K::RowVersion) => I,
        (K::Approximate, K::Binary | K::Char | K::NChar | K::DateTime | K::Exact) => I,
        (K::Exact | K::Approximate, _) => X,

        (K::RowVersion, K::Binary | K::Char | K::DateTime | K::Exact | K::Image) => I,
        (K::RowVersion, _) => X,
        (K::Guid, K::Binary | K::Char | K::NChar) => I,
        (K::Guid, _) => X,

        (K::Image, K::Binary | K::RowVersion) => I,
        (K::Image, _) => X,
        (K::Text, K::Char | K::NChar | K::NText) => I,
        (K::NText, K::Char | K::NChar | K::Text) => I,
        (K::Text | K::NText, K::Xml) => E,
        (K::Text | K::NText, _) => X,
        (K::Xml, K::Char | K::NChar | K::Binary) => E,
        (K::Xml, _) => X,
    }
}

/// Whether CAST and CONVERT take `from` to `to`: [`CastRule::Allowed`] or [`CastRule::Never`].
pub fn explicit_cast(from: &SqlType, to: &SqlType) -> CastRule {
    if implicit_cast(from, to) == CastRule::Never { CastRule::Never } else { CastRule::Allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix() {
        use CastRule::{Allowed, ExplicitOnly, Never};
        for (from, to, rule) in [
            (SqlType::Int, SqlType::varchar(10), Allowed),
            (SqlType::varchar(10), SqlType::varbinary(10), ExplicitOnly),
            (SqlType::Date, SqlType::Int, Never),
            (SqlType::DateTime, SqlType::Int, ExplicitOnly),
            (SqlType::Int, SqlType::Date, Never),
            (SqlType::Int, SqlType::DateTime, Allowed),
            (SqlType::UniqueIdentifier, SqlType::Int, Never),
            (SqlType::varbinary(8), SqlType::Float, Never),
            (SqlType::Date, SqlType::Time { scale: 7 }, Never),
            (SqlType::Xml, SqlType::NVARCHAR_MAX, ExplicitOnly),
            (SqlType::Date, SqlType::SqlVariant, Allowed),
            (SqlType::NVARCHAR_MAX, SqlType::SqlVariant, Never),
            (SqlType::RowVersion, SqlType::SqlVariant, Never),
            (SqlType::SqlVariant, SqlType::Int, ExplicitOnly),
            (SqlType::SqlVariant, SqlType::NVARCHAR_MAX, ExplicitOnly),
            (SqlType::SqlVariant, SqlType::Xml, Never),
        ] {
            assert_eq!(implicit_cast(&from, &to), rule, "{} to {}", from.name(), to.name());
        }
    }
}
