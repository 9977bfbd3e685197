//! Join methods by cost: index nested loops (Apply over a seek), hash, merge, plain nested loops.
//!
//! ```text
//! loops   left + left rows x one execution of the right, seeking by the left row's values
//! hash    left + right + build + probe             the smaller side is built
//! merge   left + right, both in key order already
//! ```
//!
//! Equality of one side's expression with the other's is a key; every other predicate is a residual. Only loops keep the
//! left side's order. Where only some of the rows will be asked for (TOP, EXISTS), the side that streams costs that part
//! of it, the side that is built the whole.

use super::{Lowered, Lowerer, Want};
use crate::algebra::rel::JoinHint;
use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Rel};
use crate::expr::CompareOp;
use crate::optimize::rules::push_down::push;
use crate::optimize::{cost, plan_bug};
use crate::phys::{JoinKind, NodeKind};
use thawdb_types::SqlError;

/// Whether the executor merges without building a table of one side. While it does not, a merge is chosen by hint alone.
const MERGE_STREAMS: bool = false;

/// Predicates of a join, sorted out.
struct Split {
    keys: Vec<(BoundExpr, BoundExpr)>,
    residual: Vec<BoundExpr>,
}

fn split(predicates: &[BoundExpr], left: &[ColumnRef], right: &[ColumnRef]) -> Split {
    let mut split = Split { keys: Vec::new(), residual: Vec::new() };
    let within = |e: &BoundExpr, side: &[ColumnRef], other: &[ColumnRef]| {
        let free = e.free_columns();
        free.iter().any(|c| side.contains(c)) && !free.iter().any(|c| other.contains(c)) && !e.has_subquery()
    };
    for predicate in predicates {
        match &predicate.kind {
            BoundExprKind::Compare { op: CompareOp::Equal, left: l, right: r } if within(l, left, right) && within(r, right, left) => {
                split.keys.push(((**l).clone(), (**r).clone()));
            }
            BoundExprKind::Compare { op: CompareOp::Equal, left: l, right: r } if within(l, right, left) && within(r, left, right) => {
                split.keys.push(((**r).clone(), (**l).clone()));
            }
            _ => split.residual.push(predicate.clone()),
        }
    }
    split
}

/// What every method of a join needs to know.
struct JoinSpec<'r> {
    kind: JoinKind,
    predicates: &'r [BoundExpr],
    rows: f64,
    /// The part of the rows that will be asked for.
    part: f64,
}

/// The side of a join that hashing could swap to.
fn swapped(kind: JoinKind) -> Option<JoinKind> {
    match kind {
        JoinKind::Inner | JoinKind::FullOuter => Some(kind),
        JoinKind::LeftOuter => Some(JoinKind::RightOuter),
        JoinKind::RightOuter => Some(JoinKind::LeftOuter),
        JoinKind::LeftSemi | JoinKind::LeftAnti => None,
    }
}

fn joined_columns(left: &Lowered, right: &Lowered, kind: JoinKind) -> Vec<ColumnRef> {
    let mut columns = left.columns.clone();
    if !matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti) {
        columns.extend(&right.columns);
    }
    columns
}

/// Whether running `rel` again for each outer row can profit from an index: a table under filters and projections.
fn is_seekable(rel: &Rel) -> bool {
    match rel {
        Rel::Get(_) => true,
        Rel::Filter { input, .. } => is_seekable(input),
        Rel::Project { input, exprs } => exprs.iter().all(|(c, e)| e.as_column() == Some(*c)) && is_seekable(input),
        // Equality with a key goes through to the rows of that group.
        Rel::Aggregate { input, keys, .. } => !keys.is_empty() && is_seekable(input),
        _ => false,
    }
}

impl Lowerer<'_, '_> {
    pub(super) fn join(&mut self, rel: &Rel, want: &Want) -> Result<Lowered, SqlError> {
        let Rel::Join { left, right, kind, predicates, hint } = rel else { return Err(plan_bug("a join was expected")) };
        let rows = self.estimator.rows(rel, self.cx);
        let part = want.goal.map_or(1.0, |goal| (goal / rows.max(1.0)).clamp(0.0, 1.0));
        // Each side is lowered once (twice if an order or few rows are wanted) and shared by the methods: ten joins deep,
        // lowering a side for each method would do the same work thousands of times.
        let goal = (part < 1.0).then(|| (self.estimator.rows(left, self.cx) * part).max(1.0));
        let ordered_left = self.lower(left, &Want { order: want.order.clone(), goal })?;
        let is_plain = want.order.is_empty() && goal.is_none();
        let plain_left = if is_plain { ordered_left.clone() } else { self.lower(left, &Want::default())? };
        // Without a predicate one right row decides.
        let decides = predicates.is_empty() && matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti);
        let plain_right = self.lower(right, &Want { order: Vec::new(), goal: decides.then_some(1.0) })?;
        // Rows that must be sorted first are all needed.
        let part_of = |streams: bool| JoinSpec { kind: *kind, predicates, rows, part: if streams { part } else { 1.0 } };
        let spec = part_of(want.order.is_empty());
        if !self.cx.rewrite {
            return self.nested(plain_left, plain_right, &spec);
        }
        let mut candidates: Vec<Lowered> = Vec::new();
        if matches!(hint, None | Some(JoinHint::Loop)) {
            let in_order = super::satisfies(&ordered_left.order, &ordered_left.constants, &want.order);
            candidates.extend(self.index_loops(&ordered_left, right, &part_of(in_order))?);
            if *kind == JoinKind::Inner {
                candidates.extend(self.index_loops(&plain_right, left, &spec)?);
            }
        }
        let keyed = !split(predicates, &plain_left.columns, &plain_right.columns).keys.is_empty();
        if matches!(hint, Some(JoinHint::Merge)) || (MERGE_STREAMS && hint.is_none() && keyed) {
            candidates.extend(self.merge(left, right, &spec)?);
        }
        if keyed && (!matches!(hint, Some(JoinHint::Loop | JoinHint::Merge)) || candidates.is_empty()) {
            candidates.push(self.hash(plain_left.clone(), plain_right.clone(), &spec)?);
        }
        if candidates.is_empty() || (!keyed && *kind != JoinKind::FullOuter) {
            candidates.push(self.nested(ordered_left, plain_right, &spec)?);
        }
        let sorted = cost::sort(spec.rows);
        let total = |l: &Lowered| if super::satisfies(&l.order, &l.constants, &want.order) { l.cost } else { l.cost + sorted };
        let cheapest = candidates.into_iter().min_by(|a, b| total(a).total_cmp(&total(b)));
        cheapest.ok_or_else(|| plan_bug("a join has a method"))
    }

    /// Loops whose right side seeks by the left row's values; nothing if it cannot.
    fn index_loops(&mut self, outer: &Lowered, right: &Rel, spec: &JoinSpec<'_>) -> Result<Option<Lowered>, SqlError> {
        let kind = spec.kind;
        if matches!(kind, JoinKind::RightOuter | JoinKind::FullOuter) || !is_seekable(right) || spec.predicates.is_empty() {
            return Ok(None);
        }
        self.outers.push(outer.columns.clone());
        let goal = matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti).then_some(1.0);
        let inner = self.lower(&push(right.clone(), spec.predicates.to_vec()), &Want { order: Vec::new(), goal });
        self.outers.pop();
        let inner = inner?;
        if !seeks(&inner.node) {
            return Ok(None);
        }
        let cost = outer.cost + outer.node.rows_estimate * spec.part * (inner.cost + cost::REBIND);
        let columns = joined_columns(outer, &inner, kind);
        let left = Box::new(outer.node.clone());
        let node = NodeKind::Apply { left, right: Box::new(inner.node), kind, predicate: None };
        let mut lowered = self.over(node, columns, spec.rows, cost);
        lowered.order.clone_from(&outer.order);
        lowered.constants.clone_from(&outer.constants);
        Ok(Some(lowered))
    }

    fn hash(&mut self, mut left: Lowered, mut right: Lowered, spec: &JoinSpec<'_>) -> Result<Lowered, SqlError> {
        let mut kind = spec.kind;
        if let Some(other) = swapped(kind) {
            if left.node.rows_estimate < right.node.rows_estimate {
                std::mem::swap(&mut left, &mut right);
                kind = other;
            }
        }
        let Split { keys, residual } = split(spec.predicates, &left.columns, &right.columns);
        let mut lowered_keys = Vec::with_capacity(keys.len());
        for (l, r) in &keys {
            lowered_keys.push((self.expr(l, &left.columns)?, self.expr(r, &right.columns)?));
        }
        let both: Vec<ColumnRef> = left.columns.iter().chain(&right.columns).copied().collect();
        let residual = self.predicate(&residual, &both)?;
        let (l, r) = (left.node.rows_estimate, right.node.rows_estimate);
        let streamed = left.cost + l * cost::PROBE + spec.rows * cost::EVALUATE;
        let cost = right.cost + r * cost::BUILD + streamed * spec.part;
        let columns = joined_columns(&left, &right, kind);
        let node = NodeKind::HashJoin { left: Box::new(left.node), right: Box::new(right.node), kind, keys: lowered_keys, residual };
        Ok(self.over(node, columns, spec.rows, cost))
    }

    /// Merging, if both sides come in the order of the keys by themselves.
    fn merge(&mut self, left: &Rel, right: &Rel, spec: &JoinSpec<'_>) -> Result<Option<Lowered>, SqlError> {
        let JoinSpec { kind, predicates, rows, .. } = *spec;
        if kind == JoinKind::FullOuter || kind == JoinKind::RightOuter {
            return Ok(None);
        }
        let Split { keys, residual } = split(predicates, &left.columns(), &right.columns());
        let pairs: Option<Vec<(ColumnRef, ColumnRef)>> = keys.iter().map(|(l, r)| Some((l.as_column()?, r.as_column()?))).collect();
        let Some(pairs) = pairs.filter(|p| !p.is_empty() && keys.iter().all(|(l, r)| l.sql_type == r.sql_type)) else {
            return Ok(None);
        };
        let order = |side: fn(&(ColumnRef, ColumnRef)) -> ColumnRef| pairs.iter().map(|p| (side(p), false)).collect::<Vec<_>>();
        let (left_order, right_order) = (order(|p| p.0), order(|p| p.1));
        let left = self.lower(left, &Want { order: left_order.clone(), goal: None })?;
        let right = self.lower(right, &Want { order: right_order.clone(), goal: None })?;
        // Columns of one value are in any order, but the merge wants each key in place: ask for the plain prefix.
        let sorted = |l: &Lowered, keys: &[(ColumnRef, bool)]| super::satisfies(&l.order, &[], keys);
        if !sorted(&left, &left_order) || !sorted(&right, &right_order) {
            return Ok(None);
        }
        let position = |l: &Lowered, c: ColumnRef| l.columns.iter().position(|x| *x == c).ok_or_else(|| plan_bug("a merge key is gone"));
        let mut positions = Vec::with_capacity(pairs.len());
        for (l, r) in &pairs {
            positions.push((position(&left, *l)?, position(&right, *r)?));
        }
        let both: Vec<ColumnRef> = left.columns.iter().chain(&right.columns).copied().collect();
        let residual = self.predicate(&residual, &both)?;
        let cost = left.cost + right.cost + (left.node.rows_estimate + right.node.rows_estimate) * cost::MERGE + rows * cost::EVALUATE;
        let columns = joined_columns(&left, &right, kind);
        let order = left.order.clone();
        let node = NodeKind::MergeJoin { left: Box::new(left.node), right: Box::new(right.node), kind, keys: positions, residual };
        let mut lowered = self.over(node, columns, rows, cost);
        lowered.order = order;
        Ok(Some(lowered))
    }

    fn nested(&mut self, left: Lowered, right: Lowered, spec: &JoinSpec<'_>) -> Result<Lowered, SqlError> {
        let JoinSpec { kind, predicates, rows, part } = *spec;
        let both: Vec<ColumnRef> = left.columns.iter().chain(&right.columns).copied().collect();
        let predicate = self.predicate(predicates, &both)?;
        let pairs = left.node.rows_estimate * right.node.rows_estimate;
        let cost = left.cost + right.cost + pairs * part * (cost::EVALUATE + 0.05);
        let columns = joined_columns(&left, &right, kind);
        let node = NodeKind::NestedLoopJoin { left: Box::new(left.node), right: Box::new(right.node), kind, predicate };
        Ok(self.over(node, columns, rows, cost))
    }

    pub(super) fn apply(&mut self, rel: &Rel, want: &Want) -> Result<Lowered, SqlError> {
        let Rel::Apply { left, right, kind, predicates } = rel else { return Err(plan_bug("an Apply was expected")) };
        let rows = self.estimator.rows(rel, self.cx);
        let part = want.goal.map_or(1.0, |goal| (goal / rows.max(1.0)).clamp(0.0, 1.0));
        let outer_goal = (part < 1.0).then(|| (self.estimator.rows(left, self.cx) * part).max(1.0));
        let outer = self.lower(left, &Want { order: want.order.clone(), goal: outer_goal })?;
        let part = if super::satisfies(&outer.order, &outer.constants, &want.order) { part } else { 1.0 };
        self.outers.push(outer.columns.clone());
        let goal = matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti).then_some(1.0);
        let inner = self.lower(right, &Want { order: Vec::new(), goal });
        self.outers.pop();
        let inner = inner?;
        let both: Vec<ColumnRef> = outer.columns.iter().chain(&inner.columns).copied().collect();
        let predicate = self.predicate(predicates, &both)?;
        let cost = outer.cost + outer.node.rows_estimate * part * (inner.cost + cost::REBIND);
        let columns = joined_columns(&outer, &inner, *kind);
        let node = NodeKind::Apply { left: Box::new(outer.node), right: Box::new(inner.node), kind: *kind, predicate };
        let mut lowered = self.over(node, columns, rows, cost);
        (lowered.order, lowered.constants) = (outer.order, outer.constants);
        Ok(lowered)
    }
}

/// Whether a plan's table is read in ranges.
fn seeks(node: &crate::phys::Node) -> bool {
    match &node.kind {
        NodeKind::TableScan { ranges, .. } => !ranges.is_empty(),
        NodeKind::Filter { input, .. }
        | NodeKind::Project { input, .. }
        | NodeKind::StreamAggregate { input, .. }
        | NodeKind::HashAggregate { input, .. } => seeks(input),
        _ => false,
    }
}
