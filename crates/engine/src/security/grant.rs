//! GRANT, DENY and REVOKE.
//!
//! ```text
//! names ─► permissions on one securable ─► may this one give them? ─► each grantee's list anew ─► catalog, or master
//! ```
//! 1. A word about a whole object takes words about its columns with it, for the same permission and grantee.
//! 2. GRANT takes back a DENY of the same, DENY a GRANT; REVOKE takes back either ([`Change::apply`]).
//! 3. CASCADE follows what the grantee gave on (`cascade`).
//!
//! Messages: 15151 (no such securable or grantee, or not for this one), 4613 (no right to give it), 4606 (not on such a thing), 4611
//! (CASCADE is needed), 4617 and 4624 (special principals), 4610 and 4621 (wrong database), 4623 (ALL), 1020 (columns twice).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::{find_table, shown};
use crate::ddl::{catalog_error, change_catalog};
use crate::instance::MASTER_ID;
use crate::messages::{message, unsupported_option};
use crate::security::logins::{change_instance, principal_named};
use crate::security::permissions::{self, ALL_OF_DATABASE, Kind, Permission, all_of, fits};
use crate::security::roles::server_role_named;
use crate::security::rule::{Judge, Securable};
use crate::security::token::{DB_SECURITYADMIN, DBO, FIRST_USER, GUEST, PUBLIC, SA, SECURITYADMIN};
use crate::session::state::SessionState;
use std::collections::BTreeMap;
use thawdb_catalog::{DatabaseCatalog, Grant, GrantState, ObjectKind};
use thawdb_tsql::ast::{self, Ident, PermissionAction};
use thawdb_types::SqlError;

/// What a statement is about.
struct Subject {
    securable: Securable,
    /// How messages call it: its class in words, and its name.
    word: &'static str,
    name: String,
    /// Kind of an object that is no table.
    object: Option<ObjectKind>,
    /// Columns named beside the object.
    columns: Vec<i32>,
}

/// One permission, with the columns it is about.
type Wanted = (&'static Permission, Vec<i32>);

/// What to do to each grantee's list.
struct Change {
    action: PermissionAction,
    state: GrantState,
    option_only: bool,
    cascade: bool,
    grantor: i32,
    wanted: Vec<(u8, i32, i32, [u8; 4])>,
}

type Lists = BTreeMap<i32, Vec<Grant>>;

impl Change {
    /// Changes the list of one grantee, and those of others that hang on it.
    fn apply(&self, lists: &mut Lists, grantee: i32) -> Result<(), SqlError> {
        for &(class, major, minor, permission) in &self.wanted {
            let about = |g: &Grant| g.class == class && g.major == major && g.permission == permission && (minor == 0 || g.minor == minor);
            let own = lists.get(&grantee).map_or(&[][..], Vec::as_slice);
            let given_on = own.iter().any(|g| about(g) && g.state == GrantState::WithGrantOption);
            if self.action != PermissionAction::Grant && given_on && !self.cascade {
                return Err(message(4611, &[]));
            }
            if self.cascade {
                self.follow(lists, grantee, &about, 0);
            }
            let list = lists.entry(grantee).or_default();
            match self.action {
                PermissionAction::Revoke if self.option_only => {
                    list.iter_mut()
                        .filter(|g| about(g) && g.state == GrantState::WithGrantOption)
                        .for_each(|g| g.state = GrantState::Grant);
                }
                PermissionAction::Revoke => list.retain(|g| !about(g)),
                PermissionAction::Grant | PermissionAction::Deny => {
                    // What was given with the option before keeps it.
                    let keeps = self.state == GrantState::Grant
                        && list.iter().any(|g| about(g) && g.minor == minor && g.state == GrantState::WithGrantOption);
                    list.retain(|g| !about(g));
                    let state = if keeps { GrantState::WithGrantOption } else { self.state };
                    list.push(Grant { class, major, minor, permission, state, grantor: self.grantor });
                }
            }
        }
        Ok(())
    }

    /// What a grantee has given on goes, or is denied, with what it had.
    fn follow(&self, lists: &mut Lists, grantor: i32, about: &dyn Fn(&Grant) -> bool, depth: usize) {
        let next: Vec<i32> = lists.iter().filter(|(_, l)| l.iter().any(|g| about(g) && g.grantor == grantor)).map(|(id, _)| *id).collect();
        for grantee in next.into_iter().filter(|grantee| *grantee != grantor) {
            if depth < CASCADE_MAX {
                self.follow(lists, grantee, about, depth + 1);
            }
            let list = lists.entry(grantee).or_default();
            match self.action {
                PermissionAction::Deny => {
                    list.iter_mut().filter(|g| about(g) && g.grantor == grantor).for_each(|g| g.state = GrantState::Deny);
                }
                _ => list.retain(|g| !(about(g) && g.grantor == grantor)),
            }
        }
    }
}

/// Grantees of grantees followed: deeper than any chain that people make.
const CASCADE_MAX: usize = 64;

/// GRANT, DENY, REVOKE.
pub(crate) fn permission(interpreter: &mut Interpreter<'_, '_>, node: &ast::Permission) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    let subject = subject_of(session, node)?;
    let wanted = wanted_of(session, node, &subject)?;
    if subject.securable.kind().is_of_server() {
        if session.database.id != MASTER_ID {
            return Err(message(4621, &[]).into());
        }
        return on_server(session, node, &subject, &wanted).map_err(Failure::run);
    }
    interpreter.transactional(|this| in_database(this.session, node, &subject, &wanted).map_err(Failure::run))
}

fn missing(word: &str, name: &str) -> SqlError {
    message(15151, &[&"find", &word, &name])
}

fn subject(securable: Securable, word: &'static str, name: &str) -> Subject {
    Subject { securable, word, name: name.to_owned(), object: None, columns: Vec::new() }
}

fn subject_of(session: &SessionState, node: &ast::Permission) -> Result<Subject, SqlError> {
    let Some(named) = &node.securable else {
        let (name, _) = &node.permissions[0];
        let of_server =
            name != "ALL" && permissions::find(Kind::Database, name).is_none() && permissions::find(Kind::Server, name).is_some();
        let database = session.database.name();
        return Ok(if of_server { subject(Securable::Server, "server", "") } else { subject(Securable::Database, "database", &database) });
    };
    let name = &named.name.name.text;
    let catalog = session.definitions(session.database.id).ok_or_else(|| message(911, &[&session.database.name()]))?;
    match named.class.as_deref() {
        None | Some("OBJECT") => object_subject(session, &catalog, named),
        Some("DATABASE") if session.database.name().eq_ignore_ascii_case(name) => Ok(subject(Securable::Database, "database", name)),
        Some("DATABASE") => Err(missing("database", name)),
        Some("SCHEMA") => {
            let schema = catalog.schema(name).ok_or_else(|| missing("schema", name))?;
            Ok(subject(Securable::Schema(schema.id.0), "schema", name))
        }
        Some("TYPE") => {
            let schema = named.name.schema.as_ref().map_or_else(|| session.users_schema().1.to_string(), |schema| schema.text.clone());
            let found = catalog.user_type(&schema, name).or_else(|| catalog.user_type("dbo", name).filter(|_| named.name.schema.is_none()));
            Ok(subject(Securable::Type(found.ok_or_else(|| missing("type", name))?.id.0), "type", name))
        }
        Some(class @ ("USER" | "ROLE")) => {
            let (word, role) = if class == "ROLE" { ("role", true) } else { ("user", false) };
            let found = catalog.user(name).filter(|user| (user.kind == b'R') == role).ok_or_else(|| missing(word, name))?;
            Ok(subject(if role { Securable::Role(found.id) } else { Securable::User(found.id) }, word, name))
        }
        Some("LOGIN") => {
            let found = principal_named(&session.engine.master.lock(), name).filter(|login| !login.is_role());
            Ok(subject(Securable::Login(found.ok_or_else(|| missing("login", name))?.id), "login", name))
        }
        Some("SERVER ROLE") => {
            let found = server_role_named(&session.engine.master.lock(), name);
            Ok(subject(Securable::ServerRole(found.ok_or_else(|| missing("server role", name))?.0), "server role", name))
        }
        Some(other) => Err(unsupported_option(other)),
    }
}

fn object_subject(session: &SessionState, catalog: &DatabaseCatalog, named: &ast::Securable) -> Result<Subject, SqlError> {
    let name = &named.name;
    if name.database.as_ref().is_some_and(|database| !session.database.name().eq_ignore_ascii_case(&database.text)) {
        return Err(message(4610, &[]));
    }
    let unknown = || missing("object", &name.name.text);
    if let Some(table) = find_table(session, name)?.filter(|table| table.id.0 > 0) {
        let mut found = subject(Securable::Object(table.id.0), "object", &table.name);
        found.columns = named.columns.iter().map(|column| column_of(&table, column)).collect::<Result<_, _>>()?;
        return Ok(found);
    }
    let object = crate::ddl::names::find_object(session, catalog, name).ok_or_else(unknown)?;
    let number = |column: &Ident| {
        let at = object.columns.iter().position(|known| known.name.eq_ignore_ascii_case(&column.text));
        at.and_then(|at| i32::try_from(at + 1).ok()).ok_or_else(|| message(1911, &[&column.text]))
    };
    let columns = named.columns.iter().map(number).collect::<Result<_, _>>()?;
    Ok(Subject { securable: Securable::Object(object.id.0), word: "object", name: shown(name), object: Some(object.kind), columns })
}

fn column_of(table: &thawdb_catalog::TableDef, column: &Ident) -> Result<i32, SqlError> {
    let found = table.column_index(&column.text).map(|at| table.columns[at].id.0);
    found.ok_or_else(|| message(1911, &[&column.text]))
}

fn wanted_of(session: &SessionState, node: &ast::Permission, subject: &Subject) -> Result<Vec<Wanted>, SqlError> {
    let kind = subject.securable.kind();
    let mut wanted = Vec::new();
    for (name, columns) in &node.permissions {
        if !columns.is_empty() && !subject.columns.is_empty() {
            return Err(message(1020, &[]));
        }
        if matches!(name.as_str(), "ALL" | "ALL PRIVILEGES") {
            let names = match kind {
                Kind::Database => ALL_OF_DATABASE,
                Kind::Object => all_of(subject.object),
                _ => return Err(message(4623, &[])),
            };
            wanted.extend(names.iter().filter_map(|name| Some((permissions::find(kind, name)?, subject.columns.clone()))));
            continue;
        }
        let Some(permission) = permissions::find(kind, name) else {
            let elsewhere = permissions::PERMISSIONS.iter().any(|known| known.name == name);
            return Err(if elsewhere { message(4606, &[name]) } else { unsupported_option(name) });
        };
        if kind == Kind::Object && !fits(permission, subject.object) {
            return Err(message(4606, &[name]));
        }
        if permission.name == "CREATE DATABASE" && session.database.id != MASTER_ID {
            return Err(message(4619, &[]));
        }
        let mut own = subject.columns.clone();
        if !columns.is_empty() {
            let table = match subject.securable {
                Securable::Object(id) => session.table(session.database.id, thawdb_catalog::ObjectId(id)),
                _ => None,
            };
            let table = table.ok_or_else(|| message(1020, &[]))?;
            own = columns.iter().map(|column| column_of(&table, column)).collect::<Result<_, _>>()?;
        }
        if !own.is_empty() && !matches!(permission.name, "SELECT" | "UPDATE" | "REFERENCES") {
            return Err(message(1020, &[]));
        }
        wanted.push((permission, own));
    }
    Ok(wanted)
}

/// Whether the one who acts may give a permission on: it controls the thing, administers security, or has the permission to give.
fn may_give(judge: &Judge, subject: &Subject, permission: &'static Permission) -> bool {
    let (kind, major) = (subject.securable.kind(), subject.securable.major());
    let control = if kind == Kind::Server { "CONTROL SERVER" } else { "CONTROL" };
    if judge.allows(subject.securable, control) {
        return true;
    }
    let in_role = judge.user.as_ref().is_some_and(|(user, _)| user.principals.contains(&DB_SECURITYADMIN));
    if in_role && !kind.is_of_server() || judge.server.principals.contains(&SECURITYADMIN) && kind.is_of_server() {
        return permission.name != control;
    }
    let class = kind.class();
    let given = |list: &[Grant]| {
        list.iter().any(|g| {
            g.class == class
                && g.major == major
                && g.minor == 0
                && g.permission == permission.code()
                && g.state == GrantState::WithGrantOption
        })
    };
    let of_user =
        judge.user.as_ref().is_some_and(|(user, catalog)| user.principals.iter().any(|id| given(catalog.security.grants_of(*id))));
    of_user || judge.server.principals.iter().any(|id| given(judge.server.security.grants_of(*id)))
}

/// Fails if the one who acts may not give what is wanted: as if the thing were not there, if it may not know of it.
fn check_giver(judge: &Judge, subject: &Subject, wanted: &[Wanted]) -> Result<(), SqlError> {
    for (permission, _) in wanted {
        if may_give(judge, subject, permission) {
            continue;
        }
        let known = match subject.securable {
            Securable::Object(id) => judge.sees(id, subject.object),
            Securable::Server | Securable::Database => true,
            other => crate::security::visibility::any(judge, other),
        };
        return Err(if known { message(4613, &[]) } else { missing(subject.word, &subject.name) });
    }
    Ok(())
}

fn change_of(node: &ast::Permission, subject: &Subject, wanted: &[Wanted], grantor: i32) -> Change {
    let (class, major) = (subject.securable.kind().class(), subject.securable.major());
    let mut all = Vec::new();
    for (permission, columns) in wanted {
        match columns.as_slice() {
            [] => all.push((class, major, 0, permission.code())),
            columns => all.extend(columns.iter().map(|column| (class, major, *column, permission.code()))),
        }
    }
    let state = match (node.action, node.with_grant_option) {
        (PermissionAction::Deny, _) => GrantState::Deny,
        (_, true) => GrantState::WithGrantOption,
        (_, false) => GrantState::Grant,
    };
    Change { action: node.action, state, option_only: node.grant_option_for, cascade: node.cascade, grantor, wanted: all }
}

fn in_database(session: &mut SessionState, node: &ast::Permission, subject: &Subject, wanted: &[Wanted]) -> Result<(), SqlError> {
    let open = session.database.clone();
    let judge = session.judge(open.id)?;
    check_giver(&judge, subject, wanted)?;
    let me = judge.user.as_ref().map_or(DBO, |(user, _)| user.user);
    change_catalog(session, &open, |catalog, part| {
        let owner = match subject.securable {
            Securable::Object(id) | Securable::Type(id) => crate::security::rule::owner_of(catalog, id),
            Securable::Schema(id) => catalog.schemas.get(&id).map(|schema| schema.owner),
            _ => None,
        };
        // Who may everything gives in the owner's name.
        let unlimited = judge.is_unlimited(Kind::Database);
        let grantor = match &node.as_principal {
            Some(name) => {
                let found = catalog.user(&name.text).ok_or_else(|| missing("user", &name.text))?;
                let own = judge.user.as_ref().is_some_and(|(user, _)| user.principals.contains(&found.id));
                if unlimited || own { found.id } else { return Err(message(4618, &[&name.text])) }
            }
            None if unlimited => owner.unwrap_or(DBO),
            None => me,
        };
        let change = change_of(node, subject, wanted, grantor);
        for name in &node.principals {
            let grantee = catalog.user(&name.text).ok_or_else(|| missing("user", &name.text))?;
            let special = matches!(grantee.id, DBO | 3 | 4) || Some(grantee.id) == owner || (grantee.id == me && me != DBO);
            if grantee.fixed && grantee.id >= FIRST_USER {
                return Err(message(4617, &[]));
            }
            if special && !matches!(grantee.id, PUBLIC | GUEST) {
                return Err(message(4624, &[]));
            }
            let mut lists = catalog.security.grants.clone();
            let grantee = grantee.id;
            change.apply(&mut lists, grantee)?;
            for (id, list) in lists {
                if catalog.security.grants_of(id) != list.as_slice() {
                    catalog.put_grants(&mut part.txn, id, list).map_err(catalog_error(&open))?;
                }
            }
        }
        Ok(())
    })
}

fn on_server(session: &SessionState, node: &ast::Permission, subject: &Subject, wanted: &[Wanted]) -> Result<(), SqlError> {
    let judge = session.server_judge();
    check_giver(&judge, subject, wanted)?;
    let grantor = if judge.server.sysadmin { SA } else { judge.server.login };
    let change = change_of(node, subject, wanted, grantor);
    change_instance(session, |instance, txn| {
        for name in &node.principals {
            let role = server_role_named(instance, &name.text);
            let login = principal_named(instance, &name.text).map(|login| login.id);
            let Some(grantee) = login.or(role.as_ref().map(|(id, ..)| *id)) else { return Ok(Err(missing("login", &name.text))) };
            if role.is_some_and(|(id, _, fixed)| fixed && id != crate::security::token::SERVER_PUBLIC) {
                return Ok(Err(message(4617, &[])));
            }
            if grantee == SA || grantee == judge.server.login {
                return Ok(Err(message(4624, &[])));
            }
            let mut lists = instance.security.grants.clone();
            if let Err(error) = change.apply(&mut lists, grantee) {
                return Ok(Err(error));
            }
            for (id, list) in lists {
                if instance.security.grants_of(id) != list.as_slice() {
                    instance.put_grants(txn, id, list)?;
                }
            }
        }
        Ok(Ok(()))
    })
}
