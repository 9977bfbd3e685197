//! CREATE, ALTER and DROP ROLE, of databases and of the instance.
//!
//! Members of fixed roles are changed by members of db_owner and, on the instance, of the role itself. Messages: 15023 and 15025
//! (the name is taken), 15151 (not there, or not for this one), 15150 (a fixed one), 15405 (a special principal), 15413 (a role in
//! itself), 15144 (members), 15247.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::{catalog_error, change_catalog};
use crate::messages::{message, unsupported};
use crate::security::logins::{change_instance, is_taken, next_number as next_login, principal_named};
use crate::security::rule::Securable;
use crate::security::token::{DB_OWNER, DBO, FIRST_USER, GUEST, PUBLIC, SA, SERVER_PUBLIC, SERVER_ROLES, SYSADMIN};
use crate::security::users::{next_number, refuse_used};
use crate::session::state::SessionState;
use std::collections::BTreeSet;
use thawdb_catalog::{DatabaseCatalog, InstanceCatalog, LoginRecord, UserDef};
use thawdb_tsql::ast::{AlterRole, AlterRoleAction, CreateRole, RoleKind};
use thawdb_types::SqlError;

/// First byte of the security identifiers of server roles.
const ROLE_SID_BYTES: usize = 16;

/// CREATE ROLE, CREATE SERVER ROLE.
pub(crate) fn create_role(interpreter: &mut Interpreter<'_, '_>, node: &CreateRole) -> Result<(), Failure> {
    match node.kind {
        RoleKind::Application => Err(unsupported("CREATE APPLICATION ROLE").into()),
        RoleKind::Server => create_server_role(interpreter.session, node).map_err(Failure::run),
        RoleKind::Database => create_database_role(interpreter, node),
    }
}

fn create_database_role(interpreter: &mut Interpreter<'_, '_>, node: &CreateRole) -> Result<(), Failure> {
    let (open, now) = (interpreter.session.database.clone(), interpreter.session.engine.now_datetime());
    let judge = interpreter.session.judge(open.id)?;
    if !judge.allows(Securable::Database, "CREATE ROLE") {
        return Err(message(15247, &[]).into());
    }
    let me = judge.user.as_ref().map_or(DBO, |(user, _)| user.user);
    interpreter.transactional(|this| {
        change_catalog(this.session, &open, |catalog, part| {
            let name = &node.name.text;
            if catalog.user(name).is_some() {
                return Err(message(15023, &[name]));
            }
            let owner = match &node.authorization {
                None => me,
                Some(owner) => {
                    let missing = || message(15151, &[&"find", &"user", &owner.text]);
                    let owner = catalog.user(&owner.text).ok_or_else(missing)?;
                    let may = owner.id == me || judge.allows(Securable::User(owner.id), "IMPERSONATE");
                    let of_role = judge.user.as_ref().is_some_and(|(user, _)| user.principals.contains(&owner.id));
                    if may || of_role { owner.id } else { return Err(missing()) }
                }
            };
            let id = next_number(catalog);
            let role = UserDef { id, name: name.clone(), kind: b'R', sid: None, default_schema: None, fixed: false, created: now, owner };
            catalog.put_user(&mut part.txn, role).map_err(catalog_error(&open))
        })
        .map_err(Failure::run)
    })
}

fn create_server_role(session: &SessionState, node: &CreateRole) -> Result<(), SqlError> {
    let (judge, now, name) = (session.server_judge(), session.engine.now_datetime(), node.name.text.clone());
    if !judge.allows(Securable::Server, "CREATE SERVER ROLE") {
        return Err(message(15247, &[]));
    }
    let mut sid = vec![0; ROLE_SID_BYTES];
    session.engine.config.env.random.fill(&mut sid);
    change_instance(session, |instance, txn| {
        if is_taken(instance, &name) {
            return Ok(Err(message(15025, &[&name])));
        }
        let owner = match &node.authorization {
            None => judge.server.login.max(SA),
            Some(owner) => match principal_named(instance, &owner.text).filter(|_| judge.server.sysadmin) {
                Some(owner) => owner.id,
                None => return Ok(Err(message(15151, &[&"find", &"login", &owner.text]))),
            },
        };
        let record = LoginRecord {
            id: next_login(instance),
            name,
            sid,
            password_hash: None,
            default_database: String::new(),
            default_language: String::new(),
            disabled: false,
            created: now,
            modified: now,
            kind: b'R',
            owner,
            check_policy: false,
            check_expiration: false,
        };
        instance.put_login(txn, record).map(Ok)
    })
}

/// ALTER ROLE, ALTER SERVER ROLE.
pub(crate) fn alter_role(interpreter: &mut Interpreter<'_, '_>, node: &AlterRole) -> Result<(), Failure> {
    match node.kind {
        RoleKind::Application => Err(unsupported("ALTER APPLICATION ROLE").into()),
        RoleKind::Server => alter_server_role(interpreter.session, node).map_err(Failure::run),
        RoleKind::Database => interpreter.transactional(|this| alter_database_role(this.session, node).map_err(Failure::run)),
    }
}

/// The role that is altered: 15151 if there is none, or it is not for this one to alter.
fn altered_role(session: &SessionState, catalog: &DatabaseCatalog, name: &str) -> Result<UserDef, SqlError> {
    let judge = session.judge(catalog.database)?;
    let may = |role: &UserDef| match role.fixed {
        true => judge.allows(Securable::Database, "CONTROL"),
        false => judge.allows(Securable::Role(role.id), "ALTER"),
    };
    let known = catalog.user(name).filter(|role| role.kind == b'R' && role.id != PUBLIC).cloned();
    known.filter(may).ok_or_else(|| message(15151, &[&"alter", &"role", &name]))
}

fn alter_database_role(session: &mut SessionState, node: &AlterRole) -> Result<(), SqlError> {
    let open = session.database.clone();
    let known = session.definitions(open.id).ok_or_else(|| message(911, &[&open.name()]))?;
    let mut role = altered_role(session, &known, &node.name.text)?;
    change_catalog(session, &open, |catalog, part| {
        let member = |name: &str, word: &str| {
            let found = catalog.user(name).map(|user| (user.id, user.fixed));
            let (id, fixed) = found.ok_or_else(|| message(15151, &[&word, &"principal", &name]))?;
            // dbo is in every role as it is; the system's own are in none; fixed roles are members of nothing.
            let special = matches!(id, PUBLIC | DBO | 3 | 4) || (fixed && id != GUEST);
            if special { Err(message(15405, &[&name])) } else { Ok(id) }
        };
        let mut members = catalog.security.members.get(&role.id).cloned().unwrap_or_default();
        match &node.action {
            AlterRoleAction::AddMember(name) => {
                let id = member(&name.text, "add")?;
                if id == role.id || catalog.security.roles_of(role.id).contains(&id) {
                    return Err(message(15413, &[]));
                }
                members.insert(id);
            }
            AlterRoleAction::DropMember(name) => {
                let id = member(&name.text, "drop")?;
                members.remove(&id);
            }
            AlterRoleAction::Rename(name) if role.fixed => return Err(message(15150, &[&"alter", &"role", &name.text])),
            AlterRoleAction::Rename(name) => {
                if catalog.user(&name.text).is_some_and(|other| other.id != role.id) {
                    return Err(message(15023, &[&name.text]));
                }
                role.name.clone_from(&name.text);
                return catalog.put_user(&mut part.txn, role).map_err(catalog_error(&open));
            }
        }
        catalog.put_members(&mut part.txn, role.id, members).map_err(catalog_error(&open))
    })
}

/// Number and name of a server role, and whether it is fixed.
pub(crate) fn server_role_named(instance: &InstanceCatalog, name: &str) -> Option<(i32, String, bool)> {
    let fixed = SERVER_ROLES.iter().find(|(_, fixed, _)| fixed.eq_ignore_ascii_case(name));
    let own = || principal_named(instance, name).filter(LoginRecord::is_role).map(|role| (role.id, role.name, false));
    fixed.map(|(id, name, _)| (*id, (*name).to_owned(), true)).or_else(own)
}

/// Whether the one who acts may change a server role.
fn may_alter_server_role(session: &SessionState, instance_role: (i32, bool), owner: Option<i32>) -> bool {
    let (judge, (id, fixed)) = (session.server_judge(), instance_role);
    if judge.server.sysadmin {
        return true;
    }
    let owns = owner.is_some_and(|owner| judge.server.principals.contains(&owner));
    let member = judge.server.principals.contains(&id);
    match fixed {
        true => id != SYSADMIN && id != SERVER_PUBLIC && member,
        false => owns || judge.allows(Securable::ServerRole(id), "ALTER"),
    }
}

fn alter_server_role(session: &SessionState, node: &AlterRole) -> Result<(), SqlError> {
    let missing = || message(15151, &[&"alter", &"server role", &node.name.text]);
    let (found, owner) = {
        let master = session.engine.master.lock();
        let found = server_role_named(&master, &node.name.text).ok_or_else(missing)?;
        let owner = master.logins.get(&found.0).map(|role| role.owner);
        (found, owner)
    };
    let (id, _, fixed) = found;
    if id == SERVER_PUBLIC || !may_alter_server_role(session, (id, fixed), owner) {
        return Err(missing());
    }
    change_instance(session, |instance, txn| {
        let member = |name: &str, word: &str| {
            let role = server_role_named(instance, name).filter(|(_, _, fixed)| !fixed).map(|(id, ..)| id);
            let known = principal_named(instance, name).map(|login| login.id).or(role);
            known.ok_or_else(|| message(15151, &[&word, &"principal", &name]))
        };
        let mut members: BTreeSet<i32> = instance.security.members.get(&id).cloned().unwrap_or_default();
        match &node.action {
            AlterRoleAction::AddMember(name) => match member(&name.text, "add") {
                Ok(SA) => return Ok(Err(message(15405, &[&name.text]))),
                Ok(member) if member == id || instance.security.roles_of(id).contains(&member) => return Ok(Err(message(15413, &[]))),
                Ok(member) => drop(members.insert(member)),
                Err(error) => return Ok(Err(error)),
            },
            AlterRoleAction::DropMember(name) => match member(&name.text, "drop") {
                Ok(SA) => return Ok(Err(message(15405, &[&name.text]))),
                Ok(member) => drop(members.remove(&member)),
                Err(error) => return Ok(Err(error)),
            },
            AlterRoleAction::Rename(name) => {
                if fixed {
                    return Ok(Err(message(15150, &[&"alter", &"server role", &node.name.text])));
                }
                if is_taken(instance, &name.text) {
                    return Ok(Err(message(15025, &[&name.text])));
                }
                let mut role = instance.logins[&id].clone();
                role.name.clone_from(&name.text);
                return instance.put_login(txn, role).map(Ok);
            }
        }
        instance.put_members(txn, id, members).map(Ok)
    })
}

/// DROP ROLE.
pub(crate) fn drop_role(interpreter: &mut Interpreter<'_, '_>, name: &str, if_exists: bool) -> Result<(), Failure> {
    let open = interpreter.session.database.clone();
    let judge = interpreter.session.judge(open.id)?;
    change_catalog(interpreter.session, &open, |catalog, part| {
        let known = catalog.user(name).filter(|role| role.kind == b'R').cloned();
        let Some(role) = known.filter(|role| role.fixed || judge.allows(Securable::Role(role.id), "ALTER")) else {
            return if if_exists { Ok(()) } else { Err(message(15151, &[&"drop", &"role", &name])) };
        };
        if role.fixed || role.id < FIRST_USER || role.id == DB_OWNER {
            return Err(message(15150, &[&"drop", &"role", &role.name]));
        }
        if catalog.security.members.contains_key(&role.id) {
            return Err(message(15144, &[]));
        }
        refuse_used(catalog, role.id)?;
        catalog.remove_user(&mut part.txn, role.id).map_err(catalog_error(&open))
    })
    .map_err(Failure::run)
}

/// DROP SERVER ROLE.
pub(crate) fn drop_server_role(session: &SessionState, name: &str, if_exists: bool) -> Result<(), SqlError> {
    let missing = || message(15151, &[&"drop", &"server role", &name]);
    let found = {
        let master = session.engine.master.lock();
        server_role_named(&master, name).map(|(id, _, fixed)| (id, fixed, master.logins.get(&id).map(|role| role.owner)))
    };
    let Some((id, fixed, _)) = found.filter(|(id, fixed, owner)| *fixed || may_alter_server_role(session, (*id, *fixed), *owner)) else {
        return if if_exists { Ok(()) } else { Err(missing()) };
    };
    if fixed {
        return Err(message(15150, &[&"drop", &"server role", &name]));
    }
    change_instance(session, |instance, txn| {
        if instance.security.members.contains_key(&id) {
            return Ok(Err(message(15144, &[])));
        }
        if instance.security.grants.values().flatten().any(|grant| grant.grantor == id) {
            return Ok(Err(message(15173, &[&name])));
        }
        instance.remove_login(txn, id).map(Ok)
    })
}
