//! From a name as written to the object it means.

use crate::instance::TEMPDB_ID;
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::TableDef;
use thawdb_tsql::ast::ObjectName;
use thawdb_types::SqlError;

/// The schema of names that give none.
pub(crate) const DEFAULT_SCHEMA: &str = "dbo";

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

/// The schema a name is in, as written or the default.
pub(crate) fn schema_of(name: &ObjectName) -> &str {
    name.schema.as_ref().map_or(DEFAULT_SCHEMA, |schema| &schema.text)
}

/// The table of a name, if there is one.
pub(crate) fn find_table(session: &SessionState, name: &ObjectName) -> Result<Option<Arc<TableDef>>, SqlError> {
    let open = database_of(session, name)?;
    if is_local_temporary(name) {
        return Ok(session.temp.get(&name.name.text).map(|temp| temp.table.clone()));
    }
    let catalog = session.definitions(open.id);
    Ok(catalog.and_then(|catalog| catalog.tables.table(schema_of(name), &name.name.text).cloned()))
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
