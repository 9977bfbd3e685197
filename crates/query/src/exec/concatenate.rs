//! UNION ALL: the rows of each input in turn. An input is opened when its turn comes.

use crate::exec::{Batch, BoxOperator, Cx, Operator};
use thawdb_types::SqlError;

pub(super) struct Concatenate<'p> {
    inputs: Vec<BoxOperator<'p>>,
    at: usize,
}

impl<'p> Concatenate<'p> {
    pub(super) fn new(inputs: Vec<BoxOperator<'p>>) -> Self {
        Self { inputs, at: 0 }
    }
}

impl<'p> Operator<'p> for Concatenate<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.at = 0;
        self.inputs.first_mut().map_or(Ok(()), |first| first.open(cx))
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if let Some(batch) = input.next(cx)? {
                return Ok(Some(batch));
            }
            self.at += 1;
            if let Some(input) = self.inputs.get_mut(self.at) {
                input.open(cx)?;
            }
        }
        Ok(None)
    }

    fn row_goal(&mut self, rows: u64) {
        self.inputs.iter_mut().for_each(|input| input.row_goal(rows));
    }
}
