//! STRING_AGG: the texts of a group in the order they come, with a separator between them. NULLs are left out, silently.

use crate::aggregate::{Accumulator, GroupIds};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use std::sync::Arc;
use thawdb_types::SqlError;

pub(super) struct StringAgg {
    separator: String,
    groups: Vec<Option<String>>,
    text_bytes: usize,
}

impl StringAgg {
    pub(super) fn new(separator: String) -> Self {
        Self { separator, groups: Vec::new(), text_bytes: 0 }
    }
}

impl Accumulator for StringAgg {
    fn update(&mut self, groups: &GroupIds<'_>, argument: Option<&ArrayRef>) -> Result<bool, SqlError> {
        self.groups.resize(groups.group_count, None);
        let array = argument.expect("STRING_AGG has an argument").as_string::<i32>();
        for row in (0..groups.rows).filter(|row| array.is_valid(*row)) {
            let value = array.value(row);
            self.text_bytes += value.len() + self.separator.len();
            match &mut self.groups[groups.of(row)] {
                Some(text) => {
                    text.push_str(&self.separator);
                    text.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            }
        }
        Ok(false)
    }

    fn finish(&mut self, group_count: usize) -> Result<ArrayRef, SqlError> {
        let mut groups = std::mem::take(&mut self.groups);
        groups.resize(group_count, None);
        self.text_bytes = 0;
        Ok(Arc::new(StringArray::from(groups)))
    }

    fn memory_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Option<String>>() + self.text_bytes
    }
}
