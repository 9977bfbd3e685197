//! INSERT ... EXEC: what a procedure or text would send becomes rows of a table.
//!
//! ```text
//! transaction of the statement ─► EXEC with a capturing Outbox ─► one Rowset a result set ─► an INSERT from each
//! ```
//!
//! Messages still reach the client. Messages of its own: 8164 (nested), 213 (another number of columns), 3915 and 3916
//! (ROLLBACK, and COMMIT beyond its own, inside).

use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::message;
use crate::session::rowset::Rowset;
use std::sync::Arc;
use thawdb_query::compile::compile;
use thawdb_tsql::ast::{Insert, InsertSource, Query, Stmt, StmtKind};

/// The name under which the statement finds the rows taken: none that a text can say without trying.
const CAPTURED: &str = "\u{1}captured";

impl Interpreter<'_, '_> {
    /// Runs INSERT ... EXEC.
    pub(crate) fn insert_execute(&mut self, statement: &Stmt, insert: &Insert) -> Result<(), Failure> {
        if self.out.is_capturing() {
            return Err(message(8164, &[]).into());
        }
        let count = self.transactional(|this| {
            this.within_transaction(|this| {
                this.out.begin_capture(this.session.transactions.count);
                let outcome = match &insert.source {
                    InsertSource::Execute(node) => this.execute(node),
                    InsertSource::ExecuteString(node) => this.execute_string(node),
                    other => unreachable!("{other:?} is no EXEC"),
                };
                let captured = this.out.end_capture();
                outcome?;
                let mut count = 0;
                for rowset in captured {
                    count += this.insert_rowset(statement, insert, rowset)?;
                }
                Ok(count)
            })
        })?;
        self.counted(count);
        self.out.done(crate::api::sink::StatementKind::Insert, self.shown_count(count), false);
        Ok(())
    }

    fn insert_rowset(&mut self, statement: &Stmt, insert: &Insert, rowset: Rowset) -> Result<u64, Failure> {
        self.session.frame_mut().rowsets.insert(CAPTURED.to_owned(), Arc::new(rowset));
        let from_rowset = Insert { source: InsertSource::Query(Box::new(all_captured())), ..insert.clone() };
        let statement = Stmt { kind: StmtKind::Insert(Box::new(from_rowset)), span: statement.span };
        let outcome = self.insert_captured(&statement);
        self.session.frame_mut().rowsets.remove(CAPTURED);
        outcome
    }

    fn insert_captured(&mut self, statement: &Stmt) -> Result<u64, Failure> {
        let compiled = compile(statement, &CompileCx::new(self.session, self.at));
        let plan = compiled.map_err(|error| match error.number {
            120 | 121 | 213 | 8101 => Failure::ends_batch(message(213, &[])),
            _ => Failure::compile(error),
        })?;
        self.session.may_run(&plan)?;
        self.lock_tables(&plan.dependencies)?;
        self.change_rows(&plan)
    }
}

fn all_captured() -> Query {
    let batch = thawdb_tsql::parse_batch(&format!("SELECT * FROM [{CAPTURED}]"), &thawdb_tsql::ParseOptions::default());
    match batch.statements.into_iter().next().map(|statement| statement.kind) {
        Some(StmtKind::Select(query)) => *query,
        other => unreachable!("a constant text parses as a query, not {other:?}"),
    }
}
