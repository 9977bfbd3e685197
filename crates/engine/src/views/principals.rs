//! sys.server_principals, sys.sql_logins, sys.database_principals, sys.database_role_members.

use crate::session::state::SessionState;
use crate::views::objects::catalog;
use crate::views::{Column, DESC, Rows, View, bit, col, int, moment, null, optional_text, text};
use thawdb_catalog::DatabaseId;
use thawdb_types::SqlType::{Bit, DateTime, Int};
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

/// The views of this file.
pub(crate) const VIEWS: &[View] = &[
    View { schema: "sys", name: "server_principals", columns: SERVER_COLUMNS, rows: server_principals },
    View { schema: "sys", name: "database_principals", columns: DATABASE_COLUMNS, rows: database_principals },
];

/// Fixed server roles: number and name.
const SERVER_ROLES: [(i32, &str); 9] = [
    (2, "public"),
    (3, "sysadmin"),
    (4, "securityadmin"),
    (5, "serveradmin"),
    (6, "setupadmin"),
    (7, "processadmin"),
    (8, "diskadmin"),
    (9, "dbcreator"),
    (10, "bulkadmin"),
];

fn server_principals(session: &SessionState, _: DatabaseId) -> Result<Rows, SqlError> {
    let logins = session.engine.master.lock().logins.clone();
    let mut rows: Rows = logins
        .into_values()
        .map(|login| {
            vec![
                text(login.name),
                int(login.id),
                Scalar::Binary(login.sid),
                text("S"),
                text("SQL_LOGIN"),
                bit(login.disabled),
                moment(login.created),
                moment(login.modified),
                text(login.default_database),
                text(login.default_language),
                Scalar::Null,
                Scalar::Null,
                bit(false),
            ]
        })
        .collect();
    let started = session.engine.started;
    rows.extend(SERVER_ROLES.iter().map(|(id, name)| {
        let mut row = vec![text(*name), int(*id), Scalar::Binary(vec![u8::try_from(*id).expect("small")]), text("R"), text("SERVER_ROLE")];
        row.extend([bit(false), moment(started), moment(started), Scalar::Null, Scalar::Null, Scalar::Null, int(1), bit(*id != 2)]);
        row
    }));
    rows.sort_by_key(|row| if let Scalar::Int(id) = row[1] { id } else { 0 });
    Ok(rows)
}

fn database_principals(session: &SessionState, database: DatabaseId) -> Result<Rows, SqlError> {
    let Some(catalog) = catalog(session, database) else { return Ok(Rows::new()) };
    let row = |user: &thawdb_catalog::UserDef| {
        let role = user.kind == b'R';
        let login = user.sid.is_some() && !role;
        vec![
            text(user.name.clone()),
            int(user.id),
            text(if role { "R" } else { "S" }),
            text(if role { "DATABASE_ROLE" } else { "SQL_USER" }),
            optional_text(user.default_schema.as_deref()),
            moment(user.created),
            moment(user.created),
            if role { int(1) } else { Scalar::Null },
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
