//! Tables and views by name, table variables, and their hints.

use super::BoundTable;
use crate::algebra::{ColumnInfo, Get, Rel};
use crate::bind::Binder;
use crate::bind::error::{error, not_built};
use crate::bind::objects::Object;
use crate::bind::query::QueryUse;
use crate::bind::scope::{ScopeColumn, ScopeTable, same_name};
use crate::compile::ViewText;
use crate::locking::LockHints;
use crate::phys::RowSource;
use std::sync::Arc;
use thawdb_catalog::{ColumnDef, DatabaseId, TableDef};
use thawdb_tsql::ast::{self, IndexReference, TableHint};
use thawdb_types::SqlError;

/// Views within views: the number SQL Server has.
const VIEW_DEPTH_MAX: u32 = 32;

impl Binder<'_> {
    pub(super) fn bind_named_table(&mut self, named: &ast::NamedTable) -> Result<BoundTable, SqlError> {
        let system_time = named.system_time.as_ref().map(|clause| self.bind_system_time(clause, named.name.span)).transpose()?;
        if named.sample.is_some() {
            return Err(not_built("TABLESAMPLE", named.name.span));
        }
        if let Some(index) = self.find_cte(&named.name) {
            if system_time.is_some() {
                return Err(error(13_544, &[&named.name.name.text], named.name.span));
            }
            let bound = self.bind_cte(index)?;
            let name = named.alias.as_ref().map_or(named.name.name.text.as_str(), |a| a.text.as_str());
            return Ok((bound.rel, vec![super::derived_scope(&bound.outputs, name)]));
        }
        let around = self.system_times.last().cloned();
        match (self.find_object(&named.name)?, system_time) {
            (Object::Table(table), Some(clause)) => {
                if around.is_some() {
                    return Err(error(13_590, &[&self.full_name(&table)], named.name.span));
                }
                self.rows_of_time(table, named, &clause)
            }
            (Object::Table(table), None) => match around.filter(|_| table.temporal.versioning.is_some()) {
                Some(clause) => {
                    self.met_temporal = true;
                    self.rows_of_time(table, named, &clause)
                }
                None => self.table_reference(table, Some(&named.name), named.alias.as_ref(), &named.hints),
            },
            (Object::Source { .. }, Some(_)) => Err(error(13_544, &[&named.name.name.text], named.name.span)),
            (Object::Source { source, schema }, None) => self.source_reference(source, &schema, named),
            (Object::View { view, database, schema }, None) => self.view_reference(&view, (database, &schema), named),
            (Object::View { view, database, schema }, Some(clause)) => {
                let met = std::mem::take(&mut self.met_temporal);
                self.system_times.push(clause);
                let bound = self.view_reference(&view, (database, &schema), named);
                self.system_times.pop();
                let met = std::mem::replace(&mut self.met_temporal, met);
                if met { bound } else { bound.and(Err(error(13_544, &[&named.name.name.text], named.name.span))) }
            }
        }
    }

    pub(super) fn bind_table_variable(
        &mut self,
        variable: &ast::Variable,
        alias: Option<&ast::Ident>,
        hints: &[TableHint],
    ) -> Result<BoundTable, SqlError> {
        let table = self.table_of_variable(variable)?;
        let (rel, mut scope) = self.table_reference(table, None, alias, hints)?;
        if alias.is_none() {
            scope[0].name.clone_from(&variable.name);
        }
        Ok((rel, scope))
    }

    /// The table behind a variable: inside an inline function its own parameters alone.
    pub(crate) fn table_of_variable(&self, variable: &ast::Variable) -> Result<Arc<TableDef>, SqlError> {
        let found = match self.table_parameters.last().filter(|_| !self.parameters.is_empty()) {
            Some(own) => own.iter().find(|(name, _)| same_name(name, &variable.name)).map(|(_, table)| table.clone()),
            None => self.cx.table_variable(&variable.name),
        };
        found.ok_or_else(|| error(1087, &[&variable.name], variable.span))
    }

    /// A reference to a base table, with columns of its own.
    pub(crate) fn table_reference(
        &mut self,
        table: Arc<TableDef>,
        name: Option<&ast::ObjectName>,
        alias: Option<&ast::Ident>,
        hints: &[TableHint],
    ) -> Result<BoundTable, SqlError> {
        self.depend(&table, false);
        let mut columns = Vec::with_capacity(table.columns.len());
        let mut offered = Vec::with_capacity(table.columns.len());
        for (index, column) in table.columns.iter().enumerate() {
            let id = self.columns.push(ColumnInfo {
                name: column.name.clone(),
                sql_type: column.sql_type,
                nullable: column.nullable,
                identity: column.identity.is_some(),
            });
            if !column.is_virtual() {
                columns.push((index, id));
            }
            offered.push(ScopeColumn { name: column.name.clone(), column: id, hidden: table.is_hidden(index) });
        }
        self.need_rows(&table, offered.iter().map(|c| c.column));
        let scope = ScopeTable {
            name: alias.map_or_else(|| name.map_or_else(|| table.name.clone(), |n| n.name.text.clone()), |a| a.text.clone()),
            alias: alias.is_some(),
            schema: table.schema_name.clone(),
            database: name.and_then(|n| n.database.as_ref()).map(|d| d.text.clone()),
            columns: offered,
            base: Some(table.clone()),
            qualified_only: false,
        };
        let virtuals = table.columns.iter().any(ColumnDef::is_virtual);
        let row: Vec<crate::algebra::ColumnRef> = offered_ids(&scope.columns);
        let mut get = Get { table: table.clone(), columns, locking: LockHints::default(), index_hint: None, force_seek: false };
        for hint in hints {
            apply_hint(&mut get, hint, self.statement)?;
        }
        let rel = Rel::Get(Box::new(get));
        Ok((if virtuals { self.with_virtual(rel, &table, &row)? } else { rel }, vec![scope]))
    }

    /// The rows of a table with the columns that rows do not hold.
    fn with_virtual(&mut self, rel: Rel, table: &Arc<TableDef>, row: &[crate::algebra::ColumnRef]) -> Result<Rel, SqlError> {
        let mut exprs: Vec<_> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        for (at, id) in row.iter().enumerate().filter(|(at, _)| table.columns[*at].is_virtual()) {
            exprs.push((*id, self.computed_value(table, at, row)?));
        }
        Ok(Rel::Project { input: Box::new(rel), exprs })
    }

    /// The same for rows that a trigger looks at: they come without what is worked out when it is read.
    fn with_virtual_of_rowset(&mut self, rel: Rel, table: &Arc<TableDef>, columns: &mut [ScopeColumn]) -> Result<Rel, SqlError> {
        if !table.columns.iter().any(ColumnDef::is_virtual) {
            return Ok(rel);
        }
        let row = offered_ids(columns);
        let mut exprs: Vec<_> = rel.columns().into_iter().map(|c| (c, self.column_expr(c))).collect();
        for at in (0..row.len()).filter(|at| table.columns[*at].is_virtual()) {
            let value = self.computed_value(table, at, &row)?;
            let id = self.columns.add(table.columns[at].name.clone(), value.sql_type, value.nullable);
            exprs.push((id, value));
            columns[at].column = id;
        }
        Ok(Rel::Project { input: Box::new(rel), exprs })
    }

    /// A condition over the columns of a table, and those columns in order.
    pub(crate) fn bind_row_condition(
        &mut self,
        expr: &ast::Expr,
        table: &Arc<TableDef>,
    ) -> Result<(crate::algebra::BoundExpr, Vec<crate::algebra::ColumnRef>), SqlError> {
        self.depend(table, false);
        let row = self.row_columns(table);
        let mut bound = self.over_row(expr, table, &row, true)?;
        self.expand_virtual(&mut bound, table, &row)?;
        Ok((bound, row))
    }

    fn source_reference(&mut self, source: Arc<dyn RowSource>, schema: &str, named: &ast::NamedTable) -> Result<BoundTable, SqlError> {
        let alias = named.alias.as_ref();
        let (mut rel, mut columns) = self.source_columns(source, Vec::new());
        if let Some(table) = self.cx.rowset_table(&named.name.name.text).filter(|_| schema.is_empty()) {
            rel = self.with_virtual_of_rowset(rel, &table, &mut columns)?;
        }
        let scope = ScopeTable {
            name: alias.map_or_else(|| named.name.name.text.clone(), |a| a.text.clone()),
            alias: alias.is_some(),
            schema: schema.to_string(),
            database: named.name.database.as_ref().map(|d| d.text.clone()),
            columns,
            base: None,
            qualified_only: false,
        };
        Ok((rel, vec![scope]))
    }

    pub(crate) fn source_columns(
        &mut self,
        source: Arc<dyn RowSource>,
        arguments: Vec<crate::algebra::BoundExpr>,
    ) -> (Rel, Vec<ScopeColumn>) {
        let mut columns = Vec::new();
        let mut offered = Vec::new();
        for (index, column) in source.columns().iter().enumerate() {
            let id = self.columns.add(column.name.clone(), column.sql_type, column.nullable);
            columns.push((index, id));
            offered.push(ScopeColumn { name: column.name.clone(), column: id, hidden: false });
        }
        (Rel::Source { source, arguments, columns }, offered)
    }

    /// A reference to a view: its query, bound where it lives.
    pub(crate) fn view_reference(
        &mut self,
        view: &ViewText,
        (database, schema): (DatabaseId, &str),
        named: &ast::NamedTable,
    ) -> Result<BoundTable, SqlError> {
        self.depend_on(database, view.id);
        let definition = view.definition.clone();
        let (place, synonym) = ((database, view.id), self.synonym.take());
        self.parents.push(place);
        let bound = self.at_home((database, schema), Vec::new(), named.name.span, |b| b.bind_query(&definition.query, QueryUse::Derived));
        self.parents.pop();
        let mut bound = bound?;
        self.synonym = synonym;
        self.note_checked_view(view, (database, schema), &bound.rel);
        self.need_view(place, bound.outputs.iter().map(|output| output.column));
        let shown = &named.name.name.text;
        crate::bind::query::rename_outputs(&mut bound.outputs, &definition.columns, shown, named.name.span)?;
        let alias = named.alias.as_ref();
        let mut scope = super::derived_scope(&bound.outputs, alias.map_or(shown.as_str(), |a| a.text.as_str()));
        scope.alias = alias.is_some();
        scope.schema = schema.to_string();
        scope.database = named.name.database.as_ref().map(|d| d.text.clone());
        Ok((bound.rel, vec![scope]))
    }

    /// Binds the text of a view or function: it sees nothing of the query around it but its parameters.
    pub(crate) fn at_home<T>(
        &mut self,
        (database, schema): (DatabaseId, &str),
        parameters: Vec<(String, crate::algebra::BoundExpr)>,
        span: ast::Span,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if self.views_deep >= VIEW_DEPTH_MAX {
            return Err(error(217, &[&VIEW_DEPTH_MAX], span));
        }
        self.views_deep += 1;
        let levels = std::mem::take(&mut self.levels);
        let ctes = std::mem::take(&mut self.ctes);
        let home = self.home.replace((database, schema.to_string()));
        self.parameters.push(parameters);
        // A view within a function sees none of its tables.
        let hides = self.table_parameters.len() < self.parameters.len();
        if hides {
            self.table_parameters.push(Vec::new());
        }
        let bound = bind(self);
        if hides {
            self.table_parameters.pop();
        }
        self.parameters.pop();
        (self.levels, self.ctes, self.home) = (levels, ctes, home);
        self.views_deep -= 1;
        bound.map_err(|error| error.at_line(span.line))
    }
}

fn offered_ids(columns: &[ScopeColumn]) -> Vec<crate::algebra::ColumnRef> {
    columns.iter().map(|column| column.column).collect()
}

/// Whether a word in the place of a hint is one.
pub(crate) fn is_table_hint(word: &str) -> bool {
    const HINTS: &[&str] = &[
        "FASTFIRSTROW",
        "FORCESCAN",
        "FORCESEEK",
        "HOLDLOCK",
        "IGNORE_CONSTRAINTS",
        "IGNORE_TRIGGERS",
        "KEEPDEFAULTS",
        "KEEPIDENTITY",
        "NOEXPAND",
        "NOLOCK",
        "NOWAIT",
        "PAGLOCK",
        "READCOMMITTED",
        "READCOMMITTEDLOCK",
        "READPAST",
        "READUNCOMMITTED",
        "REPEATABLEREAD",
        "ROWLOCK",
        "SERIALIZABLE",
        "SNAPSHOT",
        "TABLOCK",
        "TABLOCKX",
        "UPDLOCK",
        "XLOCK",
    ];
    HINTS.iter().any(|hint| hint.eq_ignore_ascii_case(word))
}

/// Takes a hint into account. 1047 if it excludes another one.
pub(crate) fn apply_hint(get: &mut Get, hint: &TableHint, span: ast::Span) -> Result<(), SqlError> {
    match hint {
        TableHint::Word(word) if word == "SNAPSHOT" => return Err(not_built("SNAPSHOT hint", span)),
        TableHint::Word(word) if !is_table_hint(word) => return Err(error(321, &[word], span)),
        TableHint::Word(word) => {
            // Words that are not about locks change how rows are read ahead, never which rows there are.
            get.locking.add(word).map_err(|error| error.at_line(span.line))?;
        }
        TableHint::Value(..) => {}
        TableHint::Index(indexes) => {
            if let [one] = indexes.as_slice() {
                get.index_hint = Some(find_index(get, one, span)?);
            }
        }
        TableHint::ForceSeek(index) => {
            get.force_seek = true;
            if let Some((index, _)) = index {
                get.index_hint = Some(find_index(get, index, span)?);
            }
        }
    }
    Ok(())
}

fn find_index(get: &Get, reference: &IndexReference, span: ast::Span) -> Result<usize, SqlError> {
    let table = &get.table;
    let is_meant = |index: &&thawdb_catalog::IndexDef| match reference {
        IndexReference::Number(number) => index.id.0 == *number,
        IndexReference::Name(name) => index.name.as_ref().is_some_and(|known| same_name(known, &name.text)),
    };
    if let Some(index) = table.disabled.iter().find(is_meant) {
        return Err(error(315, &[&index.name.as_deref().unwrap_or_default(), &table.name], span));
    }
    match reference {
        IndexReference::Number(0) => Ok(0),
        IndexReference::Number(number) => table
            .indexes
            .iter()
            .position(|i| i.id.0 == *number)
            .ok_or_else(|| error(307, &[number, &format!("{}.{}", table.schema_name, table.name)], span)),
        IndexReference::Name(name) => table
            .indexes
            .iter()
            .position(|i| i.name.as_ref().is_some_and(|n| same_name(n, &name.text)))
            .ok_or_else(|| error(308, &[&name.text, &format!("{}.{}", table.schema_name, table.name)], span)),
    }
}
