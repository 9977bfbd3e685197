//! Remote calls, bulk loads, cancellation, the client's transaction manager, connection reset.

use crate::script::{fresh_engine, said};
use crate::transcript::Transcript;
use arrow_array::{ArrayRef, Int32Array, StringArray};
use std::sync::Arc;
use thawdb_engine::{Batch, Isolation, Parameter, Session};
use thawdb_types::{Scalar, SqlType};

fn called(session: &mut Session, procedure: &str, parameters: &[Parameter]) -> Vec<String> {
    let mut transcript = Transcript::default();
    session.execute_rpc(procedure, parameters, &mut transcript);
    assert!(transcript.last.is_some_and(|last| !last.more));
    transcript.lines
}

fn text(value: &str) -> Parameter {
    Parameter::input("", SqlType::NVARCHAR_MAX, Scalar::text(value))
}

fn int(name: &str, value: i32) -> Parameter {
    Parameter::input(name, SqlType::Int, Scalar::Int(value))
}

#[test]
fn a_text_with_parameters() {
    let (engine, _) = fresh_engine("rpc");
    let mut session = engine.internal_session();
    let parameters = [
        text("SELECT @a + 1 AS r SET @b = @a * 2"),
        text("@a int, @b int OUTPUT"),
        int("@a", 20),
        Parameter { output: true, ..Parameter::input("@b", SqlType::Int, Scalar::Null) },
    ];
    let expected = ["[r int]", "21", "done-in-proc 1", "status 0", "value 3 @b int: 40", "done-proc"];
    assert_eq!(called(&mut session, "sp_executesql", &parameters), expected);
    let missing = called(&mut session, "sp_nothing", &[]);
    assert_eq!(missing, ["Msg 2812, Level 16, State 62, Line 0: Could not find stored procedure 'sp_nothing'.", "done-proc error"]);
    assert!(called(&mut session, "sp_cursoropen", &[])[0].contains("sp_cursoropen"));
}

#[test]
fn a_procedure_of_the_catalog() {
    let (engine, _) = fresh_engine("rpc-procedure");
    let mut session = engine.internal_session();
    let made =
        said(&mut session, "CREATE PROC p @a int, @b nvarchar(10) = N'none', @c int OUTPUT AS SELECT @b AS b SET @c = @a + @c RETURN 9");
    assert_eq!(made, Vec::<String>::new());
    let parameters = [int("@a", 20), Parameter { output: true, ..int("@c", 22) }];
    let expected = ["[b nvarchar(10)]", "none", "done-in-proc 1", "status 9", "value 1 @c int: 42", "done-proc"];
    assert_eq!(called(&mut session, "dbo.p", &parameters), expected);
    assert!(called(&mut session, "[p]", &[int("", 1)])[0].starts_with("Msg 201,"));
    assert!(called(&mut session, "p", &[int("@x", 1)])[0].starts_with("Msg 8145,"));
}

#[test]
fn prepared_texts_live_until_they_are_given_back() {
    let (engine, _) = fresh_engine("prepared");
    let mut session = engine.internal_session();
    let handle = Parameter { output: true, ..int("", 0) };
    let said = called(&mut session, "sp_prepexec", &[handle, text("@p nvarchar(10)"), text("SELECT @p AS p"), text("x")]);
    assert_eq!(said, ["[p nvarchar(10)]", "x", "done-in-proc 1", "status 0", "value 0  int: 1", "done-proc"]);
    let again = called(&mut session, "sp_execute", &[int("", 1), text("y")]);
    assert_eq!(again, ["[p nvarchar(10)]", "y", "done-in-proc 1", "status 0", "done-proc"]);
    assert_eq!(called(&mut session, "sp_unprepare", &[int("", 1)]), ["status 0", "done-proc"]);
    assert!(called(&mut session, "sp_execute", &[int("", 1)])[0].starts_with("Msg 8179"));
}

#[test]
fn rows_by_bulk_load() {
    let (engine, _) = fresh_engine("bulk");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TABLE t (id int NOT NULL PRIMARY KEY, v varchar(10) DEFAULT 'd', n int NULL)");
    said(&mut session, "INSERT BULK t (id int, v varchar(10)) WITH (TABLOCK)");
    let batch = |from: i32, texts: [Option<&str>; 3]| {
        let ids: ArrayRef = Arc::new(Int32Array::from(vec![from, from + 1, from + 2]));
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        Batch { columns: vec![ids, texts], row_count: 3 }
    };
    let mut transcript = Transcript::default();
    let mut loader = session.bulk_load().expect("announced");
    assert_eq!(loader.columns().iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["id", "v"]);
    loader.push(batch(1, [Some("a"), None, Some("c")])).expect("taken");
    loader.push(batch(10, [Some("x"), Some("y"), Some("z")])).expect("taken");
    loader.finish(&mut transcript);
    assert_eq!(transcript.lines, ["done 6"]);
    let rows = said(&mut session, "SELECT id, v, n FROM t ORDER BY id");
    assert_eq!(rows[1..7], ["1 | a | NULL", "2 | d | NULL", "3 | c | NULL", "10 | x | NULL", "11 | y | NULL", "12 | z | NULL"]);
    // A load that is dropped, and one that meets a duplicate, leave nothing.
    said(&mut session, "INSERT BULK t (id int, v varchar(10))");
    session.bulk_load().expect("announced").push(batch(20, [None, None, None])).expect("taken");
    said(&mut session, "INSERT BULK t (id int, v varchar(10))");
    let mut loader = session.bulk_load().expect("announced");
    let pushed = loader.push(batch(12, [None, None, None]));
    let mut transcript = Transcript::default();
    loader.finish(&mut transcript);
    let told = pushed.err().map_or(transcript.lines.join("\n"), |error| error.to_string());
    assert!(told.contains("2627"), "{told}");
    assert_eq!(said(&mut session, "SELECT COUNT(*) AS c FROM t"), ["[c int]", "6", "done 1"]);
    assert!(session.bulk_load().is_err(), "nothing was announced");
}

#[test]
fn a_wait_ends_when_it_is_cancelled() {
    let (engine, _) = fresh_engine("cancel");
    let mut session = engine.internal_session();
    said(&mut session, "BEGIN TRAN CREATE TABLE t (a int)");
    let token = session.cancel_token();
    token.cancel();
    assert_eq!(said(&mut session, "SELECT 1 AS a"), ["[a int]", "1", "done 1"], "a cancellation while idle does nothing");
    let worker = std::thread::spawn(move || {
        let lines = said(&mut session, "WAITFOR DELAY '01:00:00' PRINT 'not reached'");
        (session, lines)
    });
    // The batch may not have begun yet: it is cancelled until it has ended.
    while !worker.is_finished() {
        token.cancel();
        std::thread::yield_now();
    }
    let (mut session, lines) = worker.join().expect("no panic");
    assert_eq!(lines, ["done cancelled"].map(|_| "done error cancelled"));
    assert_eq!(said(&mut session, "SELECT @@TRANCOUNT AS n"), ["[n int]", "1", "done 1"], "the transaction stays");
}

#[test]
fn transactions_of_the_client() {
    let (engine, _) = fresh_engine("manager");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TABLE t (a int)");
    let mut sink = Transcript::default();
    session.begin_transaction(Some(Isolation::ReadCommitted), "outer", &mut sink).expect("begins");
    said(&mut session, "INSERT t VALUES (1)");
    session.save_transaction("here").expect("marks");
    said(&mut session, "INSERT t VALUES (2)");
    session.rollback_transaction("here", false, &mut sink).expect("goes back");
    session.commit_transaction(true, &mut sink).expect("commits and begins");
    said(&mut session, "INSERT t VALUES (3)");
    session.rollback_transaction("", false, &mut sink).expect("rolls back");
    assert_eq!(sink.lines, ["env begin", "env commit", "env begin", "env rollback"]);
    assert_eq!(said(&mut session, "SELECT a FROM t"), ["[a int]", "1", "done 1"]);
    assert_eq!(session.commit_transaction(false, &mut sink).expect_err("none is open").number, 3902);
}

#[test]
fn a_reset_session_is_as_after_login() {
    let (engine, _) = fresh_engine("reset");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TABLE t (a int) CREATE TABLE #x (a int) USE tempdb SET NOCOUNT ON SET DATEFIRST 3");
    said(&mut session, "BEGIN TRAN INSERT master.dbo.t VALUES (1)");
    said(&mut session, "EXEC sp_set_session_context N'who', 1, 1");
    let mut sink = Transcript::default();
    session.reset(false, &mut sink);
    assert_eq!(sink.lines, ["env database master", "env reset"]);
    assert_eq!(said(&mut session, "SELECT @@TRANCOUNT AS n, @@DATEFIRST AS d, DB_NAME() AS b")[1], "0 | 7 | master");
    assert!(said(&mut session, "SELECT * FROM #x")[0].starts_with("Msg 208"));
    assert_eq!(said(&mut session, "SELECT COUNT(*) AS c FROM t"), ["[c int]", "0", "done 1"]);
    let again = said(&mut session, "SELECT SESSION_CONTEXT(N'who') AS w EXEC sp_set_session_context N'who', 2");
    assert_eq!(again[1], "NULL");
    assert!(!again.iter().any(|line| line.starts_with("Msg ")), "{again:?}");
}

#[test]
fn kill_ends_another_session() {
    let (engine, _) = fresh_engine("kill");
    let (mut one, mut other) = (engine.internal_session(), engine.internal_session());
    said(&mut other, "CREATE TABLE t (a int) BEGIN TRAN INSERT t VALUES (1)");
    let id = other.id();
    assert_eq!(said(&mut one, &format!("KILL {id}")), Vec::<String>::new());
    assert!(other.is_ended());
    assert!(said(&mut other, "SELECT 1").iter().any(|line| line.starts_with("Msg 596")));
    drop(other);
    assert!(said(&mut one, &format!("KILL {id}"))[0].starts_with("Msg 6106"));
    assert_eq!(said(&mut one, "SELECT COUNT(*) AS c FROM t"), ["[c int]", "0", "done 1"]);
    let own = one.id();
    assert!(said(&mut one, &format!("KILL {own}"))[0].starts_with("Msg 6104"));
}
