//! Procedures that run a text given as an argument: sp_executesql, and prepared texts by handle.

use crate::batch::arguments::Argument;
use crate::batch::execute::run_with_parameters;
use crate::batch::failure::Failure;
use crate::batch::outbox::Outbox;
use crate::batch::ready::ReadyCall;
use crate::messages::message;
use crate::procedures::Returned;
use crate::rows;
use crate::session::frame::Frame;
use crate::session::state::SessionState;
use thawdb_types::{Scalar, SqlError, SqlType};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextProcedure {
    ExecuteSql,
    Prepare,
    Execute,
    PrepareAndExecute,
    Unprepare,
}

impl TextProcedure {
    /// The one of this lower-case name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "sp_executesql" => Self::ExecuteSql,
            "sp_prepare" => Self::Prepare,
            "sp_execute" => Self::Execute,
            "sp_prepexec" => Self::PrepareAndExecute,
            "sp_unprepare" => Self::Unprepare,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::ExecuteSql => "sp_executesql",
            Self::Prepare => "sp_prepare",
            Self::Execute => "sp_execute",
            Self::PrepareAndExecute => "sp_prepexec",
            Self::Unprepare => "sp_unprepare",
        }
    }

    /// Names of its own parameters in order; those of the text follow.
    fn own_parameters(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::ExecuteSql => &[&["@stmt", "@statement"], &["@params", "@parameters"]],
            Self::Prepare => &[&["@handle"], &["@params"], &["@stmt"], &["@options"]],
            Self::Execute | Self::Unprepare => &[&["@handle"]],
            Self::PrepareAndExecute => &[&["@handle"], &["@params"], &["@stmt"]],
        }
    }
}

/// The procedure's own arguments by position; what is left belongs to the text, each with its place in the call.
struct Split<'a> {
    own: Vec<Option<&'a Argument>>,
    rest: Vec<(usize, &'a Argument)>,
}

fn split(procedure: TextProcedure, arguments: &[Argument]) -> Split<'_> {
    let names = procedure.own_parameters();
    let mut own: Vec<Option<&Argument>> = vec![None; names.len()];
    let mut rest = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        // A driver may name the procedure's own parameters or give them in order; either way they come first.
        let by_name = names.iter().position(|known| known.iter().any(|name| name.eq_ignore_ascii_case(&argument.name)));
        match by_name.or((at < names.len()).then_some(at)).filter(|position| own[*position].is_none()) {
            Some(position) if at < names.len() => own[position] = Some(argument),
            _ => rest.push((at, argument)),
        }
    }
    Split { own, rest }
}

/// A message told of a call.
fn in_procedure(mut error: SqlError, name: &str) -> SqlError {
    error.procedure = Some(name.to_owned());
    error.at_line(1)
}

fn text_of(procedure: TextProcedure, argument: Option<&Argument>, name: &str, required: bool) -> Result<String, SqlError> {
    let wrong = || in_procedure(message(214, &[&name, &"ntext/nchar/nvarchar"]).with_state(2), procedure.name());
    match argument {
        Some(argument) if argument.sql_type.is_text() && !argument.sql_type.is_unicode() => Err(wrong()),
        Some(argument) if argument.sql_type.is_text() => match &argument.value {
            Scalar::Text(text) => Ok(text.clone()),
            _ => Ok(String::new()),
        },
        Some(argument) if argument.value.is_null() => Ok(String::new()),
        Some(_) => Err(wrong()),
        None if required => Err(message(201, &[&procedure.name(), &name])),
        None => Ok(String::new()),
    }
}

fn handle_of(procedure: TextProcedure, argument: Option<&Argument>) -> Result<i32, SqlError> {
    let argument = argument.ok_or_else(|| message(201, &[&procedure.name(), &"@handle"]))?;
    match rows::convert(&argument.value, &argument.sql_type, &SqlType::Int)? {
        Scalar::Int(handle) => Ok(handle),
        _ => Err(message(8179, &[&0])),
    }
}

/// Calls it.
pub(crate) fn call(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    procedure: TextProcedure,
    arguments: &[Argument],
    guarded: bool,
) -> Result<Returned, Failure> {
    let Split { own, rest } = split(procedure, arguments);
    match procedure {
        TextProcedure::ExecuteSql => {
            let text = text_of(procedure, own[0], "@statement", true)?;
            let declarations = text_of(procedure, own[1], "@params", false)?;
            run(session, out, &text, &declarations, &rest, guarded)
        }
        TextProcedure::Prepare => {
            let declarations = text_of(procedure, own[1], "@params", true)?;
            let text = text_of(procedure, own[2], "@stmt", true)?;
            let handle = session.prepared.add(&declarations, &text).ok_or_else(|| message(701, &[&"default"]))?;
            Ok(Returned { status: 0, outputs: vec![(0, Scalar::Int(handle), SqlType::Int)] })
        }
        TextProcedure::PrepareAndExecute => {
            let declarations = text_of(procedure, own[1], "@params", true)?;
            let text = text_of(procedure, own[2], "@stmt", true)?;
            let handle = session.prepared.add(&declarations, &text).ok_or_else(|| message(701, &[&"default"]))?;
            let mut returned = run(session, out, &text, &declarations, &rest, guarded)?;
            returned.outputs.insert(0, (0, Scalar::Int(handle), SqlType::Int));
            Ok(returned)
        }
        TextProcedure::Execute => {
            let handle = handle_of(procedure, own[0])?;
            let prepared = session.prepared.get(handle).ok_or_else(|| message(8179, &[&handle]))?;
            let returned = run(session, out, &prepared.text, &prepared.declarations, &rest, guarded)?;
            if let Some(ready) = ReadyCall::make(session, &prepared) {
                session.prepared.put_ready(handle, Box::new(ready));
            }
            Ok(returned)
        }
        TextProcedure::Unprepare => {
            let handle = handle_of(procedure, own[0])?;
            if session.prepared.remove(handle) { Ok(Returned::default()) } else { Err(message(8179, &[&handle]).into()) }
        }
    }
}

fn run(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    text: &str,
    declarations: &str,
    rest: &[(usize, &Argument)],
    guarded: bool,
) -> Result<Returned, Failure> {
    let arguments: Vec<Argument> = rest.iter().map(|(_, argument)| (*argument).clone()).collect();
    let frame = Frame { guarded, ..Frame::default() };
    let (status, outputs) = run_with_parameters(session, out, text, declarations, &arguments, frame)?;
    let outputs = outputs.into_iter().map(|(at, variable)| (rest[at].0, variable.value, variable.sql_type)).collect();
    Ok(Returned { status, outputs })
}
