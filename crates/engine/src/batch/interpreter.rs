//! Running a program step by step, and deciding after an error what goes on.
//!
//! ```text
//! step ─ ok ─► next step                      error ─► undo the statement ─► TRY here?     ─► its CATCH
//!                                                                         ─► TRY of a caller? ─► leave to the caller
//!                                                                         ─► tell the client ─► by fate: next step,
//!                                                                            end scope, end batch, end session
//! ```
//!
//! 1. A failed statement leaves no row behind (`Interpreter::transactional`).
//! 2. An error is told once: by a CATCH block that takes it, or to the client (`Failure::told`).
//! 3. Scopes nest at most [`NESTING_MAX`] deep (217), which bounds the recursion of this file.

use crate::api::sink::{EnvChange, StatementKind};
use crate::batch::failure::{Failure, Fate};
use crate::batch::kept::KeptRun;
use crate::batch::outbox::Outbox;
use crate::batch::program::{Op, Program, Step};
use crate::messages::message;
use crate::session::state::SessionState;
use thawdb_tsql::ast::{Stmt, StmtKind};
use thawdb_types::{Scalar, SqlType};

/// Scopes within scopes: SQL Server's limit.
pub(crate) const NESTING_MAX: usize = 32;

/// A scope at work.
pub(crate) struct Interpreter<'a, 's> {
    pub(crate) session: &'a mut SessionState,
    pub(crate) out: &'a mut Outbox<'s>,
    /// The text the statements were parsed from.
    pub(crate) text: &'a str,
    /// What earlier runs of the text have led to, if that is kept.
    pub(crate) kept: Option<&'a KeptRun>,
    /// Where the program is.
    pub(crate) at: usize,
    /// Whether a TRY around the present step, here or in a caller, would catch an error.
    pub(crate) guarded: bool,
}

enum Next {
    On,
    To(usize),
    Return(Option<i32>),
}

impl Interpreter<'_, '_> {
    /// Runs a program to its end; the status of a RETURN comes back.
    pub(crate) fn run(&mut self, program: &Program<'_>) -> Result<Option<i32>, Failure> {
        self.at = 0;
        while let Some(step) = program.steps.get(self.at) {
            self.forget_left_catches(program);
            self.guarded = program.handler(self.at).is_some() || self.session.frame().guarded;
            match self.step(step) {
                Ok(Next::On) => self.at += 1,
                Ok(Next::To(target)) => self.at = target,
                Ok(Next::Return(status)) => return Ok(status),
                Err(failure) => self.at = self.recover(program, step, failure)?,
            }
        }
        Ok(None)
    }

    /// A CATCH block left by GOTO no longer has an error.
    fn forget_left_catches(&mut self, program: &Program<'_>) {
        let at = self.at;
        let caught = &mut self.session.frame_mut().caught;
        if !caught.is_empty() {
            caught.retain(|(block, _)| program.catches(at).any(|around| around == *block));
        }
    }

    fn step(&mut self, step: &Step<'_>) -> Result<Next, Failure> {
        match step.op {
            Op::Statement(statement) => match self.kept_exprs() {
                Some(exprs) => self.run_kept(statement, exprs),
                None => self.statement(statement),
            }
            .map(|()| Next::On),
            Op::Branch { condition, otherwise } => {
                let holds = self.condition(condition)?;
                self.session.row_count = 0;
                self.session.last_error = 0;
                Ok(if holds { Next::On } else { Next::To(otherwise) })
            }
            Op::Jump(target) => {
                // A loop without statements must still end when it is cancelled.
                self.session.check()?;
                Ok(Next::To(target))
            }
            Op::LeaveCatch(block) => {
                self.session.frame_mut().caught.retain(|(caught, _)| *caught != block);
                Ok(Next::On)
            }
            Op::Return(None) => Ok(Next::Return(None)),
            Op::Return(Some(value)) => {
                if let Some(returns) = self.session.frame().returns {
                    let value = self.assignment(value, returns)?;
                    self.session.frame_mut().returned = Some(value);
                    return Ok(Next::Return(None));
                }
                let status = self.assignment(value, SqlType::Int)?;
                let status = if let Scalar::Int(status) = status { status } else { 0 };
                Ok(Next::Return(Some(status)))
            }
        }
    }

    /// Runs one statement, with everything that surrounds each.
    fn statement(&mut self, statement: &Stmt) -> Result<(), Failure> {
        self.session.check()?;
        if self.session.options.no_exec && !matches!(statement.kind, StmtKind::SetOption(_)) {
            return Ok(());
        }
        self.session.ticket.facts.lock().command = command_of(&statement.kind);
        let outcome = self.dispatch(statement);
        let line = statement.span.line;
        self.session.infos.iter_mut().filter(|info| info.line == 0 && info.severity > 10).for_each(|info| info.line = line);
        self.send_infos();
        outcome
    }

    /// Sends what the statement had to say.
    pub(crate) fn send_infos(&mut self) {
        for info in std::mem::take(&mut self.session.infos) {
            self.out.message(&info);
        }
    }

    /// Runs `work` as one statement: all of it is kept or none.
    pub(crate) fn transactional<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R, Failure>) -> Result<R, Failure> {
        let mark = self.session.begin_statement();
        let outcome = work(self).and_then(|result| self.session.end_statement().map(|()| result).map_err(Failure::run));
        outcome.inspect_err(|failure| {
            if failure.fate != Fate::Connection && !failure.told {
                // What cannot be undone now is undone with the transaction, which this makes the only way on.
                if self.session.undo_statement(&mark).is_err() {
                    self.session.transactions.doomed = self.session.transactions.count > 0;
                }
            }
        })
    }

    /// Runs `work` inside a transaction, as SQL Server runs triggers and INSERT ... EXEC: where none is open the statement's
    /// own counts as one (`@@TRANCOUNT` is 1 inside) and ends with the statement around it.
    pub(crate) fn within_transaction<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R, Failure>) -> Result<R, Failure> {
        if self.session.transactions.count > 0 {
            return work(self);
        }
        let (descriptor, temp) = (SessionState::new_descriptor(), self.session.temp.clone());
        self.session.transactions.begin(None, descriptor, &temp);
        let outcome = work(self);
        if self.session.transactions.doomed {
            // Nothing of it can be kept; a statement that came here without an error still has to fail.
            let failed = outcome.err().unwrap_or_else(|| message(3930, &[]).into());
            self.session.rollback_work()?;
            return Err(failed);
        }
        if self.session.transactions.count > 0 {
            self.session.transactions.end_of_statement_transaction();
        }
        outcome
    }

    /// Decides where the program goes on after a failure, or that it does not.
    fn recover(&mut self, program: &Program<'_>, step: &Step<'_>, mut failure: Failure) -> Result<usize, Failure> {
        if failure.told {
            return Err(failure);
        }
        if failure.error.line == 0 {
            failure.error.line = step.line;
        }
        if failure.error.procedure.is_none() {
            failure.error.procedure.clone_from(&self.session.frame().procedure);
        }
        self.session.last_error = failure.error.number;
        self.session.row_count = 0;
        self.note_transaction_fate(&failure);
        if let Some((handler, catch)) = program.handler(self.at).filter(|_| failure.can_be_caught(true)) {
            self.end_open_result(step);
            self.session.frame_mut().caught.push((catch, failure.error));
            return Ok(handler);
        }
        if self.session.frame().guarded && failure.can_be_caught(false) {
            self.end_open_result(step);
            return Err(failure);
        }
        self.tell(step, &failure);
        let frame = self.session.frame_mut();
        frame.worst_severity = frame.worst_severity.max(failure.error.severity);
        let next = self.go_on_after(step, &mut failure);
        if !failure.is_cancelled() {
            self.out.done(completion_of(step), None, true);
        }
        next.ok_or(failure)
    }

    /// A result set that a CATCH block cut short ends without rows to come, as SQL Server ends it.
    fn end_open_result(&mut self, step: &Step<'_>) {
        if self.out.has_open_result() {
            let count = self.shown_count(0);
            self.out.done(completion_of(step), count, false);
        }
    }

    /// Dooms the transaction, or ends it, as the error demands.
    fn note_transaction_fate(&mut self, failure: &Failure) {
        if self.session.transactions.count == 0 {
            return;
        }
        let abort = self.session.options.xact_abort && !failure.raised && !failure.is_cancelled();
        if abort || failure.fate == (Fate::Batch { rollback: true }) {
            self.session.transactions.doomed = true;
        }
    }

    fn tell(&mut self, step: &Step<'_>, failure: &Failure) {
        if failure.is_cancelled() {
            return;
        }
        self.out.message(&failure.error);
        let changes = matches!(step.op, Op::Statement(statement) if changes_rows(&statement.kind));
        let began = !matches!(failure.error.number, 229 | 230);
        if changes && began && failure.fate == Fate::Statement && !self.session.options.xact_abort {
            self.out.message(&message(3621, &[]).at_line(failure.error.line));
        }
    }

    /// The step to go on with; `None` if this scope ends.
    fn go_on_after(&mut self, step: &Step<'_>, failure: &mut Failure) -> Option<usize> {
        let abort = self.session.options.xact_abort && !failure.raised;
        failure.told = true;
        match failure.fate {
            Fate::Statement if !abort => Some(match step.op {
                Op::Branch { otherwise, .. } => otherwise,
                _ => self.at + 1,
            }),
            Fate::Scope if !abort => None,
            Fate::Batch { rollback: false } if !abort => None,
            Fate::Connection => {
                self.rollback_all();
                self.session.ended = true;
                None
            }
            _ => {
                self.rollback_all();
                failure.fate = Fate::Batch { rollback: true };
                None
            }
        }
    }

    /// Takes the whole transaction back and tells the client of its end.
    pub(crate) fn rollback_all(&mut self) {
        let (count, descriptor) = (self.session.transactions.count, self.session.transactions.descriptor);
        if let Err(error) = self.session.rollback_work() {
            self.out.message(&error);
        }
        if count > 0 {
            self.session.cursors.batch_aborted();
            self.out.env_change(&EnvChange::RollbackTransaction { descriptor });
        }
    }
}

/// Which completion a step has.
fn completion_of(step: &Step<'_>) -> StatementKind {
    match step.op {
        Op::Statement(statement) => kind_of(&statement.kind),
        _ => StatementKind::Other,
    }
}

/// Which completion a statement has.
pub(crate) fn kind_of(kind: &StmtKind) -> StatementKind {
    match kind {
        StmtKind::Select(_) => StatementKind::Select,
        StmtKind::Insert(_) => StatementKind::Insert,
        StmtKind::Update(_) => StatementKind::Update,
        StmtKind::Delete(_) => StatementKind::Delete,
        StmtKind::Merge(_) => StatementKind::Merge,
        StmtKind::BulkInsert(_) | StmtKind::InsertBulk(_) => StatementKind::BulkInsert,
        StmtKind::TruncateTable(_) => StatementKind::Truncate,
        StmtKind::CreateTable(_) => StatementKind::CreateTable,
        StmtKind::CreateIndex(_) => StatementKind::CreateIndex,
        StmtKind::DropIndex(_) => StatementKind::DropIndex,
        StmtKind::CreateDatabase(_) => StatementKind::CreateDatabase,
        StmtKind::Drop(_) => StatementKind::DropTable,
        StmtKind::BeginTransaction(_) => StatementKind::BeginTransaction,
        StmtKind::CommitTransaction(_) => StatementKind::CommitTransaction,
        StmtKind::RollbackTransaction(_) => StatementKind::RollbackTransaction,
        StmtKind::Execute(_) | StmtKind::ExecuteString(_) | StmtKind::OdbcCall(_) => StatementKind::Execute,
        StmtKind::Use(_) => StatementKind::Use,
        StmtKind::SetOption(_) => StatementKind::Set,
        _ => StatementKind::Other,
    }
}

/// What sys.dm_exec_requests.command says while a statement runs.
fn command_of(kind: &StmtKind) -> &'static str {
    match kind {
        StmtKind::Select(_) => "SELECT",
        StmtKind::Insert(_) => "INSERT",
        StmtKind::Update(_) => "UPDATE",
        StmtKind::Delete(_) => "DELETE",
        StmtKind::Merge(_) => "MERGE",
        StmtKind::BulkInsert(_) | StmtKind::InsertBulk(_) => "BULK INSERT",
        StmtKind::TruncateTable(_) => "TRUNCATE TABLE",
        StmtKind::CreateTable(_) => "CREATE TABLE",
        StmtKind::CreateIndex(_) => "CREATE INDEX",
        StmtKind::CreateDatabase(_) => "CREATE DATABASE",
        StmtKind::Drop(_) => "DROP TABLE",
        StmtKind::Dbcc(_) => "DBCC",
        StmtKind::WaitFor(_) => "WAITFOR",
        StmtKind::CommitTransaction(_) => "COMMIT TRANSACTION",
        StmtKind::RollbackTransaction(_) => "ROLLBACK TRANSACTION",
        StmtKind::SetOption(_) => "SET OPTION ON",
        StmtKind::Use(_) => "USE",
        _ => "EXECUTE",
    }
}

/// Whether 3621 follows an error of the statement.
fn changes_rows(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Insert(_) | StmtKind::Update(_) | StmtKind::Delete(_) | StmtKind::Merge(_) | StmtKind::BulkInsert(_))
}
