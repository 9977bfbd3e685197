//! What sessions ask: random statements over the tables they see, each with what it must do.
//!
//! The generator sees only the model. It makes statements that are right or wrong in known ways; whatever else the
//! engine says of them is for the driver to judge. Here are those that read and change rows; [`super::definitions`] has
//! those that change tables and indexes, [`super::upkeep`] those that change nothing the ledger knows.

use super::model::{Change, DatabaseModel, IndexModel, Row, TableModel, id_of};
use super::value::{any_value, field, has_plain_text, is_comparable, literal};
use std::collections::BTreeMap;
use std::sync::Arc;
use thawdb_observe::seeded::SeededRandom;
use thawdb_types::Scalar;

/// Most tables of a database; with more, one is dropped now and then.
pub(super) const TABLES_MAX: usize = 4;
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
    /// It makes a unique index of a column; with true it fails, 1505, for rows that share a key.
    Unique(bool),
    /// It fails with this number.
    Refused(i32),
}

/// Where a session may do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Anything: a database, outside a transaction.
    Open,
    /// What a transaction may do.
    Transaction,
    /// What a transaction under SNAPSHOT may do: rows alone.
    Snapshot,
    /// What temporary tables know.
    Temporary,
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
    /// The table where it may leave a resumable operation, or end one, when it fails, and the index.
    pub job: Option<(String, IndexModel)>,
}

/// A statement that reads.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its text.
    pub text: String,
    /// The rows it must give, by id.
    pub expected: BTreeMap<i64, Row>,
    /// Whether it gives their number instead.
    pub counts: bool,
}

/// The generator.
pub struct Workload {
    /// Draws.
    pub random: SeededRandom,
    /// Ids and names not used yet.
    next: i64,
    /// Files for BULK INSERT that the driver puts on the disk before it runs the statement: path and bytes.
    pub file: Option<(String, Vec<u8>)>,
    /// Files added to databases, by database.
    pub(super) files: Vec<(String, String)>,
}

/// A row's cells as a VALUES list has them.
fn cells(table: &TableModel, row: &[Scalar]) -> String {
    let cells: Vec<_> = row.iter().zip(&table.columns).map(|(value, column)| literal(value, &column.sql_type)).collect();
    format!("({})", cells.join(", "))
}

impl Workload {
    /// A generator of its own randomness.
    pub fn new(random: SeededRandom) -> Self {
        Self { random, next: 10_000, file: None, files: Vec::new() }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).expect("below a usize")
    }

    pub(super) fn fresh(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    pub(super) fn table<'a>(&mut self, view: &'a DatabaseModel) -> Option<(&'a String, &'a TableModel)> {
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
    pub fn write(&mut self, view: &DatabaseModel, scope: Scope) -> Option<Statement> {
        if scope != Scope::Snapshot && (view.tables.is_empty() || (view.tables.len() < TABLES_MAX && self.random.chance(1, 20))) {
            return Some(self.create_table(view, scope));
        }
        let (name, table) = self.table(view)?;
        let (name, table) = (name.clone(), table.clone());
        if table.rows.len() > ROWS_MAX {
            return Some(self.delete(&name, &table));
        }
        Some(match self.random.below(100) {
            0..32 => self.insert(&name, &table),
            32..38 => self.insert_select(&name, &table),
            38..60 => self.update(&name, &table),
            60..66 => self.move_row(&name, &table),
            66..78 => self.delete(&name, &table),
            78..82 if !matches!(scope, Scope::Temporary | Scope::Snapshot) => self.bulk_insert(&name, &table),
            78..82 => self.insert(&name, &table),
            _ if scope == Scope::Snapshot => self.update(&name, &table),
            _ => self.define(view, scope, &name, &table),
        })
    }

    /// A statement that changes rows: refused where the rows as they would be break a unique index.
    fn rows(text: String, changes: Vec<Change>, count: usize, name: &str, table: &TableModel) -> Statement {
        let mut after = DatabaseModel::default();
        after.apply(&Change::Create(name.to_owned(), table.clone()));
        let is_refused = after.with(&changes).tables[name].is_refused();
        let expect = if is_refused { Expect::Duplicate } else { Expect::Rows(count as u64) };
        Statement { text, changes, expect, job: None }
    }

    pub(super) fn plain(text: String, change: Change) -> Statement {
        Statement { text, changes: vec![change], expect: Expect::Done, job: None }
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
        let count = rows.len();
        let changes = rows.into_iter().map(|row| Change::Put(name.to_owned(), row)).collect();
        if is_duplicate {
            return Statement { text, changes, expect: Expect::Duplicate, job: None };
        }
        Self::rows(text, changes, count, name, table)
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
        let count = changes.len();
        Self::rows(text, changes, count, name, table)
    }

    /// A condition, and the rows it is true of.
    pub(super) fn condition(&mut self, table: &TableModel) -> (String, Vec<Row>) {
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
        Self::rows(text, changed.collect(), rows.len(), name, table)
    }

    /// Gives a row another id.
    fn move_row(&mut self, name: &str, table: &TableModel) -> Statement {
        let Some((from, row)) = table.rows.iter().nth(self.below(table.rows.len().max(1))) else {
            return self.insert(name, table);
        };
        let to = if table.shape.is_id_unique() && self.random.chance(1, 2) { self.id() } else { self.fresh() };
        let mut moved = (**row).clone();
        moved[0] = Scalar::Int(i32::try_from(to).expect("ids are small"));
        let changes = vec![Change::Delete(name.to_owned(), *from), Change::Put(name.to_owned(), Arc::new(moved))];
        let text = format!("UPDATE {name} SET id = {to} WHERE id = {from}");
        if to != *from && table.rows.contains_key(&to) {
            return Statement { text, changes, expect: Expect::Duplicate, job: None };
        }
        Self::rows(text, changes, 1, name, table)
    }

    fn delete(&mut self, name: &str, table: &TableModel) -> Statement {
        let (condition, rows) = if table.rows.len() > ROWS_MAX || self.random.chance(1, 12) {
            let rows = table.rows.range(5..).map(|(_, row)| row.clone()).collect();
            ("id >= 5".to_owned(), rows)
        } else {
            self.condition(table)
        };
        let changes = rows.iter().map(|row: &Row| Change::Delete(name.to_owned(), id_of(row))).collect();
        Self::rows(format!("DELETE {name} WHERE {condition}"), changes, rows.len(), name, table)
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
        let count = changes.len();
        Self::rows(statement, changes, count, name, table)
    }

    /// A statement that reads.
    pub fn read(&mut self, view: &DatabaseModel) -> Option<Question> {
        let (name, table) = self.table(view)?;
        let whole: Vec<&IndexModel> = table.indexes.iter().filter(|index| index.is_whole).collect();
        match self.random.below(12) {
            0..3 => Some(all_of(name, table)),
            3 => Some(Question { text: format!("SELECT COUNT(*) FROM {name}"), counts: true, ..all_of(name, table) }),
            4 => Some(Question { text: format!("SELECT * FROM {name} ORDER BY id DESC"), ..all_of(name, table) }),
            5..7 if !whole.is_empty() => {
                let index = &whole[self.below(whole.len())].name;
                Some(Question { text: format!("SELECT * FROM {name} WITH (INDEX ({index}))"), ..all_of(name, table) })
            }
            _ => {
                let (condition, rows) = self.condition(table);
                let expected = rows.into_iter().map(|row| (id_of(&row), row)).collect();
                Some(Question { text: format!("SELECT * FROM {name} WHERE {condition}"), expected, counts: false })
            }
        }
    }
}

/// The question for all rows of a table.
pub fn all_of(name: &str, table: &TableModel) -> Question {
    Question { text: format!("SELECT * FROM {name}"), expected: table.rows.clone(), counts: false }
}
