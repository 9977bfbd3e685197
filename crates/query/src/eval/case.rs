//! CASE over a batch: each branch is evaluated for the rows that reach it, and only for them.

use crate::eval::mask::mask;
use crate::eval::vector::eval_array;
use crate::exec::batch::Rows;
use crate::exec::cx::Cx;
use crate::expr::Expr;
use arrow_array::ArrayRef;
use arrow_select::interleave::interleave;
use thawdb_types::{Batch, Scalar, SqlError, array_from_scalar};

/// Values of a searched CASE.
pub(super) fn vector<'p>(
    expr: &'p Expr,
    branches: &'p [(Expr, Expr)],
    otherwise: Option<&'p Expr>,
    batch: &Batch,
    cx: &mut Cx<'p, '_>,
) -> Result<ArrayRef, SqlError> {
    // Each row's place: which piece, and where in it. Piece 0 is a single NULL.
    let mut pieces = vec![array_from_scalar(&expr.sql_type, &Scalar::Null, 1)];
    let mut places = vec![(0, 0); batch.rows];
    let mut open: Vec<u32> = (0..batch.rows as u32).collect();
    let mut place = |rows: &[u32], values: ArrayRef, pieces: &mut Vec<ArrayRef>| {
        rows.iter().enumerate().for_each(|(at, row)| places[*row as usize] = (pieces.len(), at));
        pieces.push(values);
    };
    let mut rest = batch.clone();
    for (condition, result) in branches {
        if open.is_empty() {
            break;
        }
        let taken = mask(condition, &rest, cx)?.truth;
        if taken.count_set_bits() == 0 {
            continue;
        }
        let chosen: Vec<u32> = taken.set_indices().map(|at| open[at]).collect();
        place(&chosen, eval_array(result, &rest.filter(&taken), cx)?, &mut pieces);
        let left = !&taken;
        open = left.set_indices().map(|at| open[at]).collect();
        rest = rest.filter(&left);
    }
    if let Some(otherwise) = otherwise.filter(|_| !open.is_empty()) {
        place(&open, eval_array(otherwise, &rest, cx)?, &mut pieces);
    }
    let parts: Vec<_> = pieces.iter().map(|p| p.as_ref()).collect();
    Ok(interleave(&parts, &places).expect("the branches of a CASE have its type"))
}
