//! CREATE, ALTER and CREATE OR ALTER FUNCTION: scalar, inline and with a table variable.
//!
//! A body is looked through when the function is made: it may change nothing outside itself (443), send nothing (444), and
//! must end with RETURN (455).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::program::Program;
use crate::ddl::module::{NewModule, execute_as_of, flags_of, keep_module, parameters_of};
use crate::ddl::procedure::in_module;
use crate::ddl::user_type::meaning;
use crate::ddl::view::columns_of_query;
use crate::messages::{message, unsupported, unsupported_option};
use crate::session::frame::{Frame, Variable};
use thawdb_catalog::{ColumnDef, ObjectKind, ParameterDef};
use thawdb_tsql::ast::{CreateFunction, DmlTargetKind, FunctionBody, FunctionReturns, Query, QueryBody, SelectItem, Stmt, StmtKind};
use thawdb_types::{Collation, Scalar, SqlError, TypeUse};

/// CREATE [OR ALTER] FUNCTION, ALTER FUNCTION.
pub(crate) fn create_function(interpreter: &mut Interpreter<'_, '_>, statement: &Stmt, node: &CreateFunction) -> Result<(), Failure> {
    let name = &node.name.name.text;
    let flags = flags_of(interpreter.session, &node.options)?;
    let described = describe(interpreter, node).map_err(|error| in_module(error, name))?;
    let mut new = NewModule::new(node.mode, &node.name, described.0, flags);
    (new.parameters, new.columns) = (described.1, described.2);
    new.execute_as = execute_as_of(interpreter.session, &node.options)?;
    keep_module(interpreter, statement, new)
}

type Described = (ObjectKind, Vec<ParameterDef>, Vec<ColumnDef>);

fn describe(interpreter: &mut Interpreter<'_, '_>, node: &CreateFunction) -> Result<Described, SqlError> {
    let session = &mut *interpreter.session;
    let mut parameters = parameters_of(session, &node.parameters)?;
    match (&node.returns, &node.body) {
        (FunctionReturns::Scalar { data_type, .. }, FunctionBody::Statements(statements)) => {
            check_body(statements)?;
            let returned = meaning(session, data_type, TypeUse::Cast, Collation::DEFAULT)?.value(&node.name.name.text)?;
            let value = ParameterDef {
                name: String::new(),
                sql_type: returned,
                table_type: None,
                output: true,
                has_default: false,
                read_only: false,
            };
            parameters.insert(0, value);
            Ok((ObjectKind::ScalarFunction, parameters, Vec::new()))
        }
        (FunctionReturns::InlineTable, FunctionBody::Query(query)) => {
            // The parameters are the variables of the query.
            let variable = |p: &ParameterDef| Variable { name: p.name.clone(), sql_type: p.sql_type, value: Scalar::Null, declared_at: 0 };
            let mut frame = Frame { variables: parameters.iter().map(variable).collect(), ..Frame::default() };
            for parameter in &parameters {
                if let Some(table) = parameter.table_type.and_then(|of| crate::ddl::user_type::outline(session, of)) {
                    frame.table_variables.insert(parameter.name.to_lowercase(), table);
                }
            }
            session.frames.push(frame);
            let columns = columns_of_query(session, query, &node.name.name.text, &[]);
            session.frames.pop();
            Ok((ObjectKind::InlineFunction, parameters, columns?))
        }
        (FunctionReturns::Table { variable, body }, FunctionBody::Statements(statements)) => {
            check_body(statements)?;
            if body.period.is_some() {
                return Err(message(13_572, &[]));
            }
            let table = crate::ddl::table::describe(session, &variable.name, body)?;
            crate::ddl::temporary::validate_rules(session, &variable.name, &table)?;
            Ok((ObjectKind::TableFunction, parameters, table.columns))
        }
        (_, FunctionBody::Atomic { .. }) => Err(unsupported_option("BEGIN ATOMIC")),
        _ => Err(unsupported("CLR")),
    }
}

/// Looks through a body.
fn check_body(statements: &[Stmt]) -> Result<(), SqlError> {
    Program::new(statements)?;
    let last = statements.last();
    if !last.is_some_and(|statement| matches!(statement.kind, StmtKind::Return(_))) {
        return Err(message(455, &[]).at_line(last.map_or(1, |statement| statement.span.line)));
    }
    statements.iter().try_for_each(check_statement)
}

fn check_statement(statement: &Stmt) -> Result<(), SqlError> {
    let line = statement.span.line;
    let forbidden = |what: &str| Err(message(443, &[&what]).at_line(line));
    let changes = |target: &DmlTargetKind, what: &str| match target {
        DmlTargetKind::Variable(_) => Ok(()),
        _ => forbidden(what),
    };
    match &statement.kind {
        StmtKind::Block(statements) => statements.iter().try_for_each(check_statement),
        StmtKind::If(node) => {
            check_statement(&node.then)?;
            node.otherwise.as_ref().map_or(Ok(()), |otherwise| check_statement(otherwise))
        }
        StmtKind::While(node) => check_statement(&node.body),
        StmtKind::Select(query) if selects_into(query) => forbidden("SELECT INTO"),
        StmtKind::Select(query) if !assigns(query) => Err(message(444, &[]).at_line(line)),
        StmtKind::Insert(node) => changes(&node.target.kind, "INSERT"),
        // A target may be an alias of FROM; what it stands for is seen when it runs.
        StmtKind::Update(node) if node.from.is_empty() => changes(&node.target.kind, "UPDATE"),
        StmtKind::Delete(node) if node.from.is_empty() => changes(&node.target.kind, "DELETE"),
        StmtKind::Merge(node) => changes(&node.target.kind, "MERGE"),
        StmtKind::Update(_) | StmtKind::Delete(_) | StmtKind::Select(_) => Ok(()),
        StmtKind::TryCatch(_) => forbidden("BEGIN TRY"),
        StmtKind::Print(_) => forbidden("PRINT"),
        StmtKind::RaiseError(_) => forbidden("RAISERROR"),
        StmtKind::Throw(_) => forbidden("THROW"),
        StmtKind::ExecuteString(_) => forbidden("EXECUTE STRING"),
        StmtKind::WaitFor(_) => forbidden("WAITFOR"),
        StmtKind::BeginTransaction(_) => forbidden("BEGIN TRANSACTION"),
        StmtKind::CommitTransaction(_) => forbidden("COMMIT TRANSACTION"),
        StmtKind::RollbackTransaction(_) => forbidden("ROLLBACK TRANSACTION"),
        StmtKind::SaveTransaction(_) => forbidden("SAVE TRANSACTION"),
        StmtKind::CreateTable(_) => forbidden("CREATE TABLE"),
        StmtKind::TruncateTable(_) => forbidden("TRUNCATE TABLE"),
        StmtKind::Drop(_) => forbidden("DROP OBJECT"),
        StmtKind::CreateIndex(_) => forbidden("CREATE INDEX"),
        StmtKind::AlterTable(_) => forbidden("ALTER TABLE"),
        StmtKind::SetOption(_) => forbidden("SET OPTION ON"),
        StmtKind::Execute(_) => Err(message(557, &[]).at_line(line)),
        _ => Ok(()),
    }
}

fn first_select(query: &Query) -> Option<&thawdb_tsql::ast::Select> {
    match &query.body {
        QueryBody::Select(select) => Some(select),
        QueryBody::Paren(query) => first_select(query),
        QueryBody::Set { .. } => None,
    }
}

fn assigns(query: &Query) -> bool {
    first_select(query).is_some_and(|select| select.items.iter().all(|item| matches!(item, SelectItem::Assign { .. })))
}

fn selects_into(query: &Query) -> bool {
    first_select(query).is_some_and(|select| select.into.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thawdb_tsql::{ParseOptions, parse_batch};

    fn number(body: &str) -> i32 {
        let text = format!("CREATE FUNCTION f() RETURNS int AS BEGIN {body} END");
        let batch = parse_batch(&text, &ParseOptions::default());
        let Some(StmtKind::CreateFunction(node)) = batch.statements.first().map(|s| &s.kind) else { panic!("{body}: {:?}", batch.errors) };
        let FunctionBody::Statements(statements) = &node.body else { panic!("a body") };
        check_body(statements).err().map_or(0, |error| error.number)
    }

    #[test]
    fn what_a_body_may_hold() {
        let cases = [
            ("RETURN 1", 0),
            ("DECLARE @t TABLE (a int) INSERT @t VALUES (1) DELETE @t RETURN 1", 0),
            ("DECLARE @x int SELECT @x = 1 WHILE @x < 3 SET @x += 1 RETURN @x", 0),
            ("SELECT 1 RETURN 1", 444),
            ("INSERT t VALUES (1) RETURN 1", 443),
            ("IF 1 = 1 BEGIN PRINT 'x' END RETURN 1", 443),
            ("IF 1 = 1 RETURN 1 ELSE RETURN 2", 455),
            ("EXEC p RETURN 1", 557),
        ];
        for (body, expected) in cases {
            assert_eq!(number(body), expected, "{body}");
        }
    }
}
