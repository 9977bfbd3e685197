//! DBCC.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::unsupported;
use thawdb_tsql::ast::Dbcc;

/// DBCC.
pub(crate) fn run(_: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    Err(unsupported(format!("DBCC {}", node.name)).into())
}
