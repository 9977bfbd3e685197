//! CREATE, ALTER and DROP USER.
//!
//! A user is a login's account in a database, by the login's security identifier, or somebody without a login. Messages: 15023 (the
//! name is taken), 15007 (no such login), 15063 (the login has an account), 15151, 15150, 15138, 15183, 15421, 15284, 15136 (what
//! still depends on it), 33233 (passwords of users).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::{catalog_error, change_catalog};
use crate::messages::{message, unsupported_option};
use crate::security::logins::{option_text, principal_named};
use crate::security::rule::Securable;
use crate::security::token::{DBO, FIRST_USER, NO_LOGIN_SID, SA};
use crate::session::state::SessionState;
use thawdb_catalog::{DatabaseCatalog, Grant, GrantState, LoginRecord, ObjectSecurity, UserDef};
use thawdb_tsql::ast::{AlterUser, CreateUser};
use thawdb_types::SqlError;

/// Numbers of fixed roles begin here.
const FIRST_FIXED: i32 = 16384;

/// A number for a new user or role.
pub(crate) fn next_number(catalog: &DatabaseCatalog) -> i32 {
    catalog.users.range(..FIRST_FIXED).next_back().map_or(FIRST_USER, |(last, _)| (last + 1).max(FIRST_USER))
}

fn login_named(session: &SessionState, name: &str) -> Result<LoginRecord, SqlError> {
    let known = principal_named(&session.engine.master.lock(), name).filter(|login| !login.is_role());
    known.ok_or_else(|| message(15007, &[&name]))
}

/// 15063 if the login is somebody in the database already.
fn check_account(session: &SessionState, catalog: &DatabaseCatalog, login: &LoginRecord, except: i32) -> Result<(), SqlError> {
    let owns = session.storage_of(catalog.database)?.record().owner_sid == login.sid;
    let has = catalog.users.values().any(|user| user.id != except && user.id >= FIRST_USER && user.sid.as_ref() == Some(&login.sid));
    if login.id == SA || owns || has { Err(message(15063, &[])) } else { Ok(()) }
}

/// CREATE USER.
pub(crate) fn create_user(interpreter: &mut Interpreter<'_, '_>, node: &CreateUser) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    let name = node.name.text.clone();
    if !session.judge(session.database.id)?.allows(Securable::Database, "CREATE USER") {
        return Err(message(15247, &[]).into());
    }
    if node.password.is_some() {
        return Err(message(33233, &[]).into());
    }
    if let Some(source) = &node.from {
        return Err(unsupported_option(source).into());
    }
    let mut default_schema = "dbo".to_owned();
    for option in &node.options {
        match option.name.as_str() {
            "DEFAULT_SCHEMA" => default_schema = option_text(option),
            other => return Err(unsupported_option(other).into()),
        }
    }
    let login = match (&node.login, node.without_login) {
        (_, true) => None,
        (Some(login), _) => Some(login_named(session, &login.text)?),
        (None, false) => Some(login_named(session, &name)?),
    };
    let random = session.engine.config.env.random.clone();
    interpreter.transactional(|this| {
        let (open, now) = (this.session.database.clone(), this.session.engine.now_datetime());
        let known = this.session.definitions(open.id).ok_or_else(|| message(911, &[&open.name()]))?;
        if known.user(&name).is_some() {
            return Err(message(15023, &[&name]).into());
        }
        let sid = match &login {
            Some(login) => {
                check_account(this.session, &known, login, 0)?;
                login.sid.clone()
            }
            None => {
                let mut own = [0; 16];
                random.fill(&mut own);
                NO_LOGIN_SID.iter().chain(&own).copied().collect()
            }
        };
        change_catalog(this.session, &open, |catalog, part| {
            if catalog.user(&name).is_some() {
                return Err(message(15023, &[&name]));
            }
            let id = next_number(catalog);
            let (sid, default_schema) = (Some(sid), Some(default_schema));
            let user = UserDef { id, name, kind: b'S', sid, default_schema, fixed: false, created: now, owner: DBO };
            catalog.put_user(&mut part.txn, user).map_err(catalog_error(&open))?;
            let connect = Grant { class: 0, major: 0, minor: 0, permission: *b"CO  ", state: GrantState::Grant, grantor: DBO };
            catalog.put_grants(&mut part.txn, id, vec![connect]).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

/// ALTER USER.
pub(crate) fn alter_user(interpreter: &mut Interpreter<'_, '_>, node: &AlterUser) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    let open = session.database.clone();
    let missing = || message(15151, &[&"alter", &"user", &node.name.text]);
    let judge = session.judge(open.id)?;
    let catalog = session.definitions(open.id).ok_or_else(missing)?;
    let known = catalog.user(&node.name.text).filter(|user| user.kind != b'R').cloned();
    let own = judge.user.as_ref().map(|(user, _)| user.user);
    let only_schema = node.options.iter().all(|option| option.name == "DEFAULT_SCHEMA");
    let may = |user: &UserDef| judge.allows(Securable::User(user.id), "ALTER") || (own == Some(user.id) && only_schema);
    let mut user = known.filter(may).ok_or_else(missing)?;
    if user.id < FIRST_USER && user.id != 2 {
        return Err(message(15150, &[&"alter", &"user", &user.name]).into());
    }
    if node.password.is_some() {
        return Err(message(33233, &[]).into());
    }
    let mut name = None;
    for option in &node.options {
        match option.name.as_str() {
            "DEFAULT_SCHEMA" => user.default_schema = Some(option_text(option)),
            "NAME" => name = Some(option_text(option)),
            "LOGIN" => {
                // Whose login a user is decides what that login may: not for those who may only change users.
                if !judge.allows(Securable::Database, "CONTROL") {
                    return Err(missing().into());
                }
                let login = login_named(session, &option_text(option))?;
                check_account(session, &catalog, &login, user.id)?;
                user.sid = Some(login.sid);
            }
            other => return Err(unsupported_option(other).into()),
        }
    }
    interpreter.transactional(|this| {
        change_catalog(this.session, &open, |catalog, part| {
            if let Some(name) = name {
                if catalog.user(&name).is_some_and(|other| other.id != user.id) {
                    return Err(message(15023, &[&name]));
                }
                user.name = name;
            }
            catalog.put_user(&mut part.txn, user).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

/// What keeps a user or role from being dropped.
pub(crate) fn refuse_used(catalog: &DatabaseCatalog, id: i32) -> Result<(), SqlError> {
    if catalog.schemas.values().any(|schema| schema.owner == id) {
        return Err(message(15138, &[&"schema"]));
    }
    if catalog.users.values().any(|role| role.kind == b'R' && role.owner == id) {
        return Err(message(15421, &[]));
    }
    let of_objects = |test: &dyn Fn(&ObjectSecurity) -> bool| catalog.security.objects.values().any(test);
    if of_objects(&|object| object.owner == Some(id)) {
        return Err(message(15183, &[]));
    }
    if of_objects(&|object| object.execute_as == Some(id)) {
        return Err(message(15136, &[]));
    }
    if catalog.security.grants.values().flatten().any(|grant| grant.grantor == id) {
        return Err(message(15284, &[]));
    }
    Ok(())
}

/// DROP USER.
pub(crate) fn drop_user(interpreter: &mut Interpreter<'_, '_>, name: &str, if_exists: bool) -> Result<(), Failure> {
    let open = interpreter.session.database.clone();
    let judge = interpreter.session.judge(open.id)?;
    change_catalog(interpreter.session, &open, |catalog, part| {
        let known = catalog.user(name).filter(|user| user.kind != b'R').cloned();
        let Some(user) = known.filter(|user| judge.allows(Securable::User(user.id), "ALTER")) else {
            return if if_exists { Ok(()) } else { Err(message(15151, &[&"drop", &"user", &name])) };
        };
        if user.id < FIRST_USER {
            return Err(message(15150, &[&"drop", &"user", &user.name]));
        }
        refuse_used(catalog, user.id)?;
        catalog.remove_user(&mut part.txn, user.id).map_err(catalog_error(&open))
    })
    .map_err(Failure::run)
}
