//! Types of expressions, as a client sees them.

use super::rows::shop;
use thawdb_types::{Scalar, SqlType};

#[test]
fn of_expressions() {
    let mut db = shop("types");
    db.variable("@d", SqlType::DateTime2 { scale: 3 }, Scalar::Null);
    db.variable("@x", SqlType::VARCHAR_MAX, Scalar::Null);
    let mut wrong = Vec::new();
    for (expr, expected) in [
        ("1", "int"),
        ("2147483648", "numeric(10,0)"),
        ("-5", "int"),
        ("1.50", "numeric(3,2)"),
        (".5", "numeric(1,1)"),
        ("1e0", "float"),
        ("$1", "money"),
        ("'abc'", "varchar(3)"),
        ("''", "varchar(1)"),
        ("N'abc'", "nvarchar(3)"),
        ("0x0102", "varbinary(2)"),
        ("NULL", "int"),
        ("1 + 1.0", "numeric(3,1)"),
        ("1 / 3.0", "numeric(8,6)"),
        ("total * 2", "numeric(12,2)"),
        ("total + id", "numeric(13,2)"),
        ("total / 3", "numeric(14,6)"),
        ("id + '5'", "int"),
        ("id * 1e0", "float"),
        ("'a' + N'b'", "nvarchar(2)"),
        ("'a' + @x", "varchar(max)"),
        ("CASE WHEN id = 1 THEN 1 ELSE 2.5 END", "numeric(11,1)"),
        ("CASE WHEN id = 1 THEN 'a' ELSE N'bcd' END", "nvarchar(3)"),
        ("CASE WHEN id = 1 THEN NULL ELSE 'bcd' END", "varchar(3)"),
        ("COALESCE(NULL, id, 2)", "int"),
        ("COALESCE(id, 1.5)", "numeric(11,1)"),
        ("ISNULL(placed, '2020')", "date"),
        ("ISNULL('a', 'abcdef')", "varchar(1)"),
        ("ISNULL(NULL, 'abcdef')", "varchar(6)"),
        ("NULLIF(total, 1)", "decimal(10,2)"),
        ("IIF(id = 1, 'x', 'yy')", "varchar(2)"),
        ("CHOOSE(1, 'a', N'bb')", "nvarchar(2)"),
        ("CAST('a' AS varchar)", "varchar(30)"),
        ("CAST(1 AS decimal)", "decimal(18,0)"),
        ("CONVERT(nvarchar(max), 'a')", "nvarchar(max)"),
        ("COUNT(*) OVER ()", "int"),
        ("SUM(id) OVER ()", "int"),
        ("SUM(total) OVER ()", "decimal(38,2)"),
        ("AVG(total) OVER ()", "decimal(38,6)"),
        ("ROW_NUMBER() OVER (ORDER BY id)", "bigint"),
        ("LEN('abc')", "int"),
        ("LEN(@x)", "bigint"),
        ("SUBSTRING('abcdef', 2, 3)", "varchar(3)"),
        ("LEFT(N'abcdef', 2)", "nvarchar(2)"),
        ("UPPER('abc')", "varchar(3)"),
        ("REPLACE('abc', 'b', 'd')", "varchar(8000)"),
        ("REPLICATE('ab', 5)", "varchar(10)"),
        ("CONCAT('a', 1, N'b')", "nvarchar(14)"),
        ("QUOTENAME('a')", "nvarchar(258)"),
        ("CHAR(65)", "char(1)"),
        ("NCHAR(65)", "nchar(1)"),
        ("STR(1.5)", "varchar(10)"),
        ("SPACE(3)", "varchar(8000)"),
        ("CHARINDEX('a', 'b')", "int"),
        ("ABS(-1.5)", "numeric(2,1)"),
        ("ABS(CAST(1 AS smallint))", "int"),
        ("CEILING(1.55)", "numeric(3,0)"),
        ("ROUND(total, 1)", "decimal(10,2)"),
        ("POWER(2, 3)", "int"),
        ("POWER(2.5, 3)", "numeric(38,1)"),
        ("SQRT(4)", "float"),
        ("GETDATE()", "datetime"),
        ("SYSDATETIME()", "datetime2(7)"),
        ("SYSDATETIMEOFFSET()", "datetimeoffset(7)"),
        ("DATEADD(day, 1, placed)", "date"),
        ("DATEADD(day, 1, @d)", "datetime2(3)"),
        ("DATEADD(day, 1, '20200101')", "datetime"),
        ("DATEDIFF(day, placed, '2020')", "int"),
        ("DATEDIFF_BIG(ms, placed, @d)", "bigint"),
        ("DATEPART(year, placed)", "int"),
        ("DATENAME(month, placed)", "nvarchar(30)"),
        ("EOMONTH(placed)", "date"),
        ("DATETIME2FROMPARTS(2020, 1, 1, 0, 0, 0, 0, 3)", "datetime2(3)"),
        ("GETDATE() + 1", "datetime"),
        ("GETDATE() - GETDATE()", "datetime"),
        ("NEWID()", "uniqueidentifier"),
        ("ISNUMERIC('1')", "int"),
        ("OBJECT_ID('t')", "int"),
        ("DB_NAME()", "nvarchar(128)"),
        ("@@ROWCOUNT", "int"),
        ("@@VERSION", "nvarchar(300)"),
        ("@@SPID", "smallint"),
        ("@@IDENTITY", "numeric(38,0)"),
        ("SCOPE_IDENTITY()", "numeric(38,0)"),
        ("XACT_STATE()", "smallint"),
        ("CURRENT_TIMESTAMP", "datetime"),
        ("CURRENT_USER", "nvarchar(128)"),
        ("(SELECT MAX(total) FROM orders)", "decimal(10,2)"),
        ("~id", "int"),
        ("id & 1", "int"),
        ("id % 2.5", "numeric(2,1)"),
    ] {
        let compiled = db.compile(&format!("SELECT {expr} FROM orders"));
        let name = compiled.as_ref().map(|c| c.columns[0].sql_type.name()).map_err(|e| e.text.clone());
        if name.as_deref() != Ok(expected) {
            wrong.push(format!("{expr}: {name:?}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_aggregates_and_unions() {
    let db = shop("types_more");
    for (sql, expected) in [
        ("SELECT COUNT_BIG(*) FROM orders", "bigint"),
        ("SELECT AVG(id) FROM orders", "int"),
        ("SELECT SUM(line) FROM items", "int"),
        ("SELECT MAX(placed) FROM orders", "date"),
        ("SELECT STDEV(id) FROM orders", "float"),
        ("SELECT STRING_AGG(name, ',') FROM customers", "varchar(8000)"),
        ("SELECT 1 UNION SELECT 2.50", "numeric(12,2)"),
        ("SELECT 'a' UNION ALL SELECT N'abc'", "nvarchar(3)"),
        ("SELECT NULL UNION ALL SELECT 'abc'", "varchar(3)"),
        ("SELECT 1 UNION ALL SELECT '2'", "int"),
        ("SELECT v FROM (VALUES (1), (2.5)) t(v)", "numeric(11,1)"),
    ] {
        let compiled = db.compile(sql);
        let name = compiled.as_ref().map(|c| c.columns[0].sql_type.name()).map_err(|e| e.text.clone());
        assert_eq!(name.as_deref(), Ok(expected), "{sql}");
    }
}

#[test]
fn names_and_nulls_of_columns() {
    let db = shop("columns");
    let columns = |sql: &str| db.compile(sql).unwrap().columns.into_iter().map(|c| (c.name, c.nullable)).collect::<Vec<_>>();
    let pair = |name: &str, nullable| (name.to_string(), nullable);
    assert_eq!(
        columns("SELECT ID, city AS Town, id + 1, 'x' FROM customers"),
        [pair("id", false), pair("Town", true), pair("", false), pair("", false),]
    );
    assert_eq!(columns("SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON 1 = 1"), [pair("id", false), pair("id", true)]);
    assert_eq!(columns("SELECT MAX(id), COUNT(*) FROM customers"), [pair("", true), pair("", false)]);
    assert_eq!(columns("SELECT id, id FROM customers"), [pair("id", false), pair("id", false)]);
}
