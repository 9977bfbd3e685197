//! UNION [ALL], EXCEPT, INTERSECT: columns pair up by position and take their common type; names are the first one's.

use super::with::converted;
use super::{BoundQuery, OutputName, QueryUse, Tail};
use crate::algebra::{ColumnRef, Rel};
use crate::bind::Binder;
use crate::bind::coerce::common_type;
use crate::bind::error::error;
use thawdb_tsql::ast::{QueryBody, SetOp, Span};
use thawdb_types::{SqlError, SqlType};

impl Binder<'_> {
    pub(super) fn bind_set(&mut self, op: SetOp, operands: &[QueryBody], span: Span) -> Result<BoundQuery, SqlError> {
        let tail = Tail { order_by: &[], offset: None, usage: QueryUse::Derived };
        let mut bound = Vec::with_capacity(operands.len());
        for operand in operands {
            let query = self.bind_body(operand, tail)?;
            if !query.assignments.is_empty() {
                return Err(error(10734, &[], span));
            }
            bound.push(query);
        }
        let width = bound[0].outputs.len();
        if bound.iter().any(|q| q.outputs.len() != width) {
            return Err(error(205, &[], span));
        }
        let types = self.column_types(&bound, width, op, span)?;
        let names: Vec<String> = bound[0].outputs.iter().map(|o| o.name.clone()).collect();
        let mut inputs = Vec::with_capacity(bound.len());
        for query in bound {
            inputs.push(self.with_types(query, &types, span)?);
        }
        let rel = match op {
            SetOp::UnionAll | SetOp::Union => self.union_all(inputs, &names, &types),
            SetOp::Except | SetOp::Intersect => self.set_difference(inputs, op == SetOp::Intersect),
        };
        let rel = if op == SetOp::Union { Rel::Distinct { input: Box::new(rel) } } else { rel };
        let outputs = rel.columns().into_iter().zip(names).map(|(column, name)| OutputName { name, column, table: None }).collect();
        Ok(BoundQuery { rel, outputs, assignments: Vec::new() })
    }

    fn column_types(&self, bound: &[BoundQuery], width: usize, op: SetOp, span: Span) -> Result<Vec<SqlType>, SqlError> {
        let name = match op {
            SetOp::UnionAll => "UNION ALL",
            SetOp::Union => "UNION",
            SetOp::Except => "EXCEPT",
            SetOp::Intersect => "INTERSECT",
        };
        let mut types = Vec::with_capacity(width);
        for index in 0..width {
            let column = |q: &BoundQuery| self.set_operand(q, index);
            let exprs: Vec<_> = bound.iter().map(column).collect();
            let common = common_type(exprs.iter().map(|e| (e, span)), name)?;
            if common.is_incomparable() && op != SetOp::UnionAll {
                return Err(error(5335, &[&common.message_name(), &name], span));
            }
            types.push(common);
        }
        Ok(types)
    }

    /// A column of an operand; a constant NULL shows as such, since it takes any type.
    fn set_operand(&self, query: &BoundQuery, index: usize) -> crate::algebra::BoundExpr {
        let column = query.outputs[index].column;
        if let Rel::Project { exprs, .. } = &query.rel {
            if let Some((_, expr)) = exprs.iter().find(|(c, e)| *c == column && e.is_null()) {
                return expr.clone();
            }
        }
        self.column_expr(column)
    }

    /// The operand with its columns converted to `types`.
    fn with_types(&mut self, query: BoundQuery, types: &[SqlType], span: Span) -> Result<(Rel, Vec<ColumnRef>), SqlError> {
        let mut exprs = Vec::with_capacity(types.len());
        let mut computed = false;
        for (index, sql_type) in types.iter().enumerate() {
            let null = self.set_operand(&query, index).is_null();
            let expr = if null {
                crate::algebra::BoundExpr::literal(thawdb_types::Scalar::Null, *sql_type)
            } else {
                converted(self.column_expr(query.outputs[index].column), *sql_type, span)?
            };
            computed |= expr.as_column().is_none();
            let column = self.name_expr(&query.outputs[index].name, &expr);
            exprs.push((column, expr));
        }
        let columns = exprs.iter().map(|(c, _)| *c).collect();
        if !computed {
            return Ok((query.rel, columns));
        }
        let mut seen = Vec::new();
        exprs.retain(|(c, _)| {
            let new = !seen.contains(c);
            seen.push(*c);
            new
        });
        Ok((Rel::Project { input: Box::new(query.rel), exprs }, columns))
    }

    fn union_all(&mut self, inputs: Vec<(Rel, Vec<ColumnRef>)>, names: &[String], types: &[SqlType]) -> Rel {
        let nullable = |index: usize| inputs.iter().any(|(_, c)| self.columns.info(c[index]).nullable);
        let nullables: Vec<bool> = (0..types.len()).map(nullable).collect();
        let columns = types.iter().zip(names).zip(nullables).map(|((t, n), nullable)| self.columns.add(n, *t, nullable)).collect();
        Rel::UnionAll { inputs, columns }
    }

    fn set_difference(&mut self, inputs: Vec<(Rel, Vec<ColumnRef>)>, keep: bool) -> Rel {
        let mut inputs = inputs.into_iter();
        let (mut left, mut left_columns) = inputs.next().expect("a set operation has two operands");
        for (right, right_columns) in inputs {
            // An output may stand twice in the list; each needs a column of its own to be compared.
            let (fresh, columns) = self.spread(left, &left_columns);
            left = Rel::SetDifference { left: Box::new(fresh), right: Box::new(right), left_columns: columns.clone(), right_columns, keep };
            left_columns = columns;
        }
        left
    }

    fn spread(&mut self, rel: Rel, columns: &[ColumnRef]) -> (Rel, Vec<ColumnRef>) {
        let repeated = columns.iter().enumerate().any(|(i, c)| columns[..i].contains(c));
        if !repeated && rel.columns() == columns {
            return (rel, columns.to_vec());
        }
        let exprs: Vec<_> = columns.iter().map(|c| (self.columns.copy(*c), self.column_expr(*c))).collect();
        let fresh = exprs.iter().map(|(c, _)| *c).collect();
        (Rel::Project { input: Box::new(rel), exprs }, fresh)
    }
}
