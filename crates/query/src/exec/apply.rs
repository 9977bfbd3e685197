//! Join by running the right side again for each left row: index nested loops, CROSS and OUTER APPLY, correlated EXISTS.
//!
//! Right rows of many left rows are gathered before they are joined, so that a look-up that gives one row a time still
//! makes batches; of fewer where fewer rows are asked for above (TOP). An inner join hands the pairs of one left row on
//! in parts too, so that a long right side is read no farther than somebody wants. A right side that looks at nothing
//! outside runs once and is kept.

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
    /// The pairs of one left row may be judged apart.
    divides: bool,
    /// Pairs to gather before they are joined.
    aim: usize,
    kept: Kept,
    present: Option<Present>,
    /// The right side has given rows for the first left row of `present`, and may have more.
    resumes: bool,
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
        let first_decides = predicate.is_none() && matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti);
        let kept = if refers_outside(right) { Kept::No } else { Kept::NotYet };
        let pairs = Pairs::new(kind, predicate, &left.columns, &right.columns);
        let mut right = build(right);
        if first_decides {
            right.row_goal(1);
        }
        let divides = kind == JoinKind::Inner && matches!(kept, Kept::No);
        Self { left: build(left), right, pairs, first_decides, divides, aim: PAIRS_AIM, kept, present: None, resumes: false }
    }

    /// Appends right rows for left row `row` to `gathered` and returns how many they are: all, or `enough` if they may be
    /// judged apart; then `resumes` is set.
    fn run_right(
        &mut self,
        (present, row): (&Present, usize),
        enough: usize,
        gathered: &mut Vec<Batch>,
        cx: &mut Cx<'p, '_>,
    ) -> Result<usize, SqlError> {
        if let Kept::Rows(rows) = &self.kept {
            gathered.extend(rows.iter().cloned());
            return Ok(rows.iter().map(|b| b.rows).sum());
        }
        let first = gathered.len();
        let resumes = std::mem::take(&mut self.resumes);
        let (right, first_decides) = (&mut self.right, self.first_decides);
        let enough = if self.divides { enough } else { usize::MAX };
        let mut count = 0;
        self.resumes = cx.with_outer(OuterRow { columns: present.columns.clone(), row }, |cx| {
            if !resumes {
                right.open(cx)?;
            }
            while let Some(batch) = right.next(cx)? {
                count += batch.rows;
                gathered.push(batch);
                if first_decides {
                    break;
                }
                if count >= enough {
                    return Ok(true);
                }
            }
            Ok::<_, SqlError>(false)
        })?;
        if matches!(self.kept, Kept::NotYet) {
            cx.check_memory(gathered[first..].iter().map(Batch::memory_bytes).sum())?;
            self.kept = Kept::Rows(gathered[first..].to_vec());
        }
        Ok(count)
    }
}

impl<'p> Operator<'p> for Apply<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        (self.present, self.resumes) = (None, false);
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
            while to < present.batch.rows && found.left.len() < self.aim {
                let enough = self.aim - found.left.len();
                let count = self.run_right((&present, to), enough, &mut gathered, cx)?;
                found.left.extend(std::iter::repeat_n(to as u32, count));
                to += 1;
            }
            found.right = (0..found.left.len() as u32).collect();
            let right = match gathered.is_empty() {
                true => Batch::empty(self.pairs.right_columns().iter().map(|c| &c.sql_type)),
                false => Batch::concat(&gathered),
            };
            let joined = self.pairs.judge((&present.batch, from..to), &right, found, cx)?;
            present.from = to - usize::from(self.resumes);
            if present.from < present.batch.rows {
                self.present = Some(present);
            }
            if joined.rows > 0 {
                return Ok(Some(joined));
            }
        }
    }

    fn row_goal(&mut self, rows: u64) {
        self.aim = usize::try_from(rows).unwrap_or(PAIRS_AIM).clamp(1, PAIRS_AIM);
        self.left.row_goal(rows);
        if self.divides {
            self.right.row_goal(rows);
        }
    }
}
