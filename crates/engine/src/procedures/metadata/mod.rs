//! The procedures by which drivers ask what there is: tables, columns, keys, indexes, routines, types.
//!
//! Each is a T-SQL text over the catalog views with the columns, types and order that ODBC and JDBC drivers read by
//! position. `@fUsePattern` says whether names are patterns of LIKE. A qualifier that is not the current database finds
//! nothing.

mod columns;
mod keys;
mod routines;
mod types;

use super::catalog::CatalogProcedure;

/// All of them.
pub(crate) fn procedures() -> impl Iterator<Item = &'static CatalogProcedure> {
    [columns::PROCEDURES, keys::PROCEDURES, routines::PROCEDURES, types::PROCEDURES].into_iter().flatten()
}
