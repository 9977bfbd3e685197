//! INSERT: input rows completed with defaults, identities and NULLs, checked, and written.
//!
//! Input is read batch by batch while rows are written; input that reads the same table is read to the end first
//! (`spool`).

use crate::eval::eval_array;
use crate::exec::assignment::{check_not_null, derive, fit};
use crate::exec::batch::Rows;
use crate::exec::table_writer::{TableRows, TableWriter};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build_change_input, counts_own_rows};
use crate::expr::Expr;
use crate::phys::{Node, OutputColumn};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, IdentityDef, TableDef};
use thawdb_types::error::message;
use thawdb_types::{ColumnBuilder, Scalar, SqlError, SqlType, array_from_scalar, scalar_at};

pub(super) struct Insert<'p> {
    input: BoxOperator<'p>,
    input_columns: &'p [OutputColumn],
    spec: InsertSpec<'p>,
    writer: TableWriter,
    /// Input columns handed on.
    passed: &'p [usize],
    output: &'p [Expr],
    /// The input changes rows itself and counts them (OUTPUT INTO): the count told is its.
    counted_below: bool,
}

/// How rows of the input become rows of the table.
pub(super) struct InsertSpec<'p> {
    pub(super) table: &'p Arc<TableDef>,
    /// Table column of each input column.
    pub(super) targets: std::borrow::Cow<'p, [usize]>,
    pub(super) defaults: &'p [(usize, Expr)],
    /// Stored computed columns, over the row.
    pub(super) computed: &'p [(usize, Expr)],
}

impl<'p> Insert<'p> {
    pub(super) fn new(input: &'p Node, spec: InsertSpec<'p>, passed: &'p [usize], output: &'p [Expr]) -> Self {
        let writer = TableWriter::new(spec.table);
        let counted_below = counts_own_rows(input);
        Self {
            input: build_change_input(input, spec.table, None),
            input_columns: &input.columns,
            spec,
            writer,
            passed,
            output,
            counted_below,
        }
    }
}

impl<'p> InsertSpec<'p> {
    /// Every column of the table for the rows of `batch`, whose columns have these types.
    pub(super) fn complete(&self, batch: &Batch, types: &[SqlType], cx: &mut Cx<'p, '_>) -> Result<Vec<ArrayRef>, SqlError> {
        self.complete_for("INSERT", batch, types, cx)
    }

    /// The same; `verb` is what messages call the statement.
    pub(super) fn complete_for(
        &self,
        verb: &str,
        batch: &Batch,
        types: &[SqlType],
        cx: &mut Cx<'p, '_>,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        let mut columns = Vec::with_capacity(self.table.columns.len());
        for (at, definition) in self.table.columns.iter().enumerate() {
            let given = self.targets.iter().position(|target| *target == at);
            let default = self.defaults.iter().find(|(column, _)| *column == at);
            columns.push(match (given, definition.identity, default) {
                (Some(from), identity, _) => {
                    let values = fit(self.table, definition, &batch.columns[from], &types[from], cx)?;
                    if let Some(identity) = identity {
                        self.note_identity(&values, &definition.sql_type, identity, cx)?;
                    }
                    values
                }
                (None, Some(identity), _) => self.next_identities(definition, identity, batch.rows, cx)?,
                (None, None, Some((_, expr))) => {
                    let values = eval_array(expr, batch, cx)?;
                    fit(self.table, definition, &values, &expr.sql_type, cx)?
                }
                (None, None, None) => array_from_scalar(&definition.sql_type, &Scalar::Null, batch.rows),
            });
        }
        derive(self.table, self.computed, &mut columns, batch.rows, cx)?;
        check_not_null(self.table, &columns, verb, cx)?;
        if cx.host.watches(self.table) {
            cx.host.check_rows(verb, self.table, &columns, batch.rows)?;
        }
        Ok(columns)
    }

    fn next_identities(&self, column: &ColumnDef, identity: IdentityDef, rows: usize, cx: &mut Cx<'p, '_>) -> Result<ArrayRef, SqlError> {
        let first = cx.host.next_identity(self.table.database, self.table.id, rows as u64)?;
        let mut builder = ColumnBuilder::new(&column.sql_type, rows);
        let overflow = || message(8115, &[&"IDENTITY", &column.sql_type.message_name()]);
        let mut last = first;
        for row in 0..rows as i64 {
            last = row.checked_mul(identity.increment).and_then(|by| first.checked_add(by)).ok_or_else(overflow)?;
            builder.append(&identity_value(last, &column.sql_type).ok_or_else(overflow)?);
        }
        cx.host.set_last_identity(last);
        Ok(builder.finish())
    }

    fn note_identity(&self, values: &ArrayRef, sql_type: &SqlType, identity: IdentityDef, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let value = |row: usize| match scalar_at(values.as_ref(), row, sql_type) {
            Scalar::Decimal(v) => i64::try_from(v).ok(),
            other => other.as_i64(),
        };
        let all = (0..values.len()).filter_map(value);
        let furthest = if identity.increment < 0 { all.min() } else { all.max() };
        if let Some(furthest) = furthest {
            cx.host.note_identity(self.table.database, self.table.id, furthest)?;
            cx.host.set_last_identity(value(values.len() - 1).unwrap_or(furthest));
        }
        Ok(())
    }
}

fn identity_value(value: i64, sql_type: &SqlType) -> Option<Scalar> {
    match *sql_type {
        SqlType::TinyInt => u8::try_from(value).ok().map(Scalar::TinyInt),
        SqlType::SmallInt => i16::try_from(value).ok().map(Scalar::SmallInt),
        SqlType::Int => i32::try_from(value).ok().map(Scalar::Int),
        SqlType::BigInt => Some(Scalar::BigInt(value)),
        SqlType::Decimal { precision, .. } => {
            let fits = i128::from(value).unsigned_abs() < 10u128.pow(u32::from(precision));
            fits.then_some(Scalar::Decimal(i128::from(value)))
        }
        _ => None,
    }
}

/// Writes completed rows and counts them. Where an index ignores duplicates, which rows were written.
pub(super) fn write_rows(writer: &TableWriter, rows: TableRows<'_>, cx: &mut Cx<'_, '_>) -> Result<Option<BooleanBuffer>, SqlError> {
    let table = &writer.table;
    let numbers = if writer.has_row_numbers() { cx.host.next_row_number(table.database, table.id, rows.rows as u64)? } else { 0 };
    if writer.ignores_duplicates() {
        return write_each(writer, rows, numbers, cx).map(Some);
    }
    let keys = writer.row_keys(rows, numbers);
    let result = writer.insert(cx.host.txn(table.database)?, rows, &keys);
    result.map_err(|error| writer.to_sql(error, rows, cx))?;
    cx.state.rows_affected += rows.rows as u64;
    Ok(None)
}

/// Writes row after row, so that one whose key an index with IGNORE_DUP_KEY has already can be taken back alone.
fn write_each(writer: &TableWriter, rows: TableRows<'_>, first_number: u64, cx: &mut Cx<'_, '_>) -> Result<BooleanBuffer, SqlError> {
    let mut written = Vec::with_capacity(rows.rows);
    for row in 0..rows.rows {
        let columns: Vec<ArrayRef> = rows.columns.iter().map(|column| column.slice(row, 1)).collect();
        let one = TableRows { columns: &columns, rows: 1 };
        let keys = writer.row_keys(one, first_number + row as u64);
        let ignored = writer.insert_or_ignore(cx.host.txn(writer.table.database)?, one, &keys);
        written.push(ignored.map_err(|error| writer.to_sql(error, one, cx))?);
    }
    let written = BooleanBuffer::from(written);
    cx.state.rows_affected += written.count_set_bits() as u64;
    cx.state.duplicate_ignored |= written.count_set_bits() < rows.rows;
    Ok(written)
}

impl<'p> Operator<'p> for Insert<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let types: Vec<SqlType> = self.input_columns.iter().map(|c| c.sql_type).collect();
        while let Some(batch) = self.input.next(cx)? {
            cx.host.check_cancelled()?;
            let columns = self.spec.complete(&batch, &types, cx)?;
            let counted = cx.state.rows_affected;
            let written = write_rows(&self.writer, TableRows { columns: &columns, rows: batch.rows }, cx)?;
            let mut inserted = Batch::new(columns, batch.rows);
            if let Some(written) = written {
                inserted = inserted.filter(&written);
            }
            if cx.host.watches(self.spec.table) {
                cx.host.note_rows(self.spec.table, &[], &inserted.columns, inserted.rows)?;
            }
            if self.counted_below {
                cx.state.rows_affected = counted;
            }
            if !self.passed.is_empty() {
                return Ok(Some(batch.project(self.passed)));
            }
            if !self.output.is_empty() {
                let rows = inserted.rows;
                let output = self.output.iter().map(|e| eval_array(e, &inserted, cx)).collect::<Result<Vec<_>, _>>()?;
                return Ok(Some(Batch::new(output, rows)));
            }
        }
        Ok(None)
    }
}
