//! Plans of several threads as sessions meet them: settings and hints, isolation levels, many sessions at once, waits.

use crate::asked::{is_done, number};
use crate::script::{config, fresh_engine, said};
use std::sync::Arc;
use std::thread;
use thawdb_engine::{Engine, Session};

const ROWS: i64 = 32_768;
const GROUPS: &str = "SELECT a % 5, COUNT(*), SUM(CAST(a AS bigint)), MIN(b), AVG(c) FROM big GROUP BY a % 5 ORDER BY 1";

/// A table of some hundred pages, and an instance in which nothing is too cheap for several threads.
fn instance(name: &str) -> (Arc<Engine>, Session) {
    let (engine, _) = fresh_engine(name);
    let mut session = engine.internal_session();
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE big (id int PRIMARY KEY, a int NULL, b varchar(40) NULL, c decimal(12,3))",
        "INSERT big VALUES (0, 7, 'x', 1.5)",
    ] {
        is_done(&mut session, sql);
    }
    for half in (0..15).map(|power| 1 << power) {
        let values = format!("id + {half}, NULLIF((id * 7919 + {half}) % 1009, 500), CONCAT('name ', id % 97), id / 3.0");
        is_done(&mut session, &format!("INSERT big SELECT {values} FROM big"));
    }
    is_done(&mut session, "EXEC sp_configure 'cost threshold for parallelism', 0; RECONFIGURE");
    (engine, session)
}

fn shows_parallelism(session: &mut Session, sql: &str) -> bool {
    is_done(session, "SET SHOWPLAN_TEXT ON");
    let plan = said(session, sql);
    is_done(session, "SET SHOWPLAN_TEXT OFF");
    assert!(plan.iter().any(|line| line.contains("Scan(")), "{plan:?}");
    plan.iter().any(|line| line.contains("Parallelism(Gather Streams)"))
}

#[test]
fn settings_and_hints_decide_and_waits_are_counted() {
    let (_, mut session) = instance("parallel-settings");
    let (alone, together) = (format!("{GROUPS} OPTION (MAXDOP 1)"), format!("{GROUPS} OPTION (MAXDOP 2)"));
    assert!(!shows_parallelism(&mut session, &alone) && shows_parallelism(&mut session, &together));
    assert_eq!(said(&mut session, &together), said(&mut session, &alone));
    let waits = "SELECT SUM(waiting_tasks_count) FROM sys.dm_os_wait_stats WHERE wait_type IN ('CXCONSUMER', 'CXPACKET')";
    let before = number(&mut session, waits);
    // A session's thread that never once waits for its workers does not happen.
    (0..50).for_each(|_| is_done(&mut session, &together));
    assert!(number(&mut session, waits) > before);
    is_done(&mut session, "EXEC sp_configure 'max degree of parallelism', 1");
    let value = "SELECT CONCAT(CAST(value AS int), ' ', CAST(value_in_use AS int)) FROM sys.configurations WHERE name = 'max degree of parallelism'";
    assert_eq!(said(&mut session, value)[1], "1 0", "not before RECONFIGURE");
    is_done(&mut session, "RECONFIGURE");
    assert_eq!(said(&mut session, value)[1], "1 1");
    assert!(!shows_parallelism(&mut session, GROUPS) && shows_parallelism(&mut session, &together));
    is_done(&mut session, "EXEC sp_configure 'max degree', 2; EXEC sp_configure 'cost threshold for parallelism', 30000; RECONFIGURE");
    assert!(!shows_parallelism(&mut session, GROUPS) && !shows_parallelism(&mut session, &together));
}

#[test]
fn settings_are_checked_and_outlive_the_instance() {
    let (engine, folder) = fresh_engine("parallel-configure");
    let mut session = engine.internal_session();
    for (sql, error) in [
        ("EXEC sp_configure 'no such', 1", "Msg 15123"),
        ("EXEC sp_configure 'max', 1", "Msg 15124"),
        ("EXEC sp_configure 'max degree of parallelism', -1", "Msg 15129"),
        ("EXEC sp_configure 'cost threshold for parallelism', 40000", "Msg 15129"),
        ("EXEC sp_configure 'user connections', 5", "Msg 40517"),
        ("EXEC sp_configure 'max degree of parallelism', 1, 2", "Msg 8144"),
    ] {
        let lines = said(&mut session, sql);
        assert!(lines.iter().any(|line| line.starts_with(error)), "{sql}: {lines:?}");
    }
    let lines = said(&mut session, "EXEC sp_configure @configname = 'MAX DEGREE OF PARALLELISM', @configvalue = 3");
    assert!(lines.iter().any(|line| line.contains("changed from 0 to 3")), "{lines:?}");
    drop(session);
    engine.close().unwrap();
    drop(engine);
    let engine = Engine::open(config(&folder)).unwrap();
    let in_use = "SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = 'max degree of parallelism'";
    assert_eq!(number(&mut engine.internal_session(), in_use), 3);
    engine.close().unwrap();
}

#[test]
fn every_level_and_every_place_gives_the_same() {
    let (_, mut session) = instance("parallel-levels");
    let expected = said(&mut session, &format!("{GROUPS} OPTION (MAXDOP 1)"));
    for level in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SNAPSHOT", "SERIALIZABLE"] {
        is_done(&mut session, &format!("SET TRANSACTION ISOLATION LEVEL {level}"));
        if level == "SNAPSHOT" {
            is_done(&mut session, "ALTER DATABASE d SET ALLOW_SNAPSHOT_ISOLATION ON");
        }
        assert_eq!(said(&mut session, &format!("{GROUPS} OPTION (MAXDOP 2)")), expected, "{level}");
    }
    is_done(&mut session, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    is_done(&mut session, "CREATE FUNCTION dbo.f() RETURNS int AS BEGIN RETURN (SELECT COUNT(*) FROM big) END");
    assert_eq!(number(&mut session, "SELECT dbo.f()"), ROWS);
    is_done(&mut session, "CREATE TABLE log (n int); CREATE TABLE fires (n int)");
    is_done(&mut session, "CREATE TRIGGER t ON fires AFTER INSERT AS INSERT log SELECT COUNT(*) FROM big");
    is_done(&mut session, "INSERT fires VALUES (1)");
    assert_eq!(number(&mut session, "SELECT n FROM log"), ROWS);
    let cursor = "DECLARE c CURSOR FOR SELECT COUNT(*) FROM big; OPEN c; FETCH c; CLOSE c; DEALLOCATE c";
    assert_eq!(number(&mut session, cursor), ROWS);
    // What the transaction has changed counts, and is gone with it; variables are read by every thread.
    is_done(&mut session, "BEGIN TRANSACTION; DELETE big WHERE id % 2 = 0");
    let odd = "DECLARE @least int = 1; SELECT COUNT(*) FROM big WHERE id % 2 = @least OPTION (MAXDOP 2)";
    assert_eq!(number(&mut session, odd), ROWS / 2);
    assert_eq!(number(&mut session, "SELECT COUNT(*) FROM big OPTION (MAXDOP 2)"), ROWS / 2);
    is_done(&mut session, "ROLLBACK");
    assert_eq!(said(&mut session, &format!("{GROUPS} OPTION (MAXDOP 2)")), expected);
    let lines = said(&mut session, "SELECT SUM(1 / (id - 20000)) FROM big OPTION (MAXDOP 2); SELECT COUNT(*) FROM big");
    assert!(lines[1].starts_with("Msg 8134") || lines[0].starts_with("Msg 8134"), "{lines:?}");
    assert!(lines.iter().any(|line| *line == ROWS.to_string()), "the batch goes on: {lines:?}");
}

#[test]
fn many_sessions_at_once_find_what_one_finds() {
    let (engine, mut session) = instance("parallel-many");
    let expected = said(&mut session, &format!("{GROUPS} OPTION (MAXDOP 1)"));
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let mut session = engine.internal_session();
                is_done(&mut session, "USE d");
                for _ in 0..4 {
                    assert_eq!(said(&mut session, GROUPS), expected);
                }
            });
        }
        // Meanwhile rows come and go: each statement sees a moment between two transactions.
        scope.spawn(|| {
            let mut session = engine.internal_session();
            is_done(&mut session, "USE d");
            for _ in 0..6 {
                is_done(&mut session, "BEGIN TRANSACTION; UPDATE big SET a = a + 1 WHERE id < 3000; ROLLBACK");
            }
        });
    });
}
