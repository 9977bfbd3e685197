//! What is below a TOP, an EXISTS or a running window reads no more than it takes: counted in rows, never in time.

use super::Db;

/// `n (i, v)` with 10,000 rows and `m (i, n)` with as many, ten for each of the first thousand.
fn numbers(name: &str) -> Db {
    let mut db = Db::new(name);
    db.table("d", &["d int"], &["pk_d:d unique"]);
    db.table("n", &["i int", "v int null"], &["pk_n:i unique"]);
    db.table("m", &["i int", "n int", "w int"], &["pk_m:i unique", "ix_n:n include w"]);
    db.table("none", &["i int"], &["pk_none:i unique"]);
    db.exec("INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)");
    let digits = "a.d * 1000 + b.d * 100 + c.d * 10 + e.d";
    db.exec(&format!("INSERT INTO n SELECT {digits}, NULLIF(a.d, 3) FROM d a CROSS JOIN d b CROSS JOIN d c CROSS JOIN d e"));
    db.exec(&format!("INSERT INTO m SELECT {digits}, ({digits}) / 10, e.d FROM d a CROSS JOIN d b CROSS JOIN d c CROSS JOIN d e"));
    db.count("d", 10).count("n", 10_000).count("m", 10_000).count("none", 0);
    db
}

/// Runs `sql` and wants so many rows back, with no more than `read_max` rows read for them.
#[track_caller]
fn check(db: &mut Db, sql: &str, rows: usize, read_max: u64) {
    let (found, _) = db.try_exec(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    assert_eq!(found.len(), rows, "{sql}");
    let read = db.host.rows_read;
    assert!(read <= read_max, "{sql}: {read} rows were read, {read_max} would do\n{}", db.plan(sql));
}

/// A first batch is what one leaf holds, which is fewer rows than this.
const LEAF: u64 = 1000;

/// Otherwise a bound on rows read holds of plans whose rows nobody counts.
#[test]
fn rows_are_counted_whichever_way_they_are_handed_on() {
    let mut db = numbers("counted");
    for sql in
        ["SELECT i, v FROM n", "SELECT SUM(v), MAX(i) FROM n", "SELECT v, COUNT(*) FROM n GROUP BY v", "SELECT TOP 3 i FROM n ORDER BY v"]
    {
        db.exec(sql);
        assert_eq!(db.host.rows_read, 10_000, "{sql}");
    }
}

#[test]
fn numbering_in_no_order_streams() {
    let mut db = numbers("numbering");
    for order in ["(SELECT NULL)", "(SELECT 1)", "@@SPID", "(SELECT (SELECT NULL))"] {
        check(&mut db, &format!("SELECT TOP (5) ROW_NUMBER() OVER (ORDER BY {order}) FROM n"), 5, LEAF);
    }
    // The tally table: a product of 10^12 rows.
    let tally = "SELECT TOP (3000) ROW_NUMBER() OVER (ORDER BY (SELECT NULL)) FROM n a CROSS JOIN n b CROSS JOIN n c";
    check(&mut db, tally, 3000, 10_000 + 2 * LEAF);
    let numbered = db.try_exec(tally).unwrap().0;
    assert!(numbered.iter().enumerate().all(|(at, row)| row[0].as_i64() == Some(at as i64 + 1)));
    let nested = "WITH x(a) AS (SELECT a.d FROM d a, d b), y(a) AS (SELECT a.a FROM x a, x b), z(a) AS (SELECT a.a FROM y a, y b), \
         t(i) AS (SELECT ROW_NUMBER() OVER (ORDER BY (SELECT NULL)) FROM z a, z b) SELECT TOP (100) i FROM t";
    check(&mut db, nested, 100, 20_000);
}

#[test]
fn ranks_and_totals_in_the_order_of_an_index_stream() {
    let mut db = numbers("running");
    check(&mut db, "SELECT TOP 5 i, ROW_NUMBER() OVER (ORDER BY i), RANK() OVER (ORDER BY i) FROM n", 5, LEAF);
    let rows = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";
    check(&mut db, &format!("SELECT TOP 5 i, SUM(i) OVER (ORDER BY i {rows}), LAG(v, 2, 0) OVER (ORDER BY i) FROM n"), 5, LEAF);
    check(&mut db, "SELECT TOP 5 i, COUNT(*) OVER (ORDER BY i), LAST_VALUE(i) OVER (ORDER BY i) FROM n", 5, 3 * LEAF);
    check(&mut db, "SELECT TOP 5 n, SUM(w) OVER (PARTITION BY n ORDER BY i) FROM m", 5, 10_000);
    // What needs the rows behind reads them.
    check(&mut db, "SELECT TOP 5 i, LEAD(v) OVER (ORDER BY i) FROM n", 5, 10_000);
}

#[test]
fn running_windows_give_the_rows_of_held_ones() {
    let mut db = numbers("same");
    // A frame that reads on to the next row is held; where it is written as a running one the values must agree.
    let frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";
    let wanted = "SELECT COUNT(*), SUM(s), SUM(r), SUM(g) FROM (SELECT SUM(CAST(w AS bigint)) OVER (PARTITION BY n ORDER BY i) s, \
         ISNULL(LAG(w, 3) OVER (PARTITION BY n ORDER BY i), 7) g, RANK() OVER (PARTITION BY n ORDER BY w) r FROM m) x";
    // Each n has w = 0 .. 9 in the order of i: sums 0, 1, 3 .. 45 = 165; ranks 1 .. 10; lags 7, 7, 7, 0 .. 6.
    db.check(wanted, &["10000|165000|55000|42000"]);
    db.check(
        &format!("SELECT TOP 4 w, MIN(w) OVER (ORDER BY w DESC, i {frame}), MAX(i) OVER (ORDER BY w DESC), DENSE_RANK() OVER (ORDER BY w DESC) FROM m WHERE i < 20 ORDER BY w DESC, i"),
        &["9|9|19|1", "9|9|19|1", "8|8|19|2", "8|8|19|2"],
    );
    db.check(
        "SELECT i, FIRST_VALUE(i) OVER (PARTITION BY n ORDER BY i), LAST_VALUE(w) OVER (PARTITION BY n ORDER BY w / 5), \
         COUNT(*) OVER (PARTITION BY n ORDER BY w / 5) FROM m WHERE i BETWEEN 8 AND 11 ORDER BY i",
        &["8|8|9|2", "9|8|9|2", "10|10|1|2", "11|10|1|2"],
    );
    // Peers longer than a batch: a RANGE total over one value of the key.
    db.check("SELECT DISTINCT SUM(CAST(i AS bigint)) OVER (ORDER BY (SELECT NULL)) FROM n", &["49995000"]);
    db.check("SELECT COUNT(DISTINCT c), MIN(c), MAX(c) FROM (SELECT COUNT(*) OVER (ORDER BY v) c FROM n) x", &["10|1000|10000"]);
}

#[test]
fn a_top_ends_joins_unions_and_applies() {
    let mut db = numbers("tops");
    check(&mut db, "SELECT TOP 5 a.i FROM n a JOIN m b ON b.n = a.i", 5, 2 * LEAF);
    check(&mut db, "SELECT TOP 5 a.i, b.i FROM n a JOIN n b ON b.i = a.i", 5, 2 * LEAF);
    check(&mut db, "SELECT TOP 5 a.i FROM n a CROSS JOIN m b", 5, 2 * LEAF);
    check(&mut db, "SELECT TOP 5 i FROM n UNION ALL SELECT i FROM m", 10_005, 10_000 + LEAF);
    check(&mut db, "SELECT TOP 5 i FROM (SELECT i FROM n UNION ALL SELECT i FROM m) x", 5, LEAF);
    check(&mut db, "SELECT TOP 5 a.i, x.i FROM n a CROSS APPLY (SELECT TOP 3 * FROM m b WHERE b.n = a.i ORDER BY b.w) x", 5, 2 * LEAF);
    check(&mut db, "SELECT TOP 5 a.i, x.i FROM n a OUTER APPLY (SELECT TOP 3 * FROM m b WHERE b.n = a.i ORDER BY b.w) x", 5, 2 * LEAF);
    check(&mut db, "SELECT TOP 5 a.d, x.i FROM d a CROSS APPLY (SELECT b.i + a.d AS i FROM n b WHERE b.i >= a.d) x", 5, 2 * LEAF);
    check(&mut db, "SELECT i FROM n ORDER BY i OFFSET 10 ROWS FETCH NEXT 5 ROWS ONLY", 5, LEAF);
    check(&mut db, "SELECT DISTINCT TOP 5 i FROM n", 5, LEAF);
    check(&mut db, "SELECT TOP 0 a.i FROM n a, n b", 0, 0);
}

#[test]
fn a_question_of_existence_ends_with_the_first_row() {
    let mut db = numbers("exists");
    check(&mut db, "SELECT 1 WHERE EXISTS (SELECT * FROM n a CROSS JOIN n b CROSS JOIN n c)", 1, 3 * LEAF);
    check(&mut db, "SELECT 1 WHERE EXISTS (SELECT * FROM n a JOIN m b ON b.n = a.i)", 1, 2 * LEAF);
    check(&mut db, "SELECT d FROM d WHERE EXISTS (SELECT * FROM n)", 10, 10 + LEAF);
    check(&mut db, "SELECT d FROM d WHERE NOT EXISTS (SELECT * FROM n WHERE i > 100)", 0, 10 + LEAF);
    check(&mut db, "SELECT d FROM d WHERE EXISTS (SELECT * FROM m WHERE m.n = d.d)", 10, 10 + 100);
    check(&mut db, "SELECT CASE WHEN EXISTS (SELECT * FROM n UNION ALL SELECT i, n FROM m) THEN 1 ELSE 0 END", 1, LEAF);
}

#[test]
fn nobody_to_join_with_reads_nothing() {
    let mut db = numbers("nobody");
    check(&mut db, "SELECT * FROM none a CROSS JOIN n b", 0, LEAF);
    check(&mut db, "SELECT * FROM none a LEFT JOIN n b ON a.i < b.i", 0, 0);
    check(&mut db, "SELECT * FROM none a JOIN n b ON a.i = b.i", 0, 0);
    db.check("SELECT COUNT(*), COUNT(a.i) FROM none a FULL JOIN n b ON a.i < b.i", &["10000|0"]);
    db.check("SELECT COUNT(*), COUNT(a.i) FROM none a RIGHT JOIN n b ON a.i < b.i", &["10000|0"]);
}
