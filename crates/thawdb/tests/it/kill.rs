//! Fifty SIGKILLs on the real disk: what was acknowledged is there, nothing is half there, and the check is clean.
//!
//! Claim: a process that is killed at any moment loses no acknowledged commit (law L9). Method: the demo's hidden child
//! inserts rows in transactions of ten and prints the last Id of each after its COMMIT has returned; the parent kills it
//! after a number of acknowledgements that differs each time, from before the first to some hundreds, opens the
//! instance itself, looks for every row, and runs DBCC CHECKDB. The next child goes on in the same database, so that
//! each crash comes upon what recovery made of the one before.

use crate::support::{Folder, thawdb};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use thawdb::{Options, Session};

/// Crashes.
const KILL_COUNT: u32 = 50;
/// Rows of a transaction of the child.
const ROWS_PER_TRANSACTION: i64 = 10;

fn options() -> Options {
    Options { memory_bytes_max: 128 << 20, ..Options::default() }
}

/// Runs the child until it has had `transactions` acknowledged beyond its first line, and kills it; the last Id
/// acknowledged, 0 if none.
fn write_until_killed(folder: &Folder, transactions: u32) -> i64 {
    let mut child = thawdb(&["demo-writer", "--database", "kills", "--memory", "128MB", "--data", folder.text()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut acknowledged = 0;
    let mut lines = 0;
    for line in output.lines() {
        // The last line may be cut by the kill: a prefix of a number is smaller than the one before it.
        acknowledged = acknowledged.max(line.unwrap().parse().unwrap_or(0));
        lines += 1;
        if lines >= transactions {
            child.kill().unwrap();
        }
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "the child was killed, it did not end");
    assert!(lines >= transactions, "the child ended by itself after {lines} lines");
    acknowledged
}

/// Rows in the table; panics if one is missing, wrong, or of a half transaction.
fn verify(session: &mut Session, acknowledged: i64, kill: u32) -> i64 {
    let results = session.execute("SELECT Id, Batch, Payload FROM dbo.Acknowledged ORDER BY Id").unwrap();
    let mut found = 0;
    for row in results.sets[0].rows() {
        found += 1;
        let batch = (found - 1) / ROWS_PER_TRANSACTION;
        let wanted = (Some(found), Some(batch), Some(format!("row {found} of transaction {batch}")));
        assert_eq!((row[0].as_i64(), row[1].as_i64(), row[2].as_text().map(str::to_owned)), wanted, "kill {kill}");
    }
    assert!(found >= acknowledged, "kill {kill}: {acknowledged} rows were acknowledged, {found} are there");
    assert_eq!(found % ROWS_PER_TRANSACTION, 0, "kill {kill}: half a transaction is there");
    found
}

#[test]
fn fifty_kills_lose_nothing() {
    let folder = Folder::new("kills");
    let instance = thawdb::open(folder.path(), options()).unwrap();
    let mut session = instance.session();
    for text in [
        "CREATE DATABASE kills",
        "USE kills",
        "CREATE TABLE dbo.Acknowledged (Id int NOT NULL PRIMARY KEY, Batch int NOT NULL, Payload nvarchar(100) NOT NULL)",
        "CREATE INDEX IX_Acknowledged_Batch ON dbo.Acknowledged (Batch)",
    ] {
        session.execute(text).unwrap();
    }
    drop(session);
    instance.close().unwrap();
    drop(instance);
    let mut rows = 0;
    for kill in 0..KILL_COUNT {
        // 0, 1, 4, 9, 16, 25, ... up to 484: early ones meet recovery's own first pages, late ones a checkpoint.
        let wave = kill % 23;
        let acknowledged = write_until_killed(&folder, wave * wave);
        let instance = thawdb::open(folder.path(), options()).unwrap();
        let mut session = instance.session();
        session.execute("USE kills").unwrap();
        let found = verify(&mut session, acknowledged.max(rows), kill);
        assert!(found >= rows, "kill {kill}: rows of an earlier run are gone");
        rows = found;
        let check = session.execute("DBCC CHECKDB (N'kills')").unwrap();
        assert!(check.messages.iter().all(|message| message.is_informational()), "kill {kill}: {:?}", check.messages);
        drop(session);
        instance.close().unwrap();
    }
    assert!(rows > 10_000, "{rows} rows were written in all");
}
