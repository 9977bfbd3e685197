//! What sessions ask: random statements over the tables they see, each with what it must do.
//!
//! The generator sees only the model. It makes statements that are right or wrong in known ways; whatever else the
//! engine says of them is for the driver to judge.

use super::model::{Change, ColumnModel, DatabaseModel, Row, Shape, TableModel, id_of};
use super::value::{any_type, any_value, field, has_plain_text, is_comparable, key_type, literal};
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_observe::seeded::SeededRandom;
use thawdb_types::{Scalar, SqlType};

/// Most tables of a database; with more, one is dropped now and then.
const TABLES_MAX: usize = 4;
/// Ids that rows of tables with a unique id are drawn from.
const IDS: u64 = 80;
/// Most rows of a table: above it the workload deletes.
const ROWS_MAX: usize = 300;

/// What a statement that is let work must say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It succeeds; whether it counts rows is not looked at.
    Done,
    /// It succeeds and says so many rows.
    Rows(u64),
    /// It fails: 2627 or 2601.
    Duplicate,
}

/// A statement that changes something.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Its text.
    pub text: String,
    /// What it does, if it succeeds.
    pub changes: Vec<Change>,
    /// What it must say.
    pub expect: Expect,
}

/// A statement that reads.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its text.
    pub text: String,
    /// The rows it must give, by id.
    pub expected: BTreeMap<i64, Row>,
}

/// The generator.
pub struct Workload {
    /// Draws.
    pub random: SeededRandom,
    /// Ids and names not used yet.
    next: i64,
    /// Files for BULK INSERT that the driver puts on the disk before it runs the statement: path and bytes.
    pub file: Option<(String, Vec<u8>)>,
}

/// A row's cells as a VALUES list has them.
fn cells(table: &TableModel, row: &[Scalar]) -> String {
    let cells: Vec<_> = row.iter().zip(&table.columns).map(|(value, column)| literal(value, &column.sql_type)).collect();
    format!("({})", cells.join(", "))
}

impl Workload {
    /// A generator of its own randomness.
    pub fn new(random: SeededRandom) -> Self {
        Self { random, next: 10_000, file: None }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).expect("below a usize")
    }

    fn fresh(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    fn table<'a>(&mut self, view: &'a DatabaseModel) -> Option<(&'a String, &'a TableModel)> {
        if view.tables.is_empty() {
            return None;
        }
        let at = self.below(view.tables.len());
        view.tables.iter().nth(at).map(|(name, table)| (name, &**table))
    }

    fn id(&mut self) -> i64 {
        i64::try_from(self.random.below(IDS)).expect("small")
    }

    fn row(&mut self, table: &TableModel, id: i64) -> Row {
        let mut row = vec![Scalar::Int(i32::try_from(id).expect("ids are small"))];
        row.extend(table.columns[1..].iter().map(|column| any_value(&mut self.random, &column.sql_type, column.nullable)));
        Arc::new(row)
    }

    /// A statement that changes rows or definitions.
    pub fn write(&mut self, view: &DatabaseModel) -> Statement {
        if view.tables.is_empty() || (view.tables.len() < TABLES_MAX && self.random.chance(1, 20)) {
            return self.create_table();
        }
        let (name, table) = self.table(view).expect("there is a table");
        let (name, table) = (name.clone(), table.clone());
        if table.rows.len() > ROWS_MAX {
            return self.delete(&name, &table);
        }
        match self.random.below(100) {
            0..34 => self.insert(&name, &table),
            34..40 => self.insert_select(&name, &table),
            40..62 => self.update(&name, &table),
            62..68 => self.move_row(&name, &table),
            68..82 => self.delete(&name, &table),
            82..86 => self.bulk_insert(&name, &table),
            86..94 => self.change_index(&name, &table),
            94..96 => self.add_column(&name, &table),
            96..98 => Self::plain(format!("TRUNCATE TABLE {name}"), Change::Clear(name)),
            _ if view.tables.len() > 1 => Self::plain(format!("DROP TABLE {name}"), Change::Drop(name)),
            _ => self.insert(&name, &table),
        }
    }

    fn plain(text: String, change: Change) -> Statement {
        Statement { text, changes: vec![change], expect: Expect::Done }
    }

    fn create_table(&mut self) -> Statement {
        let name = format!("t{}", self.fresh());
        let shape = Shape::ALL[self.below(Shape::ALL.len())];
        let mut columns = vec![ColumnModel { name: "id".into(), sql_type: SqlType::Int, nullable: false }];
        for number in 1..=1 + self.below(5) {
            // Two shapes have the first column in a key.
            let sql_type = match (number, shape) {
                (1, Shape::Composite) => SqlType::nvarchar(60),
                (1, Shape::ClusteredDuplicates) => key_type(&mut self.random),
                _ => any_type(&mut self.random),
            };
            let nullable = !(number == 1 && shape == Shape::Composite) && self.random.chance(2, 3);
            columns.push(ColumnModel { name: format!("c{number}"), sql_type, nullable });
        }
        let column = |column: &ColumnModel| {
            format!("{} {} {}", column.name, column.sql_type.name(), if column.nullable { "NULL" } else { "NOT NULL" })
        };
        let listed: Vec<_> = columns.iter().map(column).collect();
        let key = match shape {
            Shape::Clustered => ", PRIMARY KEY CLUSTERED (id)",
            Shape::Descending => ", PRIMARY KEY CLUSTERED (id DESC)",
            Shape::Composite => ", PRIMARY KEY CLUSTERED (c1, id)",
            Shape::Heap => "",
            Shape::HeapWithIndex => ", UNIQUE NONCLUSTERED (id)",
            Shape::ClusteredDuplicates => ", PRIMARY KEY NONCLUSTERED (id), INDEX cx CLUSTERED (c1)",
        };
        let text = format!("CREATE TABLE {name} ({}{key})", listed.join(", "));
        Self::plain(text, Change::Create(name, TableModel { columns, shape, indexes: Vec::new(), rows: BTreeMap::new() }))
    }

    fn insert(&mut self, name: &str, table: &TableModel) -> Statement {
        let count = if self.random.chance(1, 12) { 60 } else { 1 + self.below(4) };
        let rows: Vec<Row> = (0..count)
            .map(|_| {
                let is_old = table.shape.is_id_unique() && count < 10 && self.random.chance(1, 2);
                let id = if is_old { self.id() } else { self.fresh() };
                self.row(table, id)
            })
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        let is_duplicate = rows.iter().any(|row| table.rows.contains_key(&id_of(row)) || !seen.insert(id_of(row)));
        let listed: Vec<_> = rows.iter().map(|row| cells(table, row)).collect();
        let text = format!("INSERT {name} VALUES {}", listed.join(", "));
        let expect = if is_duplicate { Expect::Duplicate } else { Expect::Rows(rows.len() as u64) };
        Statement { text, changes: rows.into_iter().map(|row| Change::Put(name.to_owned(), row)).collect(), expect }
    }

    fn insert_select(&mut self, name: &str, table: &TableModel) -> Statement {
        let shift = self.fresh();
        self.next += 100_000;
        let columns: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let (list, rest) = (columns.join(", "), columns[1..].join(", "));
        // Ids beyond the first generation would leave the range of int in the end.
        let copied = table.rows.range(..10_050).map(|(id, row)| {
            let mut row = (**row).clone();
            row[0] = Scalar::Int(i32::try_from(id + shift).expect("ids are small"));
            Change::Put(name.to_owned(), Arc::new(row))
        });
        let changes: Vec<_> = copied.collect();
        let text = format!("INSERT {name} ({list}) SELECT id + {shift}, {rest} FROM {name} WHERE id < 10050");
        Statement { text, expect: Expect::Rows(changes.len() as u64), changes }
    }

    /// A condition, and the rows it is true of.
    fn condition(&mut self, table: &TableModel) -> (String, Vec<Row>) {
        let comparable: Vec<usize> = (1..table.columns.len()).filter(|at| is_comparable(&table.columns[*at].sql_type)).collect();
        match self.random.below(4) {
            0 if !comparable.is_empty() => {
                let at = comparable[self.below(comparable.len())];
                let column = &table.columns[at];
                let value = any_value(&mut self.random, &column.sql_type, false);
                let rows = table.rows.values().filter(|row| row[at] == value).cloned().collect();
                (format!("{} = {}", column.name, literal(&value, &column.sql_type)), rows)
            }
            1 => {
                let low = self.id();
                let high = low + self.id() / 8;
                (format!("id BETWEEN {low} AND {high}"), table.rows.range(low..=high).map(|(_, row)| row.clone()).collect())
            }
            _ => {
                let id = match table.rows.len() {
                    0 => self.id(),
                    count => *table.rows.keys().nth(self.below(count)).expect("below the count"),
                };
                (format!("id = {id}"), table.rows.get(&id).cloned().into_iter().collect())
            }
        }
    }

    fn update(&mut self, name: &str, table: &TableModel) -> Statement {
        let (condition, rows) = self.condition(table);
        let at = 1 + self.below(table.columns.len() - 1);
        let column = &table.columns[at];
        let value = any_value(&mut self.random, &column.sql_type, column.nullable);
        let changed = rows.iter().map(|row| {
            let mut row = (**row).clone();
            row[at] = value.clone();
            Change::Put(name.to_owned(), Arc::new(row))
        });
        let text = format!("UPDATE {name} SET {} = {} WHERE {condition}", column.name, literal(&value, &column.sql_type));
        Statement { text, changes: changed.collect(), expect: Expect::Rows(rows.len() as u64) }
    }

    /// Gives a row another id.
    fn move_row(&mut self, name: &str, table: &TableModel) -> Statement {
        let Some((from, row)) = table.rows.iter().nth(self.below(table.rows.len().max(1))) else {
            return self.insert(name, table);
        };
        let to = if table.shape.is_id_unique() && self.random.chance(1, 2) { self.id() } else { self.fresh() };
        let mut moved = (**row).clone();
        moved[0] = Scalar::Int(i32::try_from(to).expect("ids are small"));
        let expect = if to != *from && table.rows.contains_key(&to) { Expect::Duplicate } else { Expect::Rows(1) };
        let changes = vec![Change::Delete(name.to_owned(), *from), Change::Put(name.to_owned(), Arc::new(moved))];
        Statement { text: format!("UPDATE {name} SET id = {to} WHERE id = {from}"), changes, expect }
    }

    fn delete(&mut self, name: &str, table: &TableModel) -> Statement {
        let (condition, rows) = if table.rows.len() > ROWS_MAX || self.random.chance(1, 12) {
            let rows = table.rows.range(5..).map(|(_, row)| row.clone()).collect();
            ("id >= 5".to_owned(), rows)
        } else {
            self.condition(table)
        };
        let changes = rows.iter().map(|row: &Row| Change::Delete(name.to_owned(), id_of(row))).collect();
        Statement { text: format!("DELETE {name} WHERE {condition}"), changes, expect: Expect::Rows(rows.len() as u64) }
    }

    fn bulk_insert(&mut self, name: &str, table: &TableModel) -> Statement {
        if !table.columns.iter().all(|column| has_plain_text(&column.sql_type)) {
            return self.insert(name, table);
        }
        let mut text = String::new();
        let mut changes = Vec::new();
        for _ in 0..self.below(120) {
            let id = self.fresh();
            let row = self.row(table, id);
            let fields: Vec<_> = row.iter().zip(&table.columns).map(|(value, column)| field(value, &column.sql_type)).collect();
            text.push_str(&fields.join("|"));
            text.push('\n');
            changes.push(Change::Put(name.to_owned(), row));
        }
        let path = format!("/load/{}.txt", self.fresh());
        let tablock = if self.random.chance(1, 2) { ", TABLOCK" } else { "" };
        let statement = format!("BULK INSERT {name} FROM '{path}' WITH (FIELDTERMINATOR = '|', ROWTERMINATOR = '0x0a'{tablock})");
        self.file = Some((path, text.into_bytes()));
        Statement { text: statement, expect: Expect::Rows(changes.len() as u64), changes }
    }

    fn change_index(&mut self, name: &str, table: &TableModel) -> Statement {
        if table.indexes.len() > 2 || (!table.indexes.is_empty() && self.random.chance(1, 3)) {
            let index = table.indexes[self.below(table.indexes.len())].clone();
            return Self::plain(format!("DROP INDEX {index} ON {name}"), Change::DropIndex(name.to_owned(), index));
        }
        let index = format!("ix{}", self.fresh());
        let keys: Vec<usize> = (1..table.columns.len()).filter(|at| table.columns[*at].sql_type.length().unwrap_or(0) < 900).collect();
        let keys: Vec<usize> = keys.into_iter().filter(|at| !table.columns[*at].sql_type.is_large()).collect();
        let first = if keys.is_empty() { 0 } else { keys[self.below(keys.len())] };
        let order = if self.random.chance(1, 3) { " DESC" } else { "" };
        let included: Vec<_> = (1..table.columns.len()).filter(|at| *at != first && self.random.chance(1, 3)).collect();
        let included: Vec<_> = included.iter().map(|at| table.columns[*at].name.as_str()).collect();
        let include = if included.is_empty() { String::new() } else { format!(" INCLUDE ({})", included.join(", ")) };
        let text = format!("CREATE INDEX {index} ON {name} ({}{order}){include}", table.columns[first].name);
        Self::plain(text, Change::AddIndex(name.to_owned(), index))
    }

    fn add_column(&mut self, name: &str, table: &TableModel) -> Statement {
        if table.columns.len() > 8 {
            return self.insert(name, table);
        }
        let column = ColumnModel { name: format!("c{}", self.fresh()), sql_type: any_type(&mut self.random), nullable: true };
        let text = format!("ALTER TABLE {name} ADD {} {} NULL", column.name, column.sql_type.name());
        Self::plain(text, Change::AddColumn(name.to_owned(), column))
    }

    /// A statement that reads.
    pub fn read(&mut self, view: &DatabaseModel) -> Option<Question> {
        let (name, table) = self.table(view)?;
        if self.random.chance(1, 3) {
            return Some(all_of(name, table));
        }
        let (condition, rows) = self.condition(table);
        let expected = rows.into_iter().map(|row| (id_of(&row), row)).collect();
        Some(Question { text: format!("SELECT * FROM {name} WHERE {condition}"), expected })
    }
}

/// The question for all rows of a table.
pub fn all_of(name: &str, table: &TableModel) -> Question {
    Question { text: format!("SELECT * FROM {name}"), expected: table.rows.clone() }
}
