//! How many rows an operator puts out: row counts, uniqueness of keys, and guesses for the rest.
//!
//! ```text
//! = on a whole unique key   1 row            range          30 %      LIKE 'abc%'   10 %
//! = on an indexed column    1/10 .. of rows  two-sided      9 %       IS NULL        5 %
//! = otherwise               1/sqrt(rows)     <>             90 %      anything      30 %
//! ```
//!
//! It never decides correctness: a wrong guess costs time alone.

use super::access::row_bytes;
use crate::algebra::{BoundExpr, BoundExprKind, BoundSubquery, ColumnRef, Rel};
use crate::compile::CompileContext;
use crate::expr::CompareOp;
use crate::phys::JoinKind;
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_types::{Scalar, SqlType};

/// Rows of a table nobody has counted.
const UNKNOWN_ROWS: f64 = 1000.0;
/// Pages of an extent.
const EXTENT_PAGES: u64 = 8;
/// Bytes of rows that a page holds.
pub(super) const PAGE_BYTES: f64 = 8060.0;
/// Rows of a catalog view or table-valued function.
const SOURCE_ROWS: f64 = 200.0;

/// A base table's column.
#[derive(Debug, Clone)]
struct Origin {
    table: Arc<TableDef>,
    index: usize,
    rows: f64,
}

/// Rows of a table: as counted, or as many as fit into its pages; `None` where neither says anything, as one extent does not,
/// which is the least that a table has.
pub(super) fn rows_known(compile: &dyn CompileContext, table: &TableDef) -> Option<f64> {
    let counted = compile.row_count(table).map(|rows| rows as f64);
    counted.or_else(|| {
        let pages = compile.page_count(table).filter(|pages| *pages > EXTENT_PAGES)?;
        Some((pages as f64 * PAGE_BYTES / row_bytes(table, 0)).floor())
    })
}

/// Estimates of one statement.
#[derive(Debug, Default, Clone)]
pub struct Estimator {
    origins: BTreeMap<ColumnRef, Origin>,
}

impl Estimator {
    /// For everything in `rel`.
    pub fn of(rel: &Rel, cx: &super::RuleCx<'_>) -> Self {
        let mut estimator = Self::default();
        estimator.collect(rel, cx);
        estimator
    }

    /// For the subqueries in `exprs`.
    pub fn of_exprs(exprs: &[&BoundExpr], cx: &super::RuleCx<'_>) -> Self {
        let mut estimator = Self::default();
        for expr in exprs {
            estimator.collect_expr(expr, cx);
        }
        estimator
    }

    /// Learns what is in `rel` too.
    pub fn collect(&mut self, rel: &Rel, cx: &super::RuleCx<'_>) {
        if let Rel::Get(get) = rel {
            let rows = rows_known(cx.compile, &get.table).unwrap_or(UNKNOWN_ROWS);
            for (index, column) in &get.columns {
                if *index < get.table.columns.len() {
                    self.origins.insert(*column, Origin { table: get.table.clone(), index: *index, rows });
                }
            }
        }
        rel.exprs().into_iter().for_each(|e| self.collect_expr(e, cx));
        rel.inputs().into_iter().for_each(|i| self.collect(i, cx));
    }

    fn collect_expr(&mut self, expr: &BoundExpr, cx: &super::RuleCx<'_>) {
        if let BoundExprKind::Subquery { plan, .. } = &expr.kind {
            self.collect(plan, cx);
        }
        expr.children().into_iter().for_each(|c| self.collect_expr(c, cx));
    }

    /// Rows of a table, at least one.
    pub fn table_rows(&self, get: &crate::algebra::Get, cx: &super::RuleCx<'_>) -> f64 {
        rows_known(cx.compile, &get.table).unwrap_or(UNKNOWN_ROWS).max(1.0)
    }

    /// Different values of a column.
    fn distinct(&self, column: ColumnRef) -> Option<f64> {
        let origin = self.origins.get(&column)?;
        let table = &origin.table;
        let rows = origin.rows.max(1.0);
        let unique =
            |i: &thawdb_catalog::IndexDef| i.unique && i.filter.is_none() && i.keys.len() == 1 && i.keys[0].column_index == origin.index;
        if table.indexes.iter().any(unique) {
            return Some(rows);
        }
        let leading = table.indexes.iter().any(|i| i.keys.first().is_some_and(|k| k.column_index == origin.index));
        let guess = if leading { (rows / 10.0).max(rows.sqrt()) } else { rows.sqrt() };
        let most = match table.columns[origin.index].sql_type {
            SqlType::Bit => 2.0,
            SqlType::TinyInt => 32.0,
            _ => rows,
        };
        Some(guess.min(most).max(1.0))
    }

    /// The part of rows for which `predicate` holds.
    pub fn selectivity(&self, predicate: &BoundExpr) -> f64 {
        match &predicate.kind {
            BoundExprKind::Literal(Scalar::Bit(true)) => 1.0,
            BoundExprKind::Literal(_) => 0.0,
            BoundExprKind::And(terms) => terms.iter().map(|t| self.selectivity(t)).product(),
            BoundExprKind::Or(terms) => 1.0 - terms.iter().map(|t| 1.0 - self.selectivity(t)).product::<f64>(),
            BoundExprKind::Not(inner) => (1.0 - self.selectivity(inner)).max(0.05),
            BoundExprKind::IsNull { negated, .. } => {
                if *negated {
                    0.95
                } else {
                    0.05
                }
            }
            BoundExprKind::InList { operand, list, negated } => {
                let one = self.equality(operand);
                let some = (one * list.len() as f64).min(0.9);
                if *negated { 1.0 - some } else { some }
            }
            BoundExprKind::Like { pattern, negated, .. } => {
                let anchored = matches!(&pattern.kind, BoundExprKind::Literal(Scalar::Text(p)) if !p.starts_with(['%', '_', '[']));
                let some = if anchored { 0.05 } else { 0.1 };
                if *negated { 1.0 - some } else { some }
            }
            BoundExprKind::Compare { op, left, right } => match op {
                CompareOp::Equal | CompareOp::Same => {
                    let columns = (left.as_column().and_then(|c| self.distinct(c)), right.as_column().and_then(|c| self.distinct(c)));
                    match columns {
                        (Some(a), Some(b)) => 1.0 / a.max(b),
                        (Some(_), None) => self.equality(left),
                        (None, Some(_)) => self.equality(right),
                        (None, None) => 0.1,
                    }
                }
                CompareOp::NotEqual | CompareOp::NotSame => 0.9,
                _ => 0.3,
            },
            BoundExprKind::Subquery { kind: BoundSubquery::Exists { negated }, .. } => {
                if *negated {
                    0.3
                } else {
                    0.5
                }
            }
            _ => 0.3,
        }
    }

    fn equality(&self, operand: &BoundExpr) -> f64 {
        let mut operand = operand;
        while let BoundExprKind::Convert { operand: inner, .. } = &operand.kind {
            operand = inner;
        }
        operand.as_column().and_then(|c| self.distinct(c)).map_or(0.1, |d| 1.0 / d)
    }

    /// The part of rows for which all of `predicates` hold. A whole unique key counts as one row, not as a product.
    pub fn conjunction(&self, predicates: &[BoundExpr]) -> f64 {
        let independent: f64 = predicates.iter().map(|p| self.selectivity(p)).product();
        independent.min(self.unique_key(predicates).unwrap_or(1.0))
    }

    /// One over the rows of a table of whose unique key every column is compared for equality.
    fn unique_key(&self, predicates: &[BoundExpr]) -> Option<f64> {
        let mut fixed: Vec<&Origin> = Vec::new();
        for predicate in predicates {
            if let BoundExprKind::Compare { op: CompareOp::Equal, left, right } = &predicate.kind {
                fixed.extend([left, right].iter().filter_map(|e| e.as_column()).filter_map(|c| self.origins.get(&c)));
            }
        }
        let whole = |o: &&&Origin| {
            let covered = |k: &thawdb_catalog::IndexKey| fixed.iter().any(|f| f.index == k.column_index && Arc::ptr_eq(&f.table, &o.table));
            o.table.indexes.iter().any(|i| i.unique && i.filter.is_none() && !i.keys.is_empty() && i.keys.iter().all(covered))
        };
        fixed.iter().find(whole).map(|o| 1.0 / o.rows.max(1.0))
    }

    /// Rows `rel` puts out.
    pub fn rows(&self, rel: &Rel, cx: &super::RuleCx<'_>) -> f64 {
        match rel {
            Rel::OneRow | Rel::SingleRow { .. } => 1.0,
            Rel::Values { rows, .. } => rows.len() as f64,
            Rel::Get(get) => self.table_rows(get, cx),
            Rel::Source { .. } | Rel::WorkTable { .. } => SOURCE_ROWS,
            Rel::Filter { input, predicates } => (self.rows(input, cx) * self.conjunction(predicates)).max(1.0),
            Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Window { input, .. } => self.rows(input, cx),
            Rel::Distinct { input } => (self.rows(input, cx) * 0.5).max(1.0),
            Rel::Limit { input, top } => {
                let rows = self.rows(input, cx);
                match top.limit.as_ref().and_then(crate::functions::signature::constant_int) {
                    Some(n) if !top.percent => rows.min(n.max(0) as f64),
                    Some(n) => rows * n as f64 / 100.0,
                    None if top.limit.is_some() => rows.min(100.0),
                    None => rows,
                }
            }
            Rel::Join { left, right, kind, predicates, .. } | Rel::Apply { left, right, kind, predicates } => {
                self.join_rows(self.rows(left, cx), self.rows(right, cx), *kind, predicates)
            }
            Rel::Aggregate { input, keys, .. } => {
                let rows = self.rows(input, cx);
                let groups: f64 = keys.iter().map(|(_, k)| k.as_column().and_then(|c| self.distinct(c)).unwrap_or(rows.sqrt())).product();
                if keys.is_empty() { 1.0 } else { groups.min(rows).max(1.0) }
            }
            Rel::UnionAll { inputs, .. } => inputs.iter().map(|(r, _)| self.rows(r, cx)).sum(),
            Rel::SetDifference { left, .. } => (self.rows(left, cx) * 0.5).max(1.0),
            Rel::Recursive { anchor, recursive, .. } => (self.rows(&anchor.0, cx) + self.rows(&recursive.0, cx)) * 5.0,
        }
    }

    /// Rows of a join of sides with so many.
    pub fn join_rows(&self, left: f64, right: f64, kind: JoinKind, predicates: &[BoundExpr]) -> f64 {
        let matches = left * right * self.conjunction(predicates);
        match kind {
            JoinKind::Inner => matches.max(1.0),
            JoinKind::LeftOuter => matches.max(left),
            JoinKind::RightOuter => matches.max(right),
            JoinKind::FullOuter => matches.max(left + right),
            JoinKind::LeftSemi => (left * (right * self.conjunction(predicates)).min(1.0)).max(1.0),
            JoinKind::LeftAnti => (left * 0.5).max(1.0),
        }
    }
}
