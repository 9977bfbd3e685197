//! Temporal tables as statements meet them: FOR SYSTEM_TIME, the columns of the period, and what may not be written.
//!
//! ```text
//! t FOR SYSTEM_TIME clause ─► the table's rows ∪ its history's, each with  start < end  and the clause's condition
//!     AS OF x              start <= x AND end > x
//!     FROM x TO y          start <  y AND end > x
//!     BETWEEN x AND y      start <= y AND end > x
//!     CONTAINED IN (x, y)  start >= x AND end <= y
//! INSERT, UPDATE           start := the transaction's time, end := the end of time
//! ```
//! 1. Old rows are the engine's to keep: it sees each row that changes. What is bound here makes new rows right.
//! 2. A clause at a view holds for every temporal table within it (13590 for one that has its own).
//! 3. Rows older than the retention period are left out of every clause but that of a table without one.
//!
//! Messages: 13536, 13537 (the period's columns), 13544 (no temporal table), 13559 to 13562 (writes to a history), 13590.

use super::Binder;
use super::coerce;
use super::error::error;
use super::expr::binary_compare;
use super::scope::{ScopeColumn, ScopeTable};
use super::table_ref::BoundTable;
use crate::algebra::{BoundExpr, BoundExprKind, ColumnRef, Rel};
use crate::compile::ChangeAction;
use crate::expr::CompareOp;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_catalog::temporal::PeriodColumn;
use thawdb_tsql::ast::{self, ForSystemTime};
use thawdb_types::{Scalar, SqlError, SqlType};

/// The type in which moments are compared.
const MOMENT: SqlType = SqlType::DateTime2 { scale: 7 };
/// 9999-12-31 23:59:59.9999999.
const END_OF_TIME: i64 = 3_652_059 * 864_000_000_000 - 1;
/// What plans call the time of the transaction.
pub(crate) const TRANSACTION_TIME: &str = "TRANSACTION TIME";
/// What plans call the moment before which rows of a history are no longer shown.
pub(crate) const RETAINED_SINCE: &str = "RETAINED SINCE";

/// FOR SYSTEM_TIME with its moments bound.
#[derive(Debug, Clone)]
pub(crate) enum PeriodTimes {
    AsOf(BoundExpr),
    FromTo(BoundExpr, BoundExpr),
    Between(BoundExpr, BoundExpr),
    ContainedIn(BoundExpr, BoundExpr),
    All,
}

impl Binder<'_> {
    /// The name that messages have for a table: with database and schema.
    pub(crate) fn full_name(&self, table: &TableDef) -> String {
        let database = self.cx.session().function("DB_NAME", &[Scalar::Int(table.database.0)]);
        match database {
            Ok(Scalar::Text(database)) => format!("{database}.{}.{}", table.schema_name, table.name),
            _ => format!("{}.{}", table.schema_name, table.name),
        }
    }

    /// Binds the clause: moments are constants and variables.
    pub(crate) fn bind_system_time(&mut self, clause: &ForSystemTime, span: ast::Span) -> Result<PeriodTimes, SqlError> {
        let mut moment = |expr: &ast::Expr| {
            if !is_moment(expr) {
                return Err(error(102, &[&"SYSTEM_TIME"], span));
            }
            let bound = self.bind_expr(expr)?;
            coerce::convert(bound, MOMENT, expr.span)
        };
        Ok(match clause {
            ForSystemTime::AsOf(at) => PeriodTimes::AsOf(moment(at)?),
            ForSystemTime::FromTo(from, to) => PeriodTimes::FromTo(moment(from)?, moment(to)?),
            ForSystemTime::Between(from, to) => PeriodTimes::Between(moment(from)?, moment(to)?),
            ForSystemTime::ContainedIn(from, to) => PeriodTimes::ContainedIn(moment(from)?, moment(to)?),
            ForSystemTime::All => PeriodTimes::All,
        })
    }

    /// A temporal table's rows of some time; 13544 for a table that has no history.
    pub(crate) fn rows_of_time(
        &mut self,
        table: Arc<TableDef>,
        named: &ast::NamedTable,
        clause: &PeriodTimes,
    ) -> Result<BoundTable, SqlError> {
        let history = table.temporal.versioning.and_then(|versioning| {
            let catalog = self.catalog(table.database)?;
            catalog.tables.get(&versioning.history.0).cloned()
        });
        let Some(history) = history else {
            return Err(error(13_544, &[&self.full_name(&table)], named.name.span).with_state(2));
        };
        let (current, mut scope) = self.table_reference(table.clone(), Some(&named.name), named.alias.as_ref(), &named.hints)?;
        let (old, old_scope) = self.table_reference(history, None, None, &[])?;
        let current = self.of_time(current, &scope[0], &table, clause)?;
        let old = self.of_time(old, &old_scope[0], &table, clause)?;
        let of = |scope: &ScopeTable| scope.columns.iter().map(|column| column.column).collect::<Vec<ColumnRef>>();
        let (current_columns, old_columns) = (of(&scope[0]), of(&old_scope[0]));
        // What is read of either is a use of both tables' columns.
        current_columns.iter().chain(&old_columns).for_each(|column| self.use_column(*column));
        let mut columns = Vec::with_capacity(current_columns.len());
        for (column, other) in scope[0].columns.iter_mut().zip(&old_columns) {
            let (own, other) = (self.columns.info(column.column).clone(), self.columns.info(*other).nullable);
            let id = self.columns.add(own.name, own.sql_type, own.nullable || other);
            *column = ScopeColumn { column: id, ..column.clone() };
            columns.push(id);
        }
        scope[0].base = None;
        Ok((Rel::UnionAll { inputs: vec![(current, current_columns), (old, old_columns)], columns }, scope))
    }

    /// The rows of one of both tables that were valid at the time.
    fn of_time(&self, rel: Rel, scope: &ScopeTable, table: &TableDef, clause: &PeriodTimes) -> Result<Rel, SqlError> {
        let Some((start, end)) = table.period_positions() else { return Ok(rel) };
        let column = |at: usize| self.column_expr(scope.columns[at].column);
        let span = self.statement;
        let compare = |op: CompareOp, left: BoundExpr, right: &BoundExpr| binary_compare(op, left, right.clone(), span);
        let mut terms = vec![compare(CompareOp::Less, column(start), &column(end))?];
        match clause {
            PeriodTimes::All => {}
            PeriodTimes::AsOf(at) => {
                terms.push(compare(CompareOp::LessOrEqual, column(start), at)?);
                terms.push(compare(CompareOp::Greater, column(end), at)?);
            }
            PeriodTimes::FromTo(from, to) => {
                terms.push(compare(CompareOp::Less, column(start), to)?);
                terms.push(compare(CompareOp::Greater, column(end), from)?);
            }
            PeriodTimes::Between(from, to) => {
                terms.push(compare(CompareOp::LessOrEqual, column(start), to)?);
                terms.push(compare(CompareOp::Greater, column(end), from)?);
            }
            PeriodTimes::ContainedIn(from, to) => {
                terms.push(compare(CompareOp::GreaterOrEqual, column(start), from)?);
                terms.push(compare(CompareOp::LessOrEqual, column(end), to)?);
            }
        }
        if let Some((count, unit)) = table.temporal.versioning.and_then(|versioning| versioning.retention) {
            let literal = |value: i32| BoundExpr::literal(Scalar::Int(value), SqlType::Int);
            let arguments = vec![literal(count), literal(i32::from(unit as u8))];
            let since = BoundExpr::new(BoundExprKind::Function { name: RETAINED_SINCE, arguments }, MOMENT);
            terms.push(compare(CompareOp::GreaterOrEqual, column(end), &since)?);
        }
        Ok(rel.filter(terms))
    }

    /// What a new row has in a column of the period.
    pub(crate) fn period_value(&self, table: &TableDef, at: usize) -> Option<BoundExpr> {
        let value = match table.period_column(at)? {
            PeriodColumn::Start => BoundExpr {
                kind: BoundExprKind::Function { name: TRANSACTION_TIME, arguments: Vec::new() },
                sql_type: MOMENT,
                nullable: false,
            },
            PeriodColumn::End => {
                BoundExpr::literal(Scalar::DateTime2(end_of_time(&table.columns[at].sql_type)), table.columns[at].sql_type)
            }
        };
        let to = table.columns[at].sql_type;
        Some(if value.sql_type == to { value } else { coerce::cast(value, to) })
    }

    /// An UPDATE makes the row a new one: its period begins now.
    pub(crate) fn begin_period(&self, table: &TableDef, set: &mut Vec<(usize, BoundExpr)>) {
        if let Some((start, _)) = table.period_positions() {
            set.extend(self.period_value(table, start).map(|value| (start, value)));
        }
    }

    /// 13559 to 13562 for a statement that would write to a history.
    pub(crate) fn refuse_history(&self, table: &TableDef, action: Option<ChangeAction>, span: ast::Span) -> Result<(), SqlError> {
        if table.temporal.history_of.is_none() || self.cx.writes_history() {
            return Ok(());
        }
        let number = match action {
            Some(ChangeAction::Insert) => 13_559,
            Some(ChangeAction::Delete) => 13_560,
            Some(ChangeAction::Update) => 13_561,
            None => 13_562,
        };
        Err(error(number, &[&self.full_name(table)], span))
    }
}

/// The last moment that a type has.
pub(crate) fn end_of_time(sql_type: &SqlType) -> i64 {
    let unit = 10i64.pow(7 - u32::from(sql_type.scale()).min(7));
    END_OF_TIME / unit * unit
}

fn is_moment(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ast::ExprKind::Literal(_) | ast::ExprKind::Variable(_) => true,
        ast::ExprKind::Paren(inner) => is_moment(inner),
        _ => false,
    }
}
