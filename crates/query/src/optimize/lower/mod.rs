//! Lowering: operators get methods, columns get positions.
//!
//! ```text
//! Rel ── lower(want) ──► Lowered { node, columns: what stands at each position, order, cost }
//! ```
//!
//! Invariants: `columns[i]` is what output `i` of `node` holds; an [`crate::expr::Expr`] made for an input uses only its
//! positions and those of enclosing rows, which [`Lowerer::outers`] lists innermost last: the left row of each enclosing
//! Apply and the row over which each enclosing subquery expression is evaluated.
//!
//! An order is asked for, never demanded: who needs it checks what came back and sorts.

mod aggregate;
mod expr;
mod get;
mod join;
mod limit;
pub mod statement;

use super::cardinality::Estimator;
use super::{RuleCx, cost, plan_bug};
use crate::algebra::{BoundExpr, ColumnRef, Rel};
use crate::expr::Expr;
use crate::phys::{Node, NodeKind, OutputColumn};
use thawdb_types::SqlError;

/// A physical plan and what its positions mean.
#[derive(Debug, Clone)]
pub(crate) struct Lowered {
    pub node: Node,
    pub columns: Vec<ColumnRef>,
    /// Rows come sorted by these (true is DESC).
    pub order: Vec<(ColumnRef, bool)>,
    /// Columns with one value in all rows.
    pub constants: Vec<ColumnRef>,
    pub cost: f64,
}

/// What would be welcome of an input.
#[derive(Debug, Clone, Default)]
pub(crate) struct Want {
    /// This order.
    pub order: Vec<(ColumnRef, bool)>,
    /// Only about so many rows will be asked for.
    pub goal: Option<f64>,
}

/// Lowers one statement.
pub(crate) struct Lowerer<'a, 'c> {
    pub cx: &'a mut RuleCx<'c>,
    pub estimator: Estimator,
    /// Rows of enclosing queries, innermost last.
    pub outers: Vec<Vec<ColumnRef>>,
}

impl<'a, 'c> Lowerer<'a, 'c> {
    pub(crate) fn new(cx: &'a mut RuleCx<'c>, estimator: Estimator) -> Self {
        Self { cx, estimator, outers: Vec::new() }
    }

    /// Lowers `rel`.
    pub(crate) fn lower(&mut self, rel: &Rel, want: &Want) -> Result<Lowered, SqlError> {
        match rel {
            Rel::OneRow => Ok(self.leaf(NodeKind::OneRow, Vec::new(), 1.0, 0.0)),
            Rel::Values { rows, columns } => self.values(rows, columns),
            Rel::Get(get) => self.lower_get(get, &[], want),
            Rel::Source { .. } => self.source(rel, &[]),
            Rel::Filter { input, predicates } => self.filter(input, predicates, want),
            Rel::Project { input, exprs } => self.project(input, exprs, want),
            Rel::Join { .. } => self.join(rel, want),
            Rel::Apply { .. } => self.apply(rel, want),
            Rel::Aggregate { input, keys, aggregates } => self.aggregate(input, keys, aggregates, rel),
            Rel::Distinct { input } => self.distinct(input, rel),
            Rel::Sort { input, keys } => self.sort(input, keys, want.goal),
            Rel::Limit { input, top } => self.limit(input, top, rel),
            Rel::UnionAll { inputs, columns } => self.union_all(inputs, columns, want),
            Rel::SetDifference { .. } => self.set_difference(rel),
            Rel::SingleRow { input } => {
                let lowered = self.lower(input, &Want { order: Vec::new(), goal: Some(2.0) })?;
                let columns = lowered.columns.clone();
                let cost = lowered.cost;
                Ok(self.over(NodeKind::SingleRow { input: Box::new(lowered.node) }, columns, 1.0, cost))
            }
            Rel::Window { .. } => self.window(rel, want),
            Rel::Recursive { .. } => self.recursive(rel),
            Rel::WorkTable { work_table, columns } => {
                let rows = self.estimator.rows(rel, self.cx);
                let kind = NodeKind::WorkTableScan { work_table: *work_table };
                Ok(self.leaf(kind, columns.clone(), rows, rows * 0.2))
            }
        }
    }

    pub(crate) fn output_columns(&self, columns: &[ColumnRef]) -> Vec<OutputColumn> {
        let describe = |c: &ColumnRef| {
            let info = self.cx.columns.info(*c);
            OutputColumn { name: info.name.clone(), sql_type: info.sql_type, nullable: info.nullable, identity: info.identity }
        };
        columns.iter().map(describe).collect()
    }

    pub(crate) fn leaf(&self, kind: NodeKind, columns: Vec<ColumnRef>, rows: f64, cost: f64) -> Lowered {
        self.over(kind, columns, rows, cost)
    }

    pub(crate) fn over(&self, kind: NodeKind, columns: Vec<ColumnRef>, rows: f64, cost: f64) -> Lowered {
        let node = Node { kind, columns: self.output_columns(&columns), rows_estimate: rows };
        Lowered { node, columns, order: Vec::new(), constants: Vec::new(), cost }
    }

    /// Lowers an expression over the row `input`.
    pub(crate) fn expr(&mut self, expr: &BoundExpr, input: &[ColumnRef]) -> Result<Expr, SqlError> {
        expr::lower_expr(self, expr, input)
    }

    pub(crate) fn exprs(&mut self, exprs: &[BoundExpr], input: &[ColumnRef]) -> Result<Vec<Expr>, SqlError> {
        exprs.iter().map(|e| self.expr(e, input)).collect()
    }

    /// One predicate of several; `None` of none.
    pub(crate) fn predicate(&mut self, predicates: &[BoundExpr], input: &[ColumnRef]) -> Result<Option<Expr>, SqlError> {
        if predicates.is_empty() {
            return Ok(None);
        }
        let whole = BoundExpr::and(predicates.to_vec());
        self.expr(&whole, input).map(Some)
    }

    fn values(&mut self, rows: &[Vec<BoundExpr>], columns: &[ColumnRef]) -> Result<Lowered, SqlError> {
        let mut lowered = Vec::with_capacity(rows.len());
        for row in rows {
            lowered.push(self.exprs(row, &[])?);
        }
        let count = rows.len() as f64;
        Ok(self.leaf(NodeKind::Values { rows: lowered }, columns.to_vec(), count, count))
    }

    fn source(&mut self, rel: &Rel, predicates: &[BoundExpr]) -> Result<Lowered, SqlError> {
        let Rel::Source { source, arguments, columns } = rel else { return Err(plan_bug("a source was expected")) };
        let arguments = self.exprs(arguments, &[])?;
        let ids: Vec<ColumnRef> = columns.iter().map(|(_, c)| *c).collect();
        let residual = self.predicate(predicates, &ids)?;
        let all = self.estimator.rows(rel, self.cx);
        let rows = (all * self.estimator.conjunction(predicates)).max(1.0);
        let positions = columns.iter().map(|(p, _)| *p).collect();
        let kind = NodeKind::SourceScan { source: source.clone(), arguments, columns: positions, residual };
        Ok(self.leaf(kind, ids, rows, all * 2.0))
    }

    fn filter(&mut self, input: &Rel, predicates: &[BoundExpr], want: &Want) -> Result<Lowered, SqlError> {
        if self.cx.rewrite {
            match input {
                Rel::Get(get) => return self.lower_get(get, predicates, want),
                Rel::Source { .. } => return self.source(input, predicates),
                _ => {}
            }
        }
        let kept = self.estimator.conjunction(predicates).max(1e-6);
        let below = self.lower(input, &Want { order: want.order.clone(), goal: want.goal.map(|goal| goal / kept) })?;
        self.filter_over(below, predicates)
    }

    pub(crate) fn filter_over(&mut self, below: Lowered, predicates: &[BoundExpr]) -> Result<Lowered, SqlError> {
        let Some(predicate) = self.predicate(predicates, &below.columns)? else { return Ok(below) };
        let rows = (below.node.rows_estimate * self.estimator.conjunction(predicates)).max(1.0);
        let cost = below.cost + below.node.rows_estimate * cost::EVALUATE;
        let kind = NodeKind::Filter { input: Box::new(below.node), predicate };
        let mut lowered = self.over(kind, below.columns, rows, cost);
        (lowered.order, lowered.constants) = (below.order, below.constants);
        Ok(lowered)
    }

    fn project(&mut self, input: &Rel, exprs: &[(ColumnRef, BoundExpr)], want: &Want) -> Result<Lowered, SqlError> {
        let below = self.lower(input, want)?;
        self.project_over(below, exprs)
    }

    /// Computes `exprs` over `below`; nothing is done if they are all columns it has.
    pub(crate) fn project_over(&mut self, below: Lowered, exprs: &[(ColumnRef, BoundExpr)]) -> Result<Lowered, SqlError> {
        if exprs.iter().all(|(c, e)| e.as_column() == Some(*c) && below.columns.contains(c)) {
            return Ok(below);
        }
        let mut lowered = Vec::with_capacity(exprs.len());
        for (_, expr) in exprs {
            lowered.push(self.expr(expr, &below.columns)?);
        }
        let columns: Vec<ColumnRef> = exprs.iter().map(|(c, _)| *c).collect();
        // An order survives on columns that are passed on, under their new ids too.
        let passed = |c: &ColumnRef| exprs.iter().find(|(_, e)| e.as_column() == Some(*c)).map(|(new, _)| *new);
        let order = below.order.iter().map_while(|(c, d)| passed(c).map(|new| (new, *d))).collect();
        let constants = below.constants.iter().filter_map(passed).collect();
        let rows = below.node.rows_estimate;
        let cost = below.cost + rows * cost::EVALUATE;
        let mut result = self.over(NodeKind::Project { input: Box::new(below.node), exprs: lowered }, columns, rows, cost);
        (result.order, result.constants) = (order, constants);
        Ok(result)
    }

    /// `below` putting out exactly `columns`.
    pub(crate) fn exactly(&mut self, below: Lowered, columns: &[ColumnRef]) -> Result<Lowered, SqlError> {
        if below.columns == columns {
            return Ok(below);
        }
        let exprs: Vec<(ColumnRef, BoundExpr)> = columns.iter().map(|c| (*c, self.cx.column_expr(*c))).collect();
        let mut lowered = Vec::with_capacity(exprs.len());
        for (_, expr) in &exprs {
            lowered.push(self.expr(expr, &below.columns)?);
        }
        let (rows, cost) = (below.node.rows_estimate, below.cost);
        let kept = |c: &ColumnRef| columns.contains(c);
        let order = below.order.iter().copied().take_while(|(c, _)| kept(c)).collect();
        let constants = below.constants.iter().copied().filter(kept).collect();
        // A projection over a projection is one.
        let kind = NodeKind::Project { input: Box::new(below.node), exprs: lowered };
        let mut result = self.over(kind, columns.to_vec(), rows, cost);
        (result.order, result.constants) = (order, constants);
        Ok(result)
    }

    fn union_all(&mut self, inputs: &[(Rel, Vec<ColumnRef>)], columns: &[ColumnRef], want: &Want) -> Result<Lowered, SqlError> {
        let mut nodes = Vec::with_capacity(inputs.len());
        let (mut rows, mut cost) = (0.0, 0.0);
        for (input, wanted) in inputs {
            let lowered = self.lower(input, &Want { order: Vec::new(), goal: want.goal })?;
            let lowered = self.exactly(lowered, wanted)?;
            rows += lowered.node.rows_estimate;
            cost += lowered.cost;
            nodes.push(lowered.node);
        }
        Ok(self.over(NodeKind::Concatenate { inputs: nodes }, columns.to_vec(), rows, cost))
    }

    fn set_difference(&mut self, rel: &Rel) -> Result<Lowered, SqlError> {
        let Rel::SetDifference { left, right, left_columns, right_columns, keep } = rel else {
            return Err(plan_bug("a set operation was expected"));
        };
        let left = self.lower(left, &Want::default())?;
        let left = self.exactly(left, left_columns)?;
        let right = self.lower(right, &Want::default())?;
        let right = self.exactly(right, right_columns)?;
        let cost = left.cost + right.cost + left.node.rows_estimate * cost::BUILD + right.node.rows_estimate * cost::BUILD;
        let rows = (left.node.rows_estimate * 0.5).max(1.0);
        let kind = NodeKind::SetDifference { left: Box::new(left.node), right: Box::new(right.node), keep: *keep };
        Ok(self.over(kind, left_columns.clone(), rows, cost))
    }

    fn recursive(&mut self, rel: &Rel) -> Result<Lowered, SqlError> {
        let Rel::Recursive { anchor, recursive, columns, work_table, depth_max } = rel else {
            return Err(plan_bug("a recursion was expected"));
        };
        let rows = self.estimator.rows(rel, self.cx);
        let first = self.lower(&anchor.0, &Want::default())?;
        let first = self.exactly(first, &anchor.1)?;
        let next = self.lower(&recursive.0, &Want::default())?;
        let next = self.exactly(next, &recursive.1)?;
        let cost = first.cost + next.cost * 5.0;
        let kind = NodeKind::Recursive {
            anchor: Box::new(first.node),
            recursive: Box::new(next.node),
            work_table: *work_table,
            depth_max: *depth_max,
        };
        Ok(self.over(kind, columns.clone(), rows, cost))
    }
}

/// Whether rows in `order` are in the order of `keys`, columns of one value apart.
pub(crate) fn satisfies(order: &[(ColumnRef, bool)], constants: &[ColumnRef], keys: &[(ColumnRef, bool)]) -> bool {
    let mut have = order.iter().filter(|(c, _)| !constants.contains(c));
    keys.iter().filter(|(c, _)| !constants.contains(c)).all(|key| have.next() == Some(key))
}
