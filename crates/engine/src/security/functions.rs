//! Functions about principals and permissions: SUSER_SNAME, USER_NAME, IS_MEMBER, HAS_PERMS_BY_NAME and their kin.
//!
//! They answer about the one who acts now; ORIGINAL_LOGIN() about who logged in. Names of others are told as the views tell them.

use crate::ddl::names::{find_object, find_table, parse_name};
use crate::security::permissions::Kind;
use crate::security::roles::server_role_named;
use crate::security::rule::{Judge, Securable};
use crate::security::token::{PUBLIC, SERVER_PUBLIC, SERVER_ROLES, Who, server_token};
use crate::session::state::SessionState;
use thawdb_catalog::{DatabaseCatalog, LoginRecord};
use thawdb_types::{Scalar, SqlError};

fn text(value: impl Into<String>) -> Scalar {
    Scalar::Text(value.into())
}

fn optional<T>(value: Option<T>, scalar: impl FnOnce(T) -> Scalar) -> Scalar {
    value.map_or(Scalar::Null, scalar)
}

fn truth(value: bool) -> Scalar {
    Scalar::Int(i32::from(value))
}

/// A function without arguments, by its lower-case name.
pub(crate) fn of_nobody_else(session: &SessionState, name: &str) -> Option<Scalar> {
    let user = || session.user_token(session.database.id);
    Some(match name {
        "suser_sname" | "suser_name" | "system_user" => text(session.server_token().name.clone()),
        "original_login" => match session.contexts.bottom() {
            Who::Login(id) => optional(session.engine.master.lock().logins.get(&id), |login| text(login.name.clone())),
            Who::User(..) => Scalar::Null,
        },
        "suser_id" => optional(Some(session.server_token().login).filter(|id| *id != 0), Scalar::Int),
        "suser_sid" => Scalar::Binary(session.server_token().sid.clone()),
        "user_name" | "user" | "current_user" | "session_user" => text(user().map_or_else(|| "dbo".to_owned(), |user| user.name.clone())),
        "user_id" | "database_principal_id" => Scalar::Int(user().map_or(1, |user| user.user)),
        "schema_name" => text(&*session.default_schema().1),
        "schema_id" => optional(Some(session.default_schema().0.0).filter(|id| *id > 0), Scalar::Int),
        _ => return None,
    })
}

/// A function with arguments, by its upper-case name; `None` if it is none of these.
pub(crate) fn of_principals(session: &SessionState, name: &str, given: &[Scalar]) -> Option<Scalar> {
    let argument = |at: usize| given.get(at).and_then(Scalar::as_text);
    let number = |at: usize| given.get(at).and_then(Scalar::as_i64).and_then(|value| i32::try_from(value).ok());
    let catalog = || session.visible(session.database.id);
    Some(match name {
        "SUSER_ID" => optional(argument(0).and_then(|name| principal(session, |login| login.name.eq_ignore_ascii_case(name))), |login| {
            Scalar::Int(login.id)
        }),
        "SUSER_NAME" => optional(number(0).and_then(|id| server_name(session, id)), text),
        "SUSER_SID" => optional(argument(0).and_then(|name| principal(session, |login| login.name.eq_ignore_ascii_case(name))), |login| {
            Scalar::Binary(login.sid)
        }),
        "SUSER_SNAME" => {
            let Some(Scalar::Binary(sid)) = given.first() else { return Some(Scalar::Null) };
            optional(principal(session, |login| login.sid == *sid), |login| text(login.name))
        }
        "USER_ID" | "DATABASE_PRINCIPAL_ID" => {
            let catalog = catalog()?;
            optional(argument(0).and_then(|name| catalog.user(name)), |user| Scalar::Int(user.id))
        }
        "USER_NAME" => {
            let catalog = catalog()?;
            optional(number(0).and_then(|id| catalog.users.get(&id)), |user| text(user.name.clone()))
        }
        "IS_MEMBER" | "IS_ROLEMEMBER" => is_member(session, argument(0)?, argument(1)),
        "IS_SRVROLEMEMBER" => is_server_member(session, argument(0)?, argument(1)),
        "HAS_DBACCESS" => {
            let open = session.engine.database_named(argument(0)?);
            optional(open, |open| truth(session.user_token(open.id).is_some()))
        }
        "HAS_PERMS_BY_NAME" => has_permission(session, [argument(0), argument(1), argument(2), argument(3), argument(4)]),
        "PERMISSIONS" => Scalar::Int(if session.is_sysadmin() { i32::MAX } else { 0 }),
        _ => return None,
    })
}

/// A login that the session may know of: its own, sa, or any under ALTER ANY LOGIN or a permission on it.
pub(crate) fn sees_login(session: &SessionState, login: &LoginRecord) -> bool {
    if session.is_sysadmin() {
        return true;
    }
    let judge = session.server_judge();
    let securable = if login.is_role() { Securable::ServerRole(login.id) } else { Securable::Login(login.id) };
    login.id == 1 || judge.server.principals.contains(&login.id) || crate::security::visibility::any(&judge, securable)
}

fn principal(session: &SessionState, test: impl Fn(&LoginRecord) -> bool) -> Option<LoginRecord> {
    let found = session.engine.master.lock().logins.values().find(|login| test(login)).cloned();
    found.filter(|login| sees_login(session, login))
}

fn server_name(session: &SessionState, id: i32) -> Option<String> {
    let fixed = SERVER_ROLES.iter().find(|(fixed, ..)| *fixed == id).map(|(_, name, _)| (*name).to_owned());
    fixed.or_else(|| principal(session, |login| login.id == id).map(|login| login.name))
}

/// IS_MEMBER, IS_ROLEMEMBER: NULL for what is no role, or a user one may not ask about.
fn is_member(session: &SessionState, role: &str, of: Option<&str>) -> Scalar {
    let Some(catalog) = session.visible(session.database.id) else { return Scalar::Null };
    let Some(role) = catalog.user(role).filter(|user| user.kind == b'R').map(|role| role.id) else { return Scalar::Null };
    let known = match of {
        None => session.user_token(session.database.id).map(|user| (user.is_dbo(), user.principals.clone())),
        Some(name) => catalog.user(name).map(|user| (user.id == 1, catalog.security.roles_of(user.id))),
    };
    optional(known, |(dbo, roles)| truth(role == PUBLIC || roles.contains(&role) || (dbo && role == 16384)))
}

fn is_server_member(session: &SessionState, role: &str, of: Option<&str>) -> Scalar {
    let Some((role, ..)) = server_role_named(&session.engine.master.lock(), role) else { return Scalar::Null };
    let token = match of {
        None => Some(session.server_token()),
        Some(name) => {
            let login = principal(session, |login| login.name.eq_ignore_ascii_case(name) && !login.is_role());
            login.and_then(|login| server_token(session, Who::Login(login.id))).map(std::sync::Arc::new)
        }
    };
    // Members of sysadmin are told to be in every fixed role but those they were put into by name alone: in sysadmin itself.
    optional(token, |token| truth(role == SERVER_PUBLIC || token.principals.contains(&role) || (token.login == 1 && role == 3)))
}

/// HAS_PERMS_BY_NAME(securable, class, permission, sub-securable, sub-class): NULL where it cannot be told.
fn has_permission(session: &SessionState, given: [Option<&str>; 5]) -> Scalar {
    let [name, class, permission, sub, sub_class] = given;
    let Some(permission) = permission.map(str::to_ascii_uppercase) else { return Scalar::Null };
    let found = securable_of(session, name, class, (sub, sub_class));
    let Some((judge, securable)) = found else { return Scalar::Null };
    if permission == "ANY" {
        let column = matches!(securable, Securable::Object(id) if judge.has_column(id));
        return truth(column || judge.is_unlimited(securable.kind()) || crate::security::visibility::any(&judge, securable));
    }
    match crate::security::permissions::find(securable.kind(), &permission) {
        Some(permission) => truth(judge.allows(securable, permission.name)),
        None => Scalar::Null,
    }
}

/// What a name of a class means to who asks.
fn securable_of(
    session: &SessionState,
    name: Option<&str>,
    class: Option<&str>,
    sub: (Option<&str>, Option<&str>),
) -> Option<(Judge, Securable)> {
    let class = class.map(str::to_ascii_uppercase);
    let here = session.database.id;
    Some(match class.as_deref() {
        None | Some("SERVER") => (session.server_judge(), Securable::Server),
        Some("DATABASE") => {
            let open = match name {
                Some(name) => session.engine.database_named(&parse_name(name)?.name.text)?,
                None => session.database.clone(),
            };
            (session.judge(open.id).ok()?, Securable::Database)
        }
        Some("OBJECT") => {
            let name = parse_name(name?)?;
            let open = crate::ddl::names::database_of(session, &name).ok()?;
            let judge = session.judge(open.id).ok()?;
            let visible = session.visible(open.id)?;
            let (id, column) = match find_table(session, &name).ok().flatten().filter(|t| visible.tables.tables.contains_key(&t.id.0)) {
                Some(table) => {
                    let column = sub.0.filter(|_| sub.1.is_some_and(|class| class.eq_ignore_ascii_case("COLUMN")));
                    let column = column.map(|column| table.column_index(column).map(|at| table.columns[at].id.0));
                    (table.id.0, column)
                }
                None => (find_object(session, &visible, &name)?.id.0, None),
            };
            match column {
                None => (judge, Securable::Object(id)),
                Some(column) => (judge, Securable::Column(id, column?)),
            }
        }
        Some("SCHEMA") => (session.judge(here).ok()?, Securable::Schema(session.definitions(here)?.schema(name?)?.id.0)),
        Some("USER") | Some("ROLE") => {
            let catalog = session.visible(here)?;
            let user = catalog.user(name?)?;
            let securable = if user.kind == b'R' { Securable::Role(user.id) } else { Securable::User(user.id) };
            (session.judge(here).ok()?, securable)
        }
        Some("LOGIN") => {
            let login = principal(session, |login| name.is_some_and(|name| login.name.eq_ignore_ascii_case(name)))?;
            (session.server_judge(), Securable::Login(login.id))
        }
        _ => return None,
    })
}

/// fn_my_permissions(securable, class): entity, sub-entity and permission of each that is had.
pub(crate) fn my_permissions(session: &SessionState, name: Option<&str>, class: Option<&str>) -> Result<Vec<[String; 3]>, SqlError> {
    let Some((judge, securable)) = securable_of(session, name, class, (None, None)) else { return Ok(Vec::new()) };
    let kind = securable.kind();
    let object = match securable {
        Securable::Object(id) => judge.user.as_ref().and_then(|(_, catalog)| catalog.objects.get(&id).map(|object| object.kind)),
        _ => None,
    };
    let fits = |p: &&crate::security::permissions::Permission| kind != Kind::Object || crate::security::permissions::fits(p, object);
    let all = crate::security::permissions::PERMISSIONS.iter().filter(|p| p.kind == kind).filter(fits);
    let shown = match kind {
        Kind::Server => "server".to_owned(),
        Kind::Database => "database".to_owned(),
        _ => name.unwrap_or_default().to_owned(),
    };
    let mut rows: Vec<[String; 3]> =
        all.filter(|p| judge.allows(securable, p.name)).map(|p| [shown.clone(), String::new(), p.name.to_owned()]).collect();
    if let (Securable::Object(id), Some((_, catalog))) = (securable, &judge.user) {
        rows.extend(column_rows(&judge, catalog, id, &shown));
    }
    Ok(rows)
}

fn column_rows(judge: &Judge, catalog: &DatabaseCatalog, id: i32, shown: &str) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    for column in catalog.tables.tables.get(&id).iter().flat_map(|table| &table.columns) {
        for permission in ["REFERENCES", "SELECT", "UPDATE"] {
            if judge.allows(Securable::Column(id, column.id.0), permission) {
                rows.push([shown.to_owned(), column.name.clone(), permission.to_owned()]);
            }
        }
    }
    rows
}
