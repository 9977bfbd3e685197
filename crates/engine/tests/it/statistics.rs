//! Statistics where a conversation of one session does not reach: over a restart, beside a full log, beside other sessions'
//! changes of definition, and what plans they make anew.

use crate::asked::is_done;
use crate::script::{config, fresh_engine, said};
use thawdb_engine::{Engine, Session};

const MADE: &str = "SELECT s.name, p.rows FROM sys.stats s CROSS APPLY sys.dm_db_stats_properties(s.object_id, s.stats_id) p \
                    WHERE s.object_id = OBJECT_ID('t') AND p.rows IS NOT NULL ORDER BY s.stats_id";

/// The rows of a result.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let lines = said(session, sql);
    assert!(!lines.iter().any(|line| line.starts_with("Msg ")), "{sql}: {lines:?}");
    lines[1..lines.len() - 1].to_vec()
}

/// A database `shop` with `t (id, a, b)`: so many rows, `a` of 10 values.
fn shop(session: &mut Session, count: usize) {
    is_done(session, "CREATE DATABASE shop");
    is_done(session, "USE shop");
    is_done(session, "CREATE TABLE t (id int NOT NULL PRIMARY KEY, a int NOT NULL, b char(100) NOT NULL)");
    fill(session, 0, count);
}

fn fill(session: &mut Session, from: usize, count: usize) {
    is_done(
        session,
        &format!(
            "WITH d AS (SELECT n FROM (VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)) v (n)) \
             INSERT t SELECT n, n % 10, 'x' FROM (SELECT TOP ({count}) {from} + a.n * 1000 + b.n * 100 + c.n * 10 + e.n AS n \
             FROM d a CROSS JOIN d b CROSS JOIN d c CROSS JOIN d e ORDER BY a.n, b.n, c.n, e.n) x"
        ),
    );
}

#[test]
fn they_outlive_a_restart_and_tell_that_a_table_grew_unseen() {
    let (engine, folder) = fresh_engine("statistics-restart");
    let mut a = engine.internal_session();
    shop(&mut a, 1000);
    assert_eq!(rows(&mut a, "SELECT COUNT(*) AS n FROM t WHERE a = 3"), ["100"]);
    is_done(&mut a, "CREATE STATISTICS both ON t (a, b)");
    let automatic = rows(&mut a, MADE)[0].split(" |").next().expect("a name").to_owned();
    assert!(automatic.starts_with("_WA_Sys_"), "{automatic}");
    // Of a table that is not there afterwards, and of one that was never there.
    is_done(&mut a, "CREATE TABLE gone (id int PRIMARY KEY) INSERT gone VALUES (1) CREATE STATISTICS s ON gone (id) DROP TABLE gone");
    is_done(
        &mut a,
        "BEGIN TRAN CREATE TABLE never (id int PRIMARY KEY) INSERT never VALUES (1) CREATE STATISTICS s ON never (id) ROLLBACK",
    );
    // Fewer changes than are told, to a plan that is not made again.
    fill(&mut a, 1000, 600);
    assert_eq!(rows(&mut a, MADE), [format!("{automatic} | 1000"), "both | 1000".into()]);
    drop(a);
    engine.close().expect("closes");
    drop(engine);

    let engine = Engine::open(config(&folder)).expect("opens again");
    let mut a = engine.internal_session();
    is_done(&mut a, "USE shop");
    assert_eq!(rows(&mut a, MADE), [format!("{automatic} | 1000"), "both | 1000".into()]);
    // The first compilation sees more leaves than there were, and makes what it asks anew.
    assert_eq!(rows(&mut a, "SELECT COUNT(*) AS n FROM t WHERE a = 4"), ["160"]);
    assert_eq!(rows(&mut a, MADE), [format!("{automatic} | 1600"), "both | 1600".into()]);
    assert_eq!(rows(&mut a, "SELECT COUNT(*) AS n FROM sys.stats WHERE name = 's'"), ["0"]);
}

/// A full log: who reads needs none for its statistics, and who asks for some is told.
#[test]
fn beside_a_full_log_statements_do_without() {
    let (engine, _) = fresh_engine("statistics-9002");
    let mut a = engine.internal_session();
    shop(&mut a, 1000);
    is_done(&mut a, "ALTER DATABASE shop SET RECOVERY FULL");
    is_done(&mut a, "BACKUP DATABASE shop TO DISK = 'NUL'");
    is_done(&mut a, "ALTER DATABASE shop MODIFY FILE (NAME = shop_log, FILEGROWTH = 0KB)");
    is_done(&mut a, "CREATE STATISTICS kept ON t (id)");
    let full =
        (0..4000).any(|_| said(&mut a, "UPDATE t SET b = CONVERT(char(36), NEWID())").iter().any(|line| line.starts_with("Msg 9002")));
    assert!(full, "a log that does not grow runs full");
    while !said(&mut a, "UPDATE t SET b = 'y' WHERE id = 5").iter().any(|line| line.starts_with("Msg 9002")) {}
    assert_eq!(rows(&mut a, "SELECT COUNT(*) AS n FROM t WHERE a = 3 AND b <> 'nonesuch'"), ["100"]);
    let lines = said(&mut a, "CREATE STATISTICS asked ON t (a)");
    assert!(lines.iter().any(|line| line.starts_with("Msg 9002")), "{lines:?}");
    let lines = said(&mut a, "DROP STATISTICS t.kept");
    assert!(lines.iter().any(|line| line.starts_with("Msg 9002")), "{lines:?}");
    let asked = "SELECT name FROM sys.stats WHERE object_id = OBJECT_ID('t') AND user_created = 1";
    assert_eq!(rows(&mut a, asked), ["kept"]);
    is_done(&mut a, "BACKUP LOG shop TO DISK = 'NUL'");
    is_done(&mut a, "CREATE STATISTICS asked ON t (a)");
    is_done(&mut a, "DROP STATISTICS t.kept");
    assert_eq!(rows(&mut a, asked), ["asked"]);
}

/// What is made by itself does not wait for a lock, and takes none that others would wait for.
#[test]
fn they_wait_for_nobody_and_nobody_for_them() {
    let (engine, _) = fresh_engine("statistics-locks");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    shop(&mut a, 1000);
    is_done(&mut b, "USE shop");
    // A writer's rows are read past; its locks stay its own.
    is_done(&mut a, "BEGIN TRAN UPDATE t SET a = a + 100");
    is_done(&mut b, "SET LOCK_TIMEOUT 0");
    assert_eq!(rows(&mut b, "SELECT COUNT(*) AS n FROM t WHERE a = 3"), ["100"]);
    assert_eq!(rows(&mut b, MADE).len(), 1);
    is_done(&mut a, "ROLLBACK");
    // SHOWPLAN makes statistics too; the table can be dropped right after.
    is_done(&mut b, "SET SHOWPLAN_TEXT ON");
    said(&mut b, "SELECT COUNT(*) AS n FROM t WHERE b = 'x'");
    is_done(&mut a, "SET LOCK_TIMEOUT 0");
    assert_eq!(rows(&mut a, MADE).len(), 2);
    is_done(&mut a, "BEGIN TRAN ALTER TABLE t ADD c int NULL");
    // The definition is being changed: a plan needs no lock, and so its statistics none either.
    said(&mut b, "SELECT COUNT(*) AS n FROM t WHERE id > 7");
    assert_eq!(rows(&mut a, MADE).len(), 2);
    is_done(&mut a, "ROLLBACK");
    said(&mut b, "SELECT COUNT(*) AS n FROM t WHERE id > 8");
    assert_eq!(rows(&mut a, MADE).len(), 3);
    is_done(&mut a, "DROP TABLE t");
}

/// How often a text's present plan has run.
fn runs(session: &mut Session, text: &str) -> Vec<String> {
    let text = text.replace('\'', "''");
    rows(
        session,
        &format!(
            "SELECT s.execution_count FROM sys.dm_exec_query_stats s CROSS APPLY sys.dm_exec_sql_text(s.sql_handle) x \
             WHERE x.text = N'{text}'"
        ),
    )
}

#[test]
fn a_tables_new_statistics_make_its_plans_anew_and_no_others() {
    let (engine, _) = fresh_engine("statistics-plans");
    let mut a = engine.internal_session();
    shop(&mut a, 1000);
    is_done(&mut a, "CREATE TABLE other (id int NOT NULL PRIMARY KEY, a int NULL) INSERT other SELECT id, a FROM t");
    let (of_t, of_other, point) =
        ("SELECT COUNT(*) AS n FROM t WHERE a = 1", "SELECT COUNT(*) AS n FROM other WHERE a = 2", "SELECT a FROM other WHERE id = 7");
    let thrice = |a: &mut Session| {
        for text in [of_t, of_other, point] {
            (0..3).for_each(|_| is_done(a, text));
        }
    };
    thrice(&mut a);
    assert_eq!(runs(&mut a, of_t), ["3"]);
    is_done(&mut a, "UPDATE STATISTICS t");
    thrice(&mut a);
    assert_eq!((runs(&mut a, of_t), runs(&mut a, of_other)), (vec!["3".into()], vec!["6".into()]));
    // 700 changes of 1,000 rows, in two steps: the second makes them stale.
    is_done(&mut a, "UPDATE other SET a = 5 WHERE id < 699");
    thrice(&mut a);
    assert_eq!(runs(&mut a, of_other), ["9"]);
    is_done(&mut a, "UPDATE other SET a = 6 WHERE id = 999");
    thrice(&mut a);
    assert_eq!((runs(&mut a, of_t), runs(&mut a, of_other)), (vec!["9".into()], vec!["3".into()]));
}

/// Of what is stale, a statement makes anew what it uses.
#[test]
fn what_a_statement_does_not_use_stays_as_it_is() {
    let (engine, _) = fresh_engine("statistics-unused");
    let mut a = engine.internal_session();
    shop(&mut a, 1000);
    is_done(&mut a, "CREATE STATISTICS of_a ON t (a) CREATE STATISTICS of_b ON t (b)");
    fill(&mut a, 1000, 1000);
    assert_eq!(rows(&mut a, MADE), ["of_a | 1000", "of_b | 1000"]);
    assert_eq!(rows(&mut a, "SELECT COUNT(*) AS n FROM t WHERE a = 3"), ["200"]);
    assert_eq!(rows(&mut a, MADE), ["of_a | 2000", "of_b | 1000"]);
    assert_eq!(rows(&mut a, "SELECT COUNT(*) AS n FROM t WHERE b = 'x'"), ["2000"]);
    assert_eq!(rows(&mut a, MADE), ["of_a | 2000", "of_b | 2000"]);
}

/// What is assigned says nothing of how many rows there are: a look-up by key that assigns a column wants none of it, and is not
/// planned anew when the column has changed.
#[test]
fn an_assignment_asks_for_none() {
    let (engine, _) = fresh_engine("statistics-assigned");
    let mut a = engine.internal_session();
    shop(&mut a, 1000);
    is_done(&mut a, "DECLARE @a int SELECT @a = a FROM t WHERE id = 3 UPDATE t SET a = a + 1, @a = a WHERE id = @a");
    assert_eq!(rows(&mut a, MADE), Vec::<String>::new());
}

/// While redo goes on a statement looks at no rows for its plan's sake, and the plan is made again when it is done.
#[test]
fn none_are_made_while_a_crash_is_redone() {
    let (engine, folder) = fresh_engine("statistics-redo");
    let mut a = engine.internal_session();
    shop(&mut a, 1000);
    drop(a);
    let copy = crate::folders::folder("statistics-redo-copy");
    std::fs::create_dir_all(&copy).expect("made");
    for entry in std::fs::read_dir(&folder).expect("readable").flatten().filter(|e| e.path().is_file()) {
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("copied");
    }
    drop(engine);
    let mut config = config(&copy);
    config.env.background = thawdb_device::BackgroundWork::Stepped;
    let engine = Engine::open(config).expect("opens what a kill left");
    let mut a = engine.internal_session();
    is_done(&mut a, "USE shop");
    let counted = "SELECT COUNT(*) AS n FROM t WHERE a = 3";
    assert_eq!(rows(&mut a, counted), ["100"]);
    assert_eq!(rows(&mut a, MADE), [""; 0]);
    while engine.background_turn() {}
    assert_eq!(rows(&mut a, counted), ["100"]);
    assert_eq!(rows(&mut a, MADE).len(), 1, "the plan made meanwhile was not kept");
}

#[test]
fn who_may_not_read_a_column_learns_nothing_of_its_values() {
    let (engine, _) = fresh_engine("statistics-rights");
    let mut a = engine.internal_session();
    shop(&mut a, 100);
    is_done(&mut a, "CREATE STATISTICS s ON t (a) CREATE USER u WITHOUT LOGIN GRANT INSERT ON t TO u GRANT SELECT ON t (id) TO u");
    let told = "SELECT (SELECT COUNT(*) FROM sys.dm_db_stats_histogram(OBJECT_ID('t'), 2)) AS steps, \
                (SELECT COUNT(*) FROM sys.dm_db_stats_properties(OBJECT_ID('t'), 2)) AS facts";
    assert_eq!(rows(&mut a, told), ["10 | 1"]);
    is_done(&mut a, "EXECUTE AS USER = 'u'");
    assert_eq!(rows(&mut a, told), ["0 | 0"]);
    for (sql, number) in [
        ("SELECT COUNT(*) AS n FROM t WHERE b = 'x'", "Msg 230,"),
        ("CREATE STATISTICS other ON t (b)", "Msg 1088,"),
        ("UPDATE STATISTICS t", "Msg 1088,"),
        ("DROP STATISTICS t.s", "Msg 3701,"),
        ("DBCC SHOW_STATISTICS (t, s)", "Msg 2571,"),
    ] {
        let lines = said(&mut a, sql);
        assert!(lines.iter().any(|line| line.starts_with(number)), "{sql}: {lines:?}");
    }
    is_done(&mut a, "REVERT");
    assert_eq!(rows(&mut a, MADE), ["s | 100"], "nothing was made for a statement that may not run");
    is_done(&mut a, "GRANT SELECT ON t TO u");
    is_done(&mut a, "EXECUTE AS USER = 'u'");
    assert_eq!(rows(&mut a, told), ["10 | 1"]);
}

/// A part of the leaves tells of all rows, and large values, which are in no leaf, count for nothing.
#[test]
fn a_sample_tells_of_the_whole() {
    let (engine, _) = fresh_engine("statistics-sample");
    let mut a = engine.internal_session();
    shop(&mut a, 8000);
    is_done(&mut a, "ALTER TABLE t ADD v varbinary(max) NULL");
    is_done(&mut a, "UPDATE t SET v = CONVERT(varbinary(max), REPLICATE(CONVERT(varchar(max), 'x'), 20000)) WHERE id % 100 = 7");
    is_done(&mut a, "CREATE STATISTICS s ON t (a) WITH SAMPLE 25 PERCENT");
    let facts = "SELECT CASE WHEN p.rows BETWEEN 7200 AND 8800 THEN 'rows' END, CASE WHEN p.rows_sampled BETWEEN 800 AND 4000 THEN 'sampled' END, \
                 (SELECT COUNT(*) FROM sys.dm_db_stats_histogram(s.object_id, s.stats_id) h WHERE h.equal_rows BETWEEN 600 AND 1000) \
                 FROM sys.stats s CROSS APPLY sys.dm_db_stats_properties(s.object_id, s.stats_id) p WHERE s.name = 's'";
    assert_eq!(
        rows(&mut a, facts),
        ["rows | sampled | 10"],
        "{:?}",
        rows(&mut a, &facts.replace("SELECT CASE", "SELECT p.rows, p.rows_sampled, CASE"))
    );
    is_done(&mut a, "UPDATE STATISTICS t s WITH FULLSCAN");
    assert_eq!(
        rows(
            &mut a,
            "SELECT p.rows, p.rows_sampled FROM sys.stats s CROSS APPLY sys.dm_db_stats_properties(s.object_id, s.stats_id) p WHERE s.name = 's'"
        ),
        ["8000 | 8000"]
    );
}
