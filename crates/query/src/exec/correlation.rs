//! Whether a plan looks at rows outside itself: such a subquery or join side must run again for each outer row.

use crate::expr::{Expr, ExprKind, SubqueryKind};
use crate::phys::{Node, NodeKind, SeekRange, WindowFunction};
use thawdb_catalog::TableDef;

/// Whether `plan` refers to a row of a query around it.
pub fn refers_outside(plan: &Node) -> bool {
    node_deeper_than(plan, 0)
}

/// Whether a node refers to more than `depth` enclosing rows; `depth` counts the Apply nodes between it and the root.
fn node_deeper_than(node: &Node, depth: usize) -> bool {
    // Rows of a work table change from round to round, as those of an outer row do.
    let mut found = matches!(node.kind, NodeKind::WorkTableScan { .. });
    visit_exprs(node, &mut |expr| found |= expr_deeper_than(expr, depth));
    visit_inputs(node, &mut |input, below_apply| found |= node_deeper_than(input, depth + usize::from(below_apply)));
    found
}

fn expr_deeper_than(expr: &Expr, depth: usize) -> bool {
    let mut found = match &expr.kind {
        ExprKind::Outer { level, .. } => *level > depth,
        ExprKind::Subquery { plan, .. } => node_deeper_than(plan, depth + 1),
        _ => false,
    };
    visit_operands(expr, &mut |operand| found |= expr_deeper_than(operand, depth));
    found
}

/// Calls `found` with each column of the enclosing row `level` levels above `plan` that the plan refers to.
pub(super) fn columns_of_outer_row(plan: &Node, level: usize, found: &mut dyn FnMut(usize)) {
    visit_exprs(plan, &mut |expr| expr_columns_of_outer_row(expr, level, found));
    visit_inputs(plan, &mut |input, below_apply| columns_of_outer_row(input, level + usize::from(below_apply), found));
}

fn expr_columns_of_outer_row(expr: &Expr, level: usize, found: &mut dyn FnMut(usize)) {
    match &expr.kind {
        ExprKind::Outer { level: named, column } if *named == level => found(*column),
        ExprKind::Subquery { plan, .. } => columns_of_outer_row(plan, level + 1, found),
        _ => {}
    }
    visit_operands(expr, &mut |operand| expr_columns_of_outer_row(operand, level, found));
}

/// How many scans of `table` there are in `plan`, its subqueries included.
pub(super) fn scans_of(plan: &Node, table: &TableDef) -> usize {
    let own = match &plan.kind {
        NodeKind::TableScan { table: scanned, .. } => usize::from(scanned.id == table.id && scanned.database == table.database),
        _ => 0,
    };
    let mut count = own;
    visit_exprs(plan, &mut |expr| count += scans_in_subqueries(expr, table));
    visit_inputs(plan, &mut |input, _| count += scans_of(input, table));
    count
}

fn scans_in_subqueries(expr: &Expr, table: &TableDef) -> usize {
    let mut count = match &expr.kind {
        ExprKind::Subquery { plan, .. } => scans_of(plan, table),
        _ => 0,
    };
    visit_operands(expr, &mut |operand| count += scans_in_subqueries(operand, table));
    count
}

/// Whether `expr` gives one value for all rows of a batch: it names no column, draws no randomness, asks no subquery.
pub fn is_row_independent(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Outer { .. } | ExprKind::Variable(_) | ExprKind::Global(_) => true,
        ExprKind::Column(_) | ExprKind::Subquery { .. } => false,
        ExprKind::Function { name: "NEWID" | "NEXT VALUE FOR" | "NEWSEQUENTIALID" | "CRYPT_GEN_RANDOM", .. } => false,
        _ => {
            let mut independent = true;
            visit_operands(expr, &mut |operand| independent &= is_row_independent(operand));
            independent
        }
    }
}

/// Calls `visit` for each direct operand.
pub fn visit_operands<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Column(_)
        | ExprKind::Outer { .. }
        | ExprKind::Variable(_)
        | ExprKind::Global(_)
        | ExprKind::Subquery { kind: SubqueryKind::Scalar | SubqueryKind::Exists { .. }, .. } => {}
        ExprKind::Subquery { kind: SubqueryKind::Quantified { operand, .. }, .. } => visit(operand),
        ExprKind::Arithmetic { left, right, .. } | ExprKind::Compare { left, right, .. } | ExprKind::Concat(left, right) => {
            visit(left);
            visit(right);
        }
        ExprKind::Negate(operand) | ExprKind::BitNot(operand) | ExprKind::Not(operand) => visit(operand),
        ExprKind::IsNull { operand, .. } | ExprKind::Convert { operand, .. } => visit(operand),
        ExprKind::And(list) | ExprKind::Or(list) => list.iter().for_each(visit),
        ExprKind::InList { operand, list, .. } => {
            visit(operand);
            list.iter().for_each(visit);
        }
        ExprKind::Like { operand, pattern, escape, .. } => {
            visit(operand);
            visit(pattern);
            escape.as_deref().into_iter().for_each(visit);
        }
        ExprKind::Case { branches, otherwise } => {
            for (condition, result) in branches {
                visit(condition);
                visit(result);
            }
            otherwise.as_deref().into_iter().for_each(visit);
        }
        ExprKind::Function { arguments, .. } => arguments.iter().for_each(visit),
    }
}

fn visit_ranges<'e>(ranges: &'e [SeekRange], visit: &mut dyn FnMut(&'e Expr)) {
    for bound in ranges.iter().flat_map(|r| [&r.start, &r.end]).flatten() {
        bound.values.iter().for_each(&mut *visit);
    }
}

/// Calls `visit` for each expression of a node, those of its inputs not among them.
pub(crate) fn visit_exprs<'e>(node: &'e Node, visit: &mut dyn FnMut(&'e Expr)) {
    match &node.kind {
        NodeKind::OneRow | NodeKind::Concatenate { .. } | NodeKind::Distinct { .. } | NodeKind::Gather { .. } => {}
        NodeKind::SetDifference { .. } | NodeKind::SingleRow { .. } => {}
        NodeKind::Recursive { .. } | NodeKind::WorkTableScan { .. } => {}
        NodeKind::Values { rows } => rows.iter().flatten().for_each(visit),
        NodeKind::TableScan { ranges, residual, .. } => {
            visit_ranges(ranges, visit);
            residual.iter().for_each(visit);
        }
        NodeKind::SourceScan { arguments, residual, .. } => arguments.iter().chain(residual).for_each(visit),
        NodeKind::Filter { predicate, .. } => visit(predicate),
        NodeKind::Project { exprs, .. } => exprs.iter().for_each(visit),
        NodeKind::Apply { predicate, .. } | NodeKind::NestedLoopJoin { predicate, .. } => predicate.iter().for_each(visit),
        NodeKind::HashJoin { keys, residual, .. } => {
            for (left, right) in keys {
                visit(left);
                visit(right);
            }
            residual.iter().for_each(visit);
        }
        NodeKind::MergeJoin { residual, .. } => residual.iter().for_each(visit),
        // What it takes in was worked out below.
        NodeKind::FinalAggregate { .. } => {}
        NodeKind::HashAggregate { keys, aggregates, .. }
        | NodeKind::StreamAggregate { keys, aggregates, .. }
        | NodeKind::PartialAggregate { keys, aggregates, .. } => {
            keys.iter().chain(aggregates.iter().filter_map(|a| a.argument.as_ref())).for_each(visit);
        }
        NodeKind::Sort { keys, .. } => keys.iter().for_each(|k| visit(&k.expr)),
        NodeKind::TopN { keys, limit, .. } => {
            keys.iter().for_each(|k| visit(&k.expr));
            visit(limit);
        }
        NodeKind::Limit { offset, limit, .. } => offset.iter().chain(limit).for_each(visit),
        NodeKind::Window { partition, order, functions, .. } => {
            partition.iter().for_each(&mut *visit);
            order.iter().for_each(|k| visit(&k.expr));
            functions.iter().for_each(|f| visit_window_function(f, visit));
        }
        NodeKind::Insert { defaults, output, .. } => defaults.iter().map(|(_, e)| e).chain(output).for_each(visit),
        NodeKind::Update { assignments, output, .. } => assignments.iter().map(|(_, e)| e).chain(output).for_each(visit),
        NodeKind::Delete { output, .. } => output.iter().for_each(visit),
        NodeKind::Instead { new, output, .. } => new.iter().chain(output).for_each(visit),
        NodeKind::Merge { steps, output, .. } => {
            let own = steps.iter().flat_map(|step| step.exprs());
            own.chain(output).for_each(visit);
        }
        NodeKind::AssignVariables { assignments, .. } => assignments.iter().for_each(|(_, e)| visit(e)),
    }
}

fn visit_window_function<'e>(function: &'e WindowFunction, visit: &mut dyn FnMut(&'e Expr)) {
    match function {
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => {}
        WindowFunction::PercentRank | WindowFunction::CumeDist => {}
        WindowFunction::Ntile(expr) => visit(expr),
        WindowFunction::Percentile { value, fraction, .. } => {
            visit(value);
            visit(fraction);
        }
        WindowFunction::Lag { value, offset, default, .. } => {
            visit(value);
            visit(offset);
            default.iter().for_each(visit);
        }
        WindowFunction::FirstValue { value, .. } => visit(value),
        WindowFunction::Aggregate { aggregate, .. } => aggregate.argument.iter().for_each(visit),
    }
}

/// Calls `visit` for each input, telling whether the input runs under one more outer row.
pub(crate) fn visit_inputs<'e>(node: &'e Node, visit: &mut dyn FnMut(&'e Node, bool)) {
    match &node.kind {
        NodeKind::OneRow | NodeKind::Values { .. } | NodeKind::TableScan { .. } | NodeKind::SourceScan { .. } => {}
        NodeKind::WorkTableScan { .. } => {}
        NodeKind::Recursive { anchor, recursive, .. } => {
            visit(anchor, false);
            visit(recursive, false);
        }
        NodeKind::Apply { left, right, .. } => {
            visit(left, false);
            visit(right, true);
        }
        NodeKind::HashJoin { left, right, .. }
        | NodeKind::MergeJoin { left, right, .. }
        | NodeKind::NestedLoopJoin { left, right, .. }
        | NodeKind::SetDifference { left, right, .. } => {
            visit(left, false);
            visit(right, false);
        }
        NodeKind::Concatenate { inputs } => inputs.iter().for_each(|input| visit(input, false)),
        NodeKind::Filter { input, .. }
        | NodeKind::Project { input, .. }
        | NodeKind::HashAggregate { input, .. }
        | NodeKind::StreamAggregate { input, .. }
        | NodeKind::PartialAggregate { input, .. }
        | NodeKind::FinalAggregate { input, .. }
        | NodeKind::Gather { input, .. }
        | NodeKind::Distinct { input }
        | NodeKind::Sort { input, .. }
        | NodeKind::TopN { input, .. }
        | NodeKind::Limit { input, .. }
        | NodeKind::SingleRow { input }
        | NodeKind::Window { input, .. }
        | NodeKind::Insert { input, .. }
        | NodeKind::Update { input, .. }
        | NodeKind::Delete { input, .. }
        | NodeKind::Merge { input, .. }
        | NodeKind::Instead { input, .. }
        | NodeKind::AssignVariables { input, .. } => visit(input, false),
    }
}
