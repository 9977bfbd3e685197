//! TOP with ORDER BY: the first rows of the order, without keeping many more.
//!
//! Rows are cut back to the limit whenever they exceed it several times over, so memory follows the limit, not the
//! input. WITH TIES and PERCENT need to see more: they keep everything, within the grant (701).

use crate::exec::batch::BATCH_ROWS;
use crate::exec::limit::{percentage, row_count, share_of};
use crate::exec::sort_buffer::SortBuffer;
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::{Node, SortKey};
use thawdb_types::SqlError;

/// Rows beyond the limit that may gather before they are cut back: sorting them is then spread over many rows.
const SLACK_ROWS: usize = 4 * BATCH_ROWS;

pub(super) struct TopN<'p> {
    input: BoxOperator<'p>,
    buffer: SortBuffer<'p>,
    limit: &'p Expr,
    percent: bool,
    with_ties: bool,
    at: usize,
    end: usize,
}

impl<'p> TopN<'p> {
    pub(super) fn new(input: &'p Node, keys: &'p [SortKey], limit: &'p Expr, percent: bool, with_ties: bool) -> Self {
        Self { input: build(input), buffer: SortBuffer::new(keys), limit, percent, with_ties, at: 0, end: 0 }
    }

    fn gather(&mut self, keep: usize, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.input.open(cx)?;
        while let Some(batch) = self.input.next(cx)? {
            self.buffer.push(batch, cx)?;
            if self.buffer.len() > keep.saturating_mul(2).saturating_add(SLACK_ROWS) {
                self.buffer.truncate(keep);
            }
            cx.check_memory(self.buffer.memory_bytes())?;
        }
        self.buffer.sort();
        Ok(())
    }
}

impl<'p> Operator<'p> for TopN<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.buffer.clear();
        (self.at, self.end) = (0, 0);
        let share = if self.percent { Some(percentage(self.limit, cx)?) } else { None };
        let limit = if self.percent { usize::MAX } else { usize::try_from(row_count(self.limit, 1060, cx)?).unwrap_or(usize::MAX) };
        if limit == 0 {
            return Ok(());
        }
        self.gather(if self.with_ties { usize::MAX } else { limit }, cx)?;
        let rows = self.buffer.len();
        self.end = share.map_or(limit, |share| share_of(rows, share) as usize).min(rows);
        while self.with_ties && self.end > 0 && self.end < rows && self.buffer.same_key(self.end - 1, self.end) {
            self.end += 1;
        }
        Ok(())
    }

    fn next(&mut self, _cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        let to = self.end.min(self.at + BATCH_ROWS);
        if to == self.at {
            return Ok(None);
        }
        let from = std::mem::replace(&mut self.at, to);
        Ok(Some(self.buffer.rows(from, to)))
    }
}
