//! Join of two inputs that come in the order of their keys: the right rows of one key are held, nothing else.
//!
//! ```text
//! left   1 1 2 4 4 7        a batch at a time; its rows are joined from `from` on
//! right  1 2 2 2 3 7        window: the right rows whose keys the present left rows may still meet
//! ```
//! For a left batch the window takes in right rows until its last key is beyond the batch's last, so that all candidates of
//! every left row are there ([`Pairs`] asks for that); rows below the batch's first key are let go, those without a match
//! beside NULLs if the join wants them. Left order is kept; unmatched right rows come among the others.
//!
//! Keys are compared as sort keys ([`encode_order`]), ascending, which is the order the plan has made sure of. NULL keys
//! match nothing. Memory: the window, within the grant (701): many right rows of one key, or of the keys of one batch.

use crate::exec::batch::Rows;
use crate::exec::keys::encode_order;
use crate::exec::pairs::{Candidates, PAIRS_AIM, Pairs};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::{JoinKind, Node};
use arrow_array::Array;
use std::collections::VecDeque;
use thawdb_types::{SqlError, SqlType};

/// Rows with the sort key of each; `None` where a part of the key is NULL.
struct Keyed {
    batch: Batch,
    /// All keys one after another, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    with_null: Vec<bool>,
}

impl Keyed {
    fn new(batch: Batch, positions: &[usize], types: &[SqlType]) -> Self {
        let (mut bytes, mut ends, mut with_null) = (Vec::new(), Vec::with_capacity(batch.rows), Vec::with_capacity(batch.rows));
        for row in 0..batch.rows {
            for (at, sql_type) in positions.iter().zip(types) {
                encode_order(&batch.columns[*at], row, sql_type, false, &mut bytes);
            }
            ends.push(bytes.len());
            with_null.push(positions.iter().any(|at| batch.columns[*at].is_null(row)));
        }
        Self { batch, bytes, ends, with_null }
    }

    fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    fn last_key(&self) -> &[u8] {
        self.key(self.batch.rows - 1)
    }

    fn memory_bytes(&self) -> usize {
        self.batch.memory_bytes() + self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + self.with_null.capacity()
    }
}

pub(super) struct MergeJoin<'p> {
    left: BoxOperator<'p>,
    right: BoxOperator<'p>,
    left_keys: Vec<usize>,
    right_keys: Vec<usize>,
    types: Vec<SqlType>,
    pairs: Pairs<'p>,
    left_ended: bool,
    right_ended: bool,
    /// Right rows that are still needed, and the first row of the next left batch that may meet each again.
    window: VecDeque<Keyed>,
    present: Option<Present>,
    held: usize,
}

/// A left batch and the right rows it meets.
struct Present {
    left: Keyed,
    from: usize,
    /// The window in one piece.
    right: Keyed,
    /// First right row not below the key of the left row `from`.
    at: usize,
}

impl<'p> MergeJoin<'p> {
    pub(super) fn new(left: &'p Node, right: &'p Node, kind: JoinKind, keys: &'p [(usize, usize)], residual: Option<&'p Expr>) -> Self {
        Self {
            left: build(left),
            right: build(right),
            left_keys: keys.iter().map(|(l, _)| *l).collect(),
            right_keys: keys.iter().map(|(_, r)| *r).collect(),
            types: keys.iter().map(|(l, _)| left.columns[*l].sql_type).collect(),
            pairs: Pairs::new(kind, residual, &left.columns, &right.columns),
            left_ended: false,
            right_ended: false,
            window: VecDeque::new(),
            present: None,
            held: 0,
        }
    }

    /// Takes right rows in until one is beyond `key`, or to the end.
    fn fill_window(&mut self, key: &[u8], cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        while !self.right_ended && self.window.back().is_none_or(|last| last.last_key() <= key) {
            match self.right.next(cx)? {
                Some(batch) => self.window.push_back(Keyed::new(batch, &self.right_keys, &self.types)),
                None => self.right_ended = true,
            }
            let bytes = self.window.iter().map(Keyed::memory_bytes).sum();
            cx.hold_or_fail(&mut self.held, bytes)?;
        }
        Ok(())
    }

    fn next_left(&mut self, cx: &mut Cx<'p, '_>) -> Result<bool, SqlError> {
        let Some(batch) = self.left.next(cx)? else {
            self.left_ended = true;
            return Ok(false);
        };
        let left = Keyed::new(batch, &self.left_keys, &self.types);
        self.fill_window(left.last_key(), cx)?;
        let pieces: Vec<Batch> = self.window.drain(..).map(|keyed| keyed.batch).collect();
        let rows = match &pieces[..] {
            [] => Batch::empty(self.pairs.right_columns().iter().map(|c| &c.sql_type)),
            some => Batch::concat(some),
        };
        let right = Keyed::new(rows, &self.right_keys, &self.types);
        cx.hold_or_fail(&mut self.held, right.memory_bytes())?;
        self.pairs.reset(right.batch.rows);
        self.present = Some(Present { left, from: 0, right, at: 0 });
        Ok(true)
    }

    /// Joins some rows of the present left batch.
    fn join_some(&mut self, mut present: Present, cx: &mut Cx<'p, '_>) -> Result<Batch, SqlError> {
        let (left, right) = (&present.left, &present.right);
        let mut found = Candidates::default();
        let mut to = present.from;
        while to < left.batch.rows && found.left.len() < PAIRS_AIM {
            while present.at < right.batch.rows && right.key(present.at) < left.key(to) {
                present.at += 1;
            }
            let mut at = present.at;
            while !left.with_null[to] && at < right.batch.rows && right.key(at) == left.key(to) {
                found.left.push(to as u32);
                found.right.push(at as u32);
                at += 1;
            }
            to += 1;
        }
        let joined = self.pairs.judge((&left.batch, present.from..to), &right.batch, found, cx)?;
        present.from = to;
        self.present = Some(present);
        Ok(joined)
    }

    /// The left batch is done: right rows below its last key are too; the others go back into the window.
    fn let_go(&mut self, present: Present) -> Option<Batch> {
        let Present { left, right, .. } = present;
        let rows = right.batch.rows;
        // Rows of the last key may meet the next batch, unless that key is NULL; those matched already must stay matched.
        let keep_from = (0..rows).find(|row| right.key(*row) >= left.last_key()).unwrap_or(rows);
        let unmatched = self.pairs.unmatched_before(&right.batch, keep_from);
        if keep_from < rows {
            let rest = right.batch.slice(keep_from, rows - keep_from);
            self.window.push_front(Keyed::new(rest, &self.right_keys, &self.types));
        }
        unmatched
    }

    /// What is left of the right side, all without a match but for what the last left rows met.
    fn rest_of_right(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        if !matches!(self.pairs.kind, JoinKind::RightOuter | JoinKind::FullOuter) {
            return Ok(None);
        }
        loop {
            let batch = match self.window.pop_front() {
                Some(keyed) => keyed.batch,
                None if self.right_ended => return Ok(None),
                None => match self.right.next(cx)? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            self.pairs.reset(batch.rows);
            if let Some(unmatched) = self.pairs.unmatched_right(&batch) {
                return Ok(Some(unmatched));
            }
        }
    }
}

impl<'p> Operator<'p> for MergeJoin<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        (self.left_ended, self.right_ended, self.present) = (false, false, None);
        self.window.clear();
        self.pairs.carry_clear();
        cx.hold(&mut self.held, 0);
        self.right.open(cx)?;
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        loop {
            cx.host.check_cancelled()?;
            let batch = match self.present.take() {
                Some(present) if present.from < present.left.batch.rows => Some(self.join_some(present, cx)?),
                Some(present) => self.let_go(present),
                None if self.left_ended => {
                    let rest = self.rest_of_right(cx)?;
                    if rest.is_none() {
                        cx.hold(&mut self.held, 0);
                    }
                    return Ok(rest);
                }
                None => {
                    self.next_left(cx)?;
                    None
                }
            };
            if let Some(batch) = batch.filter(|batch| batch.rows > 0) {
                return Ok(Some(batch));
            }
        }
    }
}
