//! How many rows an operator puts out: row counts, uniqueness of keys, statistics, and guesses for the rest.
//!
//! ```text
//!                             with statistics                     without
//! = on a whole unique key     1 row                               1 row
//! = value                     the histogram's step                1/10 .. of rows of an indexed column, else 1/sqrt(rows)
//! = something unknown         1 / distinct values                 likewise
//! < > BETWEEN LIKE 'abc%'     between the histogram's steps       30 %, 9 %, 5 %
//! IS NULL                     the histogram's step of NULL        5 %
//! = on several columns        1 / distinct values of the columns  the product
//! <> 90 %, anything else 30 %
//! ```
//!
//! It never decides correctness: a wrong guess costs time alone.

use super::access::row_bytes;
use crate::algebra::{BoundExpr, BoundExprKind, BoundSubquery, ColumnRef, Rel};
use crate::compile::CompileContext;
use crate::expr::CompareOp;
use crate::optimize::ranges::{RangeOf, column_value, range_of};
use crate::phys::JoinKind;
use crate::statistics::{can_be_counted, estimate};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thawdb_catalog::{TableDef, TableStatistics};
use thawdb_types::{Scalar, SqlType};

/// Rows of a table nobody has counted.
const UNKNOWN_ROWS: f64 = 1000.0;
/// Pages of an extent.
const EXTENT_PAGES: u64 = 8;
/// Bytes of rows that a page holds.
pub(super) const PAGE_BYTES: f64 = 8060.0;
/// The part of rows in which a column is equal to one that was computed.
const COMPUTED_EQUAL: f64 = 0.1;
/// Rows of a catalog view or table-valued function.
const SOURCE_ROWS: f64 = 200.0;

/// A base table's column.
#[derive(Debug, Clone)]
struct Origin {
    table: Arc<TableDef>,
    /// Which of the statement's mentions of the table.
    mention: usize,
    index: usize,
    rows: f64,
    /// The table's, if it has any.
    statistics: Option<Arc<TableStatistics>>,
}

impl Origin {
    /// What is known of the column's values.
    fn values(&self) -> Option<estimate::Column<'_>> {
        let definition = &self.table.columns[self.index];
        let (_, data) = self.statistics.as_ref()?.leading(definition.id.0, &definition.sql_type)?;
        (data.rows > 0.0).then(|| estimate::Column::new(data, &definition.sql_type))
    }

    fn column_id(&self) -> i32 {
        self.table.columns[self.index].id.0
    }
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
    mentions: usize,
}

impl Estimator {
    /// For everything in `rel`.
    pub fn of(rel: &Rel, cx: &super::RuleCx<'_>) -> Self {
        let mut estimator = Self::default();
        estimator.collect(rel, cx);
        estimator
    }

    /// Tells which statistics predicates, joins and groups of `rel` are about, and which would be of use.
    fn want(&self, rel: &Rel, cx: &super::RuleCx<'_>) {
        let mut used = Vec::new();
        match rel {
            // One row at most: nothing to be learned of it.
            Rel::Filter { predicates, .. } if self.unique_key(predicates).is_some() => return,
            Rel::Filter { predicates, .. } | Rel::Join { predicates, .. } | Rel::Apply { predicates, .. } => {
                predicates.iter().for_each(|p| p.collect_free(&mut used));
            }
            Rel::Aggregate { keys, .. } => keys.iter().for_each(|(_, key)| key.collect_free(&mut used)),
            _ => return,
        }
        let used: BTreeSet<ColumnRef> = used.into_iter().collect();
        for origin in used.iter().filter_map(|column| self.origins.get(column)) {
            let sql_type = &origin.table.columns[origin.index].sql_type;
            match origin.statistics.as_ref().and_then(|known| known.leading(origin.column_id(), sql_type)) {
                Some(_) => cx.compile.use_statistics(&origin.table, origin.index),
                None if can_be_counted(&origin.table, origin.index) => cx.compile.want_statistics(&origin.table, origin.index),
                None => {}
            }
        }
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
            let statistics = cx.compile.statistics(&get.table);
            self.mentions += 1;
            let mention = self.mentions;
            for (index, column) in &get.columns {
                if *index < get.table.columns.len() {
                    let origin = Origin { table: get.table.clone(), mention, index: *index, rows, statistics: statistics.clone() };
                    self.origins.insert(*column, origin);
                }
            }
        }
        rel.exprs().into_iter().for_each(|e| self.collect_expr(e, cx));
        rel.inputs().into_iter().for_each(|i| self.collect(i, cx));
        self.want(rel, cx);
    }

    /// Learns what is in the subqueries of `expr` too.
    pub fn collect_expr(&mut self, expr: &BoundExpr, cx: &super::RuleCx<'_>) {
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
    pub(super) fn distinct(&self, column: ColumnRef) -> Option<f64> {
        let origin = self.origins.get(&column)?;
        let table = &origin.table;
        let rows = origin.rows.max(1.0);
        let unique =
            |i: &thawdb_catalog::IndexDef| i.unique && i.filter.is_none() && i.keys.len() == 1 && i.keys[0].column_index == origin.index;
        if table.indexes.iter().any(unique) {
            return Some(rows);
        }
        if let Some(values) = origin.values() {
            return Some(values.distinct().min(rows));
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
            BoundExprKind::IsNull { operand, negated } => {
                let origin = operand.as_column().and_then(|c| self.origins.get(&c));
                let null = origin.and_then(Origin::values).map_or(0.05, |values| values.null());
                if *negated { 1.0 - null } else { null }
            }
            BoundExprKind::InList { operand, list, negated } => {
                let some: f64 = list.iter().map(|value| self.equal_to(operand, value)).sum::<f64>().min(0.9);
                if *negated { 1.0 - some } else { some }
            }
            BoundExprKind::Like { negated: false, .. } if self.range(predicate).is_some() => {
                self.range(predicate).map_or(0.05, |(_, part)| part)
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
                        // What is worked out of rows, as MIN of a group is, is one of the column's values more often than chance.
                        (Some(_), None) if right.as_column().is_some() => COMPUTED_EQUAL,
                        (None, Some(_)) if left.as_column().is_some() => COMPUTED_EQUAL,
                        (Some(_), None) => self.equal_to(left, right),
                        (None, Some(_)) => self.equal_to(right, left),
                        (None, None) => self.equal_to(left, right).min(self.equal_to(right, left)),
                    }
                }
                CompareOp::NotEqual | CompareOp::NotSame => 0.9,
                _ => self.range(predicate).map_or(0.3, |(_, part)| part),
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

    /// The part of rows for which `operand = value`.
    fn equal_to(&self, operand: &BoundExpr, value: &BoundExpr) -> f64 {
        let origin = operand.as_column().and_then(|c| self.origins.get(&c));
        let known = origin.and_then(|o| Some((o.values()?, column_value(value, &o.table.columns[o.index].sql_type)?)));
        known.map_or_else(|| self.equality(operand), |(values, value)| if value.is_null() { 0.0 } else { values.equal(&value) })
    }

    /// The column whose values a predicate bounds, and the part of rows it keeps, where a histogram tells.
    fn range(&self, predicate: &BoundExpr) -> Option<(ColumnRef, f64)> {
        let range = range_of(predicate, &|column| self.origins.get(&column).map(|o| o.table.columns[o.index].sql_type))?;
        let values = self.origins.get(&range.column)?.values()?;
        Some((range.column, values.between(range.low.as_ref(), range.high.as_ref())))
    }

    /// Ranges of each column put together: a lower and an upper bound say more than their product.
    fn joined_ranges(&self, predicates: &[BoundExpr]) -> (f64, Vec<bool>) {
        let mut joined: BTreeMap<ColumnRef, RangeOf> = BTreeMap::new();
        let mut used = vec![false; predicates.len()];
        for (predicate, used) in predicates.iter().zip(&mut used) {
            let type_of = |column| self.origins.get(&column).filter(|o| o.values().is_some()).map(|o| o.table.columns[o.index].sql_type);
            if let Some(range) = range_of(predicate, &type_of) {
                *used = match joined.get_mut(&range.column) {
                    Some(known) => known.meet(range),
                    None => joined.insert(range.column, range).is_none(),
                };
            }
        }
        let part = |(column, range): (&ColumnRef, &RangeOf)| {
            let values = self.origins.get(column).and_then(Origin::values);
            values.map_or(0.3, |values| values.between(range.low.as_ref(), range.high.as_ref()))
        };
        (joined.iter().map(part).product(), used)
    }

    /// The part of rows that agree in several columns at once, where statistics over just these exist, and who is about them.
    fn joint_equality(&self, predicates: &[BoundExpr]) -> Option<(f64, Vec<bool>)> {
        let compared = |predicate: &BoundExpr| match &predicate.kind {
            BoundExprKind::Compare { op: CompareOp::Equal, left, right } => {
                let one = |side: &BoundExpr, other: &BoundExpr| side.as_column().filter(|_| other.as_column().is_none());
                one(left, right).or_else(|| one(right, left))
            }
            _ => None,
        };
        let columns: Vec<Option<ColumnRef>> = predicates.iter().map(compared).collect();
        let first = columns.iter().flatten().find_map(|c| self.origins.get(c).filter(|o| o.statistics.is_some()))?;
        let own = |c: &ColumnRef| self.origins.get(c).filter(|o| Arc::ptr_eq(&o.table, &first.table)).map(Origin::column_id);
        let wanted: BTreeSet<i32> = columns.iter().flatten().filter_map(own).collect();
        let (covered, distinct) = densest(first.statistics.as_ref()?, &wanted)?;
        let used = columns.iter().map(|c| c.as_ref().and_then(own).is_some_and(|id| covered.contains(&id))).collect();
        Some((1.0 / distinct.max(1.0), used))
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
        let Some((unique, about)) = self.unique_key_of(predicates) else { return self.product(predicates) };
        let rest: Vec<BoundExpr> = predicates.iter().zip(&about).filter(|(_, about)| !**about).map(|(p, _)| p.clone()).collect();
        unique * if rest.is_empty() { 1.0 } else { self.product(&rest) }
    }

    /// The part of rows for which all of `predicates` hold that fix no unique key.
    fn product(&self, predicates: &[BoundExpr]) -> f64 {
        let (mut part, mut used) = self.joined_ranges(predicates);
        if let Some((joint, about)) = self.joint_equality(predicates) {
            // A histogram may know of a value that it is rarer than any combination is on average.
            let rarest = predicates.iter().zip(&about).filter(|(_, about)| **about).map(|(p, _)| self.selectivity(p)).fold(1.0, f64::min);
            part *= joint.min(rarest);
            used.iter_mut().zip(about).for_each(|(used, about)| *used |= about);
        }
        let rest: f64 = predicates.iter().zip(&used).filter(|(_, used)| !**used).map(|(p, _)| self.selectivity(p)).product();
        part * rest
    }

    /// One over the rows of a table of whose unique key every column is compared for equality.
    fn unique_key(&self, predicates: &[BoundExpr]) -> Option<f64> {
        self.unique_key_of(predicates).map(|(part, _)| part)
    }

    /// The same, and which of the predicates it is about.
    fn unique_key_of(&self, predicates: &[BoundExpr]) -> Option<(f64, Vec<bool>)> {
        let mut fixed: Vec<(usize, &Origin)> = Vec::new();
        for (at, predicate) in predicates.iter().enumerate() {
            if let BoundExprKind::Compare { op: CompareOp::Equal, left, right } = &predicate.kind {
                let sides = [left, right].into_iter().filter_map(|e| e.as_column()).filter_map(|c| self.origins.get(&c));
                fixed.extend(sides.map(|origin| (at, origin)));
            }
        }
        let mut smallest: Option<(f64, Vec<bool>)> = None;
        for (_, origin) in &fixed {
            let part = 1.0 / origin.rows.max(1.0);
            if smallest.as_ref().is_some_and(|(known, _)| *known <= part) {
                continue;
            }
            let fixing = |k: &thawdb_catalog::IndexKey| {
                fixed
                    .iter()
                    .filter(|(_, f)| f.mention == origin.mention && f.index == k.column_index)
                    .map(|(at, _)| *at)
                    .collect::<Vec<_>>()
            };
            let unique = origin.table.indexes.iter().filter(|i| i.unique && i.filter.is_none() && !i.keys.is_empty());
            let whole = unique.map(|i| i.keys.iter().map(fixing).collect::<Vec<_>>()).find(|keys| keys.iter().all(|at| !at.is_empty()));
            if let Some(keys) = whole {
                let about = (0..predicates.len()).map(|at| keys.iter().flatten().any(|of| *of == at)).collect();
                smallest = Some((part, about));
            }
        }
        smallest
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
                let groups: f64 = self.joint_groups(keys).unwrap_or_else(|| {
                    keys.iter().map(|(_, k)| k.as_column().and_then(|c| self.distinct(c)).unwrap_or(rows.sqrt())).product()
                });
                if keys.is_empty() { 1.0 } else { groups.min(rows).max(1.0) }
            }
            Rel::UnionAll { inputs, .. } => inputs.iter().map(|(r, _)| self.rows(r, cx)).sum(),
            Rel::SetDifference { left, .. } => (self.rows(left, cx) * 0.5).max(1.0),
            Rel::Recursive { anchor, recursive, .. } => (self.rows(&anchor.0, cx) + self.rows(&recursive.0, cx)) * 5.0,
        }
    }

    /// Different combinations of grouping columns of one table, where statistics over just these exist.
    fn joint_groups(&self, keys: &[(ColumnRef, BoundExpr)]) -> Option<f64> {
        let first = self.origins.get(&keys.first()?.1.as_column()?)?;
        let own = |key: &BoundExpr| self.origins.get(&key.as_column()?).filter(|o| Arc::ptr_eq(&o.table, &first.table));
        let wanted: Option<BTreeSet<i32>> = keys.iter().map(|(_, key)| own(key).map(Origin::column_id)).collect();
        let wanted = wanted.filter(|wanted| wanted.len() > 1)?;
        densest(first.statistics.as_ref()?, &wanted).filter(|(covered, _)| covered.len() == wanted.len()).map(|(_, distinct)| distinct)
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

/// The longest prefix, two columns at least, of any statistics that has columns of `wanted` alone, and how many different
/// combinations it has.
fn densest(statistics: &TableStatistics, wanted: &BTreeSet<i32>) -> Option<(BTreeSet<i32>, f64)> {
    let mut best: Option<(BTreeSet<i32>, f64)> = None;
    for one in &statistics.list {
        let length = one.columns.iter().take_while(|column| wanted.contains(column)).count();
        let distinct = one.data.as_ref().and_then(|data| data.distinct.get(length.checked_sub(1)?).copied());
        if let Some(distinct) = distinct.filter(|_| length > best.as_ref().map_or(1, |(covered, _)| covered.len())) {
            best = Some((one.columns[..length].iter().copied().collect(), distinct));
        }
    }
    best
}
