//! The catalogue of isolation anomalies at every level, as SQL Server is documented to treat them.
//!
//! The histories and what SQL Server does with them are those of Martin Kleppmann's "Hermitage" (run there against SQL
//! Server 2012): three databases, `lock` with READ_COMMITTED_SNAPSHOT OFF, `versions` with it ON, `snap` with
//! ALLOW_SNAPSHOT_ISOLATION. A deadlock's victim is who closes the circle, if nobody has more to lose.

use crate::script::{fresh_engine, said};
use crate::sessions::Sessions;
use std::sync::Arc;
use thawdb_engine::Engine;

struct World {
    engine: Arc<Engine>,
    sessions: Sessions,
}

fn world(name: &str) -> World {
    let (engine, _) = fresh_engine(name);
    let mut session = engine.internal_session();
    for database in ["lock", "versions", "snap"] {
        said(&mut session, &format!("CREATE DATABASE {database}"));
    }
    said(&mut session, "ALTER DATABASE lock SET READ_COMMITTED_SNAPSHOT OFF ALTER DATABASE snap SET READ_COMMITTED_SNAPSHOT OFF");
    said(&mut session, "ALTER DATABASE snap SET ALLOW_SNAPSHOT_ISOLATION ON");
    for database in ["lock", "versions", "snap"] {
        said(&mut session, &format!("USE {database}"));
        assert!(said(&mut session, "CREATE TABLE test (id int PRIMARY KEY, value int)").is_empty());
    }
    let sessions = Sessions::new(&engine);
    World { engine, sessions }
}

impl World {
    /// Runs a script whose sessions 1, 2 and 3 have begun transactions at `level`, over rows 1=10 and 2=20.
    fn check(&mut self, database: &str, level: &str, script: &str) {
        let mut session = self.engine.internal_session();
        said(&mut session, &format!("USE {database}"));
        assert_eq!(said(&mut session, "DELETE test INSERT test VALUES (1, 10), (2, 20)").last().unwrap(), "done 2");
        let begun: String = [1, 2, 3].map(|name| format!("{name} SET TRANSACTION ISOLATION LEVEL {level} BEGIN TRAN | ok\n")).concat();
        self.sessions.run(database, &format!("{begun}{script}"));
    }
}

const RU: &str = "READ UNCOMMITTED";
const RC: &str = "READ COMMITTED";
const RR: &str = "REPEATABLE READ";
const SNAPSHOT: &str = "SNAPSHOT";
const SERIALIZABLE: &str = "SERIALIZABLE";

#[test]
fn g0_write_cycles_are_prevented_everywhere() {
    let mut world = world("g0");
    for (database, level) in [("lock", RU), ("lock", RC), ("versions", RC), ("lock", RR), ("lock", SERIALIZABLE)] {
        world.check(
            database,
            level,
            "1 update test set value = 11 where id = 1 | ok
             2 update test set value = 12 where id = 1 | waits KEY U
             1 update test set value = 21 where id = 2 | ok
             1 commit | ok
             2 | ok
             2 update test set value = 22 where id = 2 | ok
             2 commit | ok
             3 select * from test | 1=12 2=22",
        );
    }
}

#[test]
fn g1a_aborted_reads() {
    let mut world = world("g1a");
    world.check(
        "lock",
        RU,
        "1 update test set value = 101 where id = 1 | ok
         2 select * from test | 1=101 2=20
         1 rollback | ok
         2 select * from test | 1=10 2=20",
    );
    for level in [RC, RR, SERIALIZABLE] {
        world.check(
            "lock",
            level,
            "1 update test set value = 101 where id = 1 | ok
             2 select * from test | waits
             1 rollback | ok
             2 | 1=10 2=20",
        );
    }
    for (database, level) in [("versions", RC), ("snap", SNAPSHOT)] {
        world.check(
            database,
            level,
            "1 update test set value = 101 where id = 1 | ok
             2 select * from test | 1=10 2=20
             1 rollback | ok
             2 select * from test | 1=10 2=20",
        );
    }
}

#[test]
fn g1b_intermediate_reads() {
    let mut world = world("g1b");
    world.check(
        "lock",
        RU,
        "1 update test set value = 101 where id = 1 | ok
         2 select * from test | 1=101 2=20
         1 update test set value = 11 where id = 1 | ok
         1 commit | ok
         2 select * from test | 1=11 2=20",
    );
    for level in [RC, RR, SERIALIZABLE] {
        world.check(
            "lock",
            level,
            "1 update test set value = 101 where id = 1 | ok
             2 select * from test | waits
             1 update test set value = 11 where id = 1 | ok
             1 commit | ok
             2 | 1=11 2=20",
        );
    }
    for (database, level, later) in [("versions", RC, "1=11 2=20"), ("snap", SNAPSHOT, "1=10 2=20")] {
        let script = format!(
            "1 update test set value = 101 where id = 1 | ok
             2 select * from test | 1=10 2=20
             1 update test set value = 11 where id = 1 | ok
             1 commit | ok
             2 select * from test | {later}"
        );
        world.check(database, level, &script);
    }
}

#[test]
fn g1c_circular_information_flow() {
    let mut world = world("g1c");
    let both = "1 update test set value = 11 where id = 1 | ok
                2 update test set value = 22 where id = 2 | ok\n";
    world.check("lock", RU, &format!("{both} 1 select * from test where id = 2 | 2=22\n 2 select * from test where id = 1 | 1=11"));
    for level in [RC, RR, SERIALIZABLE] {
        let script = format!(
            "{both} 1 select * from test where id = 2 | waits KEY S
             2 select * from test where id = 1 | 1205
             1 | 2=20
             1 commit | ok
             2 select @@trancount | 0"
        );
        world.check("lock", level, &script);
    }
    for (database, level) in [("versions", RC), ("snap", SNAPSHOT)] {
        let script = format!("{both} 1 select * from test where id = 2 | 2=20\n 2 select * from test where id = 1 | 1=10");
        world.check(database, level, &script);
    }
}

#[test]
fn otv_an_observed_transaction_vanishes() {
    let mut world = world("otv");
    let first = "1 update test set value = 11 where id = 1 | ok
                 1 update test set value = 19 where id = 2 | ok
                 2 update test set value = 12 where id = 1 | waits
                 1 commit | ok
                 2 | ok\n";
    world.check(
        "lock",
        RU,
        &format!(
            "{first} 3 select * from test | 1=12 2=19
             2 update test set value = 18 where id = 2 | ok
             3 select * from test | 1=12 2=18
             2 commit | ok"
        ),
    );
    for level in [RC, RR, SERIALIZABLE] {
        let script = format!(
            "{first} 3 select * from test | waits
             2 update test set value = 18 where id = 2 | ok
             2 commit | ok
             3 | 1=12 2=18"
        );
        world.check("lock", level, &script);
    }
    world.check(
        "versions",
        RC,
        &format!(
            "{first} 3 select * from test | 1=11 2=19
             2 update test set value = 18 where id = 2 | ok
             3 select * from test | 1=11 2=19
             2 commit | ok
             3 select * from test | 1=12 2=18"
        ),
    );
}

#[test]
fn pmp_predicates_with_many_preceders() {
    let mut world = world("pmp");
    for (database, level) in [("lock", RC), ("versions", RC), ("lock", RR)] {
        world.check(
            database,
            level,
            "1 select * from test where value = 30 | none
             2 insert into test (id, value) values (3, 30) | ok
             2 commit | ok
             1 select * from test where value % 3 = 0 | 3=30",
        );
    }
    world.check(
        "snap",
        SNAPSHOT,
        "1 select * from test where value = 30 | none
         2 insert into test (id, value) values (3, 30) | ok
         2 commit | ok
         1 select * from test where value % 3 = 0 | none",
    );
    world.check(
        "lock",
        SERIALIZABLE,
        "1 select * from test where value = 30 | none
         2 insert into test (id, value) values (3, 30) | waits
         1 select * from test where value % 3 = 0 | none
         1 commit | ok
         2 | ok",
    );
}

#[test]
fn pmp_for_rows_that_are_there() {
    let mut world = world("pmp-items");
    world.check(
        "lock",
        RC,
        "2 select * from test | 1=10 2=20
         1 update test set value = value + 10 | ok
         2 select * from test | waits KEY S
         1 commit | ok
         2 | 1=20 2=30
         2 delete from test where value = 20 | ok
         2 select * from test | 2=30",
    );
    world.check(
        "versions",
        RC,
        "1 update test set value = value + 10 | ok
         2 select * from test where value = 20 | 2=20
         2 delete from test where value = 20 | waits KEY U
         1 commit | ok
         2 | ok
         2 select * from test | 2=30",
    );
    for level in [RR, SERIALIZABLE] {
        world.check(
            "lock",
            level,
            "2 select * from test | 1=10 2=20
             1 update test set value = value + 10 | waits
             2 delete from test where value = 20 | 1205
             1 | ok
             1 commit | ok",
        );
    }
    world.check(
        "snap",
        SNAPSHOT,
        "1 update test set value = value + 10 | ok
         2 select * from test where value = 20 | 2=20
         2 delete from test where value = 20 | waits
         1 commit | ok
         2 | 3960",
    );
}

#[test]
fn p4_lost_updates() {
    let mut world = world("p4");
    let reads = "1 select * from test where id = 1 | 1=10
                 2 select * from test where id = 1 | 1=10\n";
    for database in ["lock", "versions"] {
        let script = format!(
            "{reads} 1 update test set value = 11 where id = 1 | ok
             2 update test set value = 11 where id = 1 | waits
             1 commit | ok
             2 | ok
             2 commit | ok"
        );
        world.check(database, RC, &script);
    }
    for level in [RR, SERIALIZABLE] {
        let script = format!(
            "{reads} 1 update test set value = 11 where id = 1 | waits KEY X
             2 update test set value = 11 where id = 1 | 1205
             1 | ok
             1 commit | ok"
        );
        world.check("lock", level, &script);
    }
    let script = format!(
        "{reads} 1 update test set value = 11 where id = 1 | ok
         2 update test set value = 11 where id = 1 | waits
         1 commit | ok
         2 | 3960
         2 select @@trancount | 0"
    );
    world.check("snap", SNAPSHOT, &script);
}

#[test]
fn g_single_read_skew() {
    let mut world = world("g-single");
    let reads = "1 select * from test where id = 1 | 1=10
                 2 select * from test where id = 1 | 1=10
                 2 select * from test where id = 2 | 2=20\n";
    let writes = "2 update test set value = 12 where id = 1 | ok
                  2 update test set value = 18 where id = 2 | ok
                  2 commit | ok\n";
    for database in ["lock", "versions"] {
        world.check(database, RC, &format!("{reads}{writes} 1 select * from test where id = 2 | 2=18"));
    }
    world.check("snap", SNAPSHOT, &format!("{reads}{writes} 1 select * from test where id = 2 | 2=20"));
    for level in [RR, SERIALIZABLE] {
        let script = format!(
            "{reads} 2 update test set value = 12 where id = 1 | waits
             1 select * from test where id = 2 | 2=20
             1 commit | ok
             2 | ok
             2 update test set value = 18 where id = 2 | ok"
        );
        world.check("lock", level, &script);
    }
}

#[test]
fn g_single_on_predicates() {
    let mut world = world("g-single-predicates");
    for (database, level, seen) in [("lock", RR, "3=30"), ("snap", SNAPSHOT, "none")] {
        let script = format!(
            "1 select * from test where value % 5 = 0 | 1=10 2=20
             2 insert into test (id, value) values (3, 30) | ok
             2 commit | ok
             1 select * from test where value % 3 = 0 | {seen}"
        );
        world.check(database, level, &script);
    }
    world.check(
        "lock",
        SERIALIZABLE,
        "1 select * from test where value % 5 = 0 | 1=10 2=20
         2 insert into test (id, value) values (3, 30) | waits
         1 select * from test where value % 3 = 0 | none
         1 commit | ok
         2 | ok",
    );
    for level in [RR, SERIALIZABLE] {
        world.check(
            "lock",
            level,
            "1 select * from test where id = 1 | 1=10
             2 select * from test | 1=10 2=20
             2 update test set value = 12 where id = 1 | waits
             1 delete from test where value = 20 | 1205
             2 | ok
             2 update test set value = 18 where id = 2 | ok
             2 commit | ok",
        );
    }
    world.check(
        "snap",
        SNAPSHOT,
        "1 select * from test where id = 1 | 1=10
         2 select * from test | 1=10 2=20
         2 update test set value = 12 where id = 1 | ok
         2 update test set value = 18 where id = 2 | ok
         2 commit | ok
         1 delete from test where value = 20 | 3960",
    );
}

#[test]
fn g2_item_write_skew() {
    let mut world = world("g2-item");
    let reads = "1 select * from test where id in (1, 2) | 1=10 2=20
                 2 select * from test where id in (1, 2) | 1=10 2=20\n";
    let writes = "1 update test set value = 11 where id = 1 | ok
                  2 update test set value = 21 where id = 2 | ok
                  1 commit | ok
                  2 commit | ok";
    for (database, level) in [("lock", RC), ("versions", RC), ("snap", SNAPSHOT)] {
        world.check(database, level, &format!("{reads}{writes}"));
    }
    for level in [RR, SERIALIZABLE] {
        let script = format!(
            "{reads} 1 update test set value = 11 where id = 1 | waits
             2 update test set value = 21 where id = 2 | 1205
             1 | ok"
        );
        world.check("lock", level, &script);
    }
}

#[test]
fn g2_anti_dependency_cycles() {
    let mut world = world("g2");
    let reads = "1 select * from test where value % 3 = 0 | none
                 2 select * from test where value % 3 = 0 | none\n";
    for (database, level) in [("lock", RC), ("versions", RC), ("lock", RR), ("snap", SNAPSHOT)] {
        let script = format!(
            "{reads} 1 insert into test (id, value) values (3, 30) | ok
             2 insert into test (id, value) values (4, 42) | ok
             1 commit | ok
             2 commit | ok
             3 select * from test where value % 3 = 0 | 3=30 4=42"
        );
        world.check(database, level, &script);
    }
    let script = format!(
        "{reads} 1 insert into test (id, value) values (3, 30) | waits
         2 insert into test (id, value) values (4, 42) | 1205
         1 | ok
         1 commit | ok"
    );
    world.check("lock", SERIALIZABLE, &script);
    // Fekete, O'Neil, O'Neil: "A read-only transaction anomaly under snapshot isolation", two anti-dependencies.
    world.check(
        "lock",
        SERIALIZABLE,
        "1 select * from test | 1=10 2=20
         2 update test set value = value + 5 where id = 2 | waits KEY X
         3 select * from test | waits
         1 update test set value = 0 where id = 1 | 1205
         2 | ok
         2 commit | ok
         3 | 1=10 2=25",
    );
}
