//! Sessions beside each other: what they see, what they wait for, how deadlocks end.

use crate::script::{fresh_engine, said};

#[test]
fn what_is_not_committed_is_not_seen() {
    let (engine, _) = fresh_engine("seen");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int) INSERT t VALUES (1, 10)");
    said(&mut a, "BEGIN TRAN UPDATE t SET v = 11 WHERE id = 1 INSERT t VALUES (2, 20)");
    assert_eq!(said(&mut b, "SELECT * FROM t"), ["[id int, v int]", "1 | 10", "done 1"], "readers do not wait for writers");
    assert_eq!(said(&mut a, "SELECT * FROM t"), ["[id int, v int]", "1 | 11", "2 | 20", "done 2"]);
    said(&mut a, "COMMIT");
    assert_eq!(said(&mut b, "SELECT * FROM t"), ["[id int, v int]", "1 | 11", "2 | 20", "done 2"]);
}

#[test]
fn a_writer_waits_for_a_writer_as_long_as_it_was_told() {
    let (engine, _) = fresh_engine("waits");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int) INSERT t VALUES (1, 10)");
    said(&mut a, "BEGIN TRAN UPDATE t SET v = 11 WHERE id = 1");
    let lines = said(&mut b, "SET LOCK_TIMEOUT 20 UPDATE t SET v = 12 WHERE id = 1 SELECT @@ERROR AS e");
    assert!(lines[0].starts_with("Msg 1222"), "{lines:?}");
    assert_eq!(lines[lines.len() - 2..], ["1222", "done 1"]);
    let worker = std::thread::spawn(move || said(&mut b, "SET LOCK_TIMEOUT -1 UPDATE t SET v = v + 5 WHERE id = 1"));
    said(&mut a, "COMMIT");
    assert_eq!(worker.join().expect("no panic"), ["done 1"]);
    assert_eq!(said(&mut a, "SELECT v FROM t"), ["[v int]", "16", "done 1"]);
}

#[test]
fn of_two_that_wait_for_each_other_one_gives_way() {
    let (engine, _) = fresh_engine("deadlock");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int) INSERT t VALUES (1, 0), (2, 0)");
    said(&mut a, "BEGIN TRAN UPDATE t SET v = 1 WHERE id = 1");
    said(&mut b, "SET DEADLOCK_PRIORITY LOW BEGIN TRAN UPDATE t SET v = 2 WHERE id = 2");
    let worker = std::thread::spawn(move || {
        let lines = said(&mut b, "UPDATE t SET v = 2 WHERE id = 1 PRINT 'not reached'");
        (lines, said(&mut b, "SELECT @@TRANCOUNT AS n"))
    });
    let lines = said(&mut a, "UPDATE t SET v = 1 WHERE id = 2");
    let (other, count) = worker.join().expect("no panic");
    assert_eq!(lines, ["done 1"]);
    assert!(other[0].starts_with("Msg 1205, Level 13"), "{other:?}");
    assert!(!other.iter().any(|line| line.contains("not reached")));
    assert_eq!(count[1], "0", "the victim's transaction is over");
    said(&mut a, "COMMIT");
    assert_eq!(said(&mut a, "SELECT v FROM t ORDER BY id"), ["[v int]", "1", "1", "done 2"]);
}

#[test]
fn definitions_wait_for_those_who_use_them() {
    let (engine, _) = fresh_engine("definitions-wait");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, "CREATE TABLE t (id int PRIMARY KEY)");
    said(&mut a, "BEGIN TRAN INSERT t VALUES (1)");
    let lines = said(&mut b, "SET LOCK_TIMEOUT 20 DROP TABLE t");
    assert!(lines[0].starts_with("Msg 1222"), "{lines:?}");
    said(&mut a, "ROLLBACK");
    // What does not have to wait must not have a limit either: on a busy machine 20 ms are short for a latch too.
    said(&mut b, "SET LOCK_TIMEOUT -1");
    // A table made and not committed is nobody else's; a dropped one is nobody's until the drop is decided.
    said(&mut a, "BEGIN TRAN CREATE TABLE u (a int)");
    assert!(said(&mut b, "SELECT * FROM u")[0].starts_with("Msg 208"));
    said(&mut a, "COMMIT");
    assert_eq!(said(&mut b, "SELECT * FROM u"), ["[a int]", "done 0"]);
    said(&mut a, "BEGIN TRAN DROP TABLE t");
    assert!(said(&mut b, "SET LOCK_TIMEOUT 20 SELECT * FROM t")[0].starts_with("Msg 1222"));
    said(&mut a, "ROLLBACK");
    assert_eq!(said(&mut b, "SET LOCK_TIMEOUT -1 SELECT * FROM t"), ["[id int]", "done 0"]);
}

#[test]
fn plans_are_made_anew_when_definitions_change() {
    let (engine, _) = fresh_engine("plans");
    let (mut a, mut b) = (engine.internal_session(), engine.internal_session());
    said(&mut a, "CREATE TABLE t (a int)");
    assert_eq!(said(&mut b, "SELECT * FROM t"), ["[a int]", "done 0"]);
    said(&mut a, "ALTER TABLE t ADD b int NULL");
    assert_eq!(said(&mut b, "SELECT * FROM t"), ["[a int, b int]", "done 0"]);
    said(&mut a, "DROP TABLE t CREATE TABLE t (c bigint)");
    assert_eq!(said(&mut b, "SELECT * FROM t"), ["[c bigint]", "done 0"]);
    said(&mut a, "BEGIN TRAN ALTER TABLE t ADD d int NULL SELECT * FROM t ROLLBACK");
    assert_eq!(said(&mut b, "SELECT * FROM t"), ["[c bigint]", "done 0"]);
    assert_eq!(said(&mut a, "SELECT * FROM t"), ["[c bigint]", "done 0"]);
}

#[test]
fn many_sessions_count_right() {
    let (engine, _) = fresh_engine("many");
    let mut session = engine.internal_session();
    said(&mut session, "CREATE TABLE t (id int IDENTITY PRIMARY KEY, who int) CREATE TABLE c (n int) INSERT c VALUES (0)");
    let workers: Vec<_> = (0..4)
        .map(|who| {
            let mut session = engine.internal_session();
            std::thread::spawn(move || {
                for _ in 0..25 {
                    let lines = said(&mut session, &format!("INSERT t (who) VALUES ({who}) UPDATE c SET n = n + 1"));
                    assert_eq!(lines, ["done 1", "done 1"]);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
    assert_eq!(said(&mut session, "SELECT COUNT(*) AS c, COUNT(DISTINCT id) AS d, (SELECT n FROM c) AS n FROM t")[1], "100 | 100 | 100");
}
