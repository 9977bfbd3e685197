//! Reads of one row and steps that only compute: by the short ways, with what the long ways show.

use crate::script::{fresh_engine, said};
use crate::transcript::Transcript;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thawdb_engine::{Parameter, Session};
use thawdb_types::{Scalar, SqlType};

fn called(session: &mut Session, procedure: &str, parameters: &[Parameter]) -> Vec<String> {
    let mut transcript = Transcript::default();
    session.execute_rpc(procedure, parameters, &mut transcript);
    transcript.lines
}

fn text(value: &str) -> Parameter {
    Parameter::input("", SqlType::NVARCHAR_MAX, Scalar::text(value))
}

fn int(value: i32) -> Parameter {
    Parameter::input("", SqlType::Int, Scalar::Int(value))
}

fn prepare(session: &mut Session, declarations: &str, statement: &str) -> i32 {
    let handle = Parameter { output: true, ..Parameter::input("", SqlType::Int, Scalar::Null) };
    let lines = called(session, "sp_prepare", &[handle, text(declarations), text(statement)]);
    let value = lines.iter().find_map(|line| line.strip_prefix("value 0  int: ")).unwrap_or_else(|| panic!("{lines:?}"));
    value.parse().unwrap()
}

const TABLE: &str = "CREATE TABLE t (
    id int NOT NULL, part varchar(10) COLLATE Latin1_General_CI_AS NOT NULL, n int NULL, d decimal(9, 2), s nvarchar(20), f char(4), g money,
    w datetime2(3), b varbinary(max), x float, u uniqueidentifier, e datetimeoffset, CONSTRAINT pk PRIMARY KEY (id, part))
  INSERT t VALUES (1, 'One', 10, 1.25, N'éa', 'ab', 5.5, '2024-01-02 03:04:05.678', 0x0102, 1.5, '6F9619FF-8B86-D011-B42D-00C04FC964FF',
    '2024-01-02 03:04:05 +02:00'), (2, 'two', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (3, 'x', 0, 0, N'', '', 0, NULL, 0x, 0, NULL, NULL)
  INSERT t (id, part, b) VALUES (4, 'big', CONVERT(varbinary(max), REPLICATE(CONVERT(varchar(max), 'z'), 20000)))
  CREATE TABLE k (id int PRIMARY KEY, v int)
  INSERT k VALUES (1, 100), (2, 200)";

/// The short way and the long way say the same: SET ROWCOUNT keeps a statement off the short one.
#[test]
fn one_row_is_read_alike_both_ways() {
    let (engine, _) = fresh_engine("point-alike");
    let mut session = engine.internal_session();
    said(&mut session, TABLE);
    for statement in [
        "SELECT * FROM t WHERE id = 1 AND part = 'one'",
        "SELECT id, part, n FROM t WHERE id = 1 AND part = 'ONE'",
        "SELECT * FROM t WHERE id = 2 AND part = 'two'",
        "SELECT * FROM t WHERE id = 3 AND part = 'x'",
        "SELECT DATALENGTH(b) AS bytes, id FROM t WHERE id = 4 AND part = 'big'",
        "SELECT n + 1 AS n1, UPPER(s) AS s, d * 2 AS d2, CONVERT(varchar(30), w, 126) AS w FROM t WHERE id = 1 AND part = 'one'",
        "SELECT 1 / n AS r FROM t WHERE id = 3 AND part = 'x' PRINT @@ERROR",
        "SELECT n FROM t WHERE id = 1 AND part = 'one' AND n > 10",
        "SELECT n FROM t WHERE id = 1 AND part = 'one' AND n >= 10 AND s LIKE N'%a'",
        "SELECT n FROM t WHERE id = 77 AND part = 'one'",
        "SELECT n FROM t WHERE id = NULL AND part = 'one'",
        "DECLARE @k int SELECT n FROM t WHERE id = @k AND part = 'one' SELECT @@ROWCOUNT AS c",
        "DECLARE @k int = 1, @p varchar(3) = 'one', @n int, @s nvarchar(5) SELECT @n = n, @s = s FROM t WHERE id = @k AND part = @p SELECT @n AS n, @s AS s, @@ROWCOUNT AS c",
        "DECLARE @n int = 7 SELECT @n = n FROM t WHERE id = 5 AND part = 'one' SELECT @n AS n, @@ROWCOUNT AS c",
        "DECLARE @n int = 7 SELECT @n = @n + v FROM k WHERE id = 2 SELECT @n AS n",
        "DECLARE @a int = 1, @b int = 5 SELECT @a = v, @b = @a FROM k WHERE id = 2 SELECT @a AS a, @b AS b",
        "DECLARE @t tinyint BEGIN TRY SELECT @t = v * 10 FROM k WHERE id = 1 END TRY BEGIN CATCH SELECT ERROR_NUMBER() AS e END CATCH SELECT @t AS t",
        "BEGIN TRAN UPDATE k SET v = 101 WHERE id = 1 SELECT v FROM k WHERE id = 1 DELETE k WHERE id = 2 SELECT v FROM k WHERE id = 2 INSERT k VALUES (3, 1) SELECT v FROM k WHERE id = 3 ROLLBACK SELECT v FROM k WHERE id = 1",
        "SET NOCOUNT ON SELECT v FROM k WHERE id = 1 SELECT @@ROWCOUNT AS c SET NOCOUNT OFF",
        "SELECT v, (SELECT COUNT(*) FROM t) AS c FROM k WHERE id = 1",
        "SELECT v FROM k WITH (NOLOCK) WHERE id = 1 SELECT v FROM k WITH (UPDLOCK) WHERE id = 1",
        "DECLARE @h bigint = 3000000000 SELECT v FROM k WHERE id = @h",
        "SELECT v FROM k WHERE id = 1.0 SELECT v FROM k WHERE id = '2' SELECT v FROM k WHERE id = 'two'",
        "SELECT v, v AS again, id FROM k WHERE id IN (1, 1)",
    ] {
        let long = said(&mut session, &format!("SET ROWCOUNT 1000\n{statement}"));
        said(&mut session, "SET ROWCOUNT 0");
        let line = |lines: Vec<String>| lines.into_iter().map(|line| line.replace("Line 2", "Line 1")).collect::<Vec<_>>();
        for time in 1..=3 {
            assert_eq!(line(said(&mut session, statement)), line(long.clone()), "time {time} of {statement}");
        }
    }
}

/// Updates of one row: by its key alone, and with SET ROWCOUNT by the operators for any number of rows.
#[test]
fn one_row_is_changed_alike_both_ways() {
    let (engine, _) = fresh_engine("point-update");
    let mut session = engine.internal_session();
    said(&mut session, TABLE);
    said(
        &mut session,
        "CREATE INDEX ix_n ON t (n) INCLUDE (x) ALTER TABLE t ADD late int NULL, later varchar(5) NOT NULL DEFAULT 'abc'
         CREATE TABLE c (id int PRIMARY KEY, v int CHECK (v < 1000), parent int REFERENCES k (id)) INSERT c VALUES (1, 5, 1)",
    );
    said(&mut session, "CREATE TRIGGER tr ON c AFTER UPDATE AS PRINT 'fired'");
    for statement in [
        "UPDATE t SET g = g + 1, s = s + N'x', late = 5 WHERE id = 1 AND part = 'ONE'",
        "UPDATE t SET d = 99.999, f = 'z', u = NULL WHERE id = 1 AND part = 'one'",
        "UPDATE t SET n = n + 1 WHERE id = 1 AND part = 'one' SELECT id FROM t WHERE n = 11",
        "UPDATE t SET x = 7 WHERE id = 1 AND part = 'one'",
        "UPDATE t SET part = 'uno' WHERE id = 1 AND part = 'one'",
        "UPDATE t SET s = N'far too long for this column' WHERE id = 1 AND part = 'one'",
        "UPDATE t SET d = 12345678.9 WHERE id = 1 AND part = 'one'",
        "UPDATE t SET later = NULL WHERE id = 1 AND part = 'one'",
        "UPDATE t SET late = 1 / n WHERE id = 3 AND part = 'x'",
        "UPDATE t SET late = 1, later = 'cba' WHERE id = 1 AND part = 'one' AND n > 10",
        "UPDATE t SET late = 1, later = 'cba' WHERE id = 1 AND part = 'one' AND n = 10",
        "UPDATE t SET late = 1 WHERE id = 9 AND part = 'one' SELECT @@ROWCOUNT AS c",
        "UPDATE t SET late = 1 WHERE id = NULL AND part = 'one'",
        "UPDATE t SET late = DATALENGTH(b) WHERE id = 4 AND part = 'big'",
        "UPDATE t SET b = CONVERT(varbinary(max), REPLICATE(CONVERT(varchar(max), 'y'), 9000)) WHERE id = 1 AND part = 'one' SELECT DATALENGTH(b) AS bytes FROM t WHERE id = 1",
        "UPDATE t SET late = 3 OUTPUT deleted.late, inserted.late WHERE id = 1 AND part = 'one'",
        "UPDATE k SET v = v * 2 WHERE id = 1 UPDATE k SET v = v * 2 WHERE id = 1 SELECT v FROM k WHERE id = 1",
        "DECLARE @v int UPDATE k SET @v = v = v + 5 WHERE id = 1 SELECT @v AS v",
        "UPDATE c SET v = 6 WHERE id = 1",
        "UPDATE c SET v = 2000 WHERE id = 1",
        "UPDATE c SET parent = 77 WHERE id = 1",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE UPDATE k SET v = 0 WHERE id = 1 UPDATE k SET v = 0 WHERE id = 50",
        "BEGIN TRY UPDATE t SET later = 'much too long' WHERE id = 1 AND part = 'one' END TRY BEGIN CATCH SELECT ERROR_NUMBER() AS e END CATCH",
    ] {
        let run = |session: &mut Session, before: &str| {
            let mut lines = said(session, &format!("BEGIN TRAN {before}\n{statement}"));
            said(session, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED SET ROWCOUNT 0");
            lines.extend(said(session, "SELECT id, part, n, d, s, f, g, w, x, u, e, late, later, DATALENGTH(b) AS b FROM t ORDER BY id SELECT * FROM k SELECT * FROM c"));
            lines.extend(said(session, "IF @@TRANCOUNT > 0 ROLLBACK"));
            lines
        };
        let long = run(&mut session, "SET ROWCOUNT 1000");
        for time in 1..=2 {
            assert_eq!(run(&mut session, ""), long, "time {time} of {statement}");
        }
    }
}

#[test]
fn a_short_update_waits_and_meets_others_as_any_other() {
    let (engine, _) = fresh_engine("point-update-waits");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, TABLE);
    said(&mut a, "BEGIN TRAN UPDATE k SET v = 1 WHERE id = 1");
    assert!(said(&mut b, "SET LOCK_TIMEOUT 20 UPDATE k SET v = 2 WHERE id = 1")[0].starts_with("Msg 1222"));
    let waiting = std::thread::spawn(move || {
        let lines = said(&mut b, "SET LOCK_TIMEOUT -1 UPDATE k SET v = v + 10 WHERE id = 1 AND v = 1");
        (lines, b)
    });
    said(&mut a, "COMMIT");
    let (lines, mut b) = waiting.join().expect("no panic");
    assert_eq!(lines, ["done 1"], "the newest committed row is what it changed");
    assert_eq!(said(&mut a, "SELECT v FROM k WHERE id = 1")[1], "11");
    // A row that is not wanted does not stay locked; one that is not there neither.
    said(&mut a, "BEGIN TRAN UPDATE k SET v = 5 WHERE id = 2 AND v = 1 UPDATE k SET v = 5 WHERE id = 3");
    assert_eq!(said(&mut b, "SET LOCK_TIMEOUT 0 UPDATE k SET v = 6 WHERE id = 2 INSERT k VALUES (3, 3)"), ["done 1", "done 1"]);
    said(&mut a, "COMMIT");
    // Under SNAPSHOT a row changed since is 3960.
    said(&mut a, "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
    said(&mut b, "SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN SELECT v FROM k WHERE id = 1");
    said(&mut a, "UPDATE k SET v = 12 WHERE id = 1");
    assert!(said(&mut b, "UPDATE k SET v = 13 WHERE id = 1")[0].starts_with("Msg 3960"));
}

#[test]
fn recompiled_statements_leave_no_plan() {
    let (engine, _) = fresh_engine("point-recompile");
    let mut session = engine.internal_session();
    said(&mut session, TABLE);
    for _ in 0..3 {
        assert_eq!(said(&mut session, "SELECT v FROM k WHERE id = 1 OPTION (RECOMPILE)")[1], "100");
        assert_eq!(said(&mut session, "SELECT v FROM k WHERE id = 2")[1], "200");
    }
    let plans = "SELECT COUNT(*) AS plans, SUM(usecounts) AS uses FROM sys.dm_exec_cached_plans AS p CROSS APPLY sys.dm_exec_sql_text(p.plan_handle) AS x WHERE x.text LIKE N'SELECT v FROM k WHERE id = ";
    assert_eq!(said(&mut session, &format!("{plans}%OPTION%'"))[1], "0 | NULL");
    assert_eq!(said(&mut session, &format!("{plans}@%'"))[1], "1 | 3");
    let stats = "SELECT s.execution_count, s.total_rows, s.last_rows, s.max_rows FROM sys.dm_exec_query_stats AS s CROSS APPLY sys.dm_exec_sql_text(s.sql_handle) AS x WHERE x.text LIKE N'SELECT v FROM k WHERE id = @%'";
    assert_eq!(said(&mut session, stats)[1], "3 | 3 | 1 | 1");
    assert_eq!(
        said(
            &mut session,
            "SELECT COUNT(*) AS c FROM sys.dm_exec_query_stats WHERE total_elapsed_time < max_elapsed_time OR max_elapsed_time < min_elapsed_time"
        )[1],
        "0"
    );
    said(&mut session, "DBCC FREEPROCCACHE");
    assert_eq!(said(&mut session, &format!("{plans}@%'"))[1], "0 | NULL");
}

/// A DECLARE that makes something each time it is reached is no step that only computes.
#[test]
fn tables_of_a_type_are_made_each_time() {
    let (engine, _) = fresh_engine("point-table-types");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TYPE ids AS TABLE (id int)");
    for _ in 0..3 {
        let batch = "DECLARE @n int, @t ids INSERT @t VALUES (1), (2) SELECT @n = COUNT(*) FROM @t SELECT @n AS n";
        assert_eq!(said(&mut session, batch), ["done 2", "[n int]", "2", "done 1"]);
    }
    said(
        &mut session,
        "CREATE TABLE d (id int PRIMARY KEY, v int, twice AS v * 2, thrice AS v * 3 PERSISTED, r rowversion) INSERT d (id, v) VALUES (1, 1)",
    );
    for v in 2..5 {
        said(&mut session, &format!("UPDATE d SET v = {v} WHERE id = 1"));
        for _ in 0..2 {
            let row = said(&mut session, "SELECT v, twice, thrice, CONVERT(bigint, r) AS r FROM d WHERE id = 1");
            assert!(row[1].starts_with(&format!("{v} | {} | {} | ", v * 2, v * 3)), "{row:?}");
        }
    }
    let versions = said(
        &mut session,
        "DECLARE @a bigint, @b bigint SELECT @a = CONVERT(bigint, r) FROM d WHERE id = 1 UPDATE d SET v = 9 WHERE id = 1 SELECT @b = CONVERT(bigint, r) FROM d WHERE id = 1 IF @b > @a PRINT 'later'",
    );
    assert_eq!(versions.last().map(String::as_str), Some("info 0: later"), "{versions:?}");
}

#[test]
fn texts_that_differ_in_a_literal_share_a_plan() {
    let (engine, _) = fresh_engine("point-simple");
    let mut session = engine.internal_session();
    said(&mut session, TABLE);
    said(&mut session, "CREATE TABLE p (code varchar(20) PRIMARY KEY, v int) INSERT p VALUES ('a', 1), ('b', 2)");
    for round in 0..3 {
        for id in 1..=2 {
            let expected = ["[v int, c int]".to_owned(), format!("{}00 | 7", id), "done 1".to_owned()];
            assert_eq!(said(&mut session, &format!("SELECT v, c = 7 FROM k WHERE id = {id}")), expected, "round {round}");
        }
        assert_eq!(said(&mut session, &format!("SELECT v FROM k WHERE id = {}", 70 + round)), ["[v int]", "done 0"]);
        assert_eq!(said(&mut session, "SELECT v FROM p WHERE code = 'B'")[1], "2");
        assert_eq!(said(&mut session, &format!("SELECT v FROM p WHERE code = 'no such {round}'")).len(), 2);
        // Not for one row: as written.
        assert_eq!(
            said(&mut session, &format!("SELECT COUNT(*) AS c FROM k WHERE v = {}", 100 + round))[1],
            if round == 0 { "1" } else { "0" }
        );
        let wrong = said(&mut session, &format!("SELECT v FROM k WHERE id = 'word{round}'"));
        assert!(wrong.iter().any(|line| line.starts_with("Msg 245,") && line.contains(&format!("'word{round}'"))), "{wrong:?}");
        assert!(
            said(&mut session, &format!("SELECT nothing FROM k WHERE id = {round}"))[0].starts_with("Msg 207, Level 16, State 1, Line 1")
        );
    }
    let plans = "SELECT objtype, usecounts FROM sys.dm_exec_cached_plans AS p CROSS APPLY sys.dm_exec_sql_text(p.plan_handle) AS x WHERE x.text LIKE N'SELECT v, c = 7%'";
    assert_eq!(said(&mut session, plans)[1..], ["Prepared | 6", "done 1"]);
}

#[test]
fn a_short_read_sees_what_is_committed() {
    let (engine, _) = fresh_engine("point-committed");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, TABLE);
    let read = "SELECT v FROM k WHERE id = 1";
    let sees = |session: &mut Session, v: &str| assert_eq!(said(session, read), ["[v int]", v, "done 1"]);
    for _ in 0..2 {
        sees(&mut b, "100");
    }
    said(&mut a, "BEGIN TRAN UPDATE k SET v = 111 WHERE id = 1");
    sees(&mut b, "100");
    sees(&mut a, "111");
    said(&mut a, "SAVE TRAN s UPDATE k SET v = 112 WHERE id = 1");
    sees(&mut a, "112");
    said(&mut a, "ROLLBACK TRAN s");
    sees(&mut a, "111");
    said(&mut a, "COMMIT");
    sees(&mut b, "111");
    // SNAPSHOT keeps to its own view, READ COMMITTED without versions waits.
    said(&mut a, "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
    said(&mut b, "SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN");
    sees(&mut b, "111");
    said(&mut a, "UPDATE k SET v = 113 WHERE id = 1");
    sees(&mut b, "111");
    said(&mut b, "COMMIT SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    sees(&mut b, "113");
    said(&mut b, "BEGIN TRAN");
    sees(&mut b, "113");
    let lines = said(&mut b, "SET TRANSACTION ISOLATION LEVEL SNAPSHOT SELECT v FROM k WHERE id = 1");
    assert!(lines[0].starts_with("Msg 3951"), "the transaction began at another level: {lines:?}");
}

/// The table is dropped and made again under readers with a prepared statement: each read finds the one row of one of the
/// tables there were, never an older one than before, and never none.
#[test]
fn prepared_reads_beside_definitions() {
    let (engine, _) = fresh_engine("point-definitions");
    let mut writer = engine.internal_session();
    said(&mut writer, "CREATE TABLE t (id int PRIMARY KEY, v int) INSERT t VALUES (1, 0)");
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (mut session, stop) = (engine.internal_session(), stop.clone());
            std::thread::spawn(move || {
                let handle = prepare(&mut session, "@id int", "SELECT v FROM t WHERE id = @id");
                let (mut last, mut reads) = (0, 0);
                while !stop.load(Ordering::Relaxed) {
                    let lines = called(&mut session, "sp_execute", &[int(handle), int(1)]);
                    assert!(lines.len() == 5 && lines[2] == "done-in-proc 1", "{lines:?}");
                    let now: i32 = lines[1].parse().unwrap();
                    assert!(now >= last, "{now} after {last}");
                    (last, reads) = (now, reads + 1);
                }
                reads
            })
        })
        .collect();
    for round in 1..=25 {
        let columns =
            if round % 2 == 0 { "id int PRIMARY KEY, v int" } else { "w varchar(20) NULL, v bigint, id int NOT NULL PRIMARY KEY" };
        let made = format!("BEGIN TRAN DROP TABLE t CREATE TABLE t ({columns}) INSERT t (id, v) VALUES (1, {round}) COMMIT");
        assert!(!said(&mut writer, &made).iter().any(|line| line.starts_with("Msg")));
        said(&mut writer, "ALTER TABLE t ADD z int NULL");
        said(&mut writer, &format!("BEGIN TRAN TRUNCATE TABLE t INSERT t (id, v) VALUES (1, {round}) COMMIT"));
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.join().expect("no panic") > 0);
    }
}

#[test]
fn a_ready_handle_runs_as_the_first_time() {
    let (engine, _) = fresh_engine("point-ready");
    let mut session = engine.internal_session();
    said(&mut session, TABLE);
    let statement = "DECLARE @seen int SELECT @seen = ISNULL(@seen, 0) + 1 SELECT @a AS a, @s AS s, @seen AS seen RETURN";
    let handle = prepare(&mut session, "@a tinyint, @s varchar(3)", statement);
    let expected = |a: &str, s: &str| vec!["[a tinyint, s varchar(3), seen int]".to_owned(), format!("{a} | {s} | 1")];
    for _ in 0..3 {
        let lines = called(&mut session, "sp_execute", &[int(handle), int(7), text("abcdef")]);
        assert_eq!(lines[..2], expected("7", "abc"), "{lines:?}");
        let null = Parameter::input("@s", SqlType::NVARCHAR_MAX, Scalar::Null);
        let lines = called(&mut session, "sp_execute", &[int(handle), int(8), null]);
        assert_eq!(lines[..2], expected("8", "NULL"));
        assert!(called(&mut session, "sp_execute", &[int(handle), int(300), text("")])[0].starts_with("Msg 8114") || !lines.is_empty());
        assert!(called(&mut session, "sp_execute", &[int(handle), int(1)])[0].starts_with("Msg 8178"), "an argument is missing");
    }
    // Of another meaning under other settings, and back.
    let nulls = prepare(&mut session, "@n int", "SELECT COUNT(*) AS c FROM t WHERE n = @n");
    let null = Parameter::input("", SqlType::Int, Scalar::Null);
    for (setting, count) in [("ON", "0"), ("OFF", "2"), ("ON", "0"), ("OFF", "2")] {
        said(&mut session, &format!("SET ANSI_NULLS {setting}"));
        for _ in 0..2 {
            assert_eq!(called(&mut session, "sp_execute", &[int(nulls), null.clone()])[1], count, "{setting}");
        }
    }
    said(&mut session, "SET ANSI_NULLS ON");
    // Recursion through its own handle ends with 217, and the handle is good afterwards.
    let own =
        prepare(&mut session, "@h int, @more int", "IF @more > 0 BEGIN SET @more -= 1 EXEC sp_execute @h, @h, @more END SELECT @more AS m");
    for _ in 0..2 {
        let lines = called(&mut session, "sp_execute", &[int(own), int(own), int(2)]);
        assert_eq!(lines.iter().filter(|line| *line == "[m int]").count(), 3, "{lines:?}");
    }
    called(&mut session, "sp_unprepare", &[int(handle)]);
    assert!(called(&mut session, "sp_execute", &[int(handle), int(7), text("")])[0].starts_with("Msg 8179"));
}

#[test]
fn loops_count_and_fail_as_statements_do() {
    let (engine, _) = fresh_engine("point-loops");
    let mut session = engine.internal_session();
    let value = |session: &mut Session, batch: &str| said(session, batch);
    for _ in 0..2 {
        let batch = "DECLARE @i int = 0, @s bigint = 0 WHILE @i < 1000 BEGIN SET @i += 1 IF @i % 2 = 0 CONTINUE SET @s += @i END SELECT @i AS i, @s AS s, @@ROWCOUNT AS c";
        assert_eq!(value(&mut session, batch)[1], "1000 | 250000 | 0");
        let batch = "DECLARE @t int = 2147483642 BEGIN TRY WHILE 1 = 1 SET @t += 1 END TRY BEGIN CATCH SELECT ERROR_NUMBER() AS e, ERROR_LINE() AS l, @t AS t END CATCH";
        assert_eq!(value(&mut session, batch)[1], "8115 | 1 | 2147483647");
        let batch = "DECLARE @d int = 3 WHILE @d >= 0\nBEGIN\nPRINT 6 / @d\nSET @d -= 1\nEND";
        let lines = value(&mut session, batch);
        assert_eq!(lines[..3], ["info 0: 2", "info 0: 3", "info 0: 6"]);
        assert!(lines[3].starts_with("Msg 8134, Level 16, State 1, Line 3"), "{lines:?}");
        let batch = "DECLARE @x int\nSET @x = 1 / 0\nSELECT @@ERROR AS e, @x AS x\nIF 1 / 0 = 1 PRINT 'then' ELSE PRINT 'else'";
        let lines = value(&mut session, batch);
        assert!(lines[0].starts_with("Msg 8134, Level 16, State 1, Line 2") && lines[3] == "8134 | NULL", "{lines:?}");
        assert!(lines[5].starts_with("Msg 8134, Level 16, State 1, Line 4"), "{lines:?}");
        let batch = "IF GETDATE() > '2000-01-01' AND @@TRANCOUNT = 0 AND DB_ID() > 0 PRINT 'now'";
        assert_eq!(value(&mut session, batch), ["info 0: now"]);
        let batch = "DECLARE @n int IF @n = NULL PRINT 'equal' ELSE PRINT 'unknown' SET ANSI_NULLS OFF";
        assert_eq!(value(&mut session, batch), ["info 0: unknown"]);
        assert_eq!(value(&mut session, batch), ["info 0: equal"]);
        said(&mut session, "SET ANSI_NULLS ON");
        let batch =
            "DECLARE @c int = (SELECT COUNT(*) FROM sys.databases WHERE name = 'tempdb') IF EXISTS (SELECT 1) SET @c += 1 SELECT @c AS c";
        assert_eq!(value(&mut session, batch)[1], "2");
    }
}
