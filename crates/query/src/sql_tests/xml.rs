//! FOR XML and the methods of xml values, through the whole of the query floor.

use super::Db;
use super::rows::shop;
use thawdb_types::{Scalar, SqlType};

fn fails(db: &mut Db, sql: &str, number: i32) {
    assert_eq!(db.try_exec(sql).expect_err(sql).number, number, "{sql}");
}

#[test]
fn for_xml() {
    let mut db = shop("for_xml");
    db.check("SELECT id, city FROM customers WHERE id IN (1, 3) ORDER BY id FOR XML RAW", &[r#"<row id="1" city="Oslo"/><row id="3"/>"#]);
    db.check(
        "SELECT id, name FROM customers c WHERE id = 1 FOR XML AUTO, ELEMENTS, ROOT('all')",
        &["<all><c><id>1</id><name>Ann</name></c></all>"],
    );
    db.check(
        "SELECT id AS [@id], name AS [who/name], city AS [who/city] FROM customers WHERE id < 3 ORDER BY id DESC FOR XML PATH('cust')",
        &[r#"<cust id="2"><who><name>Bob</name><city>Paris</city></who></cust><cust id="1"><who><name>Ann</name><city>Oslo</city></who></cust>"#],
    );
    db.check("SELECT STUFF((SELECT ',' + name FROM customers ORDER BY name FOR XML PATH('')), 1, 1, '')", &["Ann,Bob,Cyd,Dan"]);
    db.check("SELECT name AS [data()] FROM customers ORDER BY id FOR XML PATH('')", &["Ann Bob Cyd Dan"]);
    db.check(
        "SELECT (SELECT '<&' AS x FOR XML PATH('')), (SELECT '<&' AS x FOR XML PATH(''), TYPE).value('.', 'varchar(10)')",
        &["<x>&lt;&amp;</x>|<&"],
    );
    db.check(
        "SELECT c.id AS [@id], (SELECT o.id AS [@o] FROM orders o WHERE o.customer = c.id ORDER BY o.id FOR XML PATH('o'), TYPE)
         FROM customers c WHERE c.id IN (1, 3) ORDER BY c.id FOR XML PATH('c')",
        &[r#"<c id="1"><o o="10"/><o o="11"/></c><c id="3"/>"#],
    );
    db.check("SELECT id FROM customers WHERE id = 99 FOR XML PATH", &[]);
    fails(&mut db, "SELECT id + 1 FROM customers FOR XML RAW", 6809);
    fails(&mut db, "SELECT id AS [a b] FROM customers FOR XML PATH", 6850);
}

#[test]
fn methods() {
    let mut db = Db::new("xml_methods");
    let xml = "<a x=\"1\"><b>one</b><b n=\"2\">two</b><c/></a>";
    db.variable("@x", SqlType::Xml, Scalar::text(xml));
    db.variable("@n", SqlType::Int, Scalar::Int(2));
    db.check("SELECT @x.value('(/a/b)[2]', 'varchar(10)'), @x.value('(/a/@x)[1]', 'int') + 1", &["two|2"]);
    db.check("SELECT @x.value('(/a/b[@n=2]/text())[1]', 'varchar(10)'), @x.value('(//none)[1]', 'int')", &["two|NULL"]);
    db.check("SELECT @x.value('count(/a/b)', 'int'), @x.value('(/a/b[@n=sql:variable(\"@n\")])[1]', 'varchar(5)')", &["2|two"]);
    db.check("SELECT @x.query('/a/b[1]'), @x.query('/a/c')", &["<b>one</b>|<c/>"]);
    db.check("SELECT @x.exist('/a/b[. = \"two\"]'), @x.exist('/a/d')", &["1|0"]);
    db.check("SELECT t.c.value('.', 'varchar(5)') AS v, t.c.value('@n', 'int') FROM @x.nodes('/a/b') AS t(c)", &["one|NULL", "two|2"]);
    db.check("SELECT t.c.query('.') FROM @x.nodes('/a/b[last()]') AS t(c)", &["<b n=\"2\">two</b>"]);
    db.check("SELECT CAST('<q></q>' AS xml), CAST(CAST(N'<q> <r>1</r></q>' AS xml) AS nvarchar(50))", &["<q/>|<q><r>1</r></q>"]);
    fails(&mut db, "SELECT @x.value('/a/b', 'int')", 2389);
    fails(&mut db, "SELECT @x.value('/a[', 'int')", 2209);
    fails(&mut db, "SELECT @x.query('for $i in /a return $i')", 9335);
    fails(&mut db, "SELECT CAST('<q>' AS xml)", 9400);
    fails(&mut db, "SELECT CAST('<q></r>' AS xml)", 9436);
}
