//! Order and limit: an index's own order, a sort, or the best n kept.

use super::{Lowered, Lowerer, Want, satisfies};
use crate::algebra::{BoundExpr, BoundExprKind, BoundSortKey, BoundSubquery, BoundWindow, ColumnRef, Rel, Top};
use crate::functions::signature::constant_int;
use crate::optimize::{cost, plan_bug};
use crate::phys::{Frame, FrameBound, NodeKind};
use thawdb_types::SqlError;

/// The keys as columns, if they all are.
fn key_columns(keys: &[BoundSortKey]) -> Option<Vec<(ColumnRef, bool)>> {
    keys.iter().map(|k| k.expr.as_column().map(|c| (c, k.descending))).collect()
}

/// Whether `expr` has one value for all rows of a query: no column, nothing drawn anew, no table read.
fn is_constant(expr: &BoundExpr) -> bool {
    expr.free_columns().is_empty() && !expr.is_volatile() && subqueries_read_nothing(expr)
}

fn subqueries_read_nothing(expr: &BoundExpr) -> bool {
    let own = match &expr.kind {
        BoundExprKind::Subquery { plan, kind: BoundSubquery::Scalar, .. } => gives_one_row(plan),
        BoundExprKind::Subquery { .. } => false,
        _ => true,
    };
    own && expr.children().into_iter().all(subqueries_read_nothing)
}

fn gives_one_row(rel: &Rel) -> bool {
    match rel {
        Rel::OneRow => true,
        Rel::Values { rows, .. } => rows.len() == 1 && rows[0].iter().all(is_constant),
        Rel::Project { input, exprs } => gives_one_row(input) && exprs.iter().all(|(_, e)| is_constant(e)),
        Rel::SingleRow { input } => gives_one_row(input),
        _ => false,
    }
}

fn needs_later_rows(function: &BoundWindow) -> bool {
    let runs = |frame: &Frame| frame.start == FrameBound::UnboundedPreceding && frame.end == FrameBound::CurrentRow;
    match function {
        BoundWindow::RowNumber | BoundWindow::Rank | BoundWindow::DenseRank => false,
        BoundWindow::Lag { lead, .. } => *lead,
        BoundWindow::Ntile(_) | BoundWindow::PercentRank | BoundWindow::CumeDist | BoundWindow::Percentile { .. } => true,
        BoundWindow::FirstValue { frame, .. } | BoundWindow::Aggregate { frame, .. } => !runs(frame),
    }
}

impl Lowerer<'_, '_> {
    /// Lowers `input` in the order of `keys`, with a sort if nothing better gives it.
    pub(super) fn sort(&mut self, input: &Rel, keys: &[BoundSortKey], goal: Option<f64>) -> Result<Lowered, SqlError> {
        let below = self.sortable(input, keys, goal)?;
        if self.is_sorted(&below, keys) {
            return Ok(below);
        }
        let rows = below.node.rows_estimate;
        let lowered_keys = self.sort_keys(keys, &below.columns)?;
        let cost = below.cost + cost::sort(rows);
        let constants = below.constants.clone();
        let kind = NodeKind::Sort { input: Box::new(below.node), keys: lowered_keys };
        let mut lowered = self.over(kind, below.columns, rows, cost);
        lowered.order = keys.iter().map_while(|k| k.expr.as_column().map(|c| (c, k.descending))).collect();
        lowered.constants = constants;
        Ok(lowered)
    }

    fn is_sorted(&self, below: &Lowered, keys: &[BoundSortKey]) -> bool {
        key_columns(keys).is_some_and(|keys| satisfies(&below.order, &below.constants, &keys))
    }

    /// `input` with the order of `keys` if that is cheap.
    fn sortable(&mut self, input: &Rel, keys: &[BoundSortKey], goal: Option<f64>) -> Result<Lowered, SqlError> {
        let order = if self.cx.rewrite { key_columns(keys).unwrap_or_default() } else { Vec::new() };
        self.lower(input, &Want { order, goal })
    }

    pub(super) fn limit(&mut self, input: &Rel, top: &Top, rel: &Rel) -> Result<Lowered, SqlError> {
        let rows = self.estimator.rows(rel, self.cx);
        if let (Rel::Sort { input: unsorted, keys }, None, Some(limit)) = (input, &top.offset, &top.limit) {
            let goal = (!top.percent).then(|| constant_int(limit).map_or(100.0, |n| n.max(0) as f64));
            let below = self.sortable(unsorted, keys, goal)?;
            if !top.ties.is_empty() || !self.is_sorted(&below, keys) {
                let lowered_keys = self.sort_keys(keys, &below.columns)?;
                let limit = self.expr(limit, &[])?;
                let cost = below.cost + cost::top(below.node.rows_estimate, rows);
                let kind = NodeKind::TopN {
                    input: Box::new(below.node),
                    keys: lowered_keys,
                    limit,
                    percent: top.percent,
                    with_ties: !top.ties.is_empty(),
                };
                let mut lowered = self.over(kind, below.columns, rows, cost);
                lowered.order = keys.iter().map_while(|k| k.expr.as_column().map(|c| (c, k.descending))).collect();
                lowered.constants = below.constants;
                return Ok(lowered);
            }
            return self.limit_over(below, top, rows);
        }
        if !top.ties.is_empty() {
            return Err(plan_bug("TOP WITH TIES stands over its ORDER BY"));
        }
        let goal = (!top.percent).then_some(rows + top.offset.as_ref().and_then(constant_int).unwrap_or(0) as f64);
        let below = self.lower(input, &Want { order: Vec::new(), goal })?;
        self.limit_over(below, top, rows)
    }

    fn limit_over(&mut self, below: Lowered, top: &Top, rows: f64) -> Result<Lowered, SqlError> {
        let offset = top.offset.as_ref().map(|o| self.expr(o, &[])).transpose()?;
        let limit = top.limit.as_ref().map(|l| self.expr(l, &[])).transpose()?;
        let cost = below.cost;
        let kind = NodeKind::Limit { input: Box::new(below.node), offset, limit, percent: top.percent };
        let mut lowered = self.over(kind, below.columns, rows, cost);
        (lowered.order, lowered.constants) = (below.order, below.constants);
        Ok(lowered)
    }

    pub(super) fn window(&mut self, rel: &Rel, want: &Want) -> Result<Lowered, SqlError> {
        let Rel::Window { input, partition, order, functions } = rel else { return Err(plan_bug("a window was expected")) };
        let by_partition = partition.iter().map(|e| BoundSortKey { expr: e.clone(), descending: false });
        // What has one value for all rows orders nothing: ORDER BY (SELECT NULL) numbers rows as they come.
        let order: Vec<BoundSortKey> = order.iter().filter(|k| !is_constant(&k.expr)).cloned().collect();
        let keys: Vec<BoundSortKey> = by_partition.filter(|k| !is_constant(&k.expr)).chain(order.iter().cloned()).collect();
        let partition: Vec<BoundExpr> = partition.iter().filter(|e| !is_constant(e)).cloned().collect();
        // Functions that need nothing of later rows read no more than is asked for; others at least a partition.
        let goal = want.goal.filter(|_| functions.iter().all(|(_, f)| !needs_later_rows(f)));
        let below = if keys.is_empty() { self.lower(input, &Want { order: Vec::new(), goal })? } else { self.sort(input, &keys, goal)? };
        let (partition, order) = (&partition, &order);
        let partition = self.exprs(partition, &below.columns)?;
        let lowered_order = self.sort_keys(order, &below.columns)?;
        let mut lowered_functions = Vec::with_capacity(functions.len());
        for (_, function) in functions {
            lowered_functions.push(self.lower_window(function, &below.columns)?);
        }
        let mut columns = below.columns.clone();
        columns.extend(functions.iter().map(|(c, _)| *c));
        let rows = below.node.rows_estimate;
        let cost = below.cost + rows * 0.5;
        let kind = NodeKind::Window { input: Box::new(below.node), partition, order: lowered_order, functions: lowered_functions };
        let mut lowered = self.over(kind, columns, rows, cost);
        (lowered.order, lowered.constants) = (below.order, below.constants);
        Ok(lowered)
    }
}
