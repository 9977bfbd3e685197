//! From algebra to a physical plan: rewriting rules, then access paths, join methods and positions.
//!
//! ```text
//! Rel ── rules (each on its own, verified) ──► Rel ── lower (cost) ──► Node
//! ```
//!
//! Invariants: the result of a plan does not depend on which rules ran ([`crate::compile::Settings::rewrite`] turns all
//! of them off, and tests compare); the same statement over the same catalog, row counts and statistics gives the same
//! plan.
//!
//! Statistics: row counts of [`crate::compile::CompileContext::row_count`], histograms and densities of
//! [`crate::compile::CompileContext::statistics`], and guesses from keys, all through [`cardinality::Estimator`].

pub mod access;
pub mod cardinality;
pub mod cost;
mod filtered;
pub mod lower;
pub(crate) mod parallel;
mod ranges;
pub mod rules;

use crate::algebra::{BoundExpr, ColumnRef, Columns, Rel};
use crate::bind::statement::BoundStmt;
use crate::compile::{CompileContext, Compiled, CompiledKind};
use crate::expr::Expr;
use crate::phys::OutputColumn;
use cardinality::Estimator;
use lower::Lowerer;
use thawdb_types::{SqlError, message};

/// What rules and lowering work with.
pub struct RuleCx<'c> {
    /// Columns of the statement; rules may add.
    pub columns: Columns,
    /// Row counts.
    pub compile: &'c dyn CompileContext,
    /// Whether optional rules run.
    pub rewrite: bool,
}

impl RuleCx<'_> {
    /// A reference to `column`.
    pub fn column_expr(&self, column: ColumnRef) -> BoundExpr {
        let info = self.columns.info(column);
        BoundExpr { kind: crate::algebra::BoundExprKind::Column(column), sql_type: info.sql_type, nullable: info.nullable }
    }
}

/// The error of a plan that broke a rule of the algebra: our mistake, 8624 to the client.
pub(crate) fn plan_bug(what: &str) -> SqlError {
    debug_assert!(false, "{what}");
    message(8624, &[])
}

/// Plans a bound statement.
pub(crate) fn plan_statement(bound: BoundStmt, columns: Columns, cx: &dyn CompileContext) -> Result<Compiled, SqlError> {
    let mut rule_cx = RuleCx { columns, compile: cx, rewrite: cx.settings().rewrite };
    lower::statement::plan(bound, &mut rule_cx)
}

/// Plans an expression outside a query.
pub(crate) fn plan_scalar(expr: BoundExpr, columns: Columns, cx: &dyn CompileContext) -> Result<Expr, SqlError> {
    let mut rule_cx = RuleCx { columns, compile: cx, rewrite: cx.settings().rewrite };
    let mut expr = expr;
    optimize_subqueries(&mut expr, &mut rule_cx)?;
    rules::fold::fold_expr(&mut expr);
    let estimator = Estimator::of_exprs(&[&expr], &rule_cx);
    let mut lowerer = Lowerer::new(&mut rule_cx, estimator);
    lowerer.expr(&expr, &[])
}

/// An expression over a row of these columns.
pub(crate) fn plan_over(mut expr: BoundExpr, row: &[ColumnRef], columns: Columns, cx: &dyn CompileContext) -> Result<Expr, SqlError> {
    let mut rule_cx = RuleCx { columns, compile: cx, rewrite: cx.settings().rewrite };
    rules::fold::fold_expr(&mut expr);
    let estimator = Estimator::of_exprs(&[&expr], &rule_cx);
    Lowerer::new(&mut rule_cx, estimator).expr(&expr, row)
}

/// Rewrites `rel`, of which `needed` columns are wanted above.
pub(crate) fn optimize(mut rel: Rel, needed: &[ColumnRef], cx: &mut RuleCx<'_>) -> Result<Rel, SqlError> {
    if cx.rewrite {
        rel = rules::apply_all(rel, cx)?;
    }
    rules::prune::prune(&mut rel, needed);
    check(&rel, "prune")?;
    Ok(rel)
}

/// Rewrites the plans of subqueries left inside an expression.
pub(crate) fn optimize_subqueries(expr: &mut BoundExpr, cx: &mut RuleCx<'_>) -> Result<(), SqlError> {
    for child in expr.children_mut() {
        optimize_subqueries(child, cx)?;
    }
    if let crate::algebra::BoundExprKind::Subquery { plan, column, kind } = &mut expr.kind {
        let exists = matches!(kind, crate::algebra::BoundSubquery::Exists { .. });
        let needed = if exists { Vec::new() } else { vec![*column] };
        let inner = std::mem::replace(&mut **plan, Rel::OneRow);
        **plan = optimize(inner, &needed, cx)?;
    }
    Ok(())
}

/// Verifies column identity after a rule; in tests a panic names the rule.
pub(crate) fn check(rel: &Rel, rule: &str) -> Result<(), SqlError> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let outer = rel.free_columns();
    // Columns of enclosing queries are offered; what must not happen is that a rewrite cuts a column off from below.
    crate::algebra::verify::verify(rel, &outer).map_err(|u| plan_bug(&format!("after {rule}: {u:?}")))
}

pub(crate) fn client_columns(outputs: &[crate::bind::query::OutputName], columns: &Columns) -> Vec<OutputColumn> {
    outputs
        .iter()
        .map(|o| {
            let info = columns.info(o.column);
            OutputColumn { name: o.name.clone(), sql_type: info.sql_type, nullable: info.nullable, identity: info.identity }
        })
        .collect()
}

pub(crate) fn compiled(node: crate::phys::Node, kind: CompiledKind, columns: Vec<OutputColumn>) -> Compiled {
    Compiled {
        node,
        kind,
        columns,
        dependencies: Vec::new(),
        point: None,
        usage: Default::default(),
        needs: Vec::new(),
        remembered: Default::default(),
        stamps: Vec::new(),
        view_check: None,
    }
}
