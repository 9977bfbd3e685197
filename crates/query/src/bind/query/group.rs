//! GROUP BY and the rule that what is not grouped must be aggregated.
//!
//! ```text
//! key expression ─► key column;  aggregate call ─► aggregate column;  any other column of FROM ─► 8120, 8121, 8127
//! ```
//!
//! ROLLUP, CUBE and GROUPING SETS expand to a list of sets; more than one set is a union of aggregates over copies of
//! the input, keys outside a set being NULL.

use crate::algebra::refresh::refresh;
use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind, ColumnRef, Rel};
use crate::bind::error::{error, not_built};
use crate::bind::scope::ScopeTable;
use crate::bind::{Binder, Clause};
use std::collections::BTreeMap;
use thawdb_tsql::ast::{self, GroupItem, GroupWith, Span};
use thawdb_types::{Scalar, SqlError, SqlType};

/// The most grouping sets a statement may have.
const SETS_MAX: usize = 4096;

/// A bound GROUP BY: keys by column, and which keys each set has.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    pub keys: Vec<(ColumnRef, BoundExpr)>,
    pub sets: Vec<Vec<usize>>,
}

impl Binder<'_> {
    pub(super) fn bind_group_by(&mut self, group_by: &ast::GroupBy, span: Span) -> Result<Grouping, SqlError> {
        if group_by.all {
            return Err(not_built("GROUP BY ALL", span));
        }
        let mut grouping = Grouping { keys: Vec::new(), sets: vec![Vec::new()] };
        let mut plain: Vec<Vec<usize>> = Vec::new();
        for item in &group_by.items {
            let sets = self.group_item(item, &mut grouping.keys, span)?;
            if group_by.with.is_some() {
                plain.extend(sets);
            } else {
                grouping.sets = product(&grouping.sets, &sets);
            }
            if grouping.sets.len() > SETS_MAX {
                return Err(error(10703, &[&SETS_MAX], span));
            }
        }
        match group_by.with {
            Some(GroupWith::Rollup) => grouping.sets = rollup(&plain),
            Some(GroupWith::Cube) => grouping.sets = cube(&plain, span)?,
            None => {}
        }
        if grouping.sets.len() > 1 {
            for (column, expr) in &mut grouping.keys {
                *column = self.columns.add(self.columns.info(*column).name.clone(), expr.sql_type, true);
            }
        }
        Ok(grouping)
    }

    fn group_item(&mut self, item: &GroupItem, keys: &mut Vec<(ColumnRef, BoundExpr)>, span: Span) -> Result<Vec<Vec<usize>>, SqlError> {
        Ok(match item {
            GroupItem::Expr(expr) => vec![vec![self.group_key(expr, keys)?]],
            GroupItem::Composite(exprs) => vec![self.group_keys(exprs, keys)?],
            GroupItem::Rollup(members) => rollup(&self.group_members(members, keys)?),
            GroupItem::Cube(members) => cube(&self.group_members(members, keys)?, span)?,
            GroupItem::GroupingSets(items) => {
                let mut sets = Vec::new();
                for item in items {
                    sets.extend(self.group_item(item, keys, span)?);
                }
                sets
            }
        })
    }

    fn group_members(&mut self, members: &[Vec<ast::Expr>], keys: &mut Vec<(ColumnRef, BoundExpr)>) -> Result<Vec<Vec<usize>>, SqlError> {
        members.iter().map(|m| self.group_keys(m, keys)).collect()
    }

    fn group_keys(&mut self, exprs: &[ast::Expr], keys: &mut Vec<(ColumnRef, BoundExpr)>) -> Result<Vec<usize>, SqlError> {
        exprs.iter().map(|e| self.group_key(e, keys)).collect()
    }

    fn group_key(&mut self, expr: &ast::Expr, keys: &mut Vec<(ColumnRef, BoundExpr)>) -> Result<usize, SqlError> {
        let bound = self.within(Clause::GroupBy, |b| b.bind_expr(expr))?;
        if bound.has_subquery() {
            return Err(error(144, &[], expr.span));
        }
        if bound.sql_type.is_incomparable() {
            return Err(error(if bound.sql_type == SqlType::Xml { 305 } else { 306 }, &[], expr.span));
        }
        let own = self.from_columns();
        if !bound.free_columns().iter().any(|c| own.contains(c)) {
            return Err(error(164, &[], expr.span));
        }
        if let Some(known) = keys.iter().position(|(_, k)| k.same(&bound)) {
            return Ok(known);
        }
        let column = self.name_expr("", &bound);
        keys.push((column, bound));
        Ok(keys.len() - 1)
    }

    /// Columns the FROM of the present query offers.
    pub(super) fn from_columns(&self) -> Vec<ColumnRef> {
        let tables = self.levels.last().map(|l| l.tables.as_slice()).unwrap_or_default();
        tables.iter().flat_map(|t| &t.columns).map(|c| c.column).collect()
    }

    /// The Aggregate that `grouping` means over `rel`.
    pub(super) fn aggregate(
        &mut self,
        rel: Rel,
        grouping: &Grouping,
        aggregates: Vec<(ColumnRef, BoundAggregate)>,
        span: Span,
    ) -> Result<Rel, SqlError> {
        let asked = self.asked_groupings(grouping, span)?;
        if grouping.sets.len() > 1 {
            let keys = grouping.keys.iter().map(|(c, _)| *c);
            let columns = keys.chain(aggregates.iter().map(|(c, _)| *c)).chain(asked.iter().map(|(c, _)| *c)).collect();
            let inputs = grouping.sets.iter().map(|set| self.one_set(&rel, grouping, set, &aggregates, &asked)).collect();
            return Ok(Rel::UnionAll { inputs, columns });
        }
        let rel = Rel::Aggregate { input: Box::new(rel), keys: grouping.keys.clone(), aggregates };
        if asked.is_empty() {
            return Ok(rel);
        }
        let mut exprs: Vec<_> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        exprs.extend(asked.iter().map(|(c, _)| (*c, self.lacking(*c, &[], &[]))));
        Ok(Rel::Project { input: Box::new(rel), exprs })
    }

    /// GROUPING and GROUPING_ID as positions of keys; 8161 for what is no key.
    fn asked_groupings(&mut self, grouping: &Grouping, span: Span) -> Result<Vec<(ColumnRef, Vec<usize>)>, SqlError> {
        let asked = std::mem::take(&mut self.level().groupings);
        if !asked.is_empty() && grouping.keys.is_empty() {
            return Err(error(4164, &[], span));
        }
        let mut positions = Vec::with_capacity(asked.len());
        for (column, exprs) in asked {
            let mut keys = Vec::with_capacity(exprs.len());
            for (at, expr) in exprs.iter().enumerate() {
                let key = grouping.keys.iter().position(|(_, k)| k.same(expr));
                keys.push(key.ok_or_else(|| error(8161, &[&(at + 1), &"GROUPING"], span))?);
            }
            positions.push((column, keys));
        }
        Ok(positions)
    }

    /// The value of GROUPING or GROUPING_ID in a set: a bit for each key that is not in it, the first key's highest.
    fn lacking(&self, column: ColumnRef, keys: &[usize], set: &[usize]) -> BoundExpr {
        let bits = keys.iter().fold(0i32, |bits, key| bits << 1 | i32::from(!set.contains(key)));
        match self.columns.info(column).sql_type {
            SqlType::TinyInt => BoundExpr::literal(Scalar::TinyInt(bits as u8), SqlType::TinyInt),
            other => BoundExpr::literal(Scalar::Int(bits), other),
        }
    }

    /// One grouping set over a copy of the input.
    fn one_set(
        &mut self,
        rel: &Rel,
        grouping: &Grouping,
        set: &[usize],
        aggregates: &[(ColumnRef, BoundAggregate)],
        asked: &[(ColumnRef, Vec<usize>)],
    ) -> (Rel, Vec<ColumnRef>) {
        let (input, map) = refresh(rel, &mut self.columns);
        let mut keys = Vec::new();
        let mut exprs = Vec::new();
        for (index, (_, key)) in grouping.keys.iter().enumerate() {
            let expr = if set.contains(&index) {
                let key = self.renamed(key, &map);
                let column = self.columns.add("", key.sql_type, key.nullable);
                keys.push((column, key));
                self.column_expr(column)
            } else {
                BoundExpr::literal(Scalar::Null, key.sql_type)
            };
            exprs.push((self.columns.add("", expr.sql_type, true), expr));
        }
        let mut own = Vec::new();
        for (column, aggregate) in aggregates {
            let mut aggregate = aggregate.clone();
            aggregate.exprs_mut().for_each(|e| *e = self.renamed(e, &map));
            let copy = self.columns.copy(*column);
            own.push((copy, aggregate));
            exprs.push((copy, self.column_expr(copy)));
        }
        for (column, keys) in asked {
            let value = self.lacking(*column, keys, set);
            exprs.push((self.columns.copy(*column), value));
        }
        let columns = exprs.iter().map(|(c, _)| *c).collect();
        let input = Rel::Aggregate { input: Box::new(input), keys, aggregates: own };
        (Rel::Project { input: Box::new(input), exprs }, columns)
    }

    /// `expr` over the copy whose columns `map` names.
    fn renamed(&self, expr: &BoundExpr, map: &BTreeMap<ColumnRef, ColumnRef>) -> BoundExpr {
        let mut expr = expr.clone();
        expr.replace_columns(&|c| map.get(&c).map(|new| self.column_expr(*new)));
        expr
    }
}

fn product(left: &[Vec<usize>], right: &[Vec<usize>]) -> Vec<Vec<usize>> {
    left.iter().flat_map(|l| right.iter().map(|r| l.iter().chain(r).copied().collect())).collect()
}

fn rollup(members: &[Vec<usize>]) -> Vec<Vec<usize>> {
    (0..=members.len()).rev().map(|n| members[..n].concat()).collect()
}

fn cube(members: &[Vec<usize>], span: Span) -> Result<Vec<Vec<usize>>, SqlError> {
    if members.len() > 12 {
        return Err(error(10703, &[&SETS_MAX], span));
    }
    let picks = (0..1usize << members.len()).rev();
    Ok(picks
        .map(|pick| {
            members.iter().enumerate().filter(|(i, _)| pick & (1 << (members.len() - 1 - i)) != 0).flat_map(|(_, m)| m.clone()).collect()
        })
        .collect())
}

/// Replaces keys by their columns and refuses what is neither key nor aggregate.
pub(super) struct GroupCheck<'g> {
    pub grouping: &'g Grouping,
    pub tables: &'g [ScopeTable],
    /// 8120 in the select list, 8121 in HAVING, 8127 in ORDER BY.
    pub message: i32,
    pub span: Span,
}

impl GroupCheck<'_> {
    pub(super) fn apply(&self, expr: &mut BoundExpr) -> Result<(), SqlError> {
        if let Some((column, _)) = self.grouping.keys.iter().find(|(_, key)| key.same(expr)) {
            let (sql_type, nullable) = (expr.sql_type, expr.nullable || self.grouping.sets.len() > 1);
            *expr = BoundExpr { kind: BoundExprKind::Column(*column), sql_type, nullable };
            return Ok(());
        }
        match &mut expr.kind {
            BoundExprKind::Column(c) => self.refuse(*c)?,
            BoundExprKind::Subquery { plan, .. } => self.apply_plan(plan)?,
            _ => {}
        }
        expr.children_mut().into_iter().try_for_each(|child| self.apply(child))
    }

    fn apply_plan(&self, plan: &mut Rel) -> Result<(), SqlError> {
        let mut result = Ok(());
        plan.rewrite_exprs(&mut |e| {
            let BoundExprKind::Column(c) = e.kind else { return };
            match self.grouping.keys.iter().find(|(_, key)| key.as_column() == Some(c)) {
                Some((column, _)) => e.kind = BoundExprKind::Column(*column),
                None => {
                    if let (Ok(()), Err(error)) = (&result, self.refuse(c)) {
                        result = Err(error);
                    }
                }
            }
        });
        result
    }

    fn refuse(&self, column: ColumnRef) -> Result<(), SqlError> {
        let owner = self.tables.iter().find_map(|t| t.columns.iter().find(|c| c.column == column).map(|c| (&t.name, &c.name)));
        match owner {
            Some((table, name)) => Err(error(self.message, &[table, name], self.span)),
            None => Ok(()),
        }
    }
}
