//! SUM and AVG.
//!
//! ```text
//! argument               runs in   SUM is          AVG is
//! tinyint .. int, bit    i64       int             int, cut towards zero
//! bigint                 i128      bigint          bigint, cut towards zero
//! decimal(p,s)           i128      decimal(38,s)   decimal(38,max(s,6)), cut
//! money                  i128      money           money, cut
//! real, float            f64       float           float
//! ```
//! What is too large for the result fails with 8115 when it is handed out. Between threads go the running sum and the count.

use crate::aggregate::{Accumulator, GroupIds};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, Int64Array, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use std::sync::Arc;
use thawdb_types::error::message;
use thawdb_types::{ColumnBuilder, Scalar, SqlError, SqlType};

/// A type sums run in.
trait Running: ArrowNativeType {
    /// The same as a column's.
    type Column: ArrowPrimitiveType<Native = Self>;
    fn add(self, value: Self) -> Option<Self>;
    /// The result of a group; `None` if it does not fit.
    fn result(self, count: i64, shape: &Shape) -> Option<Scalar>;
}

/// What is asked of a sum.
#[derive(Clone, Copy)]
struct Shape {
    argument: SqlType,
    result: SqlType,
    average: bool,
}

impl Running for i64 {
    type Column = Int64Type;

    #[inline]
    fn add(self, value: Self) -> Option<Self> {
        // 2^32 rows of an int cannot reach 2^63; a longer input is beyond COUNT too.
        Some(self.wrapping_add(value))
    }

    fn result(self, count: i64, shape: &Shape) -> Option<Scalar> {
        i128::from(self).result(count, shape)
    }
}

impl Running for i128 {
    type Column = Decimal128Type;

    #[inline]
    fn add(self, value: Self) -> Option<Self> {
        self.checked_add(value)
    }

    fn result(self, count: i64, shape: &Shape) -> Option<Scalar> {
        let mut value = self;
        if let (SqlType::Decimal { scale, .. }, SqlType::Decimal { scale: from, .. }) = (shape.result, shape.argument) {
            value = value.checked_mul(10i128.pow(u32::from(scale.saturating_sub(from))))?;
        }
        if shape.average {
            value /= i128::from(count);
        }
        match shape.result {
            SqlType::TinyInt => u8::try_from(value).ok().map(Scalar::TinyInt),
            SqlType::SmallInt => i16::try_from(value).ok().map(Scalar::SmallInt),
            SqlType::Int => i32::try_from(value).ok().map(Scalar::Int),
            SqlType::BigInt => i64::try_from(value).ok().map(Scalar::BigInt),
            SqlType::Money | SqlType::SmallMoney => i64::try_from(value).ok().map(Scalar::Money),
            SqlType::Decimal { precision, .. } => {
                (value.unsigned_abs() < 10u128.pow(u32::from(precision))).then_some(Scalar::Decimal(value))
            }
            SqlType::Float => Some(Scalar::Float(value as f64)),
            _ => None,
        }
    }
}

impl Running for f64 {
    type Column = Float64Type;

    #[inline]
    fn add(self, value: Self) -> Option<Self> {
        Some(self + value)
    }

    fn result(self, count: i64, shape: &Shape) -> Option<Scalar> {
        let value = if shape.average { self / count as f64 } else { self };
        match shape.result {
            SqlType::Real => value.is_finite().then_some(Scalar::Real(value as f32)),
            _ => value.is_finite().then_some(Scalar::Float(value)),
        }
    }
}

struct Sum<A: ArrowPrimitiveType, R> {
    shape: Shape,
    sums: Vec<R>,
    counts: Vec<i64>,
    widen: fn(A::Native) -> R,
}

/// States for SUM (or AVG) of `argument`.
pub(super) fn accumulator(argument: SqlType, result: SqlType, average: bool) -> Box<dyn Accumulator> {
    fn new<A: ArrowPrimitiveType, R: Running>(shape: Shape, widen: fn(A::Native) -> R) -> Box<dyn Accumulator> {
        Box::new(Sum::<A, R> { shape, sums: Vec::new(), counts: Vec::new(), widen })
    }
    let shape = Shape { argument, result, average };
    match argument {
        SqlType::TinyInt => new::<UInt8Type, i64>(shape, i64::from),
        SqlType::SmallInt => new::<Int16Type, i64>(shape, i64::from),
        SqlType::Int => new::<Int32Type, i64>(shape, i64::from),
        SqlType::Decimal { .. } => new::<Decimal128Type, i128>(shape, |v| v),
        SqlType::Real => new::<Float32Type, f64>(shape, f64::from),
        SqlType::Float => new::<Float64Type, f64>(shape, |v| v),
        _ => new::<Int64Type, i128>(shape, i128::from),
    }
}

/// The type that sums of `argument` run in.
pub(super) fn running_type(argument: &SqlType) -> SqlType {
    match argument {
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int => SqlType::BigInt,
        SqlType::Real | SqlType::Float => SqlType::Float,
        _ => SqlType::numeric(38, 0),
    }
}

impl<A: ArrowPrimitiveType, R: Running> Sum<A, R> {
    #[inline]
    fn add(&mut self, group: usize, value: A::Native) -> bool {
        match self.sums[group].add((self.widen)(value)) {
            Some(sum) => {
                self.sums[group] = sum;
                self.counts[group] += 1;
                true
            }
            None => false,
        }
    }

    fn add_all(&mut self, groups: &GroupIds<'_>, array: &PrimitiveArray<A>) -> bool {
        match (groups.ids, array.nulls()) {
            (Some(ids), None) => ids.iter().zip(array.values()).all(|(id, value)| self.add(*id as usize, *value)),
            (None, None) => array.values().iter().all(|value| self.add(0, *value)),
            (_, Some(nulls)) => nulls.valid_indices().all(|row| self.add(groups.of(row), array.values()[row])),
        }
    }

    fn overflow(&self) -> SqlError {
        message(8115, &[&"expression", &self.shape.result.message_name()])
    }
}

impl<A: ArrowPrimitiveType, R: Running> Accumulator for Sum<A, R> {
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError> {
        self.sums.resize(groups.group_count, R::default());
        self.counts.resize(groups.group_count, 0);
        let array = argument.expect("SUM and AVG have an argument").as_primitive::<A>();
        if self.add_all(groups, array) { Ok(array.null_count() > 0) } else { Err(self.overflow()) }
    }

    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError> {
        let mut builder = ColumnBuilder::new(&self.shape.result, group_count);
        let (sums, counts) = (std::mem::take(&mut self.sums), std::mem::take(&mut self.counts));
        for group in 0..group_count {
            match counts.get(group) {
                Some(&count) if count > 0 => {
                    builder.append(&sums[group].result(count, &self.shape).ok_or_else(|| self.overflow())?);
                }
                _ => builder.append_null(),
            }
        }
        Ok(builder.finish())
    }

    fn peek(&self) -> Result<ArrayRef, SqlError> {
        Self { shape: self.shape, sums: self.sums.clone(), counts: self.counts.clone(), widen: self.widen }.finish(1)
    }

    fn hand_over(&mut self, group_count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        let (mut sums, mut counts) = (std::mem::take(&mut self.sums), std::mem::take(&mut self.counts));
        sums.resize(group_count, R::default());
        counts.resize(group_count, 0);
        // With the data type that the column's SQL type has, lest pieces of it differ.
        let data_type = running_type(&self.shape.argument).arrow_type();
        let sums = PrimitiveArray::<R::Column>::from_iter_values(sums).with_data_type(data_type);
        Ok(vec![Arc::new(sums), Arc::new(Int64Array::from(counts))])
    }

    fn join(&mut self, groups: &GroupIds<'_>, partial: &[ArrayRef]) -> Result<(), SqlError> {
        self.sums.resize(groups.group_count, R::default());
        self.counts.resize(groups.group_count, 0);
        let (sums, counts) = (partial[0].as_primitive::<R::Column>(), partial[1].as_primitive::<Int64Type>());
        for (row, (sum, count)) in sums.values().iter().zip(counts.values()).enumerate() {
            let group = groups.of(row);
            self.sums[group] = self.sums[group].add(*sum).ok_or_else(|| self.overflow())?;
            self.counts[group] += count;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<R>() + self.counts.capacity() * size_of::<i64>()
    }
}
