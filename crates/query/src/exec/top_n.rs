//! TOP with ORDER BY: the first rows of the order, without keeping many more.
//!
//! Rows are cut back to the limit (and what ties with its last row) whenever they exceed it several times over, so memory
//! follows the limit, not the input. After each cut, rows whose first key is beyond the last kept row's are dropped before
//! they get a sort key. PERCENT cannot know its limit before the end and keeps everything. Rows beyond their share of the
//! memory, of PERCENT or of a limit that large, go to storage's external sort.

use crate::exec::batch::BATCH_ROWS;
use crate::exec::limit::{percentage, row_count, share_of};
use crate::exec::sort_buffer::SortBuffer;
use crate::exec::spill::{Spilled, Wanted, external_sort, failed};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::{Node, SortKey};
use thawdb_storage::sort::ExternalSort;
use thawdb_types::{SqlError, SqlType};

/// Rows beyond the limit that may gather before they are cut back: sorting them is then spread over many rows.
const SLACK_ROWS: usize = 4 * BATCH_ROWS;

pub(super) struct TopN<'p> {
    input: BoxOperator<'p>,
    buffer: SortBuffer<'p>,
    limit: &'p Expr,
    percent: bool,
    with_ties: bool,
    types: Vec<SqlType>,
    at: usize,
    end: usize,
    held: usize,
    spilled: Option<(Spilled, Wanted)>,
}

impl<'p> TopN<'p> {
    pub(super) fn new(input: &'p Node, keys: &'p [SortKey], limit: &'p Expr, percent: bool, with_ties: bool) -> Self {
        let types = input.columns.iter().map(|c| c.sql_type).collect();
        let buffer = SortBuffer::new(keys);
        Self { input: build(input), buffer, limit, percent, with_ties, types, at: 0, end: 0, held: 0, spilled: None }
    }

    /// Reads the input; what it gives back holds all rows if they were too many for the buffer.
    fn gather(&mut self, keep: usize, cx: &mut Cx<'p, '_>) -> Result<Option<ExternalSort>, SqlError> {
        self.input.open(cx)?;
        let (mut bound, mut external) = (None, None);
        while let Some(batch) = self.input.next(cx)? {
            let batch = match &bound {
                Some(bound) => self.buffer.not_beyond(batch, bound, cx)?,
                None => batch,
            };
            self.buffer.push(batch, cx)?;
            if external.is_none() && self.buffer.len() > keep.saturating_mul(2).saturating_add(SLACK_ROWS) {
                self.buffer.truncate(keep, self.with_ties);
                bound = self.buffer.last_first_key(cx)?;
            }
            let room = cx.hold(&mut self.held, self.buffer.memory_bytes());
            if external.is_some() || !room {
                let sort = external.get_or_insert_with(|| external_sort(true, cx));
                self.buffer.spill(sort, &self.types).map_err(|e| failed(e, cx))?;
                // What the external sort has of the grant.
                let half = cx.host.memory_grant_bytes() / 2;
                cx.hold(&mut self.held, half);
            }
        }
        Ok(external)
    }
}

impl<'p> Operator<'p> for TopN<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.buffer.clear();
        (self.at, self.end, self.spilled) = (0, 0, None);
        let share = if self.percent { Some(percentage(self.limit, cx)?) } else { None };
        let limit = if self.percent { usize::MAX } else { usize::try_from(row_count(self.limit, 127, cx)?).unwrap_or(usize::MAX) };
        if limit == 0 {
            return Ok(());
        }
        let external = self.gather(limit, cx)?;
        let rows = external.as_ref().map_or(self.buffer.len(), |sort| usize::try_from(sort.row_count()).unwrap_or(usize::MAX));
        self.end = share.map_or(limit, |share| share_of(rows, share) as usize).min(rows);
        if let Some(sort) = external {
            let spilled = Spilled::new(sort, self.types.clone()).map_err(|e| failed(e, cx))?;
            cx.state.spilled_bytes += spilled.spilled_bytes();
            self.spilled = Some((spilled, Wanted::new(self.end as u64, self.with_ties)));
            return Ok(());
        }
        self.buffer.sort();
        while self.with_ties && self.end > 0 && self.end < rows && self.buffer.same_key(self.end - 1, self.end) {
            self.end += 1;
        }
        Ok(())
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        if let Some((spilled, wanted)) = &mut self.spilled {
            return spilled.next_wanted(BATCH_ROWS, wanted).map_err(|e| failed(e, cx));
        }
        let to = self.end.min(self.at + BATCH_ROWS);
        if to == self.at {
            self.buffer.clear();
            (self.at, self.end) = (0, 0);
            cx.hold(&mut self.held, 0);
            return Ok(None);
        }
        let from = std::mem::replace(&mut self.at, to);
        Ok(Some(self.buffer.rows(from, to)))
    }
}
