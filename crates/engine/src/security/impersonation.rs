//! EXECUTE AS and REVERT, and the context that a module runs in.
//!
//! ```text
//! EXECUTE AS ... ─► may impersonate? ─► onto the session's stack        REVERT, or the end of the scope ─► off it
//! ```
//! A statement takes back only what was put on in its own scope (`Frame::contexts`). What a batch of the client put on stays
//! until REVERT, the connection's reset or the session's end.
//!
//! Messages: 15517 and 15406 (no such user or login, or not for this one to be), 15199 (REVERT in another database), 15591 (a
//! cookie, or NO REVERT), 15590 (these beyond the client's own batch).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::message;
use crate::security::context::{Acting, Origin};
use crate::security::logins::principal_named;
use crate::security::rule::{Securable, owner_of};
use crate::security::token::{DBO, FIRST_USER, GUEST, Who};
use crate::session::state::SessionState;
use thawdb_catalog::{DatabaseCatalog, ObjectKind, ObjectSecurity};
use thawdb_tsql::ast::{ExecuteAs, ExecuteAsPrincipal, Expr};
use thawdb_types::{Scalar, SqlError, SqlType};

const COOKIE_BYTES: usize = 100;

/// The user of a name, if the one who acts may be it: 15517.
pub(crate) fn user_to_be(session: &SessionState, name: &str) -> Result<Who, SqlError> {
    let database = session.database.id;
    let refused = || message(15517, &[&name]);
    let judge = session.judge(database)?;
    let catalog = session.definitions(database).ok_or_else(refused)?;
    let user = catalog.user(name).filter(|user| user.kind != b'R').ok_or_else(refused)?;
    let own = judge.user.as_ref().map(|(user, _)| user.user) == Some(user.id);
    let real = user.id >= FIRST_USER || user.id == DBO || user.id == GUEST;
    // Nobody but those who may everything here becomes dbo.
    let may = own || judge.is_unlimited(crate::security::permissions::Kind::Database);
    let may = may || (user.id != DBO && judge.allows(Securable::User(user.id), "IMPERSONATE"));
    if real && may { Ok(Who::User(database, user.id)) } else { Err(refused()) }
}

/// The login of a name, likewise: 15406.
pub(crate) fn login_to_be(session: &SessionState, name: &str) -> Result<Who, SqlError> {
    let refused = || message(15406, &[&name]);
    let judge = session.server_judge();
    let known = principal_named(&session.engine.master.lock(), name).filter(|login| !login.is_role());
    let login = known.ok_or_else(refused)?;
    let powerful =
        login.id == crate::security::token::SA || judge.server.security.roles_of(login.id).contains(&crate::security::token::SYSADMIN);
    let may = judge.server.login == login.id || judge.server.sysadmin;
    let may = may || (!powerful && judge.allows(Securable::Login(login.id), "IMPERSONATE"));
    if may { Ok(Who::Login(login.id)) } else { Err(refused()) }
}

/// EXECUTE AS.
pub(crate) fn execute_as(interpreter: &mut Interpreter<'_, '_>, node: &ExecuteAs) -> Result<(), Failure> {
    let outermost = interpreter.session.frames.len() == 1;
    if (node.no_revert || node.cookie.is_some()) && !outermost {
        return Err(message(15590, &[]).into());
    }
    let who = match &node.principal {
        ExecuteAsPrincipal::Caller => interpreter.session.contexts.top().who,
        ExecuteAsPrincipal::User(name) => {
            let name = interpreter.text_value(name)?.unwrap_or_default();
            user_to_be(interpreter.session, &name)?
        }
        ExecuteAsPrincipal::Login(name) => {
            let name = interpreter.text_value(name)?.unwrap_or_default();
            login_to_be(interpreter.session, &name)?
        }
    };
    let session = &mut *interpreter.session;
    let mut cookie = None;
    if let Some(variable) = &node.cookie {
        let position = session.frame().position(&variable.name);
        let position = position.ok_or_else(|| Failure::compile(message(137, &[&variable.name])))?;
        let mut bytes = vec![0; COOKIE_BYTES];
        session.engine.config.env.random.fill(&mut bytes);
        let to = session.frame().variables[position].sql_type;
        let from = SqlType::varbinary(8000);
        session.frame_mut().variables[position].value = crate::rows::convert(&Scalar::Binary(bytes.clone()), &from, &to)?;
        cookie = Some(bytes);
    }
    let database = session.database.id;
    let depth = session.contexts.depth();
    session.contexts.push(Acting { who, origin: Origin::Statement(database), stays: node.no_revert, cookie });
    if session.user_token(database).is_none() {
        let refused = session.not_let_in(database);
        session.contexts.truncate(depth);
        return Err(refused.into());
    }
    Ok(())
}

/// REVERT: without anything to revert it does nothing.
pub(crate) fn revert(interpreter: &mut Interpreter<'_, '_>, cookie: Option<&Expr>) -> Result<(), Failure> {
    let given = match cookie {
        None => None,
        Some(expr) => match interpreter.value(expr)?.0 {
            Scalar::Binary(bytes) => Some(bytes),
            _ => return Err(message(15591, &[]).into()),
        },
    };
    let session = &mut *interpreter.session;
    let depth = session.contexts.depth();
    if depth <= session.frame().contexts.max(1) {
        return Ok(());
    }
    let top = session.contexts.top();
    let Origin::Statement(database) = top.origin else { return Ok(()) };
    if top.stays || top.cookie != given {
        return Err(message(15591, &[]).into());
    }
    if database != session.database.id {
        return Err(message(15199, &[&"Execute As"]).into());
    }
    session.contexts.truncate(depth - 1);
    Ok(())
}

/// Whom a module runs as, if not as its caller.
pub(crate) fn of_module(catalog: &DatabaseCatalog, object: i32) -> Option<i32> {
    match catalog.security.object(object).execute_as? {
        ObjectSecurity::AS_OWNER => owner_of(catalog, object),
        user => Some(user),
    }
}

impl SessionState {
    /// The module whose frame is the last begins: its owner's chain, its schema, and the context it is to run in.
    pub(crate) fn enter_module(&mut self, object: &thawdb_catalog::ObjectDef, database: thawdb_catalog::DatabaseId) {
        let own = self.definitions(database).filter(|catalog| {
            let known = catalog.objects.get(&object.id.0);
            // A procedure of master that runs here is none of this database's.
            known.is_some_and(|known| known.name == object.name && known.created == object.created)
        });
        let frame = self.frame_mut();
        frame.schema = Some((object.schema, object.schema_name.as_str().into()));
        let Some(catalog) = own else { return };
        frame.chain = owner_of(&catalog, object.id.0).map(|owner| (database, owner));
        if let Some(user) = of_module(&catalog, object.id.0) {
            let who = Who::User(database, user);
            self.contexts.push(Acting { who, origin: Origin::Module, stays: true, cookie: None });
            let depth = self.contexts.depth();
            self.frame_mut().contexts = depth;
        }
    }

    /// Whether the session may run a procedure or function: 229 if not, told as by the procedure.
    pub(crate) fn may_call(&self, found: &crate::batch::module::FoundModule) -> Result<(), SqlError> {
        if self.is_sysadmin() {
            return Ok(());
        }
        let id = found.object.id;
        let here = self.definitions(found.database.id).is_some_and(|catalog| {
            catalog.objects.get(&id.0).is_some_and(|known| known.name == found.object.name && known.created == found.object.created)
        });
        let home = if here { found.database.id } else { crate::instance::MASTER_ID };
        self.allow_action(thawdb_query::access::AccessAction::Execute, (home, id)).map_err(|mut error| {
            let called = found.object.kind == ObjectKind::Procedure;
            error.procedure = called.then(|| found.object.name.clone()).or(error.procedure);
            error
        })
    }
}
