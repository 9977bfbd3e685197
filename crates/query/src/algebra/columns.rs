//! Column identities of one statement.

use thawdb_types::SqlType;

/// A column of some operator's output, unique in the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnRef(pub u32);

/// What is known of a column.
#[derive(Debug, Clone)]
pub struct ColumnInfo {
    /// Its name; empty for an unnamed expression.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// Whether it may be NULL anywhere above its producer.
    pub nullable: bool,
    /// IDENTITY column of a base table.
    pub identity: bool,
}

/// All columns of a statement.
#[derive(Debug, Clone, Default)]
pub struct Columns(Vec<ColumnInfo>);

impl Columns {
    /// A new column.
    pub fn add(&mut self, name: impl Into<String>, sql_type: SqlType, nullable: bool) -> ColumnRef {
        self.push(ColumnInfo { name: name.into(), sql_type, nullable, identity: false })
    }

    /// A new column described by `info`.
    pub fn push(&mut self, info: ColumnInfo) -> ColumnRef {
        let id = u32::try_from(self.0.len()).expect("a statement has fewer than 2^32 columns");
        self.0.push(info);
        ColumnRef(id)
    }

    /// What is known of `column`.
    pub fn info(&self, column: ColumnRef) -> &ColumnInfo {
        &self.0[column.0 as usize]
    }

    /// Lets the binder and rules say more about a column.
    pub fn info_mut(&mut self, column: ColumnRef) -> &mut ColumnInfo {
        &mut self.0[column.0 as usize]
    }

    /// Another column that is like `column`.
    pub fn copy(&mut self, column: ColumnRef) -> ColumnRef {
        let info = self.info(column).clone();
        self.push(info)
    }
}
