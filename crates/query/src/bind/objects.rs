//! What a table's name means: base table, temporary table, view, catalog view, table-valued function.
//!
//! Order for a name without schema: `#` names in tempdb; common table expressions (by the caller); the user's default
//! schema; `dbo`; compatibility views of `sys`. With a schema: that schema alone.

use super::error::{error, not_built};
use super::scope::shown_object;
use super::{Binder, scope::same_name};
use crate::phys::RowSource;
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, TableDef};
use thawdb_tsql::ast;
use thawdb_types::SqlError;

/// What a name was found to mean.
pub(crate) enum Object {
    Table(Arc<TableDef>),
    Source { source: Arc<dyn RowSource>, schema: String },
    View { query: Arc<ast::Query>, schema: String },
}

impl Binder<'_> {
    fn database_of(&self, name: &ast::ObjectName) -> Result<DatabaseId, SqlError> {
        if let Some(server) = &name.server {
            return Err(error(7202, &[&server.text], name.span));
        }
        let session = self.cx.session();
        match &name.database {
            None => Ok(session.database()),
            Some(database) => session.database_id(&database.text).ok_or_else(|| error(208, &[&shown_object(name)], self.statement)),
        }
    }

    /// Finds the table or view called `name`.
    pub(crate) fn find_object(&mut self, name: &ast::ObjectName) -> Result<Object, SqlError> {
        if name.name.text.starts_with('#') && name.server.is_none() {
            let table = self.cx.temp_table(&name.name.text);
            return table.map(Object::Table).ok_or_else(|| error(208, &[&name.name.text], self.statement));
        }
        if name.is_simple()
            && let Some(source) = self.cx.rowset(&name.name.text)
        {
            return Ok(Object::Source { source, schema: String::new() });
        }
        let database = self.database_of(name)?;
        let catalog = self.catalog(database).ok_or_else(|| error(208, &[&shown_object(name)], self.statement))?;
        let mut schemas = match &name.schema {
            Some(schema) => vec![schema.text.clone()],
            None => vec![self.cx.default_schema().to_string(), "dbo".to_string(), "sys".to_string()],
        };
        schemas.dedup_by(|a, b| same_name(a, b));
        for schema in schemas {
            if let Some(table) = catalog.table(&schema, &name.name.text) {
                return Ok(Object::Table(table.clone()));
            }
            if let Some(query) = self.cx.view(database, &schema, &name.name.text) {
                return Ok(Object::View { query, schema });
            }
            if let Some(source) = self.cx.source(database, &schema, &name.name.text) {
                return Ok(Object::Source { source, schema });
            }
        }
        Err(error(208, &[&shown_object(name)], self.statement))
    }

    /// The base table that INSERT, UPDATE or DELETE names.
    pub(crate) fn find_target_table(&mut self, target: &ast::DmlTargetKind, span: ast::Span) -> Result<Arc<TableDef>, SqlError> {
        match target {
            ast::DmlTargetKind::Name(name) => match self.find_object(name)? {
                Object::Table(table) => Ok(table),
                Object::Source { .. } => Err(error(259, &[], span)),
                Object::View { .. } => Err(not_built("changing rows through a view", span)),
            },
            ast::DmlTargetKind::Variable(variable) => {
                self.cx.table_variable(&variable.name).ok_or_else(|| error(1087, &[&variable.name], variable.span))
            }
            ast::DmlTargetKind::Rowset(_) => Err(not_built("a rowset function as a target", span)),
        }
    }

    /// The table-valued function called `name`.
    pub(crate) fn find_table_function(&mut self, name: &ast::ObjectName) -> Result<Arc<dyn RowSource>, SqlError> {
        let database = self.database_of(name)?;
        let schema = name.schema.as_ref().map_or("", |s| s.text.as_str());
        self.cx.table_function(database, schema, &name.name.text).ok_or_else(|| error(208, &[&shown_object(name)], self.statement))
    }
}
