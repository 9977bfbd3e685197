//! Window functions that need nothing of the rows behind: rows go through as they come, with what was counted so far.
//!
//! ```text
//! input   p1 a | p1 a | p1 b | p2 a      ROWS .. CURRENT ROW: each row at once
//!         -----------   ----   ----      RANGE .. CURRENT ROW: peers at once, when the next ones are seen
//! ```
//! ROW_NUMBER, RANK, DENSE_RANK, LAG by a constant, and COUNT, SUM, AVG, MIN, MAX, FIRST_VALUE and LAST_VALUE over a frame
//! from the partition's start to the current row ([`is_running`]). So a TOP above ends what is below, and a partition need
//! not fit in memory: held are the peers of one order key at most, within the grant (701), and only for a RANGE.
//!
//! Invariant: a function's state is that of the partition the last row belongs to; [`RunningWindow::step`] alone starts anew.

use crate::aggregate::{Accumulator, GroupIds, accumulator};
use crate::eval::eval_array;
use crate::exec::batch::{BATCH_ROWS, Rows};
use crate::exec::keys::encode_value;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::{Aggregate, AggregateFunction, Expr, ExprKind};
use crate::phys::{Frame, FrameBound, Node, OutputColumn, SortKey, WindowFunction};
use arrow_array::ArrayRef;
use std::collections::VecDeque;
use std::ops::Range;
use thawdb_types::{ColumnBuilder, Scalar, SqlError, SqlType, scalar_at};

/// LAG farther than this keeps its partition in memory.
const LAG_MAX: usize = 1024;

/// Whether every function can be told from the rows before and the row's peers.
pub(super) fn is_running(functions: &[WindowFunction]) -> bool {
    functions.iter().all(|function| match function {
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => true,
        WindowFunction::Aggregate { aggregate, frame } => is_growing(frame) && can_be_asked(aggregate),
        WindowFunction::FirstValue { frame, ignore_nulls: false, .. } => is_growing(frame),
        WindowFunction::Lag { offset, lead: false, ignore_nulls: false, .. } => constant_offset(offset).is_some(),
        WindowFunction::Lag { .. } | WindowFunction::FirstValue { .. } | WindowFunction::Ntile(_) => false,
        WindowFunction::PercentRank | WindowFunction::CumeDist | WindowFunction::Percentile { .. } => false,
    })
}

fn is_growing(frame: &Frame) -> bool {
    frame.start == FrameBound::UnboundedPreceding && frame.end == FrameBound::CurrentRow
}

/// Whether the state tells its result and goes on.
fn can_be_asked(aggregate: &Aggregate) -> bool {
    use AggregateFunction as F;
    !aggregate.distinct && matches!(aggregate.function, F::Count | F::CountBig | F::Sum | F::Avg | F::Min | F::Max)
}

fn constant_offset(offset: &Expr) -> Option<usize> {
    let ExprKind::Literal(value) = &offset.kind else { return None };
    value.as_i64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= LAG_MAX)
}

/// Whether a row's value depends on its peers that come after it.
fn needs_peers(function: &WindowFunction) -> bool {
    match function {
        WindowFunction::Aggregate { frame, .. } => !frame.rows,
        WindowFunction::FirstValue { last, frame, .. } => *last && !frame.rows,
        _ => false,
    }
}

/// What a function knows of the partition's rows so far.
enum State {
    Number(i64),
    Rank {
        rows: i64,
        rank: i64,
    },
    DenseRank(i64),
    Aggregate(Box<dyn Accumulator>),
    First(Option<Scalar>),
    /// LAST_VALUE, which is the frame's last row.
    Last,
    Lag(VecDeque<Scalar>),
}

impl State {
    fn new(function: &WindowFunction) -> Self {
        match function {
            WindowFunction::Rank => Self::Rank { rows: 0, rank: 0 },
            WindowFunction::DenseRank => Self::DenseRank(0),
            WindowFunction::Aggregate { aggregate, .. } => Self::Aggregate(accumulator(aggregate)),
            WindowFunction::FirstValue { last: false, .. } => Self::First(None),
            WindowFunction::FirstValue { last: true, .. } => Self::Last,
            WindowFunction::Lag { .. } => Self::Lag(VecDeque::new()),
            WindowFunction::RowNumber => Self::Number(0),
            WindowFunction::Ntile(_) | WindowFunction::PercentRank | WindowFunction::CumeDist | WindowFunction::Percentile { .. } => {
                unreachable!("not running, by is_running")
            }
        }
    }
}

/// Rows with the keys of their partition and order.
struct Keyed {
    rows: Batch,
    partitions: Vec<Vec<u8>>,
    orders: Vec<Vec<u8>>,
}

impl Keyed {
    fn split_off(&mut self, at: usize) -> Self {
        let rows = self.rows.slice(at, self.rows.rows - at);
        self.rows = self.rows.slice(0, at);
        Self { rows, partitions: self.partitions.split_off(at), orders: self.orders.split_off(at) }
    }

    fn concat(parts: Vec<Self>) -> Self {
        let rows = Batch::concat(&parts.iter().map(|p| p.rows.clone()).collect::<Vec<_>>());
        let (mut partitions, mut orders) = (Vec::with_capacity(rows.rows), Vec::with_capacity(rows.rows));
        for part in parts {
            partitions.extend(part.partitions);
            orders.extend(part.orders);
        }
        Self { rows, partitions, orders }
    }
}

pub(super) struct RunningWindow<'p> {
    input: BoxOperator<'p>,
    partition: &'p [Expr],
    order: &'p [SortKey],
    functions: &'p [WindowFunction],
    /// Types of the appended columns.
    types: Vec<SqlType>,
    waits_for_peers: bool,
    states: Vec<State>,
    /// Keys of the last row that went through.
    last: Option<(Vec<u8>, Vec<u8>)>,
    /// Peers of which more may come.
    pending: Vec<Keyed>,
    pending_bytes: usize,
    held: usize,
    ready: VecDeque<Batch>,
    ended: bool,
}

impl<'p> RunningWindow<'p> {
    pub(super) fn new(
        input: &'p Node,
        partition: &'p [Expr],
        order: &'p [SortKey],
        functions: &'p [WindowFunction],
        columns: &'p [OutputColumn],
    ) -> Self {
        Self {
            input: build(input),
            partition,
            order,
            functions,
            types: columns[columns.len() - functions.len()..].iter().map(|c| c.sql_type).collect(),
            waits_for_peers: functions.iter().any(needs_peers),
            states: Vec::new(),
            last: None,
            pending: Vec::new(),
            pending_bytes: 0,
            held: 0,
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// Takes a batch in and hands on the rows whose peers are all known.
    fn take_in(&mut self, batch: Batch, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let partitions = keys_of(self.partition.iter(), &batch, cx)?;
        let orders = keys_of(self.order.iter().map(|k| &k.expr), &batch, cx)?;
        let mut keyed = Keyed { rows: batch, partitions, orders };
        if !self.waits_for_peers {
            return self.hand_on(keyed, cx);
        }
        let differs = |a: usize, b: usize| keyed.partitions[a] != keyed.partitions[b] || keyed.orders[a] != keyed.orders[b];
        let begin = (1..keyed.rows.rows).rev().find(|&row| differs(row - 1, row)).unwrap_or(0);
        let continues = |p: &Keyed| p.partitions.last() == keyed.partitions.first() && p.orders.last() == keyed.orders.first();
        let goes_on = begin == 0 && self.pending.last().is_some_and(continues);
        let open = keyed.split_off(begin);
        if !goes_on {
            let mut complete = std::mem::take(&mut self.pending);
            self.pending_bytes = 0;
            complete.extend((begin > 0).then_some(keyed));
            if !complete.is_empty() {
                self.hand_on(Keyed::concat(complete), cx)?;
            }
        }
        self.pending_bytes += open.rows.memory_bytes();
        self.pending.push(open);
        cx.hold_or_fail(&mut self.held, self.pending_bytes)
    }

    fn hand_on(&mut self, keyed: Keyed, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let all = self.step(keyed, cx)?;
        for from in (0..all.rows).step_by(BATCH_ROWS) {
            self.ready.push_back(all.slice(from, BATCH_ROWS.min(all.rows - from)));
        }
        Ok(())
    }

    /// The rows with their functions' values; states go on.
    fn step(&mut self, keyed: Keyed, cx: &mut Cx<'p, '_>) -> Result<Batch, SqlError> {
        let Keyed { rows, mut partitions, mut orders } = keyed;
        let runs = self.runs(&partitions, &orders);
        let mut columns = rows.columns.clone();
        for ((function, sql_type), state) in self.functions.iter().zip(&self.types).zip(&mut self.states) {
            let mut column = RunColumn::new(function, sql_type, &rows, cx)?;
            for run in &runs {
                if run.begins_partition {
                    *state = State::new(function);
                }
                column.append(state, run, cx)?;
            }
            columns.push(column.builder.finish());
        }
        if let (Some(partition), Some(order)) = (partitions.pop(), orders.pop()) {
            self.last = Some((partition, order));
        }
        Ok(Batch::new(columns, rows.rows))
    }

    /// The rows cut where the order's or the partition's key changes.
    fn runs(&self, partitions: &[Vec<u8>], orders: &[Vec<u8>]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for row in 0..partitions.len() {
            let before = match row {
                0 => self.last.as_ref().map(|(partition, order)| (partition, order)),
                _ => Some((&partitions[row - 1], &orders[row - 1])),
            };
            let begins_partition = before.is_none_or(|(partition, _)| *partition != partitions[row]);
            let begins_peers = begins_partition || before.is_none_or(|(_, order)| *order != orders[row]);
            match runs.last_mut() {
                Some(run) if !begins_peers => run.rows.end = row + 1,
                _ => runs.push(Run { rows: row..row + 1, begins_partition, begins_peers }),
            }
        }
        runs
    }
}

/// Rows of one order key that stand together.
struct Run {
    rows: Range<usize>,
    begins_partition: bool,
    /// False where the rows go on with the peers of the batch before.
    begins_peers: bool,
}

/// The column of a function as it is made.
struct RunColumn<'p, 'r> {
    function: &'p WindowFunction,
    sql_type: &'r SqlType,
    values: Option<ArrayRef>,
    defaults: Option<(ArrayRef, SqlType)>,
    value_type: SqlType,
    builder: ColumnBuilder,
}

impl<'p, 'r> RunColumn<'p, 'r> {
    fn new(function: &'p WindowFunction, sql_type: &'r SqlType, rows: &Batch, cx: &mut Cx<'p, '_>) -> Result<Self, SqlError> {
        let (value, default) = match function {
            WindowFunction::Aggregate { aggregate, .. } => (aggregate.argument.as_ref(), None),
            WindowFunction::FirstValue { value, .. } => (Some(value), None),
            WindowFunction::Lag { value, default, .. } => (Some(value), default.as_ref()),
            _ => (None, None),
        };
        Ok(Self {
            function,
            sql_type,
            values: value.map(|v| eval_array(v, rows, cx)).transpose()?,
            defaults: default.map(|d| Ok::<_, SqlError>((eval_array(d, rows, cx)?, d.sql_type))).transpose()?,
            value_type: value.map_or(*sql_type, |v| v.sql_type),
            builder: ColumnBuilder::new(sql_type, rows.rows),
        })
    }

    fn value(&self, row: usize) -> Scalar {
        let values = self.values.as_ref().expect("the function has an argument");
        scalar_at(values.as_ref(), row, &self.value_type)
    }

    /// Appends the values of a run.
    fn append(&mut self, state: &mut State, run: &Run, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        match state {
            State::Number(number) => run.rows.clone().for_each(|_| {
                *number += 1;
                self.builder.append(&Scalar::BigInt(*number));
            }),
            State::Rank { rows, rank } => {
                if run.begins_peers {
                    *rank = *rows + 1;
                }
                *rows += run.rows.len() as i64;
                run.rows.clone().for_each(|_| self.builder.append(&Scalar::BigInt(*rank)));
            }
            State::DenseRank(rank) => {
                *rank += i64::from(run.begins_peers);
                run.rows.clone().for_each(|_| self.builder.append(&Scalar::BigInt(*rank)));
            }
            State::First(first) => {
                let first = first.get_or_insert_with(|| self.value(run.rows.start)).clone();
                run.rows.clone().for_each(|_| self.builder.append(&first));
            }
            State::Last => {
                let by_rows = matches!(self.function, WindowFunction::FirstValue { frame, .. } if frame.rows);
                for row in run.rows.clone() {
                    let value = self.value(if by_rows { row } else { run.rows.end - 1 });
                    self.builder.append(&value);
                }
            }
            State::Lag(before) => self.append_lag(before, run),
            State::Aggregate(sum) => return self.append_totals(sum.as_mut(), run, cx),
        }
        Ok(())
    }

    fn append_lag(&mut self, before: &mut VecDeque<Scalar>, run: &Run) {
        let WindowFunction::Lag { offset, .. } = self.function else { return };
        let offset = constant_offset(offset).expect("only a constant offset runs along");
        for row in run.rows.clone() {
            before.push_back(self.value(row));
            let value = match (before.len() > offset, &self.defaults) {
                (true, _) => before.pop_front().expect("as many values are kept as the offset says, and this one"),
                (false, Some((defaults, sql_type))) => scalar_at(defaults.as_ref(), row, sql_type),
                (false, None) => Scalar::Null,
            };
            self.builder.append(&value);
        }
    }

    fn append_totals(&mut self, sum: &mut dyn Accumulator, run: &Run, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let by_rows = matches!(self.function, WindowFunction::Aggregate { frame, .. } if frame.rows);
        let step = if by_rows { 1 } else { run.rows.len() };
        for from in run.rows.clone().step_by(step) {
            let values = self.values.as_ref().map(|v| v.slice(from, step));
            cx.state.null_eliminated |= sum.update(&GroupIds { ids: None, rows: step, group_count: 1 }, values.as_ref())?;
            let total = scalar_at(sum.peek()?.as_ref(), 0, self.sql_type);
            (0..step).for_each(|_| self.builder.append(&total));
        }
        Ok(())
    }
}

/// Equality keys of every row.
pub(super) fn keys_of<'p>(exprs: impl Iterator<Item = &'p Expr>, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Vec<Vec<u8>>, SqlError> {
    let mut keys = vec![Vec::new(); batch.rows];
    for expr in exprs {
        let values = eval_array(expr, batch, cx)?;
        keys.iter_mut().enumerate().for_each(|(row, key)| encode_value(values.as_ref(), row, &expr.sql_type, key));
    }
    Ok(keys)
}

impl<'p> Operator<'p> for RunningWindow<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.states = self.functions.iter().map(State::new).collect();
        self.pending.clear();
        self.ready.clear();
        (self.last, self.pending_bytes, self.ended) = (None, 0, false);
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
                Some(batch) => self.take_in(batch, cx)?,
                None => {
                    self.ended = true;
                    let rest = std::mem::take(&mut self.pending);
                    if !rest.is_empty() {
                        self.hand_on(Keyed::concat(rest), cx)?;
                    }
                }
            }
        }
    }

    fn row_goal(&mut self, rows: u64) {
        // The end of the peers is seen by the row behind them.
        if !self.waits_for_peers {
            self.input.row_goal(rows);
        }
    }
}
