//! DELETE: rows locked, then taken out of the table and its indexes.

use crate::eval::eval_array;
use crate::exec::changed_rows::ChangedRows;
use crate::exec::table_writer::{Keys, TableRows, TableWriter};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build_change_input};
use crate::expr::Expr;
use crate::phys::Node;
use arrow_array::cast::AsArray;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::SqlError;

pub(super) struct Delete<'p> {
    input: BoxOperator<'p>,
    rows: ChangedRows<'p>,
    writer: TableWriter,
    output: &'p [Expr],
}

impl<'p> Delete<'p> {
    pub(super) fn new(table: &'p Arc<TableDef>, input: &'p Node, old_columns: &'p [usize], output: &'p [Expr]) -> Self {
        Self {
            input: build_change_input(input, table, Some(&[])),
            rows: ChangedRows::new(input, old_columns),
            writer: TableWriter::new(table),
            output,
        }
    }

    fn take_out(&mut self, batch: Batch, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let batch = self.rows.lock(&self.writer, batch, cx)?;
        if batch.rows == 0 {
            return Ok(None);
        }
        let old = self.rows.old(&batch);
        let rows = TableRows { columns: &old, rows: batch.rows };
        let keys = Keys::of(batch.columns[0].as_binary::<i32>());
        let result = self.writer.delete(cx.host.txn(self.writer.table.database)?, rows, &keys);
        result.map_err(|error| self.writer.to_sql(error, rows, cx))?;
        cx.state.rows_affected += batch.rows as u64;
        if cx.host.watches(&self.writer.table) {
            cx.host.note_rows(&self.writer.table, &old, &[], batch.rows)?;
        }
        if self.output.is_empty() {
            return Ok(None);
        }
        let rows = batch.rows;
        let all = Batch::new(old.into_iter().chain(batch.columns).collect(), rows);
        let output = self.output.iter().map(|e| eval_array(e, &all, cx)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Batch::new(output, rows)))
    }
}

impl<'p> Operator<'p> for Delete<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.rows.reset();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(batch) = self.input.next(cx)? {
            cx.host.check_cancelled()?;
            if let Some(output) = self.take_out(batch, cx)? {
                return Ok(Some(output));
            }
        }
        Ok(None)
    }
}
