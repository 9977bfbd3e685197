//! Variables and errors of one running scope: a batch, a procedure, a text given to EXEC or sp_executesql.

use crate::session::cursors::CursorId;
use crate::session::rowset::Rowset;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thawdb_catalog::{DatabaseId, ObjectId, SchemaId, TableDef};
use thawdb_types::{Scalar, SqlError, SqlType};

/// A variable or parameter.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// Its name with the `@`.
    pub(crate) name: String,
    pub(crate) sql_type: SqlType,
    pub(crate) value: Scalar,
    /// Step of the program that declares it; 0 for parameters.
    pub(crate) declared_at: usize,
}

/// A scope at work.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) variables: Vec<Variable>,
    /// Table variables by lower-case name with the `@`.
    pub(crate) table_variables: BTreeMap<String, Arc<TableDef>>,
    /// Table type of each table variable that has one.
    pub(crate) table_types: BTreeMap<String, ObjectId>,
    /// Table variables that are a caller's.
    pub(crate) borrowed_tables: BTreeSet<String>,
    /// Table-valued parameters: READONLY.
    pub(crate) read_only_tables: BTreeSet<String>,
    /// Cursors by lower-case name, variables with the `@`; none for a variable that means no cursor.
    pub(crate) cursors: BTreeMap<String, Option<CursorId>>,
    /// Rows the scope holds by lower-case name.
    pub(crate) rowsets: BTreeMap<String, Arc<Rowset>>,
    /// The table whose rows `inserted` and `deleted` are.
    pub(crate) rowset_table: Option<Arc<TableDef>>,
    /// Procedure it is, for ERROR_PROCEDURE().
    pub(crate) procedure: Option<String>,
    /// Number of the module it is, for @@PROCID; 0 for none.
    pub(crate) module: i32,
    /// SCOPE_IDENTITY().
    pub(crate) scope_identity: Option<i64>,
    /// Errors of the CATCH blocks being run, innermost last, with the number of the block.
    pub(crate) caught: Vec<(usize, SqlError)>,
    /// Whether a TRY of a caller would catch what this scope does not.
    pub(crate) guarded: bool,
    /// Whether it is a trigger.
    pub(crate) is_trigger: bool,
    /// Columns that the statement which fired it changed, for UPDATE().
    pub(crate) updated: Vec<String>,
    /// The same by number, for COLUMNS_UPDATED().
    pub(crate) updated_mask: Vec<u8>,
    /// Type of the value a scalar function returns.
    pub(crate) returns: Option<SqlType>,
    /// That value, once RETURN was reached.
    pub(crate) returned: Option<Scalar>,
    /// Severity of the worst error told in it.
    pub(crate) worst_severity: u8,
    /// The owner of the module it is, and the database that is in: what else that owns needs no permission.
    pub(crate) chain: Option<(DatabaseId, i32)>,
    /// The schema of the module it is, where names without one are looked for first.
    pub(crate) schema: Option<(SchemaId, Arc<str>)>,
    /// How many contexts there were when it began: REVERT goes no further back.
    pub(crate) contexts: usize,
    /// Whether it keeps old rows in a history, which nobody else may write.
    pub(crate) writes_history: bool,
    /// Levels the scope counts for `@@NESTLEVEL`.
    pub(crate) nests: usize,
}

impl Frame {
    /// Position of the variable named so; ASCII case ignored, as the default collation does.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|v| v.name.eq_ignore_ascii_case(name))
    }

    /// Adds a variable without a value.
    pub(crate) fn declare(&mut self, name: &str, sql_type: SqlType, declared_at: usize) -> usize {
        self.variables.push(Variable { name: name.to_owned(), sql_type, value: Scalar::Null, declared_at });
        self.variables.len() - 1
    }
}
