//! CREATE, ALTER and CREATE OR ALTER PROCEDURE.
//!
//! The body is parsed and its labels and variables are checked when the procedure is made; tables and columns it names
//! are looked up when its statements run (deferred name resolution).

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::batch::module::statements_of;
use crate::batch::program::Program;
use crate::ddl::module::{NewModule, execute_as_of, flags_of, keep_module, parameters_of};
use crate::messages::{unsupported, unsupported_option};
use thawdb_catalog::ObjectKind;
use thawdb_tsql::ast::{CreateProcedure, ModuleBody, Stmt};

/// CREATE [OR ALTER] PROCEDURE, ALTER PROCEDURE.
pub(crate) fn create_procedure(interpreter: &mut Interpreter<'_, '_>, statement: &Stmt, node: &CreateProcedure) -> Result<(), Failure> {
    if node.number.is_some_and(|number| number > 1) {
        return Err(unsupported_option("numbered procedure").into());
    }
    if node.for_replication {
        return Err(unsupported_option("FOR REPLICATION").into());
    }
    match &node.body {
        ModuleBody::Statements(_) => {}
        ModuleBody::Atomic { .. } => return Err(unsupported_option("BEGIN ATOMIC").into()),
        ModuleBody::External(_) => return Err(unsupported("CLR").into()),
    }
    Program::new(statements_of(&node.body)).map_err(|error| in_module(error, &node.name.name.text))?;
    let flags = flags_of(interpreter.session, &node.options)?;
    let mut new = NewModule::new(node.mode, &node.name, ObjectKind::Procedure, flags);
    new.execute_as = execute_as_of(interpreter.session, &node.options)?;
    let parameters = parameters_of(interpreter.session, &node.parameters);
    new.parameters = parameters.map_err(|error| in_module(error, &node.name.name.text))?;
    keep_module(interpreter, statement, new)
}

/// An error of a module's text, told with the module's name.
pub(crate) fn in_module(mut error: thawdb_types::SqlError, name: &str) -> Failure {
    error.procedure = Some(name.to_owned());
    Failure::compile(error)
}
