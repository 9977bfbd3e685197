//! Expressions: one file per kind, this file decides which.

mod aggregate;
mod case;
mod conversion;
mod function;
mod hierarchy;
mod literal;
mod operator;
mod predicate;
mod subquery;
mod window;
mod xml;

pub use conversion::resolve_type;
pub use literal::integer_digits;
pub(crate) use operator::binary;
pub(crate) use predicate::compare_moments as binary_compare;
pub use xml::MUTATION;

use super::Binder;
use super::error::{error, not_built};
use super::scope::same_name;
use crate::algebra::{BoundExpr, BoundExprKind};
use thawdb_tsql::ast::{self, ExprKind as A};
use thawdb_types::{SqlError, SqlType};

impl Binder<'_> {
    /// Binds a value.
    pub(crate) fn bind_expr(&mut self, expr: &ast::Expr) -> Result<BoundExpr, SqlError> {
        let span = expr.span;
        match &expr.kind {
            A::Literal(literal) => literal::bind_literal(literal, span),
            A::Column(name) => self.bind_column(name),
            A::Variable(variable) => self.bind_variable(variable),
            A::GlobalVariable(name) => bind_global(name, span),
            A::Pseudo { table, name } => self.bind_pseudo(table.as_deref(), name, span),
            A::Default => Err(error(156, &[&"DEFAULT"], span)),
            A::Paren(inner) => self.bind_expr(inner),
            A::Unary { op, operand } => self.bind_unary(*op, operand, span),
            A::Binary { op, left, right } => self.bind_binary(*op, left, right, span),
            A::Case { operand, branches, otherwise } => self.bind_case(operand.as_deref(), branches, otherwise.as_deref(), span),
            A::Cast { operand, data_type, try_ } => self.bind_cast(operand, data_type, None, *try_, span),
            A::Convert { data_type, operand, style, try_ } => self.bind_cast(operand, data_type, style.as_deref(), *try_, span),
            A::Parse { operand, data_type, culture, try_ } => self.bind_parse(operand, data_type, culture.as_deref(), *try_, span),
            A::Iif { condition, then, otherwise } => self.bind_iif(condition, then, otherwise),
            A::Coalesce(arguments) => self.bind_coalesce(arguments, span),
            A::NullIf(left, right) => self.bind_nullif(left, right, span),
            A::Function(call) => self.bind_call(call, span),
            A::Niladic(which) => self.bind_niladic(*which, span),
            A::Trim { side, characters, source } => self.bind_trim(*side, characters.as_deref(), source, span),
            A::Collate { operand, collation } => self.bind_collate(operand, collation, span),
            A::Subquery(query) => self.bind_scalar_subquery(query, span),
            A::AtTimeZone { operand, zone } => self.bind_function("AT TIME ZONE", &[operand, zone], span),
            A::NextValueFor { sequence, over } => match over {
                None => self.bind_next_value(sequence),
                Some(_) => Err(not_built("NEXT VALUE FOR ... OVER", span)),
            },
            A::Method { receiver, method, arguments } => self.bind_method(receiver, method, arguments.as_deref(), span),
            A::StaticMethod { data_type, method, arguments } => self.bind_static_method(data_type, method, arguments.as_deref(), span),
            A::JsonObject { members, absent_on_null } => {
                let arguments = members.iter().flat_map(|(key, value)| [key, value]);
                self.bind_json("JSON_OBJECT", arguments, *absent_on_null, span)
            }
            A::JsonArray { elements, absent_on_null } => self.bind_json("JSON_ARRAY", elements.iter(), *absent_on_null, span),
            A::PartitionFunction { .. } => Err(not_built("$PARTITION", span)),
            _ => Err(error(4145, &[&""], span)),
        }
    }

    /// Binds a search condition.
    pub(crate) fn bind_condition(&mut self, expr: &ast::Expr) -> Result<BoundExpr, SqlError> {
        let span = expr.span;
        match &expr.kind {
            A::Paren(inner) => self.bind_condition(inner),
            A::And(terms) => Ok(BoundExpr::and(self.bind_conditions(terms)?)),
            A::Or(terms) => {
                let terms = self.bind_conditions(terms)?;
                let nullable = terms.iter().any(|t| t.nullable);
                Ok(BoundExpr { kind: BoundExprKind::Or(terms), sql_type: SqlType::Bit, nullable })
            }
            A::Not(inner) => {
                let inner = self.bind_condition(inner)?;
                let nullable = inner.nullable;
                Ok(BoundExpr { kind: BoundExprKind::Not(Box::new(inner)), sql_type: SqlType::Bit, nullable })
            }
            A::Compare { op, left, right } => self.bind_compare(*op, left, right, span),
            A::Quantified { op, quantifier, left, query } => self.bind_quantified(*op, *quantifier, left, query, span),
            A::IsNull { operand, negated } => self.bind_is_null(operand, *negated),
            A::IsDistinctFrom { left, right, negated } => self.bind_is_distinct(left, right, *negated, span),
            A::Between { operand, low, high, negated } => self.bind_between(operand, low, high, *negated, span),
            A::InList { operand, list, negated } => self.bind_in_list(operand, list, *negated, span),
            A::InQuery { operand, query, negated } => self.bind_in_query(operand, query, *negated, span),
            A::Like { operand, pattern, escape, negated } => self.bind_like(operand, pattern, escape.as_deref(), *negated, span),
            A::Exists(query) => self.bind_exists(query),
            A::FullText { predicate, .. } => Err(not_built(predicate, span)),
            A::UpdatedColumn(column) => match self.cx.updated(&column.text) {
                Some(updated) => {
                    // The statement is the same for as long as the trigger runs: no need to ask again.
                    let literal = |value: i32| Box::new(BoundExpr::literal(thawdb_types::Scalar::Int(value), SqlType::Int));
                    let (left, right) = (literal(i32::from(updated)), literal(1));
                    let kind = BoundExprKind::Compare { op: crate::expr::CompareOp::Equal, left, right };
                    Ok(BoundExpr { kind, sql_type: SqlType::Bit, nullable: false })
                }
                None => Err(error(140, &[], span)),
            },
            A::CurrentOf(_) => Err(not_built("WHERE CURRENT OF", span)),
            _ => Err(error(4145, &[&""], span)),
        }
    }

    fn bind_conditions(&mut self, terms: &[ast::Expr]) -> Result<Vec<BoundExpr>, SqlError> {
        terms.iter().map(|t| self.bind_condition(t)).collect()
    }

    fn bind_column(&mut self, name: &ast::ColumnName) -> Result<BoundExpr, SqlError> {
        if self.levels.is_empty() {
            return Err(match &name.table {
                None => error(128, &[&name.column.text], name.span),
                Some(_) => error(4104, &[&super::scope::shown(name)], name.span),
            });
        }
        let (column, _) = self.resolve(name)?;
        Ok(self.column_expr(column))
    }

    fn bind_variable(&mut self, variable: &ast::Variable) -> Result<BoundExpr, SqlError> {
        if let Some(parameters) = self.parameters.last() {
            // The text of a view or inline function sees no variables but its own parameters.
            let found = parameters.iter().find(|(name, _)| same_name(name, &variable.name));
            return found.map(|(_, value)| value.clone()).ok_or_else(|| error(137, &[&variable.name], variable.span));
        }
        let Some((index, sql_type)) = self.cx.variable(&variable.name) else {
            let undeclared = self.cx.undeclared(&variable.name).map(super::undeclared::parameter);
            return undeclared.ok_or_else(|| error(137, &[&variable.name], variable.span));
        };
        Ok(BoundExpr::new(BoundExprKind::Variable(index), sql_type))
    }

    fn bind_pseudo(&mut self, table: Option<&ast::ObjectName>, name: &str, span: ast::Span) -> Result<BoundExpr, SqlError> {
        if let Some(action) = self.merge_action.filter(|_| table.is_none() && name.eq_ignore_ascii_case("action")) {
            return Ok(self.column_expr(action));
        }
        if !name.eq_ignore_ascii_case("identity") && !name.eq_ignore_ascii_case("rowguid") {
            return Err(not_built(&format!("${name}"), span));
        }
        let tables = self.levels.last().map(|l| l.tables.as_slice()).unwrap_or_default();
        let tables = tables.iter().filter(|t| table.is_none_or(|name| t.is_called(name)));
        let column = tables.flat_map(|t| &t.columns).find(|c| self.columns.info(c.column).identity);
        match column {
            Some(column) if name.eq_ignore_ascii_case("identity") => {
                self.use_column(column.column);
                Ok(self.column_expr(column.column))
            }
            _ => Err(error(207, &[&format!("${name}")], span)),
        }
    }
}

fn bind_global(name: &str, span: ast::Span) -> Result<BoundExpr, SqlError> {
    let lower = name.to_ascii_lowercase();
    let sql_type = crate::functions::signature::global_type(&lower).ok_or_else(|| error(137, &[&name], span))?;
    Ok(BoundExpr::new(BoundExprKind::Global(lower.into()), sql_type))
}
