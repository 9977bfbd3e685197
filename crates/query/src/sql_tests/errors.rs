//! Statements that are wrong, and the number that says so.

use super::rows::shop;
use thawdb_types::{Scalar, SqlType};

#[test]
fn numbers() {
    let mut db = shop("errors");
    db.table("ident", &["id int identity", "a int", "x xml null", "t text null"], &["pk_ident:id unique"]);
    db.variable("@i", SqlType::Int, Scalar::Null);
    for (sql, number) in [
        ("SELECT nope FROM customers", 207),
        ("SELECT customers.nope FROM customers", 207),
        ("SELECT z.id FROM customers", 4104),
        ("SELECT customers.id FROM customers c", 4104),
        ("SELECT * FROM nope", 208),
        ("SELECT * FROM nodb.dbo.customers", 208),
        ("SELECT * FROM srv.t.dbo.customers", 7202),
        ("SELECT id FROM customers JOIN orders ON 1 = 1", 209),
        ("SELECT 1 FROM customers c JOIN orders c ON 1 = 1", 1011),
        ("SELECT 1 FROM customers JOIN customers ON 1 = 1", 1013),
        ("SELECT z.* FROM customers", 107),
        ("SELECT *", 263),
        ("SELECT name, COUNT(*) FROM customers", 8120),
        ("SELECT name FROM customers GROUP BY city", 8120),
        ("SELECT city FROM customers GROUP BY city HAVING name = 'x'", 8121),
        ("SELECT city FROM customers GROUP BY city ORDER BY name", 8127),
        ("SELECT city FROM customers WHERE COUNT(*) > 1", 147),
        ("SELECT SUM(COUNT(*)) FROM customers", 130),
        ("SELECT SUM((SELECT 1)) FROM customers", 130),
        ("SELECT 1 FROM customers GROUP BY COUNT(*)", 144),
        ("SELECT 1 FROM customers GROUP BY 1", 164),
        ("SELECT SUM(name) FROM customers", 8117),
        ("SELECT id FROM customers WHERE id IN (SELECT id, name FROM customers)", 116),
        ("SELECT (SELECT id, name FROM customers)", 116),
        ("SELECT * FROM (SELECT id FROM customers ORDER BY id) x", 1033),
        ("SELECT * FROM (SELECT 1) x", 8155),
        ("SELECT * FROM (SELECT 1 a, 2 a) x", 8156),
        ("SELECT * FROM (SELECT 1) x(a, b)", 8159),
        ("SELECT * FROM (SELECT 1, 2) x(a)", 8158),
        ("SELECT 1 UNION SELECT 1, 2", 205),
        ("SELECT id FROM customers ORDER BY 2", 108),
        ("SELECT id FROM customers UNION SELECT id FROM orders ORDER BY total", 207),
        ("SELECT id FROM customers UNION SELECT id FROM orders ORDER BY id + 1", 104),
        ("SELECT DISTINCT id FROM customers ORDER BY name", 145),
        ("SELECT id FROM customers ORDER BY id, id", 169),
        ("SELECT id FROM customers ORDER BY 'x'", 408),
        ("SELECT id FROM customers ORDER BY @i", 1008),
        ("SELECT a = id, @i = 1 FROM customers", 141),
        ("SELECT @nope", 137),
        ("SELECT nosuch(1)", 195),
        ("SELECT LEN()", 174),
        ("SELECT LEN('a', 'b')", 174),
        ("SELECT ROUND(1)", 189),
        ("SELECT DATEADD(fortnight, 1, GETDATE())", 155),
        ("SELECT DATEADD('day', 1, GETDATE())", 1023),
        ("SELECT dbo.nosuch(1)", 4121),
        ("SELECT ROW_NUMBER() OVER (ORDER BY id) FROM customers WHERE ROW_NUMBER() OVER (ORDER BY id) > 1", 4108),
        ("SELECT ROW_NUMBER() FROM customers", 10753),
        ("SELECT ROW_NUMBER() OVER () FROM customers", 4112),
        ("SELECT CASE WHEN 1 = 1 THEN NULL END", 8133),
        ("SELECT COALESCE(NULL, NULL)", 4127),
        ("SELECT NULLIF(NULL, 1)", 4151),
        ("SELECT CAST(CAST('2020-01-01' AS date) AS int)", 529),
        ("SELECT CAST(1 AS nosuch)", 243),
        ("SELECT CAST('2020-01-01' AS date) + 1", 206),
        ("SELECT -'a'", 8117),
        ("SELECT NEWID() + 1", 402),
        ("SELECT 1 FROM ident WHERE t = 'a'", 402),
        ("SELECT 1 FROM ident ORDER BY t", 306),
        ("SELECT DISTINCT t FROM ident", 421),
        ("SELECT name COLLATE nosuch FROM customers", 448),
        ("SELECT id COLLATE Latin1_General_BIN2 FROM customers", 447),
        ("SELECT 1 FROM customers a JOIN customers b ON a.name COLLATE Latin1_General_BIN2 = b.name COLLATE Latin1_General_CI_AS", 468),
        ("INSERT INTO customers VALUES (1)", 213),
        ("INSERT INTO customers (id, name) VALUES (1)", 109),
        ("INSERT INTO customers (id) VALUES (1, 2)", 110),
        ("INSERT INTO customers (id, name) SELECT 1", 120),
        ("INSERT INTO customers (id) SELECT 1, 2", 121),
        ("INSERT INTO customers (id, id) VALUES (1, 2)", 264),
        ("INSERT INTO customers (nope) VALUES (1)", 207),
        ("INSERT INTO customers (id, name) VALUES (1, name)", 128),
        ("INSERT INTO ident (id, a) VALUES (1, 2)", 544),
        ("INSERT INTO ident VALUES (1, 2, NULL, NULL)", 8101),
        ("INSERT INTO nope VALUES (1)", 208),
        ("INSERT INTO @t VALUES (1)", 1087),
        ("INSERT INTO customers VALUES (1, 2, 3), (1, 2)", 10709),
        ("UPDATE ident SET id = 1", 8102),
        ("UPDATE customers SET name = 'a', name = 'b'", 264),
        ("UPDATE customers SET nope = 1", 207),
        ("UPDATE customers SET id = COUNT(*)", 157),
        ("UPDATE orders SET placed = 1", 206),
        ("DELETE nope", 208),
        ("DELETE c FROM customers a JOIN orders b ON 1 = 1", 208),
        ("WITH a AS (SELECT 1 x), a AS (SELECT 2 x) SELECT * FROM a", 239),
        ("WITH n(i) AS (SELECT 1 UNION ALL SELECT CAST(i + 1 AS bigint) FROM n) SELECT * FROM n", 240),
        ("WITH n(i) AS (SELECT i FROM n UNION ALL SELECT 1) SELECT * FROM n", 246),
        ("SELECT TOP 1 WITH TIES id FROM customers", 1062),
        ("SELECT TOP ('a') id FROM customers", 1060),
    ] {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| db.compile(sql))).unwrap_or_else(|_| panic!("{sql}"));
        assert_eq!(result.as_ref().err().map(|e| e.number), Some(number), "{sql}: {:?}", result.err().map(|e| e.text));
    }
}

#[test]
fn lines_are_where_the_name_stands() {
    let db = shop("lines");
    assert_eq!(db.compile("SELECT id,\n  nope\nFROM customers").unwrap_err().line, 2);
    assert_eq!(db.compile("SELECT id\nFROM nope").unwrap_err().line, 1);
}
