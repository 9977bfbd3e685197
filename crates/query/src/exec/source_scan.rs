//! Rows that come from code: catalog views, management views, table-valued functions.
//!
//! The source gives all its rows at once when the scan opens: such views are small, and must show one moment.

use crate::eval::{eval_free, select};
use crate::exec::batch::{BATCH_ROWS, Rows};

use crate::exec::{Cx, Operator};
use crate::expr::Expr;
use crate::phys::{OutputColumn, RowSource};
use thawdb_types::column::array_from_scalars;
use thawdb_types::{Batch, Scalar, SqlError};

pub(super) struct SourceScan<'p> {
    source: &'p dyn RowSource,
    arguments: &'p [Expr],
    columns: &'p [usize],
    residual: Option<&'p Expr>,
    output: &'p [OutputColumn],
    rows: Vec<Vec<Scalar>>,
    at: usize,
}

impl<'p> SourceScan<'p> {
    pub(super) fn new(
        source: &'p dyn RowSource,
        arguments: &'p [Expr],
        columns: &'p [usize],
        residual: Option<&'p Expr>,
        output: &'p [OutputColumn],
    ) -> Self {
        Self { source, arguments, columns, residual, output, rows: Vec::new(), at: 0 }
    }
}

impl<'p> Operator<'p> for SourceScan<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let arguments = self.arguments.iter().map(|a| eval_free(a, cx)).collect::<Result<Vec<_>, _>>()?;
        self.rows = self.source.rows_by(cx.host, &arguments)?;
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while self.at < self.rows.len() {
            cx.host.check_cancelled()?;
            let rows = &self.rows[self.at..self.rows.len().min(self.at + BATCH_ROWS)];
            self.at += rows.len();
            let columns = self
                .columns
                .iter()
                .zip(self.output)
                .map(|(&from, column)| array_from_scalars(&column.sql_type, rows.iter().map(|row| &row[from])))
                .collect();
            let mut batch = Batch::new(columns, rows.len());
            if let Some(residual) = self.residual {
                batch = batch.filter(&select(residual, &batch, cx)?);
            }
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}
