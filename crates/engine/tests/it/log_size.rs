//! A log file that was made large becomes small, whatever keeps it and wherever it is being written.

use crate::script::{fresh_engine, said};

#[test]
fn a_large_log_shrinks_below_the_parts_it_was_made_of() {
    let (engine, _) = fresh_engine("log-size");
    let mut a = engine.internal_session();
    said(&mut a, "CREATE DATABASE wide LOG ON (NAME = wide_log, SIZE = 1GB, FILEGROWTH = 0)");
    said(&mut a, "USE wide CREATE TABLE t (id int PRIMARY KEY)");
    said(&mut a, "ALTER DATABASE wide SET RECOVERY FULL BACKUP DATABASE wide TO DISK = 'NUL'");
    for (turn, megabytes) in [64, 2].into_iter().enumerate() {
        said(&mut a, &format!("INSERT t VALUES ({turn})"));
        said(&mut a, "BACKUP LOG wide TO DISK = 'NUL'");
        let lines = said(&mut a, &format!("DBCC SHRINKFILE (wide_log, {megabytes}) WITH NO_INFOMSGS"));
        println!("{lines:?}");
        let size = said(&mut a, "SELECT size / 128 AS megabytes FROM sys.database_files WHERE type = 1");
        assert_eq!(size[1], megabytes.to_string(), "{lines:?}");
    }
    let rows = said(&mut a, "SELECT COUNT(*) AS n FROM t");
    assert_eq!(rows[1], "2");
}
