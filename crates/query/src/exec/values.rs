//! Literal rows: VALUES, and the one row without columns of a SELECT without FROM.

use crate::eval::eval_free;
use crate::exec::batch::BATCH_ROWS;

use crate::exec::{Cx, Operator};
use crate::expr::Expr;
use crate::phys::OutputColumn;
use thawdb_types::{Batch, ColumnBuilder, SqlError};

pub(super) struct Values<'p> {
    rows: &'p [Vec<Expr>],
    columns: &'p [OutputColumn],
    row_count: usize,
    at: usize,
}

impl<'p> Values<'p> {
    pub(super) fn new(rows: &'p [Vec<Expr>], columns: &'p [OutputColumn]) -> Self {
        Self { rows, columns, row_count: rows.len(), at: 0 }
    }

    pub(super) fn one_row() -> Self {
        Self { rows: &[], columns: &[], row_count: 1, at: 0 }
    }
}

impl<'p> Operator<'p> for Values<'p> {
    fn open(&mut self, _cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let row_count = (self.row_count - self.at).min(BATCH_ROWS);
        if row_count == 0 {
            return Ok(None);
        }
        let mut builders: Vec<_> = self.columns.iter().map(|c| ColumnBuilder::new(&c.sql_type, row_count)).collect();
        for row in self.rows.iter().skip(self.at).take(row_count) {
            for (builder, expr) in builders.iter_mut().zip(row) {
                builder.append(&eval_free(expr, cx)?);
            }
        }
        self.at += row_count;
        Ok(Some(Batch::new(builders.iter_mut().map(ColumnBuilder::finish).collect(), row_count)))
    }
}
