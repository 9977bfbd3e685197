//! Join by any predicate: each left row against every right row, which are kept in memory (701 beyond the grant).

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
    kept: Batch,
    present: Option<(Batch, usize)>,
    ended: bool,
}

impl<'p> NestedLoopJoin<'p> {
    pub(super) fn new(left: &'p Node, right: &'p Node, kind: JoinKind, predicate: Option<&'p Expr>) -> Self {
        let pairs = Pairs::new(kind, predicate, &left.columns, &right.columns);
        Self { left: build(left), right: build(right), pairs, kept: Batch::default(), present: None, ended: false }
    }
}

/// All rows of an operator in one batch, within the grant.
pub(super) fn collect<'p>(operator: &mut BoxOperator<'p>, columns: &'p [OutputColumn], cx: &mut Cx<'p, '_>) -> Result<Batch, SqlError> {
    let (mut batches, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = operator.next(cx)? {
        bytes += batch.memory_bytes();
        cx.check_memory(bytes)?;
        batches.push(batch);
    }
    Ok(if batches.is_empty() { Batch::empty(columns.iter().map(|c| &c.sql_type)) } else { Batch::concat(&batches) })
}

impl<'p> Operator<'p> for NestedLoopJoin<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.right.open(cx)?;
        self.kept = collect(&mut self.right, self.pairs.right_columns(), cx)?;
        self.pairs.reset(self.kept.rows);
        (self.present, self.ended) = (None, false);
        self.left.open(cx)
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while !self.ended {
            let Some((left, from)) = self.present.take() else {
                match self.left.next(cx)? {
                    Some(batch) => self.present = Some((batch, 0)),
                    None => {
                        self.ended = true;
                        return Ok(self.pairs.unmatched_right(&self.kept));
                    }
                }
                continue;
            };
            cx.host.check_cancelled()?;
            let right_rows = self.kept.rows as u32;
            let to = left.rows.min(from + (PAIRS_AIM / self.kept.rows.max(1)).max(1));
            let mut found = Candidates::default();
            for row in from..to {
                found.left.extend(std::iter::repeat_n(row as u32, right_rows as usize));
                found.right.extend(0..right_rows);
            }
            let joined = self.pairs.judge((&left, from..to), &self.kept, found, cx)?;
            if to < left.rows {
                self.present = Some((left, to));
            }
            if joined.rows > 0 {
                return Ok(Some(joined));
            }
        }
        Ok(None)
    }
}
