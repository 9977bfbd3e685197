//! Results on their way to the sink: keeps one completion back until it is known whether more follow.
//!
//! Invariant: the sink sees exactly one `done` with `more == false` a call, the last thing of all (`finish`).

use crate::api::batch::Batch;
use crate::api::sink::{BrowseColumn, DoneInfo, DoneKind, EnvChange, ResultSink, SinkClosed, StatementKind};
use crate::batch::result_sets::Shape;
use crate::session::rowset::Rowset;
use crate::storage_error::cancelled;
use thawdb_query::phys::OutputColumn;
use thawdb_types::{Scalar, SqlError, SqlType, array_from_scalar};

/// Where statements put their results.
pub(crate) struct Outbox<'s> {
    sink: &'s mut dyn ResultSink,
    pending: Option<DoneInfo>,
    /// Procedures being run: their statements complete as `InProcedure`.
    pub(crate) depth: usize,
    /// The receiver has gone.
    closed: bool,
    /// Columns were sent and no completion since.
    open_result: bool,
    /// INSERT ... EXEC: results are kept instead of sent.
    capture: Option<Capture>,
    /// EXEC ... WITH RESULT SETS, the innermost last.
    shapes: Vec<Shape>,
}

/// Results being kept, and the depth of transactions when that began.
struct Capture {
    rowsets: Vec<Rowset>,
    transactions: u32,
}

impl<'s> Outbox<'s> {
    pub(crate) fn new(sink: &'s mut dyn ResultSink) -> Self {
        Self { sink, pending: None, depth: 0, closed: false, open_result: false, capture: None, shapes: Vec::new() }
    }

    /// Keeps results from here on.
    pub(crate) fn begin_capture(&mut self, transactions: u32) {
        self.flush();
        self.capture = Some(Capture { rowsets: Vec::new(), transactions });
    }

    /// The results kept; later ones are sent again.
    pub(crate) fn end_capture(&mut self) -> Vec<Rowset> {
        self.open_result = false;
        self.capture.take().map_or_else(Vec::new, |capture| capture.rowsets)
    }

    /// Whether results are kept.
    pub(crate) fn is_capturing(&self) -> bool {
        self.capture.is_some()
    }

    /// The depth of transactions when keeping began.
    pub(crate) fn captured_since(&self) -> Option<u32> {
        self.capture.as_ref().map(|capture| capture.transactions)
    }

    fn flush(&mut self) {
        if let Some(info) = self.pending.take() {
            self.sink.done(DoneInfo { more: true, ..info });
        }
    }

    fn check(&mut self, outcome: Result<(), SinkClosed>) -> Result<(), SqlError> {
        outcome.map_err(|SinkClosed| {
            self.closed = true;
            cancelled()
        })
    }

    /// Gives results the shape from here on.
    pub(crate) fn begin_shape(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    /// The last shape ends: 11536 if fewer results came than it has.
    pub(crate) fn end_shape(&mut self) -> Result<(), SqlError> {
        self.shapes.pop().map_or(Ok(()), |shape| shape.end())
    }

    pub(crate) fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SqlError> {
        if self.shapes.is_empty() {
            return self.put_columns(columns);
        }
        let mut shaped = columns.to_vec();
        for shape in self.shapes.iter_mut().rev() {
            shaped = shape.columns(&shaped)?;
        }
        self.put_columns(&shaped)
    }

    fn put_columns(&mut self, columns: &[OutputColumn]) -> Result<(), SqlError> {
        if let Some(capture) = &mut self.capture {
            capture.rowsets.push(Rowset { columns: columns.to_vec(), rows: Vec::new() });
            return Ok(());
        }
        self.flush();
        self.open_result = true;
        let outcome = self.sink.columns(columns);
        self.check(outcome)
    }

    /// Where the columns just sent come from.
    pub(crate) fn browse(&mut self, tables: &[[String; 3]], columns: &[BrowseColumn]) {
        if self.capture.is_none() {
            self.sink.browse(tables, columns);
        }
    }

    pub(crate) fn rows(&mut self, batch: &Batch) -> Result<(), SqlError> {
        if self.shapes.is_empty() {
            return self.put_rows(batch);
        }
        let mut columns = batch.columns.clone();
        for shape in self.shapes.iter().rev() {
            columns = shape.rows(&columns)?;
        }
        self.put_rows(&Batch { columns, row_count: batch.row_count })
    }

    fn put_rows(&mut self, batch: &Batch) -> Result<(), SqlError> {
        if let Some(rowset) = self.capture.as_mut().and_then(|capture| capture.rowsets.last_mut()) {
            rowset.push_columns(&batch.columns, batch.row_count);
            return Ok(());
        }
        let outcome = self.sink.rows(batch);
        self.check(outcome)
    }

    /// One row of the result set, by its values.
    pub(crate) fn row(&mut self, columns: &[OutputColumn], values: &[Scalar]) -> Result<(), SqlError> {
        if !self.shapes.is_empty() {
            let arrays = columns.iter().zip(values).map(|(column, value)| array_from_scalar(&column.sql_type, value, 1));
            return self.rows(&Batch { columns: arrays.collect(), row_count: 1 });
        }
        if let Some(rowset) = self.capture.as_mut().and_then(|capture| capture.rowsets.last_mut()) {
            rowset.rows.push(values.to_vec());
            return Ok(());
        }
        let outcome = self.sink.row(columns, values);
        self.check(outcome)
    }

    pub(crate) fn message(&mut self, message: &SqlError) {
        self.flush();
        self.sink.message(message);
    }

    pub(crate) fn env_change(&mut self, change: &EnvChange) {
        self.flush();
        self.sink.env_change(change);
    }

    pub(crate) fn return_status(&mut self, status: i32) {
        if self.capture.is_some() {
            return;
        }
        self.flush();
        self.sink.return_status(status);
    }

    pub(crate) fn return_value(&mut self, ordinal: u16, name: &str, sql_type: &SqlType, value: &Scalar) {
        if self.capture.is_some() {
            return;
        }
        self.flush();
        self.sink.return_value(ordinal, name, sql_type, value);
    }

    /// Whether a result set was begun and not completed.
    pub(crate) fn has_open_result(&self) -> bool {
        self.open_result
    }

    /// A statement completed.
    pub(crate) fn done(&mut self, statement: StatementKind, rows_affected: Option<u64>, error: bool) {
        if self.capture.is_some() {
            return;
        }
        self.flush();
        self.open_result = false;
        let kind = if self.depth > 0 { DoneKind::InProcedure } else { DoneKind::Statement };
        self.pending = Some(DoneInfo { kind, statement, rows_affected, more: true, error, cancelled: false });
    }

    /// A procedure called by a statement of the batch completed.
    pub(crate) fn procedure_done(&mut self) {
        if self.capture.is_some() {
            return;
        }
        self.flush();
        let statement = StatementKind::Execute;
        self.pending =
            Some(DoneInfo { kind: DoneKind::Procedure, statement, rows_affected: None, more: true, error: false, cancelled: false });
    }

    /// Everything has been said.
    pub(crate) fn finish(mut self, kind: DoneKind, failed: bool, cancelled: bool) {
        let nothing = DoneInfo { kind, statement: StatementKind::Other, rows_affected: None, more: false, error: failed, cancelled };
        let last = match self.pending.take() {
            // A batch ends with its last statement's completion, a call with its own.
            Some(info) if kind == info.kind && !cancelled => DoneInfo { more: false, error: info.error || failed, ..info },
            Some(info) => {
                self.sink.done(DoneInfo { more: true, ..info });
                nothing
            }
            None => nothing,
        };
        self.sink.done(last);
    }
}
