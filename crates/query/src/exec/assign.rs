//! SELECT @v = ...: assigns for every row, in order, so that a later row sees what an earlier one assigned.
//!
//! Without a row the variables keep their values. Rows are counted for `@@ROWCOUNT`, none are put out.

use crate::eval::{RowRef, eval_row};
use crate::exec::{Batch, BoxOperator, Cx, Operator};
use crate::expr::Expr;
use thawdb_types::SqlError;

pub(super) struct AssignVariables<'p> {
    input: BoxOperator<'p>,
    assignments: &'p [(usize, Expr)],
}

impl<'p> AssignVariables<'p> {
    pub(super) fn new(input: BoxOperator<'p>, assignments: &'p [(usize, Expr)]) -> Self {
        Self { input, assignments }
    }
}

impl<'p> Operator<'p> for AssignVariables<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let mut assigned = cx.state.rows_affected;
        while let Some(batch) = self.input.next(cx)? {
            for row in 0..batch.rows {
                for (variable, expr) in self.assignments {
                    let value = eval_row(expr, RowRef::at(&batch.columns, row), cx)?;
                    cx.host.set_variable(*variable, value);
                }
            }
            assigned += batch.rows as u64;
        }
        // Not added to what the input counted: an UPDATE below has counted the same rows.
        cx.state.rows_affected = assigned;
        Ok(None)
    }
}
