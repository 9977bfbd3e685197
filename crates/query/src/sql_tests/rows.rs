//! Rows of queries, with and without rewrites.

use super::Db;
use thawdb_types::{Scalar, SqlType};

/// Customers (one without orders, one without a city), orders (one of nobody), items.
pub(super) fn shop(name: &str) -> Db {
    let mut db = Db::new(name);
    db.table("customers", &["id int", "name varchar(20)", "city varchar(20) null"], &["pk_customers:id unique", "ix_city:city"]);
    db.table(
        "orders",
        &["id int", "customer int null", "total decimal(10,2)", "placed date null"],
        &["pk_orders:id unique", "ix_customer:customer include total"],
    );
    db.table("items", &["order_id int", "line smallint", "product varchar(10)", "qty int null"], &["pk_items:order_id,line unique"]);
    db.exec("INSERT INTO customers VALUES (1,'Ann','Oslo'),(2,'Bob','Paris'),(3,'Cyd',NULL),(4,'Dan','Oslo')");
    db.exec(
        "INSERT INTO orders VALUES (10,1,5.50,'2024-01-01'),(11,1,7.25,'2024-02-01'),(12,2,100,NULL),(13,NULL,1,'2024-03-01'),(14,4,20,'2024-03-05')",
    );
    db.exec("INSERT INTO items VALUES (10,1,'nut',3),(10,2,'bolt',NULL),(11,1,'nut',1),(12,1,'gear',2),(12,2,'nut',5),(14,1,'bolt',4)");
    db
}

#[test]
fn selection_and_projection() {
    let mut db = shop("selection");
    db.check("SELECT name FROM customers WHERE id = 2", &["Bob"]);
    db.check("SELECT id, name AS n, id * 2 + 1 FROM customers WHERE id > 1 AND id <= 3 ORDER BY n DESC", &["3|Cyd|7", "2|Bob|5"]);
    db.check("SELECT * FROM customers WHERE city IS NULL", &["3|Cyd|NULL"]);
    db.check("SELECT id FROM customers WHERE city = 'oslo' ORDER BY 1", &["1", "4"]);
    db.check("SELECT id FROM customers WHERE name LIKE '[AB]%'", &["1", "2"]);
    db.check("SELECT id FROM customers WHERE id IN (1, 3, 3, 9) ORDER BY id DESC", &["3", "1"]);
    db.check("SELECT id FROM customers WHERE id NOT IN (1, 3)", &["2", "4"]);
    db.check("SELECT id FROM customers WHERE id BETWEEN 2 AND 3", &["2", "3"]);
    db.check("SELECT id FROM customers WHERE NOT (id < 3 OR city = 'Oslo')", &[]);
    db.check("SELECT id FROM customers WHERE 1 = 0", &[]);
    db.check("SELECT 1 + 1, 'a' + 'b', 7 / 2, 7 % 4, 1.0 / 3", &["2|ab|3|3|0.333333"]);
    db.check(
        "SELECT CASE WHEN city = 'Oslo' THEN 'north' ELSE 'south' END, ISNULL(city, '?') FROM customers WHERE id > 2",
        &["north|Oslo", "south|?"],
    );
    db.check(
        "SELECT IIF(id > 2, 'big', 'small'), NULLIF(id, 1), COALESCE(city, name) FROM customers WHERE id IN (1, 3)",
        &["big|3|Cyd", "small|NULL|Oslo"],
    );
    db.check("SELECT order_id, line FROM items WHERE order_id = 12 AND line = 2", &["12|2"]);
}

#[test]
fn order_and_limits() {
    let mut db = shop("limits");
    db.check("SELECT TOP 2 id FROM orders ORDER BY total DESC", &["12", "14"]);
    db.check("SELECT TOP (1) id FROM orders ORDER BY id DESC", &["14"]);
    db.check("SELECT TOP 2 WITH TIES product FROM items ORDER BY product", &["bolt", "bolt"]);
    db.check("SELECT TOP 3 WITH TIES product FROM items ORDER BY product DESC", &["nut", "nut", "nut"]);
    db.check("SELECT TOP 50 PERCENT id FROM customers ORDER BY id", &["1", "2"]);
    db.check("SELECT id FROM orders ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY", &["11", "12"]);
    db.check("SELECT id FROM orders ORDER BY id OFFSET 4 ROWS", &["14"]);
    db.check("SELECT id, customer FROM orders ORDER BY customer, id DESC", &["13|NULL", "11|1", "10|1", "12|2", "14|4"]);
    db.check("SELECT DISTINCT city FROM customers ORDER BY city DESC", &["Paris", "Oslo", "NULL"]);
    db.check("SELECT name FROM customers ORDER BY LEN(name), id DESC", &["Dan", "Cyd", "Bob", "Ann"]);
    db.check("SELECT id AS name, name AS id FROM customers ORDER BY name DESC", &["4|Dan", "3|Cyd", "2|Bob", "1|Ann"]);
}

#[test]
fn joins() {
    let mut db = shop("joins");
    db.check("SELECT c.name, o.id FROM customers c JOIN orders o ON o.customer = c.id", &["Ann|10", "Ann|11", "Bob|12", "Dan|14"]);
    db.check(
        "SELECT c.name, o.id FROM customers AS c LEFT JOIN orders AS o ON o.customer = c.id AND o.total > 6",
        &["Ann|11", "Bob|12", "Cyd|NULL", "Dan|14"],
    );
    db.check(
        "SELECT c.name, o.id FROM customers c RIGHT JOIN orders o ON o.customer = c.id",
        &["Ann|10", "Ann|11", "Bob|12", "Dan|14", "NULL|13"],
    );
    db.check(
        "SELECT c.name, o.id FROM customers c FULL JOIN orders o ON o.customer = c.id WHERE c.id IS NULL OR o.id IS NULL",
        &["Cyd|NULL", "NULL|13"],
    );
    db.check("SELECT c.name FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL", &["Cyd"]);
    db.check("SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.total < 10", &["Ann|10", "Ann|11"]);
    db.check("SELECT a.id, b.id FROM customers a, customers b WHERE a.city = b.city AND a.id < b.id", &["1|4"]);
    db.check("SELECT COUNT(*) FROM customers CROSS JOIN orders", &["20"]);
    db.check(
        "SELECT c.name, i.product FROM customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_id = o.id WHERE c.city = 'Oslo' AND i.qty > 1",
        &["Ann|nut", "Dan|bolt"],
    );
    db.check(
        "SELECT c.name, o.id, i.product FROM customers c LEFT JOIN (orders o JOIN items i ON i.order_id = o.id AND i.line = 2) ON o.customer = c.id",
        &["Ann|10|bolt", "Bob|12|nut", "Cyd|NULL|NULL", "Dan|NULL|NULL"],
    );
    db.check(
        "SELECT o.id, x.n FROM orders o CROSS APPLY (SELECT COUNT(*) AS n FROM items i WHERE i.order_id = o.id) x",
        &["10|2", "11|1", "12|2", "13|0", "14|1"],
    );
    db.check(
        "SELECT o.id, x.product FROM orders o OUTER APPLY (SELECT TOP 1 product FROM items i WHERE i.order_id = o.id ORDER BY line DESC) x",
        &["10|bolt", "11|nut", "12|nut", "13|NULL", "14|bolt"],
    );
}

#[test]
fn aggregates() {
    let mut db = shop("aggregates");
    db.check("SELECT COUNT(*), COUNT(qty), SUM(qty), AVG(qty), MIN(product), MAX(qty) FROM items", &["6|5|15|3|bolt|5"]);
    db.check("SELECT customer, SUM(total) FROM orders GROUP BY customer", &["1|12.75", "2|100.00", "4|20.00", "NULL|1.00"]);
    db.check("SELECT customer, COUNT(*) n FROM orders GROUP BY customer HAVING COUNT(*) > 1", &["1|2"]);
    db.check("SELECT city, COUNT(*) FROM customers GROUP BY city ORDER BY COUNT(*) DESC, city", &["Oslo|2", "NULL|1", "Paris|1"]);
    db.check("SELECT COUNT(DISTINCT product) FROM items", &["3"]);
    db.check("SELECT id % 2, COUNT(*) FROM customers GROUP BY id % 2", &["0|2", "1|2"]);
    db.check("SELECT id % 2 + 10 FROM customers GROUP BY id % 2", &["10", "11"]);
    db.check("SELECT MAX(id), MIN(id) FROM customers", &["4|1"]);
    db.check("SELECT MAX(id) FROM customers", &["4"]);
    db.check("SELECT MIN(city) FROM customers", &["Oslo"]);
    db.check("SELECT MAX(id) FROM customers WHERE id > 100", &["NULL"]);
    db.check("SELECT COUNT(*) FROM customers WHERE id > 100", &["0"]);
    db.check("SELECT 1 FROM customers HAVING COUNT(*) = 4", &["1"]);
    db.check(
        "SELECT customer, product, COUNT(*) FROM orders o JOIN items i ON i.order_id = o.id GROUP BY ROLLUP(customer, product)",
        &["1|NULL|3", "1|bolt|1", "1|nut|2", "2|NULL|2", "2|gear|1", "2|nut|1", "4|NULL|1", "4|bolt|1", "NULL|NULL|6"],
    );
    db.check(
        "SELECT city, GROUPING(city), COUNT(*) FROM customers GROUP BY city WITH CUBE",
        &["NULL|0|1", "NULL|1|4", "Oslo|0|2", "Paris|0|1"],
    );
    db.check(
        "SELECT GROUPING_ID(customer, id % 2), COUNT(*) FROM orders GROUP BY GROUPING SETS ((customer), (id % 2), ())",
        &["1|1", "1|1", "1|1", "1|2", "2|2", "2|3", "3|5"],
    );
    db.check("SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY name DESC) FROM customers", &["Dan,Cyd,Bob,Ann"]);
}

#[test]
fn subqueries() {
    let mut db = shop("subqueries");
    db.check("SELECT name FROM customers c WHERE EXISTS (SELECT * FROM orders o WHERE o.customer = c.id)", &["Ann", "Bob", "Dan"]);
    db.check("SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.total > 6)", &["Cyd"]);
    db.check("SELECT name FROM customers WHERE id IN (SELECT customer FROM orders)", &["Ann", "Bob", "Dan"]);
    db.check("SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders)", &[]);
    db.check("SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL)", &["Cyd"]);
    db.check("SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE id > 100)", &["10", "11", "12", "13", "14"]);
    db.check("SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE id < 2)", &["12", "14"]);
    db.check("SELECT id FROM orders o WHERE total >= ALL (SELECT total FROM orders)", &["12"]);
    db.check("SELECT id FROM orders o WHERE total > ANY (SELECT total FROM orders WHERE customer = 1)", &["11", "12", "14"]);
    db.check(
        "SELECT name, (SELECT SUM(total) FROM orders o WHERE o.customer = c.id) FROM customers c",
        &["Ann|12.75", "Bob|100.00", "Cyd|NULL", "Dan|20.00"],
    );
    db.check(
        "SELECT name, (SELECT COUNT(*) FROM orders o WHERE o.customer = c.id) FROM customers c",
        &["Ann|2", "Bob|1", "Cyd|0", "Dan|1"],
    );
    db.check("SELECT name FROM customers c WHERE (SELECT COUNT(*) FROM orders o WHERE o.customer = c.id) > 1", &["Ann"]);
    db.check("SELECT id FROM orders WHERE total > (SELECT AVG(total) FROM orders)", &["12"]);
    db.check("SELECT (SELECT name FROM customers WHERE id = 2)", &["Bob"]);
    db.check(
        "SELECT name FROM customers c WHERE id = 3 OR EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.total > 50)",
        &["Bob", "Cyd"],
    );
    db.check(
        "SELECT c.name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.product = 'gear' AND c.city = 'Paris'))",
        &["Bob"],
    );
    db.check(
        "SELECT city FROM customers GROUP BY city HAVING EXISTS (SELECT 1 FROM orders WHERE orders.id - 10 = COUNT(customers.id))",
        &["NULL", "Oslo", "Paris"],
    );
    db.check(
        "SELECT city FROM customers GROUP BY city HAVING EXISTS (SELECT 1 FROM orders WHERE orders.id - 9 = COUNT(customers.id) + 1)",
        &["NULL", "Oslo", "Paris"],
    );
    db.check(
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id) THEN 'y' ELSE 'n' END FROM customers c",
        &["n", "y", "y", "y"],
    );
}

#[test]
fn sets_and_common_table_expressions() {
    let mut db = shop("sets");
    db.check("SELECT city FROM customers UNION SELECT product FROM items", &["NULL", "Oslo", "Paris", "bolt", "gear", "nut"]);
    db.check("SELECT 1 AS a UNION ALL SELECT 1 UNION ALL SELECT 2.5", &["1.0", "1.0", "2.5"]);
    db.check("SELECT id FROM customers EXCEPT SELECT customer FROM orders", &["3"]);
    db.check("SELECT id FROM customers INTERSECT SELECT customer FROM orders", &["1", "2", "4"]);
    db.check("SELECT id FROM customers WHERE id < 3 UNION SELECT NULL ORDER BY id DESC", &["2", "1", "NULL"]);
    db.check("SELECT x.a, y FROM (SELECT id AS a, name AS y FROM customers) x WHERE a > 2", &["3|Cyd", "4|Dan"]);
    db.check("SELECT v.a + 1, v.b FROM (VALUES (1, 'x'), (2, NULL)) v(a, b)", &["2|x", "3|NULL"]);
    db.check("WITH big AS (SELECT * FROM orders WHERE total > 6), who(n) AS (SELECT name FROM customers JOIN big ON customer = customers.id) SELECT n FROM who", &[
        "Ann", "Bob", "Dan",
    ]);
    db.check("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n ORDER BY i", &["1", "2", "3", "4", "5"]);
    db.check("WITH n(i) AS (SELECT 1 UNION ALL SELECT i * 2 FROM n WHERE i < 50) SELECT SUM(i), COUNT(*) FROM n", &["127|7"]);
    db.check("SELECT u.id FROM (SELECT id FROM customers UNION ALL SELECT id FROM orders) u WHERE u.id IN (2, 12)", &["12", "2"]);
}

#[test]
fn variables_and_conversions() {
    let mut db = shop("variables");
    db.variable("@i", SqlType::Int, Scalar::Int(2));
    db.variable("@b", SqlType::BigInt, Scalar::BigInt(12));
    db.variable("@none", SqlType::Int, Scalar::Null);
    db.variable("@s", SqlType::nvarchar(30), Scalar::text("Oslo"));
    db.check("SELECT name FROM customers WHERE id = @i", &["Bob"]);
    db.check("SELECT id FROM orders WHERE id = @b", &["12"]);
    db.check("SELECT id FROM orders WHERE id = 12.0", &["12"]);
    db.check("SELECT id FROM orders WHERE id = 12.5", &[]);
    db.check("SELECT id FROM orders WHERE id = '12'", &["12"]);
    db.check("SELECT id FROM orders WHERE id IN (@b, 12, @i)", &["12"]);
    db.check("SELECT name FROM customers WHERE id = @none", &[]);
    db.check("SELECT name FROM customers WHERE city = @s", &["Ann", "Dan"]);
    db.check("SELECT line FROM items WHERE order_id = 10 AND line = @i", &["2"]);
    db.check("SELECT line FROM items WHERE order_id = 10 AND line > 1.5", &["2"]);
    db.check("SELECT TOP (@i) id FROM orders ORDER BY id", &["10", "11"]);
    db.check("SELECT CAST(1.75 AS int), CONVERT(varchar(10), 12), TRY_CAST('x' AS int), CAST('7' AS bigint) + 1", &["1|12|NULL|8"]);
    db.check("SELECT UPPER(name), LEN(name), SUBSTRING(name, 2, 1), CHARINDEX('n', name) FROM customers WHERE id = 1", &["ANN|3|n|2"]);
}

#[test]
fn assignments() {
    let mut db = shop("assignments");
    db.variable("@i", SqlType::Int, Scalar::Int(0));
    db.variable("@s", SqlType::varchar(100), Scalar::text(""));
    assert_eq!(db.exec("SELECT @i = @i + id FROM customers"), 4);
    assert_eq!(db.host.variables[0], Scalar::Int(10));
    db.exec("SELECT @s = @s + name + ';' FROM customers ORDER BY id DESC");
    assert_eq!(db.host.variables[1], Scalar::text("Dan;Cyd;Bob;Ann;"));
    db.exec("SELECT @i = COUNT(*), @s = MAX(name) FROM customers WHERE city = 'Oslo'");
    assert_eq!(db.host.variables, [Scalar::Int(2), Scalar::text("Dan")]);
    db.exec("SELECT @i += (SELECT SUM(qty) FROM items)");
    assert_eq!(db.host.variables[0], Scalar::Int(17));
}

#[test]
fn windows() {
    let mut db = shop("windows");
    db.check("SELECT id, ROW_NUMBER() OVER (PARTITION BY city ORDER BY id DESC) FROM customers", &["1|2", "2|1", "3|1", "4|1"]);
    db.check(
        "SELECT product, RANK() OVER (ORDER BY product), DENSE_RANK() OVER (ORDER BY product) FROM items",
        &["bolt|1|1", "bolt|1|1", "gear|3|2", "nut|4|3", "nut|4|3", "nut|4|3"],
    );
    db.check(
        "SELECT id, SUM(total) OVER (ORDER BY id), SUM(total) OVER () FROM orders",
        &["10|5.50|133.75", "11|12.75|133.75", "12|112.75|133.75", "13|113.75|133.75", "14|133.75|133.75"],
    );
    db.check(
        "SELECT id, LAG(id) OVER (ORDER BY id), LEAD(id, 2, 0) OVER (ORDER BY id) FROM customers",
        &["1|NULL|3", "2|1|4", "3|2|0", "4|3|0"],
    );
    db.check(
        "SELECT city, COUNT(*), ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, city) FROM customers GROUP BY city",
        &["NULL|1|2", "Oslo|2|1", "Paris|1|3"],
    );
    db.check("SELECT id FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY total DESC) AS n FROM orders) x WHERE n <= 2", &["12", "14"]);
    db.check(
        "SELECT id, AVG(total) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM orders WHERE id < 13 ORDER BY id",
        &["10|6.375000", "11|37.583333", "12|53.625000"],
    );
}

/// A seek by LIKE's first letters finds what the predicate alone finds, under collations of every kind.
#[test]
fn like_seeks_what_it_matches() {
    let mut db = Db::new("like_seek");
    db.table("words", &["id int", "w nvarchar(20) null"], &["pk_words:id unique", "ix_w:w"]);
    let words = [
        "a",
        "ab",
        "AB",
        "abc",
        "Abd",
        "abz",
        "ab z",
        "ab9",
        "ac",
        "az",
        "azz",
        "b",
        "\u{e4}b",
        "a\u{308}b",
        "ab\u{301}",
        "a-b",
        "9",
        "99x",
        "",
        "zz",
    ];
    for (id, word) in words.iter().enumerate() {
        db.exec(&format!("INSERT INTO words VALUES ({id}, N'{word}'), ({}, NULL)", id + 100));
    }
    db.count("words", 1_000_000);
    assert!(
        db.plan("SELECT w FROM words WHERE w LIKE N'abc%'").contains("Index Seek"),
        "{}",
        db.plan("SELECT w FROM words WHERE w LIKE N'abc%'")
    );
    for pattern in ["a%", "ab%", "AB%", "abz%", "azz%", "zz%", "9%", "99%", "ab z%", "a-%", "ab_", "ab", "a[bc]%", "%b", "a!%%"] {
        let escape = if pattern.contains('!') { " ESCAPE '!'" } else { "" };
        let sought = db.query(&format!("SELECT id FROM words WHERE w LIKE N'{pattern}'{escape} ORDER BY id"));
        let scanned = db.query(&format!("SELECT id FROM words WHERE w + N'' LIKE N'{pattern}'{escape} ORDER BY id"));
        assert_eq!(sought, scanned, "{pattern}");
    }
}
