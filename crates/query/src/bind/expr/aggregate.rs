//! Aggregates: their types, and to which query they belong.
//!
//! An aggregate belongs to the innermost query any of whose columns its argument uses; with columns of an outer query
//! alone it is that query's. The call becomes a column that the query's Aggregate will produce.

use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind, BoundSortKey};
use crate::bind::error::{error, not_built};
use crate::bind::{Binder, Clause, coerce};
use crate::expr::AggregateFunction as F;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::{MaxLength, Scalar, SqlError, SqlType};

/// The aggregate called `upper`.
pub(super) fn aggregate_function(upper: &str) -> Option<F> {
    Some(match upper {
        // An exact count is within the error that is allowed it.
        "APPROX_COUNT_DISTINCT" => F::CountBig,
        "COUNT" => F::Count,
        "COUNT_BIG" => F::CountBig,
        "SUM" => F::Sum,
        "AVG" => F::Avg,
        "MIN" => F::Min,
        "MAX" => F::Max,
        "STDEV" => F::StDev,
        "STDEVP" => F::StDevP,
        "VAR" => F::Var,
        "VARP" => F::VarP,
        "CHECKSUM_AGG" => F::ChecksumAgg,
        "STRING_AGG" => F::StringAgg,
        _ => return None,
    })
}

fn name_of(function: F) -> &'static str {
    match function {
        F::Count => "count",
        F::CountBig => "count_big",
        F::Sum => "sum",
        F::Avg => "avg",
        F::Min => "min",
        F::Max => "max",
        F::StDev => "stdev",
        F::StDevP => "stdevp",
        F::Var => "var",
        F::VarP => "varp",
        F::ChecksumAgg => "checksum_agg",
        F::StringAgg => "string_agg",
        F::Any => "any",
    }
}

/// Type of an aggregate's result, and what its argument is converted to.
pub(crate) fn aggregate_type(function: F, argument: &SqlType, span: Span) -> Result<(SqlType, SqlType), SqlError> {
    let invalid = || error(8117, &[&argument.message_name(), &name_of(function)], span);
    let number = argument.is_numeric() && *argument != SqlType::Bit;
    Ok(match function {
        F::Count => (SqlType::Int, *argument),
        F::CountBig => (SqlType::BigInt, *argument),
        F::Sum | F::Avg if !number => return Err(invalid()),
        F::Sum | F::Avg => match *argument {
            SqlType::TinyInt | SqlType::SmallInt | SqlType::Int => (SqlType::Int, SqlType::Int),
            SqlType::SmallMoney | SqlType::Money => (SqlType::Money, SqlType::Money),
            SqlType::Real | SqlType::Float => (SqlType::Float, SqlType::Float),
            t @ SqlType::Decimal { scale, numeric, .. } => {
                let scale = if function == F::Avg { scale.max(6) } else { scale };
                (SqlType::Decimal { precision: 38, scale, numeric }, t)
            }
            other => (other, other),
        },
        F::Min | F::Max if argument.is_incomparable() || *argument == SqlType::Bit => return Err(invalid()),
        F::Min | F::Max | F::Any => (*argument, *argument),
        F::StDev | F::StDevP | F::Var | F::VarP if !number => return Err(invalid()),
        F::StDev | F::StDevP | F::Var | F::VarP => (SqlType::Float, SqlType::Float),
        F::ChecksumAgg if !argument.is_integer() => return Err(invalid()),
        F::ChecksumAgg => (SqlType::Int, SqlType::Int),
        F::StringAgg => {
            let collation = argument.collation().unwrap_or(thawdb_types::Collation::DEFAULT);
            let max = argument.is_large();
            let length = |n| if max { MaxLength::Max } else { MaxLength::Limited(n) };
            match argument {
                t if t.is_unicode() => (SqlType::NVarChar { length: length(4000), collation }, *t),
                t if t.is_text() => (SqlType::VarChar { length: length(8000), collation }, *t),
                _ => (SqlType::nvarchar(4000), SqlType::nvarchar(4000)),
            }
        }
    })
}

impl Binder<'_> {
    pub(super) fn bind_aggregate_call(&mut self, function: F, call: &ast::FunctionCall, span: Span) -> Result<BoundExpr, SqlError> {
        let aggregate = self.bind_aggregate(function, call, false, span)?;
        let owner = self.aggregate_owner(&aggregate, span)?;
        let nullable = !matches!(function, F::Count | F::CountBig);
        let sql_type = aggregate.sql_type;
        let known = self.levels[owner].aggregates.iter().find(|(_, a)| same_aggregate(a, &aggregate)).map(|(c, _)| *c);
        let column = match known {
            Some(column) => column,
            None => {
                let column = self.columns.add("", sql_type, nullable);
                self.levels[owner].aggregates.push((column, aggregate));
                column
            }
        };
        Ok(BoundExpr { kind: BoundExprKind::Column(column), sql_type, nullable })
    }

    /// Binds function and argument without deciding whose it is. Over a window (`windowed`) the argument may hold aggregates
    /// of the grouped query below.
    pub(super) fn bind_aggregate(
        &mut self,
        function: F,
        call: &ast::FunctionCall,
        windowed: bool,
        span: Span,
    ) -> Result<BoundAggregate, SqlError> {
        let name = name_of(function);
        let wanted = if function == F::StringAgg { 2 } else { 1 };
        match self.levels.last() {
            None => return Err(error(147, &[], span)),
            Some(level) if level.in_aggregate => return Err(error(130, &[], span)),
            Some(_) => {}
        }
        if call.star {
            if !matches!(function, F::Count | F::CountBig) {
                return Err(error(102, &[&"*"], span));
            }
            let sql_type = if function == F::Count { SqlType::Int } else { SqlType::BigInt };
            let order = Vec::new();
            return Ok(BoundAggregate { function, argument: None, distinct: false, sql_type, separator: None, order });
        }
        if call.arguments.len() != wanted {
            return Err(error(174, &[&name, &wanted], span));
        }
        self.level().in_aggregate = !windowed;
        let argument = self.bind_expr(&call.arguments[0]);
        let order = self.bind_sort_keys(&call.within_group);
        self.level().in_aggregate = false;
        let (argument, order) = (argument?, order?);
        if argument.has_subquery() {
            return Err(error(130, &[], span));
        }
        if argument.is_null() {
            return Err(error(8117, &[&"NULL", &name], span));
        }
        let approximate = call.name.name.is("APPROX_COUNT_DISTINCT");
        let distinct = approximate || call.distinct && !matches!(function, F::Min | F::Max);
        if distinct && argument.sql_type.is_incomparable() {
            return Err(error(8117, &[&argument.sql_type.message_name(), &name], span));
        }
        let (sql_type, argument_type) = aggregate_type(function, &argument.sql_type, span)?;
        let argument = coerce::convert(argument, argument_type, span)?;
        let separator = if function == F::StringAgg { Some(self.bind_separator(&call.arguments[1])?) } else { None };
        Ok(BoundAggregate { function, argument: Some(argument), distinct, sql_type, separator, order })
    }

    fn bind_separator(&mut self, expr: &ast::Expr) -> Result<String, SqlError> {
        match self.bind_expr(expr)?.kind {
            BoundExprKind::Literal(Scalar::Text(text)) => Ok(text),
            BoundExprKind::Literal(Scalar::Null) => Ok(String::new()),
            BoundExprKind::Variable(_) => Err(not_built("STRING_AGG with a variable separator", expr.span)),
            _ => Err(error(8733, &[], expr.span)),
        }
    }

    /// Binds ORDER BY lists that know no positions and no aliases.
    pub(crate) fn bind_sort_keys(&mut self, items: &[ast::OrderItem]) -> Result<Vec<BoundSortKey>, SqlError> {
        items.iter().map(|i| Ok(BoundSortKey { expr: self.bind_expr(&i.expr)?, descending: i.descending })).collect()
    }

    /// The level the aggregate belongs to; 147, 157, 144 where none may stand.
    fn aggregate_owner(&self, aggregate: &BoundAggregate, span: Span) -> Result<usize, SqlError> {
        let innermost = self.levels.len() - 1;
        let mut used = Vec::new();
        aggregate.exprs().for_each(|e| e.collect_free(&mut used));
        let owns = |level: usize| self.levels[level].tables.iter().flat_map(|t| &t.columns).any(|c| used.contains(&c.column));
        let owner = if used.is_empty() { innermost } else { (0..=innermost).rev().find(|l| owns(*l)).unwrap_or(innermost) };
        match self.levels[owner].clause {
            Clause::Select | Clause::Having | Clause::OrderBy => Ok(owner),
            Clause::GroupBy => Err(error(144, &[], span)),
            Clause::Set => Err(error(157, &[], span)),
            Clause::Output => Err(error(158, &[], span)),
            Clause::From | Clause::Where | Clause::Other => Err(error(147, &[], span)),
        }
    }
}

fn same_aggregate(a: &BoundAggregate, b: &BoundAggregate) -> bool {
    let arguments = match (&a.argument, &b.argument) {
        (Some(x), Some(y)) => x.same(y),
        (None, None) => true,
        _ => false,
    };
    arguments
        && a.function == b.function
        && a.distinct == b.distinct
        && a.separator == b.separator
        && a.order.is_empty()
        && b.order.is_empty()
}
