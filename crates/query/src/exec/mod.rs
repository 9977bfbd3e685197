//! Running physical plans: each node becomes an operator, and rows are pulled through them batch by batch.
//!
//! ```text
//! phys::Node ── build ──► Operator tree ── next ──► Batch, Batch, ... ── Execution ──► caller
//!                              │ Cx: host (session, transaction, variables), outer rows, kept subqueries
//! ```
//! Invariants: 1. `next` after `None` without a new `open` is not called. 2. `open` may be called again at any time: the
//! operator starts anew for the present outer rows (`Apply` and subqueries rely on it). 3. Each operator that loops
//! without pulling asks for cancellation itself; scans ask once a batch, which bounds everything above them.
//! No latch is held between calls. An error leaves the operators in an unusable state; the caller drops them and rolls
//! the statement back. Nothing here decides between plans.

pub mod batch;

mod correlation;
pub mod cx;

mod aggregate;
mod apply;
mod assign;
mod assignment;
mod bulk_insert;
mod changed_rows;
mod concatenate;
mod counted;
mod decode;
mod delete;
mod distinct;
mod exchange;
mod filter;
mod gather;
mod hash_join;
mod hash_spill;
mod insert;
mod instead;
mod key_table;
mod keys;
mod layouts;
mod limit;
mod locked_rows;
mod merge;
mod merge_join;
mod nested_loop;
mod pairs;
mod parallel_host;
mod parts;
mod point;
mod point_update;
mod project;
mod recursive;
mod running_window;
pub(crate) mod sample;
mod seek;
mod set_difference;
mod side_writer;
mod single_row;
mod sort;
mod sort_buffer;
mod source_scan;
mod spill;
mod spool;
mod table_scan;
mod table_writer;
mod top_n;
mod update;
mod values;
mod window;
mod window_distribution;

#[cfg(test)]
mod spill_tests;
#[cfg(test)]
mod tests;

pub(crate) use crate::eval::convert_scalar;
pub use batch::{BATCH_ROWS, Rows};
pub use bulk_insert::{BulkInsert, BulkTarget};
pub(crate) use correlation::{is_row_independent, visit_exprs, visit_inputs, visit_operands};
use counted::Counted;
pub use counted::{ReadAccount, TableReads};
pub(crate) use gather::scan_below;
pub(crate) use key_table::KeyTable;
pub(crate) use keys::{encode_value, for_each_integer, is_integer_like};
pub use point::{PointBuffers, PointRead, calls_function, runs_nothing};
pub use thawdb_types::Batch;

use crate::context::StatementHost;
use crate::expr::Expr;
use crate::phys::{Node, NodeKind, OutputColumn};
use arrow_array::ArrayRef;
use cx::{Cx, CxState};
use thawdb_catalog::TableDef;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType, scalar_at};

/// An operation at work.
pub trait Operator<'p> {
    /// Starts, or starts anew for the present outer rows and variables.
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError>;
    /// The next rows, at least one; `None` at the end.
    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError>;
    /// Hands all rows from here to the end to `take`. Rows of several threads are handed on while those run.
    fn for_each(&mut self, cx: &mut Cx<'p, '_>, take: &mut TakeBatch<'_, 'p>) -> Result<(), SqlError> {
        while let Some(batch) = self.next(cx)? {
            take(batch, cx)?;
        }
        Ok(())
    }
    /// Told before `open`: who asks hopes to have enough with so many rows. What reads ahead, locks or gathers rows does so
    /// for no more at a time; what must have all of its input tells it nothing.
    fn row_goal(&mut self, rows: u64) {
        let _ = rows;
    }
}

/// Who takes rows.
pub type TakeBatch<'t, 'p> = dyn FnMut(Batch, &mut Cx<'p, '_>) -> Result<(), SqlError> + 't;

/// An operator whose type does not matter.
pub type BoxOperator<'p> = Box<dyn Operator<'p> + 'p>;

/// A plan at work.
pub struct Execution<'p> {
    plan: &'p Node,
    root: BoxOperator<'p>,
    state: CxState<'p>,
    phase: Phase,
}

#[derive(PartialEq, Eq)]
enum Phase {
    New,
    Running,
    Ended,
}

/// Prepares `plan`; nothing runs before the first [`Execution::next`].
pub fn run<'p>(plan: &'p Node, host: &mut dyn StatementHost) -> Result<Execution<'p>, SqlError> {
    host.check_cancelled()?;
    Ok(Execution { plan, root: build(plan), state: CxState::default(), phase: Phase::New })
}

impl<'p> Execution<'p> {
    /// The next rows for the client; `None` at the end. A plan that returns nothing (DML without OUTPUT, variable
    /// assignment) does all its work in the first call.
    pub fn next(&mut self, host: &mut dyn StatementHost) -> Result<Option<Batch>, SqlError> {
        let mut cx = Cx { host, state: &mut self.state };
        if self.phase == Phase::New {
            self.phase = Phase::Running;
            self.root.open(&mut cx)?;
        }
        if self.phase == Phase::Ended {
            return Ok(None);
        }
        cx.host.check_cancelled()?;
        let batch = self.root.next(&mut cx)?;
        match &batch {
            Some(batch) if !counts_own_rows(self.plan) => cx.state.rows_affected += batch.rows as u64,
            Some(_) => {}
            None => {
                self.phase = Phase::Ended;
                if cx.state.null_eliminated {
                    cx.host.info(message(8153, &[]));
                }
                if cx.state.duplicate_ignored {
                    cx.host.info(message(3604, &[]));
                }
            }
        }
        Ok(batch)
    }

    /// Runs to the end and throws the rows away.
    pub fn drain(&mut self, host: &mut dyn StatementHost) -> Result<(), SqlError> {
        while self.next(host)?.is_some() {}
        Ok(())
    }

    /// Rows returned, changed or assigned so far: what `@@ROWCOUNT` becomes.
    pub fn rows_affected(&self) -> u64 {
        self.state.rows_affected
    }

    /// Bytes written to files so far because they did not fit the memory grant, and the most memory operators held.
    pub fn spilled_and_peak_bytes(&self) -> (u64, usize) {
        (self.state.spilled_bytes, self.state.memory_bytes_peak())
    }

    /// Threads that have done parts of the work, beside the session's own.
    pub fn workers(&self) -> usize {
        self.state.workers
    }

    /// Keeps an account of the pages read from here on (SET STATISTICS IO).
    pub fn count_reads(&mut self) {
        self.state.reads = Some(Box::default());
    }

    /// The account, if one is kept.
    pub fn reads(&self) -> Option<&ReadAccount> {
        self.state.reads.as_deref()
    }

    /// Columns of the batches.
    pub fn columns(&self) -> &'p [OutputColumn] {
        &self.plan.columns
    }
}

fn counts_own_rows(plan: &Node) -> bool {
    matches!(
        plan.kind,
        NodeKind::Insert { .. }
            | NodeKind::Update { .. }
            | NodeKind::Delete { .. }
            | NodeKind::Merge { .. }
            | NodeKind::Instead { .. }
            | NodeKind::AssignVariables { .. }
    )
}

/// Value of an expression that names no column: what IF, WHILE, SET, PRINT and parameters need. Makes no array.
pub fn eval_scalar(expr: &Expr, host: &mut dyn StatementHost) -> Result<Scalar, SqlError> {
    let mut state = CxState::default();
    crate::eval::eval_free(expr, &mut Cx { host, state: &mut state })
}

/// For each row of `columns`, whether a condition over them is false; true and unknown pass.
pub fn eval_rows_false(expr: &Expr, columns: &[ArrayRef], rows: usize, host: &mut dyn StatementHost) -> Result<bool, SqlError> {
    let mut state = CxState::default();
    let batch = Batch::new(columns.to_vec(), rows);
    let values = crate::eval::eval_array(expr, &batch, &mut Cx { host, state: &mut state })?;
    Ok((0..rows).any(|row| scalar_at(values.as_ref(), row, &SqlType::Bit) == Scalar::Bit(false)))
}

/// Whether a condition is true: neither false nor unknown.
pub fn eval_condition(expr: &Expr, host: &mut dyn StatementHost) -> Result<bool, SqlError> {
    Ok(eval_scalar(expr, host)? == Scalar::Bit(true))
}

/// The operator of a node and those below it.
pub(crate) fn build(node: &Node) -> BoxOperator<'_> {
    match &node.kind {
        NodeKind::OneRow => Box::new(values::Values::one_row()),
        NodeKind::Values { rows } => Box::new(values::Values::new(rows, &node.columns)),
        NodeKind::SourceScan { source, arguments, columns, residual } => {
            Box::new(source_scan::SourceScan::new(source.as_ref(), arguments, columns, residual.as_ref(), &node.columns))
        }
        NodeKind::Filter { input, predicate } => Box::new(filter::Filter::new(build(input), predicate)),
        NodeKind::Project { input, exprs } => Box::new(project::Project::new(build(input), exprs)),
        NodeKind::Apply { left, right, kind, predicate } => Box::new(apply::Apply::new(left, right, *kind, predicate.as_ref())),
        NodeKind::HashJoin { left, right, kind, keys, residual } => {
            Box::new(hash_join::HashJoin::new(left, right, *kind, keys, residual.as_ref()))
        }
        NodeKind::MergeJoin { left, right, kind, keys, residual } => {
            Box::new(merge_join::MergeJoin::new(left, right, *kind, keys, residual.as_ref()))
        }
        NodeKind::NestedLoopJoin { left, right, kind, predicate } => {
            Box::new(nested_loop::NestedLoopJoin::new(left, right, *kind, predicate.as_ref()))
        }
        NodeKind::HashAggregate { input, keys, aggregates } => Box::new(aggregate::Aggregation::hashed(input, keys, aggregates)),
        NodeKind::StreamAggregate { input, keys, aggregates } => Box::new(aggregate::Aggregation::streamed(input, keys, aggregates)),
        NodeKind::PartialAggregate { input, keys, aggregates } => Box::new(aggregate::Aggregation::partial(input, keys, aggregates)),
        NodeKind::FinalAggregate { input, key_count, aggregates } => {
            Box::new(aggregate::Aggregation::finishing(input, *key_count, aggregates))
        }
        NodeKind::Distinct { input } => Box::new(distinct::Distinct::new(input)),
        NodeKind::Sort { input, keys } => Box::new(sort::Sort::new(input, keys)),
        NodeKind::TopN { input, keys, limit, percent, with_ties } => Box::new(top_n::TopN::new(input, keys, limit, *percent, *with_ties)),
        NodeKind::Limit { input, offset, limit, percent } => {
            Box::new(limit::Limit::new(build(input), offset.as_ref(), limit.as_ref(), *percent))
        }
        NodeKind::Concatenate { inputs } => Box::new(concatenate::Concatenate::new(inputs.iter().map(build).collect())),
        NodeKind::SetDifference { left, right, keep } => Box::new(set_difference::SetDifference::new(left, right, *keep)),
        NodeKind::SingleRow { input } => Box::new(single_row::SingleRow::new(input)),
        NodeKind::Recursive { anchor, recursive, work_table, depth_max } => {
            Box::new(recursive::Recursive::new(anchor, recursive, *work_table, *depth_max))
        }
        NodeKind::WorkTableScan { work_table } => Box::new(recursive::WorkTableScan::new(*work_table)),
        NodeKind::Instead { table, input, old_columns, new, output, .. } => {
            Box::new(instead::Instead::new(table, input, old_columns, new, output))
        }
        NodeKind::AssignVariables { input, assignments } => Box::new(assign::AssignVariables::new(build(input), assignments)),
        NodeKind::Window { input, partition, order, functions } if running_window::is_running(functions) => {
            Box::new(running_window::RunningWindow::new(input, partition, order, functions, &node.columns))
        }
        NodeKind::Window { input, partition, order, functions } => {
            Box::new(window::Window::new(input, partition, order, functions, &node.columns))
        }
        NodeKind::TableScan { .. }
        | NodeKind::Gather { .. }
        | NodeKind::Insert { .. }
        | NodeKind::Update { .. }
        | NodeKind::Delete { .. }
        | NodeKind::Merge { .. } => build_stored(node),
    }
}

/// The operators that touch tables.
fn build_stored(node: &Node) -> BoxOperator<'_> {
    match &node.kind {
        NodeKind::TableScan { table, .. } => {
            let spec = scan_spec(node).expect("the node is a scan");
            let scans = u64::from(!spec.is_one_row());
            Box::new(Counted::new(table_scan::TableScan::new(spec), table, scans))
        }
        NodeKind::Gather { input, order, degree_max } => {
            let NodeKind::TableScan { table, .. } = &gather::scan_below(input).kind else {
                unreachable!("what is gathered reads one table")
            };
            Box::new(Counted::new(gather::Gather::new(input, *order, *degree_max), table, 0))
        }
        NodeKind::Insert { table, input, targets, defaults, computed, passed, output } => {
            let insert =
                insert::Insert::new(input, insert::InsertSpec { table, targets: targets.into(), defaults, computed }, passed, output);
            Box::new(Counted::new(insert, table, 0))
        }
        NodeKind::Update { table, input, assignments, computed, old_columns, output } => {
            let spec = point_update::UpdateSpec { table, input, assignments, old_columns, output };
            match point_update::PointUpdate::of(spec) {
                Some(point) => Box::new(Counted::new(point, table, 0)),
                None => Box::new(Counted::new(update::Update::new(table, input, assignments, computed, old_columns, output), table, 0)),
            }
        }
        NodeKind::Delete { table, input, old_columns, output } => {
            Box::new(Counted::new(delete::Delete::new(table, input, old_columns, output), table, 0))
        }
        NodeKind::Merge { table, input, steps, computed, old_columns, output } => {
            Box::new(Counted::new(merge::Merge::new(table, input, steps, computed, old_columns, output), table, 0))
        }
        _ => unreachable!("only nodes that touch tables come here"),
    }
}

/// The operators of a change's input: to be read to the end first, if the change could otherwise meet its own rows.
/// `changed` are the table columns that change; `None` means rows that are new.
fn build_change_input<'p>(input: &'p Node, table: &TableDef, changed: Option<&[usize]>) -> BoxOperator<'p> {
    let safe = match (correlation::scans_of(input, table), changed) {
        (0, _) => true,
        // One scan, with nothing but filters and projections above: rows behind it are not met again, unless the key
        // by which it goes is what changes.
        (1, Some(changed)) => changed_rows::scan_below(input).is_some_and(|index| !moves_in(&table.indexes[index], changed)),
        _ => false,
    };
    if safe { build(input) } else { Box::new(spool::Spool::new(input)) }
}

/// Whether a change of these columns may move a row to another place of the index, or into it.
fn moves_in(index: &thawdb_catalog::IndexDef, changed: &[usize]) -> bool {
    let filtered = index.filter.iter().flat_map(|filter| filter.columns());
    index.keys.iter().map(|key| key.column_index).chain(filtered).any(|column| changed.contains(&column))
}

/// What a scan node asks for.
fn scan_spec(node: &Node) -> Option<table_scan::ScanSpec<'_>> {
    match &node.kind {
        NodeKind::TableScan { table, index, ranges, columns, residual, backward, locking } => Some(table_scan::ScanSpec {
            table,
            index: *index,
            ranges,
            columns,
            residual: residual.as_ref(),
            backward: *backward,
            locking: *locking,
        }),
        _ => None,
    }
}
