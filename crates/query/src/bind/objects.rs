//! What a table's name means: base table, temporary table, view, catalog view, table-valued function.
//!
//! Order for a name without schema: `#` names in tempdb; common table expressions (by the caller); the user's default
//! schema; `dbo`; compatibility views of `sys`. With a schema: that schema alone.

use super::error::{error, not_built};
use super::scope::shown_object;
use super::{Binder, scope::same_name};
use crate::access::AccessAction;
use crate::compile::{UserFunction, ViewText};
use crate::phys::RowSource;
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectId, TableDef};
use thawdb_tsql::ast;
use thawdb_types::{SqlError, SqlType};

/// What a name was found to mean.
pub(crate) enum Object {
    Table(Arc<TableDef>),
    Source { source: Arc<dyn RowSource>, schema: String },
    View { view: ViewText, database: DatabaseId, schema: String },
}

impl Binder<'_> {
    fn database_of(&self, name: &ast::ObjectName) -> Result<DatabaseId, SqlError> {
        if let Some(server) = &name.server {
            return Err(error(7202, &[&server.text], name.span));
        }
        let session = self.cx.session();
        match &name.database {
            None => Ok(self.home.as_ref().map_or_else(|| session.database(), |(home, _)| *home)),
            Some(database) => {
                let id = session.database_id(&database.text)?.ok_or_else(|| error(208, &[&shown_object(name)], self.statement))?;
                session.enter(id).map(|()| id)
            }
        }
    }

    /// Finds the table or view called `name`.
    pub(crate) fn find_object(&mut self, name: &ast::ObjectName) -> Result<Object, SqlError> {
        self.synonym = None;
        if name.name.text.starts_with('#') && name.server.is_none() {
            let table = self.cx.temp_table(&name.name.text);
            let table = table.ok_or_else(|| error(208, &[&name.name.text], self.statement))?;
            return self.usable(table);
        }
        if name.is_simple()
            && let Some(source) = self.cx.rowset(&name.name.text)
        {
            return Ok(Object::Source { source, schema: String::new() });
        }
        if self.views_deep == 0 && self.cx.is_schema_bound() && (name.schema.is_none() || name.database.is_some()) {
            return Err(error(4512, &[&"view", &"", &shown_object(name)], name.span));
        }
        let database = self.database_of(name)?;
        let catalog = self.catalog(database).ok_or_else(|| error(208, &[&shown_object(name)], self.statement))?;
        for schema in self.schemas_of(name, &["dbo", "sys"]) {
            if let Some(table) = catalog.table(&schema, &name.name.text) {
                return self.usable(table.clone());
            }
            if let Some(view) = self.cx.view(database, &schema, &name.name.text) {
                return Ok(Object::View { view, database, schema });
            }
            if let Some((id, base)) = self.cx.synonym(database, &schema, &name.name.text) {
                let base = ast::ObjectName { span: name.span, ..base };
                return match self.cx.synonym(database, base.schema.as_ref().map_or("dbo", |s| &s.text), &base.name.text) {
                    Some(_) => Err(error(470, &[&shown_object(name), &shown_object(&base)], self.statement)),
                    None => self
                        .find_object(&base)
                        .inspect(|_| self.synonym = Some((database, id)))
                        .map_err(|e| if e.number == 208 { error(5313, &[&shown_object(name)], name.span) } else { e }),
                };
            }
            if let Some(source) = self.cx.source(database, &schema, &name.name.text) {
                return Ok(Object::Source { source, schema });
            }
        }
        Err(error(208, &[&shown_object(name)], self.statement))
    }

    /// A table whose rows may be read and written: 8655 for one whose clustered index is disabled.
    fn usable(&self, table: Arc<TableDef>) -> Result<Object, SqlError> {
        if table.rows_disabled {
            let index = table.rows().name.as_deref().unwrap_or_default();
            return Err(error(8655, &[&index, &table.name], self.statement));
        }
        Ok(Object::Table(table))
    }

    /// The base table that INSERT, UPDATE or DELETE names.
    pub(crate) fn find_target_table(&mut self, target: &ast::DmlTargetKind, span: ast::Span) -> Result<Arc<TableDef>, SqlError> {
        match target {
            ast::DmlTargetKind::Name(name) => match self.find_object(name)? {
                Object::Table(table) => Ok(table),
                Object::Source { .. } => Err(error(259, &[], span)),
                // Rows of a view are changed where it is bound: what is asked here is a table alone.
                Object::View { .. } => Err(not_built("OUTPUT INTO a view", span)),
            },
            ast::DmlTargetKind::Variable(variable) if self.cx.is_read_only(&variable.name) => {
                Err(error(10700, &[&variable.name], variable.span))
            }
            ast::DmlTargetKind::Variable(variable) => {
                self.cx.table_variable(&variable.name).ok_or_else(|| error(1087, &[&variable.name], variable.span))
            }
            ast::DmlTargetKind::Rowset(_) => Err(not_built("a rowset function as a target", span)),
        }
    }

    /// The schemas in which `name` is looked for.
    fn schemas_of(&self, name: &ast::ObjectName, more: &[&str]) -> Vec<String> {
        if let Some(schema) = &name.schema {
            return vec![schema.text.clone()];
        }
        let first = self.home.as_ref().map_or_else(|| self.cx.default_schema().to_string(), |(_, schema)| schema.clone());
        let mut schemas = vec![first];
        for schema in more {
            if !schemas.iter().any(|known| same_name(known, schema)) {
                schemas.push((*schema).to_string());
            }
        }
        schemas
    }

    /// The user's function called `name`, and its database and schema.
    pub(crate) fn find_user_function(&mut self, name: &ast::ObjectName) -> Result<Option<(UserFunction, DatabaseId, String)>, SqlError> {
        let database = self.database_of(name)?;
        for schema in self.schemas_of(name, &["dbo"]) {
            if let Some(function) = self.cx.user_function(database, &schema, &name.name.text)? {
                self.depend_on(database, function.id);
                let scalar = matches!(function.kind, crate::compile::UserFunctionKind::Scalar(_));
                let action = if scalar { AccessAction::Execute } else { AccessAction::Select };
                self.need(action, (database, function.id), Vec::new());
                return Ok(Some((function, database, schema)));
            }
            if let Some((id, base)) = self.cx.synonym(database, &schema, &name.name.text) {
                self.synonym = Some((database, id));
                return self.find_user_function(&base);
            }
        }
        Ok(None)
    }

    /// The sequence called `name`.
    pub(crate) fn find_sequence(&mut self, name: &ast::ObjectName) -> Result<(DatabaseId, ObjectId, SqlType), SqlError> {
        let database = self.database_of(name)?;
        for schema in self.schemas_of(name, &["dbo"]) {
            if let Some((id, sql_type)) = self.cx.sequence(database, &schema, &name.name.text) {
                self.depend_on(database, id);
                self.need(AccessAction::Update, (database, id), Vec::new());
                return Ok((database, id, sql_type));
            }
        }
        Err(error(208, &[&shown_object(name)], self.statement))
    }

    /// The table-valued function called `name`.
    pub(crate) fn find_table_function(&mut self, name: &ast::ObjectName) -> Result<Arc<dyn RowSource>, SqlError> {
        let database = self.database_of(name)?;
        let schema = name.schema.as_ref().map_or("", |s| s.text.as_str());
        self.cx.table_function(database, schema, &name.name.text).ok_or_else(|| error(208, &[&shown_object(name)], self.statement))
    }
}
