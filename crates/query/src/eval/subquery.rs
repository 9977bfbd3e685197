//! Subqueries that stayed expressions: scalar, EXISTS, and comparisons with ANY and ALL.
//!
//! The plan's operators are built once an execution and opened again for each row. A subquery that looks at nothing
//! outside itself runs once; its first column is then kept and every later row is answered from that.

use crate::eval::rows::{RowRef, compare_with, eval_row, truth};
use crate::exec::cx::{Cx, OuterRow};
use crate::exec::{Batch, build};
use crate::expr::SubqueryKind;
use crate::phys::Node;
use std::sync::Arc;
use thawdb_types::error::message;
use thawdb_types::{Scalar, SqlError, scalar_at};

/// Value of a subquery for one outer row.
pub(super) fn eval<'p>(plan: &'p Node, kind: &'p SubqueryKind, row: RowRef<'_>, cx: &mut Cx<'p, '_>) -> Result<Scalar, SqlError> {
    // EXISTS needs one row, a scalar two to know that there are too many.
    let wanted = match kind {
        SubqueryKind::Exists { .. } => 1,
        SubqueryKind::Scalar => 2,
        SubqueryKind::Quantified { .. } => usize::MAX,
    };
    let operand = match kind {
        SubqueryKind::Quantified { operand, .. } => eval_row(operand, row, cx)?,
        _ => Scalar::Null,
    };
    let rows = rows_of(plan, wanted, row, cx)?;
    Ok(match kind {
        SubqueryKind::Exists { negated } => Scalar::Bit(rows.is_empty() == *negated),
        SubqueryKind::Scalar if rows.len() > 1 => return Err(message(512, &[])),
        SubqueryKind::Scalar => rows.first().cloned().unwrap_or(Scalar::Null),
        SubqueryKind::Quantified { op, all, operand: of } => {
            truth(quantified(*all, rows.iter().map(|v| compare_with(*op, &operand, v, &of.sql_type))))
        }
    })
}

/// ANY is an OR of comparisons, ALL an AND.
fn quantified(all: bool, results: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut unknown = false;
    for result in results {
        match result {
            Some(value) if value != all => return Some(!all),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(all) }
}

/// First column of the plan's rows, up to `wanted` of them.
fn rows_of<'p>(plan: &'p Node, wanted: usize, row: RowRef<'_>, cx: &mut Cx<'p, '_>) -> Result<Arc<Vec<Scalar>>, SqlError> {
    let index = cx.subquery(plan);
    if let Some(rows) = &cx.subquery_at(index).rows {
        return Ok(rows.clone());
    }
    let correlated = cx.subquery_at(index).correlated;
    let mut operator = cx.subquery_at(index).operator.take().unwrap_or_else(|| build(plan));
    operator.row_goal(wanted as u64);
    let outer = OuterRow { columns: row.columns.iter().cloned().collect(), row: row.row };
    let rows = cx.with_outer(outer, |cx| {
        operator.open(cx)?;
        let mut rows = Vec::new();
        while rows.len() < wanted {
            let Some(batch) = operator.next(cx)? else { break };
            first_column(plan, &batch, &mut rows);
        }
        Ok::<_, SqlError>(Arc::new(rows))
    })?;
    let kept = cx.subquery_at(index);
    kept.operator = Some(operator);
    if !correlated {
        kept.rows = Some(rows.clone());
    }
    Ok(rows)
}

fn first_column(plan: &Node, batch: &Batch, rows: &mut Vec<Scalar>) {
    match batch.columns.first() {
        Some(column) => rows.extend((0..batch.rows).map(|row| scalar_at(column.as_ref(), row, &plan.columns[0].sql_type))),
        // EXISTS over a plan that puts out no column.
        None => rows.extend(std::iter::repeat_n(Scalar::Null, batch.rows)),
    }
}
