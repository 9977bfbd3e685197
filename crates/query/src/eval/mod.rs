//! Expression evaluation: over whole batches where that pays, over one row where that is what there is.
//!
//! ```text
//! eval_array, select ──► vector: kernels over arrays ──► rows: one row at a time, complete, the reference
//!                            │ 1 row, or no column named: straight to rows, no arrays made
//! eval_row, eval_free ───────┴──────────────────────────► rows
//! ```
//! Invariants: 1. Both ways give the same value or the same error number (random differential test in `tests`).
//! 2. Boolean expressions have type bit with NULL for unknown; `select` keeps the rows that are true. 3. An operand of
//! AND, OR and a branch of CASE is only evaluated for rows that reach it if it might fail there; SQL Server promises
//! that for CASE, and programs rely on it for the others too.

mod arithmetic;
mod case;
mod compare;
mod convert;
mod decimal;
mod mask;
mod rows;
mod subquery;
mod vector;

#[cfg(test)]
mod tests;

pub(crate) use convert::cut;
pub(crate) use convert::{How, scalar as convert_scalar, scalar_by as convert_scalar_by};
pub(crate) use rows::{RowRef, eval_free, eval_row};
pub(crate) use vector::eval_array;

use crate::exec::cx::Cx;
use crate::expr::Expr;
use arrow_buffer::BooleanBuffer;
use thawdb_types::{Batch, SqlError};

/// The rows of `batch` for which `predicate` is true.
pub(crate) fn select<'p>(predicate: &'p Expr, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<BooleanBuffer, SqlError> {
    Ok(mask::mask(predicate, batch, cx)?.truth)
}
