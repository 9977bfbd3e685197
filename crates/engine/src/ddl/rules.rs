//! CHECK and FOREIGN KEY constraints: from their clauses to the catalog, and rows that are there already.
//!
//! ```text
//! clause ─► NewRule ─ the table is in the catalog ─► bound, resolved ─► rows looked at (WITH CHECK) ─► put_constraint
//! ```
//!
//! Messages: 547 (rows that do not fit), 1767 (no table), 1769 and 1770 (no column), 1773 (no primary key to mean), 1774
//! (another number of columns), 1776 (no unique index), 1778 (another type), 2714.

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::integrity::bracketed;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{database_of, find_table, shown};
use crate::ddl::table::{check_free, system_name};
use crate::ddl::{catalog_error, change_catalog, lock_for_change};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use std::sync::Arc;
use thawdb_catalog::{CheckDef, ColumnId, ConstraintDef, ConstraintKind, DatabaseCatalog, ForeignKeyDef, ReferentialAction, TableDef};
use thawdb_query::compile::bind_row_condition;
use thawdb_tsql::ast::{
    ColumnKind, ConstraintKind as Syntax, Expr, ForeignKey, Ident, ReferentialAction as ActionSyntax, TableBody, TableConstraint,
};
use thawdb_types::SqlError;

/// A CHECK or FOREIGN KEY as written.
#[derive(Debug, Clone)]
pub(crate) struct NewRule {
    pub(crate) name: Option<String>,
    /// The column it is written at.
    pub(crate) column: Option<String>,
    pub(crate) kind: NewRuleKind,
    pub(crate) line: u32,
}

#[derive(Debug, Clone)]
pub(crate) enum NewRuleKind {
    Check(Expr),
    ForeignKey(ForeignKey),
}

/// The rule a constraint clause is, if it is one.
pub(crate) fn rule_of(constraint: &TableConstraint, column: Option<&Ident>) -> Option<NewRule> {
    let kind = match &constraint.kind {
        Syntax::Check { condition, .. } => NewRuleKind::Check((**condition).clone()),
        Syntax::ForeignKey(clause) => NewRuleKind::ForeignKey((**clause).clone()),
        _ => return None,
    };
    let name = constraint.name.as_ref().map(|name| name.text.clone());
    Some(NewRule { name, column: column.map(|column| column.text.clone()), kind, line: constraint.span.line })
}

/// The rules written among columns and constraints of a table.
pub(crate) fn rules_of(body: &TableBody) -> Vec<NewRule> {
    let mut rules = Vec::new();
    for column in &body.columns {
        let constraints = match &column.kind {
            ColumnKind::Regular(syntax) => &syntax.constraints,
            ColumnKind::Computed(syntax) => &syntax.constraints,
            ColumnKind::ColumnSet => continue,
        };
        rules.extend(constraints.iter().filter_map(|constraint| rule_of(constraint, Some(&column.name))));
    }
    rules.extend(body.constraints.iter().filter_map(|constraint| rule_of(constraint, None)));
    rules
}

impl Interpreter<'_, '_> {
    /// Adds a rule to a table that is in the catalog. `trusted`: rows that are there are looked at.
    pub(crate) fn add_rule(&mut self, open: &Arc<OpenDatabase>, table: &TableDef, rule: &NewRule, trusted: bool) -> Result<(), Failure> {
        let table = self.session.table(open.id, table.id).ok_or_else(|| message(4902, &[&table.name]))?;
        let now = self.session.engine.now_datetime();
        let (kind, prefix) = match &rule.kind {
            NewRuleKind::Check(_) => (ConstraintKind::Check, "CK"),
            NewRuleKind::ForeignKey(_) => (ConstraintKind::ForeignKey, "FK"),
        };
        let mut constraint = ConstraintDef {
            id: thawdb_catalog::ObjectId(0),
            name: rule.name.clone().unwrap_or_default(),
            table: table.id,
            kind,
            system_named: rule.name.is_none(),
            created: now,
            check: None,
            foreign_key: None,
        };
        match &rule.kind {
            NewRuleKind::Check(condition) => constraint.check = Some(self.check_of(&table, rule, condition, trusted)?),
            NewRuleKind::ForeignKey(clause) => constraint.foreign_key = Some(self.foreign_key_of(open, &table, rule, clause, trusted)?),
        }
        let constraint = change_catalog(self.session, open, |catalog, part| {
            constraint.id = catalog.take_object_id();
            if constraint.system_named {
                constraint.name = system_name(prefix, &table.name, table.id, constraint.id.0 & 0xFFFF);
            }
            check_free(catalog, &table.schema_name, &constraint.name, &constraint.name)?;
            catalog.put_constraint(&mut part.txn, constraint.clone()).map_err(catalog_error(open))?;
            Ok(constraint)
        })?;
        if trusted { self.check_existing(&table, &constraint) } else { Ok(()) }
    }

    fn check_of(&self, table: &Arc<TableDef>, rule: &NewRule, condition: &Expr, trusted: bool) -> Result<CheckDef, SqlError> {
        bind_row_condition(condition, table, &CompileCx::new(self.session, 0))?;
        let definition = check_text(condition, rule.line)?;
        let column = rule.column.as_ref().and_then(|name| table.column_index(name)).map(|at| table.columns[at].id);
        Ok(CheckDef { column, definition, disabled: false, not_trusted: !trusted })
    }

    fn foreign_key_of(
        &mut self,
        open: &Arc<OpenDatabase>,
        table: &TableDef,
        rule: &NewRule,
        clause: &ForeignKey,
        trusted: bool,
    ) -> Result<ForeignKeyDef, SqlError> {
        let name = rule.name.clone().unwrap_or_else(|| format!("FK__{}", table.name));
        let invalid = || message(1767, &[&name, &shown(&clause.table)]);
        if database_of(self.session, &clause.table)?.id != open.id {
            return Err(unsupported_option("FOREIGN KEY to another database"));
        }
        let parent = find_table(self.session, &clause.table)?.ok_or_else(invalid)?;
        self.session.allow_object("REFERENCES", (parent.database, parent.id))?;
        if parent.id != table.id {
            lock_for_change(self.session, open, parent.id)?;
        }
        let own: Vec<&str> = match &rule.column {
            Some(column) if clause.columns.is_empty() => vec![column.as_str()],
            _ => clause.columns.iter().map(|column| column.text.as_str()).collect(),
        };
        if let Some(column) = own.iter().filter_map(|name| table.column_index(name)).map(|at| &table.columns[at]).find(|c| c.is_virtual()) {
            return Err(message(1764, &[&column.name, &table.name, &name]));
        }
        let columns = ids_of(table, &own, |column| message(1769, &[&name, &column, &table.name]))?;
        let referenced_columns = if clause.referenced_columns.is_empty() {
            let primary = parent.indexes.iter().find(|index| index.primary_key);
            let primary = primary.ok_or_else(|| message(1773, &[&name, &shown(&clause.table)]))?;
            primary.keys.iter().map(|key| parent.columns[key.column_index].id).collect()
        } else {
            let names: Vec<&str> = clause.referenced_columns.iter().map(|column| column.text.as_str()).collect();
            ids_of(&parent, &names, |column| message(1770, &[&name, &column, &parent.name]))?
        };
        if columns.len() != referenced_columns.len() {
            return Err(message(1774, &[&name, &parent.name]));
        }
        let index = candidate(&parent, &referenced_columns).ok_or_else(|| message(1776, &[&shown(&clause.table), &name]))?;
        check_types(table, &columns, &parent, &referenced_columns, &name)?;
        Ok(ForeignKeyDef {
            columns,
            referenced: parent.id,
            referenced_columns,
            index,
            on_delete: action_of(clause.on_delete),
            on_update: action_of(clause.on_update),
            disabled: false,
            not_trusted: !trusted,
        })
    }

    /// 547 if a row that is there does not fit.
    fn check_existing(&mut self, table: &Arc<TableDef>, constraint: &ConstraintDef) -> Result<(), Failure> {
        let name = format!("{}.{}", bracketed(&table.schema_name), bracketed(&table.name));
        if let Some(check) = &constraint.check {
            if self.any_row(&format!("SELECT TOP (1) 1 AS found FROM {name} WHERE NOT ({})", check.definition))? {
                let column = check.column.and_then(|id| table.columns.iter().find(|c| c.id == id)).map(|c| c.name.as_str());
                return Err(self.session.conflict("ALTER TABLE", "CHECK", &constraint.name, table, column).into());
            }
        }
        let Some(key) = &constraint.foreign_key else { return Ok(()) };
        let Some(parent) = self.session.table(table.database, key.referenced) else { return Ok(()) };
        let column = |table: &TableDef, id: &ColumnId| {
            bracketed(table.columns.iter().find(|column| column.id == *id).map_or("", |column| column.name.as_str()))
        };
        let given = key.columns.iter().map(|id| format!("c.{} IS NOT NULL", column(table, id))).collect::<Vec<_>>().join(" AND ");
        let pairs = key.columns.iter().zip(&key.referenced_columns);
        let equal = pairs.map(|(own, other)| format!("p.{} = c.{}", column(&parent, other), column(table, own)));
        let text = format!(
            "SELECT TOP (1) 1 AS found FROM {name} AS c WHERE {given} AND NOT EXISTS (SELECT * FROM {}.{} AS p WHERE {})",
            bracketed(&parent.schema_name),
            bracketed(&parent.name),
            equal.collect::<Vec<_>>().join(" AND "),
        );
        if !self.any_row(&text)? {
            return Ok(());
        }
        let kind = if parent.id == table.id { "FOREIGN KEY SAME TABLE" } else { "FOREIGN KEY" };
        let single = match key.referenced_columns.as_slice() {
            [only] => parent.columns.iter().find(|column| column.id == *only).map(|column| column.name.as_str()),
            _ => None,
        };
        Err(self.session.conflict("ALTER TABLE", kind, &constraint.name, &parent, single).into())
    }

    /// CHECK CONSTRAINT and NOCHECK CONSTRAINT; no names are all. 4917 for a name that is not there.
    pub(crate) fn enable_rules(
        &mut self,
        open: &Arc<OpenDatabase>,
        table: &Arc<TableDef>,
        (names, enable, with_check): (&[Ident], bool, bool),
    ) -> Result<(), Failure> {
        let catalog = self.session.definitions(open.id).ok_or_else(|| message(4902, &[&table.name]))?;
        let all: Vec<_> = catalog.constraints_of(table.id).filter(|c| c.check.is_some() || c.foreign_key.is_some()).cloned().collect();
        for name in names {
            if !all.iter().any(|constraint| name.is(&constraint.name)) {
                return Err(message(4917, &[&name.text]).into());
            }
        }
        for constraint in all.iter().filter(|c| names.is_empty() || names.iter().any(|name| name.is(&c.name))) {
            let mut changed = (**constraint).clone();
            let state = match (&mut changed.check, &mut changed.foreign_key) {
                (Some(check), _) => (&mut check.disabled, &mut check.not_trusted),
                (None, Some(key)) => (&mut key.disabled, &mut key.not_trusted),
                (None, None) => continue,
            };
            if enable && let Some(key) = &constraint.foreign_key {
                refuse_disabled_key(&catalog, constraint, key)?;
            }
            // Rows that came while it was off make it untrusted until they are looked at.
            *state.1 = !(enable && with_check) && (!enable || *state.0 || *state.1);
            *state.0 = !enable;
            change_catalog(self.session, open, |catalog, part| {
                catalog.put_constraint(&mut part.txn, changed.clone()).map_err(catalog_error(open))
            })?;
            if enable && with_check {
                self.check_existing(table, &changed)?;
            }
        }
        Ok(())
    }
}

/// 1989 while the index that a foreign key refers to is disabled.
fn refuse_disabled_key(catalog: &DatabaseCatalog, constraint: &ConstraintDef, key: &ForeignKeyDef) -> Result<(), SqlError> {
    let Some(parent) = catalog.tables.tables.get(&key.referenced.0).filter(|parent| parent.is_disabled(key.index)) else { return Ok(()) };
    let index = parent.every_index().find(|index| index.id == key.index).and_then(|index| index.name.clone());
    Err(message(1989, &[&constraint.name, &index.unwrap_or_default()]))
}

/// A condition's text as sys.check_constraints shows it: 1046 for a subquery.
pub(crate) fn check_text(condition: &Expr, line: u32) -> Result<String, SqlError> {
    let text = thawdb_tsql::definition(condition).ok_or_else(|| message(1046, &[]).at_line(line))?;
    Ok(if text.starts_with('(') && text.ends_with(')') { text } else { format!("({text})") })
}

fn ids_of(table: &TableDef, names: &[&str], missing: impl Fn(&str) -> SqlError) -> Result<Vec<ColumnId>, SqlError> {
    names.iter().map(|name| table.column_index(name).map(|at| table.columns[at].id).ok_or_else(|| missing(name))).collect()
}

/// The unique index over exactly these columns.
fn candidate(parent: &TableDef, columns: &[ColumnId]) -> Option<thawdb_catalog::IndexId> {
    let fits = |index: &&thawdb_catalog::IndexDef| {
        let keys: Vec<ColumnId> = index.keys.iter().map(|key| parent.columns[key.column_index].id).collect();
        index.unique && index.filter.is_none() && keys.len() == columns.len() && columns.iter().all(|column| keys.contains(column))
    };
    parent.indexes.iter().find(fits).map(|index| index.id)
}

fn check_types(table: &TableDef, own: &[ColumnId], parent: &TableDef, other: &[ColumnId], name: &str) -> Result<(), SqlError> {
    let find = |table: &'_ TableDef, id: &ColumnId| table.columns.iter().position(|column| column.id == *id);
    for (own, other) in own.iter().zip(other) {
        if let (Some(a), Some(b)) = (find(table, own), find(parent, other)) {
            let (a, b) = (&table.columns[a], &parent.columns[b]);
            if a.sql_type != b.sql_type {
                return Err(message(1778, &[&parent.name, &b.name, &table.name, &a.name, &name]));
            }
        }
    }
    Ok(())
}

fn action_of(syntax: Option<ActionSyntax>) -> ReferentialAction {
    match syntax {
        None | Some(ActionSyntax::NoAction) => ReferentialAction::NoAction,
        Some(ActionSyntax::Cascade) => ReferentialAction::Cascade,
        Some(ActionSyntax::SetNull) => ReferentialAction::SetNull,
        Some(ActionSyntax::SetDefault) => ReferentialAction::SetDefault,
    }
}
