//! CREATE, ALTER and DROP LOGIN.
//!
//! Logins are master's records: each statement is a transaction of its own there, whatever the session's is. Messages: 15025 (the
//! name is taken), 15151 (not there, or not for this one), 15116 and 15118 (password policy), 15433 (sid in use), 15010 (default
//! database), 15434 (logged in), 15174 (owns databases), 15401 and 15407 (no Windows here).

use crate::api::config::Secret;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::instance::login::{LANGUAGE, check_password, hash_password};
use crate::messages::{message, unsupported_option};
use crate::security::rule::Securable;
use crate::security::token::{SA, SERVER_ROLES, SYSADMIN};
use crate::session::state::SessionState;
use thawdb_catalog::{CatalogError, InstanceCatalog, LoginRecord};
use thawdb_storage::Txn;
use thawdb_tsql::ast::{Expr, ExprKind, Literal, Login, OptionItem, OptionValue, Password};
use thawdb_types::{Scalar, SqlError};

/// First number of a login that a user makes.
const FIRST_LOGIN: i32 = 257;
const SID_BYTES: usize = 16;
/// Shortest password under CHECK_POLICY, and kinds of characters it must have, as SQL Server on Linux asks.
const PASSWORD_UNITS_MIN: usize = 8;
const PASSWORD_KINDS_MIN: usize = 3;

/// Changes what master records of logins; a refusal changes nothing.
pub(crate) fn change_instance(
    session: &SessionState,
    change: impl FnOnce(&mut InstanceCatalog, &mut Txn) -> Result<Result<(), SqlError>, CatalogError>,
) -> Result<(), SqlError> {
    session.engine.change_master(change)?
}

/// The login or server role of a name.
pub(crate) fn principal_named(instance: &InstanceCatalog, name: &str) -> Option<LoginRecord> {
    instance.logins.values().find(|login| login.name.eq_ignore_ascii_case(name)).cloned()
}

/// A number for a new login or server role.
pub(crate) fn next_number(instance: &InstanceCatalog) -> i32 {
    instance.logins.keys().last().map_or(FIRST_LOGIN, |last| (last + 1).max(FIRST_LOGIN))
}

/// Whether the name is taken by a login or a role of the instance.
pub(crate) fn is_taken(instance: &InstanceCatalog, name: &str) -> bool {
    principal_named(instance, name).is_some() || SERVER_ROLES.iter().any(|(_, fixed, _)| fixed.eq_ignore_ascii_case(name))
}

/// An option's word or text.
pub(crate) fn option_text(item: &OptionItem) -> String {
    match &item.value {
        OptionValue::Word(word) => word.clone(),
        OptionValue::Switch(on) => if *on { "ON" } else { "OFF" }.to_owned(),
        OptionValue::Expr(Expr { kind: ExprKind::Literal(Literal::String { value, .. }), .. }) => value.clone(),
        _ => String::new(),
    }
}

/// What the options of a login say.
#[derive(Debug, Default)]
struct Options {
    name: Option<String>,
    sid: Option<Vec<u8>>,
    database: Option<String>,
    language: Option<String>,
    check_policy: Option<bool>,
    check_expiration: Option<bool>,
}

fn options_of(interpreter: &mut Interpreter<'_, '_>, items: &[OptionItem]) -> Result<Options, Failure> {
    let mut options = Options::default();
    for item in items {
        match item.name.as_str() {
            "NAME" => options.name = Some(option_text(item)),
            "DEFAULT_DATABASE" => {
                let name = option_text(item);
                if interpreter.session.engine.database_named(&name).is_none() {
                    return Err(message(15010, &[&name]).into());
                }
                options.database = Some(name);
            }
            "DEFAULT_LANGUAGE" => {
                let name = option_text(item);
                if !["us_english", "english"].iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                    return Err(message(15033, &[&name]).into());
                }
                options.language = Some(LANGUAGE.to_owned());
            }
            "CHECK_POLICY" => options.check_policy = Some(matches!(item.value, OptionValue::Switch(true))),
            "CHECK_EXPIRATION" => options.check_expiration = Some(matches!(item.value, OptionValue::Switch(true))),
            "SID" => {
                let OptionValue::Expr(value) = &item.value else { return Err(unsupported_option("SID").into()) };
                match interpreter.value(value)?.0 {
                    Scalar::Binary(bytes) if (1..=85).contains(&bytes.len()) => options.sid = Some(bytes),
                    _ => return Err(message(15021, &[&"sid"]).into()),
                }
            }
            other => return Err(unsupported_option(other).into()),
        }
    }
    if options.check_expiration == Some(true) && options.check_policy == Some(false) {
        return Err(message(15122, &[]).into());
    }
    Ok(options)
}

/// The text of a password; 40517 for what is not built.
fn password_text(interpreter: &mut Interpreter<'_, '_>, password: &Password) -> Result<String, Failure> {
    if password.hashed || password.must_change {
        return Err(unsupported_option(if password.hashed { "HASHED" } else { "MUST_CHANGE" }).into());
    }
    let text = interpreter.text_value(&password.value)?.unwrap_or_default();
    if text.is_empty() { Err(message(15116, &[]).into()) } else { Ok(text) }
}

/// 15116 for a password that is too short, 15118 for one that is too plain.
fn check_policy(password: &str, login: &str) -> Result<(), SqlError> {
    if password.chars().count() < PASSWORD_UNITS_MIN {
        return Err(message(15116, &[]));
    }
    let kinds: [fn(char) -> bool; 4] = [char::is_uppercase, char::is_lowercase, char::is_numeric, |c| !c.is_alphanumeric()];
    let met = kinds.iter().filter(|kind| password.chars().any(|c| kind(c))).count();
    let named = login.chars().count() >= 3 && password.to_lowercase().contains(&login.to_lowercase());
    if met < PASSWORD_KINDS_MIN || named { Err(message(15118, &[])) } else { Ok(()) }
}

/// CREATE LOGIN.
pub(crate) fn create_login(interpreter: &mut Interpreter<'_, '_>, node: &Login) -> Result<(), Failure> {
    let name = node.name.text.clone();
    if !interpreter.session.server_judge().allows(Securable::Server, "CREATE LOGIN") {
        return Err(message(15247, &[]).into());
    }
    if let Some(source) = &node.from {
        return Err(match (source.as_str(), name.contains('\\')) {
            ("WINDOWS", true) => message(15401, &[&name]).into(),
            ("WINDOWS", false) => message(15407, &[&name]).into(),
            _ => unsupported_option(source).into(),
        });
    }
    if name.contains('\\') {
        return Err(message(15006, &[&name]).into());
    }
    let Some(password) = &node.password else { return Err(unsupported_option("CREATE LOGIN without PASSWORD").into()) };
    let text = password_text(interpreter, password)?;
    let options = options_of(interpreter, &node.options)?;
    let policy = options.check_policy.unwrap_or(true);
    if policy {
        check_policy(&text, &name)?;
    }
    let session = &mut *interpreter.session;
    let random = session.engine.config.env.random.clone();
    let hash = hash_password(random.as_ref(), &Secret::new(text));
    let mut sid = vec![0; SID_BYTES];
    random.fill(&mut sid);
    let (sid, now) = (options.sid.unwrap_or(sid), session.engine.now_datetime());
    change_instance(session, |instance, txn| {
        if is_taken(instance, &name) {
            return Ok(Err(message(15025, &[&name])));
        }
        if instance.logins.values().any(|login| login.sid == sid) {
            return Ok(Err(message(15433, &[])));
        }
        let record = LoginRecord {
            id: next_number(instance),
            name,
            sid,
            password_hash: Some(hash),
            default_database: options.database.unwrap_or_else(|| "master".to_owned()),
            default_language: options.language.unwrap_or_else(|| LANGUAGE.to_owned()),
            disabled: false,
            created: now,
            modified: now,
            kind: b'S',
            owner: SA,
            check_policy: policy,
            check_expiration: options.check_expiration.unwrap_or(false),
        };
        instance.put_login(txn, record).map(Ok)
    })
    .map_err(Failure::run)
}

/// Whether the one who acts may change a login: its password, name and state, or only what it may set for itself.
fn may_alter(session: &SessionState, login: &LoginRecord) -> bool {
    let (judge, security) = (session.server_judge(), session.server_token().security.clone());
    let powerful = login.id == SA || security.roles_of(login.id).contains(&SYSADMIN);
    judge.server.sysadmin || (!powerful && judge.allows(Securable::Login(login.id), "ALTER"))
}

/// ALTER LOGIN.
pub(crate) fn alter_login(interpreter: &mut Interpreter<'_, '_>, node: &Login) -> Result<(), Failure> {
    let missing = || Failure::run(message(15151, &[&"alter", &"login", &node.name.text]));
    let known = principal_named(&interpreter.session.engine.master.lock(), &node.name.text).filter(|login| !login.is_role());
    let mut login = known.ok_or_else(missing)?;
    let may = may_alter(interpreter.session, &login);
    let own = interpreter.session.server_token().login == login.id;
    if !may && !own {
        return Err(missing());
    }
    let options = options_of(interpreter, &node.options)?;
    if let Some(password) = &node.password {
        let text = password_text(interpreter, password)?;
        let proven = password.old.as_ref().map(|old| check_password(login.password_hash.as_deref(), &Secret::new(old.clone())));
        if proven == Some(false) || (!may && proven.is_none()) {
            return Err(missing());
        }
        if options.check_policy.unwrap_or(login.check_policy) {
            check_policy(&text, &login.name)?;
        }
        let random = interpreter.session.engine.config.env.random.clone();
        login.password_hash = Some(hash_password(random.as_ref(), &Secret::new(text)));
    }
    let beyond = node.enable.is_some() || options.name.is_some() || options.check_policy.is_some() || options.check_expiration.is_some();
    if (beyond || options.sid.is_some()) && !may {
        return Err(missing());
    }
    if options.sid.is_some() {
        return Err(unsupported_option("SID").into());
    }
    login.disabled = node.enable.map_or(login.disabled, |enable| !enable);
    login.default_database = options.database.unwrap_or(login.default_database);
    login.default_language = options.language.unwrap_or(login.default_language);
    login.check_policy = options.check_policy.unwrap_or(login.check_policy);
    login.check_expiration = options.check_expiration.unwrap_or(login.check_expiration);
    login.modified = interpreter.session.engine.now_datetime();
    change_instance(interpreter.session, |instance, txn| {
        if let Some(name) = options.name.filter(|name| !login.name.eq_ignore_ascii_case(name)) {
            if is_taken(instance, &name) {
                return Ok(Err(message(15025, &[&name])));
            }
            login.name = name;
        }
        instance.put_login(txn, login).map(Ok)
    })
    .map_err(Failure::run)
}

/// DROP LOGIN.
pub(crate) fn drop_login(interpreter: &mut Interpreter<'_, '_>, name: &str) -> Result<(), Failure> {
    let session = &mut *interpreter.session;
    let missing = || message(15151, &[&"drop", &"login", &name]);
    let known = principal_named(&session.engine.master.lock(), name).filter(|login| !login.is_role());
    let login = known.filter(|login| may_alter(session, login)).ok_or_else(missing)?;
    if login.id == SA {
        return Err(message(15150, &[&"drop", &"login", &login.name]).into());
    }
    if session.engine.sessions.all().iter().any(|ticket| ticket.facts.lock().login_name.eq_ignore_ascii_case(&login.name)) {
        return Err(message(15434, &[&login.name]).into());
    }
    if session.engine.all_databases().iter().any(|open| open.record().owner_sid == login.sid) {
        return Err(message(15174, &[&login.name]).into());
    }
    change_instance(session, |instance, txn| {
        if instance.logins.values().any(|role| role.is_role() && role.owner == login.id) {
            return Ok(Err(message(15141, &[&"server role"])));
        }
        if instance.security.grants.values().flatten().any(|grant| grant.grantor == login.id) {
            return Ok(Err(message(15173, &[&login.name])));
        }
        instance.remove_login(txn, login.id).map(Ok)
    })
    .map_err(Failure::run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_meet_the_policy() {
        let check = |password: &str, expected: Option<i32>| {
            assert_eq!(check_policy(password, "carol").err().map(|error| error.number), expected, "{password}");
        };
        check("Abcdef1", Some(15116));
        check("abcdefgh", Some(15118));
        check("abcdefg1", Some(15118));
        check("Abcdefg1", None);
        check("abcdef-1", None);
        check("xCarol-12345", Some(15118));
    }
}
