//! Bytes that are equal exactly when rows' values are: keys of hash joins, groups, DISTINCT and set operations.
//!
//! ```text
//! one value:  00                         NULL
//!             01 | little-endian bytes   fixed width
//!             01 | length u32 | bytes    text (folded as the collation says) and binary (trailing zeros off)
//! ```
//! The bytes have no order; ORDER BY uses `types::key`. Two NULLs are equal here: joins ask for them apart.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef};
use thawdb_types::collation::hash_key;
use thawdb_types::compare::trim_zeros;
use thawdb_types::key::{KeyColumn, encode_array_value};
use thawdb_types::{Collation, SqlType};

/// Columns a key is made of.
pub(super) struct KeyColumns<'a> {
    pub(super) arrays: &'a [ArrayRef],
    pub(super) types: &'a [SqlType],
}

impl KeyColumns<'_> {
    /// Puts the key of `row` in `out`, emptied first.
    pub(super) fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        for (array, sql_type) in self.arrays.iter().zip(self.types) {
            encode_value(array.as_ref(), row, sql_type, out);
        }
    }

    /// Whether any value of the key is NULL at `row`.
    pub(super) fn any_null(&self, row: usize) -> bool {
        self.arrays.iter().any(|a| a.is_null(row))
    }
}

/// A value as an integer, if the type is one whose equality is that of an integer: the case the fast tables take.
pub(crate) fn is_integer_like(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::Bit
            | SqlType::TinyInt
            | SqlType::SmallInt
            | SqlType::Int
            | SqlType::BigInt
            | SqlType::Money
            | SqlType::SmallMoney
            | SqlType::Date
            | SqlType::Time { .. }
            | SqlType::DateTime
            | SqlType::SmallDateTime
            | SqlType::DateTime2 { .. }
    )
}

/// Calls `each` with every row's value of an integer-like column, `None` for NULL.
pub(crate) fn for_each_integer(array: &ArrayRef, sql_type: &SqlType, mut each: impl FnMut(Option<i64>)) {
    macro_rules! run {
        ($array:expr) => {{
            let array = $array;
            match array.nulls() {
                None => array.values().iter().for_each(|v| each(Some(i64::from(*v)))),
                Some(nulls) => array.values().iter().zip(nulls).for_each(|(v, valid)| each(valid.then_some(i64::from(*v)))),
            }
        }};
    }
    match sql_type {
        SqlType::Bit => array.as_boolean().iter().for_each(|v| each(v.map(i64::from))),
        SqlType::TinyInt => run!(array.as_primitive::<UInt8Type>()),
        SqlType::SmallInt => run!(array.as_primitive::<Int16Type>()),
        SqlType::Int | SqlType::Date => run!(array.as_primitive::<Int32Type>()),
        _ => run!(array.as_primitive::<Int64Type>()),
    }
}

/// Appends the key bytes of one value.
pub(crate) fn encode_value(array: &dyn Array, row: usize, sql_type: &SqlType, out: &mut Vec<u8>) {
    if array.is_null(row) {
        out.push(0);
        return;
    }
    out.push(1);
    match sql_type {
        SqlType::Bit => out.push(u8::from(array.as_boolean().value(row))),
        SqlType::TinyInt => out.push(array.as_primitive::<UInt8Type>().value(row)),
        SqlType::SmallInt => out.extend(array.as_primitive::<Int16Type>().value(row).to_le_bytes()),
        SqlType::Int | SqlType::Date => out.extend(array.as_primitive::<Int32Type>().value(row).to_le_bytes()),
        SqlType::BigInt
        | SqlType::Money
        | SqlType::SmallMoney
        | SqlType::Time { .. }
        | SqlType::DateTime
        | SqlType::SmallDateTime
        | SqlType::DateTime2 { .. } => out.extend(array.as_primitive::<Int64Type>().value(row).to_le_bytes()),
        SqlType::Decimal { .. } => out.extend(array.as_primitive::<Decimal128Type>().value(row).to_le_bytes()),
        // Adding zero turns -0 into 0, which it equals.
        SqlType::Real => out.extend((array.as_primitive::<Float32Type>().value(row) + 0.0).to_le_bytes()),
        SqlType::Float => out.extend((array.as_primitive::<Float64Type>().value(row) + 0.0).to_le_bytes()),
        // Two datetimeoffsets of one instant are equal whatever their offsets.
        SqlType::DateTimeOffset { .. } => out.extend(&array.as_fixed_size_binary().value(row)[..8]),
        SqlType::UniqueIdentifier => out.extend(array.as_fixed_size_binary().value(row)),
        SqlType::Char { .. }
        | SqlType::VarChar { .. }
        | SqlType::NChar { .. }
        | SqlType::NVarChar { .. }
        | SqlType::Text { .. }
        | SqlType::NText { .. }
        | SqlType::Xml => with_length(out, |out| {
            hash_key(array.as_string::<i32>().value(row), sql_type.collation().unwrap_or(Collation::DEFAULT), out);
        }),
        SqlType::SqlVariant => with_length(out, |out| thawdb_types::variant::order_key(array.as_binary::<i32>().value(row), out)),
        SqlType::Binary { .. } | SqlType::VarBinary { .. } | SqlType::Image | SqlType::RowVersion | SqlType::HierarchyId => {
            with_length(out, |out| out.extend(trim_zeros(array.as_binary::<i32>().value(row))));
        }
    }
}

/// Lets `append` append bytes and puts their count before them, so that neighbours cannot run into each other.
fn with_length(out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend([0; 4]);
    append(out);
    let length = u32::try_from(out.len() - at - 4).expect("a value is below 2^31 bytes");
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends a value's part of a sort key: NULL lowest, turned over for descending.
pub(super) fn encode_order(array: &ArrayRef, row: usize, sql_type: &SqlType, descending: bool, out: &mut Vec<u8>) {
    encode_array_value(array, row, &KeyColumn { sql_type: *sql_type, nullable: true, descending }, out);
}
