//! Statements: the root of a plan, and the rows changed.

use super::{Lowered, Lowerer, Want};
use crate::algebra::{BoundExpr, ColumnRef, Rel};
use crate::bind::computed::BoundComputed;
use crate::bind::query::OutputName;
use crate::bind::statement::{BoundDelete, BoundInsert, BoundInstead, BoundMerge, BoundOutput, BoundStmt, BoundUpdate, MergeStepKind};
use crate::compile::{ChangeAction, Compiled, CompiledKind};
use crate::expr::Expr;
use crate::optimize::cardinality::Estimator;
use crate::optimize::{RuleCx, client_columns, compiled, optimize, optimize_subqueries, plan_bug, rules};
use crate::phys::{MergeStep, Node, NodeKind, OutputColumn, SortKey};
use thawdb_types::SqlError;

/// Plans a statement.
pub(crate) fn plan(bound: BoundStmt, cx: &mut RuleCx<'_>) -> Result<Compiled, SqlError> {
    match bound {
        BoundStmt::Query { rel, outputs } => {
            let columns = client_columns(&outputs, &cx.columns);
            let node = plan_rows(rel, &outputs, cx)?;
            Ok(compiled(node, CompiledKind::Rows, columns))
        }
        BoundStmt::SelectInto { rel, outputs, table, columns } => {
            let node = plan_rows(rel, &outputs, cx)?;
            Ok(compiled(node, CompiledKind::SelectInto { table, columns }, Vec::new()))
        }
        BoundStmt::Assign { rel, assignments } => plan_assign(rel, assignments, cx),
        BoundStmt::Insert(insert) => plan_insert(*insert, cx),
        BoundStmt::Update(update) => plan_update(*update, cx),
        BoundStmt::Delete(delete) => plan_delete(*delete, cx),
        BoundStmt::Merge(merge) => plan_merge(*merge, cx),
        BoundStmt::Instead(instead) => plan_instead(*instead, cx),
    }
}

fn needed(exprs: &[&BoundExpr], more: &[ColumnRef]) -> Vec<ColumnRef> {
    let mut all: Vec<ColumnRef> = exprs.iter().flat_map(|e| e.free_columns()).chain(more.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn with_lowerer<T>(
    rel: &Rel,
    exprs: &[&BoundExpr],
    cx: &mut RuleCx<'_>,
    work: impl FnOnce(&mut Lowerer<'_, '_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let mut estimator = Estimator::of(rel, cx);
    // As expressions, not as a predicate: what is assigned says nothing of how many rows there are.
    exprs.iter().for_each(|e| estimator.collect_expr(e, cx));
    work(&mut Lowerer::new(cx, estimator))
}

fn plan_rows(rel: Rel, outputs: &[OutputName], cx: &mut RuleCx<'_>) -> Result<Node, SqlError> {
    let wanted: Vec<ColumnRef> = outputs.iter().map(|o| o.column).collect();
    let rel = optimize(rel, &wanted, cx)?;
    let mut node = with_lowerer(&rel, &[], cx, |low| {
        let lowered = low.lower(&rel, &Want::default())?;
        Ok(low.exactly(lowered, &wanted)?.node)
    })?;
    // The client sees the names of the select list.
    for (column, output) in node.columns.iter_mut().zip(outputs) {
        column.name.clone_from(&output.name);
    }
    Ok(node)
}

fn plan_assign(rel: Rel, mut assignments: Vec<(usize, BoundExpr)>, cx: &mut RuleCx<'_>) -> Result<Compiled, SqlError> {
    for (_, expr) in &mut assignments {
        optimize_subqueries(expr, cx)?;
        rules::fold::fold_expr(expr);
    }
    let exprs: Vec<&BoundExpr> = assignments.iter().map(|(_, e)| e).collect();
    let rel = optimize(rel, &needed(&exprs, &[]), cx)?;
    let node = with_lowerer(&rel, &exprs, cx, |low| {
        let below = low.lower(&rel, &Want::default())?;
        let assignments = lower_assignments(low, &assignments, &below.columns)?;
        let rows_estimate = below.node.rows_estimate;
        Ok(Node { kind: NodeKind::AssignVariables { input: Box::new(below.node), assignments }, columns: Vec::new(), rows_estimate })
    })?;
    Ok(compiled(node, CompiledKind::Assign, Vec::new()))
}

fn lower_assignments(
    low: &mut Lowerer<'_, '_>,
    assignments: &[(usize, BoundExpr)],
    input: &[ColumnRef],
) -> Result<Vec<(usize, Expr)>, SqlError> {
    assignments.iter().map(|(at, e)| Ok((*at, low.expr(e, input)?))).collect()
}

fn lower_computed(low: &mut Lowerer<'_, '_>, computed: &BoundComputed) -> Result<Vec<(usize, Expr)>, SqlError> {
    lower_assignments(low, &computed.exprs, &computed.row)
}

/// Lowers OUTPUT's items over `row`.
fn lower_output(
    low: &mut Lowerer<'_, '_>,
    output: Option<&BoundOutput>,
    row: &[ColumnRef],
) -> Result<(Vec<Expr>, Vec<OutputColumn>), SqlError> {
    let mut exprs = Vec::new();
    let mut columns = Vec::new();
    for (name, item) in output.iter().flat_map(|o| &o.items) {
        let lowered = low.expr(item, row)?;
        let identity = item.as_column().is_some_and(|c| low.cx.columns.info(c).identity);
        columns.push(OutputColumn { name: name.clone(), sql_type: lowered.sql_type, nullable: lowered.nullable, identity });
        exprs.push(lowered);
    }
    Ok((exprs, columns))
}

/// Puts OUTPUT INTO's insert over `node`; without INTO its rows are the client's.
fn finish_output(low: &mut Lowerer<'_, '_>, node: Node, output: Option<&BoundOutput>) -> Result<(Node, Vec<OutputColumn>, bool), SqlError> {
    let Some(output) = output else { return Ok((node, Vec::new(), false)) };
    let Some(into) = &output.into else {
        let columns = node.columns.clone();
        return Ok((node, columns, true));
    };
    let defaults = lower_assignments(low, &into.defaults, &[])?;
    let computed = lower_computed(low, &into.computed)?;
    let rows_estimate = node.rows_estimate;
    let (table, targets) = (into.table.clone(), into.targets.clone());
    // Beside INTO there may be an OUTPUT to the client: its items stand behind those of the table.
    let columns = node.columns[targets.len()..].to_vec();
    let passed: Vec<usize> = (targets.len()..node.columns.len()).collect();
    let rows = !passed.is_empty();
    let kind = NodeKind::Insert { table, input: Box::new(node), targets, defaults, computed, passed, output: Vec::new() };
    Ok((Node { kind, columns: columns.clone(), rows_estimate }, columns, rows))
}

fn plan_insert(insert: BoundInsert, cx: &mut RuleCx<'_>) -> Result<Compiled, SqlError> {
    let wanted: Vec<ColumnRef> = insert.values.iter().map(|(_, c)| *c).collect();
    let rel = optimize(insert.input, &wanted, cx)?;
    let items: Vec<&BoundExpr> = insert.output.iter().flat_map(|o| &o.items).map(|(_, e)| e).collect();
    let (node, columns, rows) = with_lowerer(&rel, &items, cx, |low| {
        let below = low.lower(&rel, &Want::default())?;
        let below = if wanted.is_empty() { below } else { low.exactly(below, &wanted)? };
        let defaults = lower_assignments(low, &insert.defaults, &[])?;
        let computed = lower_computed(low, &insert.computed)?;
        let inserted = insert.output.as_ref().map_or_else(Vec::new, |o| o.inserted.clone());
        let (output, columns) = lower_output(low, insert.output.as_ref(), &inserted)?;
        let rows_estimate = below.node.rows_estimate;
        let targets = insert.values.iter().map(|(t, _)| *t).collect();
        let (table, input) = (insert.table.clone(), Box::new(below.node));
        let kind = NodeKind::Insert { table, input, targets, defaults, computed, passed: Vec::new(), output };
        finish_output(low, Node { kind, columns, rows_estimate }, insert.output.as_ref())
    })?;
    Ok(compiled(node, CompiledKind::Insert { output: rows }, columns))
}

/// The input of UPDATE and DELETE: the locator first, then what else is there.
fn changed_rows(low: &mut Lowerer<'_, '_>, rel: &Rel, locator: ColumnRef, old: &[ColumnRef]) -> Result<(Lowered, Vec<usize>), SqlError> {
    let below = low.lower(rel, &Want::default())?;
    let mut order = vec![locator];
    order.extend(below.columns.iter().copied().filter(|c| *c != locator));
    let below = low.exactly(below, &order)?;
    let position = |c: &ColumnRef| below.columns.iter().position(|x| x == c).ok_or_else(|| plan_bug("an old column is gone"));
    let old_columns = old.iter().map(position).collect::<Result<_, _>>()?;
    Ok((below, old_columns))
}

fn plan_update(mut update: BoundUpdate, cx: &mut RuleCx<'_>) -> Result<Compiled, SqlError> {
    for (_, expr) in update.assignments.iter_mut().chain(&mut update.variables) {
        optimize_subqueries(expr, cx)?;
        rules::fold::fold_expr(expr);
    }
    let items = update.output.iter().flat_map(|o| &o.items).map(|(_, e)| e);
    let exprs: Vec<&BoundExpr> = update.assignments.iter().chain(&update.variables).map(|(_, e)| e).chain(items).collect();
    let mut more = update.old.clone();
    more.push(update.locator);
    let rel = optimize(update.input, &needed(&exprs, &more), cx)?;
    let (node, columns, rows) = with_lowerer(&rel, &exprs, cx, |low| {
        let (below, old_columns) = changed_rows(low, &rel, update.locator, &update.old)?;
        let assignments = lower_assignments(low, &update.assignments, &below.columns)?;
        // The row OUTPUT sees: old columns, new columns, the input.
        let row: Vec<ColumnRef> = update.old.iter().chain(&update.inserted).chain(&below.columns).copied().collect();
        let (mut output, mut columns) = lower_output(low, update.output.as_ref(), &row)?;
        let width = output.len();
        for (_, expr) in &update.variables {
            let lowered = low.expr(expr, &row)?;
            columns.push(OutputColumn { name: String::new(), sql_type: lowered.sql_type, nullable: true, identity: false });
            output.push(lowered);
        }
        let rows_estimate = below.node.rows_estimate;
        let computed = lower_computed(low, &update.computed)?;
        let (table, input) = (update.table.clone(), Box::new(below.node));
        let kind = NodeKind::Update { table, input, assignments, computed, old_columns, output };
        let node = Node { kind, columns, rows_estimate };
        if update.variables.is_empty() {
            return finish_output(low, node, update.output.as_ref());
        }
        if update.output.is_some() {
            return Err(crate::bind::error::not_built("UPDATE with both OUTPUT and SET @variable", Default::default()));
        }
        let take = |(at, (variable, expr)): (usize, &(usize, BoundExpr))| {
            (*variable, Expr { kind: crate::expr::ExprKind::Column(width + at), sql_type: expr.sql_type, nullable: true })
        };
        let assignments = update.variables.iter().enumerate().map(take).collect();
        let kind = NodeKind::AssignVariables { input: Box::new(node), assignments };
        Ok((Node { kind, columns: Vec::new(), rows_estimate }, Vec::new(), false))
    })?;
    Ok(compiled(node, CompiledKind::Update { output: rows }, columns))
}

fn plan_delete(delete: BoundDelete, cx: &mut RuleCx<'_>) -> Result<Compiled, SqlError> {
    let exprs: Vec<&BoundExpr> = delete.output.iter().flat_map(|o| &o.items).map(|(_, e)| e).collect();
    let mut more = delete.old.clone();
    more.push(delete.locator);
    let rel = optimize(delete.input, &needed(&exprs, &more), cx)?;
    let (node, columns, rows) = with_lowerer(&rel, &exprs, cx, |low| {
        let (below, old_columns) = changed_rows(low, &rel, delete.locator, &delete.old)?;
        let row: Vec<ColumnRef> = delete.old.iter().chain(&below.columns).copied().collect();
        let (output, columns) = lower_output(low, delete.output.as_ref(), &row)?;
        let rows_estimate = below.node.rows_estimate;
        let kind = NodeKind::Delete { table: delete.table.clone(), input: Box::new(below.node), old_columns, output };
        finish_output(low, Node { kind, columns, rows_estimate }, delete.output.as_ref())
    })?;
    Ok(compiled(node, CompiledKind::Delete { output: rows }, columns))
}

fn plan_merge(merge: BoundMerge, cx: &mut RuleCx<'_>) -> Result<Compiled, SqlError> {
    let values = merge.steps.iter().flat_map(|step| match step {
        MergeStepKind::Delete => &[][..],
        MergeStepKind::Update { assignments } => assignments,
        MergeStepKind::Insert { values, .. } => values,
    });
    let items = merge.output.iter().flat_map(|o| &o.items).map(|(_, e)| e);
    let exprs: Vec<&BoundExpr> = values.map(|(_, e)| e).chain(items).collect();
    let mut more = merge.old.clone();
    more.extend([merge.locator, merge.action]);
    let rel = optimize(merge.input, &needed(&exprs, &more), cx)?;
    let (node, columns, rows) = with_lowerer(&rel, &exprs, cx, |low| {
        let below = low.lower(&rel, &Want::default())?;
        let mut order = vec![merge.locator, merge.action];
        order.extend(below.columns.iter().copied().filter(|c| *c != merge.locator && *c != merge.action));
        let below = low.exactly(below, &order)?;
        let position = |c: &ColumnRef| below.columns.iter().position(|x| x == c).ok_or_else(|| plan_bug("an old column is gone"));
        let old_columns = merge.old.iter().map(position).collect::<Result<_, _>>()?;
        let steps = merge.steps.iter().map(|step| lower_step(low, step, &below.columns)).collect::<Result<_, _>>()?;
        let inserted = merge.output.as_ref().map_or(&[][..], |o| &o.inserted);
        let row: Vec<ColumnRef> =
            merge.old.iter().chain(inserted).chain(&below.columns).copied().chain(std::iter::once(merge.action_name)).collect();
        let (output, columns) = lower_output(low, merge.output.as_ref(), &row)?;
        let rows_estimate = below.node.rows_estimate;
        // The sort reads its input to the end before a row changes, and orders the steps.
        let action = low.expr(&low.cx.column_expr(merge.action), &below.columns)?;
        let sorted = Node { columns: below.node.columns.clone(), rows_estimate, kind: NodeKind::OneRow };
        let keys = vec![SortKey { expr: action, descending: false }];
        let input = Box::new(Node { kind: NodeKind::Sort { input: Box::new(below.node), keys }, ..sorted });
        let computed = lower_computed(low, &merge.computed)?;
        let kind = NodeKind::Merge { table: merge.table.clone(), input, steps, computed, old_columns, output };
        finish_output(low, Node { kind, columns, rows_estimate }, merge.output.as_ref())
    })?;
    Ok(compiled(node, CompiledKind::Merge { output: rows }, columns))
}

fn lower_step(low: &mut Lowerer<'_, '_>, step: &MergeStepKind, input: &[ColumnRef]) -> Result<MergeStep, SqlError> {
    Ok(match step {
        MergeStepKind::Delete => MergeStep::Delete,
        MergeStepKind::Update { assignments } => MergeStep::Update { assignments: lower_assignments(low, assignments, input)? },
        MergeStepKind::Insert { values, defaults } => {
            MergeStep::Insert { values: lower_assignments(low, values, input)?, defaults: lower_assignments(low, defaults, &[])? }
        }
    })
}

fn plan_instead(mut instead: BoundInstead, cx: &mut RuleCx<'_>) -> Result<Compiled, SqlError> {
    for expr in &mut instead.new {
        optimize_subqueries(expr, cx)?;
        rules::fold::fold_expr(expr);
    }
    let items = instead.output.iter().flat_map(|o| &o.items).map(|(_, e)| e);
    let exprs: Vec<&BoundExpr> = instead.new.iter().chain(items).collect();
    let rel = optimize(instead.input, &needed(&exprs, &instead.old), cx)?;
    let (node, columns, output) = with_lowerer(&rel, &exprs, cx, |low| {
        let below = low.lower(&rel, &Want::default())?;
        let position = |c: &ColumnRef| below.columns.iter().position(|x| x == c).ok_or_else(|| plan_bug("an old column is gone"));
        let old_columns = instead.old.iter().map(position).collect::<Result<_, _>>()?;
        let new = low.exprs(&instead.new, &below.columns)?;
        let inserted = instead.output.as_ref().filter(|_| !new.is_empty()).map_or(&[][..], |o| &o.inserted);
        let row: Vec<ColumnRef> = instead.old.iter().chain(inserted).chain(&below.columns).copied().collect();
        let (output, columns) = lower_output(low, instead.output.as_ref(), &row)?;
        let rows_estimate = below.node.rows_estimate;
        let (table, action, updated) = (instead.table.clone(), instead.action, instead.updated.clone());
        let kind = NodeKind::Instead { table, action, input: Box::new(below.node), old_columns, new, updated, output };
        finish_output(low, Node { kind, columns, rows_estimate }, instead.output.as_ref())
    })?;
    let kind = match instead.action {
        ChangeAction::Insert => CompiledKind::Insert { output },
        ChangeAction::Update => CompiledKind::Update { output },
        ChangeAction::Delete => CompiledKind::Delete { output },
    };
    Ok(compiled(node, kind, columns))
}
