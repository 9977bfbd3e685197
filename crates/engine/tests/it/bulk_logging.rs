//! What SELECT INTO and CREATE INDEX leave in the log under each recovery model, by one thread and by two; and that what
//! they made is there.

use crate::asked::{is_done, number};
use crate::script::fresh_engine;
use thawdb_engine::Session;

const ROWS: i64 = 65_536;
const LOGGED: &str = "SELECT num_of_bytes_written FROM sys.dm_io_virtual_file_stats(DB_ID(), 2)";

/// Bytes that the log file is written meanwhile.
fn logged(session: &mut Session, sql: &str) -> i64 {
    is_done(session, "CHECKPOINT");
    let before = number(session, LOGGED);
    is_done(session, sql);
    number(session, LOGGED) - before
}

#[test]
fn new_pages_are_logged_whole_under_full_and_by_their_making_else() {
    let (engine, _) = fresh_engine("bulk-logging");
    let mut session = engine.internal_session();
    for sql in ["CREATE DATABASE d", "USE d", "CREATE TABLE seed (id int PRIMARY KEY, b varchar(40))", "INSERT seed VALUES (0, 'x')"] {
        is_done(&mut session, sql);
    }
    for half in (0..12).map(|power| 1 << power) {
        is_done(&mut session, &format!("INSERT seed SELECT id + {half}, CONVERT(varchar(40), NEWID()) FROM seed"));
    }
    let into = "SELECT seed.id * 16 + n AS id, CHECKSUM(seed.b) AS a, seed.b INTO big FROM seed CROSS JOIN \
                (VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(11),(12),(13),(14),(15)) AS v(n)";
    let used = "SELECT SUM(allocated_extent_page_count) * 8192 FROM sys.dm_db_file_space_usage";
    let before = number(&mut session, used);
    let mut size = 0;
    for (model, percent) in [("SIMPLE", 0..5), ("BULK_LOGGED", 0..5), ("FULL", 20..110)] {
        is_done(&mut session, &format!("ALTER DATABASE d SET RECOVERY {model}"));
        let bytes = logged(&mut session, into);
        if size == 0 {
            // What is dropped later is given back when nobody looks.
            size = number(&mut session, used) - before;
        }
        assert!(size > ROWS * 40, "{model}: {size} bytes");
        // A last batch of fewer than 32 leaves is logged whole under every model.
        let bytes = if model == "FULL" { bytes } else { (bytes - 32 * 8192).max(0) };
        assert!(percent.contains(&(bytes * 100 / size)), "{model}: {bytes} bytes of log for {size}");
        assert_eq!(number(&mut session, "SELECT COUNT_BIG(DISTINCT id) FROM big"), ROWS);
        for dop in [1, 2] {
            let bytes = logged(&mut session, &format!("CREATE INDEX i{dop} ON big (a) INCLUDE (id) WITH (MAXDOP = {dop})"));
            // An entry has more than 20 bytes; each thread has a last batch.
            let bytes = bytes - dop * 32 * 8192;
            assert!(model == "FULL" || bytes * 20 < ROWS * 20, "{model}, MAXDOP {dop}: {bytes} bytes of log");
            let by_index = format!("SELECT COUNT_BIG(*) FROM big WITH (INDEX (i{dop})) WHERE a >= 0 OR a < 0");
            assert_eq!(number(&mut session, &by_index), ROWS);
        }
        is_done(&mut session, "DBCC CHECKTABLE (big) WITH NO_INFOMSGS");
        is_done(&mut session, "DROP TABLE big");
    }
}
