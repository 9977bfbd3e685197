//! What every join does once it knows which rows might match: residual predicate, outer rows, semi and anti joins.
//!
//! A join hands in a run of left rows with *all* their candidate pairs, so the result of each left row is final and
//! left order is kept for every kind of join. Unmatched right rows (RIGHT and FULL OUTER) come at the very end.

use crate::eval::select;
use crate::exec::batch::Rows;
use crate::exec::{Batch, Cx};
use crate::expr::Expr;
use crate::phys::{JoinKind, OutputColumn};
use arrow_array::{ArrayRef, UInt32Array, new_null_array};
use std::ops::Range;
use thawdb_types::SqlError;

/// Candidate pairs a join collects before it has them judged; a left row's pairs are never split.
pub(super) const PAIRS_AIM: usize = 4096;

pub(super) struct Pairs<'p> {
    pub(super) kind: JoinKind,
    residual: Option<&'p Expr>,
    left: &'p [OutputColumn],
    right: &'p [OutputColumn],
    right_matched: Vec<bool>,
    /// What [`Self::unmatched_before`] left of it: the first rows of the next right side.
    carried: Vec<bool>,
}

/// The rows a join has found: positions in the left and in the right batch.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
}

impl<'p> Pairs<'p> {
    pub(super) fn new(kind: JoinKind, residual: Option<&'p Expr>, left: &'p [OutputColumn], right: &'p [OutputColumn]) -> Self {
        Self { kind, residual, left, right, right_matched: Vec::new(), carried: Vec::new() }
    }

    /// Starts anew with this many right rows (0 where unmatched right rows are not asked for).
    pub(super) fn reset(&mut self, right_rows: usize) {
        self.right_matched = std::mem::take(&mut self.carried);
        if matches!(self.kind, JoinKind::RightOuter | JoinKind::FullOuter) {
            self.right_matched.resize(right_rows, false);
        }
    }

    /// Forgets what [`Self::unmatched_before`] left.
    pub(super) fn carry_clear(&mut self) {
        self.carried.clear();
    }

    /// As [`Self::unmatched_right`] for the rows before `end`; the others will be the first of the next right side.
    pub(super) fn unmatched_before(&mut self, right: &Batch, end: usize) -> Option<Batch> {
        self.carried = if self.right_matched.is_empty() { Vec::new() } else { self.right_matched.split_off(end) };
        self.unmatched_right(&right.slice(0, end))
    }

    /// The result for the left rows `rows`, whose candidates, in left order, are all in `found`.
    pub(super) fn judge(
        &mut self,
        (left, rows): (&Batch, Range<usize>),
        right: &Batch,
        found: Candidates,
        cx: &mut Cx<'p, '_>,
    ) -> Result<Batch, SqlError> {
        let Candidates { left: mut left_at, right: mut right_at } = found;
        if let Some(residual) = self.residual.filter(|_| !left_at.is_empty()) {
            let joined = left.take(&UInt32Array::from(left_at.clone())).beside(&right.take(&UInt32Array::from(right_at.clone())));
            let keep = select(residual, &joined, cx)?;
            let both_kept = matches!(self.kind, JoinKind::Inner);
            if both_kept {
                return Ok(joined.filter(&keep));
            }
            left_at = keep.set_indices().map(|i| left_at[i]).collect();
            right_at = keep.set_indices().map(|i| right_at[i]).collect();
        }
        if !self.right_matched.is_empty() {
            right_at.iter().for_each(|&at| self.right_matched[at as usize] = true);
        }
        Ok(match self.kind {
            JoinKind::Inner | JoinKind::RightOuter => {
                left.take(&UInt32Array::from(left_at)).beside(&right.take(&UInt32Array::from(right_at)))
            }
            JoinKind::LeftOuter | JoinKind::FullOuter => with_unmatched_left(left, rows, right, &left_at, &right_at),
            JoinKind::LeftSemi | JoinKind::LeftAnti => left.take(&chosen_left(rows, &left_at, self.kind == JoinKind::LeftSemi)),
        })
    }

    /// Right rows without a match, beside NULLs; `None` if the join wants none or there are none.
    pub(super) fn unmatched_right(&mut self, right: &Batch) -> Option<Batch> {
        let indices: UInt32Array =
            self.right_matched.iter().enumerate().filter(|(_, matched)| !**matched).map(|(at, _)| at as u32).collect::<Vec<_>>().into();
        self.right_matched.clear();
        let row_count = arrow_array::Array::len(&indices);
        if row_count == 0 {
            return None;
        }
        Some(Batch::new(null_columns(self.left, row_count), row_count).beside(&right.take(&indices)))
    }

    pub(super) fn left_columns(&self) -> &'p [OutputColumn] {
        self.left
    }

    pub(super) fn right_columns(&self) -> &'p [OutputColumn] {
        self.right
    }
}

fn null_columns(columns: &[OutputColumn], row_count: usize) -> Vec<ArrayRef> {
    columns.iter().map(|c| new_null_array(&c.sql_type.arrow_type(), row_count)).collect()
}

fn with_unmatched_left(left: &Batch, rows: Range<usize>, right: &Batch, left_at: &[u32], right_at: &[u32]) -> Batch {
    let mut all_left = Vec::with_capacity(left_at.len() + rows.len());
    let mut all_right = Vec::with_capacity(left_at.len() + rows.len());
    let mut at = 0;
    for row in rows {
        let first = at;
        while at < left_at.len() && left_at[at] as usize == row {
            all_left.push(left_at[at]);
            all_right.push(Some(right_at[at]));
            at += 1;
        }
        if at == first {
            all_left.push(row as u32);
            all_right.push(None);
        }
    }
    left.take(&UInt32Array::from(all_left)).beside(&right.take(&UInt32Array::from(all_right)))
}

/// Rows of `rows` that occur in `matched` (`wanted`) or do not.
fn chosen_left(rows: Range<usize>, matched: &[u32], wanted: bool) -> UInt32Array {
    let mut at = 0;
    let mut chosen = Vec::new();
    for row in rows {
        let first = at;
        while at < matched.len() && matched[at] as usize == row {
            at += 1;
        }
        if (at > first) == wanted {
            chosen.push(row as u32);
        }
    }
    chosen.into()
}
