//! MERGE: rows deleted, then updated, then inserted, as their steps say.
//!
//! ```text
//! input sorted by step ─► delete rows ─► update rows (moved keys kept aside) ─► put moved rows in ─► insert rows
//! ```
//! 1. A target row is changed once: a second time is 8672 (`Merge::refuse_again`).
//! 2. All rows taken out are out before any key is put in, so keys may change hands within the statement.
//!
//! The input's sort reads it to the end before the first change. IGNORE_DUP_KEY is not heeded, as documented. Rows moved
//! to other keys are held within the memory grant (701).

use crate::eval::eval_array;
use crate::exec::changed_rows::ChangedRows;
use crate::exec::insert::InsertSpec;
use crate::exec::table_writer::{Keys, TableRows, TableWriter};
use crate::exec::update::RowUpdate;
use crate::exec::{Batch, BoxOperator, Cx, KeyTable, Operator, build};
use crate::expr::Expr;
use crate::phys::{MergeStep, Node};
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType, array_from_scalar};

enum Step<'p> {
    Delete,
    Update(RowUpdate<'p>),
    Insert { spec: InsertSpec<'p>, values: Vec<&'p Expr> },
}

pub(super) struct Merge<'p> {
    input: BoxOperator<'p>,
    rows: ChangedRows<'p>,
    writer: TableWriter,
    steps: Vec<Step<'p>>,
    output: &'p [Expr],
    met: KeyTable,
    /// Rows of the input not yet looked at.
    waiting: Option<Batch>,
    moved_are_in: bool,
}

impl<'p> Merge<'p> {
    pub(super) fn new(
        table: &'p Arc<TableDef>,
        input: &'p Node,
        steps: &'p [MergeStep],
        computed: &'p [(usize, Expr)],
        old_columns: &'p [usize],
        output: &'p [Expr],
    ) -> Self {
        let step = |step: &'p MergeStep| match step {
            MergeStep::Delete => Step::Delete,
            MergeStep::Update { assignments } => Step::Update(RowUpdate::new("MERGE", table, assignments, computed)),
            MergeStep::Insert { values, defaults } => {
                let targets = values.iter().map(|(target, _)| *target).collect();
                Step::Insert { spec: InsertSpec { table, targets, defaults, computed }, values: values.iter().map(|(_, e)| e).collect() }
            }
        };
        Self {
            input: build(input),
            rows: ChangedRows::new(input, old_columns),
            writer: TableWriter::new(table),
            steps: steps.iter().map(step).collect(),
            output,
            met: KeyTable::new(),
            waiting: None,
            moved_are_in: false,
        }
    }

    /// 8672 for a row that an earlier input row has met.
    fn refuse_again(&mut self, batch: &Batch) -> Result<(), SqlError> {
        let locators = batch.columns[0].as_binary::<i32>();
        let new = (0..batch.rows).all(|row| self.met.insert(locators.value(row)).1);
        if new { Ok(()) } else { Err(message(8672, &[])) }
    }

    fn put_moved_in(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        if std::mem::replace(&mut self.moved_are_in, true) {
            return Ok(());
        }
        for step in &mut self.steps {
            if let Step::Update(update) = step {
                update.put_in(cx)?;
            }
        }
        Ok(())
    }

    /// Changes rows of one step; the OUTPUT rows, if asked for.
    fn change(&mut self, number: usize, batch: Batch, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let (old, new, batch, name) = match &self.steps[number] {
            Step::Insert { .. } => {
                self.put_moved_in(cx)?;
                let new = self.insert(number, &batch, cx)?;
                (self.rows.old(&batch), new, batch, "INSERT")
            }
            _ => {
                self.refuse_again(&batch)?;
                let batch = self.rows.lock(&self.writer, batch, cx)?;
                if batch.rows == 0 {
                    return Ok(None);
                }
                let old = self.rows.old(&batch);
                let (new, name) = match &mut self.steps[number] {
                    Step::Update(update) => (update.write(&batch, &old, cx)?, "UPDATE"),
                    _ => (self.delete(&batch, &old, cx)?, "DELETE"),
                };
                (old, new, batch, name)
            }
        };
        if self.output.is_empty() {
            return Ok(None);
        }
        let rows = batch.rows;
        let name = array_from_scalar(&SqlType::nvarchar(10), &Scalar::text(name), rows);
        let all = Batch::new(old.into_iter().chain(new).chain(batch.columns).chain(std::iter::once(name)).collect(), rows);
        let output = self.output.iter().map(|e| eval_array(e, &all, cx)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Batch::new(output, rows)))
    }

    /// Takes rows out; NULLs stand for their new state.
    fn delete(&mut self, batch: &Batch, old: &[ArrayRef], cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        let table = self.writer.table.clone();
        let rows = TableRows { columns: old, rows: batch.rows };
        let keys = Keys::of(batch.columns[0].as_binary::<i32>());
        let result = self.writer.delete(cx.host.txn(table.database)?, rows, &keys);
        result.map_err(|error| self.writer.to_sql(error, rows, cx))?;
        cx.state.rows_affected += batch.rows as u64;
        if cx.host.watches(&table) {
            cx.host.note_rows(&table, old, &[], batch.rows)?;
        }
        Ok(table.columns.iter().map(|c| array_from_scalar(&c.sql_type, &Scalar::Null, batch.rows)).collect())
    }

    fn insert(&mut self, number: usize, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        let Step::Insert { spec, values } = &self.steps[number] else { unreachable!("the step inserts") };
        let table = spec.table;
        let types: Vec<SqlType> = values.iter().map(|value| value.sql_type).collect();
        let given = values.iter().map(|value| eval_array(value, batch, cx)).collect::<Result<Vec<_>, _>>()?;
        let new = spec.complete_for("MERGE", &Batch::new(given, batch.rows), &types, cx)?;
        let rows = TableRows { columns: &new, rows: batch.rows };
        let first = if self.writer.has_row_numbers() { cx.host.next_row_number(table.database, table.id, batch.rows as u64)? } else { 0 };
        let keys = self.writer.row_keys(rows, first);
        let result = self.writer.insert(cx.host.txn(table.database)?, rows, &keys);
        result.map_err(|error| self.writer.to_sql(error, rows, cx))?;
        cx.state.rows_affected += batch.rows as u64;
        if cx.host.watches(table) {
            cx.host.note_rows(table, &[], &new, batch.rows)?;
        }
        Ok(new)
    }

    /// The next input rows that belong to one step.
    fn next_run(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<(usize, Batch)>, SqlError> {
        let batch = match self.waiting.take() {
            Some(batch) => batch,
            None => match self.input.next(cx)? {
                Some(batch) => batch,
                None => return Ok(None),
            },
        };
        let actions = batch.columns[1].as_primitive::<Int32Type>().values();
        let action = actions[0];
        let length = actions.iter().take_while(|other| **other == action).count();
        let run = if length < batch.rows {
            let run = batch.slice(0, length);
            self.waiting = Some(batch.slice(length, batch.rows - length));
            run
        } else {
            batch
        };
        Ok(Some((usize::try_from(action).expect("steps have numbers"), run)))
    }
}

impl<'p> Operator<'p> for Merge<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        for step in &mut self.steps {
            if let Step::Update(update) = step {
                update.reset();
            }
        }
        (self.met, self.waiting, self.moved_are_in) = (KeyTable::new(), None, false);
        self.rows.reset();
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while let Some((number, run)) = self.next_run(cx)? {
            cx.host.check_cancelled()?;
            if let Some(output) = self.change(number, run, cx)? {
                return Ok(Some(output));
            }
        }
        self.put_moved_in(cx)?;
        Ok(None)
    }
}
