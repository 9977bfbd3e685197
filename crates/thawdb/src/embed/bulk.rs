//! Bulk loads from the same process: rows in as columns, through the path that drivers' bulk copies take.

use crate::embed::result::Gather;
use crate::embed::session::Session;
use arrow_array::ArrayRef;
use thawdb_engine::{Batch, BulkLoader};
use thawdb_types::{SqlError, SqlType};

/// A column to load: its name in the table and the type its arrays have, which must be the table's.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkColumn {
    /// Name of the table's column.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
}

impl BulkColumn {
    /// A column.
    pub fn new(name: impl Into<String>, sql_type: SqlType) -> Self {
        Self { name: name.into(), sql_type }
    }
}

/// A load under way. Dropped without [`BulkLoad::finish`], nothing of it is kept.
pub struct BulkLoad<'s> {
    loader: BulkLoader<'s>,
}

impl<'s> BulkLoad<'s> {
    pub(crate) fn start(session: &'s mut Session, table: &str, columns: &[BulkColumn], options: &str) -> Result<Self, SqlError> {
        session.execute(&statement(table, columns, options))?;
        Ok(Self { loader: session.engine().bulk_load()? })
    }

    /// Takes some rows: one array a column, in the order announced, all of one length.
    ///
    /// # Errors
    /// When a row cannot be stored (a duplicate key, NULL where none may be); the load is then over and undone.
    pub fn push(&mut self, columns: Vec<ArrayRef>) -> Result<(), SqlError> {
        let row_count = columns.first().map_or(0, |column| column.len());
        assert!(columns.iter().all(|column| column.len() == row_count), "every column has the same number of rows");
        self.loader.push(Batch { columns, row_count })
    }

    /// Completes the load: the number of rows in the table more.
    ///
    /// # Errors
    /// When it could not be committed; nothing of it is kept then.
    pub fn finish(self) -> Result<u64, SqlError> {
        let mut gather = Gather::default();
        self.loader.finish(&mut gather);
        match gather.results.first_error() {
            Some(error) => Err(error.clone()),
            None => Ok(gather.results.rows_affected.iter().sum()),
        }
    }
}

fn statement(table: &str, columns: &[BulkColumn], options: &str) -> String {
    let column = |column: &BulkColumn| format!("[{}] {}", column.name.replace(']', "]]"), column.sql_type.name());
    let columns: Vec<String> = columns.iter().map(column).collect();
    let options = if options.is_empty() { String::new() } else { format!(" WITH ({options})") };
    format!("INSERT BULK {table} ({}){options}", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_names_columns_types_and_options() {
        let columns = [BulkColumn::new("PostId", SqlType::Int), BulkColumn::new("a]", SqlType::decimal(9, 2))];
        let text = statement("dbo.Votes", &columns, "TABLOCK");
        assert_eq!(text, "INSERT BULK dbo.Votes ([PostId] int, [a]]] decimal(9,2)) WITH (TABLOCK)");
    }
}
