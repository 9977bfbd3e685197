//! CREATE LOGIN, ALTER LOGIN and DROP LOGIN, as far as sa's own password: other logins wait for permissions.
//!
//! A login without permissions to check would be another sa; so none can be made before they can be checked.

use crate::api::config::Secret;
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::ddl::names::shown;
use crate::instance::login::hash_password;
use crate::messages::{message, unsupported, unsupported_option};
use thawdb_tsql::ast::{Login, ObjectName, StmtKind};

/// CREATE LOGIN, ALTER LOGIN.
pub(crate) fn change_login(interpreter: &mut Interpreter<'_, '_>, kind: &StmtKind, node: &Login) -> Result<(), Failure> {
    if matches!(kind, StmtKind::CreateLogin(_)) {
        if interpreter.session.engine.master.lock().logins.values().any(|login| node.name.is(&login.name)) {
            return Err(message(15025, &[&node.name.text]).into());
        }
        return Err(unsupported("CREATE LOGIN").into());
    }
    let missing = || message(15151, &[&"alter", &"login", &node.name.text]);
    let known = interpreter.session.engine.master.lock().logins.values().find(|login| node.name.is(&login.name)).cloned();
    let mut login = known.ok_or_else(missing)?;
    if let Some(option) = node.options.first() {
        return Err(unsupported_option(&option.name).into());
    }
    if let Some(password) = &node.password {
        if password.hashed || password.must_change {
            return Err(unsupported_option(if password.hashed { "HASHED" } else { "MUST_CHANGE" }).into());
        }
        let text = interpreter.text_value(&password.value)?.unwrap_or_default();
        if text.is_empty() {
            return Err(message(15118, &[]).into());
        }
        let random = interpreter.session.engine.config.env.random.clone();
        login.password_hash = Some(hash_password(random.as_ref(), &Secret::new(text)));
    }
    if let Some(enable) = node.enable {
        login.disabled = !enable;
    }
    login.modified = interpreter.session.engine.now_datetime();
    let engine = interpreter.session.engine.clone();
    engine.change_master(|instance, txn| instance.put_login(txn, login)).map_err(Failure::run)
}

/// DROP LOGIN: sa cannot be dropped, others do not exist.
pub(crate) fn drop_login(interpreter: &Interpreter<'_, '_>, name: &ObjectName) -> Result<(), Failure> {
    let known = interpreter.session.engine.master.lock().logins.values().any(|login| name.name.is(&login.name));
    Err(match known {
        true => message(15150, &[&"drop", &"login", &shown(name)]).into(),
        false => message(15151, &[&"drop", &"login", &shown(name)]).into(),
    })
}
