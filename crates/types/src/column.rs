//! Scalars into and out of Arrow arrays, by the table at the head of [`crate::sql_type`].
//!
//! [`ColumnBuilder`] is one typed Arrow builder chosen once per column; its variants are public so that hot loops
//! (the row codec, the wire reader) can take the inner builder and append without asking for the type per value.
//!
//! Invariant: a builder made for a type yields an array of exactly that type's `arrow_type()` ([`ColumnBuilder::finish`]).
//! Appending a scalar of another type is our own mistake and panics with the two named; [`Scalar::Null`] always fits.

use crate::{Scalar, SqlType};
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Decimal128Builder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, UInt8Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::DataType;
use std::sync::Arc;

/// A growing column of one type.
#[derive(Debug)]
#[allow(missing_docs)] // each variant is the Arrow builder of its name
pub enum ColumnBuilder {
    Boolean(BooleanBuilder),
    UInt8(UInt8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Decimal(Decimal128Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Fixed(FixedSizeBinaryBuilder),
    Text(StringBuilder),
    Binary(BinaryBuilder),
}

impl ColumnBuilder {
    /// A builder for `sql_type` with room for `capacity` values.
    pub fn new(sql_type: &SqlType, capacity: usize) -> Self {
        match sql_type.arrow_type() {
            DataType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(capacity)),
            DataType::UInt8 => Self::UInt8(UInt8Builder::with_capacity(capacity)),
            DataType::Int16 => Self::Int16(Int16Builder::with_capacity(capacity)),
            DataType::Int32 => Self::Int32(Int32Builder::with_capacity(capacity)),
            DataType::Int64 => Self::Int64(Int64Builder::with_capacity(capacity)),
            decimal @ DataType::Decimal128(..) => Self::Decimal(Decimal128Builder::with_capacity(capacity).with_data_type(decimal)),
            DataType::Float32 => Self::Float32(Float32Builder::with_capacity(capacity)),
            DataType::Float64 => Self::Float64(Float64Builder::with_capacity(capacity)),
            DataType::FixedSizeBinary(width) => Self::Fixed(FixedSizeBinaryBuilder::with_capacity(capacity, width)),
            DataType::Utf8 => Self::Text(StringBuilder::with_capacity(capacity, 0)),
            DataType::Binary => Self::Binary(BinaryBuilder::with_capacity(capacity, 0)),
            other => unreachable!("no SQL type is laid out as {other}"),
        }
    }

    /// Appends NULL.
    pub fn append_null(&mut self) {
        match self {
            Self::Boolean(b) => b.append_null(),
            Self::UInt8(b) => b.append_null(),
            Self::Int16(b) => b.append_null(),
            Self::Int32(b) => b.append_null(),
            Self::Int64(b) => b.append_null(),
            Self::Decimal(b) => b.append_null(),
            Self::Float32(b) => b.append_null(),
            Self::Float64(b) => b.append_null(),
            Self::Fixed(b) => b.append_null(),
            Self::Text(b) => b.append_null(),
            Self::Binary(b) => b.append_null(),
        }
    }

    /// Appends `count` NULLs.
    pub fn append_nulls(&mut self, count: usize) {
        for _ in 0..count {
            self.append_null();
        }
    }

    /// Appends a value of the column's type or NULL.
    pub fn append(&mut self, value: &Scalar) {
        match (self, value) {
            (this, Scalar::Null) => this.append_null(),
            (Self::Boolean(b), Scalar::Bit(v)) => b.append_value(*v),
            (Self::UInt8(b), Scalar::TinyInt(v)) => b.append_value(*v),
            (Self::Int16(b), Scalar::SmallInt(v)) => b.append_value(*v),
            (Self::Int32(b), Scalar::Int(v) | Scalar::Date(v)) => b.append_value(*v),
            (
                Self::Int64(b),
                Scalar::BigInt(v)
                | Scalar::Money(v)
                | Scalar::Time(v)
                | Scalar::DateTime(v)
                | Scalar::SmallDateTime(v)
                | Scalar::DateTime2(v),
            ) => b.append_value(*v),
            (Self::Decimal(b), Scalar::Decimal(v)) => b.append_value(*v),
            (Self::Float32(b), Scalar::Real(v)) => b.append_value(*v),
            (Self::Float64(b), Scalar::Float(v)) => b.append_value(*v),
            (Self::Fixed(b), Scalar::Guid(v)) => b.append_value(v).expect("the column of a guid is 16 bytes wide"),
            (Self::Fixed(b), Scalar::DateTimeOffset(utc, minutes)) => {
                b.append_value(offset_bytes(*utc, *minutes)).expect("the column of a datetimeoffset is 10 bytes wide");
            }
            (Self::Text(b), Scalar::Text(v)) => b.append_value(v),
            (Self::Binary(b), Scalar::Binary(v)) => b.append_value(v),
            (this, value) => panic!("a column of {} cannot take {value:?}", this.kind()),
        }
    }

    /// Values so far.
    pub fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        match self {
            Self::Boolean(b) => b.len(),
            Self::UInt8(b) => b.len(),
            Self::Int16(b) => b.len(),
            Self::Int32(b) => b.len(),
            Self::Int64(b) => b.len(),
            Self::Decimal(b) => b.len(),
            Self::Float32(b) => b.len(),
            Self::Float64(b) => b.len(),
            Self::Fixed(b) => b.len(),
            Self::Text(b) => b.len(),
            Self::Binary(b) => b.len(),
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array of everything appended; the builder is empty again.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Boolean(b) => Arc::new(b.finish()),
            Self::UInt8(b) => Arc::new(b.finish()),
            Self::Int16(b) => Arc::new(b.finish()),
            Self::Int32(b) => Arc::new(b.finish()),
            Self::Int64(b) => Arc::new(b.finish()),
            Self::Decimal(b) => Arc::new(b.finish()),
            Self::Float32(b) => Arc::new(b.finish()),
            Self::Float64(b) => Arc::new(b.finish()),
            Self::Fixed(b) => Arc::new(b.finish()),
            Self::Text(b) => Arc::new(b.finish()),
            Self::Binary(b) => Arc::new(b.finish()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Boolean(_) => "Boolean",
            Self::UInt8(_) => "UInt8",
            Self::Int16(_) => "Int16",
            Self::Int32(_) => "Int32",
            Self::Int64(_) => "Int64",
            Self::Decimal(_) => "Decimal128",
            Self::Float32(_) => "Float32",
            Self::Float64(_) => "Float64",
            Self::Fixed(_) => "FixedSizeBinary",
            Self::Text(_) => "Utf8",
            Self::Binary(_) => "Binary",
        }
    }
}

/// The ten bytes of a datetimeoffset in its Arrow column.
pub fn offset_bytes(utc: i64, minutes: i16) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&utc.to_le_bytes());
    bytes[8..].copy_from_slice(&minutes.to_le_bytes());
    bytes
}

/// The instant (100 ns since 0001-01-01 UTC) and offset in minutes of a datetimeoffset's ten bytes.
pub fn offset_parts(bytes: &[u8]) -> (i64, i16) {
    let utc = i64::from_le_bytes(bytes[..8].try_into().expect("a datetimeoffset is 10 bytes"));
    (utc, i16::from_le_bytes(bytes[8..10].try_into().expect("a datetimeoffset is 10 bytes")))
}

/// Value `index` of a column of `sql_type`.
///
/// Panics if the array is not laid out as `sql_type` says or is shorter: both are mistakes of the plan.
pub fn scalar_at(array: &dyn Array, index: usize, sql_type: &SqlType) -> Scalar {
    if array.is_null(index) {
        return Scalar::Null;
    }
    let long = || array.as_primitive::<Int64Type>().value(index);
    match sql_type {
        SqlType::Bit => Scalar::Bit(array.as_boolean().value(index)),
        SqlType::TinyInt => Scalar::TinyInt(array.as_primitive::<UInt8Type>().value(index)),
        SqlType::SmallInt => Scalar::SmallInt(array.as_primitive::<Int16Type>().value(index)),
        SqlType::Int => Scalar::Int(array.as_primitive::<Int32Type>().value(index)),
        SqlType::BigInt => Scalar::BigInt(long()),
        SqlType::Decimal { .. } => Scalar::Decimal(array.as_primitive::<Decimal128Type>().value(index)),
        SqlType::Money | SqlType::SmallMoney => Scalar::Money(long()),
        SqlType::Real => Scalar::Real(array.as_primitive::<Float32Type>().value(index)),
        SqlType::Float => Scalar::Float(array.as_primitive::<Float64Type>().value(index)),
        SqlType::Date => Scalar::Date(array.as_primitive::<Int32Type>().value(index)),
        SqlType::Time { .. } => Scalar::Time(long()),
        SqlType::DateTime => Scalar::DateTime(long()),
        SqlType::SmallDateTime => Scalar::SmallDateTime(long()),
        SqlType::DateTime2 { .. } => Scalar::DateTime2(long()),
        SqlType::DateTimeOffset { .. } => {
            let (utc, minutes) = offset_parts(array.as_fixed_size_binary().value(index));
            Scalar::DateTimeOffset(utc, minutes)
        }
        SqlType::UniqueIdentifier => {
            Scalar::Guid(array.as_fixed_size_binary().value(index).try_into().expect("the column of a guid is 16 bytes wide"))
        }
        SqlType::Char { .. }
        | SqlType::VarChar { .. }
        | SqlType::NChar { .. }
        | SqlType::NVarChar { .. }
        | SqlType::Text { .. }
        | SqlType::NText { .. }
        | SqlType::Xml => Scalar::Text(array.as_string::<i32>().value(index).to_string()),
        SqlType::Binary { .. }
        | SqlType::VarBinary { .. }
        | SqlType::Image
        | SqlType::RowVersion
        | SqlType::SqlVariant
        | SqlType::HierarchyId => Scalar::Binary(array.as_binary::<i32>().value(index).to_vec()),
    }
}

/// A column of `length` times the same value.
pub fn array_from_scalar(sql_type: &SqlType, value: &Scalar, length: usize) -> ArrayRef {
    if *value == Scalar::Null {
        return new_null_array(&sql_type.arrow_type(), length);
    }
    let mut builder = ColumnBuilder::new(sql_type, length);
    for _ in 0..length {
        builder.append(value);
    }
    builder.finish()
}

/// A column of the given values, each of `sql_type` or NULL.
pub fn array_from_scalars<'a>(sql_type: &SqlType, values: impl IntoIterator<Item = &'a Scalar>) -> ArrayRef {
    let mut builder = ColumnBuilder::new(sql_type, 0);
    values.into_iter().for_each(|value| builder.append(value));
    builder.finish()
}

/// A column without values.
pub fn empty_array(sql_type: &SqlType) -> ArrayRef {
    arrow_array::new_empty_array(&sql_type.arrow_type())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_round_trips() {
        for (sql_type, value) in crate::value::samples() {
            let array = array_from_scalars(&sql_type, [&value, &Scalar::Null]);
            assert_eq!(array.data_type(), &sql_type.arrow_type(), "{}", sql_type.name());
            assert_eq!(scalar_at(&array, 0, &sql_type), value, "{}", sql_type.name());
            assert_eq!(scalar_at(&array, 1, &sql_type), Scalar::Null);
            let three = array_from_scalar(&sql_type, &value, 3);
            assert_eq!((three.len(), scalar_at(&three, 2, &sql_type)), (3, value));
            assert_eq!(array_from_scalar(&sql_type, &Scalar::Null, 2).null_count(), 2);
        }
    }
}
