//! Who somebody is: the principals that a login or user counts as, on the instance and in a database.
//!
//! ```text
//! Who ─► ServerToken: login, server roles, sysadmin?        ─┐ one for each state of master's records
//!    └─► UserToken: user, database roles, default schema    ─┴ one for each state of the database's
//! ```
//! A login is the user with its security identifier; dbo if it owns the database or is in sysadmin; guest where that is let in;
//! nobody otherwise (916). A user put on by EXECUTE AS USER is somebody in its own database only, and in master and tempdb a guest.
//!
//! Invariant: a token's number is never used again for another, in the whole process (`UserToken::id`).
//! No lock is held while a token is made; what it is made of are snapshots.

use crate::instance::{MASTER_ID, TEMPDB_ID};
use crate::session::state::SessionState;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thawdb_catalog::{DatabaseCatalog, DatabaseId, Grant, GrantState, SchemaId, Security, UserDef};

/// Numbers of server principals.
pub(crate) const SA: i32 = 1;
pub(crate) const SERVER_PUBLIC: i32 = 2;
pub(crate) const SYSADMIN: i32 = 3;
/// Numbers of database principals.
pub(crate) const PUBLIC: i32 = 0;
pub(crate) const DBO: i32 = 1;
pub(crate) const GUEST: i32 = 2;
pub(crate) const DB_OWNER: i32 = 16384;
/// First number of a user's own user or role, and of the fixed roles.
pub(crate) const FIRST_USER: i32 = 5;
/// How security identifiers of users without a login begin: S-1-9-3.
pub(crate) const NO_LOGIN_SID: [u8; 12] = [1, 5, 0, 0, 0, 0, 0, 9, 3, 0, 0, 0];
/// Number of msdb: guests are let in.
const MSDB_ID: DatabaseId = DatabaseId(4);

/// Fixed server roles: number, name, what they may.
pub(crate) const SERVER_ROLES: [(i32, &str, &[&str]); 9] = [
    (SERVER_PUBLIC, "public", &["VIEW ANY DATABASE", "CONNECT SQL"]),
    (SYSADMIN, "sysadmin", &["CONTROL SERVER"]),
    (4, "securityadmin", &["ALTER ANY LOGIN"]),
    (5, "serveradmin", &["ALTER ANY ENDPOINT", "ALTER RESOURCES", "ALTER SERVER STATE", "ALTER SETTINGS", "SHUTDOWN"]),
    (6, "setupadmin", &["ALTER ANY LINKED SERVER"]),
    (7, "processadmin", &["ALTER ANY CONNECTION", "ALTER SERVER STATE"]),
    (8, "diskadmin", &["ALTER RESOURCES"]),
    (9, "dbcreator", &["ALTER ANY DATABASE", "CREATE ANY DATABASE"]),
    (10, "bulkadmin", &["ADMINISTER BULK OPERATIONS"]),
];

/// Fixed database roles: number, whether what follows is denied, what they may on the database.
pub(crate) const DATABASE_ROLES: [(i32, bool, &[&str]); 9] = [
    (DB_OWNER, false, &["CONTROL"]),
    (16385, false, &["ALTER ANY USER", "CREATE SCHEMA", "CONNECT"]),
    (16386, false, &["ALTER ANY APPLICATION ROLE", "ALTER ANY ROLE", "CREATE SCHEMA", "VIEW DEFINITION"]),
    (
        16387,
        false,
        &[
            "ALTER ANY DATABASE DDL TRIGGER",
            "ALTER ANY DATASPACE",
            "ALTER ANY SCHEMA",
            "CHECKPOINT",
            "CREATE AGGREGATE",
            "CREATE ASSEMBLY",
            "CREATE DEFAULT",
            "CREATE FUNCTION",
            "CREATE PROCEDURE",
            "CREATE RULE",
            "CREATE SCHEMA",
            "CREATE SYNONYM",
            "CREATE TABLE",
            "CREATE TYPE",
            "CREATE VIEW",
            "CREATE XML SCHEMA COLLECTION",
            "REFERENCES",
        ],
    ),
    (16389, false, &["BACKUP DATABASE", "BACKUP LOG", "CHECKPOINT"]),
    (16390, false, &["SELECT"]),
    (16391, false, &["INSERT", "UPDATE", "DELETE"]),
    (16392, true, &["SELECT"]),
    (16393, true, &["INSERT", "UPDATE", "DELETE"]),
];

/// db_securityadmin, who may grant what it does not have.
pub(crate) const DB_SECURITYADMIN: i32 = 16386;
/// securityadmin, likewise on the instance.
pub(crate) const SECURITYADMIN: i32 = 4;

/// Who is meant, before it is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// A login, by number.
    Login(i32),
    /// A user of a database, by number.
    User(DatabaseId, i32),
}

/// A login with its roles.
#[derive(Debug)]
pub(crate) struct ServerToken {
    /// Its number; 0 for a user without a login.
    pub(crate) login: i32,
    pub(crate) name: String,
    pub(crate) sid: Vec<u8>,
    /// May do everything everywhere.
    pub(crate) sysadmin: bool,
    /// Itself and its roles.
    pub(crate) principals: BTreeSet<i32>,
    /// What master records.
    pub(crate) security: Arc<Security>,
}

/// A user with its roles.
#[derive(Debug)]
pub(crate) struct UserToken {
    pub(crate) id: u32,
    pub(crate) user: i32,
    pub(crate) name: String,
    /// Itself, its roles and public.
    pub(crate) principals: BTreeSet<i32>,
    /// Where names without a schema are looked for first; -1 if it is not there.
    pub(crate) default_schema: (SchemaId, Arc<str>),
}

impl UserToken {
    /// Whether it is dbo, who may do everything in its database.
    pub(crate) fn is_dbo(&self) -> bool {
        self.user == DBO
    }
}

fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Relaxed: only uniqueness matters. Logins, not statements, take numbers: four thousand million last.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The token of somebody on the instance; `None` if there is no such login any more.
pub(crate) fn server_token(session: &SessionState, who: Who) -> Option<ServerToken> {
    let (login, unknown) = match who {
        Who::Login(id) => (session.engine.master.lock().logins.get(&id).cloned(), None),
        Who::User(database, id) => {
            let user = session.definitions(database)?.users.get(&id)?.clone();
            (None, Some(user))
        }
    };
    let security = session.engine.master.lock().security.clone();
    if let Some(user) = unknown {
        // A user's context reaches nowhere outside its database: its login lends it the name alone.
        let named = user.sid.as_ref().and_then(|sid| {
            let master = session.engine.master.lock();
            master.logins.values().find(|login| login.sid == *sid).map(|login| login.name.clone())
        });
        let sid = user.sid.clone().unwrap_or_default();
        let name = named.unwrap_or_else(|| unknown_name(&sid, &user));
        return Some(ServerToken { login: 0, name, sid, sysadmin: false, principals: BTreeSet::from([SERVER_PUBLIC]), security });
    }
    let login = login?;
    let mut principals = security.roles_of(login.id);
    principals.extend(security.roles_of(SERVER_PUBLIC));
    principals.extend([login.id, SERVER_PUBLIC]);
    let sysadmin = login.id == SA || principals.contains(&SYSADMIN);
    Some(ServerToken { login: login.id, name: login.name, sid: login.sid, sysadmin, principals, security })
}

/// What SUSER_SNAME() says of a user without a login.
fn unknown_name(sid: &[u8], user: &UserDef) -> String {
    if user.id == DBO {
        return "sa".to_owned();
    }
    let number = |part: &[u8]| part.iter().rev().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)).to_string();
    let parts: Vec<String> = sid.get(NO_LOGIN_SID.len()..).unwrap_or_default().chunks(4).map(number).collect();
    format!("S-1-9-3-{}", parts.join("-"))
}

/// Whether a principal of a database may connect to it.
fn connects(catalog: &DatabaseCatalog, principals: &BTreeSet<i32>) -> bool {
    if principals.contains(&DBO) {
        return true;
    }
    let said = principals.iter().flat_map(|id| catalog.security.grants_of(*id));
    let mut said = said.filter(|grant: &&Grant| grant.class == 0 && grant.permission == *b"CO  ").peekable();
    let own = said.peek().is_some();
    let denied = said.any(|grant| grant.state == GrantState::Deny);
    // db_accessadmin and db_owner connect as such.
    (own || principals.contains(&16385) || principals.contains(&DB_OWNER)) && !denied
}

/// Whether guests are let into a database.
pub(crate) fn lets_guests_in(database: DatabaseId, catalog: &DatabaseCatalog) -> bool {
    matches!(database, MASTER_ID | TEMPDB_ID | MSDB_ID) || connects(catalog, &BTreeSet::from([GUEST]))
}

fn principals_of(catalog: &DatabaseCatalog, user: i32) -> BTreeSet<i32> {
    let mut principals = catalog.security.roles_of(user);
    principals.extend([user, PUBLIC]);
    principals
}

/// The token of somebody in a database; `None` if it is nobody there.
pub(crate) fn user_token(session: &SessionState, who: Who, server: &ServerToken, database: DatabaseId) -> Option<UserToken> {
    let catalog = session.definitions(database)?;
    let user = match who {
        Who::User(own, id) if own == database => catalog.users.get(&id).map(|user| user.id),
        Who::User(..) => matches!(database, MASTER_ID | TEMPDB_ID).then_some(GUEST),
        Who::Login(_) => user_of_login(session, server, database, &catalog),
    }?;
    let principals = principals_of(&catalog, user);
    let definition = catalog.users.get(&user)?;
    let schema = definition.default_schema.as_deref().unwrap_or("dbo");
    let default_schema = match catalog.schema(schema) {
        Some(schema) => (schema.id, Arc::from(schema.name.as_str())),
        None => (SchemaId(-1), Arc::from(schema)),
    };
    Some(UserToken { id: next_id(), user, name: definition.name.clone(), principals, default_schema })
}

fn user_of_login(session: &SessionState, server: &ServerToken, database: DatabaseId, catalog: &DatabaseCatalog) -> Option<i32> {
    if server.sysadmin || session.storage_of(database).ok()?.record().owner_sid == server.sid {
        return Some(DBO);
    }
    let own = catalog.users.values().find(|user| user.id >= FIRST_USER && user.sid.as_ref() == Some(&server.sid));
    if let Some(user) = own {
        return connects(catalog, &principals_of(catalog, user.id)).then_some(user.id);
    }
    let any = server.principals.iter().flat_map(|id| server.security.grants_of(*id));
    let any_database = any.clone().any(|grant| grant.permission == *b"CADB" && grant.state != GrantState::Deny)
        && !any.clone().any(|grant| grant.permission == *b"CADB" && grant.state == GrantState::Deny);
    (lets_guests_in(database, catalog) || any_database).then_some(GUEST)
}
