//! Statistics of columns: made of a table's rows here, and asked here for what a predicate will keep.
//!
//! ```text
//! rows or a sample of leaves ── exec::sample, sorted ──► gather ──► StatisticsData (catalog)
//! StatisticsData ── estimate ──► rows equal to, below, between     ◄── optimize::cardinality
//! ```
//! A sample is of whole leaves at even distances in the order of the table's key; what it tells of rows is scaled to the
//! table, what it tells of different values by the estimator of Haas and Stokes (Duj1, *Estimating the Number of Classes in
//! a Finite Population*, JASA 1998). Nothing here is exact unless all rows were read, and nothing rests on its exactness.
//!
//! Memory: rows are sorted as by ORDER BY, beyond the grant by files; a histogram under way has at most twice its steps.

pub mod estimate;
mod histogram;

use crate::exec::{self, encode_value, scan_below};
use crate::expr::{Expr, ExprKind};
use crate::phys::{Node, NodeKind, OutputColumn, SortKey};
use histogram::HistogramBuilder;
use std::sync::Arc;
use thawdb_catalog::{StatisticsData, TableDef};
use thawdb_types::convert::text_bytes;
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// How many of the rows are to be looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampleSize {
    /// Every row.
    All,
    /// Those of about so many leaves.
    Leaves(usize),
}

/// Whether the values of a column can be counted: neither large nor worked out when they are read.
pub fn can_be_counted(table: &TableDef, column: usize) -> bool {
    table.columns.get(column).is_some_and(|c| !c.sql_type.is_large() && !c.is_virtual())
}

/// Looks at the rows of `table` and tells of `columns` (positions, each of which [`can_be_counted`]). `leaf_count` is how
/// many leaves its rows take, `updated` what to note as the time.
pub fn gather(
    table: &Arc<TableDef>,
    columns: &[usize],
    (size, leaf_count): (SampleSize, u64),
    (view, updated): (thawdb_storage::ReadView, i64),
    host: &mut dyn crate::context::StatementHost,
) -> Result<StatisticsData, SqlError> {
    let plan = sorted_scan(table, columns);
    let types: Vec<SqlType> = columns.iter().map(|column| table.columns[*column].sql_type).collect();
    let (mut execution, leaves_read) = exec::sample::run(&plan, size, view, host)?;
    let mut counts = Counts::new(types);
    while let Some(batch) = execution.next(host)? {
        for row in 0..batch.rows {
            counts.row(&batch.columns, row);
        }
    }
    let scale = leaves_read.map_or(1.0, |read| (leaf_count as f64 / read.max(1) as f64).max(1.0));
    Ok(StatisticsData { leaves: leaf_count, ..counts.finish(scale, updated) })
}

/// The columns of all rows, by their order.
fn sorted_scan(table: &Arc<TableDef>, columns: &[usize]) -> Node {
    let outputs: Vec<OutputColumn> = columns
        .iter()
        .map(|column| {
            let definition = &table.columns[*column];
            OutputColumn { name: definition.name.clone(), sql_type: definition.sql_type, nullable: true, identity: false }
        })
        .collect();
    let scan = NodeKind::TableScan {
        table: table.clone(),
        index: 0,
        ranges: Vec::new(),
        columns: columns.to_vec(),
        residual: None,
        backward: false,
        locking: Default::default(),
    };
    let input = Box::new(Node { kind: scan, columns: outputs.clone(), rows_estimate: 0.0 });
    debug_assert!(matches!(scan_below(&input).kind, NodeKind::TableScan { .. }));
    let key = |(at, column): (usize, &OutputColumn)| SortKey {
        expr: Expr { kind: ExprKind::Column(at), sql_type: column.sql_type, nullable: true },
        descending: false,
    };
    let keys = outputs.iter().enumerate().map(key).collect();
    Node { kind: NodeKind::Sort { input, keys }, columns: outputs, rows_estimate: 0.0 }
}

/// What is counted of a prefix of the columns.
#[derive(Default)]
struct Prefix {
    distinct: u64,
    /// Values that occurred once.
    single: u64,
    /// Rows of the present value.
    run: u64,
    bytes: u64,
}

impl Prefix {
    fn end_run(&mut self) {
        self.distinct += u64::from(self.run > 0);
        self.single += u64::from(self.run == 1);
        self.run = 0;
    }
}

/// Counts along sorted rows.
struct Counts {
    types: Vec<SqlType>,
    prefixes: Vec<Prefix>,
    /// Equality keys of the last row's columns.
    last: Vec<Vec<u8>>,
    rows: u64,
    high: Scalar,
    histogram: HistogramBuilder,
}

impl Counts {
    fn new(types: Vec<SqlType>) -> Self {
        let prefixes = types.iter().map(|_| Prefix::default()).collect();
        Self { types, prefixes, last: Vec::new(), rows: 0, high: Scalar::Null, histogram: HistogramBuilder::default() }
    }

    fn row(&mut self, columns: &[arrow_array::ArrayRef], row: usize) {
        let key = |(array, sql_type): (&arrow_array::ArrayRef, &SqlType)| {
            let mut key = Vec::new();
            encode_value(array.as_ref(), row, sql_type, &mut key);
            key
        };
        let keys: Vec<Vec<u8>> = columns.iter().zip(&self.types).map(key).collect();
        let same = keys.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        let from = if self.rows == 0 { 0 } else { same };
        if from == 0 {
            self.end_value();
            self.high = scalar_at(columns[0].as_ref(), row, &self.types[0]);
        }
        self.prefixes[from..].iter_mut().for_each(Prefix::end_run);
        for (prefix, (array, sql_type)) in self.prefixes.iter_mut().zip(columns.iter().zip(&self.types)) {
            prefix.run += 1;
            prefix.bytes += stored_bytes(&scalar_at(array.as_ref(), row, sql_type), sql_type);
        }
        self.last = keys;
        self.rows += 1;
    }

    fn end_value(&mut self) {
        let run = self.prefixes[0].run;
        if run > 0 {
            self.histogram.push(std::mem::replace(&mut self.high, Scalar::Null), run as f64);
        }
    }

    fn finish(mut self, scale: f64, updated: i64) -> StatisticsData {
        self.end_value();
        self.prefixes.iter_mut().for_each(Prefix::end_run);
        let (sampled, rows) = (self.rows as f64, self.rows as f64 * scale);
        let distinct: Vec<f64> = self.prefixes.iter().map(|p| scaled_distinct(p, sampled, scale)).collect();
        let per_row = |bytes: u64| bytes as f64 / sampled.max(1.0);
        let mut sum = 0.0;
        let average_bytes = self.prefixes.iter().map(|p| {
            sum += per_row(p.bytes);
            sum
        });
        let average_bytes = average_bytes.collect();
        let found = self.prefixes[0].distinct.max(1) as f64;
        let more = distinct.first().map_or(1.0, |d| d / found).max(1.0);
        let mut steps = self.histogram.finish();
        for step in &mut steps {
            step.equal_rows *= scale;
            step.range_rows *= scale;
            step.distinct_range_rows = (step.distinct_range_rows * more).min(step.range_rows);
        }
        let key_type = self.types[0];
        StatisticsData { updated, rows, rows_sampled: self.rows, leaves: 0, key_type, steps, distinct, average_bytes }
    }
}

/// Duj1: with a share q of the rows seen, d / (1 - (1 - q) f1 / n).
fn scaled_distinct(prefix: &Prefix, sampled: f64, scale: f64) -> f64 {
    let (found, single) = (prefix.distinct as f64, prefix.single as f64);
    if scale <= 1.0 || sampled < 1.0 {
        return found;
    }
    let unseen = (1.0 - 1.0 / scale) * single / sampled;
    (found / (1.0 - unseen).max(1.0 / scale)).min(sampled * scale).max(found)
}

/// Bytes of a value as SQL Server stores it.
fn stored_bytes(value: &Scalar, sql_type: &SqlType) -> u64 {
    match value {
        Scalar::Null => 0,
        Scalar::Text(text) => text_bytes(text, sql_type).len() as u64,
        Scalar::Binary(bytes) => bytes.len() as u64,
        _ => sql_type.max_length().max(0) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_types::column::array_from_scalars;

    fn counted(rows: &[(i32, i32)], scale: f64) -> StatisticsData {
        let column = |of: fn(&(i32, i32)) -> i32| {
            let values: Vec<Scalar> = rows.iter().map(|row| Scalar::Int(of(row))).collect();
            array_from_scalars(&SqlType::Int, &values)
        };
        let columns = [column(|r| r.0), column(|r| r.1)];
        let mut counts = Counts::new(vec![SqlType::Int, SqlType::Int]);
        (0..rows.len()).for_each(|row| counts.row(&columns, row));
        counts.finish(scale, 0)
    }

    #[test]
    fn prefixes_are_counted() {
        let data = counted(&[(1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 3)], 1.0);
        assert_eq!((data.rows, data.distinct.as_slice()), (6.0, &[3.0, 5.0][..]));
        assert_eq!(data.average_bytes, [4.0, 8.0]);
        let steps: Vec<_> = data.steps.iter().map(|s| (s.high.as_i64(), s.equal_rows)).collect();
        assert_eq!(steps, [(Some(1), 3.0), (Some(2), 2.0), (Some(3), 1.0)]);
        assert!(counted(&[], 1.0).steps.is_empty());
    }

    #[test]
    fn samples_are_scaled() {
        // Every value once in a tenth of the rows: the column looks unique. Every value many times: it looks as it is.
        let unique: Vec<_> = (0..1000).map(|n| (n, 0)).collect();
        assert!((counted(&unique, 10.0).distinct[0] - 10_000.0).abs() < 1.0);
        let few: Vec<_> = (0..1000).map(|n| (n / 100, 0)).collect();
        let data = counted(&few, 10.0);
        assert_eq!((data.rows, data.distinct[0], data.steps[0].equal_rows), (10_000.0, 10.0, 1000.0));
    }
}
