//! What a batch answered, gathered: result sets as Arrow, messages, counts.
//!
//! A field of a schema has the Arrow type of its SQL type (`thawdb_types::sql_type`) and the SQL type's name as
//! metadata under [`METADATA_SQL_TYPE`]; [`ResultSet::value`] gives single values with their meaning.

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;
use thawdb_engine::{Batch, DoneInfo, EnvChange, OutputColumn, ResultSink, SinkClosed};
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// Key of a field's metadata: the name of its SQL type, as `decimal(10,2)`.
pub const METADATA_SQL_TYPE: &str = "thawdb.sql_type";

/// One result set.
#[derive(Debug, Clone)]
pub struct ResultSet {
    /// Its columns.
    pub columns: Vec<OutputColumn>,
    /// The same for Arrow.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

impl ResultSet {
    pub(crate) fn new(columns: &[OutputColumn]) -> Self {
        Self { columns: columns.to_vec(), schema: schema_of(columns), batches: Vec::new() }
    }

    pub(crate) fn push(&mut self, batch: &Batch) {
        self.batches.push(record_batch(&self.schema, batch));
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// One value; both positions from 0. Panics when there is no such row or column.
    pub fn value(&self, row: usize, column: usize) -> Scalar {
        let mut row = row;
        for batch in &self.batches {
            if row < batch.num_rows() {
                return scalar_at(batch.column(column), row, &self.columns[column].sql_type);
            }
            row -= batch.num_rows();
        }
        panic!("the result set has {} rows", self.row_count());
    }

    /// All rows as single values.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Scalar>> + '_ {
        (0..self.row_count()).map(|row| (0..self.columns.len()).map(|column| self.value(row, column)).collect())
    }
}

/// The Arrow schema of a result set's columns.
pub(crate) fn schema_of(columns: &[OutputColumn]) -> SchemaRef {
    let field = |column: &OutputColumn| {
        let metadata = HashMap::from([(METADATA_SQL_TYPE.to_owned(), column.sql_type.name())]);
        Field::new(&column.name, column.sql_type.arrow_type(), true).with_metadata(metadata)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// A batch of the engine with its schema.
pub(crate) fn record_batch(schema: &SchemaRef, batch: &Batch) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.row_count));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns.clone(), &options)
        .expect("the engine's arrays have the types and lengths its columns announce")
}

/// Everything a batch answered.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// Result sets, in order.
    pub sets: Vec<ResultSet>,
    /// Rows affected by each statement that counted any, in order.
    pub rows_affected: Vec<u64>,
    /// Informational messages and errors, in order.
    pub messages: Vec<SqlError>,
    /// What a procedure returned.
    pub return_status: Option<i32>,
    /// Output parameters: name, type, value.
    pub outputs: Vec<(String, SqlType, Scalar)>,
    /// Whether a cancellation cut it short.
    pub cancelled: bool,
}

impl Results {
    /// The first error, if one was raised.
    pub fn first_error(&self) -> Option<&SqlError> {
        self.messages.iter().find(|message| !message.is_informational())
    }

    /// The one value of the first result set's first row; `None` if there is none.
    pub fn scalar(&self) -> Option<Scalar> {
        let set = self.sets.first().filter(|set| set.row_count() > 0 && !set.columns.is_empty())?;
        Some(set.value(0, 0))
    }
}

/// Gathers what the engine says.
#[derive(Default)]
pub(crate) struct Gather {
    pub(crate) results: Results,
}

impl ResultSink for Gather {
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<(), SinkClosed> {
        self.results.sets.push(ResultSet::new(columns));
        Ok(())
    }

    fn rows(&mut self, batch: &Batch) -> Result<(), SinkClosed> {
        self.results.sets.last_mut().expect("columns come before rows").push(batch);
        Ok(())
    }

    fn done(&mut self, info: DoneInfo) {
        self.results.rows_affected.extend(info.rows_affected);
        self.results.cancelled |= info.cancelled;
    }

    fn message(&mut self, message: &SqlError) {
        self.results.messages.push(message.clone());
    }

    fn return_status(&mut self, status: i32) {
        self.results.return_status = Some(status);
    }

    fn return_value(&mut self, _ordinal: u16, name: &str, sql_type: &SqlType, value: &Scalar) {
        self.results.outputs.push((name.to_owned(), *sql_type, value.clone()));
    }

    fn env_change(&mut self, _change: &EnvChange) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_types::ColumnBuilder;

    #[test]
    fn values_are_found_across_batches() {
        let column = OutputColumn { name: "n".into(), sql_type: SqlType::decimal(5, 2), nullable: true, identity: false };
        let mut gather = Gather::default();
        gather.columns(std::slice::from_ref(&column)).unwrap();
        for values in [&[Scalar::Decimal(150), Scalar::Null][..], &[], &[Scalar::Decimal(-1)]] {
            let mut builder = ColumnBuilder::new(&column.sql_type, values.len());
            values.iter().for_each(|value| builder.append(value));
            gather.rows(&Batch { columns: vec![builder.finish()], row_count: values.len() }).unwrap();
        }
        let set = &gather.results.sets[0];
        assert_eq!(set.rows().flatten().collect::<Vec<_>>(), [Scalar::Decimal(150), Scalar::Null, Scalar::Decimal(-1)]);
        assert_eq!(set.schema.field(0).metadata()[METADATA_SQL_TYPE], "decimal(5,2)");
        assert_eq!(gather.results.scalar(), Some(Scalar::Decimal(150)));
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let mut gather = Gather::default();
        gather.columns(&[]).unwrap();
        gather.rows(&Batch { columns: Vec::new(), row_count: 3 }).unwrap();
        assert_eq!(gather.results.sets[0].row_count(), 3);
        assert_eq!(gather.results.scalar(), None);
    }
}
