//! Functions of the user's at work: what the binder is told of them, and running their bodies inside a statement.
//!
//! ```text
//! outer plan ─ call_function(arguments) ─► Frame with parameters ─► run_scope ─► value of RETURN
//!            └ function_rows(arguments) ─► the same, with the table variable of RETURNS ─► its rows
//! ```
//!
//! 1. A function runs within the statement that calls it: it sees what the statement sees, ends no transaction and sends
//!    nothing (`SessionState::in_function`, looked at where statements begin and end).
//! 2. What fails inside fails the calling statement: the frame counts as guarded, so nothing is told twice.

use crate::batch::compile_cx::CompileCx;
use crate::batch::execute::{Caller, Source, run_scope};
use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::module::Module;
use crate::batch::outbox::Outbox;
use crate::messages::message;
use crate::session::frame::{Frame, Variable};
use crate::session::rowset::Rowset;
use crate::session::state::SessionState;
use crate::session::temporary::VARIABLES_ID;
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectDef, ObjectId, ObjectKind};
use thawdb_query::compile::{UserFunction, UserFunctionKind, UserParameter, compile};
use thawdb_query::context::{SessionInfo, StatementHost};
use thawdb_query::exec;
use thawdb_query::phys::{OutputColumn, RowSource};
use thawdb_tsql::ast::{CreateFunction, DeclareTable, FunctionBody, FunctionReturns, Parameter, Stmt};
use thawdb_types::{Scalar, SqlError, SqlType};

/// Where a table-valued function's rows wait for whoever asked.
const RESULT: &str = "\u{1}result";

/// What the binder needs to know of a function; `None` for other objects.
pub(crate) fn described(database: DatabaseId, object: &Arc<ObjectDef>) -> Result<Option<UserFunction>, SqlError> {
    if !matches!(object.kind, ObjectKind::ScalarFunction | ObjectKind::InlineFunction | ObjectKind::TableFunction) {
        return Ok(None);
    }
    let module = Module::of(object);
    let node = module.function()?;
    // What a scalar function returns comes before its parameters.
    let first = object.parameters.len().saturating_sub(node.parameters.len());
    let parameters = node.parameters.iter().zip(&object.parameters[first..]).map(parameter).collect();
    let kind = match &node.body {
        FunctionBody::Query(query) => UserFunctionKind::Inline(Arc::new((**query).clone())),
        _ if object.kind == ObjectKind::TableFunction => {
            let output = |column: &thawdb_catalog::ColumnDef| OutputColumn {
                name: column.name.clone(),
                sql_type: column.sql_type,
                nullable: column.nullable,
                identity: false,
            };
            let columns = object.columns.iter().map(output).collect();
            UserFunctionKind::Rows(Arc::new(FunctionRows { database, id: object.id, name: object.name.clone(), columns }))
        }
        _ => UserFunctionKind::Scalar(returned_type(object)),
    };
    Ok(Some(UserFunction { id: object.id, parameters, kind }))
}

fn parameter((declared, kept): (&Parameter, &thawdb_catalog::ParameterDef)) -> UserParameter {
    let (name, table) = (kept.name.clone(), kept.table_type.is_some());
    UserParameter { name, sql_type: kept.sql_type, default: declared.default.clone(), table }
}

pub(crate) fn returned_type(object: &ObjectDef) -> SqlType {
    object.parameters.first().expect("a scalar function keeps what it returns first").sql_type
}

/// The rows of a function with a body, as plans hold them.
#[derive(Debug)]
struct FunctionRows {
    database: DatabaseId,
    id: ObjectId,
    name: String,
    columns: Vec<OutputColumn>,
}

impl RowSource for FunctionRows {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    fn rows(&self, _: &dyn SessionInfo, _: &[Scalar]) -> Result<Vec<Vec<Scalar>>, SqlError> {
        Err(crate::storage_error::internal(format!("{} runs statements", self.name)))
    }

    fn rows_by(&self, host: &mut dyn StatementHost, arguments: &[Scalar]) -> Result<Vec<Vec<Scalar>>, SqlError> {
        host.function_rows(self.database, self.id, arguments)
    }
}

fn find(session: &SessionState, database: DatabaseId, function: ObjectId) -> Result<Arc<ObjectDef>, SqlError> {
    let found = session.definitions(database).and_then(|catalog| catalog.objects.get(&function.0).cloned());
    found.ok_or_else(|| message(208, &[&function.0]))
}

/// Runs a scalar function.
pub(crate) fn call_scalar(
    session: &mut SessionState,
    database: DatabaseId,
    function: ObjectId,
    arguments: Vec<Scalar>,
) -> Result<Scalar, SqlError> {
    let object = find(session, database, function)?;
    if object.flags.null_on_null_input && arguments.iter().any(Scalar::is_null) {
        return Ok(Scalar::Null);
    }
    let returns = returned_type(&object);
    let mut frame = frame_of(session, &object, &object.parameters[1..], arguments);
    frame.returns = Some(returns);
    let module = Module::of(&object);
    let frame = run_function(session, database, &object, module.function()?, frame, None)?;
    Ok(frame.returned.unwrap_or(Scalar::Null))
}

/// Runs a table-valued function with a body; its rows.
pub(crate) fn rows_of(
    session: &mut SessionState,
    database: DatabaseId,
    function: ObjectId,
    arguments: &[Scalar],
) -> Result<Vec<Vec<Scalar>>, SqlError> {
    let object = find(session, database, function)?;
    let module = Module::of(&object);
    let node = module.function()?;
    let frame = frame_of(session, &object, &object.parameters, arguments.to_vec());
    let mut frame = run_function(session, database, &object, node, frame, module.returns())?;
    let rowset = frame.rowsets.remove(RESULT).unwrap_or_default();
    Ok(Arc::unwrap_or_clone(rowset).rows)
}

fn frame_of(session: &SessionState, object: &ObjectDef, parameters: &[thawdb_catalog::ParameterDef], arguments: Vec<Scalar>) -> Frame {
    let mut tables = Frame::default();
    for (parameter, value) in parameters.iter().zip(&arguments) {
        let (Some(of), Some(id)) = (parameter.table_type, value.as_i64()) else { continue };
        let id = ObjectId(i32::try_from(id).unwrap_or(0));
        let Some(table) = session.table(VARIABLES_ID, id) else { continue };
        let name = parameter.name.to_lowercase();
        tables.table_types.insert(name.clone(), of);
        tables.borrowed_tables.insert(name.clone());
        tables.read_only_tables.insert(name.clone());
        tables.table_variables.insert(name, table);
    }
    let variables = parameters.iter().zip(arguments).filter(|(parameter, _)| parameter.table_type.is_none());
    let variable = |(p, value): (&thawdb_catalog::ParameterDef, Scalar)| Variable {
        name: p.name.clone(),
        sql_type: p.sql_type,
        value,
        declared_at: 0,
    };
    Frame {
        variables: variables.map(variable).collect(),
        guarded: true,
        procedure: Some(object.name.clone()),
        module: object.id.0,
        ..tables
    }
}

fn run_function(
    session: &mut SessionState,
    database: DatabaseId,
    object: &ObjectDef,
    node: &CreateFunction,
    frame: Frame,
    returns: Option<&TableReturn>,
) -> Result<Frame, SqlError> {
    let statements: &[Stmt] = match &node.body {
        FunctionBody::Statements(statements) | FunctionBody::Atomic { statements, .. } => statements,
        FunctionBody::Query(_) | FunctionBody::External(_) => &[],
    };
    let open = session.storage_of(database)?;
    let before = (session.row_count, session.last_error);
    session.in_function += 1;
    let source = Source::Module { object, statements, database: &open, returns };
    let outcome = run_scope(session, &mut Outbox::new(&mut Nobody), source, frame, Caller::Module);
    session.in_function -= 1;
    (session.row_count, session.last_error) = before;
    outcome.map(|(_, frame)| frame).map_err(|failure| failure.error)
}

/// The table variable a function returns, and the query that reads it.
#[derive(Debug)]
pub(crate) struct TableReturn {
    declare: DeclareTable,
    query: Option<Stmt>,
}

impl TableReturn {
    /// That of a function, if it has one.
    pub(crate) fn of(node: &CreateFunction) -> Option<Self> {
        let FunctionReturns::Table { variable, body } = &node.returns else { return None };
        let batch = thawdb_tsql::parse_batch(&format!("SELECT * FROM {}", variable.name), &thawdb_tsql::ParseOptions::default());
        let declare = DeclareTable { variable: variable.clone(), body: body.clone() };
        Some(Self { declare, query: batch.statements.into_iter().next() })
    }

    /// Makes the table variable.
    pub(crate) fn begin(&self, interpreter: &mut Interpreter<'_, '_>) -> Result<(), Failure> {
        crate::ddl::temporary::declare_table(interpreter, &self.declare)
    }

    /// Takes its rows into the frame.
    pub(crate) fn end(&self, session: &mut SessionState) -> Result<(), Failure> {
        let query = self.query.as_ref().ok_or_else(|| message(1087, &[&self.declare.variable.name]))?;
        let plan = compile(query, &CompileCx::new(session, usize::MAX))?;
        let mut rowset = Rowset { columns: plan.columns.clone(), rows: Vec::new() };
        session.begin_statement();
        let mut execution = exec::run(&plan.node, session)?;
        while let Some(batch) = execution.next(session)? {
            rowset.push_columns(&batch.columns, batch.rows);
        }
        session.frame_mut().rowsets.insert(RESULT.to_owned(), Arc::new(rowset));
        Ok(())
    }
}

/// Where a function's results would go, had it any.
struct Nobody;

impl crate::api::sink::ResultSink for Nobody {
    fn columns(&mut self, _: &[OutputColumn]) -> Result<(), crate::api::sink::SinkClosed> {
        Ok(())
    }

    fn rows(&mut self, _: &crate::api::batch::Batch) -> Result<(), crate::api::sink::SinkClosed> {
        Ok(())
    }

    fn done(&mut self, _: crate::api::sink::DoneInfo) {}

    fn message(&mut self, _: &SqlError) {}

    fn return_status(&mut self, _: i32) {}

    fn return_value(&mut self, _: u16, _: &str, _: &SqlType, _: &Scalar) {}

    fn env_change(&mut self, _: &crate::api::sink::EnvChange) {}
}
