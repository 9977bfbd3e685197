//! JSON functions, OPENJSON, FOR JSON, STRING_SPLIT and GENERATE_SERIES, through the whole of the query floor.

use super::Db;
use super::rows::shop;

/// Compiling or running it gives this error.
fn fails(db: &mut Db, sql: &str, number: i32) {
    assert_eq!(db.try_exec(sql).expect_err(sql).number, number, "{sql}");
}

#[test]
fn values_by_path() {
    let mut db = Db::new("json_values");
    let json = r#"'{"a":"x\u0041","b":[1,{"c":null}],"t":true}'"#;
    db.check(&format!("SELECT JSON_VALUE({json}, '$.a'), JSON_VALUE({json}, '$.b[0]'), JSON_VALUE({json}, '$.b[1].c')"), &["xA|1|NULL"]);
    db.check(&format!("SELECT JSON_VALUE({json}, '$.b'), JSON_VALUE({json}, '$.none'), JSON_VALUE({json}, '$.t')"), &["NULL|NULL|true"]);
    db.check(&format!("SELECT JSON_QUERY({json}, '$.b'), JSON_QUERY({json}, '$.a')"), &[r#"[1,{"c":null}]|NULL"#]);
    db.check(&format!("SELECT JSON_PATH_EXISTS({json}, '$.b[1].c'), JSON_PATH_EXISTS({json}, '$.z')"), &["1|0"]);
    db.check("SELECT ISJSON('{}'), ISJSON('[1'), ISJSON('1'), ISJSON('1', VALUE), ISJSON('[]', OBJECT), ISJSON(NULL)", &["1|0|0|1|0|NULL"]);
    db.check("SELECT JSON_VALUE(NULL, '$.a')", &["NULL"]);
    fails(&mut db, "SELECT JSON_VALUE('{}', 'strict $.a')", 13608);
    fails(&mut db, "SELECT JSON_VALUE('{\"a\":[]}', 'strict $.a')", 13623);
    fails(&mut db, "SELECT JSON_QUERY('{\"a\":1}', 'strict $.a')", 13624);
    fails(&mut db, "SELECT JSON_VALUE('abc', '$.a')", 13609);
    fails(&mut db, "SELECT JSON_VALUE('{}', 'a')", 13607);
}

#[test]
fn modifying() {
    let mut db = Db::new("json_modify");
    db.check(r#"SELECT JSON_MODIFY('{"a":1,"b":2}', '$.a', 'x/y')"#, &[r#"{"a":"x\/y","b":2}"#]);
    db.check(r#"SELECT JSON_MODIFY('{"a":1,"b":2}', '$.a', NULL)"#, &[r#"{"b":2}"#]);
    db.check(r#"SELECT JSON_MODIFY('{"a":1}', '$.c', JSON_QUERY('[1,2]'))"#, &[r#"{"a":1,"c":[1,2]}"#]);
    db.check(
        r#"SELECT JSON_MODIFY('{"a":[1]}', 'append $.a', 2.50), JSON_MODIFY('{}', '$.b', CAST(1 AS bit))"#,
        &[r#"{"a":[1,2.50]}|{"b":true}"#],
    );
    db.check("SELECT JSON_OBJECT('a':1, 'b':'x', 'c':NULL), JSON_ARRAY(1, NULL, 'y')", &[r#"{"a":1,"b":"x","c":null}|[1,"y"]"#]);
    db.check("SELECT JSON_OBJECT('a':JSON_ARRAY(1, 2), 'c':NULL ABSENT ON NULL)", &[r#"{"a":[1,2]}"#]);
}

#[test]
fn openjson() {
    let mut db = Db::new("openjson");
    db.check(
        r#"SELECT [key], value, type FROM OPENJSON('{"a":null,"b":"t","c":1.5,"d":false,"e":[1],"f":{}}')"#,
        &["a|NULL|0", "b|t|1", "c|1.5|2", "d|false|3", "e|[1]|4", "f|{}|5"],
    );
    db.check("SELECT [key], value FROM OPENJSON('{\"x\":[7,8]}', '$.x')", &["0|7", "1|8"]);
    db.check("SELECT value FROM OPENJSON('{}', '$.x')", &[]);
    db.check(
        r#"SELECT id, name, tags FROM OPENJSON('[{"id":1,"p":{"name":"n"},"tags":["t"]},{"id":"2"}]')
           WITH (id int, name varchar(10) '$.p.name', tags nvarchar(max) AS JSON)"#,
        &[r#"1|n|["t"]"#, "2|NULL|NULL"],
    );
    db.table("docs", &["id int", "doc nvarchar(200)"], &["pk_docs:id unique"]);
    db.exec(r#"INSERT INTO docs VALUES (1, '[1,2]'), (2, '[3]'), (3, '[]')"#);
    db.check("SELECT d.id, j.value FROM docs d CROSS APPLY OPENJSON(d.doc) j ORDER BY d.id, j.value", &["1|1", "1|2", "2|3"]);
    fails(&mut db, "SELECT * FROM OPENJSON('[1,')", 13609);
    fails(&mut db, "SELECT * FROM OPENJSON('{}', 'strict $.a')", 13608);
    fails(&mut db, "SELECT * FROM OPENJSON('{}') WITH (a int AS JSON)", 13618);
}

#[test]
fn for_json() {
    let mut db = shop("for_json");
    db.check(
        "SELECT id, name AS [who.name], city AS [who.city] FROM customers WHERE id IN (1, 3) ORDER BY id DESC FOR JSON PATH",
        &[r#"[{"id":3,"who":{"name":"Cyd"}},{"id":1,"who":{"name":"Ann","city":"Oslo"}}]"#],
    );
    db.check(
        "SELECT id, city FROM customers WHERE id = 3 FOR JSON AUTO, INCLUDE_NULL_VALUES, ROOT('c')",
        &[r#"{"c":[{"id":3,"city":null}]}"#],
    );
    db.check("SELECT 1 AS a, CAST(1 AS bit) AS b, CAST('2024-01-02T03:04:05' AS datetime) AS c, 0x0102 AS d FOR JSON PATH, WITHOUT_ARRAY_WRAPPER", &[
        r#"{"a":1,"b":true,"c":"2024-01-02T03:04:05","d":"AQI="}"#,
    ]);
    db.check("SELECT id FROM customers WHERE id = 99 FOR JSON PATH", &[]);
    db.check(
        "SELECT c.id, (SELECT o.id AS o FROM orders o WHERE o.customer = c.id ORDER BY o.id FOR JSON PATH) AS orders
         FROM customers c WHERE c.id IN (1, 3) ORDER BY c.id FOR JSON PATH",
        &[r#"[{"id":1,"orders":[{"o":10},{"o":11}]},{"id":3}]"#],
    );
    db.check("SELECT LEN(r) FROM (SELECT REPLICATE('x', 5000) AS t FOR JSON PATH) AS d(r)", &["5010"]);
    fails(&mut db, "SELECT id + 1 FROM customers FOR JSON PATH", 13605);
    fails(&mut db, "SELECT 1 AS a, 2 AS a FOR JSON PATH", 13601);
    fails(&mut db, "SELECT 1 AS a FOR JSON PATH, ROOT, WITHOUT_ARRAY_WRAPPER", 13620);
}

#[test]
fn splitting_and_series() {
    let mut db = shop("table_valued");
    db.check("SELECT value FROM STRING_SPLIT('a,b,,c', ',')", &["", "a", "b", "c"]);
    db.check("SELECT value, ordinal FROM STRING_SPLIT('a b', ' ', 1) ORDER BY ordinal DESC", &["b|2", "a|1"]);
    db.check("SELECT c.id, s.value FROM customers c CROSS APPLY STRING_SPLIT(c.name, 'n') s WHERE c.id = 1", &["1|", "1|", "1|A"]);
    fails(&mut db, "SELECT value FROM STRING_SPLIT('a', 'bc')", 214);
    db.check("SELECT value FROM GENERATE_SERIES(1, 10, 4)", &["1", "5", "9"]);
    db.check("SELECT value FROM GENERATE_SERIES(3, 1)", &["1", "2", "3"]);
    db.check("SELECT value FROM GENERATE_SERIES(0.0, 1.0, 0.5)", &["0.0", "0.5", "1.0"]);
    fails(&mut db, "SELECT value FROM GENERATE_SERIES(1, 2, 0)", 4199);
}
