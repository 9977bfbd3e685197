//! Steps that only compute: IF, WHILE, SET @v and DECLARE @v over expressions bound by an earlier run.
//!
//! ```text
//! step ─► kept expressions? ─ yes ─► value ─► branch, variable        no statement begun, nothing locked or allocated
//!                            └ no ──► bind, run as a statement, keep what may be kept
//! ```
//! Invariants: 1. an expression that is kept runs no plan (`KeptExpr::of`), so that there is nothing to take back when it
//! fails. 2. Within a trigger nothing is kept: UPDATE() is bound to what the firing statement changed.
//!
//! `sys.dm_exec_requests.command` goes on showing the statement before such a step.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::kept::KeptExpr;
use thawdb_query::exec::eval_scalar;
use thawdb_query::expr::Expr as BoundExpr;
use thawdb_tsql::ast::{Stmt, StmtKind};
use thawdb_types::Scalar;

impl<'a> Interpreter<'a, '_> {
    /// The expressions of the present step that an earlier run bound in this situation.
    #[inline]
    pub(crate) fn kept_exprs(&self) -> Option<&'a [KeptExpr]> {
        let kept = self.kept?;
        let exprs = kept.exprs(self.at)?;
        (kept.is_of(self.session) && !self.session.frame().is_trigger).then_some(exprs)
    }

    /// Keeps the expressions of the present step with the variables that take their values.
    pub(crate) fn keep_exprs(&self, exprs: impl IntoIterator<Item = (usize, BoundExpr)>) {
        if let Some(kept) = self.kept.filter(|kept| kept.is_of(self.session) && !self.session.frame().is_trigger) {
            kept.keep_exprs(self.at, exprs.into_iter().map(|(target, expr)| KeptExpr::of(expr, target)).collect());
        }
    }

    /// The value of a kept expression.
    #[inline]
    pub(crate) fn kept_value(&mut self, kept: &KeptExpr) -> Result<Scalar, Failure> {
        if kept.calls_function && self.session.in_function == 0 {
            self.session.note_moment();
        }
        Ok(eval_scalar(&kept.expr, self.session)?)
    }

    /// Runs a statement all of whose expressions are kept.
    pub(crate) fn run_kept(&mut self, statement: &Stmt, exprs: &[KeptExpr]) -> Result<(), Failure> {
        self.session.check()?;
        if self.session.options.no_exec {
            return Ok(());
        }
        for kept in exprs {
            let value = self.kept_value(kept)?;
            self.session.frame_mut().variables[kept.target].value = value;
        }
        if matches!(statement.kind, StmtKind::SetVariable(_)) {
            self.session.row_count = 1;
            self.session.last_error = 0;
        }
        if !self.session.infos.is_empty() {
            self.send_infos();
        }
        Ok(())
    }
}
