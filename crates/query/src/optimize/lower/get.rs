//! Tables: the cheapest of the access paths, order counted in.

use super::{Lowered, Lowerer, Want, satisfies};
use crate::algebra::{BoundExpr, ColumnRef, Get};
use crate::optimize::access::{Path, PathBound, paths};
use crate::optimize::{cost, plan_bug};
use crate::phys::{NodeKind, SeekBound, SeekRange};
use thawdb_types::SqlError;
use thawdb_types::error::message;

impl Lowerer<'_, '_> {
    pub(super) fn lower_get(&mut self, get: &Get, predicates: &[BoundExpr], want: &Want) -> Result<Lowered, SqlError> {
        let all = self.estimator.table_rows(get, self.cx);
        let (path, backward) = self.best_path(get, predicates, all, want)?;
        let rows = (all * self.estimator.conjunction(predicates)).max(1.0);
        let ids: Vec<ColumnRef> = get.columns.iter().map(|(_, c)| *c).collect();
        let mut ranges = Vec::with_capacity(path.ranges.len());
        for (start, end) in &path.ranges {
            ranges.push(SeekRange { start: self.bound(start.as_ref())?, end: self.bound(end.as_ref())? });
        }
        let kind = NodeKind::TableScan {
            table: get.table.clone(),
            index: path.index,
            ranges,
            columns: get.columns.iter().map(|(p, _)| *p).collect(),
            residual: self.predicate(&path.residual, &ids)?,
            backward,
            locking: get.locking,
        };
        let mut lowered = self.leaf(kind, ids, rows, path.cost);
        lowered.order = path.order.into_iter().map(|(c, d)| (c, d != backward)).collect();
        lowered.constants = path.constants;
        Ok(lowered)
    }

    fn bound(&mut self, bound: Option<&PathBound>) -> Result<Option<SeekBound>, SqlError> {
        bound.map(|b| Ok(SeekBound { values: self.exprs(&b.values, &[])?, inclusive: b.inclusive })).transpose()
    }

    /// The cheapest path, and whether it is read backward.
    fn best_path(&self, get: &Get, predicates: &[BoundExpr], rows: f64, want: &Want) -> Result<(Path, bool), SqlError> {
        let seekable: &[BoundExpr] = if self.cx.rewrite { predicates } else { &[] };
        let selectivity = |p: &[BoundExpr]| self.estimator.conjunction(p);
        let mut candidates = paths(get, seekable, rows, &selectivity, self.cx);
        if !self.cx.rewrite {
            candidates.retain(|p| p.index == get.index_hint.unwrap_or(0));
            candidates.iter_mut().for_each(|p| p.residual = predicates.to_vec());
        }
        let result_rows = (rows * selectivity(predicates)).max(1.0);
        let reversed: Vec<(ColumnRef, bool)> = want.order.iter().map(|(c, d)| (*c, !d)).collect();
        let mut best: Option<(f64, Path, bool)> = None;
        for path in candidates {
            let forward = satisfies(&path.order, &path.constants, &want.order);
            let backward = !forward && satisfies(&path.order, &path.constants, &reversed);
            let mut total = path.cost;
            if want.order.is_empty() || forward || backward {
                // Whoever stops early pays for the part read.
                if let Some(goal) = want.goal {
                    total = cost::SEEK + (total - cost::SEEK) * (goal / result_rows).min(1.0);
                }
            } else {
                total += want.goal.map_or_else(|| cost::sort(result_rows), |goal| cost::top(result_rows, goal));
            }
            if get.force_seek && path.ranges.is_empty() {
                total += 1e12;
            }
            if best.as_ref().is_none_or(|(cheapest, ..)| total < *cheapest) {
                best = Some((total, path, backward));
            }
        }
        let (total, mut path, backward) = best.ok_or_else(|| match get.index_hint {
            // The index hinted at is filtered, and the query may want rows it does not have.
            Some(_) => message(8622, &[]),
            None => plan_bug("a table has at least its rows"),
        })?;
        path.cost = path.cost.min(total.max(0.0));
        Ok((path, backward))
    }
}
