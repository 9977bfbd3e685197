//! What each statement that is no query takes, asked before it runs.
//!
//! ```text
//! statement ─► permission on a database, a schema, an object ─► missing: the message of a thing that is not there, or 262, 15247 ...
//! ```
//! Ownership chains do not count here: a module that makes or drops tables does so with the rights of who runs it. What cannot be
//! found is left to the statement, which says so itself. Statements about logins, users, roles and permissions ask in their files.
//!
//! Messages: 262, 1088, 2571, 2760, 3701, 4701, 4834, 4902, 5011, 5812, 6004, 6102, 15151, 15247, and 208 for ALTER of a module.

use crate::batch::failure::Failure;
use crate::ddl::names::{database_of, find_object, find_table, is_local_temporary, schema_for_new, shown};
use crate::messages::message;
use crate::security::rule::Securable;
use crate::session::state::SessionState;
use thawdb_catalog::{DatabaseId, ObjectId};
use thawdb_query::access::AccessAction;
use thawdb_tsql::ast::{Backup, BackupKind, CreateMode, Dbcc, DropKind, DropObject, NameOrVariable, ObjectName, StmtKind, TriggerTarget};
use thawdb_types::SqlError;

type Checked = Result<(), SqlError>;

impl SessionState {
    /// Fails if the session may not run a statement.
    pub(crate) fn may_execute(&self, kind: &StmtKind) -> Result<(), Failure> {
        if self.is_sysadmin() { Ok(()) } else { check(self, kind).map_err(Failure::run) }
    }
}

impl SessionState {
    /// Fails if the session may not make a table of this name: for SELECT INTO.
    pub(crate) fn may_create_table(&self, name: &ObjectName) -> Checked {
        if self.is_sysadmin() { Ok(()) } else { creates(self, "CREATE TABLE", name) }
    }

    /// Whether the session may change the definition of a table.
    pub(crate) fn may_alter(&self, database: DatabaseId, object: ObjectId) -> bool {
        let private = object.0 < 0 || database.0 < 0 || self.is_sysadmin();
        private || self.judge(database).is_ok_and(|judge| judge.allows(Securable::Object(object.0), "ALTER"))
    }
}

fn check(session: &SessionState, kind: &StmtKind) -> Checked {
    match kind {
        StmtKind::CreateTable(node) => creates(session, "CREATE TABLE", &node.name),
        StmtKind::CreateView(node) => module(session, "CREATE VIEW", node.mode, &node.name),
        StmtKind::CreateProcedure(node) => module(session, "CREATE PROCEDURE", node.mode, &node.name),
        StmtKind::CreateFunction(node) => module(session, "CREATE FUNCTION", node.mode, &node.name),
        StmtKind::CreateType(node) => creates(session, "CREATE TYPE", &node.name),
        StmtKind::CreateSynonym(node) => creates(session, "CREATE SYNONYM", &node.name),
        StmtKind::CreateSequence(node) => in_schema(session, &node.name, "CREATE SEQUENCE"),
        StmtKind::CreateTrigger(node) => trigger(session, &node.target),
        StmtKind::EnableTrigger(node) => trigger(session, &node.target),
        StmtKind::AlterTable(node) => alters(session, &node.table, 4902),
        StmtKind::TruncateTable(node) => alters(session, &node.table, 4701),
        StmtKind::CreateIndex(node) => alters(session, &node.table, 1088),
        StmtKind::AlterIndex(node) => alters(session, &node.table, 1088),
        StmtKind::DropIndex(node) => node.items.iter().try_for_each(|item| alters(session, &item.table, 3701)),
        StmtKind::UpdateStatistics(node) => alters(session, &node.table, 1088),
        StmtKind::CreateStatistics(node) => alters(session, &node.table, 1088),
        StmtKind::AlterSequence(node) => alters(session, &node.name, 15151),
        StmtKind::Drop(node) => drops(session, node),
        StmtKind::CreateSchema(_) => session.allow_database("CREATE SCHEMA", session.database.id),
        StmtKind::CreateDatabase(_) if session.server_judge().allows(Securable::Server, "CREATE ANY DATABASE") => Ok(()),
        StmtKind::CreateDatabase(_) => Err(message(262, &[&"CREATE DATABASE", &"master"])),
        StmtKind::AlterDatabase(node) => {
            let name = node.name.as_ref().map_or_else(|| session.database.name(), |name| name.text.clone());
            alters_database(session, &name)
        }
        StmtKind::AlterDatabaseScoped(_) => session.allow_database("ALTER ANY DATABASE SCOPED CONFIGURATION", session.database.id),
        StmtKind::BulkInsert(node) => {
            if !session.server_judge().allows(Securable::Server, "ADMINISTER BULK OPERATIONS") {
                return Err(message(4834, &[]));
            }
            inserts(session, &node.table)
        }
        StmtKind::InsertBulk(node) => inserts(session, &node.table),
        StmtKind::Backup(node) => backup(session, node),
        StmtKind::Restore(_) => Err(message(262, &[&"CREATE DATABASE", &"master"])),
        StmtKind::Dbcc(node) => dbcc(session, node),
        StmtKind::Checkpoint(_) => session.allow_database("CHECKPOINT", session.database.id),
        StmtKind::Kill(_) => on_server(session, "ALTER ANY CONNECTION", || message(6102, &[])),
        StmtKind::Reconfigure { .. } => on_server(session, "ALTER SETTINGS", || message(5812, &[])),
        StmtKind::Shutdown { .. } => on_server(session, "SHUTDOWN", || message(6004, &[])),
        StmtKind::CreateEventSession(_) | StmtKind::AlterEventSession(_) | StmtKind::DropEventSession(_) => {
            on_server(session, "ALTER ANY EVENT SESSION", || message(15247, &[]))
        }
        _ => Ok(()),
    }
}

fn on_server(session: &SessionState, permission: &str, refused: impl Fn() -> SqlError) -> Checked {
    if session.server_judge().allows(Securable::Server, permission) { Ok(()) } else { Err(refused()) }
}

/// A new object takes CREATE in the database and ALTER on the schema.
fn creates(session: &SessionState, permission: &'static str, name: &ObjectName) -> Checked {
    if name.name.text.starts_with('#') {
        return Ok(());
    }
    let open = database_of(session, name)?;
    session.check_entry(open.id)?;
    session.allow_database(permission, open.id)?;
    in_schema(session, name, "ALTER")
}

/// 2760 for a schema that is not there or not for this one.
fn in_schema(session: &SessionState, name: &ObjectName, permission: &str) -> Checked {
    let open = database_of(session, name)?;
    let schema = schema_for_new(session, name);
    let judge = session.judge(open.id)?;
    let known = session.definitions(open.id).and_then(|catalog| catalog.schema(&schema).map(|schema| schema.id.0));
    match known.filter(|id| judge.allows(Securable::Schema(*id), permission)) {
        Some(_) => Ok(()),
        None => Err(message(2760, &[&schema])),
    }
}

fn module(session: &SessionState, permission: &'static str, mode: CreateMode, name: &ObjectName) -> Checked {
    let found = object(session, name)?;
    match (mode, found) {
        (CreateMode::Create, _) | (CreateMode::CreateOrAlter, None) => creates(session, permission, name),
        (_, None) => Ok(()),
        (_, Some((database, id))) if on_object(session, "ALTER", (database, id))? => Ok(()),
        (_, Some(_)) => Err(message(208, &[&shown(name)]).with_state(6)),
    }
}

/// The number of the table or object of a name, if there is one; session's own tables apart.
fn object(session: &SessionState, name: &ObjectName) -> Result<Option<(DatabaseId, i32)>, SqlError> {
    if is_local_temporary(name) {
        return Ok(None);
    }
    let open = database_of(session, name)?;
    session.check_entry(open.id)?;
    if let Some(table) = find_table(session, name)? {
        let private = table.id.0 < 0 || table.name.starts_with('#');
        return Ok((!private).then_some((open.id, table.id.0)));
    }
    let Some(catalog) = session.definitions(open.id) else { return Ok(None) };
    Ok(find_object(session, &catalog, name).map(|object| (open.id, object.id.0)))
}

fn on_object(session: &SessionState, permission: &str, (database, id): (DatabaseId, i32)) -> Result<bool, SqlError> {
    Ok(session.judge(database)?.allows(Securable::Object(id), permission))
}

/// ALTER on a table or another object; what is missing is told as `number` tells what is not there.
fn alters(session: &SessionState, name: &ObjectName, number: i32) -> Checked {
    match object(session, name)? {
        Some(found) if !on_object(session, "ALTER", found)? => Err(match number {
            3701 => message(3701, &[&"drop", &"index", &shown(name)]).with_state(7),
            15151 => message(15151, &[&"alter", &"sequence object", &shown(name)]),
            number => message(number, &[&shown(name)]),
        }),
        _ => Ok(()),
    }
}

fn trigger(session: &SessionState, target: &TriggerTarget) -> Checked {
    match target {
        TriggerTarget::Object(name) => match object(session, name)? {
            Some(found) if !on_object(session, "ALTER", found)? => Err(message(8197, &[&shown(name)])),
            _ => Ok(()),
        },
        TriggerTarget::Database => session.allow_database("ALTER ANY DATABASE DDL TRIGGER", session.database.id),
        TriggerTarget::AllServer => on_server(session, "CONTROL SERVER", || message(15247, &[])),
    }
}

/// How messages call what DROP drops.
fn word_of(kind: DropKind) -> &'static str {
    match kind {
        DropKind::Table => "table",
        DropKind::View => "view",
        DropKind::Procedure => "procedure",
        DropKind::Function => "function",
        DropKind::Trigger => "trigger",
        DropKind::Sequence => "sequence object",
        DropKind::Synonym => "synonym",
        DropKind::Type => "type",
        _ => "object",
    }
}

fn drops(session: &SessionState, node: &DropObject) -> Checked {
    node.names.iter().try_for_each(|name| drops_one(session, node, name))
}

fn drops_one(session: &SessionState, node: &DropObject, name: &ObjectName) -> Checked {
    let refused = |word: &str| message(3701, &[&"drop", &word, &shown(name)]).with_state(5);
    match node.kind {
        DropKind::Login | DropKind::User | DropKind::Role | DropKind::ServerRole => Ok(()),
        DropKind::Database => {
            let server = session.server_judge().allows(Securable::Server, "ALTER ANY DATABASE");
            // One that could not be opened has no users to ask: it is the instance's.
            let open = session.engine.database_named(&name.name.text);
            let own = open.is_some_and(|open| session.judge(open.id).is_ok_and(|judge| judge.allows(Securable::Database, "CONTROL")));
            if server || own { Ok(()) } else { Err(message(3701, &[&"drop", &"database", &name.name.text]).with_state(1)) }
        }
        DropKind::Schema => {
            let judge = session.judge(session.database.id)?;
            let catalog = session.definitions(session.database.id);
            let known = catalog.and_then(|catalog| catalog.schema(&name.name.text).map(|schema| schema.id.0));
            match known {
                Some(id) if !judge.allows(Securable::Schema(id), "ALTER") => Err(message(15151, &[&"drop", &"schema", &name.name.text])),
                _ => Ok(()),
            }
        }
        DropKind::Type => {
            let open = database_of(session, name)?;
            let judge = session.judge(open.id)?;
            let Some(catalog) = session.definitions(open.id) else { return Ok(()) };
            let schema = crate::ddl::names::schema_of(session, name);
            match catalog.user_type(&schema, &name.name.text) {
                Some(found) if !may_drop(&judge, Securable::Type(found.id.0), found.schema.0) => Err(refused("type")),
                _ => Ok(()),
            }
        }
        kind => {
            let Some((database, id)) = object(session, name)? else { return Ok(()) };
            let (judge, catalog) = (session.judge(database)?, session.definitions(database));
            let parent = catalog.as_ref().and_then(|catalog| catalog.objects.get(&id).and_then(|object| object.parent));
            if let Some(ObjectId(table)) = parent {
                return if judge.allows(Securable::Object(table), "ALTER") { Ok(()) } else { Err(refused(word_of(kind))) };
            }
            let schema = catalog.and_then(|catalog| crate::security::rule::schema_of_object(&catalog, id)).unwrap_or(0);
            if may_drop(&judge, Securable::Object(id), schema) { Ok(()) } else { Err(refused(word_of(kind))) }
        }
    }
}

fn may_drop(judge: &crate::security::rule::Judge, securable: Securable, schema: i32) -> bool {
    judge.allows(Securable::Schema(schema), "ALTER") || judge.allows(securable, "CONTROL")
}

/// 5011 for a database that is not there or not for this one.
pub(crate) fn alters_database(session: &SessionState, name: &str) -> Checked {
    let open = session.engine.database_named(name);
    let allowed = |id: DatabaseId| {
        let own = session.judge(id).is_ok_and(|judge| judge.allows(Securable::Database, "ALTER"));
        own || session.server_judge().allows(Securable::Server, "ALTER ANY DATABASE")
    };
    match open.filter(|open| allowed(open.id)) {
        Some(_) => Ok(()),
        None => Err(message(5011, &[&name])),
    }
}

fn inserts(session: &SessionState, name: &ObjectName) -> Checked {
    match object(session, name)? {
        Some((database, id)) => session.allow_action(AccessAction::Insert, (database, ObjectId(id))),
        None => Ok(()),
    }
}

fn backup(session: &SessionState, node: &Backup) -> Checked {
    let NameOrVariable::Name(name) = &node.database else {
        return on_server(session, "CONTROL SERVER", || message(262, &[&"BACKUP DATABASE", &session.database.name()]));
    };
    let Some(open) = session.engine.database_named(&name.text) else { return Ok(()) };
    session.check_entry(open.id)?;
    session.allow_database(if node.kind == BackupKind::Log { "BACKUP LOG" } else { "BACKUP DATABASE" }, open.id)
}

/// DBCC commands take db_owner, those about the whole instance sysadmin, some the state of the server.
fn dbcc(session: &SessionState, node: &Dbcc) -> Checked {
    let judge = session.judge(session.database.id)?;
    let user = judge.user.as_ref().map_or_else(|| "dbo".to_owned(), |(user, _)| user.name.clone());
    let allowed = match node.name.as_str() {
        "CHECKDB" | "CHECKALLOC" | "CHECKCATALOG" | "CHECKTABLE" | "CHECKIDENT" | "CHECKFILEGROUP" | "CHECKCONSTRAINTS" | "SHRINKFILE"
        | "SHRINKDATABASE" | "LOGINFO" | "UPDATEUSAGE" | "SHOW_STATISTICS" | "OPENTRAN" => {
            let own = node.arguments.is_empty() || !names_other(session, node);
            own && judge.allows(Securable::Database, "CONTROL")
        }
        "SQLPERF" => judge.allows(Securable::Server, "VIEW SERVER STATE"),
        "FREEPROCCACHE" | "FREESYSTEMCACHE" | "FREESESSIONCACHE" | "DROPCLEANBUFFERS" => {
            judge.allows(Securable::Server, "ALTER SERVER STATE")
        }
        "TRACESTATUS" | "USEROPTIONS" => true,
        _ => false,
    };
    if allowed { Ok(()) } else { Err(message(2571, &[&user, &format!("DBCC {}", node.name)])) }
}

/// Whether a command names another database than the current one, or might: what is no literal is not known yet.
fn names_other(session: &SessionState, node: &Dbcc) -> bool {
    use thawdb_tsql::ast::{DbccArgument, ExprKind, Literal};
    let Some(first) = node.arguments.first() else { return false };
    let is_other = |name: &str| !session.database.name().eq_ignore_ascii_case(name);
    let of_database = matches!(node.name.as_str(), "CHECKDB" | "CHECKALLOC" | "CHECKCATALOG" | "SHRINKDATABASE" | "LOGINFO");
    // The others name a table or a file, a table perhaps in another database.
    let in_other = |name: &ObjectName| match of_database {
        true => is_other(&name.name.text),
        false => name.database.as_ref().is_some_and(|database| is_other(&database.text)),
    };
    match first {
        DbccArgument::Name(name) => in_other(name),
        DbccArgument::Expr(expr) => match &expr.kind {
            ExprKind::Literal(Literal::String { value, .. }) if of_database => is_other(value),
            ExprKind::Literal(Literal::String { value, .. }) => crate::ddl::names::parse_name(value).is_none_or(|name| in_other(&name)),
            ExprKind::Literal(Literal::Integer(id)) => of_database && *id != 0 && *id != session.database.id.0,
            _ => true,
        },
    }
}
