//! Broken texts: the message's number, its line, and the text it names.

use thawdb_tsql::{ParseOptions, parse_batch};

fn check(text: &str, number: i32, line: u32, near: &str) {
    let batch = parse_batch(text, &ParseOptions::default());
    let Some(error) = batch.errors.first() else { panic!("no error in {text:?}: {:?}", batch.statements) };
    assert_eq!((error.number, error.line, error.near.as_str()), (number, line, near), "{text:?}: {error}");
    assert!(batch.statements.is_empty(), "a batch with an error runs nothing");
    assert_eq!(error.state, 1);
}

#[test]
fn unexpected_tokens() {
    for (text, number, line, near) in [
        ("SELECT * FROM", 102, 1, "FROM"),
        ("SELECT", 102, 1, "SELECT"),
        ("SELECT 1 +", 102, 1, "+"),
        ("SELECT 1 = 1", 102, 1, "="),
        ("SELECT (1 = 1)", 102, 1, "="),
        ("select 1\nfrom from t", 156, 2, "from"),
        ("SELECT a FROM t WHERE", 102, 1, "WHERE"),
        ("SELECT a,, b", 102, 1, ","),
        ("SELECT a b c", 102, 1, "c"),
        ("SELECT 'a' 'b' 'c'", 102, 1, "c"),
        ("SELECT 1; foo", 102, 1, "foo"),
        ("SELECT (1", 102, 1, "1"),
        ("SELECT 1)", 102, 1, ")"),
        ("CREATE TABLE t (a)", 102, 1, ")"),
        ("CREATE TABLE t (a int b int)", 102, 1, "b"),
        ("CREATE TABLE t ()", 102, 1, ")"),
        ("INSERT INTO t VALUES", 102, 1, "VALUES"),
        ("INSERT t VALUES ()", 102, 1, ")"),
        ("UPDATE t a = 1", 102, 1, "a"),
        ("DELETE t WHERE", 102, 1, "WHERE"),
        ("BEGIN\nEND", 156, 2, "END"),
        ("BEGIN SELECT 1", 102, 1, "1"),
        ("IF 1 = 1", 102, 1, "1"),
        ("SELECT TOP @n a FROM t", 102, 1, "@n"),
        ("DECLARE @a", 102, 1, "@a"),
        ("SET @a", 102, 1, "@a"),
        ("CREATE FOO x", 102, 1, "FOO"),
        ("SELECT a FROM t ORDER a", 102, 1, "a"),
        ("SELECT a FROM t GROUP BY", 102, 1, "BY"),
        ("SELECT * FROM a JOIN b", 102, 1, "b"),
        ("SELECT CAST(1 AS)", 102, 1, ")"),
        ("SELECT CASE END", 156, 1, "END"),
        ("SELECT a FROM t WHERE a LIKE", 102, 1, "LIKE"),
        ("SELECT a FROM t WHERE a = b = c", 102, 1, "="),
        ("SELECT a.b.", 102, 1, "."),
        ("ALTER TABLE t ADD COLUMN a int", 156, 1, "COLUMN"),
        ("SELECT ¿", 102, 1, "¿"),
        ("DECLARE @a int = 1,", 102, 1, ","),
        ("SELECT 1 UNION", 102, 1, "UNION"),
        ("WAITFOR 5", 102, 1, "5"),
        ("SELECT DEFAULT", 156, 1, "DEFAULT"),
        ("EXEC p DEFAULT = 1", 102, 1, "="),
    ] {
        check(text, number, line, near);
    }
}

#[test]
fn messages_of_their_own() {
    for (text, number, line, near) in [
        ("SELECT 'abc", 105, 1, "abc"),
        ("SELECT 1\n[abc", 105, 2, "abc"),
        ("SELECT 1 /* x", 113, 1, "/*"),
        ("SELECT 1 AS []", 1038, 1, ""),
        ("DECLARE @a int WITH c AS (SELECT 1 a) SELECT * FROM c", 319, 1, "WITH"),
        ("SELECT * FROM t WITH c AS (SELECT 1 a) SELECT * FROM c", 336, 1, "c"),
        ("SELECT 1 FROM t WHERE 1", 4145, 1, "1"),
        ("IF 1 SELECT 2", 4145, 1, "SELECT"),
        ("SELECT 1 FROM t WHERE a AND b = 1", 4145, 1, "AND"),
        ("SELECT 1\nBREAK", 135, 2, "BREAK"),
        ("CONTINUE", 136, 1, "CONTINUE"),
        ("GOTO nowhere", 133, 1, "nowhere"),
        ("a: SELECT 1\na: SELECT 2", 132, 2, "a"),
        ("RETURN 1", 178, 1, "1"),
        ("SELECT 1 CREATE VIEW v AS SELECT 1 a", 111, 1, "CREATE"),
        ("SELECT 1\nCREATE PROC p AS SELECT 1", 111, 2, "CREATE"),
        ("CREATE VIEW v AS SELECT 1 a\nSELECT 2", 156, 2, "SELECT"),
        ("SELECT 123456789012345678901234567890123456789", 1007, 1, "123456789012345678901234567890123456789"),
        ("SELECT 1e999", 168, 1, "1e999"),
        ("SELECT * FROM a.b.c.d.e", 117, 1, "a.b.c.d.e"),
        ("MERGE t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", 10713, 1, "DELETE"),
        ("SET NOCONUT ON", 195, 1, "NOCONUT"),
    ] {
        check(text, number, line, near);
    }
}

#[test]
fn the_text_is_sql_servers() {
    let text = |sql: &str| parse_batch(sql, &ParseOptions::default()).errors[0].text();
    assert_eq!(text("SELECT * FROM x WHERE ="), "Incorrect syntax near '='.");
    assert_eq!(text("SELECT * FROM select"), "Incorrect syntax near the keyword 'select'.");
    assert_eq!(text("SELECT 'x"), "Unclosed quotation mark after the character string 'x'.");
    assert_eq!(text("SELECT 1 CREATE PROC p AS"), "'CREATE/ALTER PROCEDURE' must be the first statement in a query batch.");
    let name = "n".repeat(200);
    let shown = "n".repeat(128);
    assert_eq!(text(&format!("SELECT {name}")), format!("The identifier that starts with '{shown}' is too long. Maximum length is 128."));
}

#[test]
fn an_unclosed_string_is_reported_twice_as_sql_server_does() {
    let batch = parse_batch("SELECT 'abc", &ParseOptions::default());
    assert_eq!(batch.errors.iter().map(|e| e.number).collect::<Vec<_>>(), [105, 102]);
    assert_eq!(batch.errors[1].text(), "Incorrect syntax near 'abc'.");
}
