//! FROM: what each member offers, and how members join.
//!
//! A derived table sees enclosing queries but not its neighbours; the right side of APPLY sees the left; ON sees both
//! sides of its own join and enclosing queries.

mod built_in;
mod derived;
mod pivot;
mod table;

pub(crate) use table::apply_hint;

use super::Binder;
use super::error::{error, not_built};
use super::scope::ScopeTable;
use crate::algebra::rel::JoinHint;
use crate::algebra::{BoundExpr, Rel};
use crate::phys::JoinKind;
use thawdb_tsql::ast::{self, TableRef, TableRefKind};
use thawdb_types::SqlError;

/// A member of FROM: its rows and what it offers.
pub(crate) type BoundTable = (Rel, Vec<ScopeTable>);

impl Binder<'_> {
    /// Binds a FROM list and makes its tables the present level's.
    pub(crate) fn bind_from(&mut self, from: &[TableRef]) -> Result<Rel, SqlError> {
        let mut rel: Option<Rel> = None;
        let mut tables: Vec<ScopeTable> = Vec::new();
        for member in from {
            let (next, offers) = self.bind_table_ref(member)?;
            tables.extend(offers);
            self.check_exposed_names(&tables, member.span)?;
            rel = Some(match rel {
                None => next,
                Some(before) => join(before, next, JoinKind::Inner, Vec::new(), None),
            });
        }
        self.level().tables = tables;
        Ok(rel.unwrap_or(Rel::OneRow))
    }

    pub(crate) fn bind_table_ref(&mut self, table: &TableRef) -> Result<BoundTable, SqlError> {
        match &table.kind {
            TableRefKind::Table(named) => self.bind_named_table(named),
            TableRefKind::Variable { variable, alias, hints } => self.bind_table_variable(variable, alias.as_ref(), hints),
            TableRefKind::Derived { query, alias } => self.bind_derived(query, alias.as_ref(), table.span),
            TableRefKind::Values { rows, alias } => self.bind_values_table(rows, alias.as_ref(), table.span),
            TableRefKind::Function { name, arguments, schema, alias } => self.bind_table_function(name, arguments, schema, alias.as_ref()),
            TableRefKind::Join { kind, hint, left, right, on } => self.bind_join(*kind, *hint, (left, right), on.as_deref(), table.span),
            TableRefKind::Apply { outer, left, right } => self.bind_apply(*outer, left, right, table.span),
            TableRefKind::Method { call, alias } => self.bind_nodes(call, alias.as_ref(), table.span),
            TableRefKind::OpenRowset(_) => Err(not_built("OPENROWSET", table.span)),
            TableRefKind::Pivot(pivot) => self.bind_pivot(pivot, table.span),
            TableRefKind::Unpivot(unpivot) => self.bind_unpivot(unpivot, table.span),
            TableRefKind::Dml { .. } => Err(not_built("a statement as a table", table.span)),
            TableRefKind::Special { name, .. } => Err(not_built(name, table.span)),
        }
    }

    fn bind_join(
        &mut self,
        kind: ast::JoinKind,
        hint: Option<ast::JoinHint>,
        (left, right): (&TableRef, &TableRef),
        on: Option<&ast::Expr>,
        span: ast::Span,
    ) -> Result<BoundTable, SqlError> {
        let (left, left_tables) = self.bind_table_ref(left)?;
        let (right, right_tables) = self.bind_table_ref(right)?;
        let mut tables = left_tables.clone();
        tables.extend(right_tables.iter().cloned());
        self.check_exposed_names(&tables, span)?;
        let predicates = match on {
            None => Vec::new(),
            Some(on) => self.with_tables(&tables, |b| b.bind_condition(on))?.conjuncts(),
        };
        if matches!(kind, ast::JoinKind::Left | ast::JoinKind::Full) {
            self.make_nullable(&right_tables);
        }
        if matches!(kind, ast::JoinKind::Right | ast::JoinKind::Full) {
            self.make_nullable(&left_tables);
        }
        let kind = match kind {
            ast::JoinKind::Inner | ast::JoinKind::Cross => JoinKind::Inner,
            ast::JoinKind::Left => JoinKind::LeftOuter,
            ast::JoinKind::Right => JoinKind::RightOuter,
            ast::JoinKind::Full => JoinKind::FullOuter,
        };
        let hint = hint.and_then(|h| match h {
            ast::JoinHint::Loop => Some(JoinHint::Loop),
            ast::JoinHint::Hash => Some(JoinHint::Hash),
            ast::JoinHint::Merge => Some(JoinHint::Merge),
            ast::JoinHint::Remote => None,
        });
        Ok((join(left, right, kind, predicates, hint), tables))
    }

    fn bind_apply(&mut self, outer: bool, left: &TableRef, right: &TableRef, span: ast::Span) -> Result<BoundTable, SqlError> {
        let (left, mut tables) = self.bind_table_ref(left)?;
        let seen = tables.clone();
        let (right, right_tables) = self.with_tables(&seen, |b| b.bind_table_ref(right))?;
        tables.extend(right_tables.iter().cloned());
        self.check_exposed_names(&tables, span)?;
        if outer {
            self.make_nullable(&right_tables);
        }
        let kind = if outer { JoinKind::LeftOuter } else { JoinKind::Inner };
        Ok((Rel::Apply { left: Box::new(left), right: Box::new(right), kind, predicates: Vec::new() }, tables))
    }

    /// Binds with `tables` as what the present level offers.
    fn with_tables<T>(&mut self, tables: &[ScopeTable], bind: impl FnOnce(&mut Self) -> T) -> T {
        let mut seen = self.level().tables.clone();
        seen.extend(tables.iter().cloned());
        let before = std::mem::replace(&mut self.level().tables, seen);
        let result = bind(self);
        self.level().tables = before;
        result
    }

    pub(crate) fn make_nullable(&mut self, tables: &[ScopeTable]) {
        for column in tables.iter().flat_map(|t| &t.columns) {
            self.columns.info_mut(column.column).nullable = true;
        }
    }
}

pub(crate) fn join(left: Rel, right: Rel, kind: JoinKind, predicates: Vec<BoundExpr>, hint: Option<JoinHint>) -> Rel {
    Rel::Join { left: Box::new(left), right: Box::new(right), kind, predicates, hint }
}

/// What a bound query offers under `alias`.
pub(crate) fn derived_scope(outputs: &[crate::bind::query::OutputName], name: &str) -> ScopeTable {
    let columns = outputs.iter().map(|o| super::scope::ScopeColumn { name: o.name.clone(), column: o.column, hidden: false }).collect();
    ScopeTable { name: name.to_string(), alias: true, schema: String::new(), database: None, columns, base: None, qualified_only: false }
}

/// 102 for a derived table without the alias it needs.
pub(crate) fn need_alias(alias: Option<&ast::Alias>, span: ast::Span) -> Result<&ast::Alias, SqlError> {
    alias.ok_or_else(|| error(102, &[&")"], span))
}
