//! Rows with memcmp sort keys, ordered in memory: what Sort and TopN share.
//!
//! ```text
//! batches: as they came         entries: [ first 8 key bytes | rest of the key in the arena | batch, row ]
//! ```
//! Invariants: 1. the order is total and stable: entries with equal keys keep the order in which rows came (`compare`).
//! 2. A key of up to 8 bytes lives in its entry alone; prefixes of different lengths never tie falsely, because the
//! codec's keys are prefix-free.

use crate::eval::eval_array;
use crate::exec::batch::Rows;
use crate::exec::keys::{encode_order, for_each_integer, is_integer_like};
use crate::exec::spill::encode_row;
use crate::exec::{Batch, Cx};
use crate::phys::SortKey;
use arrow_array::ArrayRef;
use arrow_buffer::BooleanBufferBuilder;
use arrow_select::interleave::interleave;
use std::cmp::Ordering;
use thawdb_storage::StorageError;
use thawdb_storage::sort::ExternalSort;
use thawdb_types::{SqlError, SqlType};

/// Key bytes an entry holds itself.
const PREFIX_BYTES: usize = 8;

#[derive(Clone, Copy)]
struct Entry {
    prefix: u64,
    rest_at: usize,
    rest_bytes: u32,
    batch: u32,
    row: u32,
}

pub(super) struct SortBuffer<'p> {
    keys: &'p [SortKey],
    batches: Vec<Batch>,
    entries: Vec<Entry>,
    arena: Vec<u8>,
    batch_bytes: usize,
    scratch: Vec<u8>,
}

impl<'p> SortBuffer<'p> {
    pub(super) fn new(keys: &'p [SortKey]) -> Self {
        Self { keys, batches: Vec::new(), entries: Vec::new(), arena: Vec::new(), batch_bytes: 0, scratch: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.batches.clear();
        // The memory goes too: a spilled sort must not keep it.
        self.entries = Vec::new();
        self.arena = Vec::new();
        self.batch_bytes = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.batch_bytes + self.entries.capacity() * size_of::<Entry>() + self.arena.capacity()
    }

    /// Takes the rows in.
    pub(super) fn push(&mut self, batch: Batch, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        if batch.rows == 0 {
            return Ok(());
        }
        let arrays = self.keys.iter().map(|k| eval_array(&k.expr, &batch, cx)).collect::<Result<Vec<ArrayRef>, _>>()?;
        let batch_index = u32::try_from(self.batches.len()).expect("batches are fewer than rows");
        self.entries.reserve(batch.rows);
        for row in 0..batch.rows {
            self.scratch.clear();
            for (array, key) in arrays.iter().zip(self.keys) {
                encode_order(array, row, &key.expr.sql_type, key.descending, &mut self.scratch);
            }
            let (prefix, rest) = split_key(&self.scratch);
            self.entries.push(Entry {
                prefix,
                rest_at: self.arena.len(),
                rest_bytes: rest.len() as u32,
                batch: batch_index,
                row: row as u32,
            });
            self.arena.extend_from_slice(rest);
        }
        self.batch_bytes += batch.memory_bytes();
        self.batches.push(batch);
        Ok(())
    }

    /// First key of the last row of the buffer, which [`Self::truncate`] has just cut; `None` unless it is an integer.
    pub(super) fn last_first_key(&self, cx: &mut Cx<'p, '_>) -> Result<Option<i64>, SqlError> {
        let (Some(key), [kept]) = (self.keys.first(), &self.batches[..]) else { return Ok(None) };
        if !is_integer_like(&key.expr.sql_type) || kept.rows == 0 {
            return Ok(None);
        }
        let mut last = None;
        for_each_integer(&eval_array(&key.expr, kept, cx)?, &key.expr.sql_type, |value| last = value);
        Ok(last)
    }

    /// The rows of `batch` whose first key is not beyond `bound`.
    pub(super) fn not_beyond(&self, batch: Batch, bound: &i64, cx: &mut Cx<'p, '_>) -> Result<Batch, SqlError> {
        let key = &self.keys[0];
        let mut keep = BooleanBufferBuilder::new(batch.rows);
        // NULL is lowest.
        for_each_integer(&eval_array(&key.expr, &batch, cx)?, &key.expr.sql_type, |value| {
            keep.append(if key.descending { value.is_some_and(|v| v >= *bound) } else { value.is_none_or(|v| v <= *bound) });
        });
        Ok(batch.filter(&keep.finish()))
    }

    /// Hands every row to an external sort and holds none any more; the keys' order is the same there.
    pub(super) fn spill(&mut self, sort: &mut ExternalSort, types: &[SqlType]) -> Result<(), StorageError> {
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            key.clear();
            key.extend(entry.prefix.to_be_bytes());
            key.extend_from_slice(self.rest(entry));
            payload.clear();
            encode_row(&self.batches[entry.batch as usize].columns, types, entry.row as usize, &mut payload);
            sort.push(&key, &payload)?;
        }
        self.clear();
        Ok(())
    }

    fn rest(&self, entry: &Entry) -> &[u8] {
        rest(&self.arena, entry)
    }

    pub(super) fn sort(&mut self) {
        let arena = &self.arena;
        self.entries.sort_unstable_by(|a, b| {
            a.prefix.cmp(&b.prefix).then_with(|| rest(arena, a).cmp(rest(arena, b))).then_with(|| (a.batch, a.row).cmp(&(b.batch, b.row)))
        });
    }

    /// Whether two rows of the sorted buffer have the same key.
    pub(super) fn same_key(&self, left: usize, right: usize) -> bool {
        let (left, right) = (&self.entries[left], &self.entries[right]);
        left.prefix == right.prefix && self.rest(left).cmp(self.rest(right)) == Ordering::Equal
    }

    /// Rows `from..to` of the sorted buffer.
    pub(super) fn rows(&self, from: usize, to: usize) -> Batch {
        let places: Vec<(usize, usize)> = self.entries[from..to].iter().map(|e| (e.batch as usize, e.row as usize)).collect();
        let columns = (0..self.batches.first().map_or(0, |b| b.columns.len()))
            .map(|column| {
                let parts: Vec<_> = self.batches.iter().map(|b| b.columns[column].as_ref()).collect();
                interleave(&parts, &places).expect("batches of one operator have the same column types")
            })
            .collect();
        Batch::new(columns, to - from)
    }

    /// Sorts and keeps the first `limit` rows, and those with the key of the last of them if asked for; their memory is all
    /// that stays.
    pub(super) fn truncate(&mut self, limit: usize, with_ties: bool) {
        self.sort();
        let mut end = limit.min(self.entries.len());
        while with_ties && end > 0 && end < self.entries.len() && self.same_key(end - 1, end) {
            end += 1;
        }
        self.entries.truncate(end);
        let kept = self.rows(0, self.entries.len());
        let mut arena = Vec::new();
        for (row, entry) in self.entries.iter_mut().enumerate() {
            let at = arena.len();
            arena.extend_from_slice(rest(&self.arena, entry));
            (entry.rest_at, entry.batch, entry.row) = (at, 0, row as u32);
        }
        self.arena = arena;
        self.batch_bytes = kept.memory_bytes();
        self.batches = vec![kept];
    }
}

fn rest<'a>(arena: &'a [u8], entry: &Entry) -> &'a [u8] {
    &arena[entry.rest_at..entry.rest_at + entry.rest_bytes as usize]
}

fn split_key(key: &[u8]) -> (u64, &[u8]) {
    match key.split_first_chunk::<PREFIX_BYTES>() {
        Some((first, rest)) => (u64::from_be_bytes(*first), rest),
        None => {
            let mut first = [0; PREFIX_BYTES];
            first[..key.len()].copy_from_slice(key);
            (u64::from_be_bytes(first), &[])
        }
    }
}
