//! tempdb: what is in it is not logged, is gone after a restart, and is made and dropped by many sessions at once.

use crate::script::{config, fresh_engine, said};
use thawdb_engine::Engine;

/// Bytes of log in use in the session's database and in tempdb, which has none.
fn log_end(session: &mut thawdb_engine::Session) -> i64 {
    let of = |view: &str| format!("(SELECT ISNULL(MAX(CONVERT(bigint, used_log_space_in_bytes)), 0) FROM {view})");
    let sql = format!("SELECT {} + {} AS n", of("sys.dm_db_log_space_usage"), of("tempdb.sys.dm_db_log_space_usage"));
    let lines = said(session, &sql);
    lines[1].parse().unwrap_or_else(|_| panic!("{lines:?}"))
}

#[test]
fn rows_of_temporary_tables_reach_no_log() {
    let (engine, _) = fresh_engine("tempdb-log");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE DATABASE d");
    said(&mut session, "USE d");
    let rows = "SELECT value AS id, REPLICATE('x', 500) AS s FROM GENERATE_SERIES(1, 5000)";
    let mut grown = |make: &str, fill: &str| {
        said(&mut session, make);
        let before = log_end(&mut session);
        let lines = said(&mut session, &format!("{fill} {rows}"));
        assert_eq!(lines.last().map(String::as_str), Some("done 5000"), "{lines:?}");
        log_end(&mut session) - before
    };
    let logged = grown("CREATE TABLE t (id int PRIMARY KEY, s varchar(500))", "INSERT t");
    assert!(logged > 300_000, "{logged} bytes: the measure sees a table's rows");
    let local = grown("CREATE TABLE #t (id int PRIMARY KEY, s varchar(500))", "INSERT #t");
    let global = grown("CREATE TABLE ##t (id int PRIMARY KEY, s varchar(500))", "INSERT ##t");
    let variable = grown("", "DECLARE @t table (id int PRIMARY KEY, s varchar(500)) INSERT @t");
    for (what, bytes) in [("local", local), ("global", global), ("variable", variable)] {
        assert!(bytes < 50_000, "{what}: {bytes} bytes of log for 2,500,000 of rows");
    }
}

#[test]
fn nothing_is_there_after_a_restart() {
    let (engine, folder) = fresh_engine("tempdb-restart");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TABLE ##g (a int) INSERT ##g VALUES (1)");
    said(&mut session, "CREATE TABLE tempdb.dbo.kept (a int)");
    said(&mut session, "CREATE TABLE #l (a int) CREATE INDEX i ON #l (a) INSERT #l VALUES (1)");
    drop(session);
    engine.close().expect("closes");
    drop(engine);
    let engine = Engine::open(config(&folder)).expect("opens again");
    let mut session = engine.internal_session();
    assert_eq!(said(&mut session, "SELECT COUNT(*) AS n FROM tempdb.sys.tables"), ["[n int]", "0", "done 1"]);
    assert_eq!(said(&mut session, "SELECT OBJECT_ID('tempdb..##g') AS g"), ["[g int]", "NULL", "done 1"]);
    assert_eq!(said(&mut session, "CREATE TABLE ##g (a int) SELECT COUNT(*) AS n FROM ##g").last().unwrap(), "done 1");
}

/// Waits of a kind so far, in all sessions.
fn waits(session: &mut thawdb_engine::Session, like: &str) -> i64 {
    let sql = format!("SELECT ISNULL(SUM(waiting_tasks_count), 0) AS n FROM sys.dm_os_wait_stats WHERE wait_type LIKE '{like}'");
    said(session, &sql)[1].parse().expect("a number")
}

#[test]
fn many_sessions_make_and_drop_temporary_tables_at_once() {
    const SESSIONS: usize = 8;
    const ROUNDS: usize = 40;
    let (engine, _) = fresh_engine("tempdb-many");
    let mut watcher = engine.internal_session();
    let before = waits(&mut watcher, "PAGELATCH%");
    let workers: Vec<_> = (0..SESSIONS)
        .map(|_| {
            let mut session = engine.internal_session();
            std::thread::spawn(move || {
                for round in 0..ROUNDS {
                    let batch = "CREATE TABLE #t (id int PRIMARY KEY, v varchar(100), INDEX i (v)) \
                                 INSERT #t SELECT value, 'v' FROM GENERATE_SERIES(1, 20) \
                                 SELECT COUNT(*) AS n FROM #t DROP TABLE #t";
                    assert_eq!(said(&mut session, batch)[3], "20", "round {round}");
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
    let latches = waits(&mut watcher, "PAGELATCH%") - before;
    println!("{latches} waits for latches");
    let made = i64::try_from(SESSIONS * ROUNDS).expect("few");
    // A table has two trees, and each takes and gives pages: were a page hot, there would be waits for most of them. The
    // count is of the process: tests that run beside this one only add to it.
    assert!(latches < made, "{latches} waits for latches for {made} tables");
    // What was dropped is given back by the cleaner, behind the sessions' backs; a check meanwhile tells that from damage.
    assert_eq!(said(&mut watcher, "DBCC CHECKDB (tempdb) WITH NO_INFOMSGS"), [""; 0]);
}
