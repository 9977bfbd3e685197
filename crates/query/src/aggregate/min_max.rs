//! MIN, MAX and "any value of the group".
//!
//! Integer-like columns keep one i64 a group; everything else keeps the value itself and asks `types::compare`.

use crate::aggregate::{Accumulator, GroupIds};
use crate::exec::{for_each_integer, is_integer_like};
use arrow_array::{Array, ArrayRef};
use std::cmp::Ordering;
use thawdb_types::compare::compare;
use thawdb_types::{ColumnBuilder, Scalar, SqlError, SqlType, scalar_at};

/// Which of a group's values stays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Least,
    Greatest,
    First,
}

impl Keep {
    fn replaces(self, new_to_old: Ordering) -> bool {
        match self {
            Self::Least => new_to_old == Ordering::Less,
            Self::Greatest => new_to_old == Ordering::Greater,
            Self::First => false,
        }
    }
}

pub(super) struct MinMax {
    sql_type: SqlType,
    keep: Keep,
    integers: Vec<Option<i64>>,
    values: Vec<Scalar>,
}

impl MinMax {
    pub(super) fn new(sql_type: SqlType, keep: Keep) -> Self {
        Self { sql_type, keep, integers: Vec::new(), values: Vec::new() }
    }

    fn update_integers(&mut self, groups: &GroupIds<'_>, array: &ArrayRef) {
        self.integers.resize(groups.group_count, None);
        let (integers, keep) = (&mut self.integers, self.keep);
        let mut row = 0;
        for_each_integer(array, &self.sql_type, |value| {
            if let Some(value) = value {
                let kept = &mut integers[groups.of(row)];
                if kept.is_none_or(|old| keep.replaces(value.cmp(&old))) {
                    *kept = Some(value);
                }
            }
            row += 1;
        });
    }

    fn integer_scalar(&self, value: i64) -> Scalar {
        match self.sql_type {
            SqlType::Bit => Scalar::Bit(value != 0),
            SqlType::TinyInt => Scalar::TinyInt(value as u8),
            SqlType::SmallInt => Scalar::SmallInt(value as i16),
            SqlType::Int => Scalar::Int(value as i32),
            SqlType::Date => Scalar::Date(value as i32),
            SqlType::Money | SqlType::SmallMoney => Scalar::Money(value),
            SqlType::Time { .. } => Scalar::Time(value),
            SqlType::DateTime => Scalar::DateTime(value),
            SqlType::SmallDateTime => Scalar::SmallDateTime(value),
            SqlType::DateTime2 { .. } => Scalar::DateTime2(value),
            _ => Scalar::BigInt(value),
        }
    }
}

impl Accumulator for MinMax {
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError> {
        let array = argument.expect("MIN and MAX have an argument");
        if is_integer_like(&self.sql_type) {
            self.update_integers(groups, array);
        } else {
            self.values.resize(groups.group_count, Scalar::Null);
            for row in 0..groups.rows {
                let value = scalar_at(array.as_ref(), row, &self.sql_type);
                let kept = &mut self.values[groups.of(row)];
                if !value.is_null() && (kept.is_null() || self.keep.replaces(compare(&value, kept, &self.sql_type))) {
                    *kept = value;
                }
            }
        }
        Ok(array.null_count() > 0 && self.keep != Keep::First)
    }

    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError> {
        let mut builder = ColumnBuilder::new(&self.sql_type, group_count);
        let (integers, values) = (std::mem::take(&mut self.integers), std::mem::take(&mut self.values));
        for group in 0..group_count {
            match (integers.get(group), values.get(group)) {
                (Some(Some(value)), _) => builder.append(&self.integer_scalar(*value)),
                (_, Some(value)) => builder.append(value),
                _ => builder.append_null(),
            }
        }
        Ok(builder.finish())
    }

    fn peek(&self) -> Result<ArrayRef, SqlError> {
        let (integers, values) = (self.integers.clone(), self.values.clone());
        Self { sql_type: self.sql_type, keep: self.keep, integers, values }.finish(1)
    }

    fn hand_over(&mut self, group_count: usize) -> Result<Vec<ArrayRef>, SqlError> {
        Ok(vec![self.finish(group_count)?])
    }

    fn join(&mut self, groups: &GroupIds<'_>, partial: &[ArrayRef]) -> Result<(), SqlError> {
        // A group's value is one of its rows'.
        self.update(groups, partial.first()).map(drop)
    }

    fn memory_bytes(&self) -> usize {
        self.integers.capacity() * size_of::<Option<i64>>() + self.values.capacity() * size_of::<Scalar>()
    }
}
