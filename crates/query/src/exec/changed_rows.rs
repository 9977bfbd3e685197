//! The rows UPDATE and DELETE are to change, locked and up to date.
//!
//! ```text
//! input row (as of the view) ─► lock ─► newest state
//!     gone                 the row is passed over
//!     the same bytes       the input row stands
//!     changed meanwhile    the newest state goes through the plan again: a row whose predicate no longer holds is
//!                          passed over, otherwise the new input row stands
//! ```
//! That is what READ COMMITTED gives in SQL Server, whose updates read the latest committed rows under locks. Going
//! through the plan again is possible where the plan is filters and projections over one scan of the table. In joins the
//! newest values replace the old ones in the input row and the predicate is not asked again.
//!
//! A scan of the rows themselves that locks them for update has given out their newest state already; what is above
//! is then needed for scans by other indexes, for joins, and under SNAPSHOT, where a row changed meanwhile is 3960.
//!
//! A row that this transaction changed earlier is found changed too, by ourselves: its newest state is what the view
//! shows, so the bytes are the same.
//!
//! A join may name a row twice: it is changed once (`seen`).

use crate::eval::{eval_array, select};
use crate::exec::batch::Rows;
use crate::exec::decode::{Fetched, Wanted, decode};
use crate::exec::key_table::KeyTable;
use crate::exec::table_scan::TableScan;
use crate::exec::table_writer::{TableRows, TableWriter, WriteError};
use crate::exec::{Batch, Cx, scan_spec};
use crate::expr::Expr;
use crate::phys::{Node, NodeKind};
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_buffer::BooleanBuffer;
use thawdb_storage::RowBlock;
use thawdb_types::SqlError;

/// A step of the plan between the scan and the change.
enum Step<'p> {
    Filter(&'p Expr),
    Project(&'p [Expr]),
}

pub(super) struct ChangedRows<'p> {
    old_columns: &'p [usize],
    /// The scan and the steps above it, lowest first.
    again: Option<(TableScan<'p>, Vec<Step<'p>>)>,
    seen: KeyTable,
}

impl<'p> ChangedRows<'p> {
    pub(super) fn new(input: &'p Node, old_columns: &'p [usize]) -> Self {
        Self { old_columns, again: chain_over_scan(input), seen: KeyTable::new() }
    }

    pub(super) fn reset(&mut self) {
        self.seen = KeyTable::new();
    }

    /// The table columns of an input batch as they were read.
    pub(super) fn old(&self, batch: &Batch) -> Vec<ArrayRef> {
        self.old_columns.iter().map(|at| batch.columns[*at].clone()).collect()
    }

    /// Locks the rows of a batch and gives back those that are to be changed.
    pub(super) fn lock(&mut self, writer: &TableWriter, batch: Batch, cx: &mut Cx<'p, '_>) -> Result<Batch, SqlError> {
        if let Some((scan, _)) = &self.again
            && scan.locks_rows(cx)?
        {
            return Ok(batch);
        }
        let locators = batch.columns[0].as_binary::<i32>().clone();
        let old = self.old(&batch);
        let rows = TableRows { columns: &old, rows: batch.rows };
        let (database, tree) = (writer.table.database, writer.table.indexes[0].tree);
        let mut stands = vec![false; batch.rows];
        let mut newer: Vec<(usize, RowBlock)> = Vec::new();
        let txn = cx.host.txn(database)?;
        let (seen, once) = (&mut self.seen, self.again.is_some());
        let locked = writer.for_each_row(0, rows, |row, bytes| {
            if !once && !seen.insert(locators.value(row)).1 {
                return Ok(());
            }
            match txn.lock_row(tree, locators.value(row))? {
                None => {}
                // Bytes of large parts are not compared: such a row goes through the plan again.
                Some(block) if block.value(0) == bytes.inline() && bytes.large().is_empty() => stands[row] = true,
                Some(block) => newer.push((row, block)),
            }
            Ok::<(), WriteError>(())
        });
        locked.map_err(|error| writer.to_sql(error, rows, cx))?;
        if newer.is_empty() && stands.iter().all(|s| *s) {
            return Ok(batch);
        }
        let mut parts = vec![batch.filter(&BooleanBuffer::collect_bool(batch.rows, |row| stands[row]))];
        for (row, block) in newer {
            parts.extend(self.read_again(writer, batch.slice(row, 1), block, cx)?);
        }
        Ok(Batch::concat(&parts))
    }

    /// The input row that the newest state of a row gives.
    fn read_again(&mut self, writer: &TableWriter, old: Batch, block: RowBlock, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let Some((scan, steps)) = &mut self.again else {
            return self.with_newest(writer, old, block, cx).map(Some);
        };
        let Some(mut batch) = scan.recheck(block, cx)? else { return Ok(None) };
        for step in steps {
            match step {
                Step::Filter(predicate) => {
                    if select(predicate, &batch, cx)?.count_set_bits() == 0 {
                        return Ok(None);
                    }
                }
                Step::Project(exprs) => {
                    let columns = exprs.iter().map(|e| eval_array(e, &batch, cx)).collect::<Result<Vec<_>, _>>()?;
                    batch = Batch::new(columns, 1);
                }
            }
        }
        Ok(Some(batch))
    }

    /// `old` with the table's columns replaced by the newest state.
    fn with_newest(&self, writer: &TableWriter, mut old: Batch, block: RowBlock, cx: &mut Cx<'p, '_>) -> Result<Batch, SqlError> {
        let (table, layout) = (&writer.table, &writer.layouts[0]);
        let view = cx.host.read_view(table.database)?;
        let blocks = [block];
        let held = |(column, _): &(usize, &usize)| !table.columns[*column].is_virtual();
        for (column, at) in self.old_columns.iter().enumerate().filter(held) {
            let wanted = Wanted::Column { place: layout.place(column), sql_type: table.columns[column].sql_type };
            old.columns[*at] = decode(layout, &wanted, &Fetched::new(layout, &blocks, false), None, &view)
                .map_err(|e| cx.host.storage_error(table.database, e.0))?;
        }
        Ok(old)
    }
}

/// Index of the scan below `node`, if nothing but filters and projections stands between.
pub(super) fn scan_below(node: &Node) -> Option<usize> {
    match &node.kind {
        NodeKind::Filter { input, .. } | NodeKind::Project { input, .. } => scan_below(input),
        _ => scan_spec(node).map(|spec| spec.index),
    }
}

/// The scan below `node` if nothing but filters and projections stands between.
fn chain_over_scan(node: &Node) -> Option<(TableScan<'_>, Vec<Step<'_>>)> {
    match &node.kind {
        NodeKind::Filter { input, predicate } => {
            let (scan, mut steps) = chain_over_scan(input)?;
            steps.push(Step::Filter(predicate));
            Some((scan, steps))
        }
        NodeKind::Project { input, exprs } => {
            let (scan, mut steps) = chain_over_scan(input)?;
            steps.push(Step::Project(exprs));
            Some((scan, steps))
        }
        _ => scan_spec(node).map(|spec| (TableScan::new(spec), Vec::new())),
    }
}
