//! The embedding API: streams, cancellation, errors, and what is left of them.

use crate::support::Folder;
use std::time::Duration;
use thawdb::{Options, Parameter, Scalar, SqlType, StreamItem};

fn open(folder: &Folder) -> thawdb::Instance {
    thawdb::open(folder.path(), Options { memory_bytes_max: 128 << 20, ..Options::default() }).unwrap()
}

#[test]
fn results_messages_and_errors_of_a_batch() {
    let folder = Folder::new("embed-results");
    let instance = open(&folder);
    let mut session = instance.session();
    let results = session.run("PRINT 'hello' SELECT 1 AS a UNION ALL SELECT 2 SELECT 1 / 0 SELECT N'after' AS b");
    assert_eq!(results.messages.iter().map(|m| m.number).collect::<Vec<_>>(), [0, 8134]);
    assert_eq!(results.first_error().map(|e| (e.number, e.severity, e.line)), Some((8134, 16, 1)));
    assert_eq!(results.sets.first().map(|set| set.row_count()), Some(2));
    assert_eq!(results.sets.last().unwrap().value(0, 0), Scalar::text("after"));
    assert_eq!(session.execute("SELECT * FROM dbo.nonesuch").unwrap_err().number, 208);
    let answer = session.execute_with("SELECT @a * 2", &[Parameter::input("@a", SqlType::Int, Scalar::Int(21))]).unwrap();
    assert_eq!(answer.scalar(), Some(Scalar::Int(42)));
    drop(session);
    instance.close().unwrap();
}

#[test]
fn a_stream_given_up_leaves_the_session_ready() {
    let folder = Folder::new("embed-stream");
    let instance = open(&folder);
    let mut session = instance.session();
    session.execute("CREATE TABLE #n (i int NOT NULL)").unwrap();
    session.execute("DECLARE @i int = 0 WHILE @i < 2000 BEGIN INSERT #n VALUES (@i) SET @i = @i + 1 END").unwrap();
    let mut rows = 0;
    for item in session.stream("SELECT a.i, b.i FROM #n a CROSS JOIN #n b") {
        if let StreamItem::Rows(batch) = item.unwrap() {
            rows += batch.num_rows();
            break;
        }
    }
    assert!(rows > 0 && rows < 4_000_000);
    let all: usize =
        session.stream("SELECT i FROM #n").map(|item| if let Ok(StreamItem::Rows(batch)) = item { batch.num_rows() } else { 0 }).sum();
    assert_eq!(all, 2000);
}

#[test]
fn a_statement_without_end_is_cancelled() {
    let folder = Folder::new("embed-cancel");
    let instance = open(&folder);
    let mut session = instance.session();
    let cancel = session.cancel_token();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel();
    });
    let results = session.run("WHILE 1 = 1 DECLARE @n int = 1");
    canceller.join().unwrap();
    assert!(results.cancelled);
    assert_eq!(session.execute("SELECT 1").unwrap().scalar(), Some(Scalar::Int(1)));
}

#[test]
fn a_transaction_ends_with_its_session() {
    let folder = Folder::new("embed-transaction");
    let instance = open(&folder);
    let mut session = instance.session();
    for text in ["CREATE DATABASE d", "USE d", "CREATE TABLE dbo.t (i int)", "BEGIN TRANSACTION", "INSERT dbo.t VALUES (1)"] {
        session.execute(text).unwrap();
    }
    assert_eq!(session.execute("SELECT COUNT(*) FROM dbo.t").unwrap().scalar(), Some(Scalar::Int(1)));
    drop(session);
    let mut session = instance.session();
    session.execute("USE d").unwrap();
    assert_eq!(session.execute("SELECT COUNT(*) FROM dbo.t").unwrap().scalar(), Some(Scalar::Int(0)));
}
