//! Order of two values of the same type, as ORDER BY, `<` and MIN see it: NULL below everything.
//!
//! This is the order [`crate::key`] encodes; a property test there holds the two together. Three orders that surprise:
//! uniqueidentifier by its last six bytes first; binary values that differ only in zero bytes at the end are equal, as
//! texts that differ in blanks are; a datetimeoffset by its instant whatever its offset.

use crate::collation;
use crate::{Scalar, SqlType};
use std::cmp::Ordering;

/// The order in which SQL Server looks at the bytes of a uniqueidentifier.
pub const GUID_ORDER: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];

/// Order of two values of `sql_type`; NULL is lowest and equal to NULL.
pub fn compare(left: &Scalar, right: &Scalar, sql_type: &SqlType) -> Ordering {
    match (left, right) {
        (Scalar::Null, Scalar::Null) => Ordering::Equal,
        (Scalar::Null, _) => Ordering::Less,
        (_, Scalar::Null) => Ordering::Greater,
        _ => compare_values(left, right, sql_type),
    }
}

/// As a comparison operator has it: `None` (unknown) when either is NULL.
pub fn compare_sql(left: &Scalar, right: &Scalar, sql_type: &SqlType) -> Option<Ordering> {
    if left.is_null() || right.is_null() { None } else { Some(compare_values(left, right, sql_type)) }
}

fn compare_values(left: &Scalar, right: &Scalar, sql_type: &SqlType) -> Ordering {
    use Scalar as S;
    match (left, right) {
        (S::Bit(a), S::Bit(b)) => a.cmp(b),
        (S::TinyInt(a), S::TinyInt(b)) => a.cmp(b),
        (S::SmallInt(a), S::SmallInt(b)) => a.cmp(b),
        (S::Int(a), S::Int(b)) | (S::Date(a), S::Date(b)) => a.cmp(b),
        (S::BigInt(a), S::BigInt(b))
        | (S::Money(a), S::Money(b))
        | (S::Time(a), S::Time(b))
        | (S::DateTime(a), S::DateTime(b))
        | (S::SmallDateTime(a), S::SmallDateTime(b))
        | (S::DateTime2(a), S::DateTime2(b))
        | (S::DateTimeOffset(a, _), S::DateTimeOffset(b, _)) => a.cmp(b),
        (S::Decimal(a), S::Decimal(b)) => a.cmp(b),
        (S::Real(a), S::Real(b)) => compare_floats(f64::from(*a), f64::from(*b)),
        (S::Float(a), S::Float(b)) => compare_floats(*a, *b),
        (S::Text(a), S::Text(b)) => collation::compare(a, b, sql_type.collation().unwrap_or(crate::Collation::DEFAULT)),
        (S::Binary(a), S::Binary(b)) if *sql_type == SqlType::SqlVariant => {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            crate::variant::order_key(a, &mut left);
            crate::variant::order_key(b, &mut right);
            left.cmp(&right)
        }
        (S::Binary(a), S::Binary(b)) => compare_binary(a, b),
        (S::Guid(a), S::Guid(b)) => compare_guids(a, b),
        _ => panic!("{left:?} and {right:?} are not of one type"),
    }
}

/// Order of two floats; SQL Server stores no NaN and takes 0 and -0 for equal.
pub fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.total_cmp(&right))
}

/// Order of two binary values: zero bytes at the end do not count.
pub fn compare_binary(left: &[u8], right: &[u8]) -> Ordering {
    trim_zeros(left).cmp(trim_zeros(right))
}

/// `bytes` without the zero bytes at its end.
pub fn trim_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)]
}

/// Order of two uniqueidentifiers.
pub fn compare_guids(left: &[u8; 16], right: &[u8; 16]) -> Ordering {
    GUID_ORDER.map(|at| left[at]).cmp(&GUID_ORDER.map(|at| right[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprising_orders() {
        let guid = |last: u8, first: u8| {
            let mut bytes = [0; 16];
            (bytes[15], bytes[0]) = (last, first);
            Scalar::Guid(bytes)
        };
        assert_eq!(compare(&guid(1, 9), &guid(2, 1), &SqlType::UniqueIdentifier), Ordering::Less);
        let binary = |bytes: &[u8]| Scalar::Binary(bytes.to_vec());
        assert_eq!(compare(&binary(&[]), &binary(&[0]), &SqlType::varbinary(9)), Ordering::Equal);
        assert_eq!(compare(&Scalar::Null, &Scalar::Int(i32::MIN), &SqlType::Int), Ordering::Less);
        assert_eq!(compare_sql(&Scalar::Null, &Scalar::Int(1), &SqlType::Int), None);
        assert_eq!(compare(&Scalar::Float(0.0), &Scalar::Float(-0.0), &SqlType::Float), Ordering::Equal);
        let offset = SqlType::DateTimeOffset { scale: 7 };
        assert_eq!(compare(&Scalar::DateTimeOffset(5, 60), &Scalar::DateTimeOffset(5, 0), &offset), Ordering::Equal);
    }
}
