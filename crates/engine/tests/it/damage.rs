//! Damage on the disk as a user meets it: 824 for what needs the page and for nothing else, what CHECKDB finds and by which
//! number, the row in msdb.dbo.suspect_pages, and other databases going on.
//!
//! Each case makes `hurt` whole in the same way: a table of bulk-made rows and an index, both logged by their making alone,
//! so that no log can repair them; closes the engine; changes bytes of the file; opens it again.

use crate::asked::is_done;
use crate::script::{config, fresh_engine, said};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use thawdb_engine::{Engine, Session};

const PAGE_BYTES: u64 = 8192;
const ROWS: usize = 8192;
/// The fixed places of a file: its header, PFS and GAM.
const HEADER: u64 = 0;
const PFS: u64 = 1;

struct Hurt {
    folder: PathBuf,
    file: PathBuf,
    /// Leaves of the table and of its index, in order of their numbers.
    rows: Vec<u64>,
    entries: Vec<u64>,
}

/// The rows of a result set of one column.
fn column(session: &mut Session, sql: &str) -> Vec<String> {
    let lines = said(session, sql);
    assert!(lines[0].starts_with('['), "{sql}: {lines:?}");
    lines[1..].iter().take_while(|line| !line.starts_with("done")).cloned().collect()
}

/// Numbers of the messages, in order, with how often each came in a row.
fn numbers(lines: &[String]) -> Vec<(u32, usize)> {
    let number = |line: &String| line.strip_prefix("Msg ")?.split(',').next()?.parse::<u32>().ok();
    let mut counted: Vec<(u32, usize)> = Vec::new();
    for number in lines.iter().filter_map(number) {
        match counted.last_mut() {
            Some((last, count)) if *last == number => *count += 1,
            _ => counted.push((number, 1)),
        }
    }
    counted
}

fn leaves(session: &mut Session, index: u32) -> Vec<u64> {
    let sql = format!(
        "SELECT allocated_page_page_id FROM sys.dm_db_database_page_allocations(DB_ID('hurt'), OBJECT_ID('hurt.dbo.t'), {index}, NULL, \
         'DETAILED') WHERE page_level = 0 AND is_iam_page = 0 AND is_allocated = 1 ORDER BY allocated_page_page_id"
    );
    column(session, &sql).iter().map(|line| line.parse().expect("a page")).collect()
}

fn made(name: &str) -> Hurt {
    let (engine, folder) = fresh_engine(name);
    let mut session = engine.internal_session();
    for sql in [
        "CREATE DATABASE hurt",
        "ALTER DATABASE hurt SET RECOVERY SIMPLE",
        "CREATE DATABASE well",
        "CREATE TABLE well.dbo.t (id int PRIMARY KEY) INSERT well.dbo.t VALUES (1), (2)",
        "USE hurt CREATE TABLE seed (n int NOT NULL) INSERT seed VALUES (0), (1), (2), (3), (4), (5), (6), (7)",
        "SELECT id, id * 7 % 8191 AS a, CONVERT(char(100), 'text') AS b INTO t \
         FROM (SELECT a.n * 1024 + b.n * 128 + c.n * 16 + d.n * 2 + e.n FROM seed a, seed b, seed c, seed d, seed e WHERE e.n < 2) AS v(id)",
        "ALTER TABLE t ALTER COLUMN id int NOT NULL",
        "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY (id)",
        "CREATE INDEX i ON t (a)",
        "CREATE TABLE filler (id int PRIMARY KEY, b char(1000)) INSERT filler SELECT TOP (1024) id, '' FROM t",
    ] {
        is_done(&mut session, sql);
    }
    // More than the log holds: it has nothing any more of how the pages came to be.
    for turn in 0..12 {
        is_done(&mut session, &format!("UPDATE filler SET b = '{turn}' CHECKPOINT"));
    }
    is_done(&mut session, "USE master");
    let file = column(&mut session, "SELECT physical_name FROM sys.master_files WHERE database_id = DB_ID('hurt') AND file_id = 1");
    let hurt = Hurt { folder, file: PathBuf::from(&file[0]), rows: leaves(&mut session, 1), entries: leaves(&mut session, 2) };
    assert!(hurt.rows.len() > 60 && hurt.entries.len() > 10, "{} and {} leaves", hurt.rows.len(), hurt.entries.len());
    drop(session);
    engine.close().expect("closes");
    hurt
}

fn page_of(path: &Path, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES as usize];
    OpenOptions::new().read(true).open(path).unwrap().read_exact_at(&mut bytes, page * PAGE_BYTES).unwrap();
    bytes
}

fn put_page(path: &Path, page: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, page * PAGE_BYTES).unwrap();
}

fn flip(path: &Path, page: u64, at: usize) {
    let mut bytes = page_of(path, page);
    bytes[at] ^= 0x10;
    put_page(path, page, &bytes);
}

/// Opens the folder for as long as `work` takes.
fn opened<R>(hurt: &Hurt, work: impl FnOnce(&mut Session) -> R) -> R {
    let engine = Engine::open(config(&hurt.folder)).expect("other databases are well");
    let mut session = engine.internal_session();
    let done = work(&mut session);
    drop(session);
    // A database that cannot write down what it wants to at its end says so; the others are closed all the same.
    if let Err(error) = engine.close() {
        assert_eq!(error.number, 824, "{error:?}");
    }
    done
}

const STATE: &str = "SELECT state_desc FROM sys.databases WHERE name = 'hurt'";
const CHECK: &str = "DBCC CHECKDB ('hurt') WITH NO_INFOMSGS";

#[test]
fn a_rotten_leaf_costs_those_who_need_it_and_is_named() {
    let hurt = made("damage-leaf");
    let page = hurt.rows[hurt.rows.len() / 2];
    flip(&hurt.file, page, 4000);
    let (all, count) = (format!("{ROWS}"), "SELECT COUNT(b) FROM hurt.dbo.t");
    let suspects = "SELECT CONCAT(file_id, ' ', page_id, ' ', event_type, ' ', SIGN(error_count)) FROM msdb.dbo.suspect_pages \
                    WHERE database_id = DB_ID('hurt')";
    opened(&hurt, |session| {
        let lines = said(session, count);
        let told = format!("page (1:{page}) in database ID");
        assert_eq!(numbers(&lines), [(824, 1)], "{lines:?}");
        assert!(lines.iter().any(|line| line.contains(&told) && line.contains("checksum")), "{lines:?}");
        // What does not need that page goes on, in this table too.
        assert_eq!(column(session, "SELECT COUNT(*) FROM hurt.dbo.t WITH (INDEX (i)) WHERE a >= 0"), [all.clone()]);
        assert_eq!(column(session, "SELECT id FROM hurt.dbo.t WHERE id = 0"), ["0"]);
        assert_eq!(column(session, "SELECT COUNT(*) FROM well.dbo.t"), ["2"]);
        is_done(session, "UPDATE hurt.dbo.t SET b = 'other' WHERE id = 0");
        assert_eq!(column(session, suspects), [format!("1 {page} 2 1")]);
        // Its neighbours are sound: the page alone, why, and who refers to it; then the sums of table and database.
        let lines = said(session, CHECK);
        assert_eq!(numbers(&lines), [(8928, 1), (8939, 1), (8976, 1)], "{lines:?}");
        let (of_table, of_all) = ("CHECKDB found 0 allocation errors and 3 consistency errors in table 't'", "in database 'hurt'");
        assert!(lines.iter().any(|line| line.contains(of_table)) && lines.iter().any(|line| line.contains(of_all)), "{lines:?}");
        let lines = said(session, "DBCC CHECKTABLE ('hurt.dbo.t') WITH NO_INFOMSGS");
        assert_eq!(numbers(&lines), [(8928, 1), (8939, 1), (8976, 1)], "{lines:?}");
        assert_eq!(numbers(&said(session, "DBCC CHECKDB ('well') WITH NO_INFOMSGS")), []);
        assert_eq!(numbers(&said(session, "DBCC CHECKALLOC ('hurt') WITH NO_INFOMSGS")), [], "maps and extents are as they were");
    });
    // The list of suspect pages outlives the process; the page that is whole again is read again.
    flip(&hurt.file, page, 4000);
    opened(&hurt, |session| {
        assert_eq!(column(session, count), [all]);
        assert_eq!(numbers(&said(session, CHECK)), []);
        assert_eq!(column(session, suspects).len(), 1);
        is_done(session, "DELETE msdb.dbo.suspect_pages");
        assert_eq!(column(session, suspects), [""; 0]);
    });
}

/// A write that the disk acknowledged and lost before the restart: the old page is whole, has its own name and checksum,
/// and nothing tells but that index and table disagree.
#[test]
fn an_index_leaf_of_yesterday_is_found_by_comparison() {
    let hurt = made("damage-lost");
    let yesterday: Vec<Vec<u8>> = hurt.entries.iter().map(|page| page_of(&hurt.file, *page)).collect();
    let last = opened(&hurt, |session| {
        is_done(session, "USE hurt UPDATE t SET a = a + 100000 WHERE id IN (5, 4000) USE master");
        let last = "SELECT allocated_page_page_id FROM sys.dm_db_database_page_allocations(DB_ID('hurt'), OBJECT_ID('hurt.dbo.t'), 2, \
                    NULL, 'DETAILED') WHERE page_level = 0 AND next_page_page_id IS NULL";
        column(session, last)[0].parse::<u64>().expect("a page")
    });
    // The entries' new place is the last leaf; there the write is lost: two rows have no entry any more.
    let place = hurt.entries.iter().position(|page| *page == last).expect("no leaf was split");
    assert!(page_of(&hurt.file, last) != yesterday[place]);
    put_page(&hurt.file, last, &yesterday[place]);
    opened(&hurt, |session| {
        let lines = said(session, CHECK);
        assert_eq!(numbers(&lines), [(8951, 1), (8955, 1), (8951, 1), (8955, 1)], "{lines:?}");
        let named = |row: &str| lines.iter().any(|line| line.ends_with(row) && !line.contains("(0:0:0)"));
        assert!(named("identified by (id = 5) with index values 'a = 100035'."), "{lines:?}");
        assert_eq!(numbers(&said(session, "DBCC CHECKDB ('hurt', NOINDEX) WITH NO_INFOMSGS")), []);
        assert_eq!(numbers(&said(session, "DBCC CHECKDB ('hurt') WITH NO_INFOMSGS, PHYSICAL_ONLY")), []);
        // What SQL Server says to do helps.
        is_done(session, "USE hurt DROP INDEX i ON t CREATE INDEX i ON t (a) USE master");
        assert_eq!(numbers(&said(session, CHECK)), []);
    });
}

/// A write that went to another page's place: the bytes are whole, and not that page's.
#[test]
fn a_page_in_anothers_place_is_not_served() {
    let hurt = made("damage-misdirected");
    let (from, to) = (hurt.rows[3], hurt.rows[20]);
    put_page(&hurt.file, to, &page_of(&hurt.file, from));
    opened(&hurt, |session| {
        let lines = said(session, "SELECT COUNT(b) FROM hurt.dbo.t");
        assert_eq!(numbers(&lines), [(824, 1)], "{lines:?}");
        let suspects = "SELECT CONCAT(page_id, ' ', event_type) FROM msdb.dbo.suspect_pages";
        assert_eq!(column(session, suspects), [format!("{to} 1")]);
        assert_eq!(numbers(&said(session, CHECK)), [(8928, 1), (8939, 1), (8976, 1)]);
    });
}

#[test]
fn a_rotten_map_is_an_error_of_allocation() {
    let hurt = made("damage-map");
    flip(&hurt.file, PFS, 5000);
    opened(&hurt, |session| {
        let lines = said(session, CHECK);
        assert!(numbers(&lines).iter().any(|(number, _)| *number == 8998), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("CHECKDB found") && line.contains("in database 'hurt'")), "{lines:?}");
        // Rows are still read: they need no map.
        assert_eq!(column(session, "SELECT COUNT(b) FROM hurt.dbo.t"), [format!("{ROWS}")]);
    });
}

#[test]
fn a_database_whose_header_is_gone_does_not_open_and_others_do() {
    let hurt = made("damage-header");
    flip(&hurt.file, HEADER, 300);
    opened(&hurt, |session| {
        assert_eq!(column(session, "SELECT COUNT(*) FROM well.dbo.t"), ["2"]);
        for sql in ["SELECT COUNT(*) FROM hurt.dbo.t", "USE hurt", "INSERT hurt.dbo.t VALUES (1, 1, '')", "EXEC hurt.dbo.nothing"] {
            let lines = said(session, sql);
            assert_eq!(numbers(&lines), [(926, 1)], "{sql}: {lines:?}");
        }
        assert_eq!(column(session, STATE), ["SUSPECT"]);
    });
    flip(&hurt.file, HEADER, 300);
    opened(&hurt, |session| assert_eq!(column(session, "SELECT COUNT(*) FROM hurt.dbo.t"), [format!("{ROWS}")]));
    // Gone altogether, then dropped.
    let moved = hurt.file.with_extension("elsewhere");
    std::fs::rename(&hurt.file, &moved).unwrap();
    opened(&hurt, |session| {
        let lines = said(session, "USE hurt");
        assert_eq!(numbers(&lines), [(945, 1)], "{lines:?}");
        assert_eq!(column(session, STATE), ["RECOVERY_PENDING"]);
        let told = said(session, "EXEC sp_readerrorlog 0, 1, N'hurt'");
        assert!(told.iter().any(|line| line.contains("cannot be opened due to inaccessible files")), "{told:?}");
    });
    std::fs::rename(&moved, &hurt.file).unwrap();
    flip(&hurt.file, HEADER, 300);
    opened(&hurt, |session| {
        is_done(session, "DROP DATABASE hurt");
        assert_eq!(column(session, STATE), [""; 0]);
        is_done(session, "CREATE DATABASE hurt");
    });
}
