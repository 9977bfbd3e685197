//! Name lookup: what a column name means where it stands.
//!
//! Order: the tables of the query being bound, then those of enclosing queries, outwards; the first level where the name
//! is found decides, and two finds in one level are 209. An alias hides its table's name. Names compare without case.

use super::Binder;
use super::error::error;
use crate::algebra::ColumnRef;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_tsql::ast::{ColumnName, ObjectName, Span};
use thawdb_types::SqlError;

/// A name and the column behind it.
#[derive(Debug, Clone)]
pub struct ScopeColumn {
    /// Whether `*` leaves it out.
    pub hidden: bool,
    /// The name; empty for none.
    pub name: String,
    /// The column.
    pub column: ColumnRef,
}

/// A table as a FROM clause exposes it.
#[derive(Debug, Clone)]
pub struct ScopeTable {
    /// The alias, or the table's name.
    pub name: String,
    /// Whether `name` is an alias: then schema and database do not qualify it.
    pub alias: bool,
    /// Schema of a table without alias.
    pub schema: String,
    /// Database name of a table without alias, if one was written.
    pub database: Option<String>,
    /// Its columns.
    pub columns: Vec<ScopeColumn>,
    /// The base table, if it is one.
    pub base: Option<Arc<TableDef>>,
    /// Columns hidden from bare names, as `inserted` and `deleted` are in OUTPUT.
    pub qualified_only: bool,
}

/// Whether two names are the same, case apart.
pub fn same_name(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() { a.eq_ignore_ascii_case(b) } else { a.to_lowercase() == b.to_lowercase() }
}

impl ScopeTable {
    /// Whether the qualifier `name` means this table.
    pub fn is_called(&self, name: &ObjectName) -> bool {
        if name.server.is_some() || !same_name(&self.name, &name.name.text) {
            return false;
        }
        match (&name.database, &name.schema) {
            (None, None) => true,
            (_, Some(schema)) if self.alias || !same_name(&self.schema, &schema.text) => false,
            (Some(database), _) => self.database.as_ref().is_none_or(|d| same_name(d, &database.text)) && !self.alias,
            (None, Some(_)) => true,
        }
    }
}

enum Found {
    No,
    One(ColumnRef),
    Several,
}

fn find(tables: &[ScopeTable], name: &ColumnName) -> (Found, bool) {
    let mut found = Found::No;
    let mut table_known = false;
    for table in tables {
        match &name.table {
            Some(qualifier) if !table.is_called(qualifier) => continue,
            None if table.qualified_only => continue,
            _ => table_known = name.table.is_some(),
        }
        for column in table.columns.iter().filter(|c| !c.name.is_empty() && same_name(&c.name, &name.column.text)) {
            found = match found {
                Found::No => Found::One(column.column),
                Found::One(_) | Found::Several => Found::Several,
            };
        }
    }
    (found, table_known)
}

/// A name as it is shown in messages.
pub fn shown(name: &ColumnName) -> String {
    match &name.table {
        None => name.column.text.clone(),
        Some(table) => format!("{}.{}", shown_object(table), name.column.text),
    }
}

/// An object's name as it is shown in messages.
pub fn shown_object(name: &ObjectName) -> String {
    let parts = [name.server.as_ref(), name.database.as_ref(), name.schema.as_ref()];
    let first = parts.iter().position(Option::is_some).unwrap_or(parts.len());
    let mut shown = String::new();
    for part in &parts[first..] {
        shown.push_str(part.map_or("", |i| i.text.as_str()));
        shown.push('.');
    }
    shown + &name.name.text
}

impl Binder<'_> {
    /// The column `name` means, and how many levels out it was found.
    pub(crate) fn resolve(&self, name: &ColumnName) -> Result<(ColumnRef, usize), SqlError> {
        let mut table_known = false;
        for (out, level) in self.levels.iter().rev().enumerate() {
            match find(&level.tables, name) {
                (Found::One(column), _) => {
                    self.use_column(column);
                    return Ok((column, out));
                }
                (Found::Several, _) => return Err(error(209, &[&name.column.text], name.span)),
                (Found::No, known) => table_known |= known,
            }
            if let Some(hidden) = &level.hidden
                && !matches!(find(&hidden.tables, name), (Found::No, false))
            {
                return Err(error(hidden.number, &[&shown(name)], name.span));
            }
            if table_known {
                break;
            }
        }
        Err(match &name.table {
            Some(_) if !table_known => error(4104, &[&shown(name)], name.span),
            _ => error(207, &[&name.column.text], name.span),
        })
    }

    /// Makes `tables` of the two sides visible together; 1011 and 1013 for two of one name.
    pub(crate) fn check_exposed_names(&self, tables: &[ScopeTable], span: Span) -> Result<(), SqlError> {
        for (i, table) in tables.iter().enumerate() {
            for other in &tables[..i] {
                if table.name.is_empty() || !same_name(&table.name, &other.name) {
                    continue;
                }
                if table.alias || other.alias {
                    if table.alias && other.alias {
                        return Err(error(1011, &[&table.name], span));
                    }
                    return Err(error(1013, &[&exposed(other), &exposed(table)], span));
                }
                if same_name(&table.schema, &other.schema) && table.database == other.database {
                    return Err(error(1013, &[&exposed(other), &exposed(table)], span));
                }
            }
        }
        Ok(())
    }
}

fn exposed(table: &ScopeTable) -> String {
    table.name.clone()
}
