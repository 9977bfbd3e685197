//! FOREIGN KEYs, and views WITH CHECK OPTION, kept to when a statement has changed rows.
//!
//! ```text
//! new rows ─► written through a view with the option: rows of it?                                                550
//! new rows ─► each value's row in the table referred to: there, and locked shared until the transaction ends?    547
//! old rows ─► whose keys are gone ─► referring rows: NO ACTION 547, else a DELETE or UPDATE of them, in its turn watched
//! ```
//!
//! 1. Both sides look at the newest committed state, whatever the statement's own view: a referring row cannot slip in
//!    between, for whoever inserts it holds the row referred to.
//! 2. What a cascade changes is checked like anything else; a depth of 32 is 217.

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::{Interpreter, NESTING_MAX};
use crate::batch::trigger::ChangeKind;
use crate::messages::message;
use crate::session::changes::{ChangedRows, Watch};
use crate::session::frame::Frame;
use crate::session::rowset::Rowset;
use std::ops::Bound;
use std::sync::Arc;
use thawdb_catalog::{ConstraintDef, ForeignKeyDef, ReferentialAction, TableDef, TreeLayout};
use thawdb_query::compile::{Compiled, compile, compile_view_check};
use thawdb_query::exec;
use thawdb_query::phys::OutputColumn;
use thawdb_storage::KeyRange;
use thawdb_types::{Scalar, SqlError};

/// The name under which internal statements find the old rows.
const GONE: &str = "\u{1}gone";

/// A name in brackets.
pub(crate) fn bracketed(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

fn table_name(table: &TableDef) -> String {
    format!("{}.{}", bracketed(&table.schema_name), bracketed(&table.name))
}

fn positions(table: &TableDef, columns: &[thawdb_catalog::ColumnId]) -> Vec<usize> {
    columns.iter().filter_map(|id| table.columns.iter().position(|column| column.id == *id)).collect()
}

impl Interpreter<'_, '_> {
    /// Keeps the FOREIGN KEYs around a changed table.
    pub(crate) fn keep_foreign_keys(&mut self, statement: &str, watch: &Watch) -> Result<(), Failure> {
        self.session.views.lock().clear();
        for kind in ChangeKind::ALL {
            let changed = watch.changed(kind);
            if changed.is_empty() {
                continue;
            }
            for constraint in &watch.related.foreign_keys {
                self.check_references(statement, watch, changed, constraint)?;
            }
            if !changed.old.rows.is_empty() {
                for constraint in &watch.related.referenced_by {
                    self.follow_referring(statement, watch, changed, constraint)?;
                }
            }
        }
        Ok(())
    }

    /// 550 if a row that was written is none of the view it was written through.
    pub(crate) fn keep_to_view(&mut self, plan: &Compiled, watch: &Watch) -> Result<(), Failure> {
        let Some(check) = plan.view_check.as_ref().filter(|check| check.table.id == watch.table.id) else { return Ok(()) };
        let rows = watch.new_rows();
        if rows.rows.is_empty() {
            return Ok(());
        }
        self.session.views.lock().clear();
        let query = compile_view_check(check, Arc::new(rows), &CompileCx::new(self.session, 0)).map_err(Failure::run)?;
        self.lock_tables(&query.dependencies)?;
        let mut execution = exec::run(&query.node, self.session)?;
        let outside = execution.next(self.session)?.is_some_and(|batch| batch.rows > 0);
        if outside { Err(message(550, &[]).into()) } else { Ok(()) }
    }

    /// Every new row's key must be there.
    fn check_references(
        &mut self,
        statement: &str,
        watch: &Watch,
        changed: &ChangedRows,
        constraint: &ConstraintDef,
    ) -> Result<(), Failure> {
        let key = constraint.foreign_key.as_ref().expect("related as a foreign key");
        let own = positions(&watch.table, &key.columns);
        let Some(parent) = self.session.table(watch.table.database, key.referenced) else { return Ok(()) };
        for (at, row) in changed.new.rows.iter().enumerate() {
            let values: Vec<Scalar> = own.iter().map(|position| row[*position].clone()).collect();
            let unchanged = changed.old.rows.get(at).is_some_and(|old| own.iter().zip(&values).all(|(p, v)| old[*p] == *v));
            if unchanged || values.iter().any(Scalar::is_null) {
                continue;
            }
            if !self.has_key(&parent, key, values)? {
                let same = parent.id == watch.table.id;
                let kind = if same { "FOREIGN KEY SAME TABLE" } else { "FOREIGN KEY" };
                let column = single(&parent, &key.referenced_columns);
                return Err(self.session.conflict(statement, kind, &constraint.name, &parent, column).into());
            }
        }
        Ok(())
    }

    /// Whether a key is in the unique index a foreign key refers to; the row stays until the transaction ends.
    fn has_key(&mut self, parent: &Arc<TableDef>, key: &ForeignKeyDef, values: Vec<Scalar>) -> Result<bool, SqlError> {
        let Some(index) = parent.indexes.iter().position(|index| index.id == key.index) else { return Ok(false) };
        let layout = TreeLayout::new(parent, index);
        let referenced = positions(parent, &key.referenced_columns);
        let value = |column: &usize| {
            let at = referenced.iter().position(|position| position == column);
            at.map_or(Scalar::Null, |at| values[at].clone())
        };
        let ordered: Vec<Scalar> = layout.key_columns[..layout.own_key_count].iter().map(value).collect();
        let mut start = Vec::new();
        thawdb_types::key::encode_key(&ordered, layout.own_key(), &mut start);
        let tree = parent.indexes[index].tree;
        let txn = &mut self.session.part(parent.database)?.txn;
        let found = if index == 0 && !layout.row_number {
            txn.share_row(tree, &start)
        } else {
            let end = Bound::Excluded(thawdb_types::key::range_end(&start));
            txn.any_live_in(tree, &KeyRange { start: Bound::Included(start), end }, None)
        };
        found.map_err(|error| self.session.storage_failure(parent.database, error))
    }

    /// Rows that refer to keys which are gone.
    fn follow_referring(
        &mut self,
        statement: &str,
        watch: &Watch,
        changed: &ChangedRows,
        constraint: &ConstraintDef,
    ) -> Result<(), Failure> {
        let key = constraint.foreign_key.as_ref().expect("related as a foreign key");
        let Some(child) = self.session.table(watch.table.database, constraint.table) else { return Ok(()) };
        let referenced = positions(&watch.table, &key.referenced_columns);
        let updated = !changed.new.rows.is_empty();
        let gone = gone_keys(&watch.table, changed, &referenced, updated);
        if gone.rows.is_empty() {
            return Ok(());
        }
        let own = positions(&child, &key.columns);
        let names: Vec<String> = own.iter().map(|at| bracketed(&child.columns[*at].name)).collect();
        let joined = (0..names.len()).map(|at| format!("c.{} = g.o{at}", names[at])).collect::<Vec<_>>().join(" AND ");
        let from = format!("FROM {} AS c JOIN [{GONE}] AS g ON {joined}", table_name(&child));
        let set = |value: &dyn Fn(usize) -> String| {
            let items = (0..names.len()).map(|at| format!("{} = {}", names[at], value(at))).collect::<Vec<_>>().join(", ");
            format!("UPDATE c SET {items} {from}")
        };
        let text = match if updated { key.on_update } else { key.on_delete } {
            ReferentialAction::NoAction => {
                return self.refuse_referring(statement, watch, constraint, &child, gone);
            }
            ReferentialAction::Cascade if updated => set(&|at| format!("g.n{at}")),
            ReferentialAction::Cascade => format!("DELETE c {from}"),
            ReferentialAction::SetNull => set(&|_| "NULL".to_owned()),
            ReferentialAction::SetDefault => set(&|_| "DEFAULT".to_owned()),
        };
        self.internally(&text, gone, |this, plan| this.run_watched(plan).map(drop))
    }

    /// NO ACTION: 547 if a row refers to a key that is gone and has not come back.
    fn refuse_referring(
        &mut self,
        statement: &str,
        watch: &Watch,
        constraint: &ConstraintDef,
        child: &TableDef,
        gone: Rowset,
    ) -> Result<(), Failure> {
        let key = constraint.foreign_key.as_ref().expect("related as a foreign key");
        let own = positions(child, &key.columns);
        let referenced = positions(&watch.table, &key.referenced_columns);
        let equal = |alias: &str, table: &TableDef, at: &[usize]| {
            let each = at.iter().enumerate().map(|(n, at)| format!("{alias}.{} = g.o{n}", bracketed(&table.columns[*at].name)));
            each.collect::<Vec<_>>().join(" AND ")
        };
        let text = format!(
            "SELECT TOP (1) 1 AS found FROM [{GONE}] AS g WHERE EXISTS (SELECT * FROM {} AS c WHERE {}) \
             AND NOT EXISTS (SELECT * FROM {} AS p WHERE {})",
            table_name(child),
            equal("c", child, &own),
            table_name(&watch.table),
            equal("p", &watch.table, &referenced),
        );
        let mut found = false;
        self.internally(&text, gone, |this, plan| {
            let mut execution = exec::run(&plan.node, this.session)?;
            found = execution.next(this.session)?.is_some_and(|batch| batch.rows > 0);
            Ok(())
        })?;
        if !found {
            return Ok(());
        }
        let same = child.id == watch.table.id;
        let kind = if same { "SAME TABLE REFERENCE" } else { "REFERENCE" };
        Err(self.session.conflict(statement, kind, &constraint.name, child, single(child, &key.columns)).into())
    }

    /// Compiles an internal statement in a frame that holds `rows`, and hands it to `work`.
    fn internally(
        &mut self,
        text: &str,
        rows: Rowset,
        work: impl FnOnce(&mut Self, &Compiled) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut frame = Frame { guarded: true, procedure: self.session.frame().procedure.clone(), ..Frame::default() };
        frame.rowsets.insert(GONE.to_owned(), Arc::new(rows));
        self.internally_in(text, frame, work)
    }

    /// The same in a frame of the caller's making.
    pub(crate) fn internally_in(
        &mut self,
        text: &str,
        frame: Frame,
        work: impl FnOnce(&mut Self, &Compiled) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.session.frames.len() >= 2 * NESTING_MAX {
            return Err(message(217, &[&NESTING_MAX]).into());
        }
        let batch = thawdb_tsql::parse_batch(text, &thawdb_tsql::ParseOptions::default());
        let statement = batch.statements.first().expect("statements of ours parse");
        self.session.frames.push(frame);
        let outcome = compile(statement, &CompileCx::new(self.session, 0)).map_err(Failure::run);
        let outcome = outcome.and_then(|plan| {
            self.lock_tables(&plan.dependencies)?;
            work(self, &plan)
        });
        self.session.frames.pop();
        outcome
    }

    /// Whether a query of ours has a row, for rows that are there when a constraint is added.
    pub(crate) fn any_row(&mut self, text: &str) -> Result<bool, Failure> {
        let mut found = false;
        self.internally(text, Rowset::default(), |this, plan| {
            let mut execution = exec::run(&plan.node, this.session)?;
            found = execution.next(this.session)?.is_some_and(|batch| batch.rows > 0);
            Ok(())
        })?;
        Ok(found)
    }
}

/// The name of a key's column if it has one alone.
fn single<'t>(table: &'t TableDef, columns: &[thawdb_catalog::ColumnId]) -> Option<&'t str> {
    match columns {
        [only] => table.columns.iter().find(|column| column.id == *only).map(|column| column.name.as_str()),
        _ => None,
    }
}

/// The keys that rows no longer have: columns `o0..` with the old values, and of an update `n0..` with the new.
fn gone_keys(table: &TableDef, changed: &ChangedRows, referenced: &[usize], updated: bool) -> Rowset {
    let column = |prefix: &str, at: usize| {
        let of = &table.columns[referenced[at]];
        OutputColumn { name: format!("{prefix}{at}"), sql_type: of.sql_type, nullable: true, identity: false }
    };
    let mut gone = Rowset { columns: (0..referenced.len()).map(|at| column("o", at)).collect(), rows: Vec::new() };
    if updated {
        gone.columns.extend((0..referenced.len()).map(|at| column("n", at)));
    }
    for (at, old) in changed.old.rows.iter().enumerate() {
        let mut row: Vec<Scalar> = referenced.iter().map(|position| old[*position].clone()).collect();
        if row.iter().any(Scalar::is_null) {
            continue;
        }
        if updated {
            let new = &changed.new.rows[at];
            if referenced.iter().all(|position| old[*position] == new[*position]) {
                continue;
            }
            row.extend(referenced.iter().map(|position| new[*position].clone()));
        }
        gone.rows.push(row);
    }
    gone
}
