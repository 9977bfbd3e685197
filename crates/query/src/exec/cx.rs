//! What a running plan carries from call to call: the host, the rows of enclosing queries, and subqueries kept open.
//!
//! ```text
//! Outer { level: 1 } ─► last entry of `outer`      pushed by Apply and by subqueries around each pull of their inner
//! Outer { level: 2 } ─► the entry before it        plan, popped again before the pull returns
//! ```
//! Invariant: a pull leaves the stack of outer rows as deep as it found it (`Cx::with_outer` is the only way to push).

use crate::context::StatementHost;

use crate::exec::hash_join::Built;
use crate::exec::parts::WorkerScan;
use crate::exec::{Operator, correlation};
use crate::phys::Node;
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_storage::memory::{Clerk, Grant};
use thawdb_types::error::message;
use thawdb_types::{Batch, Scalar, SqlError, SqlType, scalar_at};

/// Memory is taken from the instance's account in such steps; what is less is not worth a look at it.
const GRANT_STEP_BYTES: usize = 1 << 20;

/// A row of an enclosing query: columns of its batch and the position.
#[derive(Clone)]
pub struct OuterRow {
    /// The batch's columns.
    pub columns: Arc<[ArrayRef]>,
    /// Position in the batch.
    pub row: usize,
}

/// A subquery of an expression, built once and opened again for each row.
pub struct Subquery<'p> {
    plan: &'p Node,
    /// Taken out while it runs, so that it may meet itself in recursion without harm.
    pub operator: Option<Box<dyn Operator<'p> + 'p>>,
    /// Whether it looks at rows outside itself.
    pub correlated: bool,
    /// First column of all rows of a subquery that looks at nothing outside, once it has run.
    pub rows: Option<Arc<Vec<Scalar>>>,
}

/// State of one execution that outlives a call.
#[derive(Default)]
pub struct CxState<'p> {
    outer: Vec<OuterRow>,
    subqueries: Vec<Subquery<'p>>,
    /// Rows of the round before of each recursion, by its number.
    work_tables: Vec<(u32, Arc<Vec<Batch>>)>,
    /// An aggregate has passed over a NULL: warning 8153 at the end.
    pub null_eliminated: bool,
    /// An index with IGNORE_DUP_KEY has passed over a row: warning 3604 at the end.
    pub duplicate_ignored: bool,
    /// Rows changed, assigned or returned.
    pub rows_affected: u64,
    /// Bytes of memory that operators hold now, as they account for it, and the most there was at once.
    memory_bytes: usize,
    memory_bytes_peak: usize,
    /// What of it is taken from the instance's account, in steps; given back when the execution ends, however it does.
    grant: Option<Grant>,
    /// What has been read of each table, if somebody wants to know.
    pub reads: Option<Box<crate::exec::counted::ReadAccount>>,
    /// Bytes written to files for want of memory.
    pub spilled_bytes: u64,
    /// What the scan reads in place of what its plan says, where several threads divide it.
    pub(super) worker_scan: Option<WorkerScan>,
    /// Right sides of hash joins that were read beforehand, by the join's identity: threads share them.
    pub(super) built: Vec<(usize, Arc<Built>)>,
    /// Threads that have done parts of the work.
    pub workers: usize,
}

impl CxState<'_> {
    /// The most bytes of memory that operators held at once.
    pub fn memory_bytes_peak(&self) -> usize {
        self.memory_bytes_peak
    }

    /// Operators of other threads have held so many bytes beside those of this one.
    pub(super) fn note_peak_beside(&mut self, bytes: usize) {
        self.memory_bytes_peak = self.memory_bytes_peak.max(self.memory_bytes + bytes);
    }

    /// The right side of a join, if it was read beforehand.
    pub(super) fn built(&self, identity: usize) -> Option<Arc<Built>> {
        self.built.iter().find(|(of, _)| *of == identity).map(|(_, built)| built.clone())
    }

    /// Rows of the round before of recursion `number`.
    pub fn work_table(&self, number: u32) -> Arc<Vec<Batch>> {
        self.work_tables.iter().find(|(n, _)| *n == number).map(|(_, rows)| rows.clone()).unwrap_or_default()
    }

    /// Sets them.
    pub fn set_work_table(&mut self, number: u32, rows: Arc<Vec<Batch>>) {
        match self.work_tables.iter_mut().find(|(n, _)| *n == number) {
            Some((_, old)) => *old = rows,
            None => self.work_tables.push((number, rows)),
        }
    }
}

/// One call's context.
pub struct Cx<'p, 'h> {
    /// The session's side.
    pub host: &'h mut dyn StatementHost,
    /// The execution's side.
    pub state: &'h mut CxState<'p>,
}

impl<'p> Cx<'p, '_> {
    /// Runs `body` with `row` as the nearest enclosing row.
    pub fn with_outer<R>(&mut self, row: OuterRow, body: impl FnOnce(&mut Self) -> R) -> R {
        self.state.outer.push(row);
        let result = body(self);
        self.state.outer.pop();
        result
    }

    /// Value of a column of an enclosing row.
    pub fn outer(&self, level: usize, column: usize, sql_type: &SqlType) -> Scalar {
        let depth = self.state.outer.len();
        let row = &self.state.outer[depth.checked_sub(level).expect("a plan refers to enclosing rows only under their Apply")];
        scalar_at(row.columns[column].as_ref(), row.row, sql_type)
    }

    /// The kept state of a subquery, by its plan.
    pub fn subquery(&mut self, plan: &'p Node) -> usize {
        if let Some(found) = self.state.subqueries.iter().position(|s| std::ptr::eq(s.plan, plan)) {
            return found;
        }
        let correlated = correlation::refers_outside(plan);
        self.state.subqueries.push(Subquery { plan, operator: None, correlated, rows: None });
        self.state.subqueries.len() - 1
    }

    /// The kept state at a position that [`Self::subquery`] gave.
    pub fn subquery_at(&mut self, index: usize) -> &mut Subquery<'p> {
        &mut self.state.subqueries[index]
    }

    /// Accounts for an operator's memory, of which the account had `held` before: now it is `bytes`. Whether there is still
    /// room for more. A table may double from one call to the next: from three eighths that is three quarters of the grant,
    /// and the last quarter is for setting rows aside.
    pub fn hold(&mut self, held: &mut usize, bytes: usize) -> bool {
        let state = &mut *self.state;
        state.memory_bytes = state.memory_bytes - *held + bytes;
        *held = bytes;
        state.memory_bytes_peak = state.memory_bytes_peak.max(state.memory_bytes);
        let is_within = state.memory_bytes <= self.host.memory_grant_bytes() / 8 * 3;
        self.take_from_account() && is_within
    }

    /// Has the instance's account hold what operators hold; false if that is more than it can give.
    fn take_from_account(&mut self) -> bool {
        let bytes = (self.state.memory_bytes / GRANT_STEP_BYTES * GRANT_STEP_BYTES) as u64;
        if self.state.grant.is_none() && bytes > 0 {
            self.state.grant = self.host.memory_account().map(|account| Grant::new(account, Clerk::Query));
        }
        let Some(grant) = &mut self.state.grant else { return true };
        let given = bytes == grant.bytes() || grant.try_resize(bytes);
        if !given {
            // It is held already: the account must know.
            grant.resize(bytes);
        }
        given
    }

    /// As [`Self::hold`] for what cannot be spilled: fails beyond the whole grant, and where the instance has given out more
    /// than it has.
    pub fn hold_or_fail(&mut self, held: &mut usize, bytes: usize) -> Result<(), SqlError> {
        let given = self.hold(held, bytes);
        let is_beyond = self.state.memory_bytes > self.host.memory_grant_bytes();
        let is_overdrawn = !given && self.host.memory_account().is_some_and(|account| account.is_overdrawn());
        if is_beyond || is_overdrawn { Err(message(701, &[&"default"])) } else { Ok(()) }
    }

    /// Fails if `bytes` of working memory are more than the statement was granted and cannot be spilled.
    pub fn check_memory(&self, bytes: usize) -> Result<(), SqlError> {
        if bytes > self.host.memory_grant_bytes() { Err(message(701, &[&"default"])) } else { Ok(()) }
    }
}

/// The columns of a batch in the form [`OuterRow`] shares.
pub fn shared_columns(batch: &Batch) -> Arc<[ArrayRef]> {
    batch.columns.iter().cloned().collect()
}
