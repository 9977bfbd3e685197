//! What somebody may know of: catalog views, OBJECT_ID and their kin show only what the user owns or has some permission on.
//!
//! ```text
//! catalog ─► objects with a permission ─► a catalog of its own, from which views and functions answer
//! ```
//! Views ask for `SessionState::visible` where the binder asks for `SessionState::definitions`: they cannot forget to look.
//! Beyond that, texts of modules, defaults and checks need VIEW DEFINITION ([`defines`]); rows about the whole instance need
//! VIEW SERVER STATE ([`check_view`]), except those about the session itself.
//!
//! Messages: 300 and 262 with what is missing.

use crate::messages::message;
use crate::security::permissions::Kind;
use crate::security::rule::{Judge, Securable, Verdict};
use crate::security::token::{FIRST_USER, PUBLIC};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{ConstraintKind, DatabaseCatalog, DatabaseId, ObjectId, SchemaDef, TableDef, UserDef};
use thawdb_types::SqlError;

/// Numbers of fixed roles, and of their schemas, begin here.
const FIRST_FIXED: i32 = 16384;

/// A catalog as a user sees it.
pub(crate) fn seen_by(judge: &Judge, catalog: &Arc<DatabaseCatalog>) -> Arc<DatabaseCatalog> {
    let all = judge.allows(Securable::Database, "VIEW DEFINITION") && !judge.is_denied_anything();
    if all || judge.is_unlimited(Kind::Database) {
        return catalog.clone();
    }
    let object = |id: i32| {
        let kind = catalog.objects.get(&id).map(|object| object.kind);
        // A trigger is seen with its table.
        let parent = catalog.objects.get(&id).and_then(|object| object.parent);
        match parent {
            Some(parent) => judge.verdict(Securable::Object(parent.0), "VIEW DEFINITION") == Verdict::Granted,
            None => judge.sees(id, kind),
        }
    };
    let constraint = |constraint: &thawdb_catalog::ConstraintDef| {
        let shape = matches!(constraint.kind, ConstraintKind::PrimaryKey(_) | ConstraintKind::Unique(_) | ConstraintKind::ForeignKey);
        shape || judge.allows(Securable::Object(constraint.table.0), "VIEW DEFINITION")
    };
    let (me, others) = judge.user.as_ref().map_or((0, None), |(user, _)| (user.user, Some(&user.principals)));
    let user = |user: &UserDef| {
        let known = user.id == me || user.id < FIRST_USER || user.id >= FIRST_FIXED || user.id == PUBLIC;
        let securable = if user.kind == b'R' { Securable::Role(user.id) } else { Securable::User(user.id) };
        known || others.is_some_and(|principals| principals.contains(&user.id)) || any(judge, securable)
    };
    let schema = |schema: &SchemaDef| {
        let fixed = schema.id.0 < FIRST_USER || schema.id.0 >= FIRST_FIXED;
        fixed || any(judge, Securable::Schema(schema.id.0))
    };
    Arc::new(catalog.restricted(object, constraint, user, schema))
}

/// Whether there is any permission on something.
pub(crate) fn any(judge: &Judge, securable: Securable) -> bool {
    let kind = securable.kind();
    crate::security::permissions::PERMISSIONS.iter().filter(|p| p.kind == kind).any(|p| judge.allows(securable, p.name))
}

/// Whether the text of an object may be shown.
pub(crate) fn defines(session: &SessionState, database: DatabaseId, object: ObjectId) -> bool {
    session.is_sysadmin() || session.judge(database).is_ok_and(|judge| judge.allows(Securable::Object(object.0), "VIEW DEFINITION"))
}

/// The definition of a table that the session may see; its own temporary tables and variables among them.
pub(crate) fn table(session: &SessionState, database: DatabaseId, id: ObjectId) -> Option<Arc<TableDef>> {
    let table = session.table(database, id)?;
    let private = database.0 < 0 || id.0 < 0 || table.name.starts_with('#');
    (private || session.visible(database)?.tables.tables.contains_key(&id.0)).then_some(table)
}

/// Views that need no permission of the instance: they show a session its own rows or what everybody may know, or ask themselves.
const OPEN_VIEWS: &[&str] =
    &["dm_exec_sessions", "dm_exec_requests", "dm_db_partition_stats", "dm_db_stats_properties", "dm_db_stats_histogram"];

/// Fails if a view shows more than the session may know: 300 for the instance, 262 for a database.
pub(crate) fn check_view(session: &SessionState, name: &str, database: DatabaseId) -> Result<(), SqlError> {
    if !(name.starts_with("dm_") || name == "thawdb_error_log") || OPEN_VIEWS.contains(&name) || session.is_sysadmin() {
        return Ok(());
    }
    if name.starts_with("dm_db_") || matches!(name, "dm_tran_version_store_space_usage") {
        let allowed = session.judge(database)?.allows(Securable::Database, "VIEW DATABASE PERFORMANCE STATE");
        let shown = session.storage_of(database)?.name();
        return if allowed { Ok(()) } else { Err(message(262, &[&"VIEW DATABASE PERFORMANCE STATE", &shown])) };
    }
    sees_server(session)
}

/// Fails with 300 if the session may not see the state of the instance.
pub(crate) fn sees_server(session: &SessionState) -> Result<(), SqlError> {
    const NEEDED: &str = "VIEW SERVER PERFORMANCE STATE";
    if session.is_sysadmin() || session.server_judge().allows(Securable::Server, NEEDED) {
        return Ok(());
    }
    Err(message(300, &[&NEEDED, &"server", &"master"]))
}
