//! Index operations beside a table's use, from statements: paused by an error, by another session and by a restart, taken
//! up again, and right at the end.

use crate::asked::{check, first, is_sound};
use crate::script::{config, fresh_engine, said};
use thawdb_engine::Engine;

const STATE: &str = "SELECT name, state_desc, percent_complete FROM sys.index_resumable_operations";
const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, a int, b varchar(10)) \
                     INSERT t VALUES (1, 5, 'x'), (2, 6, 'y'), (3, 5, 'z'), (4, 7, 'w')";

#[test]
fn an_error_pauses_and_the_table_goes_on() {
    let (engine, _) = fresh_engine("resumable-error");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, TABLE);
    let create = "CREATE UNIQUE INDEX i ON t (a) INCLUDE (b) WITH (ONLINE = ON, RESUMABLE = ON)";
    assert!(first(&mut a, create).starts_with("Msg 1505"));
    check(&mut a, "SELECT @@TRANCOUNT AS n", &["[n int]", "0", "done 1"]);
    check(&mut b, STATE, &["[name nvarchar(128), state_desc nvarchar(60), percent_complete real]", "i | PAUSED | 50", "done 1"]);
    check(&mut b, "SELECT COUNT(*) AS n FROM sys.indexes WHERE name = 'i'", &["[n int]", "0", "done 1"]);
    // Definitions are refused, rows are not.
    for sql in ["ALTER TABLE t ADD c int", "DROP TABLE t", "TRUNCATE TABLE t", "CREATE INDEX j ON t (b)"] {
        assert!(first(&mut b, sql).starts_with("Msg 10637, Level 16"), "{sql}");
    }
    assert!(first(&mut b, "CREATE INDEX i ON t (b) WITH (ONLINE = ON, RESUMABLE = ON)").starts_with("Msg 10637"));
    check(&mut b, "INSERT t VALUES (5, 8, 'v'), (6, 9, 'u')", &["done 2"]);
    check(&mut b, "DELETE t WHERE id = 2", &["done 1"]);
    check(&mut b, "UPDATE t SET b = 'yy' WHERE id = 5", &["done 1"]);
    check(&mut b, "BEGIN TRAN UPDATE t SET a = 100 ROLLBACK", &["env begin", "done", "done 5", "env rollback"]);
    assert!(first(&mut b, "ALTER INDEX i ON t RESUME").starts_with("Msg 1505"), "two rows still share a key");
    check(&mut b, "UPDATE t SET a = 50 WHERE id = 3", &["done 1"]);
    // The same statement takes it up.
    let lines = said(&mut a, create);
    assert!(lines[0].contains("Warning: An existing resumable operation"), "{lines:?}");
    check(&mut b, "SELECT COUNT(*) AS n FROM sys.index_resumable_operations", &["[n int]", "0", "done 1"]);
    let by_index = "SELECT a, b FROM t WITH (INDEX (i)) WHERE a > 0 ORDER BY a";
    check(&mut b, by_index, &["[a int, b varchar(10)]", "5 | x", "7 | w", "8 | yy", "9 | u", "50 | z", "done 5"]);
    assert!(first(&mut b, "INSERT t VALUES (7, 50, '')").starts_with("Msg 2601"));
    is_sound(&mut b, "t");
}

#[test]
fn a_pause_from_elsewhere_ends_the_session_that_works() {
    let (engine, _) = fresh_engine("resumable-pause");
    let (mut a, mut b, mut c) = (engine.internal_session(), engine.internal_session(), engine.internal_session());
    said(&mut a, TABLE);
    assert!(first(&mut a, "CREATE UNIQUE INDEX i ON t (a) WITH (ONLINE = ON, RESUMABLE = ON)").starts_with("Msg 1505"));
    said(&mut a, "DELETE t WHERE id = 3");
    // A transaction that has written the table keeps the operation from being published.
    said(&mut b, "BEGIN TRAN INSERT t VALUES (10, 10, '')");
    let worker = std::thread::spawn(move || said(&mut a, "ALTER INDEX i ON t RESUME PRINT 'not reached'"));
    while !said(&mut c, STATE).iter().any(|line| line == "i | RUNNING | 100") {
        assert!(!worker.is_finished(), "it cannot be published");
        std::thread::yield_now();
    }
    assert!(first(&mut c, "ALTER INDEX i ON t RESUME").starts_with("Msg 10638"), "it runs already");
    check(&mut c, "ALTER INDEX i ON t PAUSE", &[]);
    let lines = worker.join().expect("no panic");
    assert!(lines[0].starts_with("Msg 1219, Level 16") && lines[1].starts_with("Msg 596, Level 21"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("not reached")));
    assert_eq!(said(&mut c, STATE)[1], "i | PAUSED | 100");
    assert!(first(&mut c, "ALTER INDEX i ON t PAUSE").starts_with("Msg 10641"));
    said(&mut b, "COMMIT");
    check(&mut c, "ALTER INDEX ALL ON t RESUME WITH (MAX_DURATION = 5 MINUTES)", &[]);
    check(&mut c, "SELECT id FROM t WITH (INDEX (i)) WHERE a = 10", &["[id int]", "10", "done 1"]);
    is_sound(&mut c, "t");
}

#[test]
fn a_restart_leaves_it_paused_and_abort_leaves_nothing() {
    let (engine, folder) = fresh_engine("resumable-restart");
    let mut a = engine.internal_session();
    said(&mut a, TABLE);
    for name in ["i", "j"] {
        said(&mut a, &format!("CREATE TABLE {name}t (id int PRIMARY KEY, a int) INSERT {name}t VALUES (1, 1), (2, 1)"));
        let create = format!("CREATE UNIQUE INDEX {name} ON {name}t (a) WITH (ONLINE = ON, RESUMABLE = ON, MAXDOP = 1)");
        assert!(first(&mut a, &create).starts_with("Msg 1505"));
    }
    assert!(first(&mut a, "CREATE UNIQUE INDEX k ON t (a) WITH (ONLINE = ON)").starts_with("Msg 1505"));
    check(&mut a, "SELECT COUNT(*) AS n FROM sys.index_resumable_operations", &["[n int]", "2", "done 1"]);
    drop(a);
    engine.close().expect("closes");
    drop(engine);
    let engine = Engine::open(config(&folder)).expect("opens");
    let mut a = engine.internal_session();
    let lines = said(&mut a, "SELECT name, state_desc, last_max_dop, sql_text FROM sys.index_resumable_operations ORDER BY name");
    assert!(lines[1].starts_with("i | PAUSED | 1 | CREATE UNIQUE INDEX i ON it (a)"), "{lines:?}");
    said(&mut a, "UPDATE it SET a = 2 WHERE id = 2");
    check(&mut a, "ALTER INDEX i ON it RESUME WITH (MAXDOP = 1)", &[]);
    check(&mut a, "SELECT id FROM it WITH (INDEX (i)) WHERE a = 2", &["[id int]", "2", "done 1"]);
    check(&mut a, "ALTER INDEX j ON jt ABORT", &[]);
    check(&mut a, "SELECT COUNT(*) AS n FROM sys.index_resumable_operations", &["[n int]", "0", "done 1"]);
    assert!(first(&mut a, "ALTER INDEX j ON jt RESUME").starts_with("Msg 10638"));
    assert!(first(&mut a, "ALTER INDEX ALL ON jt RESUME").starts_with("Msg 10680"));
    assert!(first(&mut a, "ALTER INDEX j ON jt PAUSE").starts_with("Msg 10641"));
    check(&mut a, "DROP TABLE jt", &[]);
    check(&mut a, "UPDATE t SET a = id", &["done 4"]);
    check(&mut a, "CREATE UNIQUE INDEX k ON t (a) WITH (ONLINE = ON)", &[]);
    is_sound(&mut a, "t");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let (engine, _) = fresh_engine("resumable-refusals");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE TABLE t (id int PRIMARY KEY, a int, w varchar(max))");
    for (options, number) in [
        ("RESUMABLE = ON", 11438),
        ("ONLINE = ON, RESUMABLE = ON, SORT_IN_TEMPDB = ON", 11438),
        ("ONLINE = ON, MAX_DURATION = 5", 11431),
        ("ONLINE = ON, RESUMABLE = ON, MAX_DURATION = 0", 11432),
        ("ONLINE = ON, RESUMABLE = ON, MAX_DURATION = 10081", 11432),
        ("ONLINE = ON, RESUMABLE = ON, DROP_EXISTING = ON", 10665),
    ] {
        let line = first(&mut a, &format!("CREATE INDEX i ON t (a) WITH ({options})"));
        assert!(line.starts_with(&format!("Msg {number}, ")), "{options}: {line}");
    }
    assert!(first(&mut a, "CREATE INDEX i ON t (a) INCLUDE (w) WITH (ONLINE = ON, RESUMABLE = ON)").starts_with("Msg 10670"));
    let lines = said(&mut a, "BEGIN TRAN CREATE INDEX i ON t (a) WITH (ONLINE = ON, RESUMABLE = ON) ROLLBACK");
    assert!(lines[2].starts_with("Msg 574, Level 16"), "{lines:?}");
    said(&mut a, "IF @@TRANCOUNT > 0 ROLLBACK");
    check(&mut a, "SELECT COUNT(*) AS n FROM sys.index_resumable_operations", &["[n int]", "0", "done 1"]);
}

#[test]
fn an_online_build_of_many_chunks_and_a_rebuild() {
    let (engine, _) = fresh_engine("resumable-many");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, "CREATE TABLE t (id int IDENTITY PRIMARY KEY, a int, b varchar(10)) INSERT t VALUES (1, 'r')");
    for _ in 0..18 {
        said(&mut a, "INSERT t SELECT a * 7 % 1009 + 1, b FROM t");
    }
    check(&mut a, "SELECT COUNT(*) AS n FROM t", &["[n int]", "262144", "done 1"]);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = stop.clone();
    let writer = std::thread::spawn(move || {
        let mut id = 1;
        while !told.load(std::sync::atomic::Ordering::Relaxed) && id < 20_000 {
            said(&mut b, &format!("UPDATE t SET a = a + 1 WHERE id = {id} DELETE t WHERE id = {}", id + 3));
            said(&mut b, &format!("INSERT t VALUES ({id}, 'n')"));
            id += 7;
        }
    });
    check(&mut a, "CREATE INDEX i ON t (a) INCLUDE (b) WITH (ONLINE = ON, RESUMABLE = ON, MAXDOP = 1)", &[]);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().expect("no panic");
    is_sound(&mut a, "t");
    let both = "SELECT (SELECT COUNT(*) FROM t WITH (INDEX (i)) WHERE a >= 0) - (SELECT COUNT(*) FROM t WITH (INDEX (0))) AS n";
    check(&mut a, both, &["[n int]", "0", "done 1"]);
    check(&mut a, "ALTER INDEX ALL ON t REBUILD", &[]);
    check(&mut a, "ALTER INDEX i ON t REBUILD WITH (ONLINE = OFF)", &[]);
    assert!(first(&mut a, "ALTER INDEX nope ON t REBUILD").starts_with("Msg 2727"));
    is_sound(&mut a, "t");
}

/// The published script: a log of fixed size that only log backups free, taken when it is full.
const SCRIPT: &str = "SET NOCOUNT, XACT_ABORT ON;
DROP INDEX IF EXISTS i ON dbo.Votes;
DECLARE @sql nvarchar(max) = N'CREATE NONCLUSTERED INDEX i ON dbo.Votes(PostId) INCLUDE (Filler)
    WITH (ONLINE = ON, RESUMABLE = ON, MAXDOP = 1);';
Again:
BEGIN TRY
  EXECUTE (@sql);
  RAISERROR ('Completed.', 0, 1);
END TRY
BEGIN CATCH
  IF ERROR_NUMBER() = 9002
  BEGIN
    DECLARE @pc integer = (SELECT TOP (1) CONVERT(integer, FLOOR(r.percent_complete * 1000))
      FROM sys.index_resumable_operations AS r
      WHERE r.object_id = OBJECT_ID(N'dbo.Votes','U') AND r.name = N'i');
    DECLARE @count integer = @@TRANCOUNT;
    RAISERROR ('Log full at %i, %i open.', 0, 1, @pc, @count);
    BACKUP LOG so TO DISK = 'NUL';
    SET @sql = N'ALTER INDEX i ON dbo.Votes RESUME;';
    GOTO Again;
  END;
  THROW;
END CATCH;";

#[test]
fn a_log_that_runs_full_again_and_again_costs_nothing_but_its_backups() {
    let (engine, _) = fresh_engine("resumable-9002");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE DATABASE so");
    said(&mut a, "USE so");
    said(&mut a, "CREATE TABLE Votes (Id int IDENTITY PRIMARY KEY, PostId int, Filler char(288))");
    // What does not pack, so that the index is many times the log.
    let filler = "REPLICATE(CONVERT(char(36), NEWID()), 8)";
    said(&mut a, &format!("INSERT Votes VALUES (1, {filler})"));
    // Small transactions: the log stays as small as it was made.
    said(&mut a, "ALTER DATABASE so SET RECOVERY SIMPLE");
    for turn in 0..74 {
        let insert = format!("INSERT Votes SELECT TOP (2048) (PostId * 7 + Id + {turn}) % 100003, {filler} FROM Votes");
        said(&mut a, &insert);
    }
    for sql in [
        "ALTER DATABASE so SET RECOVERY FULL",
        "BACKUP DATABASE so TO DISK = 'NUL'",
        "BACKUP LOG so TO DISK = 'NUL'",
        "DBCC SHRINKFILE (so_log, 1) WITH NO_INFOMSGS",
        "ALTER DATABASE so MODIFY FILE (NAME = so_log, FILEGROWTH = 0KB)",
        "BACKUP LOG so TO DISK = 'NUL'",
    ] {
        let lines = said(&mut a, sql);
        assert!(!lines.iter().any(|line| line.starts_with("Msg ") && !line.contains("Level 0")), "{sql}: {lines:?}");
    }
    let size = said(&mut a, "SELECT total_log_size_in_bytes / 1024 AS k FROM sys.dm_db_log_space_usage");
    let lines = said(&mut a, SCRIPT);
    let stops: Vec<i64> = lines
        .iter()
        .filter_map(|line| line.split_once("Log full at ").map(|(_, rest)| rest))
        .map(|rest| {
            assert!(rest.contains(", 0 open."), "{rest}");
            rest.split_once(',').expect("a number first").0.parse().expect("a number")
        })
        .collect();
    assert!(lines.iter().any(|line| line.contains("Completed.")), "{size:?} {lines:?}");
    assert!(stops.len() >= 10, "{size:?} {stops:?}");
    assert!(stops.is_sorted_by(|before, after| before < after), "{stops:?}");
    // The same log holds as much of the index in the last intervals as in the first, however many there were between; single ones
    // differ by the VLF that a backup frees only if the log's end has left it.
    let steps: Vec<i64> = stops.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let third = steps.len() / 3;
    let (first, last) = (steps[..third].iter().sum::<i64>(), steps[steps.len() - third..].iter().sum::<i64>());
    assert!(last * 10 >= first * 9, "{steps:?}");
    // None is a small part of the others.
    let most = steps.iter().max().expect("some");
    assert!(steps.iter().filter(|step| **step * 2 < *most).count() <= 3, "{steps:?}");
    let lines = said(&mut a, "DBCC CHECKTABLE (Votes) WITH NO_INFOMSGS");
    assert!(lines.iter().all(|line| line.starts_with("done")), "{lines:?}");
    let both = "SELECT COUNT(*) AS n FROM Votes WITH (INDEX (i)) WHERE PostId >= 0";
    check(&mut a, both, &["[n int]", "131072"]);
}

#[test]
fn a_filtered_index_hears_of_rows_that_enter_and_leave_while_it_is_built() {
    let (engine, _) = fresh_engine("resumable-filter");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, TABLE);
    said(&mut a, "INSERT t VALUES (5, 9, NULL), (6, 9, NULL), (7, 5, 'p')");
    let create = "CREATE UNIQUE INDEX i ON t (a) WHERE b IS NOT NULL WITH (ONLINE = ON, RESUMABLE = ON)";
    assert!(first(&mut a, create).starts_with("Msg 1505"), "three rows inside have 5");
    // Out, in, in and out again, within by another key; and rows that were never in.
    check(&mut b, "UPDATE t SET b = NULL WHERE id IN (1, 3)", &["done 2"]);
    check(&mut b, "UPDATE t SET b = 'in' WHERE id = 5", &["done 1"]);
    check(&mut b, "INSERT t VALUES (8, 9, 'q')", &["done 1"]);
    check(&mut b, "UPDATE t SET b = NULL WHERE id = 8", &["done 1"]);
    check(&mut b, "UPDATE t SET a = 70 WHERE id = 4", &["done 1"]);
    check(&mut b, "DELETE t WHERE id = 6", &["done 1"]);
    said(&mut a, create);
    let by_index = "SELECT a, id FROM t WITH (INDEX (i)) WHERE b > '' ORDER BY a";
    check(&mut b, by_index, &["[a int, id int]", "5 | 7", "6 | 2", "9 | 5", "70 | 4", "done 4"]);
    is_sound(&mut b, "t");
    assert!(first(&mut b, "UPDATE t SET b = 'x' WHERE id = 8").starts_with("Msg 2601"));
}
