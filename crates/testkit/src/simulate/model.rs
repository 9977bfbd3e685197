//! What the databases must hold: a small model in memory, kept apart from the engine.
//!
//! ```text
//! committed DatabaseModel --clone--> + changes of one session's transaction = what that session sees
//!                         <--apply-- the same changes, when its COMMIT is acknowledged
//! ```
//!
//! 1. A change is worked out from what the session sees and applied to it only when the engine says the statement
//!    succeeded; so the model never follows the engine's answer, only its verdict.
//! 2. Every table has an integer column `id` that names its rows here; the engine need not know it as a key.
//! 3. Tables and rows are shared between copies: a view costs what its session changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_types::{Scalar, SqlType};

/// A row's values, in the order of the columns; the first is `id`.
pub type Row = Arc<Vec<Scalar>>;

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnModel {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// Whether NULL may be stored.
    pub nullable: bool,
}

/// How a table keeps its rows: what is made with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// PRIMARY KEY CLUSTERED (id).
    Clustered,
    /// PRIMARY KEY CLUSTERED (id DESC).
    Descending,
    /// PRIMARY KEY CLUSTERED (c1, id), where c1 is text.
    Composite,
    /// A heap with a unique index on id.
    HeapWithIndex,
    /// A heap and nothing else.
    Heap,
    /// A clustered index on c1 that is not unique, and PRIMARY KEY NONCLUSTERED (id).
    ClusteredDuplicates,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Clustered, Self::Descending, Self::Composite, Self::HeapWithIndex, Self::Heap, Self::ClusteredDuplicates];

    /// Whether the engine refuses a second row of the same id.
    pub const fn is_id_unique(self) -> bool {
        !matches!(self, Self::Heap | Self::Composite)
    }
}

/// An index made after its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexModel {
    /// Its name.
    pub name: String,
    /// Its key column.
    pub key: String,
    /// Columns it has besides.
    pub included: Vec<String>,
    /// Whether it refuses a second row of the same key.
    pub is_unique: bool,
    /// Whether it has all rows, so that every question can be answered through it.
    pub is_whole: bool,
}

impl IndexModel {
    /// Whether it has the column.
    pub fn uses(&self, column: &str) -> bool {
        self.key == column || self.included.iter().any(|other| other == column)
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableModel {
    /// Its columns.
    pub columns: Vec<ColumnModel>,
    /// How it keeps its rows.
    pub shape: Shape,
    /// The indexes made after it.
    pub indexes: Vec<IndexModel>,
    /// The index whose resumable operation is paused.
    pub job: Option<IndexModel>,
    /// How often it was built anew: a snapshot from before sees another table.
    pub rebuilds: u32,
    /// Rows written again as they were: they tell nothing new, and are a conflict for a snapshot from before all the same.
    pub rewrites: u32,
    /// Its rows by id.
    pub rows: BTreeMap<i64, Row>,
}

impl TableModel {
    /// A table without rows and indexes.
    pub fn new(columns: Vec<ColumnModel>, shape: Shape) -> Self {
        Self { columns, shape, indexes: Vec::new(), job: None, rebuilds: 0, rewrites: 0, rows: BTreeMap::new() }
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column.name == name).expect("indexes are of columns that are there")
    }

    /// Whether two rows have the same value, or both none, in a column.
    pub fn has_duplicates(&self, column: &str) -> bool {
        let at = self.column(column);
        let mut values: Vec<String> = self.rows.values().map(|row| format!("{:?}", row[at])).collect();
        values.sort_unstable();
        values.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Whether a unique index refuses the rows as they are.
    pub fn is_refused(&self) -> bool {
        self.indexes.iter().any(|index| index.is_unique && self.has_duplicates(&index.key))
    }

    /// Whether a column can go: no key and no index has it.
    pub fn can_drop(&self, column: &str) -> bool {
        let in_key = matches!(self.shape, Shape::Composite | Shape::ClusteredDuplicates) && column == "c1";
        column != "id" && !in_key && self.columns.len() > 2 && !self.indexes.iter().any(|index| index.uses(column))
    }
}

/// A database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DatabaseModel {
    /// Its tables by name.
    pub tables: BTreeMap<String, Arc<TableModel>>,
}

/// What a statement does to a database.
#[derive(Debug, Clone)]
pub enum Change {
    /// A table is made.
    Create(String, TableModel),
    /// A table is dropped.
    Drop(String),
    /// A column that may be NULL is added.
    AddColumn(String, ColumnModel),
    /// A column goes.
    DropColumn(String, String),
    /// An index is made, and its operation, if it had one, is over.
    AddIndex(String, IndexModel),
    /// A resumable operation is begun and paused.
    BeginJob(String, IndexModel),
    /// It is given up.
    EndJob(String),
    /// An index is dropped.
    DropIndex(String, String),
    /// All rows go.
    Clear(String),
    /// It is built anew.
    Rebuild(String),
    /// A row is there, whatever was under its id.
    Put(String, Row),
    /// A row goes.
    Delete(String, i64),
}

/// The id of a row.
pub fn id_of(row: &Row) -> i64 {
    row[0].as_i64().expect("the first column is id")
}

impl DatabaseModel {
    fn table(&mut self, name: &str) -> &mut TableModel {
        Arc::make_mut(self.tables.get_mut(name).expect("a change is of a table that its session sees"))
    }

    /// Follows a change.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(name, table) => {
                self.tables.insert(name.clone(), Arc::new(table.clone()));
            }
            Change::Drop(name) => {
                self.tables.remove(name);
            }
            Change::AddColumn(name, column) => {
                let table = self.table(name);
                table.columns.push(column.clone());
                for row in table.rows.values_mut() {
                    Arc::make_mut(row).push(Scalar::Null);
                }
            }
            Change::DropColumn(name, column) => {
                let table = self.table(name);
                let at = table.column(column);
                table.columns.remove(at);
                for row in table.rows.values_mut() {
                    Arc::make_mut(row).remove(at);
                }
            }
            Change::AddIndex(name, index) => {
                let table = self.table(name);
                table.job = None;
                table.indexes.push(index.clone());
            }
            Change::BeginJob(name, index) => self.table(name).job = Some(index.clone()),
            Change::EndJob(name) => {
                let table = self.table(name);
                table.job = None;
                // It was announced and taken back: two changes of the definition, for a snapshot from before.
                table.rebuilds += 1;
            }
            Change::DropIndex(name, index) => self.table(name).indexes.retain(|other| other.name != *index),
            Change::Clear(name) => {
                let table = self.table(name);
                table.rows.clear();
                table.rebuilds += 1;
            }
            Change::Rebuild(name) => self.table(name).rebuilds += 1,
            Change::Put(name, row) => {
                let table = self.table(name);
                let before = table.rows.insert(id_of(row), row.clone());
                table.rewrites += u32::from(before.as_ref() == Some(row));
            }
            Change::Delete(name, id) => {
                self.table(name).rows.remove(id);
            }
        }
    }

    /// The database after some changes.
    pub fn with(&self, changes: &[Change]) -> Self {
        let mut after = self.clone();
        changes.iter().for_each(|change| after.apply(change));
        after
    }
}

/// Where rows as read differ from those expected: the first few differences, or nothing.
pub fn difference(expected: &BTreeMap<i64, Row>, found: &[Vec<Scalar>]) -> Option<String> {
    let mut by_id: BTreeMap<i64, &Vec<Scalar>> = BTreeMap::new();
    for row in found {
        let Some(id) = row.first().and_then(Scalar::as_i64) else { return Some(format!("a row without id: {}", brief(row))) };
        if by_id.insert(id, row).is_some() {
            return Some(format!("row {id} twice"));
        }
    }
    for (id, row) in expected {
        match by_id.get(id) {
            None => return Some(format!("row {id} is missing ({} expected, {} found)", expected.len(), found.len())),
            Some(other) if ***row != **other => {
                return Some(format!("row {id} is {} where {} is expected", brief(other), brief(row)));
            }
            Some(_) => {}
        }
    }
    let extra = by_id.keys().find(|id| !expected.contains_key(id))?;
    Some(format!("row {extra} is there and should not be ({} expected, {} found)", expected.len(), found.len()))
}

/// A row as messages show it: long values cut.
fn brief(row: &[Scalar]) -> String {
    let mut text = format!("{row:?}");
    if text.len() > 300 {
        let end = (0..=300).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, value: i64) -> Row {
        Arc::new(vec![Scalar::BigInt(id), Scalar::BigInt(value)])
    }

    #[test]
    fn changes_do_not_reach_the_copy_they_were_not_applied_to() {
        let table = TableModel { rows: BTreeMap::from([(1, row(1, 5))]), ..TableModel::new(Vec::new(), Shape::Clustered) };
        let before = DatabaseModel::default().with(&[Change::Create("t".into(), table)]);
        let after = before.with(&[Change::Put("t".into(), row(2, 6)), Change::Delete("t".into(), 1)]);
        assert_eq!(before.tables["t"].rows.keys().collect::<Vec<_>>(), [&1]);
        assert_eq!(after.tables["t"].rows.keys().collect::<Vec<_>>(), [&2]);
    }

    #[test]
    fn every_kind_of_difference_is_told() {
        let expected = BTreeMap::from([(1, row(1, 5)), (2, row(2, 6))]);
        let told = |rows: &[Row]| difference(&expected, &rows.iter().map(|row| (**row).clone()).collect::<Vec<_>>());
        assert_eq!(told(&[row(2, 6), row(1, 5)]), None);
        assert!(told(&[row(1, 5)]).is_some_and(|why| why.contains("row 2 is missing")));
        assert!(told(&[row(1, 5), row(2, 7)]).is_some_and(|why| why.contains("row 2 is [")));
        assert!(told(&[row(1, 5), row(2, 6), row(3, 0)]).is_some_and(|why| why.contains("row 3 is there")));
        assert_eq!(told(&[row(1, 5), row(1, 5)]), Some("row 1 twice".into()));
    }
}
