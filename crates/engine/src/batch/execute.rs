//! Running texts: batches of the client, EXEC of strings and procedures, sp_executesql and its kin.
//!
//! ```text
//! run_batch ─► run_text(frame with parameters) ─► parse ─► Program ─► Interpreter::run ─► end of scope
//! EXEC ('..'), sp_executesql, sp_execute ─────────┘ one level deeper (217 at 32)
//! ```
//!
//! A scope begun is ended whatever happens in it: frame, temporary tables, SET options and database of the caller come
//! back (`run_scope`).

use crate::api::parameter::{Parameter as ClientParameter, TableRows};
use crate::api::sink::EnvChange;
use crate::batch::arguments::{Argument, TableArgument};
use crate::batch::compile_cx::CompileCx;
use crate::batch::failure::{Failure, Fate};
use crate::batch::function::TableReturn;
use crate::batch::interpreter::{Interpreter, NESTING_MAX};
use crate::batch::kept::{KeptRun, KeptRuns};
use crate::batch::module::Module;
use crate::batch::outbox::Outbox;
use crate::batch::program::{Op, Program};
use crate::batch::result_sets::Shape;
use crate::ddl::names::shown;
use crate::ddl::user_type::{TypeMeaning, meaning};
use crate::instance::database::OpenDatabase;
use crate::messages::{message, unsupported_option};
use crate::rows;
use crate::security::context::{Acting, Origin};
use crate::session::CallEnd;
use crate::session::frame::{Frame, Variable};
use crate::session::state::SessionState;
use std::sync::Arc;
use thawdb_catalog::{ObjectDef, ObjectKind, TableDef};
use thawdb_tsql::ast::{
    Argument as ArgumentSyntax, Execute, ExecuteModule, ExecuteString, ExprKind, Insert, InsertSource, Parameter, Query, QueryBody,
    ResultSets, Stmt, StmtKind,
};
use thawdb_tsql::{ParseOptions, SyntaxError};
use thawdb_types::{Collation, Scalar, SqlError, SqlType, TypeUse};

/// Who runs a text: decides what a scope gives back and how it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The client's batch.
    Client,
    /// EXEC of a string: a scope of its own under the caller's options.
    String,
    /// sp_executesql, sp_execute: also counts for `@@NESTLEVEL`.
    Procedure,
    /// A procedure, function or trigger of the catalog.
    Module,
}

/// What a scope runs.
#[derive(Clone, Copy)]
pub(crate) enum Source<'s> {
    /// A text yet to be parsed.
    Text(&'s str),
    /// A prepared text that is ready: parsed, its variables in the frame.
    Ready { text: &'s str, statements: &'s [Stmt], kept: &'s KeptRun },
    /// Statements of a module, in the module's database and under its options.
    Module {
        object: &'s ObjectDef,
        statements: &'s [Stmt],
        database: &'s Arc<OpenDatabase>,
        /// The table variable a function returns.
        returns: Option<&'s TableReturn>,
    },
}

/// Runs a client's batch.
pub(crate) fn run_batch(session: &mut SessionState, out: &mut Outbox<'_>, text: &str, parameters: &[ClientParameter]) -> CallEnd {
    session.bulk = None;
    session.cursors.begin_batch();
    let mut frame = Frame::default();
    for parameter in parameters {
        let value = parameter.value.clone();
        frame.variables.push(Variable { name: parameter.name.clone(), sql_type: parameter.sql_type, value, declared_at: 0 });
    }
    let outcome = run_scope(session, out, Source::Text(text), frame, Caller::Client);
    end_of_call(session, out, outcome.err())
}

/// What is left to do when a call of the client ends: a doomed transaction does not outlive it (3998).
pub(crate) fn end_of_call(session: &mut SessionState, out: &mut Outbox<'_>, failure: Option<Failure>) -> CallEnd {
    let cancelled = failure.as_ref().is_some_and(Failure::is_cancelled);
    if let Some(failure) = failure.as_ref().filter(|failure| !failure.told && !failure.is_cancelled()) {
        out.message(&failure.error);
        session.last_error = failure.error.number;
    }
    if session.transactions.doomed {
        let descriptor = session.transactions.descriptor;
        if !cancelled {
            out.message(&message(3998, &[]).at_line(1));
        }
        if let Err(error) = session.rollback_work() {
            out.message(&error);
        }
        out.env_change(&EnvChange::RollbackTransaction { descriptor });
    }
    session.frames.clear();
    CallEnd { failed: failure.is_some(), cancelled }
}

/// The message of a syntax error.
pub(crate) fn syntax_error(error: &SyntaxError) -> SqlError {
    SqlError { number: error.number, severity: error.severity, state: error.state, text: error.text(), line: error.line, procedure: None }
}

/// Runs a text in a frame of its own; its RETURN status comes back, and the frame with the values of its variables.
pub(crate) fn run_scope(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    source: Source<'_>,
    mut frame: Frame,
    caller: Caller,
) -> Result<(i32, Frame), Failure> {
    // As documented, a text of EXEC is one level, sp_executesql and the text in it are two.
    frame.nests = match caller {
        Caller::Client => 0,
        Caller::String | Caller::Module => 1,
        Caller::Procedure => 2,
    };
    if session.nest_level() + frame.nests > NESTING_MAX {
        return Err(message(217, &[&NESTING_MAX]).into());
    }
    let (options, database, contexts) = (session.options.clone(), session.database.clone(), session.contexts.depth());
    frame.contexts = if caller == Caller::Client { 1 } else { contexts };
    session.frames.push(frame);
    let outcome = match source {
        Source::Text(text) => run_text(session, out, text),
        Source::Ready { text, statements, kept } => run_ready(session, out, text, statements, kept),
        Source::Module { .. } => run_statements(session, out, source),
    };
    let ended = crate::ddl::temporary::end_scope(session);
    let frame = session.frames.pop().expect("pushed above");
    session.forget_unnamed_cursors();
    if caller != Caller::Client {
        session.contexts.truncate(contexts);
        session.options = options;
        if session.database.id != database.id && session.use_database(database).is_err() {
            session.ended = true;
        }
    }
    let status = outcome.map_err(|failure| leave_scope(failure, caller))?;
    ended.map_err(Failure::run)?;
    // Without a RETURN the status tells of the worst error: 0, or 10 less its severity.
    let status = status.unwrap_or(if frame.worst_severity > 10 { 10 - i32::from(frame.worst_severity) } else { 0 });
    Ok((status, frame))
}

/// What a failure of a scope is to its caller: an error of compilation inside is an ordinary one outside.
fn leave_scope(mut failure: Failure, caller: Caller) -> Failure {
    if caller != Caller::Client && failure.fate == Fate::Scope {
        failure.fate = Fate::Statement;
    }
    failure
}

fn run_text(session: &mut SessionState, out: &mut Outbox<'_>, text: &str) -> Result<Option<i32>, Failure> {
    let options = ParseOptions { quoted_identifier: session.options.quoted_identifier };
    let engine = session.engine.clone();
    let parsed = match engine.plans.texts.known(text, &options) {
        Some(known) => known,
        None => match crate::batch::simple::run(session, out, text) {
            Some(outcome) => return outcome,
            None => engine.plans.texts.batch(text, &options),
        },
    };
    let batch = &parsed.batch;
    if let Some((last, earlier)) = batch.errors.split_last() {
        if !session.frame().guarded {
            earlier.iter().for_each(|error| out.message(&syntax_error(error)));
        }
        return Err(Failure::compile(syntax_error(last)));
    }
    if session.options.parse_only && !matches!(batch.statements.first().map(|s| &s.kind), Some(StmtKind::SetOption(_))) {
        return Ok(None);
    }
    run_program(session, out, text, &batch.statements, &parsed.kept)
}

fn run_statements(session: &mut SessionState, out: &mut Outbox<'_>, source: Source<'_>) -> Result<Option<i32>, Failure> {
    let Source::Module { object, statements, database, returns } = source else {
        unreachable!("only modules have statements of their own")
    };
    if session.database.id != database.id {
        session.use_database(database.clone())?;
    }
    session.enter_module(object, database.id);
    session.options.quoted_identifier = object.flags.quoted_identifier;
    session.options.ansi_nulls = object.flags.ansi_nulls;
    if object.kind == ObjectKind::Trigger {
        session.options.xact_abort = true;
    }
    if let Some(returns) = returns {
        returns.begin(&mut Interpreter { session, out, text: &object.definition, kept: None, at: 0, guarded: true })?;
    }
    let module = Module::of(object);
    let status = run_program(session, out, &object.definition, statements, module.kept())?;
    if let Some(returns) = returns {
        returns.end(session)?;
    }
    Ok(status)
}

fn run_ready(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    text: &str,
    statements: &[Stmt],
    kept: &KeptRun,
) -> Result<Option<i32>, Failure> {
    let program = Program::new(statements).map_err(Failure::compile)?;
    Interpreter { session, out, text, kept: Some(kept), at: 0, guarded: false }.run(&program)
}

fn run_program(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    text: &str,
    statements: &[Stmt],
    kept: &KeptRuns,
) -> Result<Option<i32>, Failure> {
    let program = Program::new(statements).map_err(Failure::compile)?;
    declare_all(session, &program).map_err(Failure::compile)?;
    let kept = kept.run(session, program.steps.len());
    Interpreter { session, out, text, kept: Some(&kept), at: 0, guarded: false }.run(&program)
}

/// Declares every variable of a program, each from its own step on: 134 for one declared twice.
pub(crate) fn declare_all(session: &mut SessionState, program: &Program<'_>) -> Result<(), SqlError> {
    for (at, step) in program.steps.iter().enumerate() {
        let Op::Statement(statement) = step.op else { continue };
        let StmtKind::Declare(declarations) = &statement.kind else { continue };
        for (ordinal, declaration) in (1..).zip(declarations) {
            let name = &declaration.variable.name;
            if session.frame().position(name).is_some() || session.frame().cursors.contains_key(&name.to_lowercase()) {
                return Err(message(134, &[name]).at_line(declaration.variable.span.line));
            }
            if declaration.data_type.name.name.is("cursor") {
                session.frame_mut().cursors.insert(name.to_lowercase(), None);
                continue;
            }
            let at_place = TypeUse::Parameter { ordinal, name };
            if let TypeMeaning::Value { sql_type, .. } = meaning(session, &declaration.data_type, at_place, Collation::DEFAULT)? {
                if matches!(sql_type, SqlType::Text { .. } | SqlType::NText { .. } | SqlType::Image) {
                    return Err(message(2739, &[]).at_line(declaration.variable.span.line));
                }
                session.frame_mut().declare(name, sql_type, at);
            }
        }
    }
    Ok(())
}

/// INSERT ... EXEC.
pub(crate) fn is_insert_execute(insert: &Insert) -> bool {
    matches!(insert.source, InsertSource::Execute(_) | InsertSource::ExecuteString(_))
}

/// Whether a query has a FROM: a SELECT without one begins no implicit transaction.
pub(crate) fn reads_tables(query: &Query) -> bool {
    fn body(node: &QueryBody) -> bool {
        match node {
            QueryBody::Select(select) => !select.from.is_empty(),
            QueryBody::Paren(query) => reads_tables(query),
            QueryBody::Set { operands, .. } => operands.iter().any(body),
        }
    }
    body(&query.body)
}

impl Interpreter<'_, '_> {
    /// Arguments of EXEC, evaluated in the calling scope.
    fn arguments(&mut self, syntax: &[ArgumentSyntax]) -> Result<Vec<Argument>, Failure> {
        let mut arguments = Vec::with_capacity(syntax.len());
        for argument in syntax {
            let name = argument.parameter.as_ref().map_or(String::new(), |p| p.name.clone());
            if name.is_empty() && arguments.last().is_some_and(|before: &Argument| !before.name.is_empty()) {
                return Err(Failure::compile(message(119, &[&(arguments.len() + 1)])));
            }
            if matches!(argument.value.kind, ExprKind::Default) {
                arguments.push(Argument {
                    name,
                    value: Scalar::Null,
                    sql_type: SqlType::Int,
                    output: false,
                    target: None,
                    table: None,
                    is_default: true,
                });
                continue;
            }
            if let Some(table) = self.table_argument(&argument.value.kind) {
                let (value, sql_type) = (Scalar::Null, SqlType::Int);
                arguments.push(Argument { name, value, sql_type, output: false, target: None, table: Some(table), is_default: false });
                continue;
            }
            let (value, sql_type) = self.value(&argument.value)?;
            let target = match &argument.value.kind {
                ExprKind::Variable(variable) if argument.output => self.session.frame().position(&variable.name),
                _ if argument.output => return Err(message(179, &[]).into()),
                _ => None,
            };
            arguments.push(Argument { name, value, sql_type, output: argument.output, target, table: None, is_default: false });
        }
        Ok(arguments)
    }

    /// The table variable that an argument is, if it is one.
    fn table_argument(&self, value: &ExprKind) -> Option<TableArgument> {
        let ExprKind::Variable(variable) = value else { return None };
        let (frame, name) = (self.session.frame(), variable.name.to_lowercase());
        let table = frame.table_variables.get(&name)?.clone();
        Some(TableArgument::Variable { table, of: frame.table_types.get(&name).copied() })
    }

    /// Runs what EXEC runs with its results in the shape that WITH RESULT SETS gives them.
    fn shaped(&mut self, sets: &ResultSets, run: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        let shape = Shape::of(self.session, sets)?;
        self.out.begin_shape(shape);
        let outcome = run(self);
        let complete = self.out.end_shape();
        outcome?;
        complete.map_err(Failure::ends_batch)
    }

    /// EXEC procedure.
    pub(crate) fn execute(&mut self, node: &Execute) -> Result<(), Failure> {
        if let Some(sets) = &node.result_sets {
            return self.shaped(sets, |this| this.execute_unshaped(node));
        }
        self.execute_unshaped(node)
    }

    fn execute_unshaped(&mut self, node: &Execute) -> Result<(), Failure> {
        let name = match &node.module {
            ExecuteModule::Name(name) => shown(name),
            ExecuteModule::Variable(variable) => {
                let position = self.session.frame().position(&variable.name);
                let position = position.ok_or_else(|| Failure::compile(message(137, &[&variable.name])))?;
                match &self.session.frame().variables[position].value {
                    Scalar::Text(text) => text.clone(),
                    _ => return Err(message(2812, &[&""]).into()),
                }
            }
        };
        if let Some(value) = self.execute_function(node, &name)? {
            return Ok(value);
        }
        let procedure = crate::procedures::resolve(self.session, &name)?;
        let arguments = self.arguments(&node.arguments)?;
        let guarded = self.guarded;
        self.out.depth += 1;
        let returned = crate::procedures::call(self.session, self.out, procedure, &arguments, guarded);
        self.out.depth -= 1;
        let returned = match returned {
            Ok(returned) => returned,
            // Told inside, and only the scope inside ended: this one goes on.
            Err(failure) if failure.told && failure.fate == Fate::Statement => return Ok(()),
            Err(failure) => return Err(failure),
        };
        for (argument, value, sql_type) in returned.outputs {
            if let Some(target) = arguments.get(argument).and_then(|argument| argument.target) {
                self.take_output(target, &value, &sql_type)?;
            }
        }
        if let Some(variable) = &node.return_variable {
            let position = self.session.frame().position(&variable.name);
            let position = position.ok_or_else(|| Failure::compile(message(137, &[&variable.name])))?;
            self.take_output(position, &Scalar::Int(returned.status), &SqlType::Int)?;
        }
        self.out.return_status(returned.status);
        self.out.procedure_done();
        Ok(())
    }

    /// EXEC @v = function: its value goes into the variable. `None` if the name is no scalar function's.
    fn execute_function(&mut self, node: &Execute, name: &str) -> Result<Option<()>, Failure> {
        let Some(parsed) = crate::ddl::names::parse_name(name) else { return Ok(None) };
        let found = crate::batch::module::find_object(self.session, &parsed)?;
        let Some(found) = found.filter(|found| found.object.kind == ObjectKind::ScalarFunction) else { return Ok(None) };
        self.session.may_call(&found)?;
        let module = Module::of(&found.object);
        let declared = &module.function()?.parameters;
        let arguments = self.arguments(&node.arguments)?;
        let mut frame = Frame::default();
        bind_declared(self.session, &mut frame, declared, Declared::Procedure(&found.object.name), &arguments)?;
        let values = frame.variables.into_iter().map(|variable| variable.value).collect();
        let value = crate::batch::function::call_scalar(self.session, found.database.id, found.object.id, values)?;
        if let Some(variable) = &node.return_variable {
            let position = self.session.frame().position(&variable.name);
            let position = position.ok_or_else(|| Failure::compile(message(137, &[&variable.name])))?;
            let from = crate::batch::function::returned_type(&found.object);
            self.take_output(position, &value, &from)?;
        }
        self.out.procedure_done();
        Ok(Some(()))
    }

    fn take_output(&mut self, position: usize, value: &Scalar, from: &SqlType) -> Result<(), Failure> {
        let to = self.session.frame().variables[position].sql_type;
        let value = rows::convert(value, from, &to)?;
        self.session.frame_mut().variables[position].value = value;
        Ok(())
    }

    /// EXEC ('text').
    pub(crate) fn execute_string(&mut self, node: &ExecuteString) -> Result<(), Failure> {
        if node.at.is_some() || !node.arguments.is_empty() {
            return Err(unsupported_option("EXECUTE ... AT").into());
        }
        if let Some(sets) = &node.result_sets {
            return self.shaped(sets, |this| this.execute_text(node));
        }
        self.execute_text(node)
    }

    fn execute_text(&mut self, node: &ExecuteString) -> Result<(), Failure> {
        let Some(text) = self.text_value(&node.text)? else { return Ok(()) };
        let depth = self.session.contexts.depth();
        if let Some((login, name)) = &node.as_principal {
            let of = if *login { crate::security::impersonation::login_to_be } else { crate::security::impersonation::user_to_be };
            let who = of(self.session, name)?;
            self.session.contexts.push(Acting { who, origin: Origin::Module, stays: true, cookie: None });
        }
        let frame = Frame { guarded: self.guarded, ..Frame::default() };
        self.out.depth += 1;
        let outcome = run_scope(self.session, self.out, Source::Text(&text), frame, Caller::String);
        self.session.contexts.truncate(depth);
        self.out.depth -= 1;
        match outcome {
            Ok(_) => Ok(()),
            Err(failure) if failure.told && failure.fate == Fate::Statement => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

/// Runs a text with declared parameters: sp_executesql and its kin. The final values of the parameters come back.
pub(crate) fn run_with_parameters(
    session: &mut SessionState,
    out: &mut Outbox<'_>,
    text: &str,
    declarations: &str,
    arguments: &[Argument],
    mut frame: Frame,
) -> Result<(i32, Vec<(usize, Variable)>), Failure> {
    let declared = parse_declarations(session, declarations)?;
    let procedure = frame.procedure.clone();
    let by = match &procedure {
        Some(procedure) => Declared::Procedure(procedure),
        None => Declared::Text { declarations, text },
    };
    let outputs = bind_declared(session, &mut frame, &declared, by, arguments)?;
    let before = session.transactions.count;
    let (status, frame) = run_scope(session, out, Source::Text(text), frame, Caller::Procedure)?;
    if transactions_differ(session, before) {
        let error = message(266, &[&before, &session.transactions.count]).with_state(2).at_line(1);
        out.message(&error);
        session.last_error = 266;
    }
    Ok((status, outputs.into_iter().map(|(argument, position)| (argument, frame.variables[position].clone())).collect()))
}

/// Whether a call has left another number of transactions than there were, which 266 tells. A transaction begun by a
/// statement under IMPLICIT_TRANSACTIONS is the client's to end: drivers without autocommit prepare and call like this.
pub(crate) fn transactions_differ(session: &SessionState, before: u32) -> bool {
    let begun_by_itself = before == 0 && session.transactions.count == 1 && session.options.implicit_transactions;
    session.transactions.count != before && !begun_by_itself
}

/// The parameters that a declaration declares.
pub(crate) fn parse_declarations(session: &SessionState, declarations: &str) -> Result<Arc<Vec<Parameter>>, SqlError> {
    if declarations.trim().is_empty() {
        return Ok(Arc::default());
    }
    session.engine.plans.texts.parameters(declarations).map_err(|errors| match errors.first() {
        Some(error) => syntax_error(error),
        None => message(214, &[&"@params", &"ntext/nchar/nvarchar"]),
    })
}

/// Who declares parameters, for messages.
#[derive(Clone, Copy)]
pub(crate) enum Declared<'d> {
    /// The second argument of sp_executesql and its kin.
    Text { declarations: &'d str, text: &'d str },
    /// A procedure of this name.
    Procedure(&'d str),
}

impl Declared<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Text { .. } => "sp_executesql",
            Self::Procedure(name) => name,
        }
    }

    fn missing(&self, parameter: &str) -> SqlError {
        match self {
            Self::Text { declarations, text } => message(8178, &[&format!("({declarations}){text}"), &parameter]),
            Self::Procedure(name) => self.told(message(201, &[name, &parameter])),
        }
    }

    /// A message as the procedure that is called tells it.
    fn told(&self, mut error: SqlError) -> SqlError {
        if let Self::Procedure(name) = self {
            error.procedure = Some((*name).to_owned());
            error.state = if error.number == 8145 { 2 } else { error.state };
        }
        error
    }
}

/// Puts arguments into declared parameters; the positions of those wanted back. 201 or 8178 for one without a value, 8144
/// and 8145 for arguments without a parameter, 8162 for OUTPUT asked of a parameter that is not.
pub(crate) fn bind_declared(
    session: &mut SessionState,
    frame: &mut Frame,
    declared: &[Parameter],
    by: Declared<'_>,
    arguments: &[Argument],
) -> Result<Vec<(usize, usize)>, SqlError> {
    if let (Declared::Procedure(name), [], [_, ..]) = (by, declared, arguments) {
        return Err(message(8146, &[&name]));
    }
    let mut given: Vec<Option<usize>> = vec![None; declared.len()];
    for (at, argument) in arguments.iter().enumerate() {
        let position = if argument.name.is_empty() {
            (at < declared.len()).then_some(at).ok_or_else(|| by.told(message(8144, &[&by.name()])))?
        } else {
            let known = declared.iter().position(|parameter| parameter.variable.name.eq_ignore_ascii_case(&argument.name));
            known.ok_or_else(|| by.told(message(8145, &[&argument.name, &by.name()])))?
        };
        if given[position].replace(at).is_some() {
            return Err(message(8143, &[&declared[position].variable.name]));
        }
    }
    let mut outputs = Vec::new();
    for (position, parameter) in declared.iter().enumerate() {
        let name = &parameter.variable.name;
        if parameter.varying {
            return Err(unsupported_option("cursor parameter"));
        }
        let ordinal = i32::try_from(position + 1).unwrap_or(i32::MAX);
        let argument = given[position].map(|at| &arguments[at]).filter(|argument| !argument.is_default);
        let to = match meaning(session, &parameter.data_type, TypeUse::Parameter { ordinal, name }, Collation::DEFAULT)? {
            TypeMeaning::Value { sql_type, .. } => sql_type,
            TypeMeaning::Table(of) => {
                if !parameter.read_only {
                    return Err(message(352, &[name]));
                }
                bind_table(session, frame, name, &of, argument)?;
                // Positions of the others stay those of their declarations.
                frame.variables.push(Variable { name: String::new(), sql_type: SqlType::Int, value: Scalar::Null, declared_at: 0 });
                continue;
            }
        };
        if let Some(TableArgument::Variable { of, .. }) = argument.and_then(|argument| argument.table.as_ref()) {
            return Err(message(206, &[&type_name(session, *of), &to.base_name()]));
        }
        let value = match argument {
            None => default_of(session, parameter.default.as_ref(), &to)?.ok_or_else(|| by.missing(name))?,
            Some(argument) if argument.output && !parameter.output => return Err(message(8162, &[name])),
            Some(argument) => rows::convert(&argument.value, &argument.sql_type, &to).map_err(|error| match error.number {
                206 | 257 | 529 => error,
                _ => by.told(message(8114, &[&argument.sql_type.message_name(), &to.message_name()]).with_state(5)),
            })?,
        };
        frame.variables.push(Variable { name: name.clone(), sql_type: to, value, declared_at: 0 });
        if argument.is_some_and(|argument| argument.output) {
            outputs.push((given[position].expect("an argument was found"), position));
        }
    }
    Ok(outputs)
}

/// Puts a table into a table-valued parameter: the caller's variable itself, rows a client sent, or none.
pub(crate) fn bind_table(
    session: &mut SessionState,
    frame: &mut Frame,
    name: &str,
    of: &Arc<ObjectDef>,
    argument: Option<&Argument>,
) -> Result<(), SqlError> {
    let key = name.to_lowercase();
    let table = match argument.map(|argument| (argument, argument.table.as_ref())) {
        Some((_, Some(TableArgument::Variable { table, of: Some(given) }))) if *given == of.id => {
            frame.borrowed_tables.insert(key.clone());
            table.clone()
        }
        Some((_, Some(TableArgument::Variable { of: given, .. }))) => {
            return Err(message(206, &[&type_name(session, *given), &of.name]));
        }
        Some((_, Some(TableArgument::Rows(rows)))) => make_filled(session, of, name, rows)?,
        Some((argument, None)) => return Err(message(206, &[&argument.sql_type.base_name(), &of.name])),
        None => make_filled(session, of, name, &TableRows::default())?,
    };
    frame.read_only_tables.insert(key.clone());
    frame.table_types.insert(key.clone(), of.id);
    frame.table_variables.insert(key, table);
    Ok(())
}

/// A table variable with these rows: a statement of its own, so that the first one of the scope cannot take it back.
fn make_filled(session: &mut SessionState, of: &Arc<ObjectDef>, name: &str, rows: &TableRows) -> Result<Arc<TableDef>, SqlError> {
    let mark = session.begin_statement();
    let made = crate::ddl::user_type::make_table(session, of, name)
        .and_then(|table| crate::batch::table_rows::fill(session, &table, rows).map(|()| table))
        .and_then(|table| session.end_statement().map(|()| table));
    if made.is_err() {
        session.undo_statement(&mark)?;
    }
    made
}

/// What messages call a table's type.
fn type_name(session: &SessionState, of: Option<thawdb_catalog::ObjectId>) -> String {
    let known = of.and_then(|id| session.definitions(session.database.id)?.objects.get(&id.0).map(|object| object.name.clone()));
    known.unwrap_or_else(|| "table".to_owned())
}

/// The value of a parameter's default, a constant; `None` if it has none.
fn default_of(session: &mut SessionState, default: Option<&thawdb_tsql::ast::Expr>, to: &SqlType) -> Result<Option<Scalar>, SqlError> {
    let Some(default) = default else { return Ok(None) };
    let bound = thawdb_query::bind_assignment(default, *to, &CompileCx::new(session, 0))?;
    thawdb_query::exec::eval_scalar(&bound, session).map(Some)
}
