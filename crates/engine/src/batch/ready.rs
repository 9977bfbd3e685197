//! Prepared texts made ready: what a second sp_execute of a handle need not do again.
//!
//! ```text
//! handle ─► ReadyCall { tree, kept run, frame with its variables } ─► values in ─► scope ─► frame back for the next call
//! ```
//! A call goes this way when it gives one input for each parameter, in order. Everything else (outputs, defaults, names out
//! of order, other settings) goes by `texts::run`, with the same result.
//!
//! Invariants: 1. a ready call runs only in the situation it was made in ([`KeptRun::is_of`]) and under its setting of
//! QUOTED_IDENTIFIER. 2. While it runs it is not in the session: a text that executes its own handle goes the other way.
//! 3. Variables that are no parameters begin each call as NULL, as DECLARE leaves them.

use crate::api::parameter::Parameter;
use crate::batch::execute::{Caller, Source, declare_all, end_of_call, run_scope};
use crate::batch::failure::Failure;
use crate::batch::kept::KeptRun;
use crate::batch::outbox::Outbox;
use crate::batch::parsed::Parsed;
use crate::batch::program::{Op, Program};
use crate::ddl::columns::sql_type;
use crate::messages::message;
use crate::rows;
use crate::session::CallEnd;
use crate::session::frame::{Frame, Variable};
use crate::session::prepared::PreparedText;
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_tsql::ParseOptions;
use thawdb_tsql::ast::StmtKind;
use thawdb_types::{Collation, Scalar, SqlType, TypeUse};

/// A prepared text, ready to run.
pub(crate) struct ReadyCall {
    text: Arc<str>,
    parsed: Arc<Parsed>,
    kept: Arc<KeptRun>,
    quoted_identifier: bool,
    /// The first variables are the parameters.
    parameter_count: usize,
    variables: Vec<Variable>,
}

impl std::fmt::Debug for ReadyCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadyCall").field("text", &self.text).finish_non_exhaustive()
    }
}

impl ReadyCall {
    /// Makes a text ready; `None` if it is one of those that must be looked at anew each time.
    pub(crate) fn make(session: &mut SessionState, prepared: &PreparedText) -> Option<Self> {
        let quoted_identifier = session.options.quoted_identifier;
        let texts = &session.engine.plans.texts;
        let declared =
            if prepared.declarations.trim().is_empty() { Arc::default() } else { texts.parameters(&prepared.declarations).ok()? };
        let parsed = texts.batch(&prepared.text, &ParseOptions { quoted_identifier });
        let program = Program::new(&parsed.batch.statements).ok().filter(|_| parsed.batch.errors.is_empty())?;
        let mut frame = Frame::default();
        for parameter in declared.iter() {
            let name = &parameter.variable.name;
            if parameter.read_only || parameter.varying {
                return None;
            }
            let to = sql_type(&parameter.data_type, TypeUse::Parameter { ordinal: 1, name }, Collation::DEFAULT).ok()?;
            frame.variables.push(Variable { name: name.clone(), sql_type: to, value: Scalar::Null, declared_at: 0 });
        }
        let parameter_count = frame.variables.len();
        session.frames.push(frame);
        let outcome = declare_all(session, &program);
        let kept = parsed.kept.run(session, program.steps.len());
        let frame = session.frames.pop().expect("pushed above");
        let stays = has_system_types_only(&program);
        drop(program);
        if outcome.is_err() || !frame.cursors.is_empty() || !stays {
            return None;
        }
        let text = prepared.text.clone();
        Some(Self { text, parsed, kept, quoted_identifier, parameter_count, variables: frame.variables })
    }

    /// Whether it may run now with these arguments.
    fn takes(&self, session: &SessionState, arguments: &[Parameter]) -> bool {
        let fits = |(argument, variable): (&Parameter, &Variable)| {
            !argument.output && (argument.name.is_empty() || argument.name.eq_ignore_ascii_case(&variable.name))
        };
        arguments.len() == self.parameter_count
            && arguments.iter().zip(&self.variables).all(fits)
            && self.quoted_identifier == session.options.quoted_identifier
            && !session.options.parse_only
            && self.kept.is_of(session)
    }

    fn run(&mut self, session: &mut SessionState, out: &mut Outbox<'_>, arguments: &[Parameter]) -> Result<i32, Failure> {
        for (variable, argument) in self.variables.iter_mut().zip(arguments) {
            variable.value = value_of(argument, &variable.sql_type)?;
        }
        self.variables[self.parameter_count..].iter_mut().for_each(|variable| variable.value = Scalar::Null);
        let frame = Frame { variables: std::mem::take(&mut self.variables), ..Frame::default() };
        let before = session.transactions.count;
        let source = Source::Ready { text: &self.text, statements: &self.parsed.batch.statements, kept: &self.kept };
        let (status, frame) = run_scope(session, out, source, frame, Caller::Procedure)?;
        self.variables = frame.variables;
        if crate::batch::execute::transactions_differ(session, before) {
            let error = message(266, &[&before, &session.transactions.count]).with_state(2).at_line(1);
            out.message(&error);
            session.last_error = 266;
        }
        Ok(status)
    }
}

/// Whether what the program declares means the same for ever: a user's type may be dropped and made anew, and a table of one is
/// made each time.
fn has_system_types_only(program: &Program<'_>) -> bool {
    let declarations = program.steps.iter().filter_map(|step| match step.op {
        Op::Statement(statement) => match &statement.kind {
            StmtKind::Declare(declarations) => Some(declarations),
            _ => None,
        },
        _ => None,
    });
    declarations.flatten().all(|declaration| {
        let at = TypeUse::Parameter { ordinal: 1, name: &declaration.variable.name };
        sql_type(&declaration.data_type, at, Collation::DEFAULT).is_ok()
    })
}

/// An argument's value as its parameter takes it.
fn value_of(argument: &Parameter, to: &SqlType) -> Result<Scalar, Failure> {
    if argument.sql_type == *to && !to.is_text() {
        return Ok(argument.value.clone());
    }
    Ok(rows::convert(&argument.value, &argument.sql_type, to)?)
}

/// Runs sp_execute of a ready handle; `None` if the call must go the ordinary way, for which nothing has been done.
pub(crate) fn execute_ready(session: &mut SessionState, out: &mut Outbox<'_>, name: &str, parameters: &[Parameter]) -> Option<CallEnd> {
    let ("sp_execute", [handle, arguments @ ..]) = (name, parameters) else { return None };
    let Scalar::Int(handle) = handle.value else { return None };
    let mut ready = session.prepared.take_ready(handle)?;
    if !ready.takes(session, arguments) {
        session.prepared.put_ready(handle, ready);
        return None;
    }
    let outcome = ready.run(session, out, arguments);
    if outcome.is_ok() {
        session.prepared.put_ready(handle, ready);
    }
    Some(match outcome {
        Ok(status) => {
            out.return_status(status);
            end_of_call(session, out, None)
        }
        Err(failure) => end_of_call(session, out, Some(failure)),
    })
}
