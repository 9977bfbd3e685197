//! Tables and indexes with DATA_COMPRESSION: the same answers as without, on fewer pages; what is refused, and what the views
//! and the estimate say.

use crate::asked::{check, error, is_done, is_sound, value};
use crate::script::{config, fresh_engine, said};
use thawdb_engine::{Engine, Session};

const METHODS: [&str; 3] = ["NONE", "ROW", "PAGE"];

fn pages(session: &mut Session, table: &str, index: i32) -> u64 {
    let sql =
        format!("SELECT used_page_count FROM sys.dm_db_partition_stats WHERE object_id = OBJECT_ID('{table}') AND index_id = {index}");
    value(session, &sql).parse().expect("a count of pages")
}

const COLUMNS: &str =
    "PostId int NOT NULL, UserId int NULL, BountyAmount int NULL, VoteTypeId int NOT NULL, CreationDate datetime NOT NULL";

/// Sixteen thousand votes, and a table of them for each setting: `vNONE`, `vROW`, `vPAGE`.
fn votes(session: &mut Session) {
    is_done(session, "CREATE TABLE n (n int NOT NULL PRIMARY KEY) INSERT n VALUES (0)");
    for step in 0..14 {
        is_done(session, &format!("INSERT n SELECT n + {} FROM n", 1 << step));
    }
    is_done(session, &format!("CREATE TABLE source (Id int NOT NULL PRIMARY KEY, {COLUMNS})"));
    is_done(
        session,
        "INSERT source SELECT n + 1, n / 2 + (n * 7919) % 1000, CASE WHEN n % 20 = 0 THEN n * 13 END, CASE WHEN n % 50 = 0 THEN 50 + n % 10 * 50 END, \
         CASE WHEN n % 7 = 0 THEN 3 WHEN n % 11 = 0 THEN 5 ELSE 2 END, DATEADD(day, n / 400, '2008-07-31') FROM n",
    );
    for method in METHODS {
        is_done(
            session,
            &format!(
                "CREATE TABLE v{method} (Id int NOT NULL CONSTRAINT pk_{method} PRIMARY KEY, {COLUMNS}) WITH (DATA_COMPRESSION = {method})"
            ),
        );
    }
}

/// The table has the rows of `source`, by a scan and by look-ups.
fn agrees(session: &mut Session, table: &str, source: &str) {
    let both = format!(
        "SELECT COUNT(*) FROM ((SELECT * FROM {table} EXCEPT SELECT * FROM {source}) UNION ALL (SELECT * FROM {source} EXCEPT SELECT * FROM {table})) AS d"
    );
    assert_eq!(value(session, &both), "0", "{table} against {source}");
    for id in [1, 2, 77, 8_000, 16_384] {
        let row = |table: &str| format!("SELECT * FROM {table} WHERE Id = {id}");
        assert_eq!(said(session, &row(table)), said(session, &row(source)), "{table} {id}");
    }
}

#[test]
fn the_same_rows_lie_on_fewer_pages() {
    let (engine, folder) = fresh_engine("compression-votes");
    let mut a = engine.internal_session();
    votes(&mut a);
    let mut counts = Vec::new();
    for method in METHODS {
        let table = format!("v{method}");
        is_done(&mut a, &format!("INSERT {table} SELECT * FROM source"));
        is_sound(&mut a, &table);
        agrees(&mut a, &table, "source");
        is_done(
            &mut a,
            &format!("CREATE INDEX i ON {table} (PostId) INCLUDE (CreationDate, VoteTypeId) WITH (DATA_COMPRESSION = {method})"),
        );
        is_sound(&mut a, &table);
        counts.push((pages(&mut a, &table, 1), pages(&mut a, &table, 2)));
    }
    let [none, row, page] = counts[..] else { panic!("three settings") };
    assert!(page.0 < row.0 && row.0 < none.0, "clustered: {counts:?}");
    assert!(page.1 < row.1 && row.1 < none.1, "nonclustered: {counts:?}");
    let settings = "SELECT t.name, p.index_id, p.data_compression, p.data_compression_desc FROM sys.partitions AS p JOIN sys.tables AS t ON t.object_id = p.object_id \
                    WHERE t.name LIKE 'v%' ORDER BY t.name, p.index_id";
    let columns = "[name nvarchar(128), index_id int, data_compression tinyint, data_compression_desc nvarchar(60)]";
    let rows = [
        "vNONE | 1 | 0 | NONE",
        "vNONE | 2 | 0 | NONE",
        "vPAGE | 1 | 2 | PAGE",
        "vPAGE | 2 | 2 | PAGE",
        "vROW | 1 | 1 | ROW",
        "vROW | 2 | 1 | ROW",
    ];
    check(&mut a, settings, &[&[columns][..], &rows, &["done 6"]].concat());
    // The same after a restart.
    drop(a);
    engine.close().expect("it closes");
    drop(engine);
    let engine = Engine::open(config(&folder)).expect("it opens again");
    let mut a = engine.internal_session();
    for method in METHODS {
        agrees(&mut a, &format!("v{method}"), "source");
    }
    check(&mut a, settings, &[&[columns][..], &rows, &["done 6"]].concat());
}

#[test]
fn changes_read_back_under_every_setting() {
    let (engine, _) = fresh_engine("compression-changes");
    let mut a = engine.internal_session();
    votes(&mut a);
    is_done(&mut a, "CREATE DATABASE other");
    for method in METHODS {
        let table = format!("v{method}");
        is_done(&mut a, &format!("INSERT {table} SELECT * FROM source WHERE Id % 3 > 0"));
        is_done(&mut a, &format!("CREATE INDEX i ON {table} (UserId) INCLUDE (VoteTypeId) WITH (DATA_COMPRESSION = {method})"));
        for sql in [
            "INSERT {t} SELECT * FROM source WHERE Id % 3 = 0",
            "UPDATE {t} SET BountyAmount = Id * 1000, UserId = NULL WHERE Id % 10 = 3",
            "UPDATE {t} SET PostId = 2147483647, CreationDate = '9999-12-31T23:59:59.997' WHERE Id = 77",
            "DELETE {t} WHERE Id % 13 = 5",
            "BEGIN TRAN UPDATE {t} SET VoteTypeId = -1, UserId = Id DELETE {t} WHERE Id < 3000 ROLLBACK",
            "BEGIN TRAN DELETE {t} WHERE Id BETWEEN 500 AND 900 SAVE TRAN s UPDATE {t} SET PostId = 0 WHERE Id > 16000 ROLLBACK TRAN s COMMIT",
            "INSERT {t} SELECT Id, 1, 2, 3, 4, '2020-02-02' FROM source WHERE Id BETWEEN 600 AND 650",
            "UPDATE {t} SET UserId = 5 WHERE Id = 10 UPDATE {t} SET UserId = UserId + 1 WHERE Id = 10",
        ] {
            let lines = said(&mut a, &sql.replace("{t}", &table));
            assert!(!lines.iter().any(|line| line.starts_with("Msg")), "{sql}: {lines:?}");
        }
        is_sound(&mut a, &table);
        if method != "NONE" {
            agrees(&mut a, &table, "vNONE");
            let by_index = |table: &str| {
                format!(
                    "SELECT UserId, COUNT(*), SUM(VoteTypeId) FROM {table} WITH (INDEX (i)) WHERE UserId > 0 GROUP BY UserId ORDER BY UserId"
                )
            };
            assert_eq!(said(&mut a, &by_index(&table)), said(&mut a, &by_index("vNONE")));
        }
    }
}

#[test]
fn a_setting_is_changed_by_each_kind_of_rebuild() {
    let (engine, _) = fresh_engine("compression-rebuild");
    let mut a = engine.internal_session();
    votes(&mut a);
    is_done(&mut a, "SELECT * INTO h FROM source");
    is_done(&mut a, "CREATE INDEX i ON h (PostId) INCLUDE (CreationDate)");
    let setting = |session: &mut Session, index: i32| {
        value(session, &format!("SELECT data_compression_desc FROM sys.partitions WHERE object_id = OBJECT_ID('h') AND index_id = {index}"))
    };
    let (plain_rows, plain_index) = (pages(&mut a, "h", 0), pages(&mut a, "h", 2));
    is_done(&mut a, "ALTER TABLE h REBUILD WITH (DATA_COMPRESSION = ROW)");
    assert_eq!((setting(&mut a, 0), setting(&mut a, 2)), ("ROW".into(), "NONE".into()));
    assert!(pages(&mut a, "h", 0) < plain_rows);
    agrees(&mut a, "h", "source");
    is_done(&mut a, "ALTER TABLE h REBUILD PARTITION = ALL WITH (DATA_COMPRESSION = PAGE)");
    assert_eq!(setting(&mut a, 0), "PAGE");
    for sql in [
        "ALTER INDEX i ON h REBUILD WITH (DATA_COMPRESSION = PAGE)",
        "ALTER INDEX i ON h REBUILD WITH (DATA_COMPRESSION = ROW, ONLINE = ON)",
        "ALTER INDEX i ON h REBUILD WITH (DATA_COMPRESSION = PAGE, ONLINE = ON, RESUMABLE = ON)",
        "ALTER INDEX i ON h REBUILD",
    ] {
        is_done(&mut a, sql);
        assert!(pages(&mut a, "h", 2) < plain_index, "{sql}");
        let expected = if sql.contains("ROW") { "ROW" } else { "PAGE" };
        assert_eq!(setting(&mut a, 2), expected, "{sql}");
        is_sound(&mut a, "h");
    }
    // The clustered index takes over what the heap has, and the heap what that had.
    is_done(&mut a, "CREATE CLUSTERED INDEX c ON h (Id)");
    assert_eq!(setting(&mut a, 1), "PAGE");
    agrees(&mut a, "h", "source");
    is_done(&mut a, "DROP INDEX c ON h");
    assert_eq!((setting(&mut a, 0), setting(&mut a, 2)), ("PAGE".into(), "PAGE".into()));
    is_done(&mut a, "CREATE CLUSTERED INDEX c ON h (Id) WITH (DATA_COMPRESSION = NONE)");
    assert_eq!(setting(&mut a, 1), "NONE");
    is_done(&mut a, "CREATE INDEX i ON h (PostId) WITH (DROP_EXISTING = ON)");
    assert_eq!(setting(&mut a, 2), "NONE");
    is_done(&mut a, "ALTER INDEX ALL ON h REBUILD WITH (DATA_COMPRESSION = ROW)");
    assert_eq!((setting(&mut a, 1), setting(&mut a, 2)), ("ROW".into(), "ROW".into()));
    is_done(&mut a, "TRUNCATE TABLE h INSERT h SELECT * FROM source");
    assert_eq!(setting(&mut a, 1), "ROW");
    is_done(&mut a, "ALTER TABLE h ALTER COLUMN VoteTypeId bigint NOT NULL");
    is_done(&mut a, "ALTER TABLE h ADD Extra varchar(20) NOT NULL CONSTRAINT d DEFAULT 'more' WITH VALUES");
    assert_eq!(value(&mut a, "SELECT COUNT(*) FROM h WHERE Extra = 'more'"), "16384");
    is_sound(&mut a, "h");
}

/// Every type, NULLs, padded and long values; each row alone and many together.
#[test]
fn every_type_is_kept() {
    let (engine, _) = fresh_engine("compression-types");
    let mut a = engine.internal_session();
    let columns = "id int NOT NULL PRIMARY KEY, a bit, b tinyint, c smallint, d bigint, e decimal(9, 2), f decimal(38, 10), g money, h smallmoney, i real, j float, \
                   k date, l time, m datetime2, n datetimeoffset, o smalldatetime, p char(30), q nchar(30), r varchar(100), s nvarchar(max), t binary(20), \
                   u varbinary(100), v uniqueidentifier, x rowversion";
    let values = "1, 200, -3, 5000000000, -123.45, 12345678901234567890.5, -922.5, 3.25, 0.5, -1e300, '2024-02-29', '23:59:59.9999999', \
                  '0001-01-01T00:00:00.0000001', '2024-05-05T10:00:00 +05:30', '2024-05-05T10:01:00', 'pad', N'päd', 'x', N'ä', 0x0102, 0x00, \
                  '6F9619FF-8B86-D011-B42D-00C04FC964FF'";
    for method in METHODS {
        is_done(&mut a, &format!("CREATE TABLE t{method} ({columns}) WITH (DATA_COMPRESSION = {method})"));
        is_done(
            &mut a,
            &format!("INSERT t{method} (id, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v) VALUES (1, {values})"),
        );
        is_done(&mut a, &format!("INSERT t{method} (id) VALUES (2)"));
        for id in 3..60 {
            let text = format!("REPLICATE('{}', {})", id % 7, id * 20);
            is_done(
                &mut a,
                &format!(
                    "INSERT t{method} (id, b, e, p, r, s, t) VALUES ({id}, {id}, {id} * 1.5, LEFT({text}, 25), LEFT({text}, 90), {text}, CONVERT(binary(20), {id}))"
                ),
            );
        }
        is_done(&mut a, &format!("INSERT t{method} (id, s) VALUES (100, REPLICATE(CONVERT(nvarchar(max), N'long'), 5000))"));
        is_done(&mut a, &format!("ALTER TABLE t{method} REBUILD"));
        is_sound(&mut a, &format!("t{method}"));
        let shown = "id, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, '[' + p + ']', N'[' + q + N']', r, s, t, u, v";
        let all = |method: &str| format!("SELECT {shown} FROM t{method} ORDER BY id");
        assert_eq!(said(&mut a, &all(method)), said(&mut a, &all("NONE")), "{method}");
    }
}

#[test]
fn what_cannot_be_compressed_is_refused() {
    let (engine, _) = fresh_engine("compression-refused");
    let mut a = engine.internal_session();
    is_done(&mut a, "CREATE TABLE t (id int NOT NULL CONSTRAINT pk PRIMARY KEY, a int)");
    is_done(&mut a, "CREATE INDEX i ON t (a)");
    for (expected, sql) in [
        (7711, "CREATE INDEX j ON t (a) WITH (DATA_COMPRESSION = ROW, DATA_COMPRESSION = PAGE)"),
        (7711, "CREATE TABLE u (id int) WITH (DATA_COMPRESSION = ROW, DATA_COMPRESSION = ROW)"),
        (7711, "ALTER TABLE t REBUILD WITH (DATA_COMPRESSION = ROW, DATA_COMPRESSION = PAGE)"),
        (7729, "CREATE INDEX j ON t (a) WITH (DATA_COMPRESSION = ROW ON PARTITIONS (1))"),
        (7729, "ALTER TABLE t REBUILD WITH (DATA_COMPRESSION = PAGE ON PARTITIONS (1 TO 2))"),
        (40517, "CREATE INDEX j ON t (a) WITH (DATA_COMPRESSION = COLUMNSTORE)"),
        (40517, "CREATE TABLE u (id int) WITH (DATA_COMPRESSION = COLUMNSTORE_ARCHIVE)"),
        (102, "ALTER INDEX i ON t REBUILD WITH (DATA_COMPRESSION = ZIP)"),
        (40517, "CREATE TABLE u (id int) WITH (MEMORY_OPTIMIZED = ON)"),
    ] {
        assert_eq!(error(&mut a, sql), expected, "{sql}");
    }
    assert_eq!(value(&mut a, "SELECT COUNT(*) FROM sys.indexes WHERE object_id = OBJECT_ID('t')"), "2");
}

#[test]
fn the_estimate_is_what_a_rebuild_makes() {
    let (engine, _) = fresh_engine("compression-estimate");
    let mut a = engine.internal_session();
    votes(&mut a);
    is_done(&mut a, "CREATE INDEX i ON source (PostId) INCLUDE (CreationDate)");
    let estimate = |session: &mut Session, setting: &str| {
        let lines = said(session, &format!("EXEC sp_estimate_data_compression_savings 'dbo', 'source', NULL, NULL, '{setting}'"));
        let sizes = |line: &String| line.split(" | ").map(str::to_owned).collect::<Vec<_>>();
        lines.iter().filter(|line| line.starts_with("source")).map(sizes).collect::<Vec<_>>()
    };
    for setting in ["NONE", "ROW", "PAGE"] {
        let rows = estimate(&mut a, setting);
        assert_eq!(rows.len(), 2, "{rows:?}");
        let table = format!("e{setting}");
        is_done(&mut a, &format!("SELECT * INTO {table} FROM source"));
        is_done(&mut a, &format!("CREATE UNIQUE CLUSTERED INDEX c ON {table} (Id) WITH (DATA_COMPRESSION = {setting})"));
        is_done(&mut a, &format!("CREATE INDEX i ON {table} (PostId) INCLUDE (CreationDate) WITH (DATA_COMPRESSION = {setting})"));
        for (row, index) in rows.iter().zip([1, 2]) {
            let (current, requested): (u64, u64) = (row[4].parse().expect("KB"), row[5].parse().expect("KB"));
            assert_eq!(current, 8 * pages(&mut a, "source", index));
            let made = 8 * pages(&mut a, &table, index);
            assert!(requested.abs_diff(made) * 10 <= made, "{setting} {index}: estimated {requested}, made {made}");
        }
    }
    assert_eq!(value(&mut a, "SELECT COUNT(*) FROM tempdb.sys.tables"), "0");
    for (expected, sql) in [
        (15001, "EXEC sp_estimate_data_compression_savings 'dbo', 'nope', NULL, NULL, 'ROW'"),
        (15600, "EXEC sp_estimate_data_compression_savings 'dbo', 'source', NULL, NULL, 'ZIP'"),
        (40517, "EXEC sp_estimate_data_compression_savings 'dbo', 'source', NULL, NULL, 'COLUMNSTORE'"),
        (8145, "EXEC sp_estimate_data_compression_savings @nope = 1"),
        (201, "EXEC sp_estimate_data_compression_savings @schema_name = 'dbo', @data_compression = 'ROW'"),
    ] {
        assert_eq!(error(&mut a, sql), expected, "{sql}");
    }
}
