//! Predicates over a batch in three-valued logic, as bits.
//!
//! ```text
//! truth    1 where the predicate is true          unknown = neither
//! falsity  1 where it is false; absent: everything that is not true is false
//! ```
//! Invariant: truth and falsity never share a bit.
//!
//! AND goes term by term: a term that can fail (divide, convert, call a function) is evaluated for those rows only that
//! no earlier term has made false; OR likewise for rows not yet true.

use crate::eval::compare::{compare_masks, in_integers};
use crate::eval::rows::{RowRef, eval_row, like_pattern};
use crate::eval::vector::{Datum, eval, eval_rows};
use crate::exec::batch::Rows;
use crate::exec::cx::Cx;
use crate::exec::is_row_independent;
use crate::expr::{CompareOp, Expr, ExprKind};
use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use thawdb_types::{Batch, Scalar, SqlError};

/// A predicate's values.
pub(super) struct Mask {
    pub(super) truth: BooleanBuffer,
    pub(super) falsity: Option<BooleanBuffer>,
}

impl Mask {
    /// The same value for `rows` rows.
    pub(super) fn constant(value: &Scalar, rows: usize) -> Self {
        match value {
            Scalar::Bit(true) => Self { truth: BooleanBuffer::new_set(rows), falsity: None },
            Scalar::Bit(false) => Self { truth: BooleanBuffer::new_unset(rows), falsity: None },
            _ => Self { truth: BooleanBuffer::new_unset(rows), falsity: Some(BooleanBuffer::new_unset(rows)) },
        }
    }

    /// Bits that count where `nulls` says so.
    pub(super) fn of(bits: BooleanBuffer, nulls: Option<&NullBuffer>) -> Self {
        match nulls.filter(|n| n.null_count() > 0) {
            None => Self { truth: bits, falsity: None },
            Some(nulls) => Self { truth: &bits & nulls.inner(), falsity: Some(&!&bits & nulls.inner()) },
        }
    }

    fn falsity(&self) -> BooleanBuffer {
        self.falsity.clone().unwrap_or_else(|| !&self.truth)
    }

    pub(super) fn not(self) -> Self {
        match self.falsity {
            None => Self { truth: !&self.truth, falsity: None },
            Some(falsity) => Self { truth: falsity, falsity: Some(self.truth) },
        }
    }

    fn and(self, other: Self) -> Self {
        let falsity = match (&self.falsity, &other.falsity) {
            (None, None) => None,
            _ => Some(&self.falsity() | &other.falsity()),
        };
        Self { truth: &self.truth & &other.truth, falsity }
    }

    pub(super) fn into_array(self) -> BooleanArray {
        let nulls = self.falsity.map(|falsity| NullBuffer::new(&self.truth | &falsity));
        BooleanArray::new(self.truth, nulls)
    }
}

/// Values of a predicate.
pub(super) fn mask<'p>(expr: &'p Expr, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Mask, SqlError> {
    if batch.rows == 1 {
        return Ok(Mask::constant(&eval_row(expr, RowRef::at(&batch.columns, 0), cx)?, 1));
    }
    match &expr.kind {
        ExprKind::And(terms) => and(terms, batch, cx),
        // a OR b is NOT (NOT a AND NOT b), in three values too; `or` is that, term by term.
        ExprKind::Or(terms) => or(terms, batch, cx),
        ExprKind::Not(operand) => Ok(mask(operand, batch, cx)?.not()),
        ExprKind::Compare { op, left, right } if !is_row_independent(expr) => {
            let (a, b) = (eval(left, batch, cx)?, eval(right, batch, cx)?);
            Ok(compare_masks(*op, &a, &b, &left.sql_type, batch.rows))
        }
        ExprKind::IsNull { operand, negated } if !is_row_independent(operand) => {
            Ok(is_null(&eval(operand, batch, cx)?, *negated, batch.rows))
        }
        ExprKind::InList { operand, list, negated } if !is_row_independent(operand) => in_list(operand, list, *negated, batch, cx),
        ExprKind::Like { operand, pattern, escape, negated }
            if is_row_independent(pattern) && escape.as_deref().is_none_or(is_row_independent) && !is_row_independent(operand) =>
        {
            like(operand, (pattern, escape.as_deref()), *negated, batch, cx)
        }
        _ => Ok(match eval(expr, batch, cx)? {
            Datum::Value(value) => Mask::constant(&value, batch.rows),
            Datum::Array(array) => Mask::of(array.as_boolean().values().clone(), array.nulls()),
        }),
    }
}

fn and<'p>(terms: &'p [Expr], batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Mask, SqlError> {
    let mut all = Mask::constant(&Scalar::Bit(true), batch.rows);
    for term in terms {
        let open = !&all.falsity();
        let open_count = open.count_set_bits();
        if open_count == 0 {
            break;
        }
        let term = if open_count == batch.rows || cannot_fail(term) { mask(term, batch, cx)? } else { mask_where(term, batch, &open, cx)? };
        all = all.and(term);
    }
    Ok(all)
}

fn or<'p>(terms: &'p [Expr], batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Mask, SqlError> {
    // `none` is the AND of the negated terms.
    let mut none = Mask::constant(&Scalar::Bit(true), batch.rows);
    for term in terms {
        let open = !&none.falsity();
        let open_count = open.count_set_bits();
        if open_count == 0 {
            break;
        }
        let term = if open_count == batch.rows || cannot_fail(term) { mask(term, batch, cx)? } else { mask_where(term, batch, &open, cx)? };
        none = none.and(term.not());
    }
    Ok(none.not())
}

/// Values of `term` for the rows of `open`; unknown elsewhere.
fn mask_where<'p>(term: &'p Expr, batch: &Batch, open: &BooleanBuffer, cx: &mut Cx<'p, '_>) -> Result<Mask, SqlError> {
    let part = mask(term, &batch.filter(open), cx)?;
    let spread = |bits: &BooleanBuffer| {
        let mut out = BooleanBufferBuilder::new(batch.rows);
        out.append_n(batch.rows, false);
        open.set_indices().zip(bits.iter()).for_each(|(row, bit)| out.set_bit(row, bit));
        out.finish()
    };
    Ok(Mask { truth: spread(&part.truth), falsity: Some(spread(&part.falsity())) })
}

/// Whether evaluating `expr` raises no error whatever the row.
fn cannot_fail(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Variable(_) => true,
        ExprKind::Compare { left, right, .. } => cannot_fail(left) && cannot_fail(right),
        ExprKind::And(terms) | ExprKind::Or(terms) => terms.iter().all(cannot_fail),
        ExprKind::Not(operand) | ExprKind::IsNull { operand, .. } => cannot_fail(operand),
        ExprKind::InList { operand, list, .. } => cannot_fail(operand) && list.iter().all(cannot_fail),
        _ => false,
    }
}

fn is_null(value: &Datum, negated: bool, rows: usize) -> Mask {
    let null = match value {
        Datum::Value(value) => return Mask::constant(&Scalar::Bit(value.is_null() != negated), rows),
        Datum::Array(array) => array.nulls().map_or_else(|| BooleanBuffer::new_unset(rows), |n| !n.inner()),
    };
    Mask { truth: if negated { !&null } else { null }, falsity: None }
}

fn in_list<'p>(operand: &'p Expr, list: &'p [Expr], negated: bool, batch: &Batch, cx: &mut Cx<'p, '_>) -> Result<Mask, SqlError> {
    let value = eval(operand, batch, cx)?;
    let items = list.iter().map(|item| eval(item, batch, cx)).collect::<Result<Vec<_>, _>>()?;
    let found = match in_integers(&value, &items, &operand.sql_type) {
        Some(found) => found,
        None => {
            let mut none = Mask::constant(&Scalar::Bit(true), batch.rows);
            for item in &items {
                none = none.and(compare_masks(CompareOp::NotEqual, &value, item, &operand.sql_type, batch.rows));
            }
            none.not()
        }
    };
    Ok(if negated { found.not() } else { found })
}

fn like<'p>(
    operand: &'p Expr,
    (pattern, escape): (&'p Expr, Option<&'p Expr>),
    negated: bool,
    batch: &Batch,
    cx: &mut Cx<'p, '_>,
) -> Result<Mask, SqlError> {
    let nothing = RowRef::NOTHING;
    let types = (&operand.sql_type, &pattern.sql_type);
    let pattern = eval_row(pattern, nothing, cx)?;
    let escape = escape.map(|e| eval_row(e, nothing, cx)).transpose()?;
    let texts = match eval(operand, batch, cx)? {
        Datum::Array(array) => array,
        Datum::Value(_) => eval_rows(operand, batch, cx)?,
    };
    let (Scalar::Text(pattern), None | Some(Scalar::Text(_))) = (&pattern, &escape) else {
        return Ok(Mask::constant(&Scalar::Null, batch.rows));
    };
    let compiled = like_pattern(pattern, escape.as_ref(), types)?;
    let texts = texts.as_string::<i32>();
    let bits = BooleanBuffer::collect_bool(batch.rows, |row| texts.is_valid(row) && compiled.matches(texts.value(row)) != negated);
    Ok(Mask::of(bits, texts.nulls()))
}
