//! INSERT, UPDATE, DELETE.

use super::Db;
use super::rows::shop;
use thawdb_types::{Scalar, SqlType};

#[test]
fn insert() {
    let mut db = Db::new("insert");
    db.table("t", &["id int identity", "a varchar(5)", "b int null =((7))", "c decimal(5,1) null"], &["pk_t:id unique"]);
    assert_eq!(db.exec("INSERT INTO t (a) VALUES ('x'), ('y')"), 2);
    assert_eq!(db.exec("INSERT t VALUES ('z', DEFAULT, 1)"), 1);
    assert_eq!(db.exec("INSERT t (c, a) SELECT b, a + '!' FROM t WHERE id < 2"), 1);
    db.check("SELECT id, a, b, c FROM t", &["1|x|7|NULL", "2|y|7|NULL", "3|z|7|1.0", "4|x!|7|7.0"]);
    let (rows, count) = db.try_exec("INSERT INTO t (a, b) OUTPUT inserted.id, inserted.a + '?' VALUES ('p', NULL), ('q', 2)").unwrap();
    assert_eq!((rows.len(), count, rows[1][0].clone()), (2, 2, Scalar::Int(6)));
    assert_eq!(db.try_exec("INSERT INTO t (a) VALUES ('toolong')").unwrap_err().number, 2628);
    assert_eq!(db.try_exec("INSERT INTO t (a) VALUES (NULL)").unwrap_err().number, 515);
    db.table("log", &["id int", "what varchar(20) null"], &["heap"]);
    assert_eq!(db.exec("INSERT INTO t (a) OUTPUT inserted.id, inserted.a INTO log VALUES ('r')"), 1);
    db.check("SELECT * FROM log", &["9|r"]);
    assert_eq!(db.exec("INSERT TOP (2) INTO log SELECT id, a FROM t"), 2);
    db.table("d", &["a int null =((3))", "b int null"], &["heap"]);
    assert_eq!(db.exec("INSERT d DEFAULT VALUES"), 1);
    db.check("SELECT * FROM d", &["3|NULL"]);
}

#[test]
fn update() {
    let mut db = shop("update");
    assert_eq!(db.exec("UPDATE customers SET city = 'Rome', name = name + '2' WHERE id = 1"), 1);
    db.check("SELECT name, city FROM customers WHERE id = 1", &["Ann2|Rome"]);
    assert_eq!(db.exec("UPDATE orders SET total += 1, customer = DEFAULT WHERE total < 6"), 2);
    db.check("SELECT id, customer, total FROM orders WHERE id IN (10, 13)", &["10|NULL|6.50", "13|NULL|2.00"]);
    // A join that finds two orders for a customer changes the customer once.
    assert_eq!(db.exec("UPDATE c SET city = 'Bonn' FROM customers c JOIN items i ON i.order_id = 12 WHERE c.id = 2"), 1);
    assert_eq!(db.exec("UPDATE customers SET city = o.total FROM orders o WHERE o.customer = customers.id AND o.id = 14"), 1);
    db.check("SELECT id, city FROM customers", &["1|Rome", "2|Bonn", "3|NULL", "4|20.00"]);
    assert_eq!(db.exec("UPDATE customers SET city = (SELECT MAX(product) FROM items WHERE order_id = customers.id + 9)"), 4);
    db.check("SELECT city FROM customers WHERE city IS NOT NULL", &["nut", "nut", "nut"]);
    assert_eq!(db.exec("UPDATE TOP (1) items SET qty = 99 WHERE qty IS NULL"), 1);
    let (rows, _) =
        db.try_exec("UPDATE items SET qty = qty + 1 OUTPUT deleted.qty, inserted.qty, inserted.product WHERE order_id = 14").unwrap();
    assert_eq!(rows, [[Scalar::Int(4), Scalar::Int(5), Scalar::text("bolt")]]);
    db.variable("@q", SqlType::Int, Scalar::Null);
    assert_eq!(db.exec("UPDATE items SET @q = qty = qty * 2 WHERE order_id = 14"), 1);
    assert_eq!(db.host.variables[0], Scalar::Int(10));
}

#[test]
fn delete() {
    let mut db = shop("delete");
    assert_eq!(db.exec("DELETE FROM items WHERE product = 'nut'"), 3);
    assert_eq!(db.exec("DELETE o FROM orders o JOIN customers c ON c.id = o.customer WHERE c.city = 'Oslo'"), 3);
    db.check("SELECT id FROM orders", &["12", "13"]);
    assert_eq!(db.exec("DELETE orders WHERE NOT EXISTS (SELECT 1 FROM items WHERE order_id = orders.id)"), 1);
    let (rows, count) = db.try_exec("DELETE TOP (1) FROM customers OUTPUT deleted.name WHERE id = 3").unwrap();
    assert_eq!((rows, count), (vec![vec![Scalar::text("Cyd")]], 1));
    assert_eq!(db.exec("DELETE customers"), 3);
    db.check("SELECT COUNT(*) FROM customers", &["0"]);
}

#[test]
fn derived_targets() {
    let mut db = shop("derived");
    let sql = "WITH d AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY order_id) AS n FROM items) DELETE FROM d WHERE n > 1";
    assert_eq!(db.exec(sql), 3);
    db.check("SELECT product FROM items", &["bolt", "gear", "nut"]);
    assert_eq!(db.exec("WITH t AS (SELECT TOP 1 id, total AS price FROM orders ORDER BY id DESC) UPDATE t SET price = price + 1"), 1);
    db.check("SELECT total FROM orders WHERE id = 14", &["21.00"]);
    assert_eq!(db.exec("UPDATE x SET city = 'Rome' FROM (SELECT id, city FROM customers WHERE city = 'Oslo') x WHERE x.id > 1"), 1);
    let error = |sql: &str| db.compile(sql).unwrap_err().number;
    assert_eq!(error("WITH d AS (SELECT DISTINCT city FROM customers) DELETE FROM d"), 4403);
    assert_eq!(error("WITH d AS (SELECT city, total FROM customers c JOIN orders o ON o.id = c.id) DELETE FROM d"), 4405);
    assert_eq!(error("WITH d AS (SELECT id + 1 AS n, city FROM customers) UPDATE d SET n = 1"), 4406);
}
