//! BULK INSERT: a file's rows into a table.

use crate::batch::failure::Failure;
use crate::batch::interpreter::Interpreter;
use crate::messages::unsupported;
use thawdb_tsql::ast::BulkInsert;

/// BULK INSERT.
pub(crate) fn bulk_insert(_: &mut Interpreter<'_, '_>, _: &BulkInsert) -> Result<(), Failure> {
    Err(unsupported("BULK INSERT").into())
}
