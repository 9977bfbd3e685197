//! OFFSET and FETCH, TOP without ORDER BY, TOP PERCENT.
//!
//! TOP PERCENT must know how many rows there are: it keeps them all in memory, within the grant (701). A count below
//! zero is refused: 1060 for TOP, 10742 and 10743 for OFFSET and FETCH as SQL Server words them.

use crate::eval::eval_free;
use crate::exec::batch::Rows;
use crate::exec::{Batch, BoxOperator, Cx, Operator};
use crate::expr::Expr;
use std::collections::VecDeque;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, SqlType};

pub(super) struct Limit<'p> {
    input: BoxOperator<'p>,
    offset: Option<&'p Expr>,
    limit: Option<&'p Expr>,
    percent: bool,
    skip: u64,
    left: u64,
    kept: Option<VecDeque<Batch>>,
}

impl<'p> Limit<'p> {
    pub(super) fn new(input: BoxOperator<'p>, offset: Option<&'p Expr>, limit: Option<&'p Expr>, percent: bool) -> Self {
        Self { input, offset, limit, percent, skip: 0, left: 0, kept: None }
    }

    /// Reads all rows and takes the given share of them, rounded up.
    fn keep_share(&mut self, share: f64, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        let (mut kept, mut rows, mut bytes) = (VecDeque::new(), 0, 0);
        while let Some(batch) = self.input.next(cx)? {
            rows += batch.rows;
            bytes += batch.memory_bytes();
            cx.check_memory(bytes)?;
            kept.push_back(batch);
        }
        self.left = share_of(rows, share);
        self.kept = Some(kept);
        Ok(())
    }

    fn pull(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        match &mut self.kept {
            Some(kept) => Ok(kept.pop_front()),
            None => self.input.next(cx),
        }
    }
}

/// `percent` of `rows`, rounded up.
pub(super) fn share_of(rows: usize, percent: f64) -> u64 {
    (rows as f64 * percent / 100.0).ceil() as u64
}

/// Value of a row count; `negative` is the message for one below zero or NULL.
pub(super) fn row_count<'p>(expr: &'p Expr, negative: i32, cx: &mut Cx<'p, '_>) -> Result<u64, SqlError> {
    let value = match eval_free(expr, cx)? {
        Scalar::TinyInt(v) => i64::from(v),
        Scalar::SmallInt(v) => i64::from(v),
        Scalar::Int(v) => i64::from(v),
        Scalar::BigInt(v) => v,
        Scalar::Float(v) => v as i64,
        Scalar::Decimal(v) => decimal_count(v, &expr.sql_type),
        // NULL is no count at all.
        _ => return Err(message(if negative == 127 { 1060 } else { negative }, &[])),
    };
    u64::try_from(value).map_err(|_| message(negative, &[]))
}

fn decimal_count(unscaled: i128, sql_type: &SqlType) -> i64 {
    let SqlType::Decimal { scale, .. } = sql_type else { return -1 };
    i64::try_from(unscaled / 10i128.pow(u32::from(*scale))).unwrap_or(i64::MAX)
}

/// Value of TOP's percentage: 0 to 100, else 1031.
pub(super) fn percentage<'p>(expr: &'p Expr, cx: &mut Cx<'p, '_>) -> Result<f64, SqlError> {
    let share = match eval_free(expr, cx)? {
        Scalar::Float(v) => v,
        Scalar::Real(v) => f64::from(v),
        Scalar::TinyInt(v) => f64::from(v),
        Scalar::SmallInt(v) => f64::from(v),
        Scalar::Int(v) => f64::from(v),
        Scalar::BigInt(v) => v as f64,
        Scalar::Decimal(v) => match expr.sql_type {
            SqlType::Decimal { scale, .. } => v as f64 / 10f64.powi(i32::from(scale)),
            _ => -1.0,
        },
        _ => -1.0,
    };
    if (0.0..=100.0).contains(&share) { Ok(share) } else { Err(message(1031, &[])) }
}

impl<'p> Operator<'p> for Limit<'p> {
    fn open(&mut self, cx: &mut Cx<'p, '_>) -> Result<(), SqlError> {
        self.kept = None;
        self.skip = self.offset.map_or(Ok(0), |e| row_count(e, 10742, cx))?;
        self.left = u64::MAX;
        if self.percent {
            let share = percentage(self.limit.expect("a percentage is the limit's"), cx)?;
            self.input.open(cx)?;
            return self.keep_share(share, cx);
        }
        if let Some(limit) = self.limit {
            self.left = row_count(limit, if self.offset.is_some() { 10744 } else { 127 }, cx)?;
        }
        if self.left == 0 && self.offset.is_some() {
            return Err(message(10744, &[]));
        }
        self.input.row_goal(self.left.saturating_add(self.skip));
        // TOP (0) must not run what is below it.
        if self.left > 0 { self.input.open(cx) } else { Ok(()) }
    }

    fn next(&mut self, cx: &mut Cx<'p, '_>) -> Result<Option<Batch>, SqlError> {
        while self.left > 0 {
            let Some(mut batch) = self.pull(cx)? else { return Ok(None) };
            let skipped = self.skip.min(batch.rows as u64);
            self.skip -= skipped;
            let taken = self.left.min(batch.rows as u64 - skipped);
            if taken == 0 {
                continue;
            }
            self.left -= taken;
            if taken < batch.rows as u64 {
                batch = batch.slice(skipped as usize, taken as usize);
            }
            return Ok(Some(batch));
        }
        Ok(None)
    }
}
