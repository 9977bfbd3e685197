//! All rows of an input before the first of them is handed on: what keeps a change from meeting its own rows.
//!
//! A transaction sees its own changes, those of the running statement too. So where INSERT, UPDATE or DELETE reads what
//! it writes in a way that could come upon a row it has just written (the Halloween problem), its input is read to the
//! end first. Rows beyond the grant go to a file in the order they came.

use crate::exec::batch::{BATCH_ROWS, Rows};
use crate::exec::spill::{Spilled, encode_row, external_sort, failed};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::phys::Node;
use std::collections::VecDeque;
use thawdb_storage::sort::ExternalSort;
use thawdb_types::{SqlError, SqlType};

pub(super) struct Spool<'p> {
    input: BoxOperator<'p>,
    types: Vec<SqlType>,
    kept: VecDeque<Batch>,
    spilled: Option<Spilled>,
}

impl<'p> Spool<'p> {
    pub(super) fn new(input: &'p Node) -> Self {
        let types = input.columns.iter().map(|c| c.sql_type).collect();
        Self { input: build(input), types, kept: VecDeque::new(), spilled: None }
    }
}

fn spill(sort: &mut ExternalSort, batch: &Batch, types: &[SqlType], cx: &Cx<'_, '_>) -> Result<(), SqlError> {
    let mut bytes = Vec::new();
    for row in 0..batch.rows {
        bytes.clear();
        encode_row(&batch.columns, types, row, &mut bytes);
        let number = sort.row_count().to_be_bytes();
        sort.push(&number, &bytes).map_err(|e| failed(e, cx))?;
    }
    Ok(())
}

impl<'p> Operator<'p> for Spool<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.kept.clear();
        self.spilled = None;
        self.input.open(cx)?;
        let (mut bytes, mut sort) = (0, None);
        while let Some(batch) = self.input.next(cx)? {
            bytes += batch.memory_bytes();
            if sort.is_none() && bytes > cx.host.memory_grant_bytes() / 2 {
                sort = Some(external_sort(false, cx));
            }
            match &mut sort {
                Some(sort) => spill(sort, &batch, &self.types, cx)?,
                None => self.kept.push_back(batch),
            }
        }
        self.spilled = sort.map(|sort| Spilled::new(sort, self.types.clone())).transpose().map_err(|e| failed(e, cx))?;
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        if let Some(batch) = self.kept.pop_front() {
            return Ok(Some(batch));
        }
        match &mut self.spilled {
            Some(spilled) => spilled.next(BATCH_ROWS).map_err(|e| failed(e, cx)),
            None => Ok(None),
        }
    }
}
