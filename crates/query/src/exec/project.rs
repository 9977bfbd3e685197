//! Expressions over each row. A column passed through is shared, not copied.

use crate::eval::eval_array;
use crate::exec::{Batch, BoxOperator, Cx, Operator};
use crate::expr::Expr;
use thawdb_types::SqlError;

pub(super) struct Project<'p> {
    input: BoxOperator<'p>,
    exprs: &'p [Expr],
}

impl<'p> Project<'p> {
    pub(super) fn new(input: BoxOperator<'p>, exprs: &'p [Expr]) -> Self {
        Self { input, exprs }
    }
}

impl<'p> Operator<'p> for Project<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.input.open(cx)
    }

    fn row_goal(&mut self, rows: u64) {
        self.input.row_goal(rows);
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let Some(batch) = self.input.next(cx)? else { return Ok(None) };
        let columns = self.exprs.iter().map(|e| eval_array(e, &batch, cx)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Batch::new(columns, batch.rows)))
    }
}
