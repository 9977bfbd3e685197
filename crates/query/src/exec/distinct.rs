//! The first of each set of equal rows, in the order they come. NULLs are equal to each other here.
//!
//! It streams: a row is put out as soon as it is seen to be new. When the keys fill their share of the memory, no more are
//! taken in: rows of those that are there are dropped as before, others are set aside by hash and put out in the end.

use crate::exec::batch::{BATCH_ROWS, Rows};
use crate::exec::hash_spill::{HashSpill, HashedRows};
use crate::exec::key_table::{KeyTable, hash_bytes};
use crate::exec::keys::KeyColumns;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::phys::Node;
use arrow_buffer::BooleanBuffer;
use thawdb_types::{SqlError, SqlType};

pub(super) struct Distinct<'p> {
    input: BoxOperator<'p>,
    types: Vec<SqlType>,
    seen: KeyTable,
    held: usize,
    aside: Option<HashSpill>,
    back: Option<HashedRows>,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: &'p Node) -> Self {
        let types = input.columns.iter().map(|c| c.sql_type).collect();
        Self { input: build(input), types, seen: KeyTable::new(), held: 0, aside: None, back: None }
    }

    /// Sets the rows aside whose keys are not in the full table.
    fn set_aside(&mut self, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let keys = KeyColumns { arrays: &batch.columns, types: &self.types };
        let aside = self.aside.as_mut().expect("rows are set aside once there is a place");
        let mut key = Vec::new();
        for row in 0..batch.rows {
            keys.encode(row, &mut key);
            if self.seen.find(&key).is_none() {
                aside.push(hash_bytes(&key), &batch.columns, row, cx)?;
            }
        }
        Ok(())
    }

    fn next_new(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(batch) = self.input.next(cx)? {
            if self.aside.is_some() {
                self.set_aside(&batch, cx)?;
                continue;
            }
            let kept = batch.filter(&new_rows(&mut self.seen, &batch, &self.types));
            if !cx.hold(&mut self.held, self.seen.memory_bytes()) {
                self.aside = Some(HashSpill::new(self.types.clone(), cx));
                cx.hold(&mut self.held, self.seen.memory_bytes() + HashSpill::memory_bytes(cx));
            }
            if kept.rows > 0 {
                return Ok(Some(kept));
            }
        }
        if let Some(aside) = self.aside.take() {
            self.back = Some(aside.finish(cx)?);
            self.seen = KeyTable::new();
        }
        Ok(None)
    }

    fn next_back(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(back) = &mut self.back
            && let Some(part) = back.next(BATCH_ROWS, u64::MAX, cx)?
        {
            cx.host.check_cancelled()?;
            let kept = part.batch.filter(&new_rows(&mut self.seen, &part.batch, &self.types));
            let bytes = self.seen.memory_bytes() + HashSpill::memory_bytes(cx);
            if !cx.hold(&mut self.held, bytes) && part.ends_hash {
                self.seen = KeyTable::new();
            }
            if kept.rows > 0 {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }

    fn reset(&mut self, cx: &mut Cx<'p, '_>) {
        (self.seen, self.aside, self.back) = (KeyTable::new(), None, None);
        cx.hold(&mut self.held, 0);
    }
}

/// Enters the keys of a batch and tells which rows were new.
pub(super) fn new_rows(seen: &mut KeyTable, batch: &Batch, types: &[SqlType]) -> BooleanBuffer {
    let keys = KeyColumns { arrays: &batch.columns, types };
    let mut key = Vec::new();
    BooleanBuffer::collect_bool(batch.rows, |row| {
        keys.encode(row, &mut key);
        seen.insert(&key).1
    })
}

impl<'p> Operator<'p> for Distinct<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.reset(cx);
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        if self.back.is_none() {
            if let Some(batch) = self.next_new(cx)? {
                return Ok(Some(batch));
            }
        }
        let batch = self.next_back(cx)?;
        if batch.is_none() {
            self.reset(cx);
        }
        Ok(batch)
    }
}
