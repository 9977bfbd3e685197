//! INSERT, UPDATE and DELETE of tables and views that have an INSTEAD OF trigger: rows are worked out and handed to the
//! trigger, nothing is changed.
//!
//! ```text
//! the statement's rows ─► old: the target's columns (not of INSERT) │ new: one value a column (not of DELETE) ─► trigger
//! ```
//!
//! 1. A view is a target as its columns say, however they are computed: the trigger sees them by name.
//! 2. `inserted` of an INSERT has defaults where no value is given, 0 for an identity, NULL else.
//!
//! Within the trigger itself statements on its target change rows as if it were not there: the context then says so
//! (`CompileContext::triggers`). Messages: 414 and 415 (a view with such a trigger joined with other tables).

use super::target::Target;
use super::{BoundInsert, BoundInstead, BoundOutput, BoundStmt};
use crate::algebra::{BoundExpr, ColumnRef, Rel};
use crate::bind::Binder;
use crate::bind::coerce;
use crate::bind::error::error;
use crate::bind::objects::Object;
use crate::bind::scope::ScopeTable;
use crate::bind::{Clause, table_ref::BoundTable};
use crate::compile::ChangeAction;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, ColumnId, DatabaseId, LockEscalation, ObjectId, SchemaId, TableDef};
use thawdb_tsql::ast::{self, DmlTargetKind, TableRef};
use thawdb_types::{Scalar, SqlError, SqlType};

/// A view that rows are changed through by its trigger.
pub(super) struct InsteadView {
    rel: Rel,
    scope: ScopeTable,
    /// The view's columns as a table's.
    pub(super) table: Arc<TableDef>,
}

impl Binder<'_> {
    /// Whether a trigger runs in place of such a statement on a table.
    pub(super) fn is_instead(&self, table: &TableDef, action: ChangeAction) -> bool {
        table.id.0 > 0 && self.cx.triggers(table.database, table.id, action).instead
    }

    /// The target if it is a view with a trigger in place of the statement.
    pub(super) fn instead_view(
        &mut self,
        target: &ast::DmlTarget,
        from: &[TableRef],
        action: ChangeAction,
    ) -> Result<Option<InsteadView>, SqlError> {
        let DmlTargetKind::Name(name) = &target.kind else { return Ok(None) };
        if self.find_cte(name).is_some() {
            return Ok(None);
        }
        // What is no object may be an alias of FROM.
        let Ok(Object::View { view, database, schema }) = self.find_object(name) else { return Ok(None) };
        if !self.cx.triggers(database, view.id, action).instead {
            return Ok(None);
        }
        if !from.is_empty() {
            let number = if action == ChangeAction::Update { 414 } else { 415 };
            return Err(error(number, &[&name.name.text], target.span));
        }
        let named = ast::NamedTable { name: name.clone(), alias: None, system_time: None, sample: None, hints: target.hints.clone() };
        let (rel, mut scope): BoundTable = self.view_reference(&view, (database, &schema), &named)?;
        self.target_view = Some((database, view.id));
        let scope = scope.remove(0);
        let table = Arc::new(self.as_table(database, view.id, &schema, &name.name.text, &scope));
        Ok(Some(InsteadView { rel, scope, table }))
    }

    fn as_table(&self, database: DatabaseId, id: ObjectId, schema: &str, name: &str, scope: &ScopeTable) -> TableDef {
        let column = |(at, column): (i32, &crate::bind::scope::ScopeColumn)| {
            ColumnDef::plain(ColumnId(at), &column.name, self.columns.info(column.column).sql_type, true)
        };
        TableDef {
            database,
            id,
            schema: SchemaId(0),
            schema_name: schema.to_owned(),
            name: name.to_owned(),
            columns: (1..).zip(&scope.columns).map(column).collect(),
            indexes: Vec::new(),
            rows_disabled: false,
            disabled: Vec::new(),
            lock_escalation: LockEscalation::default(),
            temporal: Default::default(),
            building: None,
            created: 0,
            modified: 0,
        }
    }

    /// The rows of a view that UPDATE or DELETE names, in the present level.
    pub(super) fn instead_target(&mut self, view: InsteadView, where_: Option<&ast::Expr>) -> Result<Target, SqlError> {
        let InsteadView { rel, scope, table } = view;
        self.level().tables = vec![scope.clone()];
        let predicates = match where_ {
            Some(condition) => self.within(Clause::Where, |b| b.bind_condition(condition))?.conjuncts(),
            None => Vec::new(),
        };
        let columns: Vec<ColumnRef> = scope.columns.iter().map(|c| c.column).collect();
        let names = scope.columns.iter().enumerate().map(|(at, c)| (c.name.clone(), at)).collect();
        let locator = columns[0];
        let rel = rel.filter(predicates);
        Ok(Target { table, rel, locator, columns, names, name: scope.name, derived: Vec::new(), joined: false, position: 0 })
    }

    /// An INSERT whose rows go to the trigger.
    pub(super) fn instead_of_insert(&mut self, insert: BoundInsert) -> BoundStmt {
        let BoundInsert { table, input, values, defaults, output, .. } = insert;
        let new = table.columns.iter().enumerate().map(|(at, column)| {
            let given = values.iter().find(|(target, _)| *target == at).map(|(_, c)| self.column_expr(*c));
            let default = || defaults.iter().find(|(target, _)| *target == at).map(|(_, e)| e.clone());
            given.or_else(default).unwrap_or_else(|| match column.identity {
                Some(_) => coerce::cast(BoundExpr::literal(Scalar::Int(0), SqlType::Int), column.sql_type),
                None => BoundExpr::literal(Scalar::Null, column.sql_type),
            })
        });
        let new = new.collect();
        let instead = BoundInstead { table, action: ChangeAction::Insert, input, old: Vec::new(), new, updated: Vec::new(), output };
        BoundStmt::Instead(Box::new(instead))
    }

    /// An UPDATE whose rows go to the trigger.
    pub(super) fn instead_of_update(
        &self,
        (table, input): (Arc<TableDef>, Rel),
        old: Vec<ColumnRef>,
        assignments: Vec<(usize, BoundExpr)>,
        output: Option<BoundOutput>,
    ) -> BoundStmt {
        let updated = assignments.iter().map(|(at, _)| *at).collect();
        let mut new: Vec<BoundExpr> = old.iter().map(|c| self.column_expr(*c)).collect();
        for (at, value) in assignments {
            new[at] = value;
        }
        BoundStmt::Instead(Box::new(BoundInstead { table, action: ChangeAction::Update, input, old, new, updated, output }))
    }

    /// 334 for an OUTPUT to the client from a table whose trigger might send rows too.
    pub(super) fn check_output(&self, outputs: &[ast::Output], table: &TableDef, actions: &[ChangeAction]) -> Result<(), SqlError> {
        let Some(output) = outputs.iter().find(|output| output.into.is_none()) else { return Ok(()) };
        let fires = |action: &ChangeAction| {
            let triggers = self.cx.triggers(table.database, table.id, *action);
            triggers.after || triggers.instead
        };
        if table.id.0 > 0 && actions.iter().any(fires) { Err(error(334, &[&table.name], output.span)) } else { Ok(()) }
    }
}
