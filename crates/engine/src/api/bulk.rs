//! Rows loaded over the wire after `INSERT BULK`.

use thawdb_types::SqlType;

/// A column that the client announced in its INSERT BULK statement.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkColumn {
    /// Name of the table's column.
    pub name: String,
    /// Type in the table, which pushed arrays must have. Convert before pushing if the wire's type differs.
    pub sql_type: SqlType,
    /// Whether NULL may be stored.
    pub nullable: bool,
}
