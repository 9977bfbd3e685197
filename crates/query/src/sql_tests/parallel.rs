//! Plans divided among threads: they give what one thread gives, read each page once, and end as one thread would.

use super::Db;
use std::sync::atomic::Ordering;
use thawdb_types::Scalar;

/// Rows of `v`, enough for a tree of some hundred leaves.
const ROWS: usize = 40_000;

fn votes(name: &str) -> Db {
    let mut db = Db::new(name);
    let columns = [
        "id int",
        "post int",
        "kind tinyint null",
        "bounty int null",
        "price money null",
        "rate decimal(38,10) null",
        "weight float null",
        "name varchar(12) null",
        "made datetime2(3)",
        "large bigint",
    ];
    db.table("v", &columns, &["pk_v:id unique", "ix_post:post include kind", "ix_name:name include bounty"]);
    db.table("empty", &["a int", "b int null"], &["pk_e:a unique"]);
    db.count("v", ROWS as u64);
    for from in (0..ROWS).step_by(4_000) {
        let rows: Vec<String> = (from..from + 4_000).map(row).collect();
        db.exec(&format!("INSERT INTO v VALUES {}", rows.join(",")));
    }
    db
}

fn row(id: usize) -> String {
    let or_null = |null: bool, text: String| if null { "NULL".to_string() } else { text };
    let mixed = id * 7919 % 10_007;
    format!(
        "({id},{},{},{},{},{},{},{},'20{:02}-03-04',{})",
        // Long groups, and one of a fifth of all rows.
        if mixed < 2_000 { 77 } else { mixed % 3_000 },
        or_null(id % 13 == 0, (id % 11).to_string()),
        or_null(id % 3 != 0, (mixed as i64 - 5_000).to_string()),
        or_null(id % 17 == 0, format!("{}.{:04}", mixed, id % 10_000)),
        or_null(id % 19 == 0, format!("{}.{:010}", id % 1_000_000, mixed)),
        // Sums of halves are exact in any order.
        or_null(id % 23 == 0, format!("{}.5", id % 1_000)),
        or_null(id % 29 == 0, format!("'{}{}'", if id % 2 == 0 { "Name " } else { "name " }, mixed % 60)),
        id % 40,
        i64::from(id % 2 == 0) * 4_000_000_000_000_000_000 - 2_000_000_000_000_000_000,
    )
}

/// Runs with so many threads: rows as text, sorted.
fn run(db: &mut Db, sql: &str, degree: u16) -> Result<Vec<String>, i32> {
    db.degree.store(degree, Ordering::Relaxed);
    let compiled = db.compile(sql).map_err(|error| error.number)?;
    db.degree.store(1, Ordering::Relaxed);
    let rows = db.host.run(&compiled.node).map_err(|error| error.number)?.0;
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}").to_lowercase()).collect();
    rows.sort_unstable();
    Ok(rows)
}

const DIVIDED: &[&str] = &[
    "SELECT COUNT(*) FROM v",
    "SELECT COUNT(*), COUNT_BIG(bounty), SUM(bounty), MIN(bounty), MAX(bounty), AVG(bounty) FROM v",
    "SELECT SUM(price), AVG(price), MIN(price), SUM(rate), AVG(rate), MAX(rate), SUM(weight), AVG(weight) FROM v",
    "SELECT SUM(large), MIN(name), MAX(name), MIN(made), MAX(made), COUNT(1), MAX(DISTINCT kind) FROM v",
    "SELECT kind, COUNT(*), SUM(bounty), AVG(price) FROM v GROUP BY kind",
    "SELECT name, kind, COUNT(*), SUM(rate), MAX(made) FROM v WHERE bounty > -4000 OR name IS NULL GROUP BY name, kind",
    "SELECT post % 7, COUNT(bounty) FROM v WHERE name LIKE 'n%' GROUP BY post % 7 HAVING COUNT(*) > 5",
    "SELECT post, COUNT(*), MAX(kind) FROM v GROUP BY post",
    "SELECT post, COUNT(*) FROM v WHERE post BETWEEN 50 AND 1500 GROUP BY post",
    "SELECT COUNT(*), SUM(id) FROM v WHERE id > 1234 AND id < 38000",
    "SELECT SUM(bounty) FROM v WHERE id IN (5, 700, 20000) OR id > 39000",
    "SELECT COUNT(*), SUM(bounty), MIN(name) FROM v WHERE name LIKE '%none such'",
    "SELECT kind, COUNT(*) FROM v WHERE bounty = 123456 GROUP BY kind",
    "SELECT id / 4, SUM(bounty), MAX(name) FROM v GROUP BY id / 4",
    "SELECT TOP 10 post, COUNT(*) AS c FROM v GROUP BY post ORDER BY c DESC, post",
    "SELECT TOP 7 WITH TIES post, COUNT(*) AS c FROM v GROUP BY post ORDER BY c DESC",
    "SELECT TOP 25 * FROM v ORDER BY price DESC, id",
    // Joins on the way: hash joins, whose right sides are shared, loops, semi and anti joins, outer joins.
    "SELECT x.kind, COUNT(*), SUM(y.bounty), MIN(y.name) FROM v x JOIN v y ON x.large = y.large AND x.id = y.id + 1 GROUP BY x.kind",
    "SELECT COUNT(*), SUM(x.bounty), COUNT(y.id) FROM v x LEFT JOIN v y ON x.post = y.id AND y.kind = 3",
    "SELECT COUNT(*), SUM(x.bounty) FROM v x WHERE EXISTS (SELECT 1 FROM v y WHERE y.bounty = x.post AND y.id < x.id)",
    "SELECT x.name, COUNT(*) FROM v x WHERE x.post NOT IN (SELECT y.bounty FROM v y WHERE y.bounty > 1000) GROUP BY x.name",
    "SELECT x.kind, SUM(y.price), SUM(z.id) FROM v x JOIN v y ON y.id = x.post JOIN v z ON z.id = y.post WHERE x.kind < 9 GROUP BY x.kind",
    "SELECT TOP 9 x.id, y.name FROM v x JOIN v y ON x.post = y.bounty ORDER BY y.price DESC, x.id, y.id",
    "SELECT x.id, y.id FROM v x JOIN v y ON x.post = y.bounty WHERE x.kind = 1 ORDER BY x.id, y.id",
    "SELECT x.kind, COUNT(DISTINCT y.id) FROM v x JOIN v y ON x.post = y.bounty GROUP BY x.kind",
    "SELECT x.kind, x.c, y.c FROM (SELECT kind, COUNT(*) c FROM v GROUP BY kind) x JOIN (SELECT kind, SUM(bounty) c FROM v GROUP BY kind) y ON x.kind = y.kind",
];

#[test]
fn threads_give_what_one_gives_and_read_each_page_once() {
    let mut db = votes("parallel");
    for sql in DIVIDED {
        let alone = run(&mut db, sql, 1).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let (workers, reads) = (db.host.workers, db.host.logical_reads);
        assert_eq!(workers, 0, "{sql}");
        let together = run(&mut db, sql, 3).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(db.host.workers >= 2, "{sql}: {} workers", db.host.workers);
        assert_eq!(alone, together, "{sql}");
        assert_eq!(db.host.budget.out(), 0, "{sql}");
        // Beyond them a descent to each part, and the leaf that a part ends in.
        let parts = 2 * 3 * 32 * 4;
        assert!(db.host.logical_reads <= reads + parts * 4, "{sql}: {} pages, alone {reads}", db.host.logical_reads);
        assert!(db.host.logical_reads >= reads, "{sql}: {} pages, alone {reads}", db.host.logical_reads);
    }
}

#[test]
fn groups_in_index_order_stay_in_it() {
    let mut db = votes("parallel_order");
    db.degree.store(3, Ordering::Relaxed);
    let compiled = db.compile("SELECT post, COUNT(*) FROM v GROUP BY post").unwrap();
    let rows = db.host.run(&compiled.node).unwrap().0;
    assert!(db.host.workers >= 2 && rows.len() == 3_000, "{} workers, {} rows", db.host.workers, rows.len());
    let posts: Vec<i64> = rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
    assert!(posts.is_sorted_by(|a, b| a < b), "a group came twice, or late");
}

#[test]
fn an_empty_table_and_little_memory_need_no_threads() {
    let mut db = votes("parallel_little");
    assert_eq!(
        run(&mut db, "SELECT COUNT(*), SUM(b), MIN(a) FROM empty", 3),
        run(&mut db, "SELECT COUNT(*), SUM(b), MIN(a) FROM empty", 1)
    );
    assert_eq!(run(&mut db, "SELECT a, COUNT(*) FROM empty GROUP BY a", 3), Ok(Vec::new()));
    assert_eq!(db.host.workers, 0);
    let expected = run(&mut db, "SELECT kind, COUNT(*) FROM v GROUP BY kind", 1);
    db.host.memory_bytes = 256 << 10;
    assert_eq!((run(&mut db, "SELECT kind, COUNT(*) FROM v GROUP BY kind", 3), db.host.workers), (expected.clone(), 0));
    db.host.memory_bytes = 64 << 20;
    let others = db.host.budget.take(3);
    assert_eq!((run(&mut db, "SELECT kind, COUNT(*) FROM v GROUP BY kind", 3), db.host.workers), (expected.clone(), 0));
    drop(others);
    assert_eq!(run(&mut db, "SELECT kind, COUNT(*) FROM v GROUP BY kind", 3), expected);
    assert!(db.host.workers >= 2);
}

#[test]
fn groups_beyond_the_memory_are_set_aside_once() {
    let mut db = votes("parallel_spill");
    let sql = "SELECT id, name, COUNT(*), SUM(rate), MIN(made) FROM v GROUP BY id, name";
    let expected = run(&mut db, sql, 1);
    db.host.memory_bytes = 3 << 20;
    let found = run(&mut db, sql, 3);
    assert!(db.host.workers >= 2 && db.host.spilled_bytes > 0, "{} workers, {} bytes", db.host.workers, db.host.spilled_bytes);
    assert!(db.host.memory_bytes_peak <= 3 << 20, "{} bytes", db.host.memory_bytes_peak);
    assert_eq!(found, expected);
}

#[test]
fn failures_are_those_of_one_thread() {
    let mut db = votes("parallel_errors");
    for (sql, error) in [
        ("SELECT SUM(1 / (id - 31234)) FROM v", 8134),
        ("SELECT kind, SUM(1 / (id - 31234)) FROM v GROUP BY kind", 8134),
        ("SELECT SUM(id * 1000) FROM v WHERE id > 39000", 8115),
        ("SELECT kind, SUM(bounty * 400000) FROM v WHERE bounty > 0 AND bounty < 5000 GROUP BY kind", 8115),
        ("SELECT SUM(large) FROM v WHERE large > 0", 8115),
        ("SELECT post, MAX(1 / (id - 31234)) FROM v GROUP BY post", 8134),
    ] {
        for degree in [1, 3] {
            assert_eq!(run(&mut db, sql, degree), Err(error), "{sql} by {degree}");
        }
        assert_eq!(db.host.budget.out(), 0);
    }
    // What is too large half-way is no failure: positive and negative values take turns.
    assert_eq!(run(&mut db, "SELECT SUM(large) FROM v", 3), Ok(vec!["[bigint(0)]".into()]));
}

#[test]
fn cancellation_reaches_every_thread() {
    let mut db = votes("parallel_cancel");
    for sql in [
        "SELECT kind, SUM(bounty) FROM v GROUP BY kind",
        "SELECT post, COUNT(*) FROM v GROUP BY post",
        "SELECT TOP 5 * FROM v ORDER BY price",
    ] {
        for looks in [2, 5, 9] {
            db.host.looks_left.store(looks, Ordering::Relaxed);
            assert_eq!(run(&mut db, sql, 3), Err(3617), "{sql}");
            assert_eq!(db.host.budget.out(), 0, "{sql}");
        }
        db.host.looks_left.store(-1, Ordering::Relaxed);
        assert!(run(&mut db, sql, 3).is_ok());
    }
}

#[test]
fn a_transaction_sees_its_own_changes_and_no_later_ones() {
    let mut db = votes("parallel_own");
    let insert = db.compile("INSERT INTO v SELECT id + 100000, post, kind, bounty, price, rate, weight, name, made, large FROM v").unwrap();
    let counted = "SELECT COUNT(*), SUM(CAST(id AS bigint)) FROM v";
    let before = run(&mut db, counted, 1);
    assert_eq!(db.host.run(&insert.node).unwrap().1, ROWS as u64);
    let own = run(&mut db, counted, 3);
    assert!(db.host.workers >= 2);
    assert_eq!(own, run(&mut db, counted, 1));
    assert_ne!(own, before);
    // Groups come while the statement inserts: it must not meet what it has inserted.
    db.host.commit();
    db.degree.store(3, Ordering::Relaxed);
    let groups = "INSERT INTO v SELECT 1000000 + post, 1, NULL, COUNT(*), NULL, NULL, NULL, NULL, '20200101', 0 FROM v GROUP BY post";
    let insert = db.compile(groups).unwrap();
    assert_eq!((db.host.run(&insert.node).unwrap().1, db.host.workers >= 2), (3_000, true));
    db.host.commit();
    let sum = db.host.run(&db.compile("SELECT SUM(bounty) FROM v WHERE id > 999999").unwrap().node).unwrap().0;
    assert_eq!(sum, [[Scalar::Int(2 * ROWS as i32)]]);
}

#[test]
fn what_must_run_alone_is_not_divided() {
    let mut db = votes("parallel_not");
    db.variable("@a", thawdb_types::SqlType::Int, Scalar::Int(4));
    let plan = |sql: &str| {
        db.degree.store(3, Ordering::Relaxed);
        let plan = db.plan(sql);
        db.degree.store(1, Ordering::Relaxed);
        plan
    };
    for sql in [
        "SELECT COUNT(*) FROM v OPTION (MAXDOP 1)",
        "SELECT COUNT(*) FROM v WITH (UPDLOCK)",
        "SELECT COUNT(*) FROM v WITH (TABLOCK)",
        "SELECT COUNT(*) FROM v WHERE RAND() > 0.5",
        "SELECT COUNT(*) FROM v WHERE NEWID() IS NOT NULL",
        "SELECT COUNT(DISTINCT name) FROM v",
        "SELECT STDEV(bounty) FROM v",
        "SELECT STRING_AGG(name, ',') FROM v",
        "SELECT name, COUNT(*) FROM v WITH (INDEX(ix_name)) GROUP BY name",
        "SELECT e.a, (SELECT COUNT(*) FROM v WHERE v.kind > e.b) FROM empty e",
        "SELECT TOP 5 post, COUNT(*) FROM v GROUP BY post ORDER BY post",
        "SELECT * FROM v WHERE bounty = 5",
    ] {
        assert!(!plan(sql).contains("Parallelism"), "{sql}\n{}", plan(sql));
    }
    for sql in
        ["SELECT COUNT(*) FROM v WHERE kind = @a", "SELECT COUNT(*) FROM v WITH (NOLOCK) OPTION (MAXDOP 2)", "SELECT @a = COUNT(*) FROM v"]
    {
        assert!(plan(sql).contains("Parallelism(Gather Streams)"), "{sql}\n{}", plan(sql));
    }
    db.degree.store(1, Ordering::Relaxed);
    assert!(db.plan("SELECT COUNT(*) FROM v OPTION (MAXDOP 0)").contains("Parallelism"));
    assert!(!db.plan("SELECT COUNT(*) FROM v").contains("Parallelism"));
}
