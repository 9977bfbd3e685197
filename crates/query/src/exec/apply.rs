//! Join by running the right side again for each left row: index nested loops, CROSS and OUTER APPLY, correlated EXISTS.
//!
//! Right rows of many left rows are gathered before they are joined, so that a look-up that gives one row a time still
//! makes batches. A right side that looks at nothing outside runs once and is kept.

use crate::exec::batch::Rows;
use crate::exec::correlation::refers_outside;
use crate::exec::cx::{OuterRow, shared_columns};
use crate::exec::pairs::{Candidates, PAIRS_AIM, Pairs};
use crate::exec::{Batch, BoxOperator, Cx, Operator, build};
use crate::expr::Expr;
use crate::phys::{JoinKind, Node};
use arrow_array::ArrayRef;
use std::sync::Arc;
use thawdb_types::SqlError;

pub(super) struct Apply<'p> {
    left: BoxOperator<'p>,
    right: BoxOperator<'p>,
    pairs: Pairs<'p>,
    /// One matching row decides, and there is no predicate to judge it by.
    first_decides: bool,
    kept: Kept,
    present: Option<Present>,
}

enum Kept {
    /// The right side must run for each row.
    No,
    NotYet,
    Rows(Vec<Batch>),
}

struct Present {
    batch: Batch,
    columns: Arc<[ArrayRef]>,
    from: usize,
}

impl<'p> Apply<'p> {
    pub(super) fn new(left: &'p Node, right: &'p Node, kind: JoinKind, predicate: Option<&'p Expr>) -> Self {
        assert!(!matches!(kind, JoinKind::RightOuter | JoinKind::FullOuter), "Apply keeps no right side to find unmatched rows in");
        Self {
            left: build(left),
            right: build(right),
            pairs: Pairs::new(kind, predicate, &left.columns, &right.columns),
            first_decides: predicate.is_none() && matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti),
            kept: if refers_outside(right) { Kept::No } else { Kept::NotYet },
            present: None,
        }
    }

    /// Appends the right rows for left row `row` to `gathered` and returns how many they are.
    fn run_right(&mut self, present: &Present, row: usize, gathered: &mut Vec<Batch>, cx: &mut Cx<'p, '_>) -> Result<usize, SqlError> {
        if let Kept::Rows(rows) = &self.kept {
            gathered.extend(rows.iter().cloned());
            return Ok(rows.iter().map(|b| b.rows).sum());
        }
        let first = gathered.len();
        let (right, first_decides) = (&mut self.right, self.first_decides);
        cx.with_outer(OuterRow { columns: present.columns.clone(), row }, |cx| {
            right.open(cx)?;
            while let Some(batch) = right.next(cx)? {
                gathered.push(batch);
                if first_decides {
                    break;
                }
            }
            Ok::<_, SqlError>(())
        })?;
        if matches!(self.kept, Kept::NotYet) {
            cx.check_memory(gathered[first..].iter().map(Batch::memory_bytes).sum())?;
            self.kept = Kept::Rows(gathered[first..].to_vec());
        }
        Ok(gathered[first..].iter().map(|b| b.rows).sum())
    }
}

impl<'p> Operator<'p> for Apply<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.present = None;
        // Variables may have changed, so what was kept is not kept across openings.
        if !matches!(self.kept, Kept::No) {
            self.kept = Kept::NotYet;
        }
        self.pairs.reset(0);
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        loop {
            let Some(mut present) = self.present.take() else {
                let Some(batch) = self.left.next(cx)? else { return Ok(None) };
                self.present = Some(Present { columns: shared_columns(&batch), batch, from: 0 });
                continue;
            };
            cx.host.check_cancelled()?;
            let from = present.from;
            let mut gathered = Vec::new();
            let mut found = Candidates::default();
            let mut to = from;
            while to < present.batch.rows && found.left.len() < PAIRS_AIM {
                let count = self.run_right(&present, to, &mut gathered, cx)?;
                found.left.extend(std::iter::repeat_n(to as u32, count));
                to += 1;
            }
            found.right = (0..found.left.len() as u32).collect();
            let right = match gathered.is_empty() {
                true => Batch::empty(self.pairs.right_columns().iter().map(|c| &c.sql_type)),
                false => Batch::concat(&gathered),
            };
            let joined = self.pairs.judge((&present.batch, from..to), &right, found, cx)?;
            present.from = to;
            if to < present.batch.rows {
                self.present = Some(present);
            }
            if joined.rows > 0 {
                return Ok(Some(joined));
            }
        }
    }
}
