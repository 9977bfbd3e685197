//! sp_getapplock and sp_releaseapplock.
//!
//! | wrong | answer |
//! |---|---|
//! | @LockMode, @LockOwner | 15625 as information, -999 |
//! | owner Transaction outside one | 15626 as information, -999 |
//! | no @Resource | -999; NULL: 1224 |
//! | @LockTimeout below -1 | 1227 |
//! | @DbPrincipal that is no user or role | 1202 |
//! | release of what is not held | 1223 |

use crate::batch::arguments::Argument;
use crate::batch::failure::Failure;
use crate::batch::outbox::Outbox;
use crate::messages::message;
use crate::procedures::{Returned, parameter};
use crate::session::application_locks::{Ownership, mode_named};
use crate::session::state::SessionState;
use std::time::Duration;
use thawdb_storage::locks::Resource;
use thawdb_types::Scalar;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockProcedure {
    Get,
    Release,
}

/// What a call with something wrong returns.
const REFUSED: i32 = -999;

impl LockProcedure {
    /// The one of this lower-case name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "sp_getapplock" => Some(Self::Get),
            "sp_releaseapplock" => Some(Self::Release),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Get => "sp_getapplock",
            Self::Release => "sp_releaseapplock",
        }
    }

    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Get => &["@Resource", "@LockMode", "@LockOwner", "@LockTimeout", "@DbPrincipal"],
            Self::Release => &["@Resource", "@LockOwner", "@DbPrincipal"],
        }
    }
}

/// The arguments by parameter.
struct Given<'a>(Vec<(&'static str, &'a Argument)>);

impl<'a> Given<'a> {
    fn of(procedure: LockProcedure, arguments: &'a [Argument]) -> Result<Self, Failure> {
        let parameters = procedure.parameters();
        let mut given: Vec<(&'static str, &Argument)> = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.iter().enumerate() {
            let parameter = parameters[parameter::place(procedure.name(), parameters, at, argument)?];
            if !argument.is_default {
                given.push((parameter, argument));
            }
        }
        Ok(Self(given))
    }

    /// The value of a parameter; `None` if it was not given.
    fn get(&self, parameter: &str) -> Option<&'a Scalar> {
        self.0.iter().find(|(name, _)| *name == parameter).map(|(_, argument)| &argument.value)
    }

    fn text(&self, parameter: &str, default: &'static str) -> &'a str {
        match self.get(parameter) {
            None => default,
            Some(value) => value.as_text().unwrap_or_default(),
        }
    }
}

/// Calls one of them.
pub(crate) fn call(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    procedure: LockProcedure,
    arguments: &[Argument],
) -> Result<Returned, Failure> {
    let given = Given::of(procedure, arguments)?;
    let status = match procedure {
        LockProcedure::Get => get(session, out, &given)?,
        LockProcedure::Release => release(session, out, &given)?,
    };
    Ok(Returned { status, ..Returned::default() })
}

fn get(session: &mut SessionState, out: &mut Outbox<'_>, given: &Given<'_>) -> Result<i32, Failure> {
    let Some(mode) = given.get("@LockMode") else {
        return Err(message(201, &[&"sp_getapplock", &"@LockMode"]).into());
    };
    let written = mode.as_text().unwrap_or_default();
    let Some(mode) = mode_named(written) else {
        out.message(&message(15625, &[&written, &"@LockMode"]));
        return Ok(REFUSED);
    };
    let Some(ownership) = ownership(out, given) else { return Ok(REFUSED) };
    let timeout = match given.get("@LockTimeout") {
        None | Some(Scalar::Null) => i64::from(session.options.lock_timeout_ms),
        Some(value) => value.as_i64().unwrap_or(i64::MIN),
    };
    if ownership == Ownership::Transaction && session.transactions.count == 0 {
        out.message(&message(15626, &[]));
        return Ok(REFUSED);
    }
    if timeout < -1 {
        return Err(message(1227, &[&"xp_userlock"]).with_state(2).into());
    }
    let Some((resource, _)) = resource(session, given)? else { return Ok(REFUSED) };
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    Ok(session.get_application_lock(resource, mode, ownership, timeout))
}

fn release(session: &mut SessionState, out: &mut Outbox<'_>, given: &Given<'_>) -> Result<i32, Failure> {
    let Some(ownership) = ownership(out, given) else { return Ok(REFUSED) };
    let Some((resource, name)) = resource(session, given)? else { return Ok(REFUSED) };
    if !session.release_application_lock(resource, ownership) {
        return Err(message(1223, &[&given.text("@DbPrincipal", "public"), &name]).into());
    }
    Ok(0)
}

fn ownership(out: &mut Outbox<'_>, given: &Given<'_>) -> Option<Ownership> {
    let written = given.text("@LockOwner", "Transaction");
    let ownership = Ownership::named(written);
    if ownership.is_none() {
        out.message(&message(15625, &[&written, &"@LockOwner"]));
    }
    ownership
}

/// The resource and its name; `None` if no name was given.
fn resource<'a>(session: &SessionState, given: &Given<'a>) -> Result<Option<(Resource, &'a str)>, Failure> {
    let Some(name) = given.get("@Resource") else { return Ok(None) };
    let Some(name) = name.as_text() else {
        return Err(message(1224, &[&"xp_userlock"]).with_state(5).into());
    };
    let principal = given.text("@DbPrincipal", "public");
    let known = session.definitions(session.database.id).is_some_and(|catalog| catalog.user(principal).is_some());
    if !known {
        return Err(message(1202, &[&principal]).into());
    }
    Ok(Some((session.application_resource(principal, name), name)))
}
