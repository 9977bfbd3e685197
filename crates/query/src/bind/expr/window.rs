//! Window functions: `f(...) OVER (PARTITION BY ... ORDER BY ... frame)`.
//!
//! The call becomes a column; the query plans one Window operator per distinct partition and order. Without a frame the
//! default is RANGE UNBOUNDED PRECEDING .. CURRENT ROW if there is an ORDER BY, else the whole partition.

use super::aggregate::aggregate_function;
use crate::algebra::{BoundExpr, BoundExprKind, BoundWindow};
use crate::bind::error::error;
use crate::bind::{Binder, Clause, PendingWindow, coerce};
use crate::phys::{Frame, FrameBound};
use thawdb_tsql::ast::{self, Span};
use thawdb_types::{Scalar, SqlError, SqlType};

const WHOLE: Frame = Frame { rows: true, start: FrameBound::UnboundedPreceding, end: FrameBound::UnboundedFollowing };
const RUNNING: Frame = Frame { rows: false, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow };

/// Functions that exist only with OVER.
pub(super) fn is_window_only(upper: &str) -> bool {
    matches!(
        upper,
        "ROW_NUMBER" | "RANK" | "DENSE_RANK" | "NTILE" | "LAG" | "LEAD" | "FIRST_VALUE" | "LAST_VALUE" | "CUME_DIST" | "PERCENT_RANK"
    ) || is_percentile(upper)
}

/// Functions whose order stands in WITHIN GROUP.
fn is_percentile(upper: &str) -> bool {
    matches!(upper, "PERCENTILE_CONT" | "PERCENTILE_DISC")
}

impl Binder<'_> {
    pub(super) fn bind_window_call(&mut self, upper: &str, call: &ast::FunctionCall, span: Span) -> Result<BoundExpr, SqlError> {
        let Some(window) = &call.over else {
            return Err(error(10753, &[&call.name.name.text], span));
        };
        match self.levels.last() {
            Some(level) if level.in_window || level.in_aggregate => return Err(error(4109, &[], span)),
            Some(level) if matches!(level.clause, Clause::Select | Clause::OrderBy) => {}
            _ => return Err(error(4108, &[], span)),
        }
        let spec = self.window_spec(window, span)?;
        self.level().in_window = true;
        let bound = self.bind_window_parts(upper, call, &spec, span);
        self.level().in_window = false;
        let (function, sql_type, nullable, partition, order) = bound?;
        let column = self.columns.add("", sql_type, nullable);
        self.level().windows.push(PendingWindow { column, function, partition, order });
        Ok(BoundExpr { kind: BoundExprKind::Column(column), sql_type, nullable })
    }

    fn window_spec(&mut self, window: &ast::Window, span: Span) -> Result<ast::WindowSpec, SqlError> {
        let mut spec = match window {
            ast::Window::Named(name) => ast::WindowSpec { base: Some(name.clone()), ..Default::default() },
            ast::Window::Spec(spec) => (**spec).clone(),
        };
        let mut depth = 0;
        while let Some(base) = spec.base.take() {
            let named = &self.level().named_windows;
            let found = named.iter().find(|w| crate::bind::scope::same_name(&w.name.text, &base.text)).cloned();
            let found = found.ok_or_else(|| error(5362, &[&base.text], span))?;
            depth += 1;
            if depth > 32 {
                return Err(error(5365, &[], span));
            }
            spec.base = found.spec.base;
            if spec.partition_by.is_empty() {
                spec.partition_by = found.spec.partition_by;
            }
            if spec.order_by.is_empty() {
                spec.order_by = found.spec.order_by;
            }
            spec.frame = spec.frame.or(found.spec.frame);
        }
        Ok(spec)
    }

    #[allow(clippy::type_complexity)] // the parts of one structure, apart only for the ? operator's sake
    fn bind_window_parts(
        &mut self,
        upper: &str,
        call: &ast::FunctionCall,
        spec: &ast::WindowSpec,
        span: Span,
    ) -> Result<(BoundWindow, SqlType, bool, Vec<BoundExpr>, Vec<crate::algebra::BoundSortKey>), SqlError> {
        let mut partition = Vec::with_capacity(spec.partition_by.len());
        for expr in &spec.partition_by {
            partition.push(self.bind_expr(expr)?);
        }
        let order = self.bind_sort_keys(&spec.order_by)?;
        for item in &spec.order_by {
            if matches!(item.expr.kind, ast::ExprKind::Literal(ast::Literal::Integer(_))) {
                return Err(error(5308, &[], item.expr.span));
            }
        }
        if let Some(bad) = partition.iter().chain(order.iter().map(|k| &k.expr)).find(|e| e.sql_type.is_incomparable()) {
            return Err(error(306, &[], span)).map_err(|e: SqlError| if bad.sql_type == SqlType::Xml { error(305, &[], span) } else { e });
        }
        if is_percentile(upper) {
            let (function, order) = self.bind_percentile(upper, call, spec, span)?;
            let BoundWindow::Percentile { value, continuous, .. } = &function else { unreachable!("a percentile is bound as one") };
            let sql_type = if *continuous { SqlType::Float } else { value.sql_type };
            return Ok((function, sql_type, true, partition, order));
        }
        if !call.within_group.is_empty() {
            return Err(error(10757, &[&call.name.name.text], span));
        }
        let needs_order = is_window_only(upper);
        if needs_order && order.is_empty() {
            return Err(error(4112, &[&upper], span));
        }
        let frame = self.bind_frame(spec, order.is_empty(), span)?;
        if spec.frame.is_some() && (needs_order && !matches!(upper, "FIRST_VALUE" | "LAST_VALUE")) {
            return Err(error(10752, &[&upper], span));
        }
        let (function, sql_type, nullable) = self.bind_window_function(upper, call, frame, span)?;
        Ok((function, sql_type, nullable, partition, order))
    }

    /// `PERCENTILE_CONT(fraction) WITHIN GROUP (ORDER BY value)`: the function and the order it asks for.
    fn bind_percentile(
        &mut self,
        upper: &str,
        call: &ast::FunctionCall,
        spec: &ast::WindowSpec,
        span: Span,
    ) -> Result<(BoundWindow, Vec<crate::algebra::BoundSortKey>), SqlError> {
        let name = &call.name.name.text;
        if call.within_group.is_empty() {
            return Err(error(10754, &[name], span));
        }
        if call.within_group.len() > 1 {
            return Err(error(10751, &[name], span));
        }
        if !spec.order_by.is_empty() {
            return Err(error(10758, &[name], span));
        }
        if spec.frame.is_some() {
            return Err(error(10752, &[name], span));
        }
        let [fraction] = call.arguments.as_slice() else {
            return Err(error(174, &[&name.to_ascii_lowercase(), &1], span));
        };
        let fraction = coerce::convert(self.bind_expr(fraction)?, SqlType::Float, span)?;
        let mut order = self.bind_sort_keys(&call.within_group)?;
        let continuous = upper == "PERCENTILE_CONT";
        let key = &mut order[0].expr;
        if key.sql_type.is_incomparable() || (continuous && !(key.sql_type.is_numeric() && key.sql_type != SqlType::Bit)) {
            return Err(error(8117, &[&key.sql_type.message_name(), &name.to_ascii_lowercase()], span));
        }
        if continuous {
            *key = coerce::convert(key.clone(), SqlType::Float, span)?;
        }
        Ok((BoundWindow::Percentile { value: key.clone(), fraction, continuous }, order))
    }

    fn bind_window_function(
        &mut self,
        upper: &str,
        call: &ast::FunctionCall,
        frame: Frame,
        span: Span,
    ) -> Result<(BoundWindow, SqlType, bool), SqlError> {
        let count = |most: usize, least: usize| {
            if (least..=most).contains(&call.arguments.len()) {
                Ok(())
            } else {
                Err(error(174, &[&upper.to_ascii_lowercase(), &least], span))
            }
        };
        let ignore_nulls = call.null_treatment == Some(ast::NullTreatment::IgnoreNulls);
        if call.null_treatment.is_some() && !matches!(upper, "LAG" | "LEAD" | "FIRST_VALUE" | "LAST_VALUE") {
            return Err(error(102, &[&if ignore_nulls { "IGNORE" } else { "RESPECT" }], span));
        }
        match upper {
            "ROW_NUMBER" => count(0, 0).map(|()| (BoundWindow::RowNumber, SqlType::BigInt, false)),
            "RANK" => count(0, 0).map(|()| (BoundWindow::Rank, SqlType::BigInt, false)),
            "DENSE_RANK" => count(0, 0).map(|()| (BoundWindow::DenseRank, SqlType::BigInt, false)),
            "PERCENT_RANK" => count(0, 0).map(|()| (BoundWindow::PercentRank, SqlType::Float, false)),
            "CUME_DIST" => count(0, 0).map(|()| (BoundWindow::CumeDist, SqlType::Float, false)),
            "NTILE" => {
                count(1, 1)?;
                let groups = self.bind_expr(&call.arguments[0])?;
                Ok((BoundWindow::Ntile(coerce::convert(groups, SqlType::BigInt, span)?), SqlType::BigInt, false))
            }
            "LAG" | "LEAD" => {
                count(3, 1)?;
                let value = self.bind_expr(&call.arguments[0])?;
                let offset = match call.arguments.get(1) {
                    Some(offset) => self.bind_expr(offset)?,
                    None => BoundExpr::literal(Scalar::BigInt(1), SqlType::BigInt),
                };
                let offset = coerce::convert(offset, SqlType::BigInt, span)?;
                let default = call.arguments.get(2).map(|d| self.bind_expr(d)).transpose()?;
                let default = default.map(|d| coerce::convert(d, value.sql_type, span)).transpose()?;
                let sql_type = value.sql_type;
                Ok((BoundWindow::Lag { value, offset, default, lead: upper == "LEAD", ignore_nulls }, sql_type, true))
            }
            "FIRST_VALUE" | "LAST_VALUE" => {
                count(1, 1)?;
                let value = self.bind_expr(&call.arguments[0])?;
                let sql_type = value.sql_type;
                Ok((BoundWindow::FirstValue { value, last: upper == "LAST_VALUE", frame, ignore_nulls }, sql_type, true))
            }
            _ => {
                let name = &call.name.name.text;
                let function = aggregate_function(upper).filter(|f| *f != crate::expr::AggregateFunction::StringAgg);
                let function = function.ok_or_else(|| error(4113, &[name], span))?;
                if call.distinct {
                    return Err(error(10759, &[&"DISTINCT"], span));
                }
                let aggregate = self.bind_aggregate(function, call, true, span)?;
                let sql_type = aggregate.sql_type;
                let nullable = !matches!(function, crate::expr::AggregateFunction::Count | crate::expr::AggregateFunction::CountBig);
                Ok((BoundWindow::Aggregate { aggregate, frame }, sql_type, nullable))
            }
        }
    }

    fn bind_frame(&mut self, spec: &ast::WindowSpec, unordered: bool, span: Span) -> Result<Frame, SqlError> {
        let Some(frame) = &spec.frame else {
            return Ok(if unordered { WHOLE } else { RUNNING });
        };
        if unordered {
            return Err(error(10756, &[], span));
        }
        let start = self.bind_frame_bound(&frame.start)?;
        let end = frame.end.as_ref().map_or(Ok(FrameBound::CurrentRow), |e| self.bind_frame_bound(e))?;
        let offset = |b: FrameBound| matches!(b, FrameBound::Preceding(_) | FrameBound::Following(_));
        if !frame.rows && (offset(start) || offset(end)) {
            return Err(error(4194, &[], span));
        }
        if rank(start) > rank(end) {
            return Err(error(4193, &[&format!("BETWEEN {} AND {}", shown(start), shown(end))], span));
        }
        Ok(Frame { rows: frame.rows, start, end })
    }

    fn bind_frame_bound(&mut self, bound: &ast::FrameBound) -> Result<FrameBound, SqlError> {
        let count = |expr: &ast::Expr| match &expr.kind {
            ast::ExprKind::Literal(ast::Literal::Integer(n)) if *n >= 0 => Ok(*n as u64),
            _ => Err(error(102, &[&"PRECEDING"], expr.span)),
        };
        Ok(match bound {
            ast::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            ast::FrameBound::Preceding(n) => FrameBound::Preceding(count(n)?),
            ast::FrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::FrameBound::Following(n) => FrameBound::Following(count(n)?),
            ast::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
        })
    }
}

/// An end as messages name it.
fn shown(bound: FrameBound) -> &'static str {
    match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING",
        FrameBound::Preceding(_) => "PRECEDING",
        FrameBound::CurrentRow => "CURRENT ROW",
        FrameBound::Following(_) => "FOLLOWING",
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING",
    }
}

/// Where an end lies, coarsely: an end before its start is an error, offsets of one side are not compared.
fn rank(bound: FrameBound) -> u8 {
    match bound {
        FrameBound::UnboundedPreceding => 0,
        FrameBound::Preceding(_) => 1,
        FrameBound::CurrentRow => 2,
        FrameBound::Following(_) => 3,
        FrameBound::UnboundedFollowing => 4,
    }
}
