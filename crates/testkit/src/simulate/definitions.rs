//! Statements that change tables and indexes, resumable operations among them.

use super::model::{Change, ColumnModel, DatabaseModel, IndexModel, Row, Shape, TableModel, id_of};
use super::value::{any_type, key_type};
use super::workload::{Expect, Scope, Statement, Workload};
use std::sync::Arc;
use thawdb_types::SqlType;

/// Most columns of a table.
const COLUMNS_MAX: usize = 8;
/// Most indexes made after a table.
const INDEXES_MAX: usize = 3;
/// What a definition of a table is told while an operation at it is paused.
const BESIDE_JOB: i32 = 10637;

/// The columns, but for the key's, that an index can have beside it.
fn includable(table: &TableModel, key: &str, with_large: bool) -> Vec<String> {
    let fits = |column: &&ColumnModel| column.name != key && (with_large || !column.sql_type.is_large());
    table.columns[1..].iter().filter(fits).map(|column| column.name.clone()).collect()
}

/// The statement refused, where an operation is paused.
fn refused(statement: Statement) -> Statement {
    Statement { changes: Vec::new(), expect: Expect::Refused(BESIDE_JOB), ..statement }
}

impl Workload {
    /// A statement that changes a table's definition.
    pub(super) fn define(&mut self, view: &DatabaseModel, scope: Scope, name: &str, table: &TableModel) -> Statement {
        if scope == Scope::Open && (table.job.is_some() || self.random.chance(1, 3)) && self.random.chance(2, 3) {
            return self.work_on_job(name, table);
        }
        let has_job = table.job.is_some();
        let statement = match self.random.below(16) {
            0..7 => self.change_index(name, table),
            7..9 => self.rebuild(name, table),
            9..11 if scope != Scope::Temporary => self.change_columns(name, table),
            11 if view.tables.len() < super::workload::TABLES_MAX => return self.select_into(name, table, scope),
            12..14 => Self::plain(format!("TRUNCATE TABLE {name}"), Change::Clear(name.to_owned())),
            _ if view.tables.len() > 1 => Self::plain(format!("DROP TABLE {name}"), Change::Drop(name.to_owned())),
            _ => self.rebuild(name, table),
        };
        if has_job { refused(statement) } else { statement }
    }

    /// A name no table of the scope has had.
    fn table_name(&mut self, scope: Scope) -> String {
        format!("{}{}", if scope == Scope::Temporary { "#t" } else { "t" }, self.fresh())
    }

    pub(super) fn create_table(&mut self, view: &DatabaseModel, scope: Scope) -> Statement {
        if let Some((name, table)) = self.table(view).map(|(name, table)| (name.clone(), table.clone()))
            && self.random.chance(1, 4)
        {
            return self.select_into(&name, &table, scope);
        }
        let name = self.table_name(scope);
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
        let text = format!("CREATE TABLE {name} ({}{key}){}", listed.join(", "), with_compression(&name));
        Self::plain(text, Change::Create(name, TableModel::new(columns, shape)))
    }

    /// A heap made of some rows of a table.
    fn select_into(&mut self, name: &str, table: &TableModel, scope: Scope) -> Statement {
        let made = self.table_name(scope);
        let (condition, rows) = if self.random.chance(1, 2) {
            (String::new(), table.rows.values().cloned().collect())
        } else {
            let (condition, rows) = self.condition(table);
            (format!(" WHERE {condition}"), rows)
        };
        let model = TableModel {
            rows: rows.iter().map(|row: &Row| (id_of(row), Arc::clone(row))).collect(),
            ..TableModel::new(table.columns.clone(), Shape::Heap)
        };
        let text = format!("SELECT * INTO {made} FROM {name}{condition}");
        Statement { expect: Expect::Rows(rows.len() as u64), ..Self::plain(text, Change::Create(made, model)) }
    }

    /// An index on a column that may be a key.
    fn new_index(&mut self, table: &TableModel, with_large: bool) -> IndexModel {
        let fits = |column: &&ColumnModel| column.sql_type.length().unwrap_or(0) < 900 && !column.sql_type.is_large();
        let keys: Vec<&ColumnModel> = table.columns[1..].iter().filter(fits).collect();
        let key = if keys.is_empty() { "id".to_owned() } else { keys[self.below(keys.len())].name.clone() };
        let included = includable(table, &key, with_large).into_iter().filter(|_| self.random.chance(1, 3)).collect();
        IndexModel { name: format!("ix{}", self.fresh()), key, included, is_unique: self.random.chance(1, 5), is_whole: true }
    }

    /// What follows the index's name in CREATE INDEX.
    fn index_body(&mut self, name: &str, index: &IndexModel) -> String {
        let order = if self.random.chance(1, 3) { " DESC" } else { "" };
        let include = if index.included.is_empty() { String::new() } else { format!(" INCLUDE ({})", index.included.join(", ")) };
        let filter = if index.is_whole { "" } else { " WHERE id > 30" };
        format!("ON {name} ({}{order}){include}{filter}", index.key)
    }

    fn change_index(&mut self, name: &str, table: &TableModel) -> Statement {
        if table.indexes.len() >= INDEXES_MAX || (!table.indexes.is_empty() && self.random.chance(1, 3)) {
            let index = table.indexes[self.below(table.indexes.len())].name.clone();
            return Self::plain(format!("DROP INDEX {index} ON {name}"), Change::DropIndex(name.to_owned(), index));
        }
        let mut index = self.new_index(table, true);
        index.is_whole = index.is_unique || self.random.chance(3, 4);
        let unique = if index.is_unique { "UNIQUE " } else { "" };
        let body = self.index_body(name, &index);
        let expect = if index.is_unique { Expect::Unique(table.has_duplicates(&index.key)) } else { Expect::Done };
        let text = format!("CREATE {unique}INDEX {} {body}{}", index.name, with_compression(&index.name));
        Statement { expect, ..Self::plain(text, Change::AddIndex(name.to_owned(), index)) }
    }

    fn rebuild(&mut self, name: &str, table: &TableModel) -> Statement {
        let which =
            if table.indexes.is_empty() || self.random.chance(1, 2) { "ALL" } else { &table.indexes[self.below(table.indexes.len())].name };
        let fill = if self.random.chance(1, 2) { " WITH (FILLFACTOR = 60)".to_owned() } else { with_compression(which) };
        let text = format!("ALTER INDEX {which} ON {name} REBUILD{fill}");
        Self::plain(text, Change::Rebuild(name.to_owned()))
    }

    fn change_columns(&mut self, name: &str, table: &TableModel) -> Statement {
        let gone: Vec<&ColumnModel> = table.columns.iter().filter(|column| table.can_drop(&column.name)).collect();
        if !gone.is_empty() && (table.columns.len() > COLUMNS_MAX || self.random.chance(1, 3)) {
            let column = gone[self.below(gone.len())].name.clone();
            return Self::plain(format!("ALTER TABLE {name} DROP COLUMN {column}"), Change::DropColumn(name.to_owned(), column));
        }
        if table.columns.len() > COLUMNS_MAX {
            return self.rebuild(name, table);
        }
        let column = ColumnModel { name: format!("c{}", self.fresh()), sql_type: any_type(&mut self.random), nullable: true };
        let text = format!("ALTER TABLE {name} ADD {} {} NULL", column.name, column.sql_type.name());
        Self::plain(text, Change::AddColumn(name.to_owned(), column))
    }

    /// Begins an operation beside the table's use, takes one up again or gives it up.
    fn work_on_job(&mut self, name: &str, table: &TableModel) -> Statement {
        let add = |index: &IndexModel| vec![Change::AddIndex(name.to_owned(), index.clone())];
        let duplicates = |index: &IndexModel| index.is_unique && table.has_duplicates(&index.key);
        let Some(index) = &table.job else {
            let index = self.new_index(table, false);
            let unique = if index.is_unique { "UNIQUE " } else { "" };
            let options = ["ONLINE = ON", "ONLINE = ON, RESUMABLE = ON", "ONLINE = ON, RESUMABLE = ON, MAX_DURATION = 1"][self.below(3)];
            let body = self.index_body(name, &index);
            let setting = compression(&index.name);
            let text = format!("CREATE {unique}INDEX {} {body} WITH ({options}, DATA_COMPRESSION = {setting})", index.name);
            let job = Some((name.to_owned(), index.clone()));
            return Statement { text, changes: add(&index), expect: Expect::Unique(duplicates(&index)), job };
        };
        let which = if self.random.chance(1, 4) { "ALL" } else { &index.name };
        let job = Some((name.to_owned(), index.clone()));
        if self.random.chance(1, 4) {
            let text = format!("ALTER INDEX {which} ON {name} ABORT");
            return Statement { text, changes: vec![Change::EndJob(name.to_owned())], expect: Expect::Done, job };
        }
        let text = format!("ALTER INDEX {which} ON {name} RESUME");
        Statement { text, changes: add(index), expect: Expect::Unique(duplicates(index)), job }
    }
}

/// DATA_COMPRESSION of what has this name: chosen without a throw, so that a seed's other choices stay what they are.
fn compression(name: &str) -> &'static str {
    match name.bytes().map(usize::from).sum::<usize>() % 4 {
        0 => "ROW",
        1 | 2 => "PAGE",
        _ => "NONE",
    }
}

fn with_compression(name: &str) -> String {
    match compression(name) {
        "NONE" => String::new(),
        setting => format!(" WITH (DATA_COMPRESSION = {setting})"),
    }
}
