//! SELECT as a statement: rows for the client, assignments, or SELECT INTO.

use super::BoundStmt;
use crate::algebra::{BoundExprKind, ColumnRef, Rel};
use crate::bind::Binder;
use crate::bind::error::error;
use crate::bind::query::{OutputName, QueryUse};
use thawdb_catalog::{ColumnDef, ColumnId, IdentityDef};
use thawdb_tsql::ast::{self, QueryBody};
use thawdb_types::SqlError;

impl Binder<'_> {
    /// Binds a SELECT statement.
    pub(crate) fn bind_select_statement(&mut self, query: &ast::Query) -> Result<BoundStmt, SqlError> {
        let bound = self.bind_query(query, QueryUse::Statement)?;
        if !bound.assignments.is_empty() {
            return Ok(self.assign_statement(bound.rel, bound.assignments));
        }
        match into_of(&query.body) {
            None => Ok(BoundStmt::Query { rel: bound.rel, outputs: bound.outputs }),
            Some(into) => {
                let columns = self.new_columns(&bound.outputs, &bound.rel, into)?;
                Ok(BoundStmt::SelectInto { rel: bound.rel, outputs: bound.outputs, table: into.table.clone(), columns })
            }
        }
    }

    /// Values that read no variable assigned here are computed below, where subqueries can become joins.
    fn assign_statement(&mut self, rel: Rel, mut assignments: Vec<(usize, crate::algebra::BoundExpr)>) -> BoundStmt {
        let assigned: Vec<usize> = assignments.iter().map(|(v, _)| *v).collect();
        let mut exprs: Vec<(ColumnRef, crate::algebra::BoundExpr)> = Vec::new();
        for (_, expr) in &mut assignments {
            let mut reads = false;
            expr.walk(&mut |e| reads |= matches!(e.kind, BoundExprKind::Variable(v) if assigned.contains(&v)));
            if reads || !expr.has_subquery() {
                continue;
            }
            let column = self.columns.add("", expr.sql_type, expr.nullable);
            exprs.push((column, expr.clone()));
            *expr = self.column_expr(column);
        }
        if exprs.is_empty() {
            return BoundStmt::Assign { rel, assignments };
        }
        let through: Vec<_> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        exprs.splice(0..0, through);
        BoundStmt::Assign { rel: Rel::Project { input: Box::new(rel), exprs }, assignments }
    }

    /// Definitions of the columns of SELECT INTO; 1038 for one without a name, 2705 for two of one name.
    fn new_columns(&self, outputs: &[OutputName], rel: &Rel, into: &ast::SelectInto) -> Result<Vec<ColumnDef>, SqlError> {
        let mut columns: Vec<ColumnDef> = Vec::with_capacity(outputs.len());
        for (index, output) in outputs.iter().enumerate() {
            if output.name.is_empty() {
                return Err(error(1038, &[], into.table.span));
            }
            if columns.iter().any(|c| crate::bind::scope::same_name(&c.name, &output.name)) {
                return Err(error(2705, &[&output.name, &into.table.name.text], into.table.span));
            }
            let info = self.columns.info(output.column);
            // IDENTITY is inherited from one plain table only: a join, union or aggregate loses it.
            let inherited = (info.identity && is_single_table(rel)).then_some(IdentityDef { seed: 1, increment: 1 });
            let made = self.identity_item.filter(|(item, _)| *item == index).map(|(_, identity)| identity);
            let identity = made.or(inherited);
            columns.push(ColumnDef {
                id: ColumnId(i32::try_from(index + 1).expect("a table has at most 1024 columns")),
                name: output.name.clone(),
                sql_type: info.sql_type,
                nullable: info.nullable && made.is_none(),
                identity,
                default: None,
                default_name: None,
                computed: None,
                user_type: None,
            });
        }
        Ok(columns)
    }
}

fn into_of(body: &QueryBody) -> Option<&ast::SelectInto> {
    match body {
        QueryBody::Select(select) => select.into.as_ref(),
        QueryBody::Paren(query) => into_of(&query.body),
        QueryBody::Set { operands, .. } => operands.first().and_then(into_of),
    }
}

fn is_single_table(rel: &Rel) -> bool {
    match rel {
        Rel::Get(_) => true,
        Rel::Filter { input, .. } | Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Limit { input, .. } => {
            is_single_table(input)
        }
        _ => false,
    }
}
