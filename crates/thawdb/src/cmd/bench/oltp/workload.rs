//! What is measured: the tables of pgbench at some scale, a journal, and four kinds of work on them.
//!
//! | kind | what one operation is | durable |
//! |---|---|---|
//! | select | the balance of a random account, by key | |
//! | insert | a row at the end of the journal | yes |
//! | update | the balance of a random account, by key | yes |
//! | tpcb | pgbench's TPC-B-like transaction: 3 updates, a select and an insert between BEGIN and COMMIT | yes |
//!
//! Everybody (ThawDB, PostgreSQL, SQLite) has the same rows in the same tables and draws keys evenly.

use crate::cmd::Failure;
use crate::embed::{BulkColumn, Session};
use arrow_array::{ArrayRef, Int32Array, StringArray};
use std::sync::Arc;
use thawdb_types::{Collation, SqlType};

/// Accounts of a branch, as pgbench has it.
pub const ACCOUNTS_PER_BRANCH: u32 = 100_000;
/// Tellers of a branch, as pgbench has it.
pub const TELLERS_PER_BRANCH: u32 = 10;
/// Rows pushed at a time.
const ROWS_PER_PUSH: u32 = 32_768;

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Select,
    Insert,
    Update,
    Tpcb,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Select, Self::Insert, Self::Update, Self::Tpcb];

    pub fn name(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Tpcb => "tpcb",
        }
    }
}

pub const SELECT: &str = "SELECT abalance FROM dbo.pgbench_accounts WHERE aid = @aid";
pub const UPDATE_ACCOUNT: &str = "UPDATE dbo.pgbench_accounts SET abalance = abalance + @delta WHERE aid = @aid";
pub const UPDATE_TELLER: &str = "UPDATE dbo.pgbench_tellers SET tbalance = tbalance + @delta WHERE tid = @tid";
pub const UPDATE_BRANCH: &str = "UPDATE dbo.pgbench_branches SET bbalance = bbalance + @delta WHERE bid = @bid";
pub const INSERT_HISTORY: &str =
    "INSERT INTO dbo.pgbench_history (tid, bid, aid, delta, mtime) VALUES (@tid, @bid, @aid, @delta, CURRENT_TIMESTAMP)";
pub const INSERT_JOURNAL: &str = "INSERT INTO dbo.journal (aid, delta, note) VALUES (@aid, @delta, 'a row of the benchmark')";

const TABLES: [&str; 5] = [
    "CREATE TABLE dbo.pgbench_accounts (aid int NOT NULL PRIMARY KEY, bid int, abalance int, filler char(84))",
    "CREATE TABLE dbo.pgbench_tellers (tid int NOT NULL PRIMARY KEY, bid int, tbalance int, filler char(84))",
    "CREATE TABLE dbo.pgbench_branches (bid int NOT NULL PRIMARY KEY, bbalance int, filler char(88))",
    "CREATE TABLE dbo.pgbench_history (tid int, bid int, aid int, delta int, mtime datetime2, filler char(22))",
    "CREATE TABLE dbo.journal (id bigint IDENTITY NOT NULL PRIMARY KEY, aid int NOT NULL, delta int NOT NULL, note varchar(50) NOT NULL)",
];

/// Makes the database and its rows.
pub fn create(session: &mut Session, database: &str, scale: u32) -> Result<(), Failure> {
    session.execute(&format!("CREATE DATABASE [{database}]"))?;
    session.execute(&format!("USE [{database}]"))?;
    for table in TABLES {
        session.execute(table)?;
    }
    for bid in 1..=scale {
        session.execute(&format!("INSERT dbo.pgbench_branches (bid, bbalance) VALUES ({bid}, 0)"))?;
    }
    for tid in 1..=scale * TELLERS_PER_BRANCH {
        let bid = (tid - 1) / TELLERS_PER_BRANCH + 1;
        session.execute(&format!("INSERT dbo.pgbench_tellers (tid, bid, tbalance) VALUES ({tid}, {bid}, 0)"))?;
    }
    accounts(session, scale * ACCOUNTS_PER_BRANCH)
}

fn accounts(session: &mut Session, count: u32) -> Result<(), Failure> {
    let columns = [
        BulkColumn::new("aid", SqlType::Int),
        BulkColumn::new("bid", SqlType::Int),
        BulkColumn::new("abalance", SqlType::Int),
        BulkColumn::new("filler", SqlType::Char { length: 84, collation: Collation::DEFAULT }),
    ];
    let mut load = session.bulk("dbo.pgbench_accounts", &columns, "TABLOCK")?;
    let mut next = 1;
    while next <= count {
        let rows = ROWS_PER_PUSH.min(count + 1 - next);
        let ids = next..next + rows;
        let signed = |value: u32| i32::try_from(value).expect("a scale of the benchmark is small");
        let aid: Int32Array = ids.clone().map(signed).collect();
        let bid: Int32Array = ids.map(|aid| signed((aid - 1) / ACCOUNTS_PER_BRANCH + 1)).collect();
        let filler = StringArray::from_iter_values((0..rows).map(|_| " ".repeat(84)));
        let balance = Int32Array::from(vec![0; aid.len()]);
        let arrays: Vec<ArrayRef> = vec![Arc::new(aid), Arc::new(bid), Arc::new(balance), Arc::new(filler)];
        load.push(arrays)?;
        next += rows;
    }
    load.finish()?;
    Ok(())
}

/// A generator of keys: one a connection, the same draws in every run.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    pub fn new(connection: usize) -> Self {
        Self((connection as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// 1 to `count`.
    pub fn up_to(&mut self, count: u32) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = 1 + (self.0 >> 33) % u64::from(count);
        i32::try_from(drawn).expect("counts are below 2^31")
    }

    /// -5000 to 5000, as pgbench draws what is moved.
    pub fn delta(&mut self) -> i32 {
        self.up_to(10_001) - 5_001
    }
}
