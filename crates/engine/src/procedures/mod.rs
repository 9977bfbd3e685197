//! System procedures: those that run texts, and those that answer from the catalog views.
//!
//! ```text
//! EXEC name, RPC name ─► find ─► Text: sp_executesql, sp_prepare, ...     run a text given as an argument
//!                              ─► Catalog: sp_tables, sp_columns, ...     a T-SQL text of ours over sys views
//!                              ─► ApplicationLock                         locks on names
//!                              ─► Cursor: sp_cursoropen, ...              cursors by handle
//!                              ─► Refused                                 known, not built
//! ```

mod api_cursor;
pub(crate) mod applock;
pub(crate) mod catalog;
pub(crate) mod configure;
mod describe;
pub(crate) mod estimate;
mod metadata;
mod parameter;
pub(crate) mod principals;
pub(crate) mod rename;
mod session_context;
pub(crate) mod texts;
pub(crate) mod trigger_order;
mod undeclared;

use crate::api::parameter::Parameter;
use crate::batch::arguments::Argument;
use crate::batch::execute::{end_of_call, run_with_parameters};
use crate::batch::failure::Failure;
use crate::batch::module::{FoundModule, call_procedure};
use crate::batch::outbox::Outbox;
use crate::batch::ready::execute_ready;
use crate::messages::{message, unsupported};
use crate::session::CallEnd;
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use api_cursor::CursorProcedure;
use applock::LockProcedure;
use catalog::CatalogProcedure;
use texts::TextProcedure;
use thawdb_types::{Scalar, SqlError, SqlType};

/// A procedure.
#[derive(Clone)]
pub(crate) enum Procedure {
    Text(TextProcedure),
    Catalog(&'static CatalogProcedure),
    /// sp_cursoropen and its kin.
    Cursor(CursorProcedure),
    /// sp_getapplock, sp_releaseapplock.
    ApplicationLock(LockProcedure),
    /// sp_flush_log: makes commits with delayed durability durable.
    FlushLog,
    /// sp_rename.
    Rename,
    /// sp_settriggerorder.
    TriggerOrder,
    /// sp_set_session_context.
    SessionContext,
    /// sp_describe_first_result_set.
    Describe,
    /// sp_describe_undeclared_parameters.
    DescribeUndeclared,
    /// sp_estimate_data_compression_savings.
    EstimateCompression,
    Refused(&'static str),
    /// One of the catalog's.
    Module(FoundModule),
}

/// What a procedure gave back.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    pub(crate) status: i32,
    /// Values of output parameters: position of the argument, value, type.
    pub(crate) outputs: Vec<(usize, Scalar, SqlType)>,
}

/// Procedures that exist in SQL Server and whose absence is told by name.
const REFUSED: [&str; 2] = ["sp_prepexecrpc", "sp_addmessage"];

/// The procedure of a name, with or without `sys.`, `dbo.` or a database before it.
pub(crate) fn find(name: &str) -> Option<Procedure> {
    // As drivers write them, and as calls by number are named: no need to take the name apart.
    if let Some(text) = TextProcedure::of(name) {
        return Some(Procedure::Text(text));
    }
    let name = crate::ddl::names::parse_name(name)?;
    let own = name.schema.as_ref().is_some_and(|schema| !schema.is("sys") && !schema.is("dbo"));
    if own || name.server.is_some() {
        return None;
    }
    let bare = name.name.text.to_ascii_lowercase();
    if let Some(procedure) = CursorProcedure::of(&bare) {
        return Some(Procedure::Cursor(procedure));
    }
    if bare == "sp_flush_log" {
        return Some(Procedure::FlushLog);
    }
    if let Some(procedure) = LockProcedure::of(&bare) {
        return Some(Procedure::ApplicationLock(procedure));
    }
    if bare == "sp_rename" {
        return Some(Procedure::Rename);
    }
    if bare == "sp_settriggerorder" {
        return Some(Procedure::TriggerOrder);
    }
    if bare == "sp_set_session_context" {
        return Some(Procedure::SessionContext);
    }
    if bare == "sp_describe_first_result_set" {
        return Some(Procedure::Describe);
    }
    if bare == "sp_describe_undeclared_parameters" {
        return Some(Procedure::DescribeUndeclared);
    }
    if bare == "sp_estimate_data_compression_savings" {
        return Some(Procedure::EstimateCompression);
    }
    if let Some(text) = TextProcedure::of(&bare) {
        return Some(Procedure::Text(text));
    }
    if let Some(procedure) =
        catalog::PROCEDURES.iter().chain(principals::PROCEDURES).chain(metadata::procedures()).find(|procedure| procedure.name == bare)
    {
        return Some(Procedure::Catalog(procedure));
    }
    REFUSED.iter().find(|refused| **refused == bare).map(|refused| Procedure::Refused(refused))
}

/// The procedure of a name: the system's, then the user's. 2812 if there is none.
pub(crate) fn resolve(session: &SessionState, name: &str) -> Result<Procedure, SqlError> {
    if let Some(procedure) = find(name) {
        return Ok(procedure);
    }
    let found = crate::batch::module::find_procedure(session, name)?;
    found.map(Procedure::Module).ok_or_else(|| message(2812, &[&name]).with_state(62))
}

/// Calls a procedure. `guarded`: a TRY of the caller catches what fails inside.
pub(crate) fn call(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    procedure: Procedure,
    arguments: &[Argument],
    guarded: bool,
) -> Result<Returned, Failure> {
    match procedure {
        Procedure::Text(text) => texts::call(session, out, text, arguments, guarded),
        Procedure::Catalog(procedure) if procedure.name == "sp_configure" && configure::gives_value(arguments) => {
            configure::call(session, out, arguments)
        }
        Procedure::Catalog(procedure) => {
            let frame = Frame { guarded, procedure: Some(procedure.name.to_owned()), ..Frame::default() };
            let (status, outputs) = run_with_parameters(session, out, procedure.text, procedure.parameters, arguments, frame)?;
            let outputs = outputs.into_iter().map(|(at, variable)| (at, variable.value, variable.sql_type)).collect();
            Ok(Returned { status, outputs })
        }
        Procedure::Cursor(procedure) => api_cursor::call(session, out, procedure, arguments),
        Procedure::ApplicationLock(procedure) => applock::call(session, out, procedure, arguments),
        Procedure::FlushLog => {
            let store = session.database.storage.store().clone();
            let end = store.log().map_or(thawdb_storage::Lsn(0), |log| log.end());
            store.flush_log(end).map_err(|error| session.storage_failure(session.database.id, error))?;
            Ok(Returned::default())
        }
        Procedure::Rename => rename::call(session, out, arguments),
        Procedure::TriggerOrder => trigger_order::call(session, arguments),
        Procedure::SessionContext => Ok(session_context::call(session, arguments)?),
        Procedure::Describe => describe::call(session, out, arguments),
        Procedure::DescribeUndeclared => undeclared::call(session, out, arguments),
        Procedure::EstimateCompression => estimate::call(session, out, arguments),
        Procedure::Refused(name) => Err(unsupported(name).into()),
        Procedure::Module(found) if found.object.kind == thawdb_catalog::ObjectKind::Procedure => {
            session.may_call(&found)?;
            call_procedure(session, out, &found, arguments, guarded)
        }
        Procedure::Module(found) => call_procedure(session, out, &found, arguments, guarded),
    }
}

/// A remote call: status, output values and the last completion are the caller's to see.
pub(crate) fn call_rpc(session: &mut SessionState, out: &mut Outbox<'_>, name: &str, parameters: &[Parameter]) -> CallEnd {
    session.bulk = None;
    if let Some(end) = execute_ready(session, out, name, parameters) {
        return end;
    }
    let arguments: Vec<Argument> = parameters.iter().map(Argument::from).collect();
    let procedure = resolve(session, name).map_err(Failure::run);
    let outcome = procedure.and_then(|procedure| call(session, out, procedure, &arguments, false));
    let failure = match outcome {
        Ok(returned) => {
            out.return_status(returned.status);
            for (at, value, sql_type) in &returned.outputs {
                let ordinal = u16::try_from(*at).unwrap_or(u16::MAX);
                out.return_value(ordinal, &arguments[*at].name, sql_type, value);
            }
            None
        }
        Err(failure) => Some(failure),
    };
    end_of_call(session, out, failure)
}
