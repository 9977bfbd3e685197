//! Recursive common table expressions: rounds over the rows of the round before.
//!
//! ```text
//! anchor ─► rows ─┬─► out
//!                 └─► work table ─► recursive member ─► rows ─┬─► out
//!                            ▲                                └─► work table of the next round
//!                            └──────────── until a round has no rows
//! ```
//! Invariants: 1. a [`WorkTableScan`] sees exactly the rows of the round before, however often it is opened. 2. Rounds are
//! counted: past `depth_max` it is 530, so a cycle ends. Memory: the rows of one round are kept, no more. The scan finds its
//! rows through [`Cx`], by number, so that recursions may stand inside each other.

use crate::exec::{Batch, BoxOperator, Cx, Operator, Rows, build};
use crate::phys::Node;
use std::sync::Arc;
use thawdb_types::SqlError;
use thawdb_types::error::message;

/// What is running.
enum Phase {
    Anchor,
    Round(u32),
    Ended,
}

pub(super) struct Recursive<'p> {
    anchor: BoxOperator<'p>,
    member: BoxOperator<'p>,
    work_table: u32,
    depth_max: u32,
    phase: Phase,
    /// Rows of the present round, the next one's input.
    collected: Vec<Batch>,
    kept_bytes: usize,
}

impl<'p> Recursive<'p> {
    pub(super) fn new(anchor: &'p Node, member: &'p Node, work_table: u32, depth_max: u32) -> Self {
        let (anchor, member) = (build(anchor), build(member));
        Self { anchor, member, work_table, depth_max, phase: Phase::Ended, collected: Vec::new(), kept_bytes: 0 }
    }

    fn keep(&mut self, batch: &Batch, cx: &Cx<'p, '_>) -> Result<(), SqlError> {
        self.kept_bytes += batch.memory_bytes();
        cx.check_memory(self.kept_bytes)?;
        self.collected.push(batch.clone());
        Ok(())
    }

    /// Hands the round's rows to the next one; false if there were none.
    fn next_round(&mut self, depth: u32, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        cx.host.check_cancelled()?;
        let rows = std::mem::take(&mut self.collected);
        self.kept_bytes = 0;
        if rows.is_empty() {
            cx.state.set_work_table(self.work_table, Arc::new(Vec::new()));
            return Ok(false);
        }
        if self.depth_max != 0 && depth > self.depth_max {
            return Err(message(530, &[&self.depth_max]));
        }
        cx.state.set_work_table(self.work_table, Arc::new(rows));
        self.member.open(cx)?;
        Ok(true)
    }
}

impl<'p> Operator<'p> for Recursive<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.phase = Phase::Anchor;
        self.collected.clear();
        self.kept_bytes = 0;
        self.anchor.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        loop {
            let (batch, depth) = match self.phase {
                Phase::Anchor => (self.anchor.next(cx)?, 0),
                Phase::Round(depth) => (self.member.next(cx)?, depth),
                Phase::Ended => return Ok(None),
            };
            if let Some(batch) = batch {
                self.keep(&batch, cx)?;
                return Ok(Some(batch));
            }
            self.phase = if self.next_round(depth + 1, cx)? { Phase::Round(depth + 1) } else { Phase::Ended };
        }
    }
}

/// Reads the rows of the round before.
pub(super) struct WorkTableScan {
    work_table: u32,
    rows: Arc<Vec<Batch>>,
    at: usize,
}

impl WorkTableScan {
    pub(super) fn new(work_table: u32) -> Self {
        Self { work_table, rows: Arc::default(), at: 0 }
    }
}

impl<'p> Operator<'p> for WorkTableScan {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.rows = cx.state.work_table(self.work_table);
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, _cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        self.at += 1;
        Ok(self.rows.get(self.at - 1).cloned())
    }
}
