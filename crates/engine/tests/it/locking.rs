//! What is locked, in which mode, for how long, and what hints and settings make of it.

use crate::script::{fresh_engine, said};
use crate::sessions::Sessions;
use std::sync::Arc;
use thawdb_engine::{Engine, Session};

fn world(name: &str) -> (Arc<Engine>, Session, Sessions) {
    let (engine, _) = fresh_engine(name);
    let mut session = engine.internal_session();
    said(&mut session, "CREATE DATABASE d");
    said(&mut session, "USE d CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) CREATE INDEX by_v ON t (v) CREATE TABLE h (a int)");
    said(&mut session, "INSERT t VALUES (1, 10), (2, 20), (5, 50) INSERT h VALUES (1), (2)");
    let sessions = Sessions::new(&engine);
    (engine, session, sessions)
}

/// The locks of the present session, by type and mode.
const OWN: &str = "select resource_type, request_mode from sys.dm_tran_locks where request_session_id = @@spid and resource_type <> 'DATABASE' \
                   order by resource_type desc, request_mode";

#[test]
fn locks_are_shown_as_they_are_held() {
    let (_, _, mut sessions) = world("locks-shown");
    let script = format!(
        "1 begin tran update t set v = 11 where id = 1 | ok
         1 {OWN} | OBJECT=IX KEY=X KEY=X KEY=X
         1 commit | ok
         1 set transaction isolation level repeatable read begin tran select v from t where id = 2 | 20
         1 {OWN} | OBJECT=IS KEY=S
         1 commit set transaction isolation level serializable begin tran select id from t where id between 2 and 4 | 2
         1 {OWN} | OBJECT=IS KEY=RangeS-S KEY=RangeS-S
         1 select id from t where id = 5 | 5
         1 select id from t where id > 5 | none
         1 select count(*) from sys.dm_tran_locks where request_session_id = @@spid and resource_description = '(ffffffffffff)' | 1
         1 commit begin tran select a from h | 1 2
         1 {OWN} | OBJECT=S
         1 commit | ok
         1 {OWN} | none"
    );
    sessions.run("d", &script);
}

#[test]
fn gaps_are_locked_in_either_index_and_direction() {
    let (_, _, mut sessions) = world("gaps");
    sessions.run(
        "d",
        "1 set transaction isolation level serializable begin tran select id from t where id > 2 and id < 4 | none
         2 insert t values (3, 30) | waits KEY RangeI-N
         1 commit | ok
         2 | ok
         1 set transaction isolation level serializable begin tran select id from t where id >= 2 and id <= 3 order by id desc | 3 2
         1 rollback | ok",
    );
}

#[test]
fn gaps_of_a_secondary_index() {
    let (_, _, mut sessions) = world("gaps-secondary");
    sessions.run(
        "d",
        "1 set transaction isolation level serializable begin tran select id from t where v between 15 and 30 | 2
         2 insert t values (7, 60) | ok
         2 insert t values (8, 40) | waits KEY RangeI-N
         1 commit | ok
         2 | ok
         1 begin tran select id from t where v > 45 order by v desc | 7 5
         2 insert t values (9, 55) | waits
         3 insert t values (10, 70) | waits
         1 insert t values (11, 58) | ok
         1 commit | ok
         2 | ok
         3 | ok",
    );
}

#[test]
fn a_gap_stays_locked_around_an_own_new_key() {
    let (_, _, mut sessions) = world("own-gap");
    sessions.run(
        "d",
        "1 set transaction isolation level serializable begin tran select id from t where id between 2 and 4 | 2
         1 insert t values (4, 40) | ok
         2 insert t values (3, 30) | waits
         1 select id from t where id between 2 and 4 | 2 4
         1 commit | ok
         2 | ok",
    );
}

#[test]
fn hints_choose_level_mode_and_size() {
    let (_, _, mut sessions) = world("hints");
    let script = format!(
        "1 begin tran select id from t with (updlock) where id = 1 | 1
         1 {OWN} | OBJECT=IX KEY=U
         2 select v from t where id = 1 | 10
         2 select v from t with (updlock, nowait) where id = 1 | 1222
         2 select id from t with (updlock, readpast) | 2 5
         2 select v from t with (xlock) where id = 1 | waits KEY X
         1 update t set v = 11 where id = 1 | ok
         3 select v from t with (nolock) where id = 1 | 11
         3 select v from t where id = 1 | 10
         3 select v from t with (readcommittedlock) where id = 1 | waits KEY S
         1 commit | ok
         2 | 11
         3 | 11
         1 begin tran select count(*) from t with (tablockx) | 3
         1 {OWN} | OBJECT=X
         2 insert t values (6, 60) | waits OBJECT IX
         1 commit | ok
         2 | ok
         1 begin tran insert h with (tablock) values (3) | ok
         1 {OWN} | OBJECT=X KEY=X
         1 rollback | ok
         1 begin tran select count(*) from t with (holdlock, tablock) | 4
         1 {OWN} | OBJECT=S
         1 commit | ok"
    )
    .replace("OBJECT=X KEY=X", "OBJECT=X");
    sessions.run("d", &script);
}

#[test]
fn a_queue_gives_each_reader_its_own_row() {
    let (_, _, mut sessions) = world("queue");
    sessions.run(
        "d",
        "1 begin tran delete top (1) from t with (readpast, rowlock) output deleted.id | 1
         2 begin tran delete top (1) from t with (readpast, rowlock) output deleted.id | 2
         3 begin tran select top (1) id from t with (updlock, readpast) order by id | 5
         1 rollback | ok
         2 commit | ok
         3 select id from t with (readpast) | 1 5",
    );
}

#[test]
fn hints_that_cannot_be() {
    let (_, mut session, _) = world("bad-hints");
    for (batch, number) in [
        ("SELECT * FROM t WITH (NOLOCK, UPDLOCK)", 1047),
        ("SELECT * FROM t WITH (NOLOCK, HOLDLOCK)", 1047),
        ("SELECT * FROM t WITH (ROWLOCK, TABLOCK)", 1047),
        ("UPDATE t WITH (NOLOCK) SET v = 1", 1065),
        ("DELETE FROM t WITH (READUNCOMMITTED)", 1065),
        ("INSERT t WITH (NOLOCK) VALUES (9, 9)", 1065),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE SELECT * FROM t WITH (READPAST)", 650),
        ("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED SELECT * FROM t WITH (READPAST)", 650),
        ("SET TRANSACTION ISOLATION LEVEL SNAPSHOT SELECT * FROM t", 3952),
        (
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED BEGIN TRAN SELECT * FROM h SET TRANSACTION ISOLATION LEVEL SNAPSHOT SELECT * FROM h",
            3951,
        ),
    ] {
        let lines = said(&mut session, batch);
        assert!(lines.iter().any(|line| line.starts_with(&format!("Msg {number},"))), "{batch}: {lines:?}");
        said(&mut session, "IF @@TRANCOUNT > 0 ROLLBACK SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    }
}

#[test]
fn snapshots_begin_with_the_first_touch_and_end_with_the_transaction() {
    let (_, mut session, mut sessions) = world("snapshots");
    said(&mut session, "ALTER DATABASE d SET ALLOW_SNAPSHOT_ISOLATION ON");
    sessions.run(
        "d",
        "1 set transaction isolation level snapshot begin tran | ok
         2 update t set v = 11 where id = 1 | ok
         1 select v from t where id = 1 | 11
         2 update t set v = 12 where id = 1 delete t where id = 5 | ok
         1 select id, v from t | 1=11 2=20 5=50
         1 update t set v = 21 where id = 2 | ok
         1 select id, v from t | 1=11 2=21 5=50
         1 update t set v = 22 where id = 2 | ok
         1 insert t values (5, 55) | 3960
         1 select id, v from t | 1=12 2=20
         1 begin tran select v from t where id = 1 | 12
         2 update t set v = 13 where id = 1 | ok
         1 set transaction isolation level read committed select v from t where id = 1 | 13
         1 update t set v = 14 where id = 1 | ok
         1 set transaction isolation level snapshot select v from t where id = 2 | 20
         1 commit | ok
         3 select v from t where id = 1 | 14",
    );
}

/// A key of a heap's unique index lies beside the row's number: whose it was has gone, and the snapshot still has it.
#[test]
fn a_snapshot_takes_no_second_row_of_a_unique_key() {
    let (_, mut session, mut sessions) = world("snapshot-unique");
    said(&mut session, "ALTER DATABASE d SET ALLOW_SNAPSHOT_ISOLATION ON");
    said(&mut session, "CREATE TABLE u (id int NOT NULL UNIQUE NONCLUSTERED, v int NOT NULL) INSERT u VALUES (1, 10), (2, 20), (3, 30)");
    sessions.run(
        "d",
        "1 set transaction isolation level snapshot begin tran select id, v from u | 1=10 2=20 3=30
         2 delete u where id = 2 | ok
         1 insert u values (4, 40) | ok
         1 insert u values (3, 31) | 2627
         1 insert u values (2, 21) | 3960
         1 begin tran select id, v from u | 1=10 3=30
         1 insert u values (2, 21) delete u where id = 2 insert u values (2, 22) | ok
         1 commit select id, v from u order by id | 1=10 2=22 3=30",
    );
}

#[test]
fn five_thousand_locks_become_one() {
    let (engine, mut session, mut sessions) = world("escalation");
    let rows: Vec<String> = (100..1100).map(|id| format!("({id}, {id})")).collect();
    said(&mut session, &format!("CREATE TABLE big (id int PRIMARY KEY, v int) INSERT big VALUES {}", rows.join(", ")));
    for step in 1..7 {
        said(&mut session, &format!("INSERT big SELECT id + {step} * 1000, v FROM big WHERE id < 1100"));
    }
    let script = format!(
        "1 begin tran update big set v = v + 1 where id < 4000 | ok
         1 select count(*) from sys.dm_tran_locks where request_session_id = @@spid and resource_type = 'KEY' | 3900
         1 commit begin tran update big set v = v + 1 | ok
         1 {OWN} | OBJECT=X
         2 select count(*) from big where v > 0 | 7000
         2 update big set v = 0 where id = 100 | waits OBJECT IX
         1 rollback | ok
         2 | ok"
    );
    sessions.run("d", &script);
    drop(engine);
}

#[test]
fn a_circle_through_a_row_and_a_table_is_a_deadlock() {
    let (_, _, mut sessions) = world("two-kinds");
    sessions.run(
        "d",
        "1 begin tran update t set v = 1 where id = 1 | ok
         2 begin tran alter table h add b int null | ok
         1 select a from h | waits OBJECT Sch-S
         2 update t set v = 2 where id = 1 | 1205
         1 | 1 2
         1 commit | ok",
    );
}

#[test]
fn waits_and_transactions_are_shown() {
    let (engine, mut session, mut sessions) = world("views");
    sessions.run(
        "d",
        "1 begin tran orders update t set v = 1 where id = 1 | ok
         2 begin tran update t set v = 2 where id = 1 | waits KEY U
         3 select wait_type, iif(resource_description like 'keylock%mode=U', 1, 0), blocking_session_id - (select min(session_id) from sys.dm_tran_session_transactions) from sys.dm_os_waiting_tasks where wait_type like 'LCK%' | LCK_M_U=1=0
         3 select status, wait_type from sys.dm_exec_requests where blocking_session_id > 0 | suspended=LCK_M_U
         3 select name, transaction_state from sys.dm_tran_active_transactions where name = 'orders' | orders=2
         3 select count(*) from sys.dm_tran_session_transactions | 2
         1 commit | ok
         2 | ok
         2 commit | ok
         3 select count(*) from sys.dm_tran_session_transactions | 0
         3 set transaction isolation level serializable select transaction_isolation_level from sys.dm_exec_sessions where session_id = @@spid | 4",
    );
    said(&mut session, "BEGIN TRAN UPDATE t SET v = 3 WHERE id = 1");
    let lines = said(&mut session, "EXEC sp_lock @@SPID");
    assert!(lines.iter().any(|line| line.contains("| KEY | (") && line.contains("| X | GRANT")), "{lines:?}");
    drop(engine);
}
