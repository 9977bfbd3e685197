//! Index statements: what they refuse and by which number, disabled indexes, REORGANIZE, DROP_EXISTING, REBUILD beside the
//! table's use, keys added to tables with rows, and the waits at low priority.

use crate::asked::{check, error, first, is_sound, value};
use crate::script::{fresh_engine, said};
use crate::sessions::Sessions;
use thawdb_engine::Session;

/// The two trees have the same rows, in the order of all their columns.
fn agree(session: &mut Session, one: &str, other: &str) {
    let both = format!("SELECT COUNT(*) FROM (({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})) AS d");
    assert_eq!(value(session, &both), "0", "{one} against {other}");
}

const TABLE: &str = "CREATE TABLE t (id int NOT NULL CONSTRAINT pk PRIMARY KEY, a int NOT NULL, b varchar(20), w varchar(max)) \
                     INSERT t VALUES (1, 5, 'x', 'l'), (2, 6, 'y', 'm'), (3, 7, 'z', 'n'), (4, 8, 'w', 'o')";

/// Every row of the specification's table of refusals that a statement of this engine can meet; 10669, 10672, 10674 are of
/// what this engine has not, 10666, 10660 and 10675 of what it never does (it has one plan for every build); 10639, 10644 and 10681
/// are below, 10673 is a test of maintain's.
#[test]
fn every_refusal_has_its_number() {
    let (engine, _) = fresh_engine("index-refusals");
    let mut a = engine.internal_session();
    said(&mut a, TABLE);
    said(&mut a, "CREATE INDEX i ON t (a) CREATE INDEX dis ON t (b) ALTER INDEX dis ON t DISABLE CREATE TABLE h (x int NOT NULL)");
    said(&mut a, "CREATE TABLE tempdb.dbo.tt (id int PRIMARY KEY, a int) CREATE TABLE #l (id int PRIMARY KEY, a int)");
    let both = "ONLINE = ON, RESUMABLE = ON";
    let cases: &[(i32, String)] = &[
        (11438, "CREATE INDEX n ON t (b) WITH (RESUMABLE = ON)".into()),
        (11438, format!("CREATE INDEX n ON t (b) WITH ({both}, SORT_IN_TEMPDB = ON)")),
        (11438, "ALTER INDEX i ON t REBUILD WITH (RESUMABLE = ON)".into()),
        (11438, "ALTER INDEX i ON t REBUILD WITH (ONLINE = OFF, RESUMABLE = ON)".into()),
        (11438, "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a) WITH (RESUMABLE = ON)".into()),
        (11431, "CREATE INDEX n ON t (b) WITH (ONLINE = ON, MAX_DURATION = 5)".into()),
        (11431, "ALTER INDEX i ON t REBUILD WITH (ONLINE = ON, MAX_DURATION = 5 MINUTES)".into()),
        (11432, format!("CREATE INDEX n ON t (b) WITH ({both}, MAX_DURATION = 0)")),
        (11432, format!("CREATE INDEX n ON t (b) WITH ({both}, MAX_DURATION = 10081)")),
        (11432, format!("ALTER INDEX i ON t REBUILD WITH ({both}, MAX_DURATION = 0)")),
        (11433, format!("ALTER INDEX ALL ON t REBUILD WITH ({both})")),
        (11433, format!("ALTER TABLE t REBUILD WITH ({both})")),
        (11434, format!("ALTER INDEX dis ON t REBUILD WITH ({both})")),
        (11435, format!("ALTER TABLE h REBUILD WITH ({both})")),
        (11439, format!("CREATE INDEX n ON tempdb.dbo.tt (a) WITH ({both})")),
        (1917, "CREATE INDEX n ON #l (a) WITH (ONLINE = ON)".into()),
        (10670, format!("CREATE INDEX n ON t (a) INCLUDE (w) WITH ({both})")),
        (10665, format!("CREATE INDEX i ON t (a) WITH ({both}, DROP_EXISTING = ON)")),
        (10638, "ALTER INDEX i ON t RESUME".into()),
        (10638, "ALTER INDEX i ON t ABORT".into()),
        (10641, "ALTER INDEX i ON t PAUSE".into()),
        (10680, "ALTER INDEX ALL ON t RESUME".into()),
        (10680, "ALTER INDEX ALL ON t PAUSE".into()),
        (10680, "ALTER INDEX ALL ON t ABORT".into()),
        (1913, "CREATE INDEX i ON t (b)".into()),
        (1913, format!("CREATE INDEX i ON t (b) WITH ({both})")),
        (1913, "CREATE INDEX dis ON t (b)".into()),
        (1088, "ALTER INDEX i ON nope REBUILD".into()),
        (2727, "ALTER INDEX nope ON t REBUILD".into()),
        (2727, "ALTER INDEX nope ON t DISABLE".into()),
        (2727, "ALTER INDEX nope ON t REORGANIZE".into()),
        (1973, "ALTER INDEX dis ON t REORGANIZE".into()),
        (1973, "ALTER INDEX dis ON t SET (ALLOW_PAGE_LOCKS = ON)".into()),
        (155, "ALTER INDEX i ON t SET (FILLFACTOR = 50)".into()),
        (1916, "ALTER INDEX i ON t SET (IGNORE_DUP_KEY = ON)".into()),
        (7729, "ALTER INDEX i ON t REBUILD PARTITION = 1".into()),
        (7735, "ALTER INDEX i ON t REORGANIZE PARTITION = 1".into()),
        (7999, "CREATE INDEX nope ON t (a) WITH (DROP_EXISTING = ON)".into()),
        (1925, "CREATE INDEX pk ON t (id) WITH (DROP_EXISTING = ON)".into()),
        (1907, "CREATE UNIQUE CLUSTERED INDEX pk ON t (a) WITH (DROP_EXISTING = ON)".into()),
        (1902, "CREATE CLUSTERED INDEX n ON t (a)".into()),
        (315, "SELECT * FROM t WITH (INDEX (dis))".into()),
    ];
    for (expected, sql) in cases {
        assert_eq!(error(&mut a, sql), *expected, "{sql}");
    }
    for statement in [
        "CREATE INDEX n ON t (b) WITH (ONLINE = ON, RESUMABLE = ON)",
        "ALTER INDEX i ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON)",
        "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a) WITH (ONLINE = ON, RESUMABLE = ON)",
        "ALTER INDEX i ON t RESUME",
        "ALTER INDEX i ON t PAUSE",
        "ALTER INDEX i ON t ABORT",
    ] {
        assert_eq!(error(&mut a, &format!("BEGIN TRAN {statement} ROLLBACK")), 574, "{statement}");
        said(&mut a, "IF @@TRANCOUNT > 0 ROLLBACK");
    }
    // 1750 follows what the constraint failed with, and is what a TRY sees.
    said(&mut a, "INSERT t VALUES (9, 5, 'd', NULL)");
    let lines = said(&mut a, "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)");
    assert!(lines[0].starts_with("Msg 1505") && lines[1].starts_with("Msg 1750, Level 16, State 0"), "{lines:?}");
    let caught = "BEGIN TRY ALTER TABLE t ADD CONSTRAINT u UNIQUE (a) END TRY BEGIN CATCH SELECT ERROR_NUMBER() AS n END CATCH";
    check(&mut a, caught, &["[n int]", "1750", "done 1"]);
}

/// 10637 for every definition and every other operation while one is paused; rows may be changed.
#[test]
fn while_an_operation_is_paused_the_definition_stays() {
    let (engine, _) = fresh_engine("index-paused");
    let mut a = engine.internal_session();
    said(&mut a, TABLE);
    said(&mut a, "INSERT t VALUES (9, 5, 'd', NULL) CREATE INDEX k ON t (b)");
    assert_eq!(error(&mut a, "CREATE UNIQUE INDEX i ON t (a) WITH (ONLINE = ON, RESUMABLE = ON)"), 1505);
    for sql in [
        "CREATE INDEX j ON t (b)",
        "CREATE INDEX j ON t (b) WITH (ONLINE = ON)",
        "CREATE INDEX j ON t (b) WITH (ONLINE = ON, RESUMABLE = ON)",
        "CREATE UNIQUE INDEX i ON t (a) INCLUDE (b) WITH (ONLINE = ON, RESUMABLE = ON)",
        "CREATE UNIQUE INDEX i ON t (a) WITH (ONLINE = ON, RESUMABLE = ON, FILLFACTOR = 70)",
        "CREATE UNIQUE INDEX i ON t (a) WITH (ONLINE = ON)",
        "CREATE INDEX k ON t (b) WITH (DROP_EXISTING = ON)",
        "ALTER INDEX k ON t REBUILD",
        "ALTER INDEX k ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON)",
        "ALTER INDEX k ON t DISABLE",
        "ALTER INDEX k ON t REORGANIZE",
        "ALTER INDEX k ON t SET (ALLOW_ROW_LOCKS = OFF)",
        "DROP INDEX k ON t",
        "ALTER TABLE t ADD c int",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t REBUILD",
        "ALTER TABLE t DROP CONSTRAINT pk",
        "TRUNCATE TABLE t",
        "DROP TABLE t",
    ] {
        assert_eq!(error(&mut a, sql), 10637, "{sql}");
    }
    check(&mut a, "DELETE t WHERE id = 9", &["done 1"]);
    check(&mut a, "ALTER INDEX i ON t RESUME", &[]);
    check(&mut a, "DROP INDEX k ON t", &[]);
    is_sound(&mut a, "t");
}

#[test]
fn a_disabled_index_is_out_of_use_until_it_is_rebuilt() {
    let (engine, _) = fresh_engine("index-disabled");
    let mut a = engine.internal_session();
    said(&mut a, TABLE);
    said(&mut a, "CREATE UNIQUE INDEX u ON t (a) CREATE INDEX i ON t (b) INCLUDE (a)");
    said(&mut a, "CREATE TABLE c (id int PRIMARY KEY, a int CONSTRAINT fk REFERENCES t (a))");
    assert_eq!(error(&mut a, "DROP INDEX u ON t"), 3723, "a foreign key refers to it");
    assert_eq!(error(&mut a, "CREATE UNIQUE INDEX u ON t (b) WITH (DROP_EXISTING = ON)"), 3723);
    check(&mut a, "CREATE UNIQUE INDEX u ON t (a DESC) WITH (DROP_EXISTING = ON)", &[]);
    let lines = said(&mut a, "ALTER INDEX u ON t DISABLE");
    assert!(lines[0].contains("Foreign key 'fk' on table 'c' referencing table 't' was disabled"), "{lines:?}");
    check(&mut a, "INSERT t VALUES (5, 5, 'dup', NULL)", &["done 1"]);
    check(&mut a, "INSERT c VALUES (1, 99)", &["done 1"]);
    assert_eq!(error(&mut a, "ALTER TABLE c CHECK CONSTRAINT fk"), 1989);
    assert_eq!(error(&mut a, "SELECT * FROM t WITH (INDEX (u))"), 315);
    check(&mut a, "SELECT id FROM t WHERE a = 6", &["[id int]", "2", "done 1"]);
    let state = "SELECT name, is_disabled FROM sys.indexes WHERE object_id = OBJECT_ID('t') ORDER BY index_id";
    check(&mut a, state, &["[name nvarchar(128), is_disabled bit]", "pk | 0", "u | 1", "i | 0", "done 3"]);
    check(&mut a, "SELECT INDEXPROPERTY(OBJECT_ID('t'), 'u', 'IsDisabled') AS d", &["[d int]", "1", "done 1"]);
    assert_eq!(error(&mut a, "ALTER INDEX u ON t REBUILD"), 1505, "two rows share a key");
    said(&mut a, "DELETE t WHERE id = 5");
    check(&mut a, "ALTER INDEX u ON t REBUILD WITH (ONLINE = ON)", &[]);
    assert_eq!(error(&mut a, "INSERT t VALUES (6, 5, 'dup', NULL)"), 2601);
    said(&mut a, "DELETE c");
    check(&mut a, "ALTER TABLE c WITH CHECK CHECK CONSTRAINT fk", &[]);
    assert_eq!(error(&mut a, "INSERT c VALUES (1, 99)"), 547);
    is_sound(&mut a, "t");
    // The clustered one takes the rows with it, and every other index.
    let lines = said(&mut a, "ALTER INDEX pk ON t DISABLE");
    assert!(lines.iter().filter(|line| line.contains("as a result of disabling the clustered index")).count() == 2, "{lines:?}");
    for sql in
        ["SELECT * FROM t", "INSERT t VALUES (7, 7, '', '')", "UPDATE t SET a = 1", "DELETE t", "SELECT 1 FROM c JOIN t ON c.a = t.a"]
    {
        assert_eq!(error(&mut a, sql), 8655, "{sql}");
    }
    assert_eq!(error(&mut a, "CREATE INDEX n ON t (a)"), 1987);
    assert_eq!(error(&mut a, "ALTER INDEX i ON t REBUILD"), 1987);
    assert_eq!(error(&mut a, "ALTER TABLE t ADD z int"), 1974);
    check(&mut a, "ALTER INDEX pk ON t REBUILD", &[]);
    check(&mut a, state, &["[name nvarchar(128), is_disabled bit]", "pk | 0", "u | 1", "i | 1", "done 3"]);
    check(&mut a, "UPDATE t SET b = 'new' WHERE id = 3", &["done 1"]);
    check(&mut a, "ALTER INDEX ALL ON t REBUILD", &[]);
    check(&mut a, "SELECT a FROM t WITH (INDEX (i)) WHERE b = 'new'", &["[a int]", "7", "done 1"]);
    is_sound(&mut a, "t");
    // ALL, and dropping what is disabled.
    said(&mut a, "ALTER TABLE c DROP CONSTRAINT fk ALTER INDEX ALL ON t DISABLE");
    assert_eq!(error(&mut a, "SELECT * FROM t"), 8655);
    check(&mut a, "ALTER TABLE t DROP CONSTRAINT pk", &[]);
    check(&mut a, "SELECT COUNT(*) AS n FROM t", &["[n int]", "4", "done 1"]);
    check(&mut a, "DROP INDEX i ON t", &[]);
    check(&mut a, "CREATE CLUSTERED INDEX cx ON t (b)", &[]);
    let now = ["[name nvarchar(128), is_disabled bit]", "cx | 0", "u | 0", "done 2"];
    check(&mut a, state, &now);
    is_sound(&mut a, "t");
}

#[test]
fn a_disabled_index_is_disabled_after_a_restart() {
    let (engine, folder) = fresh_engine("index-disabled-restart");
    let mut a = engine.internal_session();
    said(&mut a, TABLE);
    said(&mut a, "CREATE INDEX i ON t (b) ALTER INDEX pk ON t DISABLE");
    drop(a);
    engine.close().expect("closes");
    drop(engine);
    let engine = thawdb_engine::Engine::open(crate::script::config(&folder)).expect("opens");
    let mut a = engine.internal_session();
    assert_eq!(error(&mut a, "SELECT * FROM t"), 8655);
    check(&mut a, "EXEC sp_rename 't.i', 'renamed', 'INDEX'", &said_rename(&mut engine.internal_session()));
    check(&mut a, "ALTER INDEX ALL ON t REBUILD", &[]);
    check(&mut a, "SELECT id FROM t WITH (INDEX (renamed)) WHERE b = 'z'", &["[id int]", "3", "done 1"]);
    is_sound(&mut a, "t");
}

/// What a rename says whatever it renames.
fn said_rename(session: &mut Session) -> Vec<&'static str> {
    said(session, "CREATE TABLE other (a int) CREATE INDEX x ON other (a)");
    let lines = said(session, "EXEC sp_rename 'other.x', 'y', 'INDEX'");
    lines.into_iter().map(|line| &*Box::leak(line.into_boxed_str())).collect()
}

/// A table of `2^doublings` rows whose keys come in no order.
fn scattered(session: &mut Session, doublings: u32) {
    said(session, "CREATE TABLE t (id int NOT NULL CONSTRAINT pk PRIMARY KEY, a int NOT NULL, b varchar(40)) INSERT t VALUES (0, 0, 'r')");
    for turn in 0..doublings {
        let step = 1 << turn;
        said(session, &format!("INSERT t SELECT id + {step}, (id + {step}) * 7919 % 100003, b + 'x' FROM t"));
    }
}

#[test]
fn a_rebuild_beside_writers_agrees_with_the_table() {
    let (engine, _) = fresh_engine("index-rebuild");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    scattered(&mut a, 15);
    said(&mut a, "CREATE INDEX i ON t (a) INCLUDE (b)");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = stop.clone();
    let writer = std::thread::spawn(move || {
        for id in (1..20_000).step_by(11) {
            if told.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            said(&mut b, &format!("UPDATE t SET a = a + 1 WHERE id = {id} DELETE t WHERE id = {}", id + 3));
        }
    });
    check(&mut a, "ALTER INDEX i ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON, FILLFACTOR = 80)", &[]);
    check(&mut a, "ALTER INDEX i ON t REBUILD WITH (ONLINE = ON, MAXDOP = 1)", &[]);
    check(&mut a, "CREATE INDEX i ON t (a DESC, b) WITH (ONLINE = ON, DROP_EXISTING = ON)", &[]);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().expect("no panic");
    is_sound(&mut a, "t");
    let options = "SELECT COUNT(*) AS n FROM sys.indexes WHERE name = 'i' AND index_id = 2 AND fill_factor = 0";
    check(&mut a, options, &["[n int]", "1", "done 1"]);
    agree(&mut a, "SELECT id, a, b FROM t WITH (INDEX (i))", "SELECT id, a, b FROM t WITH (INDEX (0))");
    check(&mut a, "SELECT COUNT(*) AS n FROM sys.index_resumable_operations", &["[n int]", "0", "done 1"]);
}

#[test]
fn a_paused_rebuild_leaves_the_old_index_in_use() {
    let (engine, _) = fresh_engine("index-rebuild-paused");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, TABLE);
    said(&mut a, "CREATE INDEX i ON t (a)");
    // Publication waits for a transaction that has written the table; the rebuild is paused there.
    said(&mut b, "BEGIN TRAN INSERT t VALUES (10, 10, '', '')");
    let mut c = engine.internal_session();
    let worker = std::thread::spawn(move || {
        let mut lines = said(&mut a, "SET LOCK_TIMEOUT 50 ALTER INDEX i ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON)");
        lines.truncate(1);
        (a, lines)
    });
    let (mut a, lines) = worker.join().expect("no panic");
    assert!(lines[0].starts_with("Msg 1222"), "{lines:?}");
    said(&mut b, "COMMIT");
    // It could not even begin: nothing is there.
    check(&mut c, "SELECT COUNT(*) AS n FROM sys.index_resumable_operations", &["[n int]", "0", "done 1"]);
    check(&mut a, "SET LOCK_TIMEOUT -1 ALTER INDEX i ON t REBUILD WITH (ONLINE = ON, RESUMABLE = ON)", &[]);
    check(&mut c, "SELECT id FROM t WITH (INDEX (i)) WHERE a = 10", &["[id int]", "10", "done 1"]);
    is_sound(&mut c, "t");
}

#[test]
fn drop_existing_replaces_in_place() {
    let (engine, _) = fresh_engine("index-drop-existing");
    let mut a = engine.internal_session();
    scattered(&mut a, 10);
    said(&mut a, "CREATE INDEX i ON t (a) CREATE INDEX j ON t (b)");
    check(&mut a, "CREATE UNIQUE INDEX i ON t (id DESC) INCLUDE (b) WITH (DROP_EXISTING = ON, FILLFACTOR = 70)", &[]);
    let state = "SELECT index_id, type_desc, is_unique, fill_factor FROM sys.indexes WHERE object_id = OBJECT_ID('t') AND name = 'i'";
    let columns = "[index_id int, type_desc nvarchar(60), is_unique bit, fill_factor tinyint]";
    check(&mut a, state, &[columns, "2 | NONCLUSTERED | 1 | 70", "done 1"]);
    is_sound(&mut a, "t");
    // The clustered one under another key, which every other index follows; its constraint holds it to its own.
    check(&mut a, "CREATE UNIQUE CLUSTERED INDEX pk ON t (id) WITH (DROP_EXISTING = ON)", &[]);
    assert_eq!(value(&mut a, "SELECT COUNT(*) FROM sys.key_constraints WHERE name = 'pk'"), "1");
    is_sound(&mut a, "t");
    said(&mut a, "ALTER TABLE t DROP CONSTRAINT pk CREATE CLUSTERED INDEX cx ON t (id)");
    check(&mut a, "CREATE CLUSTERED INDEX cx ON t (a, id) WITH (DROP_EXISTING = ON)", &[]);
    is_sound(&mut a, "t");
    said(&mut a, "DROP INDEX cx ON t");
    // And a nonclustered one that takes the heap's place.
    check(&mut a, "CREATE CLUSTERED INDEX j ON t (b) WITH (DROP_EXISTING = ON)", &[]);
    let all = "SELECT name, index_id FROM sys.indexes WHERE object_id = OBJECT_ID('t') ORDER BY index_id";
    check(&mut a, all, &["[name nvarchar(128), index_id int]", "j | 1", "i | 2", "done 2"]);
    check(&mut a, "INSERT t VALUES (5000, 1, 'after')", &["done 1"]);
    is_sound(&mut a, "t");
    agree(&mut a, "SELECT id, b FROM t WITH (INDEX (i))", "SELECT id, b FROM t WITH (INDEX (1))");
    check(&mut a, "ALTER TABLE t REBUILD", &[]);
    is_sound(&mut a, "t");
    assert_eq!(value(&mut a, "SELECT COUNT(*) FROM t"), "1025");
}

#[test]
fn reorganize_fills_leaves_and_loses_nothing() {
    let (engine, _) = fresh_engine("index-reorganize");
    let mut a = engine.internal_session();
    scattered(&mut a, 15);
    said(&mut a, "CREATE INDEX i ON t (a) INCLUDE (b) WITH (FILLFACTOR = 50)");
    said(&mut a, "ALTER INDEX i ON t SET (ALLOW_PAGE_LOCKS = OFF)");
    assert_eq!(error(&mut a, "ALTER INDEX i ON t REORGANIZE"), 2552);
    said(&mut a, "ALTER INDEX i ON t SET (ALLOW_PAGE_LOCKS = ON)");
    said(&mut a, "DELETE t WHERE id % 3 = 0");
    let pages = "SET NOCOUNT ON; DBCC CHECKTABLE (t)";
    said(&mut a, pages);
    let used = "SELECT COUNT(*) AS n FROM t WITH (INDEX (i)) WHERE a >= 0";
    let reads = |session: &mut Session| -> i64 {
        let lines = said(session, &format!("SET STATISTICS IO ON {used} SET STATISTICS IO OFF"));
        let line = lines.iter().find(|line| line.contains("logical reads")).unwrap_or_else(|| panic!("{lines:?}"));
        let rest = &line[line.find("logical reads").expect("seen") + "logical reads ".len()..];
        rest.split(|c: char| !c.is_ascii_digit()).next().expect("a number").parse().expect("a number")
    };
    let before = reads(&mut a);
    // It works by the fill factor that is kept with the index; DROP_EXISTING without one makes it full.
    said(&mut a, "CREATE INDEX full_one ON t (a) INCLUDE (b)");
    said(&mut a, "DELETE t WHERE id % 3 = 1 AND id % 2 = 0");
    check(&mut a, "ALTER INDEX ALL ON t REORGANIZE WITH (LOB_COMPACTION = ON)", &[]);
    let after = reads(&mut a);
    assert!(after * 4 < before * 3, "{before} reads before, {after} after");
    is_sound(&mut a, "t");
    agree(&mut a, "SELECT id, a, b FROM t WITH (INDEX (i))", "SELECT id, a, b FROM t WITH (INDEX (0))");
    agree(&mut a, "SELECT id, a, b FROM t WITH (INDEX (full_one))", "SELECT id, a, b FROM t WITH (INDEX (0))");
    let backward = "SELECT COUNT(*) FROM (SELECT TOP (100000) a FROM t WITH (INDEX (full_one)) ORDER BY a DESC) AS d";
    let forward = value(&mut a, "SELECT COUNT(*) FROM t");
    assert_eq!(value(&mut a, backward), forward);
}

#[test]
fn a_key_is_added_beside_writers() {
    let (engine, _) = fresh_engine("index-add-key");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE TABLE t (id int NOT NULL, a int NOT NULL, n int) INSERT t VALUES (1, 5, 1), (2, 6, 2), (3, 5, NULL)");
    assert_eq!(error(&mut a, "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY NONCLUSTERED (n) WITH (ONLINE = ON, RESUMABLE = ON)"), 8111);
    let add = "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a) WITH (ONLINE = ON, RESUMABLE = ON, MAXDOP = 1)";
    let lines = said(&mut a, add);
    assert!(lines[0].starts_with("Msg 1505") && lines[1].starts_with("Msg 1750"), "{lines:?}");
    let state = "SELECT name, state_desc FROM sys.index_resumable_operations";
    check(&mut a, state, &["[name nvarchar(128), state_desc nvarchar(60)]", "u | PAUSED", "done 1"]);
    assert_eq!(value(&mut a, "SELECT COUNT(*) FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('t')"), "0");
    said(&mut a, "UPDATE t SET a = 7 WHERE id = 3");
    check(&mut a, "ALTER INDEX ALL ON t RESUME", &[]);
    let keys = "SELECT name, type FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('t')";
    check(&mut a, keys, &["[name nvarchar(128), type char(2)]", "u | UQ", "done 1"]);
    assert_eq!(error(&mut a, "INSERT t VALUES (4, 7, 0)"), 2627);
    assert_eq!(error(&mut a, "CREATE TABLE u (a int)"), 2714, "the constraint's name is an object's");
    // A name that the engine makes up is the same when the statement comes again.
    said(&mut a, "INSERT t VALUES (2, 8, 0)");
    let add = "ALTER TABLE t ADD UNIQUE (id) WITH (ONLINE = ON, RESUMABLE = ON)";
    assert_eq!(error(&mut a, add), 1505);
    said(&mut a, "DELETE t WHERE a = 8");
    let lines = said(&mut a, add);
    assert!(lines[0].contains("Warning: An existing resumable operation"), "{lines:?}");
    let named = "SELECT COUNT(*) FROM sys.key_constraints WHERE is_system_named = 1 AND parent_object_id = OBJECT_ID('t')";
    assert_eq!(value(&mut a, named), "1");
    check(&mut a, "ALTER TABLE t DROP CONSTRAINT u", &[]);
    check(&mut a, "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY (id) WITH (ONLINE = ON)", &[]);
    is_sound(&mut a, "t");
}

#[test]
fn waits_at_low_priority() {
    let (engine, _) = fresh_engine("index-low-priority");
    let mut a = engine.internal_session();
    said(&mut a, TABLE);
    assert_eq!(
        error(&mut a, "CREATE INDEX i ON t (a) WITH (ONLINE = ON (WAIT_AT_LOW_PRIORITY (MAX_DURATION = 0, ABORT_AFTER_WAIT = SELF)))"),
        11432
    );
    let mut sessions = Sessions::new(&engine);
    // While the build waits at low priority others write; at common priority they would wait behind it.
    sessions.run(
        "master",
        "1 begin tran insert t values (20, 20, '', '') | ok
         2 create index i on t (a) with (online = on (wait_at_low_priority (max_duration = 1 minutes, abort_after_wait = none))) | waits OBJECT Sch-M
         3 insert t values (21, 21, '', '') | ok
         1 commit | ok
         2 | ok
         3 select count(*) from t with (index (i)) where a > 0 | 6",
    );
    // BLOCKERS with no wait: whoever is in the way is killed.
    let mut blocker = engine.internal_session();
    let sleeper = std::thread::spawn(move || said(&mut blocker, "BEGIN TRAN INSERT t VALUES (30, 30, '', '') WAITFOR DELAY '01:00:00'"));
    let writes = "SELECT COUNT(*) FROM sys.dm_tran_locks WHERE resource_type = 'OBJECT' AND request_mode = 'IX'";
    while value(&mut a, writes) == "0" {
        std::thread::yield_now();
    }
    let blockers = "WAIT_AT_LOW_PRIORITY (MAX_DURATION = 0 MINUTES, ABORT_AFTER_WAIT = BLOCKERS)";
    check(&mut a, &format!("ALTER INDEX i ON t REBUILD WITH (ONLINE = ON ({blockers}))"), &[]);
    sleeper.join().expect("no panic");
    assert_eq!(value(&mut a, "SELECT COUNT(*) FROM t WHERE id = 30"), "0");
    is_sound(&mut a, "t");
}

#[test]
fn what_the_database_elevates_goes_online_and_resumable() {
    let (engine, _) = fresh_engine("index-elevate");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE DATABASE d");
    said(&mut a, "USE d");
    said(&mut a, TABLE);
    let shown =
        "SELECT configuration_id, name, value, is_value_default FROM sys.database_scoped_configurations WHERE configuration_id IN (11, 25)";
    let columns = "[configuration_id int, name nvarchar(128), value sql_variant, is_value_default bit]";
    let minutes = "25 | PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES | nvarchar(128):1440 | 1";
    check(&mut a, shown, &[columns, "11 | ELEVATE_ONLINE | nvarchar(128):OFF | 1", minutes, "done 2"]);
    for sql in ["ELEVATE_ONLINE = WHEN_SUPPORTED", "ELEVATE_RESUMABLE = WHEN_SUPPORTED"] {
        check(&mut a, &format!("ALTER DATABASE SCOPED CONFIGURATION SET {sql}"), &[]);
    }
    check(&mut a, shown, &[columns, "11 | ELEVATE_ONLINE | nvarchar(128):WHEN_SUPPORTED | 0", minutes, "done 2"]);
    said(&mut a, "INSERT t VALUES (9, 5, 'd', NULL)");
    assert_eq!(error(&mut a, "CREATE UNIQUE INDEX i ON t (a)"), 1505);
    let operations = "SELECT COUNT(*) FROM sys.index_resumable_operations";
    assert_eq!(value(&mut a, operations), "1", "it was elevated, and so it is paused");
    check(&mut a, "ALTER INDEX i ON t ABORT", &[]);
    assert_eq!(error(&mut a, "CREATE UNIQUE INDEX i ON t (a) WITH (RESUMABLE = OFF)"), 1505);
    assert_eq!(value(&mut a, operations), "0", "what the statement says goes before");
    assert_eq!(error(&mut a, "BEGIN TRAN CREATE INDEX j ON t (a) COMMIT"), 0, "offline where it is not supported");
    said(&mut a, "ALTER DATABASE SCOPED CONFIGURATION SET ELEVATE_ONLINE = FAIL_UNSUPPORTED");
    said(&mut a, "ALTER DATABASE SCOPED CONFIGURATION SET ELEVATE_RESUMABLE = FAIL_UNSUPPORTED");
    assert_eq!(error(&mut a, "BEGIN TRAN CREATE INDEX k ON t (b) ROLLBACK"), 574);
    said(&mut a, "IF @@TRANCOUNT > 0 ROLLBACK");
    assert_eq!(error(&mut a, "ALTER DATABASE SCOPED CONFIGURATION SET ELEVATE_ONLINE = PERHAPS"), 102);
    assert_eq!(error(&mut a, "ALTER DATABASE SCOPED CONFIGURATION SET LEGACY_CARDINALITY_ESTIMATION = ON"), 40517);
    check(&mut a, "ALTER DATABASE SCOPED CONFIGURATION SET PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES = 60", &[]);
    assert!(first(&mut a, "CREATE INDEX z ON t (b)").is_empty());
}

/// Refusals that rest on what columns and rows are: keys of rowversion (10639) and computed ones (10644), those of the clustered
/// index included, and rows whose included columns do not lie in one piece (10681), at the start, while paused, and at a RESUME.
#[test]
fn keys_and_rows_that_no_resumable_operation_takes() {
    let (engine, _) = fresh_engine("index-refused-rows");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE TABLE s (id int NOT NULL PRIMARY KEY, a int, stamp rowversion, twice AS a * 2 PERSISTED)");
    said(&mut a, "CREATE TABLE c (a int NOT NULL, b int, twice AS a * 2 PERSISTED NOT NULL, CONSTRAINT pkc PRIMARY KEY CLUSTERED (twice))");
    said(&mut a, "CREATE TABLE w (id int NOT NULL PRIMARY KEY, a varchar(8000), b varchar(8000)) INSERT w VALUES (1, 'x', 'y')");
    said(&mut a, "INSERT s (id, a) VALUES (1, 5), (2, 6) INSERT c (a, b) VALUES (1, 1), (2, 2)");
    for (expected, sql) in [
        (10639, "CREATE INDEX n ON s (stamp) WITH (ONLINE = ON, RESUMABLE = ON)"),
        (10639, "ALTER TABLE s ADD CONSTRAINT u UNIQUE (stamp) WITH (ONLINE = ON, RESUMABLE = ON)"),
        (10644, "CREATE INDEX n ON s (twice) WITH (ONLINE = ON, RESUMABLE = ON)"),
        (10644, "CREATE INDEX n ON c (b) WITH (ONLINE = ON, RESUMABLE = ON)"),
    ] {
        assert_eq!(error(&mut a, sql), expected, "{sql}");
    }
    check(&mut a, "CREATE INDEX n ON s (twice) WITH (ONLINE = ON)", &[]);
    check(&mut a, "CREATE INDEX n ON c (b) WITH (ONLINE = ON)", &[]);
    is_sound(&mut a, "s");
    is_sound(&mut a, "c");
    // Two long columns: the second lies apart from the row, and would from the entry.
    let wide = "INSERT w VALUES (2, REPLICATE('a', 5000), REPLICATE('b', 5000))";
    said(&mut a, wide);
    let create = "CREATE INDEX i ON w (id) INCLUDE (a, b) WITH (ONLINE = ON, RESUMABLE = ON)";
    assert_eq!(error(&mut a, create), 10681);
    assert_eq!(error(&mut a, "ALTER INDEX i ON w RESUME"), 10681);
    assert_eq!(error(&mut a, "INSERT w VALUES (3, REPLICATE('a', 5000), REPLICATE('b', 5000))"), 10681);
    check(&mut a, "DELETE w WHERE id = 2", &["done 1"]);
    check(&mut a, "ALTER INDEX i ON w RESUME", &[]);
    is_sound(&mut a, "w");
    check(&mut a, "DROP INDEX i ON w", &[]);
    said(&mut a, wide);
    assert_eq!(error(&mut a, create), 10681);
    check(&mut a, "ALTER INDEX i ON w ABORT", &[]);
    check(&mut a, "CREATE INDEX i ON w (id) INCLUDE (a, b)", &[]);
    is_sound(&mut a, "w");
}
