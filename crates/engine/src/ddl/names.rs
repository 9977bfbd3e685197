//! From a name as written to the object it means.

use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{DatabaseCatalog, ObjectDef, TableDef};
use thawdb_tsql::ast::ObjectName;
use thawdb_types::SqlError;

/// Where names without a schema are looked for last.
pub(crate) const LAST_SCHEMA: &str = "dbo";

/// A name as messages show it: the parts written, joined by points.
pub(crate) fn shown(name: &ObjectName) -> String {
    let parts = [&name.server, &name.database, &name.schema];
    let written = parts.into_iter().flatten().map(|part| part.text.as_str()).chain([name.name.text.as_str()]);
    written.collect::<Vec<_>>().join(".")
}

/// Whether a name is that of a local temporary table.
pub(crate) fn is_local_temporary(name: &ObjectName) -> bool {
    name.name.text.starts_with('#') && !name.name.text.starts_with("##")
}

/// The database a name is in.
pub(crate) fn database_of(session: &SessionState, name: &ObjectName) -> Result<Arc<OpenDatabase>, SqlError> {
    if name.server.is_some() {
        return Err(unsupported("linked servers"));
    }
    if name.name.text.starts_with('#') {
        return session.storage_of(TEMPDB_ID);
    }
    match &name.database {
        None => Ok(session.database.clone()),
        Some(database) => session.engine.usable_database(&database.text)?.ok_or_else(|| message(911, &[&database.text])),
    }
}

/// The schemas a name is looked for in, in order: the one written, or the default one and dbo.
pub(crate) fn schemas_of(session: &SessionState, name: &ObjectName) -> Vec<String> {
    if let Some(schema) = &name.schema {
        return vec![schema.text.clone()];
    }
    let first = session.default_schema().1;
    let last = (!first.eq_ignore_ascii_case(LAST_SCHEMA)).then(|| LAST_SCHEMA.to_owned());
    std::iter::once(first.to_string()).chain(last).collect()
}

/// The schema in which something of this name is made: the one written, or the user's.
pub(crate) fn schema_for_new(session: &SessionState, name: &ObjectName) -> String {
    match &name.schema {
        Some(schema) => schema.text.clone(),
        None if name.name.text.starts_with('#') => LAST_SCHEMA.to_owned(),
        None => session.users_schema().1.to_string(),
    }
}

/// The schema a name is in: where there is something of it, or the last one it is looked for in.
pub(crate) fn schema_of(session: &SessionState, name: &ObjectName) -> String {
    let mut schemas = schemas_of(session, name);
    let catalog = database_of(session, name).ok().and_then(|open| session.definitions(open.id));
    if let (Some(catalog), true) = (catalog, schemas.len() > 1) {
        let text = &name.name.text;
        let there = |schema: &String| {
            let object = catalog.tables.table(schema, text).is_some() || catalog.object(schema, text).is_some();
            object || catalog.user_type(schema, text).is_some()
        };
        if there(&schemas[0]) {
            schemas.truncate(1);
        }
    }
    schemas.pop().expect("one schema at least")
}

/// The table of a name, if there is one.
pub(crate) fn find_table(session: &SessionState, name: &ObjectName) -> Result<Option<Arc<TableDef>>, SqlError> {
    let open = database_of(session, name)?;
    if is_local_temporary(name) {
        return Ok(session.temp.get(&name.name.text).map(|temp| temp.table.clone()));
    }
    session.check_entry(open.id)?;
    let Some(catalog) = session.definitions(open.id) else { return Ok(None) };
    Ok(schemas_of(session, name).iter().find_map(|schema| catalog.tables.table(schema, &name.name.text).cloned()))
}

/// The object of a name that is no table and no type, if there is one.
pub(crate) fn find_object(session: &SessionState, catalog: &DatabaseCatalog, name: &ObjectName) -> Option<Arc<ObjectDef>> {
    schemas_of(session, name).iter().find_map(|schema| catalog.object(schema, &name.name.text).cloned())
}

/// Parses `[a].b.c` of a string argument (OBJECT_ID, sp_help) into a name.
pub(crate) fn parse_name(text: &str) -> Option<ObjectName> {
    thawdb_tsql::parse_object_name(text, &thawdb_tsql::ParseOptions::default()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_strings() {
        let check = |text: &str, expected: Option<(&str, &str, &str)>| {
            let name = parse_name(text);
            let parts = name.as_ref().map(|n| {
                let part = |p: &Option<thawdb_tsql::ast::Ident>| p.as_ref().map_or(String::new(), |p| p.text.clone());
                (part(&n.database), part(&n.schema), n.name.text.clone())
            });
            assert_eq!(parts, expected.map(|(d, s, n)| (d.into(), s.into(), n.into())), "{text}");
        };
        check("t", Some(("", "", "t")));
        check("dbo.t", Some(("", "dbo", "t")));
        check("tempdb..#t", Some(("tempdb", "", "#t")));
        check("[a.b].[c]]d]", Some(("", "a.b", "c]d")));
        check("[open", None);
        check("", None);
        check("a.b.c.d.e", None);
    }
}
