//! Rows for which a predicate is true: false and unknown are dropped alike.

use crate::eval::select;
use crate::exec::batch::Rows;
use crate::exec::{Batch, BoxOperator, Cx, Operator};
use crate::expr::Expr;
use thawdb_types::SqlError;

pub(super) struct Filter<'p> {
    input: BoxOperator<'p>,
    predicate: &'p Expr,
}

impl<'p> Filter<'p> {
    pub(super) fn new(input: BoxOperator<'p>, predicate: &'p Expr) -> Self {
        Self { input, predicate }
    }
}

impl<'p> Operator<'p> for Filter<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.input.open(cx)
    }

    fn row_goal(&mut self, rows: u64) {
        self.input.row_goal(rows);
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(batch) = self.input.next(cx)? {
            let kept = batch.filter(&select(self.predicate, &batch, cx)?);
            if kept.rows > 0 {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }
}
