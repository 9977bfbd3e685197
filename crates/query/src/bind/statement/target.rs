//! Which table UPDATE and DELETE change, and the rows they change: each once.
//!
//! ```text
//! FROM and WHERE ─► rows with the target's locator ─► (a join: one row per locator) ─► TOP
//! ```
//!
//! The target is the member of FROM with that alias or name; the only member that is the same table; or a table of its
//! own, joined with all of FROM.

use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind, ColumnRef, Get, Rel, Top};
use crate::bind::error::{error, not_built};
use crate::bind::scope::ScopeTable;
use crate::bind::table_ref::join;
use crate::bind::{Binder, Clause};
use crate::expr::AggregateFunction;
use crate::phys::JoinKind;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_tsql::ast::{self, DmlTargetKind, TableRef};
use thawdb_types::{SqlError, SqlType};

/// The rows a statement changes.
pub(super) struct Target {
    pub table: Arc<TableDef>,
    pub rel: Rel,
    pub locator: ColumnRef,
    /// Column of each of the table's columns.
    pub columns: Vec<ColumnRef>,
    /// Whether other tables are joined in.
    pub joined: bool,
    /// What the target is called, among the level's tables.
    pub position: usize,
}

impl Binder<'_> {
    /// Binds target, FROM and WHERE into the present level.
    pub(super) fn bind_target(
        &mut self,
        target: &ast::DmlTarget,
        from: &[TableRef],
        where_: Option<&ast::Expr>,
    ) -> Result<Target, SqlError> {
        let (mut rel, position) = self.target_and_from(target, from)?;
        let scope = self.level().tables[position].clone();
        let table = scope.base.clone().ok_or_else(|| not_built("changing rows through a view or derived table", target.span))?;
        self.depend(&table, true);
        let columns: Vec<ColumnRef> = scope.columns.iter().map(|c| c.column).collect();
        let locator = self.columns.add("", SqlType::varbinary(1700), false);
        let position_of_locator = table.columns.len();
        let found = with_get(&mut rel, columns[0], &mut |get| {
            // First, where UPDATE and DELETE want it.
            get.columns.insert(0, (position_of_locator, locator));
            get.for_update = true;
        });
        if !found {
            return Err(not_built("changing rows of this target", target.span));
        }
        let joined = !matches!(rel, Rel::Get(_));
        let mut predicates = Vec::new();
        if joined {
            // The target may be the optional side of an outer join.
            let operand = Box::new(self.column_expr(locator));
            predicates.push(BoundExpr { kind: BoundExprKind::IsNull { operand, negated: true }, sql_type: SqlType::Bit, nullable: false });
        }
        if let Some(condition) = where_ {
            predicates.extend(self.within(Clause::Where, |b| b.bind_condition(condition))?.conjuncts());
        }
        Ok(Target { table, rel: rel.filter(predicates), locator, columns, joined, position })
    }

    fn target_and_from(&mut self, target: &ast::DmlTarget, from: &[TableRef]) -> Result<(Rel, usize), SqlError> {
        if from.is_empty() {
            let table = self.find_target_table(&target.kind, target.span)?;
            let name = match &target.kind {
                DmlTargetKind::Name(name) => Some(name),
                _ => None,
            };
            let (rel, mut scope) = self.table_reference(table, name, None, &target.hints)?;
            if let DmlTargetKind::Variable(variable) = &target.kind {
                scope[0].name.clone_from(&variable.name);
            }
            self.level().tables = scope;
            return Ok((rel, 0));
        }
        let rel = self.bind_from(from)?;
        if let Some(position) = self.find_in_from(target)? {
            return Ok((rel, position));
        }
        let table = self.find_target_table(&target.kind, target.span)?;
        let same: Vec<usize> = self
            .level()
            .tables
            .iter()
            .enumerate()
            .filter(|(_, t)| t.base.as_ref().is_some_and(|b| b.id == table.id && b.database == table.database))
            .map(|(i, _)| i)
            .collect();
        match same.as_slice() {
            [only] => Ok((rel, *only)),
            [] => {
                let name = match &target.kind {
                    DmlTargetKind::Name(name) => Some(name),
                    _ => None,
                };
                let (own, scope) = self.table_reference(table, name, None, &target.hints)?;
                self.level().tables.extend(scope);
                let position = self.level().tables.len() - 1;
                Ok((join(rel, own, JoinKind::Inner, Vec::new(), None), position))
            }
            _ => Err(error(8154, &[&table.name], target.span)),
        }
    }

    fn find_in_from(&mut self, target: &ast::DmlTarget) -> Result<Option<usize>, SqlError> {
        let called = |t: &ScopeTable| match &target.kind {
            DmlTargetKind::Name(name) => t.is_called(name),
            DmlTargetKind::Variable(variable) => crate::bind::scope::same_name(&t.name, &variable.name),
            DmlTargetKind::Rowset(_) => false,
        };
        let tables = &self.level().tables;
        let found: Vec<usize> = (0..tables.len()).filter(|i| called(&tables[*i])).collect();
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            _ => Err(error(8154, &[&tables[found[0]].name.clone()], target.span)),
        }
    }

    /// One row per target row, whatever joins multiplied it to: any of them, as SQL Server documents.
    pub(super) fn once(&mut self, rel: Rel, locator: ColumnRef) -> Rel {
        let key = self.column_expr(locator);
        let others = rel.columns().into_iter().filter(|c| *c != locator);
        let mut aggregates: Vec<(ColumnRef, BoundAggregate)> = Vec::new();
        for column in others {
            let argument = self.column_expr(column);
            let sql_type = argument.sql_type;
            let function = AggregateFunction::Any;
            let any = BoundAggregate { function, argument: Some(argument), distinct: false, sql_type, separator: None, order: Vec::new() };
            aggregates.push((column, any));
        }
        Rel::Aggregate { input: Box::new(rel), keys: vec![(locator, key)], aggregates }
    }

    /// TOP of UPDATE and DELETE: any so many rows.
    pub(super) fn target_top(&mut self, rel: Rel, top: Option<&ast::Top>) -> Result<Rel, SqlError> {
        let Some(top) = top else { return Ok(rel) };
        let target = if top.percent { SqlType::Float } else { SqlType::BigInt };
        let limit = self.within(Clause::Other, |b| b.bind_count(&top.count, target))?;
        let top = Top { offset: None, limit: Some(limit), percent: top.percent, ties: Vec::new() };
        Ok(Rel::Limit { input: Box::new(rel), top: Box::new(top) })
    }
}

/// Calls `change` on the Get that produces `column`.
fn with_get(rel: &mut Rel, column: ColumnRef, change: &mut dyn FnMut(&mut Get)) -> bool {
    match rel {
        Rel::Get(get) if get.columns.iter().any(|(_, c)| *c == column) => {
            change(get);
            true
        }
        Rel::Join { .. } | Rel::Apply { .. } | Rel::Filter { .. } => rel.inputs_mut().into_iter().any(|i| with_get(i, column, change)),
        _ => false,
    }
}
