//! FOR JSON: the query's rows as one JSON text.
//!
//! ```text
//! rows -> Project(row as JSON text) -> Aggregate(texts joined by commas) -> Project(brackets and root) [-> pieces]
//! ```
//! A statement's own result is handed out in pieces of 2,033 characters, one a row, as SQL Server does; a subquery is one
//! value, NULL for no row. The rows keep the query's order: nothing above it reorders.

use super::{BoundQuery, OutputName, QueryUse, auto_nesting};
use crate::algebra::{BoundAggregate, BoundExpr, BoundExprKind, ColumnRef, Rel};
use crate::bind::Binder;
use crate::bind::error::{error, not_built};
use crate::expr::AggregateFunction;
use crate::json::format::Layout;
use crate::json::table::Pieces;
use crate::phys::JoinKind;
use std::sync::Arc;
use thawdb_tsql::ast::{self, OptionItem, OptionValue, QueryBody, TableRefKind};
use thawdb_types::{Scalar, SqlError, SqlType};

/// Name of the one column of a statement's own FOR JSON result.
const RESULT_NAME: &str = "JSON_F52E2B61-18A1-11d1-B105-00805F49916B";

/// How rows are put together.
pub(super) enum Joining<'j> {
    /// One behind the other, something between them.
    Flat(&'j str),
    /// Into one another by a function, given the names of the levels.
    Nested(&'static str, Vec<String>),
}

#[derive(Default)]
struct Options {
    root: Option<String>,
    include_nulls: bool,
    without_wrapper: bool,
}

impl Options {
    fn read(options: &[OptionItem], span: ast::Span) -> Result<Self, SqlError> {
        let mut read = Self::default();
        for option in options {
            match option.name.as_str() {
                "ROOT" => read.root = Some(root_name(&option.value)),
                "INCLUDE_NULL_VALUES" => read.include_nulls = true,
                "WITHOUT_ARRAY_WRAPPER" => read.without_wrapper = true,
                other => return Err(error(102, &[&other], option.span)),
            }
        }
        if read.root.is_some() && read.without_wrapper { Err(error(13620, &[], span)) } else { Ok(read) }
    }

    /// What stands before and behind the rows.
    fn wrapping(&self) -> String {
        match &self.root {
            Some(root) => {
                let mut before = String::from("{\"");
                crate::json::escape_into(&mut before, root);
                before + "\":[\u{1f}]}"
            }
            None if self.without_wrapper => "\u{1f}".to_owned(),
            None => "[\u{1f}]".to_owned(),
        }
    }
}

fn root_name(value: &OptionValue) -> String {
    match value {
        OptionValue::Expr(ast::Expr { kind: ast::ExprKind::Literal(ast::Literal::String { value, .. }), .. }) => value.clone(),
        _ => "root".to_owned(),
    }
}

pub(super) fn text(value: String) -> BoundExpr {
    BoundExpr::literal(Scalar::Text(value), SqlType::NVARCHAR_MAX)
}

pub(super) fn call(name: &'static str, arguments: Vec<BoundExpr>) -> BoundExpr {
    BoundExpr { kind: BoundExprKind::Function { name, arguments }, sql_type: SqlType::NVARCHAR_MAX, nullable: true }
}

impl Binder<'_> {
    pub(super) fn bind_for_json(
        &mut self,
        query: &ast::Query,
        mode: &str,
        options: &[OptionItem],
        usage: QueryUse,
    ) -> Result<BoundQuery, SqlError> {
        let options = Options::read(options, query.span)?;
        if mode == "AUTO" && !has_tables(query) {
            return Err(error(13600, &[], query.span));
        }
        // The order decides the text, wherever the query stands.
        let bound = self.bind_rows(query, QueryUse::Statement)?;
        let names: Vec<String> = bound.outputs.iter().map(|output| output.name.clone()).collect();
        if names.iter().any(String::is_empty) {
            return Err(error(13605, &[], query.span));
        }
        let fragments: Vec<bool> = bound.outputs.iter().map(|output| holds_json(&bound.rel, output.column)).collect();
        if mode == "AUTO" && matches!(query.body, QueryBody::Set { .. }) {
            return Err(not_built("FOR JSON AUTO of set operations", query.span));
        }
        let levels = if mode == "AUTO" { auto_nesting::levels(query, &bound.outputs) } else { Vec::new() };
        let column = if levels.len() > 1 {
            let mut rows = Vec::with_capacity(levels.len());
            for level in &levels {
                let of_level = |at: &usize| (names[*at].clone(), fragments[*at]);
                let (names, fragments): (Vec<_>, Vec<_>) = level.columns.iter().map(of_level).unzip();
                let layout = Layout::of_keys(&names, fragments, options.include_nulls)?;
                rows.push(self.row_of_json(&layout, level.columns.iter().map(|at| bound.outputs[*at].column)));
            }
            let names: Vec<String> = levels.into_iter().map(|level| level.name).collect();
            self.join_rows(bound.rel, auto_nesting::row_of(rows), Joining::Nested("FOR JSON NEST", names), options.wrapping())
        } else {
            let layout = match mode {
                "AUTO" => Layout::of_keys(&names, fragments, options.include_nulls)?,
                _ => Layout::of_names(&names, fragments, options.include_nulls)?,
            };
            let row = self.row_of_json(&layout, bound.outputs.iter().map(|output| output.column));
            self.join_rows(bound.rel, row, Joining::Flat(","), options.wrapping())
        };
        Ok(match usage {
            QueryUse::Statement => self.in_pieces(column, RESULT_NAME),
            _ => one_column(column),
        })
    }

    fn row_of_json(&mut self, layout: &Layout, columns: impl Iterator<Item = ColumnRef>) -> BoundExpr {
        let mut values = vec![text(layout.encode())];
        values.extend(columns.map(|column| self.column_expr(column)));
        call("FOR JSON ROW", values)
    }

    /// One text of all rows, `row` each, inside the halves of `wrapping`.
    pub(super) fn join_rows(&mut self, rel: Rel, row: BoundExpr, joining: Joining<'_>, wrapping: String) -> (Rel, ColumnRef) {
        let of_row = self.columns.add("", SqlType::NVARCHAR_MAX, false);
        let joined = self.columns.add("", SqlType::NVARCHAR_MAX, true);
        let wrapped = self.columns.add("", SqlType::NVARCHAR_MAX, true);
        let rel = Rel::Project { input: Box::new(rel), exprs: vec![(of_row, row)] };
        let separator = match &joining {
            Joining::Flat(separator) => (*separator).to_owned(),
            Joining::Nested(..) => auto_nesting::ROW_END.to_owned(),
        };
        let aggregate = BoundAggregate {
            function: AggregateFunction::StringAgg,
            argument: Some(self.column_expr(of_row)),
            distinct: false,
            sql_type: SqlType::NVARCHAR_MAX,
            separator: Some(separator),
            order: Vec::new(),
        };
        let rel = Rel::Aggregate { input: Box::new(rel), keys: Vec::new(), aggregates: vec![(joined, aggregate)] };
        let rows = match joining {
            Joining::Flat(_) => self.column_expr(joined),
            Joining::Nested(function, names) => call(function, vec![text(names.join("\u{1f}")), self.column_expr(joined)]),
        };
        let whole = call("FOR JSON", vec![text(wrapping), rows]);
        (Rel::Project { input: Box::new(rel), exprs: vec![(wrapped, whole)] }, wrapped)
    }

    /// A statement's own result: the text cut into rows.
    pub(super) fn in_pieces(&mut self, (rel, column): (Rel, ColumnRef), name: &str) -> BoundQuery {
        let piece = self.columns.add(name, SqlType::NVARCHAR_MAX, false);
        let arguments = vec![self.column_expr(column)];
        let pieces = Rel::Source { source: Arc::new(Pieces::new()), arguments, columns: vec![(0, piece)] };
        let rel = Rel::Apply { left: Box::new(rel), right: Box::new(pieces), kind: JoinKind::Inner, predicates: Vec::new() };
        BoundQuery { rel, outputs: vec![OutputName { name: name.to_owned(), column: piece, table: None }], assignments: Vec::new() }
    }
}

/// A query of one column without a name.
pub(super) fn one_column((rel, column): (Rel, ColumnRef)) -> BoundQuery {
    BoundQuery { rel, outputs: vec![OutputName { name: String::new(), column, table: None }], assignments: Vec::new() }
}

/// Whether the query has a FROM.
pub(super) fn has_tables(query: &ast::Query) -> bool {
    match &query.body {
        QueryBody::Select(select) => !select.from.is_empty(),
        QueryBody::Paren(inner) => has_tables(inner),
        QueryBody::Set { .. } => true,
    }
}

pub(super) fn has_one_table(query: &ast::Query) -> bool {
    match &query.body {
        QueryBody::Select(select) => match select.from.as_slice() {
            [only] => !matches!(only.kind, TableRefKind::Join { .. } | TableRefKind::Apply { .. }),
            _ => false,
        },
        QueryBody::Paren(inner) => has_one_table(inner),
        QueryBody::Set { .. } => false,
    }
}

/// Whether the column is made by a function that gives JSON, as a nested FOR JSON does.
fn holds_json(rel: &Rel, column: ColumnRef) -> bool {
    match rel {
        Rel::Project { exprs, input } => exprs.iter().find(|(made, _)| *made == column).map_or_else(
            || holds_json(input, column),
            |(_, expr)| matches!(&expr.kind, BoundExprKind::Function { name, .. } if crate::json::functions::is_fragment(name)),
        ),
        Rel::Sort { input, .. } | Rel::Limit { input, .. } | Rel::Filter { input, .. } | Rel::Distinct { input } => {
            holds_json(input, column)
        }
        _ => false,
    }
}
