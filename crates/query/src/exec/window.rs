//! Window functions: columns appended to rows that are sorted by partition, then order.
//!
//! ```text
//! rows     p p p p q q r r r        partitions: equal partition keys
//! peers    a a b b a a a b b        within one: equal order keys
//! frame    ROWS: by position;  RANGE: by peers (only UNBOUNDED and CURRENT ROW, as SQL Server has it)
//! ```
//! One partition is held in memory at a time, within the grant (701); what needs none of it goes the way of
//! [`super::running_window`]. Aggregates over a frame that begins at the partition's start run along; other frames are
//! computed afresh for each row.

use crate::aggregate::{Accumulator, GroupIds, accumulator};
use crate::eval::eval_array;
use crate::exec::batch::{BATCH_ROWS, Rows};
use crate::exec::running_window::keys_of;
use crate::exec::window_distribution as distribution;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::{Aggregate, Expr};
use crate::phys::{Frame, FrameBound, Node, OutputColumn, SortKey, WindowFunction};
use arrow_array::{Array, ArrayRef, Int64Array, UInt32Array};
use arrow_select::take::take;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use thawdb_types::error::message;
use thawdb_types::{ColumnBuilder, Scalar, SqlError, SqlType, array_from_scalar, scalar_at};

pub(super) struct Window<'p> {
    input: BoxOperator<'p>,
    partition: &'p [Expr],
    order: &'p [SortKey],
    functions: &'p [WindowFunction],
    /// Types of the appended columns.
    types: Vec<SqlType>,
    /// Rows read that may belong to a partition that is not complete yet.
    pending: Vec<Batch>,
    pending_bytes: usize,
    last_key: Option<Vec<u8>>,
    ready: VecDeque<Batch>,
    ended: bool,
    held: usize,
}

/// A partition's rows and where its peers begin and end.
struct Partition {
    rows: Batch,
    /// End of the peers of each row.
    peer_end: Vec<usize>,
    peer_start: Vec<usize>,
}

impl<'p> Window<'p> {
    pub(super) fn new(
        input: &'p Node,
        partition: &'p [Expr],
        order: &'p [SortKey],
        functions: &'p [WindowFunction],
        columns: &'p [OutputColumn],
    ) -> Self {
        let types = columns[columns.len() - functions.len()..].iter().map(|c| c.sql_type).collect();
        Self {
            input: build(input),
            partition,
            order,
            functions,
            types,
            pending: Vec::new(),
            pending_bytes: 0,
            last_key: None,
            ready: VecDeque::new(),
            ended: false,
            held: 0,
        }
    }

    /// Takes a batch in; every partition that ends in it is computed.
    fn take_in(&mut self, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let keys = keys_of(self.partition.iter(), batch, cx)?;
        let mut start = 0;
        for (row, key) in keys.iter().enumerate() {
            if self.last_key.as_ref().is_some_and(|last| last != key) {
                if row > start {
                    self.pending.push(batch.slice(start, row - start));
                }
                self.finish_partition(cx)?;
                start = row;
            }
            if self.last_key.as_ref() != Some(key) {
                self.last_key = Some(key.clone());
            }
        }
        if start < batch.rows {
            self.pending.push(batch.slice(start, batch.rows - start));
            self.pending_bytes += batch.memory_bytes();
            cx.hold_or_fail(&mut self.held, self.pending_bytes)?;
        }
        Ok(())
    }

    fn finish_partition(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let rows = Batch::concat(&std::mem::take(&mut self.pending));
        self.pending_bytes = 0;
        let order = keys_of(self.order.iter().map(|k| &k.expr), &rows, cx)?;
        let (peer_start, peer_end) = peers(&order);
        let partition = Partition { rows, peer_end, peer_start };
        let mut columns = partition.rows.columns.clone();
        for (function, sql_type) in self.functions.iter().zip(&self.types) {
            columns.push(compute(function, sql_type, &partition, cx)?);
        }
        let all = Batch::new(columns, partition.rows.rows);
        for from in (0..all.rows).step_by(BATCH_ROWS) {
            self.ready.push_back(all.slice(from, BATCH_ROWS.min(all.rows - from)));
        }
        Ok(())
    }
}

/// First and beyond-last row of each row's peers.
fn peers(order: &[Vec<u8>]) -> (Vec<usize>, Vec<usize>) {
    let (mut starts, mut ends) = (vec![0; order.len()], vec![0; order.len()]);
    let mut start = 0;
    while start < order.len() {
        let end = (start..order.len()).find(|row| order[*row] != order[start]).unwrap_or(order.len());
        starts[start..end].fill(start);
        ends[start..end].fill(end);
        start = end;
    }
    (starts, ends)
}

fn compute<'p>(function: &'p WindowFunction, sql_type: &SqlType, part: &Partition, cx: &mut Cx<'p, '_>) -> Result<ArrayRef, SqlError> {
    let rows = part.rows.rows;
    let numbers = |of: &dyn Fn(usize) -> usize| -> ArrayRef { Arc::new((0..rows).map(|row| Some(of(row) as i64)).collect::<Int64Array>()) };
    match function {
        WindowFunction::RowNumber => Ok(numbers(&|row| row + 1)),
        WindowFunction::Rank => Ok(numbers(&|row| part.peer_start[row] + 1)),
        WindowFunction::DenseRank => {
            // A rank ends with the last of its peers.
            let mut ranks = Vec::with_capacity(rows);
            let mut rank = 1;
            for row in 0..rows {
                ranks.push(rank);
                rank += usize::from(part.peer_end[row] == row + 1);
            }
            Ok(numbers(&|row| ranks[row]))
        }
        WindowFunction::Ntile(count) => {
            let count = eval_array(count, &part.rows, cx)?;
            let tiles =
                scalar_at(count.as_ref(), 0, function_type(function)).as_i64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
            let tiles = tiles.ok_or_else(|| message(4116, &[&"ntile"]))?;
            // The first `rows % tiles` tiles have one row more.
            let (size, larger) = (rows / tiles, rows % tiles);
            Ok(numbers(&|row| {
                if row < larger * (size + 1) { row / (size + 1) + 1 } else { larger + (row - larger * (size + 1)) / size.max(1) + 1 }
            }))
        }
        WindowFunction::PercentRank => Ok(distribution::percent_rank(&part.peer_start)),
        WindowFunction::CumeDist => Ok(distribution::cume_dist(&part.peer_end)),
        WindowFunction::Percentile { value, fraction, continuous } => {
            let values = eval_array(value, &part.rows, cx)?;
            let fraction = scalar_at(eval_array(fraction, &part.rows, cx)?.as_ref(), 0, &SqlType::Float);
            let found = distribution::percentile(values.as_ref(), &value.sql_type, &fraction, *continuous)?;
            Ok(array_from_scalar(sql_type, &found, rows))
        }
        WindowFunction::Lag { value, offset, default, lead, ignore_nulls } => {
            shifted(value, offset, default.as_ref(), Shift { lead: *lead, ignore_nulls: *ignore_nulls }, part, cx)
        }
        WindowFunction::FirstValue { value, last, frame, ignore_nulls } => {
            let values = eval_array(value, &part.rows, cx)?;
            let counts = |row: &usize| !*ignore_nulls || values.is_valid(*row);
            let pick = |row: usize| {
                let mut frame = frame_of(frame, row, part);
                let found = if *last { frame.rev().find(counts) } else { frame.find(counts) };
                found.map(|row| row as u32)
            };
            let indices: UInt32Array = (0..rows).map(pick).collect();
            Ok(take(&values, &indices, None).expect("frames lie within the partition"))
        }
        WindowFunction::Aggregate { aggregate, frame } => framed(aggregate, frame, sql_type, part, cx),
    }
}

/// Type of NTILE's argument.
fn function_type(function: &WindowFunction) -> &SqlType {
    match function {
        WindowFunction::Ntile(count) => &count.sql_type,
        _ => &SqlType::BigInt,
    }
}

/// How LAG and LEAD look for their row.
#[derive(Clone, Copy)]
struct Shift {
    lead: bool,
    ignore_nulls: bool,
}

impl Shift {
    /// The row `by` rows away from `row`, if the partition has it.
    fn target(self, row: usize, by: i64, values: &dyn Array) -> Option<usize> {
        if self.ignore_nulls && by > 0 {
            let nth = usize::try_from(by - 1).ok()?;
            let counts = |row: &usize| values.is_valid(*row);
            return if self.lead { (row + 1..values.len()).filter(counts).nth(nth) } else { (0..row).rev().filter(counts).nth(nth) };
        }
        let at = if self.lead { (row as i64).checked_add(by) } else { (row as i64).checked_sub(by) };
        at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < values.len())
    }
}

/// LAG and LEAD.
fn shifted<'p>(
    value: &'p Expr,
    offset: &'p Expr,
    default: Option<&'p Expr>,
    shift: Shift,
    part: &Partition,
    cx: &mut Cx<'p, '_>,
) -> Result<ArrayRef, SqlError> {
    let values = eval_array(value, &part.rows, cx)?;
    let offsets = eval_array(offset, &part.rows, cx)?;
    let defaults = default.map(|d| eval_array(d, &part.rows, cx)).transpose()?;
    let mut builder = ColumnBuilder::new(&value.sql_type, part.rows.rows);
    for row in 0..part.rows.rows {
        let by = scalar_at(offsets.as_ref(), row, &offset.sql_type).as_i64().filter(|n| *n >= 0).ok_or_else(|| message(8730, &[]))?;
        let at = shift.target(row, by, values.as_ref());
        builder.append(&match (at, &defaults) {
            (Some(at), _) => scalar_at(values.as_ref(), at, &value.sql_type),
            (None, Some(defaults)) => scalar_at(defaults.as_ref(), row, &value.sql_type),
            (None, None) => Scalar::Null,
        });
    }
    Ok(builder.finish())
}

/// Rows of the frame of `row`.
fn frame_of(frame: &Frame, row: usize, part: &Partition) -> Range<usize> {
    let rows = part.rows.rows;
    let at = |bound: FrameBound, is_end: bool| match bound {
        FrameBound::UnboundedPreceding => 0,
        FrameBound::UnboundedFollowing => rows,
        FrameBound::CurrentRow if frame.rows => row + usize::from(is_end),
        FrameBound::CurrentRow if is_end => part.peer_end[row],
        FrameBound::CurrentRow => part.peer_start[row],
        FrameBound::Preceding(n) => (row + usize::from(is_end)).saturating_sub(usize::try_from(n).unwrap_or(usize::MAX)),
        FrameBound::Following(n) => (row + usize::from(is_end)).saturating_add(usize::try_from(n).unwrap_or(usize::MAX)).min(rows),
    };
    let (start, end) = (at(frame.start, false), at(frame.end, true).min(rows));
    start..end.max(start)
}

fn framed<'p>(
    aggregate: &'p Aggregate,
    frame: &Frame,
    sql_type: &SqlType,
    part: &Partition,
    cx: &mut Cx<'p, '_>,
) -> Result<ArrayRef, SqlError> {
    let argument = aggregate.argument.as_ref().map(|a| eval_array(a, &part.rows, cx)).transpose()?;
    let mut over = |range: Range<usize>| -> Result<Scalar, SqlError> {
        let mut state = accumulator(aggregate);
        feed(state.as_mut(), argument.as_ref(), range, cx)?;
        Ok(scalar_at(state.finish(1)?.as_ref(), 0, sql_type))
    };
    if frame.start == FrameBound::UnboundedPreceding && frame.end == FrameBound::UnboundedFollowing {
        return Ok(array_from_scalar(sql_type, &over(0..part.rows.rows)?, part.rows.rows));
    }
    let running = frame.start == FrameBound::UnboundedPreceding && !aggregate.distinct;
    if running && let Some(sums) = running_totals(aggregate, frame, part, argument.as_ref(), sql_type)? {
        return Ok(sums);
    }
    let mut builder = ColumnBuilder::new(sql_type, part.rows.rows);
    let mut before: Option<(Range<usize>, Scalar)> = None;
    for row in 0..part.rows.rows {
        let range = frame_of(frame, row, part);
        let value = match &before {
            Some((same, value)) if *same == range => value.clone(),
            _ => over(range.clone())?,
        };
        builder.append(&value);
        before = Some((range, value));
    }
    Ok(builder.finish())
}

fn feed(state: &mut dyn Accumulator, argument: Option<&ArrayRef>, range: Range<usize>, cx: &mut Cx<'_, '_>) -> Result<(), SqlError> {
    let ids = GroupIds { ids: None, rows: range.len(), group_count: 1 };
    let values = argument.map(|a| a.slice(range.start, range.len()));
    cx.state.null_eliminated |= state.update(&ids, values.as_ref())?;
    Ok(())
}

/// COUNT, SUM and AVG along a frame that only grows: each prefix once, through as many states as there are rows. `None`
/// for other aggregates.
fn running_totals(
    aggregate: &Aggregate,
    frame: &Frame,
    part: &Partition,
    argument: Option<&ArrayRef>,
    sql_type: &SqlType,
) -> Result<Option<ArrayRef>, SqlError> {
    use crate::expr::AggregateFunction as F;
    if !matches!(aggregate.function, F::Count | F::CountBig | F::Sum | F::Avg | F::Min | F::Max) {
        return Ok(None);
    }
    // One state that is asked for its result after each growth; asking must not empty it.
    let mut state = accumulator(aggregate);
    let mut builder = ColumnBuilder::new(sql_type, part.rows.rows);
    let mut taken = 0;
    let mut value = Scalar::Null;
    for row in 0..part.rows.rows {
        let end = frame_of(frame, row, part).end;
        if end > taken || row == 0 {
            let ids = GroupIds { ids: None, rows: end - taken, group_count: 1 };
            let values = argument.map(|a| a.slice(taken, end - taken));
            state.update(&ids, values.as_ref())?;
            value = scalar_at(state.peek()?.as_ref(), 0, sql_type);
            taken = end;
        }
        builder.append(&value);
    }
    Ok(Some(builder.finish()))
}

impl<'p> Operator<'p> for Window<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.pending.clear();
        self.ready.clear();
        (self.last_key, self.ended, self.pending_bytes) = (None, false, 0);
        cx.hold(&mut self.held, 0);
        self.input.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.ended {
                cx.hold(&mut self.held, 0);
                return Ok(None);
            }
            match self.input.next(cx)? {
                Some(batch) => self.take_in(&batch, cx)?,
                None => {
                    self.ended = true;
                    self.finish_partition(cx)?;
                }
            }
        }
    }
}
