//! Which parts of a plan several threads may do: scans of large tables below aggregates, TOP, sorts and hash tables, with
//! the joins in between.
//!
//! ```text
//! aggregate over a scan          FinalAggregate ◄─ Gather(any) ◄─ PartialAggregate ◄─ filters, projections ◄─ scan
//! groups in index order          Gather(parts) ◄─ StreamAggregate ◄─ ... ◄─ scan       parts end between groups
//! TOP over either, or a scan     TopN ◄─ Gather(parts) ◄─ TopN ◄─ ...                  each part keeps its own first rows
//! sort, hash table, grouping     Sort ◄─ Gather(any) ◄─ joins, filters, projections ◄─ scan
//!
//! joins on the way               a hash join's left side is on the way; its right side is read first, and may be divided for
//!                                itself. The right side of an Apply or nested loops is run by each thread for its own rows.
//! ```
//! The plan is made for one thread first; this goes over it ([`divide`]), so that a plan for several differs from it in
//! nothing else. A part of the plan is divided if
//! 1. it costs more than `cost threshold for parallelism`, in SQL Server's units;
//! 2. it stands on one scan, forward and without locking hints, and runs once: not under an Apply, in a subquery or in a
//!    recursion, nor where somebody may stop early; joins on the way give rows for left rows, each for itself;
//! 3. its expressions change nothing and ask nothing of the session's thread: no subquery, no function of the user's, no
//!    sequence, no randomness, which a statement draws in one order;
//! 4. its aggregates have states that can be handed over (`aggregate::partial_types`).
//!
//! Whether it is really run by several threads is decided when it opens (`exec::gather`).

use super::access::row_bytes;
use super::cardinality::{PAGE_BYTES, rows_known};
use crate::aggregate::partial_types;
use crate::compile::{CompileContext, Parallelism};
use crate::exec::{visit_exprs, visit_inputs, visit_operands};
use crate::expr::{Aggregate, AggregateFunction, Expr, ExprKind};
use crate::functions::signature::{Class, find};
use crate::locking::LockHints;
use crate::phys::{GatherOrder, JoinKind, Node, NodeKind, OutputColumn, SortKey};
use thawdb_types::SqlType;

/// What SQL Server's cost model says of reading a page in sequence, of the first one, of a row, and of grouping a row.
const PAGE_COST: f64 = 0.000_740_74;
const FIRST_PAGE_COST: f64 = 0.003_125;
const ROW_COST: f64 = 0.000_001_1;
const GROUP_COST: f64 = 0.000_000_5;
/// And of running the right side of a loop again.
const REBIND_COST: f64 = 0.000_158;
/// Rows of a right side that each thread may read for itself.
const RIGHT_ROWS_MAX: f64 = 1000.0;

/// `node` with what can be divided divided.
pub(crate) fn divide(node: Node, settings: &Parallelism, cx: &dyn CompileContext) -> Node {
    if settings.degree_max < 2 { node } else { Divider { settings, cx }.whole(node) }
}

struct Divider<'c> {
    settings: &'c Parallelism,
    cx: &'c dyn CompileContext,
}

impl Divider<'_> {
    /// A node whose rows are all asked for, once.
    fn whole(&self, mut node: Node) -> Node {
        if let Some(divided) = self.divided(&node) {
            return divided;
        }
        match &mut node.kind {
            NodeKind::Sort { input, keys } if keys.iter().all(|key| is_free(&key.expr)) => self.replace_unordered(input),
            NodeKind::HashAggregate { input, keys, aggregates } if self.takes_any_order(keys, aggregates) => {
                self.replace_unordered(input);
            }
            NodeKind::Filter { input, .. }
            | NodeKind::Project { input, .. }
            | NodeKind::Sort { input, .. }
            | NodeKind::TopN { input, .. }
            | NodeKind::Distinct { input }
            | NodeKind::HashAggregate { input, .. }
            | NodeKind::StreamAggregate { input, .. }
            | NodeKind::Window { input, .. }
            | NodeKind::Insert { input, .. }
            | NodeKind::Update { input, .. }
            | NodeKind::Delete { input, .. }
            | NodeKind::Merge { input, .. }
            | NodeKind::AssignVariables { input, .. }
            | NodeKind::Apply { left: input, .. } => self.replace(input),
            NodeKind::HashJoin { left, right, keys, .. } => {
                self.replace(left);
                match keys.iter().all(|(_, key)| is_free(key)) {
                    true => self.replace_unordered(right),
                    false => self.replace(right),
                }
            }
            NodeKind::NestedLoopJoin { left, right, .. } | NodeKind::SetDifference { left, right, .. } => {
                self.replace(left);
                self.replace(right);
            }
            NodeKind::Concatenate { inputs } => {
                for input in inputs {
                    *input = self.whole(std::mem::replace(input, nothing()));
                }
            }
            // A merge join, a limit and a single row may end before their inputs do; the others have none, or have them run
            // again and again.
            _ => {}
        }
        node
    }

    fn replace(&self, input: &mut Box<Node>) {
        **input = self.whole(std::mem::replace(input, nothing()));
    }

    /// An input whose rows may come in any order.
    fn replace_unordered(&self, input: &mut Box<Node>) {
        let is_worth_it = self.chain(input).is_some() && self.cost(input, false).is_some_and(|cost| cost > self.settings.cost_threshold);
        if is_worth_it {
            **input = self.gathered((**input).clone(), GatherOrder::Any);
        } else {
            self.replace(input);
        }
    }

    /// Whether a grouping that cannot be divided gives the same whatever order its rows come in, and can take them in beside the
    /// threads that read them.
    fn takes_any_order(&self, keys: &[Expr], aggregates: &[Aggregate]) -> bool {
        let arguments = aggregates.iter().filter_map(|a| a.argument.as_ref());
        let in_order = aggregates.iter().any(|a| a.function == AggregateFunction::StringAgg);
        !in_order && keys.iter().chain(arguments).all(is_free)
    }

    fn divided(&self, node: &Node) -> Option<Node> {
        let divided = match &node.kind {
            NodeKind::HashAggregate { input, keys, aggregates } => self.aggregate(node, input, keys, aggregates)?,
            NodeKind::StreamAggregate { input, keys, aggregates } if keys.is_empty() => self.aggregate(node, input, keys, aggregates)?,
            NodeKind::StreamAggregate { .. } => self.gathered(node.clone(), GatherOrder::Parts(self.groups_of_parts(node)?)),
            NodeKind::TopN { input, keys, limit, percent: false, .. } => self.top(node, input, keys, limit)?,
            _ => return None,
        };
        Some(divided)
    }

    fn aggregate(&self, node: &Node, input: &Node, keys: &[Expr], aggregates: &[Aggregate]) -> Option<Node> {
        self.chain(input)?;
        let own = keys.iter().chain(aggregates.iter().filter_map(|a| a.argument.as_ref()));
        let states: Vec<Vec<SqlType>> = aggregates.iter().map(partial_types).collect::<Option<_>>()?;
        if !own.clone().all(is_free) || self.cost(input, !keys.is_empty())? <= self.settings.cost_threshold {
            return None;
        }
        let state = |(sql_type, name): (&SqlType, &str)| OutputColumn {
            name: name.to_owned(),
            sql_type: *sql_type,
            nullable: true,
            identity: false,
        };
        let keys_out = node.columns[..keys.len()].iter().cloned();
        let names = node.columns[keys.len()..].iter().map(|column| column.name.as_str());
        let states = states.iter().zip(names).flat_map(|(types, name)| types.iter().map(move |sql_type| (sql_type, name)));
        let partial = Node {
            columns: keys_out.chain(states.map(state)).collect(),
            rows_estimate: node.rows_estimate * f64::from(self.settings.degree_max),
            kind: NodeKind::PartialAggregate { input: Box::new(input.clone()), keys: keys.to_vec(), aggregates: aggregates.to_vec() },
        };
        let gathered = self.gathered(partial, GatherOrder::Any);
        let kind = NodeKind::FinalAggregate { input: Box::new(gathered), key_count: keys.len(), aggregates: aggregates.to_vec() };
        Some(Node { kind, columns: node.columns.clone(), rows_estimate: node.rows_estimate })
    }

    /// How many key columns of its index a grouping in index order is by, if parts can end between its groups.
    fn groups_of_parts(&self, node: &Node) -> Option<usize> {
        let NodeKind::StreamAggregate { input, keys, aggregates } = &node.kind else { return None };
        self.chain(input)?;
        let arguments = aggregates.iter().filter_map(|a| a.argument.as_ref());
        let in_order = aggregates.iter().any(|a| a.function == AggregateFunction::StringAgg);
        if in_order || keys.is_empty() || !arguments.clone().all(is_free) || self.cost(input, true)? <= self.settings.cost_threshold {
            return None;
        }
        let mut columns: Vec<usize> = keys.iter().map(|key| table_column(key, input)).collect::<Option<_>>()?;
        columns.sort_unstable();
        columns.dedup();
        let NodeKind::TableScan { table, index, .. } = &crate::exec::scan_below(input).kind else { return None };
        let leading = table.indexes[*index].keys.get(..columns.len())?;
        let is_cut = |column: &usize| has_one_form(&table.columns[*column].sql_type);
        let leads = leading.iter().all(|key| columns.contains(&key.column_index));
        (leads && columns.iter().all(is_cut)).then_some(columns.len())
    }

    fn top(&self, node: &Node, input: &Node, keys: &[SortKey], limit: &Expr) -> Option<Node> {
        if !keys.iter().map(|key| &key.expr).chain([limit]).all(is_free) {
            return None;
        }
        let order = match self.chain(input) {
            Some(()) if self.cost(input, true)? <= self.settings.cost_threshold => return None,
            // Any part will do, as long as rows stay in the order of the parts.
            Some(()) => GatherOrder::Parts(0),
            None => GatherOrder::Parts(self.groups_of_parts(through(input)?)?),
        };
        let mut above = node.clone();
        if let NodeKind::TopN { input, .. } = &mut above.kind {
            **input = self.gathered(node.clone(), order);
        }
        Some(above)
    }

    fn gathered(&self, mut input: Node, order: GatherOrder) -> Node {
        self.divide_right_sides(&mut input);
        let (columns, rows_estimate) = (input.columns.clone(), input.rows_estimate);
        let kind = NodeKind::Gather { input: Box::new(input), order, degree_max: self.settings.degree_max };
        Node { kind, columns, rows_estimate }
    }

    /// Divides the right sides of the hash joins on the way: they are read before the work is divided.
    fn divide_right_sides(&self, node: &mut Node) {
        match &mut node.kind {
            NodeKind::HashJoin { left, right, keys, .. } => {
                match keys.iter().all(|(_, key)| is_free(key)) {
                    true => self.replace_unordered(right),
                    false => self.replace(right),
                }
                self.divide_right_sides(left);
            }
            NodeKind::Filter { input, .. }
            | NodeKind::Project { input, .. }
            | NodeKind::PartialAggregate { input, .. }
            | NodeKind::StreamAggregate { input, .. }
            | NodeKind::TopN { input, .. }
            | NodeKind::NestedLoopJoin { left: input, .. }
            | NodeKind::Apply { left: input, .. } => self.divide_right_sides(input),
            _ => {}
        }
    }

    /// Whether `node` is a scan that may be divided, with filters, projections and joins above.
    fn chain(&self, node: &Node) -> Option<()> {
        match &node.kind {
            NodeKind::Filter { input, predicate } if is_free(predicate) => self.chain(input),
            NodeKind::Project { input, exprs } if exprs.iter().all(is_free) => self.chain(input),
            NodeKind::HashJoin { left, kind, keys, residual, .. } if keeps_to_left(*kind) => {
                let mut exprs = keys.iter().map(|(key, _)| key).chain(residual);
                exprs.all(is_free).then(|| self.chain(left))?
            }
            NodeKind::NestedLoopJoin { left, right, kind, predicate } if keeps_to_left(*kind) => {
                let is_short = right.rows_estimate <= RIGHT_ROWS_MAX && is_free_below(right, 0);
                (is_short && predicate.iter().all(is_free)).then(|| self.chain(left))?
            }
            NodeKind::Apply { left, right, kind, predicate } if keeps_to_left(*kind) => {
                (is_free_below(right, 1) && predicate.iter().all(is_free)).then(|| self.chain(left))?
            }
            NodeKind::TableScan { ranges, residual, backward: false, locking, .. } => {
                let bounds = ranges.iter().flat_map(|range| [&range.start, &range.end]).flatten();
                let mut exprs = bounds.flat_map(|bound| &bound.values).chain(residual);
                (!locks(locking) && exprs.all(is_free)).then_some(())
            }
            _ => None,
        }
    }

    /// What reading what `node` reads costs, and grouping it.
    fn cost(&self, node: &Node, grouped: bool) -> Option<f64> {
        let scan = crate::exec::scan_below(node);
        let NodeKind::TableScan { table, index, ranges, .. } = &scan.kind else { return None };
        let rows = match ranges.is_empty() {
            true => rows_known(self.cx, table).unwrap_or(scan.rows_estimate),
            false => scan.rows_estimate,
        };
        let pages = rows * row_bytes(table, *index) / PAGE_BYTES;
        let own = if grouped { GROUP_COST } else { 0.0 };
        Some(FIRST_PAGE_COST + pages * PAGE_COST + rows * (ROW_COST + own) + rebinds(node) * REBIND_COST)
    }
}

/// Runs of the right sides of loops on the way from `node` to its scan.
fn rebinds(node: &Node) -> f64 {
    match &node.kind {
        NodeKind::Apply { left, .. } => left.rows_estimate + rebinds(left),
        NodeKind::Filter { input, .. }
        | NodeKind::Project { input, .. }
        | NodeKind::PartialAggregate { input, .. }
        | NodeKind::StreamAggregate { input, .. }
        | NodeKind::TopN { input, .. }
        | NodeKind::HashJoin { left: input, .. }
        | NodeKind::NestedLoopJoin { left: input, .. } => rebinds(input),
        _ => 0.0,
    }
}

/// Whether what a join gives for a left row depends on no other left row.
fn keeps_to_left(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Inner | JoinKind::LeftOuter | JoinKind::LeftSemi | JoinKind::LeftAnti)
}

fn locks(hints: &LockHints) -> bool {
    LockHints { isolation: None, ..*hints } != LockHints::default()
}

/// Whether any thread may run a plan below so many enclosing rows, which are its own.
fn is_free_below(node: &Node, depth: usize) -> bool {
    let own = match &node.kind {
        NodeKind::TableScan { locking, .. } => !locks(locking),
        NodeKind::OneRow
        | NodeKind::Values { .. }
        | NodeKind::Filter { .. }
        | NodeKind::Project { .. }
        | NodeKind::Apply { .. }
        | NodeKind::HashJoin { .. }
        | NodeKind::MergeJoin { .. }
        | NodeKind::NestedLoopJoin { .. }
        | NodeKind::HashAggregate { .. }
        | NodeKind::StreamAggregate { .. }
        | NodeKind::Distinct { .. }
        | NodeKind::Sort { .. }
        | NodeKind::TopN { .. }
        | NodeKind::Limit { .. }
        | NodeKind::Concatenate { .. } => true,
        _ => false,
    };
    let mut all = own;
    visit_exprs(node, &mut |expr| all &= is_free_at(expr, depth));
    visit_inputs(node, &mut |input, below_apply| all &= is_free_below(input, depth + usize::from(below_apply)));
    all
}

/// A node that stands where another was taken from.
fn nothing() -> Node {
    Node { kind: NodeKind::OneRow, columns: Vec::new(), rows_estimate: 0.0 }
}

/// The aggregate below projections and filters that change nothing but rows.
fn through(node: &Node) -> Option<&Node> {
    match &node.kind {
        NodeKind::Filter { input, predicate } if is_free(predicate) => through(input),
        NodeKind::Project { input, exprs } if exprs.iter().all(is_free) => through(input),
        NodeKind::StreamAggregate { .. } => Some(node),
        _ => None,
    }
}

/// The table's column that `expr`, over the rows of `node`, is.
fn table_column(expr: &Expr, node: &Node) -> Option<usize> {
    let ExprKind::Column(at) = expr.kind else { return None };
    match &node.kind {
        NodeKind::TableScan { table, columns, .. } => Some(columns[at]).filter(|column| *column < table.columns.len()),
        NodeKind::Filter { input, .. } => table_column(expr, input),
        NodeKind::Project { input, exprs } => table_column(&exprs[at], input),
        _ => None,
    }
}

/// Whether equal values of a type have the same bytes in a key.
fn has_one_form(sql_type: &SqlType) -> bool {
    crate::exec::is_integer_like(sql_type) || matches!(sql_type, SqlType::Decimal { .. } | SqlType::UniqueIdentifier)
}

/// Whether an expression may be evaluated by any thread: it changes nothing, and gives the same whoever asks.
fn is_free(expr: &Expr) -> bool {
    is_free_at(expr, 0)
}

/// The same below so many enclosing rows of the thread's own.
fn is_free_at(expr: &Expr, depth: usize) -> bool {
    let own = match &expr.kind {
        ExprKind::Subquery { .. } => false,
        ExprKind::Outer { level, .. } => *level <= depth,
        ExprKind::Function { name, .. } => *name != "RAND" && find(name).is_some_and(|function| function.class != Class::Volatile),
        _ => true,
    };
    let mut all = own;
    visit_operands(expr, &mut |operand| all &= is_free_at(operand, depth));
    all
}
