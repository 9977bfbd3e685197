//! Rows of a statement that an INSTEAD OF trigger takes: worked out, kept by the host, nothing written.
//!
//! The trigger runs when all rows are known, so the input is never met by changes of its own. Values are fitted to the
//! columns' types and lengths (2628); NULL in a column that may not have it is the trigger's to care about.

use crate::eval::eval_array;
use crate::exec::assignment::fit;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::Node;
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::SqlError;

pub(super) struct Instead<'p> {
    input: BoxOperator<'p>,
    table: &'p Arc<TableDef>,
    old_columns: &'p [usize],
    new: &'p [Expr],
    output: &'p [Expr],
}

impl<'p> Instead<'p> {
    pub(super) fn new(table: &'p Arc<TableDef>, input: &'p Node, old_columns: &'p [usize], new: &'p [Expr], output: &'p [Expr]) -> Self {
        Self { input: build(input), table, old_columns, new, output }
    }

    fn new_columns(&self, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        let mut columns = Vec::with_capacity(self.new.len());
        for (column, expr) in self.table.columns.iter().zip(self.new) {
            let values = eval_array(expr, batch, cx)?;
            columns.push(fit(self.table, column, &values, &expr.sql_type, cx)?);
        }
        Ok(columns)
    }
}

impl<'p> Operator<'p> for Instead<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(batch) = self.input.next(cx)? {
            cx.host.check_cancelled()?;
            let old: Vec<ArrayRef> = self.old_columns.iter().map(|at| batch.columns[*at].clone()).collect();
            let new = self.new_columns(&batch, cx)?;
            cx.host.note_rows(self.table, &old, &new, batch.rows)?;
            cx.state.rows_affected += batch.rows as u64;
            if !self.output.is_empty() {
                let rows = batch.rows;
                let all = Batch::new(old.into_iter().chain(new).chain(batch.columns).collect(), rows);
                let output = self.output.iter().map(|e| eval_array(e, &all, cx)).collect::<Result<Vec<_>, _>>()?;
                return Ok(Some(Batch::new(output, rows)));
            }
        }
        Ok(None)
    }
}
