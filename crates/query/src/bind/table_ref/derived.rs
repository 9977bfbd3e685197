//! Derived tables, VALUES as a table, table-valued functions.

use super::{BoundTable, derived_scope, need_alias};
use crate::algebra::{BoundExpr, Rel};
use crate::bind::error::{error, not_built};
use crate::bind::query::{OutputName, QueryUse};
use crate::bind::scope::ScopeTable;
use crate::bind::{Binder, Clause, Level, coerce};
use crate::compile::{UserFunction, UserFunctionKind, UserParameter};
use thawdb_catalog::DatabaseId;
use thawdb_tsql::ast::{self, Span};
use thawdb_types::SqlError;

impl Binder<'_> {
    pub(super) fn bind_derived(&mut self, query: &ast::Query, alias: Option<&ast::Alias>, span: Span) -> Result<BoundTable, SqlError> {
        let alias = need_alias(alias, span)?;
        let mut bound = self.bind_query(query, QueryUse::Derived)?;
        crate::bind::query::rename_outputs(&mut bound.outputs, &alias.columns, &alias.name.text, span)?;
        Ok((bound.rel, vec![derived_scope(&bound.outputs, &alias.name.text)]))
    }

    pub(super) fn bind_values_table(
        &mut self,
        rows: &[Vec<ast::Expr>],
        alias: Option<&ast::Alias>,
        span: Span,
    ) -> Result<BoundTable, SqlError> {
        let alias = need_alias(alias, span)?;
        let (rel, mut outputs) = self.bind_values(rows, span)?;
        crate::bind::query::rename_outputs(&mut outputs, &alias.columns, &alias.name.text, span)?;
        Ok((rel, vec![derived_scope(&outputs, &alias.name.text)]))
    }

    /// Rows of VALUES, each column brought to one type.
    pub(crate) fn bind_values(&mut self, rows: &[Vec<ast::Expr>], span: Span) -> Result<(Rel, Vec<OutputName>), SqlError> {
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|r| r.len() != width) {
            return Err(error(10709, &[], span));
        }
        let mut columns: Vec<Vec<(BoundExpr, Span)>> = (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows {
            for (index, value) in row.iter().enumerate() {
                columns[index].push((self.bind_outside_level(value)?, value.span));
            }
        }
        let mut ids = Vec::with_capacity(width);
        let mut unified = Vec::with_capacity(width);
        for values in columns {
            let (values, sql_type) = coerce::unify(values, "VALUES")?;
            ids.push(self.columns.add("", sql_type, values.iter().any(|v| v.nullable)));
            unified.push(values.into_iter());
        }
        let rows = (0..rows.len()).map(|_| unified.iter_mut().map(|c| c.next().expect("one value a row")).collect()).collect();
        let outputs = ids.iter().map(|c| OutputName { name: String::new(), column: *c, table: None }).collect();
        Ok((Rel::Values { rows, columns: ids }, outputs))
    }

    /// Binds a value where no aggregate may stand.
    fn bind_outside_level(&mut self, value: &ast::Expr) -> Result<BoundExpr, SqlError> {
        let mut level = Level::new();
        level.clause = Clause::Other;
        self.levels.push(level);
        let bound = self.bind_expr(value);
        self.levels.pop();
        bound
    }

    pub(super) fn bind_table_function(
        &mut self,
        name: &ast::ObjectName,
        arguments: &[ast::Expr],
        schema: &[ast::RowsetColumn],
        alias: Option<&ast::Alias>,
    ) -> Result<BoundTable, SqlError> {
        if let Some((function, database, owner)) = self.find_user_function(name)? {
            return self.bind_user_rows(&function, (database, &owner), name, arguments, alias);
        }
        let mut bound = Vec::with_capacity(arguments.len());
        for argument in arguments {
            bound.push(match argument.kind {
                ast::ExprKind::Default => BoundExpr::null(),
                _ => self.within(Clause::From, |b| b.bind_expr(argument))?,
            });
        }
        let built_in = match name.is_simple() {
            true => self.built_in_table_function(&name.name.text, bound.clone(), schema, name.span)?,
            false => None,
        };
        let (source, bound) = match built_in {
            Some(built_in) => built_in,
            None if !schema.is_empty() => return Err(not_built("a WITH clause of this table-valued function", name.span)),
            None => (self.find_table_function(name)?, bound),
        };
        let (rel, columns) = self.source_columns(source, bound);
        let mut outputs: Vec<OutputName> =
            columns.iter().map(|c| OutputName { name: c.name.clone(), column: c.column, table: None }).collect();
        if let Some(alias) = alias {
            crate::bind::query::rename_outputs(&mut outputs, &alias.columns, &alias.name.text, name.span)?;
        }
        let shown = alias.map_or(name.name.text.as_str(), |a| a.name.text.as_str());
        let mut scope: ScopeTable = derived_scope(&outputs, shown);
        scope.alias = alias.is_some();
        Ok((rel, vec![scope]))
    }

    /// A table-valued function of the user's: an inline one is its query over the arguments.
    fn bind_user_rows(
        &mut self,
        function: &UserFunction,
        home: (DatabaseId, &str),
        name: &ast::ObjectName,
        arguments: &[ast::Expr],
        alias: Option<&ast::Alias>,
    ) -> Result<BoundTable, SqlError> {
        let values = self.within(Clause::From, |b| b.bind_user_arguments(function, name, arguments))?;
        let (rel, mut outputs) = match &function.kind {
            UserFunctionKind::Scalar(_) => {
                return Err(error(208, &[&crate::bind::scope::shown_object(name)], name.span));
            }
            UserFunctionKind::Rows(source) => {
                let (rel, columns) = self.source_columns(source.clone(), values);
                let outputs = columns.into_iter().map(|c| OutputName { name: c.name, column: c.column, table: None }).collect();
                (rel, outputs)
            }
            UserFunctionKind::Inline(query) => {
                // A column of a neighbour gets a value of its own, so that what the query puts out is its own too.
                let own = |(p, value): (&UserParameter, BoundExpr)| {
                    (p.name.clone(), if value.as_column().is_some() { coerce::cast(value, p.sql_type) } else { value })
                };
                let mut tables = Vec::new();
                for (parameter, argument) in function.parameters.iter().zip(arguments).filter(|(parameter, _)| parameter.table) {
                    tables.push((parameter.name.clone(), self.table_argument(argument, parameter)?));
                }
                let named = function.parameters.iter().zip(values).filter(|(parameter, _)| !parameter.table).map(own).collect();
                self.table_parameters.push(tables);
                self.parents.push((home.0, function.id));
                let bound = self.at_home(home, named, name.span, |b| b.bind_query(query, QueryUse::Derived));
                self.parents.pop();
                self.table_parameters.pop();
                let bound = bound?;
                (bound.rel, bound.outputs)
            }
        };
        let none: &[ast::Ident] = &[];
        crate::bind::query::rename_outputs(&mut outputs, alias.map_or(none, |a| &a.columns), &name.name.text, name.span)?;
        let mut scope: ScopeTable = derived_scope(&outputs, alias.map_or(name.name.text.as_str(), |a| a.name.text.as_str()));
        scope.alias = alias.is_some();
        scope.schema = home.1.to_string();
        Ok((rel, vec![scope]))
    }
}
