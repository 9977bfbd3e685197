//! Which table UPDATE and DELETE change, and the rows they change: each once.
//!
//! ```text
//! FROM and WHERE ─► rows with the target's locator ─► (a join: one row per locator) ─► TOP
//! ```
//!
//! The target is the member of FROM with that alias or name; the only member that is the same table; or a table of its
//! own, joined with all of FROM. It may be a common table expression or derived table whose rows are rows of one table
//! (4403 and 4405 otherwise), so `WITH d AS (SELECT ..., ROW_NUMBER() ...) DELETE FROM d WHERE n > 1` works.

use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind, ColumnRef, Get, Rel, Top};
use crate::bind::error::error;
use crate::bind::objects::Object;
use crate::bind::scope::ScopeTable;
use crate::bind::table_ref::join;
use crate::bind::{Binder, Clause};
use crate::expr::AggregateFunction;
use crate::phys::JoinKind;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_tsql::ast::{self, DmlTargetKind, TableRef};
use thawdb_types::{SqlError, SqlType};

/// A view's base table, and the view's columns with their positions in it.
pub(super) type ViewColumns = (Arc<TableDef>, Vec<(String, Option<usize>)>);

/// The rows a statement changes.
pub(super) struct Target {
    pub table: Arc<TableDef>,
    pub rel: Rel,
    pub locator: ColumnRef,
    /// Column of each of the table's columns.
    pub columns: Vec<ColumnRef>,
    /// What the columns are called where they can be set: in a derived table by its own names.
    pub names: Vec<(String, usize)>,
    /// What the target is called.
    pub name: String,
    /// Names of the target that are computed: they cannot be set.
    pub derived: Vec<String>,
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
        let get = base_of(&rel, &scope, target.span)?;
        let table = get.table.clone();
        self.choose_view_check(&get, &scope.name, target.span)?;
        self.depend(&table, true);
        self.target_rows(&table);
        let read: Vec<ColumnRef> = get.columns.iter().map(|(_, c)| *c).collect();
        let position_in_table = |c: &ColumnRef| get.columns.iter().find(|(_, id)| id == c).map(|(p, _)| *p);
        let named = |c: &crate::bind::scope::ScopeColumn| position_in_table(&c.column).map(|p| (c.name.clone(), p));
        let derived = scope.columns.iter().filter(|c| position_in_table(&c.column).is_none()).map(|c| c.name.clone()).collect();
        let names = scope.columns.iter().filter_map(named).collect();
        let locator = self.columns.add("", SqlType::varbinary(1700), false);
        if !self.expose(&mut rel, &read, locator) {
            return Err(error(4403, &[&scope.name], target.span));
        }
        let (rel, columns) = self.all_columns(rel, &get);
        let joined = has_join(&rel);
        let mut predicates = Vec::new();
        if is_optional(&rel, locator) {
            let operand = Box::new(self.column_expr(locator));
            predicates.push(BoundExpr { kind: BoundExprKind::IsNull { operand, negated: true }, sql_type: SqlType::Bit, nullable: false });
        }
        if let Some(ast::Expr { kind: ast::ExprKind::CurrentOf(cursor), .. }) = where_ {
            predicates.extend(self.current_of(cursor, &get, locator)?);
        } else if let Some(condition) = where_ {
            predicates.extend(self.within(Clause::Where, |b| b.bind_condition(condition))?.conjuncts());
        }
        Ok(Target { table, rel: rel.filter(predicates), locator, columns, names, name: scope.name, derived, joined, position })
    }

    /// A column for each of the table's: those that rows do not hold are NULL until somebody asks for their value.
    pub(super) fn all_columns(&mut self, rel: Rel, get: &Get) -> (Rel, Vec<ColumnRef>) {
        if get.columns.len() == get.table.columns.len() {
            return (rel, get.columns.iter().map(|(_, c)| *c).collect());
        }
        let mut exprs: Vec<(ColumnRef, BoundExpr)> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        let mut columns = Vec::with_capacity(get.table.columns.len());
        for (at, column) in get.table.columns.iter().enumerate() {
            let read = get.columns.iter().find(|(position, _)| *position == at).map(|(_, c)| *c);
            columns.push(read.unwrap_or_else(|| {
                let id = self.columns.add(column.name.clone(), column.sql_type, true);
                exprs.push((id, BoundExpr::literal(thawdb_types::Scalar::Null, column.sql_type)));
                id
            }));
        }
        (Rel::Project { input: Box::new(rel), exprs }, columns)
    }

    pub(super) fn target_and_from(&mut self, target: &ast::DmlTarget, from: &[TableRef]) -> Result<(Rel, usize), SqlError> {
        if let (true, DmlTargetKind::Name(name)) = (from.is_empty(), &target.kind) {
            if let Some(index) = self.find_cte(name) {
                let bound = self.bind_cte(index)?;
                self.level().tables = vec![crate::bind::table_ref::derived_scope(&bound.outputs, &name.name.text)];
                return Ok((bound.rel, 0));
            }
        }
        if from.is_empty()
            && let DmlTargetKind::Name(name) = &target.kind
            && let Some((rel, scope)) = self.view_target(name, target)?
        {
            self.level().tables = scope;
            return Ok((rel, 0));
        }
        if from.is_empty() {
            let table = self.find_target_table(&target.kind, target.span)?;
            let name = match &target.kind {
                DmlTargetKind::Name(name) => Some(name),
                _ => None,
            };
            refuse_dirty_target(&target.hints, target.span)?;
            let (rel, mut scope) = self.table_reference(table, name, None, &target.hints)?;
            if let DmlTargetKind::Variable(variable) = &target.kind {
                scope[0].name.clone_from(&variable.name);
            }
            self.level().tables = scope;
            return Ok((rel, 0));
        }
        let mut rel = self.bind_from(from)?;
        refuse_dirty_target(&target.hints, target.span)?;
        if let Some(position) = self.find_in_from(target)? {
            self.hint_member(&mut rel, position, &target.hints)?;
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
            [only] => {
                self.hint_member(&mut rel, *only, &target.hints)?;
                Ok((rel, *only))
            }
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

    /// The rows of a target that is a view; `None` for other targets.
    pub(super) fn view_target(
        &mut self,
        name: &ast::ObjectName,
        target: &ast::DmlTarget,
    ) -> Result<Option<crate::bind::table_ref::BoundTable>, SqlError> {
        let Object::View { view, database, schema } = self.find_object(name)? else { return Ok(None) };
        self.target_view = Some((database, view.id));
        let named = ast::NamedTable { name: name.clone(), alias: None, system_time: None, sample: None, hints: target.hints.clone() };
        self.view_reference(&view, (database, &schema), &named).map(Some)
    }

    /// The table behind a view that rows are inserted through, and the position in it of each of the view's columns; `None`
    /// for a column that is computed.
    pub(super) fn view_columns(&mut self, name: &ast::ObjectName, target: &ast::DmlTarget) -> Result<Option<ViewColumns>, SqlError> {
        let Some((rel, scope)) = self.view_target(name, target)? else { return Ok(None) };
        let get = base_of(&rel, &scope[0], target.span)?;
        self.choose_view_check(&get, &scope[0].name, target.span)?;
        let position = |column: ColumnRef| get.columns.iter().find(|(_, id)| *id == column).map(|(at, _)| *at);
        let columns = scope[0].columns.iter().map(|c| (c.name.clone(), position(c.column))).collect();
        Ok(Some((get.table, columns)))
    }

    /// Adds the hints of UPDATE t WITH (...) to the member of FROM that is t.
    fn hint_member(&mut self, rel: &mut Rel, position: usize, hints: &[ast::TableHint]) -> Result<(), SqlError> {
        if hints.is_empty() {
            return Ok(());
        }
        let columns: Vec<ColumnRef> = self.level().tables[position].columns.iter().map(|column| column.column).collect();
        let span = self.statement;
        match get_with(rel, &columns) {
            Some(get) => hints.iter().try_for_each(|hint| crate::bind::table_ref::apply_hint(get, hint, span)),
            None => Ok(()),
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

/// Whether an outer join may put NULLs in place of `column`.
fn is_optional(rel: &Rel, column: ColumnRef) -> bool {
    match rel {
        Rel::Join { left, right, kind, .. } | Rel::Apply { left, right, kind, .. } => {
            let in_left = left.columns().contains(&column);
            let filled = match kind {
                JoinKind::LeftOuter => !in_left,
                JoinKind::RightOuter => in_left,
                JoinKind::FullOuter => true,
                JoinKind::Inner | JoinKind::LeftSemi | JoinKind::LeftAnti => false,
            };
            filled || is_optional(if in_left { left } else { right }, column)
        }
        Rel::Filter { input, .. } => is_optional(input, column),
        _ => false,
    }
}

/// The one base table whose rows the target's columns come from; 4405 for several.
pub(super) fn base_of(rel: &Rel, scope: &ScopeTable, span: ast::Span) -> Result<Get, SqlError> {
    let mut found = Vec::new();
    collect_gets(rel, &mut found);
    found.retain(|g| g.columns.iter().any(|(_, c)| scope.columns.iter().any(|s| s.column == *c)));
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(error(4403, &[&scope.name], span)),
        _ => Err(error(4405, &[&scope.name], span)),
    }
}

/// The table whose columns these are.
pub(super) fn get_with<'r>(rel: &'r mut Rel, columns: &[ColumnRef]) -> Option<&'r mut Get> {
    if let Rel::Get(get) = rel {
        return get.columns.iter().any(|(_, column)| columns.contains(column)).then_some(&mut **get);
    }
    rel.inputs_mut().into_iter().find_map(|input| get_with(input, columns))
}

/// 1065 for NOLOCK on the table a statement changes.
pub(super) fn refuse_dirty_target(hints: &[ast::TableHint], span: ast::Span) -> Result<(), SqlError> {
    let dirty = |hint: &ast::TableHint| matches!(hint, ast::TableHint::Word(word) if matches!(word.as_str(), "NOLOCK" | "READUNCOMMITTED"));
    if hints.iter().any(dirty) { Err(error(1065, &[], span)) } else { Ok(()) }
}

pub(super) fn collect_gets<'r>(rel: &'r Rel, into: &mut Vec<&'r Get>) {
    match rel {
        Rel::Get(get) => into.push(get),
        _ => rel.inputs().into_iter().for_each(|i| collect_gets(i, into)),
    }
}

/// Whether a join may have multiplied rows.
fn has_join(rel: &Rel) -> bool {
    let multiplies = |kind: &JoinKind| !matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti);
    match rel {
        Rel::Join { kind, .. } | Rel::Apply { kind, .. } if multiplies(kind) => true,
        _ => rel.inputs().into_iter().any(has_join),
    }
}

impl Binder<'_> {
    /// Makes the table's columns and its locator come out at the top of `rel`; false if something between does not let
    /// single rows through (DISTINCT, GROUP BY, UNION).
    pub(super) fn expose(&self, rel: &mut Rel, columns: &[ColumnRef], locator: ColumnRef) -> bool {
        match rel {
            Rel::Get(get) if get.columns.iter().any(|(_, c)| *c == columns[0]) => {
                // First, where UPDATE and DELETE want it.
                get.columns.insert(0, (get.table.columns.len(), locator));
                get.locking.target = true;
                true
            }
            Rel::Project { input, exprs } => {
                if !self.expose(input, columns, locator) {
                    return false;
                }
                for column in std::iter::once(&locator).chain(columns) {
                    if !exprs.iter().any(|(c, _)| c == column) {
                        exprs.push((*column, self.column_expr(*column)));
                    }
                }
                true
            }
            Rel::Join { .. } | Rel::Apply { .. } | Rel::Filter { .. } | Rel::Sort { .. } | Rel::Limit { .. } | Rel::Window { .. } => {
                rel.inputs_mut().into_iter().any(|i| self.expose(i, columns, locator))
            }
            _ => false,
        }
    }
}
