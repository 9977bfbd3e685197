//! Join by any predicate: each left row against every right row, which are kept in memory (701 beyond the grant).
//!
//! ```text
//! no left row         ─► the right side is not read, unless its unmatched rows are wanted
//! first left row      ─► inner join: beside each right batch as it comes, so that a TOP above may end both
//! the others          ─► against the right rows kept
//! semi, anti join     without a predicate one right row decides, and no more is read
//! ```

use crate::exec::batch::Rows;
use crate::exec::pairs::{Candidates, PAIRS_AIM, Pairs};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::{JoinKind, Node, OutputColumn};
use thawdb_types::SqlError;

pub(super) struct NestedLoopJoin<'p> {
    left: BoxOperator<'p>,
    right: BoxOperator<'p>,
    pairs: Pairs<'p>,
    /// One right row decides.
    first_decides: bool,
    kept: Batch,
    phase: Phase,
}

enum Phase {
    Start,
    /// The first row of a left batch meets the right rows as they come; those that came.
    FirstRow(Batch, Vec<Batch>, usize),
    /// A left batch and its first row that has not been joined.
    Rows(Batch, usize),
    NextBatch,
    Ended,
}

impl<'p> NestedLoopJoin<'p> {
    pub(super) fn new(left: &'p Node, right: &'p Node, kind: JoinKind, predicate: Option<&'p Expr>) -> Self {
        let pairs = Pairs::new(kind, predicate, &left.columns, &right.columns);
        let first_decides = predicate.is_none() && matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti);
        let mut right = build(right);
        if first_decides {
            right.row_goal(1);
        }
        Self { left: build(left), right, pairs, first_decides, kept: Batch::default(), phase: Phase::Ended }
    }

    /// Reads the right side as soon as there is somebody to join it with.
    fn start(&mut self, cx: &mut Cx<'p, '_>) -> Result<Phase, SqlError> {
        let first = self.left.next(cx)?;
        let wants_unmatched = matches!(self.pairs.kind, JoinKind::RightOuter | JoinKind::FullOuter);
        if first.is_none() && !wants_unmatched {
            return Ok(Phase::Ended);
        }
        self.right.open(cx)?;
        if let (Some(batch), JoinKind::Inner) = (&first, self.pairs.kind) {
            return Ok(Phase::FirstRow(batch.clone(), Vec::new(), 0));
        }
        self.kept = match self.first_decides {
            true => self.right.next(cx)?.map(|batch| batch.slice(0, 1)).unwrap_or_else(|| empty(self.pairs.right_columns())),
            false => collect(&mut self.right, self.pairs.right_columns(), cx)?,
        };
        self.pairs.reset(self.kept.rows);
        Ok(first.map_or(Phase::NextBatch, |batch| Phase::Rows(batch, 0)))
    }

    /// The first left row beside the next right rows; `None` once they are all kept.
    fn first_row(
        &mut self,
        left: &Batch,
        parts: &mut Vec<Batch>,
        bytes: &mut usize,
        cx: &mut Cx<'p, '_>,
    ) -> Result<Option<Batch>, SqlError> {
        let Some(part) = self.right.next(cx)? else {
            self.kept = if parts.is_empty() { empty(self.pairs.right_columns()) } else { Batch::concat(parts) };
            return Ok(None);
        };
        *bytes += part.memory_bytes();
        cx.check_memory(*bytes)?;
        let found = Candidates { left: vec![0; part.rows], right: (0..part.rows as u32).collect() };
        let joined = self.pairs.judge((left, 0..1), &part, found, cx)?;
        parts.push(part);
        Ok(Some(joined))
    }

    /// Left rows from `from` on against all right rows; how far it came.
    fn rows(&mut self, left: &Batch, from: usize, cx: &mut Cx<'p, '_>) -> Result<(Batch, usize), SqlError> {
        let right_rows = self.kept.rows as u32;
        let to = left.rows.min(from + (PAIRS_AIM / self.kept.rows.max(1)).max(1));
        let mut found = Candidates::default();
        for row in from..to {
            found.left.extend(std::iter::repeat_n(row as u32, right_rows as usize));
            found.right.extend(0..right_rows);
        }
        Ok((self.pairs.judge((left, from..to), &self.kept, found, cx)?, to))
    }
}

fn empty(columns: &[OutputColumn]) -> Batch {
    Batch::empty(columns.iter().map(|c| &c.sql_type))
}

/// All rows of an operator in one batch, within the grant.
pub(super) fn collect<'p>(operator: &mut BoxOperator<'p>, columns: &'p [OutputColumn], cx: &mut Cx<'p, '_>) -> Result<Batch, SqlError> {
    let (mut batches, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = operator.next(cx)? {
        bytes += batch.memory_bytes();
        cx.check_memory(bytes)?;
        batches.push(batch);
    }
    Ok(if batches.is_empty() { empty(columns) } else { Batch::concat(&batches) })
}

impl<'p> Operator<'p> for NestedLoopJoin<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.kept = Batch::default();
        self.pairs.reset(0);
        self.phase = Phase::Start;
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        loop {
            cx.host.check_cancelled()?;
            let joined = match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Ended => return Ok(None),
                Phase::Start => {
                    self.phase = self.start(cx)?;
                    continue;
                }
                Phase::FirstRow(left, mut parts, mut bytes) => match self.first_row(&left, &mut parts, &mut bytes, cx)? {
                    Some(joined) => {
                        self.phase = Phase::FirstRow(left, parts, bytes);
                        joined
                    }
                    None => {
                        self.phase = if self.kept.rows == 0 { Phase::Ended } else { Phase::Rows(left, 1) };
                        continue;
                    }
                },
                Phase::Rows(left, from) if from < left.rows => {
                    let (joined, to) = self.rows(&left, from, cx)?;
                    self.phase = Phase::Rows(left, to);
                    joined
                }
                Phase::Rows(..) | Phase::NextBatch => match self.left.next(cx)? {
                    Some(batch) => {
                        self.phase = Phase::Rows(batch, 0);
                        continue;
                    }
                    None => return Ok(self.pairs.unmatched_right(&self.kept)),
                },
            };
            if joined.rows > 0 {
                return Ok(Some(joined));
            }
        }
    }

    fn row_goal(&mut self, rows: u64) {
        self.left.row_goal(rows);
    }
}
