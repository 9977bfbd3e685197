//! UPDATE: rows locked, new values computed and checked, rows replaced.
//!
//! ```text
//! key columns stay                 each batch: replace the row, move its changed index entries
//! a clustered or unique key moves  each batch: take old rows out;  at the end: put all new rows in
//! ```
//! The second way lets `SET id = id + 1` pass over keys that other rows still held: uniqueness is judged when every old
//! row is out. It keeps the new rows in memory within the grant (701). Input that could come
//! upon a changed row again is read to the end first (`spool`).

use crate::eval::eval_array;
use crate::exec::assignment::{check_not_null, derive, fit};
use crate::exec::batch::Rows;
use crate::exec::changed_rows::ChangedRows;
use crate::exec::table_writer::{Keys, TableRows, TableWriter};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build_change_input, moves_in};
use crate::expr::Expr;
use crate::phys::Node;
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_catalog::layout::ROW_NUMBER_BYTES;
use thawdb_types::{SqlError, SqlType};

pub(super) struct Update<'p> {
    input: BoxOperator<'p>,
    rows: ChangedRows<'p>,
    change: RowUpdate<'p>,
    output: &'p [Expr],
}

/// How locked rows become new ones.
pub(super) struct RowUpdate<'p> {
    verb: &'static str,
    writer: TableWriter,
    assignments: &'p [(usize, Expr)],
    computed: &'p [(usize, Expr)],
    changed: Vec<usize>,
    moves_keys: bool,
    /// New rows whose old ones are out already, and the old keys, which end in their row numbers.
    moved: Vec<(Vec<ArrayRef>, Batch)>,
    moved_bytes: usize,
}

impl<'p> Update<'p> {
    pub(super) fn new(
        table: &'p Arc<TableDef>,
        input: &'p Node,
        assignments: &'p [(usize, Expr)],
        computed: &'p [(usize, Expr)],
        old_columns: &'p [usize],
        output: &'p [Expr],
    ) -> Self {
        let change = RowUpdate::new("UPDATE", table, assignments, computed);
        Self {
            input: build_change_input(input, table, Some(if change.moves_keys { &[] } else { &change.changed })),
            rows: ChangedRows::new(input, old_columns),
            change,
            output,
        }
    }

    /// Changes the rows of one batch; the OUTPUT rows, if asked for.
    fn change(&mut self, batch: Batch, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let batch = self.rows.lock(&self.change.writer, batch, cx)?;
        if batch.rows == 0 {
            return Ok(None);
        }
        let old = self.rows.old(&batch);
        let new = self.change.write(&batch, &old, cx)?;
        if self.output.is_empty() {
            return Ok(None);
        }
        let rows = batch.rows;
        let all = Batch::new(old.into_iter().chain(new).chain(batch.columns).collect(), rows);
        let output = self.output.iter().map(|e| eval_array(e, &all, cx)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Batch::new(output, rows)))
    }
}

impl<'p> RowUpdate<'p> {
    /// `verb` is what messages call the statement.
    pub(super) fn new(verb: &'static str, table: &Arc<TableDef>, assignments: &'p [(usize, Expr)], computed: &'p [(usize, Expr)]) -> Self {
        let mut changed: Vec<usize> = assignments.iter().chain(computed).map(|(column, _)| *column).collect();
        changed.extend(table.columns.iter().position(|column| column.sql_type == SqlType::RowVersion));
        let moves_keys = table.indexes.iter().enumerate().any(|(at, index)| (at == 0 || index.unique) && moves_in(index, &changed));
        Self { verb, writer: TableWriter::new(table), assignments, computed, changed, moves_keys, moved: Vec::new(), moved_bytes: 0 }
    }

    /// Forgets what another run left behind.
    pub(super) fn reset(&mut self) {
        self.moved.clear();
        self.moved_bytes = 0;
    }

    fn new_columns(&self, batch: &Batch, old: &[ArrayRef], cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        let table = &self.writer.table;
        let mut new = old.to_vec();
        for (column, expr) in self.assignments {
            let values = eval_array(expr, batch, cx)?;
            new[*column] = fit(table, &table.columns[*column], &values, &expr.sql_type, cx)?;
        }
        derive(table, self.computed, &mut new, batch.rows, cx)?;
        check_not_null(table, &new, self.verb, cx)?;
        if cx.host.watches(table) {
            cx.host.check_rows(self.verb, table, &new, batch.rows)?;
        }
        Ok(new)
    }

    /// Writes the new rows of a batch whose rows are locked; gives them back.
    pub(super) fn write(&mut self, batch: &Batch, old: &[ArrayRef], cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        let new = self.new_columns(batch, old, cx)?;
        let keys = Keys::of(batch.columns[0].as_binary::<i32>());
        let (old_rows, new_rows) = (TableRows { columns: old, rows: batch.rows }, TableRows { columns: &new, rows: batch.rows });
        let txn = cx.host.txn(self.writer.table.database)?;
        let result = if self.moves_keys {
            self.writer.delete(txn, old_rows, &keys)
        } else {
            self.writer.update(txn, (old_rows, new_rows), &keys, &self.changed)
        };
        result.map_err(|error| self.writer.to_sql(error, new_rows, cx))?;
        cx.state.rows_affected += batch.rows as u64;
        if cx.host.watches(&self.writer.table) {
            cx.host.note_rows(&self.writer.table, old, &new, batch.rows)?;
        }
        if self.moves_keys {
            let locators = Batch::new(vec![batch.columns[0].clone()], batch.rows);
            self.moved_bytes += Batch { columns: new.clone(), rows: batch.rows }.memory_bytes() + locators.memory_bytes();
            cx.check_memory(self.moved_bytes)?;
            self.moved.push((new.clone(), locators));
        }
        Ok(new)
    }

    /// Puts the moved rows in under their new keys.
    pub(super) fn put_in(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        for (columns, locators) in std::mem::take(&mut self.moved) {
            cx.host.check_cancelled()?;
            let rows = TableRows { columns: &columns, rows: locators.rows };
            let own = self.writer.own_keys(0, rows);
            let old_keys = locators.columns[0].as_binary::<i32>();
            let number_bytes = if self.writer.has_row_numbers() { ROW_NUMBER_BYTES } else { 0 };
            let number = |row: usize| {
                let key = old_keys.value(row);
                &key[key.len() - number_bytes..]
            };
            let keys = Keys::from_parts(rows.rows, |row| [if own.is_empty() { &[] } else { own.key(row) }, number(row)]);
            let result = self.writer.insert(cx.host.txn(self.writer.table.database)?, rows, &keys);
            result.map_err(|error| self.writer.to_sql(error, rows, cx))?;
        }
        self.moved_bytes = 0;
        Ok(())
    }
}

impl<'p> Operator<'p> for Update<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.change.reset();
        self.rows.reset();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some(batch) = self.input.next(cx)? {
            cx.host.check_cancelled()?;
            if let Some(output) = self.change(batch, cx)? {
                return Ok(Some(output));
            }
        }
        self.change.put_in(cx)?;
        Ok(None)
    }
}
