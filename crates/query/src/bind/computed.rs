//! Computed columns: from their text to expressions over the row they are part of.
//!
//! ```text
//! read:   Get (columns that rows hold) ─► Project: virtual columns worked out
//! write:  new row ─► stored computed columns worked out over it ─► rows and indexes
//! ```
//!
//! 1. A virtual column is no part of a stored row: nothing above `Get` asks for it but by its expression.
//! 2. A stored one (persisted or indexed) is read like any other column; the executor works it out for each new row.
//! 3. A definition sees the other columns of its row alone: no query around it, no variable.

use crate::algebra::{BoundExpr, BoundExprKind, ColumnInfo, ColumnRef};
use crate::bind::error::error;
use crate::bind::scope::{ScopeColumn, ScopeTable};
use crate::bind::{Binder, Clause, Level};
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, TableDef};
use thawdb_tsql::ast;
use thawdb_types::{SqlError, SqlType};

/// A row of a table with the expressions of its stored computed columns.
#[derive(Debug, Default)]
pub struct BoundComputed {
    /// A column for each of the table's, in order.
    pub row: Vec<ColumnRef>,
    /// Position and value over `row`.
    pub exprs: Vec<(usize, BoundExpr)>,
}

impl Binder<'_> {
    /// Columns of their own for a row of `table`.
    pub(crate) fn row_columns(&mut self, table: &TableDef) -> Vec<ColumnRef> {
        let push = |column: &ColumnDef| {
            self.columns.push(ColumnInfo {
                name: column.name.clone(),
                sql_type: column.sql_type,
                nullable: column.nullable,
                identity: column.identity.is_some(),
            })
        };
        table.columns.iter().map(push).collect()
    }

    /// The value of a computed column over a row.
    pub(crate) fn computed_value(&mut self, table: &Arc<TableDef>, at: usize, row: &[ColumnRef]) -> Result<BoundExpr, SqlError> {
        let column = &table.columns[at];
        let text = column.computed.as_ref().map_or("", |computed| computed.definition.as_str());
        let expr = thawdb_tsql::parse_expr(text, &thawdb_tsql::ParseOptions::default());
        let expr = expr.map_err(|_| error(102, &[&text], self.statement))?;
        let bound = self.over_row(&expr, table, row, false)?;
        if bound.sql_type == column.sql_type { Ok(bound) } else { Ok(crate::bind::coerce::cast(bound, column.sql_type)) }
    }

    /// The stored computed columns of a table over columns of their own.
    pub(crate) fn stored_computed(&mut self, table: &Arc<TableDef>) -> Result<BoundComputed, SqlError> {
        if table.columns.iter().all(|column| column.computed.is_none()) {
            return Ok(BoundComputed::default());
        }
        let row = self.row_columns(table);
        let mut exprs = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            if column.computed.is_some() && !column.is_virtual() {
                exprs.push((at, self.computed_value(table, at, &row)?));
            }
        }
        Ok(BoundComputed { row, exprs })
    }

    /// Binds over the columns of a row, and nothing else.
    pub(crate) fn over_row(
        &mut self,
        expr: &ast::Expr,
        table: &Arc<TableDef>,
        row: &[ColumnRef],
        condition: bool,
    ) -> Result<BoundExpr, SqlError> {
        let column = |(column, id): (&ColumnDef, &ColumnRef)| ScopeColumn { name: column.name.clone(), column: *id, hidden: false };
        let mut level = Level::new();
        level.clause = Clause::Where;
        level.tables.push(ScopeTable {
            name: table.name.clone(),
            alias: false,
            schema: table.schema_name.clone(),
            database: None,
            columns: table.columns.iter().zip(row).map(column).collect(),
            base: Some(table.clone()),
            qualified_only: false,
        });
        let levels = std::mem::replace(&mut self.levels, vec![level]);
        let home = self.home.replace((table.database, table.schema_name.clone()));
        // A definition names no variables; without parameters of its own it must not see those of a function around it.
        self.parameters.push(Vec::new());
        self.definitions_deep += 1;
        self.parents.push((table.database, table.id));
        let bound = if condition { self.bind_condition(expr) } else { self.bind_expr(expr) };
        self.parents.pop();
        self.definitions_deep -= 1;
        self.parameters.pop();
        self.levels = levels;
        self.home = home;
        bound
    }

    /// Replaces virtual columns among `row` inside `expr` by their values over `row`.
    pub(crate) fn expand_virtual(&mut self, expr: &mut BoundExpr, table: &Arc<TableDef>, row: &[ColumnRef]) -> Result<(), SqlError> {
        let used = expr.free_columns();
        let mut values: Vec<(ColumnRef, BoundExpr)> = Vec::new();
        for (at, id) in row.iter().enumerate().filter(|(at, id)| table.columns[*at].is_virtual() && used.contains(id)) {
            values.push((*id, self.computed_value(table, at, row)?));
        }
        if !values.is_empty() {
            expr.replace_columns(&|column| values.iter().find(|(id, _)| *id == column).map(|(_, value)| value.clone()));
        }
        Ok(())
    }
}

/// What can be said of an expression that a column is computed by.
#[derive(Debug, Clone)]
pub struct ComputedFacts {
    /// Its type.
    pub sql_type: SqlType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether the same row always gives the same value.
    pub deterministic: bool,
    /// Whether no floating-point number takes part.
    pub precise: bool,
    /// Positions of the columns it names.
    pub columns: Vec<usize>,
    /// Whether a user's function is called: 4933 where the value is to be stored.
    pub calls_user_code: bool,
}

/// Looks at a bound definition.
pub(crate) fn facts_of(bound: &BoundExpr, row: &[ColumnRef]) -> ComputedFacts {
    let mut facts = ComputedFacts {
        sql_type: bound.sql_type,
        nullable: bound.nullable,
        deterministic: true,
        precise: true,
        columns: Vec::new(),
        calls_user_code: false,
    };
    bound.walk(&mut |expr| {
        facts.precise &= !matches!(expr.sql_type, SqlType::Float | SqlType::Real);
        match &expr.kind {
            BoundExprKind::Function { name, .. } if *name == crate::functions::USER_FUNCTION => facts.calls_user_code = true,
            BoundExprKind::Function { name, .. } => {
                let known = crate::functions::signature::find(name).is_some();
                facts.deterministic &= !known || crate::functions::signature::is_deterministic(name);
            }
            BoundExprKind::Global(_) | BoundExprKind::Variable(_) | BoundExprKind::Subquery { .. } => facts.deterministic = false,
            BoundExprKind::Convert { operand, style, .. } => facts.deterministic &= is_stable(&operand.sql_type, &expr.sql_type, *style),
            BoundExprKind::Column(column) => facts.columns.extend(row.iter().position(|id| id == column)),
            _ => {}
        }
    });
    facts.columns.sort_unstable();
    facts.columns.dedup();
    facts
}

/// Whether a conversion means the same whatever the session's language and date format are.
fn is_stable(from: &SqlType, to: &SqlType, style: i32) -> bool {
    let (text, moment) = if from.is_text() { (true, to.is_date_time()) } else { (to.is_text(), from.is_date_time()) };
    let stable_style = matches!(style, 20 | 21 | 23..=25) || (style > 100 && !matches!(style, 106 | 107 | 109 | 113));
    let old = |sql_type: &SqlType| matches!(sql_type, SqlType::DateTime | SqlType::SmallDateTime);
    // Text of the newer types has one form, ISO 8601; reading text as one of them depends on the language.
    let exempt = to.is_text() && !old(from);
    !(text && moment) || stable_style || exempt
}
