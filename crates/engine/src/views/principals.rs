//! sys.server_principals, sys.sql_logins, sys.database_principals, members of roles, permissions, and the old syslogins and sysusers.
//!
//! A session sees itself, fixed roles, what it is a member of, and whom it has a permission on.

use crate::security::functions::sees_login;
use crate::security::permissions::{Kind, PERMISSIONS, by_code};
use crate::security::token::{SERVER_PUBLIC, SERVER_ROLES};
use crate::session::state::SessionState;
use crate::views::functions::Function;
use crate::views::objects::catalog;
use crate::views::{Column, DESC, Rows, View, bit, col, int, moment, null, optional_text, small, text, tiny};
use thawdb_catalog::{DatabaseId, Grant, GrantState, LoginRecord, Security};
use thawdb_types::SqlType::{Bit, DateTime, Int, SmallInt, TinyInt};
use thawdb_types::{Collation, Scalar, SqlError, SqlType};

const NAME: SqlType = SqlType::SYSNAME;
const CHAR_1: SqlType = SqlType::Char { length: 1, collation: Collation::DEFAULT };

const SERVER_COLUMNS: &[Column] = &[
    col("name", NAME),
    col("principal_id", Int),
    null("sid", SqlType::varbinary(85)),
    col("type", CHAR_1),
    null("type_desc", DESC),
    null("is_disabled", Bit),
    col("create_date", DateTime),
    col("modify_date", DateTime),
    null("default_database_name", NAME),
    null("default_language_name", NAME),
    null("credential_id", Int),
    null("owning_principal_id", Int),
    col("is_fixed_role", Bit),
];

const DATABASE_COLUMNS: &[Column] = &[
    col("name", NAME),
    col("principal_id", Int),
    col("type", CHAR_1),
    null("type_desc", DESC),
    null("default_schema_name", NAME),
    col("create_date", DateTime),
    col("modify_date", DateTime),
    null("owning_principal_id", Int),
    null("sid", SqlType::varbinary(85)),
    col("is_fixed_role", Bit),
    col("authentication_type", Int),
    null("authentication_type_desc", DESC),
    null("default_language_name", NAME),
    null("default_language_lcid", Int),
    col("allow_encrypted_value_modifications", Bit),
];

const CHAR_4: SqlType = SqlType::Char { length: 4, collation: Collation::DEFAULT };

const LOGIN_COLUMNS: &[Column] = &[
    col("name", NAME),
    col("principal_id", Int),
    null("sid", SqlType::varbinary(85)),
    col("type", CHAR_1),
    null("type_desc", DESC),
    null("is_disabled", Bit),
    col("create_date", DateTime),
    col("modify_date", DateTime),
    null("default_database_name", NAME),
    null("default_language_name", NAME),
    null("credential_id", Int),
    null("is_policy_checked", Bit),
    null("is_expiration_checked", Bit),
    null("password_hash", SqlType::varbinary(256)),
];

const MEMBER_COLUMNS: &[Column] = &[col("role_principal_id", Int), col("member_principal_id", Int)];

const PERMISSION_COLUMNS: &[Column] = &[
    col("class", TinyInt),
    null("class_desc", DESC),
    col("major_id", Int),
    col("minor_id", Int),
    col("grantee_principal_id", Int),
    col("grantor_principal_id", Int),
    col("type", CHAR_4),
    null("permission_name", SqlType::nvarchar(128)),
    col("state", CHAR_1),
    null("state_desc", DESC),
];

const SYSLOGINS_COLUMNS: &[Column] = &[
    null("sid", SqlType::varbinary(85)),
    col("createdate", DateTime),
    col("updatedate", DateTime),
    col("name", NAME),
    null("dbname", NAME),
    null("language", NAME),
    col("denylogin", Int),
    col("hasaccess", Int),
    col("isntname", Int),
    col("isntgroup", Int),
    col("isntuser", Int),
    col("sysadmin", Int),
    col("securityadmin", Int),
    col("serveradmin", Int),
    col("setupadmin", Int),
    col("processadmin", Int),
    col("diskadmin", Int),
    col("dbcreator", Int),
    col("bulkadmin", Int),
    col("loginname", NAME),
];

const SYSUSERS_COLUMNS: &[Column] = &[
    null("uid", SmallInt),
    null("status", SmallInt),
    null("name", NAME),
    null("sid", SqlType::varbinary(85)),
    null("createdate", DateTime),
    null("updatedate", DateTime),
    null("hasdbaccess", Int),
    null("islogin", Int),
    null("isntname", Int),
    null("isntgroup", Int),
    null("isntuser", Int),
    null("issqluser", Int),
    null("isaliased", Int),
    null("issqlrole", Int),
    null("isapprole", Int),
];

const BUILT_IN_COLUMNS: &[Column] = &[
    null("class_desc", DESC),
    null("permission_name", SqlType::nvarchar(60)),
    null("type", CHAR_4),
    null("covering_permission_name", SqlType::nvarchar(60)),
    null("parent_class_desc", DESC),
    null("parent_covering_permission_name", SqlType::nvarchar(60)),
];

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "server_principals", columns: SERVER_COLUMNS, rows: server_principals },
    View { schema: "sys", name: "sql_logins", columns: LOGIN_COLUMNS, rows: sql_logins },
    View { schema: "sys", name: "server_role_members", columns: MEMBER_COLUMNS, rows: server_role_members },
    View { schema: "sys", name: "server_permissions", columns: PERMISSION_COLUMNS, rows: server_permissions },
    View { schema: "sys", name: "database_principals", columns: DATABASE_COLUMNS, rows: database_principals },
    View { schema: "sys", name: "database_role_members", columns: MEMBER_COLUMNS, rows: database_role_members },
    View { schema: "sys", name: "database_permissions", columns: PERMISSION_COLUMNS, rows: database_permissions },
    View { schema: "sys", name: "syslogins", columns: SYSLOGINS_COLUMNS, rows: syslogins },
    View { schema: "dbo", name: "syslogins", columns: SYSLOGINS_COLUMNS, rows: syslogins },
    View { schema: "sys", name: "sysusers", columns: SYSUSERS_COLUMNS, rows: sysusers },
    View { schema: "dbo", name: "sysusers", columns: SYSUSERS_COLUMNS, rows: sysusers },
];

/// The functions of this file.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function { name: "fn_my_permissions", columns: MINE_COLUMNS, arguments: 2, rows: my_permissions },
    Function { name: "fn_builtin_permissions", columns: BUILT_IN_COLUMNS, arguments: 1, rows: built_in },
];

const MINE_COLUMNS: &[Column] = &[null("entity_name", NAME), null("subentity_name", NAME), null("permission_name", SqlType::nvarchar(60))];

fn my_permissions(session: &SessionState, _: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let rows = crate::security::functions::my_permissions(session, arguments[0].as_text(), arguments[1].as_text())?;
    Ok(rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
}

fn built_in(_: &SessionState, _: DatabaseId, arguments: &[Scalar]) -> Result<Rows, SqlError> {
    let class = arguments[0].as_text().unwrap_or_default().to_ascii_uppercase();
    let shown = |kind: Kind| match kind {
        Kind::Object => "OBJECT",
        Kind::User => "USER",
        Kind::Role => "ROLE",
        Kind::Login => "LOGIN",
        Kind::ServerRole => "SERVER ROLE",
        other => other.class_name(),
    };
    let wanted = PERMISSIONS.iter().filter(|p| class.is_empty() || class == "DEFAULT" || shown(p.kind) == class);
    let row = |p: &crate::security::permissions::Permission| {
        let mut row = vec![text(shown(p.kind)), text(p.name), code(p.code()), text(p.covered_by)];
        let around = p.kind.around().filter(|_| !p.covered_around.is_empty());
        row.extend([text(around.map_or("", shown)), text(p.covered_around)]);
        row
    };
    Ok(wanted.map(row).collect())
}

fn code(code: [u8; 4]) -> Scalar {
    text(String::from_utf8_lossy(&code).into_owned())
}

/// The logins and server roles that the session may know of.
fn known(session: &SessionState) -> Vec<LoginRecord> {
    let all: Vec<LoginRecord> = session.engine.master.lock().logins.values().cloned().collect();
    all.into_iter().filter(|login| sees_login(session, login)).collect()
}

fn server_principals(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let own = |login: LoginRecord| {
        let role = login.is_role();
        let words = if role { ["R", "SERVER_ROLE"] } else { ["S", "SQL_LOGIN"] };
        let (database, language) = (text(login.default_database), text(login.default_language));
        let mut row = vec![text(login.name), int(login.id), Scalar::Binary(login.sid), text(words[0]), text(words[1]), bit(login.disabled)];
        row.extend([moment(login.created), moment(login.modified)]);
        row.extend(if role { [Scalar::Null, Scalar::Null] } else { [database, language] });
        row.extend([Scalar::Null, if role { int(login.owner) } else { Scalar::Null }, bit(false)]);
        row
    };
    let mut rows: Rows = known(session).into_iter().map(own).collect();
    let started = session.engine.started;
    rows.extend(SERVER_ROLES.iter().map(|(id, name, _)| {
        let mut row = vec![text(*name), int(*id), Scalar::Binary(vec![u8::try_from(*id).expect("small")]), text("R"), text("SERVER_ROLE")];
        row.extend([bit(false), moment(started), moment(started), Scalar::Null, Scalar::Null, Scalar::Null, int(1)]);
        row.push(bit(*id != SERVER_PUBLIC));
        row
    }));
    rows.sort_by_key(|row| if let Scalar::Int(id) = row[1] { id } else { 0 });
    Ok(rows)
}

fn sql_logins(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let row = |login: LoginRecord| {
        let mut row = vec![text(login.name), int(login.id), Scalar::Binary(login.sid), text("S"), text("SQL_LOGIN"), bit(login.disabled)];
        row.extend([moment(login.created), moment(login.modified), text(login.default_database), text(login.default_language)]);
        // The hash is nobody's to see.
        row.extend([Scalar::Null, bit(login.check_policy), bit(login.check_expiration), Scalar::Null]);
        row
    };
    Ok(known(session).into_iter().filter(|login| !login.is_role()).map(row).collect())
}

fn server_role_members(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let security = session.engine.master.lock().security.clone();
    let seen: Vec<i32> = known(session).iter().map(|login| login.id).chain(SERVER_ROLES.iter().map(|(id, ..)| *id)).collect();
    let mut rows = vec![vec![int(3), int(1)]];
    for (role, members) in &security.members {
        rows.extend(members.iter().filter(|member| seen.contains(member)).map(|member| vec![int(*role), int(*member)]));
    }
    rows.retain(|row| matches!(row[0], Scalar::Int(role) if seen.contains(&role)));
    Ok(rows)
}

fn grant_row(grantee: i32, grant: &Grant) -> Vec<Scalar> {
    let permission = by_code(grant.class, grant.permission);
    let (letter, word) = match grant.state {
        GrantState::Grant => ("G", "GRANT"),
        GrantState::WithGrantOption => ("W", "GRANT_WITH_GRANT_OPTION"),
        GrantState::Deny => ("D", "DENY"),
    };
    vec![
        tiny(grant.class),
        permission.map_or(Scalar::Null, |p| text(p.kind.class_name())),
        int(grant.major),
        int(grant.minor),
        int(grantee),
        int(grant.grantor),
        code(grant.permission),
        permission.map_or(Scalar::Null, |p| text(p.name)),
        text(letter),
        text(word),
    ]
}

fn grants_of(security: &Security, seen: impl Fn(i32, &Grant) -> bool) -> Rows {
    let each = security.grants.iter().flat_map(|(grantee, grants)| grants.iter().map(move |grant| (*grantee, grant)));
    each.filter(|(grantee, grant)| seen(*grantee, grant)).map(|(grantee, grant)| grant_row(grantee, grant)).collect()
}

fn server_permissions(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let security = session.engine.master.lock().security.clone();
    let seen: Vec<i32> = known(session).iter().map(|login| login.id).chain([SERVER_PUBLIC]).collect();
    let implied = |name: &str, grantee: i32| {
        let permission = crate::security::permissions::find(Kind::Server, name).map_or([b' '; 4], |p| p.code());
        grant_row(grantee, &Grant { class: 100, major: 0, minor: 0, permission, state: GrantState::Grant, grantor: 1 })
    };
    let mut rows = vec![implied("VIEW ANY DATABASE", SERVER_PUBLIC)];
    rows.extend(known(session).iter().filter(|login| !login.is_role()).map(|login| implied("CONNECT SQL", login.id)));
    rows.extend(grants_of(&security, |grantee, _| seen.contains(&grantee)));
    Ok(rows)
}

fn database_principals(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let Some(catalog) = catalog(session, database) else { return Ok(Rows::new()) };
    let row = |user: &thawdb_catalog::UserDef| {
        let role = user.kind == b'R';
        let login = user.sid.as_ref().is_some_and(|sid| !sid.starts_with(&crate::security::token::NO_LOGIN_SID)) && !role;
        vec![
            text(user.name.clone()),
            int(user.id),
            text(if role { "R" } else { "S" }),
            text(if role { "DATABASE_ROLE" } else { "SQL_USER" }),
            optional_text(user.default_schema.as_deref()),
            moment(user.created),
            moment(user.created),
            if role { int(user.owner) } else { Scalar::Null },
            user.sid.clone().map_or(Scalar::Null, Scalar::Binary),
            bit(role && user.id != 0 && user.fixed),
            int(i32::from(login)),
            text(if login { "INSTANCE" } else { "NONE" }),
            Scalar::Null,
            Scalar::Null,
            bit(false),
        ]
    };
    Ok(catalog.users.values().map(row).collect())
}

fn database_role_members(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let Some(catalog) = catalog(session, database) else { return Ok(Rows::new()) };
    let mut rows = vec![vec![int(16384), int(1)]];
    for (role, members) in catalog.security.members.iter().filter(|(role, _)| catalog.users.contains_key(role)) {
        rows.extend(members.iter().filter(|member| catalog.users.contains_key(member)).map(|member| vec![int(*role), int(*member)]));
    }
    Ok(rows)
}

fn database_permissions(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let Some(catalog) = catalog(session, database) else { return Ok(Rows::new()) };
    let seen = |grantee: i32, grant: &Grant| {
        let there = match grant.class {
            1 | 6 => catalog.tables.tables.contains_key(&grant.major) || catalog.objects.contains_key(&grant.major),
            3 => catalog.schemas.contains_key(&grant.major),
            4 => catalog.users.contains_key(&grant.major),
            _ => true,
        };
        there && catalog.users.contains_key(&grantee)
    };
    let connect = Grant { class: 0, major: 0, minor: 0, permission: *b"CO  ", state: GrantState::Grant, grantor: 1 };
    let mut rows = vec![grant_row(1, &connect)];
    rows.extend(grants_of(&catalog.security, seen));
    Ok(rows)
}

fn syslogins(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let security = session.engine.master.lock().security.clone();
    let row = |login: LoginRecord| {
        let roles = security.roles_of(login.id);
        let mut row = vec![Scalar::Binary(login.sid), moment(login.created), moment(login.modified), text(login.name.clone())];
        row.extend([text(login.default_database), text(login.default_language)]);
        row.extend([int(0), int(1), int(0), int(0), int(0)]);
        row.extend((3..=10).map(|role| int(i32::from(roles.contains(&role) || (role == 3 && login.id == 1)))));
        row.push(text(login.name));
        row
    };
    Ok(known(session).into_iter().filter(|login| !login.is_role()).map(row).collect())
}

fn sysusers(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let Some(catalog) = catalog(session, database) else { return Ok(Rows::new()) };
    let row = |user: &thawdb_catalog::UserDef| {
        let role = user.kind == b'R';
        let flag = |on: bool| int(i32::from(on));
        let mut row = vec![small(i16::try_from(user.id).unwrap_or(0)), small(0), text(user.name.clone())];
        row.push(user.sid.clone().map_or(Scalar::Null, Scalar::Binary));
        row.extend([moment(user.created), moment(user.created), flag(!role), flag(!role)]);
        row.extend([int(0), int(0), int(0), flag(!role), int(0), flag(role), int(0)]);
        row
    };
    Ok(catalog.users.values().map(row).collect())
}
