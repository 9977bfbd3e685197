//! Table-valued functions that every database has: OPENJSON, STRING_SPLIT, GENERATE_SERIES; and nodes() of an xml value.

use super::{BoundTable, derived_scope, need_alias};
use crate::algebra::BoundExpr;
use crate::bind::error::error;
use crate::bind::expr::resolve_type;
use crate::bind::query::OutputName;
use crate::bind::{Binder, Clause, coerce};
use crate::functions::signature::constant_int;
use crate::functions::table_valued::{GenerateSeries, StringSplit};
use crate::json::table::{OpenJson, OpenJsonWith, SchemaColumn};
use crate::phys::{OutputColumn, RowSource};
use crate::xml::methods::Nodes;
use std::sync::Arc;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::sql_type::TypeUse;
use thawdb_types::{Collation, MaxLength, SqlError, SqlType};

type Built = (Arc<dyn RowSource>, Vec<BoundExpr>);

impl Binder<'_> {
    /// The function called `name` with its bound arguments in their types; `None` if there is none of that name.
    pub(super) fn built_in_table_function(
        &mut self,
        name: &str,
        arguments: Vec<BoundExpr>,
        schema: &[ast::RowsetColumn],
        span: Span,
    ) -> Result<Option<Built>, SqlError> {
        Ok(Some(match name.to_ascii_uppercase().as_str() {
            "OPENJSON" => open_json(arguments, schema, span)?,
            "STRING_SPLIT" => string_split(arguments, span)?,
            "GENERATE_SERIES" => generate_series(arguments, span)?,
            _ => return Ok(None),
        }))
    }
}

impl Binder<'_> {
    /// `x.nodes('path') AS t(c)`.
    pub(super) fn bind_nodes(&mut self, call: &ast::Expr, alias: Option<&ast::Alias>, span: Span) -> Result<BoundTable, SqlError> {
        let ast::ExprKind::Method { receiver, method, arguments: Some(arguments) } = &call.kind else {
            return Err(error(102, &[&"."], span));
        };
        let [path] = arguments.as_slice() else {
            return Err(error(174, &[&"nodes", &1], span));
        };
        if !method.is("nodes") {
            return Err(error(8137, &[&method.text], span));
        }
        let alias = need_alias(alias, span)?;
        let (values, _) = self.within(Clause::From, |b| b.bind_path(receiver, path, "nodes()"))?;
        let (rel, columns) = self.source_columns(Arc::new(Nodes::new()), values);
        let mut outputs: Vec<OutputName> =
            columns.iter().map(|c| OutputName { name: c.name.clone(), column: c.column, table: None }).collect();
        crate::bind::query::rename_outputs(&mut outputs, &alias.columns, &alias.name.text, span)?;
        Ok((rel, vec![derived_scope(&outputs, &alias.name.text)]))
    }
}

fn check_count(name: &str, count: usize, least: usize, most: usize, span: Span) -> Result<(), SqlError> {
    if (least..=most).contains(&count) { Ok(()) } else { Err(error(if count > most { 8144 } else { 313 }, &[&name], span)) }
}

fn unicode(expr: BoundExpr, span: Span) -> Result<BoundExpr, SqlError> {
    if expr.sql_type.is_text() { Ok(expr) } else { coerce::convert(expr, SqlType::NVARCHAR_MAX, span) }
}

fn open_json(arguments: Vec<BoundExpr>, schema: &[ast::RowsetColumn], span: Span) -> Result<Built, SqlError> {
    check_count("OPENJSON", arguments.len(), 1, 2, span)?;
    let arguments = arguments.into_iter().map(|a| unicode(a, span)).collect::<Result<_, _>>()?;
    if schema.is_empty() {
        return Ok((Arc::new(OpenJson::new()), arguments));
    }
    let columns = schema.iter().enumerate().map(|(at, column)| schema_column(at, column)).collect::<Result<_, _>>()?;
    Ok((Arc::new(OpenJsonWith::new(columns)?), arguments))
}

fn schema_column(at: usize, column: &ast::RowsetColumn) -> Result<SchemaColumn, SqlError> {
    let ordinal = i32::try_from(at + 1).unwrap_or(i32::MAX);
    let sql_type = resolve_type(&column.data_type, TypeUse::Column { ordinal, name: &column.name.text })?;
    if column.as_json && !matches!(sql_type, SqlType::NVarChar { length: MaxLength::Max, .. }) {
        return Err(error(13618, &[], column.name.span));
    }
    let path = match &column.path {
        None => format!("$.\"{}\"", column.name.text.replace('\\', "\\\\").replace('"', "\\\"")),
        Some(ast::Expr { kind: ast::ExprKind::Literal(ast::Literal::String { value, .. }), .. }) => value.clone(),
        Some(other) => return Err(error(102, &[&"WITH"], other.span)),
    };
    let output = OutputColumn { name: column.name.text.clone(), sql_type, nullable: true, identity: false };
    Ok(SchemaColumn { output, path, as_json: column.as_json })
}

fn string_split(arguments: Vec<BoundExpr>, span: Span) -> Result<Built, SqlError> {
    check_count("STRING_SPLIT", arguments.len(), 2, 3, span)?;
    let ordinal = match arguments.get(2) {
        None => false,
        Some(expr) if expr.is_null() => false,
        Some(expr) => match constant_int(expr) {
            Some(0) => false,
            Some(1) => true,
            _ => return Err(error(4199, &[&"enable_ordinal", &3, &"string_split"], span)),
        },
    };
    let mut arguments: Vec<BoundExpr> = arguments.into_iter().take(2).map(|a| unicode(a, span)).collect::<Result<_, _>>()?;
    let text = arguments[0].sql_type;
    let collation = text.collation().unwrap_or(Collation::DEFAULT);
    // The pieces are as long as the text may be.
    let value = match (text.is_unicode(), text.length()) {
        (true, Some(units)) if !text.is_large() => SqlType::NVarChar { length: MaxLength::Limited(units), collation },
        (false, Some(bytes)) if !text.is_large() => SqlType::VarChar { length: MaxLength::Limited(bytes), collation },
        (true, _) => SqlType::NVarChar { length: MaxLength::Max, collation },
        (false, _) => SqlType::VarChar { length: MaxLength::Max, collation },
    };
    arguments.truncate(2);
    Ok((Arc::new(StringSplit::new(value, ordinal)), arguments))
}

fn generate_series(arguments: Vec<BoundExpr>, span: Span) -> Result<Built, SqlError> {
    check_count("GENERATE_SERIES", arguments.len(), 2, 3, span)?;
    let (arguments, sql_type) = coerce::unify(arguments.into_iter().map(|a| (a, span)).collect(), "GENERATE_SERIES")?;
    let counts = sql_type.is_integer() || matches!(sql_type, SqlType::Decimal { .. });
    if !counts || sql_type == SqlType::Bit {
        return Err(error(5373, &[], span));
    }
    Ok((Arc::new(GenerateSeries::new(sql_type)), arguments))
}
